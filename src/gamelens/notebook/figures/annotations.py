"""Releases, campaigns and holidays as shaded days behind lines over time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import pandas as pd
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.analysis.health import BoardNotes
from gamelens.analysis.tidy_frames.columns import name_of
from gamelens.analysis.tidy_frames.frame_columns import catalog_of
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.alt_text import short_list
from gamelens.notebook.figures.theme import theme, translucent
from gamelens.notebook.labels import shorten

Notes = str | Path | BoardNotes

_NOTE_ROWS: Final = 3  # rows of names, so that names of near days do not cover each other
_LONGEST_NAME: Final = 24
_DAY: Final = pd.Timedelta(days=1)


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
        if note.metric in (None, value, name_of(value, catalog_of(frame))) and note.segment is None
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
