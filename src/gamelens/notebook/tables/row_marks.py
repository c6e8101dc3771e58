"""Notes on the rows of a table whose numbers are not final."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import pandas as pd
from pandas import DataFrame

from gamelens.notebook.receipt_text import unfinished
from gamelens.wire.intervals import SETTLE_DAYS, Granularity, Interval
from gamelens.wire.receipts import Receipt

PARTLY_COUNTED: Final = "Counted only in part: the period begins or ends within it."
MAY_CHANGE: Final = f"May still change: it ended less than {SETTLE_DAYS} days before the date of the data."
_SOON: Final = timedelta(microseconds=1)


def row_marks(frame: DataFrame) -> dict[int, str]:
    """Return the note of each row that has one, by its place.

    A row of a retention frame is counted on the day that its age falls on. A frame without times, or without a receipt,
    has no notes.
    """
    receipt = Receipt.of(frame.attrs)
    if "timestamp" not in frame or not receipt.as_of:
        return {}
    settled_until = pd.Timestamp(receipt.as_of) - timedelta(days=SETTLE_DAYS)
    partial, every = unfinished(frame), receipt.asked.every
    ages = frame["age"] if "age" in frame else [0] * len(frame)
    marks = {}
    for row, (start, age) in enumerate(zip(frame["timestamp"], ages, strict=True)):
        if start in partial:
            marks[row] = PARTLY_COUNTED
        elif not pd.isna(start) and _end(start.to_pydatetime() + timedelta(days=int(age)), every) > settled_until:
            marks[row] = MAY_CHANGE
    return marks


def _end(start: datetime, every: Granularity | None) -> datetime:
    """Return the end of the bucket that begins at *start*.

    It is a day where the size is unknown, or all of the period.
    """
    if every is None or every == "all":
        return start + timedelta(days=1)
    *_, bucket = Interval(start, start + _SOON).buckets(every)
    return bucket.end
