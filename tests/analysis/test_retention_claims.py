"""Claims about retention, with cohorts whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import retention
from support.retention_frames import frame_of
from support.said import as_made_by, said
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
    frame = tidy_frame(
        game=[*games], model=["BG/BB"] * len(games), age=[90] * len(games), retention=value, low=low, high=high
    )
    frame = frame.assign(is_chosen=True, fit_p_value=0.5)
    return as_made_by("retention.project_retention", frame, by="game")


def test_the_game_that_won_most_players_is_counted(cohorts: DataFrame) -> None:
    """Tile has 30 of 35 players of two install days."""
    (claim,) = said(retention.cohort_sizes(cohorts, by="game"))
    assert (claim.subject, claim.size) == ("Tile", 30.0)
    assert claim.text == "35 players installed on 2 days; Tile gained the most, 30."
    assert said(retention.cohort_sizes(cohorts))[0].text == "35 players installed on 2 days."
    assert said(retention.cohort_sizes(cohorts[cohorts["game"] == "Tile"], "game"))[0].case == "alone"
    assert said(retention.cohort_sizes(cohorts[:0], by="game"))[0].case == "nobody"


def test_days_that_differ_are_told_from_days_that_do_not() -> None:
    """A spread of 15 % between days is more than chance; equal days are not said to be equal."""
    varying = 1 + 0.15 * np.random.default_rng(9).standard_normal(DAYS)
    (claim,) = said(retention.day_range(retention_of(varying)))
    assert claim.direction == "higher"
    assert 0.1 < claim.size < 0.2
    (same,) = said(retention.day_range(retention_of(1.0)))
    assert same.direction == "no clear difference"
    assert "show no difference beyond chance" in same.text


def test_the_range_says_how_many_days_have_come_that_far() -> None:
    """Of 30 install days, 23 have reached day 7 on the thirtieth day."""
    (claim,) = said(retention.day_range(retention_of(1.0, until=30)))
    assert (claim.reached, claim.installed, claim.last_age) == (23, 30, 7)
    assert "23 of 30 have reached day 7" in claim.text


def test_a_range_of_nothing_is_unknown() -> None:
    """Without players there is no range; before the first age and of one day none either."""
    frame = retention_of(1.0)
    (nobody,) = said(retention.day_range(frame[:0]))
    assert nobody.text == "There are no new players in this period."
    unreached = frame.assign(retention=np.nan, returned=pd.array([pd.NA] * len(frame), dtype="Int64"))
    (early,) = said(retention.day_range(unreached))
    assert (early.direction, early.case) == ("unknown", "too_early")
    (one,) = said(retention.day_range(frame[frame["timestamp"] == frame["timestamp"].min()]))
    assert (one.direction, one.case) == ("unknown", "one_day")


def test_a_level_has_its_interval_and_no_direction() -> None:
    """Day 7 is 20 %, in the interval, and compared with nothing."""
    curve = retention.average_curve(retention_of(1.0), widened=True)
    (claim,) = said(curve[curve["age"] == 7])
    assert (claim.kind, claim.age, claim.direction) == ("retention level", 7, "unknown")
    assert claim.low < 0.2 < claim.high
    assert claim.text == f"On day 7, {claim.size:.1%} ({claim.low:.1%} to {claim.high:.1%}) of new players are back."
    named = said(retention.average_curve(retention_of(1.0), "game"))[0]
    assert named.subject == "Tile"
    assert named.text.startswith("On day 1, Tile keeps ")
    assert said(curve[:0]) == []


def test_a_level_of_several_games_names_its_base() -> None:
    """The average of two games says that it is pooled; within a game it does not."""
    frame = retention_of(1.0)
    two = pd.concat([frame, frame.assign(game="Farm")], ignore_index=True).astype({"game": "category"})
    pooled = retention.average_curve(two)
    assert pooled["segments"].tolist() == [2, 2]
    assert said(pooled)[0].text.endswith(" of new players are back, pooled over 2 segments by installs.")
    assert "pooled" not in said(retention.average_curve(two, "game"))[0].text


def test_a_level_without_a_split_is_pooled_over_nothing() -> None:
    """Install days are no segments; nor is a game whose players have not reached the age."""
    frame = retention_of(1.0)
    alone = retention.average_curve(frame.drop(columns="game"))
    assert (alone["segments"].tolist(), alone["cohorts"].tolist()) == ([1, 1], [DAYS, DAYS])
    assert not any("pooled" in claim.text for claim in said(alone))
    young = frame.assign(game="Farm", retention=frame["retention"].where(frame["age"] == 1))
    both = pd.concat([frame, young], ignore_index=True).astype({"game": "category"})
    assert retention.average_curve(both)["segments"].tolist() == [2, 1]


def test_the_game_that_keeps_most_is_named_only_beyond_its_interval() -> None:
    """Bands of 4 to 6 % and 1 to 3 % differ; bands of 4 to 6 % and 3 to 6 % do not."""
    (claim,) = said(projected(Farm=(0.02, 0.01, 0.03), Tile=(0.05, 0.04, 0.06)))
    assert (claim.kind, claim.age, claim.subject, claim.direction) == ("retention ahead", 90, "Tile", "higher")
    assert [claim.size, claim.low] == pytest.approx([0.03, 0.03 - math.hypot(0.01, 0.01)])
    assert claim.text == (
        "On day 90, Tile is projected to still have 5.0% (4.0% to 6.0%) of its new players: more than Farm, 2.0%."
    )
    (near,) = said(projected(Farm=(0.045, 0.03, 0.06), Tile=(0.05, 0.04, 0.06)))
    assert near.direction == "no clear difference"
    assert "not clearly more than Farm" in near.text
    (unsure,) = said(projected(Farm=(0.045, np.nan, np.nan), Tile=(0.05, 0.04, 0.06)))
    assert (unsure.direction, unsure.case) == ("unknown", "unknown")


def test_one_game_or_none_is_compared_with_nothing() -> None:
    """One game has a level; without a curve nothing is known."""
    alone = projected(Tile=(0.05, 0.04, 0.06))
    assert said(alone)[0].text.endswith("5.0% (4.0% to 6.0%) of its new players.")
    unknown = as_made_by("retention.project_retention", alone.assign(retention=np.nan), by="game")
    assert said(unknown)[0].case == "not_known"
    all_games = as_made_by("retention.project_retention", alone.drop(columns="game"), by=None)
    assert (
        said(all_games)[0].text == "On day 90, 5.0% (4.0% to 6.0%) of the new players are projected to still be active."
    )


def test_a_projection_that_does_not_fit_says_so() -> None:
    """A p-value of the best curve below 0.01 is in the sentence."""
    poor = projected(Tile=(0.05, 0.04, 0.06)).assign(fit_p_value=0.002)
    (claim,) = said(as_made_by("retention.project_retention", poor, by="game"))
    assert claim.misfit == 0.002
    assert claim.text.endswith("; no curve fits the counts (p = 0.002), so the band is widened.")


def test_a_curve_that_its_own_counts_reject_is_not_taken_silently() -> None:
    """BG/BB predicts the latest ages best, but its p-value is below 0.01 while two others fit."""
    ages, rng = range(1, 15), np.random.default_rng(5)
    counts = rng.binomial(400, [0.4 * age**-0.5 for age in ages], (28, 14))
    compared = retention.compare_curves(frame_of([400] * 28, counts, ages))
    chosen = compared["is_chosen"].to_numpy()
    p_values = np.where(chosen, 0.0085, [0.3, 0.2, 0.04, 0.0001])
    (claim,) = said(compared.assign(fit_p_value=p_values))
    assert claim.rejected == 0.0085
    fitting = compared["model"].astype("str")[~chosen & (p_values >= 0.01)].tolist()
    assert claim.fitting == ", ".join(fitting)
    assert "The counts speak against it (p = 0.009), while " in claim.text
    (claim,) = said(compared.assign(fit_p_value=[0.3, 0.2, 0.04, 0.02]))
    assert "speak against" not in claim.text
