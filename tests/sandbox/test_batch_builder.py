"""Parts that batches add one after the other, against a rebuild of all events from scratch.

Batches are random: events come late and in any order, repeat within a batch and across batches, have one name in two
games, names that are not UUIDs, no user or session, lie at the edges of days and of time, and whole batches come twice.
Between batches, parts are compacted at random.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from random import Random
from uuid import UUID

import pyarrow as pa
import pytest

from gamelens.sandbox.building.batch import Batch
from gamelens.sandbox.building.event_facts import RunFacts, TableFacts
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.building.repeated_events import make_fresh
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.processing import compaction
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.keyed_runs import PAYLOADS, PREFIX
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import PLAYER_DIMENSIONS, SUMS
from support.hypothesis_profiles import tries
from support.random_batches import (
    EVENTS,
    INSTALLS,
    add_batch,
    first_of_each_name,
    join_batch,
    random_batches,
    random_event,
    random_stated,
    restated_world,
)
from support.reference_lake import differences, different_rows, lake_tables, rebuild

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(tries(in_test=1, in_bench=40)))
def test_batches_add_up_to_a_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every table has the rows of a rebuild, whatever the batches and the steps of compaction between them."""
    random = Random(seed)
    monkeypatch.setattr(compaction, "FAN_IN", random.randrange(2, 5))
    batches = random_batches(random)
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
    lake.create_if_new()
    steps = 0
    for number, batch in enumerate(batches, 1):
        add_batch(lake, batch, tmp_path / f"scratch{number}", number)
        for _ in range(random.randrange(12)):
            if (step := next(compaction.due_steps(lake), None)) is not None:
                compaction.take_step(step, lake, tmp_path / "scratch")
                steps += 1
    snapshot = lake.snapshot("acme")
    assert differences(lake_tables(snapshot), rebuild(first_of_each_name(batches))) == {}
    assert steps > 0 or len(batches) < 5
    assert {kind.removeprefix(PREFIX) for kind in snapshot.tables if kind.startswith(PREFIX)} <= set(PAYLOADS)
    lake.store.close()


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(9, 9 + tries(in_test=1, in_bench=40)))
def test_joined_tables_give_the_parts_that_keyed_runs_give(tmp_path: Path, seed: int) -> None:
    """An engine that joins tables writes the same rows, with the same numbers of players, as one with keyed runs.

    Some batches state installs, as imports do.
    """
    random = Random(seed)
    batches = [(batch, random_stated(random, batch)) for batch in random_batches(random)]
    snapshots = []
    for name in ("runs", "joined"):
        (tmp_path / name / "lake").mkdir(parents=True)
        lake = Lake(tmp_path / name / "lake", open_store(tmp_path / name / "gamelens.db"))
        lake.create_if_new()
        for number, (batch, stated) in enumerate(batches, 1):
            scratch = tmp_path / name / f"scratch{number}"
            if name == "runs":
                add_batch(lake, batch, scratch, number, stated=stated)
                continue
            engine = DuckDBWriter(tmp_path)
            join_batch(lake, batch, engine, number, stated=stated)
            engine.close()
        snapshots.append(lake.snapshot("acme"))
        lake.store.close()
    assert not any(kind.startswith(PREFIX) for kind in snapshots[1].tables)
    assert different_rows(*map(lake_tables, snapshots)) == {}


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(40, 40 + tries(in_test=1, in_bench=80)))
def test_a_stated_install_wins_over_every_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every table has the rows of a rebuild, whether the install is stated before, with or after a player's events.

    Batches are received, or imported with what their lines state, by either kind of engine, and compacted at random.
    """
    random = Random(seed)
    monkeypatch.setattr(compaction, "FAN_IN", random.randrange(2, 5))
    batches, stated = restated_world(random)
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
    lake.create_if_new()
    # At the end everything is imported that was received before.
    told = [(batch, random.random() < 0.6) for batch in batches] + [(batch, True) for batch in batches]
    for number, (batch, is_imported) in enumerate(told, 1):
        rows = [row | {"seq": row["seq"] + 10_000 * (number > len(batches))} for row in batch if row["event_uuid"]]
        players = {(row["game_id"], row["user_id"]) for row in rows}
        named = [row for row in stated if is_imported and (row["game_id"], row["user_id"]) in players]
        if random.random() < 0.3:
            engine = DuckDBWriter(tmp_path)
            join_batch(lake, rows, engine, number, stated=named)
            engine.close()
        else:
            add_batch(lake, rows, tmp_path / f"scratch{number}", number, stated=named)
        if (step := next(compaction.due_steps(lake), None)) is not None:
            compaction.take_step(step, lake, tmp_path / "scratch")
    events = first_of_each_name([[row for row in batch if row["event_uuid"]] for batch in batches])
    expected = rebuild(events, pa.Table.from_pylist(stated, schema=INSTALLS))
    found = lake_tables(lake.snapshot("acme"))
    for of_lake in (found, expected):  # which event is the first is another question
        for table in ("installs", "installs_moved"):
            rows = of_lake[table]
            names = ["player", "game_id", "user_id", "ts", "country_code", "build"]
            of_lake[table] = pa.table(
                {
                    name: rows[name] if name in names else pa.nulls(len(rows), rows.schema.field(name).type)
                    for name in rows.column_names
                }
            )
    assert differences(found, expected) == {}
    lake.store.close()


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(24, 24 + tries(in_test=1, in_bench=40)))
def test_engines_take_turns(tmp_path: Path, seed: int) -> None:
    """Batches with keyed runs and batches that join tables follow each other and add up to a rebuild."""
    random = Random(seed)
    batches = random_batches(random)
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
    lake.create_if_new()
    for number, batch in enumerate(batches, 1):
        if random.random() < 0.5:
            engine = DuckDBWriter(tmp_path)
            join_batch(lake, batch, engine, number)
            engine.close()
        else:
            add_batch(lake, batch, tmp_path / f"scratch{number}", number)
    assert differences(lake_tables(lake.snapshot("acme")), rebuild(first_of_each_name(batches))) == {}
    lake.store.close()


def test_an_event_of_another_day_leaves_a_part_of_each_table(tmp_path: Path) -> None:
    """A run writes at most one part of each table, also where its events are of sixty days."""
    random = Random(1)
    batch = [
        random_event(random, seq, [str(UUID(int=seq))]) | {"day": date(2026, 9, 1), "ts": datetime(2026, 9, 1)}
        for seq in range(300)
    ]
    for seq, row in enumerate(batch):
        row["ts"] += timedelta(days=seq % 60)
        row["day"] = row["ts"].date()
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
    lake.create_if_new()
    add_batch(lake, batch, tmp_path / "scratch", 1)
    assert {len(parts) for parts in lake.snapshot("acme").tables.values()} == {1}
    (events,) = lake.snapshot("acme").parts("events")
    assert (events.first_day, events.last_day) == (date(2026, 9, 1), date(2026, 10, 30))
    lake.store.close()


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("repeats", [False, True])
def test_a_small_file_of_new_events_becomes_a_part_as_it_is(tmp_path: Path, repeats: bool) -> None:
    """It is moved, not written again, unless one of its events is repeated."""
    random = Random(2)
    batch = [random_event(random, seq, [str(UUID(int=seq))]) for seq in range(50)]
    if repeats:
        batch.append(batch[0] | {"seq": 50, "event_uuid": str(UUID(int=0))})
        batch[0]["event_uuid"] = str(UUID(int=0))
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
    lake.create_if_new()
    add_batch(lake, batch, tmp_path / "scratch", 1)
    (events,) = lake.snapshot("acme").parts("events")
    assert events.rows == 50
    assert (tmp_path / "scratch" / "events.parquet").exists() is repeats
    lake.store.close()


@pytest.mark.wide
@pytest.mark.parametrize("is_joined", [False, True])
def test_relations_have_the_columns_that_they_name(tmp_path: Path, is_joined: bool) -> None:
    """The description of a relation names each of its columns, those of members and sums together.

    A relation is made when it is first named, whatever else is there.
    """
    random = Random(4)
    batch = [random_event(random, seq, [str(UUID(int=seq))]) for seq in range(50)]
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
    lake.create_if_new()
    members = {name: member for name, member in vars(Batch).items() if isinstance(member, cached_property)}
    relations = {name: member for name, member in members.items() if hasattr(member.func, "__wrapped__")}
    assert len(relations) > 20
    together = dict.fromkeys(PLAYER_DIMENSIONS, "member") | dict.fromkeys(SUMS, "sums")
    for name, of_batch in relations.items():
        sql = DuckDBWriter(tmp_path)
        sql.view("staged", pa.Table.from_pylist(batch, schema=EVENTS))
        sql.view("stated_rows", pa.Table.from_pylist(random_stated(random, batch), schema=INSTALLS))
        writer = PartWriter("acme", lake, sql, "1")
        facts = TableFacts(writer) if is_joined else RunFacts(writer, sql, tmp_path)
        make_fresh(sql, facts, counts_repeats=False)
        table = getattr(Batch(writer, facts, "stated_rows"), name)
        columns = [column for column, *_ in sql.run(f"DESCRIBE {table}")]
        named = set(re.findall(r"\w+", of_batch.__doc__ or ""))
        assert [column for column in columns if column not in named and together.get(column) not in named] == [], name
        sql.close()
    lake.store.close()
