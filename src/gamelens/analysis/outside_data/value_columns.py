"""Value columns of an external table, in the types of a tidy frame."""

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
from gamelens.analysis.outside_data.join_keys import right_texts
from gamelens.catalog import DIMENSIONS
from gamelens.errors import BadQuery
from gamelens.wire.currencies import USD_PER_UNIT

CURRENCY: Final = "_currency"
"""End of the name of the column that has the currency of an amount."""

# Columns of identifiers are text, even if all are digits: version 1.10 is not 1.1.
_IDENTIFIER: Final = re.compile(r"(?:.*[\W_])?(?:(?:id|ID|Id)s?|[vV]ersion)|.*[a-z]I[dD]s?", re.DOTALL)
_CURRENCY_IN_NAME: Final = re.compile(r".*[(\[]([A-Z]{3})[)\]]\s*", re.DOTALL)  # Amount spent (EUR)
_ISO_DAYS: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"


class ValueColumns:
    """The typed columns of an external table, built one by one.

    Attributes:
        notes: warnings about columns read so far.
        shares: columns of percentages, which must not be added up.
    """

    def __init__(self, table: ExternalTable, *, decimal: str | None, text: Sequence[str]) -> None:
        self._table = table
        self._decimal = decimal
        self._text = frozenset(text)
        self.notes: list[str] = []
        self.shares: set[str] = set()
        self._currencies: dict[str, Series[Any]] = {}

    def frame(self, columns: Sequence[str]) -> DataFrame:
        """Return *columns* as Int64, float64, boolean, datetime64[us, UTC] or category.

        Text and identifiers are categories. Amounts of money have their currency beside them (category, ISO 4217),
        under their name with `_currency` behind it.

        Raises:
            BadQuery: a column of numbers can be read in more than one way.
        """
        result: dict[str, Series[Any]] = {}
        for name in columns:
            result[name] = self._typed(name)
            currency = self._currency(name, result[name])
            if currency is not None and f"{name}{CURRENCY}" not in self._table.columns:
                result[f"{name}{CURRENCY}"] = _as_categories(currency)
        return DataFrame(result, index=pd.RangeIndex(len(self._table.rows)))

    def _currency(self, name: str, values: Series[Any]) -> Series[Any] | None:
        """Return the currency that the numbers of a column or its name say, or None."""
        match = _CURRENCY_IN_NAME.fullmatch(name)
        if name not in self._currencies and match and match[1] in USD_PER_UNIT and is_numeric_dtype(values):
            return Series(match[1], index=values.index, dtype="str")
        return self._currencies.get(name)

    def _typed(self, name: str) -> Series[Any]:
        """Return one column: names as category, other texts parsed, typed columns as they are."""
        cells = self._table.column(name)
        if name in self._text or name in DIMENSIONS or _IDENTIFIER.fullmatch(name):
            return _as_categories(right_texts(self._table, name))
        if pa.types.is_string(cells.type):
            values = self._parse(name, right_texts(self._table, name))
            return _as_categories(values) if values.dtype == "str" else values
        typed: Series[Any] = cells.to_pandas(
            types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get
        )
        return typed

    def _parse(self, name: str, texts: Series[Any]) -> Series[Any]:
        """Return *texts* as flags, times or numbers, or unchanged if they are none of these."""
        words = set(texts.dropna().str.lower().unique()) if len(texts) else set()
        if words and words <= {"true", "false"}:
            return (texts.str.lower() == "true").astype("boolean").where(texts.notna())
        if words and texts.dropna().str.fullmatch(_ISO_DAYS).all():
            moments = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
            if moments.notna().equals(texts.notna()):  # a day such as 2026-02-30 stays text
                return moments.astype("datetime64[us, UTC]")
        parsed = read_amounts(texts, field=name, decimal=self._decimal, separator=self._table.separator)
        if isinstance(parsed, str):
            row = self._table.rows[(texts == parsed).to_numpy().argmax()]
            self.notes.append(
                f"{name} stays text: {parsed!r} in row {row} is not a number; missing=[{parsed!r}] reads it as empty"
            )
        if not isinstance(parsed, ParsedNumbers):
            return texts
        self.notes += [parsed.note] if parsed.note else []
        self.shares |= {name} if parsed.is_share else set()
        if parsed.currency is not None:
            self._currencies[name] = parsed.currency
        return parsed.numbers


def sum_by_group(values: DataFrame, groups: Series[Any], table: ExternalTable, *, shares: set[str]) -> DataFrame:
    """Return one row for each group, in order of appearance, with its numbers added up.

    Other values must be equal within a group.

    Raises:
        BadQuery: rows of a group differ in a value that cannot be added.
    """
    first = ~groups.duplicated()
    result: dict[str, Series[Any]] = {}
    for name, column in values.items():
        is_added = is_numeric_dtype(column) and not is_bool_dtype(column) and name not in shares
        if is_added:
            result[str(name)] = column.groupby(groups, sort=False).sum(min_count=1).reset_index(drop=True)
        else:
            _check_agreement(str(name), column, groups, table)
            result[str(name)] = column[first].reset_index(drop=True)
    return DataFrame(result, index=pd.RangeIndex(int(first.sum())))


def _check_agreement(name: str, column: Series[Any], groups: Series[Any], table: ExternalTable) -> None:
    """Raise `BadQuery` if rows of one group differ in *column*."""
    codes = Series(pd.factorize(column)[0], index=column.index)
    is_unlike = codes != codes.groupby(groups).transform("first")
    if is_unlike.any():
        other = int(is_unlike.to_numpy().argmax())
        first = int((groups == groups.iloc[other]).to_numpy().argmax())
        rows = " and ".join(str(table.rows[place]) for place in groups.index[[first, other]])
        rule = f"differ within one key (rows {rows}) and cannot be added"
        unlike = [str(column.iloc[first]), str(column.iloc[other])]
        if name.endswith(CURRENCY):
            rule = f"{rule}: convert the amounts to one currency first, or make the currency part of on="
            raise BadQuery(name, unlike, rule)
        raise BadQuery(name, unlike, f"{rule}: leave the column out with columns=[...], or make it part of on=")


def _as_categories(texts: Series[Any]) -> Series[Any]:
    return texts.astype(pd.CategoricalDtype(pd.Index(sorted(texts.dropna().unique()), dtype="str")))
