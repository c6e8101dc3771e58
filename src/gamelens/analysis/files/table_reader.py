"""External tables as they are: typed or text cells, without any guess about text.

A text file gives text, and only an empty cell is missing; typed sources keep their types. What the cells mean is found
out by `outside_data`.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pandas import Series

from gamelens.analysis.files.csv_reader import read_delimited
from gamelens.analysis.files.excel_reader import read_sheet
from gamelens.analysis.files.export_target import with_index
from gamelens.analysis.files.header_rows import header_place, joined_headers
from gamelens.analysis.files.json_reader import cell_of, read_json
from gamelens.analysis.files.number_parsing import written_numbers
from gamelens.errors import BadQuery, suggests_names
from gamelens.receipts import RECEIPT, Receipt

STRUCK: Final = "struck through"
"""The column that says yes of the rows of a sheet that are struck through, if there are some."""
_COMMA: Final = re.compile(r"\d,\d{1,2}(?!\d)")
_POINT: Final = re.compile(r"\d\.\d{1,2}(?!\d)")
IN_ONES: Final = "gamelens in ones"
"""The attribute of a frame of a table with the columns that it has read."""
HIDDEN: Final = "hidden"
"""The column that leave_out= names for the rows that a sheet hides."""
_TEXTS: Final = (".csv", ".tsv", ".txt")
_UNSEEN: Final = "[\u200e\u200f\u061c]"
_JSON: Final = (".json", ".jsonl", ".ndjson")
_SUFFIXES: Final = (*_TEXTS, *_JSON, ".csv.gz", ".txt.gz", ".zip", ".parquet", ".xlsx", ".xlsm")
_OF_PANDAS: Final = frozenset({".xml", ".html", ".feather", ".orc"})
_FEWEST_BESIDE: Final = 2  # columns of a table beside another, and rows that only one of them has
_FEWEST_WORDS: Final = 3  # of a sentence
_MOST_MERGED: Final = 4  # cells that a note names
_MOST_BELOW: Final = 20  # rows of notes below a table
_DIGITS: Final = re.compile(r"\d")
_NO_RECEIPT: Final = Receipt()
_UTC_MOMENT: Final = pa.timestamp("us", "UTC")


@suggests_names
@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a table from outside gamelens, before anything is known of their meaning.

    Attributes:
        source: name of its file, or "other".
        cells: columns of text (dictionaries of strings), int64, double, bool or timestamp[us, UTC].
        rows: row numbers: of a file as a spreadsheet shows them, of a frame from 0.
        separator: separator of a text file.
        receipt: the receipt of a frame that a client returned, also one stored as Parquet; an empty one for others.
        above: texts of the lines above the header, and below the last row.
        formats: number formats of the cells of an Excel file, by column.
        notes: what was left out.
        header_row: the row of a file that names the columns.
        cells_above: the cells of the lines above the header.
        in_ones: the columns of a frame that are in no thousands, whatever their header says, as a table gave them.
        sheet: the name of the sheet that was asked for.
        hidden: the numbers of rows that a sheet hides.
        beside: lines of other sheets of a workbook that are no tables, each with the name of its sheet.
    """

    source: str
    cells: pa.Table
    rows: NDArray[np.int64]
    separator: str | None = None
    receipt: Receipt = _NO_RECEIPT
    above: tuple[str, ...] = ()
    formats: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    header_row: int = 1
    cells_above: tuple[Sequence[Any], ...] = ()
    in_ones: frozenset[str] = frozenset()
    sheet: str = ""
    hidden: frozenset[int] = frozenset()
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.cells.column_names)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text."""
        return bool(pa.types.is_dictionary(self.cells.column(name).type))

    def texts(self, name: str) -> tuple[Any, NDArray[np.int32]]:
        """Return the distinct texts of a column, an Arrow array, and the place of each row's text in it, -1 for none.

        Whole numbers are written without decimals, days and times as ISO 8601.
        """
        column = self.cells.column(name)
        if not pa.types.is_dictionary(column.type):
            column = _written(column).dictionary_encode()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
        codes = column.indices.fill_null(-1) if column.null_count else column.indices
        codes = codes.to_numpy().astype("int32", copy=False)
        used = pd.unique(codes)
        used = used[used >= 0]
        if (used == np.arange(len(column.dictionary))[: len(used)]).all():  # as they were read
            return column.dictionary.slice(0, len(used)), codes
        place = np.full(len(column.dictionary) + 1, -1, dtype="int32")  # the last for none
        place[used] = np.arange(len(used))
        return column.dictionary.take(pa.array(used, pa.int32())), place[codes]

    def numbers(self, name: str) -> Series[Any]:
        """Return a column that is not text as Int64, float64, boolean or datetime64[us, UTC]."""
        kinds = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        values: Series[Any] = self.cells.column(name).to_pandas(types_mapper=kinds.get)
        return values

    def rows_text(self, mask: NDArray[np.bool_]) -> str:
        """Return the numbers of the rows of *mask* in words: row 3 of spend.csv."""
        numbers = pd.unique(self.rows[mask])  # a row with a header for each day is several
        shown = ", ".join(map(str, numbers[:5].tolist())) + (", ..." if len(numbers) > 5 else "")
        return f"{'row' if len(numbers) == 1 else 'rows'} {shown} of {self.source}"

    def filtered(self, mask: NDArray[np.bool_], *notes: str) -> Grid:
        """Return the rows of *mask*, with *notes*."""
        formats = {
            name: [row_cells for row_cells, stays in zip(written, mask, strict=True) if stays]
            for name, written in self.formats.items()
        }
        cells, rows = self.cells.filter(pa.array(mask)), self.rows[mask]
        return replace(self, cells=cells, rows=rows, formats=formats, notes=(*self.notes, *notes))


def read_grid(
    other: Any,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    header_row: int | None = None,
) -> Grid:
    """Return the cells of *other*: a path, a pandas or polars frame, an Arrow table.

    Args:
        other: the table.
        sheet: the sheet of an Excel file.
        encoding: the encoding of a text file.
        missing: texts that mean an empty cell.
        header_row: the row of a text or Excel file that names the columns; 1 is the first, None to recognise it.

    Raises:
        BadQuery: there is no such file or sheet, or it cannot be read without guessing.
    """
    if header_row is not None and (not isinstance(header_row, int) or header_row < 1):
        raise BadQuery("header_row", header_row, "is not a row: 1 is the first")
    if isinstance(other, (str, os.PathLike)):
        path = Path(other).expanduser()
        if not path.is_file():
            raise BadQuery("other", str(other), "is not a file")
        grid = _read_file(path, sheet, encoding, header_row)
    elif isinstance(other, pd.DataFrame):
        grid = _grid("other", _from_pandas(other))
        grid = replace(grid, receipt=Receipt.of(other.attrs), in_ones=frozenset(other.attrs.get(IN_ONES, ())))
    elif hasattr(other, "__arrow_c_stream__") and hasattr(other, "columns"):  # pyarrow, polars
        grid = _grid("other", pa.table(other))
    else:
        kind = f"a {type(other).__name__}"
        raise BadQuery(
            "other", kind, "is not a path, a pandas or polars frame or an Arrow table; collect() a lazy frame"
        )
    _check_one_table(grid, sheet, encoding)
    names: dict[int, str] = {}
    notes = []
    for place, name in enumerate(grid.columns):
        column = grid.cells.column(place)
        alike = [other for other in names if (name and grid.columns[other] == name)]
        if any(grid.cells.column(other).equals(column) for other in alike):
            notes.append(f"{name} of {grid.source} is there twice with the same cells, and is read once")
        elif name or column.null_count < len(grid.rows):
            names[place] = f"{name} ({len(alike) + 1})" if alike else name or f"column_{place + 1}"
    if twice := [name for name, count in Counter(names.values()).items() if count > 1]:
        raise BadQuery("other", grid.source, f"has two columns that are called {min(twice)}: rename one of them")
    for place, name in names.items():
        zone = getattr(grid.cells.column(place).type, "tz", None)
        if zone and zone.upper() not in ("UTC", "ETC/UTC", "+00:00"):
            notes.append(
                f'{name} has times of {zone}, and its days are of UTC; table["{name}"].dt.tz_localize(None) '
                f"of a pandas frame has the days of the zone"
            )
    grid = replace(grid, notes=(*grid.notes, *notes))
    columns = [_without_unseen_marks(_to_plain_type(grid.cells.column(place), missing)) for place in names]
    pa.default_memory_pool().release_unused()  # of reading, which takes more than the cells
    return replace(grid, cells=pa.Table.from_arrays(columns, names=[*names.values()]))


def _check_one_table(grid: Grid, sheet: str | None, encoding: str | None) -> None:
    """Raise `BadQuery` if two tables stand side by side, an empty column between them.

    Their headers are the same in part, or one of them has more rows, or the second begins with names of its own. The
    code that the error quotes opens each of them as it is written: texts stay texts, and NA is Namibia.
    """
    is_blank = [
        not name and grid.cells.column(place).null_count == len(grid.rows) for place, name in enumerate(grid.columns)
    ]
    for place in [place for place, blank in enumerate(is_blank) if blank]:
        left, right = grid.columns[:place], grid.columns[place + 1 :]
        if min(sum(map(bool, side)) for side in (left, right)) < _FEWEST_BESIDE:
            continue
        filled = [
            np.any([grid.cells.column(at).is_valid().to_numpy() for at in columns], axis=0)
            for columns in (range(place), range(place + 1, len(grid.columns)))
        ]
        lengths = sorted(int(rows.sum()) for rows in filled if rows[: int(rows.sum())].all())
        is_longer = len(lengths) == 2 and lengths[1] - lengths[0] >= _FEWEST_BESIDE
        if is_longer or {name for name in left if name} & {*right} or _begins_anew(grid, place + 1):
            sides = [range(place), range(place + 1, len(is_blank))]
            opened = [_code_of(grid, [at for at in side if not is_blank[at]], sheet, encoding) for side in sides]
            rule = f"has two tables side by side, {_named(left)} and {_named(right)}: pass a frame of one of them, "
            rule += " or ".join(opened)
            raise BadQuery("other", grid.source, rule)


def _code_of(grid: Grid, places: Sequence[int], sheet: str | None, encoding: str | None) -> str:
    """Return the code that opens the columns at *places* as a frame."""
    if grid.separator is None and not grid.source.lower().endswith((".xlsx", ".xlsm")):
        frame = "other" if grid.source == "other" else f"pd.read_parquet({grid.source!r})"
        return f'{frame}.iloc[:, {[*places]}].dropna(how="all")'
    arguments = [repr(grid.source)]
    if grid.separator is None:
        arguments += ['engine="openpyxl"', *([f"sheet_name={sheet!r}"] if sheet is not None else [])]
    else:
        arguments += [f"sep={grid.separator!r}"] if grid.separator != "," else []
        arguments += [f"encoding={encoding!r}"] if encoding is not None else []
        arguments += ["dtype=str"]
    if grid.header_row > 1:
        arguments += [f"header={grid.header_row - 1}", *([] if grid.separator is None else ["skip_blank_lines=False"])]
    arguments += [f"usecols={[*places]}", "keep_default_na=False", 'na_values=[""]']
    kind = "excel" if grid.separator is None else "csv"
    names = [grid.columns[place] for place in places]  # with those above them, which may have the currency
    is_joined = all(names) and len({*names}) == len(names) and len({*grid.columns}) > 1
    named = f".set_axis({names!r}, axis=1)" if is_joined else ""
    return f"pd.read_{kind}({', '.join(arguments)}){named}.dropna(thresh={_FEWEST_BESIDE})"


def _begins_anew(grid: Grid, place: int) -> bool:
    """Return whether names stand in the column at *place*, another one in each row, and numbers in one behind it."""
    are_numbers = []
    for column in grid.cells.columns[place:]:
        texts = column.cast(pa.string()).unique().drop_null()
        are_numbers.append(len(texts) > 0 and bool(written_numbers(texts.to_pylist()).is_number.all()))
    first = grid.cells.column(place)
    is_name = not are_numbers[0] and first.null_count == 0 and len(first.unique()) == len(first) >= _FEWEST_BESIDE
    return is_name and any(are_numbers[1:])


def _named(headers: Sequence[str]) -> str:
    known = [name for name in headers if name]
    return f"{known[0]} to {known[-1]}"


def _read_file(path: Path, sheet: str | None, encoding: str | None, header_row: int | None) -> Grid:
    """Read a file by its suffix.

    Raises:
        BadQuery: the suffix is unknown, or the file cannot be read.
    """
    name = path.name.lower()
    is_json = name.removesuffix(".gz").endswith(_JSON)
    if name.endswith(".zip") or is_json or name.removesuffix(".gz").endswith(_TEXTS):
        if (found := read_json(path, encoding, is_json=is_json)) is not None:
            names = [*dict.fromkeys(key for row in found.rows for key in row)]
            columns = [_to_array([row.get(key) for row in found.rows]) for key in names]
            return _grid(path.name, pa.Table.from_arrays(columns, names=names), np.array(found.numbers, dtype="int64"))
        text = read_delimited(path, encoding, header_row)
        numbers = np.arange(text.cells.num_rows) + text.first_row
        grid = _grid(path.name, text.cells, numbers, text.above, text.below, separator=text.separator)
        if text.cut_at is not None:
            note = f"row {text.cut_at} of {path.name} and all below belong to another table and are left out"
            grid = replace(grid, notes=(*grid.notes, note))
        return grid
    if name.endswith(".parquet"):
        try:
            return _grid(path.name, pq.ParquetFile(path).read())
        except (pa.ArrowException, OSError) as error:
            raise BadQuery("other", path.name, f"cannot be read as Parquet: {error}") from None
    if name.endswith((".xlsx", ".xlsm")):
        page = read_sheet(path, sheet)
        every_row = page.rows or [()]
        place = header_place(every_row) if header_row is None else min(header_row, len(every_row)) - 1
        header, *rows = every_row[place:]
        spans = {(row - 1, first): last for row, first, last in page.across}
        names, joined = joined_headers(header, every_row[:place], spans)
        rows, merged = _with_merged_cells(rows, page.merged, names, place + 2)
        columns = [_to_array([row[place] for row in rows]) for place in range(len(header))]
        cells, numbers = pa.Table.from_arrays(columns, names=names), np.arange(len(rows)) + place + 2
        formats = {
            names[at]: [of_rows.get(number) for number in numbers.tolist()]
            for at, of_rows in page.formats.items()
            if at < len(names)
        }
        grid = _grid(path.name, cells, numbers, every_row[: place - joined], formats=formats)
        grid = replace(grid, notes=(*grid.notes, *merged), sheet=sheet or "", beside=page.beside)
        is_struck = np.isin(grid.rows, [*page.struck])
        if is_struck.any() and STRUCK not in grid.columns:
            marks = pa.array(["yes" if struck else None for struck in is_struck], pa.string()).dictionary_encode()
            words = "is struck through" if is_struck.sum() == 1 else "are struck through"
            notes = (*grid.notes, f"{grid.rows_text(is_struck)} {words} in the sheet")
            grid = replace(grid, cells=grid.cells.append_column(STRUCK, marks), notes=notes)
        is_hidden = np.isin(grid.rows, [*page.hidden])
        note = f"{grid.rows_text(is_hidden)} {'is' if is_hidden.sum() == 1 else 'are'} hidden in the sheet, and read; "
        note += f"leave_out={ {HIDDEN: ['yes']}!r} leaves {'it' if is_hidden.sum() == 1 else 'them'} out"
        hidden = frozenset(grid.rows[is_hidden].tolist())
        return replace(grid, notes=(*grid.notes, note), hidden=hidden) if is_hidden.any() else grid
    frame = f"pd.read_{name[1:]}" if (name := path.suffix.lower()) in _OF_PANDAS else "pandas or polars"
    raise BadQuery(
        "other", path.name, f"is not a file that can be read: pass a frame that {frame} makes of it", _SUFFIXES
    )


def _with_merged_cells(
    rows: list[tuple[Any, ...]], merged: Iterable[tuple[int, int, int]], header: Sequence[str], first_row: int
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Return *rows* with the text or day of a cell that is merged over several of them in each, and notes.

    A number of several rows together counts once, in the first of them.
    """
    filled: dict[int, dict[int, Any]] = {}
    spans: dict[bool, dict[str, list[str]]] = {True: {}, False: {}}
    for begins, ends, place in sorted(merged, key=lambda cell: (cell[2], cell[0])):
        above, below = begins - first_row, min(ends - first_row, len(rows) - 1)
        value = rows[above][place] if 0 <= above < len(rows) and place < len(header) else None
        if value is None:
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        spans[is_number].setdefault(header[place] or f"column_{place + 1}", []).append(f"{begins} to {ends}")
        if is_number:
            continue
        for at in range(above + 1, below + 1):
            if any(cell is not None for cell in rows[at]):
                filled.setdefault(at, {})[place] = value
    notes = []
    for is_number, says in (
        (False, "are merged and have one value in each row"),
        (True, "are merged and have one number, which counts in the first row alone"),
    ):
        for name, listed in spans[is_number].items():
            shown = ", ".join(listed[:_MOST_MERGED]) + (", ..." if len(listed) > _MOST_MERGED else "")
            notes.append(f"cells of {name} in rows {shown} {says}")
    if not filled:
        return rows, notes
    found = [*rows]
    for at, values in filled.items():
        found[at] = tuple(values.get(place, cell) for place, cell in enumerate(rows[at]))
    return found, notes


