"""Players of a batch: their numbers, first events and first purchases.

A new player gets the next number and a row of `installs`. A player whose event comes late may have an earlier first
event than was known: its row in `installs_moved` then replaces that of `installs` (Wire 4.9, Late events). First
purchases are kept in the same way.
"""

from __future__ import annotations

from typing import Final

from gamelens.sandbox.building.fact_source import NEVER, SAME_WITHOUT_MONEY, FactSource
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.storage.lake_schema import COLUMNS, OF_EVENT, PLAYER_DIMENSIONS

DAY_US: Final = 86_400_000_000

_SAME, _NEW, _MOVED = range(3)

_SEQS: Final = 1 << 64
_LEAST_SEQ: Final = -(1 << 63)
MOMENT: Final = f"(CAST(epoch_us(ts) AS HUGEINT) * {_SEQS} + (CAST(seq AS HUGEINT) - {_LEAST_SEQ}))"
"""SQL of the place of an event in time: by event time, then by arrival."""
_TIME: Final = f"CAST({{}} // {_SEQS} AS BIGINT)"
_SEQ: Final = f"CAST({{}} % {_SEQS} + {_LEAST_SEQ} AS BIGINT)"

STATED: Final = 1 << 61
"""Least `install_seq` of an install that an import states and that lies before all events.

It is the number of the player's first event to arrive, moved beyond the numbers of all events: of two moments with the
same time, that of an event comes first.
"""
STATED_BY: Final = 3 << 61
"""Amount that such a number is moved by."""

_FOUND: Final = f"""
    WITH firsts AS (
        SELECT users.game_id, users.user_id, min(installed) AS earliest, arg_min(combination, installed) AS combination,
            min(first) FILTER (WHERE users.currency IS NOT NULL) AS purchase
        FROM {{users}} JOIN combined ON {SAME_WITHOUT_MONEY.format("users")}
        WHERE users.user_id IS NOT NULL GROUP BY users.game_id, users.user_id
    )
    SELECT game_id, user_id, earliest,
        {_TIME.format("earliest")} AS installed_us, {_SEQ.format("earliest")} AS install_seq,
        coalesce({_TIME.format("purchase")}, {NEVER}) AS paid_us,
        coalesce({_SEQ.format("purchase")}, {NEVER}) AS paid_seq, combination
    FROM firsts"""  # noqa: S608

_USERS: Final = "(SELECT *, first AS installed FROM users) AS users"
_IS_STATED: Final = f"stated_us < {_TIME.format('first')}"
_DIMENSIONS: Final = ", ".join(
    f"CASE WHEN {_IS_STATED} THEN coalesce(first_build, build) ELSE build END AS build" if name == "build" else name
    for name in PLAYER_DIMENSIONS
)
USERS_WITH_STATED: Final = f"""(
    SELECT {_DIMENSIONS}, user_id, currency, first, CASE
        WHEN {_IS_STATED}
        THEN CAST(stated_us AS HUGEINT) * {_SEQS} + (CAST(first_seq AS HUGEINT) + {STATED_BY} - {_LEAST_SEQ})
        ELSE first END AS installed
    FROM users LEFT JOIN stated USING (game_id, user_id)) AS users"""  # noqa: S608
"""SQL of `users` with the time of the install that each row tells, and with the build that `stated` has of it."""


def write_stated_installs(writer: PartWriter) -> None:
    """Create `stated`, the earliest install of each player in `stated_rows`.

    Writes what is new of it.
    """
    writer.sql.create(
        "stated",
        """
        SELECT game_id, user_id, epoch_us(ts) AS stated_us, min(first_build) AS first_build FROM stated_rows
        SEMI JOIN (SELECT game_id, user_id, min(ts) AS ts FROM stated_rows GROUP BY game_id, user_id) AS earliest
        USING (game_id, user_id, ts)
        GROUP BY game_id, user_id, ts""",
    )
    writer.view("known_stated", "stated_installs")
    writer.add(
        "stated_installs",
        "SELECT game_id, user_id, make_timestamp(stated_us) AS ts, first_build FROM stated ANTI JOIN known_stated "
        "ON stated.game_id = known_stated.game_id AND stated.user_id = known_stated.user_id "
        "AND epoch_us(known_stated.ts) <= stated_us",
    )


