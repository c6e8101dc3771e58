"""What the tables of the lake hold: events, players, and the aggregates that most questions are answered from.

An aggregate is the events of a day, grouped by some dimensions, with the measures summed. Measures are written over
event rows here and nowhere else: processing sums them, the planner reads the sums. Nothing in an aggregate depends on
when a player installed or first paid, so a late event touches only the day it falls on.
"""

from __future__ import annotations

from typing import Final

import msgspec

FORMAT: Final = 4
"""Of the lake. A lake of another format is not read: it is made anew from the inbox."""

BIG: Final = "DECIMAL(38, 0)"
"""Sums of amounts: past 64 bits, and exact in Parquet, which 128-bit integers are not."""

EVENT_DIMENSIONS: Final = (
    *("game_id", "country_code", "platform", "build", "category"),
    *("ad_sdk_name", "ad_type", "ad_action", "severity"),
    *("ilrd_sdk_vendor", "ilrd_adunit_name", "ilrd_network_name", "ilrd_adunit_format"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
"""Dimensions that an event has by itself."""

EVENT_COLUMNS: Final = {
    "seq": "BIGINT",  # the order of arrival
    "ts": "TIMESTAMP",  # event time, UTC
    "day": "DATE",
    **dict.fromkeys(EVENT_DIMENSIONS, "VARCHAR"),
    **dict.fromkeys(("user_id", "session_id", "event_uuid"), "VARCHAR"),
    "ilrd_id": "VARCHAR",  # of an impression: i and the vendor's id, else u and event_uuid, else s and seq
    "length": "BIGINT",  # seconds, of a session that ended
    "money": "BIGINT",  # hundredths of a purchase, billionths of an impression, in `currency`
    "currency": "VARCHAR",
}

OF_EVENT: Final = tuple(name for name in EVENT_DIMENSIONS if name != "game_id")
"""What the players' table repeats of two events of each player: its install and its first purchase."""

PLAYER_COLUMNS: Final = {
    "player": "BIGINT",  # a number of the organisation's own, never given twice
    "game_id": "VARCHAR",
    "user_id": "VARCHAR",
    "installed_at": "TIMESTAMP",
    "install_seq": "BIGINT",
    **{f"install_{name}": "VARCHAR" for name in OF_EVENT},
    "paid_at": "TIMESTAMP",  # the first purchase; null for who never paid
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
"""Whole numbers of each event that add up."""

SECONDS: Final = "CASE WHEN category = 'session_end' THEN length END"


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The events of each day, grouped by *dimensions* and what else is in *keys*, with sums of the measures."""

    name: str
    dimensions: tuple[str, ...]
    keys: dict[str, str]
    money: str
    order: str = "category, day"
    """Of its rows: what is asked for together lies together, and the rest of a file is not read."""

    @property
    def columns(self) -> dict[str, str]:
        """Every column and its type."""
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
        """Whether players are among its keys. Then `is_alone` marks a row that is all there is of somebody that day."""
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
    # Players keep their values for most of a day, so that dimensions make few more rows than there are players.
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
"""Smallest first."""

RETURN_DIMENSIONS: Final = ("game_id", "country_code", "platform", "build")
RETURN_COLUMNS: Final = {
    "day": "DATE",
    "age": "BIGINT",  # days since the install; at 0 are all who installed on that day
    **dict.fromkeys(RETURN_DIMENSIONS, "VARCHAR"),  # as the install event had them
    "players": "BIGINT",
}
"""Who was there on a day, by age: unlike the aggregates it depends on installs, and follows them when they move."""

COLUMNS: Final = {
    "events": EVENT_COLUMNS,
    "players": PLAYER_COLUMNS,
    **{aggregate.name: aggregate.columns for aggregate in AGGREGATES},
    "returns": RETURN_COLUMNS,
}
"""Columns and their types of every table, by name."""
