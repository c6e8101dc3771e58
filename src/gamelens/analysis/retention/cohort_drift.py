"""Test of whether later installs come back more or less often than earlier ones."""

from __future__ import annotations

from math import nan
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens._text import format_number
from gamelens.analysis.claims import Claim, direction_of
from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of
from gamelens.analysis.retention.day_variation import chance_by_cohort, day_variance
from gamelens.analysis.tidy_frames import UNKNOWN, with_ids
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, requires

Floats = NDArray[np.float64]

FEWEST_DAYS: Final = 6
"""Install days that a trend needs."""

_STEPS: Final = 200


@requires(frame=RETENTION)
def drift_claims(frame: DataFrame, by: str | None = None) -> list[Claim]:
    """Return for each value of *by* whether retention changes over the install days.

    Each install day has one level, its retention relative to the others at the ages they share. A straight line through
    the levels, weighted by chance and by how much days differ, gives the retention of the last install day as a ratio
    of the first one's. Its interval is Student's: days that differ for other reasons widen it. A trend that comes from
    who installs (countries, campaigns) counts as well.

    Kind "retention drift", unit "ratio", neutral 1: 0.8 is a fifth less. Fewer than `FEWEST_DAYS` install days are
    "unknown".

    Raises:
        BadQuery: *frame* is not a frame of `retention()`.
    """
    names = with_ids(frame, by)
    claims = []
    for key, cohorts in cohorts_of(frame, by):
        value = key[names.index(by)] if by else None
        claims.append(_claim(cohorts, {by: UNKNOWN if pd.isna(value) else str(value)} if by else {}))
    return claims


def _claim(cohorts: CohortTriangle, subject: dict[str, str]) -> Claim:
    """Return the claim about one group."""
    start = "".join(f"{value}: " for value in subject.values())
    ratio, low, high = _last_to_first(cohorts)
    direction = direction_of(low, high, neutral=1.0)
    days = len(cohorts.installs)
    first, last, change = (format_number(value - 1, "change", places=0) for value in (low, high, ratio))
    words = {
        "higher": f"players who installed later come back more, {change} from the first of {days} install days to the "
        f"last ({first} to {last})",
        "lower": f"players who installed later come back less, {change} from the first of {days} install days to the "
        f"last ({first} to {last})",
        "no clear difference": f"no clear trend over {days} install days: from the first to the last retention changes "
        f"by {first} to {last}",
        "unknown": f"{days} install day{'' if days == 1 else 's'} cannot show a trend of retention, which takes "
        f"{FEWEST_DAYS} or more and players who come back",
    }
    text = words[direction]
    return Claim(
        kind="retention drift",
        subject=subject,
        direction=direction,
        size=ratio,
        low=low,
        high=high,
        unit="ratio",
        text=f"{start or text[:1].upper()}{text if start else text[1:]}.",
    )


def _last_to_first(cohorts: CohortTriangle) -> tuple[float, float, float]:
    """Return retention of the last install day over the first, with its interval, or NaN."""
    from statsmodels.regression.linear_model import WLS

    has_players = cohorts.installs.any(axis=1)
    if has_players.sum() < FEWEST_DAYS or not cohorts.returned.any():
        return nan, nan, nan
    levels, shares = _levels(cohorts)
    variance = chance_by_cohort(cohorts, shares)[has_players] + day_variance(cohorts).pooled
    days = cohorts.days[has_players].astype("float64")
    weights = 1 / variance
    since = days - np.average(days, weights=weights)
    model = WLS(levels[has_players], np.column_stack([np.ones_like(since), since]), weights=weights)
    scale = max(1.0, float(model.fit().scale))  # days that lie closer together than chance do not make one more certain
    line = model.fit(cov_type="fixed scale", cov_kwds={"scale": scale}, use_t=True)
    slopes = np.array([line.params[1], *line.conf_int()[1]])
    middle = max(float(line.params[0]), 1e-9)
    first, last = np.maximum(middle + slopes * since[0], 1e-9), np.maximum(middle + slopes * since[-1], 0.0)
    ratio, low, high = (last / first).tolist()
    return ratio, low, high


def _levels(cohorts: CohortTriangle) -> tuple[Floats, Floats]:
    """Return the level of each cohort and retention by age at level 1.

    Both are fitted in turn until they no longer change: the expected counts are installs x level x share. A cohort that
    has reached early ages only is compared with the others at those.
    """
    levels, shares = np.ones(len(cohorts.installs)), np.nan_to_num(cohorts.shares())
    for _ in range(_STEPS):
        before = levels
        expected = cohorts.installs @ shares
        levels = np.divide(cohorts.returned.sum(axis=1), expected, out=np.ones_like(levels), where=expected > 0)
        reached = levels @ cohorts.installs
        shares = np.divide(cohorts.returned.sum(axis=0), reached, out=np.zeros_like(shares), where=reached > 0)
        if np.allclose(levels, before, rtol=1e-8):
            break
    scale = float(np.average(levels, weights=cohorts.installs @ shares))
    return levels / scale, shares * scale
