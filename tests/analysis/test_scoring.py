"""Daily scores: the expected value, the band around it and the alarms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.analysis.health.severity import is_settled
from support.tidy_frames import tidy_frame

WEEK = [100, 101, 99, 102, 98, 150, 160]


@pytest.fixture
def players() -> DataFrame:
    """One game, five times the same week of players, from a Monday on."""
    days = pd.date_range("2026-10-05", periods=35, freq="D").strftime("%Y-%m-%d").tolist()
    return tidy_frame("user_unique", timestamp=days, game_id=["1"] * 35, game=["Tile"] * 35, user_unique=WEEK * 5)


def _scores(frame: DataFrame) -> DataFrame:
    """Return the scores of the daily players of *frame*."""
    return health.score_days(health.measured(frame, {"user_unique": "Players"}))


def test_a_steady_game_raises_no_alarm(players: DataFrame) -> None:
    """A series that repeats its week has no flagged day."""
    assert not _scores(players)["is_flagged"].any()


def test_what_is_expected_is_the_median_of_the_weekday(players: DataFrame) -> None:
    """The expected value is the median of the same weekday."""
    scores = _scores(players)
    assert scores["expected"].tail(7).tolist() == pytest.approx(WEEK)


def test_a_saturday_is_not_compared_with_a_monday(players: DataFrame) -> None:
    """A weekend that is always higher does not deviate."""
    assert _scores(players)["z"].tail(7).abs().max() == 0


def test_a_collapse_is_flagged_on_its_day(players: DataFrame) -> None:
    """A fall to a fifth is flagged on its day, and no other day is."""
    players.loc[30, "user_unique"] = 20
    flagged = health.flagged(_scores(players))
    assert flagged["timestamp"].dt.strftime("%Y-%m-%d").tolist() == ["2026-11-04"]


def test_the_sentence_names_game_metric_day_and_numbers(players: DataFrame) -> None:
    """The sentence has game, metric, size, weekday, day, value and expected value."""
    players.loc[30, "user_unique"] = 20
    row = health.flagged(_scores(players)).iloc[0]
    bounds = f"{row['change_low']:.0%} to {row['change_high']:.0%}"
    numbers = f"(20 instead of about {row['expected']:.0f}; {bounds})"
    assert row["sentence"] == f"Tile: Players 80% below a usual Wednesday on 4 Nov 2026 {numbers}."


def test_a_tenth_is_needed_however_quiet_the_series(players: DataFrame) -> None:
    """A change of 5 % is not flagged, however small the noise of the series."""
    players["user_unique"] *= 1000
    players.loc[34, "user_unique"] = int(players["user_unique"].iloc[34] * 1.05)
    scores = _scores(players)
    assert scores["z"].iloc[-1] > 3.5
    assert not scores["is_flagged"].iloc[-1]


def test_chance_alone_moves_a_small_count(players: DataFrame) -> None:
    """Nine players instead of four are within chance and not flagged."""
    players["user_unique"] = 4
    players.loc[34, "user_unique"] = 9
    assert not _scores(players)["is_flagged"].any()


def test_days_to_come_change_no_verdict(players: DataFrame) -> None:
    """The score of a day depends on earlier days only."""
    players.loc[34, "user_unique"] = 0
    before, after = _scores(players[:34]), _scores(players)
    pd.testing.assert_frame_equal(before, after[:34])


def test_a_short_history_gives_no_verdict(players: DataFrame) -> None:
    """The first 21 days have no score."""
    scores = _scores(players)
    assert scores["z"].isna().tolist() == [True] * 21 + [False] * 14


def test_growth_is_not_an_alarm(players: DataFrame) -> None:
    """Steady growth of three players a day is not flagged."""
    players["user_unique"] = [value + 3 * day for day, value in enumerate(players["user_unique"])]
    assert not _scores(players)["is_flagged"].any()


def test_a_day_without_a_row_counts_as_zero(players: DataFrame) -> None:
    """A day within the interval that has no row has the value 0."""
    daily = health.measured(players.drop(index=30), {"user_unique": "Players"})
    assert daily["value"].iloc[30] == 0


def test_a_game_that_stopped_is_silent(players: DataFrame) -> None:
    """A game without rows at the end is silent for as many days."""
    other = players[:32].assign(game_id="2", game="Farm")
    both = pd.concat([players.astype({"game": str}), other.astype({"game": str})]).astype({"game": "category"})
    silent = health.silent_games(health.measured(both, {"user_unique": "Players"}))
    assert silent[["game", "silent_days"]].to_numpy().tolist() == [["Farm", 3]]


def test_the_board_has_one_row_for_each_game_and_metric_largest_surprise_first(players: DataFrame) -> None:
    """The board has one row per game and metric, the largest deviation first."""
    players = players.assign(session_unique=[*WEEK * 4, *WEEK[:6], 10])
    players["session_unique"] = players["session_unique"].astype("Int64")
    daily = health.measured(players, {"user_unique": "Players", "session_unique": "Sessions"})
    assert health.board(health.score_days(daily))["metric"].tolist() == ["Sessions", "Players"]


def test_money_that_always_jumps_about_raises_few_alarms(players: DataFrame) -> None:
    """Less than 2 % of days of a log-normal revenue are flagged."""
    days = [
        players.assign(sum=np.random.default_rng(seed).lognormal(3, 0.8, 35), game=f"Game {seed}") for seed in range(50)
    ]
    scores = health.score_days(health.measured(pd.concat(days), {"sum": "Revenue"}))
    assert scores.loc[scores["z"].notna(), "is_flagged"].mean() < 0.02


def test_a_purchase_now_and_then_is_no_alarm(players: DataFrame) -> None:
    """Revenue on every fifth day only is never flagged."""
    money = players.assign(sum=[9.99 if day % 5 == 0 else 0.0 for day in range(35)])
    assert not health.score_days(health.measured(money, {"sum": "Revenue"}))["is_flagged"].any()


def test_nothing_asked_is_nothing_judged(players: DataFrame) -> None:
    """An empty frame has an empty board and no alarms."""
    scores = _scores(players[:0])
    assert len(health.board(scores)) == len(health.flagged(scores)) == 0


def test_a_day_is_settled_two_days_after_its_end() -> None:
    """On 7 November that is up to 4 November; without a receipt every day."""
    days = pd.date_range("2026-11-03", "2026-11-06", tz="UTC")
    daily = DataFrame({"timestamp": days})
    assert is_settled(days, daily).all()
    daily.attrs["gamelens"] = {"as_of": "2026-11-07T00:00:00+00:00"}
    assert is_settled(days, daily).tolist() == [True, True, False, False]
