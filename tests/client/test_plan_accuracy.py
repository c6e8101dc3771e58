"""Plans compared with what the queries then cost, and refused like them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.watched_service import World, quick

OVER = "2026-09-30/2026-11-20"


Names = str | list[str]


@pytest.mark.shown_by(8)
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
