"""Verification that the lake agrees with the inbox, by a second reading in plain Python.

It uses neither the engine nor the SQL of processing. Every event is read again, because an install may lie anywhere.
Compared are the counts of all days, all players, the memberships of all sessions, weeks and months, and each row of
the other tables on a sample of days. Rows of several parts are added up first.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow.parquet as pq

from gamelens.errors import Refused
from gamelens.sandbox.maintenance.expected_tables import (
    KEYS_AND_SUMS,
    OF_FIRST,
    Cell,
    ExpectedTables,
    Player,
    Rows,
    sum_known,
    tables_of_day,
)
from gamelens.sandbox.maintenance.file_verification import read_only_store
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.storage.inbox import pending
from gamelens.sandbox.storage.lake import Lake, Snapshot, TablePart

DAYS: Final = 7
"""Number of days of each organisation to compare row by row, by default."""
_NOBODY: Final = (None, None)


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
        events: number of events read from the inbox.
        players: number of players.
        days: organisations and days compared row by row.
        differences: the differences, empty if lake and inbox agree.
    """

    events: int
    players: int
    days: list[str]
    differences: list[Difference]


def verify(state: Path, *, days: int | None = DAYS, seed: int | None = None) -> VerificationResult:
    """Compare the lake of *state* with its inbox, while a sandbox may be running on it.

    Args:
        state: state directory.
        days: number of days of each organisation to compare row by row; None takes all.
        seed: seed of the choice of days.

    Raises:
        Refused: there is no sandbox, its lake was filled without an inbox, or a batch or file cannot be read.
    """
    check_state(state)
    try:
        with read_only_store(state) as store:
            lake = Lake(state / "lake", store)
            if lake.last_run().is_written:
                raise Refused(
                    f"the lake of {state} was written, not received: it has no raw events to be compared with"
                )
            received = {name for (name,) in store.execute("SELECT DISTINCT organisation FROM batches")}
            names = sorted(received.union(lake.organisations()))
            last_batches = {name: lake.last_run_of(name).last_batch for name in names}
            snapshots = {name: lake.snapshot(name) for name in names}
            events = players = 0
            differences: list[Difference] = []
            compared_days: list[str] = []
            for name, snapshot in snapshots.items():
                counted = _stored_days(snapshot)
                wanted = len(counted) if days is None else min(days, len(counted))
                sample = set(Random(seed).sample(sorted(counted), wanted))  # noqa: S311
                expected = ExpectedTables(pending(store, after=0, up_to=last_batches[name], organisation=name), sample)
                events += sum(expected.counts.values())
                players += len(expected.installs)
                compared_days += [f"{name} {day}" for day in sorted(sample)]
                differences += _compare_tables(_Stored(name, snapshot), expected, counted, sample)
            return VerificationResult(events, players, compared_days, differences)
    except (OSError, ValueError, sqlite3.Error, msgspec.DecodeError) as error:
        is_batch = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY  # reading would note it
        raise Refused(f"cannot be verified: {'a batch of the inbox is damaged' if is_batch else error}") from error


