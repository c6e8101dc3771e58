"""Time buckets of a frame, and the bucket that the days of an external row belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
from msgspec import UNSET
from pandas import DataFrame, Series

from gamelens.analysis.outside_data.outside_table import OutsideTable
from gamelens.analysis.outside_data.row_periods import Periods
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Granularity, Interval

_DAY = pd.Timedelta(days=1)
_FEWEST_BUCKETS = 2


class Buckets(NamedTuple):
    """The bucket of each external row, the rows left out, whether rows are finer than buckets, and warnings."""

    starts: Series[Any]
    is_left_out: Series[Any]
    is_finer: bool
    notes: tuple[str, ...]


def buckets_of(frame: DataFrame, moments: Series[Any], table: OutsideTable, periods: Periods, field: str) -> Buckets:
    """Return the bucket of the frame that each row of *periods* lies in.

    Raises:
        BadQuery: a row stands for more days than a bucket, or lies in several.
    """
    receipt = Receipt.of(frame.attrs)
    every, interval = receipt.asked.every, receipt.interval
    starts, ends, notes = periods.starts, periods.ends, []
    if periods.problem is not None:
        raise periods.problem
    if every is None or receipt.periods:
        if not receipt.periods:
            unknown = "the frame has no receipt, so the length of its buckets is unknown"
            notes.append(f"{unknown}: {field or 'the day'} is compared exactly")
        is_known = bool(moments.dropna().isin(starts.dropna()).all()) or _are_buckets_of(moments, starts, ends)
        if periods.length not in ("time", "day") and not is_known:
            raise _too_long(table, periods, "day", field)
        return Buckets(starts, Series(False, index=starts.index), False, tuple(notes))
    if every == "all":
        return _in_one_bucket(moments, interval, table, periods, field)
    buckets = _bucket_starts(starts, every)
    is_long = ends > _bucket_ends(buckets, every)
    if is_long.any() or (every == "month" and periods.length == "week from Monday"):  # weeks do not make a month
        raise _too_long(table, periods, every, field)
    is_finer = bool((ends - starts < _bucket_ends(buckets, every) - buckets).any()) and every != "day"
    is_finer |= periods.length == "time"
    is_left_out = _is_uncounted(frame, starts, buckets) if is_finer else Series(False, index=starts.index)
    if count := int(is_left_out.sum()):
        rule = "left out: outside the interval of the frame, in a bucket that it counts only in part"
        notes.append(f"{count} row{'' if count == 1 else 's'} of {table.source} {rule}")
    return Buckets(buckets, is_left_out, is_finer, tuple(notes))


def _are_buckets_of(moments: Series[Any], starts: Series[Any], ends: Series[Any]) -> bool:
    """Return whether periods are the weeks or months that the days of a frame without a receipt are apart.

    Mondays alone are weeks, and first days of months are months.
    """
    days = moments.dropna().drop_duplicates()
    if len(days) < _FEWEST_BUCKETS or (days != days.dt.floor("D")).any():
        return False
    every: Granularity | None = "week" if (days.dt.day_of_week == 0).all() else None
    every = every or ("month" if (days.dt.day == 1).all() else None)
    if every is None:
        return False
    known = starts.dropna()
    is_bucket = (_bucket_starts(known, every) == known) & (_bucket_ends(known, every) == ends[known.index])
    return bool(is_bucket.all())


def _in_one_bucket(
    moments: Series[Any], interval: Interval | None, table: OutsideTable, periods: Periods, field: str
) -> Buckets:
    """Return the bucket of a frame that has one for the whole time, for the rows inside it."""
    if interval is None or moments.nunique() != 1:
        raise BadQuery(
            "on", field, 'cannot be joined: the frame has one bucket for the whole time; query it with every="day"'
        )
    first, last = pd.Timestamp(interval.start), pd.Timestamp(interval.end)
    ends = periods.starts + _DAY if periods.length == "time" else periods.ends
    is_outside = (periods.starts >= last) | (ends <= first)
    is_cut = ~is_outside & ((periods.starts < first) | (periods.ends > last))
    if is_cut.any():
        row = int(is_cut.to_numpy().argmax())
        days = f"{periods.starts[row]:%Y-%m-%d} to {periods.ends[row] - _DAY:%Y-%m-%d}"
        rule = f"has a row for {days}, which the frame covers only in part: query over={_over(periods.interval)}"
        raise BadQuery("other", table.source, rule)
    starts = periods.starts.where(is_outside, moments.dropna().iloc[0])
    return Buckets(starts, Series(False, index=starts.index), True, ())


def _bucket_starts(starts: Series[Any], every: Granularity) -> Series[Any]:
    """Return the start of the UTC day, ISO week or month of each time."""
    days: Series[Any] = starts.dt.floor("D")
    if every == "week":
        days = days - pd.to_timedelta(days.dt.day_of_week, unit="D")
    elif every == "month":
        days = days - pd.to_timedelta(days.dt.day - 1, unit="D")
    return days.astype(starts.dtype)


def _bucket_ends(buckets: Series[Any], every: Granularity) -> Series[Any]:
    if every == "month":
        return buckets.add(pd.to_timedelta(buckets.dt.days_in_month, unit="D"))
    return buckets.add(pd.Timedelta(days=7 if every == "week" else 1))


def _too_long(table: OutsideTable, periods: Periods, every: str, field: str) -> BadQuery:
    """Return the exception for rows that stand for more days than a bucket, with the query to use."""
    lengths = {"week from Monday": "week", "month": "month"}
    unit = lengths.get(periods.length or "")
    if unit and unit != every:
        rule = f'has one value a {unit}, the frame one a {every}: query with every="{unit}"'
        return BadQuery("on", field or table.source, rule)
    interval = periods.interval
    several = periods.starts.nunique() > 1
    days = f"{periods.starts.min():%Y-%m-%d} to {periods.ends.max() - _DAY:%Y-%m-%d}" if interval else "unknown days"
    rule = f"has one row a {periods.length} ({days}), the frame one a {every}: "
    if several:
        rule += 'query with every="day" and add it up with gl.in_periods(frame, table)'
    else:
        rule += f'query over={_over(interval)}, every="all"'
    return BadQuery(table.source, UNSET, rule)


def _over(interval: Interval | None) -> str:
    return f'"{interval.start:%Y-%m-%d}/{interval.end:%Y-%m-%d}"' if interval else "its days"


def cut_buckets(frame: DataFrame, timestamps: Series[Any]) -> list[Interval]:
    """Return the buckets that begin at one of *timestamps* and that the frame covers only in part."""
    receipt = Receipt.of(frame.attrs)
    every, interval = receipt.asked.every, receipt.interval
    if every is None or every == "all" or interval is None or receipt.periods:
        return []
    cut = [bucket for bucket in interval.buckets(every) if bucket not in interval]
    return [bucket for bucket in cut if (timestamps == pd.Timestamp(bucket.start)).any()]


def uncovered_buckets(frame: DataFrame, timestamps: Series[Any], periods: Periods) -> list[Interval]:
    """Return what the frame counts in buckets whose days an outside table covers only in part.

    Where most days between the first row and the last have none, as in a list of payments, the days before and after
    them may have none either: these cover all.
    """
    receipt = Receipt.of(frame.attrs)
    every, interval = receipt.asked.every, receipt.interval
    if every is None or every == "day" or interval is None or receipt.periods or periods.interval is None:
        return []
    first = pd.Timestamp(periods.interval.start).floor("D")
    last = pd.Timestamp(periods.interval.end).ceil("D")
    is_daily = periods.length in ("time", "day")
    if is_daily and 2 * periods.starts.dt.floor("D").nunique() < (last - first) / _DAY:
        return []
    known, moments = Interval(first.to_pydatetime(), last.to_pydatetime()), {*timestamps.dropna()}
    counted = [
        bucket & interval
        for bucket in interval.buckets(every)
        if every == "all" or pd.Timestamp(bucket.start) in moments
    ]
    return [span for span in counted if known & span and known & span != span]


def _is_uncounted(frame: DataFrame, moments: Series[Any], starts: Series[Any]) -> Series[Any]:
    """Return a mask of times outside the frame's interval but in a partly covered bucket.

    The frame counts nothing at these times, so their values must not be added to the bucket.
    """
    interval = Receipt.of(frame.attrs).interval
    if interval is None:
        return Series(False, index=moments.index)
    is_outside = (moments < pd.Timestamp(interval.start)) | (moments >= pd.Timestamp(interval.end))
    return is_outside & starts.isin([pd.Timestamp(bucket.start) for bucket in cut_buckets(frame, starts)])
