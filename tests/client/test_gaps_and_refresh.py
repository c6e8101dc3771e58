"""Frames with gaps completed by the same query, old frames updated by `refresh`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, PartialResult, ServiceError
from gamelens.wire.intervals import Granularity, Interval
from support.sandbox_stage import Stage
from support.watched_service import Body, Sent, Watch, World, assert_equal, quick, sale, sell

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"  # two pieces of days, the second from 31 October on
LATER = "2026-11-12T00:00Z"


def starts(*moments: str) -> Callable[[Sent], bool]:
    """Return a condition that fails metric requests whose interval starts at *moments*."""
    return lambda sent: sent.body is not None and sent.body["interval"].split("/")[0] in moments


def late(sent: Sent) -> bool:
    """Return whether a metric request ends after `LATER`."""
    return sent.body is not None and sent.body["interval"].split("/")[1] > LATER


def with_body(**expected: Any) -> Callable[[Sent], bool]:
    """Return a condition that fails metric requests whose body has the fields *wanted*."""
    return lambda sent: sent.body is not None and all(sent.body.get(name) == it for name, it in expected.items())


def for_metric(metric: str) -> Callable[[Sent], bool]:
    """Return a condition that fails the requests of *metric*."""
    return lambda sent: sent.body is not None and sent.name == metric


def of_kind(word: str) -> Callable[[Sent], bool]:
    """Return a condition that fails queries of the kind *word*."""
    return lambda sent: sent.body is not None and sent.body.get("query", {}).get("type") == word


def both(one: Callable[[Sent], bool], other: Callable[[Sent], bool]) -> Callable[[Sent], bool]:
    """Return a condition that fails what both conditions fail."""
    return lambda sent: one(sent) and other(sent)


QUERIES: list[tuple[dict[str, Any], Callable[[Sent], bool], int | None]] = [
    ({"metric": "conversion", "by": None}, late, None),
    ({"metric": "conversion", "by": "studio", "every": "week"}, late, 14),
    ({"metric": "conversion", "by": ["installed_on", "build"], "every": "week"}, with_body(game="1001"), None),
    ({"metric": "revenue", "by": "platform"}, late, None),
    ({"metric": "event_count", "by": None}, late, None),
    ({"metric": "user_unique", "by": ["game", "platform"]}, starts("2026-09-30T00:00Z"), None),
    ({"metric": "conversion", "by": "game"}, late, None),
    ({"metric": "returning_users", "by": "platform", "since_days_ago": 7}, late, None),
    ({"metric": "retention_retro", "by": ["platform", "game"], "since_days_ago": 7}, late, None),
    ({"metric": ["revenue", "user_unique"], "by": "platform"}, for_metric("revenue"), None),
    ({"metric": ["revenue", "ilrd_revenue"], "by": "platform"}, for_metric("ilrd_revenue"), None),
    ({"metric": ["revenue", "user_unique", "conversion"], "by": "platform"}, for_metric("conversion"), None),
    ({"metric": ["revenue", "event_count"], "by": None}, late, None),
    ({"metric": "revenue", "by": ["game", "platform", "build"]}, with_body(games=["1001"]), None),
    ({"metric": "user_unique", "by": ["platform", "build", "ab_id"]}, with_body(filter={"ab_id": "exp1"}), None),
    (
        {"metric": "event_count", "by": ["platform", "build", "ab_id"]},
        with_body(filter={"not": {"ab_id": "exp1"}}),
        None,
    ),
    ({"metric": "conversion", "by": ["platform", "build", "game"]}, late, None),
    ({"metric": "event_count", "by": ["studio", "game", "platform", "build"]}, with_body(games=["2001"]), None),
    ({"metric": "revenue", "by": "platform", "every": "week"}, late, 14),
    ({"metric": "revenue", "by": "platform", "every": "week"}, starts("2026-11-07T00:00Z"), 5),
    ({"metric": "event_count", "by": None, "every": "week"}, starts("2026-11-02T00:00Z"), 5),
    ({"metric": "revenue", "by": ["platform", "build"], "every": "month"}, late, 20),
    ({"metric": "revenue", "by": "platform", "every": "all"}, late, 31),
    ({"metric": "revenue", "by": ["platform", "build"], "every": "month"}, starts("2026-10-21T00:00Z"), 20),
    ({"metric": ["revenue", "event_count"], "by": "game", "every": "all"}, for_metric("revenue"), 31),
    ({"metric": "event_count", "by": ["game", "platform", "build"], "every": "month"}, with_body(games=["1001"]), 20),
    ({"metric": "revenue", "by": "platform", "top": 1}, late, None),
    ({"metric": "event_count", "by": ["game", "platform", "build"], "top": 2}, with_body(games=["1002"]), None),
    ({"metric": "revenue", "by": "platform", "every": "month", "top": 1}, late, 20),
    ({"metric": "event_count", "by": "platform", "top": 1, "other": True}, late, None),
    ({"metric": "event_count", "by": "platform", "top": 1, "other": True}, both(late, of_kind("group")), None),
    ({"metric": "event_count", "by": "platform", "top": 1, "other": True}, both(late, of_kind("timeseries")), None),
    ({"metric": "revenue", "by": ["platform", "build"], "check": True}, both(late, of_kind("split")), None),
    ({"metric": "revenue", "by": ["platform", "build"], "check": True}, both(late, of_kind("timeseries")), None),
    ({"metric": "revenue", "by": "build", "top": 1, "other": True, "every": "month"}, both(late, of_kind("group")), 20),
]


def broken(watch: Watch, lens: Client, fails: Callable[[Sent], bool], **arguments: Any) -> pd.DataFrame:
    """Return the frame of a query while the requests that match *fails* fail."""
    watch.fails = fails
    frame = lens.query(**arguments, on_error="gaps")
    watch.fails = lambda _: False
    watch.clear()
    return frame


class Disturbed(NamedTuple):
    """A query some of whose requests failed, and its client, to which all is answered again.

    Attributes:
        whole: the frame of the same query undisturbed.
        failed: the requests that failed.
        frame: the frame with gaps.
    """

    lens: Client
    watch: Watch
    whole: pd.DataFrame
    failed: list[Sent]
    frame: pd.DataFrame


@pytest.fixture(scope="module")
def disturb(world: World, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Disturbed]:
    """Return a function that disturbs a query of `QUERIES`, or retention of `RETENTIONS`, once for all tests."""

    @cache
    def ask(verb: str, place: int) -> Disturbed:
        arguments, fails, max_days = QUERIES[place] if verb == "query" else (*RETENTIONS[place], None)
        watch = world.watch()
        whole = getattr(quick(watch, max_days=max_days), verb)(**arguments, over=OVER)
        failed = [request for request in watch.queries if fails(request)]
        lens = quick(watch, max_days=max_days, cache=tmp_path_factory.mktemp("kept"))
        watch.fails = fails
        frame = getattr(lens, verb)(**arguments, over=OVER, on_error="gaps")
        watch.fails = lambda _: False
        watch.clear()
        return Disturbed(lens, watch, whole, failed, frame)

    return ask


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("place", range(len(QUERIES)))
def test_the_same_query_sends_only_what_failed(disturb: Callable[[str, int], Disturbed], place: int) -> None:
    """Its frame is that of an undisturbed query."""
    lens, watch, whole, failed, frame = disturb("query", place)
    gaps = frame.attrs["gamelens"]["gaps"]
    assert failed
    assert gaps
    assert all(gap["error"] == "the service answered 501: not today" for gap in gaps)
    again = lens.query(**QUERIES[place][0], over=OVER)
    assert_equal(again, whole)
    receipt, undisturbed = again.attrs["gamelens"], whole.attrs["gamelens"]
    assert (receipt["gaps"], receipt["truncated"]) == ([], undisturbed["truncated"])
    assert receipt["asked"] == undisturbed["asked"]
    assert sorted(map(str, watch.queries)) == sorted(map(str, failed))


# A row of several metrics may lack the fields of one, and `top` of a fan-out is taken of the rows there are.
WHOLE = [
    place
    for place, (arguments, *_) in enumerate(QUERIES)
    if isinstance(arguments["metric"], str) and not ("top" in arguments and len(arguments["by"]) == 3)
]


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("place", WHOLE)
def test_rows_beside_gaps_are_right(disturb: Callable[[str, int], Disturbed], place: int) -> None:
    """Each row is whole or absent, and each absent row lies in a gap."""
    _, _, whole, _, frame = disturb("query", place)
    gaps, every = frame.attrs["gamelens"]["gaps"], QUERIES[place][0].get("every", "day")
    assert not [text for text in frame.attrs["gamelens"]["warnings"] if "differs" in text]
    assert frame.dtypes.astype(str).tolist() == whole.dtypes.astype(str).tolist()
    shown = _rows(frame)
    assert shown <= _rows(whole)
    missing = whole[[tuple(map(str, row)) not in shown for row in whole.itertuples(index=False)]]
    for _, row in missing.iterrows():
        assert any(_is_in(row, gap, every) for gap in gaps), row


def _rows(frame: pd.DataFrame) -> set[tuple[str, ...]]:
    """Return the rows of *frame* as texts."""
    return {tuple(map(str, row)) for row in frame.itertuples(index=False)}


def _is_in(row: pd.Series[Any], gap: Body, every: Granularity) -> bool:
    """Return whether *gap* covers a row."""
    interval = Interval.parse(gap["interval"])
    scope = {name: value for name, value in (gap["scope"] or {}).items() if name in row}
    touches = row["timestamp"] in {bucket.start for bucket in interval.buckets(every)}
    return touches and all((None if pd.isna(row[name]) else row[name]) == value for name, value in scope.items())


def test_by_default_a_failure_is_raised_with_a_partial_frame(world: World, tmp_path: Path) -> None:
    """`PartialResult` has the cause and the gaps; the same query then gives the whole frame."""
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
    assert_equal(lens.query("revenue", by="platform", over=OVER), whole)


def test_a_request_that_fails_again_stays_a_gap(world: World, tmp_path: Path) -> None:
    """The same query raises again, or returns the same gaps with `on_error="gaps"`."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path / "kept")
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    watch.fails = late
    with pytest.raises(PartialResult):
        lens.query("revenue", by="platform", over=OVER)
    again = lens.query("revenue", by="platform", over=OVER, on_error="gaps")
    assert again.attrs["gamelens"]["gaps"] == frame.attrs["gamelens"]["gaps"]
    assert_equal(again, frame)


