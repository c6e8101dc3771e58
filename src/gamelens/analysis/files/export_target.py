"""The file that an export writes, and the columns that a frame shows in it."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.errors import BadQuery

_EXCEL: frozenset[str] = frozenset({".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"})


def target_of(path: object, *, is_excel: bool = False) -> Path:
    """Return *path* as a file that an export can write.

    Raises:
        BadQuery: it is not a file name, its folder is missing, or its ending belongs to another format.
    """
    if not isinstance(path, str | os.PathLike):
        raise BadQuery("path", f"a {type(path).__name__}", "is not a file name")
    target = Path(os.fspath(path)).expanduser()
    suffix = target.suffix.lower()
    if is_excel and suffix != ".xlsx":
        raise BadQuery("path", str(path), "must end in .xlsx: gl.export_csv(df, path) writes a text file")
    if not is_excel and suffix in _EXCEL:
        raise BadQuery("path", str(path), 'would be CSV in a spreadsheet: use gl.export_excel({"data": df}, path)')
    if not target.parent.is_dir():
        raise BadQuery("path", str(path), f"is in a folder that does not exist: create {target.parent} first")
    if target.is_dir():
        raise BadQuery("path", str(path), "is a folder: name a file in it")
    return target


def with_index(frame: object) -> DataFrame:
    """Return *frame* with an index that has a name as its first columns.

    Raises:
        BadQuery: it is not a pandas frame.
    """
    if not isinstance(frame, DataFrame):
        raise BadQuery("df", f"a {type(frame).__name__}", "is not a pandas frame")
    return frame.reset_index() if any(name is not None for name in frame.index.names) else frame


def column_title(column: Hashable) -> str:
    """Return the name of a column as text, a day as `2026-11-01`."""
    if isinstance(column, pd.Timestamp):
        return column.date().isoformat() if column == column.normalize() else column.isoformat()
    return str(column)


def plain_values(column: Series[Any]) -> tuple[Series[Any], list[Any]]:
    """Return *column* as numbers or flags if it holds these, and its values, None if missing."""
    if column.dtype == "object" and pd.api.types.infer_dtype(column) in ("integer", "floating", "boolean"):
        column = column.infer_objects()
    return column, [None if value is None or value is pd.NA or value != value else value for value in column]


def moments_of(column: Series[Any]) -> tuple[np.ndarray[Any, Any], bool] | None:
    """Return a column of times as datetime64[us] in UTC, and whether all are days.

    None for a column of anything else.
    """
    if not (isinstance(column.dtype, pd.DatetimeTZDtype) or pd.api.types.is_datetime64_dtype(column)):
        return None
    moments = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    known = moments[~np.isnat(moments)]
    return moments, bool((known == known.astype("datetime64[D]")).all())
