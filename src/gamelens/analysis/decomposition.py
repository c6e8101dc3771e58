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

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import structs
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import HALF_CENT, Clause, Finding, reads
from gamelens.analysis.claims.rows import each_row
from gamelens.analysis.over_days import day_numbers, over_parts_of_week
from gamelens.analysis.significance import LEVEL, holm
from gamelens.analysis.tidy_frames import (
    dimension_columns,
    metric_sums,
    ratio,
    with_ids,
    with_receipt,
    with_receipts_of,
)
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_columns import sum_over
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

Dimensions = str | Sequence[str]

_REVENUE: Final = FrameRequirements(metrics=("ecpm",))
_DAILY: Final = structs.replace(_REVENUE, every=("day",))

KINDS: Final = ("kept", "new", "vanished")
PARTS: Final = ("volume", "mix", "price")
_WEEK: Final = 7
"""Days of a week.

Derived: halves of whole weeks have the same weekdays.
"""
_RESIDUE: Final = 9
"""Decimal places of dollars beyond which a sum of floats is noise.

Numerical: the nano-units in which impressions are stored.
"""
_AMOUNT: Final = Column("", "money", unit="USD", scale="amounts")
_AMOUNTS: Final = (
    *(structs.replace(_AMOUNT, name=name) for name in ("before", "after")),
    structs.replace(_AMOUNT, name="change", about="volume + mix + price"),
    *(structs.replace(_AMOUNT, name=name) for name in PARTS),
    *(Column(name, "count") for name in ("impressions_before", "impressions_after")),
    Column("segments", "count", about="the finest ones that the row consists of"),
)
_RATIO: Final = between(
    named("ratio", about="later price as a multiple of the earlier one"),
    "95%, of changes with p_adjusted below 0.05 corrected for having been selected, Benjamini and Yekutieli 2005",
    low="low",
    high="high",
)
_RESULT: Final = result_of("decomposition.decompose(before, after, by=...)", "before", "after", "change", *PARTS)


@requires(equal_periods=("before", "after"), before=_REVENUE, after=_REVENUE)
@returns(KEYS, Column("kind", "category", values=KINDS), *_AMOUNTS, has_own_receipt=True)
def decompose(before: DataFrame, after: DataFrame, by: Dimensions) -> DataFrame:
    """Return the change of ad revenue from *before* to *after* by segment, largest first.

        split = ["ilrd_network_name", "country_code"]
        before = lens.query("ecpm", by=split, over="2026-10-19/P2W")
        after = lens.query("ecpm", by=split, over="2026-11-02/P2W")
        decomposition.decompose(before, after, by="ilrd_network_name")

    Both are frames of ecpm by *by*. Impressions are the volume, revenue per impression is the price. The parts are
    computed in the finest segments, by all dimensions of the frames, and summed: a shift between countries within a
    network is mix, not price. Summed over all rows they explain the total change. Months of unequal length differ in
    volume for that reason alone; other periods must be equally long: see `split_in_halves`.

    Claims: "ad revenue change", of all rows.
    """
    keys = with_ids(before, by)
    cells = [*dict.fromkeys([*keys, *_shared_dimensions(before, after)])]
    finest = _outer_join(_period_sums(before, cells, "before"), _period_sums(after, cells, "after"), cells)
    finest["change"] = finest["after"] - finest["before"]
    finest = finest.assign(**_change_parts(finest), segments=1)
    numbers = ["before", "after", "change", *PARTS, "impressions_before", "impressions_after", "segments"]
    result = finest.groupby(keys, observed=True, dropna=False, sort=False)[numbers].sum().reset_index()
    result["kind"] = pd.Categorical(_segment_kinds(result), categories=list(KINDS))
    order = result["change"].abs().sort_values(ascending=False, kind="stable").index
    result = result.loc[order].reset_index(drop=True)
    first, second = Receipt.of(before.attrs), Receipt.of(after.attrs)
    if first.within(None) != second.within(None):
        return with_receipts_of(result, before, after)
    if first.interval and second.interval:  # two periods of one frame, which share its requests
        first = first.within(
            Interval(min(first.interval.start, second.interval.start), max(first.interval.end, second.interval.end))
        )
    return with_receipt(result, first)


@requires(parts=_RESULT)
@returns(*_AMOUNTS)
def total_change(parts: DataFrame) -> DataFrame:
    """Return the rows of `decompose` summed up in one row, as the figure draws it.

    For example:

        income = lens.query("ecpm", by=["game", "country_code"], over="last 28 complete days")
        parts = decomposition.decompose(*decomposition.split_in_halves(income), by="game")
        decomposition.total_change(parts)
    """
    numbers = ["before", "after", "change", *PARTS, "impressions_before", "impressions_after", "segments"]
    return sum_over(parts, None, [name for name in numbers if name in parts])


