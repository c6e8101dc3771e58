"""What a health board says: its headline, silent games, alarms, incidents and history."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import claims, health
from gamelens.analysis.claims.findings import findings_of
from gamelens.analysis.claims.templates import spoken
from support.said import as_made_by, said
from support.tidy_frames import tidy_frame

DAYS = 57
STAMPS = pd.date_range("2026-08-31", periods=DAYS, tz="UTC")
LAST = "26 Oct 2026"
WEEK = np.array([1.0, 0.9, 0.9, 1.0, 1.2, 1.5, 1.4])
EMPTY = health.score_days(health.daily([]))


def scores(*factors: float, size: float = 1000.0, days: int = DAYS, seed: int = 3) -> DataFrame:
    """Return the scores of a game for each of *factors*, by which its last day changes; some chance, no drift."""
    rng = np.random.default_rng(seed)
    parts = []
    for number, factor in enumerate(factors, 1):
        mean = size * np.resize(WEEK, days) * np.append(np.ones(days - 1), factor)
        about = {"timestamp": STAMPS[DAYS - days :], "game_id": str(number), "game": f"Game {number}"}
        parts.append(DataFrame({**about, "user_unique": rng.poisson(mean)}))
    frame = pd.concat(parts, ignore_index=True).astype({"game": "category"})
    return health.score_days(health.measured(frame, {"user_unique": "Active players"}))


def test_a_headline_counts_what_stands_out() -> None:
    """One critical and one warning row of three, with their days, and the direction of the worst."""
    found = health.headline(health.board(scores(0.3, 0.8, 1.0)))
    row = found.iloc[0]
    assert (row["critical"], row["warning"], row["judged"], row["games"]) == (1, 1, 3, 3)
    assert row["change_low"] < row["change"] < row["change_high"] < -0.5
    claim, silent = said(found)
    assert (claim.case, claim.direction, claim.size) == ("alarms", "lower", 2.0)
    assert claim.text == f"1 critical and 1 warning on {LAST}: 3 numbers of 3 games judged."
    assert (silent.case, silent.direction, silent.size) == ("none", "no clear difference", 0.0)


def test_a_calm_board_says_what_was_judged() -> None:
    """Nothing stands out of two numbers; without a day, or with a week of history, nothing can be judged."""
    claim, _ = said(health.headline(health.board(scores(1.0, 1.0))))
    assert (claim.case, claim.direction) == ("calm", "no clear difference")
    assert claim.text == f"Nothing stands out on {LAST}: 2 numbers of 2 games judged."
    early, _ = said(health.headline(health.board(scores(1.0, days=7))))
    assert (early.case, early.direction) == ("too_early", "unknown")
    empty, silent = said(health.headline(health.board(EMPTY)))
    assert (empty.case, silent.case, silent.direction) == ("no_data", "nothing", "unknown")


def test_a_silent_game_is_named() -> None:
    """The game that sent nothing is the subject, and its fall is beyond what chance brings."""
    board = health.board(scores(1.0, 0.0))
    silent = said(health.headline(board))[1]
    assert (silent.subject, silent.direction, silent.text) == ("Game 2", "lower", "Silent now: Game 2.")
    worst = said(board)[0]
    assert (worst.case, worst.subject, worst.direction, worst.size) == ("silent", "Game 2", "lower", -1.0)
    assert worst.low == -1 < worst.high < -0.95
    assert worst.text.startswith(f"Game 2: silent on {LAST}, no data arrived (usually about 1,")


def test_a_game_that_is_silent_in_a_young_series_has_an_interval() -> None:
    """Nothing instead of seven and more: at most 3.7 are the true level, which is the exact bound of none."""
    board = health.board(scores(0.0, size=20, days=16))
    worst = said(board)[0]
    assert worst.case == "silent"
    assert worst.high == pytest.approx(3.7 / worst.expected - 1, abs=0.02)


@pytest.mark.parametrize(("factor", "case", "direction"), [(0.6, "below", "lower"), (1.7, "above", "higher")])
def test_an_alarm_has_the_direction_of_its_interval(factor: float, case: str, direction: str) -> None:
    """The planted change lies in the interval of the row, which the sentence has too."""
    board = health.board(scores(factor))
    (claim,) = said(board)
    assert (claim.case, claim.direction, claim.subject) == (case, direction, "Game 1")
    assert claim.low <= factor - 1 <= claim.high
    assert (claim.size, claim.low, claim.high) == tuple(board.loc[0, ["change", "change_low", "change_high"]])
    assert claim.text == board.loc[0, "sentence"]
    assert f"% {case} a usual Monday on {LAST} (" in claim.text
    assert f" instead of about {claim.expected:,.0f}; {claim.low:+.0%} to {claim.high:+.0%})." in claim.text


def test_a_usual_row_has_no_direction() -> None:
    """The interval of a number as usual holds no change."""
    (claim,) = said(health.board(scores(1.0)))
    assert claim.direction == "no clear difference"
    assert claim.low < 0 < claim.high


def test_an_alarm_that_may_be_over_is_told_without_a_direction() -> None:
    """An incident stays open on the first day that is as usual again: that is said, and claims no fall."""
    days = scores(1.0, size=800.0)
    values = days["value"].to_numpy(dtype="float64").copy()
    values[-6:-1] *= 0.86
    back = health.score_days(days[[*health.IDENTITY, "timestamp", "part", "whole"]].assign(value=values.round()))
    board = health.board(back)
    (claim,) = said(board)
    assert (board.loc[0, "severity"], claim.direction) == ("warning", "no clear difference")
    assert claim.low < 0 < claim.high
    assert ", open since 21 Oct 2026 (" in claim.text
    many = pd.concat([board, *[health.board(scores(1.0))] * 5], ignore_index=True)
    many.attrs = dict(board.attrs)
    assert spoken(findings_of(many)) == [claim.text, "No other number stands out."]


def test_of_many_numbers_the_alarms_are_told() -> None:
    """A line stands for the others, and for all of a calm board; a part of a board may be asked too."""
    board = health.board(scores(0.5, 1.0, 1.0, 1.0, 1.0))
    assert spoken(findings_of(board)) == [board.loc[0, "sentence"], "No other number stands out."]
    assert spoken(findings_of(board[1:])) == ["No number stands out."]
    assert claims.of(board)["text"].tolist() == board["sentence"].tolist()


def test_nothing_expected_has_no_change_and_a_direction() -> None:
    """Fifty of what never came is far above usual: above the band of usual days."""
    frame = DataFrame({"timestamp": STAMPS, "game_id": "1", "game": "Game 1", "errors": [3] + [0] * (DAYS - 2) + [50]})
    (claim,) = said(health.board(health.score_days(health.measured(frame, {"errors": "Errors"}))))
    assert (claim.case, claim.direction) == ("far_above", "higher")
    assert np.isnan(claim.size)
    assert claim.text.startswith(f"Game 1: Errors far above usual on {LAST} (50 instead of about 0)")


def test_the_days_of_an_incident_are_one() -> None:
    """A fall of five days that is over and one that is open; the days are of two incidents."""
    days = scores(0.5)
    values = days["value"].to_numpy(dtype="float64").copy()
    values[30:35] *= 0.5
    both = health.score_days(days[[*health.IDENTITY, "timestamp", "part", "whole"]].assign(value=values.round()))
    flags = health.flagged(both)
    assert flags["is_open"].tolist() == [True] + [False] * (len(flags) - 1)
    (claim,) = said(flags)
    assert (claim.case, claim.size, claim.still_open) == ("some_open", 2.0, 1)
    assert claim.text == f"2 incidents in the whole period, 1 still open; the newest began on {LAST}."
    over = health.flagged(both[: DAYS - 1])
    assert said(over)[0].text.startswith("1 incident in the whole period, none still open; ")
    assert said(health.flagged(scores(1.0)))[0].text == "No day stood out."


def test_history_is_counted() -> None:
    """Two games with one series each."""
    (claim,) = said(scores(1.0, 1.0))
    assert (claim.size, claim.games, claim.days) == (2.0, 2, DAYS)
    assert claim.text == f"2 games, 2 series, {DAYS} days of history; the judged day is {LAST}."
    assert said(EMPTY)[0].case == "nothing"


def test_segments_of_several_alarms_name_theirs() -> None:
    """Rows of two alarms: each split is one claim, with the alarm's number in front: it may stand alone."""
    numbers = {"value": 10.0, "expected": 20.0, "contribution": -10.0, "first_day": pd.NaT, "kind": "count"}
    about = {"timestamp": STAMPS[0], "game": "Tile", "metric": "Active players", "watch": "user_unique", **numbers}
    one = {**about, "game_id": "1", "dimension": "country_code", "verdict": "one segment", "share_of_change": 0.8}
    alike = {**about, "game_id": "1", "dimension": "platform", "verdict": "all alike", "share_of_change": 0.5}
    other = {**alike, "game_id": "2", "game": "Farm", "of_dimension": "country_code", "of_segment": "US"}
    rows = DataFrame([{**one, "segment": "BR"}, {**one, "segment": "US"}, {**alike, "segment": "ios"}])
    rows = rows.assign(of_dimension=None, of_segment=None)
    named, same = said(as_made_by("health.segments", rows))
    assert (named.case, named.subject, named.size) == ("one_segment", "Tile, BR", 0.8)
    assert named.text == "Tile: Active players: By country, BR makes up 80.0% of the change (10 instead of about 20)."
    assert (same.case, same.subject, same.direction) == ("all_alike_down", "Tile", "lower")
    both = pd.concat([rows, DataFrame([{**other, "segment": "ios"}])], ignore_index=True)
    first, _, last = said(as_made_by("health.segments", both))
    assert first.text.startswith("Tile: Active players: By country, BR makes up ")
    assert last.text == "Farm: Active players, US: By platform, all segments fell."


