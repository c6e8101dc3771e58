"""The scenario "dirty", through a collector that is killed twice, against the ledger.

Everything is on at once: late, lost, repeated, malformed and invented events, wrong clocks and bots.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import msgspec
import pyarrow.parquet as pq
import pytest

from gamelens.catalog import METRICS
from gamelens.client.sync_client import Client
from gamelens.local.sandbox_population import PopulationRecord, populate
from gamelens.simulator import Ledger, Scenario, load_scenario
from gamelens.simulator.events.defects import BODY_DEFECTS, EVENT_DEFECTS, EVENT_QUIRKS, REQUEST_DEFECTS
from gamelens.simulator.scenarios.scenario import DeliveryProfile, DirtProfile
from gamelens.wire.event_validator import RejectedEvent
from gamelens.wire.intervals import Interval
from support.killable_sandbox import Service
from support.ledger_comparison import PER_GAME, PLAIN, assert_equals_ledger

pytestmark = [pytest.mark.slow, pytest.mark.wide]

DIMENSIONS = ["country_code", "platform", "build", "is_paying", "installed_on", "category"]


class DirtyRun(msgspec.Struct, frozen=True):
    """Everything that was sent and answered, and a client of the metrics service."""

    played: PopulationRecord
    ledger: Ledger
    rejected: list[tuple[str, RejectedEvent]]
    kills: int
    sent_twice: int
    refused_requests: Counter[int]
    shown: list[dict[str, Any]]
    client: Client
    over: Interval
    """The scenario's days and the day of arrival, which has all events without a usable time."""


class Killer:
    """Kills the service after given numbers of events, during requests, and starts it again."""

    def __init__(self, service: Service, *, at_events: list[int]) -> None:
        self.kills = 0
        self._service, self._at, self._sent = service, at_events, 0
        self._due: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def count(self, events: int) -> None:
        """Count *events* as sent, and request a kill when the next number is reached."""
        self._sent += events
        if self._at and self._sent >= self._at[0]:
            self._at.pop(0)
            self._due.put(True)

    def stop(self) -> None:
        """Stop the thread that kills once it has done what was requested, and wait for its end."""
        self._due.put(False)
        self._thread.join()

    def _wait(self) -> None:
        while self._due.get():
            time.sleep(0.003)  # until the next requests are under way
            self._service.kill()
            self._service.start()
            self.kills += 1


def _scenario_with_all_defects() -> Scenario:
    """Return the scenario with fewer players, each with more of every rare defect."""
    dirt = DirtProfile(malformed=0.1, odd=0.03, duplicates=0.02, broken_bodies=0.02, bad_requests=0.02, bots=0.1)
    scenario = load_scenario("dirty", players=80)
    assert scenario.delivery is not None
    delivery = msgspec.structs.replace(scenario.delivery, uncorrected=0.6)
    return msgspec.structs.replace(scenario, delivery=delivery, dirt=dirt)


@pytest.fixture(scope="module")
def dirty_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirtyRun]:
    """Play the scenario while the collector is killed twice, and process its events."""
    service = Service(tmp_path_factory.mktemp("dirty"))
    service.keep_ports()
    ledger = Ledger()
    rejected: list[tuple[str, RejectedEvent]] = []
    killer = Killer(service, at_events=[1_000, 2_500])
    try:
        played = populate(
            service.ready,
            _scenario_with_all_defects(),
            ledger=ledger,
            on_batch=killer.count,
            on_rejected=lambda game_id, event: rejected.append((game_id, event)),
            find=lambda: service.ready,
        )
        killer.stop()
        arrival_day = datetime.now(UTC).date()
        for path, body in (("clock", {"advance": "P2D"}), ("process", None)):  # so that the day of arrival is complete
            httpx.post(f"{service.ready.console_url}/{path}", json=body, timeout=60).raise_for_status()
        summary = httpx.get(f"{service.ready.console_url}/summary").json()
        shown = httpx.get(f"{service.ready.console_url}/events?status=rejected&limit=10000").json()
        with service.client(max_wait_s=30) as client:
            over = Interval.parse(f"{arrival_day - timedelta(days=20)}/P21D")
            refused_requests = Counter(
                {int(status): count for status, count in summary["since_start"]["refused"].items()}
            )
            yield DirtyRun(
                played, ledger, rejected, killer.kills, summary["duplicate"], refused_requests, shown, client, over
            )
    finally:
        service.stop()


def test_every_defect_was_sent(dirty_run: DirtyRun) -> None:
    """Every defect and quirk was sent, and the collector was killed twice."""
    assert dirty_run.kills == 2
    labels = dirty_run.ledger.labels().keys()
    assert labels >= {defect.name for defect in EVENT_DEFECTS} | {quirk.name for quirk in EVENT_QUIRKS}
    assert labels >= {"late", "crash", "old SDK", "wrong clock", "sent again", "duplicate", "bot"}
    assert labels & {defect.name for defect in BODY_DEFECTS}
    assert labels >= {defect.name for defect in REQUEST_DEFECTS}


def test_exactly_the_bad_events_are_rejected(dirty_run: DirtyRun) -> None:
    """Each event that the ledger calls bad is rejected, with exactly its violations.

    Wire 1.8, Rejected events.
    """
    expected = Counter(
        (row["game_id"], row["event_uuid"], tuple(sorted(row["errors"]))) for row in dirty_run.ledger.rejected()
    )
    assert Counter(_comparable(game_id, rejected) for game_id, rejected in dirty_run.rejected) == expected


