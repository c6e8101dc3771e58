"""What a question will cost is said before anything is sent, and is true (design/analyst-api: `lens.plan`)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import examples
from gamelens.catalog import METRICS
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, GamelensError, NotAdditive, NotYetAvailable
from support.watched_service import Ticks, Watch, World, quick

OVER = "2026-09-30/2026-11-20"
DIMENSIONS = ["platform", "build", "country_code", "ab_id", "game", "studio", "game_id", "is_paying"]
METRIC = st.sampled_from(list(METRICS))
QUESTIONS = st.fixed_dictionaries(
    {
        "metric": METRIC | st.lists(METRIC, min_size=2, max_size=3, unique=True),
        "by": st.none() | st.lists(st.sampled_from(DIMENSIONS), max_size=3, unique=True),
        "over": st.sampled_from(
            [OVER, "2026-10-20/2026-11-20", "2026-11-05T12:00Z/2026-11-20T10:00Z", "last complete week"]
        ),
        "every": st.sampled_from(["day", "day", "week", "month", "all"]),
    },
    optional={
        "top": st.sampled_from([1, 2]),
        "other": st.booleans(),
        "check": st.booleans(),
        "games": st.sampled_from(["1001", ["1001", "2001"], ["1002", "1001", "2001"]]),
        "studios": st.sampled_from(["s1", "s2", ["s2", "s1"]]),
        "where": st.sampled_from([{"platform": "ios"}, {"not": {"build": ["1.0"]}}]),
        "since_days_ago": st.sampled_from([1, 7]),
        "when_unavailable": st.sampled_from(["raise", "clip"]),
    },
)


def planned(lens: Client, asked: dict[str, Any]) -> Plan | type[GamelensError]:
    """The plan, or how it is refused."""
    try:
        return lens.plan(**asked)
    except GamelensError as error:
        return type(error)


@given(st.lists(QUESTIONS, min_size=1, max_size=3), st.sampled_from([None, 10]), st.booleans())
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_is_what_the_question_then_costs(
    world: World, questions: list[dict[str, Any]], max_days: int | None, is_kept: bool
) -> None:
    """Requests, pieces, cached share; whatever has been asked before, and refusals too."""
    watch = world.watch()
    with TemporaryDirectory() as folder:
        lens = quick(watch, cache=Path(folder) if is_kept else None, max_days=max_days)
        lens.available()
        for asked in questions:
            _plan_and_ask(watch, lens, asked, is_kept=is_kept)
        if lens.cache is not None:
            lens.cache.close()


def _plan_and_ask(watch: Watch, lens: Client, asked: dict[str, Any], *, is_kept: bool) -> None:
    watch.clear()
    plan = planned(lens, asked)
    assert watch.sent == []
    if not isinstance(plan, Plan):
        with pytest.raises(plan):
            lens.query(**asked)
        assert watch.asked == []
        return
    receipt = lens.query(**asked).attrs["gamelens"]
    assert receipt["requests"] == len(watch.sent)
    if not plan.guessed:
        assert receipt["requests"] == plan.requests
        assert receipt["cached_share"] == round(plan.cached_share, 4)
        assert sorted((it.metric, str(it.interval)) for it in plan.pieces) == sorted(
            (it.name, it.body["interval"]) for it in watch.asked if it.body is not None
        )
    again = planned(lens, asked)
    assert isinstance(again, Plan)
    assert again.guessed == ()
    assert again.requests == len(again.pieces) == (0 if is_kept else len(watch.asked))
    watch.clear()
    assert lens.query(**asked).attrs["gamelens"]["requests"] == again.requests == len(watch.sent)


@pytest.mark.parametrize("studios", [None, "s1", ["s1", "s2"]])
@pytest.mark.parametrize("games", [None, "1001", ["2001", "1001"]])
@pytest.mark.parametrize(
    "by", ["studio", "game", ["studio", "game"], ["game", "platform", "build"], ["studio", "platform"]]
)
def test_lists_are_counted_too(world: World, by: Any, games: Any, studios: Any) -> None:
    """A list that is not there yet is a request; what it will say is a guess, and said to be one."""
    watch = world.watch()
    lens = quick(watch)
    asked: dict[str, Any] = {"by": by, "over": "2026-10-08/2026-10-25", "games": games, "studios": studios}
    plan = lens.plan("event_count", **asked)
    assert [it.name for it in watch.sent] == ["interval"]
    requests = lens.query("event_count", **asked).attrs["gamelens"]["requests"]
    assert plan.guessed or plan.requests == requests
    assert plan.requests >= len(plan.pieces) + 1
    known = lens.plan("event_count", **asked)
    assert (known.guessed, known.requests) == ((), requests - len(watch.listed))


def test_a_guess_is_as_large_as_the_dimension_usually_is(world: World) -> None:
    plan = quick(world.watch()).plan("revenue", by=["platform", "country_code", "game"], over="2026-10-20/2026-11-20")
    assert set(plan.guessed) == {"studio_id", "game_id", "platform", "country_code"}
    assert len(plan.pieces) == 5  # the four typical platforms, and none


def test_where_all_is_cached_nothing_has_to_be_asked(world: World, tmp_path: Path) -> None:
    lens = quick(world.watch(), cache=tmp_path)
    asked: dict[str, Any] = {"by": ["game", "platform"], "over": OVER}
    lens.query("revenue", **asked)
    plan = lens.plan("revenue", **asked)
    assert (plan.requests, plan.seconds, plan.cached_share, plan.pieces) == (0, 0.0, 1.0, ())
    assert str(plan) == repr(plan) == "Nothing has to be asked: everything is in the cache."


def test_part_of_it_cached_is_part_of_it_asked(world: World, tmp_path: Path) -> None:
    lens = quick(world.watch(), cache=tmp_path)
    lens.query("revenue", by="platform", over="2026-10-20/2026-11-01")
    plan = lens.plan("revenue", by="platform", over="2026-10-10/2026-11-10")
    assert (plan.requests, plan.cached_share) == (2, pytest.approx(12 / 31))
    assert [str(it.interval) for it in plan.pieces] == [
        "2026-10-10T00:00Z/2026-10-20T00:00Z",
        "2026-11-01T00:00Z/2026-11-10T00:00Z",
    ]
    assert [it.buckets for it in plan.pieces] == [10, 9]


def test_a_plan_prints_as_a_small_table(world: World) -> None:
    plan = quick(world.watch()).plan(["revenue", "user_unique"], by="platform", over=OVER)
    assert str(plan).splitlines() == [
        "4 requests, about 0.0 s; 0% of the buckets are in the cache",
        "  revenue      2026-09-30T00:00Z/2026-10-31T00:00Z   31 buckets",
        "  revenue      2026-10-31T00:00Z/2026-11-20T00:00Z   20 buckets",
        "  user_unique  2026-09-30T00:00Z/2026-10-31T00:00Z   31 buckets",
        "  user_unique  2026-10-31T00:00Z/2026-11-20T00:00Z   20 buckets",
    ]


def test_a_plan_that_guesses_says_so_and_is_never_long(world: World) -> None:
    plan = quick(world.watch()).plan(
        "revenue", by=["build", "first_build", "country_code", "studio", "game"], over=OVER
    )
    shown = str(plan).splitlines()
    assert shown[0].startswith(f"about {plan.requests} requests, about ")
    assert "estimated: how many values" in shown[1]
    assert len(shown) < 30
    assert shown[-1] == f"  … and {len(plan.pieces) - 20} more"


def test_a_fan_out_says_what_each_request_is_narrowed_to(world: World) -> None:
    lens = quick(world.watch())
    asked: dict[str, Any] = {"by": ["platform", "build", "game"], "over": "2026-10-20/2026-11-20"}
    lens.query("revenue", **asked)
    assert [it.scope for it in lens.plan("revenue", **asked).pieces] == [
        {"game_id": "1001"},
        {"game_id": "1002"},
        {"game_id": "2001"},
    ]


def test_what_is_clipped_is_said(world: World) -> None:
    lens = quick(world.watch())
    plan = lens.plan("revenue", over="2026-11-10/2026-12-01", when_unavailable="clip")
    assert str(plan.clipped) == "2026-11-10T00:00Z/2026-11-20T10:00Z"
    assert "cut to what is available: 2026-11-10T00:00Z/2026-11-20T10:00Z" in str(plan)


REFUSED: list[tuple[type[GamelensError], dict[str, Any]]] = [
    (NotYetAvailable, {"metric": "revenue", "over": "2026-11-10/2026-12-01"}),
    (NotYetAvailable, {"metric": "revenue", "over": "2026-11-10/2026-12-01", "when_unavailable": "wait"}),
    (BadQuery, {"metric": "revenu", "over": OVER}),
    (BadQuery, {"metric": "revenue", "by": "plattform", "over": OVER}),
    (BadQuery, {"metric": "revenue", "where": {"plattform": "ios"}, "over": OVER}),
    (BadQuery, {"metric": "revenue", "over": "yesterday"}),
    (BadQuery, {"metric": "retention_retro", "over": OVER}),
    (BadQuery, {"metric": "retention_retro", "over": OVER, "by": "ad_type", "since_days_ago": 1}),
    (BadQuery, {"metric": "retention_retro", "over": OVER, "by": ["ad_type", "build"], "since_days_ago": 1}),
    (BadQuery, {"metric": "retention_retro", "over": OVER, "every": "week", "since_days_ago": 1}),
    (BadQuery, {"metric": "revenue", "over": OVER, "since_days_ago": 1}),
    (NotAdditive, {"metric": "user_unique", "over": OVER, "every": "all"}),
    (NotAdditive, {"metric": "user_unique", "over": OVER, "every": "month", "by": ["platform", "build", "ab_id"]}),
]


@pytest.mark.parametrize(("error", "asked"), REFUSED, ids=str)
def test_what_cannot_be_asked_is_refused_like_the_question(
    world: World, error: type[GamelensError], asked: dict[str, Any]
) -> None:
    """Both before any request for a metric; but for names that only the service may know, before any list."""
    watch = world.watch()
    lens = quick(watch, max_days=20, refresh_s=0.05, ticks=Ticks())
    with pytest.raises(error):
        lens.plan(**asked)
    with pytest.raises(error):
        lens.query(**asked, deadline_s=0 if asked.get("when_unavailable") == "wait" else None)
    assert watch.asked == []
    assert set(watch.listed) <= {"metrics", "dimensions"}
