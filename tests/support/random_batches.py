"""Random batches of events that meet again, and their processing by each kind of engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.sandbox.building.batch_builder import join_parts
from gamelens.sandbox.engines.engine import BuildEngine
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import COLUMNS, EVENT_COLUMNS
from support.reference_lake import ARROW_TYPES

EVENTS: Final = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in EVENT_COLUMNS.items()])
INSTALLS: Final = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in COLUMNS["stated_installs"].items()])
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


def random_stated(random: Random, batch: list[Row]) -> list[Row]:
    """Return the installs that an import of *batch* states: of some players, at any time."""
    players = sorted({(row["game_id"], row["user_id"]) for row in batch if row["user_id"]})
    moments = [FIRST + timedelta(days=random.randrange(-2, DAYS), hours=random.choice((0, 7))) for _ in players]
    rows: list[Row] = [
        {"game_id": game, "user_id": user, "ts": moment, "first_build": random.choice((None, "0", "1"))}
        for (game, user), moment in zip(players, moments, strict=True)
    ]
    return random.sample(rows, random.randrange(len(rows) + 1))


def restated_world(random: Random) -> tuple[list[list[Row]], list[Row]]:
    """Return batches, and installs that an export states of some of their players, the same on each line.

    A player has the same country, build and publisher in all events, so that it does not matter which is the first.
    """
    batches = random_batches(random)
    for row in (row for batch in batches for row in batch):
        own = Random(f"{row['game_id']} {row['user_id']}")
        row |= {"country_code": own.choice((None, "US", "BR")), "build": own.choice("12")}
    players = sorted({(row["game_id"], row["user_id"]) for batch in batches for row in batch if row["user_id"]})
    stated = []
    for game, user in random.sample(players, random.randrange(len(players) + 1)):
        times = [row["ts"] for batch in batches for row in batch if (row["game_id"], row["user_id"]) == (game, user)]
        moment = random.choice((FIRST + timedelta(days=random.randrange(-2, DAYS), hours=7), random.choice(times)))
        stated.append({"game_id": game, "user_id": user, "ts": moment, "first_build": None})
    return batches, stated


def add_batch(lake: Lake, batch: list[Row], scratch: Path, number: int, *, stated: Sequence[Row] = ()) -> None:
    """Process *batch* as run *number*, an import if it has *stated* installs."""
    scratch.mkdir()
    pq.write_table(pa.Table.from_pylist(batch, schema=EVENTS), scratch / "events.parquet")
    pq.write_table(pa.Table.from_pylist(list(stated), schema=INSTALLS), scratch / "stated.parquet")
    commit_staged(
        {"acme": [scratch / "events.parquet"]},
        lake,
        scratch,
        processed_ms=0,
        last_batch=number,
        stated={"acme": [scratch / "stated.parquet"]} if stated else None,
    )


def join_batch(lake: Lake, batch: list[Row], engine: BuildEngine, number: int, *, stated: Sequence[Row] = ()) -> None:
    """Process *batch* as run *number* on an engine that joins the tables of the lake."""
    path, of_installs = (lake.root / f"{name}-{number}.parquet" for name in ("batch", "stated"))
    pq.write_table(pa.Table.from_pylist(batch, schema=EVENTS), path)
    pq.write_table(pa.Table.from_pylist(list(stated), schema=INSTALLS), of_installs)
    engine.view_files("batch", [path], EVENT_COLUMNS)
    engine.view_files("batch_installs", [of_installs], COLUMNS["stated_installs"])
    built = join_parts(
        "acme",
        "SELECT * FROM batch",
        lake,
        engine,
        folder=str(lake.next_version()),
        stated="SELECT * FROM batch_installs" if stated else None,
    )
    lake.commit(processed_ms=0, last_batch=number, duplicates=built.repeated, files=built.files, retired=built.retired)
    path.unlink()
    of_installs.unlink()


def first_of_each_name(batches: list[list[Row]]) -> pa.Table:
    """Return all events but repeated ones: the first to arrive counts."""
    kept: dict[tuple[str, str], Row] = {}
    for row in (row for batch in batches for row in batch):
        kept.setdefault((row["game_id"], row["event_uuid"] or f"seq {row['seq']}"), row)
    return pa.Table.from_pylist(list(kept.values()), schema=EVENTS)
