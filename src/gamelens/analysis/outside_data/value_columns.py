"""What an outside table says about its keys, in the types of a tidy frame, and how rows of one key become one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from gamelens.analysis.files.number_parsing import ParsedNumbers, read_amounts
from gamelens.analysis.files.table_reader import ExternalTable
from gamelens.analysis.outside_data.join_keys import their_texts
from gamelens.catalog import DIMENSIONS
from gamelens.errors import BadQuery

# What names things: no number, whatever its digits. Version 1.10 is not 1.1.
_IDENTIFIER: Final = re.compile(r"(?:.*[\W_])?(?:(?:id|ID|Id)s?|[vV]ersion)|.*[a-z]I[dD]s?", re.DOTALL)
_ISO_DAYS: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"


class ValueColumns:
    """The typed columns of an outside table, made one by one; *notes* and *shares* tell what was found on the way."""

    def __init__(self, table: ExternalTable, *, decimal: str | None, text: Sequence[str]) -> None:
        self._table = table
        self._decimal = decimal
        self._text = frozenset(text)
        self.notes: list[str] = []
        self.shares: set[str] = set()

    def frame(self, columns: Sequence[str]) -> DataFrame:
        """*columns* as Int64, float64, boolean, datetime64[us, UTC] or, what is text or names something, category.

        Raises:
            BadQuery: a column of numbers that can be read in more than one way.
        """
        made = {name: self._typed(name) for name in columns}
        return DataFrame(made, index=pd.RangeIndex(len(self._table.rows)))

    def _typed(self, name: str) -> Series[Any]:
        cells = self._table.column(name)
        if name in self._text or name in DIMENSIONS or _IDENTIFIER.fullmatch(name):
            return _as_categories(their_texts(self._table, name))
        if pa.types.is_string(cells.type):
            read = self._read(name, their_texts(self._table, name))
            return _as_categories(read) if read.dtype == "str" else read
        typed: Series[Any] = cells.to_pandas(
            types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get
        )
        return typed

    def _read(self, name: str, texts: Series[Any]) -> Series[Any]:
        words = set(texts.dropna().str.lower().unique()) if len(texts) else set()
        if words and words <= {"true", "false"}:
            return (texts.str.lower() == "true").astype("boolean").where(texts.notna())
        if words and texts.dropna().str.fullmatch(_ISO_DAYS).all():
            moments = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
            if moments.notna().equals(texts.notna()):  # 2026-02-30 stays the text it is
                return moments.astype("datetime64[us, UTC]")
        read = read_amounts(texts, field=name, decimal=self._decimal, separator=self._table.separator)
        if isinstance(read, str):
            row = self._table.rows[(texts == read).to_numpy().argmax()]
            self.notes.append(
                f"{name} stays text: {read!r} in row {row} is no number; missing=[{read!r}] reads it as empty"
            )
        if not isinstance(read, ParsedNumbers):
            return texts
        self.notes += [read.note] if read.note else []
        self.shares |= {name} if read.is_share else set()
        return read.numbers


def summed(values: DataFrame, groups: Series[Any], table: ExternalTable, *, shares: set[str]) -> DataFrame:
    """One row for each group, in the order they first appear: numbers added, the rest as all its rows have it.

    Raises:
        BadQuery: rows of a group differ in what cannot be added.
    """
    first = ~groups.duplicated()
    made: dict[str, Series[Any]] = {}
    for name, column in values.items():
        is_added = is_numeric_dtype(column) and not is_bool_dtype(column) and name not in shares
        if is_added:
            made[str(name)] = column.groupby(groups, sort=False).sum(min_count=1).reset_index(drop=True)
        else:
            _must_agree(str(name), column, groups, table)
            made[str(name)] = column[first].reset_index(drop=True)
    return DataFrame(made, index=pd.RangeIndex(int(first.sum())))


def _must_agree(name: str, column: Series[Any], groups: Series[Any], table: ExternalTable) -> None:
    codes = Series(pd.factorize(column)[0], index=column.index)
    is_unlike = codes != codes.groupby(groups).transform("first")
    if is_unlike.any():
        other = int(is_unlike.to_numpy().argmax())
        first = int((groups == groups.iloc[other]).to_numpy().argmax())
        rows = " and ".join(str(table.rows[place]) for place in groups.index[[first, other]])
        rule = f"differ within one key (rows {rows}) and cannot be added"
        unlike = [str(column.iloc[first]), str(column.iloc[other])]
        raise BadQuery(name, unlike, f"{rule}: leave the column out with columns=[...], or make it part of on=")


def _as_categories(texts: Series[Any]) -> Series[Any]:
    return texts.astype(pd.CategoricalDtype(pd.Index(sorted(texts.dropna().unique()), dtype="str")))
