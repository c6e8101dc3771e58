"""Special days: a holiday and the days around it, compared with other weeks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Clause, Finding, reads
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames import ratio
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

FEWEST_OTHERS: Final = 3
"""Ordinary days of the same weekday that a comparison needs, and days around each of them."""

_WEEK: Final = 7
_DAY: Final = pd.Timedelta(days=1)
_NUMBERS: Final = ["usual", "low", "high", "others", "days"]


_FEW: Final = "with fewer than `FEWEST_OTHERS` others"


@requires(frame=FrameRequirements(every=("day",), takes_gaps=True, is_split_by=True))
@returns(
    "timestamp",
    KEYS,
    Column("value", "number", na="of a day without an answer"),
    between(
        Column("usual", "number", about="the median of the others", na=_FEW),
        "their range; all at the level of the days around",
        low="low",
        high="high",
    ),
    Column("others", "count"),
    named("change", about="0.1 is 10% above usual", na=_FEW),
    Column("chance", "share", about="that an ordinary day lies outside the range", na=_FEW),
    named("is_outside", na=_FEW),
    named("days", about="length of the period"),
)
def compare_with_weekdays(
    frame: DataFrame, value: str, *, by: str = "country_code", occasion: str = "holiday"
) -> DataFrame:
    """Return every occasion compared with the other days of its weekday, largest change first.

        players = lens.query("user_unique", by="country_code", over="last 28 complete days")
        calendar = gl.join(players, "holidays.csv", on={"timestamp": "date", "country_code": "country"}).frame
        outside_data.compare_with_weekdays(calendar, "user_unique")

    The frame is daily, with the *occasion* joined to it (null on ordinary days); days are compared within one value of
    *by*. Special days in a row are one period, and each of them is divided by the median of the ordinary days in the
    week before and the week after that period. So neither the length of a holiday nor the growth of a game hides a
    change. Ordinary days of the same weekday are measured as if a period of the same length lay there, and from the
    same neighbours: an occasion on the last day of the frame and its others have earlier ones only.

    An ordinary day lies outside the range of n others with probability 2 / (n + 1): the sum of *chance* is the number
    of occasions that stand out by luck alone.

    Claims: "special days".

    Raises:
        BadQuery: a day has several rows for one value of *by*.
    """
    if by == "timestamp":
        raise BadQuery(
            "by", by, 'is the day, and days are compared within one group: name a column such as "country_code"'
        )
    if frame.duplicated(["timestamp", by]).any():
        raise BadQuery("frame", by, "has several rows for one day: add up the other dimensions first")
    days = frame[["timestamp", by, occasion]].assign(value=frame[value].astype("float64"))
    days = days.sort_values("timestamp").reset_index(drop=True)
    numbers = np.full((len(days), len(_NUMBERS)), np.nan)
    for _, rows in days.groupby(by, observed=True, dropna=False, sort=False):
        numbers[rows.index] = _compared(rows, rows[occasion].notna().to_numpy(dtype=bool))
    result = days.assign(**dict(zip(_NUMBERS, numbers.T, strict=True)))[days[occasion].notna()]
    result = result.astype({"others": "Int64"})
    result["change"] = ratio(result["value"] - result["usual"], result["usual"])
    result["chance"] = (2 / (result["others"].astype("float64") + 1)).where(result["usual"].notna())
    is_outside = Series((result["value"] < result["low"]) | (result["value"] > result["high"]), dtype="boolean")
    result["is_outside"] = is_outside.mask(result["change"].isna())
    return result.sort_values("change", key=lambda change: -change.abs(), kind="stable", ignore_index=True)


@reads("outside_data.compare_with_weekdays")
def _read_special_days(special: DataFrame, by: str, occasion: str) -> Iterator[Finding]:
    """Say which occasions lie outside what their weekday usually brings, and whether that is more than chance."""
    judged = special[special["usual"].notna()]
    outside = judged[judged["is_outside"].astype("bool")]
    numbers = {"occasion": occasion, "judged": len(judged), "luck": float(judged["chance"].sum())}
    if judged.empty or outside.empty:
        yield Finding(kind="special days", case="unknown" if judged.empty else "none", unit="days", numbers=numbers)
        return
    counts = np.ones(1)  # the distribution of how many of them chance puts outside
    for chance in judged["chance"]:
        counts = np.convolve(counts, [1 - chance, chance])
    is_more = counts[len(outside) :].sum() < LEVEL
    rows = outside[[occasion, by, "change"]].set_axis(["name", "place", "change_of"], axis=1).to_dict("records")
    yield Finding(
        kind="special days",
        case="beyond_chance" if is_more else "within_chance",
        direction="higher" if is_more else "no clear difference",
        size=float(len(outside)),
        unit="days",
        judged="other days",
        numbers={
            **numbers,
            "names": [Clause("named", {str(key): value for key, value in row.items()}) for row in rows],
        },
    )


def _compared(rows: DataFrame, is_special: NDArray[np.bool_]) -> Floats:
    """Return `_NUMBERS` of each day of one series, NaN for ordinary days."""
    places = ((rows["timestamp"] - rows["timestamp"].min()) // _DAY).to_numpy(dtype="int64")
    ordinary = np.full(places[-1] + 1, np.nan)
    ordinary[places[~is_special]] = rows["value"].to_numpy()[~is_special]
    numbers = np.full((len(rows), len(_NUMBERS)), np.nan)
    at = places[is_special]
    period = np.cumsum(np.diff(at, prepend=at[:1]) > 1)
    first, length = np.unique(period, return_index=True, return_counts=True)[1:]
    starts, lengths = at[first][period], length[period]
    level = ordinary / _weekday_factors(ordinary)
    usual = [_usual(ordinary, level, *event) for event in zip(at, starts, lengths, strict=True)]
    numbers[is_special] = np.column_stack([np.array(usual).reshape(-1, 4), lengths])
    return numbers


def _usual(ordinary: Floats, level: Floats, place: int, start: int, length: int) -> tuple[float, float, float, int]:
    """Return median, low and high of the days like *place*, at its level, and their number.

    *ordinary* are the ordinary values by day and *level* the same without the differences of weekdays; the period
    begins at *start* and has *length* days.
    """
    offsets = np.concatenate([np.arange(-_WEEK, 0), np.arange(length, length + _WEEK)]) + start - place
    offsets = offsets[~np.isnan(_neighbours(level, np.array([place]), offsets)[0])]
    others = np.arange(place % _WEEK, len(level), _WEEK)
    others = others[~np.isnan(level[others])]
    around = _neighbours(level, others, offsets)
    is_known = (~np.isnan(around)).sum(axis=1) >= FEWEST_OTHERS
    if is_known.sum() < FEWEST_OTHERS:
        return np.nan, np.nan, np.nan, int(is_known.sum())
    level_around = np.nanmedian(around[is_known], axis=1)
    if not level_around.all():  # days beside days with nothing have no relative size
        return np.nan, np.nan, np.nan, int(is_known.sum())
    relative = ordinary[others[is_known]] / level_around
    low, usual, high = np.quantile(relative, [0, 0.5, 1]) * np.median(level[place + offsets])
    return usual, low, high, len(relative)


def _weekday_factors(ordinary: Floats) -> Floats:
    """Return for each day how its weekday compares with the week around it, by ordinary days.

    With them two days can be compared that do not have the same weekdays as neighbours.
    """
    week = Series(ordinary).rolling(_WEEK, center=True).median()
    weekday = np.arange(len(ordinary)) % _WEEK
    factors = (Series(ordinary) / week.where(week > 0)).groupby(weekday).transform("median")
    return factors.where(factors > 0).fillna(1.0).to_numpy()


def _neighbours(values: Floats, places: Places, offsets: Places) -> Floats:
    """Return the values at *offsets* from each of *places*, NaN beyond the ends."""
    at = places[:, None] + offsets
    inside = (at >= 0) & (at < len(values))
    return np.where(inside, values[np.clip(at, 0, len(values) - 1)], np.nan)
