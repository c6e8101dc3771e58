"""Time buckets of a frame, and the bucket that an external time belongs to."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.files.date_parsing import ParsedTimes
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Granularity

_RANKS: Final[dict[str, int]] = {"time": 0, "day": 1, "week": 2, "month": 3}


def align_to_buckets(moments: ParsedTimes, every: Granularity | None, *, is_summed: bool, field: str) -> Series[Any]:
    """Return the bucket of each external time.

    A time must be the start of a bucket unless values are summed into it (*is_summed*).

    Raises:
        BadQuery: the external buckets are larger than the frame's, or smaller and not summed.
    """
    if every is None:
        return moments.at
    if every == "all":
        raise BadQuery(
            "on", field, 'cannot be joined: the frame has one bucket for the whole time; query it with every="day"'
        )
    if moments.precision == "week" != every or _RANKS[moments.precision] > _RANKS[every]:
        rule = f'has one value a {moments.precision}, the frame one a {every}: query with every="{moments.precision}"'
        raise BadQuery("on", field, rule)
    starts: Series[Any] = moments.at.dt.floor("D")  # of the UTC day, ISO week or month
    if every == "week":
        starts = starts - pd.to_timedelta(starts.dt.day_of_week, unit="D")
    elif every == "month":
        starts = starts - pd.to_timedelta(starts.dt.day - 1, unit="D")
    starts = starts.astype(moments.at.dtype)
    inside = moments.at[moments.at.notna() & (starts != moments.at)]
    if len(inside) and not is_summed:
        example = f"{inside.iloc[0]:%a %Y-%m-%d %H:%M} lies inside the {every} of {starts[inside.index[0]]:%a %Y-%m-%d}"
        rule = f'has values inside the buckets of the frame: {example}. aggregate="sum" adds them up by {every}'
        raise BadQuery("on", field, rule)
    return starts


def cut_buckets(frame: DataFrame, timestamps: Series[Any]) -> list[pd.Timestamp]:
    """Return the starts among *timestamps* whose buckets the frame covers only in part."""
    receipt = Receipt.of(frame.attrs)
    every, interval = receipt.asked.every, receipt.interval
    if every is None or every == "all" or interval is None:
        return []
    cut = [pd.Timestamp(bucket.start) for bucket in interval.buckets(every) if bucket not in interval]
    return [start for start in cut if (timestamps == start).any()]


def is_uncounted(frame: DataFrame, moments: Series[Any], starts: Series[Any]) -> Series[Any]:
    """Return a mask of times outside the frame's interval but in a partly covered bucket.

    The frame counts nothing at these times, so their values must not be added to the bucket.
    """
    interval = Receipt.of(frame.attrs).interval
    if interval is None:
        return Series(False, index=moments.index)
    is_outside = (moments < pd.Timestamp(interval.start)) | (moments >= pd.Timestamp(interval.end))
    return is_outside & starts.isin(cut_buckets(frame, starts))


def suspicious_starts(moments: ParsedTimes, every: Granularity | None) -> str | None:
    """Return "a Monday" or "the first of a month" if all dates share it.

    That is a sign of coarser data. None if they do not share it, or if the frame is not by day.
    """
    days = pd.Series(moments.at.dropna().unique())
    if every != "day" or len(days) < 3:
        return None
    if (days.dt.day == 1).all():
        return "the first of a month"
    return f"a {days.dt.day_name().iloc[0]}" if days.dt.day_of_week.nunique() == 1 else None
