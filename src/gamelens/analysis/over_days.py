"""Inference over days: the interval of a ratio whose repetitions are days, however alike successive days are.

How much a day resembles the day before cannot be read off a few weeks. An interval is therefore averaged over what the
days leave open: first-order autocorrelation (`RHOS`), the share of the variance that it carries (`REMEMBERED`; the rest
is chance, smaller on large days) and how much weekdays differ (`WEEKLY`). Each combination is a model that gives
Student's interval by generalised least squares. Its weight is its prior times its restricted likelihood, and the groups
of one frame share the likelihood of the autocorrelation. Everything is on the logarithm of the ratio. Numbers in
brackets are the formulas of the page "Inference over days" (`docs/pages/explanation/method-days.md`). Estimators of
libraries (HAC, fixed-b, block bootstrap, GLM with HAC errors) hold 27 to 87% instead of 95% in a month of such days.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import Index, Series

from gamelens._text import counted
from gamelens.analysis.significance import LEVEL
from gamelens.errors import no_such_name, suggests_names

__all__ = ["day_numbers", "over_days", "over_parts_of_week", "trend_over_days"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counted = Literal["events", "shares"]

FEWEST_DAYS: Final = 7
"""Days without which a side (the period, or each of the two that are compared) has no interval.

Derived: fewer days leave a weekday out, and nothing says what it would have been.
"""
FEWEST_EVENTS: Final = 10
"""Events without which a side of a comparison of counts has no interval.

Derived: the logarithm of a smaller count is skewed; 10 have a standard error of a third, and the normal interval of the
logarithm holds 95% of Poisson counts within a point from there on.
"""
RHOS: Final = {0.0: 0.65, 0.3: 0.05, 0.5: 0.06, 0.7: 0.07, 0.8: 0.07, 0.9: 0.06, 0.95: 0.04}
"""Autocorrelations of days, each with its prior.

Experiment: levels that hold the long-run mean at each autocorrelation, and changes that an oracle finds; the prior of 0
is the trade between the two.
"""
REMEMBERED: Final = {1.0: 0.85, 0.5: 0.15}
"""Shares of the variance between days that the autocorrelation carries, each with its prior.

Experiment: as `RHOS`, on rates of counted events too.
"""
WEEKLY: Final = {0.0: 0.6, 4.0: 0.2, 40.0: 0.2}
"""Variances between weekdays, as multiples of the variance between days, each with its prior.

Experiment: levels of series whose weekdays differ by 40%, and of series whose weekdays are alike.
"""
_SHARE_OF_ALL_DAYS: Final = 0.8
"""Share of the level that the look at all days is given; the look at weekends has the rest.

Experiment: falls on weekends alone that are found and named, and changes of all days that are.
"""
_PARTS_OF_WEEK: Final = {  # and the share of the level that each look is given
    "all days": (frozenset(range(7)), _SHARE_OF_ALL_DAYS),
    "weekends": (frozenset({2, 3}), 1 - _SHARE_OF_ALL_DAYS),
}
_CLEARER: Final = 0.1
"""P-value of a part of the week that is named instead of all days, as a multiple of theirs.

Choice: ten times the evidence, so that a change of all days is rarely told as one of weekends.
"""
_ENOUGH_DAYS: Final = 14
"""Days a side from which on p-values are not multiplied.

Derived: two of each weekday; with one of each a pattern of the week and a change are one and the same.
"""
_FEW_DAYS_FACTOR: Final = 5.0
"""Number by which p-values are multiplied at seven days a side; it falls to 1 at `_ENOUGH_DAYS` in a straight line.

Experiment: changes that are claimed where there is none, 10 days against 10 at every autocorrelation.
"""
_WEEKDAYS: Final = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")  # of day % 7
_MODELS: Final = list(product(RHOS, REMEMBERED, WEEKLY))
_PRIOR: Final = np.log([RHOS[rho] * REMEMBERED[share] * WEEKLY[weekly] for rho, share, weekly in _MODELS])
_STILL: Final = 1e-9
"""Relative difference between days that rounding makes.

