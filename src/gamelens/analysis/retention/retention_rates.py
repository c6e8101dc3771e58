"""How many new players come back, and how sure we can be.

Reads the frame of `Client.retention`: timestamp (datetime64[us, UTC], the install day), age (Int64, days), the split
(category), retention (float64, 0 to 1, NA where the day has not come), installs (Int64), returned (Int64).
"""

from __future__ import annotations

from math import nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame, Series

from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of, concat_groups
from gamelens.analysis.retention.day_variation import chance_of_days, day_variance, effective_installs
from gamelens.analysis.tidy_frames import dimension_columns, ratio, sum_over, with_ids, with_receipts_of
from gamelens.errors import BadQuery

_COLUMNS = ("timestamp", "age", "retention", "installs", "returned")


def is_retention_frame(frame: DataFrame) -> bool:
    """True for a frame that `Client.retention` made."""
    return all(name in frame for name in _COLUMNS)


def pooled(frame: DataFrame, by: str | None = None) -> DataFrame:
    """One row for each install day, age and value of *by*; other splits pooled, weighted by installs.

    Columns: timestamp (datetime64[us, UTC]), age (Int64), *by* (category), retention (float64, 0 to 1, NA where the
    day has not come or nobody installed), installs (Int64), returned (Int64, NA where the day has not come).
    """
    return _pooled(frame, ["timestamp", "age", *with_ids(frame, by)])


def cohort_matrix(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Retention (float64, 0 to 1) with the install day as index and one column for each age.

    NaN where the day has not come. With *by*, the index has two levels: the value, then the install day; without it a
    split in the frame is pooled, weighted by installs.
    """
    cohorts = pooled(frame, by)
    index = [*([by] if by else []), "timestamp"]
    matrix = cohorts.set_index([*index, "age"])["retention"].unstack("age")
    return with_receipts_of(matrix.sort_index(axis=1), frame)


def average_curve(
    frame: DataFrame, by: str | None = None, *, confidence: float = 0.95, widened: bool = False
) -> DataFrame:
    """Share of all installs that came back at each age, with a Wilson interval.

    A cohort counts at an age only when that day has come, so later ages rest on fewer installs.

    The interval is about the players of these install days: it holds what chance does to them. Where days differ more
    than chance explains (`day_spread`), it says too little about other days to come, the less the larger the cohorts.
    *widened* counts only as many installs as would be as uncertain by chance alone; with fewer than ten install days
    the spread itself is a guess, and so is that interval.

    Columns: *by* (category), age (Int64, days), retention, low, high (float64, 0 to 1), installs, returned (Int64),
    cohorts (Int64, install days that have reached the age).
    """
    split = with_ids(frame, by)
    known = frame[frame["retention"].notna() & (frame["installs"] > 0)]
    curve = _pooled(known, [*split, "age"])
    reached = known.groupby([*split, "age"], observed=True, dropna=False)["timestamp"].nunique()
    curve = curve.merge(reached.astype("Int64").rename("cohorts").reset_index(), on=[*split, "age"])
    curve = curve.merge(_effective(frame, by), on=[*split, "age"], how="left")
    trials = curve["effective" if widened else "installs"].astype("float64")
    curve["low"], curve["high"] = wilson(curve["retention"] * trials, trials, confidence=confidence)
    order = [*split, "age", "retention", "low", "high", "installs", "returned", "cohorts"]
    return with_receipts_of(curve[order].sort_values([*split, "age"], ignore_index=True), frame)


def day_spread(frame: DataFrame, by: str | None = None) -> DataFrame:
    """How far install days lie from the common curve beyond what chance explains.

    Columns: *by* (category), cohorts (Int64, install days that have reached an age), spread (float64, standard
    deviation of a day's retention, relative to it: 0.1 is a D1 of 40 % that is 36 to 44 % on two days of three; 0 where
    chance explains all), p_value (float64, how often chance alone would move the first age's shares as far apart).
    With fewer than two install days both are NA.
    """
    blocks = [(key, _spread(cohorts)) for key, cohorts in cohorts_of(frame, by)]
    empty = DataFrame({"cohorts": Series(dtype="Int64")}).assign(spread=0.0, p_value=0.0)
    return with_receipts_of(concat_groups(frame, by, blocks, like=empty), frame)


def by_half(frame: DataFrame) -> DataFrame:
    """Return *frame* with a column that tells earlier from later install days.

    Columns: those of the frame, and half (category: earlier, later), cut in the middle. The later half has no ages its
    cohorts have not reached.
    """
    days = frame["timestamp"].drop_duplicates().sort_values()
    is_later = frame["timestamp"] >= days.iloc[len(days) // 2] if len(days) > 1 else frame["timestamp"].isna()
    halves = is_later.map({False: "earlier", True: "later"})
    return with_receipts_of(
        frame.assign(half=pd.Categorical(halves, categories=["earlier", "later"], ordered=True)), frame
    )


def intervals_are_disjoint(first: Series[Any], second: Series[Any]) -> bool:
    """Whether the intervals of two rows of `average_curve` do not touch, so that chance alone hardly explains it.

    False where one of them is not known. Two 95 % intervals that touch a little may still differ: this is careful.
    """
    ends = first["low"], first["high"], second["low"], second["high"]
    if any(pd.isna(end) for end in ends):
        return False
    return bool(first["high"] < second["low"] or second["high"] < first["low"])


def cohort_sizes(frame: DataFrame, by: str | None = None) -> DataFrame:
    """New players of each install day.

    Columns: timestamp (datetime64[us, UTC]), *by* (category), installs (Int64).
    """
    keys = ["timestamp", *dimension_columns(frame)]
    sizes = frame.groupby(keys, observed=True, dropna=False)["installs"].max().reset_index()
    return with_receipts_of(sum_over(sizes, ["timestamp", *with_ids(frame, by)], ["installs"]), frame)


def wilson(
    successes: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson score interval of a share: low and high (0 to 1), NaN where there was no trial."""
    if not 0 < confidence < 1:
        raise BadQuery("confidence", confidence, "must lie between 0 and 1")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    n = np.asarray(trials, dtype="float64")
    n = np.where(n > 0, n, np.nan)
    share = np.asarray(successes, dtype="float64") / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def _spread(cohorts: CohortTriangle) -> DataFrame:
    days = len(cohorts.installs)
    spread = sqrt(day_variance(cohorts)) if days > 1 else nan
    return DataFrame({"cohorts": pd.array([days], dtype="Int64"), "spread": spread, "p_value": chance_of_days(cohorts)})


def _effective(frame: DataFrame, by: str | None) -> DataFrame:
    """Effective installs at each age."""
    empty = DataFrame({"age": Series(dtype="Int64"), "effective": Series(dtype="float64")})
    blocks = [
        (key, DataFrame({"age": cohorts.ages, "effective": effective_installs(cohorts, day_variance(cohorts))}))
        for key, cohorts in cohorts_of(frame, by)
    ]
    return concat_groups(frame, by, blocks, like=empty).astype({"age": "Int64"})


def _pooled(frame: DataFrame, keys: list[str]) -> DataFrame:
    known = frame["retention"].notna()
    parts = frame.assign(returned=frame["returned"].where(known), reached=frame["installs"].where(known))
    columns = ["installs", "returned", "reached"]
    sums = parts.groupby(keys, observed=True, dropna=False)[columns].sum(min_count=1).reset_index()
    sums["retention"] = ratio(sums["returned"], sums["reached"])
    return with_receipts_of(sums[[*keys, "retention", "installs", "returned"]], frame)
