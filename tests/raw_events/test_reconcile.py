"""Two answers to one question: planted causes are found, amounts sum, and what cannot be judged is said."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import pytest

import gamelens.notebook.accessor  # noqa: F401  (registers df.lens)
from gamelens.analysis.tidy_frames.returned_columns import declared_columns
from gamelens.catalog import DIMENSIONS
from gamelens.client.async_client import AsyncClient
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.raw_events.reconciliation.event_rows import COUNTED_METRICS, read_event_rows
from gamelens.raw_events.reconciliation.reconcile import Reconciliation, reconcile
from gamelens.raw_events.reconciliation.recount import CAUSES, Recount
from gamelens.receipts import Receipt
from gamelens.sandbox.server import open_bulk_load
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import load_scenario, play_columns
from gamelens.wire.dimensions import EVENT_COLUMNS
from gamelens.wire.intervals import Interval
from support.said import as_made_by, said
from support.two_answers import (
    DAY_S,
    FIRST,
    LEAST,
    NAMES,
    OVER,
    Happened,
    OtherService,
    assert_shares_of,
    happened_events,
    lake_of,
    lake_of_lines,
    planted_shares,
    raw_line,
    shares,
)


class World(NamedTuple):
    """Events and the lake that has them."""

    events: list[Happened]
    lake: LakeClient


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield a lake with every cause planted."""
    events = happened_events(7)
    with lake_of(events, tmp_path_factory.mktemp("two")) as lake:
        yield World(events, lake)


def explained(world: World, *causes: str, metric: str, by: str | None = None) -> Reconciliation:
    """Return the reconciliation with a service that counts by the rules of *causes*."""
    api = cast(Client, OtherService(world.events, causes))
    return reconcile(api, world.lake, metric, by=by, over=OVER)


CASES = [
    ("as of", "user_unique", "country_code"),
    ("closed", "revenue", "country_code"),
    ("arrival", "session_unique", None),
    ("duplicates", "event_count", "country_code"),
    ("skew", "event_count", None),
    ("zone", "user_unique", "country_code"),
    ("summer time", "event_count", None),
    ("networks", "event_count", "ilrd_network_name"),
    ("bots", "event_count", None),
    ("first", "user_unique", "country_code"),
    ("last", "revenue", "country_code"),
    ("approximate", "session_unique", None),
]
"""Every cause once; `make bench` plants each in every metric and split."""


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(("cause", "metric", "by"), CASES)
def test_one_planted_cause_is_found(world: World, cause: str, metric: str, by: str | None) -> None:
    """At least 95 % of the difference goes to it, and the rest is not hidden."""
    found = explained(world, cause, metric=metric, by=by)
    assert shares(found).get(NAMES[cause], 0) >= LEAST, found.causes.to_string()
    assert found.explained_share >= LEAST
    if cause == "summer time":  # of a zone that is always as far ahead something would be left
        assert found.causes.set_index("cause")["reason"]["time zone"] == "days of Australia/Sydney"
        assert found.explained_share == 1
    if cause == "bots":
        (claim,) = said(found.causes)
        difference = found.causes["amount"].sum()
        assert (claim.case, claim.direction, claim.api - claim.lake) == ("differ", "lower", difference)
        assert claim.size == pytest.approx(1)
        assert claim.text == str(found)
        part = f"bots 100.0% ({difference:,.0f} in total: without players whose activity is implausible)"
        assert f"Causes, by share of the absolute differences: {part}." in claim.text
        assert repr(found) == f"<{found}>"


PAIRS = [("as of", "zone", "event_count", None), ("skew", "last", "user_unique", "country_code")]
"""Rules of time with one another, and one with a rule of attribution; `make bench` plants all pairs."""


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("first", "second", "metric", "by"), PAIRS)
def test_two_planted_causes_are_told_apart(world: World, first: str, second: str, metric: str, by: str | None) -> None:
    """Each has its Shapley value, counted in plain Python, but for 5 % of the difference."""
    found = explained(world, first, second, metric=metric, by=by)
    assert_shares_of(found, planted_shares(world.events, (first, second), metric, by))


