"""A model integration for a game server that submits for its players (Collector, Submitting on behalf of clients).

    async with GameServer(queue="events.sqlite") as server:
        ann = await server.join("ann", ip="192.0.2.7", platform="ios", os_version="ios 17.0")
        ann.add("progression", event_id="Start:world1")
        server.leave("ann")

Submitting from the players' devices is better where it is possible: see `session`.
"""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Self

from gamelens.client.events.batch_sender import DeliveryReport
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.delivery_loop import WAIT_S, DeliveryLoop
from gamelens.client.events.event_recorder import EventRecorder, new_uuid
from gamelens.client.events.event_validation import PlayerIdentity
from gamelens.errors import BadQuery
from gamelens.wire.limits import MIB

SERVER_CAP_BYTES: Final = 256 * MIB  # Our choice
SHORTEST_PAUSE_S: Final = 15.0  # Collector, Submitting on behalf 3
LONGEST_PAUSE_S: Final = 20.0  # Collector, Submitting on behalf 3
IDLE_S: Final = 600.0  # Our choice: who does nothing for so long has left
CLOSE_WAIT_S: Final = 30.0  # Our choice


class GameServer:
    """Players of one game, a bucket of events for each, and the loop that submits one request per player.

    A player's IP is needed for the country and sent as X-Forwarded-For. The queue file holds it until the events are
    sent: keep that file private.

    Args:
        collector: the game's collector; None makes one from the settings and closes it in the end.
        queue: the file where events wait, held by one server at a time; None is memory, lost with the server.
        cap_bytes: of waiting events; beyond it the oldest sessions are deleted whole, and counted.
        idle_s: a player without events for so long has left, with the last one.
        clock, sleep, random, make_uuid: time and chance.
    """

    def __init__(
        self,
        collector: CollectorClient | None = None,
        *,
        queue: Path | str | None = None,
        cap_bytes: int = SERVER_CAP_BYTES,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = randomness.random,
        make_uuid: Callable[[], str] = new_uuid,
    ) -> None:
        self._delivery = DeliveryLoop(collector, queue=queue, cap_bytes=cap_bytes, sleep=sleep, random=random)
        self._idle_s = idle_s
        self._clock, self._random, self._make_uuid = clock, random, make_uuid
        self._players: dict[str, EventRecorder] = {}
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"GameServer({self._delivery.collector!r}, players={len(self._players)})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Take the queue, end the sessions that a killed server left open, and begin to submit.

        Raises:
            BadQuery: the queue file is none of this game, or another server holds it.
            Refused: this server was started before.
        """
        self._delivery.open(self._make_uuid)
        self._delivery.begin(self.submit, pause_s=self._pause_s)

    async def join(
        self,
        user_id: str,
        *,
        ip: str,
        platform: str,
        os_version: str,
        device: str = "unknown",
        manufacturer: str = "unknown",
        build: str | None = None,
        also: Mapping[str, Any] | None = None,
    ) -> EventRecorder:
        """Begin a session of *user_id*, who plays from *ip*: init, then the user event. An open one ends.

        Raises:
            BadQuery: a field breaks its rule.
            QueueFailed: the disk takes nothing.
        """
        identity = PlayerIdentity(
            user_id=user_id,
            platform=platform,
            os_version=os_version,
            device=device,
            manufacturer=manufacturer,
            build=build,
            also=also or {},
        )
        player = EventRecorder(
            identity,
            self._delivery.courier,
            forwarded_for=_address(ip),
            clock=self._clock,
            make_uuid=self._make_uuid,
        )
        self.leave(user_id)
        await self._delivery.welcome(player, within_s=WAIT_S)
        self._players[user_id] = player
        return player

    def leave(self, user_id: str) -> None:
        """End the session of *user_id*, where one is open: its session_end goes with the next round."""
        player = self._players.pop(user_id, None)
        if player is not None:
            player.end()

    async def submit(self) -> None:
        """One round: end the sessions of those who left without a word, then one request for each bucket.

        Raises:
            Retryable: some buckets could not be delivered; they wait.
        """
        async with self._turn:
            self._end_idle()
            for player in list(self._players.values()):
                await self._delivery.greet(player)
            await self._delivery.courier.deliver()

    async def close(self) -> DeliveryReport:
        """End all sessions, send what waits within 30 s, and let the queue go: what is left waits in its file.

        Returns the last report; with a queue in memory, what is still waiting is lost.
        """
        for user_id in list(self._players):
            self.leave(user_id)
        return await self._delivery.finish(self._deliver_all, within_s=CLOSE_WAIT_S)

    def report(self) -> DeliveryReport:
        """What became of the events; after the end, how it ended."""
        return self._delivery.report()

    async def _deliver_all(self) -> None:
        async with self._turn:
            while await self._delivery.courier.deliver():
                continue

    def _end_idle(self) -> None:
        latest_s = self._clock() - self._idle_s
        for user_id, player in list(self._players.items()):
            if player.last_s < latest_s:
                del self._players[user_id]
                player.end(at_s=player.last_s)

    def _pause_s(self) -> float:
        return SHORTEST_PAUSE_S + self._random() * (LONGEST_PAUSE_S - SHORTEST_PAUSE_S)


def _address(ip: str) -> str:
    try:
        return str(ip_address(ip))
    except ValueError:
        raise BadQuery("ip", ip, "must be an IPv4 or IPv6 address") from None
