"""Verification of a lake: its files against the manifest, and its tables against the inbox.

A sandbox may be running on the state directory. Nothing in it is changed. To compare the tables, they are built
again from the inbox in a temporary folder. Sums of several parts are added up first, and players are compared by their
ids, because their numbers follow the order of the runs.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from filelock import lock_descriptor

from gamelens.errors import Refused
from gamelens.sandbox.building.batch_builder import build_parts
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.processing.compaction import merged_sql
from gamelens.sandbox.processing.staging import stage
from gamelens.sandbox.state.state_directory import check_state, link_or_copy
from gamelens.sandbox.state.tenants import stored_rules
from gamelens.sandbox.storage.inbox import InboxBatch, lost_events, stored
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth
from gamelens.sandbox.storage.lake_schema import COLUMNS, REPLACED

_FIRST_EVENTS: Final = ("installs", "payments")
_COMPARED: Final = tuple(name for name in COLUMNS if name not in {*REPLACED, "stated_installs", "combinations"})


class Difference(NamedTuple):
    """Rows of a table that the lake lacks (*missing*) or has beyond those that the inbox implies (*surplus*).

    *where* is the day or part of the table, for people.
    """

    organisation: str
    table: str
    where: str
    missing: int
    surplus: int

    def __str__(self) -> str:
        return f"{self.organisation}: {self.table} {self.where}: {self.missing} rows missing, {self.surplus} too many"


class VerificationResult(msgspec.Struct, frozen=True):
    """The events and players that the inbox makes, and the differences, none if lake and inbox agree."""

    events: int
    players: int
    differences: list[Difference]


def verify_files(state: Path) -> tuple[int, list[str]]:
    """Compare size and checksum of each file of the lake with the manifest, and the manifest with what was committed.

    Returns the number of files, and a sentence for each kind of damage.

    Raises:
        Refused: *state* has no sandbox, or its store cannot be read.
    """
    check_state(state)
    try:
        with _read_only_store(state) as store:
            ((check,),) = store.execute("PRAGMA quick_check(1)")
            found = [] if check == "ok" else [f"gamelens.db is damaged: {' '.join(str(check).split())}"]
            lake = Lake(state / "lake", store)
            found += lake.damage()
            health, files = LakeHealth(lake), 0
            for name in lake.organisations():
                snapshot = lake.snapshot(name)
                health.check_all(snapshot, pause=0.0)
                files += sum(map(len, snapshot.tables.values()))
            found += [f"{name}: {damage}" for name, damage in health.damage().items()]
            with contextlib.suppress(sqlite3.OperationalError):  # without an inbox, which the sentences above say
                found += filter(None, [lost_events(store)])
            return files, found
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"{state} cannot be verified: {error}. Nothing was changed") from error


def verify(state: Path) -> VerificationResult:
    """Build the tables of *state* again from its inbox, in a temporary folder, and compare them with the lake.

    Raises:
        Refused: *state* has no sandbox, its lake was filled without an inbox, or a batch or file cannot be read.
    """
    check_state(state)
    oldest_days = stored_rules(state).oldest_days
    try:
        with _read_only_store(state) as store:
            lake = Lake(state / "lake", store)
            is_written = lake.last_run().is_written
            received = {name for (name,) in store.execute("SELECT DISTINCT organisation FROM batches")}
            versions = {  # all of them at once: a sandbox that is running adds others
                name: (lake.status(name).last_batch, lake.snapshot(name))
                for name in sorted(received.union(lake.organisations()))
            }
            if is_written:
                reason = "was written directly: there are no raw events to compare it with"
                raise Refused(f"the lake of {state} {reason}")
            events = players = 0
            differences: list[Difference] = []
            for name, (last_batch, snapshot) in versions.items():
                with tempfile.TemporaryDirectory() as folder, contextlib.closing(DuckDBWriter(Path(folder))) as sql:
                    try:
                        _view_built(
                            name,
                            store,
                            last_batch,
                            Path(folder),
                            sql,
                            oldest_days=oldest_days,
                            counts_repeats=lake.counts_repeats,
                        )
                        for table, columns in COLUMNS.items():
                            sql.view_files(f"found_{table}", snapshot.files(table), columns)
                        differences += _differences(name, sql)
                        ((own_events, own_players),) = sql.run(
                            "SELECT (SELECT count(*) FROM built_events), (SELECT count(*) FROM built_installs)"
                        )
                    except Refused as error:
                        raise Refused(f"cannot be verified: {error}") from error
                events, players = events + own_events, players + own_players
            return VerificationResult(events, players, differences)
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"cannot be verified: {error}") from error


def _view_built(
    name: str,
    store: sqlite3.Connection,
    last_batch: int,
    folder: Path,
    sql: DuckDBWriter,
    *,
    oldest_days: int,
    counts_repeats: bool,
) -> None:
    """Build the tables of the organisation *name* in *folder*, of its batches up to *last_batch*, for *sql* to read."""
    damaged = []

    def sound_batches() -> Iterator[InboxBatch]:
        for batch in stored(store, after=0, up_to=last_batch, organisation=name):
            if batch.is_sound:
                yield batch
            else:
                damaged.append(batch.id)

    staged = stage(sound_batches(), folder, oldest_days=oldest_days)
    if damaged:
        raise Refused("a batch of the inbox is damaged")
    tables: dict[str, list[Path]] = {}
    if name in staged:
        anew = Lake(folder / "lake", store)
        anew.counts_repeats = counts_repeats
        for file in build_parts(name, staged[name], anew, folder, folder="1", is_anew=True).files:
            tables.setdefault(file.kind, []).append(file.path)
    for table, columns in COLUMNS.items():
        sql.view_files(f"built_{table}", tables.get(table, ()), columns)


def _differences(organisation: str, sql: DuckDBWriter) -> Iterator[Difference]:
    """Yield the differences of the tables `built_...` from the tables of the lake, `found_...`."""
    for table in (f"{side}_{name}" for side in ("built", "found") for name in _FIRST_EVENTS):
        kept = f"SELECT * FROM {table} ANTI JOIN {table}_moved USING (player)"  # noqa: S608
        sql.create_view(f"{table}_now", f"{kept} UNION ALL SELECT * FROM {table}_moved")  # noqa: S608
    for table in _COMPARED:
        expected, found = _rows_sql("built", table), _rows_sql("found", table)
        day = "day" if "day" in COLUMNS[table] else "NULL"
        both = f"SELECT *, 1 AS times FROM ({expected}) UNION ALL SELECT *, -1 AS times FROM ({found})"  # noqa: S608
        rows = sql.run(f"""
            SELECT {day} AS of_day, sum(greatest(missing, 0)), sum(greatest(-missing, 0)) FROM (
                SELECT * EXCLUDE (times), sum(times) AS missing FROM ({both}) GROUP BY ALL HAVING sum(times) <> 0
            ) GROUP BY of_day ORDER BY of_day""")  # noqa: S608
        for of_day, missing, surplus in rows:
            yield Difference(organisation, table, "all" if of_day is None else f"of {of_day}", missing, surplus)
    ((wrong,),) = sql.run(
        "SELECT count(*) - count(DISTINCT player) FILTER (player BETWEEN 1 AND (SELECT count(*) FROM found_installs)) "
        "FROM found_installs_now"
    )
    if wrong:
        yield Difference(organisation, "installs", "by number", wrong, wrong)


def _rows_sql(side: str, table: str) -> str:
    """Return the rows of a table as they are compared: without numbers of players, and added up by key."""
    if table in _FIRST_EVENTS:
        return f"SELECT * EXCLUDE (player) FROM {side}_{table}_now"  # noqa: S608
    columns = list(COLUMNS[table])
    rows = f"{side}_{table}"
    if "player" in columns:
        rows = f"(SELECT part.*, user_id FROM {rows} AS part LEFT JOIN {side}_installs_now USING (player))"  # noqa: S608
        columns[columns.index("player")] = "user_id"
    return merged_sql(table, rows, columns)


@contextlib.contextmanager
def _read_only_store(state: Path) -> Iterator[sqlite3.Connection]:
    """Open the store of *state* without a change to any file of it.

    Reading the log of a store that no process has open would write beside it, so links are read in a folder of their
    own then.
    """
    store = state / "gamelens.db"
    if not store.exists():
        raise Refused(f"{store} is missing: put it back, or run `gamelens sandbox up` to see what that means")
    with tempfile.TemporaryDirectory() as folder:
        is_running = False
        with contextlib.suppress(FileNotFoundError), (state / "lock").open("r+") as lock:
            is_running = not lock_descriptor(lock.fileno(), blocking=False)
        if not is_running:
            original, store = store, Path(folder, store.name)
            link_or_copy(original, store)
            log = original.with_name(f"{original.name}-wal")
            if log.exists():
                shutil.copyfile(log, store.with_name(log.name))
        address = f"{store.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=30, check_same_thread=False)) as opened:
            yield opened
