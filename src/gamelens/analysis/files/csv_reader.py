"""Reader of delimited files: all cells as text, header, separator and quoting recognised.

Only an empty cell is missing, and `\\N`, by which databases write none.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from gamelens.analysis.files.csv_safety import unguarded
from gamelens.analysis.files.header_rows import SEARCHED_ROWS, header_place, joined_headers
from gamelens.analysis.files.text_encodings import likely_encodings
from gamelens.errors import BadQuery

MOST_BYTES: Final = 256 << 20
"""Bytes of a text file, unpacked. Cells take several times as much memory."""
_SEPARATORS: Final = ",;\t|"  # csv.Sniffer takes one of two that do equally well, and finds none below a title
_HEADER_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 2 << 20  # the longest row possible
_FEWEST_ROWS: Final = 2  # of another table, with its header
_FEWEST_CELLS: Final = 2  # of its header
_MOST_SHOWN: Final = 40  # letters of a line
_MOST_BELOW: Final = 5  # lines below a table that may be more than its rows
_BLANK_LINES: Final = re.compile(rb'(?:(?:[ \t\r,;|]|"")*\n)+')
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, eq=False)
class DelimitedText:
    """The cells of a delimited file.

    Attributes:
        cells: columns of text, each a dictionary; an empty cell is null, an empty line a row of nulls.
        separator: what separates them.
        above: the rows above the header.
        below: the first cells of the lines below the last row, which have fewer cells.
        first_row: the number of the row below the header; 1 is the first of the file.
        cut_at: the row from which on another table follows, which was not read; None for none.
    """

    cells: pa.Table
    separator: str
    above: list[list[str]]
    below: list[str]
    first_row: int
    cut_at: int | None = None


def read_delimited(
    path: Path, encoding: str | None, header_row: int | None = None, *, most_bytes: int = MOST_BYTES
) -> DelimitedText:
    """Return the cells of a delimited file, and what is above and below them.

    *header_row* is the row of the header (1 is the first), None to recognise it.

    Raises:
        BadQuery: the file has more than *most_bytes* unpacked, is not text in *encoding* (by default UTF-8, or that of
            its byte order mark), or its rows differ in length.
    """
    content = utf8(path, unpacked(path, most_bytes), encoding)
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    top = _BLANK_LINES.match(content)
    skipped, start = (top[0].count(b"\n"), top.end()) if top else (0, 0)
    possible = "\t" if ".tsv" in path.name.lower() else _SEPARATORS
    if top := re.compile(rb"sep=(.)\r?\n").match(content, start):  # by which a spreadsheet is told the separator
        skipped, start, possible = skipped + 1, top.end(), top[1].decode()
    content = content[start:]
    place = None if header_row is None else header_row - 1 - skipped
    if place is not None and place < 0:
        raise BadQuery("header_row", header_row, f"is above the first row of the table: {skipped + 1} is its first")
    separator, lines, above, header, is_quoted = _top(path.name, content, possible, place)
    if not header and place:
        raise BadQuery("header_row", header_row, f"is below the last row of {path.name}")
    if not header:
        raise BadQuery("other", path.name, "is empty: the first row must name the columns")
    cells, uneven = _cells(path.name, content, separator, len(header), lines, is_quoted)
    first_row = skipped + len(above) + 2
    below, cut_at = [row.text for row in uneven], None
    next_header = None
    if uneven:
        known = {*header} if _are_below(uneven, cells, len(header), lines) else None
        next_header = _header_below(content, separator, uneven[0].number, is_quoted, known)
    del content, top  # a match holds the text that it was found in
    joined_header, joined = joined_headers(header, above)
    if next_header is not None:
        row = uneven[0]
        begins, header_below = (number - lines + first_row - 2 for number in (row.number, next_header))
        if header_row is None:
            rule = f"holds a second table from row {begins} ({row.text.strip()[:_MOST_SHOWN]!r}) on: "
            rule += f"header_row={first_row - 1} reads the first, header_row={header_below} the second"
            raise BadQuery("other", path.name, rule)
        cells, uneven, below, cut_at = cells.slice(0, row.number - lines - 1), [], [], begins
    header = joined_header
    above = above[: len(above) - joined]
    if uneven and not _are_below(uneven, cells, len(header), lines):
        row = uneven[0]
        number = row.number - lines + first_row - 2  # a row above the header may have several lines
        rule = f"has {row.actual_columns} cells in row {number} and {row.expected_columns} columns"
        step = f"quote cells that hold {separator!r}"
        if row.actual_columns == 1 and (re.search(r"[^\W\d_]", row.text) or row.text.startswith("#")):
            rule = f"has a line between its rows, row {number} ({row.text.strip()!r})"
            step = "delete it, or pass one file for each table"
        raise BadQuery("other", path.name, f"{rule}: {step}")
    names = unguarded(
        pa.array([name.strip("\ufeff\u200b\u200e\u200f ").strip() for name in header], pa.string())
    ).to_pylist()
    cells, columns = cells.slice(1), []
    for _ in names:
        column = cells.column(0).unify_dictionaries()
        cells = cells.remove_column(0)  # whose memory is free as soon as it is one dictionary
        columns.append(_unguarded(_without_blanks(column) if separator == "|" else column))
    return DelimitedText(pa.Table.from_arrays(columns, names=names), separator, above, below, first_row, cut_at)


def _without_blanks(column: Any) -> Any:
    """Return a column of dictionaries without the blanks that people write around a bar."""
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed).dictionary_encode()


def _header_below(content: bytes, separator: str, number: int, is_quoted: bool, known: set[str] | None) -> int | None:
    """Return the line of the header of another table that begins at line *number*, None if none does.

    A line with one cell is its title. Where the lines may be remarks below a table, the header has several columns, or
    one of the *known* names.
    """
    lines = content.split(b"\n", number + SEARCHED_ROWS)[number - 1 : number + SEARCHED_ROWS - 1]
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    try:
        texts = [line.decode(errors="ignore").rstrip("\r") for line in lines]
        rows = [next(csv.reader([text], delimiter=separator, quoting=quoting), []) for text in texts]
    except csv.Error:
        return None
    place = header_place(rows)
    table = [row for row in rows[place:] if any(row)]
    if len(table) < _FEWEST_ROWS or len(table[0]) < _FEWEST_CELLS or any(_is_number(cell) for cell in table[0]):
        return None
    if len(rows[0]) > 1 and len(table[0]) != len(table[1]):  # a cell with a separator in it
        return None
    has_number = any(_is_number(cell) for cell in table[1])
    if known is not None:
        are_numbers = len(table) > _FEWEST_ROWS and all(len(row) == len(table[0]) for row in table)
        is_named = bool({*table[0]} & known) or len(table[0]) > _FEWEST_CELLS
        has_number &= are_numbers and is_named and not any(cell.endswith(":") for cell in table[0])
    return number + place if has_number and all(table[0]) else None


def _is_number(cell: str) -> bool:
    return any(letter.isdigit() for letter in cell)


def unpacked(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file, a packed one unpacked.

    Raises:
        BadQuery: it cannot be read, is too large, or is an archive of several files.
    """
    try:
        with opened(path) as file:
            content: bytes = file.read(most_bytes + 1)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise BadQuery("other", path.name, f"cannot be read: {error}") from None
    if len(content) > most_bytes:
        rule = f"has more than {most_bytes >> 20} MB of text unpacked, the most that a join reads"
        raise BadQuery("other", path.name, f"{rule}: leave out rows and columns, or store it as Parquet")
    return content


