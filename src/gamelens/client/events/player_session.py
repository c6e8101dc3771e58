"""A model integration for a game: one player's session, from init to session_end.

    async with PlayerSession(user_id="ann", platform="ios", os_version="ios 17.0", queue="events.sqlite") as player:
        player.add("progression", event_id="Start:world1")
        player.add("business", event_id="gems:small", amount=499, currency="USD", transaction_num=1)

A game without an event loop writes `with` instead of `async with`. An event passes through these modules:
`event_recorder` adds the common fields, `event_validation` checks it, `outbox` stores it in its `outbox_file`,
`batch_sender` sends it when `delivery_loop` says so, and `collector_client` signs and posts the batch.

Wire 1.15, Client queue.
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
from gamelens.client.events.outbox import CAP_BYTES, BatchKey
from gamelens.errors import Refused, suggests_names
from gamelens.wire.limits import SUBMIT_PERIOD_S


@suggests_names
class PlayerSession:
    """One session of one player on one device. The next session needs a new object.

    It starts with both inits and the user event, sends waiting events every 20 seconds, and ends with session_end and a
    last delivery. Offline, events wait and attempts become rarer. With a *queue* file they also survive restarts, and a
    session that was killed gets its session_end at the next start.

    Args:
        collector: of the game; None creates one from the settings and closes it with the session.
        user_id, platform, os_version, device, manufacturer, build: the player, the device and the version of the game.
        also: further fields of every event, such as `connection_type` or `custom_01`.
        queue: the file of waiting events, opened by one session at a time; None is memory, lost with the session.
        cap_bytes: limit of waiting events; beyond it the oldest sessions are deleted whole, and counted.
        wait_s: longest wait for init at the start, and for the last delivery at the end.
        clock, sleep, random, make_uuid: time and chance.

    Raises:
        AuthError: a key is missing.
        BadQuery: a field breaks its rule (Wire 3.3, Common fields).
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
        self._delivery = DeliveryLoop(
            collector, queue=queue, cap_bytes=cap_bytes, clock=clock, sleep=sleep, random=random
        )
        self._wait_s, self._clock, self._make_uuid = wait_s, clock, make_uuid
        self._recorder: EventRecorder | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"PlayerSession({self._delivery.collector!r}, user_id={self._identity.user_id!r})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        shared_loop().run(self.start())
        return self

    def __exit__(self, *_: object) -> None:
        shared_loop().run(self.close())

    async def start(self) -> None:
        """Send init, then record the user event.

        Without an answer in time the session starts with the stored one.

        Raises:
            BadQuery: the queue file does not belong to this game, or another session has it open.
            Refused: this session was started before.
            OutboxUnavailable: the disk cannot be written to.
        """
        sender = self._delivery.open(self._make_uuid)
        try:
            self._recorder = EventRecorder(self._identity, sender, clock=self._clock, make_uuid=self._make_uuid)
            await self._delivery.initialise_and_start(self._recorder, within_s=self._wait_s)
        except BaseException:
            await self._delivery.release()
            raise
        self._delivery.start(self._deliver_due, pause_s=self._pause_s)

    def add(self, category: str, **fields: Any) -> bool:
        """Record an event that happens now, and return whether it was queued.

        Never waits for the network. A field that is None is left out. An event that is not queued is dropped and
        counted: see `report`.

        Raises:
            BadQuery: a field breaks its rule (Wire 3.5, Category fields); nothing is queued.
            Refused: the session is not open.
        """
        return self._open_recorder.add(category, **fields)

    async def flush(self) -> DeliveryReport:
        """Send all waiting events now.

        Raises:
            Retryable: some could not be sent and wait.
        """
        async with self._lock:
            await self._delivery.initialise(self._open_recorder, within_s=self._wait_s / 2)
            await self._delivery.sender.deliver_all()
        return self.report()

    async def close(self) -> DeliveryReport:
        """End the session, send waiting events within *wait_s*, and return the last report.

        Events that could not be sent wait in the queue file; without a file they are dropped and counted.
        """
        self._open_recorder.end()
        return await self._delivery.finish(self._deliver_due, within_s=self._wait_s)

    def report(self) -> DeliveryReport:
        """Return the counts of the queue.

        After the end, the last ones.
        """
        return self._delivery.report()

    @property
    def configs(self) -> dict[str, Any]:
        """The values of the active remote configs, by key.

        Offline, they are the values of the stored answer.
        """
        return self._open_recorder.configs

    @property
    def _open_recorder(self) -> EventRecorder:
        if self._recorder is None:
            raise Refused("the session is not open: use `async with` or `with`")
        return self._recorder

    async def _deliver_due(self) -> None:
        """Send all events, and before them an init without an answer if it is due."""
        async with self._lock:
            await self._delivery.initialise(self._open_recorder, within_s=self._wait_s / 2, due_only=True)
            await self._delivery.sender.deliver_all()

    def _pause_s(self) -> float:
        """Return the pause until the next delivery: 20 s, or the one after failures."""
        backoff = self._delivery.sender.backoff(BatchKey(self._identity.user_id, None))
        return (backoff.left_s if backoff is not None else 0.0) or SUBMIT_PERIOD_S
