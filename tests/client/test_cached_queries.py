"""Repeated queries: settled buckets are never requested again, others once an hour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from gamelens.client.sync_client import Client
from support.sandbox_stage import Stage
from support.watched_service import Body, ManualClock, Watch, World, assert_equal, quick, sale, sell

pytestmark = pytest.mark.slow

Make = Callable[..., Client]
QUARTER: dict[str, Any] = {"by": ["game", "country_code"], "over": "last 90 complete days"}
LISTS = ["games", "games", "studios"]
DAYS = ("2026-08-22", "2026-09-30", "2026-10-15", "2026-11-01", "2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20")


def with_purchases(stage: Stage) -> Stage:
    """Add purchases on some days of a quarter, in two countries and two studios."""
    sales = [
        sale(day, amount, country_code=country) for day in DAYS[:-1] for country, amount in (("US", 499), ("NA", 99))
    ]
    assert stage.submit(sales, game_id="2001").status_code == 200
    assert stage.submit([sale("2026-08-22", 1)], game_id="9001").status_code == 200
    sell(stage, *sales, sale(DAYS[-1], client_ts=None))
    return stage


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state directory of a sandbox with the purchases, to be copied."""
    folder = tmp_path_factory.mktemp("purchases") / "state"
    with_purchases(Stage(folder)).sandbox.close()
    return folder


