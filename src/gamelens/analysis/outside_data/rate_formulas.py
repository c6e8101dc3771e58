"""How a rate is put together from several rows: as a quotient of sums, or weighted by its denominator.

A formula is accepted only if the cells agree within the rounding of both sides, for three different values at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import Series

from gamelens.errors import suggests_names

_FEWEST_VALUES: Final = 3
_FACTORS: Final = (1.0, 1000.0, 100.0)
_FIRST: Final = 200  # rows that few wrong formulas fit
_FIRST_PLACES: Final = 2_000  # rows whose decimal places are looked at
_MOST_PLACES: Final = 12
_TOGETHER: Final = 10_000  # rows that are looked at together


@suggests_names
@dataclass(frozen=True)
class ColumnQuotient:
    """A rate is *factor* * *numerator* / *denominator*, columns of the file."""

    numerator: str
    denominator: str
    factor: float = 1.0

    def __str__(self) -> str:
        factor = f"{self.factor:,.0f} * " if self.factor != 1 else ""
        return f"{factor}{self.numerator} / {self.denominator}"


@suggests_names
@dataclass(frozen=True)
class Weight:
    """A rate is an average, weighted by another *column*."""

    column: str

    def __str__(self) -> str:
        return f"average by {self.column}"


@dataclass(frozen=True, eq=False)
class Written:
    """Numbers of a column, and the decimal places they are written with."""

    values: Series[Any]
    places: int

    def rows(self, rows: slice) -> NDArray[np.float64]:
        """Return the numbers of some rows."""
        numbers: NDArray[np.float64] = self.values.iloc[rows].to_numpy(dtype="float64", na_value=np.nan)
        return numbers


def fitting_formula(
    rate: Written,
    numerators: Mapping[str, Written],
    denominators: Mapping[str, Written],
    stated: Iterable[ColumnQuotient] = (),
) -> ColumnQuotient | None:
    """Return the quotient of two columns that *rate* is in every row, None without one; those *stated* come first."""
    pairs = product(_FACTORS, numerators, denominators)
    tried = [*stated, *(ColumnQuotient(above, below, factor) for factor, above, below in pairs if above != below)]
    for quotient in tried:
        above, below = numerators.get(quotient.numerator), denominators.get(quotient.denominator)
        if above and below and fits(rate, above, below, quotient.factor):
            return quotient
    return None


def places_of(values: Series[Any]) -> int:
    """Return with how many decimal places numbers of a typed column were written."""
    known = values.dropna().to_numpy(dtype="float64")[:_FIRST_PLACES]
    return next(
        (digits for digits in range(_MOST_PLACES) if np.allclose(known, np.round(known, digits), rtol=1e-12, atol=0)),
        _MOST_PLACES,
    )


def fits(rate: Written, above: Written, below: Written, factor: float, fewest: int = _FEWEST_VALUES) -> bool:
    """Return whether *rate* is *factor* * *above* / *below* in every row, with *fewest* different values."""
    rounding = 0.5 * 10.0 ** -np.array([rate.places, above.places, below.places])
    rounding[1:] *= np.array([above.places > 0, below.places > 0])  # counts are exact
    rounding += 1e-12
    slack = rounding[0] * (1 + 1e-9)
    parts = [slice(start, start + _TOGETHER) for start in range(0, len(rate.values), _TOGETHER)]
    for rows in (slice(_FIRST), *parts):
        shown, number, by = rate.rows(rows), above.rows(rows), below.rows(rows)
        known = ~np.isnan(shown) & ~np.isnan(number) & ~np.isnan(by) & (by > 0)
        shown, number, by = shown[known], number[known], by[known]
        low = factor * (number - rounding[1]) / (by + rounding[2])
        high = factor * (number + rounding[1]) / np.maximum(by - rounding[2], 1e-12)
        agrees = (shown >= np.minimum(low, high) - slack) & (shown <= np.maximum(low, high) + slack)
        if not agrees.all() or (rows in parts[:1] and len(np.unique(shown)) < fewest):
            return False
    return bool(parts)
