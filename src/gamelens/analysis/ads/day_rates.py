"""Rates over days: ratios of two daily sums with their intervals, and by how much the highest leads.

The interval of a rate comes from the differences between days, which are the repetitions: it tells what to expect of
days like these. A frame with one row for the whole interval has no days, so its rates are counted and have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, JudgedBy
from gamelens.analysis.claims.leaders import LEAD, leader
from gamelens.analysis.over_days import Counted, day_numbers, over_days
from gamelens.analysis.tidy_frames import display_values, with_ids
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.returned_columns import FROM_DAYS, between, listed_columns, named

Floats = NDArray[np.float64]


def day_rates(
    frame: DataFrame,
    by: str | Sequence[str] | None,
    part: Series[Any],
    whole: Series[Any],
    *,
    counted: Counted | None = None,
) -> DataFrame:
    """Return the rate *part* / *whole* of each value of *by*, in the order of `sum_over`.

    Columns: low, high (float64, 95%, NA where the days do not show an interval), largest_day (float64, the share of
    the part by which the day that brought most exceeds its own; NA unless that makes the interval rough), lead,
    lead_low, lead_high (float64: in the row of the highest rate, the multiple of the next one with its interval,
    corrected for the values that might have been the next). Values without an interval lead none that have one.
    """
    keys = with_ids(frame, by)
    groups = frame.groupby(keys, observed=True, dropna=False, sort=False).ngroup() if keys else Series(0, frame.index)
    at, days = pd.factorize(frame.get("timestamp", Series(pd.Timestamp(0, tz="UTC"), frame.index)), sort=True)
    above, below = np.zeros((2, groups.max() + 1 if len(groups) else 0 if keys else 1, max(1, len(days))))
    for sums, numbers in ((above, part), (below, whole)):
        np.add.at(sums, (groups, at), numbers.astype("float64").fillna(0.0))
    result = DataFrame(np.nan, index=range(len(above)), columns=["low", "high", "largest_day", *LEAD])
    known = np.flatnonzero(below.sum(axis=1) > 0)
    if not len(known) or "timestamp" in keys:  # a day by itself does not differ from others
        return result
    above, below, number = above[known], below[known], day_numbers(pd.Index(days))
    estimates = over_days(above, below, number, counted=counted, is_balanced=False)
    low, high = estimates.bounds()
    result.loc[known, "low"], result.loc[known, "high"] = low, np.minimum(high, 1.0) if counted == "shares" else high
    result.loc[known, "largest_day"] = np.where(estimates.excess > 0, estimates.excess, np.nan)
    rates = above.sum(axis=1) / below.sum(axis=1)
    sure = np.flatnonzero(~np.isnan(low)) if (~np.isnan(low)).any() else np.arange(len(known))
    order = sure[np.argsort(-rates[sure], kind="stable")]
    if len(order) > 1 and rates[order[1]] > 0:
        best, following = order[:2]
        multiple = rates[best] / rates[following]
        shares = [
            daily_sums[order[:2]] / daily_sums[order[:2]].sum(axis=1, keepdims=True) for daily_sums in (above, below)
        ]
        half = _half_width_of_multiple(shares[0], shares[1], number, confidence=1 - 0.05 / (len(order) - 1))
        half = half if not np.isnan(low[best]) else np.nan
        result.loc[known[best], [*LEAD]] = multiple, multiple * np.exp(-half), multiple * np.exp(half)
    return result


def _half_width_of_multiple(above: Floats, below: Floats, days: NDArray[np.int64], *, confidence: float) -> float:
    """Return half the width of the interval of the logarithm of one rate as a multiple of another, on the same days.

    *above* and *below* are the shares of the days, shape (2, days).
    """
    weight = below.mean(axis=0)
    apart = (above[0] - below[0]) - (above[1] - below[1])
    return float(over_days(weight + apart, weight, days, is_balanced=False).half_width(confidence)[0])


def lead_of(rate: str) -> Column:
    """Return the column of the lead that the highest *rate* has, which `day_rates` finds."""
    about = f"of the highest {rate}, the multiple of the next one"
    return between(named("lead", about=about, na="in other rows"), FROM_DAYS)


def read_level(result: DataFrame, rate: str, *, kind: str, **numbers: Any) -> Finding:
    """Return the finding of the *rate* of the first row: case "level", or "nobody" where it has none."""
    size, low, high = result[[rate, f"{rate}_low", f"{rate}_high"]].astype("float64").iloc[0]
    is_known = not isnan(size)
    return Finding(
        kind=kind,
        case="level" if is_known else "nobody",
        size=size,
        low=low,
        high=high,
        unit=listed_columns(result.attrs)[rate].unit_of_claim,
        judged=None if not is_known else "counted" if isnan(low) else "days",
        numbers=numbers,
    )


def read_leader(result: DataFrame, by: str, rate: str, *, kind: str) -> Finding:
    """Return the finding about the value of *by* with the highest *rate*, and by how much it leads the next one.

    Its size is the multiple of the next one. Case "nothing" if all are 0. It has the numbers of `leader`, largest_day
    if the result has it, and the name and value of the least.
    """
    rows = result[result[rate].notna()].rename(columns={f"{rate}_low": "low", f"{rate}_high": "high"})
    rows = rows[rows["low"].notna()] if rows["low"].notna().any() else rows
    if len(rows) and not rows[rate].any():
        return Finding(kind=kind, case="nothing", unit="ratio", judged="counted")
    rows = rows.sort_values([rate, LEAD[0]], ascending=False, kind="stable")  # the leader first among equal rates
    unit = listed_columns(result.attrs)[rate].unit_of_claim
    numbers: dict[str, Any] = {"measured_in": unit, "least": None, "least_value": None, "largest_day": None}
    if len(rows) > 2:
        numbers |= {"least": display_values(rows[by]).iloc[-1], "least_value": rows[rate].iloc[-1]}
    if len(rows) and "largest_day" in rows:
        numbers["largest_day"] = rows["largest_day"].iloc[0]
    judged: JudgedBy = "days" if rows["low"].notna().any() else "counted"
    return leader(rows, by, rate, kind=kind, unit="ratio", numbers=numbers, judged=judged)
