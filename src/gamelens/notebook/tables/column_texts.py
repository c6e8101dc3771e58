"""The columns of a table as texts: names, units, and numbers as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.columns import Column, column_named, name_of
from gamelens.analysis.tidy_frames.written_columns import ROW_UNITS, UNIT, WrittenColumn, has_units, written_columns
from gamelens.catalog import Catalog
from gamelens.notebook.labels import bucket_heading, bucket_text
from gamelens.receipt_text import day_text, period_text
from gamelens.receipts import Receipt
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.intervals import Interval

_INTERVAL: Final = "Interval"


class ColumnTexts:
    """A column of a table: its name, its unit and its cells as texts. None of them is escaped.

    Attributes:
        written: how it is written.
        column: the name in the frame. For bounds it is the name of the lower one.
        name: the heading.
        unit: words for the unit, empty where the name or the number says it.
        is_number: whether it is aligned right.
        is_day: whether its cells are days.
        kind: how its numbers are written.
        values: the cells of the frame.
    """

    def __init__(self, frame: DataFrame, written: WrittenColumn, metrics: list[str]) -> None:
        self.written, unit = written, written.column
        self.column = written.name
        self.values: list[Any] = frame.iloc[:, written.place].astype("object").tolist()
        self._upper = None if written.upper is None else frame.iloc[:, written.upper].astype("object").tolist()
        dtype = frame.dtypes.iloc[written.place]
        self._is_truth = pd.api.types.is_bool_dtype(dtype)
        self.is_number = pd.api.types.is_numeric_dtype(dtype) and not self._is_truth
        self._is_name = isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(dtype)
        self.kind = unit.written
        moments = [value for value in self.values if isinstance(value, datetime) and not pd.isna(value)]
        self._has_hours = any((value.hour, value.minute) != (0, 0) for value in moments)
        receipt = Receipt.of(frame.attrs)
        catalog = Catalog.recorded(receipt.asked.formulas)
        self.name = _heading(unit if unit.name == self.column else column_named(self.column), metrics, catalog)
        if self._upper is not None:
            names = [*frame.columns]
            is_beside = names.index(written.number) == written.place - 1 if written.number else True
            self.name = _INTERVAL if is_beside else f"{_INTERVAL} of {_heading(unit, metrics, catalog).lower()}"
        self._every, self._period = None, ""
        if self.column == "timestamp":
            self._every, interval = receipt.asked.every, receipt.interval
            if self._every == "all" and interval is not None and not self._has_hours:
                self._period = period_text(interval) if {*moments} == {interval.start} else ""
            is_time = self._has_hours and self._every in (None, "day")
            self.name = "Period" if self._period else "Time" if is_time else bucket_heading(self._every)
        self.is_day = pd.api.types.is_datetime64_any_dtype(dtype) and not self._period
        words = unit.unit_words if self.is_number and self._upper is None else ""
        is_plain = unit.kind not in ("money", "share", "count", "change") and words not in USD_PER_UNIT
        self.unit = "" if words.casefold() in self.name.casefold() or is_plain else words

    def text(self, row: int) -> str:
        """Return the cell of a row."""
        value = self.values[row]
        if isinstance(value, list):
            return ", ".join(map(str, value))
        if self._is_name and pd.isna(value):
            return "n/a" if self.written.column.na else UNKNOWN  # without an occasion for a name, or without the name
        if self._upper is not None:
            return self.written.interval_text(value, self._upper[row], row)
        if self.is_number or isinstance(value, float):
            return self.written.text(value, row)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Interval):
            return period_text(value)
        if isinstance(value, datetime):
            if pd.isna(value):
                return "n/a"
            with_hours = f"{day_text(value)} {value:%H:%M}" if self._has_hours else ""
            return with_hours or self._period or bucket_text(value, self._every)
        if value is None or value is pd.NA:
            return "not clear" if self._is_truth else UNKNOWN
        return str(value)


def columns_of(frame: DataFrame) -> list[ColumnTexts]:
    """Return the columns of *frame* as texts.

    Columns `low` and `high`, and `x_low` and `x_high`, become one, the units of rows none.
    """
    metrics = list(Receipt.of(frame.attrs).asked.metrics)
    written = written_columns(frame)
    frame = frame.set_axis([column.name for column in written], axis=1)
    of_row = next((column.name for column in written if column.column.kind == "unit"), UNIT)
    is_told = has_units(frame, of_row) and all(unit in (*ROW_UNITS, "USD") for unit in frame[of_row])  # by the numbers
    uppers = {column.upper for column in written}
    shown = [column for column in written if column.place not in uppers and not (is_told and column.name == of_row)]
    return [ColumnTexts(frame, column, metrics) for column in shown]


def _heading(column: Column, metrics: list[str], catalog: Catalog) -> str:
    """Return the name of a column. The name of a field follows the name of its metric."""
    for metric in metrics:
        known, part = catalog.find(metric), column.name.removeprefix(f"{metric}_")
        if known is not None and part != column.name and column.name in known.columns.values():
            return f"{name_of(metric, catalog)}, {name_of(part).lower()}"
    text = column.heading
    return text[:1].upper() + text[1:] if text != "eCPM" else text
