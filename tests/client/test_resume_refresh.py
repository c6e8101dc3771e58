"""Frames with gaps are completed, frames of yesterday brought up to date (design/analyst-api, promises 10 and 11)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conftest import Stage
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, PartialResult, ServiceError
from gamelens.wire.intervals import Interval
from support.watched_service import Body, Sent, Watch, World, assert_equal, quick, sale, sell

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"  # two pieces of days, the second from 31 October on
LATER = "2026-11-12T00:00Z"


def starts(*moments: str) -> Callable[[Sent], bool]:
    """Fails the requests for metrics whose interval starts so."""
    return lambda sent: sent.body is not None and sent.body["interval"].split("/")[0] in moments


def late(sent: Sent) -> bool:
    """Fails what reaches into the middle of November."""
    return sent.body is not None and sent.body["interval"].split("/")[1] > LATER


def of(**wanted: Any) -> Callable[[Sent], bool]:
    """Fails the requests whose body says so."""
    return lambda sent: sent.body is not None and all(sent.body.get(name) == it for name, it in wanted.items())


def about(metric: str) -> Callable[[Sent], bool]:
    """Fails one metric."""
    return lambda sent: sent.body is not None and sent.name == metric


def kind(word: str) -> Callable[[Sent], bool]:
    """Fails one kind of query."""
    return lambda sent: sent.body is not None and sent.body.get("query", {}).get("type") == word


def both(one: Callable[[Sent], bool], other: Callable[[Sent], bool]) -> Callable[[Sent], bool]:
    """Fails what both fail."""
    return lambda sent: one(sent) and other(sent)


QUESTIONS: list[tuple[dict[str, Any], Callable[[Sent], bool], int | None]] = [
    ({"metric": "revenue", "by": "platform"}, late, None),
    ({"metric": "event_count", "by": None}, late, None),
    ({"metric": "user_unique", "by": ["game", "platform"]}, starts("2026-09-30T00:00Z"), None),
    ({"metric": "conversion", "by": "game"}, late, None),
    ({"metric": "returning_users", "by": "platform", "since_days_ago": 7}, late, None),
    ({"metric": "retention_retro", "by": "platform", "since_days_ago": 7}, late, None),
    ({"metric": ["revenue", "user_unique"], "by": "platform"}, about("revenue"), None),
    ({"metric": ["revenue", "ilrd_revenue"], "by": "platform"}, about("ilrd_revenue"), None),
    ({"metric": ["revenue", "user_unique", "conversion"], "by": "platform"}, about("conversion"), None),
    ({"metric": ["revenue", "event_count"], "by": None}, late, None),
    ({"metric": "revenue", "by": ["game", "platform", "build"]}, of(games=["1001"]), None),
    ({"metric": "user_unique", "by": ["platform", "build", "ab_id"]}, of(filter={"ab_id": "exp1"}), None),
    ({"metric": "event_count", "by": ["platform", "build", "ab_id"]}, of(filter={"not": {"ab_id": "exp1"}}), None),
    ({"metric": "conversion", "by": ["platform", "build", "game"]}, late, None),
    ({"metric": "event_count", "by": ["studio", "game", "platform", "build"]}, of(games=["2001"]), None),
    ({"metric": "revenue", "by": "platform", "every": "week"}, late, 14),
    ({"metric": "revenue", "by": "platform", "every": "week"}, starts("2026-11-07T00:00Z"), 5),
    ({"metric": "event_count", "by": None, "every": "week"}, starts("2026-11-02T00:00Z"), 5),
    ({"metric": "revenue", "by": ["platform", "build"], "every": "month"}, late, 20),
    ({"metric": "revenue", "by": "platform", "every": "all"}, late, 31),
    ({"metric": "revenue", "by": ["platform", "build"], "every": "month"}, starts("2026-10-21T00:00Z"), 20),
    ({"metric": ["revenue", "event_count"], "by": "game", "every": "all"}, about("revenue"), 31),
    ({"metric": "event_count", "by": ["game", "platform", "build"], "every": "month"}, of(games=["1001"]), 20),
    ({"metric": "revenue", "by": "platform", "top": 1}, late, None),
    ({"metric": "event_count", "by": ["game", "platform", "build"], "top": 2}, of(games=["1002"]), None),
    ({"metric": "revenue", "by": "platform", "every": "month", "top": 1}, late, 20),
    ({"metric": "event_count", "by": "platform", "top": 1, "other": True}, late, None),
    ({"metric": "event_count", "by": "platform", "top": 1, "other": True}, both(late, kind("group")), None),
    ({"metric": "event_count", "by": "platform", "top": 1, "other": True}, both(late, kind("timeseries")), None),
    ({"metric": "revenue", "by": ["platform", "build"], "check": True}, both(late, kind("split")), None),
    ({"metric": "revenue", "by": ["platform", "build"], "check": True}, both(late, kind("timeseries")), None),
    ({"metric": "revenue", "by": "build", "top": 1, "other": True, "every": "month"}, both(late, kind("group")), 20),
]


def broken(watch: Watch, lens: Client, fails: Callable[[Sent], bool], **asked: Any) -> pd.DataFrame:
    """The answer while *fails* strikes."""
    watch.fails = fails
    frame = lens.query(**asked, on_error="gaps")
    watch.fails = lambda _: False
    watch.clear()
    return frame


@pytest.mark.parametrize("is_kept", [True, False], ids=["cache", "no cache"])
@pytest.mark.parametrize(("asked", "fails", "max_days"), QUESTIONS)
def test_a_frame_with_gaps_becomes_the_undisturbed_one(
    world: World,
    tmp_path: Path,
    asked: dict[str, Any],
    fails: Callable[[Sent], bool],
    max_days: int | None,
    is_kept: bool,
) -> None:
    watch = world.watch()
    whole = quick(watch, max_days=max_days).query(**asked, over=OVER)
    wanted = [it for it in watch.asked if fails(it)]
    lens = quick(watch, max_days=max_days, cache=tmp_path / "kept" if is_kept else None)
    frame = broken(watch, lens, fails, **asked, over=OVER)
    gaps = frame.attrs["gamelens"]["gaps"]
    assert wanted
    assert gaps
    assert all(gap["error"] == "the service answered 500: not today" for gap in gaps)
    untouched = frame.copy()
    resumed = lens.resume(frame)
    assert_equal(resumed, whole)
    assert_equal(frame, untouched)
    receipt, undisturbed = resumed.attrs["gamelens"], whole.attrs["gamelens"]
    assert (receipt["gaps"], receipt["truncated"]) == ([], undisturbed["truncated"])
    assert receipt["asked"] == undisturbed["asked"]
    if is_kept or not (asked.get("other") or asked.get("check") or asked.get("every") in ("week", "month", "all")):
        assert sorted(map(str, watch.asked)) == sorted(map(str, wanted))


# A row may have the fields of the other metric; the largest of a fan-out are those of what came.
WHOLE = [it for it in QUESTIONS if isinstance(it[0]["metric"], str) and not ("top" in it[0] and len(it[0]["by"]) == 3)]


@pytest.mark.parametrize(("asked", "fails", "max_days"), WHOLE)
def test_what_came_is_as_it_is_without_the_gaps(
    world: World, asked: dict[str, Any], fails: Callable[[Sent], bool], max_days: int | None
) -> None:
    """A number is there whole or not at all; what is missing is in a gap."""
    watch = world.watch()
    lens = quick(watch, max_days=max_days)
    whole = lens.query(**asked, over=OVER)
    frame = broken(watch, lens, fails, **asked, over=OVER)
    gaps = frame.attrs["gamelens"]["gaps"]
    assert not [it for it in frame.attrs["gamelens"]["warnings"] if "differs" in it]
    assert frame.dtypes.astype(str).tolist() == whole.dtypes.astype(str).tolist()
    shown = _rows(frame)
    assert shown <= _rows(whole)
    missing = whole[[tuple(map(str, row)) not in shown for row in whole.itertuples(index=False)]]
    for _, row in missing.iterrows():
        assert any(_is_in(row, gap, asked.get("every", "day")) for gap in gaps), row


def _rows(frame: pd.DataFrame) -> set[tuple[str, ...]]:
    return {tuple(map(str, row)) for row in frame.itertuples(index=False)}


def _is_in(row: Any, gap: Body, every: Any) -> bool:
    interval = Interval.parse(gap["interval"])
    scope = {name: value for name, value in (gap["scope"] or {}).items() if name in row}
    touches = row["timestamp"] in {bucket.start for bucket in interval.buckets(every)}
    return touches and all((None if pd.isna(row[name]) else row[name]) == value for name, value in scope.items())


def test_by_default_a_failure_is_raised_with_what_came(world: World, tmp_path: Path) -> None:
    """Promise 10. What came can be resumed."""
    watch = world.watch()
    whole = quick(watch).query("revenue", by="platform", over=OVER)
    lens = quick(watch, cache=tmp_path / "kept")
    lens.query("revenue", by="platform", over="2026-09-30/2026-10-31")
    watch.fails = late
    with pytest.raises(PartialResult) as partial:
        lens.query("revenue", by="platform", over=OVER)
    watch.fails = lambda _: False
    assert isinstance(partial.value.__cause__, ServiceError)
    assert len(partial.value.gaps) == 1
    assert_equal(lens.resume(partial.value.frame), whole)


def test_a_gap_that_stays_one_is_a_gap_again(world: World) -> None:
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    watch.fails = late
    with pytest.raises(PartialResult):
        lens.resume(frame)
    again = lens.resume(frame, on_error="gaps")
    assert again.attrs["gamelens"]["gaps"] == frame.attrs["gamelens"]["gaps"]
    assert_equal(again, frame)


RETENTIONS: list[tuple[dict[str, Any], Callable[[Sent], bool]]] = [
    ({"by": "platform"}, of(since_days_ago=7)),
    ({"by": None}, both(of(since_days_ago=1), late)),
    ({"by": "game"}, about("retention_retro")),
    ({"by": "platform"}, both(about("new_users"), late)),
    ({"by": ["platform", "build"]}, both(about("new_users"), of(games=["1001"]))),
    ({"by": ["platform", "build", "ab_id"]}, both(about("new_users"), of(filter={"ab_id": "exp1"}, games=["1001"]))),
    ({"by": ["platform", "build", "ab_id", "game"]}, both(about("new_users"), of(filter={"ab_id": "exp1"}))),
    ({"by": ["platform", "build", "game"]}, both(about("retention_retro"), late)),
]


@pytest.mark.parametrize("is_kept", [True, False], ids=["cache", "no cache"])
@pytest.mark.parametrize(("asked", "fails"), RETENTIONS)
def test_retention_with_gaps_becomes_the_undisturbed_one(
    world: World, tmp_path: Path, asked: dict[str, Any], fails: Callable[[Sent], bool], is_kept: bool
) -> None:
    watch = world.watch()
    whole = quick(watch).retention([1, 7], over=OVER, **asked)
    wanted = [it for it in watch.asked if fails(it)]
    lens = quick(watch, cache=tmp_path / "kept" if is_kept else None)
    watch.fails = fails
    frame = lens.retention([1, 7], over=OVER, **asked, on_error="gaps")
    watch.fails = lambda _: False
    watch.clear()
    assert wanted
    assert_equal(lens.resume(frame), whole)
    if is_kept:
        assert sorted(map(str, watch.asked)) == sorted(map(str, wanted))


@pytest.mark.parametrize(("asked", "fails"), RETENTIONS)
def test_retention_is_na_where_it_is_not_known(
    world: World, asked: dict[str, Any], fails: Callable[[Sent], bool]
) -> None:
    """Never 0, and never of a part of the players."""
    watch = world.watch()
    lens = quick(watch)
    whole = lens.retention([1, 7], over=OVER, **asked)
    watch.fails = fails
    frame = lens.retention([1, 7], over=OVER, **asked, on_error="gaps")
    assert frame.attrs["gamelens"]["gaps"]
    assert len(frame) < len(whole) or frame["retention"].isna().sum() > whole["retention"].isna().sum()
    keys = [name for name in whole.columns if name not in ("retention", "installs", "returned", "game")]
    told = [frame_.astype(object).where(frame_.notna(), None) for frame_ in (whole, frame)]
    truth = {
        tuple(map(str, row)): more
        for row, more in zip(told[0][keys].to_numpy(), told[0].to_dict("records"), strict=True)
    }
    for row, got in zip(told[1][keys].to_numpy(), told[1].to_dict("records"), strict=True):
        right = truth[tuple(map(str, row))]
        assert got["installs"] == right["installs"], row
        assert got["retention"] in (None, right["retention"]), row
        assert got["returned"] in (None, right["returned"]), row


@pytest.mark.parametrize("verb", ["resume", "refresh"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda frame: pd.DataFrame(frame.to_dict("list")),
        lambda frame: frame.drop(columns="platform"),
        lambda frame: frame.drop(columns="sum"),
        lambda frame: frame.drop(columns="timestamp"),
        lambda frame: frame.rename(columns={"sum": "revenue"}),
        lambda frame: frame.set_index("timestamp"),
        lambda frame: None,
    ],
    ids=["no receipt", "no dimension", "no field", "no timestamp", "renamed", "index", "nothing"],
)
def test_what_is_no_frame_of_ours_is_refused_with_what_to_do(world: World, verb: str, spoil: Any) -> None:
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    with pytest.raises(BadQuery, match=r"pass .* as query\(\) or retention\(\) returned it"):
        getattr(lens, verb)(spoil(frame))
    assert watch.sent == []


@pytest.mark.parametrize("lost", ["game_id", "user_unique"])
def test_a_frame_that_lost_what_nobody_asked_for_by_name_is_refused(world: World, lost: str) -> None:
    """The game of a metric that exists per game, a field of one of several metrics."""
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric=["conversion", "revenue"], by="platform", over=OVER)
    with pytest.raises(BadQuery, match="no longer has"):
        lens.resume(frame.drop(columns=lost))


def test_a_frame_resumes_after_it_was_written_to_parquet(world: World, tmp_path: Path) -> None:
    """Promise 11: the receipt survives parquet."""
    watch = world.watch()
    lens = quick(watch)
    whole = lens.query("revenue", by=["game", "platform"], over=OVER)
    broken(watch, lens, late, metric="revenue", by=["game", "platform"], over=OVER).to_parquet(tmp_path / "df.parquet")
    assert_equal(lens.resume(pd.read_parquet(tmp_path / "df.parquet")), whole)


def test_a_whole_frame_resumes_to_itself_and_nothing_is_asked(world: World) -> None:
    watch = world.watch()
    lens = quick(watch)
    for asked, _, _ in QUESTIONS[:12]:
        frame = lens.query(**asked, over=OVER)
        watch.clear()
        assert_equal(lens.resume(frame), frame)
        assert watch.sent == []


@pytest.mark.parametrize(("one", "other"), [(5, None), (None, 5), (5, 9)])
def test_a_frame_may_be_resumed_by_a_client_that_cuts_otherwise(world: World, one: Any, other: Any) -> None:
    watch = world.watch()
    whole = quick(watch).query(["revenue", "event_count"], by="platform", over=OVER, every="month")
    asked: dict[str, Any] = {"metric": ["revenue", "event_count"], "by": "platform", "over": OVER, "every": "month"}
    frame = broken(watch, quick(watch, max_days=one), both(about("revenue"), late), **asked, when_unavailable="clip")
    assert frame.attrs["gamelens"]["gaps"]
    assert_equal(quick(watch, max_days=other).resume(frame), whole)


def test_a_clipped_frame_resumes_to_what_was_clipped(world: World) -> None:
    watch = world.watch()
    lens = quick(watch)
    asked: dict[str, Any] = {"by": "platform", "over": "2026-10-20/2026-12-01", "when_unavailable": "clip"}
    whole = lens.query("event_count", **asked)
    frame = broken(watch, lens, starts("2026-11-20T00:00Z"), metric="event_count", **asked)
    resumed = lens.resume(frame)
    assert_equal(resumed, whole)
    assert resumed.attrs["gamelens"]["clipped"] == whole.attrs["gamelens"]["clipped"]


def test_a_refresh_of_retention_fills_gaps_and_does_not_call_that_a_restatement(world: World) -> None:
    watch = world.watch()
    lens = quick(watch)
    watch.fails = both(late, about("retention_retro"))
    frame = lens.retention([1, 7], over=OVER, on_error="gaps")
    assert frame["retention"].isna().any()
    watch.fails = lambda _: False
    assert lens.refresh(frame).attrs["gamelens"]["restated"] == []


def test_a_refresh_fills_gaps_and_does_not_call_that_a_restatement(world: World) -> None:
    watch = world.watch()
    lens = quick(watch)
    whole = lens.query("revenue", by="platform", over=OVER)
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    refreshed = lens.refresh(frame)
    assert_equal(refreshed, whole)
    assert refreshed.attrs["gamelens"]["restated"] == []


REFRESHED: list[dict[str, Any]] = [
    {"metric": "revenue", "by": ["game", "country_code"], "every": "week"},
    {"metric": "revenue", "by": None, "every": "all"},
    {"metric": ["revenue", "user_unique"], "by": "country_code"},
    {"metric": "revenue", "by": "country_code", "top": 1, "other": True},
    {"metric": "conversion", "by": "country_code"},
    {"metric": "event_count", "by": ["country_code", "platform", "build"]},
]


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Frames and retention of a shop, and the shop after a late purchase."""
    stage = Stage(tmp_path_factory.mktemp("moved") / "state")
    some = [
        sale(f"2026-11-0{day}", country_code=it, user_id=f"u{day}") for day in (1, 2, 3) for it in ("US", "DE", "FR")
    ]
    sell(stage, *some)
    lens = quick(stage.metrics_app)
    frames = [lens.query(**asked, over="2026-11-01/2026-11-10") for asked in REFRESHED]
    frames.append(lens.retention([1], over="2026-11-01/2026-11-10", by="country_code"))
    sell(stage, sale("2026-11-02", 10_000, country_code="DE", user_id="u1"))
    yield frames, stage
    stage.sandbox.close()