_OF_INSTALL: Final = ("installed_us", "install_seq", "combination")
_OF_PAYMENT: Final = ("paid_us", "paid_seq")
_MOMENTS: Final = ("installed_us", "install_seq", *_OF_PAYMENT)
_BEFORE: Final = "({0}_us < known_{0}_us OR ({0}_us = known_{0}_us AND {1} < known_{1}))"
_LATER: Final = "CASE WHEN {0} THEN {1} ELSE {2} END AS {1}"
_NUMBERS: Final = f"""
    WITH compared AS (
        SELECT found.*, known_players.player AS known_player, known_players.combination AS known_combination,
            {", ".join(f"known_players.{name} AS known_{name}" for name in _MOMENTS)}
        FROM found LEFT JOIN known_players
        ON found.game_id = known_players.game_id AND found.user_id = known_players.user_id
    ), judged AS (
        SELECT *, known_player IS NULL OR {_BEFORE.format("installed", "install_seq")} AS is_earlier,
            paid_us <> {NEVER} AND (known_player IS NULL OR {_BEFORE.format("paid", "paid_seq")}) AS pays_earlier
        FROM compared
    )
    SELECT game_id, user_id,
        coalesce(known_player,
            {{players}} + row_number() OVER (PARTITION BY known_player IS NULL ORDER BY earliest)) AS player,
        CASE WHEN known_player IS NULL THEN {_NEW} WHEN is_earlier THEN {_MOVED} ELSE {_SAME} END AS install_change,
        CASE WHEN NOT pays_earlier THEN {_SAME}
            WHEN coalesce(known_paid_us, {NEVER}) = {NEVER} THEN {_NEW} ELSE {_MOVED} END AS payment_change,
        {", ".join(_LATER.format("is_earlier", name, f"known_{name}") for name in _OF_INSTALL)},
        {", ".join(_LATER.format("pays_earlier", name, f"coalesce(known_{name}, {NEVER})") for name in _OF_PAYMENT)},
        known_installed_us AS old_us, known_install_seq AS old_seq, known_combination AS old_combination
    FROM judged"""  # noqa: S608


def number_players(writer: PartWriter, facts: FactSource, *, has_stated: bool) -> None:
    """Create the table `numbers` of all players of `users`, and write what is new of them.

    `numbers` has game_id, user_id, player; install_change and payment_change (0 none, 1 new, 2 moved); installed_us and
    combination of the first event after this batch; old_us, old_seq and old_combination, those before it, where it has
    moved. An install before all events that an import states counts as the first event: `install_seq` is then at least
    `STATED`, and `combination` has its build.

    Args:
        writer: the writer of the run.
        facts: earlier events.
        has_stated: whether there is a table `stated`.
    """
    writer.sql.create("found", _FOUND.format(users=USERS_WITH_STATED if has_stated else _USERS))
    facts.create_known_players()
    writer.sql.create("numbers", _NUMBERS.format(players=writer.snapshot.rows("installs")))
    for table, kind in (("installs", "install"), ("payments", "payment")):
        _write_firsts(writer, table, kind)
    facts.note_players()


def _write_firsts(writer: PartWriter, table: str, kind: str) -> None:
    """Write the new rows of *table*, and its moved ones, which replace those of before."""
    number, us = {"install": ("install_seq", "installed_us"), "payment": ("paid_seq", "paid_us")}[kind]
    seq = f"CASE WHEN {number} BETWEEN {STATED} AND {NEVER - 1} THEN {number} - {STATED_BY} ELSE {number} END"
    own = [*(name for name in ("game_id", "user_id", "seq", *OF_EVENT) if kind != "install" or name != "build")]
    columns = f"player, {', '.join(f'fresh.{name}' for name in own)}, make_timestamp({us}) AS ts"
    rows = f"fresh JOIN numbers ON fresh.seq = {seq}"
    if kind == "install":  # the build that an import states is not that of the event
        columns += ", combined.build AS build"
        rows += " JOIN combined ON numbers.combination = combined.combination"
    rows = f"SELECT {columns} FROM {rows} WHERE {kind}_change = {{}}"  # noqa: S608
    writer.add(table, rows.format(_NEW))
    ((moved,),) = writer.sql.run(f"SELECT count(*) FROM numbers WHERE {kind}_change = {_MOVED}")  # noqa: S608
    if moved:
        writer.view("old_moved", f"{table}_moved")
        order = ", ".join(COLUMNS[table])
        kept = f"FROM old_moved WHERE player NOT IN (SELECT player FROM numbers WHERE {kind}_change = {_MOVED})"  # noqa: S608
        writer.retire(writer.snapshot.files(f"{table}_moved"))
        writer.add(
            f"{table}_moved",
            f"SELECT {order} FROM ({rows.format(_MOVED)}) AS moved UNION ALL SELECT {order} {kept}",  # noqa: S608
        )