def _grid(
    source: str,
    cells: pa.Table,
    numbers: NDArray[np.int64] | None = None,
    above: Sequence[Sequence[Any]] = (),
    below: Sequence[str] = (),
    *,
    separator: str | None = None,
    formats: Mapping[str, Sequence[str | None]] | None = None,
) -> Grid:
    """Return *cells* with their row numbers, and the receipt that their schema stores.

    With *numbers*, the rows of a file: without blank rows, and with notes about the lines above and below. In a table
    of one column, blank rows are nulls.
    """
    if numbers is None:
        return Grid(source, cells, np.arange(cells.num_rows), receipt=_stored_receipt(cells.schema))
    around = [" ".join(str(cell) for cell in row if cell not in (None, "")) for row in above]
    notes = []
    if words := next((str(cell) for row in above for cell in row if cell not in (None, "")), None):
        rows = "row 1" if len(above) == 1 else f"rows 1 to {len(above)}"
        notes.append(f"{rows} of {source} ({words!r}, ...) are above the header and are left out")
    if below:
        lines = "line" if len(below) == 1 else "lines"
        notes.append(f"{len(below)} {lines} of {source} below the table ({below[0].strip()!r}) are left out")
    if count := _notes_below(cells):
        around += [str(cells.column(0)[row]) for row in range(len(numbers) - count, len(numbers))]
        lines = f"row {numbers[-1]}" if count == 1 else f"rows {numbers[-count]} to {numbers[-1]}"
        notes.append(
            f"{lines} of {source} ({around[-count]!r}) below a blank row {'is' if count == 1 else 'are'} left out"
        )
        cells, numbers = cells.slice(0, len(numbers) - count), numbers[:-count]
    while numbers.size > 1 and (words := _only_words(cells, len(numbers) - 1)):  # such as "All amounts in EUR"
        notes.append(f"row {numbers[-1]} of {source} ({words!r}) is below the table and is left out")
        around.append(words)
        cells, numbers = cells.slice(0, len(numbers) - 1), numbers[:-1]
    lines_around = tuple(line for line in (*around, *below) if line)
    of_rows = {name: written[: len(numbers)] for name, written in (formats or {}).items()}  # not of the lines below
    grid = Grid(source, cells, numbers, separator, above=lines_around, formats=of_rows, notes=tuple(notes))
    grid = replace(grid, cells_above=tuple(above))
    grid = replace(grid, header_row=int(numbers[0]) - 1) if len(numbers) else grid
    if cells.num_columns > 1 and all(column.null_count for column in cells.columns):
        return grid.filtered(reduce(pc.or_, [column.is_valid() for column in cells.columns]).to_numpy())
    return grid