@pytest.mark.parametrize("place", range(len(REFRESHED) + 1))
def test_a_refresh_lists_what_moved_and_nothing_else(moved: Any, place: int) -> None:
    frames, stage = moved
    before, lens = frames[place], quick(stage.metrics_app)
    after = lens.refresh(before)
    asked = before.attrs["gamelens"]["asked"]
    is_retention = asked["metric"] == "retention"
    over: dict[str, Any] = {"over": "2026-11-01/2026-11-10"}
    fresh = lens.retention([1], by="country_code", **over) if is_retention else lens.query(**REFRESHED[place], **over)
    assert_equal(after, fresh)
    restated = after.attrs["gamelens"]["restated"]
    bucket = {"all": "2026-11-01"}.get(asked["every"], "2026-11-01" if is_retention else "2026-11-02")
    assert {it["timestamp"][:10] for it in restated} == {bucket}
    assert all(len(set(it["by"])) == len(it["by"]) for it in restated)
    sums = {it["field"]: it["after"] - it["before"] for it in restated if it["before"] is not None}
    wanted = {"revenue": ("sum", 100.0), "event_count": ("event_count", 1), "conversion": None, "retention": None}
    if pair := wanted[asked["metric"] if isinstance(asked["metric"], str) else "revenue"]:
        assert sums[pair[0]] == pytest.approx(pair[1])
    assert len(lens.restatements()) == len(restated)
