"""Value columns of an external table, in the types of a tidy frame."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from gamelens.analysis.files.number_parsing import SYMBOLS, ParsedNumbers, is_currency, read_amounts
from gamelens.analysis.files.table_reader import ExternalTable
from gamelens.analysis.outside_data.join_keys import right_texts
from gamelens.catalog import DIMENSIONS
from gamelens.errors import BadQuery

CURRENCY: Final = "_currency"
"""End of the name of the column that has the currency of an amount."""

# Columns of identifiers are text, even if all are digits: version 1.10 is not 1.1.
_IDENTIFIER: Final = re.compile(r"(?:.*[\W_])?(?:(?:id|ID|Id)s?|[vV]ersion)|.*[a-z]I[dD]s?", re.DOTALL)
_CURRENCY_IN_NAME: Final = re.compile(
    r".*(?:[(\[]|[\s_])([A-Z]{3})[)\]]?\s*", re.DOTALL
)  # Amount spent (EUR), Cost EUR
_SYMBOL_IN_NAME: Final = re.compile("|".join(map(re.escape, sorted(SYMBOLS, key=len, reverse=True))))  # Kosten €
_RATE_IN_NAME: Final = re.compile(r"(?<![a-z])per(?![a-z])", re.IGNORECASE)  # dollars per EUR
_ISO_DAYS: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"


@dataclass(frozen=True, eq=False)
class ValueColumns:
    """The value columns of an external table.

    Attributes:
        frame: the columns as Int64, float64, boolean, datetime64[us, UTC] or category. Text and identifiers are
            categories. Amounts of money have their currency beside them (category, ISO 4217), under their name with
            `_currency` behind it.
        shares: columns of percentages, which must not be added up.
        notes: warnings.
    """

    frame: DataFrame
    shares: frozenset[str]
    notes: tuple[str, ...]


def read_values(
    table: ExternalTable, columns: Sequence[str], *, decimal: str | None, text: Sequence[str], is_summed: bool
) -> ValueColumns:
    """Return *columns* of *table*, those in *text* as they are written.

    Raises:
        BadQuery: a column of numbers can be read in more than one way, or one that is to be added up holds a text.
    """
    result: dict[str, Series[Any]] = {}
    shares: set[str] = set()
    notes: list[str] = []
    for name in columns:
        cells, currency = table.column(name), None
        if name in text or name in DIMENSIONS or _IDENTIFIER.fullmatch(name):
            values = right_texts(table, name)
        elif pa.types.is_string(cells.type):
            texts = right_texts(table, name)
            values = _flags_or_times(texts)
            parsed = None
            if values is texts:
                parsed = read_amounts(texts, field=name, decimal=decimal, separator=table.separator)
            if isinstance(parsed, ParsedNumbers):
                values, currency = parsed.numbers, parsed.currency
                notes += [parsed.note] if parsed.note else []
                shares |= {name} if parsed.is_share else set()
            elif parsed is not None:
                row = table.rows[(texts == parsed).to_numpy().argmax()]
                if is_summed:
                    rule = f"in row {row} is not a number: missing=[{parsed!r}] reads it as empty"
                    raise BadQuery(name, parsed, f"{rule}, text=[{name!r}] keeps the column as text")
                rule = f"{parsed!r} in row {row} is not a number; missing=[{parsed!r}] reads it as empty"
                notes.append(f"{name} stays text: {rule}")
        else:
            values = cells.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
        if currency is None and is_numeric_dtype(values) and (code := _currency_in(name)):
            currency = Series(code, index=values.index, dtype="str")
        result[name] = _as_categories(values) if values.dtype == "str" else values
        if currency is not None and f"{name}{CURRENCY}" not in table.columns:
            result[f"{name}{CURRENCY}"] = _as_categories(currency)
    frame = DataFrame(result, index=pd.RangeIndex(len(table.rows)))
    return ValueColumns(frame, frozenset(shares), tuple(notes))


def _currency_in(name: str) -> str:
    """Return the currency that the name of a column states, or ""."""
    if _RATE_IN_NAME.search(name):
        return ""
    named, symbol = _CURRENCY_IN_NAME.fullmatch(name), _SYMBOL_IN_NAME.search(name)
    code = named[1] if named else SYMBOLS[symbol[0]] if symbol else ""
    return code if is_currency(code) else ""


def _flags_or_times(texts: Series[Any]) -> Series[Any]:
    """Return *texts* as flags or times, or unchanged if they are neither."""
    filled = texts.dropna()
    flags = texts.str.lower()
    if len(filled) and flags.dropna().isin(["true", "false"]).all():
        return (flags == "true").astype("boolean").where(texts.notna())
    if len(filled) and filled.str.fullmatch(_ISO_DAYS).all():
        moments = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
        if moments.notna().equals(texts.notna()):  # a day such as 2026-02-30 stays text
            return moments.astype("datetime64[us, UTC]")
    return texts


def sum_by_group(values: DataFrame, groups: Series[Any], table: ExternalTable, *, shares: Collection[str]) -> DataFrame:
    """Return one row for each group, in order of appearance, with its numbers added up.

    Other values must be equal within a group.

    Raises:
        BadQuery: rows of a group differ in a value that cannot be added.
    """
    first = ~groups.duplicated()
    result: dict[str, Series[Any]] = {}
    for name, column in values.items():
        if is_numeric_dtype(column) and not is_bool_dtype(column) and name not in shares:
            result[str(name)] = column.groupby(groups, sort=False).sum(min_count=1).reset_index(drop=True)
            continue
        codes = Series(pd.factorize(column)[0], index=column.index)
        is_unlike = codes != codes.groupby(groups).transform("first")
        if is_unlike.any():
            other = int(is_unlike.to_numpy().argmax())
            same = int((groups == groups.iloc[other]).to_numpy().argmax())
            rows = " and ".join(str(table.rows[place]) for place in groups.index[[same, other]])
            todo = "leave the column out with columns=[...], or make it part of on="
            if str(name).endswith(CURRENCY):
                todo = "convert the amounts to one currency first, or make the currency part of on="
            rule = f"differ within one key (rows {rows}) and cannot be added: {todo}"
            raise BadQuery(str(name), [str(column.iloc[same]), str(column.iloc[other])], rule)
        result[str(name)] = column[first].reset_index(drop=True)
    return DataFrame(result, index=pd.RangeIndex(int(first.sum())))


def _as_categories(texts: Series[Any]) -> Series[Any]:
    return texts.astype(pd.CategoricalDtype(pd.Index(sorted(texts.dropna().unique()), dtype="str")))