def test_amounts_sum_to_each_difference(world: World) -> None:
    """In every bucket and split, and in the table of causes."""
    found = explained(world, "closed", "zone", metric="event_count", by="country_code")
    cells = found.frame.groupby(["timestamp", "country_code"])
    sums, differences = cells["amount"].sum(), cells["difference"].first()
    assert len(sums) == 7 * 6
    assert (sums - differences).abs().max() < 1e-9
    assert (cells["share"].sum(min_count=1).dropna() - 1).abs().max() < 1e-9
    assert found.causes["amount"].sum() == pytest.approx(differences.sum())
    assert found.causes["share"].sum() == pytest.approx(1)
    by_cause = found.frame.groupby("cause")["amount"].sum()
    assert by_cause["time zone"] == pytest.approx(found.causes.set_index("cause")["amount"]["time zone"])


def test_the_table_of_causes_has_the_columns_that_are_listed(world: World) -> None:
    """Causes and statuses are closed and in their order, an amount is in the unit of the metric."""
    for metric, unit in (("revenue", "USD"), ("event_count", "count")):
        found = explained(world, "zone", metric=metric).causes
        listed = declared_columns(reconcile).columns
        assert [*found.columns] == [column.name for column in listed]
        assert [*found["cause"].cat.categories] == [*found["cause"]] == [*CAUSES, "unexplained"]
        assert [*found["status"].cat.categories] == ["explains", "explains nothing", "not judged"]
        assert set(found["unit"]) == {unit}
        assert ("$" in str(found.lens.table())) == (unit == "USD")


def test_two_empty_answers_are_not_said_to_have_rows() -> None:
    """As where nobody bought anything."""
    rows = {"cause": ["unexplained"], "share": [math.nan], "amount": [0.0], "reason": ["nothing is left"]}
    about = {"metric": "revenue", "rows": 0, "differ": 0, "api": 0.0, "lake": 0.0}
    (claim,) = said(as_made_by("raw_events.reconcile", pd.DataFrame(rows), **about))
    assert claim.text == "Purchase revenue: both answers are empty."


def test_both_answers_stand_beside_each_other(world: World) -> None:
    """The lake's column is its answer, the API's that of the service, and the receipt has both origins."""
    found = explained(world, "zone", metric="revenue", by="country_code")
    rows = found.frame[found.frame["cause"] == "unexplained"]
    lake = world.lake.query("revenue", by="country_code", over=OVER)
    assert rows["lake"].sum() == pytest.approx(lake["revenue"].sum())
    assert rows["api"].sum() == pytest.approx(
        sum(OtherService(world.events, {"zone"}).count("revenue", "country_code").values())
    )
    assert Receipt.of(found.frame.attrs).provenance.kind == "mixed"


@pytest.mark.wide
@pytest.mark.parametrize(("metric", "by"), [("session_unique", None), ("revenue", "country_code")])
def test_the_same_rules_give_the_same_answers(world: World, metric: str, by: str | None) -> None:
    """Without a planted cause nothing differs and nothing is explained."""
    found = explained(world, metric=metric, by=by)
    assert (found.frame["difference"] == 0).all()
    assert set(found.causes["status"]) <= {"explains nothing", "not judged"}
    (claim,) = said(found.causes)
    assert (claim.case, claim.direction, claim.differ) == ("same", "no clear difference", 0)
    assert math.isnan(found.explained_share)


@pytest.mark.shown_by("revenue", "event_count")
@pytest.mark.parametrize("metric", [*COUNTED_METRICS])
def test_a_lake_agrees_with_itself(world: World, metric: str) -> None:
    """Each metric is recounted as the service's code counts it."""
    found = reconcile(world.lake, world.lake, metric, by="country_code", over=OVER)
    assert (found.frame["difference"] == 0).all()
    compared = read_event_rows(world.lake, COUNTED_METRICS[metric], "country_code", Interval.parse(OVER), [])
    recount = Recount(compared, COUNTED_METRICS[metric].kind, Interval.parse(OVER), "day", compared.splits)
    lake = world.lake.query(metric, over=OVER, by="country_code", every="all")[metric].sum()
    if COUNTED_METRICS[metric].kind != "distinct":
        assert recount.cells().sum() == pytest.approx(lake)
    daily = world.lake.query(metric, over=OVER, by="country_code")[metric].sum()
    assert recount.cells().sum() == pytest.approx(daily)


