"""Coverage, false claims and power of the inference over days, and of each function that goes through it.

Run by `make bench`. The truth is the long-run mean. Days follow first-order autocorrelation, which the models of
`over_days` know, and processes that they do not know: a random walk with a return, campaigns of three days, ramping
volume, segments with correlations of their own, each with and without a weekday pattern of 40 %. SEEDS in the
environment sets how many series are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis import ads, decomposition, experiments, outside_data, retention
from gamelens.analysis.ads.day_rates import day_rates
from gamelens.analysis.over_days import over_days
from gamelens.analysis.retention.money_by_age import CohortMoney
from support.experiment_frames import retention_of
from support.retention_frames import frame_of
from support.said import said
from support.tidy_frames import tidy_frame

Floats = NDArray[np.float64]

SEEDS = int(os.environ.get("SEEDS", "300"))
FIRST = 20_000
WEEK = np.array([1.0, 1.4, 1.4, 1.0, 0.6, 0.6, 1.0])
ALIKE = (0.0, 0.5, 0.7, 0.8, 0.9)


def autocorrelated(rng: np.random.Generator, days: int, rho: float) -> Floats:
    """Return standard normal days whose successive ones have the correlation *rho*."""
    noise = rng.standard_normal(days)
    for day in range(1, days):
        noise[day] = rho * noise[day - 1] + np.sqrt(1 - rho**2) * noise[day]
    return noise


def walk_with_return(rng: np.random.Generator, days: int) -> Floats:
    """Return a random walk within -1.5 and 1.5 that turns back at the bounds, its variance near 1."""
    place, steps = rng.uniform(-1.5, 1.5), np.empty(days)
    for day in range(days):
        place += rng.normal(0, 0.7)
        place = 3.0 - place if place > 1.5 else -3.0 - place if place < -1.5 else place
        steps[day] = place
    return steps


def campaigns(rng: np.random.Generator, days: int) -> Floats:
    """Return campaigns of three days with five to fourteen days from one start to the next."""
    running, start = np.zeros(days), int(rng.integers(-3, 7))
    while start < days:
        running[max(start, 0) : max(start + 3, 0)] = 1.0
        start += int(rng.integers(5, 15))
    return 2 * (running - 3 / 9.5)


PROCESSES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    **{f"AR {rho}": partial(autocorrelated, rho=rho) for rho in ALIKE},
    "walk with return": walk_with_return,
    "campaigns": campaigns,
}


def coverage(process: str, days: int, *, is_weekly: bool = False, is_ramping: bool = False) -> float:
    """Return the share of intervals of a level that hold the long-run mean."""
    held = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        day = FIRST + int(rng.integers(7)) + np.arange(days)
        rate = 1 + 0.1 * PROCESSES[process](rng, days)
        size = np.linspace(100, 1000, days) if is_ramping else np.full(days, 1000.0)
        low, high = over_days(size * rate * (WEEK[day % 7] if is_weekly else 1), size, day).bounds()
        truth = WEEK.mean() if is_weekly else 1.0
        held.append(bool(low[0] <= truth <= high[0]))
    return float(np.mean(held))


@pytest.mark.parametrize(
    ("days", "least"),
    [
        (14, {"AR 0.0": 0.90, "AR 0.5": 0.90, "AR 0.7": 0.90}),
        (28, {"AR 0.0": 0.92, "AR 0.5": 0.92, "AR 0.7": 0.92, "AR 0.8": 0.92, "AR 0.9": 0.87}),
        (56, {"AR 0.9": 0.92, "AR 0.0": 0.92}),
    ],
)
def test_levels_hold_the_long_run_mean(days: int, least: dict[str, float]) -> None:
    """Intervals of 95 % reach the bars on processes that are known, and 90 % on those that are not."""
    bars = {process: 0.90 for process in ("walk with return", "campaigns") if days >= 28} | least
    found = {}
    for process in PROCESSES:
        weekly, ramping = coverage(process, days, is_weekly=True), coverage(process, days, is_ramping=True)
        found[process] = [coverage(process, days), weekly, ramping]
    for process, shares in found.items():
        print(f"\n{days} days, {process}: {shares[0]:.3f}, weekly {shares[1]:.3f}, ramping {shares[2]:.3f}", end="")
    error = 2 * np.sqrt(0.9 * 0.1 / SEEDS)
    assert not {process: found[process] for process, bar in bars.items() if min(found[process]) < bar - error}


def changed(process: str, days: int, effect: float = 0.0, *, is_weekly: bool = False) -> float:
    """Return the share of changes between two periods of *days* that are claimed."""
    claimed = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        day, later = FIRST + int(rng.integers(7)) + np.arange(2 * days), np.arange(2 * days) >= days
        rate = (1 + 0.1 * PROCESSES[process](rng, 2 * days)) * np.where(later, 1 + effect, 1)
        rate *= WEEK[day % 7] if is_weekly else 1
        claimed.append(over_days(rate, np.ones(2 * days), day, later=later).p_value()[0] < 0.05)
    return float(np.mean(claimed))


@pytest.mark.parametrize("days", [10, 14, 28])
def test_periods_that_do_not_differ_are_rarely_said_to(days: int) -> None:
    """At most 7 % of changes are claimed where there is none, at every correlation up to 0.8."""
    found = {process: (changed(process, days), changed(process, days, is_weekly=True)) for process in PROCESSES}
    for process, shares in found.items():
        print(f"\n{days} v {days} days, {process}: {shares[0]:.3f} claimed, weekly {shares[1]:.3f}", end="")
    error = 2 * np.sqrt(0.07 * 0.93 / SEEDS)
    assert max(max(found[f"AR {rho}"]) for rho in ALIKE[:-1]) <= 0.07 + error


@pytest.mark.parametrize(("days", "effect", "least"), [(14, 0.112, 0.60), (28, 0.077, 0.72)])
def test_a_change_that_an_oracle_finds_is_found(days: int, effect: float, least: float) -> None:
    """Changes that a test which knows everything finds in 80 % are found in *least*.

    Of two weeks 0.65 was hoped for: 0.59 is what a false rate of 6 % at every correlation leaves.
    """
    found = changed("AR 0.0", days, effect)
    print(f"\n{days} v {days} days, {effect:+.1%}: {found:.3f} found of 0.80")
    assert found >= least - 2 * np.sqrt(0.2 / SEEDS)


@pytest.mark.parametrize("alike", [(1, 1, 1, 1, 1, 1), (1, 1, 1, 0.5, 1, 0)], ids=["alike", "unlike"])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_six_equal_networks_get_no_claim(rho: float, alike: tuple[float, ...]) -> None:
    """At most 6 % of the pages claim any of six networks that pay alike, also if their correlations differ (10 %)."""
    pages = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        common = 0.1 * autocorrelated(rng, 28, rho)
        rates = [1 + common + 0.1 * autocorrelated(rng, 28, rho * share) for share in alike]
        found = over_days(np.array(rates), np.ones((6, 28)), FIRST + np.arange(28), against_mean=True)
        pages.append((found.p_value() < 0.05 / 6).any())
    print(f"\nsix equal networks, {rho}, {alike}: {np.mean(pages):.3f} of the pages claim one")
    assert np.mean(pages) <= (0.06 if min(alike) else 0.10) + 2 * np.sqrt(0.06 / SEEDS)


def stamps(days: int) -> list[str]:
    """Return days as text."""
    return [str(day) for day in pd.date_range("2026-08-03", periods=days)]


def _builds(rng: np.random.Generator, rho: float) -> bool:
    shares = 0.2 * (1 + 0.05 * autocorrelated(rng, 28, rho))
    rows = [
        (pd.Timestamp(day, tz="UTC"), "x", 1, 3000, int(rng.binomial(3000, share)))
        for day, share in zip(stamps(28), shares, strict=True)
    ]
    frame = retention_of(rows, arm="first_build")
    return bool(experiments.compare(frame, since=stamps(28)[14]).iloc[0]["p_value"] >= 0.05)


def _drift(rng: np.random.Generator, rho: float) -> bool:
    levels = 1 + 0.05 * autocorrelated(rng, 28, rho)
    counts = rng.binomial(2000, np.outer(levels, [0.4, 0.2, 0.1]))
    (claim,) = said(retention.drift(frame_of([2000] * 28, counts, [1, 3, 7])))
    return bool(claim.direction == "no clear difference")


def _ltv(rng: np.random.Generator, rho: float) -> bool:
    money = 1000 * (1 + 0.15 * autocorrelated(rng, 28, rho))
    cohorts = CohortMoney(FIRST + np.arange(28), np.full(28, 1000.0), money[:, None], np.ones((28, 1), bool))
    band, _ = cohorts.value(0.95)
    return bool(band.low[0] <= 1 <= band.high[0])


def _roas(rng: np.random.Generator, rho: float) -> bool:
    publisher, days = ["A"] * 28, stamps(28)
    money = (50 * (1 + 0.2 * autocorrelated(rng, 28, rho))).tolist()
    spend = tidy_frame("new_users", timestamp=days, install_publisher=publisher, spend=[50.0] * 28)
    earned = tidy_frame("revenue", timestamp=days, installed_on=days, install_publisher=publisher, revenue=money)
    row = outside_data.return_on_spend(spend, earned, ages=[0]).iloc[0]
    return bool(row["low"] <= 1 <= row["high"])


def _cpi(rng: np.random.Generator, rho: float) -> bool:
    installs = rng.poisson(np.maximum(200 * (1 + 0.3 * autocorrelated(rng, 28, rho)), 1)).tolist()
    frame = tidy_frame("new_users", timestamp=stamps(28), new_users=installs, spend=[100.0] * 28)
    row = outside_data.cost_per_install(frame).iloc[0]
    return bool(row["low"] <= 0.5 <= row["high"])


def _arpdau(rng: np.random.Generator, rho: float) -> bool:
    money = 100 * (1 + 0.1 * autocorrelated(rng, 28, rho))
    frame = DataFrame({"timestamp": pd.to_datetime(stamps(28), utc=True), "money": money, "players": 1000.0})
    rate = day_rates(frame, None, frame["money"], frame["players"]).iloc[0]
    return bool(rate["low"] <= 0.1 <= rate["high"])


def _clicks(rng: np.random.Generator, rho: float) -> bool:
    part = rng.binomial(2000, np.clip(0.05 * (1 + 0.1 * autocorrelated(rng, 28, rho)), 0, 1))
    frame = DataFrame({"timestamp": pd.to_datetime(stamps(28), utc=True), "part": part, "whole": 2000})
    rate = day_rates(frame, None, frame["part"], frame["whole"], counted="shares").iloc[0]
    return bool(rate["low"] <= 0.05 <= rate["high"])


def _price(rng: np.random.Generator, rho: float) -> bool:
    money = [100 * (1 + 0.1 * autocorrelated(rng, 56, rho)) for _ in range(2)]
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=stamps(56) * 2,
        ilrd_network_name=["A"] * 56 + ["B"] * 56,
        ilrd_revenue_event_count=[1000] * 112,
        ilrd_revenue=np.concatenate(money).tolist(),
    )
    changes = decomposition.price_changes(*decomposition.split_in_halves(frame), "ilrd_network_name")
    return bool((changes["p_adjusted"] >= 0.05).all())


def _curve(rng: np.random.Generator, rho: float) -> bool:
    counts = rng.binomial(1000, np.clip(0.4 * (1 + 0.1 * autocorrelated(rng, 28, rho)), 0, 1))[:, None]
    row = retention.average_curve(frame_of([1000] * 28, counts, [1]), widened=True).iloc[0]
    return bool(row["low"] <= 0.4 <= row["high"])


def _index(rng: np.random.Generator, rho: float) -> bool:
    rows = [1 + 0.1 * autocorrelated(rng, 28, rho) for _ in range(3)]
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=stamps(28) * 3,
        game=["Tile"] * 84,
        country_code=["US"] * 84,
        ilrd_adunit_format=["REWARDED"] * 84,
        ilrd_network_name=np.repeat(["A", "B", "C"], 28).tolist(),
        ilrd_revenue_event_count=[1000] * 84,
        ilrd_revenue=np.concatenate(rows).tolist(),
    )
    index = ads.ecpm_index(frame)
    return bool(((index["low"] <= 1) & (index["high"] >= 1)).all())


FUNCTIONS = {
    "builds (no claim)": _builds,
    "drift (no claim)": _drift,
    "price changes of two networks (no claim)": _price,
    "eCPM index of three networks": _index,
    "lifetime value": _ltv,
    "return on spend": _roas,
    "cost of an install": _cpi,
    "ARPDAU": _arpdau,
    "click rate": _clicks,
    "widened retention curve": _curve,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_over_28_days_holds_the_truth(function: str) -> None:
    """Where days resemble each other by 0.7 or less 92 % hold the truth; of 0.8 and 0.9 the share is printed."""
    holds = FUNCTIONS[function]
    shares = {rho: np.mean([holds(np.random.default_rng(seed), rho) for seed in range(SEEDS)]) for rho in ALIKE}
    print(f"\n{function}: " + ", ".join(f"{rho} {share:.3f}" for rho, share in shares.items()))
    error = 2 * np.sqrt(0.9 * 0.1 / SEEDS)
    assert min(share for rho, share in shares.items() if rho < 0.8) >= 0.92 - error
