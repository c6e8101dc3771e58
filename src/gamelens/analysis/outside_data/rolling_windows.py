"""Rolling windows: numbers of the last 7 or 28 days in each row, which overlap where rows are nearer to each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import MultiIndex, Series

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, SUMMANDS, ColumnCells, Meaning, groups_of
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.errors import BadQuery

_UNITS: Final = {
    1: r"d|days?|tage?n?|jours?|dias?|giorni|dagen|dni|dn[ia]|дн\w*|gun(?:luk)?|dagar|dager|dage|paivaa?|nap|hari|ngay",
    7: r"w|wks?|weeks?|wochen?|semaines?|semanas?|settiman[ae]|weken|tygodni\w*|недел\w*|hafta|veckor|uker|uger",
    30: r"mos?|months?|monate?n?|mois|meses|mesi|maanden|miesiec\w*|месяц\w*|ay|manader",
}
_EASTERN_UNITS: Final = {1: r"天|日間?|일간?", 7: r"週間?|周|주간?", 30: r"[個个か]?月間?|개월"}
_LAST: Final = (
    r"last|past|previous|prior|letzte\w*|vergangene\w*|derniere?s?|ultim[oiae]s?|laatste|afgelopen|ostatni\w*|son"
    r"|последни\w*|senaste|sidste|siste|viimeis\w*|posledn\w*|utolso|terakhir"
)
_EASTERN_LAST: Final = r"最近|过去|過去|近|直近|최근|지난"
_ROLLING: Final = (
    r"rolling|trailing|moving|gleitend\w*|rollierend\w*|glissant\w*|movil(?:es)?|moveis|movel|voortschrijdend\w*"
    r"|kroczac\w*|скользящ\w*|rullande|rullende|klouzav\w*|滚动|滾動|移動|이동"
)
_LENGTHS: Final = {
    days: re.compile(
        rf"(?<!\w)(?:l|(?:{_LAST}))\s?(\d{{1,3}})\s?(?:{unit})(?!\w)|(?<!\w)(\d{{1,3}})\s?(?:{_LAST})\s?(?:{unit})(?!\w)"
        rf"|(?:{_EASTERN_LAST})\s?(\d{{1,3}})\s?(?:{_EASTERN_UNITS[days]})"
    )
    for days, unit in _UNITS.items()
}
_LENGTHS_OF_ROLLING: Final = {
    days: re.compile(rf"(?<!\w)(\d{{1,3}})\s?(?:{unit})(?!\w)|(\d{{1,3}})\s?(?:{_EASTERN_UNITS[days]})")
    for days, unit in _UNITS.items()
}
_IS_ROLLING: Final = re.compile(rf"(?<!\w)(?:{_ROLLING})(?!\w)")
_YEAR: Final = re.compile(r"(?<!\w)(?:ttm|ltm|l12\s?m)(?!\w)")
_DAYS_OF_YEAR: Final = 365
_DAYS_ALONE: Final = re.compile(rf"(?<!\w)(\d{{1,3}})\s?(?:{_UNITS[1]})(?!\w)")
_FEWEST_PROVEN: Final = 5  # rows whose longer window is the sum of shorter ones
_MOST_PROVEN: Final = 5_000  # rows that are looked at
_ROUNDED: Final = 0.015  # of an amount in hundredths
_MOST_TEXTS: Final = 400  # days that a step names
_FEW_TEXTS: Final = 30  # windows of a column
_LONGEST: Final = 60  # letters of a text that is a window


def window_of(text: str) -> int | None:
    """Return the days of the rolling window that a header or a cell names: 7 for L7D and last 7 days, None for none.

    D7 and 7d alone are ages of cohorts.
    """
    folded = folded_header(text)
    if _YEAR.search(folded):
        return _DAYS_OF_YEAR
    for patterns in (_LENGTHS, *([_LENGTHS_OF_ROLLING] if _IS_ROLLING.search(folded) else [])):
        for days, pattern in patterns.items():
            if match := pattern.search(folded):
                count = next(int(group) for group in match.groups() if group)
                return count * days if count * days > 1 else None
    return None


def windows_of(
    meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], grid: Grid, day: str | None
) -> dict[str, int]:
    """Return the days of the window of each column of numbers that add up, as far as these have one.

    It stands in the header, in the header of their *day*, in a line above the table, or in each cell of a column.
    """
    stated = None if day is None else window_of(day)
    if stated is None:
        lines = [line for line in grid.above if _IS_ROLLING.search(folded_header(line))]
        stated = next(filter(None, map(window_of, lines)), None)
    of_cells = [{*found.values()} for found in window_cells(meanings, cells).values()]
    stated = next((min(days) for days in of_cells if len(days) == 1), stated)
    found: dict[str, int] = {}
    for name, meaning in meanings.items():
        if meaning.role in SUMMANDS or meaning.role == "number":
            days = window_of(name) or stated
            found |= {} if days is None else {name: days}
    return found


def proven_windows(
    values: Mapping[str, NDArray[np.float64]],
    days: NDArray[Any],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
) -> dict[str, int]:
    """Return the days of windows that headers name as a number alone, 7d and 28d, where *values* prove them.

    The sum of the shorter ones, one behind the other, is the longer one in every row of the same names, as no cohort's.
    """
    known = {name: match for name in values if (match := _DAYS_ALONE.search(folded_header(name)))}
    lengths = {name: int(known[name][1]) if name in known else 1 for name in values}
    pairs = [
        (short, long)
        for long in known
        for short in values
        if lengths[long] > lengths[short] > 0 and not lengths[long] % lengths[short]
    ]
    if not pairs:
        return {}
    keys = [key for key, meaning in meanings.items() if meaning.role in KEYS]
    group = groups_of({key: cells[key].numbers_of_values for key in keys}, keys, len(days))
    rows = np.flatnonzero(~np.isnat(days))[:_MOST_PROVEN]
    places = MultiIndex.from_arrays([group[rows], days[rows].astype("datetime64[D]").astype("int64")])
    found: dict[str, int] = {}
    for short, long in pairs if places.is_unique else ():
        of_day, count = Series(values[short][rows], index=places), lengths[long] // lengths[short]
        before = [
            of_day.reindex(MultiIndex.from_arrays([group[rows], places.get_level_values(1) - back * lengths[short]]))
            for back in range(count)
        ]
        apart = np.abs(np.sum([part.to_numpy() for part in before], axis=0) - values[long][rows])
        tested = apart[~np.isnan(apart)]
        if len(tested) >= _FEWEST_PROVEN and (tested <= _ROUNDED * count).all() and (values[long][rows] > 0).any():
            found |= {name: lengths[name] for name in (short, long) if lengths[name] > 1}
    return found


def window_cells(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, dict[str, int]]:
    """Return the columns all of whose texts are windows, and the days of each text."""
    found: dict[str, dict[str, int]] = {}
    for name, meaning in meanings.items():
        if meaning.role in MEASURES or cells[name].is_typed or not 0 < len(cells[name].distinct) <= _FEW_TEXTS:
            continue
        texts = [text for text in cells[name].texts if text]
        if not texts or any(len(text) > _LONGEST for text in texts):
            continue
        days = {text: window_of(text) for text in texts}
        known = {text: length for text, length in days.items() if length is not None}
        if len(known) == len(texts):
            found[name] = known
    return found


def overlap(days: NDArray[Any], window: int, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> bool:
    """Return whether windows that end with *days* overlap in the rows of the same names."""
    keys = [key for key, meaning in meanings.items() if meaning.role in KEYS]
    group = groups_of({key: cells[key].numbers_of_values for key in keys}, keys, len(days))
    at = days.astype("datetime64[D]").astype("int64")
    known = ~np.isnat(days)
    order = np.lexsort((at[known], group[known]))
    apart = np.diff(at[known][order])
    is_next = (np.diff(group[known][order]) == 0) & (apart > 0)
    return bool((apart[is_next] < window).any())


def windows_apart(days: Collection[Any], window: int) -> list[Any]:
    """Return the latest of *days* and those before it whose windows do not overlap."""
    kept: list[Any] = []
    for day in sorted(days, reverse=True):
        if not kept or kept[-1] - day >= np.timedelta64(window, "D"):
            kept.append(day)
    return kept


def window_problems(
    windows: Mapping[str, int],
    day: str | None,
    days: NDArray[Any] | None,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    answered: Collection[str],
) -> dict[str, BadQuery]:
    """Return the question about each column whose windows overlap, so that they do not add up.

    *days* are the last days of the windows, of the column *day*. The columns *answered* count as they are.
    """
    problems: dict[str, BadQuery] = {}
    summands = [name for name, meaning in meanings.items() if meaning.role in SUMMANDS or meaning.role == "number"]
    for name, texts in window_cells(meanings, cells).items():
        if len({*texts.values()}) > 1 and name not in answered:
            least = min(texts, key=lambda text: texts[text])
            others = [text for text in texts if texts[text] != texts[least]]
            rule = f"has windows of {', '.join(texts)} by {name}, which overlap and do not add up: "
            rule += f"leave_out={ {name: others}!r} takes {least} alone, leave_out={ {name: []}!r} counts all"
            problems |= {column: BadQuery(column, UNSET, rule) for column in summands}
    if day is not None and days is not None and day not in answered:
        for name, window in windows.items():
            if name not in problems and overlap(days, window, meanings, cells):
                problems[name] = _problem(name, day, days, windows, summands, cells[day])
    return problems


def _problem(
    name: str,
    day: str,
    days: NDArray[Any],
    windows: Mapping[str, int],
    summands: Sequence[str],
    of_days: ColumnCells,
) -> BadQuery:
    """Return the question about a column of windows that overlap, with the rows of windows that do not."""
    window = windows[name]
    alone = {other: f"{other} L{windows[other]}D" for other in windows if window_of(other) is None}
    if name in alone and _DAYS_ALONE.search(folded_header(name)):
        renamed = f"frame = gl.read_table(...).frame.rename(columns={alone!r}); gl.read_table(frame)"
        rule = f"is of {window} days in each row, by its cells: they add up numbers of other rows, so that "
        rule += f"windows overlap and do not add up: {renamed} reads them as windows, "
        return BadQuery(name, UNSET, f"{rule}leave_out={ {day: []}!r} counts all rows")
    rule = (
        f"is of {window} days in each row, and rows are nearer to each other: their windows overlap and do not add up"
    )
    kept = windows_apart(np.unique(days[~np.isnat(days)]).astype("datetime64[D]"), window)
    shown = ", ".join(map(str, kept[:3])) + (", ..." if len(kept) > 3 else "")
    others = [other for other in summands if windows.get(other) != window]
    texts = of_days.texts if not of_days.is_typed else []
    left = [text for text, at in zip(texts, _days_of_texts(of_days, days), strict=False) if at not in kept]
    whole = f"leave_out={ {day: []}!r} counts all rows"
    if not left or len(left) > _MOST_TEXTS:
        step = f'frame = gl.read_table(...).frame; days = frame["{day}"].dt.strftime("%Y-%m-%d"); '
        step += f"gl.read_table(frame[days.isin({[*map(str, kept)]!r})])"
    else:
        step = f"leave_out={ {day: left}!r}"
    if others:
        step += f" with roles={dict.fromkeys(others, 'text')!r}"
    return BadQuery(name, UNSET, f"{rule}: {step} takes the windows that end on {shown}, {whole}")


def _days_of_texts(column_cells: ColumnCells, days: NDArray[Any]) -> list[Any]:
    """Return the day of each distinct text of a column whose rows have *days*."""
    found = np.full(len(column_cells.texts), np.datetime64("NaT", "D"))
    known = column_cells.codes >= 0
    found[column_cells.codes[known]] = days[known].astype("datetime64[D]")
    return [*found]
