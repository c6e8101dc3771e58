"""Families of retention curves by age, and their fit to counts.

`BG_BB`: a player plays on a day with probability p ~ Beta while active, and before each day leaves for good with
probability theta ~ Beta, so D-n = E[p] E[(1 - theta)^n] (Fader, Hardie and Shang 2010, for one age at a time).
`SHIFTED_BG` is the same with p = 1 (shifted beta-geometric, Fader and Hardie 2007). `POWER_LAW` is D-n = D1 / n^b, a
straight line on two logarithmic scales.

The fit uses unbounded parameters: shares as logits, sizes as logarithms. A weak prior (a normal distribution there, two
sigma of it wider than any published game) bounds a parameter that the counts hardly determine: with two weeks of days,
BG/BB can exchange less activity for slower loss almost freely.
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
"""Function from points (..., parameters) and ages to log shares and their slopes.

Log shares have shape (..., ages), slopes (..., ages, parameters).
"""

_STEPS: Final = 100
_LONGEST_STEP: Final = 2.0
_CONVERGED: Final = 1e-10
_BELOW_ONE: Final = -1e-9


@dataclass(frozen=True)
class RetentionCurve:
    """A family of curves.

    Attributes:
        name: name of the model in frames and sentences.
        shape: log shares and their slopes by parameters and ages.
        centre: mean of each parameter's prior.
        spread: standard deviation of each parameter's prior.
    """

    name: str
    shape: Shape
    centre: tuple[float, ...]
    spread: tuple[float, ...]

    @property
    def fewest_ages(self) -> int:
        """Number of ages needed for a fit: one more than parameters, or it would fit every point."""
        return len(self.centre) + 1

    def shares(self, point: Floats, ages: Ages) -> Floats:
        """Return retention at *ages* for one point of parameters, or for each of several."""
        shares: Floats = np.exp(np.minimum(self.shape(point, ages)[0], _BELOW_ONE))
        return shares


@dataclass(frozen=True, eq=False, slots=True)
class FittedCurve:
    """A curve at its most likely parameters.

    Attributes:
        curve: the family of curves.
        point: the most likely parameters.
        covariance: their uncertainty.
    """

    curve: RetentionCurve
    point: Floats
    covariance: Floats

    def shares(self, ages: Ages) -> Floats:
        """Return retention at *ages*."""
        return self.curve.shares(self.point, ages)

    def draws(self, ages: Ages, *, count: int, rng: np.random.Generator) -> Floats:
        """Return retention at *ages* of *count* curves drawn around the fit, shape (count, ages)."""
        values, vectors = np.linalg.eigh(self.covariance)
        offsets = rng.standard_normal((count, len(self.point))) * np.sqrt(np.maximum(values, 0))
        return self.curve.shares(self.point + offsets @ vectors.T, ages)


def fit(curve: RetentionCurve, cohorts: CohortTriangle, *, variance: float = 0.0) -> FittedCurve:
    """Fit *curve* to the binomial counts of *cohorts*, cohort by cohort and age by age.

    Cells of one age have one share in common, so their sums are sufficient. The uncertainty is not that of independent
    cells: ages share players, and days that differ by *variance* add theirs (a sandwich estimate).
    """
    reached, returned = cohorts.totals_by_age()
    spread = np.array(curve.spread)
    point = _most_likely_point(curve, cohorts.ages, reached, returned)
    logs, slopes = curve.shape(point, cohorts.ages)
    shares = np.exp(np.minimum(logs, _BELOW_ONE))
    weights = slopes / (1 - shares)[:, None]
    inverse = np.linalg.inv((weights.T * (reached * shares)) @ slopes + np.diag(spread**-2))
    noise = weights.T @ covariance(cohorts, shares, variance) @ weights + np.diag(spread**-2)
    return FittedCurve(curve, point, inverse @ noise @ inverse)


def misfit(fitted: FittedCurve, cohorts: CohortTriangle) -> float:
    """Return the binomial deviance of the counts from *fitted*, 0 through every point."""
    reached, returned = cohorts.totals_by_age()
    best = _log_likelihood(reached, returned, np.clip(cohorts.shares(), 1e-300, 1 - 1e-16))
    return 2 * (best - _log_likelihood(reached, returned, fitted.shares(cohorts.ages)))


def _most_likely_point(curve: RetentionCurve, ages: Ages, reached: Floats, returned: Floats) -> Floats:
    """Return the parameters of the largest posterior.

    Fisher's scoring, with steps damped until they improve it (Levenberg, Marquardt). Analytic slopes make it a few
    iterations, and the prior keeps the system regular.
    """
    centre, weight = np.array(curve.centre), np.array(curve.spread) ** -2.0
    point, damping, best = centre, 1e-2, -np.inf
    for _ in range(_STEPS):
        logs, slopes = curve.shape(point, ages)
        shares = np.exp(np.minimum(logs, _BELOW_ONE))
        value = _log_posterior(curve, point, ages, reached, returned)
        slope = slopes.T @ ((returned - reached * shares) / (1 - shares)) - weight * (point - centre)
        curvature = (slopes.T * (reached * shares / (1 - shares))) @ slopes + np.diag(weight)
        while damping < 1e12:
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), slope)
            candidate = point + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            best = _log_posterior(curve, candidate, ages, reached, returned)
            if best >= value:
                break
            damping *= 5
        else:
            return point
        point, damping = candidate, damping / 5
        if best - value < _CONVERGED * (1 + abs(value)):
            break
    return point


def _log_posterior(curve: RetentionCurve, point: Floats, ages: Ages, reached: Floats, returned: Floats) -> float:
    offsets = (point - np.array(curve.centre)) / np.array(curve.spread)
    return _log_likelihood(reached, returned, curve.shares(point, ages)) - 0.5 * float(offsets @ offsets)


def _log_likelihood(reached: Floats, returned: Floats, shares: Floats) -> float:
    return float(returned @ np.log(shares) + (reached - returned) @ np.log1p(-shares))


def _bg_bb(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    """Return log shares and slopes of the BG/BB curve."""
    activity = _inverse_logit(point[..., :1])
    logs, slopes = _shifted_bg(point[..., 1:], ages)
    by_activity = np.broadcast_to((1 - activity)[..., None], (*logs.shape, 1))
    return np.log(activity) + logs, np.concatenate([by_activity, slopes], axis=-1)


def _shifted_bg(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    """Return log shares and slopes of the shifted beta-geometric curve.

    E[(1 - theta)^n] is a product over the days before: (delta + k) / (gamma + delta + k).
    """
    drop_out, size = _inverse_logit(point[..., :1]), np.exp(point[..., 1:2])
    day, at = np.arange(int(ages.max(initial=1))), ages - 1
    stay = (1 - drop_out) * size + day
    logs = np.cumsum(np.log(stay / (size + day)), axis=-1)[..., at]
    by_leave = np.cumsum(-size / stay, axis=-1)[..., at] * drop_out * (1 - drop_out)
    by_size = np.cumsum((1 - drop_out) / stay - 1 / (size + day), axis=-1)[..., at] * size
    return logs, np.stack([by_leave, by_size], axis=-1)


def _power_law(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    """Return log shares and slopes of the power law."""
    first, power, logs = _inverse_logit(point[..., :1]), np.exp(point[..., 1:2]), np.log(ages)
    by_first = np.broadcast_to(1 - first, (*point.shape[:-1], len(ages)))
    return np.log(first) - power * logs, np.stack([by_first, -power * logs], axis=-1)


def _inverse_logit(logit: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
    return share


BG_BB: Final = RetentionCurve("BG/BB", _bg_bb, centre=(0.4, -0.5, 0.5), spread=(1.5, 2.0, 1.5))
"""Parameters: logit of E[p], logit of E[theta], log of gamma + delta.

The larger gamma + delta, the more alike players are in leaving.
"""

SHIFTED_BG: Final = RetentionCurve("shifted beta-geometric", _shifted_bg, centre=(0.8, 0.0), spread=(2.0, 1.5))
"""Parameters: logit of E[theta], log of gamma + delta."""

POWER_LAW: Final = RetentionCurve("power law", _power_law, centre=(-1.0, -0.4), spread=(2.0, 1.5))
"""Parameters: logit of D1, log of the power."""

CURVES: Final = (BG_BB, SHIFTED_BG, POWER_LAW)