RETENTIONS: list[tuple[dict[str, Any], Callable[[Sent], bool]]] = [
    ({"days": [1, 7], "by": "platform"}, with_body(since_days_ago=7)),
    ({"days": [1, 7], "by": None}, both(with_body(since_days_ago=1), late)),
    ({"days": [1, 7], "by": "game"}, for_metric("retention_retro")),
    ({"days": [1, 7], "by": "platform"}, both(for_metric("new_users"), late)),
    ({"days": [1, 7], "by": ["platform", "build"]}, both(for_metric("new_users"), with_body(games=["1001"]))),
    (
        {"days": [1, 7], "by": ["platform", "build", "ab_id"]},
        both(for_metric("new_users"), with_body(filter={"ab_id": "exp1"}, games=["1001"])),
    ),
    (
        {"days": [1, 7], "by": ["platform", "build", "ab_id", "game"]},
        both(for_metric("new_users"), with_body(filter={"ab_id": "exp1"})),
    ),
    ({"days": [1, 7], "by": ["platform", "build", "game"]}, both(for_metric("retention_retro"), late)),
]


@pytest.mark.parametrize("place", range(len(RETENTIONS)))
def test_the_same_retention_sends_only_what_failed(disturb: Callable[[str, int], Disturbed], place: int) -> None:
    """Its frame is that of an undisturbed query."""
    lens, watch, whole, failed, _ = disturb("retention", place)
    assert failed
    assert_equal(lens.retention(**RETENTIONS[place][0], over=OVER), whole)
    assert sorted(map(str, watch.queries)) == sorted(map(str, failed))


