"""The lake: immutable Parquet files and versions that are committed as a whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.processing.compaction import FAN_IN, due_steps, take_step
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.storage.lake import folder_of
from gamelens.wire.intervals import Interval
from support.game_events import NOW, event
from support.sandbox_stage import CONFIG, Stage, metric_value


def files(stage: Stage) -> set[Path]:
    """Return all files of the lake."""
    return {path for path in stage.sandbox.lake.root.rglob("*") if path.is_file()}


def compact_once(stage: Stage) -> tuple[set[Path], set[Path]]:
    """Take a step of compaction, and return the files before and the new ones."""
    before = files(stage)
    take_step(next(due_steps(stage.sandbox.lake)), stage.sandbox.lake, stage.sandbox.options.state / "scratch")
    return before, files(stage) - before


NAMES = ("𠀀" * 24, "游" * 100, "../..", "a/b")
ORGANISATION = """
[[organisation]]
name = "{name}"
api_key = "key-of-{number}"
  [[organisation.studio]]
    [[organisation.studio.game]]
    id = "{number}"
"""


@pytest.mark.wide
def test_no_name_of_an_organisation_stops_the_processing(make_stage: Callable[..., Stage]) -> None:
    """Whatever an organisation is called, its events and those of the others are processed.

    Its files lie in one folder, whose name is short enough for every file system. Wire 5.4, Sandbox configuration.
    """
    numbers = {name: str(7000 + place) for place, name in enumerate(NAMES)}
    hostile = "".join(ORGANISATION.format(name=name, number=number) for name, number in numbers.items())
    stage = make_stage(tenants=CONFIG + hostile)
    for game_id in ("1001", *numbers.values()):
        assert stage.submit([event()], game_id=game_id).status_code == 200
    assert set(stage.process()) == {"acme", "rival", *NAMES}
    assert metric_value(stage) == 1
    assert {name: metric_value(stage, api_key=f"key-of-{number}") for name, number in numbers.items()} == dict.fromkeys(
        NAMES, 1
    )
    folders = {path.parent for path in files(stage)}
    assert {folder.parent.parent for folder in folders} == {stage.sandbox.lake.root}
    assert len(folders) == 1 + len(NAMES)
    assert max(len(folder.name.encode()) for folder in folders) <= 143


def test_a_name_stored_by_an_earlier_start_is_processed(make_stage: Callable[..., Stage]) -> None:
    """A state directory whose stored name is longer than a file may have is processed all the same."""
    stage = make_stage()
    stage.sandbox.close()
    stored = stage.sandbox.options.state / "tenants.json"
    content = json.loads(stored.read_text())["content"]
    stored.write_text(json.dumps(content).replace('"acme"', f'"{"游" * 300}"'))
    stage.sandbox = Sandbox(SandboxOptions(state=stage.sandbox.options.state), clock=stage.clock)
    stage.submit([event()])
    assert set(stage.process()) == {"游" * 300, "rival"}
    assert len(files(stage)) > 0


def test_long_names_have_folders_of_their_own() -> None:
    """Two names that begin alike have two folders, and a short one is readable in its folder's."""
    for name in ("x" * 100, "游" * 24, "游" * 100, "..", "/", "%"):
        assert len(Path(folder_of(name)).parts) == 1
        assert len(folder_of(name).encode()) <= 143
        assert folder_of(name).startswith("org-")
    assert folder_of("游" * 50 + "a") != folder_of("游" * 50 + "b")
    assert folder_of("Tile & Co") == "org-Tile%20%26%20Co"


@pytest.mark.wide
def test_a_snapshot_keeps_its_version(stage: Stage) -> None:
    """A snapshot taken before a run reads the files of its own version."""
    stage.submit([event()])
    stage.process()
    old_snapshot = stage.sandbox.lake.snapshot("acme")
    stage.submit([event(), event()])
    stage.process()
    new_snapshot = stage.sandbox.lake.snapshot("acme")
    assert [snapshot.rows("events") for snapshot in (old_snapshot, new_snapshot)] == [1, 3]


