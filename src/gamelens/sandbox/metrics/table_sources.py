"""The tables of the lake as sources of metrics: their dimensions, their players, and what they are joined with.

`storage.atoms` says which atoms each has.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from gamelens.sandbox.metrics.sql_builder import Select, left_join, named, nested, union_all
from gamelens.sandbox.storage.atoms import Join, Read, reads_of, when
from gamelens.sandbox.storage.lake_schema import (
    CUBE_DIMENSIONS,
    EVENT_DIMENSIONS,
    OF_EVENT,
    PLAYER_DIMENSIONS,
    PLAYER_PERIODS,
    RETURN_DIMENSIONS,
    SLIM_DIMENSIONS,
)
from gamelens.wire.intervals import GRANULARITIES, Granularity


class TableRows(msgspec.Struct, frozen=True):
    """Rows that a SELECT reads.

    Attributes:
        sql: what FROM names.
        tables: the tables in it.
        player: SQL of a player's key.
    """

    sql: str
    tables: frozenset[str]
    player: str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the lake that a query may read.

    Attributes:
        name: name of the table.
        dimensions: the dimensions that are its columns.
        values: how it has each dimension, by dimension; given are those that are not columns.
        is_by_day: whether its rows have a day and no moment.
        player: columns that identify a player: none, a number, or game and user.
        has_moved: whether its rows are one event of each player, some of which the table beside it replaces.
        reads: how it has the atoms that it can count in buckets of a period, by period; `all` is any other interval.
    """

    name: str
    dimensions: tuple[str, ...]
    values: dict[str, Read] = {}
    is_by_day: bool = True
    player: tuple[str, ...] = ()
    has_moved: bool = False
    reads: dict[Granularity, dict[str, Read]] = {}

    def __post_init__(self) -> None:
        values = {name: Read(name) for name in self.dimensions} | self.values
        msgspec.structs.force_setattr(self, "values", values)
        reads = {
            period: {atom: read for atom, each in reads_of(self.name).items() if (read := each.within(period))}
            for period in GRANULARITIES
        }
        msgspec.structs.force_setattr(self, "reads", reads)

    def numbers_players(self, joins: Collection[Join]) -> bool:
        """Return whether players are numbers in its rows when it has *joins*."""
        return self.player == ("player",) or "installs" in joins

    def rows(self, joins: Collection[Join], *, by_number: bool) -> TableRows:
        """Return its rows with *joins*, and with the numbers of players if *by_number*."""
        tables, sql, key = {self.name}, self.name, self.player
        if self.has_moved:
            tables.add(f"{self.name}_moved")
            sql = nested(_as_now(self.name, _FIRST_EVENT), "first_events")
        if "installs" in joins:
            tables |= {"installs", "installs_moved"}
            installs = _as_now("installs", named(*dict.fromkeys((*key, "player"))) | _INSTALL)
            sql = left_join(sql, nested(installs, "of_install"), *key)
        elif by_number and key != ("player",):
            tables.add("installs")
            numbers = Select(columns=named(*key, "player"), source="installs")
            sql = left_join(sql, nested(numbers, "numbers"), *key)
        if "payments" in joins:
            tables |= {"payments", "payments_moved"}
            sql = left_join(sql, nested(_as_now("payments", named(*key) | _PURCHASE), "of_purchase"), *key)
        if "rates" in joins:
            sql = left_join(sql, "rates", "currency")
        is_numbered = by_number or self.numbers_players(joins)
        return TableRows(sql=sql, tables=frozenset(tables), player="player" if is_numbered else _PLAYER_KEY)


_PLAYER_KEY: Final = when("user_id IS NOT NULL", "ROW(game_id, user_id)")
_FIRST_EVENT: Final = {**named("player", "game_id", "ts"), "day": "CAST(ts AS DATE)", **named(*OF_EVENT)}
_INSTALL: Final = {"install_day": "CAST(ts AS DATE)", "install_seq": "seq", "first_build": "build"}
_PURCHASE: Final = {"paid_at": "ts", "paid_seq": "seq"}


def _as_now(table: str, columns: dict[str, str]) -> str:
    """Return the rows of a table of first events as they are now."""
    moved = f"{table}_moved"
    left = f"player NOT IN ({Select(columns=named('player'), source=moved)})"
    return union_all((Select(columns=columns, source=table, where=(left,)), Select(columns=columns, source=moved)))


_BY_INSTALL: Final = {
    "first_build": Read("first_build", ("installs",)),
    "installed_on": Read("CAST(install_day AS VARCHAR)", ("installs",)),
}
_IS_PAYING: Final = when("ts >= paid_at", "'true'", "'false'")
_IS_CONVERTING: Final = when("day = CAST(paid_at AS DATE)", "'true'", "'false'")
_OF_DAYS: Final = {  # what a player has for a whole day
    **_BY_INSTALL,
    "is_converting": Read(when("player IS NOT NULL", _IS_CONVERTING), ("payments",)),
}

INSTALLS: Final = Table(
    name="installs",
    dimensions=EVENT_DIMENSIONS,
    values={
        "first_build": Read("build"),
        "installed_on": Read("CAST(day AS VARCHAR)"),
        "is_paying": Read(_IS_PAYING, ("payments",)),
        "is_converting": Read(_IS_CONVERTING, ("payments",)),
    },
    is_by_day=False,
    player=("player",),
    has_moved=True,
)
ACTIVE: Final = Table(name="active", dimensions=PLAYER_DIMENSIONS, values=_OF_DAYS, player=("player",))
EVENTS: Final = Table(
    name="events",
    dimensions=EVENT_DIMENSIONS,
    values={
        **_BY_INSTALL,
        "is_paying": Read(when("user_id IS NOT NULL", _IS_PAYING), ("payments",)),
        "is_converting": Read(when("user_id IS NOT NULL", _IS_CONVERTING), ("payments",)),
    },
    is_by_day=False,
    player=("game_id", "user_id"),
)
RETURNS: Final = Table(
    name="returns",
    dimensions=RETURN_DIMENSIONS,
    values={
        "first_build": Read("build"),
        "installed_on": Read("CAST(day - CAST(age AS INTEGER) AS VARCHAR)"),
    },
)
SOURCES: Final = (
    INSTALLS,
    Table(
        name="payments",
        dimensions=EVENT_DIMENSIONS,
        values={**_BY_INSTALL, "is_paying": Read("'true'"), "is_converting": Read("'true'")},
        is_by_day=False,
        player=("player",),
        has_moved=True,
    ),
    Table(name="slim", dimensions=SLIM_DIMENSIONS),
    Table(name="cube", dimensions=CUBE_DIMENSIONS),
    *(Table(name=f"{period}_players", dimensions=PLAYER_DIMENSIONS) for period in reversed(PLAYER_PERIODS)),
    Table(name="sessions", dimensions=PLAYER_DIMENSIONS),
    ACTIVE,
    EVENTS,
)
"""All tables but returns and shared ones, smallest first.

Those of weeks and months answer whole weeks and months only.
"""
SHARED: Final = {
    table.name: table
    for table in (
        *(
            Table(name=f"{period}_players_shared", dimensions=PLAYER_DIMENSIONS, values=_OF_DAYS, player=("player",))
            for period in PLAYER_PERIODS
        ),
        Table(name="sessions_shared", dimensions=PLAYER_DIMENSIONS),
        Table(name="impressions_shared", dimensions=EVENT_DIMENSIONS),
    )
}
"""Tables of the keys that several memberships share, by name."""
