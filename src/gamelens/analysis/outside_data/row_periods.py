"""The days that each row of an outside table stands for: a day, a week, a month, or any period."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.files.date_parsing import read_times
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import ColumnCells, Evidence, Meaning, concepts_in, folded_header
from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.intervals import Interval

Days = NDArray[np.datetime64]

_DAY: Final = np.timedelta64(1, "D")
_WEEK: Final = np.timedelta64(7, "D")
_FEWEST: Final = 3  # dates a week or a month apart that tell weeks or months


@suggests_names
@dataclass(frozen=True, eq=False)
class Periods:
    """The days of each row.

    Attributes:
        starts: the first day of each row (datetime64[us, UTC]), NaT where it is not known.
        ends: the end, exclusive.
        length: what a row stands for: "time", "day", "week from Monday", "month" or "period"; None without days.
        column: the column that says it, "" for a line beside the table.
        evidence: who says it.
        problem: raised when days are used.
        note: what was assumed.
    """

    starts: Series[Any]
    ends: Series[Any]
    length: str | None
    column: str = ""
    evidence: Evidence | None = None
    problem: BadQuery | None = None
    note: str | None = None

    @property
    def interval(self) -> Interval | None:
        """The days of all rows."""
        if self.length is None or not self.starts.notna().any():
            return None
        return Interval(
            self.starts.min().to_pydatetime(), max(self.ends.max(), self.starts.min() + _DAY).to_pydatetime()
        )


def periods_of(grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> Periods:
    """Return the days of the rows of *grid*: of its day, else of its start and end, else of a line beside the table."""
    days = _best(meanings, cells, "day")
    starts, ends = (_best(meanings, cells, role) for role in ("start", "end"))
    if len(days) > 1:
        rule = f'are all days: say which one is meant with roles={{"{days[0]}": "day", "{days[1]}": "text"}}'
        return _none(grid, BadQuery("other", days, rule))
    if days:
        return of_column(days[0], meanings[days[0]], cells[days[0]], grid)
    if starts and ends:
        first, last = (cells[name].times_as_said(meanings[name].details) for name in (starts[0], ends[0]))
        if isinstance(first, BadQuery) or isinstance(last, BadQuery):
            return _none(grid, first if isinstance(first, BadQuery) else last)  # type: ignore[arg-type]
        at, until = _of_rows(first.at, cells[starts[0]]), _of_rows(last.at, cells[ends[0]])
        is_time = last.precision == "time" and (until != until.astype("datetime64[D]")).any()
        if is_time or last.precision != "time":
            until = (until.astype("datetime64[D]") + _DAY).astype("datetime64[us]")
        until = np.where(until <= at, at.astype("datetime64[D]") + _DAY, until).astype("datetime64[us]")
        notes = "; ".join(note for note in (first.note, last.note) if note)
        return _of_lengths(at.astype("datetime64[D]"), until, starts[0], meanings[starts[0]].evidence, notes or None)
    if starts:
        return of_column(starts[0], meanings[starts[0]], cells[starts[0]], grid)
    return _beside(grid) or _none(grid)


def periods_of_column(name: str, table: Any) -> Periods:
    """Return the days that the column *name* of an outside table says, whatever its role is."""
    own = ColumnCells(table.grid, name, table.arguments["given"].get("day_first"))
    return of_column(name, Meaning("day", Evidence("day", "the argument", name)), own, table.grid)


def of_column(name: str, meaning: Meaning, own: ColumnCells, grid: Grid) -> Periods:
    """Return the days that the column *name* says."""
    read = own.times_as_said(meaning.details)
    if isinstance(read, BadQuery):
        return _none(grid, read)
    at = _of_rows(read.at, own)
    known = np.unique(at[~np.isnat(at)])
    if (problem := _midnight_elsewhere(name, known, own)) is not None:
        return _none(grid, problem)
    if read.until is not None:
        return _of_lengths(at, _of_rows(read.until, own), name, meaning.evidence, read.note)
    if read.precision == "time" and (known != known.astype("datetime64[D]")).any():
        return Periods(_moments(at), _moments(at), "time", name, meaning.evidence, note=read.note)
    length: str = "day" if read.precision == "time" else read.precision
    is_told = meaning.evidence.where == "the argument" and bool(meaning.details)
    stated = {"week": "week", "month": "month"}.get(meaning.concept, "day" if is_told else None)
    if length == "day":
        length, problem = _coarser(name, known, stated)
        if problem:
            return _none(grid, problem)
    days = at.astype("datetime64[D]")
    if length == "month":
        until = (days.astype("datetime64[M]") + np.timedelta64(1, "M")).astype("datetime64[D]")
    else:
        until = days + (_WEEK if length.startswith("week") else _DAY)
    if length == "week":
        length = f"week from {pd.Timestamp(known[0]).day_name()}" if len(known) else "week from Monday"
    return Periods(_moments(days), _moments(until), length, name, meaning.evidence, note=read.note)


def _best(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], role: str) -> list[str]:
    """Return the columns of *role*, only the surest if these differ in how sure they are.

    An argument is surer than a vendor, a header that is nothing but the word surer than one that has it among others,
    and a day surer than a moment such as "created".
    """

    def doubt(name: str) -> tuple[int, int, int]:
        meaning = meanings[name]
        by = {"the argument": 0, "header": 2, "cells": 3}.get(meaning.evidence.where, 1)
        if by != 2:
            return by, 0, 0
        is_moment = meaning.concept in ("time",)
        return (
            by,
            int(is_moment),
            int(len(concepts_in(folded_header(name))) != 1 or meaning.evidence.quote != folded_header(name)),
        )

    found = [
        name
        for name, meaning in meanings.items()
        if meaning.role == role and (cells[name].texts or cells[name].is_typed)
    ]
    least = min(map(doubt, found), default=None)
    return [name for name in found if doubt(name) == least]


def _midnight_elsewhere(name: str, moments: Days, own: ColumnCells) -> BadQuery | None:
    """Return the exception for times that are all midnight in another zone than UTC: days, but not those of a frame."""
    times = np.unique(moments - moments.astype("datetime64[D]"))
    texts = [text for text in own.texts if re.search(r"[T ]0{1,2}:00(?::00(?:\.0+)?)? ?[^\d:.]", text)]
    if own.is_typed or len(times) != 1 or times[0] == np.timedelta64(0, "us") or len(texts) != len(own.texts):
        return None
    rule = (
        f"is midnight in another zone, {pd.Timestamp(moments[0]):%a %Y-%m-%d %H:%M} in UTC, so not a day of the frame: "
    )
    rule += f'roles={{"{name}": {{"role": "day", "local": True}}}} takes it as the day it names'
    return BadQuery(name, texts[0], rule)


def _of_rows(distinct: Days, own: ColumnCells) -> Days:
    return np.append(distinct.astype("datetime64[us]"), np.datetime64("NaT", "us"))[own.codes]


def _coarser(name: str, days: Days, stated: str | None) -> tuple[str, BadQuery | None]:
    """Return what distinct *days* stand for, and why that cannot be told."""
    if stated is not None:
        return stated, None
    dates = days.astype("datetime64[D]")
    gaps = np.unique(np.diff(dates))
    is_monthly = len(dates) > 1 and (dates == dates.astype("datetime64[M]")).all()
    is_weekly = len(dates) > 1 and (gaps % _WEEK == np.timedelta64(0, "D")).all()
    if not is_weekly and not is_monthly:
        return "day", None
    if len(dates) >= _FEWEST and (is_monthly or (gaps == _WEEK).all()):
        return "month" if is_monthly else "week", None
    unit = "month" if is_monthly else "week"
    shown = ", ".join(str(date) for date in dates[:3])
    rule = f'may be days or {unit}s ({shown}): say so with roles={{"{name}": "day"}} or roles={{"{name}": "{unit}"}}'
    return "day", BadQuery(name, UNSET, rule)


def _of_lengths(at: Days, until: Days, column: str, evidence: Evidence, note: str | None) -> Periods:
    """Return periods by their first day and their end."""
    known = ~np.isnat(at) & ~np.isnat(until)
    lengths = np.unique(until[known].astype("datetime64[D]") - at[known].astype("datetime64[D]"))
    first = pd.DatetimeIndex(at[known])
    length = "period"
    if (lengths == _DAY).all():
        length = "day"
    elif (lengths == _WEEK).all() and len(set(first.day_of_week)) == 1:
        length = f"week from {first[0].day_name()}"
    return Periods(_moments(at), _moments(until), length, column, evidence, note=note)


def _beside(grid: Grid) -> Periods | None:
    """Return the period that lines above the table name for all its rows."""
    named: list[np.datetime64] = []
    for line in grid.above:
        text = line.strip(" \"'")
        label, _, rest = text.partition(":")
        for part in dict.fromkeys((text, rest.strip(), text.partition(" ")[2], text.rpartition("  ")[2])):
            try:
                read = read_times([part], field=grid.source)
            except (BadQuery, ValueError):
                continue
            if read.until is not None:
                return _of_all(grid, read.at[0], read.until[0], line)
            role = next((concept.role for concept, _, _ in concepts_in(folded_header(label))), "")
            if role in ("start", "end") and read.precision == "day":
                named.append(read.at[0] + (_DAY if role == "end" else np.timedelta64(0, "D")))
            break
    return (
        _of_all(grid, named[0], named[1], "lines above the header") if len(named) == 2 and named[0] < named[1] else None
    )


def _of_all(grid: Grid, start: np.datetime64, end: np.datetime64, line: str) -> Periods:
    rows = len(grid.rows)
    at, until = np.repeat(start, rows), np.repeat(end, rows)
    found = _of_lengths(at, until, "", Evidence("period", "a line beside the table", line), None)
    return found if found.length == "day" else Periods(found.starts, found.ends, "period", "", found.evidence)


def _none(grid: Grid, problem: BadQuery | None = None) -> Periods:
    nothing = _moments(np.full(len(grid.rows), np.datetime64("NaT", "us")))
    return Periods(nothing, nothing, None, problem=problem)


def _moments(at: Days | Sequence[Any]) -> Series[Any]:
    return Series(pd.DatetimeIndex(np.asarray(at, dtype="datetime64[us]")).tz_localize("UTC")).astype(
        "datetime64[us, UTC]"
    )


def periods_within(table: Any, days: Interval | None, *, frame: str) -> DataFrame | None:
    """Return the periods of an outside table whose rows stand for several days, by start and end, exclusive.

    None for a table of days.

    Raises:
        BadQuery: the table has no days, or its periods overlap, or lie only in part in *days*, those of *frame*.
    """
    if table.period in ("day", "time", None):
        if table.periods.problem is not None:
            raise table.periods.problem
        return None
    periods = DataFrame({"start": table.starts, "end": table.ends}).dropna().drop_duplicates().sort_values("start")
    if (periods["start"].iloc[1:].to_numpy() < periods["end"].iloc[:-1].to_numpy()).any():
        raise BadQuery("other", table.source, "has periods that overlap: pass one file for each")
    for edge in () if days is None else (pd.Timestamp(days.start), pd.Timestamp(days.end)):
        cut = periods[(periods["start"] < edge) & (periods["end"] > edge)]
        if len(cut):
            start, end = cut.iloc[0]
            rule = f"has a row for {start:%Y-%m-%d} to {end - pd.Timedelta(days=1):%Y-%m-%d}"
            raise BadQuery("other", table.source, f"{rule}, which {frame} covers only in part: query all its days")
    return periods.reset_index(drop=True)


def period_of(days: Series[Any], periods: DataFrame) -> Series[Any]:
    """Return the start of the period that each day lies in, NaT for a day outside them."""
    place = np.searchsorted(periods["start"].to_numpy(), days.to_numpy(), side="right") - 1
    inside = (place >= 0) & (days.to_numpy() < periods["end"].to_numpy()[np.maximum(place, 0)])
    return periods["start"].iloc[np.maximum(place, 0)].set_axis(days.index).where(inside)


def period_texts(periods: DataFrame) -> tuple[str, ...]:
    """Return periods in ISO 8601, as a receipt has them."""
    return tuple(f"{start:%Y-%m-%d}/{end:%Y-%m-%d}" for start, end in periods.itertuples(index=False))