@pytest.fixture(scope="module")
def quiet(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a sandbox in which no further events arrive."""
    stage = Stage(copytree(state, tmp_path_factory.mktemp("quiet") / "state"))
    yield World(stage)
    stage.sandbox.close()


@pytest.fixture
def watch(quiet: World) -> Watch:
    """Return a view of the requests to the quiet sandbox."""
    return quiet.watch()


@pytest.fixture
def shop(state: Path, tmp_path: Path) -> Iterator[Stage]:
    """Return a sandbox to which a test adds events."""
    stage = Stage(copytree(state, tmp_path / "state"))
    yield stage
    stage.sandbox.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the cache folder of the test."""
    return tmp_path / "kept"


@pytest.fixture
def clock() -> ManualClock:
    """Return the clients' own clock."""
    return ManualClock()


def next_day(stage: Stage, clock: ManualClock, *late: Body) -> None:
    """Let a day pass on both clocks, and submit a purchase and the *late* events."""
    stage.clock.advance(timedelta(days=1))
    clock.now_s += 86_400
    sell(stage, sale("2026-11-20", 700), *late)


def test_ninety_days_are_three_requests_and_the_lists_of_titles(watch: Watch, folder: Path) -> None:
    """A request covers at most 31 days (Wire 2.8, Intervals and buckets)."""
    receipt = quick(watch, cache=folder).query("revenue", **QUARTER).attrs["gamelens"]
    assert (len(watch.queries), sorted(watch.lists)) == (3, LISTS)
    assert (receipt["requests"], receipt["cached_share"]) == (6, 0.0)


def test_unsettled_days_are_requested_again_after_an_hour(watch: Watch, folder: Path, clock: ManualClock) -> None:
    """All days up to the 17th ended two days before the 20th, 10:00, and are settled."""
    first = quick(watch, cache=folder, clock=clock).query("revenue", **QUARTER)
    watch.clear()
    clock.now_s += 3601
    second = quick(watch, cache=folder, clock=clock).query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-20T00:00Z"]
    assert second.attrs["gamelens"]["cached_share"] == round(88 / 90, 4)
    assert_equal(second, first)


def test_the_next_day_only_new_and_unsettled_days_are_requested(shop: Stage, folder: Path, clock: ManualClock) -> None:
    """A day later the same query requests the new day and the days not yet settled."""
    watch = Watch(shop.metrics_app)
    lens = quick(watch, cache=folder, clock=clock)
    lens.query("revenue", **QUARTER)
    next_day(shop, clock)
    watch.clear()
    second = lens.query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-21T00:00Z"]
    assert_equal(second, quick(watch).query("revenue", **QUARTER))


@pytest.mark.wide
def test_unsettled_days_are_requested_once_more_is_available(shop: Stage, folder: Path, clock: ManualClock) -> None:
    """A new available hour makes unsettled days stale, however recently they were stored."""
    watch = Watch(shop.metrics_app)
    quick(watch, cache=folder, clock=clock).query("revenue", **QUARTER)
    shop.clock.advance(timedelta(hours=1))
    clock.now_s += 60
    sell(shop, sale("2026-11-19", 700))
    watch.clear()
    second = quick(watch, cache=folder, clock=clock).query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-20T00:00Z"]
    assert_equal(second, quick(watch).query("revenue", **QUARTER))


def test_with_refresh_s_0_unsettled_days_are_requested_each_time(watch: Watch, folder: Path) -> None:
    """With `refresh_s=0` unsettled days are requested by each query, settled ones are not."""
    lens = quick(watch, cache=folder, refresh_s=0)
    first = lens.query("revenue", **QUARTER)
    watch.clear()
    second = lens.query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-20T00:00Z"]
    assert_equal(second, first)


BASE: dict[str, Any] = {"by": "country_code", "over": "2026-10-10/2026-11-10", "every": "day"}
OTHERS: list[dict[str, Any]] = [
    {"where": {"country_code": "US"}},
    {"games": "2001"},
    {"studios": "s1"},
    {"every": "week"},
    {"every": "all"},
    {"top": 1},
    {"by": "platform"},
    {"by": ["country_code", "platform"]},
    {"by": ["platform", "country_code"]},
    {"by": None},
]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_another_query_never_shares_rows(watch: Watch, folder: Path, change: dict[str, Any]) -> None:
    """Queries that differ in filter, scope, granularity, top or dimensions share no rows."""
    lens = quick(watch, cache=folder)
    lens.query("revenue", **BASE)
    lens.query("revenue", **BASE | {"by": ["country_code", "build"]})
    frame = lens.query("revenue", **BASE | change)
    assert frame.attrs["gamelens"]["cached_share"] == 0
    assert_equal(frame, quick(watch).query("revenue", **BASE | change))


@pytest.mark.parametrize("other", [{"key": "key-of-rival"}, {"address": "http://127.0.0.1:8"}], ids=str)
def test_another_key_or_address_never_shares_rows(watch: Watch, folder: Path, other: dict[str, Any]) -> None:
    """Cached rows are private to one API key at one address."""
    quick(watch, cache=folder).query("revenue", **BASE)
    frame = quick(watch, cache=folder, **other).query("revenue", **BASE)
    assert frame.attrs["gamelens"]["cached_share"] == 0
    assert_equal(frame, quick(watch, **other).query("revenue", **BASE))


@pytest.mark.wide
def test_a_late_event_is_seen_at_the_next_refresh(shop: Stage, folder: Path, clock: ManualClock) -> None:
    """A late event restates a past day, and the cache follows (Wire 4.9, Late events)."""
    watch = Watch(shop.metrics_app)
    lens = quick(watch, cache=folder, clock=clock)
    before = lens.query("revenue", **QUARTER)
    assert lens.restatements().empty
    next_day(shop, clock, sale("2026-11-18", 10_000, country_code="US"))
    after = lens.query("revenue", **QUARTER)
    assert_equal(after, quick(watch).query("revenue", **QUARTER))
    restated = lens.restatements("revenue").set_index("field")
    assert restated["timestamp"].dt.strftime("%F").unique().tolist() == ["2026-11-18"]
    sums = [restated.loc["revenue", name] for name in ("before", "after", "moved", "rows")]
    assert sums == pytest.approx([11.96, 111.96, 100, 1])
    assert restated.loc["revenue_event_count", "moved"] == 1
    assert str(restated["as_of"].iloc[0]) == "2026-11-21 10:00:00+00:00"
    assert str(restated["before_as_of"].iloc[0]) == "2026-11-20 10:00:00+00:00"
    assert lens.restatements("user_unique").empty
    assert before["revenue"].sum() < after["revenue"].sum()


def test_a_settled_day_stays_until_it_is_refreshed(shop: Stage, folder: Path, clock: ManualClock) -> None:
    """A late event in a settled day shows only after `refresh`, which lists the restatement."""
    watch = Watch(shop.metrics_app)
    lens = quick(watch, cache=folder, clock=clock)
    over: dict[str, Any] = {"by": ["game", "country_code"], "over": "2026-10-20/2026-11-10"}
    before = lens.query("revenue", **over)
    next_day(shop, clock, sale("2026-11-01", 10_000, country_code="DE"))
    watch.clear()
    assert_equal(lens.query("revenue", **over), before)
    assert watch.queries == []
    untouched = before.copy()
    after = lens.refresh(before)
    assert_equal(before, untouched)
    assert_equal(after, quick(watch).query("revenue", **over))
    restated = [entry for entry in after.attrs["gamelens"]["restated"] if entry["field"] == "revenue"]
    assert [(entry["timestamp"][:10], entry["rows"]) for entry in restated] == [("2026-11-01", 1)]
    assert (restated[0]["before"], restated[0]["after"]) == pytest.approx((11.96, 111.96))
    listed = lens.restatements("revenue").set_index("field")
    assert listed.loc["revenue", "moved"] == pytest.approx(100)
    watch.clear()
    assert_equal(lens.query("revenue", **over), after)
    assert watch.queries == []


@pytest.mark.wide
def test_the_cache_folder_can_be_chosen(world: World, make_lens: Make, tmp_path: Path) -> None:
    """`Client(cache=path)` stores its rows in that folder."""
    lens = make_lens(world.watch(), api_key="key-of-acme", cache=tmp_path / "here")
    lens.query("revenue", over="2026-10-10/2026-11-10")
    assert lens.cache is not None
    assert (lens.cache.info().folder, lens.cache.info().buckets) == (str(tmp_path / "here"), 31)
    assert lens.query("revenue", over="2026-10-10/2026-11-10").attrs["gamelens"]["requests"] == 0


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_an_unusable_cache_folder_fails_no_query(world: World, make_lens: Make, tmp_path: Path, place: str) -> None:
    """An unusable cache folder is a warning, and the query is answered without a cache."""
    (tmp_path / "file").write_text("not a folder")
    lens = make_lens(world.watch(), api_key="key-of-acme", cache=tmp_path / place)
    arguments: dict[str, Any] = {"by": "platform", "over": "2026-10-10/2026-11-10"}
    with pytest.warns(UserWarning, match="not cached on disk: .* cannot be used .*GAMELENS_CACHE_DIR"):
        frame = lens.query("revenue", **arguments)
    assert_equal(frame, quick(world.watch()).query("revenue", **arguments))
    assert lens.plan("revenue", **arguments).cached_share == 0
    assert lens.cache is not None
    assert "off, " in repr(lens.cache.info())
    assert lens.restatements().empty
