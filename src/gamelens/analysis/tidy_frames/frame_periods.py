"""Periods of frames without a receipt: bucket size and interval, as the rows show them."""

from __future__ import annotations

from typing import Final

import pandas as pd
from pandas import DataFrame
from pandas.api.types import is_datetime64_any_dtype

from gamelens._text import counted
from gamelens.analysis.tidy_frames.query_text import interval_text
from gamelens.wire.intervals import Granularity, Interval

DAY: Final = pd.Timedelta(days=1)


def visible_every(frame: DataFrame) -> str | None:
    """Return the bucket size by the spacing of timestamps, None with fewer than two."""
    if "timestamp" not in frame or not is_datetime64_any_dtype(frame["timestamp"]):
        return None
    starts = pd.DatetimeIndex(frame["timestamp"].dropna().unique()).sort_values()
    steps = starts[1:] - starts[:-1]
    if not len(steps):
        return None
    if steps.min() < DAY:
        return "hour"
    if (starts.day == 1).all():
        return "month"
    return "day" if (steps % (7 * DAY)).any() else "week"


def visible_period(frame: DataFrame, every: str | None) -> Interval | None:
    """Return the interval from the first to the last bucket with rows.

    None if the size of buckets is unknown.
    """
    if every in (None, "all", "hour") or "timestamp" not in frame or not len(frame):
        return None
    first, last = (
        pd.Timestamp(moment).to_pydatetime() for moment in (frame["timestamp"].min(), frame["timestamp"].max())
    )
    granularity: Granularity = "week" if every == "week" else "month" if every == "month" else "day"
    *_, bucket = Interval(last, last + DAY).buckets(granularity)
    return Interval(first, bucket.end)


def part_of_length(long: Interval, short: Interval) -> Interval:
    """Return the part of *long* nearest to *short* and as long.

    If they overlap, it is the period before *short*.
    """
    if long & short:
        return Interval(short.start - short.length, short.start)
    if long.start < short.start:
        return Interval(long.end - short.length, long.end)
    return Interval(long.start, long.start + short.length)


def days_text(period: Interval) -> str:
    """Return the length of *period* in days, and the period itself."""
    days = period.length / DAY
    return (
        f"{counted(int(days), 'day')} ({interval_text(period)})" if days == int(days) else f"{days:.2f} days ({period})"
    )
