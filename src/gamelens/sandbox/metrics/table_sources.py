"""What can be asked of each table of the lake: its dimensions, and how the atoms of metrics are made from its rows.

An *atom* is a column that a part of a metric sums or counts: a number for each row, or somebody to be counted once.
The same atom means the same in every table that has it, which is why the planner may choose.
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

_OF_PLAYERS: Final = ("first_build", "installed_on", "is_paying", "is_converting")
_WHO: Final = "CASE WHEN user_id IS NOT NULL THEN ROW(game_id, user_id) END"
_SESSION: Final = "CASE WHEN session_id IS NOT NULL THEN ROW(game_id, session_id) END"
_PEOPLE: Final = (
    "SELECT {key}, CAST(installed_at AS DATE) AS install_day, install_seq, install_build AS first_build, "
    "paid_at, paid_seq FROM players"
)
_VALUES: Final = {  # of the dimensions of players, where a player's row is at hand
    "installed_on": "CAST(install_day AS VARCHAR)",
    "is_paying": "CASE WHEN player IS NOT NULL THEN CASE WHEN ts >= paid_at THEN 'true' ELSE 'false' END END",
    "is_converting": "CASE WHEN player IS NOT NULL THEN "
    "CASE WHEN day = CAST(paid_at AS DATE) THEN 'true' ELSE 'false' END END",
}
_RETURNER: Final = "CASE WHEN date_diff('day', install_day, day) BETWEEN :nearest AND :farthest THEN {who} END"
_OF_ONE_CATEGORY: Final = "CASE WHEN category = '{category}' THEN {value} END"
_USD: Final = "CAST(money AS HUGEINT) * scaled"


def _only(category: str, value: str) -> str:
    return _OF_ONE_CATEGORY.format(category=category, value=value)


_MATTERS: Final = {
    **dict.fromkeys(("purchases", "paid", "payer"), "category = 'business'"),
    **dict.fromkeys(("impressions", "earned", "impression"), "category = 'impression'"),
    **dict.fromkeys(("ended", "seconds", "ended_session"), "category = 'session_end'"),
}


class TableSource(msgspec.Struct, frozen=True, kw_only=True):
    """One way to read a table.

    *is_by_day*: its rows know the day and not the moment. *is_numbered*: its players are their numbers, which is what
    they must be in whatever it is put together with.
    """

    name: str
    table: str
    dimensions: frozenset[str]
    atoms: dict[str, str]
    is_by_day: bool = False
    is_numbered: bool = False
    of_players: str = ""
    """What the columns of the players' table begin with that are read as an event's."""
    values: dict[str, str] = msgspec.field(default_factory=lambda: _VALUES)
    """SQL of the dimensions that are no column."""
    matters: dict[str, str] = {}
    """To an atom: rows that do not meet this add nothing to it."""
    knows_players: bool = False
    """Whether its rows say about players what there is to say."""
    marks_alone: bool = False
    """Whether `is_alone` marks the rows that are all there is of a player on a day."""

    def answers(self, atom: str, dimensions: frozenset[str]) -> bool:
        """Whether it has *atom* and all of *dimensions*."""
        return atom in self.atoms and dimensions <= self.dimensions

    def needs_players(self, atoms: frozenset[str], dimensions: frozenset[str], *, by_number: bool) -> bool:
        """Whether the players' table must be joined; *by_number*: players are wanted as numbers."""
        if self.knows_players:
            return False
        about_players = bool(dimensions & frozenset(_OF_PLAYERS)) or bool(atoms & _ABOUT_PLAYERS)
        return about_players or (by_number and not self.is_numbered and bool(atoms & _PLAYERS))

    def rows(self, *, joins_players: bool, joins_rates: bool = False) -> tuple[str, dict[str, str]]:
        """What to select from, and the SQL of the dimensions that are no column of it."""
        if self.of_players:
            return self._of_players(), self.values
        rows = self.table
        if joins_players:
            key = "player" if self.is_numbered else "game_id, user_id"
            people = _PEOPLE.format(key="player" if self.is_numbered else f"{key}, player")
            rows += f" LEFT JOIN ({people}) AS people USING ({key})"
        if joins_rates:
            rows += " LEFT JOIN rates USING (currency)"
        return rows, self.values

    def atom(self, name: str, *, by_number: bool) -> str:
        """The SQL of an atom; *by_number*: the players' table is joined."""
        who = "player" if by_number or self.is_numbered else _WHO
        return self.atoms[name].format(who=who)

    def daily_atoms(self, name: str, *, by_number: bool) -> tuple[str, str]:
        """The SQL of an atom that is a player to be counted on each day, and of the rows that count by themselves."""
        sql = self.atom(name, by_number=by_number)
        if not self.marks_alone:
            return sql, "NULL"
        return f"CASE WHEN NOT is_alone THEN {sql} END", f"CASE WHEN is_alone AND ({sql}) IS NOT NULL THEN 1 END"

    def condition(self, atoms: frozenset[str]) -> str | None:
        """The condition of the rows that any of *atoms* is made from; None where that may be all."""
        conditions = {self.matters.get(atom) for atom in atoms}
        return conditions.pop() if len(conditions) == 1 else None

    def _of_players(self) -> str:
        """One event of each player as if it were read from the events."""
        stem = self.of_players
        columns = ", ".join(f"{stem}_{name} AS {name}" for name in OF_EVENT)
        moment = {"install": "installed_at", "paid": "paid_at"}[stem]
        return (
            f"(SELECT player, game_id, {moment} AS ts, CAST({moment} AS DATE) AS day, {columns}, paid_at, "  # noqa: S608
            f"CAST(installed_at AS DATE) AS install_day, install_build AS first_build "
            f"FROM players WHERE {stem}_seq IS NOT NULL) AS {stem}s"
        )


