"""Parts that batches add one after the other, against a rebuild of all events from scratch.

Batches are random: events come late and in any order, repeat within a batch and across batches, have one name in two
games, names that are no UUIDs, no user or session, lie at the edges of days and of time, and whole batches come twice.
Between batches, parts are compacted at random.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens.sandbox.processing import compaction
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.keyed_runs import PAYLOADS, PREFIX
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from support.hypothesis_profiles import examples
from support.reference_lake import differences, lake_tables, rebuild

pytestmark = pytest.mark.slow

_TYPES: Final = {"BIGINT": pa.int64(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"), "VARCHAR": pa.string()}
EVENTS: Final = pa.schema([(name, _TYPES[kind]) for name, kind in EVENT_COLUMNS.items()])
FIRST: Final = datetime(2026, 10, 1)  # UTC, as the lake stores it
DAYS: Final = 45
EDGES: Final = (datetime(1970, 1, 1), datetime(2026, 10, 31, 23, 59, 59), datetime(2026, 11, 1), datetime(2029, 12, 31))

Row = dict[str, Any]


def random_event(random: Random, seq: int, names: list[str]) -> Row:
    """Return the row of a random event, of few players, sessions and impressions, so that they meet again."""
    moment = FIRST + timedelta(seconds=random.randrange(DAYS * 86_400))
    if random.random() < 0.1:
        moment = random.choice((*EDGES, datetime.combine(moment.date(), datetime.min.time())))
    row: Row = dict.fromkeys(EVENT_COLUMNS)
    row |= {"seq": seq, "ts": moment, "day": moment.date(), "game_id": random.choice("12"), "platform": "ios"}
    row |= {"country_code": random.choice((None, "US", "BR")), "build": random.choice("12")}
    row["category"] = random.choice(("user", "session_end", "business", "impression", "ads", "design"))
    if random.random() < 0.95:
        row["user_id"] = f"u{random.randrange(12)}"
    if random.random() < 0.9:
        row["session_id"] = f"s{random.randrange(40)}"
    if random.random() < 0.9:
        row["event_uuid"] = random.choice(names)
    match row["category"]:
        case "business":
            row |= {"money": random.randrange(1000), "currency": random.choice(("USD", "EUR"))}
        case "impression":
            own = f"u{row['event_uuid']}" if row["event_uuid"] else f"s{seq}"
            row |= {"ilrd_id": f"i{random.randrange(30)}" if random.random() < 0.5 else own}
            row |= {"ilrd_network_name": random.choice(("a", None)), "money": random.randrange(1000), "currency": "USD"}
        case "session_end":
            row["length"] = random.randrange(100)
        case "ads":
            row |= {"ad_action": random.choice(("show", "clicked")), "ad_type": "video"}
    return row


def random_batches(random: Random) -> list[list[Row]]:
    """Return the batches of a random history, in order of arrival."""
    count = random.randrange(5, 300)
    names = [str(UUID(int=random.getrandbits(128))) for _ in range(count)]
    names += [random.choice(names).upper(), f"event-{count}", "é" * 12, names[0][:-1] + "g"]
    first = random.choice((0, -count // 2))  # events that were written by columns have numbers below zero
    rows = [random_event(random, first + place, names) for place in range(count)]
    cuts = sorted(random.sample(range(1, count), random.randrange(1, min(8, count))))
    batches = [rows[start:end] for start, end in zip([0, *cuts], [*cuts, count], strict=True)]
    again = [row | {"seq": row["seq"] + count} for row in batches[0] if row["event_uuid"]]
    return [*batches, again] if again and random.random() < 0.3 else batches


def add_batch(lake: Lake, batch: list[Row], scratch: Path, number: int) -> None:
    """Process *batch* as run *number*."""
    scratch.mkdir()
    pq.write_table(pa.Table.from_pylist(batch, schema=EVENTS), scratch / "events.parquet")
    commit_staged({"acme": [scratch / "events.parquet"]}, lake, scratch, processed_ms=0, last_batch=number)


def first_of_each_name(batches: list[list[Row]]) -> pa.Table:
    """Return all events but repeated ones: the first to arrive counts."""
    kept: dict[tuple[str, str], Row] = {}
    for row in (row for batch in batches for row in batch):
        kept.setdefault((row["game_id"], row["event_uuid"] or f"seq {row['seq']}"), row)
    return pa.Table.from_pylist(list(kept.values()), schema=EVENTS)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_batches_add_up_to_a_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every table has the rows of a rebuild, whatever the batches and the steps of compaction between them."""
    random = Random(seed)
    monkeypatch.setattr(compaction, "FAN_IN", random.randrange(2, 5))
    batches = random_batches(random)
    (tmp_path / "lake").mkdir()
    lake = Lake(tmp_path / "lake", open_store(tmp_path / "gamelens.db"))
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
    add_batch(lake, batch, tmp_path / "scratch", 1)
    assert {len(parts) for parts in lake.snapshot("acme").tables.values()} == {1}
    (events,) = lake.snapshot("acme").parts("events")
    assert (events.first_day, events.last_day) == (date(2026, 9, 1), date(2026, 10, 30))
    lake.store.close()