@requires(parts=_RESULT)
def dominant_effect(parts: DataFrame) -> str:
    """Return the part with the largest effect: volume, mix or price; "none" if all are below half a cent.

    For example:

        income = lens.query("ecpm", by="platform", over="last 14 complete days")
        parts = decomposition.decompose(*decomposition.split_in_halves(income), by="platform")
        decomposition.dominant_effect(parts)
    """
    effects = total_change(parts).iloc[0][list(PARTS)].astype("float64")
    return str(effects.abs().idxmax()) if effects.abs().max() >= HALF_CENT else "none"


@reads("decomposition.decompose")
def _read_parts(parts: DataFrame, by: str | list[str]) -> Iterator[Finding]:
    """Say how ad revenue changed, and by what. It is counted, so there is no interval: `price_changes` tests prices."""
    whole = total_change(parts).iloc[0]
    before, after, change = (round(float(whole[name]), _RESIDUE) for name in ("before", "after", "change"))
    change = change if abs(change) >= HALF_CENT else 0.0
    kind, case = "ad revenue change", "rose" if change > 0 else "fell"
    if not (before > 0 or after > 0):
        yield Finding(kind=kind, case="nothing_earned", unit="ratio", judged="counted")
        return
    effects = sorted(PARTS, key=lambda name: -abs(float(whole[name])))
    clauses = [Clause(f"{name}_{'up' if whole[name] > 0 else 'down'}", part=name) for name in effects]
    is_finer = int(whole["segments"]) > len(parts)
    names = [by] if isinstance(by, str) else by
    yield Finding(
        kind=kind,
        case="same" if not change else "began" if before < HALF_CENT else case,
        direction="higher" if change > 0 else "lower" if change < 0 else "no clear difference",
        size=change / before if before > 0 else math.inf,
        unit="ratio",
        judged="counted",
        numbers={
            **{"measured_in": "USD", "before": before, "after": after, "change": change},
            **{name: float(whole[name]) for name in PARTS},
            "by": "segment" if is_finer or len(names) > 1 else names[0],
            "segments": int(whole["segments"]) if is_finer else None,
            "largest": clauses[:1],
            "effects": clauses[1:],
        },
    )


