"""Calendars: tables of holidays and events without numbers, whose rows hold on each of their days and countries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype

from gamelens.analysis.ads.canonical_names import countries_in
from gamelens.analysis.files.table_reader import STRUCK
from gamelens.analysis.outside_data.outside_table import OutsideTable, money_roles
from gamelens.analysis.outside_data.roles import MEASURES
from gamelens.analysis.outside_data.rows.row_states import cancelled_texts
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.total_words import LEXICON
from gamelens.errors import BadQuery

_DAY: Final = pd.Timedelta(days=1)
_OF_CALENDARS: Final = frozenset({"number", "rate"})
"""Numbers that stand beside the names of days: how many of them, a weight."""
_MOST_ROWS: Final = 1_000_000


def of_each_day(
    table: OutsideTable,
    frame: DataFrame,
    pairs: Mapping[str, str],
    chosen: Collection[str] = (),
    *,
    is_of_all: bool = False,
) -> OutsideTable:
    """Return a calendar with a row for each day of its rows, and for each country of *frame* where one says all.

    Another table, which has amounts or counts, or whose days are not compared, is returned as it is: a number of a week
    is none of its days. So a number of a calendar, such as of its days off, is left out, unless it is *chosen*. With
    *is_of_all* a calendar without countries holds in all.

    Raises:
        BadQuery: a row is struck through or cancelled, and nothing says whether it counts; or its periods have too
            many days, or a number of several days is asked for; or its title names a country, and *frame* has others.
    """
    numbers = [column.name for column in table.columns if column.role in MEASURES]
    names_days = any(column.role == "text" for column in table.columns)
    is_calendar = all(column.role in _OF_CALENDARS for column in table.columns if column.role in MEASURES)
    if table.period is None or not is_calendar or (numbers and not names_days):
        return table
    _check_struck(table)
    _check_cancelled(table)
    if any(is_datetime64_any_dtype(frame[name]) and column == table.periods.column for name, column in pairs.items()):
        of_days = _spread(table)
        if numbers and of_days is not table:
            if named := [name for name in numbers if name in chosen]:
                rule = f"is a number of several days in {table.source}, and none of each of them: "
                rule += f"{money_roles(table.column(named[0]))}or leave it out of columns="
                raise BadQuery(named[0], UNSET, rule)
            note = f"{', '.join(numbers)} of {table.source} left out: rows of several days hold on each of them"
            kept = tuple(column for column in of_days.columns if column.name not in numbers)
            cells = of_days.grid.cells.drop_columns(numbers)
            of_days = replace(
                of_days, columns=kept, grid=replace(of_days.grid, cells=cells), notes=(*of_days.notes, note)
            )
        table = of_days
    country = pairs.get("country_code")
    if country is None:
        return table if is_of_all or "country_code" not in frame else _of_no_country(table, frame)
    if country not in table.grid.columns:
        return table
    return _in_each_country(table, country, [*frame["country_code"].astype("object").unique()])


def _check_struck(table: OutsideTable) -> None:
    answered = table.arguments.get("given", {}).get("leave_out", {})
    if STRUCK not in table.grid.columns or STRUCK in answered:
        return
    is_struck = table.grid.cells.column(STRUCK).is_valid().to_numpy()
    if is_struck.any():
        rule = (
            f"is said of {table.grid.rows_text(is_struck)}, which may be cancelled: leave_out={ {STRUCK: ['yes']}!r} "
        )
        step = f"leaves {'it' if is_struck.sum() == 1 else 'them'} out, leave_out={ {STRUCK: []}!r} counts all"
        raise BadQuery(STRUCK, UNSET, rule + step)


def _check_cancelled(table: OutsideTable) -> None:
    answered = table.arguments.get("given", {}).get("leave_out", {})
    for name in [column.name for column in table.of_role("text") if column.name not in answered]:
        texts, codes = table.grid.texts(name)
        named = [str(text) for text in texts.to_pylist()]
        cancelled = cancelled_texts(name, named)
        is_cancelled = np.isin(codes, [named.index(text) for text in cancelled])
        if is_cancelled.any() and not is_cancelled.all():
            rule = f"is {', '.join(map(repr, cancelled))} in {table.grid.rows_text(is_cancelled)}: "
            step = f"leave_out={ {name: cancelled}!r} leaves {'it' if is_cancelled.sum() == 1 else 'them'} out, "
            raise BadQuery(name, UNSET, f"{rule}{step}leave_out={ {name: []}!r} counts all")


def _of_no_country(table: OutsideTable, frame: DataFrame) -> OutsideTable:
    """Return a calendar without countries with a note that it holds in all, unless its title names one.

    Raises:
        BadQuery: it does, and *frame* has other countries.
    """
    titles = {text: codes for text in (*table.grid.above, table.source) if (codes := countries_in(text))}
    of_titles = {code for codes in titles.values() for code in codes.values()}
    others = {str(name) for name in frame["country_code"].dropna().unique()} - of_titles
    if not others:
        return table
    if of_titles:
        code = min(of_titles)
        rule = f"has no column of countries, and {next(iter(titles))!r} names {', '.join(sorted(of_titles))}: "
        rule += f'country="{code}" takes its rows for that country alone, '
        rule += f'on={{"timestamp": "{table.periods.column}"}} for all'
        raise BadQuery("other", table.source, rule)
    note = f'{table.source} names no country, and holds in all of the frame: country="..." says which one'
    return replace(table, notes=(*table.notes, note))


def _spread(table: OutsideTable) -> OutsideTable:
    """Return a table with a row for each day of its rows."""
    lengths: Series[Any] = table.ends - table.starts
    days = (lengths.dt.total_seconds() / _DAY.total_seconds()).fillna(1).clip(lower=1)
    counts = np.ceil(days.to_numpy(dtype="float64")).astype("int64")
    if table.period == "time" or (counts == 1).all():
        return table
    if counts.sum() > _MOST_ROWS:
        longest = int(counts.argmax())
        rule = f"has a row for {counts[longest]:,} days, row {table.rows[longest]}, too many to have one for each"
        raise BadQuery("other", table.source, rule)
    places = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = _taken(table, places)
    starts = spread.periods.starts + pd.to_timedelta(within, unit="D")
    note = f"rows of {table.source} that stand for several days hold on each of them"
    periods = replace(spread.periods, starts=starts.astype(table.starts.dtype), until=None, length="day")
    return replace(spread, periods=periods, notes=(*table.notes, note))


def _in_each_country(table: OutsideTable, name: str, countries: list[Any]) -> OutsideTable:
    """Return a table whose rows of all countries are there for each of *countries*, None for an unknown one."""
    texts, codes = table.grid.texts(name)
    named = [str(text) for text in texts.to_pylist()]
    is_of_all = np.append(np.array([folded_header(text) in _all_countries() for text in named], dtype=bool), False)[
        codes
    ]
    if not is_of_all.any() or not countries:
        return table
    places = np.repeat(np.arange(len(codes)), np.where(is_of_all, len(countries), 1))
    values = np.array([*named, None], dtype=object)[codes][places]
    values[is_of_all[places]] = np.tile(
        np.array([None if pd.isna(country) else str(country) for country in countries], dtype=object),
        int(is_of_all.sum()),
    )
    spread = _taken(table, places)
    column = pa.array(values, pa.string()).dictionary_encode()
    cells = spread.grid.cells.set_column(spread.grid.columns.index(name), name, column)
    columns = tuple(
        replace(other, values=Series(values, dtype="str").astype("category")) if other.name == name else other
        for other in spread.columns
    )
    text = next(text for text in named if folded_header(text) in _all_countries())
    note = f"{name} {text!r} of {table.source} stands for all countries of the frame"
    return replace(spread, grid=replace(spread.grid, cells=cells), columns=columns, notes=(*spread.notes, note))


def _taken(table: OutsideTable, places: NDArray[np.int64]) -> OutsideTable:
    """Return a table with its rows at *places*, some of them several times."""
    grid = replace(table.grid, cells=table.grid.cells.take(pa.array(places)), rows=table.grid.rows[places], formats={})
    columns = tuple(
        replace(column, values=column.values.iloc[places].reset_index(drop=True), currencies=None)
        for column in table.columns
    )
    starts, ends = (moments.iloc[places].reset_index(drop=True) for moments in (table.starts, table.ends))
    periods = replace(table.periods, starts=starts, until=ends if table.periods.until is not None else None)
    return replace(table, grid=grid, columns=columns, rows=table.rows[places], periods=periods)


@cache
def _all_countries() -> frozenset[str]:
    return frozenset(map(folded_header, LEXICON["row_all_countries"]["words"]))
