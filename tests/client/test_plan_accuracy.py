"""Plans compared with what the queries then cost, and refused like them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamelens.catalog import METRICS
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, GamelensError, NotAdditive, NotYetAvailable
from support.hypothesis_profiles import examples
from support.watched_service import ManualClock, Watch, World, quick

OVER = "2026-09-30/2026-11-20"
DIMENSIONS = ["platform", "build", "country_code", "ab_id", "game", "studio", "game_id", "is_paying"]
METRIC = st.sampled_from(list(METRICS))
QUERIES = st.fixed_dictionaries(
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


Names = str | list[str]


def planned(lens: Client, arguments: dict[str, Any]) -> Plan | type[GamelensError]:
    """Return the plan of a query, or the type of the error that refuses it."""
    try:
        return lens.plan(**arguments)
    except GamelensError as error:
        return type(error)


@given(st.lists(QUERIES, min_size=1, max_size=3), st.sampled_from([None, 10]), st.booleans())
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_is_what_the_query_then_costs(
    world: World, queries: list[dict[str, Any]], max_days: int | None, is_kept: bool
) -> None:
    """Requests, pieces and cached share are right after any earlier queries, or both refuse."""
    watch = world.watch()
    with TemporaryDirectory() as folder:
        lens = quick(watch, cache=Path(folder) if is_kept else None, max_days=max_days)
        lens.available()
        for arguments in queries:
            _plan_and_query(watch, lens, arguments, is_kept=is_kept)
        if lens.cache is not None:
            lens.cache.close()


def _plan_and_query(watch: Watch, lens: Client, arguments: dict[str, Any], *, is_kept: bool) -> None:
    """Plan and run one query twice, and compare plan, receipt and requests."""
    watch.clear()
    plan = planned(lens, arguments)
    assert watch.sent == []
    if not isinstance(plan, Plan):
        with pytest.raises(plan):
            lens.query(**arguments)
        assert watch.queries == []
        return
    frame = lens.query(**arguments)
    receipt = frame.attrs["gamelens"]
    assert receipt["requests"] == len(watch.sent)
    if not plan.guessed:
        # Where a filter leaves no number but 0, its values are looked up in lists, which no plan can know.
        has_numbers = frame.select_dtypes("number").fillna(0).to_numpy().any()
        looked_up = 0 if has_numbers else len(receipt.get("values_listed", ()))
        assert receipt["requests"] - plan.requests in range(looked_up + 1)
        assert receipt["cached_share"] == round(plan.cached_share, 4)
        assert sorted((piece.metric, str(piece.interval)) for piece in plan.pieces) == sorted(
            (request.name, request.body["interval"]) for request in watch.queries if request.body is not None
        )
    again = planned(lens, arguments)
    assert isinstance(again, Plan)
    assert again.guessed == ()
    assert again.requests == len(again.pieces) == (0 if is_kept else len(watch.queries))
    watch.clear()
    assert lens.query(**arguments).attrs["gamelens"]["requests"] == again.requests == len(watch.sent)


@pytest.mark.parametrize("studios", [None, "s1", ["s1", "s2"]])
@pytest.mark.parametrize("games", [None, "1001", ["2001", "1001"]])
@pytest.mark.parametrize(
    "by", ["studio", "game", ["studio", "game"], ["game", "platform", "build"], ["studio", "platform"]]
)
def test_lists_are_counted_too(world: World, by: Names, games: Names | None, studios: Names | None) -> None:
    """A list not read yet counts as a request, and dimensions of unknown size are named."""
    watch = world.watch()
    lens = quick(watch)
    arguments: dict[str, Any] = {"by": by, "over": "2026-10-08/2026-10-25", "games": games, "studios": studios}
    plan = lens.plan("event_count", **arguments)
    assert [request.name for request in watch.sent] == ["interval"]
    requests = lens.query("event_count", **arguments).attrs["gamelens"]["requests"]
    assert plan.guessed or plan.requests == requests
    assert plan.requests >= len(plan.pieces) + 1
    later_plan = lens.plan("event_count", **arguments)
    assert (later_plan.guessed, later_plan.requests) == ((), requests - len(watch.lists))


def test_a_guess_is_as_large_as_the_dimension_usually_is(world: World) -> None:
    """An unread platform list counts as four typical values and null."""
    plan = quick(world.watch()).plan("revenue", by=["platform", "country_code", "game"], over="2026-10-20/2026-11-20")
    assert set(plan.guessed) == {"studio_id", "game_id", "platform", "country_code"}
    assert len(plan.pieces) == 5  # four typical platforms, and null


def test_a_plan_of_cached_rows_has_no_requests(world: World, tmp_path: Path) -> None:
    """If all buckets are cached the plan has 0 requests, 0 seconds and says so."""
    lens = quick(world.watch(), cache=tmp_path)
    arguments: dict[str, Any] = {"by": ["game", "platform"], "over": OVER}
    lens.query("revenue", **arguments)
    plan = lens.plan("revenue", **arguments)
    assert (plan.requests, plan.seconds, plan.cached_share, plan.pieces) == (0, 0.0, 1.0, ())
    assert str(plan) == repr(plan) == "No request is needed: everything is in the cache."


def test_a_plan_lists_only_uncached_intervals(world: World, tmp_path: Path) -> None:
    """The pieces of a plan are the uncached runs of buckets."""
    lens = quick(world.watch(), cache=tmp_path)
    lens.query("revenue", by="platform", over="2026-10-20/2026-11-01")
    plan = lens.plan("revenue", by="platform", over="2026-10-10/2026-11-10")
    assert plan.requests == 2
    assert plan.cached_share == pytest.approx(12 / 31)
    assert [str(piece.interval) for piece in plan.pieces] == [
        "2026-10-10T00:00Z/2026-10-20T00:00Z",
        "2026-11-01T00:00Z/2026-11-10T00:00Z",
    ]
    assert [piece.buckets for piece in plan.pieces] == [10, 9]


def test_a_plan_prints_as_a_small_table(world: World) -> None:
    """A plan prints a summary and one line for each request."""
    plan = quick(world.watch()).plan(["revenue", "user_unique"], by="platform", over=OVER)
    assert str(plan).splitlines() == [
        "4 requests, about 0.0 s; 0% of the buckets are in the cache",
        "  revenue      2026-09-30T00:00Z/2026-10-31T00:00Z   31 buckets",
        "  revenue      2026-10-31T00:00Z/2026-11-20T00:00Z   20 buckets",
        "  user_unique  2026-09-30T00:00Z/2026-10-31T00:00Z   31 buckets",
        "  user_unique  2026-10-31T00:00Z/2026-11-20T00:00Z   20 buckets",
    ]


def test_a_plan_that_guesses_says_so_and_is_never_long(world: World) -> None:
    """A plan that guesses reads "about" and prints at most 20 of its pieces."""
    plan = quick(world.watch()).plan(
        "revenue", by=["build", "first_build", "country_code", "studio", "game"], over=OVER
    )
    shown = str(plan).splitlines()
    assert shown[0].startswith(f"at least {plan.requests} requests, at least ")
    assert "how many more depends on the number of values" in shown[1]
    assert len(shown) < 30
    assert shown[-1] == f"  … and {len(plan.pieces) - 20} more"


def test_a_fan_out_says_what_each_request_is_narrowed_to(world: World) -> None:
    """Each piece of a fan-out has the value it is narrowed to."""
    lens = quick(world.watch())
    arguments: dict[str, Any] = {"by": ["platform", "build", "game"], "over": "2026-10-20/2026-11-20"}
    lens.query("revenue", **arguments)
    assert [piece.scope for piece in lens.plan("revenue", **arguments).pieces] == [
        {"game_id": "1001"},
        {"game_id": "1002"},
        {"game_id": "2001"},
    ]


def test_a_clipped_plan_has_the_available_interval(world: World) -> None:
    """With `when_unavailable="clip"` a plan names the available interval it covers."""
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
    (BadQuery, {"metric": "revenue", "over": "the day before"}),
    (BadQuery, {"metric": "retention_retro", "over": OVER}),
    (BadQuery, {"metric": "retention_retro", "over": OVER, "by": "ad_type", "since_days_ago": 1}),
    (BadQuery, {"metric": "retention_retro", "over": OVER, "by": ["ad_type", "build"], "since_days_ago": 1}),
    (BadQuery, {"metric": "retention_retro", "over": OVER, "every": "week", "since_days_ago": 1}),
    (BadQuery, {"metric": "revenue", "over": OVER, "since_days_ago": 1}),
    (NotAdditive, {"metric": "user_unique", "over": OVER, "every": "all"}),
    (NotAdditive, {"metric": "user_unique", "over": OVER, "every": "month", "by": ["platform", "build", "ab_id"]}),
]


@pytest.mark.parametrize(("error", "arguments"), REFUSED, ids=str)
def test_a_plan_is_refused_like_its_query(world: World, error: type[GamelensError], arguments: dict[str, Any]) -> None:
    """`plan` and `query` raise the same error before any metric is requested."""
    watch = world.watch()
    lens = quick(watch, max_days=20, refresh_s=0.05, clock=ManualClock())
    with pytest.raises(error):
        lens.plan(**arguments)
    with pytest.raises(error):
        lens.query(**arguments, deadline_s=0 if arguments.get("when_unavailable") == "wait" else None)
    assert watch.queries == []
    assert set(watch.lists) <= {"metrics", "dimensions"}
