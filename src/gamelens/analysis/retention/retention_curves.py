"""Curves of retention by age, and how they are fitted to what has been counted.

`BG_BB`: a player plays on a day with chance p ~ Beta while alive, and before each day drops out for good with chance
theta ~ Beta, so D-n = E[p] E[(1 - theta)^n] (Fader, Hardie and Shang 2010, for one age at a time). `SHIFTED_BG` is the
same with everybody who is alive playing (shifted beta-geometric, Fader and Hardie 2007). `POWER_LAW` is D-n = D1 / n^b,
a straight line on paper with two logarithmic scales.

Parameters are looked for where nothing can leave its range: shares as logits, sizes as logarithms. A weak prior (a
normal distribution there, two sigma of it wider than any published game) keeps a parameter that the counts say little
about from running away: with two weeks of days, BG/BB can trade fewer plays for a slower loss almost freely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.retention.cohort_triangles import CohortTriangle
from gamelens.analysis.retention.day_variation import covariance

Floats = NDArray[np.float64]
Ages = NDArray[np.int64]
Shape = Callable[[Floats, Ages], tuple[Floats, Floats]]
"""Logarithms of the shares (..., ages) at points (..., parameters), and their slopes, parameters last."""

_STEPS: Final = 100
_LONGEST_STEP: Final = 2.0
_STILL: Final = 1e-10
_BELOW_ONE: Final = -1e-9


@dataclass(frozen=True)
class RetentionCurve:
    """A family of curves: its *shape*, and the prior of each parameter (*centre*, *spread*)."""

    name: str
    shape: Shape
    centre: tuple[float, ...]
    spread: tuple[float, ...]

    @property
    def fewest_ages(self) -> int:
        """One age more than parameters: fewer would go through every point and say nothing."""
        return len(self.centre) + 1

    def shares(self, point: Floats, ages: Ages) -> Floats:
        """Retention at *ages* of one point, or of each of several."""
        shares: Floats = np.exp(np.minimum(self.shape(point, ages)[0], _BELOW_ONE))
        return shares


@dataclass(frozen=True, eq=False, slots=True)
class FittedCurve:
    """A curve where the counts are likeliest: its *point*, and how uncertain that is (*covariance*)."""

    curve: RetentionCurve
    point: Floats
    covariance: Floats

    def shares(self, ages: Ages) -> Floats:
        """Retention at *ages*."""
        return self.curve.shares(self.point, ages)

    def draws(self, ages: Ages, *, count: int, rng: np.random.Generator) -> Floats:
        """Retention at *ages* of *count* curves that may as well be the true one, shape (count, ages)."""
        values, vectors = np.linalg.eigh(self.covariance)
        strays = rng.standard_normal((count, len(self.point))) * np.sqrt(np.maximum(values, 0))
        return self.curve.shares(self.point + strays @ vectors.T, ages)


def fit(curve: RetentionCurve, cohorts: CohortTriangle, *, variance: float = 0.0) -> FittedCurve:
    """*curve* where the binomial counts of *cohorts* are likeliest, cohort by cohort and age by age.

    Cells of one age have one share in common, so their sum says all they know of it. The uncertainty is not that of
    independent cells: ages share players, and days that differ by *variance* add theirs (a sandwich estimate).
    """
    reached, returned = cohorts.known()
    spread = np.array(curve.spread)
    point = _likeliest(curve, cohorts.ages, reached, returned)
    logs, slopes = curve.shape(point, cohorts.ages)
    shares = np.exp(np.minimum(logs, _BELOW_ONE))
    pulled = slopes / (1 - shares)[:, None]
    inverse = np.linalg.inv((pulled.T * (reached * shares)) @ slopes + np.diag(spread**-2))
    noise = pulled.T @ covariance(cohorts, shares, variance) @ pulled + np.diag(spread**-2)
    return FittedCurve(curve, point, inverse @ noise @ inverse)


def misfit(fitted: FittedCurve, cohorts: CohortTriangle) -> float:
    """Binomial deviance of the counts at each age from *fitted*: 0 where it goes through every point."""
    reached, returned = cohorts.known()
    best = _log_likelihood(reached, returned, np.clip(cohorts.shares(), 1e-300, 1 - 1e-16))
    return 2 * (best - _log_likelihood(reached, returned, fitted.shares(cohorts.ages)))


def _likeliest(curve: RetentionCurve, ages: Ages, reached: Floats, returned: Floats) -> Floats:
    """Fisher's scoring with steps damped until they help (Levenberg, Marquardt)."""
    centre, weight = np.array(curve.centre), np.array(curve.spread) ** -2.0
    point, damping, best = centre, 1e-2, -np.inf
    for _ in range(_STEPS):
        logs, slopes = curve.shape(point, ages)
        shares = np.exp(np.minimum(logs, _BELOW_ONE))
        value = _log_posterior(curve, point, ages, reached, returned)
        slope = slopes.T @ ((returned - reached * shares) / (1 - shares)) - weight * (point - centre)
        bend = (slopes.T * (reached * shares / (1 - shares))) @ slopes + np.diag(weight)
        while damping < 1e12:
            step = np.linalg.solve(bend + damping * np.diag(np.diag(bend)), slope)
            tried = point + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            best = _log_posterior(curve, tried, ages, reached, returned)
            if best >= value:
                break
            damping *= 5
        else:
            return point
        point, damping = tried, damping / 5
        if best - value < _STILL * (1 + abs(value)):
            break
    return point


