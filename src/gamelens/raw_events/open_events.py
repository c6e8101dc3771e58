"""Events where they lie: a table of Spark, BigQuery, Arrow, Parquet or DuckDB as the source of the analyses."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

import pyarrow as pa

from gamelens.client.answer_cache import cache_folder
from gamelens.client.base_client import check_settings
from gamelens.client.tables.time_ranges import WhenUnavailable
from gamelens.errors import BadQuery, Refused, suggests_names
from gamelens.raw_events.lake_client import MOST_ROWS, QUERY_S
from gamelens.raw_events.warehouse_shape import category_of, warehouse_events
from gamelens.receipts import Provenance
from gamelens.sandbox.engines.bigquery_tables import BigQueryTables, DescribedTable, TooManyBytes, is_bigquery
from gamelens.sandbox.engines.engine import QueryBounds
from gamelens.sandbox.engines.event_tables import EventTables, kind_of, open_tables
from gamelens.sandbox.engines.spill_folder import SHARE_OF_MEMORY, SpillFolder, in_units, machine_memory
from gamelens.sandbox.engines.sql_process import bytes_of
from gamelens.wire.dimensions import EVENT_COLUMNS
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from google.cloud.bigquery import Client

    from gamelens.sandbox.engines.event_tables import Table

_EVENTS: Final = "gamelens_events"
_PLAYERS: Final = "gamelens_players"
_REQUIRED: Final = ("game_id", "user_id", "category", "ts")
_OF_A_LAKE: Final = ("seq", "day", "ilrd_id", "money", "currency")  # of the lake's files alone
_OF_EVENT: Final[dict[str, str]] = {
    **{name: kind for name, kind in EVENT_COLUMNS.items() if name not in _OF_A_LAKE},
    "arrival": "whole",
    "usd": "number",
}
"""The columns of the contract, with the kinds of their values."""
FIRST_EVENTS: Final = "first events"
"""Players of a table of BigQuery are looked for among all events only if that is asked for."""
_MOST_BYTES: Final = "50GB"  # Our choice: for one statement
_BYTES: Final = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_PARTS: Final = tuple(f"event_id_{part:02d}" for part in range(1, 6))
_TYPES: Final = {
    "text": "VARCHAR",
    "whole": "BIGINT",
    "number": "DOUBLE",
    "time": "TIMESTAMP",
    "install": "TIMESTAMP",
    "date": "DATE",
}
_TAKEN: Final = {
    "text": ("text", "whole"),
    "whole": ("whole",),
    "number": ("number", "whole"),
    "time": ("time", "instant"),
    "install": ("time", "instant", "date"),
    "date": ("date",),
}
"""Kinds of a table's columns that are taken for a kind of the contract."""
_INSTALL_COLUMNS: Final = ("country_code", "platform", "first_build", "install_publisher", "ab_id", "ab_variant_id")
_OF_PLAYER: Final = {
    "game_id": "text",
    "user_id": "text",
    "installed_at": "install",
    **dict.fromkeys(_INSTALL_COLUMNS, "text"),
}


