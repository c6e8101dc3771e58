"""Tables of a report: readable headings, units and numbers, and no index.

A kernel that runs for a report has the environment variable `REPORT`; its frames are then shown like this.
"""

from __future__ import annotations

import math
import re
import sys
from datetime import datetime
from typing import Any, Final

import pandas as pd
from pandas import DataFrame, RangeIndex

from gamelens.notebook.labels import ColumnUnit, day, escape, name_of, period_text, text_of, unit_of
from gamelens.notebook.table_source import source_html
from gamelens.wire.intervals import Interval
from gamelens.wire.receipts import Receipt

REPORT: Final = "GAMELENS_REPORT"
MOST_ROWS: Final = 12
_INTERVAL: Final = "interval"
_NAMES: Final = {
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
    "timestamp": "Day",
}
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_CLASS: Final = ' class="day"'
_EFFECTS: Final = frozenset({"volume", "mix", "price"})
_BOTH_SIDES: Final = ("before", "after", "change")
_SHARES: Final = frozenset({"share", "expected_share", "retention", "weight", "conversion"})


def show_tables() -> None:
    """Let the notebook of this process, if any, show frames as tables of a report.

    Intervals are shown in words.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        formatter = shell.display_formatter.formatters["text/html"]
        formatter.for_type(DataFrame, table_html)
        formatter.for_type(Interval, lambda interval: f"<p>{period_text(interval)}</p>")


def table_html(frame: DataFrame) -> str:
    """Return the first rows of *frame* as a table, with its source line if it has a receipt.

    A line says how many rows are left out. Columns `low` and `high` become one. An index is shown if it has a name.
    """
    named = frame if isinstance(frame.index, RangeIndex) or not any(frame.index.names) else frame.reset_index()
    shown = named.head(MOST_ROWS)
    metrics = list(Receipt.of(frame.attrs).asked.metrics or ()) or None
    columns = [
        _Column(shown, place, metrics) for place in range(len(shown.columns)) if not _is_upper_bound(shown, place)
    ]
    head = "".join(column.heading() for column in columns)
    rows = "".join(f"<tr>{''.join(column.cell(row) for column in columns)}</tr>" for row in range(len(shown)))
    label = escape(f"Table: {', '.join(column.name for column in columns)}")
    left_out = len(named) - len(shown)
    cut = f'<p class="cut">The first {len(shown):,} of {len(named):,} rows.</p>' if left_out else ""
    return (
        f'<div class="report-table" role="group" aria-label="{label}" tabindex="0"><table class="dataframe">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{cut}{source_html(frame)}"
    )


class _Column:
    """A column of a table: its name, its unit and the texts of its cells."""

    def __init__(self, frame: DataFrame, place: int, metrics: list[str] | None) -> None:
        names = [str(name) for name in frame.columns]
        column = names[place]
        self._values: list[Any] = frame.iloc[:, place].astype("object").tolist()
        self._upper: list[Any] | None = None
        if column == "low" and "high" in names:
            self._upper = frame.iloc[:, names.index("high")].astype("object").tolist()
            column = next((name for name in reversed(names[:place]) if _is_measured(frame, name)), "")
        dtype = frame.dtypes.iloc[place]
        self._is_number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        self._is_p_value = column.startswith("p_") or column.endswith("p_value")
        is_amount = set(names) > _EFFECTS and (column in _EFFECTS or column in _BOTH_SIDES)
        self._unit = ColumnUnit("money", "USD") if is_amount else _unit(column, metrics)
        self._is_name = isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(dtype)
        self._is_whole = pd.api.types.is_integer_dtype(dtype)
        self.name = _INTERVAL.capitalize() if self._upper is not None else _heading(names[place])

    def heading(self) -> str:
        """Return the header cell: the name, and the unit below it."""
        words = self._unit.words if self._is_number and self._upper is None else ""
        is_told = words.casefold() in self.name.casefold() or self._unit.kind == "number"
        unit = "" if is_told else f" <small>{escape(words)}</small>"
        return f'<th scope="col"{self._class()}>{escape(self.name)}{unit}</th>'

    def cell(self, row: int) -> str:
        """Return the cell of a row."""
        text = self._text(row)
        return f"<td{_DAY_CLASS if _DAY.fullmatch(text) else self._class()}>{text}</td>"

    def _class(self) -> str:
        return ' class="number"' if self._is_number else ""

    def _text(self, row: int) -> str:
        value = self._values[row]
        if self._is_name and pd.isna(value):
            return text_of(None)
        if self._upper is not None:
            low, high = self._number(value), self._number(self._upper[row])
            return "n/a" if "n/a" in (low, high) else f"{low} to {high}"
        if self._is_number:
            return self._number(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, datetime) and not pd.isna(value):
            return day(value)
        return text_of(value) if not isinstance(value, float) else self._number(value)

    def _number(self, value: Any) -> str:
        """Return a number in the column's unit."""
        if value is None or pd.isna(value) or not math.isfinite(value):
            return "n/a"
        number = float(value)
        if self._is_p_value:
            return f"{number:.3f}" if number >= 0.001 else "&lt; 0.001"
        if self._unit.kind == "share":
            return f"{number:.1%}"
        if self._is_whole or self._unit.kind == "count":
            return f"{number:,.0f}"
        sign = f"{'-' if number < 0 else ''}{'$' if self._unit.kind == 'money' else ''}".replace("$", "&#36;")
        return sign + _readable(abs(number), is_money=self._unit.kind == "money")


def _readable(size: float, *, is_money: bool) -> str:
    """Return a number with as many places as a reader needs."""
    if size >= 1000:
        return f"{size:,.0f}"
    if is_money and size >= 0.1:
        return f"{size:,.2f}"
    return f"{size:.3g}"


def _heading(column: str) -> str:
    text = _NAMES.get(column) or name_of(column)
    return text[:1].upper() + text[1:] if text != "eCPM" else text


def _unit(column: str, metrics: list[str] | None) -> ColumnUnit:
    return ColumnUnit("share", column) if column in _SHARES else unit_of(column, metrics)


def _is_upper_bound(frame: DataFrame, place: int) -> bool:
    names = [str(name) for name in frame.columns]
    return names[place] == "high" and "low" in names


def _is_measured(frame: DataFrame, name: str) -> bool:
    """Return whether *name* is a column that `low` and `high` can be the bounds of."""
    return pd.api.types.is_float_dtype(frame[name].dtype)