def _log_posterior(curve: RetentionCurve, point: Floats, ages: Ages, reached: Floats, returned: Floats) -> float:
    strays = (point - np.array(curve.centre)) / np.array(curve.spread)
    return _log_likelihood(reached, returned, curve.shares(point, ages)) - 0.5 * float(strays @ strays)


def _log_likelihood(reached: Floats, returned: Floats, shares: Floats) -> float:
    return float(returned @ np.log(shares) + (reached - returned) @ np.log1p(-shares))


def _bg_bb(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    plays = _share(point[..., :1])
    logs, slopes = _shifted_bg(point[..., 1:], ages)
    more = np.broadcast_to((1 - plays)[..., None], (*logs.shape, 1))
    return np.log(plays) + logs, np.concatenate([more, slopes], axis=-1)


def _shifted_bg(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    """E[(1 - theta)^n] is a product over the days before: (delta + k) / (gamma + delta + k)."""
    leave, size = _share(point[..., :1]), np.exp(point[..., 1:2])
    day, at = np.arange(int(ages.max(initial=1))), ages - 1
    stay = (1 - leave) * size + day
    logs = np.cumsum(np.log(stay / (size + day)), axis=-1)[..., at]
    by_leave = np.cumsum(-size / stay, axis=-1)[..., at] * leave * (1 - leave)
    by_size = np.cumsum((1 - leave) / stay - 1 / (size + day), axis=-1)[..., at] * size
    return logs, np.stack([by_leave, by_size], axis=-1)


def _power_law(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    first, power, logs = _share(point[..., :1]), np.exp(point[..., 1:2]), np.log(ages)
    by_first = np.broadcast_to(1 - first, (*point.shape[:-1], len(ages)))
    return np.log(first) - power * logs, np.stack([by_first, -power * logs], axis=-1)


def _share(logit: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
    return share


BG_BB: Final = RetentionCurve("BG/BB", _bg_bb, centre=(0.4, -0.5, 0.5), spread=(1.5, 2.0, 1.5))
"""Parameters: logit of E[p], logit of E[theta], log of gamma + delta (how alike players are in leaving)."""

SHIFTED_BG: Final = RetentionCurve("shifted beta-geometric", _shifted_bg, centre=(0.8, 0.0), spread=(2.0, 1.5))
"""Parameters: logit of E[theta], log of gamma + delta."""

POWER_LAW: Final = RetentionCurve("power law", _power_law, centre=(-1.0, -0.4), spread=(2.0, 1.5))
"""Parameters: logit of D1, log of the power."""

CURVES: Final = (BG_BB, SHIFTED_BG, POWER_LAW)
