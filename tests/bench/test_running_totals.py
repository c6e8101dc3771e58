"""Which costs by day that only grow are asked about: running totals, and campaigns whose budget is raised every day.

Run by `make bench`. A running total that nobody is asked about is added up, so nearly all of them must be; costs that
grow are taken where their growth is steady. Costs differ from day to day by 15%, and on weekends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import gamelens as gl

TRIES = 200
Floats = NDArray[np.float64]


def running(draw: np.random.Generator, days: int, before: int, growth: float) -> Floats:
    """Return the running total of costs of a campaign that began *before* so many days."""
    at = np.arange(-before, days)
    noise = np.zeros(len(at))
    for day in range(1, len(at)):
        noise[day] = 0.6 * noise[day - 1] + draw.normal(0, 0.15)
    weekday = 1 + 0.15 * np.sin(2 * np.pi * (at + draw.integers(7)) / 7)
    return np.cumsum(100 * np.exp(np.log1p(growth) * at + noise) * weekday)[-days:]


def ramp(draw: np.random.Generator, days: int, growth: float) -> Floats:
    """Return costs that a budget holds, which is raised every day: they never fall."""
    while True:
        costs = np.asarray(100 * (1 + growth) ** np.arange(days) * np.exp(draw.normal(0, 0.02, days)), dtype="float64")
        if (np.diff(costs) > 0).all():
            return costs


def share_asked(series: list[Floats], clicks: Sequence[NDArray[Any]] | None = None) -> float:
    """Return the share of files with these costs, and these clicks beside them, that are asked about."""
    asked = 0
    for place, costs in enumerate(series):
        days = pd.date_range("2026-03-05", periods=len(costs)).strftime("%Y-%m-%d")
        frame = pd.DataFrame({"Day": days, "Campaign": "a", "Spend (USD)": costs.round(2)})
        table = gl.read_table(frame if clicks is None else frame.assign(Clicks=clicks[place].astype("int64")))
        asked += table.column("Spend (USD)").problem is not None
    return asked / len(series)


@pytest.mark.parametrize("days", [14, 21, 28])
@pytest.mark.parametrize(
    ("before", "growth", "least"), [(0, 0, 1), (10, 0, 0.93), (60, 0, 1), (0, 0.05, 0.98), (10, 0.02, 0.8)]
)
def test_running_totals_are_asked_about(days: int, before: int, growth: float, least: float) -> None:
    """From the first day of a campaign always; in its middle, while its costs grow, mostly."""
    draw = np.random.default_rng(days + before)
    share = share_asked([running(draw, days, before, growth) for _ in range(TRIES)])
    print(f"\nrunning totals, {days} days, {before} days before, costs +{growth:.0%} a day: {share:.1%} asked about")
    assert share >= least


@pytest.mark.parametrize("days", [10, 14, 21])
@pytest.mark.parametrize(("growth", "most"), [(0.08, 0.25), (0.15, 0.2), (0.25, 0.1)])
def test_campaigns_that_are_scaled_up_are_taken(days: int, growth: float, most: float) -> None:
    """The faster, the surer; before, all of them were asked about that tripled or had two weeks."""
    draw = np.random.default_rng(days)
    share = share_asked([ramp(draw, days, growth) for _ in range(TRIES)])
    print(f"\ncosts that grow by {growth:.0%} a day for {days} days: {share:.1%} asked about")
    assert share <= most


@pytest.mark.parametrize("days", [14, 21])
def test_clicks_tell_costs_that_are_raised_from_running_totals(days: int) -> None:
    """By the same amount each day, which looks like a running total; clicks grow with costs, and not with totals."""
    draw = np.random.default_rng(days)
    raised = [100 + 15.0 * np.arange(days) + draw.uniform(0, 5, days) for _ in range(TRIES)]
    clicks = [draw.poisson(costs * np.exp(draw.normal(0, 0.08, days))) for costs in raised]
    totals = [running(draw, days, 10, 0.02) for _ in range(TRIES)]
    of_days = [draw.poisson(np.diff(costs, prepend=costs[0] - 100)) for costs in totals]
    shares = share_asked(raised), share_asked(raised, clicks), share_asked(totals, of_days)
    print(f"\n{days} days: raised {shares[0]:.1%}, with clicks {shares[1]:.1%}; totals with clicks {shares[2]:.1%}")
    assert shares[0] > 0.9
    assert shares[1] < 0.2
    assert shares[2] > 0.9