def _notes_below(cells: pa.Table) -> int:
    """Return the number of rows at the end that have only their first cell, where a blank row stands above them."""
    filled = [column.is_valid().to_numpy() for column in cells.slice(max(cells.num_rows - _MOST_BELOW, 0)).columns]
    if len(filled) <= 2 or not len(filled[0]):
        return 0
    is_blank = ~np.any(filled, axis=0)
    count = int(is_blank[::-1].argmax())
    is_note = filled[0] & ~np.any(filled[1:], axis=0)
    return count if is_blank.any() and count and is_note[len(is_note) - count :].all() else 0


def _only_words(cells: pa.Table, row: int) -> str:
    """Return the text of a row that has a sentence in its first cell and nothing else, "" for any other."""
    first, *others = (column[row].as_py() for column in cells.columns)
    is_alone = len(others) > 1 and all(cell is None for cell in others) and isinstance(first, str)
    return first if is_alone and len(first.split()) >= _FEWEST_WORDS and not _DIGITS.search(first) else ""


def _stored_receipt(schema: pa.Schema) -> Receipt:
    """Return the receipt in the metadata of an Arrow schema.

    It is under our own key or among the `attrs` that pandas stores.
    """
    metadata = schema.metadata or {}
    try:
        if stored := metadata.get(RECEIPT.encode()):
            return Receipt.of({RECEIPT: json.loads(stored)})
        about_frame = json.loads(metadata.get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return _NO_RECEIPT
    return Receipt.of(about_frame.get("attributes") if isinstance(about_frame, dict) else None)


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    """Return a pandas frame as an Arrow table, a named index as its first columns."""
    frame = with_index(frame)
    columns = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        try:
            columns.append(pa.chunked_array([pa.Array.from_pandas(column)]))
        except (pa.ArrowException, TypeError):
            columns.append(_to_array(column))
    return pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns])


