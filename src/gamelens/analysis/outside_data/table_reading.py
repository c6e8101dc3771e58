"""What a table from outside means: a role for each column, by argument, vendor, header and cells, in this order."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import Series
from pandas.api.types import is_datetime64_any_dtype

from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.files.currency_names import currencies_of, is_currency
from gamelens.analysis.files.date_parsing import YEARS, ParsedTimes, date_words
from gamelens.analysis.files.header_rows import SEARCHED_ROWS
from gamelens.analysis.files.magnitudes import unsure_magnitude
from gamelens.analysis.files.number_parsing import MARKS, Mark, WrittenNumbers, are_errors, decimal_mark
from gamelens.analysis.files.table_reader import HIDDEN, STRUCK, Grid, read_grid
from gamelens.analysis.outside_data.bank_rates.quoted_rates import (
    MOST_SERIES,
    are_quotes,
    quoted_headers,
    with_units_in_headers,
    without_names_of_currencies,
)
from gamelens.analysis.outside_data.currency_evidence import (
    OF_CODES,
    OfMoney,
    columns_of_codes,
    currencies_of_column,
    currency_beside,
    multiple_problem,
    only_for,
    with_proven_currencies,
)
from gamelens.analysis.outside_data.header_months import with_month_problems
from gamelens.analysis.outside_data.outside_table import HAS_MONEY, OutsideColumn, OutsideTable, money_roles
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Weight, Written, fitting_formula, places_of
from gamelens.analysis.outside_data.related_amounts import with_related_amounts, with_related_counts
from gamelens.analysis.outside_data.roles import (
    KEYS,
    MEASURED,
    MEASURES,
    ROLES,
    SUMMANDS,
    TIMES,
    ColumnCells,
    Evidence,
    Meaning,
    Role,
    Vendor,
    concepts_in,
    find_header,
    groups_of,
    header_meanings,
    is_kind_header,
    is_no_money,
    is_of_any_kind,
    platform_beside,
    summands_of,
    units_among,
    vendor_of,
)
from gamelens.analysis.outside_data.rolling_windows import proven_windows, window_problems, windows_of
from gamelens.analysis.outside_data.row_periods import Periods, day_column, day_in_lines, periods_of, step_of_days
from gamelens.analysis.outside_data.rows.debits_and_credits import ledger_sides, with_ledger_problems
from gamelens.analysis.outside_data.rows.document_sums import DocumentSums, document_sums, is_short
from gamelens.analysis.outside_data.rows.repeated_amounts import repeated_amount_problem
from gamelens.analysis.outside_data.rows.repeated_keys import FILLED_DOWN, with_repeated_keys
from gamelens.analysis.outside_data.rows.repeated_rows import (
    alike_rows,
    are_many,
    export_times,
    of_one_document,
    repeated_problem,
    repeated_rows,
    restated_problem,
    restated_rows,
    row_hashes,
    superseded_problem,
    superseded_rows,
)
from gamelens.analysis.outside_data.rows.row_states import (
    is_void_header,
    left_out,
    notes_on_credits,
    notes_on_the_rest,
    rows_named,
    rows_with,
    state_problem,
    stated_rows,
    with_payouts,
    without_reversals,
)
from gamelens.analysis.outside_data.rows.running_totals import (
    growth_problem,
    meaning_of_differences,
    stated_totals,
    with_amounts_of_days,
    with_running_totals,
)
from gamelens.analysis.outside_data.rows.tax_bases import tax_bases, tax_problem
from gamelens.analysis.outside_data.rows.total_columns import with_total_columns
from gamelens.analysis.outside_data.rows.total_rows import TotalRows, filled_down, find_totals, note_of
from gamelens.analysis.outside_data.shape.reshaping import reshaped
from gamelens.analysis.outside_data.shape.tables_below import before_header, of_one_table
from gamelens.analysis.outside_data.snapshots import are_charts, with_levels
from gamelens.analysis.outside_data.spreadsheet_days import with_one_role_by_country, without_numbers_as_days
from gamelens.analysis.outside_data.stated_years import with_days_below_headings
from gamelens.analysis.outside_data.unfinished_periods import unfinished_period
from gamelens.analysis.outside_data.units_of_counts import with_counts_in_units
from gamelens.analysis.outside_data.values_of_conversions import (
    BY_NAMES,
    money_beside_rate,
    with_currency_of_account,
    with_numerators_of_rates,
    with_values_of_conversions,
)
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.money_units import (
    NO_DECIMALS,
    NO_HUNDREDTHS,
    MoneyUnit,
    multiple_in_script,
    multiple_of_counts,
    multiple_of_rupees,
    unit_in,
)
from gamelens.analysis.outside_data.words.total_words import ACTUAL, AVERAGE_AT_ONE_END
from gamelens.errors import BadQuery
from gamelens.wire.dimensions import DIMENSIONS

RoleArgument = str | Mapping[str, Any]
_ALIASES: Final = {
    "cost": ("amount", "cost"),
    "income": ("amount", "income"),
    "week": ("day", "week"),
    "month": ("day", "month"),
}
_DETAILS: Final = frozenset(
    {"role", "of", "currency", "weight", "scale", "concept", "local", "language", "first", "negative", FILLED_DOWN}
)
_PRICES: Final = frozenset({"developer proceeds", "partner share", "customer price", "net proceeds per unit"})
_FEWEST_HEADERS: Final = 2  # that a row of headers has
_WORD_BEHIND: Final = re.compile(r"[^\w]*\d[\d.,' ]*([^\W\d_]{1,9})\.?[^\w]*")
_OF_GRID: Final = ("sheet", "encoding", "missing", "header_row")
_COUNTED_TWICE: Final = SUMMANDS | {"number", "stock", "cumulative"}
_OF_CHARTS: Final = frozenset({"rank", "number", "distinct", "amount"})
_DENIED: Final = re.compile(r"(?i)[:：]\s*(?:false|no|none|nein|non|нет|0)\W*$")  # Potential Incomplete Data: False
_OF_PLANS: Final = frozenset({"budget", "planned"})
_MOST_CODES: Final = 3  # that a note names
_MAY_BE_MONEY: Final = frozenset({"count", "number", "cumulative", "stock"})
_OF_UNITS: Final = frozenset({"amount", "number", "price"})
"""Roles that a line beside the table may say to be in thousands."""
_FROM_AND_TO: Final = frozenset(
    tuple(map(folded_header, pair.split("|")))
    for pair in (
        "from|to", "del|al", "de|a", "de|ate", "desde|hasta", "du|au", "dal|al", "da|a", "von|bis", "van|tot",
        "från|till", "fra|til", "od|do", "de la|până la", "с|по", "от|до", "з|по", "від|до", "από|έως", "từ|đến",
        "từ ngày|đến ngày", "dari|sampai", "من|إلى", "من|الى", "מ|עד", "מתאריך|עד תאריך", "从|到", "自|至", "从|至",
        "から|まで", "부터|까지", "จาก|ถึง", "ตั้งแต่|ถึง", "से|तक", "alkaen|asti",
    )
)  # fmt: skip
"""Headers, each beside the other, of the first day and the last, as they are folded."""
_OF_COHORTS: Final[Mapping[str, Role]] = {
    **dict.fromkeys(("income", "money", "cost"), "amount"),
    **dict.fromkeys(("conversions", "events", "sessions"), "count"),
}
_AGE: Final = re.compile(r"(?<![^\W_])(?:d|day|tag|jour|dia|день|day )\s?\d{1,3}(?![^\W_])")
_ROUNDED: Final = 0.006  # of a rate of 1 and more, or of its unit below
_OF_ADS: Final = frozenset({"installs", "impressions", "clicks"})
_FEWEST_RANKED: Final = 5  # rows that tell a cost from the price of one
_GROWS: Final = 0.7  # correlation of ranks
_FEWEST_SUMMED: Final = 3  # rows
_ROUNDING_OF_TOTALS: Final = 0.005
_MOST_SHOWN: Final = 20  # texts that one step of a refusal names
_MOST_LENGTHS: Final = 5  # of periods: months, and the whole range of a total row


@dataclass(frozen=True, eq=False)
class _Looked:
    """A grid, its cells, and what its columns mean by an argument, a vendor, a header or the cells.

    *below* are texts by column of rows below a total that is without them, and *doubtful* the texts of no money
    before `leave_out=`, in a short table. All rows of the columns *counted* count.
    """

    grid: Grid
    vendor: Vendor | None
    stated: Mapping[str, Meaning]
    day_first: bool | None
    year: int | None
    magnitudes: Mapping[str, float]
    text: Sequence[str]
    below: Mapping[str, Sequence[str]] = field(default_factory=dict)
    doubtful: Mapping[str, Collection[Any]] = field(default_factory=dict)
    counted: Collection[str] = ()

    @cached_property
    def cells(self) -> dict[str, ColumnCells]:
        """The cells of each column."""
        return {
            name: ColumnCells(
                self.grid,
                name,
                self.day_first,
                year=self.year,
                magnitudes=self.magnitudes,
                is_text=name in self.text,
                keeps_labels=name in self.counted,
            )
            for name in self.grid.columns
        }

    @cached_property
    def meanings(self) -> dict[str, Meaning]:
        """The meaning of each column."""
        quoted = quoted_headers(self.grid.columns, self.vendor)
        meanings = {
            name: _meaning(column_cells, self.vendor, self.stated.get(name), is_quoted=name in quoted)
            for name, column_cells in self.cells.items()
        }
        meanings = without_numbers_as_days(_with_one_network(meanings, self.vendor), self.cells)
        meanings = _with_costs_called_prices(_with_both_ends(meanings, self.cells), self.cells)
        meanings = with_counts_in_units(_with_ages_of_cohorts(meanings), self.cells)
        meanings = with_values_of_conversions(with_numerators_of_rates(meanings, self.cells), self.cells)
        meanings = with_related_amounts(_with_plans_and_actuals(meanings, self.grid), self.cells)
        meanings = with_levels(with_related_counts(meanings, self.cells), self.cells)
        meanings = with_one_role_by_country(meanings, self.cells)
        pa.default_memory_pool().release_unused()  # of texts that were looked at
        return _with_numbers_in_ones(_with_unit_prices(meanings), self.grid)


def _saying(looked: _Looked, **more: Any) -> _Looked:
    """Return *looked* with *more*, which changes none of its cells: what they mean is not found out again."""
    result = replace(looked, **more)
    known = {name: value for name, value in vars(looked).items() if name in ("cells", "meanings")}
    vars(result).update(known)  # as cached_property keeps them
    return result


def _with_numbers_in_ones(meanings: dict[str, Meaning], grid: Grid) -> dict[str, Meaning]:
    """Return *meanings* with a scale of 1 for columns that a table was read from before, whatever their header says.

    Their numbers were multiplied then. In a file that was made of such a frame the currency beside an amount shows it.
    """
    read = {name for name in meanings if name in grid.in_ones or f"{name}_currency" in meanings}
    return {
        name: replace(meaning, details={"scale": 1, **meaning.details}) if name in read else meaning
        for name, meaning in meanings.items()
    }


def understood(other: Any, given: Mapping[str, Any]) -> OutsideTable:
    """Return what a table means in its own currencies, as `gl.read_table` does with the arguments *given*."""
    _check_arguments(given)
    grid = read_grid(other, **{name: given[name] for name in _OF_GRID if name in given})
    header_row = given.get("header_row")
    grid = with_units_in_headers(grid)
    grid = without_names_of_currencies(grid, vendor_of(grid.columns, grid.above))
    grid, tables = _without_repeated_headers(of_one_table(grid, header_row), header_row)
    grid = with_days_below_headings(grid)
    vendor = vendor_of(grid.columns, grid.above)
    grid, blank = with_repeated_keys(grid, given.get("roles", {}))
    grid, wide = reshaped(grid, vendor, keeps_totals=given.get("totals") == "keep")
    day_first = given.get("day_first", vendor.table.get("day_first") if vendor else None)
    stated = wide | _stated_roles(given.get("roles", {}), grid)
    totals_by_day = stated_totals(given.get("cumulative", ()), grid.columns, grid.source)
    stated |= {name: meaning_of_differences(name, stated.get(name), vendor) for name in totals_by_day}
    looked = _Looked(
        grid, vendor, stated, day_first, given.get("year"), given.get("magnitudes", {}), given.get("text", ())
    )
    for argument in ("text", "how"):
        for name in given.get(argument, ()):
            _check_column(argument, name, grid)
    leave = given.get("leave_out", {})
    looked = replace(looked, counted=[name for name, texts in leave.items() if texts is not True and not len(texts)])
    document = DocumentSums(np.zeros(len(looked.grid.rows), dtype=bool))
    if is_short(looked.grid):  # while its taxes are there, which its totals add up
        document = document_sums(looked.grid, looked.meanings, looked.cells)
    sums = document.mask
    looked = _saying(looked, below=document.below)
    if leave:
        if is_short(looked.grid):
            looked = _saying(looked, doubtful=_doubtful_texts(looked, document))
        marked = _with_hidden_rows(looked.grid) if HIDDEN in leave else looked.grid
        mask, left_notes = left_out(leave, marked)
        left = marked.filtered(~mask, *left_notes)
        answers = [name for name in (STRUCK, *([HIDDEN] if marked is not looked.grid else [])) if name in leave]
        left = replace(left, cells=left.cells.drop_columns(answers))
        looked, tables = replace(looked, grid=left), np.resize(tables, len(mask))[~mask]
        sums = sums[~mask]
    summed_rows = looked.grid.rows[sums]
    looked, problems = _without_repeated_rows(looked, tables, given.get("repeats"))
    totals: str | Sequence[str] = given.get("totals", "skip")
    named = () if isinstance(totals, str) else totals
    sums = np.isin(looked.grid.rows, summed_rows)
    found = find_totals(looked.grid, looked.meanings, looked.cells, named, leave, sums)
    found, hidden = _totals_of_seen_rows(looked, found, named, leave)
    found = _totals_of_all_headers(looked, found)
    problems = {**hidden, **problems}
    larger = {name: whole for name, whole in found.larger.items() if name not in leave}
    if totals != "keep":
        if found.rule:
            problems = {name: BadQuery(name, UNSET, found.rule) for name in looked.grid.columns} | {**problems}
        if found.mask.any():
            looked = replace(looked, stated={**_money_in_total(looked, found.mask), **looked.stated})
            notes = [*found.notes, note_of(found.mask, looked.grid), *_differing_total(looked, found.mask)]
            looked = replace(looked, grid=looked.grid.filtered(~found.mask, *notes))
        elif found.notes:
            looked = _saying(looked, grid=replace(looked.grid, notes=(*looked.grid.notes, *found.notes)))
    _release_numbers(looked)
    looked = _without_merged_cells(looked)
    table = _table_of_cells(looked, given)
    _release_numbers(looked)
    table = replace(table, larger=larger, how=dict(given.get("how", {})), names=dict(given.get("names", {})))
    table = with_total_columns(with_running_totals(table, given.get("roles", {})))
    columns = []
    for column in table.columns:
        problem = problems.get(column.name) if column.role in _COUNTED_TWICE else blank.get(column.name)
        columns.append(replace(column, problem=column.problem or problem or growth_problem(table, column)))
    return with_amounts_of_days(replace(table, columns=tuple(columns)), totals_by_day)


def _doubtful_texts(looked: _Looked, document: DocumentSums) -> dict[str, list[Any]]:
    """Return the texts by column that may be no money, in rows that are no sums of a document."""
    found: dict[str, list[Any]] = {}
    for stated in stated_rows(looked.meanings, looked.cells, below=document.below):
        of_rows = {text: rows_with(looked.cells[stated.name], text) for text in (*stated.states, *stated.codes)}
        found.setdefault(stated.name, []).extend(
            text for text, rows in of_rows.items() if (rows & ~document.mask).any()
        )
    return found


def _totals_of_seen_rows(
    looked: _Looked, found: TotalRows, named: Sequence[str], leave: Mapping[str, Any]
) -> tuple[TotalRows, dict[str, BadQuery]]:
    """Return the rows that add up others, also the ones that a sheet shows, and the question about those it hides.

    It is asked where totals are right only without them.
    """
    grid = looked.grid
    is_seen = ~np.isin(grid.rows, [*grid.hidden])
    if is_seen.all() or not is_seen.any():
        return found, {}
    seen = replace(looked, grid=grid.filtered(is_seen))
    mask = found.mask.copy()
    mask[is_seen] |= find_totals(seen.grid, looked.meanings, seen.cells, named, leave).mask
    totals = mask & ~found.mask
    kept, sheet = ~mask, np.append(0, (np.diff(grid.rows) <= 0).cumsum())  # one for each day that was a column
    for values in summands_of(looked.meanings, looked.cells, SUMMANDS | {"number"}).values():
        sums = [
            np.bincount(sheet[rows], np.nan_to_num(values[rows]), sheet[-1] + 1)[sheet]
            for rows in (kept, kept & is_seen)
        ]
        every, of_seen = (np.abs(values - added) <= _ROUNDING_OF_TOTALS * np.abs(values) for added in sums)
        totals |= mask & of_seen & ~every & (values != 0)
    if not totals.any() or HIDDEN in leave:
        return found._replace(mask=mask), {}
    rule = f"counts {grid.rows_text(~is_seen)}, which the sheet hides, and the totals of {grid.rows_text(totals)} "
    rule += "are without: "
    rule += f"leave_out={ {HIDDEN: ['yes']}!r} leaves out what is hidden, leave_out={ {HIDDEN: []}!r} counts it"
    return found._replace(mask=mask), {name: BadQuery(name, UNSET, rule) for name in grid.columns}


def _totals_of_all_headers(looked: _Looked, found: TotalRows) -> TotalRows:
    """Return the rows that add up others, also under headers of days where such a row of a file has no amounts."""
    numbers = summands_of(looked.meanings, looked.cells).values()
    is_empty = np.logical_and.reduce([np.isnan(values) for values in numbers]) if numbers else found.mask
    return found._replace(mask=found.mask | (is_empty & np.isin(looked.grid.rows, looked.grid.rows[found.mask])))


def _money_in_total(looked: _Looked, left_out: NDArray[np.bool_]) -> dict[str, Meaning]:
    """Return the columns with a word of money that are rates by another word, and that a single total adds up."""
    found: dict[str, Meaning] = {}
    if left_out.sum() != 1:
        return found
    for name, known in looked.meanings.items():
        money, column_cells = money_beside_rate(name, known), looked.cells[name]
        if money is None or not column_cells.may_be_number:
            continue
        readings = [column_cells.likely_numbers]
        if not column_cells.is_typed:
            marks = column_cells.numbers.fitting
            readings = [np.append(column_cells.numbers.values(mark), np.nan)[column_cells.codes] for mark in marks]
        for values in readings:
            total, rest = float(values[left_out][0]), values[~left_out & ~np.isnan(values)]
            is_sum = len(rest) >= _FEWEST_SUMMED and abs(total - rest.sum()) <= _ROUNDING_OF_TOTALS * abs(total)
            if is_sum and total > rest.max():
                evidence = Evidence("amount", "its total", looked.grid.rows_text(left_out))
                found[name] = Meaning("amount", evidence, money, None, known.details)
    return found


def _differing_total(looked: _Looked, left_out: NDArray[np.bool_]) -> list[str]:
    """Return what a single total, the last row, says of a column whose rows do not add up to it."""
    words = [text for column in looked.cells.values() for text in column.unlike_names.values()]
    if left_out.sum() != 1 or not left_out[-1] or any(map(AVERAGE_AT_ONE_END.fullmatch, words)):
        return []
    notes = []
    for name, values in summands_of(looked.meanings, looked.cells).items():
        readings, column_cells = [values], looked.cells[name]
        if not column_cells.is_typed:  # 1.392 is a thousand or one, which is not decided yet
            readings = [
                np.append(column_cells.numbers.values(mark), np.nan)[column_cells.codes]
                for mark in column_cells.numbers.fitting
            ]
        units = _units_of_rows(name, looked)
        if units[-1] is None and len({*units[:-1]} - {None}) > 1:  # of no currency, above rows of several
            continue
        is_alike = np.array([units[-1] is None or unit in (None, units[-1]) for unit in units[:-1]], dtype=bool)
        sums = [(float(read[-1]), float(np.nansum(read[:-1][is_alike]))) for read in readings]
        stated, rest = sums[0] if sums else (np.nan, np.nan)
        if sums and all(abs(last - of_rows) > _ROUNDING_OF_TOTALS * abs(last) for last, of_rows in sums):
            rule = f"{name}: the total of {looked.grid.rows_text(left_out)} is {stated:,.10g}"
            alike = "" if is_alike.all() else f" in {units[-1]}"
            notes.append(f"{rule}, its rows{alike} add up to {rest:,.10g}")
    return notes


def _units_of_rows(name: str, looked: _Looked) -> list[str | None]:
    """Return the currency beside each number of a column, or by the only column of codes, as it is written."""
    column_cells = looked.cells[name]
    if column_cells.has_units:
        units = [str(unit) or None for unit in column_cells.numbers.units]
        return [*map([*units, None].__getitem__, column_cells.codes)]
    codes = [other for other, known in looked.meanings.items() if known.role == "currency"]
    if len(codes) != 1 or looked.meanings[name].role != "amount" or column_cells.has_currency:
        return [None] * len(column_cells.codes)
    texts: list[str | None] = [*looked.cells[codes[0]].texts, None]
    return [*map(texts.__getitem__, looked.cells[codes[0]].codes)]


def _release_numbers(looked: _Looked) -> None:
    for column_cells in looked.cells.values():
        column_cells.release_numbers()
    pa.default_memory_pool().release_unused()  # of texts that are read


def _with_hidden_rows(grid: Grid) -> Grid:
    """Return *grid* with a column that says yes of the rows that its sheet hides, which `leave_out=` may name."""
    if not grid.hidden or HIDDEN in grid.columns:
        return grid
    marks = ["yes" if hidden else None for hidden in np.isin(grid.rows, [*grid.hidden])]
    return replace(grid, cells=grid.cells.append_column(HIDDEN, pa.array(marks, pa.string()).dictionary_encode()))


def _check_arguments(given: Mapping[str, Any]) -> None:
    if (year := given.get("year")) is not None and (isinstance(year, bool) or year not in YEARS):
        raise BadQuery("year", year, f"is no year from {YEARS[0]} to {YEARS[-1]}")
    for name, possible in (("decimal", (None, ".", ",")), ("repeats", (None, "skip", "last", "keep"))):
        if given.get(name) not in possible:
            raise BadQuery(name, given[name], "is not possible", [str(value) for value in possible])
    totals = given.get("totals", "skip")
    if isinstance(totals, str) and totals not in ("skip", "keep"):
        raise BadQuery("totals", totals, 'is not possible: name texts of rows in a list, ["Total"]', ["skip", "keep"])


def _without_repeated_rows(
    looked: _Looked, tables: NDArray[np.int64], repeats: str | None
) -> tuple[_Looked, Mapping[str, BadQuery]]:
    """Return the table without rows that repeat others if it is said so, or else the questions about its numbers."""
    grid = looked.grid
    if repeats == "keep":
        return looked, {}
    if (of_exports := _without_superseded_rows(looked, repeats)) is not None:
        return of_exports
    hashes = row_hashes(grid, looked.meanings, looked.cells)
    _release_numbers(looked)
    if hashes is None:
        return looked, {}
    tables = np.resize(tables, len(grid.rows))  # a header of days or countries makes several rows of one
    is_list, last = bool(looked.vendor and "rows_are" in looked.vendor.table), repeats == "last"
    repeated = np.zeros(len(grid.rows), dtype=bool)
    if tables.max(initial=0) == 0:
        repeated = restated_rows(hashes, looked.meanings, looked.cells, is_list=is_list, last=last)
    are_restated = bool(repeated.any())
    if not are_restated:
        repeated = repeated_rows(hashes, tables, is_list=is_list, last=last)
    is_doubtful = not repeated.any() and not is_list
    if is_doubtful:
        repeated = alike_rows(hashes, last=last)
    if not repeated.any():
        return looked, {}
    if repeats in ("skip", "last"):
        other = "a later one" if last else "an earlier one"
        are = f"repeats {other} and is" if repeated.sum() == 1 else f"repeat {other.split()[1]} ones and are"
        return replace(looked, grid=grid.filtered(~repeated, f"{grid.rows_text(repeated)} {are} left out")), {}
    if are_restated:
        return looked, {name: restated_problem(name, repeated, grid) for name in grid.columns}
    document = None if is_list else of_one_document(repeated, looked.meanings, looked.cells)
    if document is not None or (are_many(repeated, tables) and not is_doubtful):
        return looked, {name: repeated_problem(name, repeated, grid, document) for name in grid.columns}
    is_one = repeated.sum() == 1
    have = "has the cells of an earlier row and counts" if is_one else "have the cells of earlier rows and count"
    note = f'{grid.rows_text(repeated)} {have}; repeats="skip" leaves {"it" if is_one else "them"} out'
    return _saying(looked, grid=replace(grid, notes=(*grid.notes, note))), {}


def _without_superseded_rows(looked: _Looked, repeats: str | None) -> tuple[_Looked, Mapping[str, BadQuery]] | None:
    """Return the table without the rows of other exports, or the questions about them; None if there are none."""
    grid, day = looked.grid, day_column(looked.meanings, looked.cells)
    exported = export_times(looked.meanings, looked.cells, day)
    if not exported:
        return None
    superseded = superseded_rows(grid, looked.meanings, looked.cells, exported, last=repeats == "last")
    if not superseded.any():
        return None
    if repeats is None:
        return looked, {name: superseded_problem(name, superseded, grid, exported[0]) for name in grid.columns}
    which = "the latest" if repeats == "last" else "the first"
    note = f"{grid.rows_text(superseded)} are not of {which} {exported[0]} and are left out"
    return replace(looked, grid=grid.filtered(~superseded, note)), {}


def _table_of_cells(looked: _Looked, given: Mapping[str, Any]) -> OutsideTable:
    """Return the table of cells whose roles are known, with the arguments *given*."""
    currency: str | Mapping[str, str] | None = given.get("currency")
    grid, vendor, cells, meanings = looked.grid, looked.vendor, looked.cells, looked.meanings
    amounts = {
        name: meaning
        for name, meaning in meanings.items()
        if meaning.role in HAS_MONEY or _is_money_rate(meaning, cells[name])
    }
    codes = columns_of_codes(
        amounts, [name for name, meaning in meanings.items() if meaning.role == "currency"], grid.columns
    )
    amounts, codes = with_proven_currencies(amounts, codes, cells)
    stated = _stated_currencies(amounts, looked, codes) if isinstance(currency, str) else {}
    money: dict[str, OfMoney] = {}
    for name, meaning in amounts.items():
        argument = meaning.details.get("named currency") or (
            currency.get(name)
            if isinstance(currency, Mapping)
            else None
            if name in stated or "proven" in meaning.details
            else currency
        )
        if argument is None and name in grid.receipt.asked.metrics:
            argument = "USD"  # a frame of the service
        is_stated = argument is None and name in stated
        money[name] = stated[name] if is_stated else currencies_of_column(name, meaning, cells, grid, codes, argument)
    doubtful = _currencies_of_numbers(looked, amounts, given.get("how", ()))
    texts = {
        name: cells[name].numbers
        for name, meaning in meanings.items()
        if meaning.role in MEASURES and not cells[name].is_typed
    }
    whole = {
        name: meanings[name].role in ("count", "rank", "distinct")
        and meanings[name].concept != MEASURED
        and _unit(cells[name], meanings[name]).scale == 1
        for name in texts
    }
    whole |= {name: whole[name] or money[name].is_whole for name in texts if meanings[name].role == "amount"}
    mark = given.get("decimal") or _mark_of(vendor, grid)
    of_units = [name for name in texts if name in money and money[name].is_whole]
    marks, problems, notes = decimal_mark(texts, whole, grid.separator, mark, of_units)
    for name in [name for name in problems if name in money and _may_lack_decimals(texts[name], money[name])]:
        problems[name] = money[name].problem or problems[name]  # ￥68,000: a yen has no decimals, a yuan has
    unlike = [name for name in texts if texts[name].are_unlike and (name in problems or _marks_by_unit(texts[name]))]
    problems |= {name: _unlike_marks(cells[name], grid) for name in unlike}
    periods = periods_of(grid, meanings, cells, given.get("leave_out", ()), given.get("days"), looked.counted)
    windows = windows_of(meanings, cells, grid, periods.column or None)
    columns = []
    for name, meaning in meanings.items():
        if name == periods.column and meaning.role == "day" and not periods.has_own_days:
            values, problem = periods.starts, None
        else:
            values, problem = _values(cells[name], meaning, marks.get(name, "."), grid)
        column = OutsideColumn(name, meaning.role, values, (meaning.evidence,), meaning.concept)
        column = replace(column, problem=problems.get(name) or problem)
        if name in money:
            found, evidence, money_problem = money[name]
            column = replace(
                column, currencies=found, evidence=(*column.evidence, *evidence), money_problem=money_problem
            )
        elif name in doubtful and (cells[name].has_units or not cells[name].is_whole):
            column = replace(column, currencies=doubtful[name])
        unit = _unit(cells[name], meaning)
        if unit.scale != 1:
            says = Evidence(f"times {unit.scale:g}", "header" if unit.word else meaning.evidence.where, unit.word)
            column = replace(
                column, evidence=(*column.evidence, says), problem=column.problem or _unit_problem(column, unit)
            )
        elif column.role in _OF_UNITS and "scale" not in meaning.details and not _is_rounded(cells[name]):
            word = "amount" if column.role == "number" else column.money_word
            multiple = multiple_problem(name, word, grid.above)
            column = replace(column, problem=column.problem or multiple)
        columns.append(_in_minor_units(column, unit))
    answered = given.get("leave_out", ())
    columns = _with_currencies_of_rates(_with_weights(columns, meanings, cells, marks))
    columns = with_currency_of_account(columns, vendor)
    columns = [
        replace(column, problem=multiple_problem(column.name, "rate", grid.above))
        if column.name in money and _may_be_multiple(column, meanings[column.name])
        else column
        for column in columns
    ]
    columns = _with_units(_with_kinds(columns, answered), meanings)
    columns = _refunds_negative(columns, meanings, cells)
    bases = tax_bases(meanings, cells, answered)
    of_taxes = {stated.name: stated.bases for stated in bases}
    every = stated_rows(
        meanings,
        cells,
        is_known=vendor is not None,
        keeps_totals=given.get("totals") == "keep",
        others=of_taxes,
        below=looked.below,
        years=None if periods.length is None else periods.starts.dt.year.fillna(0).to_numpy(dtype="int64"),
    )
    every = without_reversals(every, [column for column in columns if column.name in cells], cells)
    sides = ledger_sides(columns)
    every = with_payouts(every, columns, sides, cells)
    debits = {debit for debit, _ in sides}
    states = [stated for stated in every if stated.name not in answered]
    columns = [
        replace(
            column,
            problem=column.problem
            or state_problem(column, states, meanings, cells, is_debit=column.name in debits)
            or tax_problem(column, bases, cells, grid.above)
            or repeated_amount_problem(column, meanings, cells, grid.source),
        )
        if column.name in meanings
        else column
        for column in columns
    ]
    last_days = periods.ends.dt.tz_localize(None).to_numpy() - np.timedelta64(1, "D") if periods.column else None
    if last_days is not None and periods.length == "day":
        numbers = {
            column.name: column.values.to_numpy(dtype="float64", na_value=np.nan)
            for column in columns
            if column.role in SUMMANDS | {"number"} and column.name in meanings
        }
        windows = {**proven_windows(numbers, last_days, meanings, cells), **windows}
    overlapping = window_problems(windows, periods.column or None, last_days, meanings, cells, looked.counted)
    columns = [replace(column, problem=column.problem or overlapping.get(column.name)) for column in columns]
    columns = with_month_problems(with_ledger_problems(columns, grid.source), periods, grid)
    publisher = vendor.table.get("publisher") if vendor else None
    columns += _of_all_rows("network", "publisher", given, columns, grid, known=publisher, vendor=vendor)
    columns += _of_all_rows("country", "country", given, columns, grid)
    columns += _platforms_of_apps(columns)
    return OutsideTable(
        source=grid.source,
        vendor=vendor.name if vendor else None,
        columns=tuple(columns),
        rows=grid.rows,
        periods=periods,
        zone=vendor.table.get("zone") if vendor else None,
        notes=(
            *grid.notes,
            *_notes_on_days(periods, grid, meanings),
            *_notes_on_zone(vendor, periods),
            *([until] if (until := unfinished_period(periods, grid, columns)) else []),
            *notes,
            *_notes_on_counts(columns, doubtful, given),
            *_notes_on_plans(columns, grid),
            *_notes_on_written_numbers(columns, cells),
            *_notes_on_errors(grid, cells, meanings),
            *_notes_on_currencies(money, amounts, looked, codes),
            *notes_on_credits(columns, meanings, cells, grid, answered),
            *notes_on_the_rest(every, given.get("leave_out", {}), looked.doubtful, cells, grid),
        ),
        grid=grid,
        rates_of=vendor.table.get("rates_of") if vendor else None,
        counted=looked.counted,
    )


def _of_all_rows(
    role: Literal["network", "country"],
    name: str,
    given: Mapping[str, Any],
    columns: Sequence[OutsideColumn],
    grid: Grid,
    *,
    known: str | None = None,
    vendor: Vendor | None = None,
) -> list[OutsideColumn]:
    """Return the column *name* of what all rows have: by the argument, or as a *vendor* is *known* for it.

    Raises:
        BadQuery: the argument is there, and a column that says it, too.
    """
    said = given.get(role, known)
    there = next((column.name for column in columns if column.role == role), None)
    if there is not None and role in given:
        step = f'roles={{"{there}": "text"}} if that is something else'
        raise BadQuery(role, said, f"is not what the column {there} says: leave one out, {step}")
    if there is not None or said is None:
        return []
    if role == "country" and canonical_name(said, "country") is None:
        raise BadQuery(role, said, 'is no country: write a name or two letters, "TH"')
    name = name if name not in grid.columns else f"{name} of all rows"
    only = pd.CategoricalDtype(pd.Index([said], dtype="str"))
    values = Series(pd.Categorical.from_codes(np.zeros(len(grid.rows), dtype="int8"), dtype=only))
    where = vendor.name if vendor and role not in given else "the argument"
    return [OutsideColumn(name, role, values, (Evidence(role, where, said),))]


def _notes_on_days(periods: Periods, grid: Grid, meanings: Mapping[str, Meaning]) -> list[str]:
    """Return what was assumed of days, which rows have none, and the day in the name of a file that says no other."""
    notes = [periods.note] if periods.note else []
    if periods.length is not None and (has_none := periods.starts.isna().to_numpy()).any():
        notes.append(f"no day in {grid.rows_text(has_none)}")
    has_measures = any(meaning.role in MEASURES for meaning in meanings.values())
    if periods.length is None and periods.problem is None and has_measures and (step := step_of_days(grid)):
        has_line = day_in_lines(grid) is not None
        if has_line and any(meaning.role in ("amount", "count") for meaning in meanings.values()):  # of an export
            return notes
        none = "no column says its days, and the day of a line may be when it was written"
        notes.append(f"{none if has_line else 'no column and no line says its days'}: {step}")
    return notes


def _notes_on_zone(vendor: Vendor | None, periods: Periods) -> list[str]:
    """Return in which zone a vendor's days are, where that has a name and is not UTC."""
    zone = vendor.table.get("zone", "") if vendor else ""
    is_other = "/" in zone and periods.length in ("day", "time")
    return [f"days are counted in {zone}, and a frame has days of UTC"] if is_other else []


