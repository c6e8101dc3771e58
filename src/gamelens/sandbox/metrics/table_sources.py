"""The tables of the lake as sources of metrics: their dimensions, and SQL of each atom.

An *atom* is a column that a part of a metric sums or counts: a number for each row, or a key to count once. The same
atom has the same meaning in every table that offers it, so the planner may choose any of them.

A key may also be counted by *cells*: rows of one source add the number of memberships in them, and rows of the table
beside it add the keys that have several and take their memberships off again (`lake_schema`). SQL of atoms may name
`{player_key}`, a player's key, and the parameter `{since}`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from gamelens.sandbox.metrics.sql_builder import Select, in_category, left_join, named, nested, union_all, when
from gamelens.sandbox.storage.lake_schema import (
    CUBE_DIMENSIONS,
    EVENT_DIMENSIONS,
    MEASURES,
    OF_EVENT,
    PLAYER_DIMENSIONS,
    RETURN_DIMENSIONS,
    SECONDS,
    SLIM_DIMENSIONS,
)
from gamelens.wire.intervals import Granularity

_BY_INSTALL: Final = frozenset(("first_build", "installed_on"))
_BY_PURCHASE: Final = frozenset(("is_paying", "is_converting"))
_OF_DAYS: Final = frozenset(("first_build", "installed_on", "is_converting"))  # what a player has for a whole day
_INSTALLED_ON: Final = "CAST(install_day AS VARCHAR)"
_IS_CONVERTING: Final = when("day = CAST(paid_at AS DATE)", "'true'", "'false'")
_PLAYER_DAY_VALUES: Final = {
    "installed_on": _INSTALLED_ON,
    "is_converting": when("player IS NOT NULL", _IS_CONVERTING),
}
_EVENT_VALUES: Final = {
    "installed_on": _INSTALLED_ON,
    "is_paying": when("user_id IS NOT NULL", when("ts >= paid_at", "'true'", "'false'")),
    "is_converting": when("user_id IS NOT NULL", _IS_CONVERTING),
}
_PLAYER_KEY: Final = when("user_id IS NOT NULL", "ROW(game_id, user_id)")
_SESSION_KEY: Final = when("session_id IS NOT NULL", "ROW(game_id, session_id)")
_IMPRESSION_KEY: Final = "ROW(game_id, ilrd_id)"
_HAS_RETURNED: Final = "day > install_day"
_HAS_RETURNED_AFTER: Final = "date_diff('day', install_day, day) = {since}"
_HAS_PAID: Final = "currency IS NOT NULL"
_USD: Final = "CAST(money AS HUGEINT) * scaled"
_CONDITIONS: Final = {
    "shown": "category = 'ads'",
    **dict.fromkeys(("purchases", "paid", "payer", "converted"), "category = 'business'"),
    **dict.fromkeys(("impressions", "earned", "impression"), "category = 'impression'"),
    **dict.fromkeys(("ended", "seconds", "ended_session"), "category = 'session_end'"),
}
_PLAYERS: Final = frozenset(("player", "payer", "returner", "returner_after", "player_key"))
_NEEDS_RATES: Final = frozenset(("paid", "earned"))


class TableSource(msgspec.Struct, frozen=True, kw_only=True):
    """One way to read a table of the lake.

    Attributes:
        name: name of the source, unique.
        table: table it reads.
        dimensions: dimensions it can group and filter by.
        atoms: SQL of each atom it offers.
        cells: SQL of the memberships that a row adds to an atom, which is then no key of its rows.
        shared: source of the shared keys of the atoms in `cells`, by atom.
        periods: bucket in which `cells` count an atom, by atom; those that are missing are counted in any.
        is_by_day: whether its rows have a day and no moment.
        player_key: columns that identify a player: none, a number, or game and user.
        first_events: whether its rows are one event of each player, from the table and the one of its moved rows.
        values: SQL of the dimensions that are no column.
        conditions: conditions without which a row adds nothing to an atom.
    """

    name: str
    table: str
    dimensions: frozenset[str]
    atoms: dict[str, str] = {}
    cells: dict[str, str] = {}
    shared: dict[str, str] = {}
    periods: dict[str, Granularity] = {}
    is_by_day: bool = False
    player_key: tuple[str, ...] = ()
    first_events: bool = False
    values: dict[str, str] = {}
    conditions: dict[str, str] = {}

    @property
    def is_numbered(self) -> bool:
        """Whether it identifies players by number."""
        return self.player_key == ("player",)

    def numbers_players(self, atoms: frozenset[str]) -> bool:
        """Return whether some of *atoms* are numbers of players.

        Sources that are combined with it must number them too.
        """
        return self.is_numbered and bool(atoms & _PLAYERS)

    def period(self, atom: str) -> Granularity:
        """Return the bucket in which cells count *atom*: a granularity, or `all` for any."""
        return self.periods.get(atom, "all")

    def counts_by_cells(self, atom: str, period: Granularity) -> bool:
        """Return whether cells count *atom* in buckets of *period*."""
        return atom in self.cells and self.period(atom) in ("all", period)

    def has(self, atom: str, dimensions: frozenset[str], period: Granularity) -> bool:
        """Return whether the table offers *atom* in buckets of *period*, and all of *dimensions*."""
        return dimensions <= self.dimensions and (atom in self.atoms or self.counts_by_cells(atom, period))

    def rows(self, atoms: frozenset[str], dimensions: frozenset[str], *, by_number: bool) -> TableRows:
        """Return the rows to select *atoms* and *dimensions* from.

        Players are numbers if *by_number*.
        """
        tables = {self.table}
        sql = self.table
        if self.first_events:
            tables.add(f"{self.table}_moved")
            sql = nested(_replaced(self.table, _FIRST_EVENT), "first_events")
        named_sql = " ".join(sql[atom] for sql in (self.atoms, self.cells) for atom in atoms if atom in sql)
        joins_installs = bool(self.player_key) and bool(dimensions & _BY_INSTALL or "install_" in named_sql)
        joins_installs &= self.table != "installs"
        key = ("player",) if self.first_events else self.player_key
        if joins_installs:
            tables |= {"installs", "installs_moved"}
            columns = named(*key, *(() if key == ("player",) else ("player",))) | _INSTALL
            sql = left_join(sql, nested(_replaced("installs", columns), "of_install"), *key)
        elif by_number and self.player_key and not self.is_numbered and atoms & _PLAYERS:
            tables.add("installs")
            numbers = Select(columns=named(*key, "player"), source="installs")
            sql = left_join(sql, nested(numbers, "numbers"), *key)
        if self.player_key and self.table != "payments" and (dimensions & _BY_PURCHASE or "paid_" in named_sql):
            tables |= {"payments", "payments_moved"}
            sql = left_join(sql, nested(_replaced("payments", named(*key) | _PURCHASE), "of_purchase"), *key)
        if atoms & _NEEDS_RATES:
            sql = left_join(sql, "rates", "currency")
        key_sql = "player" if self.is_numbered or joins_installs or by_number else _PLAYER_KEY
        return TableRows(sql=sql, tables=frozenset(tables), player_key=key_sql)

    def condition(self, atoms: frozenset[str]) -> str | None:
        """Return the condition of the rows that *atoms* are made of, or None if any row may count."""
        conditions = {self.conditions.get(atom) for atom in atoms}
        return conditions.pop() if len(conditions) == 1 else None


class TableRows(msgspec.Struct, frozen=True):
    """Rows that a SELECT reads.

    Attributes:
        sql: what FROM names.
        tables: the tables in it.
        player_key: SQL of a player's key.
    """

    sql: str
    tables: frozenset[str]
    player_key: str


_FIRST_EVENT: Final = {**named("player", "game_id", "ts"), "day": "CAST(ts AS DATE)", **named(*OF_EVENT)}
_INSTALL: Final = {"install_day": "CAST(ts AS DATE)", "install_seq": "seq", "first_build": "build"}
_PURCHASE: Final = {"paid_at": "ts", "paid_seq": "seq"}


def _replaced(table: str, columns: dict[str, str]) -> str:
    """Return the rows of a table of first events as they are now."""
    moved = f"{table}_moved"
    left = f"player NOT IN ({Select(columns=named('player'), source=moved)})"
    return union_all((Select(columns=columns, source=table, where=(left,)), Select(columns=columns, source=moved)))


_SUMS: Final = {name: name for name in (*MEASURES, "seconds")}
_PLAYER_SET: Final = frozenset(PLAYER_DIMENSIONS)
_OF_FIRST_EVENTS: Final = frozenset(EVENT_DIMENSIONS) | _BY_INSTALL | _BY_PURCHASE
_IMPRESSION: Final = {"impression": "impressions"}
_IMPRESSION_SHARED: Final = {"impression": "impressions_shared"}
_PLAYER: Final = {"player": "player", "payer": when(_HAS_PAID, "player")}
_RETURNERS: Final = ("returner", "returner_after")


def _cube(name: str, dimensions: tuple[str, ...]) -> TableSource:
    return TableSource(
        name=name,
        table=name,
        dimensions=frozenset(dimensions),
        atoms={
            **_SUMS,
            "paid": in_category("business", _USD),
            "earned": in_category("impression", _USD),
        },
        cells=_IMPRESSION,
        shared=_IMPRESSION_SHARED,
        is_by_day=True,
        conditions=_CONDITIONS,
    )


def _players_of(period: Granularity, table: str, atoms: dict[str, str], *, other_cells: dict[str, str]) -> TableSource:
    shared = f"{table}_shared"
    return TableSource(
        name=table,
        table=table,
        dimensions=_PLAYER_SET,
        atoms=atoms,
        cells={"player": "players", "payer": when(_HAS_PAID, "players"), **other_cells},
        shared=dict.fromkeys((*_PLAYER, *other_cells), shared) | (_IMPRESSION_SHARED if other_cells else {}),
        periods=dict.fromkeys((*_PLAYER, *other_cells), period) | ({"impression": "all"} if other_cells else {}),
        is_by_day=True,
    )


def _shared_players_of(table: str, atoms: dict[str, str], *, cells: dict[str, str]) -> TableSource:
    return TableSource(
        name=table,
        table=table,
        dimensions=_PLAYER_SET | _OF_DAYS,
        atoms=_PLAYER | atoms,
        cells={"player": "-counts", "payer": when(_HAS_PAID, "-counts"), **cells},
        is_by_day=True,
        player_key=("player",),
        values=_PLAYER_DAY_VALUES,
    )


INSTALLS: Final = TableSource(
    name="installs",
    table="installs",
    dimensions=_OF_FIRST_EVENTS,
    atoms={"installed": "1", "player_key": "player"},
    player_key=("player",),
    first_events=True,
    values={
        "first_build": "build",
        "installed_on": "CAST(day AS VARCHAR)",
        "is_paying": when("ts >= paid_at", "'true'", "'false'"),
        "is_converting": _IS_CONVERTING,
    },
)
PURCHASES: Final = TableSource(
    name="purchases",
    table="payments",
    dimensions=_OF_FIRST_EVENTS,
    atoms={"converted": "1"},
    player_key=("player",),
    first_events=True,
    values={"installed_on": _INSTALLED_ON, "is_paying": "'true'", "is_converting": "'true'"},
)
ACTIVE: Final = TableSource(
    name="active",
    table="active",
    dimensions=_PLAYER_SET | _OF_DAYS,
    atoms={
        **_SUMS,
        "paid": _USD,
        **_PLAYER,
        "returner": when(_HAS_RETURNED, "player"),
        "returner_after": when(_HAS_RETURNED_AFTER, "player"),
        "player_key": "player",
    },
    cells={
        "player": "counts",
        "payer": when(_HAS_PAID, "counts"),
        "returner": when(_HAS_RETURNED, "counts"),
        "returner_after": when(_HAS_RETURNED_AFTER, "counts"),
    },
    shared=dict.fromkeys((*_PLAYER, *_RETURNERS), "daily_players_shared"),
    periods=dict.fromkeys((*_PLAYER, *_RETURNERS), "day"),
    is_by_day=True,
    player_key=("player",),
    values=_PLAYER_DAY_VALUES,
)
SESSIONS: Final = TableSource(
    name="sessions",
    table="sessions",
    dimensions=_PLAYER_SET,
    cells={"session": "sessions", "ended_session": "ended_sessions"},
    shared=dict.fromkeys(("session", "ended_session"), "sessions_shared"),
    is_by_day=True,
)
EVENTS: Final = TableSource(
    name="events",
    table="events",
    dimensions=_OF_FIRST_EVENTS,
    atoms={
        **MEASURES,
        "seconds": SECONDS,
        "paid": in_category("business", _USD),
        "earned": in_category("impression", _USD),
        "player": "{player_key}",
        "payer": in_category("business", "{player_key}"),
        "returner": when(_HAS_RETURNED, "{player_key}"),
        "returner_after": when(_HAS_RETURNED_AFTER, "{player_key}"),
        "player_key": "{player_key}",
        "session": _SESSION_KEY,
        "ended_session": in_category("session_end", _SESSION_KEY),
        "impression": in_category("impression", _IMPRESSION_KEY),
        "installed": when("seq = install_seq", "1", "0"),
        "converted": when("seq = paid_seq", "1", "0"),
    },
    player_key=("game_id", "user_id"),
    values=_EVENT_VALUES,
    conditions=_CONDITIONS,
)
RETURNS: Final = TableSource(
    name="returns",
    table="returns",
    dimensions=frozenset((*RETURN_DIMENSIONS, "first_build", "installed_on")),
    atoms={"cohort": "players", "returned": "players"},
    values={"first_build": "build", "installed_on": "CAST(day - CAST(age AS INTEGER) AS VARCHAR)"},
    is_by_day=True,
    conditions={"cohort": "age = 0", "returned": "age = {since}"},
)
SOURCES: Final = (
    INSTALLS,
    PURCHASES,
    _cube("slim", SLIM_DIMENSIONS),
    _cube("cube", CUBE_DIMENSIONS),
    _players_of("month", "monthly_players", {}, other_cells={}),
    _players_of("week", "weekly_players", {}, other_cells={}),
    _players_of("day", "daily_players", {**_SUMS, "paid": _USD}, other_cells=_IMPRESSION | {"returner": "returners"}),
    SESSIONS,
    ACTIVE,
    EVENTS,
)
"""All sources but returns and shared ones, smallest first.

Those of weeks and months answer whole weeks and months only.
"""
SHARED_SOURCES: Final = {
    source.name: source
    for source in (
        _shared_players_of(
            "daily_players_shared",
            {"returner": when("returners > 0", "player"), "returner_after": when(_HAS_RETURNED_AFTER, "player")},
            cells={"returner": "-returners", "returner_after": when(_HAS_RETURNED_AFTER, "-counts")},
        ),
        _shared_players_of("weekly_players_shared", {}, cells={}),
        _shared_players_of("monthly_players_shared", {}, cells={}),
        TableSource(
            name="sessions_shared",
            table="sessions_shared",
            dimensions=_PLAYER_SET,
            atoms={"session": _SESSION_KEY, "ended_session": when("ended_counts > 0", _SESSION_KEY)},
            cells={"session": "-counts", "ended_session": "-ended_counts"},
            is_by_day=True,
        ),
        TableSource(
            name="impressions_shared",
            table="impressions_shared",
            dimensions=frozenset(EVENT_DIMENSIONS),
            atoms={"impression": _IMPRESSION_KEY},
            cells={"impression": "-1"},
            is_by_day=True,
        ),
    )
}
"""Sources of the keys that several memberships share, by name."""
