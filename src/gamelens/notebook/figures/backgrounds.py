"""What stands behind lines over time: the period before as pale lines, and releases, campaigns and holidays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import pandas as pd
from pandas import DataFrame
from plotly.graph_objects import Figure, Scatter

from gamelens.analysis.health import BoardNotes
from gamelens.analysis.tidy_frames.columns import Column, name_of
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.analysis.tidy_frames.frame_periods import visible_period
from gamelens.notebook.figures.alt_text import short_list
from gamelens.notebook.figures.figure_frame import is_cut, one_row_each
from gamelens.notebook.figures.theme import theme, translucent
from gamelens.notebook.labels import escape, shorten
from gamelens.receipt_text import period_text
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

Notes = str | Path | BoardNotes

_NOTE_ROWS: Final = 3  # rows of names, so that names of near days do not cover each other
_LONGEST_NAME: Final = 24
_DAY: Final = pd.Timedelta(days=1)


def table_of(rows: DataFrame, value: str, *, is_sum: bool) -> DataFrame:
    """Return *value* by timestamp, one column for each `_name`. A bucket without a row of a sum counts as 0."""
    table = rows.pivot(index="timestamp", columns="_name", values=value)
    return table.astype("float64").where(table.notna(), 0.0 if is_sum else float("nan"))


def pale_traces(
    frame: DataFrame,
    previous: DataFrame,
    value: str,
    unit: Column,
    by: str | Sequence[str] | None,
    colours: Mapping[str, str],
) -> dict[str, Scatter]:
    """Return the lines of the period before by name, its days moved onto the days of *frame*: the first ones coincide.

    Raises:
        BadQuery: a name has several rows in one bucket.
    """
    begins = [pd.Timestamp(period.start) for period in map(_period, (frame, previous)) if period]
    rows = one_row_each(previous.assign(_name=series_names(previous, by)), ["timestamp", "_name"])
    table = table_of(rows, value, is_sum=unit.is_sum and not is_cut(previous))
    if len(begins) > 1:
        table.index = table.index + (begins[0] - begins[1])
    return {
        name: Scatter(
            x=table.index,
            y=table[name],
            mode="lines",
            line={"color": translucent(colour, 0.45), "width": 2},
            showlegend=False,
            hoverinfo="skip",
        )
        for name, colour in colours.items()
        if name in table
    }


def _period(frame: DataFrame) -> Interval | None:
    """Return the days of *frame* that have rows, so that a part of a longer answer is that part."""
    return visible_period(frame, Receipt.of(frame.attrs).asked.every or "day")


def words_on_previous(previous: DataFrame | None) -> str:
    """Return what the pale lines are, for the subtitle of a figure."""
    if previous is None:
        return ""
    period = _period(previous)
    return f", faint: {period_text(period)}" if period else ", faint: the period before"


def notes_about(frame: DataFrame, value: str, notes: Notes | None) -> BoardNotes:
    """Return the annotations of *notes* that overlap the days of *frame* and are about its games and its *value*.

    Raises:
        BadQuery: the file of notes cannot be read, or an entry breaks a rule.
    """
    if notes is None or not len(frame):
        return BoardNotes()
    read = notes if isinstance(notes, BoardNotes) else BoardNotes.read(notes)
    days, games = frame["timestamp"].dt.date, games_of(frame)
    about = [
        note
        for note in read.annotations
        if note.begins <= days.max() and note.ends >= days.min()
        if note.metric in (None, value, name_of(value)) and note.segment is None
        if note.game is None or not games or note.game in games
    ]
    return BoardNotes(annotations=tuple(about))


def games_of(frame: DataFrame) -> set[str]:
    """Return titles and ids of the games that *frame* names."""
    return {str(game) for name in ("game", "game_id") if name in frame for game in frame[name].dropna().unique()}


def draw_notes(figure: Figure, notes: BoardNotes, games: Collection[str] = (), **place: int) -> None:
    """Shade the days of *notes*, named on top, in the panel at *place* (row, col): those about *games*, or all."""
    shown = [note for note in notes.annotations if not games or note.game is None or note.game in games]
    for number, note in enumerate(shown):
        figure.add_vrect(
            x0=pd.Timestamp(note.begins, tz="UTC") - _DAY / 2,
            x1=pd.Timestamp(note.ends, tz="UTC") + _DAY / 2,
            fillcolor=translucent(theme().muted, 0.16),
            line_width=0,
            layer="below",
            annotation={
                "text": escape(shorten(note.name, _LONGEST_NAME)),
                "font": {"size": 11, "color": theme().muted},
                "hovertext": escape(f"{note.kind} {note.name}"),
                "yshift": -14 * (number % _NOTE_ROWS),
            },
            annotation_position="top left",
            **place,
        )


def words_on_notes(notes: BoardNotes) -> str:
    """Return which days are shaded, for the subtitle of a figure."""
    names: Sequence[str] = [note.name for note in notes.annotations]
    return f", shaded: {short_list([*dict.fromkeys(names)])}" if names else ""
