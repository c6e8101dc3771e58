"""Builder of an organisation's next version, from new events and its last version.

A day that gets new events is written anew, and so is all that is aggregated from it. Aggregates lie in one file per
month, so that a query over a month opens one file; rows of the other days are copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.storage.lake import Lake, LakeFile, Snapshot, folder_of, month_of
from gamelens.sandbox.storage.lake_schema import (
    AGGREGATES,
    BIG,
    COLUMNS,
    EVENT_COLUMNS,
    MEASURES,
    OF_EVENT,
    PLAYER_COLUMNS,
    RETURN_COLUMNS,
    RETURN_DIMENSIONS,
    SECONDS,
)

# The first copy to arrive counts, whether the others arrive with it or years later (Wire 4.8, Repeated events). Most
# events have no other copy: grouping hashes shows that in a fraction of the memory that the UUIDs would take, and UUIDs
# are compared only where hashes are equal.
_REPEATED: Final = """
    CREATE TEMP TABLE repeated AS
    WITH named AS (SELECT seq, game_id, event_uuid FROM staged WHERE event_uuid IS NOT NULL),
    suspects AS (
        SELECT hash(game_id, event_uuid) AS number FROM named GROUP BY number HAVING count(*) > 1
    ), firsts AS (
        SELECT game_id, event_uuid, min(seq) AS first_seq
        FROM named SEMI JOIN suspects ON hash(game_id, event_uuid) = number GROUP BY ALL HAVING count(*) > 1
    ), seen AS (
        SELECT DISTINCT game_id, event_uuid FROM known SEMI JOIN named USING (game_id, event_uuid)
    )
    SELECT seq FROM named JOIN firsts USING (game_id, event_uuid) WHERE seq > first_seq
    UNION
    SELECT seq FROM named SEMI JOIN seen USING (game_id, event_uuid)"""

# Earliest by event time, then by arrival: MIN of a row compares its values from the left.
_FIRSTS: Final = """
    CREATE TEMP TABLE firsts AS
    SELECT game_id, user_id, min(row(ts, seq)) AS install,
        min(CASE WHEN category = 'business' THEN row(ts, seq) END) AS purchase
    FROM fresh WHERE user_id IS NOT NULL GROUP BY ALL"""

_INSTALL_COLUMNS: Final = ("installed_at", "install_seq", *(f"install_{name}" for name in OF_EVENT))
_PURCHASE_COLUMNS: Final = ("paid_at", "paid_seq", *(f"paid_{name}" for name in OF_EVENT))


_GROUP_ROWS: Final = 122_880
_SMALL_GROUP_ROWS: Final = 8192


class _VersionBuilder:
    """The folder and the engine with which one organisation's next version is made."""

    def __init__(self, organisation: str, lake: Lake, writer: DuckDBWriter, *, version: int) -> None:
        self.snapshot: Snapshot = lake.snapshot(organisation)
        self.writer = writer
        self._organisation = organisation
        self._root = lake.root
        self._folder = lake.root / str(version) / folder_of(organisation)

    def new_file(self, name: str) -> Path:
        """Return the path of a new file, in a folder that exists."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{name}.parquet"

    def write(self, kind: str, period: date | None, select: str, *, group_rows: int = _GROUP_ROWS) -> LakeFile:
        """Write the rows of *select* as the file of *kind* for *period*.

        Readers skip whole groups of *group_rows* rows.
        """
        path = self.new_file(_file_name(kind, period))
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group_rows}"
        self.writer.run(f"COPY ({select}) TO {literal(str(path))} ({options})")
        return self.describe(path, kind, period)

    def describe(self, path: Path, kind: str, period: date | None) -> LakeFile:
        """Sync the file at *path* and return its entry for the manifest."""
        with path.open("rb") as file:
            os.fsync(file.fileno())
        rows = pq.read_metadata(path).num_rows
        relative = str(path.relative_to(self._root))
        return LakeFile(path=relative, organisation=self._organisation, kind=kind, period=period, rows=rows)

    def path_of(self, file: LakeFile) -> Path:
        """Return the path of *file*."""
        return self._root / file.path

    def sync(self) -> None:
        """Sync the folders, so that the names of the new files survive a crash."""
        if self._folder.exists():
            for folder in (self._folder, self._folder.parent, self._root):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def build_files(
    organisation: str, staged: dict[date, list[Path]], lake: Lake, scratch: Path, *, version: int
) -> tuple[list[LakeFile], int]:
    """Build the new files of *organisation* and count the repeated events among *staged*.

    Repeated events are dropped (Wire 4.8, Repeated events). Nothing of the last version is changed.
    """
    writer = DuckDBWriter(scratch)
    try:
        builder = _VersionBuilder(organisation, lake, writer, version=version)
        writer.view_files("staged", [path for paths in staged.values() for path in paths], EVENT_COLUMNS)
        writer.view_files("known", list(builder.snapshot.days.values()), EVENT_COLUMNS)
        writer.run(_REPEATED)
        repeated: dict[date, int] = dict(
            writer.run("SELECT day, count(*) FROM staged SEMI JOIN repeated USING (seq) GROUP BY day")
        )
        fresh = "staged ANTI JOIN repeated USING (seq)" if repeated else "staged"
        players = _write_players(builder, fresh)
        events = [
            file
            for day, paths in sorted(staged.items())
            if (file := _write_day(builder, day, paths, repeated=repeated.get(day, 0)))
        ]
        files: list[LakeFile] = []
        if events:
            files = [*events, players, *_write_aggregates(builder, events, players)]
            files += _write_returns(builder, files)
        builder.sync()
        return files, sum(repeated.values())
    finally:
        writer.close()


def _write_players(builder: _VersionBuilder, fresh: str) -> LakeFile:
    """Write the table of all players, with the changes that *fresh* events make to it."""
    writer, old = builder.writer, builder.snapshot.players
    writer.view_files("known_players", [old] if old else [], PLAYER_COLUMNS)
    writer.run(f"CREATE OR REPLACE TEMP VIEW fresh AS FROM {fresh}")
    writer.run(_FIRSTS)
    install = ", ".join(f"i.{name} AS install_{name}" for name in OF_EVENT)
    paid = ", ".join(f"p.{name} AS paid_{name}" for name in OF_EVENT)
    writer.run(f"""
        CREATE TEMP TABLE found AS
        SELECT f.game_id, f.user_id, i.ts AS installed_at, i.seq AS install_seq, {install},
            p.ts AS paid_at, p.seq AS paid_seq, {paid}
        FROM firsts f JOIN fresh i ON i.seq = f.install[2]
        LEFT JOIN (FROM fresh WHERE category = 'business') p ON p.seq = f.purchase[2]""")  # noqa: S608
    writer.run("""
        CREATE TEMP TABLE moved AS SELECT known.player FROM known_players known JOIN found USING (game_id, user_id)
        WHERE row(found.installed_at, found.install_seq) < row(known.installed_at, known.install_seq)""")
    earlier = [f"CASE WHEN installs THEN found.{name} ELSE known.{name} END AS {name}" for name in _INSTALL_COLUMNS]
    earlier += [f"CASE WHEN pays THEN found.{name} ELSE known.{name} END AS {name}" for name in _PURCHASE_COLUMNS]
    return builder.write(
        "players",
        None,
        f"""
        WITH compared AS (
            SELECT game_id, user_id, found, known, found.install_seq IS NOT NULL AND (known.player IS NULL
                OR row(found.installed_at, found.install_seq) < row(known.installed_at, known.install_seq)) AS installs,
                found.paid_seq IS NOT NULL AND (known.paid_seq IS NULL
                OR row(found.paid_at, found.paid_seq) < row(known.paid_at, known.paid_seq)) AS pays
            FROM known_players known FULL JOIN found USING (game_id, user_id)
        ), merged AS (
            SELECT known.player AS player, game_id, user_id, {", ".join(earlier)} FROM compared
        )
        SELECT coalesce(player, (SELECT coalesce(max(player), 0) FROM known_players)
                + row_number() OVER (PARTITION BY player IS NULL ORDER BY installed_at, install_seq)) AS player,
            * EXCLUDE (player)
        FROM merged ORDER BY player""",  # noqa: S608
    )


def _write_day(builder: _VersionBuilder, day: date, paths: list[Path], *, repeated: int) -> LakeFile | None:
    """Write all events of *day*, or return None if none of the staged ones is new."""
    old = builder.snapshot.days.get(day)
    if not repeated and not old and len(paths) == 1:  # the staged file already is the day
        path = builder.new_file(_file_name("events", day))
        os.replace(paths[0], path)
        return builder.describe(path, "events", day)
    if repeated and repeated == sum(pq.read_metadata(path).num_rows for path in paths):
        return None
    builder.writer.view_files("of_day", paths, EVENT_COLUMNS)
    builder.writer.view_files("old", [old] if old else [], EVENT_COLUMNS)
    new = "of_day ANTI JOIN repeated USING (seq)" if repeated else "of_day"
    columns = ", ".join(EVENT_COLUMNS)
    return builder.write("events", day, f"SELECT {columns} FROM old UNION ALL SELECT {columns} FROM {new}")  # noqa: S608


def _write_aggregates(builder: _VersionBuilder, events: list[LakeFile], players: LakeFile) -> Iterable[LakeFile]:
    """Write every aggregate of each month in which one of the *events* files lies."""
    builder.writer.view_files("players", [builder.path_of(players)], PLAYER_COLUMNS)
    months: dict[date, list[LakeFile]] = {}
    for file in events:
        if file.period:
            months.setdefault(month_of(file.period), []).append(file)
    for month, days in months.items():
        builder.writer.view_files("of_days", [builder.path_of(file) for file in days], EVENT_COLUMNS)
        written = ", ".join(f"DATE '{file.period}'" for file in days)
        for aggregate in AGGREGATES:
            old = builder.snapshot.tables[aggregate.name].get(month)
            builder.writer.view_files("old", [old] if old else [], COLUMNS[aggregate.name])
            columns = ", ".join(aggregate.columns)
            yield builder.write(
                aggregate.name,
                month,
                f"SELECT {columns} FROM old WHERE day NOT IN ({written}) UNION ALL "  # noqa: S608
                f"SELECT {columns} FROM ({aggregate_sql(aggregate.name, 'of_days')}) ORDER BY {aggregate.order}",
            )


def _write_returns(builder: _VersionBuilder, written: list[LakeFile]) -> Iterable[LakeFile]:
    """Write the returns of each month with a day on which they may have changed.

    Such days are those with new events, and the active days of every player whose install has moved.
    """
    old_active = builder.snapshot.tables["active"]
    builder.writer.view_files("known_active", list(old_active.values()), COLUMNS["active"])
    moved = builder.writer.run("SELECT DISTINCT day FROM known_active SEMI JOIN moved USING (player)")
    days = {file.period for file in written if file.kind == "events"} | {day for (day,) in moved}
    active = {**old_active, **{file.period: builder.path_of(file) for file in written if file.kind == "active"}}
    for month in sorted({month_of(day) for day in days if day}):
        old = builder.snapshot.tables["returns"].get(month)
        builder.writer.view_files("old", [old] if old else [], COLUMNS["returns"])
        builder.writer.view_files("active", [active[month]], COLUMNS["active"])
        changed = ", ".join(f"DATE '{day}'" for day in sorted(day for day in days if day and month_of(day) == month))
        columns = ", ".join(RETURN_COLUMNS)
        yield builder.write(
            "returns",
            month,
            f"SELECT {columns} FROM old WHERE day NOT IN ({changed}) "  # noqa: S608
            f"UNION ALL SELECT {columns} FROM ({returns_sql('active')}) WHERE day IN ({changed}) ORDER BY age, day",
            group_rows=_SMALL_GROUP_ROWS,
        )


def returns_sql(active: str) -> str:
    """Return the SQL of the table of returns, from *active* and the table `players`."""
    dimensions = ", ".join(f"install_{name} AS {name}" for name in RETURN_DIMENSIONS if name != "game_id")
    return (
        "SELECT day, day - CAST(installed_at AS DATE) AS age, game_id, "  # noqa: S608
        f"{dimensions}, count(*) AS players "
        f"FROM (SELECT DISTINCT day, player FROM {active}) JOIN players USING (player) GROUP BY ALL"
    )


def aggregate_sql(name: str, events: str) -> str:
    """Return the SQL of the aggregate *name* over *events*.

    Players get their numbers from the table `players`.
    """
    aggregate = next(aggregate for aggregate in AGGREGATES if aggregate.name == name)
    grouped = ["day", *aggregate.dimensions, *(["user_id"] if aggregate.is_of_players else [])]
    grouped += [f"{sql} AS {key}" for key, sql in aggregate.keys.items() if key != "player"]  # joined at the end
    sums = [f"CAST(sum({sql}) AS BIGINT) AS {measure}" for measure, sql in MEASURES.items()]
    sums.append(f"CAST(sum({SECONDS}) AS {BIG}) AS seconds")
    sums.append(f"CAST(sum({aggregate.money}) AS {BIG}) AS money")
    rows = f"SELECT {', '.join(grouped + sums)} FROM {events} GROUP BY ALL"  # noqa: S608
    if not aggregate.is_of_players:
        return rows
    numbered = f"({rows}) LEFT JOIN (SELECT game_id, user_id, player FROM players) USING (game_id, user_id)"  # noqa: S608
    is_alone = "player IS NOT NULL AND count(*) OVER (PARTITION BY day, player) = 1"
    return f"SELECT *, {is_alone} AS is_alone FROM {numbered}"  # noqa: S608


def _file_name(kind: str, period: date | None) -> str:
    if kind == "events":
        return f"{period}"
    return f"{kind}-{period:%Y-%m}" if period else kind
