"""What is asked a second time: settled buckets never, the others once an hour (design/analyst-api, promise 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Stage
from gamelens.client.sync_client import Client
from gamelens.wire.intervals import Interval
from support.watched_service import Ticks, Watch, World, assert_equal, quick, sale, sell

pytestmark = pytest.mark.slow

Make = Callable[..., Client]
QUARTER: dict[str, Any] = {"by": ["game", "country_code"], "over": "last 90 complete days"}
LISTS = ["games", "games", "studios"]
DAYS = ("2026-08-22", "2026-09-30", "2026-10-15", "2026-11-01", "2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20")


def played(stage: Stage) -> Stage:
    """A purchase on some days of a quarter, in two countries and two studios; it is the 20th, half past ten."""
    sales = [sale(day, amount, country_code=it) for day in DAYS[:-1] for it, amount in (("US", 499), ("NA", 99))]
    assert stage.submit(sales, game_id="2001").status_code == 200
    assert stage.submit([sale("2026-08-22", 1)], game_id="9001").status_code == 200
    sell(stage, *sales, sale(DAYS[-1], client_ts=None))
    return stage


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A shop in which nothing happens any more."""
    stage = played(Stage(tmp_path_factory.mktemp("quiet") / "state"))
    yield World(stage)
    stage.sandbox.close()


@pytest.fixture
def watch(quiet: World) -> Watch:
    return quiet.watch()


@pytest.fixture
def shop(make_stage: Callable[..., Stage]) -> Stage:
    """A shop in which something will."""
    return played(make_stage())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


def next_day(stage: Stage, ticks: Ticks, *late: Any) -> None:
    """A day passes, somebody buys something, and *late* events come in."""
    stage.clock.advance(timedelta(days=1))
    ticks.now_s += 86_400
    sell(stage, sale("2026-11-20", 700), *late)


def test_ninety_days_are_three_requests_and_the_lists_of_titles(watch: Watch, folder: Path) -> None:
    """Promise 5: 31 days a piece."""
    receipt = quick(watch, cache=folder).query("revenue", **QUARTER).attrs["gamelens"]
    assert (len(watch.asked), sorted(watch.listed)) == (3, LISTS)
    assert (receipt["requests"], receipt["cached_share"]) == (6, 0.0)


def test_the_second_time_nothing_is_asked(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder)
    first = lens.query("revenue", **QUARTER)
    watch.clear()
    second = lens.query("revenue", **QUARTER)
    assert watch.sent == []
    assert (second.attrs["gamelens"]["requests"], second.attrs["gamelens"]["cached_share"]) == (0, 1.0)
    assert_equal(second, first)


def test_a_new_client_asks_for_lists_only(watch: Watch, folder: Path, ticks: Ticks) -> None:
    first = quick(watch, cache=folder, ticks=ticks).query("revenue", **QUARTER)
    watch.clear()
    second = quick(watch, cache=folder, ticks=ticks).query("revenue", **QUARTER)
    assert (watch.asked, sorted(watch.listed)) == ([], LISTS)
    assert_equal(second, first)


def test_an_hour_later_a_new_client_asks_for_what_may_still_move(watch: Watch, folder: Path, ticks: Ticks) -> None:
    """What ended two days before the 20th, 10:00, is settled: all to the 17th."""
    first = quick(watch, cache=folder, ticks=ticks).query("revenue", **QUARTER)
    watch.clear()
    ticks.now_s += 3601
    second = quick(watch, cache=folder, ticks=ticks).query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-20T00:00Z"]
    assert second.attrs["gamelens"]["cached_share"] == round(88 / 90, 4)
    assert_equal(second, first)


def test_tomorrow_only_the_new_day_and_the_unsettled_ones_are_asked(shop: Stage, folder: Path, ticks: Ticks) -> None:
    watch = Watch(shop.metrics_app)
    lens = quick(watch, cache=folder, ticks=ticks)
    lens.query("revenue", **QUARTER)
    next_day(shop, ticks)
    watch.clear()
    second = lens.query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-21T00:00Z"]
    assert_equal(second, quick(watch).query("revenue", **QUARTER))