@suggests_names
class EventTable:
    """A table of events that stays where it is, as a source of the analyses of `raw_events` (`open_events`).

        events = gl.open_events(lake.relation("events"), unique=True)
        raw_events.session_paths(events, "last 7 complete days")

    Attributes:
        statements: the SQL that was run, in the words of the engine, the newest last; at most 100.
        when_unavailable: what an analysis does about days that the table does not have.
        event_order: the columns that order the events of a second.
        event_warnings: what the receipt of every analysis says about these events.
    """

    def __init__(
        self,
        tables: EventTables,
        *,
        columns: Mapping[str, str | None],
        player_columns: Mapping[str, str | None],
        unique: bool,
        available: Interval | None,
        bounds: QueryBounds,
        when_unavailable: WhenUnavailable = "raise",
        since: datetime | None = None,
        finds_players: bool = True,
        event_warnings: tuple[str, ...] = (),
    ) -> None:
        self.statements: list[str] = []
        self.when_unavailable, self.event_warnings = when_unavailable, event_warnings
        self._tables, self._bounds, self._unique, self._finds_players = tables, bounds, unique, finds_players
        self._day = columns.get("day")
        if self._day is not None:
            _matched(tables, _EVENTS, {"day": "date"}, ("day",), {"day": self._day}, "columns")
        named = {name: column for name, column in columns.items() if name != "day"}
        self._named = _matched(tables, _EVENTS, _OF_EVENT, _REQUIRED, named, "columns")
        self._players = (
            _matched(
                tables, _PLAYERS, _OF_PLAYER, ("game_id", "user_id", "installed_at"), player_columns, "player_columns"
            )
            if _PLAYERS in tables.columns
            else None
        )
        by_arrival, by_uuid = ("arrival",), tuple(name for name in ("arrived_at", "event_uuid") if name in self._named)
        self.event_order: tuple[str, ...] = by_arrival if "arrival" in self._named else by_uuid
        if self.event_order[-1:] == ("arrived_at",):  # which several events may share
            self.event_order = ()
        if not unique and "event_uuid" not in self._named:
            raise BadQuery(
                "columns",
                "event_uuid",
                "is a column that the table does not have, and that tells repeated events: name it by columns=, or say "
                "unique=True if none is repeated",
                name="",
            )
        self._available, self._games, self._since = available, list[str](), since
        self._end = weakref.finalize(self, _close, tables, bounds.spill)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def provenance(self) -> Provenance:
        """The origin of its numbers: the engine, and the place of the table."""
        return Provenance(kind="table", url=self._tables.name, engine=self._tables.dialect)

    @property
    def bytes_billed(self) -> int:
        """The bytes that were billed for all its statements so far; 0 for engines that bill none."""
        return self._tables.bytes_billed

    @property
    def dated_by_arrival(self) -> dict[str, int]:
        """Nothing: times are taken as they are."""
        return {}

    def available(self) -> Interval:
        """Return the interval of its events: from the first day to the end of the hour of the last event.

            gl.open_events(lake.relation("events"), unique=True).available()

        It is read once, unless `open_events` was told.

        Raises:
            Refused: the table has no events.
        """
        self._read_bounds()
        if self._available is None:
            raise Refused(f"{self._tables.name} has no events with a game and a time: nothing can be analysed")
        return self._available

    def event_games(self) -> list[str]:
        """Return the ids of its games.

            gl.open_events(lake.relation("events"), unique=True).event_games()

        They are in order, and read once.
        """
        self._read_bounds()
        return self._games

    def event_columns(self) -> dict[str, str]:
        """Return the columns of its events that the table has, under our names.

            gl.open_events(lake.relation("events"), unique=True).event_columns()["ts"]

        Each has its type, in DuckDB's words.
        """
        parts = dict.fromkeys(_PARTS, "VARCHAR") if "event_id" in self._named else {}
        types = {name: _TYPES[kind] for name, kind in _OF_EVENT.items() if name in self._named}
        return {**types, "day": "DATE", **parts}

    def check_condition(self, condition: str) -> None:
        """Check a condition over its events, the argument `where` of an analysis.

            gl.open_events(lake.relation("events"), unique=True).check_condition("category = 'ads'")

        Raises:
            BadQuery: it does more than compare columns that the table has with texts and numbers.
        """
        from gamelens.sandbox.engines.plain_sql import check_condition

        check_condition(condition, self.event_columns())

    def run(self, statement: str, parameters: Mapping[str, Any], reads: Interval | None = None) -> pa.Table:
        """Return the rows of the statement of an analysis, as a table of Arrow.

            events = gl.open_events(lake.relation("events"), unique=True)
            events.run("SELECT count(*) AS events FROM events WHERE category = $name", {"name": "ads"})

        Where no event is repeated, it reads the events of the interval *reads* alone. A statement of your own must be
        plain as well: joins with ON, names in GROUP BY, no arrays, no zones.

        Raises:
            BadQuery: it has too many rows, or needs players that BigQuery would look for among all events.
            Refused: the engine cannot run it, or it takes more time, memory or, with BigQuery, bytes.
        """
        from gamelens.sandbox.engines.plain_sql import tables_of, written_for  # with sqlglot, which is slow to import

        needs_players = "players" in tables_of(statement)
        if needs_players and self._players is None and not self._finds_players:
            rule = (
                "must name the table of players, with game_id, user_id and installed_at. To find the first event of "
                f'each player instead, all events are read: players="{FIRST_EVENTS}"'
            )
            raise BadQuery("players", "None", rule, name="")
        views = {
            **self._tables.views,
            "all_events": self._events_view(None),
            "events": self._events_view(reads),
            "players": self._players_view(),
        }
        sql = written_for(self._tables.dialect, statement, parameters, views, keep_views=self._unique)
        self.statements[:] = [*self.statements[-99:], sql]
        try:
            return self._tables.rows(sql, self._bounds)
        except TooManyBytes as error:
            scans = needs_players and self._players is None
            raise TooManyBytes(f"{error}. {self._narrower(is_bounded=reads is not None and not scans)}") from None

    def lacks(self, category: str, interval: Interval, games: Sequence[str]) -> str | None:
        """Return why the money of *category* is not known: the table has no column of US dollars.

            events = gl.open_events(lake.relation("events"), unique=True)
            events.lacks("business", events.available(), events.event_games())

        None if it has one.
        """
        if "usd" in self._named:
            return None
        return f"the money of {category} events is not known: the table has no usd, which columns= of open_events names"

    def close(self) -> None:
        """Release the memory.

            gl.open_events(lake.relation("events"), unique=True).close()

        A session or a connection of yours stays open.
        """
        self._end()

    def _narrower(self, *, is_bounded: bool) -> str:
        """Return what makes a statement read less."""
        if not self._unique:
            return "All events are read to find repeated ones: say unique=True if there are none, or since="
        ways = ["ask for fewer days" if is_bounded else "say since=, before which nothing is read"]
        if not is_bounded and self._players is None:
            ways.append("name a table of players, so that first events are not looked for")
        if self._day is None:
            ways.append("if the table is partitioned by a date that is not ts, say columns={'day': ...}")
        return f"{', or '.join(ways)}, or allow more: most_bytes=".capitalize()

    def _read_bounds(self) -> None:
        if self._games:
            return
        bounds = "" if self._available else ", min(ts) AS first, max(ts) AS last"
        is_dated = "game_id IS NOT NULL AND ts IS NOT NULL"
        found = self.run(f"SELECT game_id{bounds} FROM events WHERE {is_dated} GROUP BY game_id", {})  # noqa: S608
        self._games = sorted(found["game_id"].to_pylist())
        if self._games and self._available is None:
            first, last = min(found["first"].to_pylist()), max(found["last"].to_pylist())
            hour = last.replace(minute=0, second=0, microsecond=0, tzinfo=UTC) + timedelta(hours=1)
            day = first.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
            self._available = Interval(day, hour)

    def _events_view(self, reads: Interval | None) -> str:
        """Return the events of the contract as a SELECT: repeats left out, times in UTC, absent columns null."""
        named = self._named
        columns = {name: self._value(_EVENTS, name, kind, named) for name, kind in _OF_EVENT.items()}
        columns["day"] = f"CAST({columns['ts']} AS DATE)"
        for number, part in enumerate(_PARTS, 1):
            value = f"nullif(ID_PART({columns['event_id']}, {number}), '')"
            columns[part] = value if "event_id" in named else "CAST(NULL AS VARCHAR)"
        listed = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        start, end = (reads.start, reads.end) if reads is not None and self._unique else (None, None)
        if self._since is not None:
            start = max(self._since, start or self._since)
        where = f" WHERE {is_read}" if (is_read := self._is_within(start, end)) else ""
        if self._unique:
            return f"SELECT {listed} FROM {_EVENTS}{where}"  # noqa: S608
        order = next((columns[name] for name in ("arrival", "arrived_at") if name in named), columns["ts"])
        copy = (
            f"row_number() OVER (PARTITION BY {columns['game_id']}, {columns['event_uuid']} ORDER BY {order}) AS copy"
        )
        return (
            f"SELECT {', '.join(columns)} FROM (SELECT {listed}, {copy} FROM {_EVENTS}{where}) AS copies "  # noqa: S608
            "WHERE event_uuid IS NULL OR copy = 1"
        )

    def _players_view(self) -> str:
        """Return one row for each player: of the table of players, or of the first event."""
        if self._players is not None:
            values = {name: self._value(_PLAYERS, name, kind, self._players) for name, kind in _OF_PLAYER.items()}
            listed = ", ".join(f"{value} AS {name}" for name, value in values.items())
            source = f"(SELECT {listed} FROM {_PLAYERS}) AS stated"  # noqa: S608
            order = "installed_at"
        else:
            first = ", ".join("build AS first_build" if name == "first_build" else name for name in _INSTALL_COLUMNS)
            source = (
                f"(SELECT game_id, user_id, ts AS installed_at, {first}, {', '.join(('ts', *self.event_order))} "  # noqa: S608
                "FROM all_events) AS stated"
            )
            order = ", ".join(("ts", *self.event_order))
        number = f"row_number() OVER (PARTITION BY game_id, user_id ORDER BY {order}) AS number"
        return (
            f"SELECT {', '.join(_OF_PLAYER)} FROM (SELECT stated.*, {number} FROM {source} "  # noqa: S608
            "WHERE user_id IS NOT NULL AND installed_at IS NOT NULL) AS numbered WHERE number = 1"
        )

    def _value(self, table: str, name: str, kind: str, named: Mapping[str, str]) -> str:
        """Return the value of a column of the contract, as SQL."""
        if name not in named:
            return f"CAST(NULL AS {_TYPES[kind]})"
        column = _quoted(named[name])
        if kind_of(self._tables.dialect, self._tables.columns[table][named[name]]) == "instant":
            column = f"IN_UTC({column})"
        return f"CAST({column} AS {_TYPES[kind]})"

    def _is_within(self, start: datetime | None, end: datetime | None) -> str:
        """Return the condition of events from *start* to before *end*; None is any.

        It is over the column as it lies, so that an engine can leave files or partitions out.
        """
        column = _quoted(self._named["ts"])
        is_instant = kind_of(self._tables.dialect, self._tables.columns[_EVENTS][self._named["ts"]]) == "instant"
        conditions = []
        for sign, moment in ((">=", start), ("<", end)):
            if moment is not None:
                text = f"'{moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}'"
                conditions.append(
                    f"{column} {sign} {f'INSTANT({text})' if is_instant else f'CAST({text} AS TIMESTAMP)'}"
                )
        if self._day is not None:  # a day more on both sides, since it may be the day of another zone
            for sign, moment, more in ((">=", start, -1), ("<=", end, 1)):
                if moment is not None:
                    near = moment + timedelta(days=more)
                    conditions.append(f"{_quoted(self._day)} {sign} CAST('{near:%Y-%m-%d}' AS DATE)")
        return " AND ".join(conditions)


