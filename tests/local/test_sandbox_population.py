"""A sandbox that holds its players already, whether or not they are processed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
from gamelens.sandbox.storage.inbox import open_store
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


def test_a_population_at_once_has_each_event_of_its_days(tmp_path: Path) -> None:
    """All days but the last are loaded and the last is sent, and they are those of the scenario."""
    scenario, steps = load_scenario("small", players=90, days=20), list[str]()
    service = Service(tmp_path)
    try:
        record = populate_at_once(service.ready, tmp_path / "state", scenario, say=steps.append)
        service.process()
        answer = service.client().query("event_count", over="last 20 complete days")
    finally:
        service.stop()
    assert steps == ["loading", "sending the last day"]
    assert 0 < record.events < record.loaded
    assert record.events + record.loaded == play_unsent(scenario).events == answer.event_count.sum()
    assert answer[answer.timestamp == answer.timestamp.max()].event_count.sum() == record.events


def test_many_players_are_loaded_and_few_are_sent(tmp_path: Path) -> None:
    """Scenario files of 5,000 players and of 50, and the record of what is there."""
    for name, players in (("many", 5_000), ("few", 50)):
        lines = f'extends = "calm"\nname = "{name}"\nplayers = {players}\ndays = 2\ncampaign = []\n'
        (tmp_path / f"{name}.toml").write_text(lines)
    state = tmp_path / "state"
    service = Service(tmp_path)
    try:
        record, was_there = ensure_populated(service.ready, state, str(tmp_path / "many.toml"))
        again = ensure_populated(service.ready, state, str(tmp_path / "many.toml"))
        few, _ = ensure_populated(service.ready, state, str(tmp_path / "few.toml"))
    finally:
        service.stop()
    assert (was_there, again) == (False, (record, True))
    assert record.loaded > 0
    assert (few.loaded, few.events > 0) == (0, True)


def test_a_scenario_that_is_too_long_for_the_sandbox_is_refused(service: Service) -> None:
    """Its first events would be dated by their arrival; the sentence has the number to configure."""
    scenario = load_scenario("small", days=400)
    with pytest.raises(Refused, match=r"begins 400 days ago.*`oldest_days = 402` under \[collector\]"):
        populate(service.ready, scenario)


def test_players_are_there_after_an_upgrade(service: Service, tmp_path: Path) -> None:
    """A lake of an earlier format is made again before the players are asked."""
    state = tmp_path / "state"
    ensure_populated(service.ready, state, "small")
    events = count_events(service)
    service.stop()
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        for table in ("files", "runs"):
            store.execute(f"DROP TABLE {table}")
        store.execute("PRAGMA user_version = 1")
    service.start()
    assert ensure_populated(service.ready, state, "small") == (played(), True)
    assert count_events(service) == events > 0