@pytest.mark.parametrize("place", range(len(RETENTIONS)))
def test_retention_in_a_gap_is_na(disturb: Callable[[str, int], Disturbed], place: int) -> None:
    """Unknown retention is NA, never 0, and never of some of the players."""
    _, _, whole, _, frame = disturb("retention", place)
    assert frame.attrs["gamelens"]["gaps"]
    assert len(frame) < len(whole) or frame["retention"].isna().sum() > whole["retention"].isna().sum()
    keys = [name for name in whole.columns if name not in ("retention", "installs", "returned", "game")]
    plain = [frame_.astype(object).where(frame_.notna(), None) for frame_ in (whole, frame)]
    truth = {
        tuple(map(str, row)): more
        for row, more in zip(plain[0][keys].to_numpy(), plain[0].to_dict("records"), strict=True)
    }
    for row, actual in zip(plain[1][keys].to_numpy(), plain[1].to_dict("records"), strict=True):
        right = truth[tuple(map(str, row))]
        assert actual["installs"] == right["installs"], row
        assert actual["retention"] in (None, right["retention"]), row
        assert actual["returned"] in (None, right["returned"]), row


Spoil = Callable[[pd.DataFrame], pd.DataFrame | None]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda frame: pd.DataFrame(frame.to_dict("list")),
        lambda frame: frame.drop(columns="platform"),
        lambda frame: frame.drop(columns="revenue"),
        lambda frame: frame.drop(columns="timestamp"),
        lambda frame: frame.rename(columns={"revenue": "money"}),
        lambda frame: frame.set_index("timestamp"),
        lambda frame: None,
    ],
    ids=["no receipt", "no dimension", "no field", "no timestamp", "renamed", "index", "nothing"],
)
def test_a_changed_frame_is_refused_with_advice(world: World, spoil: Spoil) -> None:
    """A frame without receipt or columns is refused before anything is sent."""
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    with pytest.raises(BadQuery, match=r"pass .* as query\(\) or retention\(\) returned it"):
        lens.refresh(spoil(frame))  # type: ignore[arg-type]
    assert watch.sent == []


