"""From the inbox to the lake (design/metrics, Words; architecture, Decisions: lake)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import NOW, Stage, event
from gamelens.errors import Refused
from gamelens.sandbox.processing.pipeline import process
from gamelens.wire.event_validator import LENIENT
from sandbox.conftest import counted, number
from support.candidate_events import near_events

pytestmark = pytest.mark.slow

DAY_S = 86_400
NOW_S = int(NOW.timestamp())


def days(stage: Stage) -> list[str]:
    """Days the lake has files of."""
    return sorted(str(day) for day in stage.sandbox.lake.snapshot("acme").days)


def by_day(stage: Stage, metric: str, **body: Any) -> dict[str, Any]:
    """The metric on each of the last twenty days that it is not 0 on."""
    asked = {"interval": "2026-11-02/P20D", "granularity": "day", "query": {"type": "timeseries"}} | body
    result = stage.ask(metric, **asked).json()["result"]
    return {it["timestamp"][:10]: it["result"][metric] for it in result if it["result"][metric]}


def purchase(**fields: Any) -> dict[str, Any]:
    bought = {"category": "business", "event_id": "a:b", "amount": 100, "currency": "USD", "transaction_num": 1}
    return event(**bought | fields)


def test_a_file_holds_the_events_of_one_day_by_event_time(stage: Stage) -> None:
    """design/metrics, Words: event time, bucket."""
    midnight = NOW_S - NOW_S % DAY_S
    stage.submit([event(client_ts=midnight - 1), event(client_ts=midnight), event(client_ts=midnight - 5 * DAY_S)])
    stage.process()
    assert days(stage) == ["2026-11-15", "2026-11-19", "2026-11-20"]


@pytest.mark.parametrize(
    ("client_ts", "day"),
    [
        (None, "2026-11-20"),
        (-1, "2026-11-20"),
        (10**11, "2026-11-20"),
        (-(10**30), "2026-11-20"),
        (10**30, "2026-11-20"),
        (NOW_S + DAY_S, "2026-11-21"),
        (NOW_S + DAY_S + 1, "2026-11-20"),
        (0, "1970-01-01"),
    ],
)
def test_a_clock_that_cannot_be_believed_gives_way_to_the_arrival(
    stage: Stage, client_ts: int | None, day: str
) -> None:
    """design/metrics, Words: event time; not more than 24 h after arrival."""
    assert stage.submit([event(client_ts=client_ts)]).status_code == 200
    stage.process()
    assert days(stage) == [day]


def test_the_arrival_is_when_it_came_and_not_when_it_was_processed(stage: Stage) -> None:
    """design/metrics, Words: event time."""
    stage.submit([event(client_ts=None)])
    stage.clock.advance(timedelta(days=3))
    stage.process()
    assert days(stage) == ["2026-11-20"]


def test_a_late_event_moves_the_install(stage: Stage) -> None:
    """design/metrics: a late event restates history, installs included."""
    stage.submit([event(build="2.0")])
    stage.process()
    stage.submit([event(client_ts=NOW_S - 3 * DAY_S, build="1.0")])
    stage.process()
    assert by_day(stage, "new_users") == {"2026-11-17": 1}
    assert by_day(stage, "event_count", filter={"first_build": "1.0"}) == {"2026-11-17": 1, "2026-11-20": 1}


def test_a_late_purchase_moves_the_first_one(stage: Stage) -> None:
    """design/metrics: a late event restates history."""
    stage.submit([purchase(), event(client_ts=NOW_S - DAY_S)])
    stage.process()
    stage.submit([purchase(client_ts=NOW_S - 2 * DAY_S)])
    stage.process()
    assert by_day(stage, "converting_users") == {"2026-11-18": 1}
    assert by_day(stage, "event_count", filter={"is_paying": "true"}) == {
        "2026-11-18": 1,
        "2026-11-19": 1,
        "2026-11-20": 1,
    }


def test_the_first_of_two_events_in_one_second_is_the_install(stage: Stage) -> None:
    """design/metrics, Words: install; ties: arrival order."""
    stage.submit([event(build="2.0"), event(build="1.0")])
    stage.submit([event(build="0.9")])
    stage.process()
    assert number(stage, "new_users", filter={"build": "2.0"}) == 1


def test_diagnostics_without_a_player_install_nobody(stage: Stage) -> None:
    """design/metrics, Words: install."""
    nobody = {"user_id": None, "session_id": None, "session_num": None}
    stage.submit([event(category="sdk_error", error_category="a", error_area="b", error_action="c", **nobody)])
    stage.process()
    assert [number(stage, metric) for metric in ("event_count", "new_users", "user_unique", "session_unique")] == [
        *(1, 0, 0, 0)
    ]


def test_an_event_uuid_counts_once_in_a_batch_over_batches_and_over_runs(stage: Stage) -> None:
    """design/metrics, Words: the same `event_uuid` of a game counts once."""
    one = event(event_uuid="u1")
    stage.submit([one, one])
    stage.submit([one])
    stage.process()
    stage.submit([one, event(event_uuid="u2")])
    stage.process()
    assert number(stage) == 2
    assert counted(stage) == {"accepted": 5, "rejected": 0, "pending": 0, "processed": 2, "duplicate": 3}


def test_the_first_copy_to_arrive_is_the_one_that_counts(stage: Stage) -> None:
    """design/metrics, Words: the first copy to arrive."""
    stage.submit([event(event_uuid="u1", platform="ios")])
    stage.submit([event(event_uuid="u1", platform="android", client_ts=NOW_S - 9 * DAY_S)])
    stage.process()
    assert number(stage, filter={"platform": "ios"}) == number(stage) == 1


def test_a_repeated_purchase_is_paid_once(stage: Stage) -> None:
    """Public facts 1.8: official clients send an event again when an answer is slow."""
    stage.submit([purchase(event_uuid="u1")])
    stage.process()
    stage.submit([purchase(event_uuid="u1")])
    stage.process()
    assert stage.ask("revenue", interval="2026-11-20/P1D", granularity="day", query={"type": "timeseries"}).json()[
        "result"
    ][0]["result"] == {"event_count": 1, "mean": 1.0, "sum": 1.0, "sum_cents": 100.0}


def test_two_games_may_use_the_same_event_uuid(stage: Stage) -> None:
    """design/metrics, Words: of a game."""
    for game_id in ("1001", "1002"):
        stage.submit([event(event_uuid="u1")], game_id=game_id)
    stage.process()
    assert number(stage) == 2


def test_events_without_event_uuid_are_never_merged(stage: Stage) -> None:
    """design/metrics, Words."""
    stage.submit([event(), event()])
    stage.submit([event(), event()])
    stage.process()
    assert number(stage) == 4


def test_processing_twice_changes_nothing(stage: Stage) -> None:
    """architecture: immutable Parquet days."""
    stage.submit([event(), purchase()])
    stage.process()
    lake = stage.sandbox.lake
    once = {path: path.read_bytes() for path in lake.root.rglob("*.parquet")}
    version = lake.last_run().version
    stage.process()
    assert {path: path.read_bytes() for path in lake.root.rglob("*.parquet")} == once
    assert lake.last_run().version == version + 1


def test_days_without_new_events_keep_their_files(stage: Stage) -> None:
    """architecture: replacing a day is one transaction."""
    stage.submit([event(), event(client_ts=NOW_S - DAY_S)])
    stage.process()
    before = stage.sandbox.lake.snapshot("acme").days
    stage.submit([event()])
    stage.process()
    after = stage.sandbox.lake.snapshot("acme").days
    assert [day.day for day in before if before[day] == after[day]] == [19]


@pytest.mark.parametrize("blocked", ["lake/2", "scratch"])
def test_a_run_that_fails_leaves_the_lake_as_it_was(stage: Stage, blocked: str) -> None:
    """architecture: readers see one manifest version, never half a write. A file stands where a folder must go."""
    stage.submit([event()])
    stage.process()
    stage.submit([event(), event(client_ts=NOW_S - DAY_S)])
    obstacle = stage.sandbox.options.state / blocked
    obstacle.write_text("")
    with pytest.raises(Refused, match="nothing was changed"):
        stage.process()
    assert (number(stage), days(stage), counted(stage)["pending"]) == (1, ["2026-11-20"], 2)
    obstacle.unlink()
    stage.process()
    assert (number(stage), days(stage), counted(stage)["pending"]) == (3, ["2026-11-19", "2026-11-20"], 0)


@pytest.mark.parametrize(
    ("fields", "address", "country"),
    [
        ({"country_code": "de"}, "192.0.2.1", "DE"),
        ({"country_code": None}, "192.0.2.1", "US"),
        ({"country_code": None}, "198.51.100.255", "DE"),
        ({"country_code": None}, "203.0.113.9, 192.0.2.1", "JP"),
        ({"country_code": None}, "2001:db8::7", "NA"),
        ({"country_code": None}, "10.0.0.1", None),
        ({"country_code": None}, "not an address", None),
        ({"country_code": None}, None, None),
    ],
)
def test_the_country_is_the_event_s_else_that_of_the_address(
    stage: Stage, fields: dict[str, Any], address: str | None, country: str | None
) -> None:
    """Collector, What the service does 7; public facts 1.11."""
    stage.submit([event(**fields)], headers={"X-Forwarded-For": address} if address else None)
    stage.process()
    rows = stage.ask(
        "event_count",
        interval="2026-11-20/P1D",
        granularity="day",
        query={"type": "group", "dimension": "country_code"},
    ).json()["result"][0]["result"]
    assert rows == [{"country_code": country, "event_count": 1}]


def test_null_is_no_country(stage: Stage) -> None:
    """Public facts 1.11: the Roblox client turns unknown into null."""
    body = json.dumps([event(), event()]).encode().replace(b'"US"', b"null")
    stage.submit(json.loads(body), headers={"X-Forwarded-For": "192.0.2.1"})
    stage.process()
    assert number(stage, filter={"country_code": "US"}) == 2


def test_an_address_is_in_no_file(stage: Stage) -> None:
    """Collector, What the service does 7: the IP itself is not stored."""
    addresses = ("203.0.113.77", "10.77.66.55", "2001:db8::cafe")
    for address in addresses:
        stage.submit([event()], headers={"X-Forwarded-For": address})
        stage.submit([event(), None], headers={"X-Forwarded-For": address})
    stage.process()
    files = [path for path in stage.sandbox.options.state.rglob("*") if path.is_file()]
    assert len(files) > 4
    for path in files:
        content = path.read_bytes()
        assert not [address for address in addresses if address.encode() in content], path


def test_an_organisation_s_events_are_in_files_of_its_own(stage: Stage) -> None:
    """architecture: scoped to the caller's organisation at the bottom."""
    stage.submit([event(user_id="theirs")], game_id="9001")
    stage.submit([event(user_id="ours")])
    stage.process()
    for name, user, other in (("acme", b"ours", b"theirs"), ("rival", b"theirs", b"ours")):
        snapshot = stage.sandbox.lake.snapshot(name)
        assert snapshot.players
        assert user in snapshot.players.read_bytes()
        assert other not in snapshot.players.read_bytes()


