"""The tables of the lake as sources of metrics: their dimensions, and SQL of each atom.

An *atom* is a column that a part of a metric sums or counts: a number for each row, or a key to count once. The same
atom has the same meaning in every table that offers it, so the planner may choose any of them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from gamelens.sandbox.storage.lake_schema import (
    AGGREGATES,
    EVENT_DIMENSIONS,
    MEASURES,
    OF_EVENT,
    RETURN_DIMENSIONS,
    SECONDS,
)

_PLAYER_DIMENSIONS: Final = ("first_build", "installed_on", "is_paying", "is_converting")
_PLAYER_KEY: Final = "CASE WHEN user_id IS NOT NULL THEN ROW(game_id, user_id) END"
_SESSION: Final = "CASE WHEN session_id IS NOT NULL THEN ROW(game_id, session_id) END"
_PLAYER_COLUMNS: Final = (
    "SELECT {key}, CAST(installed_at AS DATE) AS install_day, install_seq, install_build AS first_build, "
    "paid_at, paid_seq FROM players"
)
_PLAYER_VALUES: Final = {  # SQL of player dimensions, where the players table is joined
    "installed_on": "CAST(install_day AS VARCHAR)",
    "is_paying": "CASE WHEN player IS NOT NULL THEN CASE WHEN ts >= paid_at THEN 'true' ELSE 'false' END END",
    "is_converting": "CASE WHEN player IS NOT NULL THEN "
    "CASE WHEN day = CAST(paid_at AS DATE) THEN 'true' ELSE 'false' END END",
}
_RETURNER: Final = "CASE WHEN date_diff('day', install_day, day) BETWEEN :nearest AND :farthest THEN {who} END"
_IN_CATEGORY: Final = "CASE WHEN category = '{category}' THEN {value} END"
_USD: Final = "CAST(money AS HUGEINT) * scaled"


def _in_category(category: str, value: str) -> str:
    return _IN_CATEGORY.format(category=category, value=value)


_CONDITIONS: Final = {
    **dict.fromkeys(("purchases", "paid", "payer"), "category = 'business'"),
    **dict.fromkeys(("impressions", "earned", "impression"), "category = 'impression'"),
    **dict.fromkeys(("ended", "seconds", "ended_session"), "category = 'session_end'"),
}


class TableSource(msgspec.Struct, frozen=True, kw_only=True):
    """One way to read a table of the lake.

    Attributes:
        name: name of the source, unique.
        table: table it reads.
        dimensions: dimensions it can group and filter by.
        atoms: SQL of each atom it offers.
        is_by_day: whether its rows have a day and no moment.
        is_numbered: whether it identifies players by number. Sources combined with it must do so too.
        player_event: prefix of the columns of the players table that are read as one event of each player, or empty.
        values: SQL of the dimensions that are no column.
        conditions: conditions without which a row adds nothing to an atom.
        has_player_values: whether its rows have the player dimensions, so that the players table need not be joined.
        marks_single_rows: whether `is_alone` marks the rows that are a player's only one of the day.
    """

    name: str
    table: str
    dimensions: frozenset[str]
    atoms: dict[str, str]
    is_by_day: bool = False
    is_numbered: bool = False
    player_event: str = ""
    values: dict[str, str] = msgspec.field(default_factory=lambda: _PLAYER_VALUES)
    conditions: dict[str, str] = {}
    has_player_values: bool = False
    marks_single_rows: bool = False

    def has(self, atom: str, dimensions: frozenset[str]) -> bool:
        """Return whether the table offers *atom* and all of *dimensions*."""
        return atom in self.atoms and dimensions <= self.dimensions

    def needs_players(self, atoms: frozenset[str], dimensions: frozenset[str], *, by_number: bool) -> bool:
        """Return whether the players table must be joined.

        *by_number* asks for players as numbers.
        """
        if self.has_player_values:
            return False
        about_players = bool(dimensions & frozenset(_PLAYER_DIMENSIONS)) or bool(atoms & _ABOUT_PLAYERS)
        return about_players or (by_number and not self.is_numbered and bool(atoms & _PLAYERS))

    def rows(self, *, joins_players: bool, joins_rates: bool = False) -> tuple[str, dict[str, str]]:
        """Return the FROM clause, and the SQL of the dimensions that are no column of it."""
        if self.player_event:
            return self._player_events(), self.values
        sql = self.table
        if joins_players:
            key = "player" if self.is_numbered else "game_id, user_id"
            players = _PLAYER_COLUMNS.format(key="player" if self.is_numbered else f"{key}, player")
            sql += f" LEFT JOIN ({players}) AS people USING ({key})"
        if joins_rates:
            sql += " LEFT JOIN rates USING (currency)"
        return sql, self.values

    def atom(self, name: str, *, by_number: bool) -> str:
        """Return the SQL of an atom.

        With *by_number* the players table is joined, and players are its numbers.
        """
        player = "player" if by_number or self.is_numbered else _PLAYER_KEY
        return self.atoms[name].format(who=player)

    def daily_atoms(self, name: str, *, by_number: bool) -> tuple[str, str]:
        """Return the SQL of a player to count once a day, and of rows that count by themselves."""
        sql = self.atom(name, by_number=by_number)
        if not self.marks_single_rows:
            return sql, "NULL"
        return f"CASE WHEN NOT is_alone THEN {sql} END", f"CASE WHEN is_alone AND ({sql}) IS NOT NULL THEN 1 END"

    def condition(self, atoms: frozenset[str]) -> str | None:
        """Return the condition of the rows that *atoms* are made of, or None if any row may count."""
        conditions = {self.conditions.get(atom) for atom in atoms}
        return conditions.pop() if len(conditions) == 1 else None

    def _player_events(self) -> str:
        """Return a subquery with one event of each player, in the columns of the events table."""
        stem = self.player_event
        columns = ", ".join(f"{stem}_{name} AS {name}" for name in OF_EVENT)
        moment = {"install": "installed_at", "paid": "paid_at"}[stem]
        return (
            f"(SELECT player, game_id, {moment} AS ts, CAST({moment} AS DATE) AS day, {columns}, paid_at, "  # noqa: S608
            f"CAST(installed_at AS DATE) AS install_day, install_build AS first_build "
            f"FROM players WHERE {stem}_seq IS NOT NULL) AS {stem}s"
        )


_ABOUT_PLAYERS: Final = frozenset(("returner", "installed", "converted"))
COUNTED_PLAYERS: Final = ("player", "payer", "returner")
"""Atoms that are players, each counted once."""
_PLAYERS: Final = frozenset((*COUNTED_PLAYERS, "who"))
_SUMS: Final = {name: name for name in (*MEASURES, "seconds")}
_MONEY: Final = {"paid": _in_category("business", _USD), "earned": _in_category("impression", _USD)}
_EVENT_OR_PLAYER: Final = frozenset(EVENT_DIMENSIONS) | frozenset(_PLAYER_DIMENSIONS)
_AGGREGATES: Final = {aggregate.name: aggregate for aggregate in AGGREGATES}


def _cube(name: str) -> TableSource:
    return TableSource(
        name=name,
        table=name,
        dimensions=frozenset(_AGGREGATES[name].dimensions),
        atoms={**_SUMS, **_MONEY},
        is_by_day=True,
        conditions=_CONDITIONS,
    )


INSTALLS: Final = TableSource(
    name="installs",
    table="players",
    dimensions=_EVENT_OR_PLAYER,
    atoms={"installed": "1", "who": "player"},
    player_event="install",
    has_player_values=True,
)
ACTIVE: Final = TableSource(
    name="active",
    table="active",
    dimensions=frozenset(_AGGREGATES["active"].dimensions) | {"first_build", "installed_on", "is_converting"},
    atoms={
        **_SUMS,
        "paid": _USD,
        "player": "{who}",
        "payer": "CASE WHEN purchases > 0 THEN {who} END",
        "returner": _RETURNER,
    },
    is_by_day=True,
    is_numbered=True,
    marks_single_rows=True,
)
SESSIONS: Final = TableSource(
    name="sessions",
    table="sessions",
    dimensions=frozenset(_AGGREGATES["sessions"].dimensions),
    atoms={**_SUMS, "session": _SESSION, "ended_session": f"CASE WHEN ended > 0 THEN {_SESSION} END"},
    is_by_day=True,
)
EVENTS: Final = TableSource(
    name="events",
    table="events",
    dimensions=_EVENT_OR_PLAYER,
    atoms={
        **MEASURES,
        **_MONEY,
        "seconds": SECONDS,
        "player": "{who}",
        "payer": _in_category("business", "{who}"),
        "returner": _RETURNER,
        "session": _SESSION,
        "ended_session": _in_category("session_end", _SESSION),
        "impression": _in_category("impression", "ROW(game_id, ilrd_id)"),
        "installed": "CASE WHEN seq = install_seq THEN 1 ELSE 0 END",
        "converted": "CASE WHEN seq = paid_seq THEN 1 ELSE 0 END",
    },
    conditions=_CONDITIONS,
)
RETURNS: Final = TableSource(
    name="returns",
    table="returns",
    dimensions=frozenset((*RETURN_DIMENSIONS, "first_build", "installed_on")),
    atoms={"cohort": "players", "returned": "players"},
    values={"first_build": "build", "installed_on": "CAST(day - CAST(age AS INTEGER) AS VARCHAR)"},
    is_by_day=True,
    conditions={"cohort": "age = 0", "returned": "age = :since"},
    has_player_values=True,
)
SOURCES: Final = (
    INSTALLS,
    TableSource(
        name="purchases",
        table="players",
        dimensions=_EVENT_OR_PLAYER,
        atoms={"converted": "1"},
        player_event="paid",
        has_player_values=True,
    ),
    _cube("slim"),
    _cube("cube"),
    ACTIVE,
    SESSIONS,
    EVENTS,
)
"""All sources but returns, smallest first."""
