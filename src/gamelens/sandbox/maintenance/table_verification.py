"""Verification that the lake is what its inbox makes of it: the tables are built again and compared row by row.

Sums of several parts are added up first. Players are compared by their ids, because their numbers follow the order of
the runs.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.building.batch_builder import build_parts
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.maintenance.file_verification import read_only_store
from gamelens.sandbox.processing.compaction import merged_sql
from gamelens.sandbox.processing.staging import stage
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.storage.inbox import InboxBatch, pending
from gamelens.sandbox.storage.lake import Lake, Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS, REPLACED

_FIRST_EVENTS: Final = ("installs", "payments")
_COMPARED: Final = tuple(name for name in COLUMNS if name not in {*REPLACED, "stated_installs", "combinations"})

Tables = dict[str, list[Path]]
"""Files by table."""


class Difference(NamedTuple):
    """Rows of a table that the lake misses or has in surplus.

    Attributes:
        organisation: name of the organisation.
        table: table of the lake.
        where: day or part of the table, for people.
        missing: rows that the inbox implies and the lake lacks.
        surplus: rows that the lake has beyond them.
    """

    organisation: str
    table: str
    where: str
    missing: int
    surplus: int

    def __str__(self) -> str:
        return f"{self.organisation}: {self.table} {self.where}: {self.missing} rows missing, {self.surplus} too many"


class VerificationResult(msgspec.Struct, frozen=True):
    """The extent of a verification and the differences it found.

    Attributes:
        events: number of events that the inbox makes, without repeated ones.
        players: number of their players.
        differences: the differences, empty if lake and inbox agree.
    """

    events: int
    players: int
    differences: list[Difference]


def verify(state: Path) -> VerificationResult:
    """Build the tables of *state* again from its inbox, in a temporary folder, and compare them with the lake.

    A sandbox may be running on it. Nothing of the state directory is changed.

    Raises:
        Refused: there is no sandbox, its lake was filled without an inbox, or a batch or file cannot be read.
    """
    check_state(state)
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(read_only_store(state))
            lake = Lake(state / "lake", store)
            is_written = lake.last_run().is_written
            received = {name for (name,) in store.execute("SELECT DISTINCT organisation FROM batches")}
            versions = {
                name: (lake.status(name).last_batch, lake.snapshot(name))
                for name in sorted(received.union(lake.organisations()))
            }
        except (OSError, sqlite3.Error) as error:
            raise Refused(f"cannot be verified: {error}") from error
        if is_written:
            raise Refused(f"the lake of {state} was written, not received: it has no raw events to be compared with")
        events = players = 0
        differences: list[Difference] = []
        for name, (last_batch, snapshot) in versions.items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            sql = stack.enter_context(contextlib.closing(DuckDBWriter(folder)))
            try:
                built = _built(name, store, last_batch, folder)
                differences += _differences(name, built, snapshot, sql)
                ((own_events, own_players),) = sql.run(
                    "SELECT (SELECT count(*) FROM built_events), (SELECT count(*) FROM built_installs)"
                )
            except (OSError, sqlite3.Error, Refused) as error:
                raise Refused(f"cannot be verified: {error}") from error
            events, players = events + own_events, players + own_players
        return VerificationResult(events, players, differences)


def _built(organisation: str, store: sqlite3.Connection, last_batch: int, folder: Path) -> Tables:
    """Make the tables of an organisation in *folder*, of its batches up to the one with id *last_batch*."""
    is_damaged = False

    def batches() -> Iterator[InboxBatch]:
        nonlocal is_damaged
        try:
            yield from pending(store, after=0, up_to=last_batch, organisation=organisation)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
                raise
            is_damaged = True  # reading would note it

    staged = stage(batches(), folder)
    if is_damaged:
        raise Refused("a batch of the inbox is damaged")
    tables: Tables = {}
    if organisation in staged:
        anew = Lake(folder / "lake", store)
        parts = build_parts(organisation, staged[organisation], anew, folder, folder="1", is_anew=True)
        for file in parts.files:
            tables.setdefault(file.kind, []).append(file.path)
    return tables


def _differences(organisation: str, built: Tables, snapshot: Snapshot, sql: DuckDBWriter) -> Iterator[Difference]:
    """Yield the differences of the tables *built* from those of the lake."""
    for table, columns in COLUMNS.items():
        sql.view_files(f"built_{table}", built.get(table, ()), columns)
        sql.view_files(f"found_{table}", snapshot.files(table), columns)
    for table in (f"{side}_{name}" for side in ("built", "found") for name in _FIRST_EVENTS):
        kept = f"SELECT * FROM {table} ANTI JOIN {table}_moved USING (player)"  # noqa: S608
        sql.create_view(f"{table}_now", f"{kept} UNION ALL SELECT * FROM {table}_moved")  # noqa: S608
    for table in _COMPARED:
        expected, found = _rows_sql("built", table), _rows_sql("found", table)
        day = "day" if "day" in COLUMNS[table] else "NULL"
        rows = sql.run(f"""
            SELECT day, sum(missing), sum(surplus) FROM (
                SELECT {day} AS day, 1 AS missing, 0 AS surplus FROM ({expected} EXCEPT ALL {found})
                UNION ALL SELECT {day}, 0, 1 FROM ({found} EXCEPT ALL {expected})
            ) GROUP BY day ORDER BY day""")  # noqa: S608
        for of_day, missing, surplus in rows:
            yield Difference(organisation, table, "all" if of_day is None else f"of {of_day}", missing, surplus)
    ((wrong,),) = sql.run(
        "SELECT count(*) - count(DISTINCT player) FILTER (player BETWEEN 1 AND (SELECT count(*) FROM found_installs)) "
        "FROM found_installs_now"
    )
    if wrong:
        yield Difference(organisation, "installs", "by number", wrong, wrong)


def _rows_sql(side: str, table: str) -> str:
    """Return the rows of a table as they are compared: without numbers of players, those of equal keys added up."""
    if table in _FIRST_EVENTS:
        return f"SELECT * EXCLUDE (player) FROM {side}_{table}_now"  # noqa: S608
    columns = list(COLUMNS[table])
    rows = f"{side}_{table}"
    if "player" in columns:
        rows = f"(SELECT part.*, user_id FROM {rows} AS part LEFT JOIN {side}_installs_now USING (player))"  # noqa: S608
        columns[columns.index("player")] = "user_id"
    return merged_sql(table, rows, columns)