def test_what_may_still_move_is_asked_as_soon_as_more_is_available(shop: Stage, folder: Path, ticks: Ticks) -> None:
    """However young it is: a new client hears of a new hour before the old one does."""
    watch = Watch(shop.metrics_app)
    quick(watch, cache=folder, ticks=ticks).query("revenue", **QUARTER)
    shop.clock.advance(timedelta(hours=1))
    ticks.now_s += 60
    sell(shop, sale("2026-11-19", 700))
    watch.clear()
    second = quick(watch, cache=folder, ticks=ticks).query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-20T00:00Z"]
    assert_equal(second, quick(watch).query("revenue", **QUARTER))


def test_with_refresh_s_0_what_may_still_move_is_asked_each_time(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder, refresh_s=0)
    first = lens.query("revenue", **QUARTER)
    watch.clear()
    second = lens.query("revenue", **QUARTER)
    assert watch.intervals() == ["2026-11-18T00:00Z/2026-11-20T00:00Z"]
    assert_equal(second, first)


def test_what_overlaps_is_not_asked_again(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder)
    lens.query("revenue", by="country_code", over="2026-10-10/2026-10-20")
    watch.clear()
    second = lens.query("revenue", by="country_code", over="2026-10-05/2026-10-25")
    assert watch.intervals() == ["2026-10-05T00:00Z/2026-10-10T00:00Z", "2026-10-20T00:00Z/2026-10-25T00:00Z"]
    assert second.attrs["gamelens"]["cached_share"] == 0.5
    assert_equal(second, quick(watch).query("revenue", by="country_code", over="2026-10-05/2026-10-25"))


@pytest.mark.parametrize("every", ["week", "month"])
def test_a_bucket_that_was_cut_is_not_taken_for_the_whole(watch: Watch, folder: Path, every: Any) -> None:
    lens = quick(watch, cache=folder)
    for over in ("2026-10-14/2026-11-12", "2026-10-01/2026-11-16", "2026-10-12/2026-11-12", "2026-10-14/2026-11-12"):
        asked: dict[str, Any] = {"by": "country_code", "over": over, "every": every}
        assert_equal(lens.query("revenue", **asked), quick(watch).query("revenue", **asked))


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


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_another_question_never_shares(watch: Watch, folder: Path, change: dict[str, Any]) -> None:
    lens = quick(watch, cache=folder)
    lens.query("revenue", **BASE)
    lens.query("revenue", **BASE | {"by": ["country_code", "build"]})
    frame = lens.query("revenue", **BASE | change)
    assert frame.attrs["gamelens"]["cached_share"] == 0
    assert_equal(frame, quick(watch).query("revenue", **BASE | change))


def test_another_age_never_shares(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder)
    for since in (1, 2, None):
        asked: dict[str, Any] = {"over": BASE["over"], "since_days_ago": since}
        frame = lens.query("returning_users", **asked)
        assert frame.attrs["gamelens"]["cached_share"] == 0
        assert_equal(frame, quick(watch).query("returning_users", **asked))


@pytest.mark.parametrize("other", [{"key": "key-of-rival"}, {"address": "http://127.0.0.1:8"}], ids=str)
def test_another_key_or_address_never_shares(watch: Watch, folder: Path, other: dict[str, str]) -> None:
    """Promise 9: private to the key and address."""
    quick(watch, cache=folder).query("revenue", **BASE)
    frame = quick(watch, cache=folder, **other).query("revenue", **BASE)
    assert frame.attrs["gamelens"]["cached_share"] == 0
    assert_equal(frame, quick(watch, **other).query("revenue", **BASE))


def test_the_order_of_games_makes_no_other_question(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder)
    lens.query("revenue", **BASE, games=["1001", "2001"])
    assert lens.query("revenue", **BASE, games=["2001", "1001"]).attrs["gamelens"]["cached_share"] == 1


