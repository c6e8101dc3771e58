"""A sandbox that holds its players already, whether or not they are processed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from gamelens.errors import Refused
from gamelens.local.sandbox_population import (
    PopulationRecord,
    ensure_populated,
    play_unsent,
    populate,
    populate_at_once,
    population_id,
    today,
)
from gamelens.sandbox.processing.compaction import due_steps
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.simulator import load_scenario
from support.killable_sandbox import Service

pytestmark = pytest.mark.slow


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a sandbox that is recorded to hold today's players of the scenario `small`."""
    service = Service(tmp_path)
    service.submit(days=5)
    (tmp_path / "state" / "played.json").write_bytes(msgspec.json.encode(played()))
    yield service
    service.stop()


def played() -> PopulationRecord:
    """Return the record of the players."""
    return population_id(load_scenario("small"), today())


def lose_tables(state: Path) -> None:
    """Make the lake one of an earlier format, which cannot be read."""
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        for table in ("files", "runs"):
            store.execute(f"DROP TABLE {table}")
        store.execute("PRAGMA user_version = 1")


def count_events(service: Service) -> int:
    """Return the number of events of the last days."""
    return int(service.client().query("event_count", over="last 3 complete days", every="all").event_count.sum())


def test_players_that_wait_are_processed_and_not_played_again(service: Service, tmp_path: Path) -> None:
    """Players whose events were submitted and never processed can be asked at once, and the next time as well."""
    steps: list[str] = []
    for _ in range(2):
        assert ensure_populated(service.ready, tmp_path / "state", "small", say=steps.append) == (played(), True)
        assert count_events(service) > 0
    assert steps == ["processing"]


@pytest.mark.wide
def test_of_many_players_all_days_but_the_last_are_loaded(tmp_path: Path) -> None:
    """The last is sent, each event of the scenario is there once, and the record says what was done."""
    file, state, steps = tmp_path / "many.toml", tmp_path / "state", list[str]()
    file.write_text('extends = "calm"\nname = "many"\nplayers = 5_000\ndays = 2\ncampaign = []\n')
    service = Service(tmp_path)
    try:
        with ThreadPoolExecutor(2) as two:  # as two notebooks that are opened in the morning
            played = [two.submit(ensure_populated, service.ready, state, str(file), say=steps.append) for _ in range(2)]
        (record, was_there), again = sorted((one.result() for one in played), key=lambda result: result[1])
        answer = service.client().query("event_count", over="last 2 complete days")
        service.stop()
        lose_tables(state)
        service.start()
        replayed, was_left = ensure_populated(service.ready, state, str(file))
        assert service.client().query("event_count", over="last 2 complete days").equals(answer)
    finally:
        service.stop()
    assert (replayed.events, replayed.loaded, was_left) == (record.events, record.loaded, False)
    assert steps == [f"playing the scenario {file}", "loading", "sending the last day", "processing"]
    assert (was_there, again) == (False, (record, True))
    assert record.events + record.loaded == play_unsent(load_scenario(file)).events == answer.event_count.sum()
    days = answer.groupby("timestamp").event_count.sum().tolist()
    assert days == [record.loaded, record.events]
    assert min(days) > 0


@pytest.mark.wide
def test_what_is_loaded_needs_no_compaction(tmp_path: Path) -> None:
    """Days share files, or notebooks would wait for a sandbox that is rewriting them."""
    service, state = Service(tmp_path), tmp_path / "state"
    try:
        record = populate_at_once(service.ready, state, load_scenario("calm", players=60, days=20))
    finally:
        service.stop()
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        lake = Lake(state / "lake", store)
        (organisation,) = lake.organisations()
        assert [part.rows for part in lake.snapshot(organisation).parts("events")] == [record.loaded]
        assert not list(due_steps(lake))


@pytest.mark.wide
def test_a_sandbox_of_an_earlier_version_is_to_be_stopped(service: Service, tmp_path: Path) -> None:
    """It has no such address; the sentence has the command."""
    ready = msgspec.structs.replace(service.ready, console_url=f"{service.ready.console_url}/earlier")
    with pytest.raises(Refused, match=f"an earlier gamelens.*`gamelens sandbox stop --state {tmp_path}/state`"):
        populate_at_once(ready, tmp_path / "state", load_scenario("calm", players=20, days=2))


def test_a_scenario_that_is_too_long_for_the_sandbox_is_refused(service: Service) -> None:
    """Its first events would be dated by their arrival; the sentence has the number to configure."""
    scenario = load_scenario("small", days=400)
    with pytest.raises(Refused, match=r"begins 400 days ago.*`oldest_days = 402` under \[collector\]"):
        populate(service.ready, scenario)


@pytest.mark.wide
def test_players_are_there_after_an_upgrade(service: Service, tmp_path: Path) -> None:
    """A lake of an earlier format is made again before the players are asked."""
    state = tmp_path / "state"
    ensure_populated(service.ready, state, "small")
    events = count_events(service)
    service.stop()
    lose_tables(state)
    service.start()
    assert ensure_populated(service.ready, state, "small") == (played(), True)
    assert count_events(service) == events > 0
