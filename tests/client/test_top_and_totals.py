"""The rows that `top` leaves out, and whether the rows shown add up to the total."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pandas as pd
import pytest

from gamelens.analysis.totals import total
from gamelens.catalog import METRICS
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.intervals import Granularity
from support.watched_service import Sent, World, assert_equal, quick, rows_of

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"
ADDS = [metric.name for metric in METRICS.values() if metric.adds == "everywhere" and metric.kinds == "plain"]
OVER_GAMES = [
    "ad_impressions_per_session",
    "arppu",
    "arpu",
    "ilrd_id_unique",
    "paying_users",
    "session_unique",
    "user_unique",
]


Names = str | list[str]


def totals_of(metric: str, frame: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Return the fields of each bucket, all its rows combined as the catalog says."""
    totals: dict[Any, dict[str, Any]] = {}
    fields = METRICS[metric].fields
    for row in rows_of(frame):
        total = totals.setdefault(
            row["timestamp"], {field.name: 0 for field in fields if field.combines == "sum" and field.name in row}
        )
        for name in total:
            total[name] += row[name] or 0
    for total in totals.values():
        for field in fields:
            if field.name in METRICS[metric].shown and field.combines not in ("sum", None):
                part, whole = total[field.combines.part], total[field.combines.whole]  # type: ignore[union-attr]
                total[field.name] = field.combines.worth * part / whole if whole else None  # type: ignore[union-attr]
    return totals


def check(world: World, metric: str, by: Names, *, cents: float = 0, **arguments: Any) -> pd.DataFrame:
    """Query with `(other)` and assert that all rows of each bucket add up to the total.

    Money that the service rounds may differ by *cents*.
    """
    lens = quick(world.watch())
    frame = lens.query(metric, by=by, over=OVER, top=1, other=True, **arguments)
    total = {row.pop("timestamp"): row for row in rows_of(lens.query(metric, over=OVER, **arguments))}
    for stamp, actual in totals_of(metric, frame).items():
        for name, value in actual.items():
            slack = cents if name == "total_revenue" else cents / 100 if name in ("arpu", "arppu") else 0
            assert value == pytest.approx(total[stamp][name], abs=slack or 1e-6), name
    shown = {row["timestamp"] for row in rows_of(frame)}
    assert all(not any(row.values()) for stamp, row in total.items() if stamp not in shown)
    return frame


@pytest.mark.parametrize("every", ["day", "week", "all"])
@pytest.mark.parametrize("metric", ADDS)
def test_the_largest_and_the_others_make_up_the_total(world: World, metric: str, every: Granularity) -> None:
    """Counts and money add up over any dimension, so `(other)` completes the total."""
    frame = check(world, metric, "country_code", every=every)
    assert "(other)" in frame["country_code"].cat.categories


@pytest.mark.parametrize("every", ["week", "all"])
@pytest.mark.parametrize(("metric", "players"), [("arpu", "user_unique"), ("arppu", "paying_users")])
def test_revenue_per_player_is_the_same_whichever_way_it_is_asked(
    world: World, metric: str, players: str, every: Granularity
) -> None:
    """The service divides money that it has not rounded, and so do sums of its rows (Wire 4.13, Numbers)."""
    lens = quick(world.watch())
    whole = lens.query(metric, over=OVER, every=every).set_index("timestamp")
    exact = lens.query("revenue", over=OVER, every=every).set_index("timestamp")["revenue"]
    names = [metric, players, "total_revenue_cents"]
    for arguments in ({"by": "game"}, {"by": "game", "top": 1, "other": True}, {"by": "studio"}):
        frame = lens.query(metric, over=OVER, every=every, **arguments)
        for stamp, rows in frame.groupby("timestamp"):
            rows.attrs = frame.attrs
            (added,) = total(rows)[names].to_dict("records")
            assert added == pytest.approx(whole.loc[stamp, names].to_dict(), rel=1e-12, abs=0)
            assert added[metric] * added[players] == pytest.approx(exact[stamp], rel=1e-12)
    for studio_id, rows in lens.query(metric, over=OVER, every=every, by="studio").groupby("studio_id", observed=True):
        own = lens.query(metric, over=OVER, every=every, studios=str(studio_id))
        for name in names:
            assert rows[name].to_list() == pytest.approx(own.loc[own[players] > 0, name].to_list(), rel=1e-12, abs=0)


@pytest.mark.parametrize("metric", OVER_GAMES)
def test_games_and_the_others_make_up_the_total(world: World, metric: str) -> None:
    """Players add up over games, ratios are computed again (Wire 4.14, Adding up)."""
    frame = check(world, metric, "game", every="month", cents=2)
    others = frame[frame["game_id"] == "(other)"]
    assert len(others) > 0
    assert set(others["game"]) == {"(other)"}


@pytest.mark.parametrize(
    "by", [["country_code", "platform"], ["game", "platform", "build"], ["studio", "game"], "studio"]
)
def test_the_others_are_one_row_a_bucket_by_any_dimensions(world: World, by: Names) -> None:
    """`(other)` is the last row of its bucket and stands in every dimension column."""
    frame = check(world, "revenue", by, every="month")
    names = [
        {"game": "game_id", "studio": "studio_id"}.get(name, name) for name in ([by] if isinstance(by, str) else by)
    ]
    others = frame[frame[names[0]].astype(str) == "(other)"]
    assert (others[names].astype(str) == "(other)").all(axis=None)
    assert not others["timestamp"].duplicated().any()
    last = frame.groupby("timestamp").tail(1)
    assert set(others["timestamp"]) <= set(last[last[names[0]].astype(str) == "(other)"]["timestamp"])


