"""Reader of delimited files: all cells as text, header and separator recognised.

Only an empty cell is missing.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from gamelens.analysis.files.csv_safety import unguarded
from gamelens.analysis.files.table_layout import SEARCHED_ROWS, header_place
from gamelens.errors import BadQuery

MOST_BYTES: Final = 256 << 20
"""Bytes of a text file, unpacked. Cells take several times as much memory."""
_SEPARATORS: Final = ",;\t|"  # csv.Sniffer takes one of two that do equally well, and finds none below a title
_HEADER_CHARACTERS: Final = 1 << 20
_BLOCK_BYTES: Final = 16 << 20  # the longest row possible


def read_delimited(
    path: Path, encoding: str | None, header_row: int | None = None, *, most_bytes: int = MOST_BYTES
) -> tuple[pa.Table, str, list[list[str]]]:
    """Return the cells of a delimited file, its separator, and the rows above its header.

    The cells are columns of text, named by the header. An empty cell is null, an empty line a row of nulls.
    *header_row* is the row of the header (1 is the first), None to recognise it.

    Raises:
        BadQuery: the file has more than *most_bytes* unpacked, is not text in *encoding* (by default UTF-8, or that of
            its byte order mark), or its rows differ in length.
    """
    text = _read_text(path, encoding, most_bytes)
    if text.count('"') % 2:
        raise BadQuery("other", path.name, "has a quotation mark that is never closed")
    possible = "\t" if ".tsv" in path.name.lower() else _SEPARATORS
    tops = {mark: _top(text, mark, header_row) for mark in possible}
    widest = max(len(header) for _, _, header in tops.values())
    separator, *others = [mark for mark, (_, _, header) in tops.items() if len(header) == widest]
    if others and widest > 1:
        raise BadQuery(
            "other", path.name, f"may be separated by {separator!r} or {others[0]!r}: quote the header's cells"
        )
    lines, above, header = tops[separator]
    if not header:
        raise BadQuery("other", path.name, "is empty: the first row must name the columns")
    uneven: list[Any] = []
    places = [str(place) for place in range(widest)]
    try:
        cells = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            arrow_csv.ReadOptions(use_threads=False, column_names=places, skip_rows=lines, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=lambda row: uneven.append(row) or "skip",  # type: ignore[func-returns-value]
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        raise BadQuery("other", path.name, f"cannot be read: {error}") from None
    if uneven:
        row = uneven[0]
        number = row.number - lines + len(above)  # a row above the header may have several lines
        rule = f"has {row.actual_columns} cells in row {number} and {row.expected_columns} columns"
        raise BadQuery("other", path.name, f"{rule}: quote cells that hold {separator!r}")
    names = unguarded(pa.array([name.strip() for name in header], pa.string())).to_pylist()
    table = pa.Table.from_arrays([unguarded(column) for column in cells.slice(1).columns], names=names)
    return table, separator, above


def _read_text(path: Path, encoding: str | None, most_bytes: int) -> str:
    """Return the decoded text of a file.

    Raises:
        BadQuery: it cannot be read, is too large, or is not text in *encoding*.
    """
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            rule = f"has more than {most_bytes >> 20} MB of text unpacked, the most that a join reads"
            raise BadQuery("other", path.name, f"{rule}: leave out rows and columns, or store it as Parquet")
        is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return content.decode(encoding or ("utf-16" if is_utf16 else "utf-8-sig"))
    except (UnicodeError, LookupError) as error:
        raise BadQuery("other", path.name, f'is not text: {error}; name its encoding=, such as "cp1252"') from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadQuery("other", path.name, f"cannot be read: {error}") from None


def _top(text: str, separator: str, header_row: int | None) -> tuple[int, list[list[str]], list[str]]:
    """Return the number of lines above the header, the rows there, and the header.

    Raises:
        BadQuery: the file has no row *header_row*, or the first row cannot be read.
    """
    reader = csv.reader(io.StringIO(text[:_HEADER_CHARACTERS], newline=""), delimiter=separator)
    rows, lines = list[list[str]](), [0]
    try:
        for row in islice(reader, max(SEARCHED_ROWS, header_row or 0)):
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        if not rows:
            raise BadQuery("other", text[:40], f"is not a header: {error}") from None
    place = header_place(rows) if header_row is None else header_row - 1
    if place and place >= len(rows):
        raise BadQuery("header_row", header_row, f"is below the last of {len(rows)} rows")
    return lines[place], rows[:place], rows[place] if rows else []