def _to_array(values: Iterable[Any]) -> Any:
    plain = [None if _is_null(value) else value for value in values]
    try:
        return pa.array(plain)
    except (pa.ArrowException, OverflowError, TypeError):  # a column that mixes numbers and texts is text
        texts = [value for value in plain if isinstance(value, str)]
        has_comma = any(map(_COMMA.search, texts)) and not any(map(_POINT.search, texts))
        return pa.array((_as_text(value, mark="," if has_comma else ".") for value in plain), pa.string())


def _is_null(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def _as_text(value: Any, *, mark: str = ".") -> str | None:
    """Return a value of a column of text. A number has the decimal *mark* of the texts beside it."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value).replace(".", mark)
    return value if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


def _to_plain_type(column: Any, missing: Sequence[str] = ()) -> Any:
    """Return *column* in one of the five types of a `Grid`; texts in *missing* become nulls."""
    kind = column.type
    if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
        if missing:
            return _to_plain_type(column.cast(pa.string()), missing)
        parts = [
            pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary) for chunk in column.chunks
        ]
        return pa.chunked_array(parts, pa.dictionary(pa.int32(), pa.string()))
    if pa.types.is_dictionary(kind):
        chunks = column.unify_dictionaries().chunks
        values = _to_plain_type(pa.chunked_array([chunks[0].dictionary])) if chunks else pa.array([], pa.string())
        values = values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values
        taken = [values.take(chunk.indices) for chunk in chunks]
        parts = [part for array in taken for part in (array.chunks if isinstance(array, pa.ChunkedArray) else [array])]
        return _to_plain_type(pa.chunked_array(parts, values.type), missing)
    if isinstance(kind, pa.BaseExtensionType):  # the storage type of the period 2026-11 is a number of months
        return _to_plain_type(pa.chunked_array([_to_array(column.to_pandas())]), missing)
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and not pa.types.is_nested(kind.value_type):
        return _to_plain_type(pa.chunked_array([_to_array(map(cell_of, column.to_pylist()))]), missing)
    wanted = next((wanted for is_kind, wanted in _TYPES if is_kind(kind)), None)
    try:
        if wanted not in (None, pa.string()):
            plain = column.cast(wanted, safe=wanted == pa.int64())
            return pc.if_else(pc.is_nan(plain), None, plain) if wanted == pa.float64() else plain
    except pa.ArrowInvalid:  # whole numbers beyond 2**63
        wanted = None
    texts = column.cast(pa.string()) if wanted else pa.array(map(_as_text, column.to_pylist()), pa.string())
    if missing:
        texts = pc.if_else(pc.is_in(texts, value_set=pa.array([*missing], pa.string())), None, texts)
    return texts.dictionary_encode()


def _without_unseen_marks(column: Any) -> Any:
    """Return a column of text without the marks of direction that spreadsheets in Hebrew and Arabic write."""
    if not pa.types.is_dictionary(column.type):
        return column
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    texts = whole.dictionary
    if not pc.any(pc.match_substring_regex(texts, _UNSEEN)).as_py():
        return column
    plain = pc.replace_substring_regex(texts, pattern=_UNSEEN, replacement="")
    plain = pc.if_else(pc.equal(plain, ""), None, plain)
    return plain.take(whole.indices).dictionary_encode()


def _written(column: Any) -> Any:
    """Return a column that is not text as text."""
    if pa.types.is_floating(column.type):
        return pa.array([None if value is None else _as_text(value) for value in column.to_pylist()], pa.string())
    if pa.types.is_timestamp(column.type):
        days = pc.equal(pc.floor_temporal(column, unit="day"), column)
        form = "%Y-%m-%d" if pc.all(days, min_count=0).as_py() else "%Y-%m-%dT%H:%M:%SZ"
        return pc.strftime(pc.cast(column, pa.timestamp("s", "UTC"), safe=False), format=form)
    return column.cast(pa.string())


_TYPES: Final[tuple[tuple[Callable[[Any], bool], pa.DataType], ...]] = (
    (pa.types.is_string, pa.string()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_null, pa.string()),
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_decimal, pa.float64()),
    (pa.types.is_boolean, pa.bool_()),
    (pa.types.is_date, _UTC_MOMENT),
    (pa.types.is_timestamp, _UTC_MOMENT),
)