def test_the_others_of_pieces_are_those_of_the_whole(world: World) -> None:
    """`(other)` of a bucket requested in pieces equals that of one request."""
    watch = world.watch()
    arguments: dict[str, Any] = {"by": "country_code", "over": OVER, "top": 1, "other": True, "every": "all"}
    assert_equal(quick(watch, max_days=14).query("revenue", **arguments), quick(watch).query("revenue", **arguments))


def test_without_omitted_rows_there_is_no_other_row(world: World) -> None:
    """If `top` omits nothing, there is neither an `(other)` row nor such a category."""
    frame = quick(world.watch()).query("revenue", by="platform", over=OVER, top=100, other=True)
    plain = quick(world.watch()).query("revenue", by="platform", over=OVER)
    assert "(other)" not in frame["platform"].cat.categories
    assert_equal(frame, plain)


def test_top_marks_the_frame_as_truncated(world: World) -> None:
    """`top=2` keeps the two largest rows of each bucket and sets `truncated`."""
    lens = quick(world.watch())
    for by in ("platform", ["platform", "build"], ["platform", "build", "game"]):
        frame = lens.query("event_count", by=by, over=OVER, every="month", top=2)
        assert frame.groupby("timestamp").size().max() == 2
        assert frame.attrs["gamelens"]["truncated"]
        whole = lens.query("event_count", by=by, over=OVER, every="month")
        assert not whole.attrs["gamelens"]["truncated"]
        largest = whole.groupby("timestamp").head(2).reset_index(drop=True)
        assert rows_of(frame) == rows_of(largest)


REFUSED: list[tuple[str, Names | None]] = [
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
def test_metrics_that_do_not_add_up_are_refused_before_a_query(
    world: World, metric: str, by: Names | None, word: str
) -> None:
    """Players do not add up except over games, nor do metrics per game (Wire 4.14, Adding up)."""
    watch = world.watch()
    lens = quick(watch)
    arguments: dict[str, Any] = {"by": by or "game", "over": OVER, word: True}
    arguments |= {"top": 2} if word == "other" else {}
    arguments |= {"since_days_ago": 7} if metric == "retention_retro" else {}
    for ask in (lens.plan, lens.query):
        with pytest.raises(NotAdditive, match=f"without {word}=True"):
            ask(metric, **arguments)
    assert [request.name for request in watch.sent] == ["interval"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": "platform", "other": True},
        {"by": "platform", "top": 2, "check": True},
        {"by": None, "top": 2},
        {"by": "platform", "top": 0},
        {"by": "platform", "top": 30_001},
    ],
    ids=str,
)
def test_contradicting_arguments_are_refused_before_anything_is_sent(world: World, arguments: dict[str, Any]) -> None:
    """`other` needs `top`, `check` excludes it, and `top` is 1 to 30,000 of a dimension."""
    watch = world.watch()
    with pytest.raises(BadQuery):
        quick(watch).query("revenue", over=OVER, **arguments)
    assert watch.sent == []


CHECKED: list[tuple[str, Names]] = [
    *((metric, "country_code") for metric in ADDS),
    *((metric, "game") for metric in OVER_GAMES),
    ("revenue", ["game", "platform", "build"]),
    ("event_count", "studio"),
]


@pytest.mark.parametrize(("metric", "by"), CHECKED)
@pytest.mark.parametrize("every", ["day", "all"])
def test_a_check_is_silent_if_the_rows_add_up(world: World, metric: str, by: Names, every: Granularity) -> None:
    """Cents rounded in each row are not a difference (Wire 4.13, Numbers)."""
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
def test_a_check_names_the_field_that_differs(world: World, field: str, change: float) -> None:
    """One wrong count or sum in one row is a warning with metric, day and field."""

    def spoil(sent: Sent, answer: Any) -> Any:
        answer = json.loads(json.dumps(answer))
        if sent.body is not None and sent.body["query"]["type"] == "group":
            bucket = next(bucket for bucket in answer["result"] if bucket["result"])
            row = bucket["result"][0]
            row[field] += change  # in a row that agrees with itself
            row["mean"] = row["sum"] / row["event_count"] if row["event_count"] else None
            row["sum_cents"] = 100 * row["sum"]
        return answer

    watch = world.watch()
    watch.changes = spoil
    lens = quick(watch)
    with pytest.warns(UserWarning, match=r"revenue by platform differs from its total on 2026-\d\d-\d\d"):
        frame = lens.query("revenue", by="platform", over="2026-10-20/2026-11-20", check=True)
    (message,) = frame.attrs["gamelens"]["warnings"]
    assert METRICS["revenue"].columns[field] in message


def test_a_check_finds_a_missing_row(world: World) -> None:
    """A row missing from a split is a warning."""

    def spoil(sent: Sent, answer: Any) -> Any:
        if sent.body is not None and sent.body["query"]["type"] == "split":
            answer["result"].pop()
        return answer

    watch = world.watch()
    watch.changes = spoil
    with pytest.warns(UserWarning, match="differs from its total"):
        quick(watch).query("event_count", by=["platform", "build"], over="2026-10-20/2026-11-20", check=True)


@pytest.mark.parametrize("word", [{"check": True}, {"top": 2, "other": True}], ids=str)
def test_an_empty_answer_has_no_other_row_and_no_warning(world: World, word: dict[str, Any]) -> None:
    """An interval without events gives an empty frame without `(other)` or warnings."""
    lens = quick(world.watch())
    for by in ("platform", ["game", "platform", "build"], "studio"):
        frame = lens.query("revenue", by=by, over="2026-10-08/2026-10-10", **word)
        assert len(frame) == 0
        assert frame.attrs["gamelens"]["warnings"] == []
