"""Delivers for as long as somebody plays: the queue's opening, a turn after each pause, the last turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from gamelens.client.events.batch_sender import BatchSender, DeliveryReport
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.event_recorder import EventRecorder, end_killed_sessions
from gamelens.client.events.outbox import Outbox
from gamelens.client.events.outbox_file import OutboxFile, OutboxUnavailable
from gamelens.errors import BadQuery, RateLimited, Refused, Retryable, ServiceError, Unreachable
from gamelens.wire.limits import SUBMIT_PERIOD_S

WAIT_S: Final = 5.0  # Our choice: a player does not wait longer for a collector that does not answer
LONGEST_PAUSE_S: Final = 600.0  # Our choice

Turn = Callable[[], Awaitable[object]]
Sleep = Callable[[float], Awaitable[object]]


class DeliveryLoop:
    """One queue, one collector and the task between them.

    Args:
        collector: the game's; None makes one from the settings and closes it in the end.
        queue: the file where events wait; None is memory.
        cap_bytes: of waiting events.
        sleep, random: time and chance.
    """

    def __init__(
        self,
        collector: CollectorClient | None,
        *,
        queue: Path | str | None,
        cap_bytes: int,
        sleep: Sleep,
        random: Callable[[], float],
    ) -> None:
        self.collector = collector or CollectorClient()
        self._owns_collector = collector is None
        self._queue, self._cap_bytes = queue, cap_bytes
        self._sleep, self._random = sleep, random
        self._courier: BatchSender | None = None
        self._task: asyncio.Task[None] | None = None
        self._last_report: DeliveryReport | None = None

    @property
    def courier(self) -> BatchSender:
        """The one at work.

        Raises:
            Refused: before the start, or after the end.
        """
        if self._courier is None or self._last_report is not None:
            raise Refused("not open: use it inside its `async with` or `with`")
        return self._courier

    def open(self, make_uuid: Callable[[], str]) -> BatchSender:
        """Take the queue, and end the sessions that were killed.

        Raises:
            BadQuery: the file is none of this game, or somebody else holds it.
            Refused: it was opened before.
        """
        if self._courier is not None:
            raise Refused("opened before: make another one")
        outbox = Outbox(OutboxFile(self._queue, game_key=self.collector.game_key), cap_bytes=self._cap_bytes)
        end_killed_sessions(outbox, make_uuid)
        self._courier = BatchSender(self.collector, outbox)
        return self._courier

    def begin(self, turn: Turn, *, pause_s: Callable[[], float]) -> None:
        """Take a *turn* now and after each pause, until the end."""
        delivering = _keep_delivering(self.courier, turn, pause_s=pause_s, sleep=self._sleep, random=self._random)
        self._task = asyncio.create_task(delivering)

    async def greet(self, player: EventRecorder) -> None:
        """Init, unless it was answered. An answer none of those promised disables nothing (public-facts 1.9).

        Raises:
            RateLimited, Unreachable: no answer at all.
        """
        if not player.is_greeted and self.courier.disabled is None:
            with contextlib.suppress(BadQuery, OutboxUnavailable, ServiceError):
                await player.greet()

    async def welcome(self, player: EventRecorder, *, within_s: float) -> None:
        """Init and start; where no answer comes in time the session starts with what was heard last.

        Raises:
            QueueFailed: the disk takes nothing.
        """
        with contextlib.suppress(TimeoutError, RateLimited, Unreachable):
            async with asyncio.timeout(within_s):
                await self.greet(player)
        player.start()

    async def finish(self, last_turn: Turn, *, within_s: float) -> DeliveryReport:
        """Take the last turn, stop, and let the queue go; the report says what still waits."""
        try:
            with contextlib.suppress(TimeoutError, Retryable):
                async with asyncio.timeout(within_s):
                    await last_turn()
            await self._stop()
        finally:
            await self.let_go()
        return self.report()

    async def let_go(self) -> None:
        """Close the queue, so that another may take it; the last report is kept."""
        courier = self.courier
        self._last_report = courier.report()
        courier.outbox.file.close()
        if self._owns_collector:
            await self.collector.aclose()

    def report(self) -> DeliveryReport:
        """What became of the events; after the end, how it ended."""
        return self._last_report or self.courier.report()

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


async def _keep_delivering(
    courier: BatchSender, turn: Turn, *, pause_s: Callable[[], float], sleep: Sleep, random: Callable[[], float]
) -> None:
    """Turns, until the collector says no. Failures make the pauses longer."""
    failures = 0
    while courier.disabled is None:
        try:
            await turn()
        except Retryable as error:
            failures += 1
            courier.trouble = str(error)
            await sleep(_backoff_s(failures, error, random))
        else:
            failures, courier.trouble = 0, None
            await sleep(pause_s())


def _backoff_s(failures: int, error: Retryable, random: Callable[[], float]) -> float:
    """Full jitter: anything up to the doubled pause, so that clients who failed together part."""
    wished_s = error.retry_after if isinstance(error, RateLimited) else None
    return max(wished_s or 0.0, random() * min(LONGEST_PAUSE_S, SUBMIT_PERIOD_S * 2.0 ** min(failures, 16)))