def _may_lack_decimals(numbers: WrittenNumbers, money: OfMoney) -> bool:
    """Return whether the symbols beside numbers may be of a currency without a smaller unit, and nothing says which."""
    units = {unit for unit in numbers.units[numbers.is_number] if unit}
    return money.currencies is None and any(currencies_of(unit) & NO_DECIMALS for unit in units)


def _mark_of(vendor: Vendor | None, grid: Grid) -> Mark | None:
    """Return the decimal mark of a format, by the language of its headers."""
    marks = vendor.table.get("decimal", {}) if vendor else {}
    return next((mark for header, mark in marks.items() if find_header(header, grid.columns)), None)


def _platforms_of_apps(columns: Sequence[OutsideColumn]) -> list[OutsideColumn]:
    """Return the platforms in the names of apps as a column, if no other column says them.

    Tile Harbor (Android) and Tile Harbor - iOS name one each.
    """
    apps = [column for column in columns if column.role == "app"]
    if len(apps) != 1 or any(column.role == "platform" for column in columns):
        return []
    app, names = apps[0], {column.name for column in columns}
    found = {text: platform_beside(str(text)) for text in app.values.dropna().unique()}
    example = next((text for text, platform in found.items() if platform is not None), None)
    if example is None:
        return []
    name = next(name for name in ("platform", f"{app.name}: platform", "\0platform") if name not in names)
    values = Series(app.values.astype("object").map(found), dtype="str").astype("category")
    return [OutsideColumn(name, "platform", values, (Evidence("platform", app.name, str(example)),))]


