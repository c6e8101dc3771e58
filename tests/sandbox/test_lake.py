"""The lake: immutable Parquet files and versions that are committed as a whole."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gamelens.wire.intervals import Interval
from support.game_events import NOW, event
from support.sandbox_stage import Stage, metric_value

DAY = date(2026, 11, 20)


def files(stage: Stage) -> set[Path]:
    """Return all Parquet files of the lake."""
    return set(stage.sandbox.lake.root.rglob("*.parquet"))


def build_day_twice(stage: Stage) -> tuple[set[Path], set[Path]]:
    """Submit and process twice on one day, and return the files of both versions."""
    stage.submit([event()])
    stage.process()
    first = files(stage)
    stage.submit([event()])
    stage.process()
    return first, files(stage) - first


def test_a_snapshot_keeps_its_version(stage: Stage) -> None:
    """A snapshot taken before a run reads the files of its own version."""
    stage.submit([event()])
    stage.process()
    old_snapshot = stage.sandbox.lake.snapshot("acme")
    stage.submit([event(), event()])
    stage.process()
    new_snapshot = stage.sandbox.lake.snapshot("acme")
    assert [pq.read_metadata(snapshot.days[DAY]).num_rows for snapshot in (old_snapshot, new_snapshot)] == [1, 3]


def test_replaced_files_are_kept_for_a_while(stage: Stage) -> None:
    """Replaced files stay during the grace period, for readers of old snapshots."""
    first, second = build_day_twice(stage)
    stage.sandbox.lake.sweep(grace_s=60)
    assert files(stage) == first | second


def test_replaced_files_are_removed_after_the_grace_period(stage: Stage) -> None:
    """Replaced files are removed after the grace period, and answers do not change."""
    _, second = build_day_twice(stage)
    stage.sandbox.lake.sweep(grace_s=0)
    assert files(stage) == second
    assert metric_value(stage) == 2


def test_orphaned_files_are_removed_at_the_next_start(make_stage: Callable[..., Stage]) -> None:
    """Files that no version names, as a crash leaves them, are removed at the start."""
    stage = make_stage()
    stage.submit([event()])
    stage.process()
    named = files(stage)
    orphan = stage.sandbox.lake.root / "2" / "org-acme" / "2026-11-20.parquet"
    orphan.parent.mkdir(parents=True)
    shutil.copy(next(iter(named)), orphan)
    stage.sandbox.close()
    restarted = make_stage()
    assert files(restarted) == named
    assert metric_value(restarted) == 1


def test_a_snapshot_lists_only_the_days_of_an_interval(stage: Stage) -> None:
    """A query opens the files of the days it touches, one file per day."""
    stage.submit([event(client_ts=int(NOW.timestamp()) - days * 86_400) for days in range(5)])
    stage.process()
    paths = stage.sandbox.lake.snapshot("acme").files("events", Interval.parse("2026-11-17T12:00/2026-11-19T00:00"))
    assert [path.stem for path in paths] == ["2026-11-17", "2026-11-18"]


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


def test_a_lake_of_another_format_is_rebuilt_from_the_inbox(make_stage: Callable[..., Stage]) -> None:
    """A lake that an older release wrote is emptied, and the next run rebuilds it."""
    stage = make_stage()
    stage.submit([event(), event(user_id="bob")])
    stage.process()
    old_snapshot = files(stage)
    state = stage.sandbox.options.state
    stage.sandbox.close()
    with sqlite3.connect(state / "gamelens.db") as store:
        store.execute("PRAGMA user_version = 1")
        store.execute("ALTER TABLE files DROP COLUMN kind")
    store.close()
    restarted = make_stage()
    assert old_snapshot
    assert not files(restarted)
    assert metric_value(restarted) == 0
    restarted.process()
    assert metric_value(restarted) == 2
