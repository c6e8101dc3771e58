"""The columns of a table as texts: names, units, and numbers as people read them."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.catalog import find_metric
from gamelens.notebook.labels import (
    KINDS,
    ColumnUnit,
    bucket_heading,
    bucket_text,
    day,
    name_of,
    period_text,
    unit_of,
)
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

_INTERVAL: Final = "Interval"
_NAMES: Final = {
    "api": "API",
    "chance_best": "Chance to be the best",
    "ad_revenue": "Ad revenue",
    "control_value": "Value of the control",
    "cpi": "Cost per install",
    "ecpm": "eCPM",
    "first_build": "Build",
    "fit_p_value": "P-value of the fit",
    "impressions_per_dau": "Ads per player",
    "minimal_lift": "Smallest visible change",
    "p_adjusted": "P-value, corrected",
    "p_days": "P-value of the days",
    "p_value": "P-value",
    "quarter_lift": "With four times the players",
    "revenue_share": "Revenue share",
    "says": "Finding",
}
_EFFECTS: Final = frozenset({"volume", "mix", "price"})
_BOTH_SIDES: Final = ("before", "after", "change")
_UNIT: Final = "unit"
_OF_ROW: Final = frozenset({"value", "control_value", "difference"})
"""Columns that are in the unit of their row, if the frame has a column for it."""
_SHARES: Final = frozenset({"share", "expected_share", "retention", "weight", "conversion", "of_previous"})


class ColumnTexts:
    """A column of a table: its name, its unit and its cells as texts. None of them is escaped.

    Attributes:
        column: the name in the frame. For bounds it is `low`.
        name: the heading.
        unit: words for the unit, empty where the name or the number says it.
        is_number: whether it is aligned right.
        is_day: whether its cells are days.
        values: the cells of the frame.
    """

    def __init__(self, frame: DataFrame, place: int, metrics: list[str] | None) -> None:
        names = [str(name) for name in frame.columns]
        measured = self.column = names[place]
        self.values: list[Any] = frame.iloc[:, place].astype("object").tolist()
        self._upper: list[Any] | None = None
        if self.column == "low" and "high" in names:
            self._upper = frame.iloc[:, names.index("high")].astype("object").tolist()
            measured = next((name for name in reversed(names[:place]) if _is_measured(frame, name)), "")
        dtype = frame.dtypes.iloc[place]
        self.is_number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        self._is_p_value = measured.startswith("p_") or measured.endswith("p_value")
        is_amount = set(names) > _EFFECTS and (measured in _EFFECTS or measured in _BOTH_SIDES)
        self._unit = ColumnUnit("money", "USD") if is_amount else _unit(measured, metrics)
        self._is_name = isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(dtype)
        self._units = frame[_UNIT].tolist() if measured in _OF_ROW and _has_units(frame) else None
        self._is_difference = measured == "difference"
        self._is_whole = pd.api.types.is_integer_dtype(dtype)
        moments = [value for value in self.values if isinstance(value, datetime) and not pd.isna(value)]
        self._has_hours = any((value.hour, value.minute) != (0, 0) for value in moments)
        self.name = _INTERVAL if self._upper is not None else _heading(self.column, metrics)
        self._every, self._period = None, ""
        if self.column == "timestamp":
            receipt = Receipt.of(frame.attrs)
            self._every, interval = receipt.asked.every, receipt.interval
            if self._every == "all" and interval is not None and not self._has_hours:
                self._period = period_text(interval) if {*moments} == {interval.start} else ""
            is_time = self._has_hours and self._every in (None, "day")
            self.name = "Period" if self._period else "Time" if is_time else bucket_heading(self._every)
        self.is_day = pd.api.types.is_datetime64_any_dtype(dtype) and not self._period
        words = self._unit.words if self.is_number and self._upper is None else ""
        self.unit = "" if words.casefold() in self.name.casefold() or self._unit.kind == "number" else words

    def text(self, row: int) -> str:
        """Return the cell of a row."""
        value = self.values[row]
        if self._is_name and pd.isna(value):
            return UNKNOWN
        if self._upper is not None:
            low, high = self.number_text(value, row), self.number_text(self._upper[row], row)
            return "n/a" if "n/a" in (low, high) else f"{low} to {high}"
        if self.is_number or isinstance(value, float):
            return self.number_text(value, row)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Interval):
            return period_text(value)
        if isinstance(value, datetime):
            if pd.isna(value):
                return "n/a"
            with_hours = f"{day(value)} {value:%H:%M}" if self._has_hours else ""
            return with_hours or self._period or bucket_text(value, self._every)
        return UNKNOWN if value is None or value is pd.NA else str(value)

    def number_text(self, value: Any, row: int | None = None) -> str:
        """Return a number in the unit of the column or, if it has one, of the *row*.

        The difference of two shares is in percentage points.
        """
        if value is None or pd.isna(value) or not math.isfinite(value):
            return "n/a"
        number = float(value)
        if self._is_p_value:
            return f"{number:.3f}" if number >= 0.001 else "< 0.001"
        kind = self._unit.kind if self._units is None or row is None else self._units[row]
        if kind == "share":
            return f"{100 * number:+.1f} pp" if self._is_difference else f"{number:.1%}"
        if self._is_whole or kind == "count":
            return f"{number:,.0f}"
        sign = f"{'-' if number < 0 else ''}{'$' if kind == 'money' else ''}"
        return sign + _readable(abs(number), is_money=kind == "money")


def columns_of(frame: DataFrame) -> list[ColumnTexts]:
    """Return the columns of *frame* as texts.

    Columns `low` and `high` become one, the units of rows none.
    """
    names = [str(name) for name in frame.columns]
    metrics = list(Receipt.of(frame.attrs).asked.metrics or ()) or None
    left_out = ({"high"} if "low" in names else set()) | ({_UNIT} if _has_units(frame) else set())
    return [ColumnTexts(frame, place, metrics) for place, name in enumerate(names) if name not in left_out]


def _readable(size: float, *, is_money: bool) -> str:
    """Return a number with as many places as a reader needs."""
    if size >= 1000:
        return f"{size:,.0f}"
    if is_money and size >= 0.1:
        return f"{size:,.2f}"
    return f"{size:.3g}"


def _heading(column: str, metrics: list[str] | None) -> str:
    """Return the name of a column, a field of a metric behind that of the metric."""
    for metric in metrics or ():
        known, part = find_metric(metric), column.removeprefix(f"{metric}_")
        if known is not None and part != column and column in known.columns.values():
            return f"{name_of(metric)}, {name_of(part).lower()}"
    text = _NAMES.get(column) or name_of(column)
    return text[:1].upper() + text[1:] if text != "eCPM" else text


def _unit(column: str, metrics: list[str] | None) -> ColumnUnit:
    return ColumnUnit("share", name_of(column)) if column in _SHARES else unit_of(column, metrics)


def _has_units(frame: DataFrame) -> bool:
    """Return whether each row has a unit of its own."""
    return _UNIT in frame and bool(frame[_UNIT].isin(KINDS).all())


def _is_measured(frame: DataFrame, name: str) -> bool:
    """Return whether *name* is a column that `low` and `high` can be the bounds of."""
    return pd.api.types.is_float_dtype(frame[name].dtype)
