"""Schema of the lake: events, what is summed and counted from them, and players.

Every table only grows: a processing run adds rows and changes none. Sums of measures add up over the rows of all runs.
Measures are defined over event rows in `atoms` and nowhere else: processing computes the sums, the planner reads them.

Distinct counts are kept in two tables that add up as well. A *cell* is a period with the values of some dimensions, and
a *membership* is one player or session in one cell. The table of cells has the number of memberships of each; the
table beside it, `..._shared`, has every membership of each player (in a day, week or month) or session (ever) that has
several. Then

    distinct = sum of cells + (COUNT(DISTINCT x) - memberships) over the shared table

under the same filter and grouping: a player with one membership counts through the cells, one with several through
the distinct values. `counts` is 1 in the first row of a membership, and 0 in later rows that only add to its measures.
Returning players are counted in the same way: `returners` are the memberships on a day after the player's install.
"""

from __future__ import annotations

from typing import Final

from gamelens.sandbox.storage.atoms import ATOMS, BIG
from gamelens.wire import dimensions
from gamelens.wire.dimensions import EVENT_DIMENSIONS as EVENT_DIMENSIONS
from gamelens.wire.dimensions import dimensions_in_table

FORMAT: Final = 8
"""Version of the lake's layout. A lake of another version is rebuilt from the inbox."""

_TYPES: Final = {"whole": "BIGINT", "text": "VARCHAR", "time": "TIMESTAMP", "date": "DATE"}
EVENT_COLUMNS: Final = {name: _TYPES[kind] for name, kind in dimensions.EVENT_COLUMNS.items()}

OF_EVENT: Final = tuple(name for name in EVENT_DIMENSIONS if name != "game_id")
"""Dimensions of an event that `installs` and `payments` repeat."""

MEASURES: Final = {atom.name: atom.event.sql for atom in ATOMS.values() if atom.event and atom.stored}
"""Additive whole numbers of one event, as SQL over its row."""

SUMS: Final = {**{name: ATOMS[name].stored for name in MEASURES}, "money": BIG}
"""Types of the sums of events, by column."""

PURCHASE_CURRENCY: Final = "CASE WHEN category = 'business' THEN currency END"
"""Currency of a purchase, as SQL over an event row.

It is null for any other event, so that it tells payers.
"""

SLIM_DIMENSIONS: Final = dimensions_in_table("slim")
CUBE_DIMENSIONS: Final = dimensions_in_table("cube")
PLAYER_DIMENSIONS: Final = dimensions_in_table("member")
"""Dimensions of memberships. A player has one set of values for most of a day."""
RETURN_DIMENSIONS: Final = dimensions_in_table("return")
"""Dimensions of returns, as the install event had them."""

_MEMBER_CELL: Final = {"day": "DATE", **dict.fromkeys(PLAYER_DIMENSIONS, "VARCHAR"), "currency": "VARCHAR"}
_SESSION_CELL: Final = {"day": "DATE", **dict.fromkeys(PLAYER_DIMENSIONS, "VARCHAR")}
_FIRST_EVENTS: Final = {
    "player": "BIGINT",  # a number, unique within the organisation; players are numbered from 1 without a gap
    "game_id": "VARCHAR",
    "user_id": "VARCHAR",
    "ts": "TIMESTAMP",
    "seq": "BIGINT",
    **dict.fromkeys(OF_EVENT, "VARCHAR"),
}

PLAYER_PERIODS: Final = ("daily", "weekly", "monthly")
"""Periods whose distinct players are kept.

Their `day` is the first day of the period (Monday, the first).
"""

COLUMNS: Final[dict[str, dict[str, str]]] = {
    "events": EVENT_COLUMNS,
    "slim": {"day": "DATE", **dict.fromkeys(SLIM_DIMENSIONS, "VARCHAR"), "currency": "VARCHAR", **SUMS},
    "cube": {"day": "DATE", **dict.fromkeys(CUBE_DIMENSIONS, "VARCHAR"), "currency": "VARCHAR", **SUMS},
    # each player's events of a day; `player` is null for events without a user
    "active": {**_MEMBER_CELL, "player": "BIGINT", **SUMS, "counts": "BIGINT"},
    "daily_players": {**_MEMBER_CELL, **SUMS, "players": "BIGINT", "returners": "BIGINT"},
    "daily_players_shared": {**_MEMBER_CELL, "player": "BIGINT", "counts": "BIGINT", "returners": "BIGINT"},
    "weekly_players": {**_MEMBER_CELL, "players": "BIGINT"},
    "weekly_players_shared": {**_MEMBER_CELL, "player": "BIGINT", "counts": "BIGINT"},
    "monthly_players": {**_MEMBER_CELL, "players": "BIGINT"},
    "monthly_players_shared": {**_MEMBER_CELL, "player": "BIGINT", "counts": "BIGINT"},
    "sessions": {**_SESSION_CELL, "sessions": "BIGINT", "ended_sessions": "BIGINT"},
    "sessions_shared": {**_SESSION_CELL, "session_id": "VARCHAR", "counts": "BIGINT", "ended_counts": "BIGINT"},
    # every impression whose id came more than once; all impressions are counted by the measure of the cube
    "impressions_shared": {"day": "DATE", **dict.fromkeys(EVENT_DIMENSIONS, "VARCHAR"), "ilrd_id": "VARCHAR"},
    # the first event and the first purchase of each player, as known when the player was new
    "installs": _FIRST_EVENTS,
    "payments": _FIRST_EVENTS,
    # the same of players of whom an earlier event arrived later: these rows replace theirs above
    "installs_moved": _FIRST_EVENTS,
    "payments_moved": _FIRST_EVENTS,
    # the install that an import named of a player, with its build; it may lie before all events of the lake
    "stated_installs": {"game_id": "VARCHAR", "user_id": "VARCHAR", "ts": "TIMESTAMP", "first_build": "VARCHAR"},
    # active players by days since their install; age 0 counts all installs of the day; negative where one has moved
    "returns": {"day": "DATE", "age": "BIGINT", **dict.fromkeys(RETURN_DIMENSIONS, "VARCHAR"), "players": "BIGINT"},
    # numbers of the sets of dimensions and currency that memberships have; read by processing alone
    "combinations": {"combination": "BIGINT", **dict.fromkeys(PLAYER_DIMENSIONS, "VARCHAR"), "currency": "VARCHAR"},
}
"""Columns of every table with their types, by table name."""

ADDED_UP: Final = frozenset((*SUMS, "players", "returners", "sessions", "ended_sessions", "counts", "ended_counts"))
"""Columns that are added up over rows of the same key, in all tables but events."""

ADDED_COLUMNS: Final = frozenset(("first_build",))
"""Columns that parts of an earlier release may lack, and that are null then."""

REPLACED: Final = frozenset(("installs_moved", "payments_moved"))
"""Tables of one file each, which a run replaces as a whole.

All others have parts that are added.
"""

UNDATED: Final = frozenset((*REPLACED, "installs", "payments", "stated_installs", "combinations"))
"""Tables that a reader needs with every part, whatever the interval."""
