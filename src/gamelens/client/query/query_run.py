"""A question from its arguments to its frame, on the background loop."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.connection.deadline import Deadline
from gamelens.client.connection.event_loop import gather
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.query.data_frames import add_titles, to_frame, unique_game_titles, unique_studio_names
from gamelens.client.query.fetcher import Fetcher
from gamelens.client.query.planner import (
    FanOutValues,
    MetricPlan,
    fan_out_dimensions,
    placeholder_values,
    plan_requests,
)
from gamelens.client.query.progress import Progress
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, ExecutionOptions, QuerySpec
from gamelens.client.query.row_sources import RowSource
from gamelens.client.tables import table_operations, table_schema
from gamelens.client.tables.table_schema import TIMESTAMP
from gamelens.client.tables.time_ranges import ResolvedRange, TimeRange, enclosing_interval, resolve_range
from gamelens.errors import NotYetAvailable, PartialResult, Truncated, Unreachable
from gamelens.wire.filters import dimensions_in, wire_filter
from gamelens.wire.intervals import Interval, bucket_start
from gamelens.wire.receipts import RECEIPT, QueryRecord, Receipt, package_version


class QueryResult(msgspec.Struct, frozen=True):
    """A frame and its receipt, and the table that it was made from."""

    frame: Any
    receipt: Receipt
    table: pa.Table

    def with_receipt(self, receipt: Receipt) -> QueryResult:
        """Return the result with another receipt, which its pandas frame then carries."""
        if hasattr(self.frame, "attrs"):
            self.frame.attrs[RECEIPT] = receipt.to_json()
        return msgspec.structs.replace(self, receipt=receipt)


class QueryRun:
    """One question under way: what it costs and what has to be said about it.

    Args:
        service: who is asked.
        known: what needs no asking.
        terms: how it is to be answered.
        progress: how far it is.
        now: the wall clock.
    """

    def __init__(
        self,
        service: MetricsApi,
        *,
        known: RowSource,
        terms: ExecutionOptions,
        progress: Progress,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.service = service
        self.terms = terms
        self.tally = progress.tally
        self.warnings: list[str] = []
        self.is_truncated = False
        self.studios: Mapping[str, str | None] = {}
        self._titles: Mapping[str, Mapping[str, str]] = {}
        self.deadline = Deadline(terms.deadline_s)
        self._asked_at = datetime.fromtimestamp(now(), UTC)
        self._fetcher = Fetcher(
            service, known=known, tally=self.tally, progress=progress, on_error=terms.on_error, deadline=self.deadline
        )

    async def settle(self) -> ResolvedRange:
        """When: what is asked, what is available, what is kept; see `MetricsApi.settle`."""
        terms = self.terms
        settling = self.service.settle(terms.over, terms.when, self.deadline.left_s, self.tally)
        try:
            return await self.deadline.run(settling)
        except Unreachable:
            known = self.service.last_available
            if terms.when != "wait" or self.deadline.left_s != 0 or known is None:
                raise
            # It was there in time, only not enough of it.
            late = NotYetAvailable(resolve_range(terms.over, known), known, tried="wait")
        raise late

    async def lists(self, question: QuerySpec, interval: Interval) -> FanOutValues:
        """What *question* is fanned out over, if it is, as the service has it in *interval*."""
        needed = fan_out_dimensions(question)
        found = await self.deadline.run(gather(self._list(name, question, interval) for name in needed))
        values = dict(zip(needed, found, strict=True))
        games, studios = values.pop(GAME_ID, ()), values.pop(STUDIO_ID, ())
        return FanOutValues(games=games, studios=studios, values=values)

    async def name(self, question: QuerySpec, span: ResolvedRange, *, studios: bool) -> None:
        """Ask for the titles that *question* wants, and the *studios* of games; later, it might cost the rows."""
        await self.deadline.run(self._name(question, span, studios=studios))

    async def fetch(self, parts: Sequence[MetricPlan], span: ResolvedRange) -> list[pa.Table]:
        """The table of each of *parts*, its rows in the service's order, `top` of them in each bucket.

        Raises:
            Truncated: all values were asked for, and an answer holds as many as the service gives.
        """
        wanted = [part for part in parts if part.templates]
        totals = [part.total for part in wanted if part.total is not None]
        fetched = await self._fetcher.fetch([*wanted, *totals], span.available)
        came = {id(part): answers for part, answers in zip([*wanted, *totals], fetched, strict=True)}
        return [await asyncio.to_thread(self._table, part, came, span) for part in parts]

    def lost(self, since_days_ago: int | None) -> list[Interval]:
        """When nobody knows who was back after so many days, or (None) who came, because the answer did not come."""
        return [
            enclosing_interval(job.run)
            for job in self._fetcher.missing
            if job.template.query.since_days_ago == since_days_ago
        ]

    async def answered(
        self, question: QuerySpec, span: ResolvedRange, table: pa.Table, dimensions: Sequence[str], **more: Any
    ) -> QueryResult:
        """The frame of *table* with titles, where asked for, and the receipt, which also says *more*.

        Raises:
            PartialResult: pieces are missing, and gaps are not wanted.
        """
        table = add_titles(table, self._titles)
        self.warnings += [self._fetcher.trouble] if self._fetcher.trouble else []
        made = self._receipt(question, span, **more)
        kind = "pandas" if self._fetcher.gaps and self.terms.on_error == "raise" else self.terms.to
        # In a thread: a large frame takes long enough to hold up everybody else's requests.
        frame = await asyncio.to_thread(to_frame, table, dimensions, made, kind)
        if self._fetcher.gaps and self.terms.on_error == "raise":
            raise PartialResult(
                frame, [msgspec.structs.asdict(gap) for gap in self._fetcher.gaps]
            ) from self._fetcher.failure
        return QueryResult(frame, made, table)

    def _table(
        self,
        part: MetricPlan,
        came: Mapping[int, Sequence[Sequence[pa.Table]]],
        span: ResolvedRange,
    ) -> pa.Table:
        table = self._rows(part, came.get(id(part), ()), span)
        if part.total is not None and part.templates:
            total = self._rows(part.total, came[id(part.total)], span)
            table = self._with_total(part, table, total)
        return table

    def _rows(self, part: MetricPlan, answers: Sequence[Sequence[pa.Table]], span: ResolvedRange) -> pa.Table:
        """All rows of *part*, put together."""
        own = [name for name in part.dimensions if name not in part.labels]
        made = []
        for template, pieces in zip(part.templates, answers, strict=True):
            for piece in pieces:
                self._check_length(part, piece)
            rows = table_operations.concatenate(pieces, table_schema.schema(part.metric, template.carried))
            if template.fixed and not template.carried:  # a series has all buckets, a group only those with something
                rows = table_operations.drop_zero_rows(rows, part.metric)
            made.append(table_operations.add_constant_columns(table_operations.sort_by_time(rows), template.fixed))
        table = table_operations.order_columns(
            table_operations.concatenate(made, table_schema.schema(part.metric, own)), own
        )
        if part.adds_up:
            stamp = span.kept.start if part.every == "all" else None
            table = table_operations.sum_split_buckets(METRICS[part.metric], own, table, stamp)
        elif len(part.templates) > 1:
            table = table_operations.sort_as_service(table, part.metric, own)
        if part.top is not None:
            self.is_truncated |= table_operations.largest_bucket_size(table) > part.top
            table = table_operations.top_per_bucket(table, part.top)
        for name in part.labels:
            place = part.dimensions.index(name) + 1
            table = table_operations.add_lookup_column(table, name, GAME_ID, self.studios, place)
        return table

    def _check_length(self, part: MetricPlan, answer: pa.Table) -> None:
        if (
            part.limit is not None
            and table_operations.largest_bucket_size(table_operations.sort_by_time(answer)) >= part.limit
        ):
            if part.limit != part.top:
                raise Truncated(part.limit)
            self.is_truncated = True

    def _with_total(self, part: MetricPlan, table: pa.Table, total: pa.Table) -> pa.Table:
        """*table* with a row of what is not shown, or a warning where its rows do not make up *total*."""
        lost = self._fetcher.lost_stamps(part)
        if lost and part.every == "all":
            return table
        rest = table_operations.drop_buckets(
            table_operations.other_rows(METRICS[part.metric], part.dimensions, total, table), lost
        )
        if part.top is not None:
            return table_operations.sort_by_time(table_operations.concatenate([table, rest], table.schema))
        for row in rest.to_pylist():
            missing = ", ".join(
                f"{name} {row[name]:,}" for name in table_operations.summable_fields(METRICS[part.metric]) if row[name]
            )
            day = row[TIMESTAMP].date()
            self.warnings.append(
                f"{part.metric} by {', '.join(part.dimensions)} differs from its total on {day}: {missing}"
            )
        return table

    async def _name(self, question: QuerySpec, span: ResolvedRange, *, studios: bool) -> None:
        known = {}
        if studios:
            self.studios = {it.id: it.studio_id for it in await self.service.games(span.kept, tally=self.tally)}
        if GAME_ID in question.titled:
            known[GAME_ID] = unique_game_titles(await self.service.games(span.kept, question.studios, self.tally))
        if STUDIO_ID in question.titled:
            known[STUDIO_ID] = unique_studio_names(await self.service.studios(span.kept, self.tally))
        self._titles = known

    async def _list(self, dimension: str, question: QuerySpec, interval: Interval) -> tuple[str, ...]:
        """What a fan-out over *dimension* goes over."""
        games, studios = question.games, question.studios
        if dimension == GAME_ID:
            placed = await self.service.games(interval, studios, tally=self.tally)
            return tuple(it.id for it in placed if games is None or it.id in games)
        if dimension == STUDIO_ID:
            listed = await self.service.studios(interval, self.tally)
            return tuple(it.id for it in listed if studios is None or it.id in studios)
        values = await self.service.dimension_values(
            dimension, interval, studios=studios or (), games=games or (), tally=self.tally
        )
        return tuple(values)

    def _receipt(self, question: QuerySpec, span: ResolvedRange, **more: Any) -> Receipt:
        return Receipt(
            asked=asked(question, self.terms.over, interval=str(span.asked), **more),
            asked_at=self._asked_at.isoformat(timespec="seconds"),
            as_of=span.available.end.isoformat(),
            available=str(span.available),
            requests=self.tally.requests,
            retries=self.tally.retries,
            cached_share=round(self._fetcher.cached_share, 4),
            gaps=tuple(self._fetcher.gaps),
            clipped=str(span.kept) if span.kept != span.asked else None,
            truncated=self.is_truncated,
            warnings=tuple(self.warnings),
            titles=tuple(sorted(self._titles.get(GAME_ID, {}).values())),
            version=package_version(),
            provenance=self.service.provenance,
        )


async def query(inquiry: QueryRun, question: QuerySpec, *, max_days: int | None) -> QueryResult:
    """The frame that answers *question*."""
    passed = await inquiry.deadline.run(check_names(inquiry, question))
    span = await inquiry.settle()
    if needed := fan_out_dimensions(question):  # what cannot be asked is refused before a list is asked for
        plan_requests(question, span.kept, max_days=max_days, passed=passed, lists=placeholder_values(needed))
    lists = await inquiry.lists(question, fan_out_interval(question, span))
    parts = plan_requests(question, span.kept, max_days=max_days, passed=passed, lists=lists)
    await inquiry.name(question, span, studios=any(part.labels for part in parts))
    table = _side_by_side(inquiry, parts, await inquiry.fetch(parts, span))
    return await inquiry.answered(question, span, table, parts[0].dimensions)


def fan_out_interval(question: QuerySpec, span: ResolvedRange) -> Interval:
    """When the values of a fan-out were sent: for retention, from the first cohort's install day on."""
    is_retention = any(name in METRICS and METRICS[name].kinds == "retention" for name in question.metrics)
    if not is_retention:
        return span.kept
    installed = bucket_start(span.kept.start - timedelta(days=question.since_days_ago or 0), "day")
    return Interval(max(span.available.start, installed), span.kept.end)


