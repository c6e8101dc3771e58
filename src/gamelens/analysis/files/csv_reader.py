"""Reader of delimited files: all cells as text, the separator found from the header.

Only an empty cell is missing.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from gamelens.analysis.files.csv_safety import unguarded
from gamelens.errors import BadQuery

_SEPARATORS: Final = ",;\t|"
_HEADER_CHARACTERS: Final = 1 << 20
_BLOCK_BYTES: Final = 16 << 20  # the longest row possible


def read_delimited(path: Path, encoding: str | None) -> tuple[pa.Table, str]:
    """Return columns of text, named by the first row, and the separator.

    An empty cell is null. Rows keep their numbers: an empty line is a row of nulls.

    Raises:
        BadQuery: the file is not text in *encoding* (by default UTF-8, or that of its byte order mark), or its rows
            differ in length.
    """
    text = _read_text(path, encoding)
    if text.count('"') % 2:
        raise BadQuery("other", path.name, "has a quotation mark that is never closed")
    separator = "\t" if ".tsv" in path.name.lower() else _separator(path.name, text)
    header = _header(text, separator)
    if not header:
        raise BadQuery("other", path.name, "is empty: the first row must name the columns")
    cells = _cells(path.name, text, len(header), separator)
    names = unguarded(pa.array([name.strip() for name in header], pa.string())).to_pylist()
    return pa.Table.from_arrays([unguarded(column) for column in cells.slice(1).columns], names=names), separator


def _cells(source: str, text: str, width: int, separator: str) -> pa.Table:
    """Return all cells as text, the header in the first row.

    Raises:
        BadQuery: a row is longer or shorter than the header.
    """
    uneven: list[Any] = []
    places = [str(place) for place in range(width)]
    try:
        cells = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            arrow_csv.ReadOptions(use_threads=False, column_names=places, block_size=_BLOCK_BYTES),
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
        raise BadQuery("other", source, f"cannot be read: {error}") from None
    if uneven:
        row = uneven[0]
        rule = f"has {row.actual_columns} cells in row {row.number} and {row.expected_columns} columns"
        raise BadQuery("other", source, f"{rule}: quote cells that hold {separator!r}")
    return cells


def _read_text(path: Path, encoding: str | None) -> str:
    """Return the decoded text of a file.

    Raises:
        BadQuery: it cannot be read, or is not text in *encoding*.
    """
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix.lower() == ".gz" else content
        is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return content.decode(encoding or ("utf-16" if is_utf16 else "utf-8-sig"))
    except (UnicodeError, LookupError) as error:
        raise BadQuery("other", path.name, f'is not text: {error}; name its encoding=, such as "cp1252"') from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadQuery("other", path.name, f"cannot be read: {error}") from None


def _separator(source: str, text: str) -> str:
    """Return the separator that gives the header the most cells."""
    widths = {separator: len(_header(text, separator)) for separator in _SEPARATORS}
    widest = max(widths.values())
    candidates = [separator for separator, width in widths.items() if width == widest]
    if widest > 1 and len(candidates) > 1:
        raise BadQuery(
            "other", source, f"may be separated by {candidates[0]!r} or {candidates[1]!r}: quote the header's cells"
        )
    return candidates[0]


def _header(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text[:_HEADER_CHARACTERS], newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise BadQuery("other", text[:40], f"is no header: {error}") from None
