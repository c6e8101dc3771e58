"""The lake's manifest, whose rows have a checksum each."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake, Snapshot
from gamelens.sandbox.storage.manifest import CheckedTable, LakeUnavailable, ProcessingRun
from gamelens.sandbox.storage.store_check import check_store
from support.app_requests import call
from support.game_events import event
from support.sandbox_stage import Stage, event_counts, metric_value


class Thing(msgspec.Struct):
    """A row of a table."""

    number: int
    name: str
    size: int | None


TABLE = CheckedTable("things", Thing)
ROWS = [Thing(1, "one", 10), Thing(2, "two", None), Thing(7, "seven", 70)]
DAMAGE = {
    "UPDATE things SET name = 'other' WHERE number = 2": {2},
    "UPDATE things SET name = x'ff00' WHERE number = 2": {2},
    "UPDATE things SET size = 11 WHERE number = 1": {1},
    "UPDATE things SET number = 9 WHERE number = 7": {7},
    "UPDATE things SET checksum = checksum + 1 WHERE number = 7": {7},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_is_in_no_answer(damage: str) -> None:
    """A row that is not as it was written is left out and counted, and the others are read."""
    store = sqlite3.connect(":memory:", isolation_level=None)
    TABLE.create(store)
    TABLE.write(store, ROWS)
    assert (TABLE.read(store), TABLE.damaged_rows(store)) == (ROWS, 0)
    store.execute(damage)
    sound = [row for row in ROWS if row.number not in DAMAGE[damage]]
    assert (TABLE.read(store), TABLE.damaged_rows(store)) == (sound, 1)


def read_lake(state: Path) -> tuple[ProcessingRun, Snapshot, str | None]:
    """Start over the store of *state* as the sandbox does, and return what its manifest says."""
    check_store(state / "gamelens.db")
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        lake = Lake(state / "lake", store)
        lake.recover()
        return lake.last_run(), lake.snapshot("acme"), lake.lost_because


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory with a lake of two runs, to be copied."""
    stage = Stage(tmp_path_factory.mktemp("two-runs") / "state")
    for number in range(2):
        stage.submit([event(event_uuid="e"), event(user_id=f"u{number}")])
        stage.process()
    stage.sandbox.close()
    return stage.sandbox.options.state


@pytest.fixture
def closed(template: Path, tmp_path: Path) -> Path:
    """Return the state directory of `make_stage` with a lake of two runs, which nobody uses."""
    return Path(shutil.copytree(template, tmp_path / "state"))


@pytest.mark.wide
def test_no_flipped_bit_of_a_manifest_row_changes_the_lake(closed: Path) -> None:
    """Bits of the database near the rows of files are flipped: each start finds the same files, or that they are lost.

    Nothing of the lake is moved or deleted in the second case.
    """
    expected = read_lake(closed)
    store, random = closed / "gamelens.db", Random(5)
    whole, files = store.read_bytes(), sorted((closed / "lake").rglob("*.*"))
    places = [place for place in range(len(whole)) if whole.startswith(b"/org-acme/", place)]
    assert len(places) >= 20
    lost = 0
    for _ in range(60):
        place = random.choice(places) + random.randrange(-12, 60)
        damaged = bytearray(whole)
        damaged[place] ^= 1 << random.randrange(8)
        store.write_bytes(damaged)
        try:
            assert read_lake(closed) == expected
        except (LakeUnavailable, Refused):
            lost += 1
        assert sorted((closed / "lake").rglob("*.*")) == files
        shutil.rmtree(closed / "quarantine", ignore_errors=True)
    assert lost


def test_another_number_of_the_layout_changes_nothing(closed: Path) -> None:
    """SQLite's own number of a version is not what tells the layout."""
    expected = read_lake(closed)
    with contextlib.closing(sqlite3.connect(closed / "gamelens.db", isolation_level=None)) as store:
        store.execute("PRAGMA user_version = 99")
    assert read_lake(closed) == expected


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE {} SET rows = 9 WHERE kind = 'slim'",
        "DELETE FROM {}",
        "DROP TABLE {}",
        "ALTER TABLE {} RENAME COLUMN checksum TO checksun",
    ],
)
@pytest.mark.parametrize("table", ["files", "runs"])
def test_a_damaged_manifest_answers_nothing_until_it_is_made_again(
    make_stage: Callable[..., Stage], closed: Path, table: str, damage: str
) -> None:
    """A lake whose manifest is lost answers 503 with the reason, and is made again from the inbox."""
    if table == "runs":
        damage = damage.replace("rows = 9 WHERE kind = 'slim'", "last_batch = 1")
    with contextlib.closing(sqlite3.connect(closed / "gamelens.db", isolation_level=None)) as store:
        store.execute(damage.format(table))
    stage = make_stage()
    query: dict[str, Any] = {"interval": "2026-11-01/2026-12-01", "granularity": "day", "query": {"type": "timeseries"}}
    for answer in (stage.ask("event_count", **query), stage.get("interval")):
        assert answer.status_code == 503
        assert answer.json()["message"].endswith("its tables will be rebuilt. Ask again later")
    health = call(control_app(stage.sandbox, token="token"), "GET", "/token/health")
    assert health.json()["status"] == "damaged"
    asyncio.run(stage.sandbox.runs.check())
    assert metric_value(stage) == 3
    assert event_counts(stage) == {"accepted": 4, "rejected": 0, "pending": 0, "processed": 3, "duplicate": 1}
    if damage.startswith("DROP"):  # whatever made it do so, it knows the events that it made again
        stage.submit([event(event_uuid="e"), event()])
        stage.process()
        assert metric_value(stage) == 4


def test_the_manifest_keeps_only_the_newest_runs(stage: Stage) -> None:
    """A sandbox that runs for years has thousands of versions: those before the last ones are not kept."""
    for _ in range(12):
        stage.process()
    ((kept,),) = stage.sandbox.store.execute("SELECT count(*) FROM runs")
    assert (stage.sandbox.lake.last_run().version, kept) == (12, 8)
