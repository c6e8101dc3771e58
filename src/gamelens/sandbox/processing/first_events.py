"""Players of a batch: their numbers, first events and first purchases.

A new player gets the next number and a row of `installs`. A player whose event comes late may have an earlier first
event than was known: its row in `installs_moved` then replaces that of `installs` (Wire 4.9, Late events). First
purchases are kept in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gamelens.sandbox.processing.part_writer import PartWriter
from gamelens.sandbox.storage.keyed_runs import Columns, Hits, Keys, text_keys
from gamelens.sandbox.storage.lake_schema import COLUMNS, OF_EVENT

Ints = NDArray[np.int64]

NEVER: Final = np.iinfo(np.int64).max
"""Time and arrival of an event that there is not."""
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
_STATED_BY: Final = 3 << 61

_FOUND: Final = f"""
    WITH firsts AS (
        SELECT users.game_id, users.user_id, min(installed) AS install, arg_min(combination, installed) AS combination,
            min(first) FILTER (WHERE users.currency IS NOT NULL) AS purchase
        FROM {{users}} JOIN combined ON {{same}} WHERE users.user_id IS NOT NULL GROUP BY ALL
    )
    SELECT game_id, user_id,
        {_TIME.format("install")} AS installed_us, {_SEQ.format("install")} AS install_seq,
        coalesce({_TIME.format("purchase")}, {NEVER}) AS paid_us,
        coalesce({_SEQ.format("purchase")}, {NEVER}) AS paid_seq, combination
    FROM firsts ORDER BY install"""  # noqa: S608


_USERS: Final = "(SELECT *, first AS installed FROM users) AS users"
_USERS_WITH_STATED: Final = f"""(
    SELECT users.*, CASE
        WHEN stated_us < {_TIME.format("first")}
        THEN CAST(stated_us AS HUGEINT) * {_SEQS} + (CAST(first_seq AS HUGEINT) + {_STATED_BY} - {_LEAST_SEQ})
        ELSE first END AS installed
    FROM users LEFT JOIN stated USING (game_id, user_id)) AS users"""  # noqa: S608


def write_stated_installs(writer: PartWriter, paths: Sequence[Path]) -> None:
    """Create `stated`, the earliest install that *paths* state of each player.

    Writes what is new of it. Without files nothing is created.
    """
    if not paths:
        return
    writer.sql.view_files("stated_rows", paths, COLUMNS["stated_installs"])
    writer.sql.run("""
        CREATE TEMP TABLE stated AS
        SELECT game_id, user_id, epoch_us(min(ts)) AS stated_us FROM stated_rows GROUP BY ALL""")
    writer.view("known_stated", "stated_installs")
    writer.add(
        "stated_installs",
        "SELECT game_id, user_id, make_timestamp(stated_us) AS ts FROM stated ANTI JOIN known_stated "
        "ON stated.game_id = known_stated.game_id AND stated.user_id = known_stated.user_id "
        "AND epoch_us(known_stated.ts) <= stated_us",
    )


def number_players(writer: PartWriter, *, has_stated: bool, same: str) -> None:
    """Create the table `numbers` of all players of `users`, and write what is new of them.

    `numbers` has game_id, user_id, player; install (0 known, 1 new, 2 moved); installed_us and combination of the
    first event after this batch; old_us, old_seq and old_combination, those before it, where it has moved. An install
    before all events that an import states counts as the first event: `install_seq` is then at least `STATED`.

    Args:
        writer: the writer of the run.
        has_stated: whether there is a table `stated`.
        same: SQL condition that a row of `users` has the dimensions of a row of `combined`.
    """
    found = writer.sql.table(_FOUND.format(same=same, users=_USERS_WITH_STATED if has_stated else _USERS))
    keys = text_keys(*(found.column(name).combine_chunks() for name in ("game_id", "user_id")))
    own = {name: found.column(name).to_numpy() for name in found.column_names[2:]}
    known = _earliest(writer.runs("players").find(keys), len(keys.high))
    is_new = known["player"] == 0
    player = known["player"].copy()
    player[is_new] = writer.snapshot.rows("installs") + 1 + np.arange(is_new.sum())
    is_earlier = _is_before(own["installed_us"], own["install_seq"], known["installed_us"], known["install_seq"])
    pays_earlier = _is_before(own["paid_us"], own["paid_seq"], known["paid_us"], known["paid_seq"])
    install = np.where(is_new, _NEW, np.where(is_earlier, _MOVED, _SAME))
    payment = np.where(~pays_earlier, _SAME, np.where(known["paid_us"] == NEVER, _NEW, _MOVED))
    now = {
        "player": player,
        **{
            name: np.where(is_earlier, own[name], known[name])
            for name in ("installed_us", "install_seq", "combination")
        },
        **{name: np.where(pays_earlier, own[name], known[name]) for name in ("paid_us", "paid_seq")},
    }
    numbers = found.select(["game_id", "user_id"])
    columns: Columns = {"install": install, "payment": payment, **now}
    columns |= {
        "old_us": known["installed_us"],
        "old_seq": known["install_seq"],
        "old_combination": known["combination"],
    }
    for name, values in columns.items():
        numbers = numbers.append_column(name, pa.array(values))
    writer.sql.view("numbered", numbers)
    writer.sql.run("CREATE TEMP TABLE numbers AS FROM numbered")
    for table, kind in (("installs", "install"), ("payments", "payment")):
        _write_firsts(writer, table, kind)
    is_changed = is_new | is_earlier | pays_earlier
    changed = Keys(keys.high[is_changed], keys.low[is_changed])
    writer.add_keys("players", changed, {name: values[is_changed] for name, values in now.items()})


def _earliest(hits: Hits, players: int) -> Columns:
    """Return the earliest events that the runs have of each player, number 0 without any."""
    known: Columns = {name: np.full(players, NEVER) for name in ("installed_us", "install_seq", "paid_us", "paid_seq")}
    known |= {"player": np.zeros(players, dtype=np.int64), "combination": np.zeros(players, dtype=np.int64)}
    known["player"][hits.places] = hits.columns["player"]
    for time, seq, others in (("installed_us", "install_seq", ("combination",)), ("paid_us", "paid_seq", ())):
        order = np.lexsort((hits.columns[seq], hits.columns[time], hits.places))
        places, first = np.unique(hits.places[order], return_index=True)
        for name in (time, seq, *others):
            known[name][places] = hits.columns[name][order][first]
    return known


def _is_before(time: Ints, seq: Ints, other_time: Ints, other_seq: Ints) -> NDArray[np.bool_]:
    return np.asarray((time < other_time) | ((time == other_time) & (seq < other_seq)))


def _write_firsts(writer: PartWriter, table: str, kind: str) -> None:
    """Write the new rows of *table*, and its moved ones, which replace those of before."""
    number, us = {"install": ("install_seq", "installed_us"), "payment": ("paid_seq", "paid_us")}[kind]
    seq = f"CASE WHEN {number} BETWEEN {STATED} AND {NEVER - 1} THEN {number} - {_STATED_BY} ELSE {number} END"
    names = ", ".join(f"fresh.{name}" for name in ("game_id", "user_id", "seq", *OF_EVENT))
    columns = f"{names}, make_timestamp({us}) AS ts"
    rows = f"SELECT player, {columns} FROM fresh JOIN numbers ON fresh.seq = {seq} WHERE {kind} = {{}}"  # noqa: S608
    writer.add(table, rows.format(_NEW))
    ((moved,),) = writer.sql.run(f"SELECT count(*) FROM numbers WHERE {kind} = {_MOVED}")  # noqa: S608
    if moved:
        writer.view("old_moved", f"{table}_moved")
        kept = f"FROM old_moved WHERE player NOT IN (SELECT player FROM numbers WHERE {kind} = {_MOVED})"  # noqa: S608
        writer.retire(writer.snapshot.files(f"{table}_moved"))
        writer.add(f"{table}_moved", f"{rows.format(_MOVED)} UNION ALL BY NAME {kept}")
