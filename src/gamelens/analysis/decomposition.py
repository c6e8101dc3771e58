"""Why revenue moved: more volume, another mix, or better prices.

Between two periods each segment's money changes by three parts that add up to its change, row by row and column by
column:

- *volume*: what the segment would have gained had it grown as all segments together did, at its price of before;
- *mix*: what it gained by growing faster or slower than all together, at its price of before;
- *price*: what its new volume earns because the price moved.

A segment that was not there before has no old price, and its own one stands in for it: all it brings is mix. One that
is gone takes everything away as volume and mix. A null is a segment like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_ids, with_receipts_of

By = str | Sequence[str]

KINDS: Final = ("kept", "new", "vanished")
PARTS: Final = ("volume", "mix", "price")
_WEEK: Final = 7


def decompose(before: DataFrame, after: DataFrame, by: By) -> DataFrame:
    """The change of ad revenue from *before* to *after* by segment, the largest change first.

    Both are frames of ilrd_revenue by *by*; impressions are the volume, the money of one is the price. The sums of the
    parts over all rows are those of the whole change. Periods of unequal length differ in volume for that alone: see
    `split_in_halves`.

    Columns: *by* (category), kind (category: kept, new, vanished), before, after, change, volume, mix, price (float64,
    USD; change = volume + mix + price), volume_before, volume_after (Int64, impressions).
    """
    keys = with_ids(before, by)
    made = _outer(_side(before, by, "before"), _side(after, by, "after"), keys)
    made["change"] = made["after"] - made["before"]
    parts = _parts(made)
    for name in PARTS:
        made[name] = parts[name]
    made["kind"] = pd.Categorical(_kinds(made), categories=list(KINDS))
    order = made["change"].abs().sort_values(ascending=False, kind="stable").index
    columns = [*keys, "kind", "before", "after", "change", *PARTS, "volume_before", "volume_after"]
    sources = [before] if before.attrs == after.attrs else [before, after]  # two halves of one frame were asked once
    return with_receipts_of(made.loc[order, columns].reset_index(drop=True), *sources)


def total_change(parts: DataFrame) -> DataFrame:
    """The rows of `decompose` in one: what the figure draws.

    Columns: before, after, change, volume, mix, price (float64, USD), volume_before, volume_after (Int64).
    """
    return with_receipts_of(
        sum_over(parts, None, ["before", "after", "change", *PARTS, "volume_before", "volume_after"]), parts
    )


def dominant_effect(parts: DataFrame) -> str:
    """The part that moved the whole most: volume, mix or price; "none" where nothing moved."""
    moved = total_change(parts).iloc[0][list(PARTS)].astype("float64")
    return str(moved.abs().idxmax()) if moved.abs().max() > 0 else "none"


def split_in_halves(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The frame's days in two spans of equal length, the earlier and the later, up to its last day.

    They are whole weeks where each half has one, so that both have the same weekdays; what is left over at the
    beginning is left out.
    """
    if not len(frame):
        return frame.copy(), frame.copy()
    first, last = frame["timestamp"].min(), frame["timestamp"].max()
    days = ((last - first).days + 1) // 2
    days = days // _WEEK * _WEEK or days
    cut = last - pd.Timedelta(days=days - 1)
    is_later = frame["timestamp"] >= cut
    is_earlier = ~is_later & (frame["timestamp"] >= cut - pd.Timedelta(days=days))
    return with_receipts_of(frame[is_earlier].copy(), frame), with_receipts_of(frame[is_later].copy(), frame)


def _side(frame: DataFrame, by: By, name: str) -> DataFrame:
    count, money = column_of(frame, "ilrd_revenue", "event_count"), column_of(frame, "ilrd_revenue", "sum")
    names = {money: name, count: f"volume_{name}"}
    made = sum_over(frame, by, names).rename(columns=names)
    return made.astype({name: "float64", f"volume_{name}": "Int64"} | dict.fromkeys(with_ids(frame, by), "object"))


def _outer(before: DataFrame, after: DataFrame, keys: list[str]) -> DataFrame:
    """Both sides beside each other; pandas meets null keys with each other. A segment that is not there is 0."""
    for side in (before, after):
        side[keys] = side[keys].where(side[keys].notna(), None)
    made = before.merge(after, on=keys, how="outer", sort=False)
    numbers = ["before", "volume_before", "after", "volume_after"]
    return made.fillna(dict.fromkeys(numbers, 0)).astype(dict.fromkeys(keys, "category"))


def _parts(made: DataFrame) -> dict[str, Series[Any]]:
    n0, n1 = (made[f"volume_{name}"].astype("float64") for name in ("before", "after"))
    price_before = ratio(made["before"], n0).fillna(ratio(made["after"], n1)).fillna(0.0)
    growth = n1.sum() / n0.sum() if n0.sum() else 1.0
    volume = made["before"] * (growth - 1)
    mix = (n1 - n0 * growth) * price_before
    if not n0.sum():  # from nothing: everything is volume
        volume, mix = mix, Series(0.0, index=made.index)
    # the rest, and not n1 * (price_after - price_before), so that money without volume stays in the sum
    return {"volume": volume, "mix": mix, "price": made["change"] - volume - mix}


def _kinds(made: DataFrame) -> Any:
    is_there = {name: (made[f"volume_{name}"] > 0) | (made[name] != 0) for name in ("before", "after")}
    return np.select([~is_there["before"], ~is_there["after"]], ["new", "vanished"], "kept")
