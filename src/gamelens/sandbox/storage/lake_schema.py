"""Schema of the lake: events, players, and the aggregates that answer most queries.

An aggregate is the events of a day, grouped by some dimensions, with the measures summed. Measures are defined over
event rows here and nowhere else: processing computes the sums, the planner reads them. Nothing in an aggregate
depends on when a player installed or first paid, so a late event changes only the day it falls on.
"""

from __future__ import annotations

from typing import Final

import msgspec

FORMAT: Final = 4
"""Version of the lake's layout. A lake of another version is rebuilt from the inbox."""

BIG: Final = "DECIMAL(38, 0)"
"""Type of sums of amounts. They exceed 64 bits, and Parquet has no exact 128-bit integers."""

EVENT_DIMENSIONS: Final = (
    *("game_id", "country_code", "platform", "build", "category"),
    *("ad_sdk_name", "ad_type", "ad_action", "severity"),
    *("ilrd_sdk_vendor", "ilrd_adunit_name", "ilrd_network_name", "ilrd_adunit_format"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
"""Dimensions that are columns of an event."""

EVENT_COLUMNS: Final = {
    "seq": "BIGINT",  # the order of arrival
    "ts": "TIMESTAMP",  # event time, UTC
    "day": "DATE",
    **dict.fromkeys(EVENT_DIMENSIONS, "VARCHAR"),
    **dict.fromkeys(("user_id", "session_id", "event_uuid"), "VARCHAR"),
    "ilrd_id": "VARCHAR",  # identity of an impression: i + the vendor's id, else u + event_uuid, else s + seq
    "length": "BIGINT",  # seconds, of a session that ended
    "money": "BIGINT",  # hundredths of a purchase, billionths of an impression, in `currency`
    "currency": "VARCHAR",
}

OF_EVENT: Final = tuple(name for name in EVENT_DIMENSIONS if name != "game_id")
"""Dimensions of a player's install and first purchase that the players' table repeats."""

PLAYER_COLUMNS: Final = {
    "player": "BIGINT",  # a number, unique within the organisation
    "game_id": "VARCHAR",
    "user_id": "VARCHAR",
    "installed_at": "TIMESTAMP",
    "install_seq": "BIGINT",
    **{f"install_{name}": "VARCHAR" for name in OF_EVENT},
    "paid_at": "TIMESTAMP",  # the first purchase; null without one
    "paid_seq": "BIGINT",
    **{f"paid_{name}": "VARCHAR" for name in OF_EVENT},
}

MEASURES: Final = {
    "events": "1",
    "shown": "CASE WHEN category = 'ads' AND ad_action = 'show' THEN 1 ELSE 0 END",
    "purchases": "CASE WHEN category = 'business' THEN 1 ELSE 0 END",
    "impressions": "CASE WHEN category = 'impression' THEN 1 ELSE 0 END",
    "ended": "CASE WHEN category = 'session_end' THEN 1 ELSE 0 END",
}
"""Additive whole numbers of one event, as SQL over its row."""

SECONDS: Final = "CASE WHEN category = 'session_end' THEN length END"
"""Length of a session that ended, as SQL over an event row."""


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The events of each day, grouped and with sums of the measures.

    Attributes:
        name: name of the table.
        dimensions: dimensions it is grouped by.
        keys: further columns it is grouped by, each with its SQL over an event row.
        money: SQL over an event row of the amount that is summed.
        order: sort order of the rows.
    """

    name: str
    dimensions: tuple[str, ...]
    keys: dict[str, str]
    money: str
    order: str = "category, day"
    """Sort order of the rows, such that a query skips most row groups of a file."""

    @property
    def columns(self) -> dict[str, str]:
        """Every column with its type."""
        kinds = {"player": "BIGINT", "session_id": "VARCHAR", "currency": "VARCHAR"}
        return {
            "day": "DATE",
            **dict.fromkeys(self.dimensions, "VARCHAR"),
            **{name: kinds[name] for name in self.keys},
            **dict.fromkeys(MEASURES, "BIGINT"),
            "seconds": BIG,
            "money": BIG,
            **({"is_alone": "BOOLEAN"} if self.is_of_players else {}),
        }

    @property
    def is_of_players(self) -> bool:
        """Whether players are among the keys.

        The column `is_alone` then marks a row that is the only one of its player on that day.
        """
        return "player" in self.keys


_SLIM: Final = ("game_id", "country_code", "platform", "build", "category")

AGGREGATES: Final = (
    Aggregate(name="slim", dimensions=_SLIM, keys={"currency": "currency"}, money="money"),
    Aggregate(
        name="cube",
        dimensions=tuple(
            name for name in EVENT_DIMENSIONS if name not in ("install_publisher", "ab_id", "ab_variant_id")
        ),
        keys={"currency": "currency"},
        money="money",
    ),
    # A player has one set of values for most of a day, so these dimensions make few more rows than players.
    Aggregate(
        name="active",
        dimensions=("game_id", "country_code", "platform", "build", "install_publisher", "ab_id", "ab_variant_id"),
        keys={"player": "player", "currency": "CASE WHEN category = 'business' THEN currency END"},
        money="CASE WHEN category = 'business' THEN money END",
        order="day",
    ),
    Aggregate(
        name="sessions",
        dimensions=("game_id", "country_code", "platform", "build", "install_publisher", "ab_id", "ab_variant_id"),
        keys={"session_id": "session_id"},
        money="NULL",
        order="day",
    ),
)
"""Aggregates, smallest first: the planner takes the first one that can answer."""

RETURN_DIMENSIONS: Final = ("game_id", "country_code", "platform", "build")
RETURN_COLUMNS: Final = {
    "day": "DATE",
    "age": "BIGINT",  # days since the install; age 0 counts all installs of the day
    **dict.fromkeys(RETURN_DIMENSIONS, "VARCHAR"),  # as the install event had them
    "players": "BIGINT",
}
"""Players active on a day, by age.

Unlike the aggregates it depends on installs, and is rebuilt when they move.
"""

COLUMNS: Final = {
    "events": EVENT_COLUMNS,
    "players": PLAYER_COLUMNS,
    **{aggregate.name: aggregate.columns for aggregate in AGGREGATES},
    "returns": RETURN_COLUMNS,
}
"""Columns of every table with their types, by table name."""
