"""architecture, Decisions: immutable Parquet days and a manifest; readers see one version, never half a write."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conftest import NOW, Stage, event
from gamelens.wire.intervals import Interval
from sandbox.conftest import number

DAY = date(2026, 11, 20)


def files(stage: Stage) -> set[Path]:
    return set(stage.sandbox.lake.root.rglob("*.parquet"))


def twice(stage: Stage) -> tuple[set[Path], set[Path]]:
    """Files of two versions of one day."""
    stage.submit([event()])
    stage.process()
    first = files(stage)
    stage.submit([event()])
    stage.process()
    return first, files(stage) - first


def test_a_version_stays_whole_for_who_reads_it(stage: Stage) -> None:
    """architecture: replaced files are removed after a grace period."""
    stage.submit([event()])
    stage.process()
    old = stage.sandbox.lake.snapshot("acme")
    stage.submit([event(), event()])
    stage.process()
    new = stage.sandbox.lake.snapshot("acme")
    assert [pq.read_metadata(it.days[DAY]).num_rows for it in (old, new)] == [1, 3]


def test_replaced_files_are_kept_for_a_while(stage: Stage) -> None:
    first, second = twice(stage)
    stage.sandbox.lake.sweep(grace_s=60)
    assert files(stage) == first | second


def test_replaced_files_go_after_the_grace_period(stage: Stage) -> None:
    """architecture: replaced files are removed after a grace period."""
    _, second = twice(stage)
    stage.sandbox.lake.sweep(grace_s=0)
    assert files(stage) == second
    assert number(stage) == 2


def test_what_a_crash_left_goes_at_the_next_start(make_stage: Callable[..., Stage]) -> None:
    """architecture: files that no version names."""
    stage = make_stage()
    stage.submit([event()])
    stage.process()
    named = files(stage)
    orphan = stage.sandbox.lake.root / "2" / "org-acme" / "2026-11-20.parquet"
    orphan.parent.mkdir(parents=True)
    shutil.copy(next(iter(named)), orphan)
    stage.sandbox.close()
    again = make_stage()
    assert files(again) == named
    assert number(again) == 1


def test_a_snapshot_opens_only_the_days_a_question_touches(stage: Stage) -> None:
    """architecture: one file a day."""
    stage.submit([event(client_ts=int(NOW.timestamp()) - days * 86_400) for days in range(5)])
    stage.process()
    paths = stage.sandbox.lake.snapshot("acme").files("events", Interval.parse("2026-11-17T12:00/2026-11-19T00:00"))
    assert [path.stem for path in paths] == ["2026-11-17", "2026-11-18"]


def test_versions_are_numbered_from_one(stage: Stage) -> None:
    assert stage.sandbox.lake.last_run().version == 0
    stage.process()
    assert stage.sandbox.lake.last_run().version == 1


@pytest.mark.parametrize("name", ["acme", "rival", "nobody"])
def test_an_empty_lake_is_available_from_its_end_to_its_end(stage: Stage, name: str) -> None:
    """design/metrics, Availability: with no events yet, end/end."""
    end = datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert stage.sandbox.lake.available(name, now=NOW) == Interval(end, end)


def test_a_lake_of_another_format_is_made_anew_from_the_inbox(make_stage: Callable[..., Stage]) -> None:
    """tables.FORMAT: what an older version wrote is never misread."""
    stage = make_stage()
    stage.submit([event(), event(user_id="bob")])
    stage.process()
    old = files(stage)
    state = stage.sandbox.options.state
    stage.sandbox.close()
    with sqlite3.connect(state / "gamelens.db") as store:
        store.execute("PRAGMA user_version = 1")
        store.execute("ALTER TABLE files DROP COLUMN kind")
    store.close()
    again = make_stage()
    assert old
    assert not files(again)
    assert number(again) == 0
    again.process()
    assert number(again) == 2
