"""Reader of Excel files, by openpyxl if it is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import BadZipFile, ZipFile

from msgspec import UNSET

from gamelens.errors import BadQuery

MOST_BYTES: Final = 512 << 20
"""Bytes of a workbook, unpacked: all its sheets and texts."""
MOST_ROWS: Final = 500_000
"""Rows of a sheet, empty ones before the last included."""
MOST_COLUMNS: Final = 1_000
"""Columns of a sheet, empty ones before the last included."""
MOST_CELLS: Final = 10_000_000
"""Cells of a sheet, empty ones before the last of a row included."""
_NAMES_CURRENCY: Final = re.compile(r"\[\$[^\]-]|\"[^\"]*[^\W\d_][^\"]*\"|[\u00a3\u00a5\u20a0-\u20bf]|\"?\$")

Rows = list[tuple[Any, ...]]


class Sheet(NamedTuple):
    """The rows of a sheet, an empty cell None, and its number formats that name a currency, by row (from 1), place."""

    rows: Rows
    formats: Mapping[tuple[int, int], str]


def read_sheet(path: Path, sheet: str | None, *, most_bytes: int = MOST_BYTES) -> Sheet:
    """Return the rows of one sheet.

    Raises:
        BadQuery: openpyxl is not installed, the file is not an Excel file or is larger than a bound, it has several
            sheets and *sheet* is None, or a formula in it was never computed.
    """
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise BadQuery("other", path.name, "is an Excel file, which openpyxl reads: pip install openpyxl") from None
    # The files are opened here: a refusal leaves rows half read, which would keep a file of openpyxl's own open.
    with ExitStack() as files:
        try:
            with ZipFile(path) as archive:
                unpacked_bytes = sum(entry.file_size for entry in archive.infolist())
            if unpacked_bytes > most_bytes:
                rule = f"has more than {most_bytes >> 20} MB unpacked, the most that a join reads of a workbook"
                rule = f"{rule}: leave out sheets, rows and columns, or save one sheet as CSV"
                raise BadQuery("other", path.name, rule)
            values, formulas = (
                openpyxl.load_workbook(files.enter_context(path.open("rb")), read_only=True, data_only=only)
                for only in (True, False)
            )
        except (BadZipFile, KeyError, ValueError, OSError) as error:
            raise BadQuery("other", path.name, f"cannot be read as Excel: {error}") from None
        names = [page.title for page in values.worksheets]
        if sheet is None:
            filled = [name for name in names if any(_values(path.name, values[name]))]
            if len(filled) > 1:
                raise BadQuery("sheet", UNSET, f"must name a sheet of {path.name}", filled)
            sheet = next(iter(filled), names[0])
        elif sheet not in names:
            raise BadQuery("sheet", sheet, f"is not in {path.name}", names)
        named = [each for each in values._number_formats if _NAMES_CURRENCY.search(each)]
        formats = _formats(values[sheet], frozenset(named)) if named else {}
        return Sheet(_rows(path.name, values[sheet], formulas[sheet]), formats)


def _formats(page: Any, named: frozenset[str]) -> dict[tuple[int, int], str]:
    """Return those of the formats *named* that numbers of a sheet have, by row and place."""
    rows = page.iter_rows(max_row=MOST_ROWS, max_col=MOST_COLUMNS)
    return {
        (number, place): cell.number_format
        for number, row in enumerate(rows, 1)
        for place, cell in enumerate(row)
        if cell.value is not None and cell.number_format in named
    }


def _rows(source: str, values: Any, formulas: Any) -> Rows:
    """Return the rows of a sheet, all of the same length.

    Raises:
        BadQuery: a formula has no value, or the sheet is larger than a bound.
    """
    rows: Rows = []
    pairs = zip_longest(_values(source, values), _values(source, formulas), fillvalue=())
    for number, (row, written) in enumerate(pairs, 1):
        if any(cell is None and str(formula).startswith("=") for cell, formula in zip_longest(row, written)):
            rule = f"holds a formula in row {number} that was never computed: open and save it in Excel"
            raise BadQuery("other", source, rule)
        rows.append(tuple(None if cell == "" else cell for cell in row))
    while rows and not any(cell is not None for cell in rows[-1]):
        rows.pop()
    width = max(map(len, rows), default=0)
    if width * len(rows) > MOST_CELLS:
        rule = f"has {len(rows):,} rows of {width:,} columns, over {MOST_CELLS:,} cells, the most that a join reads"
        raise BadQuery("other", source, f"{rule}: delete what is far outside the table, or save it as CSV")
    return [(*row, *[None] * (width - len(row))) for row in rows]


def _values(source: str, page: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a sheet, up to the last cell of each.

    The size that a sheet declares says nothing, and every gap in a row and between rows is filled with empty cells,
    so these are counted with the others.

    Raises:
        BadQuery: the sheet has a cell beyond a bound.
    """
    cells = 0
    page.reset_dimensions()
    for number, row in enumerate(page.iter_rows(values_only=True), 1):
        if not row:  # a gap may have a million of them
            yield row
            continue
        width = next((place for place in range(len(row), 0, -1) if row[place - 1] is not None), 0)
        cells += width
        if (number > MOST_ROWS and width) or width > MOST_COLUMNS or cells > MOST_CELLS:
            bound = f"{MOST_COLUMNS:,} columns, {MOST_ROWS:,} rows or {MOST_CELLS:,} cells"
            rule = f"has a cell in row {number:,} beyond {bound}, the most that a join reads of a sheet"
            raise BadQuery("other", source, f"{rule}: delete what is far outside the table, or save it as CSV")
        yield tuple(row[:width])