def test_the_control_api_lists_rejected_events_with_violations(dirty_run: DirtyRun) -> None:
    """Events rejected since the second kill are listed with their violations.

    Wire 5.2, Live feed.
    """
    expected = {(row["event_uuid"], tuple(sorted(row["errors"]))) for row in dirty_run.ledger.rejected()}
    shown = {_comparable("", msgspec.convert(entry, RejectedEvent))[1:] for entry in dirty_run.shown}
    assert len(shown) > 50  # of about 100: how many depends on the moment of the kill
    assert shown <= expected


def test_the_collector_refuses_bad_requests_as_a_whole(dirty_run: DirtyRun) -> None:
    """Requests with bad signatures or sizes get 401 and 413, as the ledger says.

    Wire 1.10, Collector statuses.
    """
    expected = dirty_run.ledger.refused()
    assert expected.keys() == {401, 413}
    assert all(0 < dirty_run.refused_requests[status] <= count for status, count in expected.items())


def test_repeated_events_are_counted_once(dirty_run: DirtyRun, tmp_path: Path) -> None:
    """Each `event_uuid` counts once, whatever was sent again after a kill.

    Wire 4.8, Repeated events.
    """
    dirty_run.ledger.write(tmp_path / "truth.parquet")
    verdicts = pq.read_table(tmp_path / "truth.parquet", columns=["verdict"])["verdict"].to_pylist()
    assert dirty_run.sent_twice >= verdicts.count("repeated") > 100
    everything = dirty_run.client.query("event_count", over=dirty_run.over, every="all")
    assert everything["event_count"].sum() < dirty_run.played.events


@pytest.mark.parametrize("metric", PLAIN)
@pytest.mark.parametrize("by", [[], ["country_code", "platform"], ["build", "is_paying"], ["category"]], ids="-".join)
def test_plain_metrics(dirty_run: DirtyRun, metric: str, by: list[str]) -> None:
    """Plain metrics by day and any dimensions equal the ledger (Wire 4.11, Metrics)."""
    frame = dirty_run.client.query(metric, by=by, over=dirty_run.over)
    assert_equals_ledger(frame, dirty_run.ledger.metric(metric, interval=dirty_run.over, by=by), metric, by)


@pytest.mark.parametrize("metric", PER_GAME)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_per_game_metrics(dirty_run: DirtyRun, metric: str, dimension: str) -> None:
    """Metrics per game by any dimension equal the ledger (Wire 4.11, Metrics)."""
    by = [dimension, "game_id"]
    frame = dirty_run.client.query(metric, by=by, over=dirty_run.over)
    assert_equals_ledger(frame, dirty_run.ledger.metric(metric, interval=dirty_run.over, by=by), metric, by)


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("days", [1, 2, 7])
@pytest.mark.parametrize("dimension", ["platform", "country_code", "first_build"])
def test_retention(dirty_run: DirtyRun, days: int, dimension: str) -> None:
    """Retention after 1, 2 and 7 days by any dimension equals the ledger.

    Wire 4.12, Retention.
    """
    by = [dimension, "game_id"]
    frame = dirty_run.client.query("retention_retro", by=by, over=dirty_run.over, since_days_ago=days)
    truth = dirty_run.ledger.metric("retention_retro", interval=dirty_run.over, by=by, since_days_ago=days)
    assert_equals_ledger(frame, truth, "retention_retro", by)


@pytest.mark.parametrize("metric", ["event_count", "user_unique", "new_users", "session_length", "ilrd_revenue"])
def test_events_of_wrong_clocks_are_on_the_day_of_arrival(dirty_run: DirtyRun, metric: str) -> None:
    """A time that cannot be true moves no event, install or available interval (Wire 4.1, Event time)."""
    arrived = Interval.parse(f"{dirty_run.over.end - timedelta(days=1):%F}/P1D")
    frame = dirty_run.client.query(metric, by="platform", over=str(arrived), every="all")
    truth = dirty_run.ledger.metric(metric, interval=arrived, granularity="all", by=["platform"])
    assert_equals_ledger(frame, truth, metric, ["platform"])
    available = Interval.parse(frame.attrs["gamelens"]["available"])
    assert available.start >= dirty_run.over.start - timedelta(days=1)


def test_events_without_event_uuid_are_not_sent_twice(tmp_path: Path) -> None:
    """Events without `event_uuid` are not sent again after a lost response.

    Wire 4.8, Repeated events.
    """
    service = Service(tmp_path)
    scenario = load_scenario("dirty", players=150)
    scenario = msgspec.structs.replace(scenario, delivery=DeliveryProfile(old_sdk=1.0), dirt=None)
    ledger, before = Ledger(), httpx.get(f"{service.ready.console_url}/summary").json()
    try:
        service.fail("/v2/*", service="collector", cut_body=True, probability=0.5)
        populate(service.ready, scenario, ledger=ledger)
        assert service.struck() > 3
        summary = httpx.get(f"{service.ready.console_url}/summary").json()
    finally:
        service.stop()
    assert summary["accepted"] - before["accepted"] == len(ledger)


def test_all_metrics_are_compared() -> None:
    """The metrics of this module are all metrics of the catalog (Wire 4.11, Metrics)."""
    assert {*PLAIN, *PER_GAME, "retention_retro"} == METRICS.keys()


def _comparable(game_id: str, rejected: RejectedEvent) -> tuple[str, Any, tuple[tuple[str, str], ...]]:
    name = rejected.event.get("event_uuid") if isinstance(rejected.event, dict) else None
    return game_id, name, tuple(sorted((fault.error_type, fault.path) for fault in rejected.errors))
