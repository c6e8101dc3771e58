"""Retention by install day from retention_retro by activity day (Metrics, Result shapes 5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pandas as pd
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotYetAvailable, ServiceError
from support.scripted_service import Script

Make = Callable[..., Client]

# Players of two games by install day: (day, game, platform) -> installs, and who came back at which age.
INSTALLS = {
    ("2026-11-01", "1001", "ios"): 10,
    ("2026-11-01", "1001", "android"): 4,
    ("2026-11-01", "2001", "ios"): 30,
    ("2026-11-02", "1001", "ios"): 3,
    ("2026-11-18", "1001", None): 5,
}
RETURNED = {
    (1, "2026-11-01", "1001", "ios"): 5,
    (1, "2026-11-01", "2001", "ios"): 3,
    (7, "2026-11-01", "1001", "android"): 1,
    (1, "2026-11-02", "1001", "ios"): 1,
    (1, "2026-11-18", "1001", None): 2,
}


def stamp(day: str) -> str:
    return f"{day}T00:00:00.000Z"


def days_of(body: dict[str, Any]) -> tuple[str, str]:
    start, end = body["interval"].split("/")
    return start[:10], end[:10]


def new_users(body: dict[str, Any]) -> list[Any]:
    """Group by game_id, or split by platform and game_id (Metrics, Result shapes 1 and 2)."""
    start, end = days_of(body)
    rows = {key: number for key, number in INSTALLS.items() if start <= key[0] < end}
    if body["query"]["type"] == "split":
        return [
            {"event": {"platform": platform, "game_id": game, "new_users": number}, "timestamp": stamp(day)}
            for (day, game, platform), number in rows.items()
        ]
    answer: dict[str, dict[str, int]] = {}
    for (day, game, _), number in rows.items():
        games = answer.setdefault(day, {})
        games[game] = games.get(game, 0) + number
    return [
        {"result": [{"game_id": game, "new_users": number} for game, number in games.items()], "timestamp": stamp(day)}
        for day, games in answer.items()
    ]


def retention_retro(body: dict[str, Any]) -> list[Any]:
    """A row for each game and value with returning users (Metrics, Result shapes 5)."""
    start, end = days_of(body)
    found: dict[tuple[str, str, Any], list[int]] = {}
    split = body["split_by"]
    for (day, game, platform), installs in INSTALLS.items():
        group = (day, game, platform if split == "platform" else game)
        back = RETURNED.get((body["since_days_ago"], day, game, platform), 0)
        total = found.setdefault(group, [0, 0])
        total[0], total[1] = total[0] + back, total[1] + installs
    answer = []
    for (day, game, value), (back, installs) in found.items():
        active = str(date.fromisoformat(day) + timedelta(days=body["since_days_ago"]))
        if back and start <= active < end:
            row = {split: value, "game_id": game, "retention": back / installs}
            answer.append({"result": row, "timestamp": stamp(active)})
    return sorted(answer, key=lambda row: row["timestamp"])


@pytest.fixture
def lens(make_lens: Make, script: Script) -> Client:
    script.answers = {"new_users": new_users, "retention_retro": retention_retro}
    return make_lens()


def table(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    plain = frame.assign(timestamp=frame["timestamp"].dt.strftime("%m-%d")).astype(object)
    return list(plain.where(plain.notna(), None)[list(columns)].itertuples(index=False, name=None))


def test_games_are_pooled_by_their_installs(lens: Client) -> None:
    frame = lens.retention([1], over="2026-11-01")
    assert table(frame, "age", "retention", "installs", "returned") == [(1, 8 / 44, 44, 8)]


def test_by_game_is_not_pooled(lens: Client) -> None:
    frame = lens.retention([1], over="2026-11-01", by="game_id")
    assert table(frame, "game_id", "installs", "returned") == [("1001", 14, 5), ("2001", 30, 3)]


def test_another_dimension_is_pooled_over_games(lens: Client) -> None:
    frame = lens.retention([1], over="2026-11-01", by="platform")
    assert table(frame, "platform", "installs", "returned") == [("ios", 40, 8), ("android", 4, 0)]


def test_a_dimension_and_the_game_are_not_pooled(lens: Client) -> None:
    frame = lens.retention([7], over="2026-11-01", by=["platform", "game_id"])
    assert table(frame, "platform", "game_id", "returned") == [
        ("ios", "1001", 0),
        ("android", "1001", 1),
        ("ios", "2001", 0),
    ]


def test_nobody_back_is_zero(lens: Client) -> None:
    """Metrics, Result shapes 5: no row for games without returning users."""
    frame = lens.retention(7, over="2026-11-02")
    assert table(frame, "retention", "returned") == [(0.0, 0)]


def test_a_day_that_has_not_come_is_na(lens: Client) -> None:
    """The available interval ends on 20 November at 11:00: 19 November is the last complete day."""
    frame = lens.retention([1, 2], over="2026-11-18")
    assert table(frame, "age", "retention", "installs", "returned") == [(1, 0.4, 5, 2), (2, None, 5, None)]


def test_a_null_value_is_a_group(lens: Client) -> None:
    frame = lens.retention(1, over="2026-11-18", by="platform")
    assert table(frame, "platform", "returned") == [(None, 2)]


def test_there_is_a_row_for_each_install_day_and_age_with_installs(lens: Client) -> None:
    frame = lens.retention([1, 7], over=("2026-11-01", "2026-11-05"))
    assert table(frame, "timestamp", "age") == [("11-01", 1), ("11-01", 7), ("11-02", 1), ("11-02", 7)]


def test_columns_have_the_promised_dtypes(lens: Client) -> None:
    frame = lens.retention([1], over="2026-11-01", by="platform")
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {
        "timestamp": "datetime64[us, UTC]",
        "age": "Int64",
        "platform": "category",
        "retention": "float64",
        "installs": "Int64",
        "returned": "Int64",
    }


def test_an_answer_without_installs_has_the_same_dtypes(lens: Client) -> None:
    empty, full = lens.retention(1, over="2026-10-01"), lens.retention(1, over="2026-11-01")
    assert (len(empty), empty.dtypes.tolist()) == (0, full.dtypes.tolist())


def test_the_game_comes_with_its_title(lens: Client) -> None:
    assert lens.retention(1, over="2026-11-02", by="game")["game"].tolist() == ["Tile Saga"]


def test_each_age_is_asked_over_the_days_moved_by_it(lens: Client, script: Script) -> None:
    """Metrics, Query request body: since_days_ago."""
    lens.retention([1, 7], over=("2026-11-01", "2026-11-03"))
    asked = {body.get("since_days_ago"): body["interval"] for body in script.bodies}
    assert asked == {
        None: "2026-11-01T00:00Z/2026-11-04T00:00Z",
        1: "2026-11-02T00:00Z/2026-11-05T00:00Z",
        7: "2026-11-08T00:00Z/2026-11-11T00:00Z",
    }


def test_long_ranges_are_cut_and_never_asked_day_by_day(lens: Client, script: Script) -> None:
    """public-facts 3.3: at most 31 days."""
    lens.retention([1], over="last 60 complete days")
    assert len(script.bodies) == 4


def test_days_that_have_not_come_are_not_asked(lens: Client, script: Script) -> None:
    lens.retention([28], over="2026-11-18")
    assert [body["query"]["type"] for body in script.bodies] == ["group"]


def test_an_unfinished_install_day_counts_what_is_there(lens: Client, script: Script) -> None:
    lens.retention(1, over=("2026-11-18", "2026-11-20"), when_unavailable="clip")
    assert script.bodies[0]["interval"] == "2026-11-18T00:00Z/2026-11-20T11:00Z"


def test_install_days_that_are_not_available_are_refused(lens: Client) -> None:
    with pytest.raises(NotYetAvailable):
        lens.retention(1, over="2026-11-25")


@pytest.mark.parametrize("days", [0, -1, [], [1, 1], [1.5], [True]])
def test_an_age_is_a_day_after_install(lens: Client, days: Any) -> None:
    with pytest.raises(BadQuery, match="days"):
        lens.retention(days, over="2026-11-01")


def test_players_have_no_ad_type(lens: Client, script: Script) -> None:
    with pytest.raises(BadQuery, match="ad_type"):
        lens.retention(1, over="2026-11-01", by="ad_type")
    assert script.bodies == []


def test_a_row_without_retention_is_a_service_error(lens: Client, script: Script) -> None:
    script.answers["retention_retro"] = lambda _: [{"result": {"game_id": "1001"}, "timestamp": stamp("2026-11-02")}]
    with pytest.raises(ServiceError, match="retention"):
        lens.retention(1, over="2026-11-01")


def test_the_receipt_says_the_ages(lens: Client) -> None:
    asked = lens.retention([1, 7], over="2026-11-01").attrs["gamelens"]["asked"]
    assert (asked["metric"], asked["days"]) == ("retention", [1, 7])
