"""What `top` leaves out, and whether the rows make up the total (design/analyst-api, promises 5 and 6)."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pandas as pd
import pytest

from gamelens.catalog import METRICS
from gamelens.errors import BadQuery, NotAdditive
from support.watched_service import Sent, World, assert_equal, quick, rows_of

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"
ADDS = [it.name for it in METRICS.values() if it.adds == "everywhere" and it.kinds == "plain"]
OVER_GAMES = [
    "ad_impressions_per_session",
    "arppu",
    "arpu",
    "ilrd_id_unique",
    "paying_users",
    "session_unique",
    "user_unique",
]


def numbers(metric: str, frame: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """For each bucket, the fields of all its rows put together as the catalog says."""
    found: dict[Any, dict[str, Any]] = {}
    fields = METRICS[metric].fields
    for row in rows_of(frame):
        total = found.setdefault(row["timestamp"], {it.name: 0 for it in fields if it.combines == "sum"})
        for name in total:
            total[name] += row[name] or 0
    for total in found.values():
        for it in fields:
            if it.combines not in ("sum", None):
                part, whole = total[it.combines.part], total[it.combines.whole]  # type: ignore[union-attr]
                total[it.name] = it.combines.worth * part / whole if whole else None  # type: ignore[union-attr]
    return found


def check(world: World, metric: str, by: Any, *, cents: float = 0, **asked: Any) -> pd.DataFrame:
    """Ask with `(other)`; all rows of each bucket make up the total, to so many *cents*."""
    lens = quick(world.watch())
    frame = lens.query(metric, by=by, over=OVER, top=1, other=True, **asked)
    total = {row.pop("timestamp"): row for row in rows_of(lens.query(metric, over=OVER, **asked))}
    for stamp, got in numbers(metric, frame).items():
        for name, value in got.items():
            slack = cents if name == "total_revenue" else cents / 100 if name in ("arpu", "arppu") else 0
            assert value == pytest.approx(total[stamp][name], abs=slack or 1e-6), name
    shown = {row["timestamp"] for row in rows_of(frame)}
    assert all(not any(row.values()) for stamp, row in total.items() if stamp not in shown)
    return frame


@pytest.mark.parametrize("every", ["day", "week", "all"])
@pytest.mark.parametrize("metric", ADDS)
def test_the_largest_and_the_others_make_up_the_total(world: World, metric: str, every: str) -> None:
    """Promise 6: counts and money over any dimension."""
    frame = check(world, metric, "country_code", every=every)
    assert "(other)" in frame["country_code"].cat.categories


@pytest.mark.parametrize("metric", OVER_GAMES)
def test_games_and_the_others_make_up_the_total(world: World, metric: str) -> None:
    """Unique players and sessions are counted per game; ratios and means are made again from their parts."""
    frame = check(world, metric, "game", every="month", cents=2)
    others = frame[frame["game_id"] == "(other)"]
    assert len(others) > 0
    assert set(others["game"]) == {"(other)"}


@pytest.mark.parametrize(
    "by", [["country_code", "platform"], ["game", "platform", "build"], ["studio", "game"], "studio"]
)
def test_the_others_are_one_row_a_bucket_by_any_dimensions(world: World, by: Any) -> None:
    frame = check(world, "revenue", by, every="month")
    names = [{"game": "game_id", "studio": "studio_id"}.get(it, it) for it in ([by] if isinstance(by, str) else by)]
    others = frame[frame[names[0]].astype(str) == "(other)"]
    assert (others[names].astype(str) == "(other)").all(axis=None)
    assert not others["timestamp"].duplicated().any()
    last = frame.groupby("timestamp").tail(1)
    assert set(others["timestamp"]) <= set(last[last[names[0]].astype(str) == "(other)"]["timestamp"])


def test_the_others_of_pieces_are_those_of_the_whole(world: World) -> None:
    watch = world.watch()
    asked: dict[str, Any] = {"by": "country_code", "over": OVER, "top": 1, "other": True, "every": "all"}
    assert_equal(quick(watch, max_days=14).query("revenue", **asked), quick(watch).query("revenue", **asked))


def test_where_nothing_is_left_out_there_are_no_others(world: World) -> None:
    frame = quick(world.watch()).query("revenue", by="platform", over=OVER, top=100, other=True)
    plain = quick(world.watch()).query("revenue", by="platform", over=OVER)
    assert "(other)" not in frame["platform"].cat.categories
    assert_equal(frame, plain)


def test_top_says_that_there_is_more(world: World) -> None:
    lens = quick(world.watch())
    for by in ("platform", ["platform", "build"], ["platform", "build", "game"]):
        frame = lens.query("event_count", by=by, over=OVER, every="month", top=2)
        assert frame.groupby("timestamp").size().max() == 2
        assert frame.attrs["gamelens"]["truncated"]
        whole = lens.query("event_count", by=by, over=OVER, every="month")
        assert not whole.attrs["gamelens"]["truncated"]
        largest = whole.groupby("timestamp").head(2).reset_index(drop=True)
        assert rows_of(frame) == rows_of(largest)


REFUSED: list[tuple[str, Any]] = [
    ("user_unique", "platform"),
    ("user_unique", ["game", "platform"]),
    ("user_unique", ["platform", "build", "country_code"]),
    ("paying_users", "country_code"),
    ("session_length", "game"),
    ("arpu", ["studio", "platform"]),
    ("conversion", "game"),
    ("returning_users", None),
    ("retention_retro", "game"),
]


@pytest.mark.parametrize(("metric", "by"), REFUSED)
@pytest.mark.parametrize("word", ["other", "check"])
def test_what_cannot_be_added_up_is_refused_before_anything_is_sent(
    world: World, metric: str, by: Any, word: str
) -> None:
    """Promise 5: never for unique players over anything but games, nor for what exists per game."""
    watch = world.watch()
    lens = quick(watch)
    asked: dict[str, Any] = {"by": by or "game", "over": OVER, word: True}
    asked |= {"top": 2} if word == "other" else {}
    asked |= {"since_days_ago": 7} if metric == "retention_retro" else {}
    for ask in (lens.plan, lens.query):
        with pytest.raises(NotAdditive, match=f"without {word}=True"):
            ask(metric, **asked)
    assert [it.name for it in watch.sent] == ["interval"]


@pytest.mark.parametrize(
    "asked",
    [
        {"by": "platform", "other": True},
        {"by": "platform", "top": 2, "check": True},
        {"by": None, "top": 2},
        {"by": "platform", "top": 0},
        {"by": "platform", "top": 30_001},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(world: World, asked: dict[str, Any]) -> None:
    watch = world.watch()
    with pytest.raises(BadQuery):
        quick(watch).query("revenue", over=OVER, **asked)
    assert watch.sent == []


CHECKED: list[tuple[str, Any]] = [
    *((metric, "country_code") for metric in ADDS),
    *((metric, "game") for metric in OVER_GAMES),
    ("revenue", ["game", "platform", "build"]),
    ("event_count", "studio"),
]


@pytest.mark.parametrize(("metric", "by"), CHECKED)
@pytest.mark.parametrize("every", ["day", "all"])
def test_a_check_is_silent_where_everything_is_right(world: World, metric: str, by: Any, every: Any) -> None:
    """Cents that are rounded for each row are no difference."""
    lens = quick(world.watch())
    plain = lens.query(metric, by=by, over=OVER, every=every)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = lens.query(metric, by=by, over=OVER, every=every, check=True)
    assert frame.attrs["gamelens"]["warnings"] == []
    assert_equal(frame, plain)


@pytest.mark.parametrize(
    ("field", "change"), [("event_count", -1), ("event_count", 1), ("sum", 10.0)], ids=["less", "more", "money alone"]
)
def test_a_check_names_what_differs(world: World, field: str, change: float) -> None:
    """One row of one bucket is wrong, as it would be if an answer were cut."""

    def spoil(sent: Sent, answer: Any) -> Any:
        answer = json.loads(json.dumps(answer))
        if sent.body is not None and sent.body["query"]["type"] == "group":
            bucket = next(it for it in answer["result"] if it["result"])
            bucket["result"][0][field] += change
        return answer

    watch = world.watch()
    watch.spoils = spoil
    lens = quick(watch)
    with pytest.warns(UserWarning, match=r"revenue by platform differs from its total on 2026-\d\d-\d\d"):
        frame = lens.query("revenue", by="platform", over="2026-10-20/2026-11-20", check=True)
    (told,) = frame.attrs["gamelens"]["warnings"]
    assert field in told


def test_a_check_finds_a_row_that_is_gone(world: World) -> None:
    def spoil(sent: Sent, answer: Any) -> Any:
        if sent.body is not None and sent.body["query"]["type"] == "split":
            answer["result"].pop()
        return answer

    watch = world.watch()
    watch.spoils = spoil
    with pytest.warns(UserWarning, match="differs from its total"):
        quick(watch).query("event_count", by=["platform", "build"], over="2026-10-20/2026-11-20", check=True)


@pytest.mark.parametrize("word", [{"check": True}, {"top": 2, "other": True}], ids=str)
def test_nothing_has_no_others_and_no_difference(world: World, word: dict[str, Any]) -> None:
    """A fan-out over nothing asks for nothing but lists."""
    lens = quick(world.watch())
    for by in ("platform", ["game", "platform", "build"], "studio"):
        frame = lens.query("revenue", by=by, over="2026-10-08/2026-10-10", **word)
        assert len(frame) == 0
        assert frame.attrs["gamelens"]["warnings"] == []
