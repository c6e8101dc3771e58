"""Levels of the last week against weeks before, with slow falls that no day shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from support.hypothesis_profiles import tries
from support.said import said

_WEEK = np.array([1.0, 0.9, 0.9, 1.0, 1.2, 1.5, 1.4])


def players(
    per_week: float, *, days: int = 112, seed: int = 1, since: int = 49, rho: float = 0.0, spread: float = 0.04
) -> DataFrame:
    """Return daily players of one game that change by *per_week* in each of the last *since* days' weeks."""
    rng, noise = np.random.default_rng(seed), np.zeros(days)
    for day in range(1, days):
        noise[day] = rho * noise[day - 1] + 0.04 * rng.standard_normal()
    weeks = np.maximum(np.arange(days) - (days - since), 0) / 7
    value = 20_000 * np.tile(_WEEK, days // 7 + 1)[:days] * np.exp(noise) * (1 + per_week) ** weeks
    stamps = pd.date_range("2026-07-06", periods=days, tz="UTC")
    frame = DataFrame({"timestamp": stamps, "game_id": "1", "game": "Tile", "user_unique": value.round().astype(int)})
    return health.measured(frame.astype({"game": "category"}), {"user_unique": "Active players"})


def test_a_tenth_less_a_week_is_a_level_that_fell() -> None:
    """Seven weeks of -10 % are a level that halved, which the headline says where no day stands out."""
    levels = health.levels(players(-0.1))
    row = levels.iloc[0]
    assert (row["weeks"], bool(row["is_moved"])) == (8, True)
    assert row["change"] == pytest.approx(0.9**6.5 - 1, abs=0.08)
    assert row["low"] < row["change"] < row["high"] < -0.1
    calm = health.board(health.score_days(players(0.0)))
    found = health.headline(calm, levels)
    assert found[["level_change", "level_low", "level_high"]].to_numpy().tolist() == [
        row[["change", "low", "high"]].tolist()
    ]
    headline = said(found)[0]
    assert headline.text.startswith("No day stands out")
    change = f"{row['change']:.0%} ({row['low']:.0%} to {row['high']:.0%}) in 8 weeks"
    assert headline.text.endswith(f" Tile: Active players moved, {change}.")
    (claim,) = said(levels)
    assert (claim.case, claim.direction, claim.subject, claim.size) == ("lower", "lower", "Tile", row["change"])
    assert claim.text.startswith(f"Tile: Active players fell, {change}, from ")


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_players_that_stay_have_no_level_that_moved(rho: float) -> None:
    """Of games that stay as they are none has moved."""
    games = tries(in_test=10, in_bench=30)
    assert not any(health.levels(players(0.0, seed=seed, rho=rho))["is_moved"].any() for seed in range(games))


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
def test_most_slow_falls_are_found() -> None:
    """Of games that lose a tenth a week for seven weeks 90 % or more are named."""
    games = tries(in_test=8, in_bench=20)
    found = sum(health.levels(players(-0.1, seed=seed, rho=0.5))["is_moved"].all() for seed in range(games))
    assert found >= 0.9 * games


def test_four_weeks_before_are_the_least() -> None:
    """Five weeks of days are compared over four; with fewer, and with a day missing, nothing is said."""
    assert health.levels(players(-0.1, days=35, since=35))["weeks"].tolist() == [4]
    short = health.levels(players(-0.1, days=34, since=34))
    assert short.empty
    assert said(short)[0].text == "There are too few weeks to compare levels yet."
    daily = players(-0.1)
    daily.loc[len(daily) - 3, "value"] = np.nan
    assert health.levels(daily).empty


def test_calm_levels_say_what_was_judged() -> None:
    """The headline names the weeks that the level was compared with."""
    daily = players(0.0)
    levels = health.levels(daily)
    headline = said(health.headline(health.board(health.score_days(daily)), levels))[0]
    assert headline.text.startswith("Nothing stands out")
    assert headline.text.endswith(" No level moved clearly compared with the 8 weeks before.")
    (claim,) = said(levels)
    assert (claim.case, claim.direction, claim.weeks) == ("no_clear_difference", "no clear difference", 8)
    assert claim.low < 0 < claim.high
    assert "did not move clearly by 20.0% or more in 8 weeks" in claim.text
