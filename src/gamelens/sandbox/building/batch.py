"""The new events of an organisation as relations: what they meet and what they add.

A relation is a table of the engine that is made when something first names it: `FROM {self.users}` makes `users`, then
reads it. Each says which columns and rows it has; *member* stands for the columns `PLAYER_DIMENSIONS`. What a batch
must know of earlier events comes from a fact source (`event_facts`); what it writes is in `batch_builder`. Repeats are
left out before (`repeated_events`): `fresh` has the events that count.

A *moment* orders events by time and then by arrival, as one number. A *combination* is the number of a set of values of
the member dimensions and the currency. A *membership* is a player in a period, or a session on a day, with one
combination (see `lake_schema` for the tables).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Final

from gamelens.sandbox.building.event_facts import (
    DAY_NUMBER,
    DAY_US,
    NEVER,
    SAME_CELL,
    SAME_WITHOUT_MONEY,
    RunFacts,
    TableFacts,
)
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.storage.keyed_runs import APART, AT_EVENT, BY_EVENT, LAST_DAY
from gamelens.sandbox.storage.lake_schema import (
    MEASURES,
    PLAYER_DIMENSIONS,
    PURCHASE_CURRENCY,
    SUMS,
)

SAME, NEW, MOVED, CONFIRMED = range(4)
"""Changes of a player's first event.