def test_what_may_still_move_is_right_after_the_next_refresh(shop: Stage, folder: Path, ticks: Ticks) -> None:
    watch = Watch(shop.metrics_app)
    """A late event restates history (design/metrics, Words)."""
    lens = quick(watch, cache=folder, ticks=ticks)
    before = lens.query("revenue", **QUARTER)
    assert lens.restatements().empty
    next_day(shop, ticks, sale("2026-11-18", 10_000, country_code="US"))
    after = lens.query("revenue", **QUARTER)
    assert_equal(after, quick(watch).query("revenue", **QUARTER))
    moved = lens.restatements("revenue").set_index("field")
    assert moved["timestamp"].dt.strftime("%F").unique().tolist() == ["2026-11-18"]
    assert moved.loc["sum", ["before", "after", "moved", "rows"]].tolist() == pytest.approx([11.96, 111.96, 100, 1])
    assert moved.loc["event_count", "moved"] == 1
    assert str(moved["as_of"].iloc[0]) == "2026-11-21 10:00:00+00:00"
    assert str(moved["before_as_of"].iloc[0]) == "2026-11-20 10:00:00+00:00"
    assert lens.restatements("user_unique").empty
    assert before["sum"].sum() < after["sum"].sum()


def test_what_is_settled_stays_until_it_is_refreshed(shop: Stage, folder: Path, ticks: Ticks) -> None:
    watch = Watch(shop.metrics_app)
    lens = quick(watch, cache=folder, ticks=ticks)
    over: dict[str, Any] = {"by": ["game", "country_code"], "over": "2026-10-20/2026-11-10"}
    before = lens.query("revenue", **over)
    next_day(shop, ticks, sale("2026-11-01", 10_000, country_code="DE"))
    watch.clear()
    assert_equal(lens.query("revenue", **over), before)
    assert watch.asked == []
    untouched = before.copy()
    after = lens.refresh(before)
    assert_equal(before, untouched)
    assert_equal(after, quick(watch).query("revenue", **over))
    moved = [it for it in after.attrs["gamelens"]["restated"] if it["field"] == "sum"]
    assert [(it["timestamp"][:10], it["rows"]) for it in moved] == [("2026-11-01", 1)]
    assert (moved[0]["before"], moved[0]["after"]) == pytest.approx((11.96, 111.96))
    listed = lens.restatements("revenue").set_index("field")
    assert listed.loc["sum", "moved"] == pytest.approx(100)
    watch.clear()
    assert_equal(lens.query("revenue", **over), after)
    assert watch.asked == []


def test_a_refresh_that_finds_nothing_says_so(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder)
    for frame in (lens.query("revenue", **QUARTER), lens.retention([1, 2], over="2026-11-10/2026-11-18", by="game")):
        again = lens.refresh(frame)
        assert again.attrs["gamelens"]["restated"] == []
        assert_equal(again, frame)
    assert lens.restatements().empty


def test_a_refresh_works_without_a_cache(shop: Stage, ticks: Ticks) -> None:
    watch = Watch(shop.metrics_app)
    lens = quick(watch, ticks=ticks)
    before = lens.query("revenue", over="2026-10-20/2026-11-10", every="week")
    next_day(shop, ticks, sale("2026-11-01", 10_000))
    after = lens.refresh(before)
    assert after["sum"].sum() - before["sum"].sum() == pytest.approx(100)
    moved = lens.restatements("revenue").set_index("field")
    assert (str(moved.loc["sum", "timestamp"])[:10], moved.loc["sum", "moved"]) == ("2026-10-26", pytest.approx(100))


def test_retention_is_kept_too(watch: Watch, folder: Path) -> None:
    lens = quick(watch, cache=folder)
    asked: dict[str, Any] = {"over": "2026-11-01/2026-11-18", "by": ["game", "country_code"]}
    first = lens.retention([1, 7], **asked)
    watch.clear()
    assert_equal(lens.retention([1, 7], **asked), first)
    assert watch.sent == []
    lens.retention([1, 2, 7], **asked)
    assert {it.body["since_days_ago"] for it in watch.asked if it.body} == {2}


