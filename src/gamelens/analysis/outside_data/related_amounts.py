"""Numbers that are money, or none, as the columns beside them prove it: gross is net and fee in every row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.files.currency_names import currencies_in, currencies_of_code
from gamelens.analysis.outside_data.roles import MEASURED, ColumnCells, Evidence, Meaning
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.wire.currencies import USD_PER_UNIT

RELATED: Final = "related"
"""Concept of an amount that others prove, which is neither called a cost nor an income."""
_MOST_COLUMNS: Final = 8
_MOST_OF_ANY_ROLE: Final = 12
_FEWEST_VALUES: Final = 3
_FEWEST_ROLES: Final = 2
_ROUNDED: Final = 0.0051
_FAR: Final = 2.0  # an exchange rate from the usual one
_FIRST: Final = 200  # rows that few others fit


def with_related_amounts(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with numbers as amounts where one is the sum of another and of an amount, in all rows.

    At least three rows with different values tell it.
    """
    found = dict(meanings)
    amounts = [name for name, known in meanings.items() if known.role == "amount"]
    numbers = [name for name, known in meanings.items() if known.role == "number" and known.evidence.where == "cells"]
    if not amounts or not 0 < len(numbers) <= _MOST_COLUMNS or len(amounts) > _MOST_COLUMNS:
        return found
    values = {name: cells[name].likely_numbers for name in (*amounts, *numbers)}
    for name in (*amounts, *numbers):
        cells[name].release_numbers()
    for total, first, second in permutations(values, 3):
        unknown = [name for name in (total, first) if name in numbers]
        if unknown and second in amounts and _is_sum(values[total], values[first], values[second]):
            for name in unknown:
                says = f"{total} = {first} + {second}"
                found[name] = Meaning("amount", Evidence("amount", "its cells", says), RELATED)
    return found


def with_related_counts(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings*, with columns as counts where counts or the money beside them prove that they are no money.

    Whole numbers that add up with counts to one, in all rows, are counts: units sold, returned
    and left. `Refunds` beside `Refunds (USD)` is no money if that is not that many dollars at any usual rate,
    or has cents where the first has none, without a column of codes.
    """
    found = dict(meanings)
    roles = {
        name: known.role
        for name, known in meanings.items()
        if known.role in ("amount", "count", "number") and known.evidence.where in ("header", "cells")
    }
    for name in [name for name, role in roles.items() if role == "amount"]:
        money = next((other for other in meanings if _has_currency_beside(name, other, meanings)), None)
        if money is not None and _may_be_counts(cells[name]) and not _may_be_the_same(name, money, meanings, cells):
            found[name] = Meaning("count", Evidence("count", "the money beside it", money), MEASURED)
    if len({*roles.values()}) < _FEWEST_ROLES or "count" not in roles.values() or len(roles) > _MOST_OF_ANY_ROLE:
        return found
    whole = [name for name in roles if _may_be_counts(cells[name])]
    values = {name: cells[name].likely_numbers for name in whole}
    for name in whole:
        cells[name].release_numbers()
    for three in permutations(values, 3):
        of_three = sorted(found[name].role for name in three)
        is_provable = {*of_three} == {"amount", "count"} or of_three == ["count", "count", "number"]
        if is_provable and three[1] < three[2] and _is_sum(*(values[name] for name in three)):
            says = f"{three[0]} = {three[1]} + {three[2]}"
            for name in [name for name in three if found[name].role != "count"]:
                found[name] = Meaning("count", Evidence("count", "its cells", says), "events")
    return found


def _may_be_counts(column_cells: ColumnCells) -> bool:
    """Return whether numbers are whole, and nothing says that they are money."""
    return column_cells.is_number and not column_cells.has_currency and column_cells.is_whole


def _has_currency_beside(name: str, other: str, meanings: Mapping[str, Meaning]) -> bool:
    """Return whether *other* is called as *name* is, but for the currency beside it."""
    if name == other or meanings[other].role != "amount" or not currencies_in(other, is_header=True):
        return False
    of_name, of_other = (
        sorted(word.removesuffix("s") for word in folded_header(text).split())
        for text in (name, BRACKETS.sub(" ", other))
    )
    return of_name == of_other


def _may_be_the_same(name: str, money: str, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> bool:
    """Return whether a column may be the *money* beside it in the currency of each row."""
    values, of_money = cells[name].likely_numbers, cells[money].likely_numbers
    cells[name].release_numbers()
    cells[money].release_numbers()
    codes = [other for other, known in meanings.items() if known.role == "currency"]
    if not codes:
        return cells[money].is_whole
    said = next(iter(currencies_in(money, is_header=True)), "USD")
    of_code = [next(iter(currencies_of_code(text)), "") for text in cells[codes[0]].texts]
    usual = np.array([float(USD_PER_UNIT[code] / USD_PER_UNIT[said]) if code else np.nan for code in of_code])
    rates = np.append(usual, np.nan)[cells[codes[0]].codes]
    is_known = ~np.isnan(values * of_money * rates) & (values != 0) & (of_money != 0)
    if not is_known.any():
        return True
    values, of_money, rates = values[is_known], of_money[is_known], rates[is_known]
    if (rates == 1).any() and (np.abs(values - of_money)[rates == 1] > 1).any():
        return False
    return bool(1 / _FAR < np.median(of_money / values / rates) < _FAR)


def _is_sum(total: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Return whether one column is the sum of two in all rows; in three rows at least none of them is 0."""
    for rows in (slice(_FIRST), slice(None)):
        sums, parts = total[rows], (first[rows], second[rows])
        off = np.abs(sums - parts[0] - parts[1])
        if (off > _ROUNDED + 1e-9 * np.abs(sums)).any():  # of a cell without a number it is not known
            return False
    has_all = ~np.isnan(total + first + second) & (total != 0) & (first != 0) & (second != 0)
    return len(np.unique(second[has_all])) >= _FEWEST_VALUES
