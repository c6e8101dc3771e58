"""Texts of a figure: the column it shows, its title, its unit and its source line."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from pandas import DataFrame

from gamelens.analysis.tidy_frames import label_columns, queried_metrics, value_columns
from gamelens.analysis.tidy_frames.columns import Column, name_of
from gamelens.analysis.tidy_frames.frame_columns import catalog_of
from gamelens.analysis.tidy_frames.written_columns import written_columns
from gamelens.errors import BadQuery
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import shorten
from gamelens.receipts import Receipt

# Letters of each font size that fit into 760 pixels.
TITLE_LETTERS: Final = 76
SUBTITLE_LETTERS: Final = 122
SOURCE_LETTERS: Final = 96


def main_value(frame: DataFrame) -> str:
    """Return the value column that a figure of *frame* shows unless another is named.

    It belongs to the first metric of the query; else it is the first number of the frame.

    Raises:
        BadQuery: the frame has no number.
    """
    values = value_columns(frame)
    if not values:
        raise BadQuery("frame", [str(name) for name in frame.columns], "has no numbers to draw")
    return next((metric for metric in queried_metrics(frame) if metric in values), values[0])


def unit_in(frame: DataFrame, value: str) -> Column:
    """Return the unit of the column *value*, given the metrics of the frame's query."""
    return next(written.column for written in written_columns(frame) if written.name == value)


def title_of(frame: DataFrame, value: str, by: str | Sequence[str] | None) -> str:
    """Return the metric and the dimensions of a figure in words: `Ad revenue by network`."""
    words = words_by(frame, by)
    return name_of(value, catalog_of(frame)) + (f" by {words}" if words else "")


def words_by(frame: DataFrame, by: str | Sequence[str] | None) -> str:
    """Return the dimensions of a figure in words. None means all dimensions of the frame."""
    columns = label_columns(frame) if by is None else [by] if isinstance(by, str) else list(by)
    return " and ".join(name_of(column)[:1].lower() + name_of(column)[1:] for column in columns)


def words_per_bucket(frame: DataFrame, unit: Column) -> str:
    """Return the unit, and the bucket: `USD per day` for sums, `players, by week` for others that are not by day."""
    every = Receipt.of(frame.attrs).asked.every
    if unit.is_sum and every in ("day", "week", "month"):
        return f"{unit.unit_words} per {every}"
    return f"{unit.unit_words}, by {every}" if every in ("week", "month") else unit.unit_words


def date_formats(frame: DataFrame) -> dict[str, str]:
    """Return the formats of a time axis. Its ticks and tooltips name the bucket: `Week of 2 Nov 2026`."""
    every = Receipt.of(frame.attrs).asked.every
    tooltips = {"week": "Week of %-d %b %Y", "month": "%B %Y"}
    return {
        "tickformat": "%b %Y" if every == "month" else "%-d %b",
        "hoverformat": tooltips.get(every or "", "%a %-d %b %Y"),
    }


def headline(title: str, subtitle: str) -> str:
    """Return title and subtitle as plotly markup, in lines that fit a narrow page."""
    above = "<br>".join(f"<b>{escape(line)}</b>" for line in _lines(title, TITLE_LETTERS))
    below = "<br>".join(map(escape, _lines(subtitle, SUBTITLE_LETTERS)))
    return f"{above}<br><span style='font-size:13px;color:{theme().muted}'>{below}</span>"


def source(line: str) -> str:
    """Return the source line of a figure as plotly markup, broken between its parts."""
    rows = [""]
    for part in line.split(" · "):
        joined = f"{rows[-1]} · {part}" if rows[-1] else part
        rows[-1:] = [joined] if len(joined) <= SOURCE_LETTERS or not rows[-1] else [rows[-1], part]
    return "<br>".join(escape(shorten(row, 2 * SOURCE_LETTERS)) for row in rows)


def _lines(text: str, longest: int) -> list[str]:
    return wrap(shorten(" ".join(text.split()), 3 * longest), longest) or [""]
