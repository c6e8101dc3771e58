"""The atoms of metrics, one row each: what a part of a metric sums or counts, over events and over the other tables.

An atom is a number of each row, which is summed, or a key, whose values are counted once each. It is defined over the
rows of events. Its meaning is the same in all tables with it, so the planner may choose any of them.

A key may also be counted by *cells*: one table has the number of memberships in each cell, and its shared table has the
keys with several memberships. Each of these keys adds one to the count, and each membership of it takes one off
(`lake_schema`).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from gamelens.wire.currencies import RATE_SCALE
from gamelens.wire.dimensions import Category
from gamelens.wire.intervals import Granularity

BIG: Final = "DECIMAL(38, 0)"
"""Type of sums of amounts. They exceed 64 bits, and Parquet has no exact 128-bit integers."""

Join = Literal["installs", "payments", "rates"]
"""What a table is joined with: each player's install or first purchase, or the rate of each currency."""


class Read(msgspec.Struct, frozen=True):
    """One way to read an atom, or a dimension, from the rows of a table.

    Attributes:
        sql: number to sum, or key to count once. It may name `{player}`, a player's key, and the parameter `$since`.
        joins: what the table is joined with.
        where: condition without which a row adds nothing.
        cells: number of memberships that a row adds instead of the key.
        shared: shared table of these cells; empty for the shared table itself.
        period: bucket in which cells count, or `all` for any.
    """

    sql: str = "NULL"
    joins: tuple[Join, ...] = ()
    where: str = ""
    cells: str = ""
    shared: str = ""
    period: Granularity = "all"

    def within(self, period: Granularity) -> Read | None:
        """Return how buckets of *period* are counted: by cells or by keys, or None if by neither."""
        if self.cells and self.period in ("all", period):
            return msgspec.structs.replace(self, sql="NULL") if self.shared else self
        return None if self.sql == "NULL" else msgspec.structs.replace(self, cells="", shared="")


class Atom(msgspec.Struct, frozen=True):
    """One atom.

    Attributes:
        name: name of the atom.
        event: its definition, over a row of events; None for an atom of cohorts, which are not events.
        category: the only category of events that add to it.
        stored: type of its sums; empty if tables of sums do not have it.
        is_player: whether it is the key of a player.
        others: how other tables have it, by table.
        per_usd: what makes one US dollar in sums of money.
    """

    name: str
    event: Read | None
    category: Category | None = None
    stored: str = ""
    is_player: bool = False
    others: dict[str, Read] = {}
    per_usd: int = 0

    def reads(self) -> dict[str, Read]:
        """Return how each table has it, by table."""
        reads = {"events": self.event} if self.event else {}
        reads |= dict.fromkeys(_WITH_SUMS, Read(self.name)) if self.stored else {}
        reads |= self.others
        where = f"category = '{self.category}'"
        return {
            table: msgspec.structs.replace(read, where=where) if self.category and table in _WITH_CATEGORY else read
            for table, read in reads.items()
        }


_WITH_SUMS: Final = ("slim", "cube", "active", "daily_players")
_WITH_CATEGORY: Final = ("events", "slim", "cube")
_USD: Final = "CAST(money AS HUGEINT) * scaled"
_SESSION: Final = "ROW(game_id, session_id)"
_IMPRESSION: Final = "ROW(game_id, ilrd_id)"
_PAID: Final = "currency IS NOT NULL"  # of a membership
_BACK: Final = "day > install_day"
_BACK_AFTER: Final = "date_diff('day', install_day, day) = $since"


def when(condition: str, value: str, otherwise: str | None = None) -> str:
    """Return the SQL of *value* where *condition* is true, else of *otherwise* or null."""
    return f"CASE WHEN {condition} THEN {value} {'' if otherwise is None else f'ELSE {otherwise} '}END"


def _in(category: str, value: str, otherwise: str | None = None) -> str:
    return when(f"category = '{category}'", value, otherwise)


def _memberships(condition: str = "") -> dict[str, Read]:
    """Return how tables of memberships count players with a membership that meets *condition*."""

    def only(value: str) -> str:
        return when(condition, value) if condition else value

    periods: tuple[tuple[str, Granularity], ...] = (("daily", "day"), ("weekly", "week"), ("monthly", "month"))
    reads = {"active": Read(only("player"), cells=only("counts"), shared="daily_players_shared", period="day")}
    for name, period in periods:
        shared = f"{name}_players_shared"
        reads[f"{name}_players"] = Read(cells=only("players"), shared=shared, period=period)
        reads[shared] = Read(only("player"), cells=only("-counts"))
    return reads


