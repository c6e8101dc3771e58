"""Totals of a frame, by the catalog's rules for adding up."""

from __future__ import annotations

from math import fsum
from typing import Any, Final

import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame, Series

from gamelens.analysis.outside_data.read_table import read_table
from gamelens.analysis.outside_data.row_periods import period_of, period_texts, periods_within
from gamelens.analysis.retention.retention_rates import is_retention_frame
from gamelens.analysis.tidy_frames import dimension_columns, queried_metrics, with_receipts_of
from gamelens.analysis.tidy_frames.frame_columns import catalog_of, with_receipt
from gamelens.analysis.tidy_frames.frame_periods import visible_period
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires
from gamelens.analysis.tidy_frames.query_text import query_text
from gamelens.analysis.tidy_frames.ratio_parts import ratio_parts
from gamelens.catalog import MONEY_DIGITS, Alias, Metric, OwnMetric, Quotient
from gamelens.errors import BadQuery, NotAdditive
from gamelens.formulas import Formula, divide_numbers
from gamelens.receipts import Receipt

_GAMES: Final = frozenset({"game", "game_id", "studio", "studio_id"})
_SEPARATE: Final = frozenset(
    {"ad_revenue", "iap_revenue", "total_revenue", "revenue_share", "impressions", "impression_share"}
    | {"requested", "shown", "clicked", "spend"}
)
_MOST_COUNT: Final = 2**63 - 1
"""Largest count that a column of Int64 holds.

Derived: its 63 bits.
"""
_EFFECTS: Final = frozenset({"before", "after", "change", "volume", "mix", "price"})


@requires(frame=ANY)
def total(frame: DataFrame) -> DataFrame:
    """Return one row: counts and money summed, means and ratios computed from their parts.

        income = lens.query(["revenue", "ecpm"], by="country_code", over="last 28 complete days")
        totals.total(income)

    Columns: the value columns of the frame with their dtypes.

    Raises:
        NotAdditive: the frame holds retention; unique players or sessions, or ratios of them, over anything but games;
            a metric with gaps or cut to the top, whose sum would leave values out.
        BadQuery: the frame has no receipt, so the metrics of its columns are unknown.
    """
    if is_retention_frame(frame):
        raise NotAdditive(
            "retention", "gamelens.analysis.retention.retention_rates.average_curve(frame), which weights by installs"
        )
    names = queried_metrics(frame)
    if not names:
        raise BadQuery("frame", list(frame.columns), "has no receipt: add up a frame that query() returned")
    totals: dict[str, Series[Any]] = {}
    for name in names:
        totals |= _metric_totals(frame, _additive_metric(frame, name))
    return with_receipts_of(DataFrame({column: totals[column] for column in frame.columns if column in totals}), frame)


@requires(frame=ANY)
def column_totals(frame: DataFrame) -> dict[str, float]:
    """Return the sum or the ratio of each column whose rows may be added up, by its name.

        daily = lens.query(["revenue", "dau"], by="platform", over="last 7 complete days")
        totals.column_totals(daily)

    These are the columns of `total` whose metric allows it, and those that analyses compute for separate groups.

    Raises:
        NotAdditive: no column may be added up.
    """
    totals: dict[str, float] = {}
    refusal = NotAdditive("these columns", "a query with every='all', which counts the whole period")
    for name in () if is_retention_frame(frame) else queried_metrics(frame):
        try:
            sums = _metric_totals(frame, _additive_metric(frame, name))
        except BadQuery:  # the frame was computed from the metric and does not have its columns
            continue
        except NotAdditive as error:
            refusal = error
        else:
            totals |= {column: float(total.iloc[0]) for column, total in sums.items()}
    separate = _EFFECTS if set(frame.columns) >= _EFFECTS else _SEPARATE if "age" not in frame else frozenset()
    for name in separate.intersection(frame.columns) - totals.keys():  # of nothing there is no share
        totals[name] = float(frame[name].astype("float64").sum(min_count=name.endswith("_share")))
    if not totals:
        raise refusal
    return totals


@requires(frame=FrameRequirements(every=("day",), takes_gaps=False))
def in_periods(frame: DataFrame, table: Any) -> DataFrame:
    """Return a frame by day added up to the periods of an outside table, such as its weeks, for `gl.join`.

        installs = lens.query("new_users", by="country_code", over="last 28 complete days")
        gl.in_periods(installs, "meta_ads.csv")

    Days outside the periods are left out.

    Args:
        frame: counts or money by day, of any split.
        table: a table of `gl.read_table` whose rows stand for several days, or its path.

    Columns: as in *frame*, with their dtypes; timestamp is the first day of a period.

    Raises:
        NotAdditive: a metric counts players or sessions, which cannot be added up over days.
        BadQuery: the table has no periods, or they overlap or reach beyond the days of *frame*.
    """
    metrics = [_metric_over_time(frame, name) for name in queried_metrics(frame)]
    receipt = Receipt.of(frame.attrs)
    outside = read_table(table)
    periods = periods_within(outside, receipt.interval or visible_period(frame, "day"), frame="the frame")
    if periods is None or not metrics:
        rule = "has one row a day: join it to the frame as it is" if metrics else "is for frames that query() returned"
        raise BadQuery("table", outside.source, rule)
    starts = period_of(frame["timestamp"], periods)
    splits = dimension_columns(frame)
    kept = frame[starts.notna()].assign(timestamp=starts[starts.notna()])
    kept.attrs = frame.attrs
    names = ["timestamp", *splits]
    rows: list[dict[str, Any]] = []
    for key, part in kept.groupby(names, observed=True, dropna=False, sort=False):
        part.attrs = frame.attrs
        totals = {name: total for metric in metrics for name, total in _metric_totals(part, metric).items()}
        rows.append(dict(zip(names, key, strict=True)) | {name: numbers.iloc[0] for name, numbers in totals.items()})
    columns = {*names, *(rows[0] if rows else ())}
    result = DataFrame(rows, columns=[name for name in frame.columns if name in columns])
    result = result.astype({name: frame[name].dtype for name in result.columns})
    return with_receipt(result, replace(receipt, periods=period_texts(periods)))


