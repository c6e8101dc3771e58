"""Compaction: fewer parts with the same answers, and what happens while runs go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from gamelens.sandbox.maintenance.verification import verify
from gamelens.sandbox.processing import scheduler
from gamelens.sandbox.processing.compaction import FAN_IN, compact, due_in, due_steps, settled_rows
from gamelens.sandbox.processing.worker import CompactionOrder, carry_out_in_worker
from gamelens.sandbox.state.state_directory import lock_state_directory
from gamelens.sandbox.storage.keyed_runs import PAYLOADS, PREFIX
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS, REPLACED
from gamelens.sandbox.storage.manifest import LakePart
from support.game_events import event
from support.sandbox_stage import Stage, metric_value

HOURS_A_YEAR: Final = 24 * 365
KINDS: Final = (  # of runs: only imports add stated installs
    *(name for name in COLUMNS if name not in {*REPLACED, "stated_installs"}),
    *(PREFIX + kind for kind in PAYLOADS),
)
ROWS_A_RUN: Final = {"events": 10_000, "active": 3000, "cube": 1000, "installs": 500} | {
    f"{PREFIX}{kind}": rows for kind, rows in {"names": 10_000, "player_days": 3000, "sessions": 1500}.items()
}
"""Rows that an hour adds to the larger kinds. Rows of cells do not add up, which leaves fewer than is simulated."""


def test_fewer_parts_give_the_same_answers(uncompacted: Stage) -> None:
    """After compaction each table has one part, and answers and verification are as before."""
    stage = uncompacted
    before = [metric_value(stage, name) for name in ("event_count", "user_unique", "session_unique")]
    state = stage.sandbox.options.state
    assert compact(state) > 0
    assert next(due_steps(stage.sandbox.lake), None) is None
    parts = stage.sandbox.lake.snapshot("acme").tables
    assert {len(parts[name]) for name in ("events", "slim", "active", f"{PREFIX}players")} == {1}
    assert [metric_value(stage, name) for name in ("event_count", "user_unique", "session_unique")] == before
    assert verify(state).differences == []


@pytest.mark.wide
def test_a_worker_compacts(uncompacted: Stage, make_stage: Callable[..., Stage]) -> None:
    """A worker process takes all steps that are due."""
    state = uncompacted.sandbox.options.state
    uncompacted.sandbox.close()
    with lock_state_directory(state) as lock:
        asyncio.run(carry_out_in_worker(state, CompactionOrder(), lock=lock))
    again = make_stage()
    assert next(due_steps(again.sandbox.lake), None) is None
    assert metric_value(again) == 2 * FAN_IN


def test_a_run_does_not_wait_for_a_compaction(uncompacted: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processing ends a compaction that is under way."""
    stage = uncompacted
    stage.submit([event()])
    began, ended = asyncio.Event(), asyncio.Event()

    async def endless(*_: Any, **__: Any) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(scheduler, "carry_out_in_worker", endless)

    async def play() -> None:
        runs = stage.sandbox.runs
        background = asyncio.create_task(runs.compact_after_runs())
        await runs.process()
        await asyncio.wait_for(began.wait(), 10)
        await asyncio.wait_for(runs.process(), 10)
        assert ended.is_set()
        background.cancel()
        await runs.stop_compaction()

    asyncio.run(play())
    assert metric_value(stage) == 2 * FAN_IN + 1


@pytest.mark.wide
def test_a_year_of_hourly_runs_leaves_few_parts() -> None:
    """A year of 10,000 events an hour never makes more than 800 files, nor 32 unsettled parts of a table.

    Compaction is simulated every `FAN_IN` hours, which leaves no fewer files than after each run.
    """
    parts: dict[str, list[LakePart]] = {kind: [] for kind in KINDS}
    nothing: dict[str, Any] = {"organisation": "acme", "first_day": None, "last_day": None, "bytes": 0, "content": 0}
    most_files = most_unsettled = 0
    for hour in range(HOURS_A_YEAR):
        for kind, own in parts.items():
            rows = ROWS_A_RUN.get(kind, 300)
            own.append(LakePart(path=Path(f"{kind}-{hour}"), kind=kind, rows=rows, level=0, **nothing))
        if hour % FAN_IN:
            continue
        unsettled = (sum(part.rows < settled_rows(kind) for part in own) for kind, own in parts.items())
        most_unsettled = max(most_unsettled, *unsettled)
        most_files = max(most_files, sum(map(len, parts.values())))
        while steps := list(due_in("acme", Snapshot(parts))):
            for step in steps:
                level = max(part.level for part in step.parts) + 1
                rows = sum(part.rows for part in step.parts)
                merged = LakePart(path=step.parts[0].path, kind=step.kind, rows=rows, level=level, **nothing)
                replaced = set(map(id, step.parts))
                parts[step.kind] = [merged, *(part for part in parts[step.kind] if id(part) not in replaced)]
    assert most_unsettled <= 32
    assert most_files <= 800
