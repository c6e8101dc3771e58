"""The days that each row of an outside table stands for: a day, a week, a month, or any period."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.files.date_parsing import NotTimes, ParsedTimes, read_times
from gamelens.analysis.files.days_without_year import NoYear
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.fiscal_periods import is_definition
from gamelens.analysis.outside_data.roles import (
    KEYS,
    MEASURES,
    SUMMANDS,
    ColumnCells,
    Evidence,
    Meaning,
    concepts_in,
    groups_of,
    is_snapshot_header,
)
from gamelens.analysis.outside_data.rolling_windows import overlap, windows_of
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.total_words import WHOLE_OF_NAMES
from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.intervals import Interval

DayArray = NDArray[np.datetime64]

_DAY: Final = np.timedelta64(1, "D")
_ONE_DAY: Final = pd.Timedelta(days=1)
_DAYS_OF_WEEK: Final = 7
_WEEK: Final = np.timedelta64(7, "D")
_ZONE: Final = re.compile(
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\s*(?:[AaPp]\.?[Mm]\.?)?\s*\(?"
    r"([A-Z]{1,5}|(?:UTC|GMT)?[+-]\d{1,2}(?::?\d\d)?|[A-Z]\w+/[\w/+-]+)\)?\s*$"
)
_ZONE_WORDS: Final = re.compile(
    r"(?i)time[ _]?zone|utc[ _]?offset|zeitzone|fuseau horaire|zona horaria|fuso hor[aá]rio|fuso orario|tijdzone"
    r"|strefa czasowa|saat dilimi|часово\w+ пояс|tidszon|aikavyöhyke|časov\w+ pásm"
    r"|时区|時區|タイムゾーン|시간대|เขตเวลา|múi giờ|zona waktu"
)
_NAMED_ZONE: Final = re.compile(
    r"(?<![\w/])(?:(?:UTC|GMT)\s?[+-]\s?\d{1,2}(?::?\d\d)?|UTC|GMT|[PMCE][SD]T|WES?T|CES?T|EES?T"
    r"|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|US)/[A-Z][\w/]+"
    r"|BST|MSK|JST|KST|SGT|HKT|IST|AE[SD]T)(?![\w/])"
)
_IS_ZONE: Final = re.compile(
    rf"(?:UTC|GMT)?\s?[+-]?\d{{1,2}}(?::?\d\d)?|{_NAMED_ZONE.pattern}|\([^)]*\)\s*{_NAMED_ZONE.pattern}|[A-Z]{{1,5}}"
)
_NO_OFFSET: Final = re.compile(r"(?i)(?:UTC|GMT)?\s?[+-]?0{1,2}(?::?00)?")
_UTC: Final = frozenset({"Z", "UTC", "GMT", "+00:00", "+0000", "-00:00"})
_MOST_ZONES: Final = 3
_MOST_WITHIN: Final = 0.9  # of days in the period beside them, which is theirs
_LAST_HOUR: Final = 23
_CLOCK: Final = re.compile(r"\d{1,2}[:.hH]\d{2}|\d\s?[AaPp]\.?[Mm]")
_DAY_IN_NAME: Final = re.compile(r"(?<!\d)(20[1-4]\d)[-_.]?(0[1-9]|1[0-2])[-_.]?([0-2]\d|3[01])(?!\d)")
_MONTH_IN_NAME: Final = re.compile(
    r"(?<!\d)(?:(20[1-4]\d)[-_.]?(0[1-9]|1[0-2])|(0[1-9]|1[0-2])[-_.](20[1-4]\d))(?!\d|[-_.]\d)"
)
_DAYS_OF_LINE: Final = re.compile(
    r"\D{0,12}?(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})"
    r"\s*(?:[-–—~〜～至:→]|->|\.\.+|to|until|through|bis(?: zum)?|au|al?|do|по|tot|till?|から)"
    r"\s*(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})\D{0,12}"
)
_MOST_WORDS: Final = 12  # of a line beside a table, behind which a period may begin
OF_BILLS: Final = re.compile(
    r"(?<!\w)(?:invoice|bill|due|payment|paid|payable|issued?|settlement|rechnung\w*|fallig\w*|zahl\w*|facture|echeance|paiement"
    r"|factura|vencimiento|pago|fattura|scadenza|fatura|vade|odeme|faktur\w*|termin|platnosc\w*|splatnost|счет\w*|оплат\w*)(?!\w)"
    r"|请款|付款|到期|請求日|支払|발행|지급|청구"
)
"""Folded words of the days of a bill, which is written and paid later."""
BESIDE_TABLE: Final = "a line beside the table"
"""Where the days of all rows stand."""
_OF_SNAPSHOTS: Final = frozenset({"rank", "stock", "distinct", "exchange_rate", "rate"})
"""Roles of numbers that are of a moment."""
_MOST_NAMED: Final = 20  # texts in a step
_MOST_READ: Final = 1_000  # texts that are looked at one by one
_LONGEST_LINE: Final = 60
_FEW: Final = 0.25  # of the texts, months among days
_MOST_PERIODS: Final = 400
_FEWEST: Final = 3  # dates a week or a month apart that tell weeks or months


@suggests_names
@dataclass(frozen=True, eq=False)
class Periods:
    """The days of each row.

    Attributes:
        starts: the first day of each row (datetime64[us, UTC]), NaT where it is not known.
        until: the end, exclusive, where lengths differ.
        length: what a row stands for: "time", "day", "week from Monday", "month" or "period"; None without days.
        column: the column that says it, "" for a line beside the table.
        evidence: who says it.
        problem: raised when days are used.
        note: what was assumed.
        has_own_days: whether *column* has other days than *starts*, such as the last ones of windows.
    """

    starts: Series[Any]
    until: Series[Any] | None
    length: str | None
    column: str = ""
    evidence: Evidence | None = None
    problem: BadQuery | None = None
    note: str | None = None
    has_own_days: bool = False

    @property
    def ends(self) -> Series[Any]:
        """The end of the days of each row, exclusive."""
        if self.until is not None:
            return self.until
        if self.length == "month":
            months = self.starts.dt.tz_localize(None).to_numpy().astype("datetime64[M]")
            return _moments(months + np.timedelta64(1, "M"))
        return self.starts + pd.Timedelta(days={"time": 0, "day": 1}.get(self.length or "", 7))

    @property
    def interval(self) -> Interval | None:
        """The days of all rows."""
        if self.length is None or not self.starts.notna().any():
            return None
        return Interval(
            self.starts.min().to_pydatetime(), max(self.ends.max(), self.starts.min() + _DAY).to_pydatetime()
        )


def periods_of(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    answered: Collection[str] = (),
    stated: str | None = None,
    counted: Collection[str] = (),
) -> Periods:
    """Return the days of the rows of *grid*: of its day, else of its start and end, else of a line beside the table.

    *stated* are the days of all rows by an argument.

    The rows of columns *answered* count, also where a row of several days stands beside a row of one of its days. All
    rows of the columns *counted* are of their days, whatever windows their numbers are of. The first and the last week
    or month are cut to the days that a line, or the name of the file, states for the whole table.
    """
    periods = _periods_of_rows(grid, meanings, cells, answered, stated, counted)
    return _cut_to_stated_days(periods, grid)


def _periods_of_rows(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    answered: Collection[str],
    stated: str | None,
    counted: Collection[str],
) -> Periods:
    """Return the days of the rows of *grid* as its columns have them, or lines beside it, or *stated* ones."""
    if stated is not None:
        return _stated(stated, meanings, cells, grid)
    days = _best(meanings, cells, "day")
    starts, ends = (_best(meanings, cells, role) for role in ("start", "end"))
    if starts and ends:  # of what a bill is, which is written and paid later
        days = [name for name in days if not OF_BILLS.search(folded_header(name))]
    days = _with_periods_that_differ(days, meanings, cells, has_both_ends=bool(starts and ends))
    if len(days) > 1:
        return _none(grid, _which_day(days, meanings, cells))
    last_days = next(iter(days or (ends if not starts else [])), None)
    windows = {} if last_days in (None, *counted) else windows_of(meanings, cells, grid, last_days)
    if last_days is not None and windows and (rows := _of_windows(last_days, windows, meanings, cells, grid)):
        return rows
    if days and meanings[days[0]].evidence.where == "cells" and bool(starts) != bool(ends):
        known, role = (starts[0], "end") if starts else (ends[0], "start")
        rule = f"is a column of days beside {known}, and its header does not say which days: "
        rule += f'roles={{"{days[0]}": "{role}"}} makes both the period of a row, '
        return _none(grid, BadQuery(days[0], UNSET, rule + f'roles={{"{days[0]}": "text"}} takes {known} alone'))
    if days:
        is_fetched = is_snapshot_header(days[0]) and not any(known.role in SUMMANDS for known in meanings.values())
        periods = of_column(days[0], meanings[days[0]], cells[days[0]], grid, is_day=is_fetched)
        is_asked = any(meaning.role in MEASURES for meaning in meanings.values()) and days[0] not in answered
        problem = _ranges_over_days(days[0], periods, meanings, cells, grid) if is_asked else None
        return periods if problem is None else _none(grid, problem)
    if starts and ends:
        return _from_start_to_end(starts[0], ends[0], meanings, cells, grid)
    if ends and not starts and (weeks := _weeks_to(ends[0], meanings[ends[0]], cells[ends[0]], grid)) is not None:
        return weeks
    if starts:
        return of_column(starts[0], meanings[starts[0]], cells[starts[0]], grid)
    unread = next(
        (
            name
            for name, column_cells in cells.items()
            if _is_called_days(name, meanings[name]) and column_cells.example
        ),
        None,
    )
    if unread is not None and not grid.above:
        rule = "is no day, as its header says: write 2026-11-01, "
        rule += f'or pass roles={{"{unread}": "text"}} if it is something else'
        times = cells[unread].times
        example = times.value if isinstance(times, BadQuery) else cells[unread].example
        return _none(grid, BadQuery(unread, example, rule))
    return _beside(grid) or _of_snapshot(grid, meanings) or _none(grid)


def _cut_to_stated_days(periods: Periods, grid: Grid) -> Periods:
    """Return *periods* whose first and last week or month end where the days do that a line states for the table."""
    unit = (periods.length or "").partition(" ")[0]
    if unit not in ("week", "month") or not periods.column or not periods.starts.notna().any():
        return periods
    starts, ends = periods.starts, periods.ends
    for begin, end, said in _stated_ranges(grid):
        from_day, to_day = pd.Timestamp(begin, tz="UTC"), pd.Timestamp(end, tz="UTC")
        is_cut = (starts < from_day) | (ends > to_day)
        is_within = (starts < to_day) & (ends > from_day)
        if not is_cut.any() or not is_within[starts.notna()].all():
            continue
        cut_starts, cut_ends = starts.where(starts >= from_day, from_day), ends.where(ends <= to_day, to_day)
        cut_starts, cut_ends = cut_starts.where(starts.notna()), cut_ends.where(starts.notna())
        spans = DataFrame({"start": cut_starts, "end": cut_ends})[is_cut].drop_duplicates().sort_values("start")
        cut = [f"{start:%Y-%m-%d} to {until - _ONE_DAY:%Y-%m-%d}" for start, until in spans.itertuples(index=False)]
        which = f"one {unit} has only" if len(cut) == 1 else f"{len(cut)} {unit}s have only"
        note = f"{which} {' and '.join(cut)}, as the table is of {from_day:%Y-%m-%d} to {to_day - _ONE_DAY:%Y-%m-%d} "
        notes = "; ".join(filter(None, (periods.note, f"{note}by {said}")))
        return replace(periods, starts=cut_starts, until=cut_ends, note=notes, has_own_days=True)
    return periods


def _stated_ranges(grid: Grid) -> Iterator[tuple[np.datetime64, np.datetime64, str]]:
    """Yield the first day and the end of what lines beside the table state from day to day, or the name of its file."""
    for line in (*grid.above, grid.sheet):
        if is_definition(line):
            continue
        text = line.strip(" \"'※*")
        begins = [0, *(match.end() for match in re.finditer(r"[\s:：,;|(]+", text))][:_MOST_WORDS]
        for part in (text[begin:].strip("()[] .") for begin in begins):
            if len(re.findall(r"\d+", part)) < _FEWEST:  # Q4 2026
                continue
            reads = [
                _read_in_line(part, grid.source),
                *(_read_in_line(part, grid.source, day_first=first) for first in (False, True)),
            ]
            found = {(read.at[0], read.until[0]) for read in reads if read is not None and read.until is not None}
            yield from ((start, end, f"the line {line.strip()!r}") for start, end in sorted(found))
            if found:
                break
    if len(days := days_in_name(grid.source)) == 2:
        first, last = (np.datetime64(day, "D") for day in sorted(days))
        yield first, last + _DAY, f"the name of {grid.source}"


def _from_start_to_end(
    start: str, end: str, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], grid: Grid
) -> Periods:
    """Return the periods of rows whose first and last days two columns have."""
    details = meanings[start].details
    first = cells[start].times_with(details)  # of local days, ends are local too
    last = cells[end].times_with({"local": details.get("local"), **meanings[end].details})
    if isinstance(first, BadQuery):
        return _none(grid, _odd_day(cells[start], grid) or first)
    if isinstance(last, BadQuery):
        return _none(grid, _odd_day(cells[end], grid) or last)
    at, until = first.at[cells[start].codes], last.at[cells[end].codes]
    problem = _midnight_elsewhere(cells[start], first, "start")
    problem = problem or _open_period(start, end, np.isnat(at) != np.isnat(until), meanings, cells, grid)
    if problem is not None:
        return _none(grid, problem)
    is_time = last.precision == "time" and (until != until.astype("datetime64[D]")).any()
    if is_time or last.precision != "time":
        is_midnight = _has_time(cells[end]) & (until == until.astype("datetime64[D]"))
        whole = (until.astype("datetime64[D]") + _DAY).astype("datetime64[us]")
        until = np.where(is_time & is_midnight, until, whole).astype("datetime64[us]")  # the end of the day before
    is_one_day = (until <= at) | np.isnat(until)
    until = np.where(is_one_day, at.astype("datetime64[D]") + _DAY, until).astype("datetime64[us]")
    moved = _moved_by_zone(cells[start], first, "start", grid)
    notes = "; ".join(note for note in (first.note, last.note, moved) if note)
    at, evidence = at.astype("datetime64[D]"), meanings[start].evidence
    return Periods(_moments(at), _moments(until), _length(at, until), start, evidence, note=notes or None)


def _has_time(column_cells: ColumnCells) -> NDArray[np.bool_]:
    """Return which rows have a time of day, also midnight."""
    if column_cells.is_typed:
        return np.ones(len(column_cells.codes), dtype=bool)
    has_time = np.array([_CLOCK.search(text) is not None for text in column_cells.texts], dtype=bool)
    return np.append(has_time, False)[column_cells.codes]


def _open_period(
    start: str,
    end: str,
    is_open: NDArray[np.bool_],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    grid: Grid,
) -> BadQuery | None:
    """Return the question about amounts and counts of rows that lack the start or the end of their period.

    Without numbers, such as a holiday of one day, a row without an end is of its first day.
    """
    numbers = [name for name, meaning in meanings.items() if meaning.role in MEASURES]
    rows = is_open & np.logical_or.reduce([cells[name].codes >= 0 for name in numbers] or [np.zeros_like(is_open)])
    if not rows.any():
        return None
    place = int(rows.argmax())
    name, other = (end, start) if cells[end].codes[place] < 0 else (start, end)
    rule = f"is empty in {grid.rows_text(rows)}, which {'has' if rows.sum() == 1 else 'have'} {other} and numbers: "
    rule += f'write the day, leave_out={{"{name}": [""]}} leaves the rows out, '
    step = f'roles={{"{name}": "text", "{other}": "day"}} takes {other} alone as the day of every row'
    return BadQuery(name, UNSET, rule + step)


def _which_day(days: Sequence[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> BadQuery:
    """Return the question about several columns of *days*: whether two are a period, or which one is meant."""
    if (pair := _start_and_end(days, meanings, cells)) is not None:
        rule = "are days, one before the other in every row, as the first and the last of a period: "
        rule += f'roles={{"{pair[0]}": "start", "{pair[1]}": "end"}} takes both as the period of a row, '
        rule += f'roles={{"{pair[1]}": "text"}} if it is no end, which books each row on {pair[0]} alone'
        return BadQuery("other", [*pair], rule)
    likely, other = sorted(days[:2], key=lambda name: _is_single(name, meanings, cells))  # ranges say more
    rule = f'are all days: say which one is meant with roles={{"{likely}": "day", "{other}": "text"}} or '
    return BadQuery("other", [*days], rule + f'roles={{"{other}": "day", "{likely}": "text"}}')


def _start_and_end(
    days: Sequence[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> tuple[str, str] | None:
    """Return the two columns of single *days* whose rows may be periods: each start is before its end."""
    if len(days) != 2 or not all(_is_single(name, meanings, cells) for name in days):
        return None
    first, second = (_days_of(name, meanings, cells) for name in days)
    if first is None or second is None:
        return None
    known = ~np.isnat(first) & ~np.isnat(second)
    for pair, is_before in ((days, first < second), (days[::-1], second < first)):
        if known.any() and is_before[known].all():
            return pair[0], pair[1]
    return None


def days_in_name(source: str) -> list[date]:
    """Return the days that the name of a file has, such as ranks_2026-10-14.csv and export-20261014.xlsx."""
    found = []
    for match in _DAY_IN_NAME.finditer(source):
        with suppress(ValueError):  # such as a day 31 of a month of 30
            found.append(date(*(int(part) for part in match.groups())))
    return found


def _months_in_name(source: str) -> list[date]:
    """Return the first days of the months that the name of a file has, such as costs_Oct-2026.csv and 2026-10.xlsx."""
    words = re.split(r"[\s_.()\[\]]+", source)
    found = [date(int(match[1] or match[4]), int(match[2] or match[3]), 1) for match in _MONTH_IN_NAME.finditer(source)]
    for text in dict.fromkeys((*words, *map(" ".join, pairwise(words)))):
        if re.search(r"20[1-4]\d", text):
            with suppress(BadQuery, ValueError):
                read = read_times([re.sub(r"(?<=[^\W\d])(?=20\d\d$)", " ", text)], field=source)
                found += [read.at[0].astype("datetime64[D]").item()] if read.precision == "month" else []
    return [*dict.fromkeys(found)]


def step_of_name(source: str) -> str:
    """Return what takes the day, the month, or the first and the last day in the name of a file for all rows, or ""."""
    if (days := days_in_name(source)) and len(days) <= 2:
        stated, which = "/".join(map(str, sorted(days))), "days" if len(days) == 2 else "one"
    elif not days and len(months := _months_in_name(source)) == 1:
        stated, which = f"{months[0]:%Y-%m}", "one"
    else:
        return ""
    return f'days="{stated}" takes the {which} in its name for all rows'


def day_in_lines(grid: Grid) -> tuple[date, str] | None:
    """Return the only day that lines beside the table have, and its line: it may be the one of an export."""
    found: dict[date, str] = {}
    for line in grid.above:
        if OF_BILLS.search(folded_header(line)):  # when it is due
            continue
        text = line.strip(" \"'※*")
        begins = [0, *(match.end() for match in re.finditer(r"[\s:：,;|(]+", text))][:_MOST_WORDS]
        reads = (_read_in_line(text[begin:].strip("()[] ."), grid.source) for begin in begins)
        read = next((read for read in reads if read is not None), None)
        if read is not None and read.precision in ("day", "time") and read.until is None:
            found.setdefault(read.at[0].astype("datetime64[D]").item(), line)
    return next(iter(found.items())) if len(found) == 1 else None


def step_of_days(grid: Grid) -> str:
    """Return what takes the day in a line beside the table, or those in the name of its file, for all rows, or ""."""
    if (found := day_in_lines(grid)) is None:
        return step_of_name(grid.source)
    day, line = found
    shown = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
    return f'days="{day}" takes the day of the line {shown!r} for all rows'


def _of_snapshot(grid: Grid, meanings: Mapping[str, Meaning]) -> Periods | None:
    """Return the day of ranks, rates or stocks in the name of their file or in a line beside them.

    Amounts may have been exported on it.
    """
    measures = {meaning.role for meaning in meanings.values()} & MEASURES
    if not measures or not measures <= _OF_SNAPSHOTS:
        return None
    if len(days := days_in_name(grid.source)) == 1:
        day, evidence = days[0], Evidence("day", "the name of the file", grid.source)
        note = f"by the name of {grid.source}"
    elif (found := day_in_lines(grid)) is not None:
        day, said = found
        evidence, note = Evidence("day", "a line beside the table", said), f"by the line {said!r}"
    else:
        return None
    periods = _of_all(grid, np.datetime64(day, "D"), np.datetime64(day, "D") + _DAY, grid.source)
    return replace(periods, evidence=evidence, note=f"all rows are of {day}, {note}")


def _is_single(name: str, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> bool:
    """Return whether the texts of a column are of one day each."""
    read = None if cells[name].is_typed else cells[name].times_with(meanings[name].details)
    return not (isinstance(read, ParsedTimes) and (read.until is not None or read.precision in ("week", "month")))


def _ranges_over_days(
    name: str, periods: Periods, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], grid: Grid
) -> BadQuery | None:
    """Return the exception for rows of several days beside a row of one of these, of the same names if they have any.

    They may add up the others.
    """
    column_cells = cells[name]
    if periods.until is None or column_cells.is_typed:
        return None
    starts, ends = (
        moments.dt.tz_localize(None).to_numpy().astype("datetime64[D]").astype("int64")
        for moments in (periods.starts, periods.until)
    )
    keys = [key for key, meaning in meanings.items() if meaning.role in KEYS]
    numbers = {key: cells[key].numbers_of_values for key in keys}
    has_name = np.any([number >= 0 for number in numbers.values()], axis=0) if keys else np.zeros(len(starts), bool)
    is_known = periods.starts.notna().to_numpy()
    is_range, is_day = is_known & (ends - starts > 1), is_known & (ends - starts == 1)
    apart = groups_of(numbers, keys, len(starts)) * (int(ends[is_known].max(initial=0)) + 1)
    of_names, of_all = np.unique((apart + starts)[is_day]), np.unique(starts[is_day])
    is_over = np.searchsorted(of_names, apart + starts) < np.searchsorted(of_names, apart + ends)
    is_over |= ~has_name & (np.searchsorted(of_all, starts) < np.searchsorted(of_all, ends))
    is_over &= is_range
    beside = "one of them"
    if not is_over.any():
        names = keys or [text for text, meaning in meanings.items() if meaning.role == "text"]
        is_over = is_known & _hold_others(starts, ends, [cells[name] for name in names])
        beside = "parts of them"
    if not is_over.any():
        return None
    texts = [*dict.fromkeys(column_cells.texts[code] for code in column_cells.codes[is_over].tolist())][:_MOST_NAMED]
    rule = f"in {grid.rows_text(is_over)} stands for several days, and other rows for {beside}: "
    rule += f"leave_out={ {name: texts}!r} leaves {'it' if is_over.sum() == 1 else 'them'} out, "
    return BadQuery(name, texts[0], f"{rule}leave_out={ {name: []}!r} counts all, each of its days")


def _hold_others(starts: NDArray[np.int64], ends: NDArray[np.int64], names: Sequence[ColumnCells]) -> NDArray[np.bool_]:
    """Return which rows have a period that holds several others of the same names, as a month holds its weeks.

    A row without a name, or with a word for the whole, is of all names.
    """
    periods, period = np.unique(np.stack([starts, ends]), axis=1, return_inverse=True)
    numbers = {column.name: column.numbers_of_values for column in names}
    group = groups_of(numbers, [*numbers], len(starts))
    count = int(group.max(initial=0)) + 1
    none = np.zeros(len(starts), dtype=bool)
    if not _FEWEST <= periods.shape[1] <= _MOST_PERIODS or count > _MOST_READ:
        return none
    first, last = periods
    holds = (first[:, None] <= first) & (last[:, None] >= last) & ((last - first)[:, None] > last - first)
    is_there = np.zeros((count, periods.shape[1]), dtype=bool)
    is_there[group, period] = True
    is_whole = np.ones(len(starts), dtype=bool)
    for column in names:
        if column.is_typed:
            is_whole &= False
            continue
        wholes = [place for place, text in column.unlike_names.items() if WHOLE_OF_NAMES.fullmatch(text)]
        is_whole &= (column.codes < 0) | np.isin(column.codes, wholes)
    beside = np.where(is_whole[:, None], is_there.any(axis=0), is_there[group])
    return np.asarray((beside & holds[period]).sum(axis=1) > 1)


def _weeks_to(name: str, meaning: Meaning, column_cells: ColumnCells, grid: Grid) -> Periods | None:
    """Return the weeks of a column of their last days, by its header or as all its days are weeks apart."""
    read = column_cells.times_with(meaning.details)
    if isinstance(read, BadQuery) or read.until is not None or read.precision == "month":
        return None
    last = read.at.astype("datetime64[D]")
    apart = np.diff(np.unique(last[~np.isnat(last)])).astype("int64")
    if meaning.concept != "week" and (not len(apart) or (apart % _DAYS_OF_WEEK).any()):
        return None
    at = last[column_cells.codes]
    starts = (at - (_DAYS_OF_WEEK - 1) * _DAY).astype("datetime64[us]")
    until = (at + _DAY).astype("datetime64[us]")
    first = pd.Timestamp(starts[~np.isnat(starts)].min()).day_name() if (~np.isnat(starts)).any() else "Monday"
    note = f"{name} is the last day of each week"
    return Periods(_moments(starts), _moments(until), f"week from {first}", name, meaning.evidence, note=note)


def _of_windows(
    name: str,
    windows: Mapping[str, int],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    grid: Grid,
) -> Periods | None:
    """Return the periods of rolling windows that end with the days of a column, or these days where windows overlap.

    Beside numbers of other windows, or of one day each, rows are of their days. None where the days cannot be read.
    """
    meaning = replace(meanings[name], role="day", concept="day")
    periods = of_column(name, meaning, cells[name], grid, is_day=True)
    if periods.length not in ("day", "time"):
        return None
    last = periods.starts.dt.tz_localize(None).to_numpy().astype("datetime64[D]")
    summands = [key for key, of_key in meanings.items() if of_key.role in SUMMANDS or of_key.role == "number"]
    window = min(windows.values())
    if any(overlap(last, days, meanings, cells) for days in windows.values()):
        return periods
    if any(windows.get(key) != window for key in summands):
        return periods
    starts = (last - (window - 1) * _DAY).astype("datetime64[us]")
    until = (last + _DAY).astype("datetime64[us]")
    note = f"each row is of the {window} days that end with its {name}, as {next(iter(windows))} says"
    notes, length = "; ".join(filter(None, (periods.note, note))), _length(starts, until)
    return Periods(_moments(starts), _moments(until), length, name, periods.evidence, note=notes, has_own_days=True)


def _is_called_days(name: str, meaning: Meaning) -> bool:
    """Return whether a column of texts is called nothing but a day, a week, a month or a period."""
    if meaning.role != "text" or meaning.evidence.where != "cells":
        return False
    found = concepts_in(folded_header(name))
    return len(found) == 1 and found[0][0].name in ("day", "week", "month") and found[0][1] == folded_header(name)


def periods_of_column(name: str, table: Any) -> Periods:
    """Return the days that the column *name* of an outside table says, whatever its role is."""
    given = table.arguments["given"]
    column_cells = ColumnCells(table.grid, name, given.get("day_first"), year=given.get("year"))
    return of_column(name, Meaning("day", Evidence("day", "the argument", name)), column_cells, table.grid)


def of_column(name: str, meaning: Meaning, column_cells: ColumnCells, grid: Grid, *, is_day: bool = False) -> Periods:
    """Return the days that the column *name* says, of days a week apart also where each *is_day*."""
    read = column_cells.times_with(meaning.details)
    if isinstance(read, BadQuery):
        return _none(grid, _odd_day(column_cells, grid) or _longer_among_days(column_cells, grid) or read)
    at = read.at
    known = np.unique(at[~np.isnat(at)])
    if (problem := _midnight_elsewhere(column_cells, read, "day")) is not None:
        return _none(grid, problem)
    length = "time"
    if read.until is not None:
        length = _length(at, read.until)
    elif read.precision != "time" or (known == known.astype("datetime64[D]")).all():
        length = "day" if read.precision == "time" else read.precision
        is_told = meaning.evidence.where == "the argument" and bool(meaning.details)
        stated = {"week": "week", "month": "month"}.get(meaning.concept, "day" if is_told or is_day else None)
        if length == "day":
            length, problem = _coarser(name, known, stated, grid.source)
            if problem:
                return _none(grid, problem)
        at = at.astype("datetime64[D]").astype("datetime64[us]")
        if length == "week":
            length = f"week from {pd.Timestamp(known[0]).day_name()}" if len(known) else "week from Monday"
    until = None if read.until is None else _moments(read.until[column_cells.codes])
    notes = "; ".join(note for note in (read.note, _moved_by_zone(column_cells, read, meaning.role, grid)) if note)
    return Periods(_moments(at[column_cells.codes]), until, length, name, meaning.evidence, note=notes or None)


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
        if meaning.role == role and (cells[name].is_typed or len(cells[name].distinct))
    ]
    least = min(map(doubt, found), default=None)
    return [name for name in found if doubt(name) == least]


def day_column(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> str | None:
    """Return the column of the days of the rows, the surest of several; None if several are as sure."""
    days = _best(meanings, cells, "day")
    return days[0] if len(days) == 1 else None


def _with_periods_that_differ(
    days: list[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], *, has_both_ends: bool
) -> list[str]:
    """Return the columns of *days* and the months or periods that these days lie outside of, as bills have them.

    A month that has the days of its rows says nothing more, and week 40 none beside full dates.
    """
    if not days or meanings[days[0]].evidence.where == "the argument":
        return days
    with_year = [name for name in days if not isinstance(cells[name].times_with(meanings[name].details), NoYear)]
    days, coarse = with_year or ([] if has_both_ends else days), {}
    for name, meaning in meanings.items():
        is_day = meaning.role == "day" and not cells[name].is_typed and len(cells[name].distinct)
        read = cells[name].times_with(meaning.details) if is_day else None
        if isinstance(read, ParsedTimes) and (read.until is not None or read.precision == "month"):
            coarse[name] = _spans(read)
    fine = [name for name in days if name not in coarse]
    if not fine or not coarse:
        return days
    at = _days_of(fine[0], meanings, cells)
    if at is None:
        return days
    kept = []
    for name, (starts, ends) in coarse.items():
        first, last = starts[cells[name].codes], ends[cells[name].codes]
        is_known = ~np.isnat(at) & ~np.isnat(first)
        is_within = (at >= first) & (at < last)
        if is_known.any() and is_within[is_known].mean() < _MOST_WITHIN:
            kept.append(name)
    return [*fine, *kept]


def _spans(read: ParsedTimes) -> tuple[DayArray, DayArray]:
    """Return the start and the end of months or periods."""
    if read.until is not None:
        return read.at, read.until
    ends = (read.at.astype("datetime64[M]") + np.timedelta64(1, "M")).astype("datetime64[us]")
    return read.at, ends


def _days_of(name: str, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> DayArray | None:
    """Return the day or time of each row of a column, None where it cannot be read."""
    if cells[name].is_typed:
        values = cells[name].values
        is_time = pd.api.types.is_datetime64_any_dtype(values)
        return values.dt.tz_localize(None).to_numpy(dtype="datetime64[us]") if is_time else None
    read = cells[name].times_with(meanings[name].details)
    return read.at[cells[name].codes] if isinstance(read, ParsedTimes) else None


def _odd_day(column_cells: ColumnCells, grid: Grid) -> BadQuery | None:
    """Return the exception for a text among days, with what leaves its row out."""
    if not column_cells.odd_times:
        return None
    first = column_cells.odd_times[0]
    row = grid.rows[int(column_cells.rows_of(first).argmax())]
    count = sum(int(column_cells.rows_of(text).sum()) for text in column_cells.odd_times)
    beside, leaves = (f", one of {count} such cells", "rows") if count > 1 else ("", "row")
    rule = f"in row {row} is not a day, and most others are{beside}: "
    rule += f"leave_out={ {column_cells.name: column_cells.odd_times}!r} leaves the {leaves} out"
    return BadQuery(column_cells.name, first, rule)


def _longer_among_days(column_cells: ColumnCells, grid: Grid) -> BadQuery | None:
    """Return the exception for a few months or quarters among days, with what leaves their rows out."""
    texts = column_cells.named[:_MOST_READ]
    longer = [text for text in texts if _precision(text) in ("month", "period")]
    if not longer or len(longer) > len(texts) * _FEW:
        return None
    rows = np.logical_or.reduce([column_cells.rows_of(text) for text in longer])
    one = "a month" if _precision(longer[0]) == "month" else "a period"
    rule = f"in {grid.rows_text(rows)} is {one}, and most others are days: "
    rule += f"leave_out={ {column_cells.name: longer}!r} leaves {'it' if rows.sum() == 1 else 'them'} out, "
    return BadQuery(column_cells.name, longer[0], f"{rule}which may add up the days")


def _precision(text: str) -> str | None:
    """Return what a text alone names, None where it names nothing for sure."""
    try:
        return read_times([text], field="day").precision
    except BadQuery:
        return None


def _midnight_elsewhere(column_cells: ColumnCells, read: ParsedTimes, role: str) -> BadQuery | None:
    """Return the exception for times that are all midnight in another zone than UTC, so that a frame has other days."""
    written = read.written
    if written is None or (written != written.astype("datetime64[D]"))[~np.isnat(written)].any():
        return None
    moment = pd.Timestamp(read.at[(written != read.at) & ~np.isnat(written)][0])
    rule = f"is midnight in another zone, {moment:%a %Y-%m-%d %H:%M} in UTC, so not a day of the frame: "
    rule += f'roles={{"{column_cells.name}": {{"role": "{role}", "local": True}}}} takes it as the day it names'
    return BadQuery(column_cells.name, column_cells.example, rule)


def _moved_by_zone(column_cells: ColumnCells, read: ParsedTimes, role: str, grid: Grid) -> str | None:
    """Return what is said of the zone of times: which days they are of, and which of these are incomplete."""
    zones, name = _zones_in(column_cells), column_cells.name
    if not zones:
        stated = _stated_zone(name, grid) or _zone_of_column(grid)
        return f"{name} has days of {stated}, and a frame has days of UTC" if stated else None
    if read.written is None:
        return f"{name} names {zones}: its days are the ones that the texts name, and a frame has days of UTC"
    place = int(((read.written != read.at) & ~np.isnat(read.at)).argmax())
    note = (
        f"{name} names {zones}: {column_cells.texts[place]!r} is read as {pd.Timestamp(read.at[place]):%Y-%m-%d %H:%M}"
    )
    note += f' in UTC, and its days are of UTC; roles={{"{name}": {{"role": "{role}", "local": True}}}} has the days '
    note += "that its texts name"
    first, last = (pd.Timestamp(moment) for moment in (np.nanmin(read.at), np.nanmax(read.at)))
    parts = [f"{first:%Y-%m-%d} from {first:%H:%M}"] if first.hour else []
    parts += [f"{last:%Y-%m-%d} to {last:%H:%M}"] if last.hour < _LAST_HOUR else []
    return note + (f". Incomplete in UTC: {' and '.join(parts)}" if parts and read.precision == "time" else "")


def _zones_in(column_cells: ColumnCells) -> str:
    """Return the zones that the texts of a column name, such as PDT and PST; "" for none but UTC."""
    matches = (_ZONE.search(text) for text in (column_cells.texts if not column_cells.is_typed else ()))
    zones = dict.fromkeys(match[1] for match in matches if match)
    shown = [*zones][:_MOST_ZONES]
    return " and ".join(shown) if {*zones} - _UTC else ""


def _stated_zone(name: str, grid: Grid) -> str | None:
    """Return the zone that a header, or a line above it, says where no cell does; None for none, and for UTC."""
    of_line = (line for line in grid.above if _ZONE_WORDS.search(line))
    for text in (*BRACKETS.findall(name), *of_line):
        if match := _NAMED_ZONE.search(text):
            return None if match[0] in _UTC else f"{match[0]} ({text.strip()})"
        if _ZONE_WORDS.search(text):
            return f"another zone ({text.strip()})"
    return None


def _zone_of_column(grid: Grid) -> str | None:
    """Return the zone that a column of zones says of all rows, None for none, and for UTC."""
    for header in grid.columns:
        if not _ZONE_WORDS.search(header):
            continue
        zones = [str(text).strip() for text in grid.texts(header)[0].to_pylist()]
        others = [zone for zone in zones if zone.upper() not in _UTC and _NO_OFFSET.fullmatch(zone) is None]
        if others and all(map(_IS_ZONE.fullmatch, zones)):
            return f"{' and '.join(others[:_MOST_ZONES])} ({header})"
    return None


def _coarser(name: str, days: DayArray, stated: str | None, source: str) -> tuple[str, BadQuery | None]:
    """Return what distinct *days* stand for, and the question where they may be months.

    A single first day may be its month, if the name of the file, *source*, has that month.
    """
    if stated is not None:
        return stated, None
    dates = days.astype("datetime64[D]")
    gaps = np.unique(np.diff(dates))
    is_monthly = len(dates) > 0 and (dates == dates.astype("datetime64[M]")).all()
    is_monthly = is_monthly and (len(dates) > 1 or (dates[0].item() in _months_in_name(source)))
    is_weekly = len(dates) > 1 and (gaps % _WEEK == np.timedelta64(0, "D")).all()
    if not is_weekly and not is_monthly:
        return "day", None
    if len(dates) >= _FEWEST and (is_monthly or (gaps == _WEEK).all()):
        return "month" if is_monthly else "week", None
    unit = "month" if is_monthly else "week"
    shown = ", ".join(str(date) for date in dates[:3])
    rule = f'may be days or {unit}s ({shown}): say so with roles={{"{name}": "day"}} or roles={{"{name}": "{unit}"}}'
    return "day", BadQuery(name, UNSET, rule)


def _length(at: DayArray, until: DayArray) -> str:
    """Return what periods are by their first day and their end."""
    known = ~np.isnat(at) & ~np.isnat(until)
    lengths = np.unique(until[known].astype("datetime64[D]") - at[known].astype("datetime64[D]"))
    if (lengths == _DAY).all():
        return "day"
    weekdays = {*pd.DatetimeIndex(at[known]).day_name()}
    return f"week from {min(weekdays)}" if (lengths == _WEEK).all() and len(weekdays) == 1 else "period"


def _beside(grid: Grid) -> Periods | None:
    """Return the period that lines beside the table name for all its rows: Settlement Period, 2026-10-01 ~ 2026-10-31.

    A month is one where its line names a month, a period or what the amounts are.
    """
    named: list[np.datetime64] = []
    for line in (*grid.above, grid.sheet):
        if is_definition(line):
            continue
        text = line.strip(" \"'※*")
        begins = [0, *(match.end() for match in re.finditer(r"[\s:：,;|]+", text))][:_MOST_WORDS]
        for label, part in ((text[:begin], text[begin:].strip("()[] .")) for begin in begins):
            if (read := _read_in_line(part, grid.source)) is None:
                continue
            concepts = [concept for concept, _, _ in concepts_in(folded_header(label))]
            is_of_rows = line == grid.sheet or any(
                concept.role == "amount" or concept.name in ("period", "month") for concept in concepts
            )
            if read.until is not None or (read.precision == "month" and is_of_rows):
                starts, ends = _spans(read)
                return _of_all(grid, starts[0], ends[0], line)
            role = next((concept.role for concept in concepts), "")
            if role in ("start", "end") and read.precision == "day":
                named.append(read.at[0] + (_DAY if role == "end" else np.timedelta64(0, "D")))
            break
    return (
        _of_all(grid, named[0], named[1], "lines above the header") if len(named) == 2 and named[0] < named[1] else None
    )


def _read_in_line(text: str, source: str, **hints: Any) -> ParsedTimes | None:
    """Return the day, month or period that a text is, also two days with a word between them; None for another text."""
    with suppress(BadQuery, ValueError):
        return read_times([text], field=source, **hints)
    if (pair := _DAYS_OF_LINE.fullmatch(text)) is not None:
        with suppress(BadQuery, ValueError):
            read = read_times([*pair.groups()], field=source, **hints)
            if read.precision == "day" and read.at[0] <= read.at[1]:
                return replace(read, at=read.at[:1], until=read.at[1:] + _DAY)
    return None


def _stated(days: str, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], grid: Grid) -> Periods:
    """Return the period of all rows that an argument states: 2026-10-14, 2026-10, Q4 2026, 2026-10-01/2026-10-31.

    Raises:
        BadQuery: it is none, or a column has the days of the rows.
    """
    if theirs := [name for role in ("day", "start", "end") for name in _best(meanings, cells, role)]:
        rule = f"is of tables without days, and {theirs[0]} has them: leave days= out, "
        raise BadQuery("days", days, f'{rule}or pass roles={{"{theirs[0]}": "text"}} if it means something else')
    try:
        read = read_times([part.strip() for part in str(days).split("/")], field="days")
    except (BadQuery, ValueError):
        rule = "is no day, month or period: pass 2026-10-14, 2026-10, Q4 2026 or 2026-10-01/2026-10-31"
        raise BadQuery("days", days, rule) from None
    start, end = read.at[0], read.at[-1] + _DAY
    if read.until is not None or read.precision == "month":
        start, end = (edge[place] for edge, place in zip(_spans(read), (0, -1), strict=True))
    elif read.precision == "week":
        end = read.at[-1] + _WEEK
    if len(read.at) > 2 or start >= end:
        raise BadQuery("days", days, "is no period: its first day comes first, 2026-10-01/2026-10-31")
    return replace(_of_all(grid, start, end, days), evidence=Evidence("period", "the argument", days))


def _of_all(grid: Grid, start: np.datetime64, end: np.datetime64, line: str) -> Periods:
    at, until = (_moments(np.repeat(moment, len(grid.rows))) for moment in (start, end))
    length = "day" if end - start == _DAY else "period"
    return Periods(at, until, length, "", Evidence("period", BESIDE_TABLE, line))


def _none(grid: Grid, problem: BadQuery | None = None) -> Periods:
    if isinstance(problem, NotTimes):  # whose class is none of the public errors
        problem = BadQuery(problem.field, problem.value, problem.rule, problem.allowed)
    nothing = _moments(np.full(len(grid.rows), np.datetime64("NaT", "us")))
    return Periods(nothing, None, None, problem=problem)


def _moments(at: DayArray) -> Series[Any]:
    return Series(pd.DatetimeIndex(at.astype("datetime64[us]")).tz_localize("UTC"))


def periods_within(table: Any, days: Interval | None, *, frame: str) -> DataFrame | None:
    """Return the periods of an outside table whose rows stand for several days, by start and end, exclusive.

    None for a table of days.

    Raises:
        BadQuery: the table has no days, or its periods overlap, or lie only in part in *days*, which *frame* has.
    """
    if table.period in ("day", "time", None):
        if table.periods.problem is not None:
            raise table.periods.problem
        return None
    periods = DataFrame({"start": table.starts, "end": table.ends}).dropna().drop_duplicates().sort_values("start")
    if (periods["start"].iloc[1:].to_numpy() < periods["end"].iloc[:-1].to_numpy()).any():
        raise _overlap(table)
    for edge in () if days is None else (pd.Timestamp(days.start), pd.Timestamp(days.end)):
        cut = periods[(periods["start"] < edge) & (periods["end"] > edge)]
        if len(cut):
            start, end = cut.iloc[0]
            rule = f"has a row for {start:%Y-%m-%d} to {end - pd.Timedelta(days=1):%Y-%m-%d}"
            raise BadQuery("other", table.source, f"{rule}, which {frame} covers only in part: query all its days")
    return periods.reset_index(drop=True)


def _overlap(table: Any) -> BadQuery:
    """Return the exception for periods that overlap, which names the longest and a row within it."""
    longest = int((table.ends - table.starts).fillna(pd.Timedelta(0)).to_numpy().argmax())
    start, end = table.starts.iloc[longest], table.ends.iloc[longest]
    is_within = (table.starts < end) & (table.ends > start) & ((table.starts != start) | (table.ends != end))
    shown = f"row {table.rows[longest]} stands for {start:%Y-%m-%d} to {end - pd.Timedelta(days=1):%Y-%m-%d}"
    rule = f"has periods that overlap: {shown}"
    if is_within.any():
        row = int(is_within.to_numpy().argmax())
        days = f"{table.starts.iloc[row]:%Y-%m-%d} to {table.ends.iloc[row] - pd.Timedelta(days=1):%Y-%m-%d}"
        rule += f", and row {table.rows[row]} for {days}"
    return BadQuery("other", table.source, f"{rule}. Take out the row if it is a total, or pass one file for each")


def period_of(days: Series[Any], periods: DataFrame) -> Series[Any]:
    """Return the start of the period that each day lies in, NaT for a day outside them."""
    place = np.searchsorted(periods["start"].to_numpy(), days.to_numpy(), side="right") - 1
    inside = (place >= 0) & (days.to_numpy() < periods["end"].to_numpy()[np.maximum(place, 0)])
    return periods["start"].iloc[np.maximum(place, 0)].set_axis(days.index).where(inside)


def period_texts(periods: DataFrame) -> tuple[str, ...]:
    """Return periods in ISO 8601, as a receipt has them."""
    return tuple(f"{start:%Y-%m-%d}/{end:%Y-%m-%d}" for start, end in periods.itertuples(index=False))
