"""Compaction: several parts of a table become one with the same rows or sums.

Parts are merged in tiers: eight of one level make one of the next, up to the size at which a part is left alone. So a
table of a sandbox that runs for years keeps few parts, and a row is rewritten about once per level. Each step is a
version of its own, and one that is killed changes nothing.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.processing.pipeline import opened_lake
from gamelens.sandbox.storage.keyed_runs import PREFIX, SETTLED_KEYS, merge_columns
from gamelens.sandbox.storage.lake import Lake, Snapshot
from gamelens.sandbox.storage.lake_schema import ADDED_UP, COLUMNS
from gamelens.sandbox.storage.manifest import LakePart, file_checksum

FAN_IN: Final = 8
"""Parts of one level that are merged at once."""
SETTLED_ROWS: Final = 1_000_000
"""Rows from which a part is left as it is. The result of a step has at most twice as many."""
SETTLED_EVENTS: Final = 600_000
"""Rows from which a part of events is left as it is.

They are wide, and a step is to take less than two seconds.
"""


class Step(msgspec.Struct, frozen=True):
    """Parts of one table that are due to be merged."""

    organisation: str
    kind: str
    parts: tuple[LakePart, ...]


def due_steps(lake: Lake) -> Iterator[Step]:
    """Yield the steps that are due in the newest version, steps of few rows first."""
    steps = [step for name in lake.organisations() for step in due_in(name, lake.snapshot(name))]
    yield from sorted(steps, key=lambda step: sum(part.rows for part in step.parts))


def compact(state: Path) -> int:
    """Take steps until none is due, and return their number.

    Raises:
        Refused: the engine or the disk failed. The lake is as after the last step.
    """
    with opened_lake(state, failed="compaction stopped, nothing was changed") as (lake, scratch):
        steps = 0
        while step := next(due_steps(lake), None):
            take_step(step, lake, scratch)
            steps += 1
        lake.sweep()
        return steps


def take_step(step: Step, lake: Lake, scratch: Path) -> None:
    """Replace the parts of *step* by one.

    Raises:
        Refused: a part is damaged, or the engine failed.
    """
    for part in step.parts:
        if file_checksum(part.path) != part.content:
            raise Refused(f"{part.path} is damaged: it is not merged")
    scratch.mkdir(exist_ok=True)
    sql = DuckDBWriter(scratch)
    try:
        writer = PartWriter(step.organisation, lake, sql, str(lake.next_version()))
        paths, level = [part.path for part in step.parts], max(part.level for part in step.parts) + 1
        if step.kind.startswith(PREFIX):
            kind = step.kind.removeprefix(PREFIX)
            columns = merge_columns(paths)
            writer.add_run(kind, columns.pop("high"), columns.pop("low", None), columns, level=level)
        else:
            sql.view_files("parts", paths, COLUMNS[step.kind])
            writer.add(step.kind, merged_sql(step.kind, "parts", list(COLUMNS[step.kind])), level=level)
        writer.sync()
        lake.compact(writer.files, paths)
    finally:
        sql.close()
        shutil.rmtree(scratch, ignore_errors=True)


def due_in(organisation: str, snapshot: Snapshot) -> Iterator[Step]:
    """Yield the steps that are due in *snapshot*."""
    for kind, parts in snapshot.tables.items():
        levels: dict[int, list[LakePart]] = defaultdict(list)
        for part in parts:
            if part.rows < settled_rows(kind):
                levels[part.level].append(part)
        for of_level in levels.values():
            if len(of_level) >= FAN_IN:
                yield Step(organisation, kind, _oldest(of_level, settled_rows(kind)))


def settled_rows(kind: str) -> int:
    """Return the number of rows from which a part of *kind* is not merged again."""
    if kind.startswith(PREFIX):
        return SETTLED_KEYS
    return SETTLED_EVENTS if kind == "events" else SETTLED_ROWS


def _oldest(parts: Sequence[LakePart], most_rows: int) -> tuple[LakePart, ...]:
    """Return the first parts, as many as make one that is not too large."""
    chosen: list[LakePart] = []
    rows = 0
    for part in parts[:FAN_IN]:
        if rows >= most_rows:
            break
        chosen.append(part)
        rows += part.rows
    return tuple(chosen)


def merged_sql(table: str, rows: str, columns: Sequence[str]) -> str:
    """Return the *columns* of *rows*, summed up where rows of one key of *table* add up."""
    added = [name for name in columns if name in ADDED_UP and table != "events"]
    if not added:
        return f"SELECT {', '.join(columns)} FROM {rows}"  # noqa: S608
    keys = [name for name in columns if name not in added]
    sums = ", ".join(f"sum({name}) AS {name}" for name in added)
    some = " OR ".join(f"coalesce({name}, 0) <> 0" for name in added)
    return f"SELECT * FROM (SELECT {', '.join(keys)}, {sums} FROM {rows} GROUP BY ALL) WHERE {some}"  # noqa: S608
