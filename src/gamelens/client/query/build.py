"""Functions that put together the tables of metric plans from what came of their requests, and metrics side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens._text import counted
from gamelens.catalog import CATALOG, METRICS, Catalog, CohortShare, Metric
from gamelens.client.query.arguments import GAME_ID
from gamelens.client.query.listings import default_limit_warning
from gamelens.client.query.planner import MetricPlan
from gamelens.client.query.prepare import Prepared
from gamelens.client.query.requests import Fetched
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.table_operations import TIMESTAMP, TIMESTAMP_TYPE, bucket_starts, schema
from gamelens.errors import NotAdditive, ServiceError, Truncated
from gamelens.formulas import Formula
from gamelens.wire.limits import DEFAULT_LIMIT, USUAL_SESSION_S

MOST_ROWS: Final = 1_000_000
"""Rows up to which buckets without any row are filled."""


@dataclass
class Remarks:
    """What is to be said of tables that were put together.

    Attributes:
        is_truncated: whether `top` left rows out, or may have.
        warnings: differences between rows and their total, and lists that may be cut.
    """

    is_truncated: bool = False
    warnings: list[str] = field(default_factory=list)


def build_table(plan: MetricPlan, prepared: Prepared, fetched: Fetched) -> tuple[pa.Table, Remarks]:
    """Return the table of *plan*, compared with its total where it has one, and what is to be said of it.

    With `top`, the difference is a row `(other)`; without, it is a warning.

    Raises:
        NotAdditive: games are pooled, and the service sends rows without the parts of the metric.
        Truncated: all values were queried, and an answer holds as many as the service gives.
    """
    remarks = Remarks()
    table = _rows(plan, prepared, fetched, remarks)
    if plan.total is None or not any(leaf_plan.templates for leaf_plan in plan.leaf_plans):
        return table, remarks
    total, missing = _rows(plan.total, prepared, fetched, remarks), fetched.missing_buckets(plan)
    metric = prepared.spec.catalog.metrics[plan.metric]
    rest = tables.drop_buckets(tables.other_rows(metric, plan.dimensions, total, table, plan.within), missing)
    if plan.top is not None:
        return tables.sort_by_time(tables.concatenate([table, rest], table.schema)), remarks
    fields = tables.summable_fields(metric)
    for row in rest.to_pylist():
        difference = ", ".join(f"{metric.columns[name]} {row[name]:,}" for name in fields if row[name])
        by, day = ", ".join(plan.dimensions), row[TIMESTAMP].date()
        remarks.warnings.append(f"{plan.metric} by {by} differs from its total on {day}: {difference}")
    return table, remarks


def _rows(plan: MetricPlan, prepared: Prepared, fetched: Fetched, remarks: Remarks) -> pa.Table:
    """Return all rows of *plan* in the order of the service, `top` of them in each bucket.

    Raises:
        NotAdditive, Truncated: as in `build_table`.
    """
    if plan.members:
        members = [_rows(member, prepared, fetched, remarks) for member in plan.members]
        return _largest(plan, _alias_rows(plan, members, fetched, prepared.spec.catalog), remarks)
    own_columns = [name for name in plan.dimensions if name not in plan.labels]
    columns = [*own_columns, *([GAME_ID] if plan.pools_games else [])]
    table = _concatenated(plan, columns, fetched.answers(plan), remarks)
    if plan.pools_games:
        labelled = _with_labels(plan, table, prepared.studio_of_game)
        return _largest(plan, _pooled(plan, labelled, fetched.missing_buckets(plan)), remarks)
    if plan.adds_up:
        start = prepared.times.covered.start if plan.every == "all" else None
        table = tables.sum_split_buckets(METRICS[plan.metric], own_columns, table, start)
    elif len(plan.templates) > 1:
        table = tables.sort_as_service(table, plan.metric, own_columns)
    else:
        table = tables.sort_largest_first(table, plan.metric, own_columns)
    return _largest(plan, _with_labels(plan, table, prepared.studio_of_game), remarks)


def _concatenated(
    plan: MetricPlan, columns: Sequence[str], answers_by_template: Sequence[Sequence[pa.Table]], remarks: Remarks
) -> pa.Table:
    """Return the rows of all templates of *plan*, with the fixed values as columns.

    An answer as long as the limit is refused, unless the analyst set that limit with `top`. One as long as the
    default limit of the service, which was asked for more, is a warning.

    Raises:
        Truncated: see above.
    """
    parts, starts = [], {slice_.bucket_start for slice_ in plan.slices}
    for template, answers in zip(plan.templates, answers_by_template, strict=True):
        if len(answers) > 1 and not all(tables.bucket_starts(answer) <= starts for answer in answers):
            rule = "its buckets begin at other times, so two requests cannot be combined: query a shorter"
            raise ServiceError(200, f"{rule} time, or without Client(max_days=...)")
        for answer in answers if plan.limit is not None else ():
            size = tables.largest_bucket_size(tables.sort_by_time(answer))
            if size >= (plan.limit or 0):
                if plan.limit != plan.top:
                    raise Truncated(plan.limit or 0)
                remarks.is_truncated = True
            elif size == DEFAULT_LIMIT and plan.total is None:
                remarks.warnings.append(default_limit_warning(f"{plan.metric} by {', '.join(plan.dimensions)}"))
        rows = tables.concatenate(answers, schema(plan.metric, template.carried))
        if template.fixed and not template.carried:  # a series has all buckets, a group only those with rows
            rows = tables.drop_zero_rows(rows, plan.metric)
        parts.append(tables.add_constant_columns(tables.sort_by_time(rows), template.fixed))
    return tables.order_columns(tables.concatenate(parts, schema(plan.metric, columns)), columns)


def _with_labels(plan: MetricPlan, table: pa.Table, studio_of_game: Mapping[str, str | None]) -> pa.Table:
    """Return *table* with the columns that follow from the game."""
    for name in plan.labels:
        position = plan.dimensions.index(name) + 1
        table = tables.add_lookup_column(table, name, GAME_ID, studio_of_game, position)
    return table


def _pooled(plan: MetricPlan, table: pa.Table, missing: Collection[datetime]) -> pa.Table:
    """Return the rows of all games summed, ratios made from their sums (Wire 4.14, Adding up).

    A bucket that lacks the rows of a game is left out. Without dimensions each other bucket has a row, as in a
    timeseries.

    Raises:
        NotAdditive: a row lacks a part of the metric.
    """
    metric = METRICS[plan.metric]
    parts = tables.summable_fields(metric)
    if absent := [name for name in parts if table[name].null_count]:
        by = [*plan.dimensions, "game"]
        use = f"by={by}, a number for each game: this service sends rows without {', '.join(absent)}"
        raise NotAdditive(plan.metric, use)
    if any(name == GAME_ID for template in plan.templates[:1] for name, _ in template.fixed):
        table = tables.drop_buckets(table, missing)
    if not plan.dimensions:
        rows = [{TIMESTAMP: start, **dict.fromkeys(parts, 0)} for start in plan.starts if start not in missing]
        table = tables.concatenate([table, tables.from_rows(rows, table.schema)], table.schema)
    return tables.sum_split_buckets(metric, plan.dimensions, table, None)


def _alias_rows(plan: MetricPlan, members: Sequence[pa.Table], fetched: Fetched, catalog: Catalog) -> pa.Table:
    """Return the rows of an alias, in the order of the service, computed from the rows of its metrics.

    A row that a metric does not have counts as 0 in it, since the service leaves out rows without events. Where a
    request of the metric failed, the row is null in its fields, and in their quotients.

    Args:
        plan: the plan of the alias.
        members: the rows of each of its members.
        fetched: says which of their buckets are missing.
        catalog: has the alias.
    """
    alias, rows, buckets = catalog.aliases[plan.metric], [], []
    for member, table in zip(plan.members, members, strict=True):
        bucket_of = {start: plan.start_of(start) for start in member.starts} if member.every != plan.every else {}
        encoded = table[TIMESTAMP].combine_chunks().dictionary_encode()
        starts = [bucket_of.get(start, start) for start in encoded.dictionary.to_pylist()]
        rows.append(table.set_column(0, TIMESTAMP, pa.array(starts, TIMESTAMP_TYPE).take(encoded.indices)))
        buckets.append(bucket_of)
    keys, places = tables.group_rows(rows, [TIMESTAMP, *plan.dimensions])
    sums: dict[str, NDArray[Any]] = {}
    unknown: dict[str, NDArray[Any]] = {}
    means = [name for name, part in alias.ingredients.items() if part.is_mean and plan.every != part.every]
    for name, part in alias.ingredients.items():
        position = alias.needs.index((part.metric, part.every))
        bucket_of, place = buckets[position], places[position]
        sums[name] = tables.sum_groups(tables.null_as_zero(rows[position][part.field]), place, len(keys))
        lengths = Counter(bucket_of.values())
        if name in means:
            days = [max(1, lengths[start]) for start in keys[TIMESTAMP].to_pylist()]
            sums[name] = sums[name] / np.array(days or [1])
        missing = fetched.missing_buckets(plan.members[position])
        is_cut = _in_buckets(keys, {bucket_of.get(start, start) for start in missing})
        is_absent = np.bincount(place, minlength=len(keys)) == 0
        unknown[name] = is_cut & (is_absent | (len(lengths) < len(bucket_of)))
    table = tables.add_metric_fields(alias, keys, sums, unknown, means)
    own_columns = [name for name in plan.dimensions if name not in plan.labels]
    table = tables.sort_as_service(table, alias.name, own_columns, catalog)
    is_known = np.any([np.asarray(pc.is_valid(table[name])) for name in alias.ingredients], axis=0)
    return table.filter(pa.array(is_known))


def _largest(plan: MetricPlan, table: pa.Table, remarks: Remarks) -> pa.Table:
    """Return the largest rows of each bucket, or all without `top`."""
    if plan.top is None:
        return table
    largest = tables.top_per_bucket(table, plan.top, plan.within)
    remarks.is_truncated |= len(largest) < len(table)
    return largest


def long_session_warnings(table: pa.Table) -> list[str]:
    """Return a warning if a `session_length` of *table* is above a day, as a few mistaken events make it."""
    if "session_length" not in table.column_names:
        return []
    lengths = np.asarray(table["session_length"].cast(pa.float64(), safe=False).fill_null(0.0))
    long = int((lengths > USUAL_SESSION_S).sum())
    if not long:
        return []
    longest = f"{lengths.max():,.0f} s ({lengths.max() / USUAL_SESSION_S:,.1f} days)"
    return [
        f"session_length, a mean over session_end events, is above a day in {counted(long, 'row')}, at most {longest}: "
        "some events have a time or milliseconds as their length; the live page of a sandbox marks them"
    ]


class MetricRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one metric of a query.

    Attributes:
        metric: its name.
        table: its rows.
        unknown: starts of the buckets in which a row that is not there may have a value all the same: a request failed,
            or `top` left it out.
    """

    metric: str
    table: pa.Table
    unknown: Collection[datetime] = ()


