"""A model integration for a game server that submits for its players.

    async with GameServer(queue="events.sqlite") as server:
        ann = await server.join("ann", ip="192.0.2.7", platform="ios", os_version="ios 17.0")
        ann.add("progression", event_id="Start:world1")
        server.leave("ann")

Wire 1.16, Submitting for players. Submitting from the players' devices is better where possible: see `player_session`.
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
from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.limits import MIB

SERVER_CAP_BYTES: Final = 256 * MIB  # Our choice
SHORTEST_PAUSE_S: Final = 15.0  # Wire 1.16, Submitting for players
LONGEST_PAUSE_S: Final = 20.0  # Wire 1.16, Submitting for players
IDLE_S: Final = 600.0  # Our choice: a player without events for so long has left
CLOSE_WAIT_S: Final = 30.0  # Our choice


@suggests_names
class GameServer:
    """Players of one game, their events, and the loop that submits one request per player.

    A player's IP decides the country and is sent as X-Forwarded-For. The queue file holds it until the events are sent,
    so keep that file private.

    Args:
        collector: of the game; None creates one from the settings and closes it at the end.
        queue: the file of waiting events, opened by one server at a time; None is memory, lost with the server.
        cap_bytes: limit of waiting events; beyond it the oldest sessions are deleted whole, and counted.
        idle_s: a player without events for this long has left, at the time of the last event.
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
        self._delivery = DeliveryLoop(
            collector, queue=queue, cap_bytes=cap_bytes, clock=clock, sleep=sleep, random=random
        )
        self._idle_s = idle_s
        self._clock, self._random, self._make_uuid = clock, random, make_uuid
        self._recorders: dict[str, EventRecorder] = {}
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"GameServer({self._delivery.collector!r}, players={len(self._recorders)})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Open the queue, end sessions that a killed server left open, and begin to submit.

        Raises:
            BadQuery: the queue file does not belong to this game, or another server has it open.
            Refused: this server was started before.
        """
        self._delivery.open(self._make_uuid)
        spread_s = LONGEST_PAUSE_S - SHORTEST_PAUSE_S
        self._delivery.start(
            lambda: self._submit_round(due_only=True), pause_s=lambda: SHORTEST_PAUSE_S + self._random() * spread_s
        )

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
        """Start a session of *user_id*, who plays from *ip*: both inits, then the user event.

        An open session of the player ends. A player whom an earlier init disabled sends events again once version 2
        says so, one with a 401 unless it is repeated. Other players are not concerned.

        Raises:
            BadQuery: a field breaks its rule.
            OutboxUnavailable: the disk cannot be written to.
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
        try:
            address = str(ip_address(ip))
        except ValueError:
            raise BadQuery("ip", ip, "must be an IPv4 or IPv6 address") from None
        recorder = EventRecorder(
            identity, self._delivery.sender, forwarded_for=address, clock=self._clock, make_uuid=self._make_uuid
        )
        self.leave(user_id)
        await self._delivery.initialise_and_start(recorder, within_s=WAIT_S)
        self._recorders[user_id] = recorder
        return recorder

    def leave(self, user_id: str) -> None:
        """End the session of *user_id*, if one is open.

        Its session_end is sent in the next round.
        """
        recorder = self._recorders.pop(user_id, None)
        if recorder is not None:
            recorder.end()

    async def submit(self) -> None:
        """Submit one round now: end idle sessions, then send one request for each player.

        Raises:
            Retryable: some events could not be delivered and wait.
        """
        await self._submit_round(due_only=False)

    async def close(self) -> DeliveryReport:
        """End all sessions, send the remaining events within 30 s, and return the last report.

        Events that could not be sent wait in the queue file; without a file they are dropped and counted.
        """
        for user_id in list(self._recorders):
            self.leave(user_id)
        return await self._delivery.finish(self._deliver_all, within_s=CLOSE_WAIT_S)

    def report(self) -> DeliveryReport:
        """Return the counts of the queue.

        After the end, the last ones.
        """
        return self._delivery.report()

    async def _submit_round(self, *, due_only: bool) -> None:
        """Submit one round, with *due_only* without the players whose pause after a failure is not over."""
        async with self._lock:
            latest_s = self._clock() - self._idle_s
            for user_id, recorder in list(self._recorders.items()):
                if recorder.last_s < latest_s:
                    del self._recorders[user_id]
                    recorder.end(at_s=recorder.last_s)
            for recorder in list(self._recorders.values()):
                if recorder.init.under_way:
                    continue  # the player's events wait, the other players' do not
                if not await self._delivery.initialise(recorder, within_s=WAIT_S, due_only=due_only):
                    break  # one wait a round: the other players' inits would hold it up as well
            await self._delivery.sender.deliver(due_only=due_only)

    async def _deliver_all(self) -> None:
        async with self._lock:
            await self._delivery.sender.deliver_all()
