"""Processing from the inbox to the lake: event times, installs, repetitions and countries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamelens.errors import Refused
from gamelens.sandbox.maintenance.verification import verify
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.server import rebuild_stopped
from gamelens.wire.event_validator import LENIENT
from support.candidate_events import near_events
from support.game_events import NOW, event
from support.hypothesis_profiles import tries
from support.sandbox_stage import CONFIG, Stage, event_counts, metric_value

pytestmark = pytest.mark.slow

DAY_S = 86_400
NOW_S = int(NOW.timestamp())


def days(stage: Stage) -> list[str]:
    """Return the days of which the lake has events."""
    paths = stage.sandbox.lake.snapshot("acme").files("events")
    return sorted({str(day) for path in paths for day in pq.read_table(path, columns=["day"])["day"].to_pylist()})


def by_day(stage: Stage, metric: str, **body: Any) -> dict[str, Any]:
    """Return the metric on each of the last twenty days on which it is not 0."""
    query = {"interval": "2026-11-02/P20D", "granularity": "day", "query": {"type": "timeseries"}} | body
    result = stage.ask(metric, **query).json()["result"]
    return {entry["timestamp"][:10]: entry["result"][metric] for entry in result if entry["result"][metric]}


def purchase(**fields: Any) -> dict[str, Any]:
    """Return a purchase of 1 dollar with *fields* replaced."""
    base = {"category": "business", "event_id": "a:b", "amount": 100, "currency": "USD", "transaction_num": 1}
    return event(**base | fields)


def test_an_event_is_of_the_day_of_its_event_time(stage: Stage) -> None:
    """Events a second apart at midnight are of two days (Wire 4.1, Event time)."""
    midnight = NOW_S - NOW_S % DAY_S
    stage.submit([event(client_ts=midnight - 1), event(client_ts=midnight), event(client_ts=midnight - 5 * DAY_S)])
    stage.process()
    assert days(stage) == ["2026-11-15", "2026-11-19", "2026-11-20"]


def test_an_unusable_client_ts_is_replaced_by_the_arrival(stage: Stage) -> None:
    """A `client_ts` that is absent, 24 h ahead or a year old is replaced by the arrival, which is not the processing.

    Wire 4.1, Event time.
    """
    expected = {
        None: "2026-11-20",
        -1: "2026-11-20",
        10**11: "2026-11-20",
        -(10**30): "2026-11-20",
        10**30: "2026-11-20",
        NOW_S + DAY_S: "2026-11-21",
        NOW_S + DAY_S + 1: "2026-11-20",
        NOW_S - 365 * DAY_S: "2025-11-20",
        NOW_S - 365 * DAY_S - 1: "2026-11-20",
        NOW_S * 1000: "2026-11-20",
        NOW_S * 10**6: "2026-11-20",
        0: "2026-11-20",
    }
    for client_ts in expected:
        assert stage.submit([event(client_ts=client_ts, build=str(client_ts))]).status_code == 200
    stage.clock.advance(timedelta(days=3))
    stage.process()
    (path,) = stage.sandbox.lake.snapshot("acme").files("events")
    rows = pq.read_table(path, columns=["build", "day"]).to_pylist()
    assert {row["build"]: str(row["day"]) for row in rows} == {str(each): day for each, day in expected.items()}


def test_events_dated_by_arrival_are_counted_once(make_stage: Callable[..., Stage]) -> None:
    """They are counted by reason. Repeated ones and those whose device says the time of the arrival are not.

    A rebuild counts the same (Wire 4.1, Event time).
    """
    stage = make_stage()
    stage.submit([event(client_ts=0), event(client_ts=NOW_S), event(client_ts=None, event_uuid="u")])
    stage.process()
    stage.submit([event(client_ts=None, event_uuid="u"), event(client_ts=NOW_S * 1000)])
    stage.submit([event(client_ts=-1)], game_id="9001")
    stage.process()
    expected = {
        "acme": {
            "client_ts in milliseconds": 1,
            "client_ts more than 365 days before arrival": 1,
            "no client_ts": 1,
        },
        "rival": {"client_ts more than 365 days before arrival": 1},
    }
    assert stage.sandbox.lake.dated_by_arrival() == expected
    state = stage.sandbox.options.state
    stage.sandbox.close()
    rebuild(state)
    rebuild_stopped(state)
    stage = make_stage()
    assert stage.sandbox.lake.dated_by_arrival() == expected
    asyncio.run(stage.sandbox.reset())
    assert stage.sandbox.lake.dated_by_arrival() == {}


@pytest.mark.wide
def test_a_sandbox_may_use_older_times_of_devices(make_stage: Callable[..., Stage]) -> None:
    """`oldest_days` of its configuration says how old, also after a start without one.

    After a change a rebuild dates what was received anew (Wire 5.4, Sandbox configuration).
    """
    stage = make_stage(tenants=f"{CONFIG}[collector]\noldest_days = 4000\n")
    stage.submit([event(client_ts=NOW_S - 4000 * DAY_S), event(client_ts=NOW_S - 4000 * DAY_S - 1)])
    stage.sandbox.close()
    stage = make_stage(tenants=None)
    stage.process()
    assert days(stage) == ["2015-12-08", "2026-11-20"]
    state = stage.sandbox.options.state
    assert verify(state).differences == []
    stage.sandbox.close()
    stage = make_stage()
    stage.sandbox.close()
    assert verify(state).differences != []
    rebuild_stopped(state)
    assert verify(state).differences == []
    assert days(make_stage()) == ["2026-11-20"]


def test_a_wrong_clock_moves_no_install(stage: Stage) -> None:
    """A player of today with a clock of 2015, or one that stands at 0, is new today and in no other day's answer."""
    for clock in (0, 1_420_070_400, NOW_S * 1000):
        stage.submit([event(user_id=f"clock {clock}", client_ts=clock), event(user_id=f"clock {clock}")])
    available = stage.process()
    today = {"interval": "2026-11-20/P1D", "granularity": "day", "query": {"type": "timeseries"}}
    assert metric_value(stage, "new_users", **today) == 3
    assert metric_value(stage, "returning_users", game="1001", **today) == 0
    assert available["acme"].startswith("2026-11-20T00:00")


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