def join_metrics(
    dimensions: Sequence[str],
    metrics: Sequence[MetricRows],
    buckets: Sequence[datetime] = (),
    *,
    all_fields: bool = False,
    catalog: Catalog = CATALOG,
) -> tuple[pa.Table, dict[str, int]]:
    """Return the rows of all *metrics* joined on timestamp and *dimensions*, under the names of frames.

    The second value is the number of rows of each metric that were filled: the service leaves out rows without events.
    Their counts and money are 0, their means and ratios null, and formulas of own metrics are computed of zeros. The
    rows of one metric are left as they are.

    Args:
        dimensions: the dimensions of the rows.
        metrics: the rows of each metric.
        buckets: starts of the buckets in which every value of the dimensions gets a row, up to `MOST_ROWS` in all.
        all_fields: whether there are columns of all fields, or of the metrics and their parts.
        catalog: has the metrics.

    Raises:
        ServiceError: a metric has two rows of the same bucket and dimension values.
    """
    columns = _column_names(dimensions, metrics, catalog, all_fields=all_fields)
    if len(metrics) == 1:
        table = metrics[0].table
        keys_of_rows = [name for name in table.column_names if name in {TIMESTAMP, *dimensions}]
        shown = [*keys_of_rows, *columns[0].values()]
        return table.select([*keys_of_rows, *columns[0]]).rename_columns(shown), {}
    keys, places = tables.group_rows([rows.table for rows in metrics], [TIMESTAMP, *dimensions])
    keys = _with_all_buckets(keys, dimensions, buckets)
    joined, filled, is_known = keys, dict[str, int](), np.zeros(len(keys), dtype="bool")
    for rows, names, place in zip(metrics, columns, places, strict=True):
        row_of_key = np.full(len(keys), -1, dtype="int64")
        row_of_key[place] = np.arange(len(place))
        is_present = row_of_key >= 0
        if np.count_nonzero(is_present) != len(place):
            raise ServiceError(200, "two rows of the same bucket and values")
        taken = rows.table.take(pa.array(row_of_key, mask=~is_present))
        known = catalog.find(rows.metric)
        zeros = _filled_fields(known) if known is not None else {}
        is_zero = ~is_present & ~_in_buckets(keys, rows.unknown) & bool(zeros)
        for name, column in names.items():
            values = taken[name]
            if name in zeros:
                values = pc.if_else(pa.array(is_zero), pa.scalar(zeros[name], values.type), values)
            if column not in joined.column_names:
                joined = joined.append_column(column, values)
            else:  # a part that another metric has brought, perhaps with nulls
                position = joined.column_names.index(column)
                joined = joined.set_column(position, column, pc.coalesce(joined[column], values))
        is_known |= is_present | is_zero
        if is_zero.any():
            filled[rows.metric] = int(np.count_nonzero(is_zero))
    return tables.sort_by_time(joined.filter(pa.array(is_known))), filled


