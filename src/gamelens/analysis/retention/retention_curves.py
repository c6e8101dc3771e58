"""Families of retention curves by age, and their fit to counts.

`BG_BB`: a player plays on a day with probability p ~ Beta while active, and before each day leaves for good with
probability theta ~ Beta, so D-n = E[p] E[(1 - theta)^n] (Fader, Hardie and Shang 2010, for one age at a time).
`SHIFTED_BG` is the same with p = 1 (shifted beta-geometric, Fader and Hardie 2007). `POWER_LAW` is D-n = D1 / n^b, a
straight line on two logarithmic scales. `WEIBULL` is D-n = a exp(-r n^k), a stretched exponential: all players are
alike, and the loss slows down with age by itself. Its tail is the thinnest of the four; the power law has the
thickest.

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

_BELOW_ONE: Final = -1e-9
"""Largest logarithm of a share, so that nobody who left has a logarithm too.

Numerical: a share of 1 less a billionth.
"""


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


@dataclass(frozen=True, eq=False, slots=True)
class AveragedCurve(FittedCurve):
    """A curve whose draws are of several families, each as often as its weight says.

    Attributes:
        rivals: the families as fitted, this one among them.
        weights: probability of each, in sum 1.
    """

    rivals: tuple[FittedCurve, ...]
    weights: tuple[float, ...]

    def draws(self, ages: Ages, *, count: int, rng: np.random.Generator) -> Floats:
        """Return retention at *ages* of *count* curves of all families, shape (count, ages)."""
        places = rng.choice(len(self.rivals), size=count, p=self.weights)
        drawn = np.empty((count, len(ages)))
        for place, rival in enumerate(self.rivals):
            at = places == place
            drawn[at] = rival.draws(ages, count=int(at.sum()), rng=rng)
        return drawn


def fit(curve: RetentionCurve, cohorts: CohortTriangle, *, variance: Floats | float = 0.0) -> FittedCurve:
    """Fit *curve* to the binomial counts of *cohorts*, cohort by cohort and age by age.

    Cells of one age have one share in common, so their sums are sufficient. The cells are not independent, and
    neither is the uncertainty: ages share players, and days that differ by *variance* add theirs (a sandwich estimate).
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
    best = _log_likelihoods(reached, returned, np.clip(cohorts.shares(), 1e-300, 1 - 1e-16))
    return 2 * float((best - _log_likelihoods(reached, returned, fitted.shares(cohorts.ages))).sum())


def lack_of_fit(fitted: FittedCurve, cohorts: CohortTriangle, *, noise: Floats) -> float:
    """Return the chi-squared distance of the counts from the family of *fitted*.

    It is the squared residuals that no small step of the parameters removes, and the distance from the prior. *noise*
    is the covariance of the returned players by age (`chance_and_days`), the same for the families to be compared.
    """
    reached, returned = cohorts.totals_by_age()
    logs, slopes = fitted.curve.shape(fitted.point, cohorts.ages)
    expected = reached * np.exp(np.minimum(logs, _BELOW_ONE))
    whitening = np.linalg.inv(np.linalg.cholesky(noise))
    centre, spread = np.array(fitted.curve.centre), np.array(fitted.curve.spread)
    left = np.concatenate([whitening @ (returned - expected), (centre - fitted.point) / spread])
    steps = np.vstack([whitening @ (expected[:, None] * slopes), np.diag(1 / spread)])
    left -= steps @ np.linalg.lstsq(steps, left, rcond=None)[0]
    return float(left @ left)


def _most_likely_point(curve: RetentionCurve, ages: Ages, reached: Floats, returned: Floats) -> Floats:
    """Return the parameters of the largest posterior, as least squares of deviances.

    Half the sum of their squares, with the offsets from the prior's centre, is minus the log posterior.
    """
    from scipy.optimize import least_squares

    centre, spread = np.array(curve.centre), np.array(curve.spread)
    best = _log_likelihoods(reached, returned, np.clip(returned / reached, 1e-300, 1 - 1e-16))

    def residuals(point: Floats) -> Floats:
        shares = curve.shares(point, ages)
        misfits = 2 * (best - _log_likelihoods(reached, returned, shares))
        signs = np.sign(reached * shares - returned)
        return np.concatenate([signs * np.sqrt(np.maximum(misfits, 0)), (point - centre) / spread])

    def slopes_of(point: Floats) -> Floats:
        logs, slopes = curve.shape(point, ages)
        shares, at = np.exp(np.minimum(logs, _BELOW_ONE)), residuals(point)[: len(ages)]
        exact = (reached * shares - returned) / (1 - shares)
        nearly = np.sqrt(reached * shares / (1 - shares))  # the limit where the curve meets the count
        factors = np.where(np.abs(at) > 1e-5, exact / np.where(at, at, 1.0), nearly)
        return np.vstack([factors[:, None] * slopes, np.diag(1 / spread)])

    point: Floats = least_squares(residuals, centre, slopes_of, method="lm", xtol=1e-10, ftol=1e-12).x
    return point


def _log_likelihoods(reached: Floats, returned: Floats, shares: Floats) -> Floats:
    values: Floats = returned * np.log(shares) + (reached - returned) * np.log1p(-shares)
    return values


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


def _weibull(point: Floats, ages: Ages) -> tuple[Floats, Floats]:
    """Return log shares and slopes of the Weibull curve."""
    activity, rate, power = _inverse_logit(point[..., :1]), np.exp(point[..., 1:2]), np.exp(point[..., 2:3])
    lost = rate * ages**power
    by_activity = np.broadcast_to(1 - activity, lost.shape)
    return np.log(activity) - lost, np.stack([by_activity, -lost, -lost * power * np.log(ages)], axis=-1)


def _inverse_logit(logit: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
    return share


BG_BB: Final = RetentionCurve("BG/BB", _bg_bb, centre=(0.4, -0.5, 0.5), spread=(1.5, 2.0, 1.5))
"""Parameters: logit of E[p], logit of E[theta], log of gamma + delta.

The larger gamma + delta, the more alike players are in leaving.

Derived: two standard deviations of the prior are wider than any published game; it bounds what counts hardly determine.
"""

SHIFTED_BG: Final = RetentionCurve("shifted beta-geometric", _shifted_bg, centre=(0.8, 0.0), spread=(2.0, 1.5))
"""Parameters: logit of E[theta], log of gamma + delta.

Derived: two standard deviations of the prior are wider than any published game; it bounds what counts hardly determine.
"""

POWER_LAW: Final = RetentionCurve("power law", _power_law, centre=(-1.0, -0.4), spread=(2.0, 1.5))
"""Parameters: logit of D1, log of the power.

Derived: two standard deviations of the prior are wider than any published game; it bounds what counts hardly determine.
"""

WEIBULL: Final = RetentionCurve("Weibull", _weibull, centre=(1.0, -1.0, -0.9), spread=(2.5, 1.5, 0.7))
"""Parameters: logit of a, log of r, log of k.

Derived: two standard deviations of the prior are wider than any published game; it bounds what counts hardly determine.
"""

CURVES: Final = (BG_BB, SHIFTED_BG, WEIBULL, POWER_LAW)
