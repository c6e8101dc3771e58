"""Tables that lie on their side: a measure in each row, days as headers, and the parts of a measure below it.

Spend ($k), o/w Meta, o/w Google, Installs (k), o/w Meta, ...: each measure becomes a column, and each part a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import MEASURES, header_meanings
from gamelens.analysis.outside_data.words.total_words import PART

_INDENTED: Final = re.compile(r"(?:\s*[└├–—•·>*-]+\s*|\s+)(?P<name>\S.*)")
_FEWEST: Final = 2  # different measures
_MOST_CELLS: Final = 100_000


def with_measures_as_columns(grid: Grid, days: Mapping[str, str], key: str) -> Grid | None:
    """Return *grid* with a row for each day and part, and a column for each measure that its rows have.

    Args:
        grid: the table.
        days: the day of each header of days.
        key: the column to make for the days.

    None if its first column names no different measures, or another column stands beside the days.
    """
    label = grid.columns[0]
    if {*grid.columns} != {label, *days} or not grid.is_text(label) or len(grid.rows) * len(days) > _MOST_CELLS:
        return None
    texts = ["" if text is None else str(text) for text in grid.cells.column(label).to_pylist()]
    measures = [_measure(text) for text in texts]
    if len({measure for measure in measures if measure}) < _FEWEST or not measures[0]:
        return None
    columns, names = _places(texts, measures)
    parts = [*dict.fromkeys(names)]
    cells = {header: grid.cells.column(header).to_pylist() for header in days}
    rows = [(header, part) for header in days for part in parts]
    found = {name: dict[tuple[str, str], Any]() for name in dict.fromkeys(columns)}
    for place, (column, name) in enumerate(zip(columns, names, strict=True)):
        for header in days:
            found[column].setdefault((header, name), cells[header][place])
    tables: dict[str, Any] = {key: pa.array([days[header] for header, _ in rows], pa.string()).dictionary_encode()}
    if len(parts) > 1:
        called = next(name for name in ("name", "part", "\0part") if name not in found and name != key)
        tables[called] = pa.array([part or None for _, part in rows], pa.string()).dictionary_encode()
    tables |= {column: _array([values.get(row) for row in rows]) for column, values in found.items()}
    first = {name: place for place, name in reversed([*enumerate(names)])}
    note = f"{label} names measures, which are columns here: {', '.join(found)}"
    return replace(
        grid,
        cells=pa.table(tables),
        rows=np.array([grid.rows[first[part]] for _, part in rows], dtype="int64"),
        formats={},
        notes=(*grid.notes, note),
    )


def _measure(text: str) -> str:
    """Return the concept of the measure that a text names, "" for none."""
    found = next((meaning for meaning in header_meanings(text) if meaning.role in MEASURES), None)
    return (found.concept or found.role) if found is not None else ""


def _places(texts: Sequence[str], measures: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the measure of each row, and the part that it is of, "" for the whole."""
    bare = [_bare(text) for text in texts]
    columns, names, above = list[str](), list[str](), ""
    for text, measure, name in zip(texts, measures, bare, strict=True):
        is_part = bool(above) and not measure and (name != text or bare.count(name) > 1)
        above = above if is_part else name
        columns.append(above)
        names.append(name if is_part else "")
    return columns, names


def _bare(text: str) -> str:
    """Return the name of a part without the words or the indent in front of it."""
    if (begins := PART.match(text)) is not None:
        return text[begins.end() :].strip()
    return match["name"].strip() if (match := _INDENTED.fullmatch(text)) else text.strip()


def _array(values: Sequence[Any]) -> Any:
    """Return values of one column, as text unless all are numbers."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string()).dictionary_encode()
