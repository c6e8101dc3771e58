"""The columns of a table as texts: names, units, and numbers as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens._scales import Scale, is_finite
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.column_units import (
    ROW_UNITS,
    UNIT,
    Bounds,
    ColumnUnit,
    bounds_of,
    has_units,
    name_of,
    scales_of,
    units_of,
)
from gamelens.catalog import find_metric
from gamelens.notebook.labels import bucket_heading, bucket_text, day, period_text
from gamelens.receipts import Receipt
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.intervals import Interval

_INTERVAL: Final = "Interval"
_NAMES: Final = {
    "ad_arpdau": "Ad ARPDAU",
    "ad_revenue": "Ad revenue",
    "api": "API",
    "chance_best": "Probability of being the best",
    "control_value": "Value of the control",
    "cpi": "Cost per install",
    "ecpm": "eCPM",
    "first_build": "Build",
    "fit_p_value": "P-value of the fit",
    "geo": "Country",
    "held_out_error": "Held-out error",
    "held_out_misfit": "Held-out misfit",
    "iap_arpdau": "Purchase ARPDAU",
    "impressions_per_dau": "Ads per player",
    "is_chosen": "Chosen",
    "is_moved": "Moved",
    "is_outside": "Outside",
    "is_paid_back": "Paid back",
    "is_projected": "Projected",
    "is_suspect": "Suspect",
    "minimal_lift": "Smallest detectable change",
    "p_adjusted": "P-value, corrected",
    "p_days": "P-value of the days",
    "p_value": "P-value",
    "quarter_lift": "After three months",
    "revenue_share": "Revenue share",
    "says": "Finding",
    "sure_from": "Needed to be sure",
}


class ColumnTexts:
    """A column of a table: its name, its unit and its cells as texts. None of them is escaped.

    Attributes:
        column: the name in the frame. For bounds it is that of the lower one.
        name: the heading.
        unit: words for the unit, empty where the name or the number says it.
        is_number: whether it is aligned right.
        is_day: whether its cells are days.
        kind: how its numbers are written.
        values: the cells of the frame.
    """

    def __init__(
        self, frame: DataFrame, place: int, unit: ColumnUnit, bounds: Bounds, metrics: list[str] | None
    ) -> None:
        names = [str(name) for name in frame.columns]
        measured = self.column = names[place]
        self.values: list[Any] = frame.iloc[:, place].astype("object").tolist()
        self._upper: list[Any] | None = None
        for number, pairs in bounds.items():
            if place in (uppers := dict(pairs)):
                self._upper, measured = frame.iloc[:, uppers[place]].astype("object").tolist(), number
        dtype = frame.dtypes.iloc[place]
        self._is_truth = pd.api.types.is_bool_dtype(dtype)
        self.is_number = pd.api.types.is_numeric_dtype(dtype) and not self._is_truth
        self._is_p_value = measured.startswith("p_") or measured.endswith("p_value")
        self._is_name = isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(dtype)
        if pd.api.types.is_integer_dtype(dtype) and unit.kind == "number":
            unit = unit._replace(kind="count")
        self.kind = unit.kind
        self._rows, self._scales = scales_of(frame, measured, unit.kind, bounds)
        self._has_negative = self.is_number and any(is_finite(value) and value < 0 for value in self.values)
        moments = [value for value in self.values if isinstance(value, datetime) and not pd.isna(value)]
        self._has_hours = any((value.hour, value.minute) != (0, 0) for value in moments)
        self.name = _heading(self.column, metrics)
        if self._upper is not None:
            is_beside = names.index(measured) == place - 1 if measured else True
            self.name = _INTERVAL if is_beside else f"{_INTERVAL} of {_heading(measured, metrics).lower()}"
        self._every, self._period = None, ""
        if self.column == "timestamp":
            receipt = Receipt.of(frame.attrs)
            self._every, interval = receipt.asked.every, receipt.interval
            if self._every == "all" and interval is not None and not self._has_hours:
                self._period = period_text(interval) if {*moments} == {interval.start} else ""
            is_time = self._has_hours and self._every in (None, "day")
            self.name = "Period" if self._period else "Time" if is_time else bucket_heading(self._every)
        self.is_day = pd.api.types.is_datetime64_any_dtype(dtype) and not self._period
        words = unit.words if self.is_number and self._upper is None else ""
        is_plain = unit.kind == "number" and words not in USD_PER_UNIT
        self.unit = "" if words.casefold() in self.name.casefold() or is_plain else words

    def text(self, row: int) -> str:
        """Return the cell of a row."""
        value = self.values[row]
        if self._is_name and pd.isna(value):
            return UNKNOWN
        if self._upper is not None:
            return self._scale(row).interval(value, self._upper[row])
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
        if value is None or value is pd.NA:
            return "not clear" if self._is_truth else UNKNOWN
        return str(value)

    def number_text(self, value: Any, row: int | None = None) -> str:
        """Return a number in the unit of the column or, if it has one, of the *row*.

        The difference of two shares is in percentage points.
        """
        if self._is_p_value and is_finite(value):
            return f"{float(value):.3f}" if value >= 0.001 else "< 0.001"
        scale = self._scale(row)
        is_difference = self._has_negative or scale.has_sign  # which may be said to be 0
        if not is_difference and is_finite(value) and 0 < value < scale.least / 2:
            return f"< {scale.text(scale.least)}"
        return scale.text(value)

    def _scale(self, row: int | None) -> Scale:
        return self._scales[self._rows[row or 0] if self._rows else ""]


def columns_of(frame: DataFrame) -> list[ColumnTexts]:
    """Return the columns of *frame* as texts.

    Columns `low` and `high`, and `x_low` and `x_high`, become one, the units of rows none.
    """
    names = [str(name) for name in frame.columns]
    frame = frame.set_axis(names, axis=1)
    metrics = list(Receipt.of(frame.attrs).asked.metrics or ()) or None
    is_told = has_units(frame) and all(unit in (*ROW_UNITS, "USD") for unit in frame[UNIT])  # by the numbers
    bounds, units = bounds_of(frame), units_of(frame, metrics)
    left_out = {upper for pairs in bounds.values() for _, upper in pairs} | ({names.index(UNIT)} if is_told else set())
    shown = [place for place in range(len(names)) if place not in left_out]
    return [ColumnTexts(frame, place, units[place], bounds, metrics) for place in shown]


def _heading(column: str, metrics: list[str] | None) -> str:
    """Return the name of a column, a field of a metric behind that of the metric."""
    for metric in metrics or ():
        known, part = find_metric(metric), column.removeprefix(f"{metric}_")
        if known is not None and part != column and column in known.columns.values():
            return f"{name_of(metric)}, {name_of(part).lower()}"
    text = _NAMES.get(column) or name_of(column)
    return text[:1].upper() + text[1:] if text != "eCPM" else text