@requires(frame=structs.replace(ANY, every=("day",)))
def split_in_halves(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the frame's rows as two periods of equal length, the earlier and the later.

        income = lens.query("ecpm", by=["game", "platform"], over="last 28 complete days")
        decomposition.split_in_halves(income)

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
    period = Interval(start.to_pydatetime(), end.to_pydatetime())
    return with_receipt(frame[is_in].copy(), Receipt.of(frame.attrs).within(period))


@requires(equal_periods=("before", "after"), before=_DAILY, after=_DAILY)
@returns(
    KEYS,
    Column("days_of_week", "category", about="all days or weekends: what the next four are of"),
    _RATIO,
    named("p_value", about="corrected for the parts of the week"),
    named("p_adjusted", about="Holm, for all segments"),
    named("effect", about="what the change of all days did to the later revenue"),
    named("impressions", about="of the later frame"),
)
def price_changes(
    before: DataFrame, after: DataFrame, by: Dimensions, *, within: Dimensions | None = None
) -> DataFrame:
    """Return how the price of an impression changed, like for like, by segment.

        income = lens.query("ecpm", by=["ilrd_adunit_format", "country_code"], over="last 4 complete weeks")
        before, after = decomposition.split_in_halves(income)
        decomposition.price_changes(before, after, by="ilrd_adunit_format")

    Both are frames of ecpm by day and *by*. Each segment of *within*, by default of all other dimensions of the frames,
    is compared with itself, weighted by its later impressions, so a shift between them changes nothing; one without
    impressions in a period is left out. Weekdays count the same, and intervals come from the differences between days
    (`over_days`); below 7 days a period there are none. A price that moved on weekends only is judged on those. Largest
    effect first.

    Claims: "price", one a row.
    """
    keys = with_ids(before, by)
    inside = (
        [name for name in dimension_columns(before) if name in after] if within is None else with_ids(before, within)
    )
    old, new = (_daily_sums(frame, [*keys, *inside]) for frame in (before, after))
    cells = [name for name in old.columns if name not in ("timestamp", "money", "volume")]
    totals = [_totals(daily, cells, "money", "volume") for daily in (old, new)]
    both = totals[0].merge(totals[1], on=cells, suffixes=("_before", "_after"))
    both = both[(both["volume_before"] > 0) & (both["volume_after"] > 0)]
    both["weight"] = both["volume_after"] / both["volume_before"]
    both["price"] = both["money_before"] / both["volume_before"]
    result = _totals(both, keys, "money_after", "volume_after")
    rows = both[[*cells, "weight", "price"]].merge(result[keys].assign(row=range(len(result))), on=keys)
    earlier, later = old.merge(rows, on=cells), new.merge(rows, on=cells)
    earlier[["money", "volume"]] = earlier[["money", "volume"]].mul(earlier["weight"], axis=0)
    both_days = pd.concat([earlier, later])
    days = pd.Index(both_days["timestamp"].unique()).sort_values()
    money, usual = np.zeros((2, len(result), len(days)))
    at = both_days["row"].to_numpy(), days.get_indexer(both_days["timestamp"])
    np.add.at(money, at, both_days["money"].to_numpy())
    np.add.at(usual, at, (both_days["price"] * both_days["volume"]).to_numpy())
    found = over_parts_of_week(money, usual, day_numbers(days), later=days >= after["timestamp"].min())
    result["days_of_week"] = pd.Categorical(found.part, categories=[*found.estimates])
    result["ratio"], result["p_value"] = found.value, found.p_value
    result["p_adjusted"] = holm(result["p_value"])
    is_selected = (result["p_adjusted"] < LEVEL).to_numpy()
    level = LEVEL * max(1, is_selected.sum()) / max(1, result["p_value"].notna().sum())
    for name, bound, selected in zip(("low", "high"), found.bounds(), found.bounds(1 - level), strict=True):
        result[name] = np.where(is_selected, selected, bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        result["effect"] = result["money_after"] * (1 - 1 / found.estimates["all days"].value)
    result = result.rename(columns={"volume_after": "impressions"}).drop(columns="money_after")
    order = result["effect"].abs().sort_values(ascending=False, kind="stable").index
    return result.loc[order].reset_index(drop=True)


@reads("decomposition.price_changes", row_by_row=True)
def _read_prices(changes: DataFrame, by: str | list[str]) -> Iterator[Finding]:
    """Say of each segment how its price changed; it is clear if it stays so after the correction for all of them."""
    if changes.empty:
        yield Finding(kind="price", case="none_known", unit="ratio")
    yield from each_row(changes, by, "ratio", kind="price", numbers=_of_price, corrected="p_adjusted")


def _of_price(row: Mapping[Any, Any]) -> dict[str, Any]:
    part, effect = row["days_of_week"], row["effect"]
    return {
        "days_of_week": None if part == "all days" else part,
        "effect": effect if abs(effect) >= HALF_CENT else None,
        "p_adjusted": row["p_adjusted"],
    }


def _shared_dimensions(before: DataFrame, after: DataFrame) -> list[str]:
    return [name for name in dimension_columns(before) if name in after]


def _period_sums(frame: DataFrame, by: Dimensions, name: str) -> DataFrame:
    fields = {name: ("ilrd_revenue", "sum"), f"impressions_{name}": ("ilrd_revenue", "event_count")}
    result = metric_sums(frame, by, **fields)
    return result.astype(
        {name: "float64", f"impressions_{name}": "Int64"} | dict.fromkeys(with_ids(frame, by), "object")
    )


def _outer_join(before: DataFrame, after: DataFrame, keys: list[str]) -> DataFrame:
    """Join the sums of both periods on *keys*, null keys included. A missing segment counts 0."""
    for sums in (before, after):
        sums[keys] = sums[keys].where(sums[keys].notna(), None)
    result = before.merge(after, on=keys, how="outer", sort=False)
    numbers = ["before", "impressions_before", "after", "impressions_after"]
    return result.fillna(dict.fromkeys(numbers, 0)).astype(dict.fromkeys(keys, "category"))


def _change_parts(result: DataFrame) -> dict[str, Series[Any]]:
    """Return volume, mix and price of each row (USD)."""
    n0, n1 = (result[f"impressions_{name}"].astype("float64") for name in ("before", "after"))
    price_before = ratio(result["before"], n0).fillna(ratio(result["after"], n1)).fillna(0.0)
    growth = n1.sum() / n0.sum() if n0.sum() else 1.0
    volume = result["before"] * (growth - 1)
    mix = (n1 - n0 * growth) * price_before
    if not n0.sum():  # without earlier impressions everything is volume
        volume, mix = mix, Series(0.0, index=result.index)
    # the rest instead of n1 * (price_after - price_before), so that revenue without impressions stays in the sum
    return {"volume": volume, "mix": mix, "price": result["change"] - volume - mix}


def _segment_kinds(result: DataFrame) -> Any:
    is_there = {name: (result[f"impressions_{name}"] > 0) | (result[name] != 0) for name in ("before", "after")}
    return np.select([~is_there["before"], ~is_there["after"]], ["new", "vanished"], "kept")


def _daily_sums(frame: DataFrame, cells: list[str]) -> DataFrame:
    """Return money and volume by day and cell, the cells as objects with None for null."""
    cells = list(dict.fromkeys(cells))
    fields = {"money": ("ilrd_revenue", "sum"), "volume": ("ilrd_revenue", "event_count")}
    sums = metric_sums(frame, ["timestamp", *cells], **fields)
    return _with_objects(sums.astype({"money": "float64", "volume": "float64"}), cells)


def _totals(rows: DataFrame, cells: list[str], *numbers: str) -> DataFrame:
    return _with_objects(rows.groupby(cells, dropna=False, sort=False)[[*numbers]].sum().reset_index(), cells)


def _with_objects(sums: DataFrame, cells: list[str]) -> DataFrame:
    """Return the cells as objects with None for null: a column of nulls alone would be of numbers, and join nothing."""
    sums = sums.astype(dict.fromkeys(cells, "object"))
    sums[cells] = sums[cells].where(sums[cells].notna(), None)
    return sums
