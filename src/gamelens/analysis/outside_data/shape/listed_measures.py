"""Cells that hold a list of measures as JSON, such as the actions of Meta's interface: each becomes a column.

`[{"action_type": "mobile_app_install", "value": "12"}]` in a column `actions` becomes `actions: mobile_app_install`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import Evidence, Meaning, Role, header_meanings

_BEGINS: Final = re.compile(r"\s*\[?\s*\{\s*[\"']")
_NAMES: Final = ("action_type", "type", "key", "name", "event", "event_name", "metric")
_VALUES: Final = ("value", "count", "amount", "total", "cost")
_TRIED: Final = 50  # texts among which the first list is searched
_MOST: Final = 60  # columns that a list becomes
_FEWEST_READ: Final = 0.9  # of the cells


def with_listed_measures(grid: Grid) -> tuple[Grid, dict[str, Meaning]]:
    """Return *grid* with a column for each measure that cells list, and what these columns mean."""
    cells, notes, made = grid.cells, [], dict[str, Meaning]()
    for name in [name for name in grid.columns if grid.is_text(name)]:
        distinct, codes = grid.texts(name)
        first = next((text for text in distinct[:_TRIED].to_pylist() if _BEGINS.match(text)), None)
        if first is None:
            continue
        read = [_measures(text) for text in distinct.to_pylist()]
        known = [measures for measures in read if measures is not None]
        names = [*dict.fromkeys(key for measures in known for key in measures)]
        if len(known) < _FEWEST_READ * len(read) or not 0 < len(names) <= _MOST:
            continue
        columns = {key: f"{name}: {key}" for key in names if f"{name}: {key}" not in grid.columns}
        for key, column in columns.items():
            values = np.array([*((measures or {}).get(key, 0.0) for measures in read), np.nan])[codes]
            is_whole = bool((values[~np.isnan(values)] % 1 == 0).all())
            array = pa.array(values, mask=np.isnan(values))
            cells = cells.append_column(column, array.cast(pa.int64()) if is_whole else array)
            made[column] = _meaning(name, key, is_list=first.lstrip().startswith("["))
        shown = ", ".join([*columns.values()][:3]) + (", ..." if len(columns) > 3 else "")
        notes.append(f"{name} lists measures, which are columns here: {shown}")
    return (replace(grid, cells=cells, notes=(*grid.notes, *notes)), made) if notes else (grid, {})


def _measures(text: str) -> Mapping[str, float] | None:
    """Return the numbers of a cell by what they are of, None if it is something else."""
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if isinstance(found, dict):
        pairs = [*found.items()]
    elif isinstance(found, list) and all(isinstance(part, dict) for part in found):
        pairs = [(_first(part, _NAMES), _first(part, _VALUES)) for part in found]
    else:
        return None
    measures: dict[str, float] = {}
    for name, value in pairs:
        number = _number(value)
        if not isinstance(name, str) or number is None:
            return None
        measures[name] = measures.get(name, 0.0) + number
    return measures


def _first(part: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((part[key] for key in keys if key in part), None)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _meaning(listed: str, key: str, *, is_list: bool) -> Meaning:
    """Return what a listed measure is: money by the name of its list, such as action_values, else a count.

    The values of an object, such as the level of a player, may be anything.
    """
    words = listed.casefold()
    evidence = Evidence("listed", "cells", listed)
    if not is_list:
        return Meaning("number", replace(evidence, says="number"))
    if re.search(r"cost_?per|per_?action|_rate|roas|ctr", words):
        return Meaning("rate", replace(evidence, says="rate"))
    if re.search(r"value|revenue|amount", words):
        return Meaning("amount", replace(evidence, says="amount"), "income")
    concept = next((known.concept for known in header_meanings(key.replace(".", " ")) if known.role == "count"), "")
    role: Role = "count"
    return Meaning(role, replace(evidence, says="count"), concept)
