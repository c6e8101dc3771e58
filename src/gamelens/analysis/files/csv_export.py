"""Export of a frame as a CSV file that is safe to open in a spreadsheet."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from pyarrow import csv

from gamelens._files import replace_file
from gamelens.analysis.files.csv_safety import guarded
from gamelens.errors import BadQuery


def export_csv(df: DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write *df* as CSV and return the path. A name that ends in .gz is compressed.

    UTF-8, commas, lines that end in LF, quotes as in RFC 4180. Every text is quoted and a null is an empty cell, so the
    country "NA" and no country differ. Timestamps are ISO 8601 in UTC. A text, or a column's name, that a spreadsheet
    would run as a formula gets an apostrophe in front, which `gl.join` removes; numbers stay numbers. An index with a
    name is written as the first columns; the receipt is not written. The file is replaced atomically.

    Raises:
        BadQuery: the folder is missing, or a column holds text that UTF-8 cannot encode.
    """
    if not isinstance(df, DataFrame):
        raise BadQuery("df", f"a {type(df).__name__}", "is not a pandas frame")
    if not isinstance(path, str | os.PathLike):
        raise BadQuery("path", path, "is not a file name")
    target = Path(path).expanduser()
    if not target.parent.is_dir():
        raise BadQuery("path", str(path), f"lies in no folder: make {target.parent} first")
    if target.is_dir():
        raise BadQuery("path", str(path), "is a folder: name a file in it")
    if any(name is not None for name in df.index.names):
        df = df.reset_index()
    names = guarded(pa.array([_column_name(column) for column in df.columns], pa.string())).to_pylist()
    table = pa.Table.from_arrays(
        [_cells(name, df.iloc[:, position]) for position, name in enumerate(names)], names=names
    )
    with replace_file(target) as draft, pa.output_stream(str(draft), compression=_compression(target)) as stream:
        csv.write_csv(table, stream, csv.WriteOptions(eol="\n", quoting_style="needed"))
    return target


def _column_name(column: Hashable) -> str:
    return column.isoformat() if isinstance(column, pd.Timestamp) else str(column)


def _cells(name: str, column: Series[Any]) -> Any:
    """Return a column as an Arrow array of numbers, flags or texts.

    Raises:
        BadQuery: a text cannot be encoded as UTF-8.
    """
    if isinstance(column.dtype, pd.DatetimeTZDtype) or pd.api.types.is_datetime64_dtype(column):
        moments = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy().astype("datetime64[us]")
        is_whole = bool((moments[~np.isnat(moments)].astype("int64") % 1_000_000 == 0).all())
        texts = np.datetime_as_string(moments, unit="s" if is_whole else "us")
        return pa.array([None if text == "NaT" else f"{text}Z" for text in texts], pa.string())
    if column.dtype == "object" and pd.api.types.infer_dtype(column) in ("integer", "floating", "boolean"):
        column = column.infer_objects()
    if is_bool_dtype(column) or is_numeric_dtype(column):
        return pa.array(column, from_pandas=True)
    values = [None if value is None or value is pd.NA or value != value else value for value in column]
    try:
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return pc.if_else(pa.array([isinstance(value, str) for value in values]), guarded(texts), texts)
    except UnicodeEncodeError as error:
        raise BadQuery(name, error.object[:40], "holds half a character, which UTF-8 cannot say") from None


def _compression(target: Path) -> str | None:
    return "gzip" if target.suffix.lower() == ".gz" else None
