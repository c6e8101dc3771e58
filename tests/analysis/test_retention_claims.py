"""Claims about retention, with cohorts whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import retention
from support.retention_frames import frame_of
from support.tidy_frames import tidy_frame

DAYS, INSTALLS = 30, 2000


def retention_of(levels: np.ndarray | float, *, seed: int = 4, until: int | None = None) -> DataFrame:
    """Return 30 install days whose players come back with 40 % and 20 % times their level."""
    rng = np.random.default_rng(seed)
    shares = np.outer(np.ones(DAYS) * levels, [0.4, 0.2])
    return frame_of([INSTALLS] * DAYS, rng.binomial(INSTALLS, shares), [1, 7], until=until)


def projected(**games: tuple[float, float, float]) -> DataFrame:
    """Return projected retention at day 90: value, low and high of each game."""
    value, low, high = zip(*games.values(), strict=True)
    return tidy_frame(
        game=[*games], model=["BG/BB"] * len(games), age=[90] * len(games), retention=value, low=low, high=high
    )


def test_the_game_that_won_most_players_is_counted(cohorts: DataFrame) -> None:
    """Tile has 30 of 35 players of two install days."""
    claim = retention.installs_claim(retention.cohort_sizes(cohorts, by="game"))
    assert (claim.subject, claim.size) == ({"game": "Tile"}, 30.0)
    assert claim.text == "35 players installed on 2 days; Tile won the most, 30."
    assert retention.installs_claim(retention.cohort_sizes(cohorts[:0], by="game")).direction == "unknown"


def test_days_that_differ_are_told_from_days_that_do_not() -> None:
    """A spread of 15 % between days is more than chance; equal days are not said to be equal."""
    varying = 1 + 0.15 * np.random.default_rng(9).standard_normal(DAYS)
    claim = retention.day_range_claim(retention_of(varying))
    assert claim.direction == "higher"
    assert 0.1 < claim.size < 0.2
    same = retention.day_range_claim(retention_of(1.0))
    assert same.direction == "no clear difference"
    assert "are not seen to differ" in same.text


def test_the_range_says_how_many_days_have_come_that_far() -> None:
    """Of 30 install days, 23 have reached day 7 on the thirtieth day."""
    claim = retention.day_range_claim(retention_of(1.0, until=30))
    assert "23 of 30 have reached day 7" in claim.text


def test_a_range_of_nothing_is_unknown() -> None:
    """Without players there is no range; before the first age none either."""
    frame = retention_of(1.0)
    assert retention.day_range_claim(frame[:0]).text == "There are no new players in this period."
    unreached = frame.assign(retention=np.nan, returned=pd.array([pd.NA] * len(frame), dtype="Int64"))
    assert retention.day_range_claim(unreached).direction == "unknown"


def test_a_level_has_its_interval_and_no_direction() -> None:
    """Day 7 is 20 %, in the interval, and compared with nothing."""
    curve = retention.average_curve(retention_of(1.0), widened=True)
    (claim,) = retention.level_claims(curve, ages=[7])
    assert (claim.kind, claim.direction) == ("D7 retention", "unknown")
    assert claim.low < 0.2 < claim.high
    assert claim.text == f"On day 7, {claim.size:.1%} ({claim.low:.1%} to {claim.high:.1%}) are back."
    (named,) = retention.level_claims(retention.average_curve(retention_of(1.0), "game"), "game", ages=[7])
    assert named.subject == {"game": "Tile"}
    assert retention.level_claims(curve[:0]) == []


def test_the_game_that_keeps_most_is_named_only_beyond_its_interval() -> None:
    """Bands of 4 to 6 % and 1 to 3 % differ; bands of 4 to 6 % and 3 to 6 % do not."""
    claim = retention.longest_claim(projected(Farm=(0.02, 0.01, 0.03), Tile=(0.05, 0.04, 0.06)), "game")
    assert (claim.kind, claim.subject, claim.direction) == ("D90 retention by game", {"game": "Tile"}, "higher")
    assert [claim.size, claim.low] == pytest.approx([3.0, 3.0 - math.hypot(1, 1)])
    near = retention.longest_claim(projected(Farm=(0.045, 0.03, 0.06), Tile=(0.05, 0.04, 0.06)), "game")
    assert near.direction == "no clear difference"
    assert "not clearly more than Farm" in near.text


def test_one_game_or_none_is_compared_with_nothing() -> None:
    """One game has a level; without a curve nothing is known."""
    alone = projected(Tile=(0.05, 0.04, 0.06))
    assert retention.longest_claim(alone, "game").text.endswith("5.0% (4.0% to 6.0%) of its new players.")
    assert retention.longest_claim(alone.assign(retention=np.nan), "game").direction == "unknown"
