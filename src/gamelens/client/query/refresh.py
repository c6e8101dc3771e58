"""A frame that came earlier: the question it answers, what of it still holds, what moved since."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import METRICS
from gamelens.client.cache.answer_cache import CachedRows
from gamelens.client.query.arguments import as_filter
from gamelens.client.query.data_frames import TITLES, to_table
from gamelens.client.query.planner import MetricPlan, RequestTemplate
from gamelens.client.query.query_spec import GAME_ID, QuerySpec
from gamelens.client.query.row_sources import FetchJob, RowSource, template_scope
from gamelens.client.tables.table_differences import FieldChange, Restatement, field_changes, rows_changed
from gamelens.client.tables.table_operations import bucket_starts, concatenate, drop_buckets
from gamelens.client.tables.table_schema import TIMESTAMP, schema
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Interval
from gamelens.wire.receipts import Gap, Receipt, RestatementRecord

if TYPE_CHECKING:
    from pandas import DataFrame

AGE: Final = "age"
RETENTION: Final = "retention"


class PreviousResult(msgspec.Struct, frozen=True):
    """What a frame was asked: its *question*, with *ages* where that is about retention, over *interval*."""

    question: QuerySpec
    ages: tuple[int, ...]
    interval: Interval
    gaps: tuple[Gap, ...]
    receipt: Receipt


def previous_result(frame: Any) -> PreviousResult:
    """What *frame* was asked.

    Raises:
        BadQuery: its receipt is gone, or its columns are no longer those that came.
    """
    receipt = Receipt.of(getattr(frame, "attrs", None))
    asked, interval = receipt.asked, receipt.interval
    if not asked.metrics or asked.every is None or interval is None:
        raise BadQuery(
            "frame", type(frame).__name__, "has no receipt: pass a frame as query() or retention() returned it"
        )
    question = QuerySpec(
        metrics=asked.metrics,
        by=asked.by,
        every=asked.every,
        where=as_filter(asked.where),
        top=asked.top,
        games=asked.games,
        studios=asked.studios,
        since_days_ago=asked.since_days_ago,
        other=asked.other,
        check=asked.check,
    )
    if missing := _missing(question, frame.columns):
        raise BadQuery("frame", missing, "are columns it no longer has: pass it as query() or retention() returned it")
    return PreviousResult(question, asked.days, interval, receipt.gaps, receipt)


class FrameSource:
    """A frame as a source of rows: all it has but for its gaps, which *behind* may know."""

    def __init__(self, frame: DataFrame, before: PreviousResult, behind: RowSource) -> None:
        self._rows = to_table(frame)
        self._metrics = before.question.metrics
        self._gaps = before.gaps
        self._behind = behind

    def find(self, part: MetricPlan, template: RequestTemplate, available: Interval) -> CachedRows:
        """The rows of *template* in the frame, and of its gaps what is known elsewhere."""
        lost = [
            gap.times
            for gap in self._gaps
            if gap.times and gap.metric == template.metric and gap.scope == template_scope(template)
        ]
        gone = tuple(unit for unit in part.asked if any(unit.interval in gap for gap in lost))
        rows = rows_of_metric(self._rows, template.metric, part.dimensions, self._metrics)
        for name, value in template.fixed:
            column = rows[name]
            rows = rows.filter(pc.is_null(column) if value is None else pc.equal(column, value))
        names = [name for name in rows.column_names if name not in part.dimensions or name in template.carried]
        held = CachedRows(
            drop_buckets(rows.select(names), {unit.stamp for unit in gone}), frozenset(part.asked) - set(gone)
        )
        if not gone:
            return held
        behind = self._behind.find(msgspec.structs.replace(part, asked=gone), template, available)
        if behind.table is None:
            return held
        known = schema(template.metric, template.carried)
        return CachedRows(concatenate([held.table, behind.table], known), held.units | behind.units)

    def keep(self, job: FetchJob, table: pa.Table, available: Interval) -> None:
        """Keep it behind the frame."""
        self._behind.keep(job, table, available)

    @property
    def trouble(self) -> str | None:
        """What there is to hear of what is behind."""
        return self._behind.trouble


def rows_of_metric(rows: pa.Table, metric: str, dimensions: Sequence[str], metrics: Sequence[str]) -> pa.Table:
    """Of a frame of several *metrics*, the rows that *metric* has, its fields named as the service names them."""
    known = schema(metric, ()).names[1:]
    if len(metrics) == 1:
        dropped = {TIMESTAMP, *dimensions, *TITLES.values()}
        fields = {name: name for name in rows.column_names if name not in dropped}
    else:
        fields = {name: f"{metric}_{name}" if f"{metric}_{name}" in rows.column_names else name for name in known}
    columns: dict[str, Any] = {name: rows[name] for name in (TIMESTAMP, *dimensions) if name in rows.column_names}
    table = pa.table(columns | {name: rows[column] for name, column in fields.items() if column in rows.column_names})
    present = [pc.is_valid(table[name]) for name in table.column_names if name in fields]
    if len(metrics) == 1 or not present:
        return table
    is_there = present[0]
    for one in present[1:]:
        is_there = pc.or_(is_there, one)
    return table.filter(is_there)


def find_restatements(
    frame: DataFrame, table: pa.Table, before: PreviousResult, as_of: str | None
) -> list[RestatementRecord]:
    """What is otherwise in *table* than in *frame*: of each bucket and field the totals before and after.

    A total is null where its rows cannot be added up. What was a gap in *frame* is not otherwise now, but known; so is
    retention whose day had not come.
    """
    old, question = to_table(frame), before.question
    dimensions = (AGE, *question.dimensions) if before.ages else _dimensions(table, question)
    found: list[RestatementRecord] = []
    for metric in question.metrics:
        was, now = (rows_of_metric(rows, metric, dimensions, question.metrics) for rows in (old, table))
        for stamp in sorted((bucket_starts(was) | bucket_starts(now)) - set(_lost(before, metric))):
            old_rows, new_rows = (rows.filter(pc.equal(rows[TIMESTAMP], stamp)) for rows in (was, now))
            if before.ages:
                new_rows = _known_then(old_rows, new_rows, dimensions)
            if changed := rows_changed(old_rows, new_rows, dimensions):
                bucket = RestatementRecord(
                    metric=metric,
                    timestamp=stamp.isoformat(),
                    by=tuple(dimensions),
                    rows=changed,
                    before_as_of=before.receipt.as_of,
                    as_of=as_of,
                )
                for moved in field_changes(metric, old_rows, new_rows, dimensions, adds_up=not before.ages):
                    own = [TIMESTAMP, *dimensions, moved.field]
                    if before.ages and not rows_changed(old_rows.select(own), new_rows.select(own), dimensions):
                        continue
                    found.append(_with_change(bucket, moved))
    return found


def restatement_records(restatements: Iterable[Restatement]) -> list[RestatementRecord]:
    """Return the restatements that the cache noticed, a record for each changed field."""
    return [
        _with_change(
            RestatementRecord(
                metric=restatement.metric,
                timestamp=restatement.stamp.isoformat(),
                by=tuple(restatement.dimensions),
                rows=restatement.rows_changed,
                before_as_of=restatement.before_as_of.isoformat(),
                as_of=restatement.as_of.isoformat(),
            ),
            change,
        )
        for restatement in restatements
        for change in restatement.fields
    ]


def _with_change(bucket: RestatementRecord, change: FieldChange) -> RestatementRecord:
    """Return the record of one changed field of *bucket*."""
    return msgspec.structs.replace(bucket, field=change.field, before=change.before, after=change.after)


def _known_then(old: pa.Table, new: pa.Table, dimensions: Sequence[str]) -> pa.Table:
    """*new*, of retention, with null where *old* has a row whose day had not come."""
    unknown = {tuple(row[name] for name in dimensions) for row in old.to_pylist() if row["returned"] is None}
    mask = pa.array([tuple(row[name] for name in dimensions) in unknown for row in new.to_pylist()], pa.bool_())
    for name in (RETENTION, "returned"):
        nulled = pc.if_else(mask, pa.scalar(None, new[name].type), new[name])
        new = new.set_column(new.schema.get_field_index(name), name, nulled)
    return new


def _lost(before: PreviousResult, metric: str) -> Iterator[datetime]:
    """The buckets of *metric* that an earlier frame has a gap in: for retention, the install days."""
    for gap in before.gaps:
        days = (gap.scope or {}).get("since_days_ago", 0) if before.ages else 0
        if gap.times and (before.ages or gap.metric == metric):
            yield from (bucket.start - timedelta(days=days) for bucket in gap.times.buckets(before.question.every))


def _dimensions(table: pa.Table, question: QuerySpec) -> tuple[str, ...]:
    """The key columns of the rows, a game that was not asked for included."""
    return tuple(name for name in dict.fromkeys([*question.dimensions, GAME_ID]) if name in table.column_names)


def _missing(question: QuerySpec, columns: Collection[str]) -> list[str]:
    """What a frame that answers *question* has beyond *columns*; several metrics may have put their name before it."""
    metrics = [METRICS[name] for name in question.metrics if name in METRICS]
    is_per_game = any(metric.kinds != "plain" for metric in metrics)
    needed = dict.fromkeys([TIMESTAMP, *question.dimensions, *([GAME_ID] if is_per_game else [])])
    if not metrics:
        needed |= dict.fromkeys([AGE, RETENTION, "installs", "returned"] if question.metrics == (RETENTION,) else [])
    missing = [name for name in needed if name not in columns]
    for metric in metrics:
        prefix = f"{metric.name}_" if len(question.metrics) > 1 else ""
        missing += [it.name for it in metric.fields if {it.name, prefix + it.name}.isdisjoint(columns)]
    return missing
