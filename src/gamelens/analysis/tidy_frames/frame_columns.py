"""Columns of tidy frames: dimensions, numbers, series names and receipts.

A tidy frame has `timestamp` (datetime64[us, UTC]), dimensions (category, null is a group) and numbers (Int64 or
float64).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from gamelens.catalog import METRICS, TITLES, Catalog, columns_for, metric_named
from gamelens.errors import BadQuery, emit_warning
from gamelens.receipts import RECEIPT, Provenance, Receipt, merge_provenance, merge_receipts, mixture_warnings

UNKNOWN = "(unknown)"
_NOT_VALUES = ("age",)


def dimension_columns(frame: DataFrame) -> list[str]:
    """Return the columns that split the rows: neither timestamps nor ages nor numbers.

    For example:

        income = lens.query("ecpm", by=["game", "platform"], over="last week")
        tidy_frames.dimension_columns(income)
    """
    return [name for name in frame.columns if not _is_moment(frame[name]) and not is_numeric_dtype(frame[name])]


def label_columns(frame: DataFrame) -> list[str]:
    """Return the dimension columns that people read: no id whose title is a column too.

    For example:

        tidy_frames.label_columns(lens.query("dau", by=["game", "platform"], over="yesterday"))
    """
    names = dimension_columns(frame)
    return [name for name in names if TITLES.get(name) not in names]


def value_columns(frame: DataFrame) -> list[str]:
    """Return the columns that hold measured numbers.

    For example:

        tidy_frames.value_columns(lens.query(["ecpm", "dau"], by="game", over="last week"))
    """
    return [name for name in frame.columns if is_numeric_dtype(frame[name]) and name not in _NOT_VALUES]


def column_of(frame: DataFrame, metric: str, field: str) -> str:
    """Return the name of the column that holds *field* of *metric*, which an alias may have brought.

        income = lens.query("ecpm", by="game", over="last week")
        tidy_frames.column_of(income, "ilrd_revenue", "sum")

    Raises:
        BadQuery: the frame does not hold it, or the service has no such metric or field.
    """
    if field not in (fields := metric_named(metric).columns):
        raise BadQuery("field", field, f"is not a field of {metric}", fields)
    columns = columns_for(metric, field)
    if found := [column for column in columns if column in frame]:
        return found[0]
    column, query = list(columns.items())[-1 if field not in METRICS[metric].shown else 0]
    raise BadQuery("frame", list(frame.columns), f"has no {column}: query {query} as well")


def queried_metrics(frame: DataFrame) -> list[str]:
    """Return the metrics in the receipt's query, or an empty list without a receipt.

    For example:

        tidy_frames.queried_metrics(lens.query(["dau", "revenue"], over="last week"))
    """
    return list(Receipt.of(frame.attrs).asked.metrics)


def catalog_of(frame: DataFrame) -> Catalog:
    """Return the catalog with the own metrics that the receipt of *frame* defines.

    For example:

        tidy_frames.catalog_of(lens.query("dau", over="last week")).find("dau").meaning
    """
    return Catalog.recorded(Receipt.of(frame.attrs).asked.formulas)


def with_ids(frame: DataFrame, by: str | Sequence[str] | None) -> list[str]:
    """Return the columns to group by: *by*, with the id beside each title that has one.

        players = lens.query("dau", by=["game", "platform"], over="yesterday")
        players.groupby(tidy_frames.with_ids(players, "game"), observed=True).dau.sum()

    Raises:
        BadQuery: a column is missing.
    """
    names = [] if by is None else [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in frame:
            raise BadQuery("by", name, "is not a column of the frame", [*map(str, frame.columns)])
    ids = {title: identity for identity, title in TITLES.items() if identity in frame and identity not in names}
    return [column for name in names for column in ((ids[name], name) if name in ids else (name,))]


def sum_over(frame: DataFrame, by: str | Sequence[str] | None, columns: Iterable[str]) -> DataFrame:
    """Return the sums of *columns* for each value of *by*, null included.

    Without *by* it is one row.
    """
    keys, columns = with_ids(frame, by), list(columns)
    if not keys:
        return DataFrame({name: Series([frame[name].sum()], dtype=frame[name].dtype) for name in columns})
    return frame.groupby(keys, observed=True, dropna=False, sort=False)[columns].sum().reset_index()


def metric_sums(frame: DataFrame, by: str | Sequence[str] | None, **fields: tuple[str, str]) -> DataFrame:
    """Return sums like `sum_over`, each column named by its keyword: *name*=(metric, field).

        daily = lens.query(["revenue", "session_unique"], by=["game", "country_code"], over="last 28 complete days")
        tidy_frames.metric_sums(daily, "game", money=("revenue", "sum"), sessions=("session_unique", "session_unique"))

    Raises:
        BadQuery: the frame does not hold a field.
    """
    names = {column_of(frame, metric, field): name for name, (metric, field) in fields.items()}
    return sum_over(frame, by, names).rename(columns=names)


def ratio(part: Series[Any], whole: Series[Any]) -> Series[Any]:
    """Return *part* / *whole* as float64: NA if either is unknown or *whole* is 0.

    For example:

        daily = lens.query(["revenue", "session_unique"], by="game", over="last week")
        daily.assign(per_session=tidy_frames.ratio(daily.revenue, daily.session_unique))
    """
    top, bottom = part.astype("float64"), whole.astype("float64")
    return top / bottom.where(bottom != 0)


def display_values(values: Series[Any]) -> Series[str]:
    """Return values as text, null as `(unknown)`.

        installs = lens.query("new_users", by="install_publisher", over="last week")
        tidy_frames.display_values(installs.install_publisher)

    If a value has that very name, null is `(null)`.
    """
    texts = values.astype("object")
    null = "(null)" if (texts == UNKNOWN).any() else UNKNOWN
    return texts.where(texts.notna(), null).astype(str)


def series_names(frame: DataFrame, by: str | Sequence[str] | None = None) -> Series[str]:
    """Return the series name of each row: its values of *by*, joined by dots.

    Without *by* they are the values of all label columns.
    """
    columns = label_columns(frame) if by is None else [by] if isinstance(by, str) else list(by)
    if not columns:
        return Series("all", index=frame.index, dtype="str")
    names = display_values(frame[columns[0]])
    for column in columns[1:]:
        names = names + " · " + display_values(frame[column])
    return names


def with_receipts_of(result: DataFrame, *sources: DataFrame) -> DataFrame:
    """Give *result* the merged receipt of its *sources* and return it.

        players, income = (lens.query(metric, by="game", over="last week") for metric in ("dau", "revenue"))
        tidy_frames.with_receipts_of(players.merge(income, on=["timestamp", "game_id", "game"]), players, income)

    Metrics are listed, requests added, and the data is as of the oldest source (`merge_receipts`). Numbers of different
    origins are a warning.
    """
    attrs = [source.attrs for source in sources if Receipt.of(source.attrs)]
    if len(attrs) == 1:  # as it is, with keys that only a later version knows
        result.attrs = {RECEIPT: attrs[0][RECEIPT]}
        return result
    receipts = [Receipt.of(one) for one in attrs]
    warn_of_mixture([receipt.provenance for receipt in receipts])
    return with_receipt(result, merge_receipts(receipts))


def with_receipt(frame: DataFrame, receipt: Receipt) -> DataFrame:
    """Give *frame* this receipt, or none if it is empty, and return it.

    For example:

        daily = lens.query("revenue", by="game", over="last 28 complete days")
        of_weekdays = daily.groupby(daily.timestamp.dt.day_name().rename("weekday")).revenue.mean().reset_index()
        tidy_frames.with_receipt(of_weekdays, daily.lens.receipt)
    """
    frame.attrs = {RECEIPT: receipt.to_json()} if receipt else {}
    return frame


def warn_of_mixture(origins: Sequence[Provenance]) -> list[str]:
    """Emit and return a warning if *origins* differ, unless one is that mixture already.

    For example:

        players, income = (lens.query(metric, over="yesterday") for metric in ("dau", "revenue"))
        tidy_frames.warn_of_mixture([players.lens.receipt.provenance, income.lens.receipt.provenance])
    """
    merged = merge_provenance(origins) if origins else Provenance()
    if merged in origins:
        return []
    texts = mixture_warnings(merged)
    for text in texts:
        emit_warning(text)
    return texts


def _is_moment(column: Series[Any]) -> bool:
    return is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.DatetimeTZDtype)