def coverage(factor: float, *, noise: float, size: float, kind: str) -> tuple[float, float]:
    """Return how often the interval of 400 games holds the planted *factor*, and its lowest bound."""
    rng = np.random.default_rng(11)
    week = np.resize(WEEK, (400, DAYS)) * np.append(np.ones(DAYS - 1), factor)
    mean = size * week * np.exp(noise * rng.standard_normal((400, DAYS)))
    values: Any = rng.poisson(mean) if kind == "count" else mean
    names = np.repeat([str(number) for number in range(400)], DAYS)
    frame = DataFrame({"timestamp": np.tile(STAMPS, 400), "game_id": names, "game": names, "number": values.ravel()})
    days = health.score_days(health.measured(frame.astype({"game": "category"}), {"number": "Number"}))
    last = days[days["timestamp"] == STAMPS[-1]]
    holds = (last["change_low"] <= factor - 1) & (factor - 1 <= last["change_high"])
    return float(holds.mean()), float(last["change_low"].min())


@pytest.mark.wide
@pytest.mark.parametrize("factor", [0.05, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("kind", "size", "noise"), [("count", 30, 0.0), ("count", 1000, 0.1), ("count", 1e5, 0.0), ("money", 500.0, 0.3)]
)
def test_intervals_of_changes_hold_the_change(kind: str, size: float, noise: float, factor: float) -> None:
    """About 95 % of 400 intervals hold the planted change, or more of small counts; none is below -100 %."""
    held, lowest = coverage(factor, noise=noise, size=size, kind=kind)
    assert held >= 0.93
    assert lowest >= -1


@pytest.mark.parametrize(
    ("asked_at", "case", "says"),
    [
        ("2026-10-27T00:20:00Z", "fresh", "The data end on 27 Oct 2026 00:00 UTC, 20 min before they were asked for."),
        ("2026-11-04T06:00:00+01:00", "stale", "The data end on 27 Oct 2026 00:00 UTC, 8 days ago: nothing is known"),
        ("", "unknown", "It is not known how old the data are."),
    ],
)
def test_the_age_of_an_answer_is_that_of_its_receipt(asked_at: str, case: str, says: str) -> None:
    """The time between the end of the available interval and the question; without either it is not known."""
    frame = tidy_frame("dau", timestamp=["2026-10-25", "2026-10-26"], dau=[4, 5])
    frame.attrs["gamelens"] |= {"as_of": "2026-10-27T00:00:00+00:00", "asked_at": asked_at}
    age = health.data_age(frame)
    (claim,) = said(age)
    assert (claim.case, claim.text.startswith(says)) == (case, True), claim.text
    assert age["is_stale"].tolist() == [case == "stale"]


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (["2026-10-20"], "Nothing was sent after 20 Oct 2026, although the period ends on 26 Oct 2026."),
        ([], "Nothing was sent in the period, which ends on 26 Oct 2026."),
        (["2026-10-20", "2026-10-26"], ""),
    ],
)
def test_days_on_which_nothing_was_sent_are_no_fresh_data(days: list[str], says: str) -> None:
    """A service that goes on processing while no game sends anything is not up to date."""
    frame = tidy_frame("dau", timestamp=days, dau=[4] * len(days))
    frame.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-10-13T00:00:00Z/2026-10-27T00:00:00Z"}
    frame.attrs["gamelens"] |= {"as_of": "2026-10-27T00:00:00Z", "asked_at": "2026-10-27T00:20:00Z"}
    age = health.data_age(frame)
    assert said(age)[0].text.partition("asked for.")[2].strip() == says
    assert age["is_quiet"].tolist() == [bool(says)]


