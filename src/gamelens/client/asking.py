"""A question from its arguments to its frame, on the background loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.frames import ColumnKind, titles, to_frame
from gamelens.client.loop import together
from gamelens.client.planning import Part, Question, plan
from gamelens.client.receipts import Receipt, asked, receipt
from gamelens.client.rows import add_up, fields_of, join, prefixed, shared_fields
from gamelens.client.service import MetricsService
from gamelens.client.spans import Over, Span, WhenUnavailable
from gamelens.client.transport import Tally
from gamelens.errors import Truncated, Unreachable
from gamelens.wire.filters import dimensions_of
from gamelens.wire.results import Rows

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


class Inquiry:
    """One question under way: what it costs and what has to be said about it.

    Args:
        service: who is asked.
        over: the interval as typed.
        when: what to do where part of it is not available.
        deadline_s: for waiting until it is.
        now: the wall clock.
    """

    def __init__(
        self,
        service: MetricsService,
        *,
        over: Over,
        when: WhenUnavailable,
        deadline_s: float | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.service = service
        self.over = over
        self.when: WhenUnavailable = when
        self.deadline_s = deadline_s
        self.tally = Tally()
        self.warnings: list[str] = []
        self.is_truncated = False
        self._asked_at = datetime.fromtimestamp(now(), UTC)

    async def settle(self) -> Span:
        """When: what is asked, what is available, what is kept; see `MetricsService.settle`."""
        return await self.service.settle(self.over, self.when, self.deadline_s)

    async def fetch(self, part: Part) -> list[list[Rows]]:
        """Answers to all requests of *part*, in order, as many at a time as the budget lets go.

        Raises:
            Truncated: all values were asked for, and an answer holds as many as the service gives.
        """
        answers = await together(self.service.ask(part.metric, query, self.tally) for query in part.queries)
        if part.limit is not None and any(len(bucket.rows) >= part.limit for answer in answers for bucket in answer):
            if part.top is None or part.adds_up:
                raise Truncated(part.limit)
            self.is_truncated = True
        return answers

    async def frame(
        self, question: Question, span: Span, buckets: Sequence[Rows], columns: Mapping[str, ColumnKind], **more: Any
    ) -> DataFrame:
        """The frame of *buckets* with titles, where asked for, and the receipt, which also says *more*."""
        games = await self.service.games(span.kept, tally=self.tally) if question.wants_titles else None
        names = titles(games) if games is not None else None
        # In a thread: a large frame takes long enough to hold up everybody else's requests.
        return await asyncio.to_thread(
            to_frame, buckets, columns, titles=names, receipt=self._receipt(question, span, **more)
        )

    def _receipt(self, question: Question, span: Span, **more: Any) -> Receipt:
        return receipt(
            asked(question, self.over, **more),
            asked_at=self._asked_at,
            span=span,
            tally=self.tally,
            is_truncated=self.is_truncated,
            warnings=self.warnings,
        )


async def query(inquiry: Inquiry, question: Question, *, max_days: int | None) -> DataFrame:
    """The frame that answers *question*."""
    passed = await _pass_through(inquiry, question)
    span = await inquiry.settle()
    parts = plan(question, span.kept, max_days=max_days, passed=passed)
    answers = await together(_answer(inquiry, part, question, span) for part in parts)
    kinds = [_kinds(inquiry, part, answer) for part, answer in zip(parts, answers, strict=True)]
    shared = shared_fields(kinds)
    columns: dict[str, ColumnKind] = dict.fromkeys(parts[0].dimensions, "dimension")
    for part, mine in zip(parts, kinds, strict=True):
        columns |= {prefixed(name, part.metric, shared): kind for name, kind in mine.items()}
    named = [(part.metric, answer) for part, answer in zip(parts, answers, strict=True)]
    buckets = join(parts[0].dimensions, named, shared) if len(parts) > 1 else answers[0]
    return await inquiry.frame(question, span, buckets, columns)


async def within(deadline_s: float | None, work: Coroutine[Any, Any, T]) -> T:
    """Result of *work*, if it comes in time.

    Raises:
        Unreachable: it did not.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return await work
    except TimeoutError:
        late = Unreachable(f"not answered within deadline_s={deadline_s:g}: ask for less, or allow more time")
    raise late


async def _answer(inquiry: Inquiry, part: Part, question: Question, span: Span) -> list[Rows]:
    answers = await inquiry.fetch(part)
    if not part.adds_up:
        return [bucket for answer in answers for bucket in answer]
    stamp = span.kept.start if question.every == "all" else None
    added = add_up(METRICS[part.metric], part.dimensions, answers, stamp)
    if part.top is not None:
        inquiry.is_truncated |= any(len(bucket.rows) > part.top for bucket in added)
    return [Rows(bucket.timestamp, bucket.rows[: part.top]) for bucket in added]


def _kinds(inquiry: Inquiry, part: Part, answer: Sequence[Rows]) -> Mapping[str, ColumnKind]:
    """Kind of each field of the rows: the catalog's, then whatever else came, with a warning."""
    metric = METRICS.get(part.metric)
    kinds: dict[str, ColumnKind] = {field.name: field.kind for field in metric.fields} if metric is not None else {}
    strange = [name for name in fields_of(part.dimensions, answer) if name not in kinds]
    if metric is not None and strange:
        inquiry.warnings.append(f"{part.metric} came with fields this version does not know: {', '.join(strange)}")
    return kinds | dict.fromkeys(strange, "as it comes")


async def _pass_through(inquiry: Inquiry, question: Question) -> list[str]:
    """Dimensions only the service knows; each of them, and each such metric, gets a warning."""
    read = list(dimensions_of(question.where)) if question.where is not None else []
    metrics = await inquiry.service.list_strange("metric", question.metrics, METRICS)
    dimensions = await inquiry.service.list_strange("by", question.dimensions, DIMENSIONS)
    dimensions += await inquiry.service.list_strange("where", read, DIMENSIONS)
    for name in dict.fromkeys([*metrics, *dimensions]):
        inquiry.warnings.append(f"this version does not know {name}, the service does: passed on as it is")
    return dimensions
