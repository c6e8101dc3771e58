"""A model integration for a game: one player's session, from init to session_end (Collector, POST events 3 and 4).

    async with PlayerSession(user_id="ann", platform="ios", os_version="ios 17.0", queue="events.sqlite") as player:
        player.add("progression", event_id="Start:world1")
        player.add("business", event_id="gems:small", amount=499, currency="USD", transaction_num=1)

A game without an event loop says `with` in place of `async with`, and everything else stays the same. The way of an
event: `player` stamps it, `annotations` checks it, `outbox` keeps it in its `queue_file`, `courier` brings it to the
collector when `delivery` says so, and `collector` signs and posts.
"""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self

from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.events.batch_sender import DeliveryReport
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.delivery_loop import WAIT_S, DeliveryLoop
from gamelens.client.events.event_recorder import EventRecorder, new_uuid
from gamelens.client.events.event_validation import PlayerIdentity
from gamelens.client.events.outbox import CAP_BYTES
from gamelens.errors import Refused
from gamelens.wire.limits import SUBMIT_PERIOD_S


class PlayerSession:
    """One session of one player on one device; make another for the next.

    It starts with init and the user event, sends what waits every 20 seconds, and ends with session_end and a last
    delivery. Offline, events wait, and attempts grow rarer. With a *queue* file they wait across restarts, too; a
    session that was killed gets its end at the next start.

    Args:
        collector: the game's collector; None makes one from the settings and closes it with the session.
        user_id, platform, os_version, device, manufacturer, build: who plays on what.
        also: further fields of every event, such as `connection_type` or `custom_01`.
        queue: the file where events wait, held by one session at a time; None is memory, lost with the session.
        cap_bytes: of waiting events; beyond it the oldest sessions are deleted whole, and counted.
        wait_s: how long the start may wait for init, and the end for the last delivery.
        clock, sleep, random, make_uuid: time and chance.

    Raises:
        AuthError: a key is missing.
        BadQuery: a field breaks its rule (public-facts 2.3).
    """

    def __init__(
        self,
        collector: CollectorClient | None = None,
        *,
        user_id: str,
        platform: str,
        os_version: str,
        device: str = "unknown",
        manufacturer: str = "unknown",
        build: str | None = None,
        also: Mapping[str, Any] | None = None,
        queue: Path | str | None = None,
        cap_bytes: int = CAP_BYTES,
        wait_s: float = WAIT_S,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = randomness.random,
        make_uuid: Callable[[], str] = new_uuid,
    ) -> None:
        self._identity = PlayerIdentity(
            user_id=user_id,
            platform=platform,
            os_version=os_version,
            device=device,
            manufacturer=manufacturer,
            build=build,
            also=also or {},
        )
        self._delivery = DeliveryLoop(collector, queue=queue, cap_bytes=cap_bytes, sleep=sleep, random=random)
        self._wait_s, self._clock, self._make_uuid = wait_s, clock, make_uuid
        self._player: EventRecorder | None = None
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"PlayerSession({self._delivery.collector!r}, user_id={self._identity.user_id!r})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        shared_loop().wait(self.start())
        return self

    def __exit__(self, *_: object) -> None:
        shared_loop().wait(self.close())

    async def start(self) -> None:
        """Init, then the user event. Where no answer comes in time the session starts with what was heard last.

        Raises:
            BadQuery: the queue file is none of this game, or another session holds it.
            Refused: this session was started before.
            QueueFailed: the disk takes nothing.
        """
        courier = self._delivery.open(self._make_uuid)
        try:
            self._player = EventRecorder(self._identity, courier, clock=self._clock, make_uuid=self._make_uuid)
            await self._delivery.welcome(self._player, within_s=self._wait_s)
        except BaseException:
            await self._delivery.let_go()
            raise
        self._delivery.begin(self._deliver_all, pause_s=lambda: SUBMIT_PERIOD_S)

    def add(self, category: str, **fields: Any) -> bool:
        """Record an event that happens now; a field that is None is left out. Never waits for the network.

        True when it is queued, False when it was dropped and counted: see `report`.

        Raises:
            BadQuery: a field breaks its rule (public-facts 2.5); nothing is queued.
            Refused: the session is not open.
        """
        return self._open_player.add(category, **fields)

    async def flush(self) -> DeliveryReport:
        """Send everything that waits, now.

        Raises:
            Retryable: not all of it could be sent; the rest waits.
        """
        await self._deliver_all()
        return self.report()

    async def close(self) -> DeliveryReport:
        """End the session, send what can be sent in time, and let the queue go: what is left waits in its file.

        Returns the last report; with a queue in memory, what is still waiting is lost.
        """
        self._open_player.end()
        return await self._delivery.finish(self._deliver_all, within_s=self._wait_s)

    def report(self) -> DeliveryReport:
        """What became of the events; after the session, how it ended."""
        return self._delivery.report()

    @property
    def configs(self) -> dict[str, Any]:
        """Values of the remote configs that hold now, by key; offline, those last heard."""
        return self._open_player.configs

    @property
    def _open_player(self) -> EventRecorder:
        if self._player is None:
            raise Refused("the session is not open: `async with` it, or `with`")
        return self._player

    async def _deliver_all(self) -> None:
        async with self._turn:
            await self._delivery.greet(self._open_player)
            while await self._delivery.courier.deliver():
                continue