def test_a_run_adds_parts_and_changes_none(stage: Stage) -> None:
    """Files of the first run are as they were after a second one that touches the same day, in every table."""
    stage.submit([event()])
    stage.process()
    before = {path: path.read_bytes() for path in files(stage)}
    stage.submit([event(), event(user_id="bob")])
    stage.process()
    assert {path: path.read_bytes() for path in before} == before
    assert len(stage.sandbox.lake.snapshot("acme").parts("events")) == 2


def test_replaced_files_are_kept_for_a_while(uncompacted: Stage) -> None:
    """Replaced files stay during the grace period, for readers of old snapshots."""
    before, new = compact_once(uncompacted)
    uncompacted.sandbox.lake.sweep(grace_s=60)
    assert files(uncompacted) == before | new


def test_replaced_files_are_removed_after_the_grace_period(uncompacted: Stage) -> None:
    """Replaced files are removed after the grace period, and answers do not change."""
    before, new = compact_once(uncompacted)
    uncompacted.sandbox.lake.sweep(grace_s=0)
    assert len(new) == 1
    assert files(uncompacted) & new == new
    assert len(before - files(uncompacted)) == FAN_IN
    assert metric_value(uncompacted) == 2 * FAN_IN


@pytest.mark.wide
def test_no_empty_folder_is_left(uncompacted: Stage) -> None:
    """The folder of a version goes with its last file: a sandbox that runs for a year has thousands of versions."""
    lake = uncompacted.sandbox.lake
    while (step := next(due_steps(lake), None)) is not None:
        take_step(step, lake, uncompacted.sandbox.options.state / "scratch")
    lake.sweep(grace_s=0)
    folders = {path for path in lake.root.rglob("*") if path.is_dir()}
    assert folders == {folder for path in files(uncompacted) for folder in path.parents[:2]}


def test_files_that_a_crash_left_go_to_quarantine_at_the_next_start(make_stage: Callable[..., Stage]) -> None:
    """Files that no version names are moved to quarantine under their own names at the start."""
    stage = make_stage()
    stage.submit([event()])
    stage.process()
    named = files(stage)
    orphan = stage.sandbox.lake.root / "2" / "org-acme" / "events-1.parquet"
    orphan.parent.mkdir(parents=True)
    shutil.copy(next(iter(named)), orphan)
    stage.sandbox.close()
    restarted = make_stage()
    assert files(restarted) == named
    assert (stage.sandbox.options.state / "quarantine/lake-1/2/org-acme/events-1.parquet").exists()
    assert metric_value(restarted) == 1


def test_a_snapshot_lists_only_the_parts_of_an_interval(stage: Stage) -> None:
    """A query opens the parts that may have rows of its days."""
    for days in range(1, 5):
        stage.submit([event(client_ts=int(NOW.timestamp()) - days * 86_400)])
        stage.process()
    snapshot = stage.sandbox.lake.snapshot("acme")
    wanted = snapshot.files("events", Interval.parse("2026-11-17T12:00/2026-11-19T00:00"))
    days_of = {part.path: part.first_day for part in snapshot.parts("events")}
    assert sorted(str(days_of[path]) for path in wanted) == ["2026-11-17", "2026-11-18"]


def test_versions_are_numbered_from_one(stage: Stage) -> None:
    """The lake has version 0 before the first run, and every run adds one."""
    assert stage.sandbox.lake.last_run().version == 0
    stage.process()
    assert stage.sandbox.lake.last_run().version == 1


@pytest.mark.parametrize("name", ["acme", "rival", "nobody"])
def test_an_empty_lake_has_an_empty_available_interval(stage: Stage, name: str) -> None:
    """Without events the interval starts and ends at the last full hour.

    Wire 2.4, Available interval.
    """
    end = datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert stage.sandbox.lake.available(name, now=NOW) == Interval(end, end)
