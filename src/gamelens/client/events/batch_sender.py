"""Delivery of queued events to the collector, and what each answer does with the batch.

200 and 400 remove the batch: its valid events were collected, the rejected ones are reported. After a 401 nothing more
of that player is sent in this session.
A batch that is too large (413) or unreadable is sent again in halves, down to the single event that causes it. Any
other answer, or none, keeps the batch. An event that is sent twice has the same `event_uuid`.

Wire 1.7, Submitting events; Wire 1.10, Collector statuses.
"""

from __future__ import annotations

import logging
import random as randomness
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from gamelens.client.events.collector_client import CollectorClient, SubmitResult
from gamelens.client.events.outbox import BatchKey, EncodedEvent, Outbox, QueuedEvent, as_array
from gamelens.client.events.outbox_file import OutboxUnavailable
from gamelens.errors import AuthError, BadQuery, RateLimited, Retryable, ServiceError, suggests_names
from gamelens.wire.event_validator import RejectedEvent
from gamelens.wire.limits import SUBMIT_PERIOD_S

DISABLED: Final = "disabled"
UNDECIDED: Final = "the version 2 init has not said yet whether events may be sent"
DISABLED_BEFORE: Final = "disabled by an earlier init (enabled = false), and no init has said otherwise since"
TOO_LARGE: Final = "too large for the collector"
UNCLEAR: Final = "answered 400 without a reason"
FAILURES_IN_A_ROW: Final = 3  # Our choice: after so many a collector is taken to be down for all players
LONGEST_PAUSE_S: Final = 600.0  # Our choice
_TIMER_ERROR_S: Final = 0.5  # a sleep may end that much before its time
_MAX_REJECTIONS: Final = 100

E = TypeVar("E", bound=EncodedEvent)

_log = logging.getLogger(__name__)


