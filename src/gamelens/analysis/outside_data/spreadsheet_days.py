"""Numbers below a word for days: dates of a spreadsheet, such as 46296, or a measure of a day, such as spend day.

And columns of one measure, whose headers end in the names of countries: `Installed audience: Italy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.files.date_parsing import SERIALS, ParsedTimes, day_of_serial
from gamelens.analysis.outside_data.roles import (
    MEASURES,
    TIMES,
    ColumnCells,
    Meaning,
    concepts_in,
    header_meanings,
    is_at_end_of_day,
)
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.total_words import LEXICON

_OF_DAYS: Final = frozenset({"day", "start", "end"})
_AROUND: Final = np.timedelta64(400, "D")
"""How far from the other days of a table a date may lie: campaigns begin before the days of their rows."""
_FEWEST: Final = 3  # numbers that show whether they lie as close as days


class _Days(NamedTuple):
    first: np.datetime64
    last: np.datetime64


def without_numbers_as_days(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with numbers such as 38238 as what else their header says, where they are no dates.

    They are dates below nothing but words of times, or if they lie as close as days do. Beside days that are read,
    dates lie near these: 2004 is no date beside 2026.
    """
    days = [name for name, known in meanings.items() if known.role in _OF_DAYS]
    numbers = {name: serials for name in days if (serials := _serials(cells[name])) is not None}
    beside = [read for name in days if name not in numbers and (read := _days_read(cells[name])) is not None]
    found = dict(meanings)
    for name in sorted(numbers, key=lambda name: not _is_only_times(name)):
        if meanings[name].evidence.where != "header":
            continue
        if _are_dates(name, numbers[name], beside):
            beside.append(_Days(day_of_serial(numbers[name].min()), day_of_serial(numbers[name].max())))
            continue
        others = (known for known in header_meanings(name) if known.role not in TIMES)
        found[name] = next((known for known in others if cells[name].allows(known)), cells[name].own_meaning())
    return found


def _serials(column_cells: ColumnCells) -> NDArray[np.float64] | None:
    """Return the distinct numbers that may be dates of a spreadsheet, None for a column that mostly has others."""
    is_digits = column_cells.is_typed or column_cells.example.strip()[:5].isdecimal()  # and no long column of times
    if not is_digits or not column_cells.is_number:
        return None
    numbers = column_cells.likely_numbers
    known = np.unique(numbers[~np.isnan(numbers)])
    column_cells.release_numbers()
    serials: NDArray[np.float64] = known[(known >= SERIALS[0]) & (known < SERIALS[-1] + 1)]
    return serials if 2 * len(serials) > len(known) else None


def _days_read(column_cells: ColumnCells) -> _Days | None:
    """Return the first and the last day of a column of days that can be read."""
    if column_cells.is_typed:
        known = column_cells.values.dropna() if column_cells.are_times else []
        ends = [np.datetime64(f"{at:%Y-%m-%d}", "D") for at in (min(known), max(known))] if len(known) else []
        return _Days(*ends) if ends else None
    read = column_cells.times
    at = read.at[~np.isnat(read.at)] if isinstance(read, ParsedTimes) else np.array([])
    return _Days(at.min().astype("datetime64[D]"), at.max().astype("datetime64[D]")) if len(at) else None


def _are_dates(name: str, serials: NDArray[np.float64], beside: Sequence[_Days]) -> bool:
    """Return whether numbers below a word of days are dates, as far as *name* and the days *beside* them say."""
    first, last = day_of_serial(serials[0]), day_of_serial(serials[-1])
    is_near = any(first >= days.first - _AROUND and last <= days.last + _AROUND for days in beside)
    if beside and not is_near:
        return False
    if _is_only_times(name):
        return True
    if is_at_end_of_day(name):
        return False
    has_measure = any(concept.role in MEASURES for concept, _, _ in concepts_in(folded_header(name)))
    are_close = len(serials) >= _FEWEST and 2 * len(serials) > serials[-1] - serials[0]
    return are_close or (is_near and not has_measure)


def _is_only_times(name: str) -> bool:
    """Return whether a header is nothing but words of times."""
    rest = folded_header(name)
    for concept, phrase, _ in concepts_in(rest):
        rest = rest.replace(phrase, " ", 1) if concept.role in TIMES else rest
    return not rest.strip()


def with_one_role_by_country(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with one role for the numbers of one measure by country: `X: Italy` and `X: All countries`."""
    families: dict[str, list[str]] = {}
    for name, known in meanings.items():
        measure, colon, country = name.replace("：", ":").rpartition(":")
        is_of_words = known.evidence.where in ("header", "cells") and known.role in MEASURES
        if colon and is_of_words and _is_country(country):
            families.setdefault(folded_header(measure), []).append(name)
    found = dict(meanings)
    for names in families.values():
        named = [name for name in names if meanings[name].role != "number"] or names
        roles = [meanings[name].role for name in named]
        model = meanings[max(named, key=lambda name: roles.count(meanings[name].role))]
        for name in names:
            evidence = replace(model.evidence, where="the headers of the other countries")
            is_other = meanings[name].role != model.role and cells[name].allows(model)
            found[name] = replace(model, evidence=evidence) if is_other else meanings[name]
    return found


def _is_country(text: str) -> bool:
    folded = folded_header(text)
    are_all = any(folded == words or folded.startswith(f"{words} ") for words in _all_countries())
    return are_all or canonical_name(text.strip(), "country") is not None


@cache
def _all_countries() -> frozenset[str]:
    return frozenset(folded_header(words) for words in LEXICON["row_all_countries"]["words"])
