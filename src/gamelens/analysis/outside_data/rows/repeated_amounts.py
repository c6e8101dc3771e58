"""Amounts that are repeated in each row of a finer split, as a campaign's cost is beside each of its conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray

from gamelens.analysis.outside_data.outside_table import OutsideColumn
from gamelens.analysis.outside_data.roles import KEYS, TIMES, ColumnCells, Meaning, groups_of
from gamelens.errors import BadQuery

_FEWEST: Final = 5  # groups of several rows, with so many different amounts: fewer may be chance
_SHARE: Final = 0.5  # of the groups that has several rows, at least
_FIRST_ROWS: Final = 2_000


def repeated_amount_problem(
    column: OutsideColumn, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], source: str
) -> BadQuery | None:
    """Return the question about an amount that is the same in all rows of a day and a name, split by another column.

    The other column does not decide the amount, so that adding up its rows would count the amount once for each.
    """
    if column.role != "amount" or meanings[column.name].evidence.where == "the argument":
        return None
    values = column.values.astype("float64").to_numpy()
    names = [
        name
        for name, meaning in meanings.items()
        if meaning.role in KEYS | TIMES | {"text", "identifier"}
        and not (cells[name].is_typed and meaning.role == "text")
    ]
    if not any(meanings[name].role in TIMES for name in names):
        return None
    numbers = {name: cells[name].numbers_of_values for name in names}
    for split in names:
        others = [name for name in names if name != split]
        if meanings[split].role in TIMES or not any(meanings[name].role not in TIMES for name in others):
            continue
        for rows in dict.fromkeys((min(_FIRST_ROWS, len(values)), len(values))):  # of most files the first ones tell
            groups = groups_of({name: numbers[name][:rows] for name in others}, others, rows)
            if not _is_repeated(values[:rows], groups, numbers[split][:rows]):
                break
        else:
            listed = [*others, column.name]
            step = f"gl.read_table(gl.read_table({source!r}).frame.drop_duplicates({listed!r}))"
            rule = (
                f"is the same in all rows of one {' and '.join(others)}, whatever {split} is, and would count once for "
            )
            return BadQuery(
                column.name,
                UNSET,
                rule + f"each: pass {step}, or roles={{{column.name!r}: {column.money_word!r}}} if not",
            )
    return None


def _is_repeated(values: NDArray[Any], groups: NDArray[Any], split: NDArray[Any]) -> bool:
    """Return whether *values* are the same in each of *groups* that *split* divides, in enough groups."""
    found = pd.DataFrame({"group": groups, "value": values, "split": split})
    found = found[np.nan_to_num(values) != 0].groupby("group")
    sizes, kinds, spread = found.size(), found["split"].nunique(), found["value"].nunique()
    several = (sizes > 1) & (kinds == sizes)
    if several.sum() < _FEWEST or not (spread[several] == 1).all() or several.mean() < _SHARE:
        return False
    return bool(found["value"].first()[several].nunique() >= _FEWEST)
