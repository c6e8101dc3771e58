"""Decomposition of a change of ad revenue into volume, mix and price.

Between two periods each segment's revenue changes by three parts that add up to its change, row by row and column by
column:

- *volume*: the change if the segment had grown as all segments together did, at its earlier price;
- *mix*: the change because it grew faster or slower than all together, at its earlier price;
- *price*: the change because its new volume earns another price.

A segment that is new has no earlier price, so its current price is used: its whole change is mix. A segment that
vanished loses its revenue as volume and mix. Null is a segment like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame, Series

from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires, result_of
from gamelens.wire.intervals import Interval
from gamelens.wire.receipts import RECEIPT, Receipt

By = str | Sequence[str]

_REVENUE: Final = FrameRequirements(metrics=("ilrd_revenue",))

KINDS: Final = ("kept", "new", "vanished")
PARTS: Final = ("volume", "mix", "price")
_WEEK: Final = 7
_RESULT: Final = result_of("decomposition.decompose(before, after, by=...)", "before", "after", "change", *PARTS)


@requires(equal_periods=("before", "after"), before=_REVENUE, after=_REVENUE)
def decompose(before: DataFrame, after: DataFrame, by: By) -> DataFrame:
    """Return the change of ad revenue from *before* to *after* by segment, largest first.

    Both are frames of ilrd_revenue by *by*. Impressions are the volume, revenue per impression is the price. The parts
    summed over all rows are those of the total change. Periods of unequal length differ in volume for that reason
    alone: see `split_in_halves`.

    Columns: *by* (category), kind (category: kept, new, vanished), before, after, change, volume, mix, price (float64,
    USD; change = volume + mix + price), volume_before, volume_after (Int64, impressions).
    """
    keys = with_ids(before, by)
    result = _outer_join(_period_sums(before, by, "before"), _period_sums(after, by, "after"), keys)
    result["change"] = result["after"] - result["before"]
    parts = _change_parts(result)
    for name in PARTS:
        result[name] = parts[name]
    result["kind"] = pd.Categorical(_segment_kinds(result), categories=list(KINDS))
    order = result["change"].abs().sort_values(ascending=False, kind="stable").index
    columns = [*keys, "kind", "before", "after", "change", *PARTS, "volume_before", "volume_after"]
    result = result.loc[order, columns].reset_index(drop=True)
    if _query_of(before) != _query_of(after):
        return with_receipts_of(result, before, after)
    return _with_interval(with_receipts_of(result, before), _joint_interval(before, after))  # parts share requests


@requires(parts=_RESULT)
def total_change(parts: DataFrame) -> DataFrame:
    """Return the rows of `decompose` summed up in one row, as the figure draws it.

    Columns: before, after, change, volume, mix, price (float64, USD), volume_before, volume_after (Int64).
    """
    return with_receipts_of(
        sum_over(parts, None, ["before", "after", "change", *PARTS, "volume_before", "volume_after"]), parts
    )


@requires(parts=_RESULT)
def dominant_effect(parts: DataFrame) -> str:
    """Return the part with the largest effect: volume, mix or price, else "none"."""
    effects = total_change(parts).iloc[0][list(PARTS)].astype("float64")
    return str(effects.abs().idxmax()) if effects.abs().max() > 0 else "none"


@requires(frame=replace(_REVENUE, every=("day",), takes_top=True, takes_rest=True, takes_gaps=True))
def split_in_halves(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the frame's rows as two periods of equal length, the earlier and the later.

    The later one ends with the frame's last day. Both are whole weeks if each half has at least one, so that they have
    the same weekdays. Days left over at the beginning are dropped.
    """
    if not len(frame):
        return frame.copy(), frame.copy()
    first, last = frame["timestamp"].min(), frame["timestamp"].max()
    days = ((last - first).days + 1) // 2
    days = days // _WEEK * _WEEK or days
    cut = last - pd.Timedelta(days=days - 1)
    is_later = frame["timestamp"] >= cut
    is_earlier = ~is_later & (frame["timestamp"] >= cut - pd.Timedelta(days=days))
    day = pd.Timedelta(days=1)
    earlier, later = (cut - pd.Timedelta(days=days), cut), (cut, last + day)
    return _part(frame, is_earlier, *earlier), _part(frame, is_later, *later)