def opened(path: Path) -> Any:
    """Open the bytes of a file, and unpack a packed one.

    Raises:
        BadQuery: it is an archive of several files.
    """
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    if path.suffix.lower() != ".zip":
        return path.open("rb")
    archive = zipfile.ZipFile(path)
    names = [entry.filename for entry in archive.infolist() if not entry.is_dir() and "__MACOSX" not in entry.filename]
    if len(names) != 1:
        archive.close()
        rule = f"holds {len(names)} files, and one is read: unpack it and pass the one with the table, or each of them"
        raise BadQuery("other", path.name, rule, names)
    file = archive.open(names[0])
    archive.close()  # the member keeps the archive's file open until it is closed itself
    return file


def utf8(path: Path, content: bytes, encoding: str | None) -> bytes:
    """Return the text of *content* in UTF-8, without a byte order mark.

    Raises:
        BadQuery: it is not text in *encoding*.
    """
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        if encoding or is_utf16:
            return content.decode(encoding or "utf-16").removeprefix("\ufeff").encode()
        content = content.removeprefix(b"\xef\xbb\xbf")
        ends = pa.py_buffer(np.array([0, len(content)], dtype="int32"))
        pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(content)]).validate(full=True)
    except LookupError as error:
        raise BadQuery("encoding", encoding, f"is no encoding: {error}") from None
    except (UnicodeError, pa.ArrowInvalid) as error:
        likely = [f'"{name}" reads {words!r}' for name, words in likely_encodings(content)]
        step = f"pass encoding=: {', '.join(likely)}" if likely else f"{error}; name its encoding="
        raise BadQuery("other", path.name, f"is not text in {encoding or 'UTF-8'}: {step}") from None
    return content


