"""Test of whether later installs come back more or less often than earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.rows import each_row
from gamelens.analysis.over_days import FEWEST_DAYS, trend_over_days
from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of
from gamelens.analysis.retention.constants import DRIFT_STEPS
from gamelens.analysis.retention.day_variation import chance_by_cohort
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames import dimension_columns, with_ids
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns

Floats = NDArray[np.float64]


@requires(frame=RETENTION)
@returns(
    KEYS,
    between(
        named("ratio", about="0.8 is a fifth less"),
        "NA with fewer than `over_days.FEWEST_DAYS` install days",
        low="low",
        high="high",
    ),
    named("days", about="install days"),
)
def drift(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return for each value of *by* how retention changes over the install days.

        cohorts = lens.retention([1, 3, 7], by=["game", "country_code"], over="last 28 complete days")
        retention.drift(cohorts, by="game")

    Each install day has one level, its retention relative to the others at the ages they share, within each segment of
    the frame's other dimensions: a shift between games is not drift. A straight line through the levels gives the
    retention of the last install day as a ratio of the first one's. Its interval comes from the days around the line,
    however alike successive ones are (`over_days`), and all intervals hold together (Bonferroni). A trend that comes
    from who installs (campaigns that are no dimension of the frame) counts as well.

    Claims: "retention drift", one a row.

    Raises:
        BadQuery: *frame* is not a frame of `retention()`.
    """
    names, splits = with_ids(frame, by), dimension_columns(frame)
    groups: dict[Any, list[CohortTriangle]] = {}
    for key, cohorts in cohorts_of(frame, [*dict.fromkeys([*names, *splits])]):
        value = key[names.index(by)] if by else None
        groups.setdefault(None if value is None or pd.isna(value) else value, []).append(cohorts)
    confidence = 1 - LEVEL / max(1, len(groups))
    rows = [
        (
            value,
            *_last_to_first(segments, confidence),
            len(set().union(*(segment.days.tolist() for segment in segments))),
        )
        for value, segments in groups.items()
    ]
    result = DataFrame(rows, columns=[by or "", "ratio", "low", "high", "days"])
    return result if by else result.drop(columns="")


@reads("retention.drift", row_by_row=True)
def _read_drift(changes: DataFrame, by: str | None) -> Iterator[Finding]:
    """Say of each group whether players who installed later come back more or less."""
    yield from each_row(changes, by, "ratio", kind="retention drift", numbers=_of_drift)


def _of_drift(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {"days": row["days"], "fewest": FEWEST_DAYS}


def _last_to_first(segments: Sequence[CohortTriangle], confidence: float) -> tuple[float, float, float]:
    """Return retention of the last install day over the first, with its interval, or NaN."""
    days = np.unique(np.concatenate([cohorts.days[cohorts.installs.any(axis=1)] for cohorts in segments]))
    if len(days) < FEWEST_DAYS or not any(cohorts.returned.any() for cohorts in segments):
        return nan, nan, nan
    returned, expected, variance = _levels(segments, days)
    is_known = expected > 0
    days, levels = days[is_known], returned[is_known] / expected[is_known]
    # A day on which all players came back could have had one who did not.
    chance = np.maximum(variance[is_known], 0.25) / expected[is_known] ** 2
    excess = max(0.0, float(np.average((levels - 1) ** 2 - chance, weights=expected[is_known])))
    weights = 1 / (chance + excess)
    mean = float(np.average(levels, weights=weights))
    rise = trend_over_days(levels / mean, weights, chance, days)
    since = (days - np.average(days, weights=weights)) / (days[-1] - days[0])
    changes = rise.log[0] + np.array([0.0, -1.0, 1.0]) * rise.half_width(confidence)[0]
    ratio, low, high = (np.maximum(1 + changes * since[-1], 0.0) / np.maximum(1 + changes * since[0], 1e-9)).tolist()
    return ratio, low, high


def _levels(segments: Sequence[CohortTriangle], days: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return players who returned on each of *days*, those expected at a level of 1, and their variance by chance.

    Levels of the days, which all segments share, and retention by age of each segment are fitted in turn until they no
    longer change: the expected counts are installs x level x share. A cohort that has reached early ages only is
    compared with the others at those.
    """
    places = [np.searchsorted(days, cohorts.days) for cohorts in segments]
    returned, levels = np.zeros(len(days)), np.ones(len(days))
    for place, cohorts in zip(places, segments, strict=True):
        np.add.at(returned, place, cohorts.returned.sum(axis=1))
    shares = [np.nan_to_num(cohorts.shares()) for cohorts in segments]
    for _ in range(DRIFT_STEPS):
        before, expected = levels, np.zeros(len(days))
        for place, cohorts, share in zip(places, segments, shares, strict=True):
            np.add.at(expected, place, cohorts.installs @ share)
        levels = np.divide(returned, expected, out=np.ones_like(levels), where=expected > 0)
        for at, (place, cohorts) in enumerate(zip(places, segments, strict=True)):
            reached = levels[place] @ cohorts.installs
            shares[at] = np.divide(cohorts.returned.sum(axis=0), reached, out=np.zeros_like(reached), where=reached > 0)
        if np.allclose(levels, before, rtol=1e-8):
            break
    expected, variance = np.zeros(len(days)), np.zeros(len(days))
    for place, cohorts, share in zip(places, segments, shares, strict=True):
        of_segment = cohorts.installs @ share
        np.add.at(expected, place, of_segment)
        np.add.at(variance, place, np.nan_to_num(chance_by_cohort(cohorts, share)) * of_segment**2)
    return returned, expected, variance