def open_events(
    events: Table | Client,
    table: str | None = None,
    *,
    players: Table | None = None,
    columns: Mapping[str, str | None] | None = None,
    player_columns: Mapping[str, str | None] | None = None,
    unique: bool = False,
    available: str | None = None,
    since: str | None = None,
    memory: str | None = None,
    spill: str | os.PathLike[str] | None = None,
    when_unavailable: WhenUnavailable = "raise",
    shape: Literal["warehouse"] | None = None,
    most_bytes: str | None = None,
) -> EventTable:
    """Return a table of events as the source of an analysis; the events stay where they are.

        events = gl.open_events(lake.relation("events"), unique=True)
        raw_events.funnel(events, ["user", "Complete:world01"], "last 7 complete days")
        print(events.statements[-1])

    A DataFrame of Spark is asked in its session, classic or of Spark Connect; a relation of DuckDB in its connection.
    Datasets of Arrow (a Delta table has one: `DeltaTable(...).to_pyarrow_dataset()`) and Parquet files, also at a URL
    that fsspec reads, are read by a DuckDB in this process. BigQuery is asked through your client, whose credentials
    stay there; each statement is estimated first:

        client = google.cloud.bigquery.Client()
        gl.open_events(client, "project.dataset.table", unique=True, most_bytes="20GB")
        gl.open_events(client, "project.events", shape="warehouse", players="project.checkpoints.player_checkpoint")

    Required columns are `game_id`, `user_id`, `category` and `ts`, a time: one without a zone is taken as UTC, and any
    other is converted. The analyses also know `session_id`, `event_id`, `event_uuid`, `country_code`, `platform`,
    `build`, `device`, `custom_01` to `custom_03`, the dimensions of ads and tests, `arrived_at`, `arrival` (the order
    of arrival) and `usd`. One that is absent is null, and an analysis that needs it refuses.

    Args:
        events: the table, or a client of BigQuery.
        table: with a client, the name of the table, or with *shape* of the dataset: `project.dataset.table`.
        players: a table of the same engine (of BigQuery: its name) with `game_id`, `user_id`, `installed_at` and, where
            known, `country_code`, `platform`, `first_build`, `install_publisher`, `ab_id`, `ab_variant_id`. None: the
            first event of each player is the install, for which all events are read; with BigQuery only if you say
            "first events".
        columns: the names that columns have in *events*, by ours: {"ts": "sent_at"}. None leaves one out. `day` is a
            date by which the table is partitioned, at most a day from the date of `ts`.
        player_columns: the same for *players*.
        unique: whether no event is repeated. Else the first copy to arrive of each `event_uuid` of a game counts, for
            which all events are read.
        available: the interval of the events, "2026-01-01/2026-11-20"; None reads it.
        since: a day, "2026-01-01": events before it are not read, as if they were not there.
        memory: what a statement may take of this machine, as in `open_lake`; an engine of yours has its own limits.
        spill: a folder for what does not fit into memory, as in `open_lake`.
        when_unavailable: what an analysis does about days that the table does not have: "raise", or "clip" them off.
        shape: "warehouse" reads the event tables of a dataset of the service's own warehouse.
        most_bytes: what a statement of BigQuery may read, such as "500MB" or "2TB", if the client has no lower bound;
            None is 50GB. One that would read more is refused and not run.

    Raises:
        BadQuery: *events* is no place of events, a column is missing or of another type, or an argument is not as
            described.
        Refused: it cannot be read.
    """
    check_settings(when_unavailable=when_unavailable)
    if when_unavailable == "wait":
        raise BadQuery("when_unavailable", "wait", "is for services: a table is read as it is", ("raise", "clip"))
    interval = None if available is None else Interval.parse(available)
    taken = memory or in_units(SHARE_OF_MEMORY * machine_memory())
    bytes_of(taken)
    with ExitStack() as if_refused:
        folder = SpillFolder(Path(spill).expanduser() if spill is not None else cache_folder() / "spill")
        if_refused.callback(folder.close)
        if spill is not None and not folder.path:
            raise BadQuery("spill", str(spill), f"is no folder to spill to: {folder.trouble}")
        bounds = QueryBounds(seconds=QUERY_S, rows=MOST_ROWS, memory=taken, spill=folder)
        if is_bigquery(events):
            opened = _of_bigquery(events, table, players, shape, most_bytes, columns or {}, player_columns or {})
        else:
            for field, value in (("table", table), ("shape", shape), ("most_bytes", most_bytes)):
                if value is not None:
                    raise BadQuery(field, value, "is for a client of BigQuery, google.cloud.bigquery.Client()", name="")
            named = {_EVENTS: events} if players is None else {_EVENTS: events, _PLAYERS: players}
            opened = _Opened(open_tables(named, bounds), columns or {}, player_columns or {})
        if_refused.callback(opened.tables.close)
        source = EventTable(
            opened.tables,
            columns=opened.columns,
            player_columns=opened.player_columns,
            unique=unique or opened.is_unique,
            available=interval,
            since=_day_of(since),
            bounds=bounds,
            when_unavailable=when_unavailable,
            finds_players=opened.finds_players,
            event_warnings=opened.warnings,
        )
        if_refused.pop_all()
    return source


