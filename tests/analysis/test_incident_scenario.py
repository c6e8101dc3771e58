"""Health board against the simulator: `incident` raises its alarms, `calm` raises none.

tests/bench/test_health.py does the same with 200 seeds and two peers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.analysis.health import board_queries, watches
from gamelens.simulator import Scenario, load_scenario
from support.daily_answers import ArrayAnswers, daily_answers
from support.hypothesis_profiles import tries
from support.simulated_organisation import answer, day_of, drawn

pytestmark = [pytest.mark.slow, pytest.mark.wide]

BoardOf = Callable[[int], DataFrame]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    """The scenario `incident`."""
    return load_scenario("incident")


@pytest.fixture(scope="module")
def arrays(scenario: Scenario) -> ArrayAnswers:
    """The events of the scenario."""
    return ArrayAnswers(scenario)


@pytest.fixture(scope="module")
def board_of(arrays: ArrayAnswers, scenario: Scenario) -> BoardOf:
    """A function that returns the alarms of a day, judged by the days before it."""
    frames = [arrays.answer(query) for query in board_queries(watches())]
    scores = health.score_days(health.daily(frames))

    def board(day: int) -> DataFrame:
        """Return the flagged rows of *day*."""
        result = health.board(scores[scores["timestamp"] <= day_of(scenario, day)])
        return result[result["is_flagged"]]

    return board


def behind(arrays: ArrayAnswers, row: pd.Series, dimension: str) -> DataFrame:
    """Return the segments by *dimension* behind a row of the board."""
    frame = arrays.answer(health.drill_queries(row.to_dict())[dimension])
    watch = health.watches([row["watch"]])[0]
    frame = frame[frame["timestamp"] <= row["timestamp"]]
    return health.segments(
        frame, watch, dimension, day=row["timestamp"], window_days=row["window_days"], segment=row["segment"]
    )


def test_the_dead_network_on_its_first_day_and_its_platform(
    board_of: BoardOf, arrays: ArrayAnswers, scenario: Scenario
) -> None:
    """The dead network is found on its first day, and the drill-down finds its platform."""
    alarms = board_of(50)[lambda rows: rows["watch"] == "network_share"]
    row = alarms.iloc[0]
    assert (row["game"], row["segment"], row["severity"]) == ("Rooftop Dash", "Unity Ads", "critical")
    assert row["since"] == day_of(scenario, 50)
    segments = behind(arrays, row, "platform")
    assert segments["segment"].iloc[0] == "android"
    assert segments["change"].iloc[0] < -0.95


def test_the_network_is_not_there_the_day_before_and_not_the_day_it_is_back(board_of: BoardOf) -> None:
    """No network of any game raises an alarm the day before one dies nor the day it is back."""
    for day in (49, 53):
        assert not (board_of(day)["watch"] == "network_share").any()


def test_nothing_but_the_planted_faults_is_open_on_the_last_day(board_of: BoardOf, scenario: Scenario) -> None:
    """The bad build, which is not mended, is the only row flagged on the last day."""
    alarms = board_of(scenario.days - 1)
    assert alarms[["game", "watch", "segment"]].to_numpy().tolist() == [["Rooftop Dash", "retention_d1", "BR"]]


def test_the_silent_game_on_its_first_day(board_of: BoardOf, scenario: Scenario) -> None:
    """The silent game is found on the first day of its silence."""
    alarms = board_of(44)[lambda rows: rows["game"] == "Ember Realms"]
    assert alarms["is_silent"].all()
    assert alarms["since"].item() == day_of(scenario, 44)


def test_the_country_of_the_bad_build_and_the_build(
    board_of: BoardOf, arrays: ArrayAnswers, scenario: Scenario
) -> None:
    """A build that halves retention in one country is found within a fortnight.

    Installs from day 36 on return half as often from day 37 on. The alarm is dated to within three days,
    and the drill-down finds the build and its first day.
    """
    alarms = pd.concat([board_of(day) for day in range(37, 51)])
    alarms = alarms[alarms["watch"] == "retention_d1"]
    row = alarms[alarms["segment"] == "BR"].iloc[0]
    assert row["game"] == "Rooftop Dash"
    assert abs(row["since"] - day_of(scenario, 37)) <= pd.Timedelta(days=3)
    segments = behind(arrays, row, "build")
    assert segments["verdict"].iloc[0] == "one segment"
    assert segments[["segment", "first_day"]].iloc[0].tolist() == ["1.10.0", day_of(scenario, 36)]


def test_the_bad_build_is_open_on_the_last_day(board_of: BoardOf, scenario: Scenario) -> None:
    """A fault that is not mended is flagged on the last day too, since its first days."""
    alarms = board_of(scenario.days - 1)
    row = alarms[(alarms["watch"] == "retention_d1") & (alarms["segment"] == "BR")].iloc[0]
    assert abs(row["since"] - day_of(scenario, 37)) <= pd.Timedelta(days=6)


def test_answers_from_arrays_are_those_of_the_ledger() -> None:
    """Answers computed from arrays, as in this module and the bench, equal the ledger's, row by row."""
    few = load_scenario("incident", players=1000)
    ledger, arrays = drawn(few), ArrayAnswers(few)
    of_networks: dict[str, Any] = {"watch": "network_share", "dimension": "ilrd_network_name", "segment": "Unity Ads"}
    of_country: dict[str, Any] = {"watch": "retention_d1", "dimension": "country_code", "segment": "BR"}
    shared = {"game_id": few.games[0].title, "is_silent": False}
    drills = [health.drill_queries(row | shared) for row in (of_networks, of_country)]
    for query in (*board_queries(watches()), *drills[0].values(), *drills[1].values()):
        quick, slow = arrays.answer(query), answer(ledger, few, query)
        assert len(slow)
        keys = ["timestamp", *("game_id" if name == "game" else name for name in query.by)]
        expected, got = (frame[slow.columns].sort_values(keys, ignore_index=True) for frame in (slow, quick))
        expected.attrs = got.attrs = {}
        pd.testing.assert_frame_equal(got, expected, check_dtype=False, rtol=1e-9)


@pytest.mark.hypothesis  # more draws in `make bench`
def test_a_demo_without_incidents_raises_few_alarms() -> None:
    """At most one in sixteen boards of a scenario without incidents has an alarm.

    The q limit of 0.01 allows one false board in a hundred; these are the last 24 days of each seed.
    """
    false, seeds = list[bool](), tries(in_test=1, in_bench=2)
    for seed in range(1, 1 + seeds):
        scenario, frames = daily_answers("calm", seed=seed, players=5000)
        scores = health.score_days(health.daily(frames))
        days = scores[scores["timestamp"] >= day_of(scenario, scenario.days - 24)]
        false += days.groupby("timestamp")["is_flagged"].any().tolist()
    assert len(false) == 24 * seeds
    assert sum(false) <= 1.5 * seeds
