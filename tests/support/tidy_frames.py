"""Tidy frames with the dtypes the client promises, written as columns in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from pandas import DataFrame


def tidy_frame(metric: str | list[str] | None = None, **columns: Sequence[Any]) -> DataFrame:
    """Return a tidy frame of *columns*: day strings become timestamps, texts categories, whole numbers Int64.

    With *metric* it has a receipt that names it.
    """
    frame = DataFrame(columns)
    for name, values in columns.items():
        present = [value for value in values if value is not None]
        if name == "timestamp":
            frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
        elif all(isinstance(value, str) for value in present):
            frame[name] = pd.Categorical(values)
        elif all(isinstance(value, int) for value in present):
            frame[name] = pd.array(values, dtype="Int64")
        else:
            frame[name] = frame[name].astype("float64")
    if metric is not None:
        frame.attrs["gamelens"] = {"asked": {"metric": metric}, "requests": 1}
    return frame