def without_some(events: list[Happened]) -> list[Happened]:
    """Return *events* without a fifth of them, which no rule tells."""
    return [event for event in events if zlib.crc32(f"{event.user} {event.true_s}".encode()) % 5]


@pytest.mark.parametrize("by", [None, "country_code"])
def test_what_no_rule_gives_is_unexplained(world: World, by: str | None) -> None:
    """Events that one answer lacks are not due to a cause, although any rule that drops some comes closer."""
    api = cast(Client, OtherService(without_some(world.events), ()))
    found = reconcile(api, world.lake, "event_count", by=by, over=OVER)
    assert shares(found) == {"unexplained": 1.0}
    assert found.explained_share == 0
    assert "unexplained 100.0%" in str(found)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("cause", ["arrival", "bots"])
def test_a_cause_is_found_beside_what_no_rule_gives(world: World, cause: str) -> None:
    """It gets what it changes in the lake, and the rest stays unexplained."""
    api = OtherService(without_some(world.events), (cause,))
    found = reconcile(cast(Client, api), world.lake, "event_count", by="country_code", over=OVER)
    sets: list[tuple[str, ...]] = [(), (cause,)]
    none, whole = (OtherService(world.events, each).count("event_count", "country_code") for each in sets)
    changed = sum(abs(whole.get(cell, 0) - none.get(cell, 0)) for cell in {*none, *whole})
    amounts = found.frame[found.frame["cause"] == NAMES[cause]]["amount"]
    assert amounts.abs().sum() == pytest.approx(changed, rel=0.05)
    assert {*shares(found)} == {NAMES[cause], "unexplained"}


def test_every_cause_is_judged_or_said_not_to_be(world: World) -> None:
    """With a reason, and a share only where it was judged."""
    found = explained(world, "closed", metric="event_count")
    judged = found.causes.set_index("cause")
    assert {*judged.index} == {*CAUSES, "unexplained"}
    assert (judged["reason"].str.len() > 0).all()
    unjudged = judged[judged["status"] == "not judged"]
    assert {*unjudged.index} == {
        "undisclosed networks",
        "approximate unique counts",
        "dimension of the first or last event",
    }
    assert unjudged["share"].isna().all()
    late = judged.loc["late arrivals"]
    missing = sum(event.arrival_s >= closes(event) for event in world.events if is_compared(event))
    assert (late["reason"], late["events"]) == ("without arrivals 12 h or more after its period ended", missing)
    assert OVER[:10] <= f"{late['example']:%Y-%m-%d}" < OVER[11:]


def closes(event: Happened) -> float:
    """Return when a service that waits twelve hours closes the day of *event*."""
    return event.client_s // DAY_S * DAY_S + DAY_S + 12 * 3600


def is_compared(event: Happened) -> bool:
    """Return whether *event* is in the interval that is compared."""
    return pd.Timestamp(OVER[:10]).timestamp() <= event.client_s < pd.Timestamp(OVER[11:]).timestamp()


def test_a_frame_of_earlier_is_an_answer(world: World) -> None:
    """Its receipt says when it was made; it cannot be asked for its events."""
    frame = OtherService(world.events, {"as of"}).query("user_unique", by="country_code", over=OVER, every="day")
    found = reconcile(frame, world.lake, "user_unique", by="country_code")
    assert shares(found) == {"late arrivals": 1.0}
    judged = found.causes.set_index("cause")
    assert "2026-10-10 02:00" in judged["reason"]["late arrivals"]
    assert judged["status"]["approximate unique counts"] == "not judged"


@pytest.mark.wide
def test_a_lake_without_arrivals_does_not_judge_them(tmp_path: Path) -> None:
    """A simulated lake was never sent."""
    with open_bulk_load(tmp_path / "state", clock=Clock()) as load:
        load.take(play_columns(load_scenario("small", players=60, days=6), load.folder, game_ids=load.game_ids))
    with open_lake(tmp_path / "state", progress=False) as lake:
        found = reconcile(lake, lake, "event_count", over=lake.available())
    unjudged = found.causes[found.causes["reason"] == "the arrival times of the lake's events are not known"]
    assert [*unjudged["cause"]] == ["late arrivals", "client time against arrival day", "clock skew"]


