"""Reader of Excel files, by openpyxl if it is installed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from msgspec import UNSET

from gamelens.errors import BadQuery

_STEP_BYTES: Final = 1 << 20
_ROW: Final = re.compile(rb"<(?:\w+:)?row\b([^>]*>)")
_ROW_NUMBER: Final = re.compile(rb"\sr=[\"'](\d+)")
_VALUE: Final = re.compile(rb"<(?:\w+:)?(?:v>[^<]|is[ >])")
_NAMES_CURRENCY: Final = re.compile(r"\[\$[^\]-]|\"[^\"]*[^\W\d_][^\"]*\"|[\u00a3\u00a5\u20a0-\u20bf]|\"?\$")

Rows = list[tuple[Any, ...]]


class SheetBounds(NamedTuple):
    """Bounds of a workbook: bytes unpacked of all its sheets and texts; rows, columns and cells of a sheet.

    Empty rows and cells before the last count.
    """

    bytes: int = 512 << 20
    rows: int = 500_000
    columns: int = 1_000
    cells: int = 10_000_000

    def exceeded(self, source: str, row: int) -> BadQuery:
        """Return the error of a sheet of *source* that has a cell beyond them in *row*."""
        bound = f"{self.columns:,} columns, {self.rows:,} rows or {self.cells:,} cells"
        rule = f"has a cell in row {row:,} beyond {bound}, the most that a join reads of a sheet"
        return BadQuery("other", source, f"{rule}: delete what is far outside the table, or save it as CSV")


class Sheet(NamedTuple):
    """The rows of a sheet, an empty cell None, and its number formats that name a currency, by row (from 1), place."""

    rows: Rows
    formats: Mapping[tuple[int, int], str]


def read_sheet(path: Path, sheet: str | None, *, most: SheetBounds = SheetBounds()) -> Sheet:  # noqa: B008
    """Return the rows of one sheet, header first.

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
            if unpacked_bytes > most.bytes:
                rule = f"has more than {most.bytes >> 20} MB unpacked, the most that a join reads of a workbook"
                rule = f"{rule}: leave out sheets, rows and columns, or save one sheet as CSV"
                raise BadQuery("other", path.name, rule)
            _check_size(path, sheet, most)
            values, formulas = (
                openpyxl.load_workbook(files.enter_context(path.open("rb")), read_only=True, data_only=only)
                for only in (True, False)
            )
        except (BadZipFile, KeyError, ValueError, OSError, ElementTree.ParseError) as error:
            raise BadQuery("other", path.name, f"cannot be read as Excel: {error}") from None
        names = [page.title for page in values.worksheets]
        if sheet is None:
            filled = [name for name in names if any(_values(path.name, values[name], most))]
            if len(filled) > 1:
                raise BadQuery("sheet", UNSET, f"must name a sheet of {path.name}", filled)
            sheet = next(iter(filled), names[0])
        elif sheet not in names:
            raise BadQuery("sheet", sheet, f"is not in {path.name}", names)
        named = frozenset(written for written in values._number_formats if _NAMES_CURRENCY.search(written))
        formats = _formats(values[sheet], named, most) if named else {}
        return Sheet(_rows(path.name, values[sheet], formulas[sheet], most), formats)


def _formats(page: Any, named: frozenset[str], most: SheetBounds) -> dict[tuple[int, int], str]:
    """Return those of the formats *named* that numbers of a sheet have, by row and place."""
    rows = page.iter_rows(max_row=most.rows, max_col=most.columns)
    return {
        (number, place): cell.number_format
        for number, row in enumerate(rows, 1)
        for place, cell in enumerate(row)
        if cell.value is not None and cell.number_format in named
    }


def _check_size(path: Path, sheet: str | None, most: SheetBounds) -> None:
    """Look through the file of *sheet*, or of the only one, for a cell beyond a bound, which openpyxl finds in minutes.

    Raises:
        BadQuery: there is one.
    """
    with ZipFile(path) as archive:
        files = _sheet_files(archive)
        if (name := next(iter(files), None) if sheet is None and len(files) == 1 else sheet) not in files:
            return
        with archive.open(files[str(name)]) as file:
            number = values = 0
            rest = b""
            while step := file.read(_STEP_BYTES):
                text = rest + step
                end = text.rfind(b"<")  # behind it a tag, or the content of one, may be cut
                text, rest = text[:end], text[end:]
                of_last, *rows = _ROW.split(text)
                for attributes, cells in zip([b"", *rows[::2]], [of_last, *rows[1::2]], strict=True):
                    if attributes:
                        named = _ROW_NUMBER.search(attributes)
                        number = int(named[1]) if named else number + 1
                    filled = len(_VALUE.findall(cells))
                    values += filled
                    if values > most.cells or (filled and number > most.rows):
                        raise most.exceeded(path.name, number)


def _sheet_files(archive: ZipFile) -> dict[str, str]:
    """Return the file of each sheet, by its name: none if the workbook is not where it is by convention."""
    book, links = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if not {book, links} <= set(archive.namelist()):
        return {}
    files = {
        link.get("Id"): posixpath.join("/xl", link.get("Target", ""))[1:]
        for link in ElementTree.fromstring(archive.read(links))  # noqa: S314  # expat limits the expansion of entities
    }
    return {
        part.get("name", ""): files[next(value for name, value in part.items() if name.endswith("}id"))]
        for part in ElementTree.fromstring(archive.read(book)).iter()  # noqa: S314
        if part.tag.endswith("}sheet")
    }


def _rows(source: str, values: Any, formulas: Any, most: SheetBounds) -> Rows:
    """Return the rows of a sheet, all of the same length.

    Raises:
        BadQuery: a formula has no value, or the sheet is larger than a bound.
    """
    rows: Rows = []
    pairs = zip_longest(_values(source, values, most), _values(source, formulas, most), fillvalue=())
    for number, (row, written) in enumerate(pairs, 1):
        if any(cell is None and str(formula).startswith("=") for cell, formula in zip_longest(row, written)):
            rule = f"holds a formula in row {number} that was never computed: open and save it in Excel"
            raise BadQuery("other", source, rule)
        rows.append(tuple(None if cell == "" else cell for cell in row))
    while rows and not any(cell is not None for cell in rows[-1]):
        rows.pop()
    width = max(map(len, rows), default=0)
    if width * len(rows) > most.cells:
        rule = f"has {len(rows):,} rows of {width:,} columns, over {most.cells:,} cells, the most that a join reads"
        raise BadQuery("other", source, f"{rule}: delete what is far outside the table, or save it as CSV")
    return [(*row, *[None] * (width - len(row))) for row in rows]


def _values(source: str, page: Any, most: SheetBounds) -> Iterator[tuple[Any, ...]]:
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
        if (number > most.rows and width) or width > most.columns or cells > most.cells:
            raise most.exceeded(source, number)
        yield tuple(row[:width])