None, the player is new, an earlier event has come late or an import states another install, or it states this one.
"""

WEEK: Final = "CAST(date_trunc('week', day) AS DATE)"
MONTH: Final = "CAST(date_trunc('month', day) AS DATE)"

_SEQS: Final = 1 << 64
_LEAST_SEQ: Final = -(1 << 63)
_APART_BY: Final = 3 << 61  # in a moment, the first event to arrive comes after all that are at the stated time
_MEMBER: Final = ", ".join(PLAYER_DIMENSIONS)
_CELL: Final = f"{_MEMBER}, currency"


def _moment(us: str, seq: str) -> str:
    """Return the SQL of a moment, of its time in microseconds and its number of arrival."""
    return f"(CAST({us} AS HUGEINT) * {_SEQS} + (CAST({seq} AS HUGEINT) - {_LEAST_SEQ}))"


def _us(moment: str) -> str:
    return f"CAST({moment} // {_SEQS} AS BIGINT)"


def _seq(moment: str) -> str:
    return f"CAST({moment} % {_SEQS} + {_LEAST_SEQ} AS BIGINT)"


def sums_sql(money: str) -> str:
    """Return the SQL of the sums of events, with *money* as the SQL of their money."""
    summed = MEASURES | {"money": money}
    return ", ".join(f"CAST(sum({sql}) AS {SUMS[name]}) AS {name}" for name, sql in summed.items())


def relation(rows: Callable[[Any], str]) -> cached_property[str]:
    """Make the name of a table of a method that returns the SQL of its rows. It is made when it is first named."""

    @wraps(rows)
    def named(batch: Batch) -> str:
        batch.sql.create(rows.__name__, rows(batch))
        return rows.__name__

    return cached_property(named)


class Batch:
    """What the events of the table `fresh` add, and what they meet. They are of one organisation.

    What came before is asked of *facts*. *stated* names a relation of installs that an import names, with the columns
    of `stated_installs`.
    """

    def __init__(self, writer: PartWriter, facts: RunFacts | TableFacts, stated: str | None = None) -> None:
        self.sql, self.writer, self.facts, self.has_stated = writer.sql, writer, facts, stated is not None
        self._stated_rows = stated

    @relation
    def users(self) -> str:
        """day, member, user_id, currency, sums, first and more: events of a day, by user and currency of a purchase.

        `first` is the moment of the earliest. With stated installs there are stated_us and first_build of the player;
        `first_seq`, the number of the first event to arrive; and `stated_seq`, the first number at the stated time.
        """
        of_stated, joined = "", ""
        if self.has_stated:
            of_stated = """,
                stated_us, first_build, min(seq) AS first_seq,
                min(seq) FILTER (WHERE epoch_us(ts) = stated_us) AS stated_seq"""
            joined = f"LEFT JOIN {self.stated} USING (game_id, user_id)"
        return f"""
            SELECT day, {_MEMBER}, user_id, {PURCHASE_CURRENCY} AS currency,
                {sums_sql("CASE WHEN category = 'business' THEN money END")},
                min({_moment("epoch_us(ts)", "seq")}) AS first{of_stated}
            FROM fresh {joined} GROUP BY ALL"""

    @relation
    def visits(self) -> str:
        """day, member, session_id, ended: sessions of a day, and whether they ended there."""
        return f"""
            SELECT day, {_MEMBER}, session_id, bool_or(category = 'session_end') AS ended
            FROM fresh WHERE session_id IS NOT NULL GROUP BY ALL"""

    @relation
    def stated(self) -> str:
        """game_id, user_id, stated_us, first_build: the earliest install that the import names of a player."""
        return f"""
            SELECT game_id, user_id, epoch_us(ts) AS stated_us, min(first_build) AS first_build FROM {self._stated_rows}
            SEMI JOIN (SELECT game_id, user_id, min(ts) AS ts FROM {self._stated_rows} GROUP BY game_id, user_id)
            AS earliest USING (game_id, user_id, ts)
            GROUP BY game_id, user_id, ts"""

    @cached_property
    def _installed_users(self) -> str:
        """SQL of `users` with `installed`, the moment of the install that a row tells of.

        It is the stated one, or else the moment of the row's first event. Without an event at the stated time, `build`
        is the stated build, if one is.
        """
        if not self.has_stated:
            return f"(SELECT *, first AS installed, CAST(NULL AS BIGINT) AS stated_us FROM {self.users})"
        build = "CASE WHEN stated_seq IS NULL THEN coalesce(first_build, build) ELSE build END AS build"
        member = ", ".join(build if name == "build" else name for name in PLAYER_DIMENSIONS)
        seq = f"coalesce(stated_seq, first_seq + {_APART_BY})"
        return f"""(
            SELECT {member}, user_id, currency, first, stated_us,
                CASE WHEN stated_us IS NULL THEN first ELSE {_moment("stated_us", seq)} END AS installed
            FROM {self.users})"""

    @relation
    def added_combinations(self) -> str:
        """combination, member, currency: those that the lake lacks, with the next numbers."""
        without_money = f"SELECT {_MEMBER}, CAST(NULL AS VARCHAR) AS currency FROM"
        of_installs = f"UNION {without_money} {self._installed_users} AS users" if self.has_stated else ""
        return f"""
            SELECT {self.writer.snapshot.rows("combinations")} + row_number() OVER (ORDER BY {_CELL}) AS combination,
                {_CELL}
            FROM (
                SELECT {_CELL} FROM {self.users} UNION {without_money} {self.users} {of_installs}
                EXCEPT SELECT {_CELL} FROM {self.writer.known("combinations")}
            ) AS added"""

    @relation
    def combined(self) -> str:
        """combination, member, currency: all combinations of the lake and of the batch."""
        both = (self.writer.known("combinations"), self.added_combinations)
        return " UNION ALL ".join(f"SELECT combination, {_CELL} FROM {table}" for table in both)

    @relation
    def found(self) -> str:
        """game_id, user_id, earliest, stated_us and more: players of the batch.

        `earliest` is the moment of the install: installed_us, stated and install_seq; `combination` is the number
        of its event without a currency. Without a purchase both paid_us and paid_seq are `NEVER`. `stated_us` is the
        stated install. The batch may know a player by it alone: then `earliest` and the install's columns are null.
        """
        seq, others = _seq("earliest"), ""
        is_apart = f"{seq} >= {1 << 61}"
        if self.has_stated:
            others = f"""
            UNION ALL
            SELECT game_id, user_id, NULL, stated_us, NULL, NULL, NULL, NULL, {NEVER}, {NEVER} FROM {self.stated}
            ANTI JOIN firsts USING (game_id, user_id)"""
        return f"""
            WITH firsts AS (
                SELECT users.game_id, users.user_id, min(installed) AS earliest,
                    arg_min(combination, installed) AS combination, min(stated_us) AS stated_us,
                    min(first) FILTER (WHERE users.currency IS NOT NULL) AS purchase
                FROM {self._installed_users} AS users
                JOIN {self.combined} AS combined ON {SAME_WITHOUT_MONEY.format("users")}
                WHERE users.user_id IS NOT NULL GROUP BY users.game_id, users.user_id
            )
            SELECT game_id, user_id, earliest, stated_us, {_us("earliest")} AS installed_us,
                CASE WHEN stated_us IS NULL THEN {BY_EVENT} WHEN {is_apart} THEN {APART} ELSE {AT_EVENT} END AS stated,
                {seq} - CASE WHEN {is_apart} THEN {_APART_BY} ELSE 0 END AS install_seq, combination,
                coalesce({_us("purchase")}, {NEVER}) AS paid_us, coalesce({_seq("purchase")}, {NEVER}) AS paid_seq
            FROM firsts{others}"""

    @relation
    def known_players(self) -> str:
        """game_id, user_id, player, installed_us, stated, install_seq, combination, paid_us, paid_seq: as known."""
        return self.facts.known_players(self.found, self.combined)

    @relation
    def numbers(self) -> str:
        """game_id, user_id, player and more: players of the batch by number. New players get the next.

        install_change and payment_change are `SAME`, `NEW`, `MOVED` or (of an install) `CONFIRMED`; installed_us,
        stated, install_seq, combination, paid_us and paid_seq are as known with the batch; old_us, old_stated and
        old_combination describe the install before.

        A stated install comes before all events, however early their time is. It has the values of the event that was
        known where that is at its time, or where the batch has no event of the player.
        """
        of_install, of_payment = ("installed_us", "stated", "install_seq", "combination"), ("paid_us", "paid_seq")
        of_known = ("player", *of_install, *of_payment)
        known = ", ".join(f"known.{name} AS known_{name}" for name in of_known)
        names = ", ".join(f"known_{name}" for name in of_known)
        comes_before = "({0} < known_{0} OR ({0} = known_{0} AND {1} < known_{1}))"
        wins = f"(stated > {BY_EVENT} AND known_stated = {BY_EVENT})"
        is_alike = f"(stated = {BY_EVENT}) = (known_stated = {BY_EVENT})"
        is_at_event = f"(known_stated = {BY_EVENT} AND known_installed_us = stated_us)"
        later = [f"CASE WHEN is_earlier THEN {name} ELSE known_{name} END AS {name}" for name in of_install]
        later += [
            f"CASE WHEN pays_earlier THEN {name} ELSE coalesce(known_{name}, {NEVER}) END AS {name}"
            for name in of_payment
        ]
        return f"""
            WITH compared AS (
                SELECT found.*, {known} FROM {self.found} AS found LEFT JOIN {self.known_players} AS known
                ON found.game_id = known.game_id AND found.user_id = known.user_id
            ), placed AS (
                SELECT * FROM compared WHERE installed_us IS NOT NULL AND NOT coalesce({is_at_event}, FALSE)
                UNION ALL
                SELECT game_id, user_id, earliest, stated_us, stated_us AS installed_us,
                    CASE WHEN {is_at_event} THEN {AT_EVENT} ELSE {APART} END AS stated,
                    known_install_seq AS install_seq, known_combination AS combination, paid_us, paid_seq, {names}
                FROM compared WHERE known_player IS NOT NULL AND (installed_us IS NULL OR {is_at_event})
            ), judged AS (
                SELECT *, known_player IS NULL OR {wins} OR ({is_alike} AND (installed_us < known_installed_us OR (
                        installed_us = known_installed_us AND (stated > known_stated OR (
                            stated = known_stated AND install_seq < known_install_seq))))) AS is_earlier,
                    paid_us <> {NEVER} AND (known_player IS NULL OR {comes_before.format("paid_us", "paid_seq")})
                    AS pays_earlier
                FROM placed
            )
            SELECT game_id, user_id,
                coalesce(known_player, {self.writer.snapshot.rows("installs")}
                    + row_number() OVER (PARTITION BY known_player IS NULL ORDER BY earliest)) AS player,
                CASE WHEN known_player IS NULL THEN {NEW} WHEN NOT is_earlier THEN {SAME}
                    WHEN installed_us = known_installed_us AND install_seq = known_install_seq THEN {CONFIRMED}
                    ELSE {MOVED} END AS install_change,
                CASE WHEN NOT pays_earlier THEN {SAME} WHEN coalesce(known_paid_us, {NEVER}) = {NEVER} THEN {NEW}
                    ELSE {MOVED} END AS payment_change,
                {", ".join(later)},
                known_installed_us AS old_us, known_stated AS old_stated, known_combination AS old_combination
            FROM judged"""

    @relation
    def active_rows(self) -> str:
        """day, member, currency, sums, player, combination: `users`, whose player is null where no user is named."""
        cell = ", ".join(f"users.{name}" for name in (*PLAYER_DIMENSIONS, "currency"))
        return f"""
            SELECT day, {cell}, {", ".join(SUMS)}, player, combination FROM {self.users} AS users
            LEFT JOIN (SELECT game_id, user_id, player FROM {self.numbers}) AS known
            ON users.game_id = known.game_id AND users.user_id = known.user_id
            JOIN {self.combined} AS combined ON {SAME_CELL.format("users")}"""

    @relation
    def known_days(self) -> str:
        """day, player, combination: earlier memberships of days, in the weeks and months of players' events."""
        first, last = f"least({WEEK}, {MONTH})", f"greatest(CAST({WEEK} + INTERVAL 6 DAY AS DATE), last_day(day))"
        spans = f"""
            SELECT DISTINCT player, {DAY_NUMBER.format(first)} AS first, {DAY_NUMBER.format(last)} AS last
            FROM {self.active_rows} WHERE player IS NOT NULL"""
        return self.facts.known_days(spans, self.combined)

    @relation
    def new_daily(self) -> str:
        """day, player, combination: memberships of days that the batch adds."""
        return self._added("day", self.known_days)

    @relation
    def old_weekly(self) -> str:
        """day, player, combination: earlier memberships of weeks, by their first day."""
        return f"SELECT DISTINCT {WEEK} AS day, player, combination FROM {self.known_days}"

    @relation
    def new_weekly(self) -> str:
        """day, player, combination: memberships of weeks that the batch adds."""
        return self._added(WEEK, self.old_weekly)

    @relation
    def old_monthly(self) -> str:
        """day, player, combination: earlier memberships of months, by their first day."""
        return f"SELECT DISTINCT {MONTH} AS day, player, combination FROM {self.known_days}"

    @relation
    def new_monthly(self) -> str:
        """day, player, combination: memberships of months that the batch adds."""
        return self._added(MONTH, self.old_monthly)

    def _added(self, first_day: str, old: str) -> str:
        """Return the memberships of the periods that begin on *first_day*, but the *old* ones."""
        return f"""
            SELECT DISTINCT {first_day} AS day, player, combination FROM {self.active_rows} WHERE player IS NOT NULL
            EXCEPT SELECT day, player, combination FROM {old}"""

    @cached_property
    def moves(self) -> dict[str, int]:
        """How many players of the batch have another first event, and another first purchase, than was known."""
        changes = ("install_change", "payment_change")
        counts = ", ".join(f"count(CASE WHEN {change} = {MOVED} THEN 1 END) AS {change}" for change in changes)
        ((installs, payments),) = self.sql.run(f"SELECT {counts} FROM {self.numbers}")
        return {"installs": installs, "payments": payments}

    @cached_property
    def has_several(self) -> bool:
        """Whether a player has several combinations in the weeks and months of the batch, or another install.

        Otherwise the batch adds nothing to the shared tables of players.
        """
        seen = (self.new_daily, self.known_days, self.new_weekly, self.new_monthly)
        members = " UNION ALL ".join(f"SELECT player, combination FROM {table}" for table in seen)
        several = f"FROM ({members}) AS members GROUP BY player HAVING min(combination) < max(combination)"
        players = f"SELECT count(*) FROM (SELECT player {several}) AS several"
        return self.moves["installs"] > 0 or self.sql.run(players) != [(0,)]

    @relation
    def changed_returns(self) -> str:
        """day, player, combination, is_shared, returners: earlier memberships that are returns now, or no longer.

        They lie between the day of the install before the batch and that to which it was moved: `returners` is 1 where
        that is earlier, -1 where a stated install is later. Those of a player with several on a day are in the shared
        table (`is_shared`).
        """
        new_day, old_day = (f"CAST({name} // {DAY_US} AS BIGINT)" for name in ("installed_us", "old_us"))
        moved = f"FROM {self.numbers} WHERE install_change = {MOVED} AND {new_day} <> {old_day}"
        days = (
            f"SELECT player, least({new_day}, {old_day}) + 1 AS first, greatest({new_day}, {old_day}) AS last {moved}"
        )
        returned = self.facts.known_days(days, self.combined)
        return f"""
            SELECT returned.*, count(*) OVER (PARTITION BY player, day) > 1 AS is_shared, returners
            FROM ({returned}) AS returned JOIN (
                SELECT player, CASE WHEN {new_day} < {old_day} THEN 1 ELSE -1 END AS returners {moved}
            ) AS moved USING (player)"""

    @relation
    def moved_days(self) -> str:
        """day, player, combination: all earlier memberships of days of players whose install has moved."""
        spans = f"SELECT player, 0 AS first, {LAST_DAY} AS last FROM {self.numbers} WHERE install_change = {MOVED}"
        return self.facts.known_days(spans, self.combined)

    @relation
    def new_days(self) -> str:
        """day, player: players without an earlier event on the day."""
        return f"SELECT DISTINCT day, player FROM {self.new_daily} ANTI JOIN {self.known_days} USING (day, player)"

    @relation
    def session_ids(self) -> str:
        """sid, game_id, session_id: sessions of the batch, and a key of each."""
        return f"""
            SELECT {self.facts.key_sql("game_id", "session_id")} AS sid, game_id, session_id
            FROM (SELECT DISTINCT game_id, session_id FROM {self.visits}) AS ids"""

    @relation
    def old_sessions(self) -> str:
        """sid, day, combination, ended: earlier memberships of these sessions."""
        return self.facts.old_sessions(self.session_ids, self.combined)

    @relation
    def session_changes(self) -> str:
        """sid, day, combination, counts, ended_counts: memberships that are new (`counts` 1) or end only now (0).

        `ended_counts` is 1 where the membership has its first `session_end`.
        """
        return f"""
            WITH new AS (
                SELECT sid, day, combination, ended FROM {self.visits} AS visits JOIN {self.session_ids} AS ids
                ON visits.game_id = ids.game_id AND visits.session_id = ids.session_id
                JOIN {self.combined} AS combined ON {SAME_WITHOUT_MONEY.format("visits")}
            )
            SELECT sid, day, combination, CAST(old.ended IS NULL AS INTEGER) AS counts,
                CAST(new.ended AND NOT coalesce(old.ended, FALSE) AS INTEGER) AS ended_counts
            FROM new LEFT JOIN {self.old_sessions} AS old USING (sid, day, combination)
            WHERE old.ended IS NULL OR (new.ended AND NOT old.ended)"""

    @relation
    def impression_ids(self) -> str:
        """iid, game_id, ilrd_id, added: ids that vendors gave impressions, a key of each, and how often it comes.

        Ids that no vendor gave are unique (`wire.dimensions.EVENT_COLUMNS`) and begin otherwise.
        """
        return f"""
            SELECT {self.facts.key_sql("game_id", "ilrd_id")} AS iid, game_id, ilrd_id, added FROM (
                SELECT game_id, ilrd_id, count(*) AS added FROM fresh
                WHERE category = 'impression' AND starts_with(ilrd_id, 'i') GROUP BY game_id, ilrd_id
            ) AS ids"""

    @relation
    def repeated_impressions(self) -> str:
        """game_id, ilrd_id, had, day: ids that came more than once, `had` times before, first on `day`."""
        return f"""
            SELECT game_id, ilrd_id, coalesce(had, 0) AS had, day FROM {self.impression_ids}
            LEFT JOIN ({self.facts.old_impressions(self.impression_ids)}) AS old USING (iid)
            WHERE added + coalesce(had, 0) >= 2"""