@pytest.mark.parametrize("dropped", ["platform", "user_unique"])
def test_a_frame_without_one_of_its_columns_is_refused(world: World, dropped: str) -> None:
    """Each dimension and each field of each metric are needed."""
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric=["conversion", "revenue"], by="platform", over=OVER)
    with pytest.raises(BadQuery, match="no longer has"):
        lens.refresh(frame.drop(columns=dropped))


def test_a_frame_is_refreshed_after_it_was_written_to_parquet(world: World, tmp_path: Path) -> None:
    """The receipt survives Parquet, and with it the query."""
    watch = world.watch()
    lens = quick(watch)
    whole = lens.query("revenue", by=["game", "platform"], over=OVER)
    broken(watch, lens, late, metric="revenue", by=["game", "platform"], over=OVER).to_parquet(tmp_path / "df.parquet")
    assert_equal(lens.refresh(pd.read_parquet(tmp_path / "df.parquet")), whole)


@pytest.mark.parametrize(("one", "other"), [(5, None), (None, 5), (5, 9)])
def test_what_came_serves_a_client_with_another_max_days(
    world: World, tmp_path: Path, one: int | None, other: int | None
) -> None:
    """Where it cuts the time range elsewhere, the frame is the same."""
    watch = world.watch()
    arguments: dict[str, Any] = {"metric": ["revenue", "event_count"], "by": "platform", "over": OVER, "every": "month"}
    whole = quick(watch).query(**arguments)
    lens = quick(watch, max_days=one, cache=tmp_path / "kept")
    frame = broken(watch, lens, both(for_metric("revenue"), late), **arguments, when_unavailable="clip")
    assert frame.attrs["gamelens"]["gaps"]
    assert_equal(quick(watch, max_days=other, cache=tmp_path / "kept").query(**arguments), whole)


