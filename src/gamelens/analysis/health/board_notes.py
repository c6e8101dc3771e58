"""Notes beside a health board: levels that a person has accepted, and what else happened.

    [[accept]]                       # from `since` on, what the series does is what is usual
    game = "Rooftop Dash"            # its title or id
    metric = "retention_d1"          # its key or name on the board
    segment = "BR"                   # of a row about a segment
    since = 2026-10-29
    by = "Ana Lima"
    on = 2026-11-16
    why = "the tutorial is shorter on purpose"

    [[annotation]]                   # explains the alarms that overlap it; with exempt = true it prevents them
    kind = "campaign"                # or "release", "holiday", "other"
    name = "Launch in Japan"
    from = 2026-10-08
    to = 2026-10-11
    game = "Ember Realms"            # game, metric and segment are optional: without them it is about all
    exempt = true

An incident that is explained stays open, one that is accepted does not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar, get_args

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.health.daily_series import SeriesGrid, series_grid
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.errors import BadQuery, suggests_names

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
NoteKind = Literal["campaign", "release", "holiday", "other"]

_RULES: Final[dict[Any, str]] = {
    date: "must be a day: write 2026-11-16, without quotes",
    bool: "must be true or false, without quotes",
    NoteKind: f"must be one of {', '.join(get_args(NoteKind))}",
}
_RULE_OF_TEXT: Final = "must be a non-empty text in quotes"
Entry = TypeVar("Entry", bound=msgspec.Struct)


@suggests_names
class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A level that a person has accepted as the usual one.

    Attributes:
        game: title or id.
        metric: key or display name of the watched metric.
        since: first day of the level.
        by: the person who accepts it.
        on: the day of the decision.
        why: the reason.
        segment: the segment of the row, None for the whole game.
    """

    game: str
    metric: str
    since: date
    by: str
    on: date
    why: str
    segment: str | None = None


@suggests_names
class Annotation(
    msgspec.Struct, frozen=True, kw_only=True, rename={"begins": "from", "ends": "to", "is_exempt": "exempt"}
):
    """A campaign, a release or a holiday.

    Attributes:
        kind: what it is.
        name: its name.
        begins: its first day.
        ends: its last day.
        game: title or id, None for all games.
        metric: key or display name, None for all metrics.
        segment: a segment, None for all rows.
        is_exempt: its days raise no alarm and are left out of the baseline.
    """

    kind: NoteKind
    name: str
    begins: date
    ends: date
    game: str | None = None
    metric: str | None = None
    segment: str | None = None
    is_exempt: bool = False


