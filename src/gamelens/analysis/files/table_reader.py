"""External tables as they are: typed or text cells, without any guess about text.

A text file gives text, and only an empty cell is missing; typed sources keep their types. `date_parsing` and
`number_parsing` read the text later.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gamelens.analysis.files.csv_reader import read_delimited
from gamelens.analysis.files.excel_reader import read_sheet
from gamelens.analysis.files.table_layout import header_place, total_rows
from gamelens.errors import BadQuery
from gamelens.receipts import RECEIPT, Receipt

_SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".xlsx", ".xlsm")
_NO_RECEIPT: Final = Receipt()
_UTC_MOMENT: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, eq=False)
class ExternalTable:
    """A table from outside gamelens.

    Attributes:
        source: name of its file, or "other".
        cells: columns of string, int64, double, bool or timestamp[us, UTC].
        rows: row numbers: in a file the header is row 1, rows of a frame count from 0.
        separator: separator of a CSV file.
        receipt: the receipt of a frame that a client returned, also one stored as Parquet; an empty one for others.
        notes: what was left out or assumed.
    """

    source: str
    cells: pa.Table
    rows: NDArray[np.int64]
    separator: str | None = None
    receipt: Receipt = _NO_RECEIPT
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.cells.column_names)

    @property
    def suffix(self) -> str:
        """Suffix for columns whose name the frame has too: `_spend` for spend.csv, else `_other`."""
        return "_" + (re.sub(r"\W+", "_", self.source.partition(".")[0]).strip("_") or "other")

    def column(self, name: str) -> Any:
        """Return one column, an Arrow array."""
        return self.cells.column(name)


def read_table(
    other: Any,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    header_row: int | None = None,
) -> ExternalTable:
    """Return the table in *other*: a path, a pandas or polars frame, an Arrow table.

    Args:
        other: the table.
        sheet: the sheet of an Excel file.
        encoding: the encoding of a text file.
        missing: texts that mean an empty cell.
        header_row: the row of a text or Excel file that names the columns; 1 is the first, None to recognise it.

    Raises:
        BadQuery: there is no such file or sheet, or it cannot be read without guessing.
    """
    if isinstance(other, (str, os.PathLike)):
        path = Path(other).expanduser()
        if not path.is_file():
            raise BadQuery("other", str(other), "is not a file")
        table = _read_file(path, sheet, encoding, header_row)
    elif isinstance(other, pd.DataFrame):
        table = replace(_numbered_table("other", _from_pandas(other), first=0), receipt=Receipt.of(other.attrs))
    elif hasattr(other, "__arrow_c_stream__") and hasattr(other, "columns"):  # pyarrow, polars
        table = _numbered_table("other", pa.table(other), first=0)
    else:
        kind = f"a {type(other).__name__}"
        raise BadQuery(
            "other", kind, "is not a path, a pandas or polars frame or an Arrow table; collect() what is lazy"
        )
    named = _with_column_names(table)
    columns = [_blank_out(_to_plain_type(column), missing) for column in named.cells.columns]
    cells = pa.Table.from_arrays(columns, names=named.columns)
    return replace(named, cells=cells)


def without_totals(table: ExternalTable, keys: Sequence[str]) -> ExternalTable:
    """Return *table* without the rows that add up others, with a note about them.

    *keys* name its keys.
    """
    is_total = total_rows(table.cells, keys)
    if not is_total.any():
        return table
    rows = ", ".join(map(str, table.rows[is_total][:5]))
    words = "row" if is_total.sum() == 1 else "rows"
    note = f'{words} {rows} of {table.source} add up the others and are left out; totals="keep" keeps them'
    kept = pa.array(~is_total)
    return replace(table, cells=table.cells.filter(kept), rows=table.rows[~is_total], notes=(*table.notes, note))


def _read_file(path: Path, sheet: str | None, encoding: str | None, header_row: int | None) -> ExternalTable:
    """Read a file by its suffix.

    Raises:
        BadQuery: the suffix is unknown, or the file cannot be read.
    """
    name = path.name.lower()
    if name.removesuffix(".gz").endswith((".csv", ".tsv")):
        cells, separator, above = read_delimited(path, encoding, header_row)
        return _below_header(_numbered_table(path.name, cells, first=2 + len(above), separator=separator), above)
    if name.endswith(".parquet"):
        try:
            return _numbered_table(path.name, pq.ParquetFile(path).read(), first=0)
        except (pa.ArrowException, OSError) as error:
            raise BadQuery("other", path.name, f"cannot be read as Parquet: {error}") from None
    if name.endswith((".xlsx", ".xlsm")):
        every_row = read_sheet(path, sheet) or [()]
        place = header_place(every_row) if header_row is None else min(header_row, len(every_row)) - 1
        header, *rows = every_row[place:]
        columns = [_to_array([row[place] for row in rows]) for place in range(len(header))]
        names = ["" if cell is None else str(cell) for cell in header]
        table = _numbered_table(path.name, pa.Table.from_arrays(columns, names=names), first=2 + place)
        return _below_header(table, every_row[:place])
    raise BadQuery("other", path.name, "is none of the files that can be read", _SUFFIXES)


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    """Return a pandas frame as an Arrow table, a named index as its first columns."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    columns = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        try:
            columns.append(pa.chunked_array([pa.Array.from_pandas(column)]))
        except (pa.ArrowException, TypeError):
            columns.append(_to_array([None if _is_null(value) else value for value in column]))
    return pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns])