Numerical: sums of a million doubles are exact to it.
"""
_SHARED: Final = 0.5
"""Weight of the correlation in other groups, which may differ from the one in this group.

Experiment: pages that claim one of six networks that pay alike, with like and unlike correlations.
"""
_LARGE_DAYS: Final = 3
"""Even parts of the money that make a day large, and how many more such days the upper bound allows for.

Experiment: levels of a few log-normal or Pareto payments that hold the mean, and the width of their intervals.
"""
_NARROW: Final = 1e-9
"""By how much the bounds of an interval's width are wider where all models agree.

Numerical: a root between equal bounds is not found.
"""
_EXACT: Final = {"xrtol": 1e-11, "xatol": 1e-13}
"""Precision of an interval's width.

Numerical: a root at zero is never exact otherwise.
"""


@suggests_names
@dataclass(frozen=True, eq=False, slots=True)
class DayEstimates:
    """Estimates over days, one for each group.

    Attributes:
        log: the logarithm of the ratio; NaN where it has none.
        scale: standard error by model, shape (groups, models).
        weight: weight of each model, same shape.
        degrees: degrees of freedom.
        chance: standard error that counted events have by chance alone, 0 where nothing is counted.
        severity: number by which p-values are multiplied, 1 from 14 days a side on and 5 at 7 days.
        reasons: why a group has no interval, empty where it has one.
        excess: of a level, the share of the numerator by which its largest day exceeds its part. 0 unless that is far
            more than days differ by: then a few large payments make it, and the bounds are rough.
    """

    log: Floats
    scale: Floats
    weight: Floats
    degrees: Floats
    chance: Floats
    severity: Floats
    reasons: list[str]
    excess: Floats

    @property
    def value(self) -> Floats:
        """Return the ratio of each group."""
        return np.exp(self.log)

    def p_value(self) -> Floats:
        """Return the p-value of a ratio of 1, NaN where it is unknown."""
        return self._p_value(self.log)

    def half_width(self, confidence: float = 0.95) -> Floats:
        """Return half the width of the interval of the logarithm, NaN where it is unknown: (10)."""
        from scipy.optimize.elementwise import find_root
        from scipy.special import ndtri, stdtr, stdtrit

        level = (1 - confidence) / np.broadcast_to(self.severity, len(self.log))  # (groups,)
        halves = -stdtrit(self.degrees[:, None], level[:, None] / 2) * self.scale  # of each model (groups, models)
        narrowest, widest = halves.min(axis=1, initial=np.inf), halves.max(axis=1, initial=0.0)

        def excess_p(half: Floats, group: NDArray[np.int64]) -> Floats:  # its logarithm is nearly a straight line
            tails = stdtr(self.degrees[group, None], -half[:, None] / self.scale[group])
            return np.asarray(np.log(2 * (self.weight[group] * tails).sum(axis=1) / level[group]))

        with np.errstate(divide="ignore", invalid="ignore"):  # of groups without an interval
            between = narrowest * (1 - _NARROW), widest * (1 + _NARROW)
            found = find_root(excess_p, between, args=(np.arange(len(widest)),), tolerances=_EXACT).x
        by_models = np.where(widest > 0, found, 0.0)
        is_unknown = [bool(reason) for reason in self.reasons]
        return np.where(is_unknown, np.nan, np.maximum(by_models, -ndtri(level / 2) * self.chance))

    def bounds(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the bounds of the ratio of each group, NaN where they are unknown.

        Where the largest payment makes up much of the sum, few samples reach the mean. The upper bound is then raised
        as if three more such days had come.
        """
        half = self.half_width(confidence)
        return np.exp(self.log - half), np.exp(self.log + half) * (1 + _LARGE_DAYS * self.excess / (1 - self.excess))

    def _p_value(self, gap: Floats) -> Floats:
        from scipy.special import ndtr, stdtr

        gap = np.abs(gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            tails = stdtr(self.degrees[:, None], -gap[:, None] / self.scale)  # (9), (groups, models)
            by_chance = np.where(self.chance > 0, 2 * ndtr(-gap / self.chance), 0.0)
        p = np.maximum(2 * (self.weight * tails).sum(axis=1), by_chance)
        return np.where([bool(reason) for reason in self.reasons], np.nan, np.minimum(p * self.severity, 1.0))


@suggests_names
@dataclass(frozen=True, eq=False, slots=True)
class WeekPartEstimates:
    """How two sets of days differ, on the part of the week that shows it most clearly.

    Attributes:
        part: "all days" or "weekends", by group.
        estimates: the estimates of each part of the week, by its name.
        p_value: corrected for the two looks, NaN where all days show nothing.
    """

    part: list[str]
    estimates: dict[str, DayEstimates]
    p_value: Floats

    @property
    def value(self) -> Floats:
        """Return the ratio of each group on its part of the week."""
        return np.array([self.estimates[part].value[group] for group, part in enumerate(self.part)])

    def bounds(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the bounds of the ratio of each group on its part of the week, corrected for the two looks as well."""
        by_part = {
            part: estimates.bounds(1 - (1 - confidence) * _PARTS_OF_WEEK[part][1])
            for part, estimates in self.estimates.items()
        }
        low, high = ([by_part[part][side][group] for group, part in enumerate(self.part)] for side in (0, 1))
        return np.array(low, dtype="float64"), np.array(high, dtype="float64")


def over_parts_of_week(
    numerator: ArrayLike, denominator: ArrayLike, day: ArrayLike, *, later: ArrayLike, counted: Counted | None = None
) -> WeekPartEstimates:
    """Return how the later days differ from the others: on all of them, or on weekends only.

        daily = lens.query(["revenue", "user_unique"], over="last 4 complete weeks")
        day = over_days.day_numbers(daily.timestamp)
        over_days.over_parts_of_week(daily.revenue, daily.user_unique, day, later=day >= day[14])

    All days together rarely show a change of weekends alone. Weekends are named instead of all days where they show a
    change (p below 5% after the correction for two looks) that all days show less clearly by far, or not at all.
    """
    looks = {
        name: over_days(numerator, denominator, day, later=later, counted=counted, weekdays=weekdays)
        for name, (weekdays, _) in _PARTS_OF_WEEK.items()
    }
    shares = np.array([share for _, share in _PARTS_OF_WEEK.values()])
    p_values = np.array([look.p_value() for look in looks.values()]) / shares[:, None]
    p_values = np.where(np.isnan(p_values[0]), np.nan, np.nan_to_num(np.minimum(p_values, 1.0), nan=1.0))
    best = np.nan_to_num(p_values.min(axis=0), nan=1.0)
    is_part = (best < LEVEL) & ((p_values[0] >= LEVEL) | (best < p_values[0] * _CLEARER))
    clearest = np.where(is_part, np.argmin(p_values, axis=0), 0)
    return WeekPartEstimates([list(looks)[place] for place in clearest], looks, p_values.min(axis=0))


def day_numbers(timestamps: Series[Any] | Index[Any]) -> NDArray[np.int64]:
    """Return the days since 1970-01-01 of *timestamps*.

    For example:

        over_days.day_numbers(lens.query("dau", over="last week").timestamp)
    """
    return timestamps.to_numpy(dtype="datetime64[us]").astype("datetime64[D]").astype("int64")


def over_days(
    numerator: ArrayLike,
    denominator: ArrayLike,
    day: ArrayLike,
    *,
    size: ArrayLike | None = None,
    later: ArrayLike | None = None,
    against_mean: bool = False,
    counted: Counted | None = None,
    is_balanced: bool = True,
    is_pooled: bool = True,
    weekdays: frozenset[int] = frozenset(range(7)),
) -> DayEstimates:
    """Return the long-run ratio of two daily sums for each group, or how it differs between two sets of days.

        daily = lens.query(["revenue", "user_unique"], over="last 28 complete days")
        day = over_days.day_numbers(daily.timestamp)
        over_days.over_days(daily.revenue, daily.user_unique, day).bounds()

    A day without a denominator is left out of its group. Below `FEWEST_DAYS` days a side, without one of the weekdays,
    where counted events are fewer than `FEWEST_EVENTS` or where no day differs from another, a group has no interval.

    Args:
        numerator: one sum a day, shape (groups, days) or (days,).
        denominator: the other sum, same shape.
        day: days since 1970-01-01.
        size: weight of the days, the denominator by default. For a denominator that is itself a small random sum.
        later: mask of days. With it the estimate is the rate of the later days divided by the rate of the others. Sides
            that share days are taken for independent of each other.
        against_mean: the ratio of each group to the geometric mean of all.
        counted: what the numerator counts, if it does: events in any number, or the share of the denominator to which
            something happened. Chance is then a known part of the variance and the least of it.
        is_balanced: each weekday counts the same. False is the ratio of the plain sums. For whole weeks they are equal.
        is_pooled: the groups share how alike days are. Not for groups that are made of the same events.
        weekdays: those looked at, as day % 7. The others show how much days differ.
    """
    numerators, denominators = (
        np.atleast_2d(np.asarray(given, dtype="float64")) for given in (numerator, denominator)
    )  # (groups, days), like all arrays below that are not said to be others
    groups, days = len(numerators), np.asarray(day, dtype="int64")
    is_later = np.zeros(len(days), dtype=bool) if later is None else np.asarray(later, dtype=bool)
    sizes = denominators if size is None else np.atleast_2d(np.asarray(size, dtype="float64"))
    is_used = (sizes > 0) & np.isfinite(numerators) & np.isfinite(denominators)
    is_looked_at = np.isin(days % 7, [*weekdays])
    periods = [np.ones(len(days), dtype=bool)] if later is None else [~is_later, is_later]
    sides, other_days = ([period & at for period in periods] for at in (is_looked_at, ~is_looked_at))
    strata = sides + [stratum for stratum in other_days if stratum.any()]  # masks of days (days,)

    # (1) the rate of each stratum, (2) each day's rate as a multiple of it, (3) the contrast of the days.
    rates = np.ones((groups, len(strata)))
    contrast, relative = np.zeros_like(numerators), np.full_like(numerators, np.nan)
    for group, is_used_day in enumerate(is_used):
        for place, stratum in enumerate(strata):
            inside = is_used_day & stratum
            weights = _weekday_weights(days[inside]) if is_balanced else np.ones(inside.sum())
            part, whole = numerators[group, inside], denominators[group, inside]
            whole_part, whole_whole = (part * weights).sum(), (whole * weights).sum()
            rate = rates[group, place] = whole_part / whole_whole if whole_whole > 0 else np.nan
            if rate > 0:
                share = sizes[group, inside] / (sizes[group, inside] * weights).sum()
                relative[group, inside] = 1 + (part / whole_part - whole / whole_whole) / share
                if place < len(sides):
                    contrast[group, inside] = (-1.0 if place < len(sides) - 1 else 1.0) * weights * share
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rates = np.log(np.where(rates > 0, rates, np.nan))
        log = log_rates[:, 0] if later is None else log_rates[:, 1] - log_rates[:, 0]  # (groups,)
        if against_mean:  # what happened to all of them on a day cancels
            log = log - np.nanmean(log)
            relative = relative / (np.nansum(relative, axis=0) / np.isfinite(relative).sum(axis=0))

    # (4) the error of counted events by chance alone, and the share of chance in the variance between days, (groups,).
    chance, chance_share = np.zeros(groups), np.zeros(groups)
    if counted:
        events, trials = (
            np.stack([(sums * (is_used & side)).sum(axis=1) for side in sides]) for sums in (numerators, denominators)
        )  # (sides, groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = 1 / events - (1 / trials if counted == "shares" else 0.0)
            chance = np.nan_to_num(np.sqrt(variance.clip(0).sum(axis=0)), posinf=0.0)
            players = np.where(is_used, denominators, 0.0)
            seen = (players * np.nan_to_num(relative - 1, nan=0.0) ** 2).sum(axis=1)
            expected = sum((is_used & stratum).sum(axis=1) / rates[:, place] for place, stratum in enumerate(strata))
            chance_share = np.nan_to_num(expected / seen, posinf=0.0)

    reasons, severity = [], np.ones(groups)
    for group, is_used_day in enumerate(is_used):
        fewest = min((is_used_day & period).sum() for period in periods)
        least = min(numerators[group, is_used_day & side].sum() for side in sides)
        days_of_sides = [days[is_used_day & side] for side in sides]
        reasons.append(_reason(fewest, days_of_sides, least, weekdays, is_counted=bool(counted)))
        severity[group] = _severity(fewest)
    is_known = np.array([not reason for reason in reasons], dtype=bool) & np.isfinite(log)

    # (5) to (8): the standard error and the weight of each model, (groups, models).
    design = np.stack(strata, axis=1)  # (days, strata)
    is_fitted = is_used & is_known[:, None]
    scale, weight, degrees = _fitted(
        relative, contrast, days, design, sizes, is_fitted, chance_share, is_pooled=is_pooled
    )
    moves = np.max(np.abs(relative - 1), axis=1, initial=0.0, where=is_used)
    is_flat = is_known & (moves < _STILL) & (chance == 0)
    reasons = ["no day differs from another" if flat else reason for flat, reason in zip(is_flat, reasons, strict=True)]
    is_money = later is None and not against_mean and counted is None
    excess = _excess(numerators, rates[:, :1] * denominators, is_used, is_known) if is_money else np.zeros(groups)
    return DayEstimates(log, scale, weight, degrees, chance, severity, reasons, excess)


def _excess(numerators: Floats, expected: Floats, is_used: Flags, is_known: Flags) -> Floats:
    """Return the share of each sum by which its largest day exceeds its part, 0 unless that is far: (11), (groups,)."""
    beyond = np.where(is_used, numerators - expected, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = beyond.max(axis=1, initial=0.0) / np.where(is_used, numerators, 0.0).sum(axis=1)
        is_large = excess > (_LARGE_DAYS - 1) / is_used.sum(axis=1)
    return np.where(is_known & is_large, excess, 0.0)


def mean_over_days(values: Floats, weights: Floats, day: ArrayLike, *, chance: Floats | None = None) -> DayEstimates:
    """Return the mean of *values*, such as the differences of two arms on the same days, weighted by *weights*.

    `log` and the half width are in the unit of the values, not in logarithms, and the p-value tests a mean of 0.
    *chance* is the variance of each value by chance alone, if it is known.
    """
    days, share = np.asarray(day, dtype="int64"), weights / weights.sum()
    return _linear(values, np.ones((len(days), 1)), share, days, weights, chance, severity=_severity(len(days)))


def trend_over_days(rates: Floats, weights: Floats, chance: Floats, day: ArrayLike) -> DayEstimates:
    """Return how much a straight line through *rates* rises from the first day to the last, as a share of their mean.

        daily = lens.query("user_unique", over="last 28 complete days")
        players = daily.user_unique.to_numpy("float64")
        rates, chance = players / players.mean(), players / players.mean() ** 2
        over_days.trend_over_days(rates, players, chance, over_days.day_numbers(daily.timestamp))

    `log` and the half width are in that share, not in logarithms.

    Args:
        rates: of each day, as multiples of their mean.
        weights: of the days in the line.
        chance: the variance of each day's rate by chance alone.
        day: days since 1970-01-01.
    """
    days, share = np.asarray(day, dtype="int64"), weights / weights.sum()
    since = days - share @ days
    contrast = share * since / (share @ since**2) * (days[-1] - days[0])
    design = np.column_stack([np.ones(len(days)), since])
    thirds = _severity(len(days) // 3)  # a line sets the last third of the days against the first
    return _linear(rates, design, contrast, days, weights, chance, severity=thirds)


def changes_over_days(log: Floats, weights: Floats, day: ArrayLike) -> DayEstimates:
    """Return how the last seven days differ from the first seven, beyond what the days between show by themselves.

    Args:
        log: logarithm of each day's value, one for each weekday of several weeks.
        weights: of the days.
        day: days since 1970-01-01, without holes.
    """
    days = np.asarray(day, dtype="int64")
    contrast = np.zeros(len(days))
    contrast[-7:], contrast[:7] = 1 / 7, -1 / 7
    design = np.column_stack([np.ones(len(days)), days - days.mean()])
    return _linear(log, design, contrast, days, weights, None, severity=_severity(len(days) // 3))


def _linear(
    values: Floats,
    design: Floats,
    contrast: Floats,
    days: NDArray[np.int64],
    weights: Floats,
    chance: Floats | None,
    *,
    severity: float,
) -> DayEstimates:
    """Return the estimate `contrast @ values` of one series whose mean follows *design*."""
    root = np.sqrt(weights / weights.sum())
    around = root * values - (root[:, None] * design) @ np.linalg.lstsq(root[:, None] * design, root * values)[0]
    spread, least = float(around @ around), 0.0 if chance is None else float(contrast**2 @ chance)
    share = 0.0 if chance is None else float(root**2 @ chance) / max(spread, 1e-300)
    size = weights if chance is None else 1 / np.maximum(chance, 1e-300)
    scale, likelihood, degrees = mixture(values[None, :], design, contrast[None, :], days, size, share)
    is_flat = np.ptp(values) <= _STILL * np.abs(values).max() and not least
    return DayEstimates(
        np.array([float(contrast @ values)]),
        scale,
        weights_of(likelihood, is_pooled=False),
        np.array([float(degrees)]),
        np.sqrt(np.array([least])),
        np.array([severity]),
        ["no day differs from another" if is_flat else ""],
        np.zeros(1),
    )


def mixture(
    relative: Floats, design: Floats, contrast: Floats, day: NDArray[np.int64], size: Floats, chance_share: float = 0.0
) -> tuple[Floats, Floats, int]:
    """Return the standard error of `relative @ contrast` by group and model, its log likelihood, and the degrees.

    Generalised least squares, formulas (6) and (7): *relative* follows *design* with each covariance of (5).

    *relative* are rates of days as multiples of their mean, shape (groups, days), *contrast* has the same shape;
    *design* (days, columns) is what their mean may follow. *size* is the day's denominator, and *chance_share* the
    known share of chance in the variance.
    """
    covariances = _covariances(day, size, chance_share, design)  # (models, days, days)
    inverse = np.linalg.inv(covariances)
    across = design.T @ inverse  # (models, columns, days)
    information = across @ design  # (models, columns, columns)
    residual = inverse - np.swapaxes(across, 1, 2) @ np.linalg.solve(information, across)  # P of (6)
    squares = np.maximum(((relative @ residual) * relative).sum(axis=2).T, 1e-300)  # (groups, models)
    degrees = len(design) - design.shape[1]
    variance = ((contrast @ covariances) * contrast).sum(axis=2).T  # of the contrast, in units of (7)
    scale = np.sqrt(squares / degrees * variance)
    determinants = np.linalg.slogdet(covariances)[1] + np.linalg.slogdet(information)[1]  # (models,)
    return scale, -0.5 * (determinants + degrees * np.log(squares)), degrees


def weights_of(likelihood: Floats, *, is_pooled: bool) -> Floats:
    """Return the weight of each model from the log likelihoods of the groups, shape (groups, models): (8)."""
    log = likelihood - likelihood.max(axis=1, keepdims=True) + _PRIOR
    if is_pooled:  # of the correlation and its share; how much weekdays differ is averaged out
        by_rho = (likelihood - likelihood.max(axis=1, keepdims=True)).reshape(
            len(log), len(_MODELS) // len(WEEKLY), len(WEEKLY)
        )
        alike = np.logaddexp.reduce(by_rho + np.log(list(WEEKLY.values())), axis=2)
        log = log + _SHARED * np.repeat(alike.sum(axis=0) - alike, len(WEEKLY), axis=1)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _fitted(
    relative: Floats,
    contrast: Floats,
    days: NDArray[np.int64],
    design: Flags,
    size: Floats,
    is_used: Flags,
    share: Floats,
    *,
    is_pooled: bool,
) -> tuple[Floats, Floats, Floats]:
    """Return scale and weight by group and model, and degrees of freedom by group."""
    scale, likelihood = np.zeros((len(relative), len(_MODELS))), np.zeros((len(relative), len(_MODELS)))
    degrees, batches = np.ones(len(relative)), dict[tuple[bytes, float], list[int]]()
    for group, at in enumerate(is_used):  # those with the same days have the same covariances
        if at.any():
            batches.setdefault((at.tobytes(), share[group]), []).append(group)
    for (_, chance), groups in batches.items():
        at = is_used[groups[0]]
        within = np.ix_(np.array(groups), np.flatnonzero(at))
        usual = (size[within] / size[within].mean(axis=1, keepdims=True)).mean(axis=0)
        scale[groups], likelihood[groups], degrees[groups] = mixture(
            relative[within], design[at].astype("float64"), contrast[within], days[at], usual, chance
        )
    return scale, weights_of(likelihood, is_pooled=is_pooled), degrees


def _covariances(day: NDArray[np.int64], size: Floats, chance_share: float, design: Floats) -> Floats:
    """Return the covariance of days under each model, up to a factor, shape (models, days, days): (5)."""
    lag = np.abs(day[:, None] - day[None, :])
    chance, same_day = np.diag(size.mean() / size), np.eye(len(day))
    weekday = (lag % 7 == 0) - 1 / 7
    fitted = design @ np.linalg.pinv(design)  # the mean of its stratum, for each day
    # The variance that was seen may be too small by chance: one standard error of it is added.
    seen = 1 + np.sqrt(2 / max(1, len(day) - design.shape[1]))
    is_apart: Any = False
    if (lag + 7 * same_day == 0).any():  # two series on the same days
        is_apart = (design @ design.T) == 0
    covariances = []
    for rho, remembered, weekly in _MODELS:
        alike = np.where(is_apart, 0.0, np.power(rho, lag) if rho else same_day)
        share_alike = remembered
        if chance_share:  # of counted events, whose chance is known
            around_fit = np.trace(alike - fitted @ alike) / len(day)
            beyond = max(0.0, seen - chance_share) / around_fit
            share_alike *= beyond / (beyond + chance_share)
        covariances.append(share_alike * alike + (1 - share_alike) * chance + weekly * weekday)
    return np.array(covariances)


def _weekday_weights(day: NDArray[np.int64]) -> Floats:
    """Return the weight of each day, so that each weekday counts the same."""
    count = np.bincount(day % 7, minlength=7)
    return np.asarray(len(day) / (count[day % 7] * max(1, (count > 0).sum())))


def _severity(days: int) -> float:
    """Return the factor of p-values: 1 from 14 days a side on, 5 at 7 days, in a straight line between."""
    return 1 + (_FEW_DAYS_FACTOR - 1) * max(0.0, (_ENOUGH_DAYS - max(days, FEWEST_DAYS)) / (_ENOUGH_DAYS - FEWEST_DAYS))


def _reason(
    fewest: int, sides: list[NDArray[np.int64]], events: float, weekdays: frozenset[int], *, is_counted: bool
) -> str:
    """Return why there is no interval, or an empty text."""
    if fewest < FEWEST_DAYS:
        return f"{fewest} day{'' if fewest == 1 else 's'}, but an interval needs {FEWEST_DAYS}"
    for side in sides:
        missing = sorted(weekdays - {int(weekday) for weekday in side % 7})
        if missing:
            return f"no {_WEEKDAYS[missing[0]]} among the days"
    if not events > 0:
        return "nothing happened on these days"
    if is_counted and events < FEWEST_EVENTS:
        return f"{counted(round(events), 'event')}, but an interval needs {FEWEST_EVENTS}"
    return ""


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