@suggests_names
class BoardNotes(msgspec.Struct, frozen=True):
    """Accepted levels and annotations."""

    accepted: tuple[Accepted, ...] = ()
    annotations: tuple[Annotation, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a TOML file as the module's docstring shows it.

        Raises:
            BadQuery: the file cannot be read, or an entry breaks a rule; the error names entry, value and rule.
        """
        try:
            tables = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BadQuery("accept", str(path), f"cannot be read ({error}): name a TOML file that exists") from None
        except tomllib.TOMLDecodeError as error:
            raise BadQuery("accept", str(path), f"is not TOML ({error}): correct that line") from None
        for name in tables:
            if name not in ("accept", "annotation"):
                rule = f"is not a table of {path}: write [[accept]] or [[annotation]]"
                raise BadQuery("accept", name, rule, ("accept", "annotation"))
        notes = cls(_entries(tables, "accept", Accepted), _entries(tables, "annotation", Annotation))
        for note in notes.annotations:
            if note.ends < note.begins:
                rule = f"must not be before from = {note.begins}: correct one of them"
                raise BadQuery("annotation.to", note.ends, rule)
        return notes


def accepted_starts(series: SeriesGrid, notes: BoardNotes) -> Ints:
    """Return the number of the day from which each series has its accepted level.

    It is 0, the first day, without an accepted level.
    """
    starts = np.zeros(len(series.identity), dtype=np.int64)
    for entry in notes.accepted:
        rows = _rows_about(series, entry)
        starts[rows] = np.maximum(starts[rows], _day_number(series, entry.since))
    return starts


def exempt_days(series: SeriesGrid, notes: BoardNotes) -> Flags:
    """Return the days that an annotation exempts, as flags of series by days."""
    flags = np.zeros(series.value.shape, dtype=np.bool_)
    for entry in notes.annotations:
        if entry.is_exempt:
            flags |= _days_of(series, entry)
    return flags


def note_texts(series: SeriesGrid, notes: BoardNotes, since: Ints, is_new_level: Flags) -> list[str]:
    """Return the notes on each day, one series after the other.

    The day on which an incident becomes the new level says so.

    An annotation is about its days, and about the days of an incident that began then or a day later.
    """
    texts = np.full(series.value.shape, "", dtype=object)
    days = np.arange(series.value.shape[1])
    for entry in notes.accepted:
        rows = _rows_about(series, entry)
        is_about = rows[:, None] & (days >= _day_number(series, entry.since))
        texts[is_about] = f"level since {entry.since} accepted by {entry.by} on {entry.on}: {entry.why}"
    for note in notes.annotations:
        noted = _days_of(series, note)
        first, last = _day_number(series, note.begins), _day_number(series, note.ends) + 1
        is_about = noted | (noted.any(axis=1, keepdims=True) & (since >= first) & (since <= last))
        text = f"{note.kind} {note.name}" if note.kind != "other" else note.name
        texts[is_about] = [f"{before}; {text}" if before else text for before in texts[is_about]]
    for row, day in np.argwhere(is_new_level).tolist():
        first = series.days[since[row, day]]
        text = f"new level since {first.day} {first:%b %Y}, against which days are judged from now on"
        texts[row, day] = f"{texts[row, day]}; {text}" if texts[row, day] else text
    return [str(text) for text in texts.ravel()]


@requires(daily=result_of("health.daily(answers)", "timestamp", "game", "value", "part", "whole"))
def unmatched_notes(daily: DataFrame, notes: BoardNotes) -> list[str]:
    """Return a sentence for each note that matches no series of *daily*.

    For example:

        players = lens.query("user_unique", by="game", over="last 14 complete days")
        health.unmatched_notes(health.daily([players]), health.BoardNotes.read("health.toml"))
    """
    series = series_grid(daily)
    sentences = [
        f"accept: {entry.metric} of {entry.game}{f', {entry.segment}' if entry.segment else ''} is not on this board"
        for entry in notes.accepted
        if not _rows_about(series, entry).any()
    ]
    return sentences + [
        f"annotation: {note.kind} {note.name} matches no row of this board"
        for note in notes.annotations
        if not _rows_about(series, note).any()
    ]


def _days_of(series: SeriesGrid, note: Annotation) -> Flags:
    days = np.arange(series.value.shape[1])
    is_within = (days >= _day_number(series, note.begins)) & (days <= _day_number(series, note.ends))
    return np.asarray(_rows_about(series, note)[:, None] & is_within)


def _rows_about(series: SeriesGrid, entry: Accepted | Annotation) -> Flags:
    """Return the series of the game, metric and segment that *entry* names.

    Without a segment an accepted level is about the whole game, and an annotation is about all rows.
    """
    identity, rows = series.identity, np.ones(len(series.identity), dtype=np.bool_)
    for wanted, names in ((entry.game, ("game_id", "game")), (entry.metric, ("watch", "metric"))):
        if wanted is not None:
            rows &= np.any([(identity[name].astype("object") == wanted).to_numpy() for name in names], axis=0)
    is_whole = identity["dimension"].isna().to_numpy()
    if entry.segment is not None:
        return np.asarray(rows & ~is_whole & (identity["segment"].astype("object") == entry.segment).to_numpy())
    return rows & is_whole if isinstance(entry, Accepted) else rows


def _day_number(series: SeriesGrid, day: date) -> int:
    """Return the number of *day* in the grid, which may lie outside."""
    return int((pd.Timestamp(day, tz="UTC") - series.days[0]) / pd.Timedelta(days=1))


def _entries(tables: Mapping[str, Any], table: str, kind: type[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a table.

    Raises:
        BadQuery: it is not a list of tables, a key is unknown or missing, or a value has another type.
    """
    entries = tables.get(table, [])
    if not isinstance(entries, list):
        raise BadQuery(table, entries, f"must be a list of tables: write [[{table}]]")
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for entry in entries:
        for name, value in entry.items():
            if name not in fields:
                raise BadQuery(f"{table}.{name}", value, "is not a key of this table", [*fields], name=name)
            try:
                is_empty = not str(msgspec.convert(value, fields[name].type)).strip()
            except msgspec.ValidationError:
                is_empty = True
            if is_empty:
                raise BadQuery(f"{table}.{name}", value, _RULES.get(fields[name].type, _RULE_OF_TEXT))
        for name, field in fields.items():
            if field.required and name not in entry:
                rule = f"is missing in the entry {entry}: every entry needs it"
                raise BadQuery(f"{table}.{name}", msgspec.UNSET, rule)
    return tuple(msgspec.convert(entry, kind) for entry in entries)