def test_without_a_cache_everything_is_asked_again(watch: Watch) -> None:
    lens = quick(watch)
    first = lens.query("revenue", **QUARTER)
    watch.clear()
    second = lens.query("revenue", **QUARTER)
    assert (lens.cache, len(watch.asked), second.attrs["gamelens"]["cached_share"]) == (None, 3, 0.0)
    assert_equal(second, first)


def test_the_cache_lies_where_it_is_told_to(world: World, make_lens: Make, tmp_path: Path) -> None:
    lens = make_lens(world.watch(), api_key="key-of-acme", cache=tmp_path / "here")
    lens.query("revenue", over="2026-10-10/2026-11-10")
    assert lens.cache is not None
    assert (lens.cache.info().folder, lens.cache.info().buckets) == (str(tmp_path / "here"), 31)
    assert lens.query("revenue", over="2026-10-10/2026-11-10").attrs["gamelens"]["requests"] == 0


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_does_not_work_fails_no_question(
    world: World, make_lens: Make, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("not a folder")
    lens = make_lens(world.watch(), api_key="key-of-acme", cache=tmp_path / place)
    asked: dict[str, Any] = {"by": "platform", "over": "2026-10-10/2026-11-10"}
    with pytest.warns(UserWarning, match="not kept on disk"):
        frame = lens.query("revenue", **asked)
    assert_equal(frame, quick(world.watch()).query("revenue", **asked))
    assert lens.plan("revenue", **asked).cached_share == 0
    assert lens.cache is not None
    assert "off, " in repr(lens.cache.info())
    assert lens.restatements().empty


STARTS = st.sampled_from(["2026-09-30", "2026-10-05T12:00Z", "2026-10-14", "2026-10-26", "2026-11-01"])
ENDS = st.sampled_from(["2026-11-05", "2026-11-09T06:00Z", "2026-11-16", "2026-11-20", "2026-11-20T10:00Z"])
QUESTIONS = st.fixed_dictionaries(
    {
        "metric": st.sampled_from(
            ["revenue", "user_unique", "conversion", "session_length", ["event_count", "revenue"]]
        ),
        "by": st.sampled_from([None, "platform", ["platform", "build"], "game", ["studio", "platform"]]),
        "over": st.tuples(STARTS, ENDS).map("/".join),
        "every": st.sampled_from(["day", "week", "month", "all"]),
        "top": st.sampled_from([None, None, 2]),
        "games": st.sampled_from([None, None, ["1001", "2001"]]),
        "where": st.sampled_from([None, None, {"country_code": ["US", "DE"]}]),
    }
).filter(lambda asked: asked["top"] is None or asked["by"] is not None)


@given(st.lists(st.tuples(QUESTIONS, st.sampled_from([0, 4000])), min_size=2, max_size=4), st.sampled_from([None, 9]))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_kept_answers_are_the_fresh_ones_in_whatever_order_they_come(
    world: World, asked: list[tuple[dict[str, Any], int]], max_days: int | None
) -> None:
    """Rows, their order, dtypes and categories: nobody can tell where a frame comes from."""
    ticks, watch = Ticks(), world.watch()
    for question, _ in asked:  # what cannot be cut can be asked of nobody
        is_long = Interval.parse(question["over"]).length > timedelta(days=9)
        if question["every"] != "day" and is_long and question["metric"] not in ("revenue", ["event_count", "revenue"]):
            question["every"] = "day"
    with TemporaryDirectory() as folder:
        kept = quick(watch, cache=Path(folder), ticks=ticks, max_days=max_days)
        fresh = quick(watch, max_days=max_days)
        for question, passes_s in [*asked, *asked]:
            ticks.now_s += passes_s
            plan = kept.plan(**question)
            frame = kept.query(**question)
            assert_equal(frame, fresh.query(**question))
            receipt = frame.attrs["gamelens"]
            assert receipt["cached_share"] == round(plan.cached_share, 4) or plan.guessed
            assert receipt["requests"] == plan.requests or plan.guessed
        assert kept.cache is not None
        assert (kept.cache.info().off, kept.cache.info().unkept) == (None, None)
        assert kept.restatements().empty
        kept.cache.close()
