"""Whatever goes wrong between players and collector, what is answered is what the ledger says counts.

Everything is on at once: late, lost, repeated, malformed and invented events, wrong clocks, bots; and the collector is
killed twice while it all comes in.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow.parquet as pq
import pytest

from gamelens.catalog import METRICS
from gamelens.client.sync_client import Client
from gamelens.local.population_record import PopulationRecord
from gamelens.local.sandbox_population import populate
from gamelens.simulator import Ledger, Scenario, load_scenario
from gamelens.simulator.events.defects import BAD_REQUESTS, BREAKS, FLAWS, ODDITIES
from gamelens.simulator.scenarios.delivery_profile import DeliveryProfile, DirtProfile
from gamelens.wire.event_validator import RejectedEvent
from gamelens.wire.intervals import Interval
from journey.test_ledger import PER_GAME, PLAIN, assert_true
from support.killable_sandbox import Service

pytestmark = pytest.mark.slow

DIMENSIONS = ["country_code", "platform", "build", "is_paying", "installed_on", "category"]


class Dirty(msgspec.Struct, frozen=True):
    played: PopulationRecord
    ledger: Ledger
    rejected: list[tuple[str, RejectedEvent]]
    kills: int
    sent_twice: int
    refused: Counter[int]
    shown: list[dict[str, Any]]
    client: Client
    over: Interval
    """The scenario's days and the one of arrival, on which everything is that has no usable time."""


class Killer:
    """Kills the service at a few points of the way, in the middle of whatever it does, and starts it again."""

    def __init__(self, service: Service, *, at_events: list[int]) -> None:
        self.kills = 0
        self._service, self._at, self._sent = service, at_events, 0
        self._is_due, self._is_over = threading.Event(), False
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def count(self, events: int) -> None:
        self._sent += events
        if self._at and self._sent >= self._at[0]:
            self._at.pop(0)
            self._is_due.set()

    def stop(self) -> None:
        self._is_over = True
        self._is_due.set()
        self._thread.join()

    def _wait(self) -> None:
        while True:
            self._is_due.wait()
            self._is_due.clear()
            if self._is_over:
                return
            time.sleep(0.003)  # into the requests that follow
            self._service.kill()
            self._service.start()
            self.kills += 1


def _everything() -> Scenario:
    """Fewer players than the scenario has, since each makes requests of its own; each with more of what is rare."""
    dirt = DirtProfile(malformed=0.1, odd=0.03, duplicates=0.02, broken_bodies=0.02, bad_requests=0.02, bots=0.02)
    return msgspec.structs.replace(load_scenario("dirty", players=150), dirt=dirt)


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dirty]:
    service = Service(tmp_path_factory.mktemp("dirty"))
    service.keep_ports()
    ledger, rejected = Ledger(), []
    killer = Killer(service, at_events=[2_000, 5_000])
    try:
        played = populate(
            service.ready,
            _everything(),
            ledger=ledger,
            on_batch=killer.count,
            on_rejected=lambda game_id, event: rejected.append((game_id, event)),
            find=lambda: service.ready,
        )
        killer.stop()
        arrived = datetime.now(UTC).date()
        for path, said in (("clock", {"advance": "P2D"}), ("process", None)):  # until the day of arrival is complete
            httpx.post(f"{service.ready.console_url}/{path}", json=said, timeout=60).raise_for_status()
        summary = httpx.get(f"{service.ready.console_url}/summary").json()
        shown = httpx.get(f"{service.ready.console_url}/events?status=rejected&limit=10000").json()
        with service.client(max_wait_s=30) as client:
            over = Interval.parse(f"{arrived - timedelta(days=20)}/P21D")
            refused = Counter({int(status): count for status, count in summary["since_start"]["refused"].items()})
            yield Dirty(played, ledger, rejected, killer.kills, summary["duplicate"], refused, shown, client, over)
    finally:
        service.stop()


def test_everything_that_can_go_wrong_did(dirty: Dirty) -> None:
    """Each entry of the catalogue was sent, and the collector was killed twice meanwhile."""
    assert dirty.kills == 2
    labels = dirty.ledger.labels().keys()
    assert labels >= {flaw.name for flaw in FLAWS} | {oddity.name for oddity in ODDITIES}
    assert labels >= {"late", "crash", "old SDK", "wrong clock", "sent again", "duplicate", "bot"}
    assert labels & {each.name for each in BREAKS}
    assert labels >= {each.name for each in BAD_REQUESTS}