def of_case(case: str, **fields: Any) -> dict[str, Any]:
    """Return an event of a test of its own in `two_runs`, which its publisher names."""
    return event(install_publisher=case, **fields)


NO_PLAYER: dict[str, Any] = {"user_id": None, "session_id": None, "session_num": None}
REPEATED = of_case("repeated", event_uuid="u1")
COPY = of_case("copies", event_uuid="u3", platform="ios")
BOUGHT = purchase(install_publisher="bought", user_id="bought", event_uuid="u4")
UNNAMED = of_case("unnamed")
IN_TWO_GAMES = of_case("in two games", event_uuid="u5")
FIRST_RUN: list[tuple[str, list[dict[str, Any]]]] = [
    ("1001", [REPEATED, REPEATED]),
    ("1001", [REPEATED]),
    ("1001", [COPY]),
    ("1001", [BOUGHT]),
    *((game_id, [IN_TWO_GAMES]) for game_id in ("1001", "1002")),
    ("1001", [UNNAMED, UNNAMED]),
    ("1001", [of_case("late", user_id="late", build="2.0")]),
    ("1001", [purchase(install_publisher="payer", user_id="payer")]),
    ("1001", [of_case("payer", user_id="payer", client_ts=NOW_S - DAY_S)]),
    ("1001", [of_case("in a second", user_id="quick", build=build) for build in ("2.0", "1.0")]),
    ("1001", [of_case("in a second", user_id="quick", build="0.9")]),
    (
        "1001",
        [of_case("nobody", category="sdk_error", error_category="a", error_area="b", error_action="c", **NO_PLAYER)],
    ),
    ("1001", [of_case("null country") | {"country_code": None}] * 2),
    ("1001", [of_case("foreign fields", **FOREIGN)]),
]
"""Batches of the first run, each with its game."""
SECOND_RUN: list[tuple[str, list[dict[str, Any]]]] = [
    ("1001", [REPEATED, of_case("repeated", event_uuid="u2")]),
    ("1001", [COPY | {"platform": "android", "client_ts": NOW_S - 9 * DAY_S}]),
    ("1001", [BOUGHT]),
    ("1001", [UNNAMED, UNNAMED]),
    ("1001", [of_case("late", user_id="late", build="1.0", client_ts=NOW_S - 3 * DAY_S)]),
    ("1001", [purchase(install_publisher="payer", user_id="payer", client_ts=NOW_S - 2 * DAY_S)]),
]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox after two runs, with the events of several tests."""
    stage = Stage(tmp_path_factory.mktemp("two-runs") / "state")
    for batches in (FIRST_RUN, SECOND_RUN):
        for game_id, events in batches:
            answer = stage.submit(events, game_id=game_id, headers={"X-Forwarded-For": "192.0.2.1"})
            assert answer.status_code == 200, answer.text
        stage.process()
    yield stage
    stage.sandbox.close()


def where(case: str, **values: str) -> dict[str, Any]:
    """Return the filter of the events of *case* that have these *values*."""
    return {"and": [{name: value} for name, value in ({"install_publisher": case} | values).items()]}


@pytest.mark.wide
def test_a_late_event_moves_the_install(two_runs: Stage) -> None:
    """A late event of a player moves the install to its day and build.

    Wire 4.4, Install; Wire 4.9, Late events.
    """
    assert by_day(two_runs, "new_users", filter=where("late")) == {"2026-11-17": 1}
    days_of_build = by_day(two_runs, "event_count", filter=where("late", first_build="1.0"))
    assert days_of_build == {"2026-11-17": 1, "2026-11-20": 1}


def test_a_late_purchase_moves_the_first_purchase(two_runs: Stage) -> None:
    """A late purchase is the first one, and events after it are of a payer.

    Wire 4.5, Purchase; Wire 4.9, Late events.
    """
    assert by_day(two_runs, "converting_users", filter=where("payer")) == {"2026-11-18": 1}
    assert by_day(two_runs, "event_count", filter=where("payer", is_paying="true")) == {
        "2026-11-18": 1,
        "2026-11-19": 1,
        "2026-11-20": 1,
    }


def test_the_first_of_two_events_in_one_second_is_the_install(two_runs: Stage) -> None:
    """Of events in one second the first to arrive is the install (Wire 4.4, Install)."""
    assert metric_value(two_runs, "new_users", filter=where("in a second")) == 1
    assert metric_value(two_runs, "new_users", filter=where("in a second", build="2.0")) == 1


def test_an_event_without_a_player_is_no_install(two_runs: Stage) -> None:
    """An event without `user_id` counts as an event, not as a player or install.

    Wire 4.4, Install.
    """
    metrics = ("event_count", "new_users", "user_unique", "session_unique")
    assert [metric_value(two_runs, metric, filter=where("nobody")) for metric in metrics] == [1, 0, 0, 0]


def test_an_event_uuid_counts_once_in_a_batch_over_batches_and_over_runs(two_runs: Stage) -> None:
    """A repeated `event_uuid` counts once, in a batch, over batches and over runs.

    Wire 4.8, Repeated events.
    """
    assert metric_value(two_runs, filter=where("repeated")) == 2
    accepted = sum(len(events) for _, events in FIRST_RUN + SECOND_RUN)
    repeated = 3 + 1 + 1  # of `REPEATED`, `COPY` and `BOUGHT`
    expected = {"accepted": accepted, "rejected": 0, "pending": 0}
    assert event_counts(two_runs) == expected | {"processed": accepted - repeated, "duplicate": repeated}


def test_the_first_copy_to_arrive_is_the_one_that_counts(two_runs: Stage) -> None:
    """Of copies with different fields the first to arrive counts (Wire 4.8, Repeated events)."""
    assert metric_value(two_runs, filter=where("copies")) == 1
    assert metric_value(two_runs, filter=where("copies", platform="ios")) == 1


def test_a_repeated_purchase_counts_once(two_runs: Stage) -> None:
    """A purchase that a client sends again in a later run is revenue once.

    Wire 4.8, Repeated events.
    """
    day: dict[str, Any] = {"interval": "2026-11-20/P1D", "granularity": "day", "query": {"type": "timeseries"}}
    (bucket,) = two_runs.ask("revenue", **day, filter=where("bought")).json()["result"]
    assert bucket["result"] == {"event_count": 1, "mean": 1.0, "sum": 1.0, "sum_cents": 100.0}


def test_two_games_may_use_the_same_event_uuid(two_runs: Stage) -> None:
    """The same `event_uuid` in two games is two events (Wire 4.8, Repeated events)."""
    assert metric_value(two_runs, filter=where("in two games")) == 2


def test_events_without_event_uuid_are_never_merged(two_runs: Stage) -> None:
    """Equal events without `event_uuid` are all counted (Wire 4.8, Repeated events)."""
    assert metric_value(two_runs, filter=where("unnamed")) == 4


def test_null_is_no_country(two_runs: Stage) -> None:
    """A null `country_code` is replaced by the country of the address (Wire 1.17, Country)."""
    assert metric_value(two_runs, filter=where("null country", country_code="US")) == 2


def test_fields_of_other_categories_are_ignored(two_runs: Stage) -> None:
    """Fields of other categories may have any value and are ignored (Wire 3.3, Common fields)."""
    assert metric_value(two_runs, filter=where("foreign fields")) == 1


def test_processing_twice_changes_nothing(stage: Stage) -> None:
    """A run without new events changes no file and adds a version."""
    stage.submit([event(), purchase()])
    stage.process()
    lake = stage.sandbox.lake
    contents = {path: path.read_bytes() for path in lake.root.rglob("*.*")}
    version = lake.last_run().version
    stage.process()
    assert {path: path.read_bytes() for path in lake.root.rglob("*.*")} == contents
    assert lake.last_run().version == version + 1


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("path", ["lake/2", "scratch"])
def test_a_run_that_fails_leaves_the_lake_as_it_was(stage: Stage, path: str) -> None:
    """A failed run changes nothing, and the next one processes all events.

    The run fails because a file is in the place of a folder.
    """
    stage.submit([event()])
    stage.process()
    stage.submit([event(), event(client_ts=NOW_S - DAY_S)])
    obstacle = stage.sandbox.options.state / path
    obstacle.write_text("")
    with pytest.raises(Refused, match="nothing was changed"):
        stage.process()
    assert (metric_value(stage), days(stage), event_counts(stage)["pending"]) == (1, ["2026-11-20"], 2)
    obstacle.unlink()
    stage.process()
    assert (metric_value(stage), days(stage), event_counts(stage)["pending"]) == (3, ["2026-11-19", "2026-11-20"], 0)


def test_the_country_is_the_event_s_else_that_of_the_address(stage: Stage) -> None:
    """The country is the event's in capitals, else the one of the address.

    Wire 1.17, Country.
    """
    expected = {
        ("de", "192.0.2.1"): "DE",
        (None, "192.0.2.1"): "US",
        (None, "198.51.100.255"): "DE",
        (None, "203.0.113.9, 192.0.2.1"): "JP",
        (None, "2001:db8::7"): "NA",
        (None, "10.0.0.1"): None,
        (None, "not an address"): None,
        (None, None): None,
    }
    for place, (own, address) in enumerate(expected):
        headers = {"X-Forwarded-For": address} if address else None
        stage.submit([event(country_code=own, build=str(place))], headers=headers)
    stage.process()
    for place, (case, country) in enumerate(expected.items()):
        rows = stage.ask(
            "event_count",
            interval="2026-11-20/P1D",
            granularity="day",
            query={"type": "group", "dimension": "country_code"},
            filter={"build": str(place)},
        ).json()["result"][0]["result"]
        assert rows == [{"country_code": country, "event_count": 1}], case


def test_no_file_contains_an_ip_address(stage: Stage) -> None:
    """No file of the state directory contains the address of a request (Wire 1.17, Country)."""
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


@pytest.mark.wide
def test_an_organisation_s_events_are_in_files_of_its_own(stage: Stage) -> None:
    """The players of an organisation are in a file without those of another.

    Wire 2.13, Scope.
    """
    stage.submit([event(user_id="theirs")], game_id="9001")
    stage.submit([event(user_id="ours")])
    stage.process()
    for name, user, other in (("acme", b"ours", b"theirs"), ("rival", b"theirs", b"ours")):
        snapshot = stage.sandbox.lake.snapshot(name)
        (installs,) = snapshot.files("installs")
        assert user in installs.read_bytes()
        assert other not in installs.read_bytes()


IMPRESSIONS: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"revenue": "1.5", "publisher_revenue": [], "netPayout": None}, 0),
    ({"revenue": 10**40, "publisher_revenue": 1e300, "netPayout": -1}, 0),
    ({"revenue": 1, "publisher_revenue": 1, "netPayout": 1, "currency": []}, 2),
    ({"revenue": 1, "publisher_revenue": 1, "netPayout": True, "currency": {"x": 1}}, 2),
    ({"id": 5, "auction_id": [], "network_name": {}, "adunit_name": 1.5, "adunit_format": False}, 0),
]
"""Payloads, with the dollars that these vendors earn. max and ironsource name no currency: theirs is never wrong."""


def test_any_impression_data_can_be_processed(stage: Stage) -> None:
    """An impression without usable revenue counts as an event with 0 (Wire 4.6, Impression)."""
    vendors = ("max", "admob", "mopub", "fyber", "ironsource", "aequus")
    for place, (data, _) in enumerate(IMPRESSIONS):
        fields = {"category": "impression", "ad_network_version": "", "impression_data": data, "build": str(place)}
        assert stage.submit([event(ad_network_name=vendor, **fields) for vendor in vendors]).status_code == 200
    stage.process()
    span: dict[str, Any] = {"interval": "2020-01-01/2030-01-01", "granularity": "all", "query": {"type": "timeseries"}}
    for place, (data, dollars) in enumerate(IMPRESSIONS):
        of_data: dict[str, Any] = {"filter": {"build": str(place)}}
        assert metric_value(stage, "ilrd_id_unique", **of_data) == len(vendors), data
        (bucket,) = stage.ask("ilrd_revenue", **span, **of_data).json()["result"]
        assert bucket["result"]["sum"] == dollars, data


@settings(
    max_examples=tries(in_test=4, in_bench=20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(events=st.lists(near_events(), min_size=40, max_size=80))
def test_every_admitted_event_can_be_processed(stage: Stage, events: list[Any]) -> None:
    """A run takes all accepted batches: none of them can stop it."""
    before = event_counts(stage)["accepted"]
    good = len([repeated for repeated in events if not LENIENT.violations(repeated)])
    stage.submit(events)
    stage.process()
    counts = event_counts(stage)
    assert (counts["accepted"] - before, counts["pending"]) == (good, 0)