def _part(frame: DataFrame, is_in: Series[bool], start: pd.Timestamp, end: pd.Timestamp) -> DataFrame:
    """Return the rows of *frame* from *start* to *end*, with a receipt of that interval."""
    part = with_receipts_of(frame[is_in].copy(), frame)
    return _with_interval(part, Interval(start.to_pydatetime(), end.to_pydatetime()))


def _with_interval(frame: DataFrame, interval: Interval | None) -> DataFrame:
    """Write *interval* to the receipt of *frame*, if it has one, as the interval of its rows."""
    if (receipt := Receipt.of(frame.attrs)) and interval is not None:
        text = str(interval)
        asked = receipt.asked if receipt.clipped else replace(receipt.asked, interval=text)
        receipt = replace(receipt, asked=asked, clipped=text if receipt.clipped else None)
        frame.attrs = {RECEIPT: receipt.to_json()}
    return frame


def _joint_interval(before: DataFrame, after: DataFrame) -> Interval | None:
    """Return the interval from the beginning of both periods to their end."""
    first, second = (Receipt.of(frame.attrs).interval for frame in (before, after))
    return Interval(min(first.start, second.start), max(first.end, second.end)) if first and second else None


def _query_of(frame: DataFrame) -> Receipt:
    """Return the receipt without its interval, which the parts of one frame have in common."""
    receipt = Receipt.of(frame.attrs)
    return replace(receipt, asked=replace(receipt.asked, interval=None), clipped=None)


def _period_sums(frame: DataFrame, by: By, name: str) -> DataFrame:
    count, money = column_of(frame, "ilrd_revenue", "event_count"), column_of(frame, "ilrd_revenue", "sum")
    names = {money: name, count: f"volume_{name}"}
    result = sum_over(frame, by, names).rename(columns=names)
    return result.astype({name: "float64", f"volume_{name}": "Int64"} | dict.fromkeys(with_ids(frame, by), "object"))


def _outer_join(before: DataFrame, after: DataFrame, keys: list[str]) -> DataFrame:
    """Join the sums of both periods on *keys*, null keys included. A missing segment counts 0."""
    for sums in (before, after):
        sums[keys] = sums[keys].where(sums[keys].notna(), None)
    result = before.merge(after, on=keys, how="outer", sort=False)
    numbers = ["before", "volume_before", "after", "volume_after"]
    return result.fillna(dict.fromkeys(numbers, 0)).astype(dict.fromkeys(keys, "category"))


def _change_parts(result: DataFrame) -> dict[str, Series[Any]]:
    """Return volume, mix and price of each row (USD)."""
    n0, n1 = (result[f"volume_{name}"].astype("float64") for name in ("before", "after"))
    price_before = ratio(result["before"], n0).fillna(ratio(result["after"], n1)).fillna(0.0)
    growth = n1.sum() / n0.sum() if n0.sum() else 1.0
    volume = result["before"] * (growth - 1)
    mix = (n1 - n0 * growth) * price_before
    if not n0.sum():  # without earlier impressions everything is volume
        volume, mix = mix, Series(0.0, index=result.index)
    # the rest instead of n1 * (price_after - price_before), so that revenue without impressions stays in the sum
    return {"volume": volume, "mix": mix, "price": result["change"] - volume - mix}


def _segment_kinds(result: DataFrame) -> Any:
    is_there = {name: (result[f"volume_{name}"] > 0) | (result[name] != 0) for name in ("before", "after")}
    return np.select([~is_there["before"], ~is_there["after"]], ["new", "vanished"], "kept")