def _top(
    source: str, content: bytes, possible: str, place: int | None
) -> tuple[str, int, list[list[str]], list[str], bool]:
    """Return the separator, the number of lines above the header, the rows there, the header, and whether it quotes.

    Raises:
        BadQuery: two separators do equally well, or a quotation mark stays open.
    """
    text = content[:_HEADER_BYTES].decode(errors="ignore")
    tops = {mark: _rows(text, mark, place, True) for mark in possible}
    fits = {mark: (_evenness(text, mark, len(header)), len(header)) for mark, (_, _, header) in tops.items()}
    separator, *others = [mark for mark, fit in fits.items() if fit == max(fits.values())]
    if others and fits[separator][1] > 1:
        raise BadQuery("other", source, f"may be separated by {separator!r} or {others[0]!r}: quote the header's cells")
    bare = _rows(text, separator, place, False)
    lines, _, header = tops[separator]
    if not _is_quoted(content, separator, len(bare[2]), text.splitlines()[lines:SEARCHED_ROWS], len(header)):
        return separator, *bare, False
    if content.count(b'"') % 2:
        _check_closed(source, content, separator)
    return separator, *tops[separator], True


def _check_closed(source: str, content: bytes, separator: str) -> None:
    """Raise `BadQuery` if a quotation mark opens a cell and none closes it. Within a cell it is a letter."""
    reader, row = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=separator, strict=True), 1
    try:
        for _ in reader:
            row = reader.line_num + 1
    except csv.Error as error:
        if "unexpected end" in str(error):
            begins = content.splitlines()[row - 1].decode()[:40]
            rule = f"has a quotation mark in line {row} ({begins!r}) that is never closed: close it there, "
            raise BadQuery("other", source, f"{rule}or write it twice in a cell in quotation marks") from None


def _evenness(text: str, separator: str, width: int) -> float:
    """Return the share of the first rows that have the *width* of the header, 0 if that is one cell."""
    try:
        widths = [
            len(row) for row in islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), SEARCHED_ROWS)
        ]
    except csv.Error:
        return 0.0
    filled = [cells for cells in widths if cells > 0]
    return sum(cells == width for cells in filled) / len(filled) if filled and width > 1 else 0.0