def _filled_fields(metric: Metric) -> dict[str, float]:
    """Return the value of each field in a row that the service does not have, but for fields that are null there."""
    filled: dict[str, float] = dict.fromkeys(tables.summable_fields(metric), 0)
    formulas = {known.name: known.combines for known in metric.fields if isinstance(known.combines, Formula)}
    for name, formula in formulas.items():
        value = float(formula.value(dict.fromkeys(formula.names, 0.0), tables.divide))
        filled |= {name: value} if math.isfinite(value) else {}
    return filled


def _column_names(
    dimensions: Sequence[str], metrics: Sequence[MetricRows], catalog: Catalog, *, all_fields: bool
) -> list[dict[str, str]]:
    """Return the column of each field that the frame shows, for each of *metrics*.

    A field that the catalog does not know keeps its name, behind the name of its metric where the frame has another
    such column; the only field of a metric that it does not know is called as the metric.
    """
    keys = {TIMESTAMP, *dimensions}
    known, strange = list[dict[str, str]](), list[dict[str, str]]()
    for rows in metrics:
        fields, metric = [name for name in rows.table.column_names if name not in keys], catalog.find(rows.metric)
        shown = metric.shown_columns(all_fields=all_fields).items() if metric is not None else ()
        known.append({name: column for name, column in shown if name in fields})
        others = [name for name in fields if metric is None or name not in metric.columns]
        is_only = metric is None and len(others) == 1
        strange.append({name: rows.metric if is_only else name for name in others})
    taken = Counter([*keys, *{column for names in known for column in names.values()}])
    taken += Counter(column for names in strange for column in names.values())
    return [
        names | {name: f"{rows.metric}_{name}" if taken[column] > 1 else column for name, column in others.items()}
        for rows, names, others in zip(metrics, known, strange, strict=True)
    ]


