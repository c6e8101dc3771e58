"""Rates whose rows name the currencies: one code beside the prices of a bank, or both codes of a pair, as in SDMX.

Such a table has other numbers too: codes of the currency in digits, groups, decimals, the units a price is of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_numeric_dtype

from gamelens.analysis.files.currency_names import currencies_of
from gamelens.analysis.outside_data.bank_rates.quoted_rates import Quote, units_column
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.wire.currencies import USD_PER_UNIT

_BASE: Final = re.compile(r"(?<!\w)(?:base|basis\w*|from|source|unit|denom\w*|de base|базов\w*)(?!\w)")
_QUOTED: Final = re.compile(r"(?<!\w)(?:quot\w*|kvot\w*|to|target|counter|terms?|price|котир\w*)(?!\w)")
_POWERS: Final = re.compile(r"unit mult(?:iplier)?")
"""The power of ten of an SDMX dump."""
_MOST_POWER: Final = 12
_AS_LARGE: Final = math.log(4)
_ROUNDED: Final = 5e-3  # of a price for one unit


def columns_of_rates(
    table: OutsideTable, numbers: Sequence[OutsideColumn], codes: OutsideColumn
) -> list[OutsideColumn]:
    """Return the columns that may be the rates, by currency of *codes*: what never changes and is whole is a code.

    A rate for one unit beside the rate and its units is the same rate.
    """
    names = [column.name for column in table.columns]
    beside = {units_column(names), powers_column(names)}
    others = [number for number in numbers if number.name not in beside]
    if surest := [number for number in others if number.role == "exchange_rate"]:
        return surest
    rates = [number for number in others if not _is_code(number, codes)]
    units = _units_of_rows(table)
    repeated = {
        rate.name
        for rate in rates
        for other in rates
        if rate is not other and _is_for_one(rate, other, units, is_later=rates.index(rate) > rates.index(other))
    }
    return [rate for rate in rates if rate.name not in repeated]


def _is_code(number: OutsideColumn, codes: OutsideColumn) -> bool:
    """Return whether a column has one whole number for each currency."""
    values = number.values.astype("float64")
    is_whole = bool((values.dropna() % 1 == 0).all())
    return is_whole and bool((values.groupby(codes.values.astype("object")).nunique() <= 1).all())


def _is_for_one(rate: OutsideColumn, other: OutsideColumn, units: NDArray[np.float64], *, is_later: bool) -> bool:
    """Return whether *rate* is *other* for one unit, where they differ in rows of several."""
    of_one, of_units = (
        column.values.astype("float64").to_numpy(dtype="float64", na_value=np.nan) for column in (rate, other)
    )
    are_several = units != 1
    is_same = np.allclose(of_one[~are_several], of_units[~are_several], rtol=1e-6, equal_nan=True)
    expected = of_units[are_several] / units[are_several]
    return bool(is_same and np.allclose(of_one[are_several], expected, rtol=_ROUNDED, equal_nan=True)) and (
        bool(are_several.any()) or is_later
    )


def _units_of_rows(table: OutsideTable) -> NDArray[np.float64]:
    """Return the number of units that the price of each row is of, by the column that says it."""
    name = units_column(column.name for column in table.columns)
    if name is None or not is_numeric_dtype(table.column(name).values):
        return np.ones(len(table.rows))
    return np.asarray(table.column(name).values.astype("float64").fillna(1.0), dtype="float64")


def prices_of_one(table: OutsideTable, rates: OutsideColumn) -> Series[Any]:
    """Return the price of one unit in each row."""
    return rates.values.astype("float64") / _units_of_rows(table)


def powers_column(names: Iterable[str]) -> str | None:
    """Return the column of powers of ten, by which the units of a row are counted."""
    return next((name for name in names if _POWERS.fullmatch(folded_header(name))), None)


def pair_columns(codes: Sequence[OutsideColumn]) -> tuple[OutsideColumn, OutsideColumn] | None:
    """Return the columns of what is priced and of what it is priced in, as the headers of two columns of codes say."""
    bases = [column for column in codes if _BASE.search(folded_header(column.name))]
    quoted = [column for column in codes if _QUOTED.search(folded_header(column.name)) and column not in bases]
    if not (bases or quoted):
        return None
    others = [column for column in codes if column not in bases and column not in quoted]
    base, in_ = (found[0] if found else others[0] if others else None for found in (bases, quoted))
    return (base, in_) if base is not None and in_ is not None else None


def quotes_of_pairs(
    table: OutsideTable, pair: tuple[OutsideColumn, OutsideColumn], rates: OutsideColumn, days: Series[Any]
) -> list[tuple[str, Quote, Series[Any]]]:
    """Return what rows with both currencies quote, and their prices by day, for `dollars_by_quotes`.

    Powers of ten, and which currency has the price, are as the usual rates say where a header leaves them open.
    """
    prices = prices_of_one(table, rates)
    name = powers_column(column.name for column in table.columns)
    powers = table.column(name).values.astype("float64").fillna(0) if name is not None else prices * 0
    scale = 10.0 ** powers.clip(-_MOST_POWER, _MOST_POWER)
    texts = [column.values.astype("object") for column in pair]
    ways = [
        _by_pair(days, base, quoted, prices * factor)
        for base, quoted in (texts, texts[::-1])
        for factor in ((1 / scale, scale) if powers.any() else (1 / scale,))
    ]
    off = [sum(_off(quote, values) for _, quote, values in way) for way in ways]
    best = int(np.argmin(off))
    return ways[best] if off[best] + _AS_LARGE < off[0] else ways[0]


def _by_pair(
    days: Series[Any], base: Series[Any], quoted: Series[Any], prices: Series[Any]
) -> list[tuple[str, Quote, Series[Any]]]:
    frame = DataFrame({"day": days, "priced": base, "quoted": quoted, "price": prices}).dropna()
    found = []
    for texts, rows in frame.groupby(["priced", "quoted"], sort=False):
        codes = [min(currencies_of(str(text).strip())) for text in texts]
        if codes[0] != codes[1]:
            found.append((f"{codes[0]}/{codes[1]}", Quote(codes[0], codes[1], 1), rows.groupby("day")["price"].last()))
    return found


def _off(quote: Quote, prices: Series[Any]) -> float:
    """Return how far prices are from the usual ones, as a logarithm."""
    if quote.currency not in USD_PER_UNIT or quote.price_in not in USD_PER_UNIT:
        return 0.0
    usual = float(USD_PER_UNIT[quote.currency]) / float(USD_PER_UNIT[quote.price_in])
    return abs(math.log(float(prices.median()) / usual))