async def check_names(inquiry: QueryRun, question: QuerySpec) -> list[str]:
    """Dimensions only the service knows; each of them, and each such metric, gets a warning."""
    read = list(dimensions_in(question.where)) if question.where is not None else []
    known = {*DIMENSIONS, STUDIO_ID}
    metrics = await inquiry.service.list_strange("metric", question.metrics, METRICS)
    dimensions = await inquiry.service.list_strange("by", question.dimensions, known)
    dimensions += await inquiry.service.list_strange("where", read, DIMENSIONS)
    for name in dict.fromkeys([*metrics, *dimensions]):
        inquiry.warnings.append(f"this version does not know {name}, the service does: passed on as it is")
    return dimensions


def _side_by_side(inquiry: QueryRun, parts: Sequence[MetricPlan], answers: Sequence[pa.Table]) -> pa.Table:
    """One table of all metrics; a field that two of them have is prefixed with its metric."""
    fields = []
    for part, table in zip(parts, answers, strict=True):
        own = [name for name in table.column_names if name != TIMESTAMP and name not in part.dimensions]
        fields.append(own)
        strange = [name for name in own if name not in table_schema.schema(part.metric, ()).names]
        if part.metric in METRICS and strange:
            names = ", ".join(strange)
            inquiry.warnings.append(f"{part.metric} came with fields this version does not know: {names}")
    if len(parts) == 1:
        return answers[0]
    times = Counter(name for own in fields for name in own)
    renamed = [
        table.rename_columns(
            [f"{part.metric}_{name}" if times[name] > 1 and name in own else name for name in table.column_names]
        )
        for part, table, own in zip(parts, answers, fields, strict=True)
    ]
    return table_operations.join_metrics(parts[0].dimensions, renamed)


def asked(question: QuerySpec, over: TimeRange, **more: Any) -> QueryRecord:
    """Return the record of a query: the arguments as they were given, *over* as text."""
    return QueryRecord(
        metric=question.metrics if len(question.metrics) > 1 else question.metrics[0],
        by=tuple(question.by),
        over=over_text(over),
        every=question.every,
        where=wire_filter(question.where) if question.where is not None else None,
        top=question.top,
        games=_listed(question.games),
        studios=_listed(question.studios),
        since_days_ago=question.since_days_ago,
        other=question.other,
        check=question.check,
        **more,
    )


def over_text(over: TimeRange) -> str:
    """*over* as text: a pair of dates with "to" between them."""
    if isinstance(over, (tuple, list)):
        return " to ".join(str(day) for day in over)
    return str(over)


def _listed(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
