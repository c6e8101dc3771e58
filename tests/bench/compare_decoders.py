"""Program that decodes one large answer with gamelens and with other libraries.

    python compare_decoders.py make FOLDER             writes a split answer, and its rows as a groupBy of Druid
    python compare_decoders.py time FOLDER             best seconds of each decoder, which take turns
    python compare_decoders.py peak FOLDER DECODER     MiB that one decoder needs beyond the body it reads

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
from typing import Any, cast

import msgspec
import numpy as np
import pandas as pd
from pydruid.query import Query  # type: ignore[import-untyped]

from gamelens.client.query.data_frames import to_frame
from gamelens.client.tables.answer_reading import read_answer
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery, Split
from gamelens.wire.results import Rows, encode_answer

START = datetime(2025, 1, 6, tzinfo=UTC)  # a Monday
WEEKS = 90
COUNTRIES = [f"{chr(65 + number // 26)}{chr(65 + number % 26)}" for number in range(200)]
PLATFORMS = [f"platform_{number:02}" for number in range(20)]
BY = ("country_code", "platform")
QUERY = MetricQuery(interval=Interval(START, START + timedelta(weeks=WEEKS)), granularity="week", query=Split(BY))
ROUNDS = 4


class Money(msgspec.Struct):
    """A row of a split by country and platform."""

    country_code: str | None
    platform: str | None
    event_count: int
    mean: float | None
    sum: float
    sum_cents: float


class Event(msgspec.Struct):
    """An entry of a split answer."""

    event: Money
    timestamp: datetime


class Answer(msgspec.Struct):
    """A split answer."""

    result: list[Event]


class UntrackedMoney(Money, gc=False):
    """A row that the garbage collector does not track, the fastest that msgspec can decode."""


class UntrackedEvent(Event, gc=False):
    """An entry that the garbage collector does not track."""

    event: UntrackedMoney


class UntrackedAnswer(msgspec.Struct, gc=False):
    """An answer that the garbage collector does not track."""

    result: list[UntrackedEvent]


STRUCTS = msgspec.json.Decoder(Answer)
UNTRACKED_STRUCTS = msgspec.json.Decoder(UntrackedAnswer)


def with_gamelens(body: bytes) -> pd.DataFrame:
    """Decode to a frame as the client does."""
    return cast("pd.DataFrame", to_frame(read_answer("revenue", QUERY, BY, body), BY, Receipt()))


def with_json_normalize(body: bytes) -> pd.DataFrame:
    """Decode to a frame with `json.loads` and `pandas.json_normalize`."""
    return pd.json_normalize(json.loads(body)["result"])


def with_pydruid(text: str) -> pd.DataFrame:
    """Decode the groupBy form to a frame with pydruid."""
    query = Query({"queryType": "groupBy"}, "groupBy")
    query.parse(text)
    return cast("pd.DataFrame", query.export_pandas())


def to_structs(body: bytes) -> list[Event]:
    """Decode to typed structs, which are not frames yet."""
    return STRUCTS.decode(body).result


def to_untracked_structs(body: bytes) -> list[UntrackedEvent]:
    """Decode to typed structs that the garbage collector does not track."""
    return UNTRACKED_STRUCTS.decode(body).result


DECODERS: dict[str, Callable[[Any], Any]] = {
    "gamelens": with_gamelens,
    "json_normalize": with_json_normalize,
    "pydruid": with_pydruid,
    "structs": to_structs,
    "untracked structs": to_untracked_structs,
}


def rows_of(week: int) -> list[dict[str, Any]]:
    """Return a row for every pair of a country and a platform, the last country null."""
    chance = np.random.default_rng([0, week])
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
    """Write the answer in both forms, and return its rows, bytes and sum of cents."""
    body = encode_answer(QUERY, (Rows(START + timedelta(weeks=week), rows_of(week)) for week in range(WEEKS)))
    (folder / "answer.json").write_bytes(body)
    druid = [{"version": "v1", **row} for row in json.loads(body)["result"]]
    (folder / "druid.json").write_text(json.dumps(druid, separators=(",", ":")))
    totals = {"rows": len(druid), "bytes": len(body), "cents": sum(row["event"]["sum_cents"] for row in druid)}
    (folder / "totals.json").write_text(json.dumps(totals))
    return totals


def best_s(folder: Path) -> dict[str, float]:
    """Return the seconds of the fastest round of each decoder."""
    body, text = (folder / "answer.json").read_bytes(), (folder / "druid.json").read_text()
    read: dict[str, Any] = dict.fromkeys(DECODERS, body) | {"pydruid": text}
    took: dict[str, list[float]] = {name: [] for name in DECODERS}
    for _ in range(ROUNDS):
        for name, decode in DECODERS.items():
            gc.collect()
            began = time.perf_counter()
            decoded = decode(read[name])
            took[name].append(time.perf_counter() - began)
            check(folder, name, decoded)
            del decoded
    return {name: min(seconds) for name, seconds in took.items()}


def check(folder: Path, name: str, decoded: Any) -> None:
    """Fail unless *decoded* has all rows and their sum of cents."""
    assert len(decoded) == WEEKS * len(COUNTRIES) * len(PLATFORMS)
    if name in ("structs", "untracked structs"):
        cents = sum(row.event.sum_cents for row in decoded)
    else:
        cents = decoded["event.sum_cents" if name == "json_normalize" else "sum_cents"].sum()
    assert cents == json.loads((folder / "totals.json").read_text())["cents"]


def peak_mib(folder: Path, name: str) -> float:
    """Return the MiB that decoder *name* adds to the peak memory of this process."""
    file = folder / ("druid.json" if name == "pydruid" else "answer.json")
    body = file.read_text() if name == "pydruid" else file.read_bytes()
    before = high_water_mib()
    decoded = DECODERS[name](body)
    after = high_water_mib()
    check(folder, name, decoded)
    return after - before


def high_water_mib() -> float:
    """Return the peak memory of this process so far.

    Unlike `ru_maxrss`, which starts at that of the parent process.
    """
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    work: dict[str, Callable[..., Any]] = {"make": make, "time": best_s, "peak": peak_mib}
    print(json.dumps(work[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
