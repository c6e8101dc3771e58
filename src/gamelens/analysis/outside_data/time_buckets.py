"""The buckets of a frame's `timestamp`, and which of them an outside moment belongs to."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.files.date_parsing import ParsedTimes
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Granularity
from gamelens.wire.receipts import Receipt

_RANKS: Final[dict[str, int]] = {"time": 0, "day": 1, "week": 2, "month": 3}


def starts_of(moments: Series[Any], every: str) -> Series[Any]:
    """Start of the UTC day, ISO week or month that holds each moment."""
    starts: Series[Any] = moments.dt.floor("D")
    if every == "week":
        starts = starts - pd.to_timedelta(starts.dt.day_of_week, unit="D")
    elif every == "month":
        starts = starts - pd.to_timedelta(starts.dt.day - 1, unit="D")
    return starts


def placed(moments: ParsedTimes, every: Granularity | None, *, is_summed: bool, field: str) -> Series[Any]:
    """The bucket of each outside moment, which must be where a bucket starts unless values *is_summed* into it.

    Raises:
        BadQuery: the outside has larger buckets than the frame, or smaller ones that nobody asked to add up.
    """
    if every is None:
        return moments.at
    if every == "all":
        raise BadQuery("on", field, 'cannot be joined: the frame has one bucket over all; ask it with every="day"')
    if moments.precision == "week" != every or _RANKS[moments.precision] > _RANKS[every]:
        rule = f'has one value a {moments.precision}, the frame one a {every}: query with every="{moments.precision}"'
        raise BadQuery("on", field, rule)
    starts = starts_of(moments.at, every).astype(moments.at.dtype)
    inside = moments.at[moments.at.notna() & (starts != moments.at)]
    if len(inside) and not is_summed:
        example = f"{inside.iloc[0]:%a %Y-%m-%d %H:%M} lies inside the {every} of {starts[inside.index[0]]:%a %Y-%m-%d}"
        rule = f'has values inside the buckets of the frame: {example}. aggregate="sum" adds them up by {every}'
        raise BadQuery("on", field, rule)
    return starts


def cut_buckets(frame: DataFrame, timestamps: Series[Any]) -> list[pd.Timestamp]:
    """Those of *timestamps* whose buckets the frame's interval covers only in part."""
    receipt = Receipt.of(frame.attrs)
    every, span = receipt.asked.every, receipt.interval
    if every is None or every == "all" or span is None:
        return []
    present = set(timestamps.dropna())
    cut = [bucket.start for bucket in span.buckets(every) if bucket not in span]
    return [pd.Timestamp(start) for start in cut if pd.Timestamp(start) in present]


def outside_of(frame: DataFrame, moments: Series[Any], starts: Series[Any]) -> Series[Any]:
    """Whether each moment lies outside the interval of *frame* and yet in a bucket it cuts: not to be counted there."""
    span = Receipt.of(frame.attrs).interval
    if span is None:
        return Series(False, index=moments.index)
    is_outside = (moments < pd.Timestamp(span.start)) | (moments >= pd.Timestamp(span.end))
    return is_outside & starts.isin(cut_buckets(frame, starts))


def suspicious_starts(moments: ParsedTimes, every: Granularity | None) -> str | None:
    """What days are always of, when a table by week or month may stand beside a frame by day; None when nothing."""
    days = pd.Series(moments.at.dropna().unique())
    if every != "day" or len(days) < 3:
        return None
    if (days.dt.day == 1).all():
        return "the first of a month"
    return f"a {days.dt.day_name().iloc[0]}" if days.dt.day_of_week.nunique() == 1 else None