def _with_all_buckets(keys: pa.Table, dimensions: Sequence[str], buckets: Sequence[datetime]) -> pa.Table:
    """Return *keys* with a row for each of its values in each of *buckets*, the new rows last."""
    if not buckets:
        return keys
    starts = np.array([start.replace(tzinfo=None) for start in sorted(buckets)], dtype="datetime64[us]").view("int64")
    groups, codes = keys.select(dimensions), np.zeros(len(keys), dtype="int64")
    if dimensions:
        groups, (codes,) = tables.group_rows([groups], dimensions)
    number = len(groups) if dimensions else 1
    if number * len(starts) > MOST_ROWS:
        return keys
    moments = np.asarray(keys[TIMESTAMP].cast(pa.int64()))
    is_inside = np.isin(moments, starts)
    taken = codes[is_inside] * len(starts) + np.searchsorted(starts, moments[is_inside])
    group, bucket = np.divmod(np.setdiff1d(np.arange(number * len(starts)), taken), len(starts))
    new = pa.table({TIMESTAMP: pa.array(starts[bucket]).cast(TIMESTAMP_TYPE)})
    for name in dimensions:
        new = new.append_column(name, groups[name].take(pa.array(group)))
    return pa.concat_tables([keys, new])


def _in_buckets(keys: pa.Table, starts: Collection[datetime]) -> NDArray[Any]:
    return np.asarray(pc.is_in(keys[TIMESTAMP], value_set=pa.array(list(starts), TIMESTAMP_TYPE)))


def rows_of_age(share: CohortShare, rows: pa.Table, unknown: Collection[datetime]) -> MetricRows:
    """Return the rows of retention of one age in the form of a metric: one row for each bucket and value.

    The installs of *unknown* buckets are not known.
    """
    of_age = rows.filter(pc.equal(rows["age"], share.age)).drop_columns(["age"])
    ratio, returned, installs = (field.name for field in share.fields)
    is_known = pc.is_valid(of_age["returned"])
    counts = pc.if_else(is_known, of_age["installs"], None)
    of_age = of_age.set_column(of_age.column_names.index("installs"), "installs", counts)
    names = {"retention": ratio, "returned": returned, "installs": installs}
    table = of_age.rename_columns([names.get(name, name) for name in of_age.column_names])
    open_buckets = bucket_starts(table.filter(pc.invert(is_known)))
    return MetricRows(metric=share.name, table=table, unknown=open_buckets | {*unknown})