def _to_array(values: Sequence[Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError):  # a column that mixes numbers and texts is text
        return pa.array([None if value is None else _as_text(value) for value in values], pa.string())


def _to_plain_type(column: Any) -> Any:
    """Return *column* in one of the five types of an `ExternalTable`."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):  # the storage type of the period 2026-11 is a number of months
        return pa.chunked_array([_to_array([None if _is_null(value) else value for value in column.to_pandas()])])
    if pa.types.is_dictionary(kind):
        parts = column.unify_dictionaries().chunks
        values = _to_plain_type(pa.chunked_array([parts[0].dictionary])) if parts else pa.chunked_array([], pa.string())
        return pa.chunked_array([values.take(part.indices).combine_chunks() for part in parts], values.type)
    for is_kind, wanted in _TYPES:
        if is_kind(kind):
            try:
                plain = column.cast(wanted, safe=wanted == pa.int64())
            except pa.ArrowInvalid:
                break
            return pc.if_else(pc.is_nan(plain), None, plain) if wanted == pa.float64() else plain
    return pa.chunked_array([[None if value is None else _as_text(value) for value in column.to_pylist()]], pa.string())


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


_TYPES: Final[tuple[tuple[Callable[[Any], bool], Any], ...]] = (
    (_is_text, pa.string()),
    (pa.types.is_null, pa.string()),
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_decimal, pa.float64()),
    (pa.types.is_boolean, pa.bool_()),
    (pa.types.is_date, _UTC_MOMENT),
    (pa.types.is_timestamp, _UTC_MOMENT),
)


def _as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _is_null(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


def _blank_out(column: Any, missing: Sequence[str]) -> Any:
    """Return *column* with the texts of *missing* as null."""
    if not missing or not _is_text(column.type):
        return column
    return pc.if_else(pc.is_in(column, value_set=pa.array(list(missing), pa.string())), None, column)


def _numbered_table(source: str, cells: pa.Table, *, first: int, separator: str | None = None) -> ExternalTable:
    rows = np.arange(first, first + cells.num_rows, dtype=np.int64)
    return ExternalTable(source, cells, rows, separator, _stored_receipt(cells.schema.metadata or {}))


def _stored_receipt(metadata: Mapping[bytes, bytes]) -> Receipt:
    """Return the receipt in the metadata of an Arrow schema.

    It is under our own key or among the `attrs` that pandas stores.
    """
    if RECEIPT.encode() in metadata:
        return Receipt.of({RECEIPT: _json(metadata[RECEIPT.encode()])})
    about_frame = _json(metadata.get(b"pandas", b"{}"))
    return Receipt.of(about_frame.get("attributes") if isinstance(about_frame, dict) else None)


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _below_header(table: ExternalTable, above: Sequence[Sequence[Any]]) -> ExternalTable:
    """Return *table* without blank rows, with a note about the rows *above* its header."""
    words = next((str(cell) for row in above for cell in row if cell not in (None, "")), None)
    rows = "row 1" if len(above) == 1 else f"rows 1 to {len(above)}"
    note = f"{rows} of {table.source} ({words!r}, ...) stand above the header and are left out"
    return replace(_without_blank_rows(table), notes=() if words is None else (note,))


def _without_blank_rows(table: ExternalTable) -> ExternalTable:
    """Return *table* without rows that have no cell. In a table of one column they are nulls."""
    if len(table.columns) < 2:
        return table
    is_filled = np.zeros(table.cells.num_rows, dtype=bool)
    for column in table.cells.columns:
        is_filled |= column.is_valid().to_numpy()
    return replace(table, cells=table.cells.filter(pa.array(is_filled)), rows=table.rows[is_filled])


def _with_column_names(table: ExternalTable) -> ExternalTable:
    """Return *table* with a name for every column, without empty columns that have none.

    Raises:
        BadQuery: two columns have the same name.
    """
    places = [
        place
        for place, name in enumerate(table.columns)
        if name or table.cells.column(place).null_count < len(table.rows)
    ]
    names = list(_column_names(table.columns, places))
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadQuery("other", table.source, f"has two columns that are called {min(twice)}")
    return replace(table, cells=table.cells.select(places).rename_columns(names))


def _column_names(columns: Sequence[str], places: Sequence[int]) -> Iterator[str]:
    for place in places:
        yield columns[place] or f"column_{place + 1}"