def test_a_clipped_query_is_completed_within_what_is_available(world: World, tmp_path: Path) -> None:
    """The receipt of the whole frame says where it was clipped."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path / "kept")
    arguments: dict[str, Any] = {"by": "platform", "over": "2026-10-20/2026-12-01", "when_unavailable": "clip"}
    whole = quick(watch).query("event_count", **arguments)
    broken(watch, lens, starts("2026-11-20T00:00Z"), metric="event_count", **arguments)
    again = lens.query("event_count", **arguments)
    assert_equal(again, whole)
    assert again.attrs["gamelens"]["clipped"] == whole.attrs["gamelens"]["clipped"]


def test_a_refresh_of_retention_fills_gaps_and_does_not_call_that_a_restatement(world: World) -> None:
    """Retention that was missing and is now known is not a restatement."""
    watch = world.watch()
    lens = quick(watch)
    watch.fails = both(late, for_metric("retention_retro"))
    frame = lens.retention([1, 7], over=OVER, on_error="gaps")
    assert frame["retention"].isna().any()
    watch.fails = lambda _: False
    assert lens.refresh(frame).attrs["gamelens"]["restated"] == []


def test_a_refresh_fills_gaps_and_does_not_call_that_a_restatement(world: World) -> None:
    """Rows that were missing and are now known are not restatements."""
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


Moved = tuple[list[pd.DataFrame], Stage]
"""Frames as they were, and the sandbox after a late purchase."""


@pytest.fixture(scope="module")
def restated_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    """Return frames of a sandbox, and the sandbox after a late purchase."""
    stage = Stage(tmp_path_factory.mktemp("moved") / "state")
    sales = [
        sale(f"2026-11-0{day}", country_code=country, user_id=f"u{day}")
        for day in (1, 2, 3)
        for country in ("US", "DE", "FR")
    ]
    sell(stage, *sales)
    lens = quick(stage.metrics_app)
    frames = [lens.query(**arguments, over="2026-11-01/2026-11-10") for arguments in REFRESHED]
    frames.append(lens.retention([1], over="2026-11-01/2026-11-10", by="country_code"))
    sell(stage, sale("2026-11-02", 10_000, country_code="DE", user_id="u1"))
    yield frames, stage
    stage.sandbox.close()


@pytest.mark.parametrize("place", range(len(REFRESHED) + 1))
def test_a_refresh_lists_exactly_the_changed_bucket(restated_sandbox: Moved, place: int) -> None:
    """`refresh` returns fresh rows and restates only the bucket of a late event."""
    frames, stage = restated_sandbox
    before, lens = frames[place], quick(stage.metrics_app)
    after = lens.refresh(before)
    arguments = before.attrs["gamelens"]["asked"]
    is_retention = arguments["metric"] == "retention"
    over: dict[str, Any] = {"over": "2026-11-01/2026-11-10"}
    fresh = lens.retention([1], by="country_code", **over) if is_retention else lens.query(**REFRESHED[place], **over)
    assert_equal(after, fresh)
    restated = after.attrs["gamelens"]["restated"]
    bucket = {"all": "2026-11-01"}.get(arguments["every"], "2026-11-01" if is_retention else "2026-11-02")
    assert {entry["timestamp"][:10] for entry in restated} == {bucket}
    assert all(len(set(entry["by"])) == len(entry["by"]) for entry in restated)
    sums = {entry["field"]: entry["after"] - entry["before"] for entry in restated if entry["before"] is not None}
    expected = {"revenue": ("revenue", 100.0), "event_count": ("event_count", 1), "conversion": None, "retention": None}
    if pair := expected[arguments["metric"] if isinstance(arguments["metric"], str) else "revenue"]:
        assert sums[pair[0]] == pytest.approx(pair[1])
    assert len(lens.restatements()) == len(restated)
