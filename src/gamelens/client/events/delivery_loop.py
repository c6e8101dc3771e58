"""The background task of a session or server: delivers, pauses, and delivers a last time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from gamelens.client.events.batch_sender import BatchSender, DeliveryReport
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.event_recorder import EventRecorder, end_killed_sessions
from gamelens.client.events.outbox import UNSENT, Outbox
from gamelens.client.events.outbox_file import OutboxFile
from gamelens.client.events.session_init import SessionInit
from gamelens.errors import Refused, Retryable

WAIT_S: Final = 5.0  # Our choice: the longest a player waits for a collector that does not answer

Turn = Callable[[], Awaitable[object]]
Sleep = Callable[[float], Awaitable[object]]


class DeliveryLoop:
    """One queue, one collector and the task that delivers between them.

    Without a collector one is made from the settings, and closed at the end. Without a *queue* file events wait in
    memory.
    """

    def __init__(
        self,
        collector: CollectorClient | None,
        *,
        queue: Path | str | None,
        cap_bytes: int,
        clock: Callable[[], float],
        sleep: Sleep,
        random: Callable[[], float],
    ) -> None:
        self.collector = collector or CollectorClient()
        self._owns_collector = collector is None
        self._queue, self._cap_bytes = queue, cap_bytes
        self._clock, self._sleep, self._random = clock, sleep, random
        self._sender: BatchSender | None = None
        self._task: asyncio.Task[None] | None = None
        self._last_report: DeliveryReport | None = None
        self._inits: dict[str, SessionInit] = {}  # of the latest session of each player, until it is answered

    @property
    def sender(self) -> BatchSender:
        """The sender, while the queue is open.

        Raises:
            Refused: before the start, after the end, or in a forked child.
        """
        if self._sender is None or self._last_report is not None:
            raise Refused("not open: use it inside its `async with` or `with`")
        self._sender.outbox.file.process.check()
        return self._sender

    def open(self, make_uuid: Callable[[], str]) -> BatchSender:
        """Open the queue, end sessions that a killed process left open, and return the sender.

        Raises:
            BadQuery: the file does not belong to this game, or another process has it open.
            Refused: it was opened before.
        """
        if self._sender is not None:
            raise Refused("opened before: create a new one")
        outbox = Outbox(OutboxFile(self._queue, game_key=self.collector.game_key), cap_bytes=self._cap_bytes)
        end_killed_sessions(outbox, make_uuid)
        self._sender = BatchSender(self.collector, outbox, clock=self._clock, random=self._random)
        return self._sender

    def start(self, turn: Turn, *, pause_s: Callable[[], float]) -> None:
        """Start the task, which calls *turn* now and after each pause and keeps its last error."""
        sender = self.sender

        async def deliver_for_ever() -> None:
            while True:
                try:
                    await turn()
                except Retryable as error:
                    sender.trouble = str(error)
                else:
                    sender.trouble = sender.trouble if sender.is_failing else None
                await self._sleep(pause_s())

        self._task = asyncio.create_task(deliver_for_ever())

    async def initialise(self, recorder: EventRecorder, *, within_s: float, due_only: bool = False) -> bool:
        """Send the inits of a session without an answer. Return False if one got none again.

        A disabled player is asked at the start of a session only, and with *due_only* others after a pause.
        """
        init = recorder.init
        is_idle = due_only and not init.is_due and not init.under_way
        if init.is_answered or recorder.identity.user_id in self.sender.disabled or is_idle:
            return True
        return await init.ask(within_s=within_s)

    async def initialise_and_start(self, recorder: EventRecorder, *, within_s: float) -> None:
        """Send the inits and start the session.

        Without an answer in time it starts with the stored one.

        Raises:
            OutboxUnavailable: the disk cannot be written to.
        """
        user_id = recorder.identity.user_id
        self._inits = {name: init for name, init in self._inits.items() if not init.is_answered}
        previous, self._inits[user_id] = self._inits.get(user_id), recorder.init
        if previous is not None:
            await previous.cancel()
        recorder.init.begin()
        await recorder.init.ask(within_s=within_s)
        recorder.start()

    async def finish(self, last_turn: Turn, *, within_s: float) -> DeliveryReport:
        """Deliver a last time, stop the task, close the queue and return the last report.

        Events that wait for an init follow once it is answered.
        """
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._deliver_last(last_turn)
            if self._task is not None:
                self._task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._task
        finally:
            await self.release()
        return self.report()

    async def release(self) -> None:
        """Close the queue, so that another process can open it, and store the last report.

        Events that are left in a queue in memory are dropped.
        """
        sender = self.sender
        for init in self._inits.values():
            await init.cancel()
        if self._queue is None:
            sender.outbox.drop_waiting(UNSENT)
        self._last_report = sender.report()
        sender.outbox.file.close()
        if self._owns_collector:
            await self.collector.aclose()

    def report(self) -> DeliveryReport:
        """Return the counts of the queue.

        After the end, the last ones.
        """
        return self._last_report or self.sender.report()

    async def _deliver_last(self, last_turn: Turn) -> None:
        """Call *last_turn*, and again after each answer to an init: events of its player may have waited for it."""
        while True:
            with contextlib.suppress(Retryable):
                await last_turn()
            under_way = [task for init in self._inits.values() for task in init.under_way]
            if not under_way:
                return
            await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
