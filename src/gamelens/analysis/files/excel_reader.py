"""Reader of Excel files: calamine reads the cells, and their XML is searched for what it does not tell.

That is a cell far outside the table, a formula that was never computed, an error, a merged cell, and formats that name
a currency.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from msgspec import UNSET

from gamelens.errors import BadQuery

_STEP_BYTES: Final = 1 << 20
_ROW: Final = re.compile(rb"<(?:\w+:)?row\b([^>]*>)")
_HIDDEN: Final = re.compile(rb"\shidden=[\"'](?:1|true)[\"']")
_ROW_NUMBER: Final = re.compile(rb"\sr=[\"'](\d+)")
_CELL: Final = re.compile(rb"<(?:\w+:)?c\b([^>]*)>")
_PLACE: Final = re.compile(rb"\sr=[\"']([A-Z]+)(\d+)[\"']")
_VALUE: Final = re.compile(rb"<(?:\w+:)?(?:v>[^<]|is[ >])")
_NOT_COMPUTED: Final = re.compile(
    rb"<(?:\w+:)?c\b(?![^>]*\st=[\"']str)[^>]*><(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)"
    rb"(?:<(?:\w+:)?v ?/>|<(?:\w+:)?v></(?:\w+:)?v>)?</(?:\w+:)?c>"
)
_ERROR: Final = re.compile(rb"<(?:\w+:)?c\b([^>]*\st=[\"']e[\"'][^>]*)>.*?<(?:\w+:)?v>([^<]*)<", re.DOTALL)
_MERGED: Final = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=[\"']([A-Z]+)(\d+):([A-Z]+)(\d+)[\"']")
_NAMES_CURRENCY: Final = re.compile(r"\[\$[^\]-]|\"[^\"]*[^\W\d_][^\"]*\"|[\u00a3\u00a5\u20a0-\u20bf]|\"?\$")
_BUILT_IN: Final = dict.fromkeys((5, 6, 7, 8, 42, 44), '"$"#,##0.00')
"""Formats that a workbook need not list, in the currency of the machine that shows them."""

SheetRows = list[tuple[Any, ...]]
Formats = Mapping[int, Mapping[int, str]]


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


_BESIDE: Final = SheetBounds(rows=40, columns=8, cells=320)
"""Bounds of a sheet of lines about the report of another sheet."""
_MOST_BYTES_BESIDE: Final = 1 << 17
_MOST_OF_LINE: Final = 2


class Sheet(NamedTuple):
    """The rows of a sheet, an empty cell None, its number formats that name a currency, and rows by their numbers.

    The formats are by place (from 0) and row (from 1). *struck* are the rows whose cells are struck through, by half at
    least. *merged* are the first and the last row of cells that are merged over several rows, with their first place,
    and *across* the row of cells that are merged over several columns, with their first and last place. *beside* are
    the lines of other sheets that are no tables, each with the name of its sheet.
    """

    rows: SheetRows
    formats: Formats
    hidden: frozenset[int] = frozenset()
    struck: frozenset[int] = frozenset()
    merged: tuple[tuple[int, int, int], ...] = ()
    across: tuple[tuple[int, int, int], ...] = ()
    beside: tuple[tuple[str, str], ...] = ()


def read_sheet(path: Path, sheet: str | None, *, most: SheetBounds = SheetBounds()) -> Sheet:  # noqa: B008
    """Return the rows of one sheet, header first.

    Raises:
        BadQuery: calamine is not installed, the file is not an Excel file or is larger than a bound, it has several
            sheets and *sheet* is None, or a formula in it was never computed.
    """
    try:
        calamine = import_module("python_calamine")
    except ImportError:
        raise BadQuery(
            "other", path.name, "is an Excel file, which calamine reads: pip install 'gamelens[excel]'"
        ) from None
    try:
        with ZipFile(path) as archive:
            unpacked_bytes = sum(entry.file_size for entry in archive.infolist())
            if unpacked_bytes > most.bytes:
                rule = f"has more than {most.bytes >> 20} MB unpacked, the most that a join reads of a workbook"
                rule = f"{rule}: leave out sheets, rows and columns, or save one sheet as CSV"
                raise BadQuery("other", path.name, rule)
            files = _sheet_files(archive)
            filled = [
                name for name in files if sheet in (None, name) and _is_filled(archive, files[name], path.name, most)
            ]
            if sheet is None and len(filled) > 1:
                raise BadQuery("sheet", UNSET, f"must name a sheet of {path.name}", filled)
            if sheet is not None and sheet not in files:
                raise BadQuery("sheet", sheet, f"is not in {path.name}", [*files])
            if not files:
                raise BadQuery("other", path.name, "cannot be read as Excel: it has no sheets")
            sheet = sheet or next(iter(filled), next(iter(files)))
            errors, hidden, merged, across = _errors(archive, files[sheet], path.name)
            formats, struck = _formats(archive, files[sheet]), _struck_rows(archive, files[sheet])
            small = [name for name in files if name != sheet and _is_small(archive, files[name], path.name)]
        with calamine.CalamineWorkbook.from_path(str(path)) as book:
            read = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
            beside = [(name, line) for name in small for line in _lines(book.get_sheet_by_name(name).to_python())]
    except (BadZipFile, KeyError, ValueError, OSError, ElementTree.ParseError, calamine.CalamineError) as error:
        raise BadQuery("other", path.name, f"cannot be read as Excel: {error}") from None
    rows = [tuple(map(_plain, row)) for row in read]
    for (row, place), wrong in errors.items():
        rows[row] = (*rows[row][:place], wrong, *rows[row][place + 1 :])
    while rows and not any(cell is not None for cell in rows[-1]):
        rows.pop()
    return Sheet(rows, formats, hidden, struck, merged, across, tuple(beside))


def _is_small(archive: ZipFile, name: str, source: str) -> bool:
    """Return whether a sheet has values, and no more rows and columns than lines about a report have."""
    if archive.getinfo(name).file_size > _MOST_BYTES_BESIDE:
        return False
    try:
        return _is_filled(archive, name, source, _BESIDE)
    except BadQuery:
        return False


def _lines(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the rows of a sheet as lines, none if it is a table: lines have a text, or a word and what it is."""
    filled = [[cell for cell in map(_plain, row) if cell is not None] for row in rows]
    filled = [row for row in filled if row]
    are_lines = all(len(row) <= _MOST_OF_LINE and isinstance(row[0], str) for row in filled)
    return [" ".join(map(str, row)) for row in filled] if are_lines else []


