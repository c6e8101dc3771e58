"""Health board: silence, restatements, unfinished days, segments and false alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.client.query.data_frames import restatements_frame
from gamelens.receipts import RestatementRecord

DAYS = 42
FIRST = pd.Timestamp("2026-10-05", tz="UTC")
LAST = FIRST + pd.Timedelta(days=DAYS - 1)
AS_OF_LATER = "2026-11-30T09:00:00+00:00"

Answers = Callable[..., list[DataFrame]]


def with_receipt(frame: DataFrame, metric: str | list[str], **more: object) -> DataFrame:
    """Return *frame* with the receipt of a query for *metric* over all days."""
    end = FIRST + pd.Timedelta(days=DAYS)
    interval = f"{FIRST:%Y-%m-%dT%H:%MZ}/{end:%Y-%m-%dT%H:%MZ}"
    query = {"metric": metric, "every": "day", "interval": interval}
    frame.attrs["gamelens"] = {"asked": query, "as_of": AS_OF_LATER, "requests": 1, **more}
    return frame


def days_of(rows: list[dict[str, object]]) -> DataFrame:
    """Return *rows* as a tidy frame, their `day` numbers as timestamps."""
    frame = DataFrame(rows)
    frame["timestamp"] = (FIRST + pd.to_timedelta(frame.pop("day"), unit="D")).astype("datetime64[us, UTC]")
    names = [name for name in frame if name in ("game", "game_id", "ilrd_network_name", "country_code")]
    counts = [name for name in frame if name in ("user_unique", "session_unique", "event_count", "new_users")]
    return frame.astype(dict.fromkeys(names, "category") | dict.fromkeys(counts, "Int64"))


@pytest.fixture
def players() -> DataFrame:
    """Two games with random players, about 400 and 90 a day."""
    chance = np.random.default_rng(5)
    rows = [
        {
            "day": day,
            "game_id": str(game),
            "game": f"Game {game}",
            "user_unique": int(count),
            "session_unique": int(2 * count),
        }
        for game, size in ((1, 400), (2, 90))
        for day, count in enumerate(chance.poisson(size, DAYS))
    ]
    return with_receipt(days_of(rows), ["user_unique", "session_unique"])


@pytest.fixture
def networks() -> Answers:
    """Random impressions of one game by network: 1000 a day, one network null."""

    def make(change: Callable[[int, dict[str | None, int]], None] = lambda *_: None) -> list[DataFrame]:
        """Return the answers, after *change* has edited the counts of each day."""
        chance, rows = np.random.default_rng(7), []
        names = ["Alpha", "Beta", "Gamma", None]
        for day in range(DAYS):
            counts = dict(zip(names, chance.multinomial(1000, [0.4, 0.3, 0.25, 0.05]).tolist(), strict=True))
            change(day, counts)
            rows += [
                {
                    "day": day,
                    "game_id": "1",
                    "game": "Tile",
                    "ilrd_network_name": name,
                    "ilrd_revenue_event_count": n,
                    "ilrd_revenue": n / 100,
                }
                for name, n in counts.items()
            ]
        return [with_receipt(days_of(rows), "ilrd_revenue")]

    return make


@pytest.fixture
def cohorts() -> Answers:
    """New players of one game in two countries, of whom *shares*(day, country) return."""

    def make(shares: Callable[[int, str], float]) -> list[DataFrame]:
        """Return the answers of 60 installs a day and country."""
        chance, rows = np.random.default_rng(11), []
        for day in range(DAYS):
            for country in ("BR", "US"):
                returned = chance.binomial(60, shares(day, country))
                rows.append(
                    {
                        "day": day,
                        "game_id": "1",
                        "game": "Tile",
                        "country_code": country,
                        "new_users": 60,
                        "retention_retro": returned / 60,
                    }
                )
        return [with_receipt(days_of(rows), ["new_users", "retention_retro"])]

    return make


def restatement(
    *,
    before: float | None,
    after: float | None,
    hours: int = 80,
    metric: str = "user_unique",
    field: str = "user_unique",
) -> DataFrame:
    """Return the restatement of the last day, first queried *hours* after it began."""
    entry = {"metric": metric, "by": ["game_id"], "field": field, "before": before, "after": after, "rows": 1}
    moments = {"timestamp": LAST, "before_as_of": LAST + pd.Timedelta(hours=hours), "as_of": pd.Timestamp(AS_OF_LATER)}
    entry |= {name: moment.isoformat() for name, moment in moments.items()}
    return restatements_frame([msgspec.convert(entry, RestatementRecord)])


def board_of(answers: list[DataFrame], **options: Any) -> DataFrame:
    """Return the board of the last day of *answers*."""
    return health.board(health.score_days(health.daily(answers), **options))


def row_of(board: DataFrame, watch: str, segment: str | None = None) -> pd.Series:
    """Return the only row of a watched metric, for the whole game or for *segment*."""
    rows = board[
        (board["watch"] == watch) & (board["dimension"].isna() if segment is None else board["segment"] == segment)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def test_a_game_that_sends_nothing_is_one_finding(players: DataFrame) -> None:
    """A game without events is one critical row, however many of its metrics fell."""
    last = (players["timestamp"] == LAST) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~last].copy(), ["user_unique", "session_unique"])])
    assert board["severity"].value_counts()["critical"] == 1
    assert board.iloc[0]["is_silent"]
    assert "Game 2: silent on 15 Nov 2026" in board.iloc[0]["sentence"]


def test_silence_began_on_its_first_day(players: DataFrame) -> None:
    """The `since` of a silent game is the first day without events."""
    gone = (players["timestamp"] > LAST - pd.Timedelta(days=3)) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~gone].copy(), ["user_unique", "session_unique"])])
    assert board.iloc[0]["since"] == LAST - pd.Timedelta(days=2)


def test_a_tiny_game_without_players_today_is_not_silent(players: DataFrame) -> None:
    """A game of two players a day that has none on one day raises no alarm."""
    players.loc[players["game_id"] == "2", ["user_unique", "session_unique"]] = 2
    last = (players["timestamp"] == LAST) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~last].copy(), ["user_unique", "session_unique"])])
    assert not board["is_silent"].any()
    assert not board["is_flagged"].any()


def test_a_game_that_is_new_is_no_alarm(players: DataFrame) -> None:
    """A game with two days of history has severity unknown, and the sentence says why."""
    early = (players["timestamp"] < LAST - pd.Timedelta(days=1)) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~early].copy(), ["user_unique", "session_unique"])])
    assert set(board.loc[board["game_id"] == "2", "severity"]) == {"unknown"}
    assert "the history is too short" in board.loc[board["game_id"] == "2", "sentence"].iloc[0]


def test_a_restated_day_raises_no_alarm(players: DataFrame) -> None:
    """A fall on a day that the service has restated downwards is info, not critical."""
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = 150
    restated = restatement(before=600.0, after=240.0)
    assert row_of(board_of([players]).loc[lambda rows: rows["game_id"] == "1"], "user_unique")["severity"] == "critical"
    row = row_of(board_of([players], restatements=restated).loc[lambda rows: rows["game_id"] == "1"], "user_unique")
    assert row["severity"] == "info"
    assert row["sentence"].endswith("the service has restated this day.")


def test_a_restatement_of_a_thousandth_hides_nothing(players: DataFrame) -> None:
    """A restatement too small to explain the fall does not lower its severity."""
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = 150
    restated = restatement(before=240.1, after=240.0)
    assert board_of([players], restatements=restated)["severity"].iloc[0] == "critical"


@pytest.mark.parametrize("amounts", [{"before": 100.0, "after": 240.0}, {"before": 600.0, "after": 240.0, "hours": 10}])
def test_late_data_does_not_hide_a_fall(players: DataFrame, amounts: dict[str, Any]) -> None:
    """A restatement upwards, or of a day queried before its end, does not hide a fall."""
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = 150
    assert board_of([players], restatements=restatement(**amounts))["severity"].iloc[0] == "critical"


@pytest.mark.parametrize(("hours", "severity"), [(40, "critical"), (80, "info")])
def test_a_restatement_of_unknown_size_hides_a_share_once_settled(networks: Answers, hours: int, severity: str) -> None:
    """A restatement of unknown size explains a fall in a share only once the day is settled."""
    answers = networks(lambda day, counts: counts.update(Beta=0) if day == DAYS - 1 else None)
    restated = restatement(
        metric="ilrd_revenue", field="ilrd_revenue_event_count", before=None, after=None, hours=hours
    )
    row = row_of(board_of(answers, restatements=restated), "network_share", "Beta")
    assert row["severity"] == severity


@pytest.mark.parametrize(
    ("value", "as_of", "severity"), [(340, "2026-11-16T09:00:00+00:00", "info"), (340, AS_OF_LATER, "warning")]
)
def test_a_day_that_may_still_move_must_have_lost_twice_as_much(
    players: DataFrame, value: int, as_of: str, severity: str
) -> None:
    """While late events still arrive, a fall needs twice the size to be an alarm."""
    players.loc[players["game_id"] == "1", "user_unique"] = np.tile([401, 400, 399], DAYS // 3)
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = value
    board = board_of([with_receipt(players, ["user_unique", "session_unique"], as_of=as_of)], most_q=0.05)
    row = row_of(board[board["game_id"] == "1"], "user_unique")
    assert row["severity"] == severity
    assert row["sentence"].endswith("the day's numbers may still change.") == (severity == "info")


def test_a_day_in_a_gap_is_not_judged(players: DataFrame) -> None:
    """A day whose request failed has severity unknown."""
    present = players[players["timestamp"] < LAST].copy()
    gap = {"metric": "user_unique", "interval": f"{LAST:%Y-%m-%dT%H:%MZ}/P1D", "scope": None, "error": "late"}
    board = board_of([with_receipt(present, ["user_unique", "session_unique"], gaps=[gap])])
    assert set(board.loc[board["watch"] == "user_unique", "severity"]) == {"unknown"}


def test_the_day_that_is_not_over_is_left_out(players: DataFrame) -> None:
    """A day that had not ended at `as_of` is not on the board."""
    as_of = f"{LAST:%Y-%m-%d}T15:00:00+00:00"
    board = board_of([with_receipt(players, ["user_unique", "session_unique"], as_of=as_of)])
    assert board["timestamp"].max() == LAST - pd.Timedelta(days=1)


def test_a_dead_network_is_found_by_its_share(networks: Answers) -> None:
    """A network without impressions is critical, with its usual share as expected value."""

    def die(day: int, counts: dict[str | None, int]) -> None:
        """Remove the impressions of Beta on the last day."""
        if day == DAYS - 1:
            counts["Beta"] = 0

    alarms = board_of(networks(die)).loc[lambda rows: rows["is_flagged"]]
    row = row_of(alarms, "network_share", "Beta")
    assert row["severity"] == "critical"
    assert row["expected"] == pytest.approx(0.3, abs=0.01)


def test_the_networks_that_take_over_are_no_cause(networks: Answers) -> None:
    """Networks whose share grows because another one died raise no alarm."""

    def die(day: int, counts: dict[str | None, int]) -> None:
        """Move the impressions of Beta on the last day to Alpha and Gamma."""
        if day == DAYS - 1:
            shared = counts["Beta"]
            counts.update(
                {
                    "Beta": 0,
                    "Alpha": counts["Alpha"] + shared * 57 // 100,
                    "Gamma": counts["Gamma"] + shared * 36 // 100,
                }
            )

    board = board_of(networks(die))
    assert board[board["is_flagged"] & (board["watch"] == "network_share")]["segment"].tolist() == ["Beta"]


def test_the_unnamed_network_is_a_segment_of_its_own(networks: Answers) -> None:
    """The null network is a segment with a baseline of its own."""
    board = board_of(networks())
    unnamed = board[board["dimension"].notna() & board["segment"].isna()]
    assert unnamed["expected"].tolist() == pytest.approx([0.05], abs=0.01)
    assert not board["is_flagged"].any()


def test_a_network_that_is_back_is_no_alarm(networks: Answers) -> None:
    """Only the dead days are flagged, not the week that contains them and ends well."""

    def die(day: int, counts: dict[str | None, int]) -> None:
        """Remove the impressions of Beta for three days, until two days before the last."""
        if DAYS - 5 <= day < DAYS - 2:
            counts["Beta"] = 0

    scores = health.score_days(health.daily(networks(die)))
    beta = scores[(scores["segment"] == "Beta") & scores["is_flagged"]]
    assert (DAYS - 1 - (LAST - beta["timestamp"]).dt.days).tolist() == [DAYS - 5, DAYS - 4, DAYS - 3]


def test_a_level_that_moved_is_found_with_its_first_day(cohorts: Answers) -> None:
    """A lasting fall too small for one day is found over a week, and dated to a day.

    Retention of one country halves among 60 installs a day.
    """
    board = board_of(cohorts(lambda day, country: 0.18 if country == "BR" and day >= DAYS - 8 else 0.36))
    row = row_of(board, "retention_d1", "BR")
    assert row["is_flagged"]
    assert row["window_days"] > 1
    assert abs(row["since"] - (LAST - pd.Timedelta(days=7))) <= pd.Timedelta(days=1)
    assert not row_of(board, "retention_d1", "US")["is_flagged"]


def test_retention_of_the_game_is_that_of_its_countries_together(cohorts: Answers) -> None:
    """The retention of a game pools the installs and returns of its countries."""
    daily = health.daily(cohorts(lambda day, country: 0.3))
    of_day = daily[(daily["watch"] == "retention_d1") & (daily["timestamp"] == LAST)]
    whole, parts = of_day[of_day["dimension"].isna()], of_day[of_day["dimension"].notna()]
    assert whole["part"].item() == parts["part"].sum()
    assert whole["whole"].item() == 120


@pytest.mark.wide
def test_chance_raises_few_boards(networks: Answers, cohorts: Answers, players: DataFrame) -> None:
    """Random data without incidents flags less than 5 % of all days."""
    answers = [*networks(), *cohorts(lambda day, country: 0.3), players]
    scores = health.score_days(health.daily(answers))
    assert scores.groupby("timestamp")["is_flagged"].any().mean() < 0.05


def test_nothing_answered_is_an_empty_board() -> None:
    """A board of no answers has no rows and all its columns."""
    board = health.board(health.score_days(health.daily([])))
    assert len(board) == 0
    assert {"game_id", "game", "metric", "value", "expected", "low", "high", "change", "z", "p", "q"} <= set(board)
    assert {"timestamp", "severity", "since", "sentence"} <= set(board)


def test_a_board_keeps_the_receipt(players: DataFrame) -> None:
    """The board carries the receipt of the frames it was computed from."""
    assert board_of([players]).attrs["gamelens"]["as_of"] == AS_OF_LATER


def test_the_frames_of_the_service_are_not_changed(players: DataFrame) -> None:
    """Neither rows nor receipts of the answers are changed."""
    before = players.copy()
    board_of([players])
    pd.testing.assert_frame_equal(players, before)
    assert players.attrs["gamelens"]["asked"]["metric"] == ["user_unique", "session_unique"]