class _Opened(NamedTuple):
    """Tables, and how an `EventTable` reads them."""

    tables: EventTables
    columns: Mapping[str, str | None]
    player_columns: Mapping[str, str | None]
    is_unique: bool = False
    finds_players: bool = True
    warnings: tuple[str, ...] = ()


def _of_bigquery(
    client: Any,
    table: str | None,
    players: Any,
    shape: str | None,
    most_bytes: str | None,
    columns: Mapping[str, str | None],
    player_columns: Mapping[str, str | None],
) -> _Opened:
    """Return a table of BigQuery, or the event tables of a dataset."""
    if not isinstance(table, str):
        rule = "must name a table of BigQuery as project.dataset.table, or with shape= a dataset as project.dataset"
        raise BadQuery("table", str(table), rule, name="")
    if players is not None and not isinstance(players, str):
        raise BadQuery("players", type(players).__name__, "must be the name of a table of BigQuery", name="")
    if shape not in (None, "warehouse"):
        raise BadQuery("shape", shape, "is not a shape of tables", ("warehouse",))
    tables, warnings = BigQueryTables(client, most_bytes=_bytes_of(most_bytes or _MOST_BYTES)), tuple[str, ...]()
    if shape is None:
        events = tables.described(table)
        tables.declare(_EVENTS, _all_of(events), events.columns)
        tables.name = f"{events.name} of BigQuery"
    else:
        names = tables.tables_of(table)
        found = warehouse_events(
            [tables.described(name) for name in names if category_of(name)],
            [name for name in names if not category_of(name) and name.endswith("_event")],
        )
        tables.declare(_EVENTS, found.select, found.columns)
        tables.name = f"{table} of BigQuery"
        warnings = (_warning_of(found.read, found.unread),)
        columns = {**({"day": "day"} if "day" in found.columns else {}), **columns}
    if players not in (None, FIRST_EVENTS):
        named = tables.described(players)
        tables.declare(_PLAYERS, _all_of(named), named.columns)
        if shape and "installed_at" not in named.columns and "install_ts" in named.columns:
            player_columns = {"installed_at": "install_ts", **player_columns}
    return _Opened(tables, columns, player_columns, shape is not None, players == FIRST_EVENTS, warnings)


