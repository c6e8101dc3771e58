"""A table as it means itself: a row for each day or country of a header, and for each of two things in one cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from gamelens.analysis.ads.canonical_names import NameKind, canonical_name
from gamelens.analysis.files.quarters import quarters_of
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import (
    MEASURES,
    ColumnCells,
    Evidence,
    Meaning,
    Role,
    Vendor,
    concepts_in,
    find_header,
    header_meanings,
)
from gamelens.analysis.outside_data.rows.row_states import state_of_header
from gamelens.analysis.outside_data.shape.listed_measures import with_listed_measures
from gamelens.analysis.outside_data.shape.measure_rows import with_measures_as_columns
from gamelens.analysis.outside_data.shape.named_days import is_day, is_day_without_year, is_range
from gamelens.analysis.outside_data.shape.outline_keys import with_keys_of_outline
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.total_words import AVERAGE, TOTAL, WHOLE_OF_NAMES
from gamelens.errors import BadQuery

_FEWEST_DAYS: Final = 2
_MONTHS: Final = 3  # of a quarter
_MOST_WORDS_OF_DAY: Final = 3
_JOINING: Final = " :|,_–-"
_YEAR: Final = re.compile(r"(?<!\d)20\d\d(?!\d)")
_ROUNDING: Final = 0.005
_FEWEST_NAMES: Final = 2
_NAMES_IN_HEADERS: Final[tuple[Role, ...]] = ("network", "country")
_FEWEST_WITHOUT_YEAR: Final = 3
_DATE: Final = r"(?P<day>\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](?:20)?\d\d|20\d{6})"
_DAY_LAST: Final = re.compile(rf"(?P<value>.*[^\W\d_][^\d]*?)[\s:|,_–-]+{_DATE}")
_DAY_FIRST: Final = re.compile(rf"{_DATE}[\s:|,_–-]+(?P<value>[^\d]*[^\W\d_].*)")
_NOT_ADDED_OVER_DAYS: Final = frozenset({"stock", "cumulative", "distinct"})
"""Roles that a header says whatever the format says of all."""


def reshaped(grid: Grid, vendor: Vendor | None, *, keeps_totals: bool = False) -> tuple[Grid, dict[str, Meaning]]:
    """Return *grid* as it is meant, and the meaning of columns that this makes.

    It has one row for each country or day where headers hold these. A format may also say that cells of two things are
    taken apart, and that rows are events, which a column counts. Names of an outline become keys of the rows below,
    unless it *keeps_totals*.
    """
    made: dict[str, Meaning] = {}
    outline: dict[str, Meaning] = {}
    if vendor is None and not keeps_totals:
        grid, outline = with_keys_of_outline(grid)
    table = vendor.table if vendor else {}
    if (split := table.get("split")) and (name := find_header(split["column"], grid.columns)):
        texts, codes = grid.texts(name)
        matches = [re.fullmatch(split["pattern"], text) for text in texts.to_pylist()]
        cells = grid.cells
        for part in re.compile(split["pattern"]).groupindex:
            found = pa.array([*(match[part] if match else None for match in matches), None], pa.string())
            column = found.take(pa.array(np.where(codes < 0, len(texts), codes)))
            cells = cells.append_column(f"{name}: {part}", column.dictionary_encode())
        grid = replace(grid, cells=cells)
    if vendor and (wide := table.get("wide")):
        pattern, names = re.compile(wide), grid.columns
        (key,) = [part for part in pattern.groupindex if part != "value"]
        grid = _long(
            grid, {name: (match["value"], match[key]) for name in names if (match := pattern.fullmatch(name))}, key
        )
        for name in [name for name in grid.columns if name not in names]:
            measures = [known.role for known in header_meanings(name) if known.role in MEASURES - {"rate"}]
            is_stated = measures[:1] and measures[0] in _NOT_ADDED_OVER_DAYS
            role = measures[0] if is_stated else table["wide_role"]
            made[name] = Meaning(role, Evidence(role, vendor.name, name))
        made.pop(key, None)
    else:
        grid, made = _with_days_in_rows(grid, vendor)
        if not made and vendor is None:
            grid, made = _with_names_in_rows(grid)
    if vendor and (rows := table.get("rows_are")) and rows not in grid.columns:
        ones = pa.chunked_array([pa.array(np.ones(len(grid.rows), dtype="int64"))])
        grid = replace(grid, cells=grid.cells.append_column(rows, ones))
        made[rows] = Meaning("count", Evidence("count", vendor.name, rows))
    if vendor and (measure := vendor.measure(grid.above)):
        meaning = next((known for known in header_meanings(measure) if known.role in MEASURES), None)
        others = [name for name in grid.columns if meaning and vendor.meaning_of(name) is None]
        made |= {
            name: replace(meaning, evidence=Evidence(meaning.role, vendor.name, measure)) for name in others if meaning
        }
    grid, listed = with_listed_measures(grid)
    return grid, outline | made | listed


def _with_days_in_rows(grid: Grid, vendor: Vendor | None) -> tuple[Grid, dict[str, Meaning]]:
    """Return *grid* with a row for each day that is a header, alone or beside a measure."""
    headers = {name: pair for name in grid.columns if (pair := _measure_and_day(name)) is not None}
    days = [name for name in grid.columns if is_day(name)]
    without_year = [name for name in grid.columns if is_day_without_year(name)]
    is_sure = len(without_year) >= _FEWEST_WITHOUT_YEAR or all(map(is_range, without_year))
    days = days or (without_year if is_sure else [])
    if max(len(headers), len(days)) < _FEWEST_DAYS:
        return grid, {}
    cells = {name: ColumnCells(grid, name) for name in grid.columns}
    numbers = [name for name in grid.columns if cells[name].may_be_number or not len(cells[name].distinct)]
    days = [name for name in days if name in numbers]
    sums = {name: parts for name in days if len(parts := _months_of_quarter(name, days, cells)) >= _FEWEST_DAYS}
    days = [name for name in days if name not in sums]
    forecasts = [name for name in days if state_of_header(name) == "expected"]
    if len(forecasts) < len(days):  # 11 (forecast) beside 10
        days = [name for name in days if name not in forecasts]
    corner = _measure_of_corner(grid, cells) if days else None
    value = next((line for line in (corner, *grid.above) if line and _measures(line)), None) or "value"
    matches = {name: (value, name) for name in days}
    if len(days) < _FEWEST_DAYS:
        matches = {name: pair for name, pair in headers.items() if name in numbers}
    if len({day for _, day in matches.values()}) < _FEWEST_DAYS:
        return grid, {}
    others = [name for name in grid.columns if name not in matches and name not in sums]
    filled = [name for name in others if name in numbers and len(cells[name].distinct)]
    planned = [name for name in filled if name in forecasts]
    dropped = [name for name in filled if name not in planned and _is_of_all(name, cells, vendor)]
    notes = [f"{', '.join(dropped)} left out: a number of all days, and days are columns"] if dropped else []
    notes += [f"{name} left out: it adds up {', '.join(parts)} in every row" for name, parts in sums.items()]
    notes += [f"{', '.join(planned)} left out: no amounts of days that were, by their brackets"] if planned else []
    dropped += [*planned, *sums]
    names = ["name" if name == corner else name for name in grid.columns]
    kept = replace(grid, cells=grid.cells.rename_columns(names), notes=(*grid.notes, *notes))
    kept = replace(kept, cells=kept.cells.drop_columns(dropped))
    key = next(name for name in ("day", "day of header", "\0day") if name not in names)
    first = next(iter(matches))
    said = {key: Meaning("day", Evidence("day", "headers", first))}
    if value == "value" and (titled := _money_of_title(grid.above)) is not None and value not in grid.columns:
        said[value] = titled
    days_of = {name: day for name, (part, day) in matches.items() if part == value}
    if (turned := with_measures_as_columns(kept, days_of, key)) is not None:
        return turned, {key: said[key]}
    return _long(kept, matches, key), said


def _measure_and_day(header: str) -> tuple[str, str] | None:
    """Return the measure and the day that a header names beside each other: 2026-11-01 Spend, Oct 2026 Actual."""
    match = _DAY_LAST.fullmatch(header) or _DAY_FIRST.fullmatch(header)
    if match:
        return match["value"].strip(), match["day"]
    if _YEAR.search(header) is None:
        return None
    words = header.split()
    for count in range(min(_MOST_WORDS_OF_DAY, len(words) - 1), 0, -1):
        for first in range(len(words) - count + 1):
            day = " ".join(words[first : first + count]).strip(_JOINING)
            value = " ".join((*words[:first], *words[first + count :])).strip(_JOINING)
            if any(map(str.isalpha, value)) and _YEAR.search(value) is None and "(" not in day and is_day(day):
                return value, day
    return None


def _months_of_quarter(header: str, days: Sequence[str], cells: Mapping[str, ColumnCells]) -> list[str]:
    """Return the headers of months between which a quarter is their sum in every row, beside Oct, Nov and Dec."""
    if not _is_quarter(header):
        return []
    months = [name for name in days if not _is_quarter(name)]
    beside = days.index(header)
    before = [name for name in days[:beside] if name in months][-_MONTHS:]
    behind = [name for name in days[beside + 1 :] if name in months][:_MONTHS]
    values = cells[header].likely_numbers
    for parts in (before, behind):
        if len(parts) < _FEWEST_DAYS or np.isnan(values).all():
            continue
        added = np.nansum([cells[name].likely_numbers for name in parts], axis=0)
        if (
            np.abs(values - added)[~np.isnan(values)] <= _ROUNDING * np.maximum(np.abs(added), 1)[~np.isnan(values)]
        ).all():
            return parts
    return []


def _is_quarter(header: str) -> bool:
    with suppress(BadQuery):
        return any(quarters_of([text]) is not None for text in (header.strip(), f"{header.strip()} 2026"))
    return False


def _with_names_in_rows(grid: Grid) -> tuple[Grid, dict[str, Meaning]]:
    """Return *grid* with a row for each network or country that is a header, and no other column has numbers.

    There may be a column of their total, which countries need: ranks and prices by country have none.
    """
    for role in _NAMES_IN_HEADERS:
        headers = [name for name in grid.columns if _is_name(name, role)]
        if len(headers) < _FEWEST_NAMES or any(map(_measures, headers)):  # Meta (USD) is an amount as it is
            continue
        cells = {name: ColumnCells(grid, name) for name in grid.columns}
        numbers = [name for name in grid.columns if cells[name].may_be_number]
        totals = [
            name
            for name in numbers
            if name not in headers and (TOTAL.fullmatch(name) or WHOLE_OF_NAMES.fullmatch(name))
        ]
        has_names = any(
            known.role == role and cells[name].allows(known)
            for name in grid.columns
            if name not in headers
            for known in header_meanings(name)
        )
        if {*numbers} | {name for name in headers if not len(cells[name].distinct)} != {*headers, *totals} or has_names:
            continue
        if role == "country" and not any(_adds_up(total, headers, cells) for total in totals):
            continue
        above = [line for line in (*_corners(grid), *grid.above) if _measures(line)]
        value = next((line for line in above if line not in grid.columns), "value")
        key = next(name for name in (role, f"{role} of header", f"\0{role}") if name not in grid.columns)
        plural = {"network": "networks", "country": "countries"}[role]
        adds = "adds" if len(totals) == 1 else "add"
        notes = [f"{', '.join(totals)} {adds} up the {plural}, which are columns, and is left out"] if totals else []
        kept = replace(grid, cells=grid.cells.drop_columns(totals), notes=(*grid.notes, *notes))
        long = _long(kept, {name: (value, name) for name in headers}, key)
        return long, {key: Meaning(role, Evidence(role, "headers", headers[0]))}
    return grid, {}


def _is_name(header: str, role: Role) -> bool:
    """Return whether a header is the name of a network or a country."""
    kinds: tuple[NameKind, ...] = ("publisher", "network") if role == "network" else ("country",)
    return any(canonical_name(header, kind) for kind in kinds)


def _corners(grid: Grid) -> list[str]:
    """Return the cells beside each other above the first column: a pivot table has its measure there, Sum of Spend."""
    return [str(row[0]) for row in reversed(grid.cells_above) if row and row[0] not in (None, "")]


def _adds_up(total: str, headers: Sequence[str], cells: Mapping[str, ColumnCells]) -> bool:
    """Return whether a column adds up the columns *headers* in every row."""
    values = cells[total].likely_numbers
    known = ~np.isnan(values)
    added = np.nansum([cells[name].likely_numbers for name in headers], axis=0)
    off = np.abs(values - added)[known]
    return bool(known.any() and (off <= _ROUNDING * np.maximum(np.abs(added), 1)[known]).all())


def _measures(text: str) -> bool:
    return next((meaning.role for meaning in header_meanings(text)), "text") in MEASURES


def _money_of_title(lines: Sequence[str]) -> Meaning | None:
    """Return the amount that a title names between words for its report: 广告消耗日报, a daily report of spend."""
    for line in lines:
        known = [concept for concept, _, _ in concepts_in(folded_header(line))]
        money = {concept.name for concept in known if concept.name in ("cost", "income")}
        if len(money) == 1 and not any(concept.role in MEASURES - {"amount"} for concept in known):
            (name,) = money
            return Meaning("amount", Evidence("amount", "a line beside the table", line), name)
    return None


def _measure_of_corner(grid: Grid, cells: Mapping[str, ColumnCells]) -> str | None:
    """Return the header of a column of names that says what the numbers beside it are."""
    column_cells = cells[grid.columns[0]]
    return column_cells.name if not column_cells.may_be_number and _measures(column_cells.name) else None


def _is_of_all(name: str, cells: Mapping[str, ColumnCells], vendor: Vendor | None) -> bool:
    """Return whether a column has a number of all days, such as their total."""
    said = vendor.meaning_of(name) if vendor else None
    roles = [said.role] if said else [meaning.role for meaning in header_meanings(name) if cells[name].allows(meaning)]
    return bool(TOTAL.fullmatch(name) or AVERAGE.fullmatch(name)) or next(iter(roles), "number") in MEASURES


def _long(grid: Grid, matches: Mapping[str, tuple[str, str]], key: str) -> Grid:
    """Return *grid* with a row for each second part of *matches*, the value and the *key* of a header."""
    if not matches:
        return grid
    names = [*dict.fromkeys(name for _, name in matches.values())]
    headers = {match: header for header, match in matches.items()}
    values = [*dict.fromkeys(value for value, _ in matches.values())]
    others = [name for name in grid.columns if name not in matches]
    is_text = {
        value: len({str(grid.cells.column(name).type) for name, (part, _) in matches.items() if part == value}) > 1
        for value in values
    }
    count = len(grid.rows)
    empty = pa.nulls(count, pa.string()).dictionary_encode()
    types = {name: grid.cells.column(name).type for name in matches}
    parts = []
    formats = {name: [*grid.formats[name]] * len(names) for name in others if name in grid.formats}
    for key_value in names:
        columns = {name: grid.cells.column(name) for name in others}
        columns[key] = pa.array([key_value] * count, pa.string()).dictionary_encode()
        for value in values:
            header = headers.get((value, key_value), "")
            if is_text[value]:
                columns[value] = _as_text(grid, header) if header else empty
            else:
                other = next(name for name, (part, _) in matches.items() if part == value)
                columns[value] = grid.cells.column(header) if header else pa.nulls(count, types[other])
            written = [*grid.formats.get(header, [None] * count)]
            formats[value] = [*formats.get(value, ()), *written]
        parts.append(pa.table(columns))
    cells = pa.concat_tables(parts, promote_options="permissive").unify_dictionaries()
    return replace(grid, cells=cells, rows=np.tile(grid.rows, len(names)), formats=formats)


def _as_text(grid: Grid, name: str) -> Any:
    distinct, codes = grid.texts(name)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), distinct)