@suggests_names
class DeliveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the events of a queue since its file was created.

    Each event is counted once.

    Attributes:
        waiting: events in the queue. After the end of a session or server, events in its file: events that are left in
            a queue in memory are dropped.
        dropped: events that were never collected, by reason.
        rejections: the last 100 rejected events of this process, with their violations.
        disabled: the reason why nothing is sent; of a game server, the latest reason why nothing of a player is sent.
        trouble: the error of the last attempt, if it failed.
    """

    waiting: int
    collected: int
    rejected: int
    dropped: Mapping[str, int]
    rejections: tuple[RejectedEvent, ...] = ()
    disabled: str | None = None
    trouble: str | None = None

    @property
    def added(self) -> int:
        """The number of all events added."""
        return self.waiting + self.collected + self.rejected + sum(self.dropped.values())


class Backoff:
    """The pause after failures in a row: up to 20 s doubled for each, and at most 600 s.

    Full jitter (any part of that) makes clients that failed together retry at different times. If the clock is moved
    back, the pause is over. Wire 1.15, Client queue.
    """

    def __init__(self, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._clock, self._random = clock, random
        self._failures = 0
        self._failed_s = self._pause_s = 0.0

    def fail(self, error: Retryable | None = None) -> None:
        """Begin the next, longer pause, which lasts at least the Retry-After of a 429."""
        self._failures += 1
        self._failed_s = self._clock()
        requested_s = error.retry_after if isinstance(error, RateLimited) else None
        longest_s = min(LONGEST_PAUSE_S, SUBMIT_PERIOD_S * 2.0 ** min(self._failures, 16))
        self._pause_s = max(requested_s or 0.0, self._random() * longest_s)

    @property
    def left_s(self) -> float:
        """The rest of the pause in seconds."""
        passed_s = self._clock() - self._failed_s
        return max(0.0, self._pause_s - passed_s) if passed_s >= 0 else 0.0

    @property
    def is_over(self) -> bool:
        """Whether the pause is over."""
        return self.left_s < _TIMER_ERROR_S


class BatchSender:
    """The sender between one outbox and one collector, with a pause after failures for each batch key.

    Attributes:
        blocked: the players of whom nothing is sent until an init decides, and why. Their events are recorded.
        disabled: the players who may send nothing in this session, and why. Their events are dropped.
        trouble: the error of the last attempt, if it failed.
    """

    def __init__(
        self,
        collector: CollectorClient,
        outbox: Outbox,
        *,
        clock: Callable[[], float] = time.time,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.collector = collector
        self.outbox = outbox
        self.blocked = dict.fromkeys(outbox.file.disabled_players(), DISABLED_BEFORE)
        self.disabled: dict[str, str] = {}
        self.trouble: str | None = None
        self._clock, self._random = clock, random
        self._rejections: deque[RejectedEvent] = deque(maxlen=_MAX_REJECTIONS)
        self._backoffs: dict[BatchKey, Backoff] = {}

    def hold(self, user_id: str) -> None:
        """Send nothing of *user_id* until `release`, `enable` or `disable`."""
        self.blocked.setdefault(user_id, UNDECIDED)

    def release(self, user_id: str) -> None:
        """Send the events of *user_id* again, unless an earlier version 2 init disabled the player.

        For an init without a usable answer (Wire 1.15, Client queue).
        """
        if self.blocked.get(user_id) == UNDECIDED:
            del self.blocked[user_id]

    def enable(self, user_id: str) -> None:
        """Send the events of *user_id*: the version 2 init said so."""
        if self.blocked.pop(user_id, None) == DISABLED_BEFORE:
            self.outbox.file.save_enabled(user_id, is_enabled=True)

    def disable(self, user_id: str, because: str, *, is_permanent: bool = False) -> None:
        """Send nothing of *user_id* in this session, and if *is_permanent* in later ones until `enable`.

        Waiting events stay in the queue.
        """
        self.disabled[user_id] = because
        if is_permanent:
            self.outbox.file.save_enabled(user_id, is_enabled=False)
            self.blocked[user_id] = DISABLED_BEFORE
        _log.warning("no events of the player are sent: %s", because)

    def new_backoff(self) -> Backoff:
        """Return a pause by the clock of this sender that has not begun."""
        return Backoff(self._clock, self._random)

    def backoff(self, key: BatchKey) -> Backoff | None:
        """Return the pause after the failures of *key*, or None if its last request was answered."""
        return self._backoffs.get(key)

    @property
    def is_failing(self) -> bool:
        """Whether the last request of some batch key was not answered."""
        return bool(self._backoffs)

    async def deliver(self, *, due_only: bool = False) -> None:
        """Send one request for each batch key that has events, those that failed before last.

        There is one request per player (Wire 1.16, Submitting for players). A failed request does not end the round,
        but three in a row do. *due_only* leaves out the keys whose pause after a failure is not over.

        Raises:
            Retryable: a batch could not be delivered, the first of those.
        """
        failed: dict[BatchKey, Retryable] = {}
        paused = {key for key, backoff in self._backoffs.items() if not backoff.is_over} if due_only else set()
        await self._deliver(lambda key: key not in paused, failed)
        _raise_first(failed)

    async def deliver_all(self) -> None:
        """Send all events, in as many requests as it takes. A batch key that fails is tried once.

        Raises:
            Retryable: a batch could not be delivered, the first of those.
        """
        failed: dict[BatchKey, Retryable] = {}
        while await self._deliver(lambda key: key not in failed, failed):
            continue
        _raise_first(failed)

    def report(self) -> DeliveryReport:
        """Return the counts of the queue and the state of delivery."""
        counts = self.outbox.counts()
        return DeliveryReport(
            waiting=self.outbox.waiting(),
            collected=counts.pop("collected", 0),
            rejected=counts.pop("rejected", 0),
            dropped=counts,
            rejections=tuple(self._rejections),
            disabled=next(reversed([*self.blocked.values(), *self.disabled.values()]), None),
            trouble=self.trouble,
        )

    async def _deliver(self, is_wanted: Callable[[BatchKey], bool], failed: dict[BatchKey, Retryable]) -> bool:
        """Send one request for each wanted key, and return whether another round makes sense.

        Failures are added to *failed*.
        """
        keys = self.outbox.batch_keys()
        self._backoffs = {key: self._backoffs[key] for key in keys if key in self._backoffs}
        failures = 0
        is_answered = False
        for key in sorted(filter(is_wanted, keys), key=self._backoffs.__contains__):
            if failures == FAILURES_IN_A_ROW:
                return False
            if key.user_id in self.blocked or key.user_id in self.disabled:
                continue
            try:
                await self._send(self.outbox.batch(key), key.forwarded_for)
            except OutboxUnavailable:
                raise
            except AuthError as error:
                self.disable(key.user_id, str(error))
                failures += 1
            except Retryable as error:
                failed[key] = error
                self._backoffs.setdefault(key, self.new_backoff()).fail(error)
                failures += 1
            else:
                self._backoffs.pop(key, None)
                is_answered, failures = True, 0
        return is_answered

    async def _send(self, batch: Sequence[QueuedEvent], forwarded_for: str | None) -> None:
        """Send *batch* and remove what the collector has answered for."""
        async for part, outcome in submit_in_parts(self.collector, batch, forwarded_for=forwarded_for):
            if isinstance(outcome, str):
                self.outbox.remove_batch(part, dropped={outcome: len(part)})
            else:
                self.outbox.remove_batch(part, rejected=min(len(outcome.rejected), len(part)))
                self._rejections.extend(outcome.rejected)
                for rejection in outcome.rejected:
                    rules = ", ".join(f"{violation.error_type} {violation.path}" for violation in rejection.errors)
                    _log.warning("an event was rejected: %s", rules)


async def submit_in_parts(
    collector: CollectorClient, batch: Sequence[E], *, forwarded_for: str | None = None, attempts: int = 1
) -> AsyncIterator[tuple[Sequence[E], SubmitResult | str]]:
    """Submit *batch* and yield it, or the parts it had to be sent in, with the outcome.

    A batch that is too large or unreadable is sent again in halves, down to the single event that causes it.

    Yields:
        Events, and the collector's answer to them or the reason why it collected none of them.

    Raises:
        AuthError: a key is wrong.
        Retryable: the rest could not be delivered.
    """
    outcome: SubmitResult | str
    try:
        outcome = await collector.submit(as_array(batch), forwarded_for=forwarded_for, attempts=attempts)
    except BadQuery:
        outcome = TOO_LARGE
    except ServiceError as error:
        if error.status != 400:
            raise
        outcome = UNCLEAR
    is_refused = outcome == TOO_LARGE or (isinstance(outcome, SubmitResult) and outcome.is_unread)
    if is_refused and len(batch) > 1:
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            async for part in submit_in_parts(collector, half, forwarded_for=forwarded_for, attempts=attempts):
                yield part
    else:
        yield batch, outcome


def _raise_first(failed: Mapping[BatchKey, Retryable]) -> None:
    for error in failed.values():
        raise error
