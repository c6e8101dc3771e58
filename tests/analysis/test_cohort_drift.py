"""Drift of retention over install days, with a known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import retention
from support.hypothesis_profiles import tries
from support.retention_frames import frame_of
from support.said import said

AGES = [1, 3, 7, 14]
SHARES = np.array([0.4, 0.25, 0.15, 0.1])


def drifting(ratio: float, *, seed: int = 1, days: int = 30, largest: int = 600, until: int | None = 31) -> DataFrame:
    """Return install days whose retention ends at *ratio* times the first day's, days differing by 5 %."""
    rng = np.random.default_rng(seed)
    sizes = np.array([600] * (days - 1) + [largest])
    levels = ratio ** (np.arange(days) / (days - 1)) * np.exp(rng.normal(0, 0.05, days))
    counts = rng.binomial(sizes[:, None], np.minimum(levels[:, None] * SHARES, 1))
    return frame_of(sizes.tolist(), counts, AGES, until=until)


def claim_of(frame: DataFrame) -> Any:
    """Return the only claim about the drift of *frame*."""
    (claim,) = said(retention.drift(frame))
    return claim


@pytest.mark.parametrize(("ratio", "direction"), [(0.75, "lower"), (1.25, "higher")])
@pytest.mark.parametrize("until", [None, 31], ids=["all ages", "right-censored"])
def test_a_drift_is_named_with_its_size(ratio: float, direction: str, until: int | None) -> None:
    """A quarter more or less over a month is found, also where young days lack late ages."""
    claim = claim_of(drifting(ratio, until=until))
    assert claim.direction == direction
    assert claim.low < ratio < claim.high
    assert claim.size == pytest.approx(ratio, rel=0.12)


def test_its_words_have_the_size_and_the_interval() -> None:
    """The sentence says the direction, the change and its bounds."""
    claim = claim_of(drifting(0.75))
    assert claim.text.startswith("Retention falls over 30 install days: -2")


@pytest.mark.shown_by(1)
@pytest.mark.hypothesis  # more draws in `make bench`
@pytest.mark.parametrize("largest", [600, 20_000])
def test_steady_retention_is_no_drift(largest: int) -> None:
    """Of steady series at most 10 % claim a trend, also with half the players on one day."""
    claims = [claim_of(drifting(1.0, seed=seed, largest=largest)) for seed in range(tries(in_test=10, in_bench=30))]
    assert sum(claim.direction != "no clear difference" for claim in claims) <= 0.1 * len(claims)
    assert "no clear trend" in claims[0].text


def test_fewer_than_seven_days_show_no_trend() -> None:
    """Five install days are unknown, and the sentence says how many it takes."""
    claim = claim_of(drifting(0.5, days=5))
    assert claim.direction == "unknown"
    assert np.isnan([claim.size, claim.low, claim.high]).all()
    assert "cannot be judged from 5 install days: that takes 7" in claim.text


def test_no_returning_players_show_no_trend() -> None:
    """Days without returning players are unknown, and raise nothing."""
    assert claim_of(frame_of([50] * 8, np.zeros((8, 2)), [1, 7])).direction == "unknown"


def test_each_group_has_its_own_claim() -> None:
    """Each game is judged alone, a null title is named, and its text starts with the name."""
    frames = [drifting(0.7).assign(game="Tile"), drifting(1.0).assign(game=None)]
    both = pd.concat(frames, ignore_index=True).astype({"game": "category"})
    claims = {claim.subject: claim for claim in said(retention.drift(both, "game"))}
    assert [claims[name].direction for name in ("Tile", "(unknown)")] == ["lower", "no clear difference"]
    assert claims["Tile"].text.startswith("Retention of Tile falls")


def test_a_shift_between_games_is_no_drift() -> None:
    """Both games keep their players better every day while installs move to the weaker one: the trend is upwards."""
    rng, frames = np.random.default_rng(4), []
    for name, level, sizes in (("Tile", 1.0, np.linspace(2000, 200, 28)), ("Farm", 0.4, np.linspace(200, 2000, 28))):
        shares = level * np.linspace(0.9, 1.1, 28)[:, None] * SHARES
        counts = rng.binomial(sizes.astype(int)[:, None], shares)
        frames.append(frame_of(sizes.astype(int).tolist(), counts, AGES).assign(game=name))
    both = pd.concat(frames, ignore_index=True).astype({"game": "category"})
    claim = claim_of(both)
    assert claim.direction == "higher"
    assert claim.low < 1.1 / 0.9 < claim.high
    assert claim_of(both.drop(columns="game")).direction == "lower"


def test_nothing_claims_nothing() -> None:
    """A frame without rows gives no claims."""
    assert said(retention.drift(drifting(1.0)[:0])) == []


def test_players_who_all_come_back_have_no_drift() -> None:
    """Nothing differs, but a player could have stayed away: the interval is narrow, and there is no warning."""
    row = retention.drift(frame_of([20] * 10, np.full((10, 2), 20), [1, 2])).iloc[0]
    assert row["ratio"] == pytest.approx(1)
    assert 0.8 < row["low"] < 1 < row["high"] < 1.25
    most = np.full((10, 2), 20)
    most[3:, 1] = 18
    row = retention.drift(frame_of([20] * 10, most, [1, 2], until=9)).iloc[0]
    assert row["low"] < row["ratio"] < row["high"]
