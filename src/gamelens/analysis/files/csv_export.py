"""Export of a frame as a CSV file that is safe in a spreadsheet and in a terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from pyarrow import csv

from gamelens._files import replace_file
from gamelens.analysis.files.csv_safety import guarded
from gamelens.analysis.files.export_target import (
    column_title,
    moments_of,
    plain_values,
    target_of,
    with_index,
)
from gamelens.errors import BadQuery


def export_csv(df: DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write *df* as CSV and return the path. A name that ends in .gz is compressed.

    UTF-8, commas, lines that end in LF, quotes as in RFC 4180. Every text is quoted and a null is an empty cell, so the
    country "NA" and no country differ. A column of days is written as `2026-11-01`, one with other times as ISO 8601 in
    UTC. A text, or a column's name, that a spreadsheet would run as a formula gets an apostrophe in front, and a
    control character that a terminal would obey is written as its number, `\\u{1b}`; `gl.join` undoes both. Numbers
    stay numbers. An index with a name is written as the first columns; the receipt is not written. The file is replaced
    atomically.

    Raises:
        BadQuery: the folder is missing, the name belongs to a spreadsheet such as .xlsx (`gl.export_excel` writes it),
            or a column holds text that UTF-8 cannot encode.
    """
    target, df = target_of(path), with_index(df)
    names = guarded(pa.array([column_title(column) for column in df.columns], pa.string())).to_pylist()
    table = pa.Table.from_arrays(
        [_cells(name, df.iloc[:, position]) for position, name in enumerate(names)], names=names
    )
    compression = "gzip" if target.suffix.lower() == ".gz" else None
    with replace_file(target) as draft, pa.output_stream(str(draft), compression=compression) as stream:
        csv.write_csv(table, stream, csv.WriteOptions(eol="\n", quoting_style="needed"))
    return target


def _cells(name: str, column: Series[Any]) -> Any:
    """Return a column as an Arrow array of numbers, flags or texts.

    Raises:
        BadQuery: a text cannot be encoded as UTF-8.
    """
    if (times := moments_of(column)) is not None:
        moments, is_days = times
        is_whole = (moments[~np.isnat(moments)].astype("int64") % 1_000_000 == 0).all()
        written = np.datetime_as_string(moments, unit="D" if is_days else "s" if is_whole else "us")
        end = "" if is_days else "Z"
        return pa.array([None if text == "NaT" else f"{text}{end}" for text in written], pa.string())
    column, values = plain_values(column)
    if is_bool_dtype(column) or is_numeric_dtype(column):
        return pa.array(column, from_pandas=True)
    try:
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return pc.if_else(pa.array([isinstance(value, str) for value in values]), guarded(texts), texts)
    except UnicodeEncodeError as error:
        raise BadQuery(name, error.object[:40], "holds half of a surrogate pair, which UTF-8 cannot encode") from None