def test_the_collector_rejects_what_it_must_and_says_why(dirty: Dirty) -> None:
    """Contract, Collector; public facts 1.7: every event, every fault."""
    owed = Counter((row["game_id"], row["event_uuid"], tuple(sorted(row["errors"]))) for row in dirty.ledger.rejected())
    assert Counter(_told(game_id, rejected) for game_id, rejected in dirty.rejected) == owed


def test_the_console_shows_rejected_events_with_their_faults(dirty: Dirty) -> None:
    """Contract, Control surface: what was rejected since the last start, which was after the second kill."""
    owed = {(row["event_uuid"], tuple(sorted(row["errors"]))) for row in dirty.ledger.rejected()}
    shown = {_told("", msgspec.convert(entry, RejectedEvent))[1:] for entry in dirty.shown}
    assert len(shown) > 100
    assert shown <= owed


def test_the_collector_refuses_bad_requests_as_a_whole(dirty: Dirty) -> None:
    """Collector, Authentication 3, Limits: 401 and 413, else `populate` had failed. Counted since the second kill."""
    owed = dirty.ledger.refused()
    assert owed.keys() == {401, 413}
    assert all(0 < dirty.refused[status] <= count for status, count in owed.items())


def test_repeated_events_are_counted_once(dirty: Dirty, tmp_path: Path) -> None:
    """Metrics, Words: the same event_uuid of a game counts once, whatever a killed collector was sent again."""
    dirty.ledger.write(tmp_path / "truth.parquet")
    verdicts = pq.read_table(tmp_path / "truth.parquet", columns=["verdict"])["verdict"].to_pylist()
    assert dirty.sent_twice >= verdicts.count("repeated") > 100
    everything = dirty.client.query("event_count", over=dirty.over, every="all")
    assert everything["event_count"].sum() < dirty.played.events


@pytest.mark.parametrize("metric", PLAIN)
@pytest.mark.parametrize("by", [[], ["country_code", "platform"], ["build", "is_paying"], ["category"]], ids="-".join)
def test_plain_metrics(dirty: Dirty, metric: str, by: list[str]) -> None:
    """Metrics, Result shapes 1 to 3."""
    frame = dirty.client.query(metric, by=by, over=dirty.over)
    assert_true(frame, dirty.ledger.metric(metric, interval=dirty.over, by=by), metric, by)


@pytest.mark.parametrize("metric", PER_GAME)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_per_game_metrics(dirty: Dirty, metric: str, dimension: str) -> None:
    """Metrics, Query type exceptions 3."""
    frame = dirty.client.query(metric, by=dimension, over=dirty.over)
    by = [dimension, "game_id"]
    assert_true(frame, dirty.ledger.metric(metric, interval=dirty.over, by=by), metric, by)


@pytest.mark.parametrize("days", [1, 2, 7])
@pytest.mark.parametrize("dimension", ["platform", "country_code", "first_build"])
def test_retention(dirty: Dirty, days: int, dimension: str) -> None:
    """Metrics, Result shapes 5."""
    frame = dirty.client.query("retention_retro", by=dimension, over=dirty.over, since_days_ago=days)
    by = [dimension, "game_id"]
    truth = dirty.ledger.metric("retention_retro", interval=dirty.over, by=by, since_days_ago=days)
    assert_true(frame, truth, "retention_retro", by)


@pytest.mark.parametrize("metric", ["event_count", "user_unique", "new_users", "session_length", "ilrd_revenue"])
def test_wrong_clocks_put_events_in_years_long_gone(dirty: Dirty, metric: str) -> None:
    """Metrics, Words: event time is client_ts when it is usable, however old."""
    frame = dirty.client.query(
        metric, by="platform", over="1960-01-01/2026-01-01", every="all", when_unavailable="clip"
    )
    about = frame.attrs["gamelens"]
    asked = Interval.parse(about["asked"]["interval"]) & Interval.parse(about["available"])
    assert asked.start.year < 2010
    truth = dirty.ledger.metric(metric, interval=asked, granularity="all", by=["platform"])
    assert_true(frame, truth, metric, ["platform"])


def test_what_cannot_be_recognised_is_not_sent_twice(tmp_path: Path) -> None:
    """Metrics, Words: events without event_uuid are never merged, so a lost answer must not repeat them."""
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


def test_nineteen_metrics_were_asked() -> None:
    """The catalogue and this file agree on what there is."""
    assert len({*PLAIN, *PER_GAME, "retention_retro"}) == len(METRICS) == 19


def _told(game_id: str, rejected: RejectedEvent) -> tuple[str, Any, tuple[tuple[str, str], ...]]:
    name = rejected.event.get("event_uuid") if isinstance(rejected.event, dict) else None
    return game_id, name, tuple(sorted((fault.error_type, fault.path) for fault in rejected.errors))