def _all_of(table: DescribedTable) -> str:
    """Return a SELECT of all columns of a table of BigQuery; it reads those that a statement uses."""
    return f'SELECT {", ".join(map(_quoted, table.columns))} FROM "{table.name}"'  # noqa: S608


def _warning_of(read: Sequence[str], unread: Sequence[str]) -> str:
    """Return which events of a warehouse are counted, and that a repeated one counts twice."""
    counted = ", ".join(name.rpartition(".")[2] for name in read)
    rest = ", ".join(name.rpartition(".")[2] for name in unread)
    return (
        f"only events of {counted} are counted, as often as they were received: a player without any is not seen"
        f"{f', nor is {rest}, whose columns no public page describes' if rest else ''}"
    )


def _day_of(since: str | None) -> datetime | None:
    """Return the start of a day, UTC.

    Raises:
        BadQuery: it is no day.
    """
    try:
        return None if since is None else datetime.strptime(since, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise BadQuery("since", since, "must be a day, such as 2026-01-01", name="") from None


def _bytes_of(amount: str) -> int:
    """Return an amount of bytes, such as 20GB.

    Raises:
        BadQuery: it cannot be read.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([MGT]B)", amount.strip().upper())
    if found is None:
        raise BadQuery("most_bytes", amount, "must be an amount of bytes, such as 500MB, 20GB or 2TB", name="")
    return int(float(found[1]) * _BYTES[found[2]])


def _matched(
    tables: EventTables,
    table: str,
    contract: Mapping[str, str],
    required: Sequence[str],
    given: Mapping[str, str | None],
    argument: str,
) -> dict[str, str]:
    """Return the columns of a table by the names of the contract.

    Raises:
        BadQuery: a required one is missing, one has a type that is not taken, or a name is unknown.
    """
    types = tables.columns[table]
    for name, column in given.items():
        if name not in contract:
            raise BadQuery(argument, name, "is not a column of the events that analyses know", contract)
        if column is not None and column not in types:
            raise BadQuery(argument, column, f"which is to be {name}, is not a column of the table", types)
    named = {name: given.get(name, name) for name in contract}
    matched = {name: column for name, column in named.items() if column is not None and column in types}
    for name in required:
        if name not in matched:
            raise BadQuery(argument, name, f"is missing: say which column it is, {argument}={{'{name}': '...'}}", types)
    for name, column in matched.items():
        kind = kind_of(tables.dialect, types[column])
        if kind not in _TAKEN[contract[name]]:
            rule = f"has the type {types[column]}, but {name} must be a {contract[name]}: cast it"
            raise BadQuery(
                argument,
                column,
                rule if name in required else f"{rule}, or leave it out: {argument}={{'{name}': None}}",
                name="",
            )
    return matched


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _close(tables: EventTables, spill: SpillFolder | None) -> None:
    tables.close()
    if spill is not None:
        spill.close()