def _stated_currencies(
    amounts: Mapping[str, Meaning], looked: _Looked, codes: Mapping[str, Sequence[str]]
) -> dict[str, OfMoney]:
    """Return the amounts whose currency the table states, where it does not state the currency of another.

    One currency for all then holds for the others: $5 beside €5. A rate is another if the table contradicts itself.
    """
    money = {
        name: currencies_of_column(name, meaning, looked.cells, looked.grid, codes, None)
        for name, meaning in amounts.items()
    }
    others = {name for name, found in money.items() if found.problem is not None and found.currencies is not None}
    others |= {name for name, meaning in amounts.items() if meaning.role in HAS_MONEY}
    stated = {
        name: found
        for name, found in money.items()
        if name in others and found.problem is None and found.currencies is not None
    }
    return stated if len(stated) < len(others) else {}


def _notes_on_currencies(
    money: Mapping[str, OfMoney], amounts: Mapping[str, Meaning], looked: _Looked, codes: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return notes on the *amounts* for which an argument says another currency than their headers or cells."""
    notes = []
    for name, found in money.items():
        if found.currency is None or found.evidence[0].where != "the argument":
            continue
        said = currencies_of_column(name, amounts[name], looked.cells, looked.grid, codes, None)
        codes_said = [] if said.currencies is None else sorted(map(str, said.currencies.dropna().unique()))
        if said.problem is None and codes_said not in ([], [found.currency]):
            evidence = said.evidence[0]
            where = f"{evidence.where} ({evidence.quote})" if evidence.quote else evidence.where
            note = (
                f"{name} is taken in {found.currency}, as currency= says, and is in {', '.join(codes_said)} by {where}"
            )
            if len(codes_said) > 1 and evidence.where == OF_CODES:
                note += f": {only_for(name, evidence.quote)} takes each row in its own"
            notes.append(note)
    return notes


def _currencies_of_numbers(
    looked: _Looked, amounts: Mapping[str, Meaning], put_together: Collection[str]
) -> dict[str, Series[Any]]:
    """Return the currencies of numbers that may be money in several, whatever role an argument gives them.

    Numbers of no known role matter if an argument says how they are *put_together*.
    """
    meanings, cells, grid = looked.meanings, looked.cells, looked.grid
    numbers = {
        name: meaning
        for name, meaning in meanings.items()
        if meaning.role in _MAY_BE_MONEY
        and (meaning.role == "cumulative" or meaning.evidence.where == "the argument" or name in put_together)
        and (meaning.role != "count" or meaning.evidence.where == "the argument")
        and cells[name].is_number
        and (cells[name].has_units or not is_no_money(name))
    }
    currencies = [name for name, meaning in meanings.items() if meaning.role == "currency"]
    codes = columns_of_codes({**amounts, **numbers}, currencies, grid.columns) if numbers else {}
    found = {}
    for name, meaning in numbers.items():
        said = None
        if codes[name] or cells[name].has_units:
            said = currencies_of_column(name, meaning, cells, grid, codes, None).currencies
        if (said is None or not said.nunique()) and cells[name].has_units:  # $ beside €
            units = np.append(cells[name].numbers.units, "")[cells[name].codes]
            said = Series(units, dtype="str").where(units != "")
        if said is not None and said.nunique() > 1:
            found[name] = said
    return found


def _notes_on_counts(
    columns: Sequence[OutsideColumn], currencies: Mapping[str, Series[Any]], given: Mapping[str, Any]
) -> list[str]:
    """Return notes on whole numbers that an argument adds up, and that may be money in several *currencies*."""
    notes = []
    for column in columns:
        if column.name not in currencies or column.currencies is not None:
            continue
        if column.role == "count" or given.get("how", {}).get(column.name) == "sum":
            codes = " and ".join(sorted(currencies[column.name].dropna().unique())[:_MOST_CODES])
            notes.append(f"{column.name} adds up rows of {codes}: {money_roles(column).removesuffix(', ')}")
    return notes


def _is_money_rate(meaning: Meaning, column_cells: ColumnCells) -> bool:
    """Whether a rate is money: an eCPM, not a CTR."""
    if meaning.role != "rate" or column_cells.is_percent:
        return False
    numerator, denominator, _ = meaning.of or ("", "", 1)
    return (
        column_cells.has_units
        or bool(meaning.details.get("currency"))
        or (numerator in ("cost", "income") and denominator != "cost")
    )


def _unit(column_cells: ColumnCells, meaning: Meaning) -> MoneyUnit:
    """Return the unit of the numbers of a column: an argument, a vendor, or the header of money says it."""
    if "scale" in meaning.details:
        return MoneyUnit(float(meaning.details["scale"]), "")
    if meaning.role == "count":
        unit = multiple_of_counts(column_cells.name, folded_header)
        return unit if unit is not None and unit.scale > 1 else MoneyUnit(1.0, "")
    is_money = meaning.role in HAS_MONEY or _is_money_rate(meaning, column_cells)
    is_amount = meaning.role == "amount"
    named = multiple_of_rupees(column_cells.name) or multiple_in_script(column_cells.name) if is_amount else None
    of_money = named or (unit_in(folded_header(column_cells.name), meaning.role) if is_money else None)
    return of_money or MoneyUnit(1.0, "")


def _is_rounded(column_cells: ColumnCells) -> bool:
    """Return whether the numbers of a column have words such as Mio. behind them."""
    return not column_cells.is_typed and column_cells.numbers.rounded is not None


def _in_minor_units(column: OutsideColumn, unit: MoneyUnit) -> OutsideColumn:
    """Return amounts in minor units, which were taken as hundredths, by the minor unit of the currency of each row."""
    if not unit.word.startswith("minor") or column.currencies is None or column.money_problem is not None:
        return column
    codes = column.currencies.astype("object")
    factors = np.where(codes.isin(NO_DECIMALS), 100.0, np.where(codes.isin(NO_HUNDREDTHS), 0.1, 1.0))
    return replace(column, values=column.values * factors, problem=None)


def _unit_problem(column: OutsideColumn, unit: MoneyUnit) -> BadQuery | None:
    """Return why hundredths are not, if the currency of a column has none."""
    known = set() if column.currencies is None else {*column.currencies.dropna().unique()} & NO_HUNDREDTHS
    if unit.scale != 0.01 or not known:
        return None
    rule = f"is in {unit.word} by its header, and {min(known)} has no hundredths: say what one of it is, such as"
    return BadQuery(
        column.name, UNSET, f'{rule} roles={{"{column.name}": {{"role": "{column.money_word}", "scale": 1}}}}'
    )


def _check_column(argument: str, name: str, grid: Grid) -> None:
    if name not in grid.columns:
        raise BadQuery(argument, name, f"is not a column of {grid.source}", grid.columns)


def _stated_roles(roles: Mapping[str, RoleArgument], grid: Grid) -> dict[str, Meaning]:
    """Return what the argument *roles* says of columns.

    Raises:
        BadQuery: a column, a role or a detail is unknown.
    """
    found = {}
    for name, stated in roles.items():
        _check_column("roles", name, grid)
        details: dict[str, Any] = {"role": stated} if isinstance(stated, str) else {**stated}
        for unknown in set(details) - _DETAILS:
            raise BadQuery("roles", unknown, "is not stated of a column", sorted(_DETAILS))
        role, concept = _ALIASES.get(
            details.get("role", "rate"), (details.get("role", "rate"), details.get("concept", ""))
        )
        if role not in ROLES:
            raise BadQuery("roles", role, "is not a role", [*ROLES, *_ALIASES])
        for part in (*details.get("of", ())[:2], *([details["weight"]] if "weight" in details else [])):
            _check_column("roles", part, grid)
        if "currency" in details:
            details["named currency"] = details["currency"]
        if "negative" in details:
            for column, texts in details["negative"].items():
                rows_named("roles", column, texts, grid)
        found[name] = Meaning(role, Evidence(role, "the argument", name), concept, None, details)
    return found


def _meaning(
    column_cells: ColumnCells, vendor: Vendor | None, stated: Meaning | None, *, is_quoted: bool = False
) -> Meaning:
    """Return the first meaning that the cells do not contradict."""
    if stated is not None:
        is_plan = "scale" in stated.details and not stated.concept and _plan_or_actual(column_cells.name) == "planned"
        return replace(stated, concept="planned") if is_plan and stated.role == "amount" else stated
    from_vendor = vendor.meaning_of(column_cells.name) if vendor else None
    dimension: list[Meaning] = []
    if column_cells.name in DIMENSIONS and column_cells.name not in (
        "country_code",
        "platform",
    ):  # our own names are names
        dimension = [Meaning("text", Evidence("text", "header", column_cells.name))]
    if vendor and vendor.table.get("rates_of") and column_cells.is_number and is_currency(column_cells.name.strip()):
        return Meaning("exchange_rate", Evidence("exchange_rate", vendor.name, column_cells.name))
    if is_quoted and column_cells.is_number:
        return Meaning(
            "exchange_rate", Evidence("exchange_rate", vendor.name if vendor else "header", column_cells.name)
        )
    may_be_quotes = not column_cells.is_typed and len(column_cells.distinct) <= MOST_SERIES and column_cells.has_units
    may_be_quotes &= not any(meaning.role == "amount" for meaning in header_meanings(column_cells.name))
    if may_be_quotes and are_quotes(column_cells.texts):
        return Meaning("text", Evidence("text", "cells", column_cells.example))  # 1 USD, 100 JPY: what a bank quotes
    of_header = [*dimension, *header_meanings(column_cells.name)]
    if from_vendor and from_vendor.role == "rate" and not {"of", "weight"} & from_vendor.details.keys():
        same = next((known for known in of_header if known.role == "rate"), from_vendor)
        from_vendor = replace(from_vendor, of=same.of, concept=same.concept)
    for meaning in (*([from_vendor] if from_vendor else []), *of_header):
        if column_cells.allows(meaning) and not (meaning.role == "text" and column_cells.is_flag):
            is_moment = meaning.role == "hour" and column_cells.are_times and not column_cells.is_number
            return replace(meaning, role="day", concept="time") if is_moment else meaning  # an hour with its day
    return column_cells.own_meaning()


def _with_one_network(meanings: dict[str, Meaning], vendor: Vendor | None) -> dict[str, Meaning]:
    """Return *meanings* with columns that only their cells call networks as texts, if something surer says who is paid.

    That is a header, an argument, or the format of a vendor.
    """
    networks = {name: known.evidence.where for name, known in meanings.items() if known.role == "network"}
    is_known = bool(vendor and "publisher" in vendor.table) or any(where != "cells" for where in networks.values())
    unsure = [name for name, where in networks.items() if where == "cells" and is_known]
    return meanings | {name: Meaning("text", replace(meanings[name].evidence, says="text")) for name in unsure}


def _with_costs_called_prices(meanings: dict[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with the price of an ad report, such as Cena or Preis, as its cost.

    It grows with the ads, or a rate beside it is what it is for each install or click.
    The price of one click does not. A table with another amount, or with units that are sold, has prices.
    """
    prices = [name for name, known in meanings.items() if known.role == "price" and known.concept == "price"]
    counts = [name for name, known in meanings.items() if known.concept in _OF_ADS and known.role == "count"]
    has_amount = any(known.role in ("amount", "cumulative", "identifier") for known in meanings.values())
    if len(prices) != 1 or not counts or has_amount or units_among(meanings) is not None:
        return meanings
    name, price = prices[0], meanings[prices[0]]
    is_bare = folded_header(name.partition("(")[0]) == price.evidence.quote and price.evidence.where == "header"
    rates = [other for other, known in meanings.items() if known.role == "rate"]
    is_cost = any(_grows_with(cells[name], cells[count]) for count in counts) or any(
        _is_quotient(cells[rate], cells[name], cells[count]) for rate in rates for count in counts
    )
    if not is_bare or not is_cost:
        return meanings
    evidence = Evidence("amount", "its numbers, which grow with the ads, and the header", price.evidence.quote)
    return meanings | {name: replace(price, role="amount", concept="cost", evidence=evidence)}


def _with_ages_of_cohorts(meanings: dict[str, Meaning]) -> dict[str, Meaning]:
    """Return *meanings* with what cohorts have up to several ages, Cumulative Revenue D0 and D7, as theirs.

    Such a column grows with the age and not from row to row: a row is a cohort.
    """
    of_ages: dict[str, list[str]] = {}
    for name, known in meanings.items():
        is_measure = known.concept in _OF_COHORTS and known.evidence.where == "header"
        if known.role == "cumulative" and is_measure and _AGE.search(folded_header(name)):
            of_ages.setdefault(_AGE.sub("", folded_header(name)), []).append(name)
    found = dict(meanings)
    for name in [name for names in of_ages.values() if len(names) > 1 for name in names]:
        role: Role = _OF_COHORTS[meanings[name].concept]
        evidence = Evidence(role, "headers of the ages of cohorts", meanings[name].evidence.quote)
        found[name] = replace(meanings[name], role=role, evidence=evidence)
    return found


def _with_plans_and_actuals(meanings: dict[str, Meaning], grid: Grid) -> dict[str, Meaning]:
    """Return *meanings* with numbers called nothing but Planned and Actual as amounts, where a sheet has a currency.

    Its name says it, or a line beside the table. The days of such a column may stand in its header: Oct 2026 Plan.
    """
    found, code = dict(meanings), None
    for name, known in meanings.items():
        if known.role != "number" or known.evidence.where != "cells" or (kind := _plan_or_actual(name)) is None:
            continue
        code = code or currency_beside(grid)
        if code is not None:
            evidence = Evidence("amount", "header, in a table of money", code)
            found[name] = Meaning("amount", evidence, "planned" if kind == "planned" else "")
    return found


def _plan_or_actual(name: str) -> str | None:
    """Return whether a header is nothing but a plan or what was, with its days; None if it is something else."""
    folded = folded_header(name)
    planned = [phrase for concept, phrase, _ in concepts_in(folded) if concept.name == "planned"]
    for phrase in planned:
        folded = folded.replace(phrase, " ", 1)
    words = [word for word in folded.split() if not re.search(r"\d", word) and not date_words().month.fullmatch(word)]
    rest = [word for word in words if word not in ACTUAL]
    if rest or not (planned or words):
        return None
    return "planned" if planned else "actual"


def _grows_with(price: ColumnCells, count: ColumnCells) -> bool:
    """Return whether rows with more of a count have a higher price, by the correlation of their ranks."""
    both = pd.DataFrame({"price": price.likely_numbers, "count": count.likely_numbers})
    both = both[(both > 0).all(axis=1)]
    if len(both) < _FEWEST_RANKED or both.nunique().min() < _FEWEST_RANKED:
        return False
    ranks = both.rank()
    return bool(ranks["price"].corr(ranks["count"]) >= _GROWS)


def _is_quotient(rate: ColumnCells, above: ColumnCells, below: ColumnCells) -> bool:
    """Return whether all numbers of a rate are the quotients of two columns, as they are rounded."""
    three = pd.DataFrame({"rate": rate.likely_numbers, "above": above.likely_numbers, "below": below.likely_numbers})
    three = three[(three > 0).all(axis=1)]
    off = (three["rate"] - three["above"] / three["below"]).abs()
    return len(three) >= _FEWEST_RANKED and bool((off <= _ROUNDED * three["rate"].clip(lower=1)).all())


def _with_both_ends(meanings: dict[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with the only column of days as the start of an end, or the reverse.

    A day by its header beside an end is a start where the rows of a name follow each other, or in a calendar. Rows that
    overlap are of single days, and their end is the last day of a campaign.
    """
    for begin, until in pairwise(meanings):
        if (folded_header(begin), folded_header(until)) in _FROM_AND_TO and all(
            meanings[name].evidence.where != "the argument" and cells[name].are_times for name in (begin, until)
        ):
            ends: list[tuple[str, Role]] = [(begin, "start"), (until, "end")]
            return meanings | {name: Meaning(role, Evidence(role, "header", name)) for name, role in ends}
    days = [name for name, known in meanings.items() if known.role == "day"]
    unclear = [name for name in days if meanings[name].evidence.where == "cells"]
    known_ends = [name for name, known in meanings.items() if known.role in ("start", "end")]
    is_named = not unclear and len(days) == 1 and meanings[days[0]].evidence.where == "header"
    if len(days) != 1 or len(known_ends) != 1 or not (unclear or is_named):
        return meanings
    (day,), (end,) = days, known_ends
    times = [cells[name].times_with(meanings[name].details) for name in (day, end)]
    if not all(isinstance(read, ParsedTimes) for read in times):
        return meanings
    at, other = (read.at[cells[name].codes] for read, name in zip(times, (day, end), strict=True))  # type: ignore[union-attr]
    says: Role = "start" if meanings[end].role == "end" else "end"
    first, last = (at, other) if says == "start" else (other, at)
    lengths = np.unique(last[~np.isnat(last)].astype("datetime64[D]") - first[~np.isnat(last)].astype("datetime64[D]"))
    is_calendar = all(known.role not in MEASURES for known in meanings.values())
    if (last < first).any() or (len(lengths) > _MOST_LENGTHS and not is_calendar):  # such as the day of the last change
        return meanings
    if is_named:
        names = {name: cells[name].numbers_of_values for name, known in meanings.items() if known.role in KEYS}
        are_ranges = meanings[end].role == "end" and bool((first < last).any())
        if not are_ranges or not (is_calendar or _follow_each_other(first, last, names)):
            return meanings
    evidence = Evidence(says, "cells", f"not {'after' if says == 'start' else 'before'} {end}")
    return meanings | {day: Meaning(says, evidence)}


def _follow_each_other(
    first: NDArray[np.datetime64], last: NDArray[np.datetime64], names: Mapping[str, NDArray[Any]]
) -> bool:
    """Return whether rows of the same *names* have the same days or days after each other; without an end, one day."""
    rows = pd.DataFrame({"name": groups_of(names, [*names], len(first)), "first": first})
    rows["last"] = np.where(np.isnat(last), first, last)
    rows = rows.drop_duplicates().dropna().sort_values(["name", "first"])
    return not (rows["first"] <= rows.groupby("name")["last"].shift()).any()


def _with_unit_prices(meanings: dict[str, Meaning]) -> dict[str, Meaning]:
    """Return *meanings* with what the App Store names like proceeds as the price of one unit, beside the units sold."""
    units = units_among(name for name, meaning in meanings.items() if meaning.role == "count")
    found = dict(meanings)
    for name, meaning in meanings.items():
        if units is None or meaning.evidence.where == "the argument":
            continue
        if meaning.role in ("amount", "rate") and folded_header(name) in _PRICES:
            evidence = Evidence("price", "header", f"beside {units}")
            meaning = Meaning("price", evidence, meaning.concept, details={**meaning.details, "role": "price"})
        if meaning.role == "price" and meaning.concept != "budget" and "weight" not in meaning.details:
            found[name] = replace(meaning, details={**meaning.details, "weight": units})
    return found


def _values(column_cells: ColumnCells, meaning: Meaning, mark: Mark, grid: Grid) -> tuple[Series[Any], BadQuery | None]:
    """Return the values of a column in the type of its role, and why they cannot be used."""
    if meaning.role in MEASURES:
        return _numbers(column_cells, meaning, mark, grid)
    if meaning.role == "flag":
        if column_cells.is_typed:
            return column_cells.values, None
        is_true = np.array([text.casefold() in ("true", "yes") for text in column_cells.texts], dtype=bool)
        flags = pd.array(
            is_true[column_cells.codes] if len(is_true) else np.zeros(len(column_cells.codes), bool), dtype="boolean"
        )
        return Series(flags).mask(Series(column_cells.codes < 0)), None
    if column_cells.is_typed and pa.types.is_timestamp(column_cells.type):
        return column_cells.values, None
    times = column_cells.times_with(meaning.details) if meaning.role in TIMES else None
    if isinstance(times, ParsedTimes) and times.until is None:
        return Series(pd.DatetimeIndex(times.at[column_cells.codes]).tz_localize("UTC")), None
    order = pc.sort_indices(column_cells.distinct)
    place = np.empty(len(order) + 1, dtype="int32")
    place[order.to_numpy()] = np.arange(len(order))
    place[-1] = -1
    kinds = pd.CategoricalDtype(pd.Index(column_cells.distinct.take(order).to_pandas(), dtype="str"))
    return Series(pd.Categorical.from_codes(place[column_cells.codes], dtype=kinds)), None


def _numbers(
    column_cells: ColumnCells, meaning: Meaning, mark: Mark, grid: Grid
) -> tuple[Series[Any], BadQuery | None]:
    scale = _unit(column_cells, meaning).scale
    if column_cells.is_typed:
        if not column_cells.is_number:
            rule = "is not a column of numbers"
            return Series(np.full(len(grid.rows), np.nan)), BadQuery(column_cells.name, meaning.role, rule)
        values = (
            column_cells.values.astype("float64") if meaning.role == "amount" or scale != 1 else column_cells.values
        )
        return values * scale if scale != 1 else values, None
    written = column_cells.numbers
    distinct = np.append(written.values(mark), np.nan) * scale
    is_other, problem = written.is_other, None
    if meaning.role == "rate":  # nothing by nothing is no rate
        is_other = is_other & ~written.is_division
    if is_other.any():
        other, is_error = column_cells.texts[int(is_other.argmax())], bool(written.is_error[int(is_other.argmax())])
        row = grid.rows[int(column_cells.rows_of(other).argmax())]
        rule = f"in row {row} is {'an error of a spreadsheet and ' if is_error else ''}not a number"
        alike = [column_cells.texts[place] for place in np.flatnonzero(is_other)[:_MOST_SHOWN]]
        cells = int(np.append(is_other, False)[column_cells.codes].sum())
        rule += f", one of {cells} such cells: " if cells > 1 else ": "
        rule += f"mend {'them' if cells > 1 else 'it'} there, or " if is_error else ""
        rule += f"missing={alike!r} reads {'them' if cells > 1 else 'it'} as empty"
        if (behind := _WORD_BEHIND.fullmatch(other)) is not None:
            rule += f', magnitudes={{"{behind[1]}": ...}} says what {behind[1]} stands for'
        rule += f", text=[{column_cells.name!r}] keeps the column as text" if meaning.role not in HAS_MONEY else ""
        is_at_top = grid.rows[0] <= row < grid.rows[0] + SEARCHED_ROWS and grid.separator is not None and not is_error
        problem = BadQuery(
            column_cells.name, other, rule + (", header_row= names the row of the headers" if is_at_top else "")
        )
    if written.is_percent.any() and (written.is_number & ~written.is_percent).any():
        kinds = [
            column_cells.texts[int(mask.argmax())]
            for mask in (written.is_percent, written.is_number & ~written.is_percent)
        ]
        problem = BadQuery(column_cells.name, kinds, "mixes percentages and numbers: use one kind")
    if written.rounded is not None and meaning.evidence.quote == "cumulative":
        rule = "is a rounded running total, whose differences by day are not known: export it with all its digits"
        problem = BadQuery(column_cells.name, written.rounded, rule)
    elif written.unsure is not None:
        place, word, powers = written.unsure
        problem = unsure_magnitude(column_cells.name, column_cells.texts[place], word, powers)
    elif written.rounded is not None and _unit(column_cells, meaning).word and scale > 1:
        rule = f"is in {_unit(column_cells, meaning).word} by its header, and has a word behind it: "
        rule += "say what one of it is, "
        step = f'roles={{"{column_cells.name}": {{"role": "{meaning.role}", "scale": 1}}}}'
        problem = BadQuery(column_cells.name, written.rounded, rule + step)
    known = distinct[~np.isnan(distinct)]
    is_whole = meaning.role not in ("amount", "rate", "price", "exchange_rate") and not column_cells.has_units
    if is_whole and (known == np.floor(known)).all() and (np.abs(known) < 2**53).all():
        whole = pd.array(np.nan_to_num(distinct).astype("int64")[column_cells.codes], dtype="Int64")
        whole[np.isnan(distinct)[column_cells.codes]] = pd.NA
        return Series(whole), problem
    return Series(distinct[column_cells.codes]), problem


def _marks_by_unit(numbers: WrittenNumbers) -> dict[str, Mark]:
    """Return the mark beside each currency, where each has one and they differ: £1,800 and 1.550 €."""
    marks: dict[str, set[Mark]] = {}
    for mark in MARKS:
        has = np.asarray(pc.fill_null(pc.match_substring(numbers.bodies, mark), False))
        for unit in np.unique(numbers.units[numbers.is_number & has]).tolist():
            marks.setdefault(unit, set()).add(mark)
    is_one = "" not in marks and all(len(used) == 1 for used in marks.values())
    return {unit: min(used) for unit, used in marks.items()} if is_one and len(set().union(*marks.values())) > 1 else {}


def _unlike_marks(column_cells: ColumnCells, grid: Grid) -> BadQuery:
    """Return the exception for numbers of two decimal marks, with the row where they change, which no mark reads."""
    numbers, codes = column_cells.numbers, column_cells.codes
    fits = {mark: np.append(numbers.fits(mark), False)[codes] for mark in MARKS}
    has = [
        np.append(np.asarray(pc.fill_null(pc.match_substring(numbers.bodies, mark), False)), False) for mark in MARKS
    ]
    if by_unit := _marks_by_unit(numbers):
        shown = " and ".join(f"{mark!r} beside {unit}" for unit, mark in by_unit.items())
        uses = [np.asarray(pc.fill_null(pc.match_substring(numbers.bodies, mark), False)) for mark in by_unit.values()]
        firsts = [int(((numbers.units == unit) & used).argmax()) for unit, used in zip(by_unit, uses, strict=True)]
        texts = [column_cells.texts[place] for place in firsts]
        rule = f"have {shown}, each currency its own mark: no decimal= reads all; write one mark in {grid.source}"
        return BadQuery(column_cells.name, texts, rule)
    only = {mark: fits[mark] & ~fits[other] for mark, other in zip(MARKS, reversed(MARKS), strict=True)}
    is_split = all(mask.any() for mask in only.values())
    if not is_split:  # 1.250 and 1,250
        only = {mark: mask[codes] for mark, mask in zip(MARKS, has, strict=True)}
    first, second = sorted(MARKS, key=lambda mark: int(only[mark].argmax()))
    begins, places = int(only[second].argmax()), np.flatnonzero(only[first])
    texts = [column_cells.texts[codes[int(only[mark].argmax())]] for mark in (first, second)]
    last, row = int(grid.rows[places[-1]]), int(grid.rows[begins])
    if places[-1] > begins:
        rule = f"have two decimal marks, one from row {grid.rows[places[0]]} and the other from row {row} on, mixed"
        step = f"write one mark in all rows of {grid.source}"
        return BadQuery(column_cells.name, texts, f"{rule}: no decimal= reads both; {step}")
    is_open = (has[0] | has[1])[codes[places[-1] + 1 : begins]]
    since = f"from a row after row {last} on, at the latest from row {row}" if is_open.any() else f"from row {row} on"
    rule = f"have two decimal marks, the second {since}: no decimal= reads both; write one mark in {grid.source}, "
    return BadQuery(column_cells.name, texts, f"{rule}or pass the rows before and the rows since as two tables")


def _notes_on_plans(columns: Sequence[OutsideColumn], grid: Grid) -> list[str]:
    """Return a note where a line beside the table, or the name of its file, says that amounts are a plan."""
    if not any(column.role in ("amount", "price", "number") for column in columns):
        return []
    lines = {line: f"a line beside the table ({line.strip()!r})" for line in grid.above if not _DENIED.search(line)}
    for line, where in {**lines, grid.source.partition(".")[0]: f"the name of {grid.source}"}.items():
        concepts = {concept.name for concept, _, _ in concepts_in(folded_header(line))}
        if concepts & _OF_PLANS and not {*folded_header(line).split()} & ACTUAL:
            return [f"amounts may be planned and not spent, by {where}"]
    return []


def _notes_on_written_numbers(columns: Sequence[OutsideColumn], cells: Mapping[str, ColumnCells]) -> list[str]:
    """Return notes on numbers such as 5.2K, whose other digits are not known, and on marks of footnotes behind some."""
    notes = []
    for column in columns:
        is_written = column.name in cells and column.role in MEASURES and not cells[column.name].is_typed
        if not is_written or column.problem is not None:
            continue
        numbers = cells[column.name].numbers
        if (rounded := numbers.rounded) is not None:
            value = column.values[cells[column.name].rows_of(rounded)].iloc[0]
            notes.append(f"{column.name} is rounded: {rounded!r} is read as {value:,.10g}, and sums are approximate")
        if (marked := numbers.footnoted) is not None:
            value = column.values[cells[column.name].rows_of(marked)].iloc[0]
            notes.append(
                f"{column.name} has marks of footnotes, which are left out: {marked!r} is read as {value:,.10g}"
            )
    return notes


def _notes_on_errors(grid: Grid, cells: Mapping[str, ColumnCells], meanings: Mapping[str, Meaning]) -> list[str]:
    """Return notes on errors of a spreadsheet where no number is meant; one among numbers is refused."""
    notes = []
    for name, column_cells in cells.items():
        if column_cells.is_typed or (meanings[name].role in MEASURES - {"rate"}):
            continue
        is_error = np.append(are_errors(column_cells.distinct), False)[column_cells.codes]
        if is_error.any():
            error = column_cells.distinct[int(column_cells.codes[is_error.argmax()])].as_py()
            notes.append(
                f"{name} has {error!r} in {grid.rows_text(is_error)}, an error of a spreadsheet, read as empty"
            )
    return notes


def _with_weights(
    columns: Sequence[OutsideColumn],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    marks: Mapping[str, Mark],
) -> list[OutsideColumn]:
    """Return *columns*, rates with how they are put together; a number that is a quotient of two others is a rate."""
    usable = {column.name: column for column in columns if column.problem is None}
    summands = {name: column for name, column in usable.items() if column.role in SUMMANDS}
    written = {name: _written(column, cells[name], meanings[name], marks) for name, column in summands.items()}
    counts = {name: shown for name, shown in written.items() if summands[name].role == "count"}
    units = {column.name: _unit(cells[column.name], meanings[column.name]).scale for column in columns}
    unit_of = {
        name: 0.0 if units[name] == 1 and "scale" not in meanings[name].details else units[name] for name in units
    }
    result = []
    for column in columns:
        meaning, formula = meanings[column.name], None
        stated = _stated_quotient(column, meaning, usable)
        is_told = meaning.evidence.where == "the argument" and stated is not None
        if column.problem is None and column.role == "amount" and meaning.evidence.where == "header":
            formula = _of_one_unit(column, written, counts)
        elif column.problem is None and column.role in ("rate", "number") and not is_told:
            shown = _written(column, cells[column.name], meaning, marks)
            tried = [stated] if isinstance(stated, ColumnQuotient) else []
            below = counts | {by: written[by] for by in (quotient.denominator for quotient in tried) if by in written}
            formula = fitting_formula(shown, written, written if column.concept == "roas" else below, tried)
            if meaning.evidence.where == BY_NAMES and formula is None:  # in too few rows to tell it from others
                formula = next((quotient for quotient in tried if quotient.numerator in summands), None)
            if column.role == "rate" and not unit_of[column.name] and (formula is None or formula not in tried):
                scales = {name: unit_of[name] for name, other in summands.items() if other.role == "amount"}
                column, formula = _in_unit_of_amounts(column, shown, formula, written, counts, scales, tried)
        if formula is not None:
            above, over = summands[formula.numerator], summands[formula.denominator]
            if column.role == "amount":
                column = replace(column, concept="")
            elif column.currencies is None and above.role == "amount" and over.role == "count":
                column = replace(column, currencies=above.currencies, money_problem=above.money_problem)
            evidence = (*column.evidence, Evidence("rate", "its cells", str(formula)))
            column = replace(column, role="rate", weight=formula, evidence=evidence)
        elif stated is not None and (column.role in ("price", "rate") or (is_told and column.role == "number")):
            if isinstance(stated, ColumnQuotient) and not is_told:
                stated = Weight(stated.denominator)
            column = replace(column, weight=stated)
        result.append(column)
    return result


def _in_unit_of_amounts(
    column: OutsideColumn,
    shown: Written,
    formula: ColumnQuotient | None,
    written: Mapping[str, Written],
    counts: Mapping[str, Written],
    scales: Mapping[str, float],
    tried: Sequence[ColumnQuotient],
) -> tuple[OutsideColumn, ColumnQuotient | None]:
    """Return a rate of amounts in thousands, in whose unit its cells are too, with its formula: 천원 an install.

    *formula* fits its cells as they are. *scales* are the units of the amounts.
    """
    for scale in {scale for scale in scales.values() if scale > 1}:
        amounts = {name: written[name] for name in scales if scales[name] == scale}
        scaled = Written(shown.values * scale, shown.places - round(math.log10(scale)))
        found = fitting_formula(
            scaled, amounts, counts, [quotient for quotient in tried if quotient.numerator in amounts]
        )
        if found is not None and (formula is None or found in tried):
            evidence = Evidence(f"times {scale:g}", "the unit of", found.numerator)
            return replace(column, values=scaled.values, evidence=(*column.evidence, evidence)), found
    return column, formula


def _with_currencies_of_rates(columns: Sequence[OutsideColumn]) -> list[OutsideColumn]:
    """Return *columns*; an amount of no known currency has the one that a rate proves.

    That is the currency of the rate, eCPM (R$), or of the other amount of a ROAS.
    """
    known = {
        column.name: column
        for column in columns
        if column.role in ("amount", "rate") and column.currency is not None and column.money_problem is None
    }
    amounts = {column.name for column in columns if column.role == "amount"}
    said: dict[str, dict[str, OutsideColumn]] = {}
    for rate in columns:
        if rate.role != "rate" or not isinstance(rate.weight, ColumnQuotient):
            continue
        above, below = rate.weight.numerator, rate.weight.denominator
        is_of_amounts = {above, below} <= amounts
        if is_of_amounts and all(said_by.where not in ("its cells", BY_NAMES) for said_by in rate.evidence):
            continue
        for name, other in ((above, below), (below, above)) if is_of_amounts else ((above, rate.name),):
            if (witness := known.get(other)) is not None:
                said.setdefault(name, {})[str(witness.currency)] = witness
    found = []
    for column in columns:
        witnesses = said.get(column.name, {})
        if column.role == "amount" and column.currencies is None and len(witnesses) == 1:
            ((code, witness),) = witnesses.items()
            evidence = (*column.evidence, Evidence(code, "the currency of", witness.name))
            column = replace(column, currencies=witness.currencies, evidence=evidence, money_problem=None)
        found.append(column)
    return found


def _may_be_multiple(column: OutsideColumn, meaning: Meaning) -> bool:
    """Return whether nothing says in which unit a rate of money is: no argument, and no amount that proves it."""
    is_proven = isinstance(column.weight, ColumnQuotient) or any("times" in said.says for said in column.evidence)
    return column.role == "rate" and column.problem is None and "scale" not in meaning.details and not is_proven


def _with_kinds(columns: list[OutsideColumn], answered: Collection[str]) -> list[OutsideColumn]:
    """Return *columns* with the column that says what the numbers of each row are of, if there are several.

    Counts such as results may be of several events, and ranks of several charts. Columns *answered* tell no kinds.
    """
    texts = [column for column in columns if column.role in ("text", "identifier") and column.values.nunique() > 1]
    kinds = [column.name for column in texts if is_kind_header(column.name)]
    charts = [column.name for column in texts if column.name not in answered and are_charts(column)]
    if not kinds and not charts:
        return columns
    found = []
    for column in columns:
        is_stated = column.role == "count" and column.evidence[0].where == "the argument"
        if kinds and column.role == "count" and is_of_any_kind(column.name):
            column = replace(column, kinds=kinds[0])
        elif charts and (column.role in _OF_CHARTS or is_stated):
            column = replace(column, kinds=charts[0])
        found.append(column)
    return found


def _with_units(columns: Sequence[OutsideColumn], meanings: Mapping[str, Meaning]) -> list[OutsideColumn]:
    """Return *columns*; a count in units that differ by row is of several things by the column that has them."""
    units = {name: meanings[name].details["unit"] for name in meanings if "unit" in meanings[name].details}
    several = {column.name for column in columns if column.values.nunique() > 1}
    return [
        replace(column, kinds=units[column.name]) if units.get(column.name) in several else column for column in columns
    ]


def _of_one_unit(
    column: OutsideColumn, written: Mapping[str, Written], counts: Mapping[str, Written]
) -> ColumnQuotient | None:
    """Return the amount and the count whose quotient an amount is, such as the cost of an install called Cost."""
    others = {name: shown for name, shown in written.items() if name not in counts and name != column.name}
    if not others:
        return None
    several = {name: shown for name, shown in counts.items() if shown.values[shown.values > 1].nunique() > 1}
    return fitting_formula(written[column.name], others, several)


def _written(column: OutsideColumn, column_cells: ColumnCells, meaning: Meaning, marks: Mapping[str, Mark]) -> Written:
    if column_cells.is_typed:
        return Written(column.values, places_of(column.values))
    scale = min(abs(_unit(column_cells, meaning).scale), 1.0)
    return Written(column.values, column_cells.numbers.places(marks.get(column.name, ".")) - round(math.log10(scale)))


def _stated_quotient(
    column: OutsideColumn, meaning: Meaning, usable: Mapping[str, OutsideColumn]
) -> ColumnQuotient | Weight | None:
    """Return the quotient, or the weight, that an argument, a vendor or the header names, of columns that are there."""
    if "weight" in meaning.details:
        by = find_header(meaning.details["weight"], [*usable])
        return Weight(by) if by else None
    if "of" in meaning.details:
        above, below, *factor = meaning.details["of"]
        names = [find_header(above, [*usable]), find_header(below, [*usable])]
        if names[1] is None:
            return None
        return ColumnQuotient(names[0], names[1], float(factor[0]) if factor else 1.0) if names[0] else Weight(names[1])
    if meaning.of is None:
        return None
    above, below = (_of_concept(concept, usable) for concept in meaning.of[:2])
    if below is None:
        return None
    return ColumnQuotient(above, below, float(meaning.of[2])) if above else Weight(below)


def _of_concept(concept: str, usable: Mapping[str, OutsideColumn]) -> str | None:
    """Return the column of a concept, the one with the shortest header if several are."""
    roles = ("amount",) if concept in ("cost", "income") else ("count",)
    found = [name for name, column in usable.items() if column.concept == concept and column.role in roles]
    counted = [name for name in found if not is_void_header(name)]  # no rejected installs
    found = counted or found
    return min(found, key=len, default=None) if concept else None


def _refunds_negative(
    columns: Sequence[OutsideColumn], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> list[OutsideColumn]:
    """Return *columns* with amounts of refunds below 0, where an argument or a vendor names the texts of these rows."""
    result = []
    for column in columns:
        for header, texts in meanings[column.name].details.get("negative", {}).items():
            if (name := find_header(header, [*cells])) is not None:
                is_refund = np.isin(
                    cells[name].codes, [cells[name].texts.index(text) for text in texts if text in cells[name].texts]
                )
                column = replace(column, values=column.values.where(~is_refund, -column.values.abs()))
        result.append(column)
    return result


def _without_repeated_headers(grid: Grid, header_row: int | None) -> tuple[Grid, NDArray[np.int64]]:
    """Return *grid* without rows that hold its headers again, as files pasted below each other do.

    With the number of these files for each row. Where a title stands above the second headers, or some are others,
    *header_row* says which table is read.
    """
    is_header, is_other = (np.zeros(len(grid.rows), dtype=bool) for _ in range(2))
    tables, alike, named = np.zeros(len(grid.rows), dtype="int64"), np.zeros(len(grid.rows), dtype="int64"), 0
    for name in grid.columns:
        if not grid.is_text(name):
            return grid, tables
        texts, codes = grid.texts(name)
        place = pc.index(texts, pa.scalar(name, texts.type)).as_py() if len(texts) else -1
        is_header |= (codes == place) & (place >= 0)
        is_other |= (codes != place) & (codes >= 0)
        alike += (codes == place) & (place >= 0)
        named += place >= 0
    repeated = is_header & ~is_other
    if (is_nearly := is_other & (alike >= max(_FEWEST_HEADERS, len(grid.columns) / 2))).any():
        grid = before_header(grid, int(is_nearly.argmax()), header_row)
        return grid, tables[: len(grid.rows)]
    if named < _FEWEST_HEADERS or not repeated.any():
        return grid, tables
    filled = sum(grid.cells.column(name).is_valid().to_numpy().astype("int64") for name in grid.columns)
    is_title = (np.append(repeated[1:], False)) & (filled == 1) & (len(grid.columns) > _FEWEST_HEADERS)
    if is_title.any():  # such as the currency of the account
        grid = before_header(grid, int(is_title.argmax()) + 1, header_row)
        return grid, tables[: len(grid.rows)]
    words = "repeats the headers and is left out" if repeated.sum() == 1 else "repeat the headers and are left out"
    tables += repeated.cumsum()
    return grid.filtered(~repeated, f"{grid.rows_text(repeated)} {words}"), tables[~repeated]


def _are_of_events(name: str, looked: _Looked) -> bool:
    """Return whether the empty cells of a column of days are no merged ones: it has times, or other days are complete.

    An install without a touch has no time of one.
    """
    meanings, cells = looked.meanings, looked.cells
    if cells[name].is_typed:
        values = cells[name].values.dropna()
        is_timed = is_datetime64_any_dtype(values) and bool((values != values.dt.floor("D")).any())
    else:
        read = cells[name].times_with(meanings[name].details)
        at = read.at[~np.isnat(read.at)] if isinstance(read, ParsedTimes) else np.array([], dtype="datetime64[us]")
        is_timed = bool((at != at.astype("datetime64[D]")).any())
    others = [other for other, meaning in meanings.items() if meaning.role in ("day", "start", "end") and other != name]
    is_complete = any(not (cells[other].numbers_of_values < 0).any() for other in others)
    return is_complete or is_timed


def _without_merged_cells(looked: _Looked) -> _Looked:
    """Return a table with days filled from above where cells were merged, both ends of a period or none."""
    grid, cells, meanings = looked.grid, looked.cells, looked.meanings
    fillable = {}
    for place, name in enumerate(grid.columns):
        if meanings[name].role in ("day", "start", "end") and not _are_of_events(name, looked):
            keys = [other for other in grid.columns[:place] if meanings[other].role in KEYS]
            before = [cells[other].codes for other in keys if not cells[other].is_typed]
            if (filled := filled_down(cells[name].codes, before)) is not None:
                fillable[name] = filled
    table, notes = grid.cells, []
    for name, filled in fillable.items():
        ends = [other for other, meaning in meanings.items() if meaning.role in ("start", "end") and other != name]
        if meanings[name].role in ("start", "end") and any(
            other not in fillable and np.array_equal(cells[other].codes < 0, cells[name].codes < 0) for other in ends
        ):
            continue
        column = pa.DictionaryArray.from_arrays(pa.array(filled, mask=filled < 0), cells[name].distinct)
        table = table.set_column(grid.columns.index(name), name, column)
        notes.append(f"empty cells of {name} have the value above them")
    return replace(looked, grid=replace(grid, cells=table, notes=(*grid.notes, *notes))) if notes else looked
