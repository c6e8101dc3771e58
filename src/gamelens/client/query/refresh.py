"""Earlier frames: the query of each, and what was restated since."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import TITLES, Catalog, CohortShare
from gamelens.client.query.arguments import QuerySpec, recorded_spec
from gamelens.client.query.cohorts import CohortSubquery
from gamelens.client.query.data_frames import to_table
from gamelens.client.query.prepare import kind_of_rows, kinds_of
from gamelens.client.tables.table_differences import FieldChange, Restatement
from gamelens.client.tables.table_operations import TIMESTAMP, bucket_starts, drop_zero_rows
from gamelens.errors import BadQuery
from gamelens.receipts import Gap, Receipt, RestatementRecord
from gamelens.wire.intervals import Interval, bucket_start

if TYPE_CHECKING:
    from pandas import DataFrame


class PreviousResult(msgspec.Struct, frozen=True):
    """The query that a frame answers, read from its receipt.

    Attributes:
        spec: its content.
        interval: the covered interval.
        gaps: the parts whose requests failed.
        receipt: the receipt.
    """

    spec: QuerySpec
    interval: Interval
    gaps: tuple[Gap, ...]
    receipt: Receipt


def previous_result(frame: Any) -> PreviousResult:
    """Return the query that *frame* answers.

    Raises:
        BadQuery: *frame* has no receipt, or no longer the columns it was returned with.
    """
    receipt = Receipt.of(getattr(frame, "attrs", None))
    asked, interval = receipt.asked, receipt.interval
    if not asked.metrics or asked.every is None or interval is None:
        raise BadQuery(
            "frame", type(frame).__name__, "has no receipt: pass a frame as query() or retention() returned it"
        )
    spec = recorded_spec(asked)
    if missing := _missing_columns(spec, frame.columns):
        raise BadQuery("frame", missing, "are columns it no longer has: pass it as query() or retention() returned it")
    return PreviousResult(spec, interval, receipt.gaps, receipt)


def rows_of_metric(rows: pa.Table, metric: str, dimensions: Sequence[str], spec: QuerySpec) -> pa.Table:
    """Return the rows of one metric from a table with all metrics of *spec*.

    Rows that were filled with 0 are left out. The fields are named as the service names them.
    """
    known, metrics = spec.catalog.find(metric), spec.metrics
    fields = dict(known.columns) if known is not None else {}
    if len(metrics) == 1:  # with fields that the catalog does not know
        dropped = {TIMESTAMP, *dimensions, *TITLES.values(), *fields.values()}
        fields |= {name: name for name in rows.column_names if name not in dropped}
    columns: dict[str, Any] = {name: rows[name] for name in (TIMESTAMP, *dimensions) if name in rows.column_names}
    table = pa.table(columns | {name: rows[column] for name, column in fields.items() if column in rows.column_names})
    present = [pc.is_valid(table[name]) for name in table.column_names if name in fields]
    if len(metrics) == 1 or not present:
        return table
    has_value = present[0]
    for is_valid in present[1:]:
        has_value = pc.or_(has_value, is_valid)
    table = table.filter(has_value)
    return drop_zero_rows(table, metric, spec.catalog) if dimensions else table


def find_restatements(
    frame: DataFrame, table: pa.Table, previous: PreviousResult, as_of: str | None
) -> list[RestatementRecord]:
    """Return the restatements of *frame* by *table*.

    Each has the totals of one field over the rows of a changed bucket, before and after; null where they cannot be
    added up. Rows that are known now and were in a gap of *frame* are not restated; neither is retention whose day had
    not come, nor retention of a whole period if more of its install days are old enough now.
    """
    old, spec, kind = to_table(frame), previous.spec, kind_of_rows(previous.spec)
    grown, keys = _grown_ages(previous, as_of), (TIMESTAMP, *kind.keys)
    restated: list[RestatementRecord] = []
    for metric in spec.metrics:
        before, after = (rows_of_metric(rows, metric, kind.keys, spec) for rows in (old, table))
        share = spec.catalog.find(metric)
        if isinstance(share, CohortShare):
            if share.age in grown:
                continue
            before, after = _of_days_that_had_come(before, after, keys, share)
        in_gaps = {start for gap in previous.gaps for start in kind.starts_in(gap, metric, previous.interval)}
        for start in sorted((bucket_starts(before) | bucket_starts(after)) - in_gaps):
            old_rows, new_rows = (rows.filter(pc.equal(rows[TIMESTAMP], start)) for rows in (before, after))
            changed, fields = kind.changes(metric, old_rows, new_rows, grown)
            bucket = RestatementRecord(
                metric=metric,
                timestamp=start.isoformat(),
                by=kind.keys,
                rows=changed,
                before_as_of=previous.receipt.as_of,
                as_of=as_of,
            )
            restated += [_with_change(bucket, change, spec.catalog) for change in fields]
    return restated


def restatement_records(restatements: Iterable[Restatement], catalog: Catalog) -> list[RestatementRecord]:
    """Return the restatements that the cache recorded, one record for each changed field."""
    return [
        _with_change(
            RestatementRecord(
                metric=restatement.metric,
                timestamp=restatement.bucket_start.isoformat(),
                by=tuple(restatement.dimensions),
                rows=restatement.rows_changed,
                before_as_of=restatement.before_as_of.isoformat(),
                as_of=restatement.as_of.isoformat(),
            ),
            change,
            catalog,
        )
        for restatement in restatements
        for change in restatement.fields
    ]


def _with_change(bucket: RestatementRecord, change: FieldChange, catalog: Catalog) -> RestatementRecord:
    """Return the record of one changed field of *bucket*, under the name of its column."""
    known = catalog.find(bucket.metric)
    column = known.columns.get(change.field, change.field) if known is not None else change.field
    return msgspec.structs.replace(bucket, field=column, before=change.before, after=change.after)


def _grown_ages(previous: PreviousResult, as_of: str | None) -> list[int]:
    """Return the ages that more install days of a whole period have reached by *as_of* than when *previous* was asked.

    Its numbers count more cohorts now, which is no restatement.
    """
    spec, available = previous.spec, previous.receipt.available
    if spec.every != "all" or available is None or as_of is None:
        return []
    ends = [bucket_start(end, "day") for end in (Interval.parse(available).end, datetime.fromisoformat(as_of))]
    ages = [age for kind in kinds_of(spec) if isinstance(kind, CohortSubquery) for age in kind.spec.ages]
    reached = {age: [min(previous.interval.end + timedelta(days=age), end) for end in ends] for age in ages}
    return [age for age, (before, now) in reached.items() if before != now]


def _of_days_that_had_come(
    old: pa.Table, new: pa.Table, keys: Sequence[str], share: CohortShare
) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a metric of one age whose day had come when *old* was asked."""
    old = old.filter(pc.is_valid(old[share.fields[0].name]))
    known = {tuple(row.values()) for row in old.select([name for name in keys if name in old.column_names]).to_pylist()}
    new_keys = new.select([name for name in keys if name in new.column_names]).to_pylist()
    return old, new.filter(pa.array([tuple(row.values()) in known for row in new_keys], pa.bool_()))


def _missing_columns(spec: QuerySpec, columns: Collection[str]) -> list[str]:
    """Return the columns that a frame of *spec* has and *columns* lack."""
    expected = (TIMESTAMP, *spec.dimensions, *kind_of_rows(spec).columns)
    return [name for name in expected if name not in columns]
