"""Numbers that are money as amounts beside them prove it: gross is net and fee in every row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.outside_data.roles import ColumnCells, Evidence, Meaning

RELATED: Final = "related"
"""Concept of an amount that others prove, which is neither called a cost nor an income."""
_MOST_COLUMNS: Final = 8
_FEWEST_VALUES: Final = 3
_ROUNDED: Final = 0.0051


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


def _is_sum(total: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Return whether one column is the sum of two in all rows; in three rows at least none of them is 0."""
    known = ~(np.isnan(total) | np.isnan(first) | np.isnan(second))
    if known.sum() < _FEWEST_VALUES:
        return False
    are_equal = np.abs(total - first - second)[known] <= _ROUNDED + 1e-9 * np.abs(total[known])
    has_all = known & (total != 0) & (first != 0) & (second != 0)
    return bool(are_equal.all()) and len(np.unique(second[has_all])) >= _FEWEST_VALUES
