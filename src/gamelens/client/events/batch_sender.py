"""Brings what waits in the outbox to the collector and deals with each answer (Collector, POST events).

200 and 400 remove the batch: its good events were collected, those rejected are reported. 401 stops everything. A
batch too large (413), or that cannot be read, is sent again in halves, down to the one event that is to blame. All
else keeps the batch: 5xx, 429, nobody there. What is sent twice carries the same `event_uuid`.
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
_KEPT_REJECTIONS: Final = 100

_log = logging.getLogger(__name__)


class DeliveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events of a queue, since there is one: each is counted in exactly one place.

    *dropped* goes by reason. *rejections* are the last 100 of this process, as sent, with their faults. *disabled* and
    *trouble* say why nothing is sent (any more), or why the last attempt failed.
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
        """All events there were."""
        return self.waiting + self.collected + self.rejected + sum(self.dropped.values())


class BatchSender:
    """Between one outbox and one collector."""

    def __init__(self, collector: CollectorClient, outbox: Outbox) -> None:
        self.collector = collector
        self.outbox = outbox
        self.disabled: str | None = None
        self.trouble: str | None = None
        self._rejections: deque[RejectedEvent] = deque(maxlen=_KEPT_REJECTIONS)
        self._failed: set[BatchKey] = set()

    def disable(self, because: str) -> None:
        """Send nothing any more; what waits is kept for a session that may."""
        self.disabled = because
        _log.warning("no events are sent: %s", because)

    async def deliver(self) -> bool:
        """One request for each bucket that waits (Collector, Submitting on behalf 3); False when none did.

        Raises:
            Retryable: a bucket could not be delivered; the others go first next time.
        """
        buckets = sorted(self.outbox.buckets(), key=self._failed.__contains__)
        for bucket in buckets:
            self._failed.add(bucket)
            await self._send(self.outbox.batch(bucket), bucket.forwarded_for)
            self._failed.discard(bucket)
        return bool(buckets) and self.disabled is None

    def report(self) -> DeliveryReport:
        """What became of the events."""
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
            self.outbox.settle(batch, dropped={UNCLEAR: len(batch)})
        else:
            if answer.is_unread and len(batch) > 1:
                await self._send_in_halves(batch, forwarded_for)
            else:
                self._settle(batch, answer.rejected)

    async def _send_in_halves(self, batch: Sequence[QueuedEvent], forwarded_for: str | None) -> None:
        if len(batch) == 1:
            self.outbox.settle(batch, dropped={TOO_LARGE: 1})
            return
        middle = len(batch) // 2
        await self._send(batch[:middle], forwarded_for)
        await self._send(batch[middle:], forwarded_for)

    def _settle(self, batch: Sequence[QueuedEvent], rejected: Sequence[RejectedEvent]) -> None:
        self.outbox.settle(batch, rejected=min(len(rejected), len(batch)))
        self._rejections.extend(rejected)
        for one in rejected:
            _log.warning("an event was rejected: %s", ", ".join(f"{it.error_type} {it.path}" for it in one.errors))
