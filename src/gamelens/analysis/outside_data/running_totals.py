"""Running totals: amounts that include all days before. Where the header does not say so, the cells may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.roles import KEYS
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]

_FEWEST_DAYS: Final = 7
_MANY_DAYS: Final = 14
_GROWTH: Final = 3.0  # of fewer days than many, from the first to the last
_SHARE_OF_STEPS: Final = 0.7
_CORRECTED: Final = 0.1  # of the steps, those down in a running total that was corrected
_DOWN: Final = 0.25  # the most of a number that a correction takes away
_RAMP: Final = 0.05  # a day: costs that grow less than their days differ also fall
_STEADY: Final = 0.9  # the growth rate of the second half by that of the first, at least
_DOUBLED: Final = 1.7  # what a running total of a day is on the next, nearly
_FEW_KEYS: Final = 2  # of several, one falls some day
_SCALED: Final = 1.5  # from the first third of days to the last
_LIKE_COUNTS: Final = 0.8  # of the logarithm of the growth
_FIRST_ROWS: Final = 1_000
_FIRST_KEYS: Final = 20
_MOST_KEYS: Final = 500


def running_total(column: OutsideColumn) -> BadQuery:
    """Return the exception for a running total where the amounts of days are needed."""
    rule = "is a running total, which has all days before in each row: take its differences by day"
    return BadQuery(
        column.name, UNSET, f'{rule}, or pass roles={{"{column.name}": "cost"}} if rows are of one day each'
    )


def growth_problem(table: OutsideTable, column: OutsideColumn) -> BadQuery | None:
    """Return the question about an amount by day that only grows, in all keys with at least a week of days.

    A running total may begin anew with each month. Costs that are raised day by day are taken if they grow at a steady
    rate, or as much as a count beside them that falls some day: a running total grows at a falling rate, by about one
    day's part of all days so far, and whatever the clicks of the day are. Of simulated running totals of steady costs
    at most 3% are taken (of costs that grow by 2% a day 6%), and of costs that are raised by 8% a day and never fall
    15% are asked about (`tests/bench/test_running_totals.py`).
    """
    if table.period not in ("day", "time") or column.role != "amount" or column.evidence[0].where != "header":
        return None
    number = _key_numbers(table)
    series: list[Floats] = []
    for most in (_FIRST_KEYS, _MOST_KEYS):  # of nearly all files one of the first keys falls some day
        keys = pd.unique(number if most == _MOST_KEYS else number[:_FIRST_ROWS])[:most]
        rows = np.flatnonzero(np.isin(number, keys))
        series = [amounts for amounts in _by_key(table, column, number, rows) if len(amounts) >= _FEWEST_DAYS]
        if not series or not all(map(_only_grows, series)):
            return None
    if (len(series) <= _FEW_KEYS and all(map(_is_ramp, series))) or _grows_with_a_count(table, column):
        return None
    name = column.name
    has_fallen = any((np.diff(amounts) < 0).any() for amounts in series)
    rule = f"grows with {'nearly ' if has_fallen else ''}every day, as a running total does"
    step = f'pass roles={{"{name}": "{column.money_word}"}} if each row is of its day alone'
    return BadQuery(name, UNSET, f'{rule}: {step}, or roles={{"{name}": "cumulative"}} if it has the days before')


def _key_numbers(table: OutsideTable) -> NDArray[np.int32]:
    """Return a number of each row, which those of the same key share."""
    number, most = np.zeros(len(table.rows), dtype="int32"), 1
    for key in [column for column in table.columns if column.role in KEYS]:
        codes = key.values.astype("category").cat.codes.to_numpy()
        most *= int(codes.max(initial=0)) + 2
        if most > np.iinfo("int32").max:
            number = pd.factorize(number)[0].astype("int32")
            most = (int(number.max()) + 1) * (int(codes.max()) + 2)
        number *= int(codes.max(initial=0)) + 2
        number += codes
        number += 1
    return number


def _by_key(
    table: OutsideTable, column: OutsideColumn, number: NDArray[np.int32], rows: NDArray[np.int64]
) -> Iterator[Floats]:
    """Yield the sums by day of each key of *rows*, in order; of each month, if they only fall with it."""
    is_known = (column.values.iloc[rows].notna() & table.starts.iloc[rows].notna()).to_numpy()
    rows = rows[is_known]
    day = table.starts.iloc[rows].to_numpy(dtype="datetime64[D]").astype("int64")
    amounts, group = column.values.iloc[rows].to_numpy(dtype="float64"), pd.factorize(number[rows])[0]
    if not len(day) or day.max() - day.min() < _FEWEST_DAYS - 1:
        return
    first, span = day.min(), day.max() - day.min() + 1
    place = group * span + day - first
    sums = np.bincount(place, amounts, minlength=span * (group.max() + 1)).reshape(-1, span)
    is_there = np.bincount(place, minlength=sums.size).reshape(-1, span) > 0
    days = np.arange(first, first + span).astype("datetime64[D]")
    begins = days.astype("datetime64[M]") == days
    for of_key, known in zip(sums, is_there, strict=True):
        months = np.cumsum(begins)[known]
        changes = np.flatnonzero(np.diff(months)) + 1
        falls = np.flatnonzero(np.diff(of_key[known]) < 0) + 1
        is_by_month = len(falls) > 0 and {*falls.tolist()} <= {*changes.tolist()}
        yield from np.split(of_key[known], changes) if is_by_month else [of_key[known]]


def _only_grows(amounts: Floats) -> bool:
    """Return whether amounts grow with every day, but for a few corrections if they grow much."""
    steps = np.diff(amounts)
    falls = steps < 0
    is_grown = (len(amounts) >= _MANY_DAYS and not falls.any()) or amounts[-1] >= _GROWTH * amounts[0]
    are_few = falls.sum() <= _CORRECTED * len(steps)
    is_small = bool((-steps[falls] <= _DOWN * amounts[:-1][falls]).all())
    return bool(are_few and is_small and (steps > 0).mean() >= _SHARE_OF_STEPS and is_grown)


def _is_ramp(amounts: Floats) -> bool:
    """Return whether amounts that only grow do so at a steady rate, from the first day on."""
    if amounts[0] <= 0:
        return False
    rates: Any = amounts[1:] / amounts[:-1] - 1
    half = len(rates) // 2
    is_steady = rates[-half:].mean() >= _STEADY * rates[:half].mean()
    return bool(is_steady and rates[0] + 1 < _DOUBLED and (amounts[-1] / amounts[0]) ** (1 / len(rates)) - 1 >= _RAMP)


def _grows_with_a_count(table: OutsideTable, column: OutsideColumn) -> bool:
    """Return whether a count that falls some day grows about as much from first to last as the amounts."""
    counts = {str(place): count.values for place, count in enumerate(table.of_role("count"))}
    by_day = DataFrame({**counts, "": column.values}).groupby(table.starts.dt.floor("D")).sum().astype("float64")
    third = len(by_day) // 3
    first, last = by_day.iloc[:third].sum(), by_day.iloc[-third:].sum()
    growth = np.log((last / first.where(first > 0)).where(last > 0))
    falls = (by_day.diff() < 0).any()
    are_like = (falls & (growth >= _LIKE_COUNTS * growth[""])).drop("")
    return bool(growth[""] >= np.log(_SCALED) and are_like.any())
