"""External tables as they are: typed or text cells, without any guess about text.

A text file gives text, and only an empty cell is missing; typed sources keep their types. `date_parsing` and
`number_parsing` read the text later.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
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
from gamelens.analysis.files.export_target import with_index
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
        table = replace(_table("other", _from_pandas(other)), receipt=Receipt.of(other.attrs))
    elif hasattr(other, "__arrow_c_stream__") and hasattr(other, "columns"):  # pyarrow, polars
        table = _table("other", pa.table(other))
    else:
        kind = f"a {type(other).__name__}"
        raise BadQuery(
            "other", kind, "is not a path, a pandas or polars frame or an Arrow table; collect() a lazy frame"
        )
    names = {
        place: name or f"column_{place + 1}"
        for place, name in enumerate(table.columns)
        if name or table.cells.column(place).null_count < len(table.rows)
    }
    if twice := [name for name, count in Counter(names.values()).items() if count > 1]:
        raise BadQuery("other", table.source, f"has two columns that are called {min(twice)}")
    columns = [_to_plain_type(table.cells.column(place)) for place in names]
    if missing:
        texts = pa.array(list(missing), pa.string())
        columns = [
            pc.if_else(pc.is_in(column, value_set=texts), None, column) if pa.types.is_string(column.type) else column
            for column in columns
        ]
    return replace(table, cells=pa.Table.from_arrays(columns, names=[*names.values()]))


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
        return _table(path.name, cells, above=above, separator=separator)
    if name.endswith(".parquet"):
        try:
            return _table(path.name, pq.ParquetFile(path).read())
        except (pa.ArrowException, OSError) as error:
            raise BadQuery("other", path.name, f"cannot be read as Parquet: {error}") from None
    if name.endswith((".xlsx", ".xlsm")):
        every_row = read_sheet(path, sheet) or [()]
        place = header_place(every_row) if header_row is None else min(header_row, len(every_row)) - 1
        header, *rows = every_row[place:]
        columns = [_to_array([row[place] for row in rows]) for place in range(len(header))]
        names = ["" if cell is None else str(cell) for cell in header]
        return _table(path.name, pa.Table.from_arrays(columns, names=names), above=every_row[:place])
    raise BadQuery("other", path.name, "is not a file that can be read", _SUFFIXES)


def _table(
    source: str, cells: pa.Table, *, above: Sequence[Sequence[Any]] | None = None, separator: str | None = None
) -> ExternalTable:
    """Return *cells* with their row numbers, and the receipt that their schema stores.

    With *above*, the rows above the header of a file: without blank rows, and with a note about those above. In a table
    of one column, blank rows are nulls.
    """
    if above is None:
        return ExternalTable(source, cells, np.arange(cells.num_rows), receipt=_stored_receipt(cells.schema))
    numbers = np.arange(cells.num_rows) + len(above) + 2
    if cells.num_columns > 1:
        is_filled = reduce(pc.or_, [column.is_valid() for column in cells.columns])
        cells, numbers = cells.filter(is_filled), numbers[is_filled.to_numpy()]
    notes = []
    if words := next((str(cell) for row in above for cell in row if cell not in (None, "")), None):
        rows = "row 1" if len(above) == 1 else f"rows 1 to {len(above)}"
        notes.append(f"{rows} of {source} ({words!r}, ...) are above the header and are left out")
    return ExternalTable(source, cells, numbers, separator, notes=tuple(notes))


def _stored_receipt(schema: pa.Schema) -> Receipt:
    """Return the receipt in the metadata of an Arrow schema.

    It is under our own key or among the `attrs` that pandas stores.
    """
    metadata = schema.metadata or {}
    try:
        if own := metadata.get(RECEIPT.encode()):
            return Receipt.of({RECEIPT: json.loads(own)})
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
        return pa.array(map(_as_text, plain), pa.string())


def _is_null(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def _as_text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


def _to_plain_type(column: Any) -> Any:
    """Return *column* in one of the five types of an `ExternalTable`."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):  # the storage type of the period 2026-11 is a number of months
        return pa.chunked_array([_to_array(column.to_pandas())])
    if pa.types.is_dictionary(kind):
        parts = column.unify_dictionaries().chunks
        values = _to_plain_type(pa.chunked_array([parts[0].dictionary])) if parts else pa.chunked_array([], pa.string())
        return pa.chunked_array([values.take(part.indices).combine_chunks() for part in parts], values.type)
    wanted = next((wanted for is_kind, wanted in _TYPES if is_kind(kind)), None)
    try:
        if wanted is not None:
            plain = column.cast(wanted, safe=wanted == pa.int64())
            return pc.if_else(pc.is_nan(plain), None, plain) if wanted == pa.float64() else plain
    except pa.ArrowInvalid:  # whole numbers beyond 2**63
        pass
    return pa.chunked_array([pa.array(map(_as_text, column.to_pylist()), pa.string())])


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
