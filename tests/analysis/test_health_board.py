"""What the board says and does not say: silence, restatements, small counts, shares, false discoveries."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame
from scipy import stats

from gamelens.analysis import health
from gamelens.analysis.significance import false_discovery, two_sided
from gamelens.client.query.data_frames import restatements_frame
from gamelens.wire.receipts import RestatementRecord

DAYS = 42
FIRST = pd.Timestamp("2026-10-05", tz="UTC")
LAST = FIRST + pd.Timedelta(days=DAYS - 1)
AS_OF_LATER = "2026-11-30T09:00:00+00:00"

Answers = Callable[..., list[DataFrame]]


def with_receipt(frame: DataFrame, metric: str | list[str], **more: object) -> DataFrame:
    """*frame* as the answer to *metric* over all days."""
    end = FIRST + pd.Timedelta(days=DAYS)
    interval = f"{FIRST:%Y-%m-%dT%H:%MZ}/{end:%Y-%m-%dT%H:%MZ}"
    asked = {"metric": metric, "every": "day", "interval": interval}
    frame.attrs["gamelens"] = {"asked": asked, "as_of": AS_OF_LATER, "requests": 1, **more}
    return frame


def days_of(rows: list[dict[str, object]]) -> DataFrame:
    frame = DataFrame(rows)
    frame["timestamp"] = (FIRST + pd.to_timedelta(frame.pop("day"), unit="D")).astype("datetime64[us, UTC]")
    names = [name for name in frame if name in ("game", "game_id", "ilrd_network_name", "country_code")]
    counts = [name for name in frame if name in ("user_unique", "session_unique", "event_count", "new_users")]
    return frame.astype(dict.fromkeys(names, "category") | dict.fromkeys(counts, "Int64"))


@pytest.fixture
def players() -> DataFrame:
    """Two games with players by chance, about 400 and 90 a day."""
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
    """Impressions of one game by network, by chance: 1000 a day, one network null."""

    def make(change: Callable[[int, dict[str | None, int]], None] = lambda *_: None) -> list[DataFrame]:
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
                    "event_count": n,
                    "sum": n / 100,
                }
                for name, n in counts.items()
            ]
        return [with_receipt(days_of(rows), "ilrd_revenue")]

    return make


@pytest.fixture
def cohorts() -> Answers:
    """New players of one game in two countries, of whom *shares*(day, country) come back the day after."""

    def make(shares: Callable[[int, str], float]) -> list[DataFrame]:
        chance, rows = np.random.default_rng(11), []
        for day in range(DAYS):
            for country in ("BR", "US"):
                came = chance.binomial(60, shares(day, country))
                rows.append(
                    {
                        "day": day,
                        "game_id": "1",
                        "game": "Tile",
                        "country_code": country,
                        "new_users": 60,
                        "retention": came / 60,
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
    """The last day, first asked for *hours* after it began, in the words of the client."""
    told = {"metric": metric, "by": ["game_id"], "field": field, "before": before, "after": after, "rows": 1}
    asked = {"timestamp": LAST, "before_as_of": LAST + pd.Timedelta(hours=hours), "as_of": pd.Timestamp(AS_OF_LATER)}
    entry = told | {name: moment.isoformat() for name, moment in asked.items()}
    return restatements_frame([msgspec.convert(entry, RestatementRecord)])


def board_of(answers: list[DataFrame], **more: object) -> DataFrame:
    return health.board(health.score_days(health.daily(answers), **more))


def row_of(board: DataFrame, watch: str, segment: str | None = None) -> pd.Series:
    rows = board[
        (board["watch"] == watch) & (board["dimension"].isna() if segment is None else board["segment"] == segment)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def test_q_is_what_scipy_says() -> None:
    chance = np.random.default_rng(1).uniform(size=(40, 3)) ** 3
    assert false_discovery(chance) == pytest.approx(stats.false_discovery_control(chance, axis=0))


def test_what_is_not_tested_counts_for_nothing() -> None:
    chance = np.array([[0.01], [np.nan], [0.04]])
    assert false_discovery(chance)[[0, 2], 0] == pytest.approx(stats.false_discovery_control([0.01, 0.04]))
    assert np.isnan(false_discovery(chance)[1, 0])


@pytest.mark.parametrize("known", [7.0, 10.5, 40.0, np.inf])
def test_the_chance_of_a_stray_is_students(known: float) -> None:
    z = np.array([0.0, 1.0, 2.5, 4.0])
    wanted = 2 * stats.t.sf(z, known) if np.isfinite(known) else 2 * stats.norm.sf(z)
    assert two_sided(z, np.full(4, known)) == pytest.approx(wanted, rel=0.05)


def test_a_game_that_sends_nothing_is_one_finding(players: DataFrame) -> None:
    last = (players["timestamp"] == LAST) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~last].copy(), ["user_unique", "session_unique"])])
    assert board["severity"].value_counts()["critical"] == 1
    assert board.iloc[0]["is_silent"]
    assert "Game 2: silent on 2026-11-15" in board.iloc[0]["sentence"]


def test_silence_began_on_its_first_day(players: DataFrame) -> None:
    gone = (players["timestamp"] > LAST - pd.Timedelta(days=3)) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~gone].copy(), ["user_unique", "session_unique"])])
    assert board.iloc[0]["since"] == LAST - pd.Timedelta(days=2)


def test_a_tiny_game_without_players_today_is_not_silent(players: DataFrame) -> None:
    players.loc[players["game_id"] == "2", ["user_unique", "session_unique"]] = 2
    last = (players["timestamp"] == LAST) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~last].copy(), ["user_unique", "session_unique"])])
    assert not board["is_silent"].any()
    assert not board["is_flagged"].any()


def test_a_game_that_is_new_is_no_alarm(players: DataFrame) -> None:
    early = (players["timestamp"] < LAST - pd.Timedelta(days=1)) & (players["game_id"] == "2")
    board = board_of([with_receipt(players[~early].copy(), ["user_unique", "session_unique"])])
    assert set(board.loc[board["game_id"] == "2", "severity"]) == {"unknown"}
    assert "not enough history" in board.loc[board["game_id"] == "2", "sentence"].iloc[0]


def test_a_restated_day_raises_no_alarm(players: DataFrame) -> None:
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = 150
    restated = restatement(before=600.0, after=240.0)
    assert row_of(board_of([players])[lambda it: it["game_id"] == "1"], "user_unique")["severity"] == "critical"
    row = row_of(board_of([players], restatements=restated)[lambda it: it["game_id"] == "1"], "user_unique")
    assert row["severity"] == "info"
    assert row["sentence"].endswith("the service has restated this day")


def test_a_restatement_of_a_thousandth_hides_nothing(players: DataFrame) -> None:
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = 150
    restated = restatement(before=240.1, after=240.0)
    assert board_of([players], restatements=restated)["severity"].iloc[0] == "critical"


@pytest.mark.parametrize("told", [{"before": 100.0, "after": 240.0}, {"before": 600.0, "after": 240.0, "hours": 10}])
def test_what_came_late_does_not_hide_a_fall(players: DataFrame, told: dict[str, float]) -> None:
    """More came, and it is still low; or the day was asked for before it was over, when it had to be low."""
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = 150
    assert board_of([players], restatements=restatement(**told))["severity"].iloc[0] == "critical"


@pytest.mark.parametrize(("hours", "severity"), [(40, "critical"), (80, "info")])
def test_a_share_that_moved_nobody_knows_how_far(networks: Answers, hours: int, severity: str) -> None:
    """While a day settles that is to be expected; afterwards it is a restatement."""
    answers = networks(lambda day, counts: counts.update(Beta=0) if day == DAYS - 1 else None)
    told = restatement(metric="ilrd_revenue", field="event_count", before=None, after=None, hours=hours)
    row = row_of(board_of(answers, restatements=told), "network_share", "Beta")
    assert row["severity"] == severity


@pytest.mark.parametrize(
    ("value", "as_of", "severity"), [(340, "2026-11-16T09:00:00+00:00", "info"), (340, AS_OF_LATER, "warning")]
)
def test_a_day_that_may_still_move_must_have_lost_twice_as_much(
    players: DataFrame, value: int, as_of: str, severity: str
) -> None:
    players.loc[players["game_id"] == "1", "user_unique"] = np.tile([401, 400, 399], DAYS // 3)
    players.loc[(players["timestamp"] == LAST) & (players["game_id"] == "1"), "user_unique"] = value
    board = board_of([with_receipt(players, ["user_unique", "session_unique"], as_of=as_of)], most_q=0.05)
    row = row_of(board[board["game_id"] == "1"], "user_unique")
    assert row["severity"] == severity
    assert row["sentence"].endswith("the day may still move") == (severity == "info")


def test_a_day_that_did_not_come_is_not_judged(players: DataFrame) -> None:
    lost = players[players["timestamp"] < LAST].copy()
    gap = {"metric": "user_unique", "interval": f"{LAST:%Y-%m-%dT%H:%MZ}/P1D", "scope": None, "error": "late"}
    board = board_of([with_receipt(lost, ["user_unique", "session_unique"], gaps=[gap])])
    assert set(board.loc[board["watch"] == "user_unique", "severity"]) == {"unknown"}


def test_the_day_that_is_not_over_is_left_out(players: DataFrame) -> None:
    as_of = f"{LAST:%Y-%m-%d}T15:00:00+00:00"
    board = board_of([with_receipt(players, ["user_unique", "session_unique"], as_of=as_of)])
    assert board["timestamp"].max() == LAST - pd.Timedelta(days=1)


def test_a_dead_network_is_found_by_its_share(networks: Answers) -> None:
    def die(day: int, counts: dict[str | None, int]) -> None:
        if day == DAYS - 1:
            counts["Beta"] = 0

    alarms = board_of(networks(die))[lambda it: it["is_flagged"]]
    row = row_of(alarms, "network_share", "Beta")
    assert row["severity"] == "critical"
    assert row["expected"] == pytest.approx(0.3, abs=0.01)


def test_the_networks_that_take_over_are_no_cause(networks: Answers) -> None:
    """All shares of one whole move when one does."""

    def die(day: int, counts: dict[str | None, int]) -> None:
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
    board = board_of(networks())
    unnamed = board[board["dimension"].notna() & board["segment"].isna()]
    assert unnamed["expected"].tolist() == pytest.approx([0.05], abs=0.01)
    assert not board["is_flagged"].any()


def test_a_network_that_is_back_is_no_alarm(networks: Answers) -> None:
    """The days it was dead speak for themselves, not for the week that ends with good ones."""

    def die(day: int, counts: dict[str | None, int]) -> None:
        if DAYS - 5 <= day < DAYS - 2:
            counts["Beta"] = 0

    scores = health.score_days(health.daily(networks(die)))
    beta = scores[(scores["segment"] == "Beta") & scores["is_flagged"]]
    assert (DAYS - 1 - (LAST - beta["timestamp"]).dt.days).tolist() == [DAYS - 5, DAYS - 4, DAYS - 3]


def test_a_level_that_moved_is_found_with_its_first_day(cohorts: Answers) -> None:
    """60 a day, half of them lost in one country: too few to see on a day, enough in a week."""
    board = board_of(cohorts(lambda day, country: 0.18 if country == "BR" and day >= DAYS - 8 else 0.36))
    row = row_of(board, "retention_d1", "BR")
    assert row["is_flagged"]
    assert row["window_days"] > 1
    assert abs(row["since"] - (LAST - pd.Timedelta(days=7))) <= pd.Timedelta(days=1)
    assert not row_of(board, "retention_d1", "US")["is_flagged"]


def test_retention_of_the_game_is_that_of_its_countries_together(cohorts: Answers) -> None:
    daily = health.daily(cohorts(lambda day, country: 0.3))
    of_day = daily[(daily["watch"] == "retention_d1") & (daily["timestamp"] == LAST)]
    whole, parts = of_day[of_day["dimension"].isna()], of_day[of_day["dimension"].notna()]
    assert whole["part"].item() == parts["part"].sum()
    assert whole["whole"].item() == 120


def test_chance_raises_few_boards(networks: Answers, cohorts: Answers, players: DataFrame) -> None:
    answers = [*networks(), *cohorts(lambda day, country: 0.3), players]
    scores = health.score_days(health.daily(answers))
    assert scores.groupby("timestamp")["is_flagged"].any().mean() < 0.05


def test_nothing_answered_is_an_empty_board() -> None:
    board = health.board(health.score_days(health.daily([])))
    assert len(board) == 0
    assert {"game_id", "game", "metric", "value", "expected", "low", "high", "change", "z", "p", "q"} <= set(board)
    assert {"timestamp", "severity", "since", "sentence"} <= set(board)


def test_a_board_keeps_the_receipt(players: DataFrame) -> None:
    assert board_of([players]).attrs["gamelens"]["as_of"] == AS_OF_LATER


def test_the_frames_of_the_service_are_not_changed(players: DataFrame) -> None:
    before = players.copy()
    board_of([players])
    pd.testing.assert_frame_equal(players, before)
    assert players.attrs["gamelens"]["asked"]["metric"] == ["user_unique", "session_unique"]
