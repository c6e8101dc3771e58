"""Rows of a bill or a budget that add up the rows above them, and what stands below such a total.

A document is read downwards: a row is a total if all its numbers are the sums of all rows above it, or of those since
the last total, and its words say so or it lacks a name that those rows have. Parts of a row (thereof) are in no sum.
What stands below a total of all rows, such as a tax, a credit memo or the previous year, is none of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gamelens.analysis.files.date_parsing import ParsedTimes
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import MEASURES, SUMMANDS, TIMES, ColumnCells, Meaning
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.tax_words import bare_words
from gamelens.analysis.outside_data.words.total_words import PART, TOTAL_AT_ONE_END, WORD_AT_ONE_END

_EASTERN_TOTAL: Final = re.compile("合計|小計|合计|小计|総計|总计|總計|총계|합계|소계")
_MOST_ROWS: Final = 20_000
_MOST_LINES: Final = 2_000
_FEWEST_PARTS: Final = 2
_FEWEST_UNCALLED: Final = 3  # rows that a total adds up whose words do not say so
_MOST_BELOW: Final = 6  # rows below a total; more are another table
_ROUNDED: Final = 0.006  # of each row that is added up
_SHARE: Final = 1e-6
_SHARE_CALLED: Final = 0.001  # of a sum whose words say that it is one
_LONG: Final = 1_000  # a sum that is no chance

Floats = NDArray[np.float64]
RowMask = NDArray[np.bool_]


class DocumentSums(NamedTuple):
    """The rows that add up those above them, and the texts by column of the rows below a total of all."""

    mask: RowMask
    below: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class _Lines(NamedTuple):
    """The lines of a document: their *numbers*, which words say what, and which cells are *filled*.

    Totals *of_names* are called like a name of the table: Total Meta.
    """

    numbers: Floats
    are_totals: RowMask
    of_names: RowMask
    are_parts: RowMask
    filled: RowMask


def is_short(grid: Grid) -> bool:
    """Return whether a table has few enough rows to be a document."""
    return len(grid.rows) <= _MOST_ROWS


def document_sums(grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> DocumentSums:
    """Return the totals of a document. A row of a spreadsheet whose days were columns is one line here."""
    none = DocumentSums(np.zeros(len(grid.rows), dtype=bool))
    lines, first, line_of = np.unique(grid.rows, return_index=True, return_inverse=True)
    names = [name for name, column in cells.items() if not column.is_typed and meanings[name].role not in MEASURES]
    has_amount = any(meaning.role == "amount" for meaning in meanings.values())
    summed = {
        name
        for name, meaning in meanings.items()
        if meaning.role in SUMMANDS or (not has_amount and meaning.role == "number")
    }
    if not _FEWEST_PARTS < len(lines) <= _MOST_LINES or len(grid.rows) % len(lines) or not summed or not names:
        return none
    are_totals, are_parts, of_names = (np.zeros(len(lines), dtype=bool) for _ in range(3))
    known = {text.casefold().strip() for name in names for text in cells[name].texts}
    for name in names:
        column = cells[name]
        of_totals = [place for place, text in enumerate(column.texts) if is_called_total(text)]
        of_parts = [place for place, text in enumerate(column.texts) if PART.match(text)]
        are_totals |= np.isin(column.codes[first], of_totals)
        are_parts |= np.isin(column.codes[first], of_parts)
        of_names |= np.isin(
            column.codes[first], [place for place in of_totals if _name_in(column.texts[place]) in known]
        )
    place = pd.Series(line_of).groupby(line_of).cumcount().to_numpy()
    width = len(grid.rows) // len(lines)
    if place.max() + 1 != width:
        return none
    numbers = np.full((len(lines), width, len(summed)), np.nan)
    for order, name in enumerate(summed):
        numbers[line_of, place, order] = cells[name].likely_numbers
    others = [column.numbers_of_values[first] >= 0 for name, column in cells.items() if name not in summed]
    sums, below = _read_downwards(
        _Lines(numbers.reshape(len(lines), -1), are_totals, of_names, are_parts, np.array(others))
    )
    by_column = _texts_of(np.isin(grid.rows, lines[below]), names, meanings, cells) if below.any() else {}
    return DocumentSums(np.isin(grid.rows, lines[sums]), by_column)


def is_called_total(text: str) -> bool:
    """Return whether a text says that its row is a total, also of amounts with or without tax: Nettobetrag."""
    return (
        TOTAL_AT_ONE_END.fullmatch(text) is not None
        or _EASTERN_TOTAL.search(text) is not None
        or bool({*folded_header(text).split()} & bare_words())
    )


def _name_in(text: str) -> str:
    """Return the name beside the word for a total: Meta of Total Meta."""
    return WORD_AT_ONE_END.sub("", text).casefold().strip()


def _read_downwards(lines: _Lines) -> tuple[RowMask, RowMask]:
    """Return which lines add up the lines above them, and which lines below a sum of all are none of its parts.

    Lines with a position or a name that those above have and no sum has, which a later sum adds up, are parts as well.
    """
    sums = np.zeros(len(lines.numbers), dtype=bool)
    items: list[int] = []
    spans: list[tuple[int, int, int]] = []  # a sum: its line, and its first and last item
    begins = [0]  # items that a block may begin with
    added = np.zeros((len(lines.numbers) + 1, lines.numbers.shape[1]))  # of the items so far
    is_known = ~np.isnan(lines.numbers)
    for line in np.flatnonzero(is_known.any(axis=1) & ~lines.are_parts).tolist():
        begin = None
        lacks_name = _lacks_name(lines, line, items[: spans[0][2]] if spans else items)
        if lines.are_totals[line] or lacks_name:
            sums_of = (
                begin for begin in begins if _is_sum(lines, line, added, begin, len(items), lacks_name=lacks_name)
            )
            begin = next(sums_of, None)
        if begin is not None:
            sums[line] = True
            spans.append((line, begin, len(items)))
            begins.append(len(items))
            continue
        items.append(line)
        added[len(items)] = added[len(items) - 1] + np.nan_to_num(lines.numbers[line])
    below = np.zeros_like(sums)
    of_items = ~lines.filled[:, sums].any(axis=1)  # columns such as a position that no sum has
    tops = [(line, last) for line, begin, last in spans if begin == 0 and not lines.of_names[line]]
    for place, line in enumerate(items) if tops else ():
        above = [last for top, last in tops if top < line]
        if not above:
            continue
        in_block = any(0 < begin <= place < last for _, begin, last in spans)
        in_any = any(begin <= place < last for _, begin, last in spans)
        of_all = of_items & lines.filled[:, items[: above[0]]].all(axis=1)
        is_item = bool(lines.filled[of_all, line].any()) or not of_all.any()
        below[line] = not in_block and not (in_any and is_item)
    return sums, below if below.sum() <= _MOST_BELOW else np.zeros_like(below)


def _lacks_name(lines: _Lines, line: int, items: Sequence[int]) -> bool:
    """Return whether a cell of a line is empty that all *items* have."""
    return len(items) >= _FEWEST_PARTS and bool((lines.filled[:, items].all(axis=1) & ~lines.filled[:, line]).any())


def _is_sum(lines: _Lines, line: int, added: Floats, begin: int, end: int, *, lacks_name: bool) -> bool:
    """Return whether all numbers of a line are the sums of the items from *begin* to *end*.

    One whose words do not say so must be exact, of several items and no small whole numbers. Two items are enough for
    one that says so, unless it has all their names and small whole numbers.
    """
    stated, of_items, parts = lines.numbers[line], added[end] - added[begin], end - begin
    known, is_called = ~np.isnan(stated), lines.are_totals[line]
    is_long = (np.abs(stated[known]) >= _LONG) | (stated[known] % 1 != 0)
    is_sure = is_called and (lacks_name or bool(is_long.any()))
    if parts < (_FEWEST_PARTS if is_sure else _FEWEST_UNCALLED) or not stated[known].any():
        return False
    within = _ROUNDED * parts + (_SHARE_CALLED if is_called else _SHARE) * np.abs(stated[known])
    return bool((is_called or is_long.any()) and (np.abs(stated - of_items)[known] <= within).all())


def _texts_of(
    rows: RowMask, names: Sequence[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> dict[str, tuple[str, ...]]:
    """Return the texts, by column, that name *rows* and no other row, in a column of days if no other has one.

    A row with a day of its own goes on with the table.
    """
    found: dict[str, tuple[str, ...]] = {}
    left = rows.copy()
    for name in [name for name in names if meanings[name].role in TIMES]:
        times = cells[name].times_with(meanings[name].details)
        unknown = np.full(len(rows), "NaT", dtype="datetime64[us]")
        at = times.at[cells[name].codes] if isinstance(times, ParsedTimes) else unknown
        left &= np.isnat(at) | np.isin(at, at[~rows])
    for name in sorted(names, key=lambda name: meanings[name].role in TIMES):
        codes = cells[name].codes
        named = np.setdiff1d(codes[left & (codes >= 0)], codes[~rows])
        if len(named):
            found[name] = tuple(cells[name].texts[place] for place in named.tolist())
            left &= ~np.isin(codes, named)
    return found