def _rows(text: str, separator: str, place: int | None, is_quoted: bool) -> tuple[int, list[list[str]], list[str]]:
    """Return the number of lines above the header, the rows there, and the header."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting)
    rows, lines = list[list[str]](), [0]
    try:
        for row in islice(reader, max(SEARCHED_ROWS, (place or 0) + 1)):
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        if not rows:
            raise BadQuery("other", text[:40], f"is not a header: {error}") from None
    place = header_place(rows) if place is None else min(place, len(rows))
    return lines[place], rows[:place], rows[place] if place < len(rows) else []


def _is_quoted(content: bytes, separator: str, bare_width: int, lines: list[str], width: int) -> bool:
    """Return whether quotation marks enclose cells.

    They do not if one stands inside a cell or encloses only part of it, and all lines have the *bare_width* of the
    header when marks are letters like any other; unless the first *lines* each have the *width* that it has with them.
    """
    if b'"' not in content:
        return True
    mark = {b"m": re.escape(separator).encode()}
    is_inside = re.search(rb'[^%(m)s\r\n"]"(?!["%(m)s\r\n]|\Z)' % mark, content)
    if not is_inside and not re.search(rb'(?:\A|[%(m)s\n])"[^"%(m)s\n]*[%(m)s\n]' % mark, content):
        return True
    widths = {len(row) for row in csv.reader(lines, delimiter=separator) if row}
    if not is_inside and widths == {width} and all(line.count('"') % 2 == 0 for line in lines):
        return True
    marks, is_body, most = separator.encode(), False, max(bare_width - 1, 1)
    for line in io.BytesIO(content):
        if line in (b"\n", b"\r\n"):
            continue
        count = line.count(marks)
        is_body |= count == most  # lines above the header have fewer cells
        if count > most or (is_body and count < most):
            return True
    return not is_body


def _cells(
    source: str, content: bytes, separator: str, width: int, lines: int, is_quoted: bool
) -> tuple[pa.Table, list[Any]]:
    """Return the cells from the header on, and the rows of another length."""
    uneven: list[Any] = []
    places = [str(place) for place in range(width)]
    try:
        cells = arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(use_threads=False, column_names=places, skip_rows=lines, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(
                delimiter=separator,
                quote_char='"' if is_quoted else False,
                newlines_in_values=is_quoted,
                ignore_empty_lines=False,
                invalid_row_handler=lambda row: uneven.append(row) or "skip",  # type: ignore[func-returns-value]
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(places, _TEXT), null_values=["", r"\N"], strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        raise BadQuery("other", source, f"cannot be read: {error}") from None
    if (emptied := _without_bare_separators(content, separator, uneven)) is not None:
        return _cells(source, emptied, separator, width, lines, is_quoted)
    return cells, uneven


def _without_bare_separators(content: bytes, separator: str, uneven: list[Any]) -> bytes | None:
    """Return *content* with lines of separators, empty quoted cells and rules (-----) as empty lines.

    None if no uneven row is one.
    """
    bare = rb'^(?:[-=_+*~ \t%b]|""|\xe2[\x94\x95][\x80-\xbf])+\r?$' % re.escape(separator.encode())
    if not any(re.match(bare, row.text.encode()) for row in uneven):
        return None
    emptied = re.sub(b"(?m)" + bare, b"", content)
    return emptied if emptied != content else None


def _are_below(uneven: list[Any], cells: pa.Table, width: int, lines: int) -> bool:
    """Return whether the rows of another length are lines below the table: shorter, and after its last row."""
    first = uneven[0].number - lines - 1  # the place in the file, counted from the header
    after = cells.slice(first)
    return (
        first > 1
        and all(row.actual_columns < width for row in uneven)
        and len(uneven) <= max(_MOST_BELOW, cells.num_rows - 1)
        and all(column.null_count == len(column) for column in after.columns)
    )


def _unguarded(column: Any) -> Any:
    """Return a column of text as one dictionary, its texts as they were before `csv_safety.guarded`."""
    if column.num_chunks == 0:
        return pa.array([], pa.string()).dictionary_encode()
    whole = column.combine_chunks()
    texts = unguarded(whole.dictionary)
    return whole if texts.equals(whole.dictionary) else texts.take(whole.indices).dictionary_encode()
