"""Key numbers: those at the top of a page."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import pandas as pd
from pandas import DataFrame

from gamelens._scales import RARE, NumberKind
from gamelens.analysis.claims.findings import HALF_CENT
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames.written_columns import written_columns
from gamelens.errors import suggests_names


@suggests_names
class KeyNumber(msgspec.Struct, frozen=True):
    """One number for the top of a page.

    Attributes:
        name: what it is, plain text.
        value: the number.
        kind: how it is written: "money", "share", "count" or "number".
        low, high: bounds of its 95% interval, NaN for a number that is counted.
        change: its change as a ratio, 0.05 is 5% more, NaN if it is not compared.
        change_low, change_high: bounds of the 95% interval of the change, NaN if both sides are counted.
        p_adjusted: p-value of the change, corrected for all that were compared with it, NaN if it is the only one.
        against: what the change is from, in a word or two, such as "usual" or the name of the control.
        history: the number in each bucket of time up to now, the oldest first, NaN where it is unknown.
        every: the bucket of *history*.
        target: what the number should be, NaN if nobody set one.
    """

    name: str
    value: float
    kind: NumberKind = "number"
    low: float = math.nan
    high: float = math.nan
    change: float = math.nan
    change_low: float = math.nan
    change_high: float = math.nan
    p_adjusted: float = math.nan
    against: str = "before"
    history: tuple[float, ...] = ()
    every: str = "day"
    target: float = math.nan

    @property
    def is_clear(self) -> bool:
        """Whether its change is beyond chance, by its interval and by its corrected p-value where it has one.

        A counted change was not judged.
        """
        return (self.change_low > 0 or self.change_high < 0) and not self.p_adjusted >= LEVEL

    def over_time(self, history: Iterable[float | None], *, every: str = "day", target: float = math.nan) -> KeyNumber:
        """Return the number with its *history*, a value for each bucket of time, the oldest first, and its *target*."""
        values = tuple(math.nan if pd.isna(value) else float(value) for value in history)
        return msgspec.structs.replace(self, history=values, every=every, target=target)

    @classmethod
    def measured(cls, name: str, result: DataFrame, column: str) -> KeyNumber:
        """Return the number of the first row of *result*, in the unit and with the interval that its analysis lists."""
        written = written_columns(result)
        number = next(candidate for candidate in written if candidate.name == column)
        low, high = next(
            (candidate.place, candidate.upper)
            for candidate in written
            if candidate.number == column and candidate.upper is not None
        )
        values = result.iloc[0, [number.place, low, high]].astype("float64")
        return cls(name, values.iloc[0], number.column.written, values.iloc[1], values.iloc[2])

    @classmethod
    def compared(cls, name: str, value: float, before: float, kind: NumberKind = "number") -> KeyNumber:
        """Return a counted *value* with its change from *before*.

        The change is unknown where *before* is not above 0, is money below half a cent, or counts fewer than ten.
        """
        least = {"money": HALF_CENT, "count": RARE}.get(kind, 0.0)
        is_known = not (pd.isna(value) or pd.isna(before)) and before > 0 and before >= least
        return cls(name, value, kind, change=float(value / before - 1) if is_known else math.nan)