CONTENT = {
    "event_id": ("tutorial:start", "tutorial:end"),
    "custom_01": ("ninja", "wizard"),
    "device": ("iPhone15,2", "iPhone15,3"),
    "os_version": ("ios 17.0", "ios 17.1"),
    "build": ("1.0", "1.1"),
    "id": ("impression 1", "impression 2"),
}
"""Two values of fields of an event, or of the payload of an impression."""


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeClient]:
    """Yield a lake of three events without `event_uuid` for each of those fields, in a quarter of an hour of its own.

    They are of one second, and differ in the field alone: the first and the last have the same value.
    """
    lines = []
    for place, (field, (one, other)) in enumerate(CONTENT.items()):
        at_s = int(FIRST.timestamp()) + 4 * DAY_S + place * 900
        category = "impression" if field == "id" else "design"
        happened = Happened("ann", "6e1a", category, at_s, at_s, at_s + 9, "US", "one", True, 0, None, False, False)
        for value in (one, other, one):
            line = raw_line(happened)
            (line["data"]["impression_data"] if field == "id" else line["data"])[field] = value
            lines.append(line)
    with lake_of_lines(lines, tmp_path_factory.mktemp("alike")) as lake:
        yield lake


def test_events_of_one_second_that_differ_are_not_repeated(alike: LakeClient) -> None:
    """Of three events without `event_uuid`, only the one that is just like another is repeated."""
    found = read_event_rows(alike, COUNTED_METRICS["event_count"], None, Interval.parse(OVER), [])
    first = int(found.client.min())
    for place, field in enumerate(CONTENT):
        own = found.client == first + place
        repeated = found.events[own & found.is_repeated].sum(), found.events[own & ~found.is_repeated].sum()
        assert repeated == (1, 2), field


@pytest.mark.wide
def test_every_column_of_events_that_is_a_dimension_splits(alike: LakeClient) -> None:
    """A dimension that events have can split a comparison, and one of their players cannot."""
    allowed, day = {name for name in DIMENSIONS if name in EVENT_COLUMNS}, f"{alike.available().start:%Y-%m-%d}"
    for name in DIMENSIONS:
        if name in allowed:
            reconcile(alike, alike, "event_count", by=name, over=day)
        else:
            with pytest.raises(BadQuery, match="one dimension of events"):
                reconcile(alike, alike, "event_count", by=name, over=day)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "arpu"}, "cannot be recounted"),
        ({"metric": ["revenue", "user_unique"]}, "cannot be recounted"),
        ({"by": "first_build"}, "one dimension of events"),
        ({"by": ["country_code", "platform"]}, "one dimension of events"),
        ({"over": None}, "must be given"),
    ],
)
def test_what_cannot_be_compared_is_refused(world: World, arguments: dict[str, Any], message: str) -> None:
    """The error names the argument and what is allowed."""
    given: dict[str, Any] = {"metric": "event_count", "over": OVER} | arguments
    with pytest.raises(BadQuery, match=message):
        reconcile(world.lake, world.lake, **given)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"metric": "event_count", "by": "platform"}, "is not a column"),
        ({"metric": "event_count", "by": ["country_code", "platform"]}, "by country_code"),
        ({"metric": "event_count", "by": "country_code", "where": 'platform == "ios"'}, "is incomplete"),
        ({"metric": "user_unique", "by": "country_code"}, "is not a column"),
    ],
)
def test_a_frame_of_another_query_is_refused(world: World, query: dict[str, Any], message: str) -> None:
    """The error says which query it must be of."""
    frame = world.lake.query(over=OVER, **query)
    with pytest.raises(BadQuery, match=message):
        reconcile(frame, world.lake, "event_count", by="country_code")


@pytest.mark.parametrize("api", [AsyncClient.__new__(AsyncClient), "https://example.com", None])
def test_what_cannot_answer_is_refused(world: World, api: Any) -> None:
    """An asynchronous client answers later, and an address is not a client."""
    with pytest.raises(BadQuery, match="must be a client or a frame from `connect`"):
        reconcile(api, world.lake, "event_count", over=OVER)


def test_a_frame_without_a_receipt_is_refused(world: World) -> None:
    """Nobody knows of what and when it is."""
    frame = world.lake.query("event_count", over=OVER)
    frame.attrs.clear()
    with pytest.raises(BadQuery, match="is not event_count"):
        reconcile(frame, world.lake, "event_count")
