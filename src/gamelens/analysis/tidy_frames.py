"""How a tidy frame is read: its dimensions, its numbers, its receipt.

A tidy frame has `timestamp` (datetime64[us, UTC]), dimensions (category, null kept) and numbers (Int64 or float64).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from gamelens.errors import BadQuery
from gamelens.wire.receipts import RECEIPT, Receipt, merge_receipts

UNKNOWN = "(unknown)"
_TITLES = {"game_id": "game", "studio_id": "studio"}
_NOT_VALUES = ("age",)


def dimension_columns(frame: DataFrame) -> list[str]:
    """Columns that say what a row is about; timestamps, ages and numbers left out."""
    return [name for name in frame.columns if not _is_moment(frame[name]) and not is_numeric_dtype(frame[name])]


def label_columns(frame: DataFrame) -> list[str]:
    """Dimension columns people read: an id is left out where its title stands beside it."""
    names = dimension_columns(frame)
    return [name for name in names if _TITLES.get(name) not in names]


def value_columns(frame: DataFrame) -> list[str]:
    """Columns that hold what was measured."""
    return [name for name in frame.columns if is_numeric_dtype(frame[name]) and name not in _NOT_VALUES]


def column_of(frame: DataFrame, metric: str, field: str) -> str:
    """Name of the column that holds *field* of *metric*, prefixed where several metrics share the name.

    Raises:
        BadQuery: the frame does not hold it.
    """
    prefixed = f"{metric}_{field}"
    if prefixed in frame:
        return prefixed
    asked = asked_metrics(frame)
    if field in frame and (not asked or metric in asked):
        return field
    raise BadQuery("frame", list(frame.columns), f"has no {field} of {metric}: query {metric} as well")


def asked_metrics(frame: DataFrame) -> list[str]:
    """Metrics the receipt says were asked for; none when there is no receipt."""
    return list(Receipt.of(frame.attrs).asked.metrics)


def with_ids(frame: DataFrame, by: str | Sequence[str] | None) -> list[str]:
    """Columns to group by, with the id beside each title that has one.

    Raises:
        BadQuery: a column that is not there.
    """
    names = [] if by is None else [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in frame:
            raise BadQuery("by", name, "is not a column of the frame", [*map(str, frame.columns)])
    ids = {title: identity for identity, title in _TITLES.items() if identity in frame and identity not in names}
    return [column for name in names for column in ((ids[name], name) if name in ids else (name,))]


def sum_over(frame: DataFrame, by: str | Sequence[str] | None, columns: Iterable[str]) -> DataFrame:
    """Sums of *columns* for each value of *by*, null groups kept; one row when *by* is None."""
    keys, columns = with_ids(frame, by), list(columns)
    if not keys:
        return DataFrame({name: Series([frame[name].sum()], dtype=frame[name].dtype) for name in columns})
    return frame.groupby(keys, observed=True, dropna=False, sort=False)[columns].sum().reset_index()


def first_row(frame: DataFrame) -> Series[Any]:
    """The first row, the leader of a sorted frame; all NA when there is none."""
    return frame.iloc[0] if len(frame) else Series(pd.NA, index=frame.columns, dtype="object")


def ratio(part: Series[Any], whole: Series[Any]) -> Series[Any]:
    """*part* / *whole* as float64; NA where either is unknown or *whole* is 0."""
    top, bottom = part.astype("float64"), whole.astype("float64")
    return top / bottom.where(bottom != 0)


def display_values(values: Series[Any]) -> Series[str]:
    """Values as text, a null as `(unknown)`, or `(null)` where a value is really called that."""
    texts = values.astype("object")
    null = "(null)" if (texts == UNKNOWN).any() else UNKNOWN
    return texts.where(texts.notna(), null).astype(str)


def series_names(frame: DataFrame, by: str | Sequence[str] | None = None) -> Series[str]:
    """What each row's series is called: its values of *by*, of all label columns when None, with dots between them."""
    columns = label_columns(frame) if by is None else [by] if isinstance(by, str) else list(by)
    if not columns:
        return Series("all", index=frame.index, dtype="str")
    names = display_values(frame[columns[0]])
    for column in columns[1:]:
        names = names + " · " + display_values(frame[column])
    return names


def with_receipts_of(result: DataFrame, *sources: DataFrame) -> DataFrame:
    """*result* with the receipts of its *sources* put together: metrics listed, requests added, as of the oldest."""
    attrs = [source.attrs for source in sources if Receipt.of(source.attrs)]
    if len(attrs) == 1:  # as it is, with keys that only a later version knows
        result.attrs = {RECEIPT: attrs[0][RECEIPT]}
    else:
        result.attrs = {RECEIPT: merge_receipts([Receipt.of(one) for one in attrs]).to_json()} if attrs else {}
    return result


def _is_moment(column: Series[Any]) -> bool:
    return is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.DatetimeTZDtype)