def _plain(cell: Any) -> Any:
    """Return a cell as it is for all readers: None for an empty one, whole numbers without decimals, days as times."""
    if cell == "" and isinstance(cell, str):
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return (
        datetime.combine(cell, datetime.min.time())
        if isinstance(cell, date) and not isinstance(cell, datetime)
        else cell
    )


def _parts(archive: ZipFile, name: str, *, are_rows: bool = False) -> Iterator[bytes]:
    """Yield the text of a file in parts that end between tags, or between rows."""
    rest = b""
    with archive.open(name) as file:
        while step := file.read(_STEP_BYTES):
            text = rest + step
            end = max((row.start() for row in _ROW.finditer(text)), default=0) if are_rows else text.rfind(b"<")
            yield text[:end]
            rest = text[end:]
    yield rest


def _is_filled(archive: ZipFile, name: str, source: str, most: SheetBounds) -> bool:
    """Return whether a sheet has a value.

    Raises:
        BadQuery: one is beyond a bound, which a reader would fill with empty cells up to it.
    """
    number = values = widest = last = 0
    for text in _parts(archive, name):
        of_last, *rows = _ROW.split(text)
        for attributes, cells in zip([b"", *rows[::2]], [of_last, *rows[1::2]], strict=True):
            if attributes:
                named = _ROW_NUMBER.search(attributes)
                number = int(named[1]) if named else number + 1
            filled = len(_VALUE.findall(cells))
            if not filled:
                continue
            values, last = values + filled, number
            widest = max(widest, _width(cells, filled, most.columns))
            if values > most.cells or number > most.rows or widest > most.columns:
                raise most.exceeded(source, number)
    if widest * last > most.cells:
        rule = f"has {last:,} rows of {widest:,} columns, over {most.cells:,} cells, the most that a join reads"
        raise BadQuery("other", source, f"{rule}: delete what is far outside the table, or save it as CSV")
    return values > 0


def _width(cells: bytes, filled: int, most: int) -> int:
    """Return the number of columns up to the last value in the XML of a row's *cells*; *filled* of them have one."""
    parts = _CELL.split(cells)
    for attributes, content in zip(reversed(parts[1::2]), reversed(parts[2::2]), strict=True):
        if _VALUE.search(content):
            place = _PLACE.search(attributes)
            return _place(place[1]) + 1 if place else min(filled, most)
    return 0


