"""One large answer made into a frame, by us and by what else there is, in a process that does nothing else.

    python decoding.py make FOLDER          writes the answer to a split query, and the same rows as Druid's groupBy
    python decoding.py time FOLDER          best seconds of each way; they take turns
    python decoding.py peak FOLDER WAY      MiB that one way needs beyond the body it reads

Prints JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from pydruid.query import Query

from gamelens.client.query.data_frames import to_frame
from gamelens.client.tables.answer_decoding import read_answer
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery, Split
from gamelens.wire.results import Rows, encode_answer

START = datetime(2026, 8, 20, tzinfo=UTC)
DAYS = 90
COUNTRIES = [f"{chr(65 + number // 26)}{chr(65 + number % 26)}" for number in range(200)]
PLATFORMS = [f"platform_{number:02}" for number in range(20)]
BY = ("country_code", "platform")
QUERY = MetricQuery(interval=Interval(START, START + timedelta(days=DAYS)), granularity="week", query=Split(BY))
ROUNDS = 4


class Money(msgspec.Struct):
    country_code: str | None
    platform: str | None
    event_count: int
    mean: float | None
    sum: float
    sum_cents: float


class Event(msgspec.Struct):
    event: Money
    timestamp: datetime


class Answer(msgspec.Struct):
    result: list[Event]


class BareMoney(Money, gc=False):
    """Not looked at by the garbage collector, which is the fastest that msgspec can be."""


class BareEvent(Event, gc=False):
    event: BareMoney


class BareAnswer(Answer, gc=False):
    result: list[BareEvent]


TYPED = msgspec.json.Decoder(Answer)
BARE = msgspec.json.Decoder(BareAnswer)


def ours(body: bytes) -> pd.DataFrame:
    return to_frame(read_answer("revenue", QUERY, BY, body), BY, {})


def normalized(body: bytes) -> pd.DataFrame:
    return pd.json_normalize(json.loads(body)["result"])


def pydruid(text: str) -> pd.DataFrame:
    query = Query({"queryType": "groupBy"}, "groupBy")
    query.parse(text)
    return query.export_pandas()


def typed(body: bytes) -> list[Event]:
    return TYPED.decode(body).result


def bare(body: bytes) -> list[BareEvent]:
    return BARE.decode(body).result


WAYS: dict[str, Callable[[Any], Any]] = {
    "ours": ours,
    "normalized": normalized,
    "pydruid": pydruid,
    "typed": typed,
    "bare": bare,
}


def rows_of(day: int) -> list[dict[str, Any]]:
    """Every pair of a country and a platform, the last country unknown."""
    chance = np.random.default_rng([0, day])
    size = len(COUNTRIES) * len(PLATFORMS)
    events = chance.poisson(20, size).tolist()
    cents = chance.integers(0, 1_000_000, size).tolist()
    pairs = [(country, platform) for country in [*COUNTRIES[:-1], None] for platform in PLATFORMS]
    return [
        {
            "country_code": country,
            "platform": platform,
            "event_count": count,
            "mean": money / 100 / count if count else None,
            "sum": money / 100,
            "sum_cents": float(money),
        }
        for (country, platform), count, money in zip(pairs, events, cents, strict=True)
    ]


def make(folder: Path) -> dict[str, float]:
    body = encode_answer(QUERY, (Rows(START + timedelta(days=day), rows_of(day)) for day in range(DAYS)))
    (folder / "answer.json").write_bytes(body)
    druid = [{"version": "v1", **row} for row in json.loads(body)["result"]]
    (folder / "druid.json").write_text(json.dumps(druid, separators=(",", ":")))
    made = {"rows": len(druid), "bytes": len(body), "cents": sum(row["event"]["sum_cents"] for row in druid)}
    (folder / "made.json").write_text(json.dumps(made))
    return made


def best_s(folder: Path) -> dict[str, float]:
    """Seconds of the fastest round of each way."""
    body, text = (folder / "answer.json").read_bytes(), (folder / "druid.json").read_text()
    read: dict[str, Any] = dict.fromkeys(WAYS, body) | {"pydruid": text}
    took: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            gc.collect()
            began = time.perf_counter()
            made = way(read[name])
            took[name].append(time.perf_counter() - began)
            check(folder, name, made)
            del made
    return {name: min(seconds) for name, seconds in took.items()}


def check(folder: Path, name: str, made: Any) -> None:
    """Every way must have read the same rows."""
    assert len(made) == DAYS * len(COUNTRIES) * len(PLATFORMS)
    if name in ("typed", "bare"):
        cents = sum(row.event.sum_cents for row in made)
    else:
        cents = made["event.sum_cents" if name == "normalized" else "sum_cents"].sum()
    assert cents == json.loads((folder / "made.json").read_text())["cents"]


def peak_mib(folder: Path, name: str) -> float:
    """What *name* adds to the most memory this process ever had.

    Not `ru_maxrss`: that of a child begins with what its parent had.
    """
    file = folder / ("druid.json" if name == "pydruid" else "answer.json")
    body = file.read_text() if name == "pydruid" else file.read_bytes()
    before = high_water_mib()
    made = WAYS[name](body)
    after = high_water_mib()
    check(folder, name, made)
    return after - before


def high_water_mib() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    work: dict[str, Callable[..., Any]] = {"make": make, "time": best_s, "peak": peak_mib}
    print(json.dumps(work[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