FOREIGN = {
    "ad_type": [],
    "ad_action": 5,
    "ad_sdk_name": {},
    "severity": 1,
    "length": "x",
    "amount": {},
    "currency": [],
    "ad_network_name": 7,
    "impression_data": "x",
}


def test_fields_that_mean_nothing_on_an_event_stop_nothing(stage: Stage) -> None:
    """Public facts 2.3: unknown extra fields are accepted and kept."""
    assert stage.submit([event(**FOREIGN)]).status_code == 200
    stage.process()
    assert number(stage) == 1


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"revenue": "1.5", "publisher_revenue": [], "netPayout": None},
        {"revenue": 10**40, "publisher_revenue": 1e300, "netPayout": -1},
        {"revenue": 1, "publisher_revenue": 1, "netPayout": 1, "currency": []},
        {"revenue": 1, "publisher_revenue": 1, "netPayout": True, "currency": {"x": 1}},
        {"id": 5, "auction_id": [], "network_name": {}, "adunit_name": 1.5, "adunit_format": False},
    ],
)
def test_no_impression_stops_processing(stage: Stage, data: dict[str, Any]) -> None:
    """design/metrics, Words: what names no usable revenue counts as an event with 0."""
    impression = {"category": "impression", "ad_network_version": "", "impression_data": data}
    vendors = ("max", "admob", "mopub", "fyber", "ironsource", "aequus")
    assert stage.submit([event(ad_network_name=vendor, **impression) for vendor in vendors]).status_code == 200
    stage.process()
    assert number(stage, "ilrd_id_unique") == len(vendors)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(near_events(), min_size=20, max_size=60))
def test_whatever_is_admitted_can_be_processed(stage: Stage, events: list[Any]) -> None:
    """Processing takes all batches or none: one it cannot read would stop it for good."""
    before = counted(stage)["accepted"]
    good = len([one for one in events if not LENIENT.faults(one)])
    stage.submit(events)
    process(stage.sandbox.options.state, stage.clock)
    now = counted(stage)
    assert (now["accepted"] - before, now["pending"]) == (good, 0)