def _place(letters: bytes) -> int:
    """Return the place of a column by its letters, from 0."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number - 1


def _errors(
    archive: ZipFile, name: str, source: str
) -> tuple[
    dict[tuple[int, int], str], frozenset[int], tuple[tuple[int, int, int], ...], tuple[tuple[int, int, int], ...]
]:
    """Return the errors of a sheet, such as #N/A, by row and place from 0, its hidden rows and its merged cells.

    Those over several rows come first, those over several columns second, as a `Sheet` has them.

    Raises:
        BadQuery: a formula has no value.
    """
    errors, hidden, merged, across = {}, set(), [], []
    for text in _parts(archive, name, are_rows=True):
        if b"hidden=" in text:
            rows = (row[1] for row in _ROW.finditer(text) if _HIDDEN.search(row[1]))
            hidden |= {int(number[1]) for row in rows if (number := _ROW_NUMBER.search(row))}
        if found := _NOT_COMPUTED.search(text):
            place = _PLACE.search(found[0])
            rule = f"holds a formula {f'in row {int(place[2])} ' if place else ''}that was never computed"
            raise BadQuery("other", source, f"{rule}: open and save it in Excel")
        if b't="e"' in text or b"t='e'" in text:
            for error in _ERROR.finditer(text):
                if place := _PLACE.search(error[1]):
                    errors[int(place[2]) - 1, _place(place[1])] = error[2].decode()
        if b"mergeCell " in text:
            for cell in _MERGED.finditer(text):
                (top, end), (first, last) = map(int, cell.group(2, 4)), map(_place, cell.group(1, 3))
                merged += [(top, end, first)] if end > top else []
                across += [(top, first, last)] if last > first else []
    return errors, frozenset(hidden), tuple(merged), tuple(across)


def _formats(archive: ZipFile, name: str) -> Formats:
    """Return the formats of a sheet that name a currency, by place (from 0) and row (from 1)."""
    named = {style: written for style, written in enumerate(_styles(archive)) if _NAMES_CURRENCY.search(written)}
    formats: dict[int, dict[int, str]] = {}
    if named:
        cell = rb"<(?:\w+:)?c\b(?=[^>]*\ss=[\"'](%b)[\"'])([^>]*)>" % b"|".join(str(style).encode() for style in named)
        for text in _parts(archive, name):
            for found in re.finditer(cell, text):
                if place := _PLACE.search(found[2]):
                    formats.setdefault(_place(place[1]), {})[int(place[2])] = named[int(found[1])]
    return formats


def _struck_rows(archive: ZipFile, name: str) -> frozenset[int]:
    """Return the numbers of the rows whose values are struck through, by half at least."""
    root = _style_sheet(archive)
    fonts = next((part for part in root if part.tag.endswith("}fonts")), ())
    is_struck = [any(_is_set(mark, "}strike") for mark in font) for font in fonts]
    styles = next((part for part in root if part.tag.endswith("}cellXfs")), ())
    fonts_of_styles = [int(style.get("fontId", "0")) for style in styles]
    struck = [style for style, font in enumerate(fonts_of_styles) if font < len(is_struck) and is_struck[font]]
    if not struck:
        return frozenset()
    marked = re.compile(rb"\ss=[\"'](?:%b)[\"']" % b"|".join(str(style).encode() for style in struck))
    found, number = set(), 0
    for text in _parts(archive, name, are_rows=True):
        of_last, *rows = _ROW.split(text)
        for attributes, cells in zip([b"", *rows[::2]], [of_last, *rows[1::2]], strict=True):
            if attributes:
                named = _ROW_NUMBER.search(attributes)
                number = int(named[1]) if named else number + 1
            if not marked.search(cells):
                continue
            parts = _CELL.split(cells)
            filled = [kind for kind, content in zip(parts[1::2], parts[2::2], strict=True) if _VALUE.search(content)]
            if filled and 2 * sum(marked.search(kind) is not None for kind in filled) >= len(filled):
                found.add(number)
    return frozenset(found)


def _is_set(mark: ElementTree.Element, tag: str) -> bool:
    return mark.tag.endswith(tag) and mark.get("val", "1") not in ("0", "false")


def _style_sheet(archive: ZipFile) -> Any:
    if "xl/styles.xml" not in archive.namelist():
        return ()
    return ElementTree.fromstring(archive.read("xl/styles.xml"))  # noqa: S314  # expat limits the expansion of entities


def _styles(archive: ZipFile) -> list[str]:
    """Return the number format of each style of cells."""
    root = _style_sheet(archive)
    if not len(root):
        return []
    written = {part.get("numFmtId"): part.get("formatCode", "") for part in root.iter() if part.tag.endswith("}numFmt")}
    styles = next((part for part in root if part.tag.endswith("}cellXfs")), ())
    ids = [style.get("numFmtId", "0") for style in styles]
    return [written.get(number) or _BUILT_IN.get(int(number), "") for number in ids]


def _sheet_files(archive: ZipFile) -> dict[str, str]:
    """Return the file of each sheet, by its name."""
    root = ElementTree.fromstring(archive.read("_rels/.rels"))  # noqa: S314  # expat limits the expansion of entities
    book = next((link.get("Target", "") for link in root if link.get("Type", "").endswith("/officeDocument")), "")
    book = posixpath.join("/", book)[1:]
    folder, file = posixpath.split(book)
    links = ElementTree.fromstring(archive.read(f"{folder}/_rels/{file}.rels"))  # noqa: S314
    files = {
        link.get("Id"): posixpath.normpath(posixpath.join("/", folder, link.get("Target", "")))[1:]
        for link in links
        if link.get("Type", "").endswith("/worksheet")
    }
    sheets = [part for part in ElementTree.fromstring(archive.read(book)).iter() if part.tag.endswith("}sheet")]  # noqa: S314
    named = {
        sheet.get("name", ""): next(value for name, value in sheet.items() if name.endswith("}id")) for sheet in sheets
    }
    return {name: files[link] for name, link in named.items() if link in files}