def _returners(condition: str) -> Read:
    """Return how players of `active` are counted who have a day that meets *condition*."""
    player, counts = when(condition, "player"), when(condition, "counts")
    return Read(player, ("installs",), cells=counts, shared="daily_players_shared", period="day")


ATOMS: Final[dict[str, Atom]] = {
    atom.name: atom
    for atom in (
        Atom("events", Read("1"), stored="BIGINT"),
        Atom(
            "shown",
            Read(when("category = 'ads' AND ad_action = 'show'", "1", "0")),
            category="ads",
            stored="BIGINT",
        ),
        Atom("purchases", Read(_in("business", "1", "0")), category="business", stored="BIGINT"),
        Atom("impressions", Read(_in("impression", "1", "0")), category="impression", stored="BIGINT"),
        Atom("ended", Read(_in("session_end", "1", "0")), category="session_end", stored="BIGINT"),
        Atom("seconds", Read(_in("session_end", "length")), category="session_end", stored=BIG),
        Atom(
            "paid",
            Read(_in("business", _USD), ("rates",)),
            category="business",
            others={
                **dict.fromkeys(("slim", "cube"), Read(_in("business", _USD), ("rates",))),
                **dict.fromkeys(("active", "daily_players"), Read(_USD, ("rates",))),
            },
            per_usd=100 * RATE_SCALE,
        ),
        Atom(
            "earned",
            Read(_in("impression", _USD), ("rates",)),
            category="impression",
            others=dict.fromkeys(("slim", "cube"), Read(_in("impression", _USD), ("rates",))),
            per_usd=10**9 * RATE_SCALE,
        ),
        Atom(
            "installed",
            Read(when("seq = install_seq", "1", "0"), ("installs",)),
            others={"installs": Read("1")},
        ),
        Atom(
            "converted",
            Read(when("seq = paid_seq", "1", "0"), ("payments",)),
            category="business",
            others={"payments": Read("1")},
        ),
        Atom(
            "player_key",
            Read("{player}"),
            is_player=True,
            others=dict.fromkeys(("active", "installs"), Read("player")),
        ),
        Atom("player", Read("{player}"), is_player=True, others=_memberships()),
        Atom(
            "payer", Read(_in("business", "{player}")), category="business", is_player=True, others=_memberships(_PAID)
        ),
        Atom(
            "returner",
            Read(when(_BACK, "{player}"), ("installs",)),
            is_player=True,
            others={
                "active": _returners(_BACK),
                "daily_players": Read(cells="returners", shared="daily_players_shared", period="day"),
                "daily_players_shared": Read(when("returners > 0", "player"), cells="-returners"),
            },
        ),
        Atom(
            "returner_after",
            Read(when(_BACK_AFTER, "{player}"), ("installs",)),
            is_player=True,
            others={
                "active": _returners(_BACK_AFTER),
                "daily_players_shared": Read(
                    when(_BACK_AFTER, "player"), ("installs",), cells=when(_BACK_AFTER, "-counts")
                ),
            },
        ),
        Atom(
            "session",
            Read(when("session_id IS NOT NULL", _SESSION)),
            others={
                "sessions": Read(cells="sessions", shared="sessions_shared"),
                "sessions_shared": Read(when("session_id IS NOT NULL", _SESSION), cells="-counts"),
            },
        ),
        Atom(
            "ended_session",
            Read(_in("session_end", when("session_id IS NOT NULL", _SESSION))),
            category="session_end",
            others={
                "sessions": Read(cells="ended_sessions", shared="sessions_shared"),
                "sessions_shared": Read(
                    when("ended_counts > 0", when("session_id IS NOT NULL", _SESSION)), cells="-ended_counts"
                ),
            },
        ),
        Atom(
            "impression",
            Read(_in("impression", _IMPRESSION)),
            category="impression",
            others={
                **dict.fromkeys(
                    ("slim", "cube", "daily_players"), Read(cells="impressions", shared="impressions_shared")
                ),
                "impressions_shared": Read(_IMPRESSION, cells="-1"),
            },
        ),
        Atom("cohort", None, others={"returns": Read("players", where="age = 0")}),
        Atom("returned", None, others={"returns": Read("players", where="age = $since")}),
    )
}
"""All atoms, by name."""


def reads_of(table: str) -> dict[str, Read]:
    """Return how *table* has each atom that it offers, by atom."""
    return {atom.name: reads[table] for atom in ATOMS.values() if table in (reads := atom.reads())}