def _metric_over_time(frame: DataFrame, name: str) -> Metric:
    """Return the metric called *name* of *frame* if it may be added up over days.

    Raises:
        NotAdditive: it may not.
    """
    metric = catalog_of(frame).find(name)
    if metric is None or metric.adds not in ("everywhere", "over time and games"):
        raise NotAdditive(name, 'a query over each period with every="all", which counts every player once')
    return metric


def _additive_metric(frame: DataFrame, name: str) -> Metric:
    """Return the metric called *name* if the rows of *frame* may be added up.

    Raises:
        NotAdditive: they may not. The message names the query to use instead.
    """
    metric = catalog_of(frame).find(name)
    if metric is None:
        raise NotAdditive(name, "a query without by= and with every='all': the catalog does not know how it combines")
    if metric.kinds == "retention":
        raise NotAdditive(name, "lens.retention(days=..., over=...), which knows how many installed")
    receipt = Receipt.of(frame.attrs)
    sources = [source for source, _ in metric.needs] if isinstance(metric, Alias) else [name]
    if any(gap.metric in sources for gap in receipt.gaps):
        raise NotAdditive(name, "the same query again: pieces of this frame are missing")
    if receipt.truncated and not receipt.asked.other:
        raise NotAdditive(name, "a frame queried with other=True, or without top: this one leaves values out")
    adds = {"everywhere"}
    if _GAMES.issuperset(dimension_columns(frame)):
        is_one_bucket = "timestamp" in frame and frame["timestamp"].nunique() <= 1
        adds |= {"over time and games"} | ({"over games"} if is_one_bucket else set())
    if metric.adds not in adds:
        is_mean = isinstance(metric, Alias) and any(part.is_mean for part in metric.ingredients.values())
        is_counted = isinstance(metric, Alias) and (metric.every or (is_mean and not isinstance(metric, OwnMetric)))
        one = sources[-1] if is_counted else name
        whole = replace(receipt.asked, metric=one, by=(), every="all", top=None, other=False)
        raise NotAdditive(name, f"{query_text(whole)}, which counts every player once")
    return metric


def _metric_totals(frame: DataFrame, metric: Metric) -> dict[str, Series[Any]]:
    """Return the total of each column of *metric*, in the column's dtype."""
    columns = {name: metric.columns[name] for name in metric.columns if metric.columns[name] in frame}
    if absent := [metric.columns[name] for name in metric.shown if name not in columns]:
        raise BadQuery("frame", list(frame.columns), f"has no {', '.join(absent)}: query {metric.name} as well")
    values = {field: _numbers(frame[column]) for field, column in columns.items()}
    for name, ratio in metric.rounded_money:
        rows = zip(values[ratio.part], values[name], values[ratio.whole], strict=True)
        values[ratio.part] = [ratio.unrounded(*row) for row in rows]
    totals = {
        field: sum(numbers) if all(isinstance(number, int) for number in numbers) else fsum(numbers)
        for field, numbers in values.items()
    }
    for field in metric.fields:
        if field.name in columns and isinstance(made := field.combines, Quotient | Formula):
            totals[field.name] = made.value({name: float(totals[name]) for name in made.names}, divide_numbers)
    if metric.name == "session_length" and (parts := ratio_parts(metric, lambda name: frame[columns[name]])):
        ended = parts[1].sum()
        totals["session_length"] = float(parts[0].sum() / ended) if ended else float("nan")
    return {columns[field]: _as_column_type(frame[columns[field]], value) for field, value in totals.items()}


def _numbers(column: Series[Any]) -> list[int] | list[float]:
    """Return the values of *column*, 0 for NA: counts as whole numbers, with all their digits."""
    if pd.api.types.is_integer_dtype(column):
        return [int(value) for value in column.fillna(0)]
    return column.astype("float64").fillna(0.0).to_list()


def _as_column_type(column: Series[Any], value: float) -> Series[Any]:
    """Return *value* as a column of the same type.

    Raises:
        BadQuery: it is a count that is too large for it.
    """
    if not pd.api.types.is_integer_dtype(column):
        return Series([value], dtype=column.dtype)
    count = round(round(value, MONEY_DIGITS))
    if abs(count) > _MOST_COUNT:
        raise BadQuery("total", count, f"of {column.name} is more than a column of counts holds: add up fewer rows")
    return Series([count], dtype=column.dtype)