def test_a_headline_of_old_data_begins_with_their_age() -> None:
    """Alarms, calm and too little history alike; and none without a receipt that knows."""
    for found in (scores(0.3), scores(1.0), scores(1.0, days=7)):
        board = health.board(found)
        before = said(health.headline(board))[0].text
        board.attrs["gamelens"] = {"as_of": "2026-10-27T00:00:00Z", "asked_at": "2026-11-04T06:00:00Z"}
        age = "The data end on 27 Oct 2026 00:00 UTC, 8 days ago: nothing is known of the time since."
        assert said(health.headline(board))[0].text == f"{age} {before}"
        assert said(health.headline(board, stale_after=timedelta(days=9)))[0].text == before


def test_a_rare_count_has_no_percentage() -> None:
    """Nine purchases instead of one or two are two counts; from ten expected events on there is a percentage."""
    few = np.random.default_rng(0).poisson(0.8, DAYS - 1).tolist()
    frame = tidy_frame(
        timestamp=STAMPS.strftime("%Y-%m-%d").tolist() * 2,
        game_id=["1"] * DAYS + ["2"] * DAYS,
        game=["Rare"] * DAYS + ["Usual"] * DAYS,
        purchases=[*few, 9, *[20, 24] * 28, 60],
    )
    board = health.board(health.score_days(health.measured(frame, {"purchases": "Purchases"})))
    rare, usual = (board[board["game"] == game].iloc[0] for game in ("Rare", "Usual"))
    assert (0 < rare["expected"] < 2, pd.isna(rare["change"]), rare["change_low"] > 0) == (True, True, True)
    assert f"Rare: Purchases above a usual Monday on {LAST} (9 instead of about 1)" in rare["sentence"]
    assert "%" not in rare["sentence"]
    assert usual["change"] > 1
    assert "%" in usual["sentence"]
    headline, _ = said(health.headline(board))
    assert headline.direction == "higher"


@pytest.mark.parametrize(("whole", "has_change"), [(100.0, False), (10_000.0, True)])
def test_a_share_of_few_events_has_no_percentage(whole: float, has_change: bool) -> None:
    """2% of 100 players are two events, of 10,000 they are 200."""
    rows = {"timestamp": STAMPS, "game_id": "1", "game": "Tile", "watch": "conversion", "metric": "Conversion"}
    part = np.append(np.full(DAYS - 1, 0.02), 0.15) * whole
    frame = DataFrame({**rows, "kind": "share", "value": part / whole, "part": part, "whole": whole})
    identity = dict.fromkeys(health.IDENTITY, "category")
    frame = frame.assign(dimension=None, segment=None)[[*health.daily([]).columns]].astype(identity)
    board = health.board(health.score_days(frame))
    assert board["change"].notna().tolist() == [has_change]
    assert ("%;" in board["sentence"][0] or "% above" in board["sentence"][0]) == has_change
