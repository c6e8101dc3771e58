"""Reader of Excel files, by openpyxl if it is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from msgspec import UNSET

from gamelens.errors import BadQuery

Rows = list[tuple[Any, ...]]


def read_sheet(path: Path, sheet: str | None) -> Rows:
    """Return the rows of one sheet, header first. An empty cell is None.

    Raises:
        BadQuery: openpyxl is not installed, the file is not an Excel file, it has several sheets and *sheet* is None,
            or a formula in it was never computed.
    """
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise BadQuery("other", path.name, "is an Excel file, which openpyxl reads: pip install openpyxl") from None
    try:
        values, formulas = (openpyxl.load_workbook(path, read_only=True, data_only=only) for only in (True, False))
    except (BadZipFile, KeyError, ValueError, OSError) as error:
        raise BadQuery("other", path.name, f"cannot be read as Excel: {error}") from None
    try:
        name = _sheet(path.name, values, sheet)
        return _rows(path.name, values[name], formulas[name])
    finally:
        values.close()
        formulas.close()


def _sheet(source: str, book: Any, sheet: str | None) -> str:
    """Return the name of the sheet to read: *sheet*, or the only one with cells.

    Raises:
        BadQuery: there is no such sheet, or there are several.
    """
    names = [page.title for page in book.worksheets]
    if sheet is not None and sheet not in names:
        raise BadQuery("sheet", sheet, f"is not in {source}", names)
    filled = [name for name in names if any(any(cell is not None for cell in row) for row in _values(book[name]))]
    if sheet is None and len(filled) > 1:
        raise BadQuery("sheet", UNSET, f"must say which sheet of {source}", filled)
    return sheet or next(iter(filled), names[0])


def _rows(source: str, values: Any, formulas: Any) -> Rows:
    """Return the rows of a sheet, all of the same length.

    Raises:
        BadQuery: a formula has no value.
    """
    rows: Rows = []
    for number, (row, written) in enumerate(zip(_values(values), _values(formulas), strict=True), 1):
        for cell, source_text in zip(row, written, strict=True):
            if cell is None and isinstance(source_text, str) and source_text.startswith("="):
                rule = f"holds a formula in row {number} that was never computed: open and save it in Excel"
                raise BadQuery("other", source, rule)
        rows.append(tuple(None if cell == "" else cell for cell in row))
    width = max(map(len, rows), default=0)
    return [row + (None,) * (width - len(row)) for row in rows]


def _values(page: Any) -> Any:
    return page.iter_rows(values_only=True)