class _Stored(NamedTuple):
    """The tables of one organisation in the lake."""

    organisation: str
    snapshot: Snapshot

    def rows(self, table: str, day: date | None = None) -> list[dict[str, Any]]:
        """Return the rows of *table*, of one *day* or all."""
        filters = [("day", "=", day)] if day else None
        parts = [part for part in self.snapshot.parts(table) if not day or _has_day(part, day)]
        return [row for part in parts for row in pq.read_table(part.path, filters=filters).to_pylist()]

    def firsts(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of `installs` or `payments`, moved ones replaced."""
        moved = self.rows(f"{table}_moved")
        replaced = {row["player"] for row in moved}
        return [*moved, *(row for row in self.rows(table) if row["player"] not in replaced)]

    def difference(self, table: str, where: str, expected: Rows, found: Rows) -> Iterator[Difference]:
        """Yield the difference of *expected* and *found* rows, if there is one."""
        missing, surplus = expected - found, found - expected
        if missing or surplus:
            yield Difference(self.organisation, table, where, missing.total(), surplus.total())


def _has_day(part: TablePart, day: date) -> bool:
    return part.first_day is None or part.last_day is None or part.first_day <= day <= part.last_day


def _stored_days(snapshot: Snapshot) -> Counter[date]:
    """Return the number of stored events of each day."""
    days: Counter[date] = Counter()
    for path in snapshot.files("events"):
        days.update(pq.read_table(path, columns=["day"])["day"].to_pylist())
    return days


def _compare_tables(
    stored: _Stored, expected: ExpectedTables, counted: Counter[date], days: set[date]
) -> Iterator[Difference]:
    for day in sorted(expected.counts.keys() | counted.keys()):
        more = counted[day] - expected.counts[day]
        if more:
            yield Difference(stored.organisation, "events", f"of {day}", max(0, -more), max(0, more))
    for table, firsts in (("installs", expected.installs), ("payments", expected.purchases)):
        rows = Counter((*player, *(event[name] for name in OF_FIRST)) for player, event in firsts.items())
        yield from stored.difference(
            table, "all", rows, _count_rows(stored.firsts(table), ["game_id", "user_id", *OF_FIRST])
        )
    installs = stored.firsts("installs")
    numbers = {row["player"]: (row["game_id"], row["user_id"]) for row in installs}
    wanted = Counter((number,) for number in range(1, len(expected.installs) + 1))
    yield from stored.difference("installs", "by number", wanted, _count_rows(installs, ["player"]))
    yield from _compare_memberships(stored, expected, numbers)
    for day in sorted(days):
        for table, rows in tables_of_day(day, expected).items():
            found = stored.rows(table, day)
            named = [row | {"user_id": numbers.get(row["player"], _NOBODY)[1]} for row in found if "player" in row]
            yield from stored.difference(table, f"of {day}", rows, _added_up(table, named or found))


def _compare_memberships(
    stored: _Stored, expected: ExpectedTables, numbers: Mapping[int, Player]
) -> Iterator[Difference]:
    """Compare the cells of weeks, months and sessions, and the shared memberships.

    The shared tables have every membership of the players and sessions that have several.
    """
    for table, members in expected.members.items():
        cells = Counter(cell for own in members.values() for cell in own)
        ended = Counter(cell for own in expected.ended.values() for cell in own)
        keys, counts = KEYS_AND_SUMS[table]
        rows = {cell: (count, ended[cell]) if table == "sessions" else (count,) for cell, count in cells.items()}
        found = _sums(stored.rows(table), keys, counts)
        yield from stored.difference(
            table,
            "all",
            Counter((*cell, *row) for cell, row in rows.items()),
            Counter((*k, *v) for k, v in found.items()),
        )
        shared: Rows = Counter()
        for member, own in members.items():
            if len(own) > 1:
                has_ended = expected.ended.get(member, set())
                shared.update(
                    (*cell, member[-1], *((1, int(cell in has_ended)) if table == "sessions" else (1,))) for cell in own
                )
        name = f"{table}_shared"
        stored_rows = stored.rows(name)
        if table != "sessions":
            stored_rows = [row | {"user_id": numbers.get(row["player"], _NOBODY)[1]} for row in stored_rows]
        summed = _sums(stored_rows, *KEYS_AND_SUMS[name])
        yield from stored.difference(name, "all", shared, Counter((*k, *v) for k, v in summed.items()))


def _count_rows(rows: list[dict[str, Any]], fields: Sequence[str]) -> Rows:
    return Counter(tuple(row[field] for field in fields) for row in rows)


def _added_up(table: str, rows: list[dict[str, Any]]) -> Rows:
    """Return the rows of a table of the sample, those of equal keys added up."""
    keys, sums = KEYS_AND_SUMS[table]
    if not sums:
        return _count_rows(rows, keys)
    summed = _sums(rows, keys, sums)
    return Counter((*key, *values) for key, values in summed.items() if any(values))


def _sums(rows: list[dict[str, Any]], keys: Sequence[str], sums: Sequence[str]) -> dict[Cell, Cell]:
    """Return the sums of each key, null where no row has a number."""
    groups: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in keys)].append(row)
    return {key: tuple(sum_known(row[name] for row in members) for name in sums) for key, members in groups.items()}
