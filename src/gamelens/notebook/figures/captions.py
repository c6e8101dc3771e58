"""What a figure says about itself: which number it shows, its title, its unit."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from pandas import DataFrame

from gamelens.analysis.tidy_frames import asked_metrics, label_columns, value_columns
from gamelens.catalog import METRICS
from gamelens.errors import BadQuery
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import ColumnUnit, escape, name_of, shorten, unit_of
from gamelens.wire.receipts import Receipt

# What fits into 760 pixels of each size.
TITLE_LETTERS: Final = 76
SUBTITLE_LETTERS: Final = 122
SOURCE_LETTERS: Final = 96


def main_value(frame: DataFrame) -> str:
    """The value column a reader would look at first.

    Raises:
        BadQuery: the frame has no number.
    """
    values = value_columns(frame)
    for metric in asked_metrics(frame):
        field = METRICS[metric].sorts_by if metric in METRICS else metric
        found = next((name for name in (f"{metric}_{field}", field) if name in values), None)
        if found:
            return found
    if not values:
        raise BadQuery("frame", [str(name) for name in frame.columns], "has no numbers to draw")
    return values[0]


def unit_in(frame: DataFrame, value: str) -> ColumnUnit:
    """Unit of the column *value*, read with the metrics the frame was asked for."""
    return unit_of(value, asked_metrics(frame))


def title_of(frame: DataFrame, value: str, by: str | Sequence[str] | None) -> str:
    """What is shown and by what, in words: `Ad revenue by network`."""
    metric = next((name for name in asked_metrics(frame) if value in _values_of(name)), value)
    words = words_by(frame, by)
    return name_of(metric) + (f" by {words}" if words else "")


def words_by(frame: DataFrame, by: str | Sequence[str] | None) -> str:
    """The dimensions a figure is split by, in words; all of the frame's when *by* is None."""
    columns = label_columns(frame) if by is None else [by] if isinstance(by, str) else list(by)
    return " and ".join(name_of(column)[:1].lower() + name_of(column)[1:] for column in columns)


def words_per_bucket(frame: DataFrame, unit: ColumnUnit) -> str:
    """The unit, and for sums the bucket they are summed in: `USD per day`."""
    every = Receipt.of(frame.attrs).asked.every
    return f"{unit.words} per {every}" if unit.is_sum and every in ("day", "week", "month") else unit.words


def headline(title: str, subtitle: str) -> str:
    """Title and subtitle as plotly's markup, in lines that a narrow page has room for."""
    above = "<br>".join(f"<b>{escape(line)}</b>" for line in _lines(title, TITLE_LETTERS))
    below = "<br>".join(map(escape, _lines(subtitle, SUBTITLE_LETTERS)))
    return f"{above}<br><span style='font-size:13px;color:{theme().muted}'>{below}</span>"


def source(line: str) -> str:
    """The line under a figure as plotly's markup, broken between its parts."""
    rows = [""]
    for part in line.split(" · "):
        joined = f"{rows[-1]} · {part}" if rows[-1] else part
        rows[-1:] = [joined] if len(joined) <= SOURCE_LETTERS or not rows[-1] else [rows[-1], part]
    return "<br>".join(escape(shorten(row, 2 * SOURCE_LETTERS)) for row in rows)


def _lines(text: str, longest: int) -> list[str]:
    return wrap(shorten(" ".join(text.split()), 3 * longest), longest) or [""]


def _values_of(metric: str) -> tuple[str, ...]:
    field = METRICS[metric].sorts_by if metric in METRICS else metric
    return (field, f"{metric}_{field}")
