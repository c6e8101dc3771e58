"""Columns that add up others in every row: all territories beside one column for each, all revenue and its parts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import combinations, groupby
from typing import Final

import numpy as np

from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.words.total_words import AT_ONE_END, WHOLE_OF_NAMES

_ADDED_UP: Final = ("amount", "count", "number")
_FEWEST_PARTS: Final = 2
_FEWEST_ROWS: Final = 3
_ROUNDED: Final = 0.006  # of each part in hundredths
_FIRST: Final = 200  # rows that few wrong sums fit
_MOST_NAMED: Final = 3
_MONEY: Final = ("cost", "income")
_MOST_AMOUNTS: Final = 8  # whose pairs are tried


def with_total_columns(table: OutsideTable) -> OutsideTable:
    """Return a table with a note for each column that is the sum of its neighbours of the same role, row by row.

    Its header has a word for a total or the whole, or theirs are names of countries, platforms or networks.
    """
    notes, known_sums = [], set[str]()
    blocks = groupby(table.columns, key=lambda column: column.role)
    for block in [[*columns] for role, columns in blocks if role in _ADDED_UP]:
        for total in block[:1] + block[-1:] if len(block) > _FEWEST_PARTS else []:
            parts = [column for column in block if column is not total]
            if _is_called_total(total, parts) and _is_sum(total, parts):
                shown = ", ".join(part.name for part in parts[:_MOST_NAMED])
                shown += f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
                notes.append(f"{total.name} adds up {shown} in every row: a sum over these columns is without it")
                known_sums.add(total.name)
    for concept in _MONEY:
        notes += _notes_on_money(
            [column for column in table.of_role("amount") if column.concept == concept], known_sums
        )
    return replace(table, notes=(*table.notes, *notes)) if notes else table


def _notes_on_money(amounts: list[OutsideColumn], known_sums: Collection[str]) -> list[str]:
    """Return a note for each of *amounts*, all earned or all spent, that is another one or two others in every row.

    None for *known_sums*, and for sums in several currencies.
    """
    notes = []
    amounts = [column for column in amounts if column.currencies is None or column.currency is not None]
    amounts = amounts[:_MOST_AMOUNTS]
    heads = {column.name: replace(column, values=column.values.iloc[:_FIRST]) for column in amounts}
    for total in amounts:
        others = [other for other in amounts if other is not total and total.name not in known_sums]
        pairs = [
            [*pair]
            for pair in combinations(others, 2)
            if _is_sum(heads[total.name], [heads[part.name] for part in pair], fewest=0)
        ]
        if (pair := next((pair for pair in pairs if _is_sum(total, pair)), None)) is not None:
            first, second = (part.name for part in pair)
            notes.append(f"{total.name} adds up {first}, {second} in every row: a sum over these columns is without it")
    for first_column, second_column in combinations(amounts, 2):
        if _is_same(first_column, second_column):
            same = f"{second_column.name} has the numbers of {first_column.name} in every row"
            notes.append(f"{same}: a sum over these columns is without one of them")
    return notes


def _is_same(first: OutsideColumn, second: OutsideColumn) -> bool:
    """Return whether two columns are the same in every row, in three rows different numbers at least."""
    one, other = (column.values.to_numpy(dtype="float64", na_value=np.nan) for column in (first, second))
    return np.array_equal(one, other, equal_nan=True) and len(np.unique(one[one != 0])) >= _FEWEST_ROWS


def _is_called_total(total: OutsideColumn, parts: list[OutsideColumn]) -> bool:
    bare = [BRACKETS.sub(" ", column.name).strip() for column in (total, *parts)]
    if AT_ONE_END.fullmatch(bare[0]) or WHOLE_OF_NAMES.fullmatch(bare[0]):
        return True
    return any(
        all(canonical_name(name, kind) is not None for name in bare[1:])
        for kind in ("country", "platform", "publisher")
    )


def _is_sum(total: OutsideColumn, parts: list[OutsideColumn], fewest: int = _FEWEST_ROWS) -> bool:
    """Return whether *total* is the sum of *parts* in every row, and several parts have numbers in some rows."""
    numbers = np.array([part.values.to_numpy(dtype="float64", na_value=np.nan) for part in parts])
    whole = total.values.to_numpy(dtype="float64", na_value=np.nan)
    known = ~np.isnan(whole)
    is_told = known & ((np.nan_to_num(numbers) != 0).sum(axis=0) >= _FEWEST_PARTS)
    apart = np.abs(np.nan_to_num(numbers).sum(axis=0) - whole)[known]
    return bool(is_told.sum() >= fewest and (apart <= _ROUNDED * len(parts) + 1e-9 * np.abs(whole[known])).all())
