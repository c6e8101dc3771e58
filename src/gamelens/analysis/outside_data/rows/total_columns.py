"""Columns that add up the columns beside them in every row: all territories, beside one column for each."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
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
_MOST_NAMED: Final = 3


def with_total_columns(table: OutsideTable) -> OutsideTable:
    """Return a table with a note for each column that is the sum of its neighbours of the same role, row by row.

    Its header has a word for a total or the whole, or theirs are names of countries, platforms or networks.
    """
    notes = []
    blocks = groupby(table.columns, key=lambda column: column.role)
    for block in [[*columns] for role, columns in blocks if role in _ADDED_UP]:
        for total in block[:1] + block[-1:] if len(block) > _FEWEST_PARTS else []:
            parts = [column for column in block if column is not total]
            if _is_called_total(total, parts) and _is_sum(total, parts):
                shown = ", ".join(part.name for part in parts[:_MOST_NAMED])
                shown += f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
                notes.append(f"{total.name} adds up {shown} in every row: a sum over these columns is without it")
    return replace(table, notes=(*table.notes, *notes)) if notes else table


def _is_called_total(total: OutsideColumn, parts: list[OutsideColumn]) -> bool:
    bare = [BRACKETS.sub(" ", column.name).strip() for column in (total, *parts)]
    if AT_ONE_END.fullmatch(bare[0]) or WHOLE_OF_NAMES.fullmatch(bare[0]):
        return True
    return any(
        all(canonical_name(name, kind) is not None for name in bare[1:])
        for kind in ("country", "platform", "publisher")
    )


def _is_sum(total: OutsideColumn, parts: list[OutsideColumn]) -> bool:
    """Return whether *total* is the sum of *parts* in every row, and several parts have numbers in some rows."""
    numbers = np.array([part.values.to_numpy(dtype="float64", na_value=np.nan) for part in parts])
    whole = total.values.to_numpy(dtype="float64", na_value=np.nan)
    known = ~np.isnan(whole)
    is_told = known & ((np.nan_to_num(numbers) != 0).sum(axis=0) >= _FEWEST_PARTS)
    apart = np.abs(np.nan_to_num(numbers).sum(axis=0) - whole)[known]
    return bool(is_told.sum() >= _FEWEST_ROWS and (apart <= _ROUNDED * len(parts) + 1e-9 * np.abs(whole[known])).all())
