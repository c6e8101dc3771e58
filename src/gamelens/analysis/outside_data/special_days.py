"""Special days: a holiday compared with the same weekday in other weeks."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.tidy_frames import ratio, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires

FEWEST_OTHERS: Final = 3
"""Ordinary days of the same weekday that a comparison needs."""


@requires(frame=FrameRequirements(every=("day",), takes_gaps=True, is_split_by=True))
def compare_with_weekdays(
    frame: DataFrame, value: str, *, by: str = "country_code", occasion: str = "holiday"
) -> DataFrame:
    """Return every occasion beside the other days of its weekday, largest change first.

    The frame is daily, with the *occasion* joined to it (null on ordinary days); days are compared within one value of
    *by*. Each day is divided by the median of its own week (three days before and after it), so that the growth of a
    game does not make early or late days look special. An ordinary day lies outside the range of n others with
    probability 2 / (n + 1): the sum of *chance* is the number of occasions that stand out by luck alone.

    Columns: timestamp (datetime64[us, UTC]), *by*, *occasion* (category), value, usual (float64, the median of the
    others), low, high (float64, their range; all three at the level of the day's own week), others (Int64), change
    (float64, 0.1 is 10 % above usual), chance (float64), is_outside (boolean). Occasions with fewer than
    `FEWEST_OTHERS` others are NA from usual on.
    """
    days = frame.assign(value=frame[value].astype("float64"), weekday=frame["timestamp"].dt.day_of_week)
    days["level"] = _levels(days, by)
    days["relative"] = ratio(days["value"], days["level"])
    ordinary = days[days[occasion].isna()].groupby([by, "weekday"], observed=True, dropna=False)["relative"]
    usual = ordinary.agg(usual="median", low="min", high="max", others="count").reset_index()
    special = days.loc[days[occasion].notna(), ["timestamp", by, occasion, "value", "level", "weekday"]]
    result = special.merge(usual, on=[by, "weekday"], how="left")
    result["others"] = result["others"].fillna(0).astype("Int64")
    is_known = (result["others"] >= FEWEST_OTHERS).to_numpy(dtype=bool)
    for name in ("usual", "low", "high"):
        result[name] = (result[name].astype("float64") * result["level"]).where(is_known)
    result["change"] = ratio(result["value"] - result["usual"], result["usual"])
    result["chance"] = (2 / (result["others"].astype("float64") + 1)).where(is_known)
    is_outside = Series((result["value"] < result["low"]) | (result["value"] > result["high"]), dtype="boolean")
    result["is_outside"] = is_outside.mask(~is_known)
    order = result["change"].abs().sort_values(ascending=False, na_position="last").index
    result = result.drop(columns=["weekday", "level"]).loc[order].astype({occasion: "category"})
    return with_receipts_of(result.reset_index(drop=True), frame)


def _levels(days: DataFrame, by: str) -> Series[Any]:
    """Return the median of the week around each day, for its value of *by*."""
    parts = []
    for _, rows in days.groupby(by, observed=True, dropna=False, sort=False):
        ordered = rows.set_index("timestamp")["value"].sort_index()
        week = ordered.rolling("7D", center=True).median()
        parts.append(rows["timestamp"].map(week[~week.index.duplicated()]))
    return pd.concat(parts) if parts else Series(dtype="float64", index=days.index)
