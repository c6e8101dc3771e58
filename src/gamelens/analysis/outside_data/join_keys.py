"""Join keys: pairs of columns with one meaning, converted to the same type.

The frame's column decides the type: times match times, text matches text (1001 is "1001", and 007 stays "007"), whole
numbers match whole numbers. Null is a key like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype, is_float_dtype, is_integer_dtype

from gamelens.analysis.files.number_parsing import ParsedNumbers, read_amounts
from gamelens.analysis.files.table_reader import ExternalTable
from gamelens.errors import BadQuery

On = str | Sequence[str] | Mapping[str, str]


def pairs_of(on: On, frame: DataFrame, table: ExternalTable) -> dict[str, str]:
    """Return the column of the external table for each column of the frame in *on*.

    Raises:
        BadQuery: there is no pair, or a column is missing, named twice or not a key.
    """
    listed = [on] if isinstance(on, str) else on
    pairs = dict(listed) if isinstance(listed, Mapping) else {name: name for name in listed}
    if not pairs:
        raise BadQuery("on", on, "names no column to join on", [str(name) for name in frame.columns])
    for left, right in pairs.items():
        if left not in frame:
            raise BadQuery("on", left, "is not a column of the frame", [str(name) for name in frame.columns])
        if right not in table.columns:
            raise BadQuery("on", right, f"is not a column of {table.source}", table.columns)
        if is_float_dtype(frame[left]):
            raise BadQuery("on", left, "is a measured number, not a key: join on timestamp or a dimension")
    if len(set(pairs.values())) < len(pairs):
        raise BadQuery("on", [*pairs.values()], f"names a column of {table.source} twice")
    return pairs


def left_key(column: Series[Any]) -> Series[Any]:
    """Return a column of the frame as a key: datetime64[us, UTC], Int64 or str."""
    if is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True).astype("datetime64[us, UTC]")
    if is_integer_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype("Int64")
    return column.astype("object").map(_as_text, na_action="ignore").astype("str")


def right_texts(table: ExternalTable, column: str) -> Series[Any]:
    """Return a column of the external table as text keys.

    Raises:
        BadQuery: numbers are not exact names: they have decimals, or digits beyond 2**53.
    """
    cells = table.column(column)
    if pa.types.is_floating(cells.type):
        is_exact = pc.and_(pc.equal(pc.floor(cells), cells), pc.less(pc.abs(cells), 2.0**53))
        if not pc.all(is_exact).as_py() and cells.null_count < len(cells):
            example = cells.filter(pc.invert(is_exact))[0].as_py()
            raise BadQuery(column, example, "is a number where a name is needed: read the column as text")
        cells = cells.cast(pa.int64())
    if pa.types.is_timestamp(cells.type):
        moments = cells.to_pandas()
        is_day = (moments.dropna() == moments.dropna().dt.normalize()).all()
        return Series(moments.dt.strftime("%Y-%m-%d" if is_day else "%Y-%m-%dT%H:%M:%SZ"), dtype="str")
    return Series(cells.cast(pa.string()).to_pandas(), dtype="str")


def right_moments(table: ExternalTable, column: str) -> Series[Any]:
    """Return a column of the external table for `read_moments`: datetimes or text."""
    cells = table.column(column)
    if pa.types.is_floating(cells.type):  # a spreadsheet's numbers of days, with the time as the part of a day
        return Series([None if day is None else f"{day:.10g}" for day in cells.to_pylist()], dtype="str")
    if not pa.types.is_timestamp(cells.type):
        return right_texts(table, column)
    moments: Series[Any] = cells.to_pandas()
    return moments


def right_key(table: ExternalTable, column: str, left: Series[Any]) -> Series[Any]:
    """Return a column of the external table in the type of *left*, a key that is not a time.

    Raises:
        BadQuery: it is not an exact name or, if *left* has whole numbers, anything but these.
    """
    texts = right_texts(table, column)
    if not is_integer_dtype(left):
        return texts
    read = read_amounts(texts, field=column) if texts.notna().any() else ParsedNumbers(texts.astype("Int64"))
    if not isinstance(read, ParsedNumbers) or not is_integer_dtype(read.numbers):
        raise BadQuery(column, texts.dropna().iloc[0], "must be whole numbers, as in the frame")
    return read.numbers


def respelled(right: Series[Any], left: Series[Any], field: str) -> Series[Any]:
    """Return the texts of *right* in the spelling of *left*, where they differ in nothing but case and blanks.

    Raises:
        BadQuery: two texts of *left* differ in nothing else.
    """

    def folded(text: str) -> str:
        return "".join(text.casefold().split())

    spellings: dict[str, str] = {}
    for text in sorted(set(left.dropna())):
        other = spellings.setdefault(folded(text), text)
        if other != text:
            raise BadQuery("fold", field, f"has {other!r} and {text!r}, which differ only in case and blanks")
    return right.map(lambda text: spellings.get(folded(text), text), na_action="ignore").astype("str")


def _as_text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