_ABOUT_PLAYERS: Final = frozenset(("returner", "installed", "converted"))
COUNTED_PLAYERS: Final = ("player", "payer", "returner")
"""Atoms that are players, each to be counted once."""
_PLAYERS: Final = frozenset((*COUNTED_PLAYERS, "who"))
_SUMS: Final = {name: name for name in (*MEASURES, "seconds")}
_MONEY: Final = {"paid": _only("business", _USD), "earned": _only("impression", _USD)}
_BY_EVENT: Final = frozenset(EVENT_DIMENSIONS) | frozenset(_OF_PLAYERS)
_AGGREGATES: Final = {aggregate.name: aggregate for aggregate in AGGREGATES}


def _cube(name: str) -> TableSource:
    return TableSource(
        name=name,
        table=name,
        dimensions=frozenset(_AGGREGATES[name].dimensions),
        atoms={**_SUMS, **_MONEY},
        is_by_day=True,
        matters=_MATTERS,
    )


INSTALLS: Final = TableSource(
    name="installs",
    table="players",
    dimensions=_BY_EVENT,
    atoms={"installed": "1", "who": "player"},
    of_players="install",
    knows_players=True,
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
    marks_alone=True,
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
    dimensions=_BY_EVENT,
    atoms={
        **MEASURES,
        **_MONEY,
        "seconds": SECONDS,
        "player": "{who}",
        "payer": _only("business", "{who}"),
        "returner": _RETURNER,
        "session": _SESSION,
        "ended_session": _only("session_end", _SESSION),
        "impression": _only("impression", "ROW(game_id, ilrd_id)"),
        "installed": "CASE WHEN seq = install_seq THEN 1 ELSE 0 END",
        "converted": "CASE WHEN seq = paid_seq THEN 1 ELSE 0 END",
    },
    matters=_MATTERS,
)
RETURNS: Final = TableSource(
    name="returns",
    table="returns",
    dimensions=frozenset((*RETURN_DIMENSIONS, "first_build", "installed_on")),
    atoms={"cohort": "players", "returned": "players"},
    values={"first_build": "build", "installed_on": "CAST(day - CAST(age AS INTEGER) AS VARCHAR)"},
    is_by_day=True,
    matters={"cohort": "age = 0", "returned": "age = :since"},
    knows_players=True,
)
SOURCES: Final = (
    INSTALLS,
    TableSource(
        name="purchases",
        table="players",
        dimensions=_BY_EVENT,
        atoms={"converted": "1"},
        of_players="paid",
        knows_players=True,
    ),
    _cube("slim"),
    _cube("cube"),
    ACTIVE,
    SESSIONS,
    EVENTS,
)
"""Smallest first."""
