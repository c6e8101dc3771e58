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


def _is_sum(total: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Return whether one column is the sum of two in all rows; in three rows at least none of them is 0."""
    for rows in (slice(_FIRST), slice(None)):
        sums, parts = total[rows], (first[rows], second[rows])
        off = np.abs(sums - parts[0] - parts[1])
        if (off > _ROUNDED + 1e-9 * np.abs(sums)).any():  # of a cell without a number it is not known
            return False
    has_all = ~np.isnan(total + first + second) & (total != 0) & (first != 0) & (second != 0)
    return len(np.unique(second[has_all])) >= _FEWEST_VALUES
