"""The baseline, the band and the alarms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import health

WEEK = [100, 101, 99, 102, 98, 150, 160]


@pytest.fixture
def players(tidy):
    """One game, five weeks of the same week; the first day is a Monday."""
    days = pd.date_range("2026-10-05", periods=35, freq="D").strftime("%Y-%m-%d").tolist()
    return tidy("user_unique", timestamp=days, game_id=["1"] * 35, game=["Tile"] * 35, user_unique=WEEK * 5)


def _scores(frame):
    return health.score_days(health.measured(frame, {"user_unique": "Players"}))


def test_a_steady_game_raises_no_alarm(players) -> None:
    assert not _scores(players)["is_flagged"].any()


def test_what_is_expected_is_the_median_of_the_weekday(players) -> None:
    scores = _scores(players)
    assert scores["expected"].tail(7).tolist() == pytest.approx(WEEK)


def test_a_saturday_is_not_compared_with_a_monday(players) -> None:
    assert _scores(players)["z"].tail(7).abs().max() == 0


def test_a_collapse_is_flagged_on_its_day(players) -> None:
    players.loc[30, "user_unique"] = 20
    flagged = health.flagged(_scores(players))
    assert flagged["timestamp"].dt.strftime("%Y-%m-%d").tolist() == ["2026-11-04"]


def test_the_sentence_names_game_metric_day_and_numbers(players) -> None:
    players.loc[30, "user_unique"] = 20
    sentence = health.flagged(_scores(players))["sentence"].item()
    assert sentence == "Tile: Players 80% below a usual Wednesday on 2026-11-04 (20 instead of about 99)"


def test_a_tenth_is_needed_however_quiet_the_series(players) -> None:
    players["user_unique"] *= 1000
    players.loc[34, "user_unique"] = int(players.loc[34, "user_unique"] * 1.05)
    scores = _scores(players)
    assert scores["z"].iloc[-1] > 3.5
    assert not scores["is_flagged"].iloc[-1]


def test_chance_alone_moves_a_small_count(players) -> None:
    """Nine players instead of four is a coincidence, not an incident."""
    players["user_unique"] = 4
    players.loc[34, "user_unique"] = 9
    assert not _scores(players)["is_flagged"].any()


def test_days_to_come_change_no_verdict(players) -> None:
    players.loc[34, "user_unique"] = 0
    before, after = _scores(players[:34]), _scores(players)
    pd.testing.assert_frame_equal(before, after[:34])


def test_a_short_history_gives_no_verdict(players) -> None:
    scores = _scores(players)
    assert scores["z"].isna().tolist() == [True] * 21 + [False] * 14


def test_growth_is_not_an_alarm(players) -> None:
    players["user_unique"] = [value + 3 * day for day, value in enumerate(players["user_unique"])]
    assert not _scores(players)["is_flagged"].any()


def test_a_day_without_a_row_counts_as_zero(players) -> None:
    daily = health.measured(players.drop(index=30), {"user_unique": "Players"})
    assert daily["value"].iloc[30] == 0


def test_a_game_that_stopped_is_silent(players) -> None:
    other = players[:32].assign(game_id="2", game="Farm")
    both = pd.concat([players.astype({"game": str}), other.astype({"game": str})]).astype({"game": "category"})
    silent = health.silent_games(health.measured(both, {"user_unique": "Players"}))
    assert silent[["game", "silent_days"]].to_numpy().tolist() == [["Farm", 3]]


def test_the_board_has_one_row_for_each_game_and_metric_largest_surprise_first(players) -> None:
    players = players.assign(session_unique=[*WEEK * 4, *WEEK[:6], 10])
    players["session_unique"] = players["session_unique"].astype("Int64")
    daily = health.measured(players, {"user_unique": "Players", "session_unique": "Sessions"})
    assert health.board(health.score_days(daily))["metric"].tolist() == ["Sessions", "Players"]


def test_money_that_always_jumps_about_raises_few_alarms(players) -> None:
    """A handful of purchases a day: days differ by a factor, and that is ordinary."""
    days = [
        players.assign(sum=np.random.default_rng(seed).lognormal(3, 0.8, 35), game=f"Game {seed}") for seed in range(50)
    ]
    scores = health.score_days(health.measured(pd.concat(days), {"sum": "Revenue"}))
    assert scores.loc[scores["z"].notna(), "is_flagged"].mean() < 0.02


def test_a_purchase_now_and_then_is_no_alarm(players) -> None:
    """Where most days bring nothing, a day that brings something is no surprise."""
    money = players.assign(sum=[9.99 if day % 5 == 0 else 0.0 for day in range(35)])
    assert not health.score_days(health.measured(money, {"sum": "Revenue"}))["is_flagged"].any()


def test_nothing_asked_is_nothing_judged(players) -> None:
    scores = _scores(players[:0])
    assert len(health.board(scores)) == len(health.flagged(scores)) == 0
