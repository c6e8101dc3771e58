"""Delivery of queued events to the collector, and what each answer does with the batch.

200 and 400 remove the batch: its valid events were collected, the rejected ones are reported. 401 stops all delivery.
A batch that is too large (413) or unreadable is sent again in halves, down to the single event that causes it. Any
other answer, or none, keeps the batch. An event that is sent twice has the same `event_uuid`.

Wire 1.7, Submitting events; Wire 1.10, Collector statuses.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.outbox import BatchKey, Outbox, QueuedEvent, as_array
from gamelens.errors import AuthError, BadQuery, ServiceError
from gamelens.wire.event_validator import RejectedEvent

DISABLED: Final = "disabled"
TOO_LARGE: Final = "too large for the collector"
UNCLEAR: Final = "answered 400 without saying why"
_MAX_REJECTIONS: Final = 100

_log = logging.getLogger(__name__)


class DeliveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the events of a queue since its file was created.

    Each event is counted once.

    Attributes:
        waiting: events in the queue.
        collected, rejected: events the collector has answered.
        dropped: events that were never collected, by reason.
        rejections: the last 100 rejected events of this process, with their violations.
        disabled: the reason why nothing is sent any more.
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


class BatchSender:
    """The sender between one outbox and one collector."""

    def __init__(self, collector: CollectorClient, outbox: Outbox) -> None:
        self.collector = collector
        self.outbox = outbox
        self.disabled: str | None = None
        self.trouble: str | None = None
        self._rejections: deque[RejectedEvent] = deque(maxlen=_MAX_REJECTIONS)
        self._failed: set[BatchKey] = set()

    def disable(self, because: str) -> None:
        """Stop sending.

        Waiting events stay in the queue for a later session.
        """
        self.disabled = because
        _log.warning("no events are sent: %s", because)

    async def deliver(self) -> bool:
        """Send one request for each batch key that has events and return whether any had.

        There is one request per player (Wire 1.16, Submitting for players).

        Raises:
            Retryable: a batch could not be delivered; the next call sends the others first.
        """
        keys = sorted(self.outbox.batch_keys(), key=self._failed.__contains__)
        for key in keys:
            self._failed.add(key)
            await self._send(self.outbox.batch(key), key.forwarded_for)
            self._failed.discard(key)
        return bool(keys) and self.disabled is None

    def report(self) -> DeliveryReport:
        """Return the counts of the queue and the state of delivery."""
        counts = self.outbox.counts()
        return DeliveryReport(
            waiting=self.outbox.waiting(),
            collected=counts.pop("collected", 0),
            rejected=counts.pop("rejected", 0),
            dropped=counts,
            rejections=tuple(self._rejections),
            disabled=self.disabled,
            trouble=self.trouble,
        )

    async def _send(self, batch: Sequence[QueuedEvent], forwarded_for: str | None) -> None:
        """Send *batch* and remove what the collector has answered for."""
        if self.disabled is not None or not batch:
            return
        try:
            answer = await self.collector.submit(as_array(batch), forwarded_for=forwarded_for, attempts=1)
        except AuthError as error:
            self.disable(str(error))
        except BadQuery:
            await self._send_in_halves(batch, forwarded_for)
        except ServiceError as error:
            if error.status != 400:
                raise
            self.outbox.remove_batch(batch, dropped={UNCLEAR: len(batch)})
        else:
            if answer.is_unread and len(batch) > 1:
                await self._send_in_halves(batch, forwarded_for)
            else:
                self._remove_batch(batch, answer.rejected)

    async def _send_in_halves(self, batch: Sequence[QueuedEvent], forwarded_for: str | None) -> None:
        """Send the two halves of *batch*.

        Drop a single event that is too large.
        """
        if len(batch) == 1:
            self.outbox.remove_batch(batch, dropped={TOO_LARGE: 1})
            return
        middle = len(batch) // 2
        await self._send(batch[:middle], forwarded_for)
        await self._send(batch[middle:], forwarded_for)

    def _remove_batch(self, batch: Sequence[QueuedEvent], rejected: Sequence[RejectedEvent]) -> None:
        """Remove *batch* from the outbox and log its rejected events."""
        self.outbox.remove_batch(batch, rejected=min(len(rejected), len(batch)))
        self._rejections.extend(rejected)
        for rejection in rejected:
            _log.warning(
                "an event was rejected: %s",
                ", ".join(f"{violation.error_type} {violation.path}" for violation in rejection.errors),
            )
