"""Numbers as people read them: one rule for tables, sentences, axes, tooltips, mails, terminals and spreadsheets.

A column has as many decimal places as its usual interval needs, or without intervals as its usual number does, and all
its numbers have the same. Nothing is shortened to thousands or millions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Any, Final, Literal, NamedTuple

NumberKind = Literal["money", "share", "count", "number", "rate", "change", "points"]
"""The unit of a number: dollars, a share, a count, a plain number or rate, a change with its sign, a difference of
shares in percentage points with its sign. Shares, changes and differences are fractions of 1."""

_PERCENT: Final = frozenset({"share", "change", "points"})
_SIGNED: Final = frozenset({"change", "points"})
RARE: Final = 10.0
"""A count below it has no percentage: "+3,329%" on an expected 0.17 purchases says nothing."""
_HALF_OF_STEP: Final = 3.55  # a half-width gets one digit above this many steps, two below
_MOST_PLACES: Final = 6
_MOST_TICKS: Final = 6


class Scale(NamedTuple):
    """How the numbers of a column are written.

    Attributes:
        kind: their unit.
        places: decimal places, of percents where they are percents.
    """

    kind: NumberKind
    places: int

    @classmethod
    def of(cls, kind: NumberKind, values: Iterable[Any] = (), half_widths: Iterable[float] = ()) -> Scale:
        """Return the scale of a column with *values*, whose intervals reach *half_widths* up and down."""
        sizes = [abs(float(value)) for value in values if is_finite(value)]
        halves = [float(half) for half in half_widths if is_finite(half) and half > 0]
        if kind in ("number", "rate") and not halves and all(size.is_integer() for size in sizes):
            return cls(kind, 0)
        sizes = [size for size in sizes if size]
        step = step_of(median(halves)) if halves else None
        return cls(kind, places_of(kind, step=step, usual=median(sizes) if sizes else 1.0))

    @classmethod
    def of_axis(cls, kind: NumberKind, largest: float) -> Scale:
        """Return the scale of the ticks of an axis from 0 to about *largest*."""
        factor = 100 if kind in _PERCENT else 1
        least = factor * (largest if largest > 0 else 1.0) / _MOST_TICKS
        power = math.floor(math.log10(least))
        step_power = power if least <= 5 * 10.0**power else power + 1  # ticks are 1, 2 or 5 times a power of ten apart
        places = 0 if kind == "count" else min(max(0, -step_power), _MOST_PLACES)
        return cls(kind, 2 if kind == "money" and places == 1 else places)

    def text(self, value: Any, *, is_signed: bool = False) -> str:
        """Return a number with its unit; `n/a` for a missing or infinite one."""
        if not is_finite(value):
            return "n/a"
        number = round((100 if self.kind in _PERCENT else 1) * float(value), self.places)
        sign = "-" if number < 0 else "+" if (is_signed or self.has_sign) and number > 0 else ""
        before = "$" if self.kind == "money" else ""
        after = " pp" if self.kind == "points" else "%" if self.kind in _PERCENT else ""
        return f"{sign}{before}{abs(number):,.{self.places}f}{after}"

    def interval(self, low: Any, high: Any) -> str:
        """Return two bounds, `n/a` if one is missing. Percentage points are named once.

        A bound that is not 0 is not rounded to 0.
        """
        if not (is_finite(low) and is_finite(high)):
            return "n/a"
        lower, upper = (self.near(bound).text(bound) for bound in (low, high))
        return f"{lower.removesuffix(' pp')} to {upper}"

    def near(self, bound: Any) -> Scale:
        """Return the scale of a bound: one or two decimal places more where it would be rounded to 0."""
        if not is_finite(bound) or not 0 < abs(bound) < self.least / 2:
            return self
        return self._replace(places=self.places + (1 if abs(bound) >= self.least / 20 else 2))

    @property
    def has_sign(self) -> bool:
        """Whether its numbers are differences, which have a plus sign."""
        return self.kind in _SIGNED

    @property
    def least(self) -> float:
        """The smallest difference that it shows."""
        return 10.0**-self.places / (100 if self.kind in _PERCENT else 1)

    @property
    def d3(self) -> str:
        """The format of plotly."""
        sign, before = "+" if self.has_sign else "", "$" if self.kind == "money" else ""
        return f"{sign}{before},.{self.places}{'%' if self.kind in _PERCENT else 'f'}"

    @property
    def excel(self) -> str:
        """The format of a cell of a spreadsheet."""
        decimals = f".{'0' * self.places}" if self.places else ""
        if self.kind in _PERCENT:
            return f"0{decimals}%"
        return f"{'[$$-409]' if self.kind == 'money' else ''}#,##0{decimals}"


def step_of(half_width: float) -> float:
    """Return the power of ten that gives *half_width* one or two digits."""
    return 10.0 ** math.floor(math.log10(half_width / _HALF_OF_STEP))


def places_of(kind: NumberKind, *, step: float | None = None, usual: float = 1.0) -> int:
    """Return the decimal places of numbers.

    By the *step* of their intervals; else whole counts, whole dollars from 1,000 on and cents below, a tenth of a
    percent, and three digits of the *usual* number. A usual number is never rounded to 0.
    """
    factor = 100 if kind in _PERCENT else 1
    if kind == "count":
        return 0
    if step is not None:
        places = -round(math.log10(step * factor))
        if kind in ("money", "share"):  # an amount or a share that is not 0 is not said to be 0
            places = max(places, -math.floor(math.log10(factor * usual)))
        places = 2 if kind == "money" and places == 1 else places
    elif kind in _PERCENT:
        places = max(1, -math.floor(math.log10(factor * usual)))
    elif kind == "money":
        places = 0 if usual >= 1000 else 2 if usual >= 0.1 else 1 - math.floor(math.log10(usual))
    else:
        places = 2 - math.floor(math.log10(usual))
    return min(max(0, places), _MOST_PLACES)


def format_number(value: Any, kind: NumberKind = "number", *, places: int | None = None) -> str:
    """Return one number that stands alone: `$42,960`, `12.3%`, `1,234`, `+5.0%` for a change.

    Numbers of one column belong to one `Scale`. *places* are decimal places instead of the usual ones.
    """
    scale = Scale.of(kind, [value])
    return (scale if places is None else scale._replace(places=places)).text(value)


def is_finite(value: Any) -> bool:
    """Return whether *value* is a number, neither missing nor infinite."""
    try:
        return math.isfinite(value)
    except TypeError:  # None and the missing values of pandas
        return False
