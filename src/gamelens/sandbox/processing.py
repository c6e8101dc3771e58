"""From the inbox to the lake: typed rows, one file a day, and who installed and first paid when.

Three steps. *Stage* decodes new batches into Parquet; *build* drops repeated events and writes the days they touch
anew, with the players' earliest events; *commit* makes it all one version. A crash before the commit changes nothing:
the same batches are taken again. Late events need nothing special, since a day is always written whole and an earliest
event only ever moves earlier.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from zlib import decompress

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.engine import EVENT_COLUMNS, PLAYER_COLUMNS, Workshop
from gamelens.sandbox.impressions import read_impression
from gamelens.sandbox.inbox import Batch, open_store, pending
from gamelens.sandbox.lake import File, Lake
from gamelens.wire.limits import FUTURE_S

ROWS_STAGED_AT_ONCE = 100_000
EVENTS_PER_BATCH: Final = 1 << 20  # more than fit into the largest body, so that batch and position order all events
_LATEST_TS: Final = 99_999_999_999
_COPIED: Final = (
    *("category", "user_id", "session_id", "event_uuid", "platform", "build"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
_ONLY_OF: Final = {  # column: the field it is read from, and the only category where that field means anything
    "ad_sdk_name": ("ad_sdk_name", "ads"),
    "ad_type": ("ad_type", "ads"),
    "ad_action": ("ad_action", "ads"),
    "severity": ("severity", "error"),
    "length": ("length", "session_end"),
    "money": ("amount", "business"),
    "currency": ("currency", "business"),
}


class _Stored(msgspec.Struct, frozen=True, gc=False):
    """The fields of an admitted event that the lake keeps; the event itself stays in the inbox.

    Fields of one category may hold anything on the events of another, where admission does not look at them.
    """

    category: str
    user_id: str | None = None
    session_id: str | None = None
    event_uuid: str | None = None
    country_code: str | None = None
    platform: str | None = None
    build: str | None = None
    install_publisher: str | None = None
    ab_id: str | None = None
    ab_variant_id: str | None = None
    client_ts: int | None = None
    ad_sdk_name: Any = None
    ad_type: Any = None
    ad_action: Any = None
    severity: Any = None
    length: Any = None
    amount: Any = None
    currency: Any = None
    ad_network_name: Any = None
    impression_data: Any = None


_decode = msgspec.json.Decoder(list[_Stored]).decode
_ARROW: Final = {"BIGINT": pa.int64(), "VARCHAR": pa.string(), "TIMESTAMP": pa.timestamp("us"), "DATE": pa.date32()}
_SCHEMA: Final = pa.schema([(name, _ARROW[kind]) for name, kind in EVENT_COLUMNS.items()])


def process(state: Path, clock: Clock) -> int:
    """Take everything received so far into the lake; answer its version.

    Raises:
        Refused: the engine or the disk could not do it; the lake is as it was.
    """
    store = open_store(state / "gamelens.db")
    scratch = state / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        lake = Lake(state / "lake", store)
        run = lake.last_run()
        (last_batch,) = store.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        staged = _stage(pending(store, after=run.last_batch, up_to=last_batch), scratch)
        files, duplicates = _build(staged, lake, scratch, version=run.version + 1)
        processed_ms = round(clock.now_s() * 1000)
        version = lake.commit(processed_ms=processed_ms, last_batch=last_batch, duplicates=duplicates, files=files)
        lake.sweep()
        return version
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"processing stopped, nothing was changed: {error}") from error
    finally:
        store.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _stage(batches: Iterable[Batch], scratch: Path) -> dict[str, list[Path]]:
    """New events as Parquet files, by organisation."""
    waiting: dict[str, _Chunk] = defaultdict(_Chunk)
    staged: dict[str, list[Path]] = defaultdict(list)

    def write(organisation: str) -> None:
        path = scratch / f"staged-{sum(map(len, staged.values()))}.parquet"
        pq.write_table(waiting.pop(organisation).table(), path, compression="none")
        staged[organisation].append(path)

    for batch in batches:
        waiting[batch.organisation].add(batch)
        if len(waiting[batch.organisation].events) >= ROWS_STAGED_AT_ONCE:
            write(batch.organisation)
    for organisation in [name for name, chunk in waiting.items() if chunk.events]:
        write(organisation)
    return staged


class _Chunk:
    """Events of one organisation, and what is known of each from its batch, until they are made into a table."""

    def __init__(self) -> None:
        self.events: list[_Stored] = []
        self._seq: list[int] = []
        self._game_id: list[str] = []
        self._arrival_ms: list[int] = []
        self._country: list[str | None] = []

    def add(self, batch: Batch) -> None:
        """Decode *batch* and keep its events."""
        events = _decode(decompress(batch.body, wbits=31) if batch.is_gzipped else batch.body)
        first = batch.id * EVENTS_PER_BATCH
        self.events += events
        self._seq += range(first, first + len(events))
        self._game_id += [batch.game_id] * len(events)
        self._arrival_ms += [batch.arrival_ms] * len(events)
        self._country += [batch.country] * len(events)

    def table(self) -> pa.Table:
        """The events as rows of `_SCHEMA`. Made column by column: row by row takes twice as long."""
        events = self.events
        columns: dict[str, Any] = {name: list(map(attrgetter(name), events)) for name in _COPIED}
        for name, (field, category) in _ONLY_OF.items():
            columns[name] = _of_category(category, field, events)
        self._fill_impressions(columns)
        arrays = {name: pa.array(column, _SCHEMA.field(name).type) for name, column in columns.items()}
        arrays["seq"] = pa.array(self._seq, pa.int64())
        arrays["game_id"] = pa.array(self._game_id, pa.string())
        arrays["country_code"] = self._countries()
        arrays["ts"] = self._event_times()
        arrays["day"] = pc.cast(arrays["ts"], pa.date32(), safe=False)
        return pa.table(arrays, schema=_SCHEMA)

    def _event_times(self) -> pa.Array:
        """The clients' time where it can be believed, else the arrival."""
        named = map(attrgetter("client_ts"), self.events)
        told = [ts if ts is not None and 0 <= ts <= _LATEST_TS else None for ts in named]
        told_s, arrival_ms = pa.array(told, pa.int64()), pa.array(self._arrival_ms, pa.int64())
        is_believed = pc.less_equal(told_s, _plus(arrival_ms, FUTURE_S))
        micros = pc.if_else(is_believed, pc.multiply(told_s, 1_000_000), pc.multiply(arrival_ms, 1000))
        return pc.coalesce(micros, pc.multiply(arrival_ms, 1000)).cast(pa.timestamp("us"))

    def _countries(self) -> pa.Array:
        """The country the event names, else that of its request's address."""
        named = pa.array(list(map(attrgetter("country_code"), self.events)), pa.string())
        return pc.coalesce(pc.utf8_upper(named), pa.array(self._country, pa.string()))

    def _fill_impressions(self, columns: dict[str, Any]) -> None:
        filled = ("ilrd_sdk_vendor", "ilrd_id", "ilrd_network_name", "ilrd_adunit_name", "ilrd_adunit_format")
        for name in filled:
            columns[name] = [None] * len(self.events)
        for place, event in enumerate(self.events):
            if event.category == "impression":
                impression = read_impression(event.ad_network_name, event.impression_data)
                for name, value in zip(
                    (*filled, "money", "currency"), (event.ad_network_name, *impression), strict=True
                ):
                    columns[name][place] = value


def _of_category(category: str, field: str, events: list[_Stored]) -> list[Any]:
    """*field* of the events of *category*, None for all others."""
    read = attrgetter(field)
    return [read(event) if event.category == category else None for event in events]


def _plus(arrival_ms: pa.Array, seconds: int) -> pa.Array:
    """Whole seconds, *seconds* after each arrival."""
    return pc.add(pc.divide(arrival_ms, 1000), seconds)


def _build(staged: dict[str, list[Path]], lake: Lake, scratch: Path, *, version: int) -> tuple[list[File], int]:
    """The files of the next version, and how many events had been there before."""
    files: list[File] = []
    duplicates = 0
    for organisation, paths in staged.items():
        workshop = Workshop(scratch)
        try:
            snapshot = lake.snapshot(organisation)
            workshop.files("staged", paths, EVENT_COLUMNS)
            workshop.files("known", list(snapshot.days.values()), EVENT_COLUMNS)
            workshop.files("known_players", [snapshot.players] if snapshot.players else [], PLAYER_COLUMNS)
            workshop.run(_FRESH)
            ((received,),) = workshop.run("SELECT count(*) FROM staged")
            ((kept,),) = workshop.run("SELECT count(*) FROM fresh")
            duplicates += received - kept
            folder = lake.root / str(version) / f"org-{quote(organisation, safe='')}"
            for (day,) in workshop.run("SELECT DISTINCT day FROM fresh ORDER BY day"):
                old = snapshot.days.get(day)
                files.append(_write_day(workshop, organisation, day, old, folder, lake.root))
            if kept:
                files.append(_write_players(workshop, organisation, folder, lake.root))
        finally:
            workshop.close()
    return files, duplicates


# The first copy to arrive counts, whether the others come with it or years later.
_FRESH: Final = """
    CREATE TEMP TABLE fresh AS
    SELECT * FROM staged
    WHERE event_uuid IS NULL
       OR NOT EXISTS (SELECT 1 FROM known k WHERE k.game_id = staged.game_id AND k.event_uuid = staged.event_uuid)
    QUALIFY event_uuid IS NULL OR row_number() OVER (PARTITION BY game_id, event_uuid ORDER BY seq) = 1
    ORDER BY day, game_id, seq"""  # so that each day is found without reading the others

# Earliest by event time, then by arrival; MIN over a row compares from the left.
_PLAYERS: Final = """
    WITH seen AS (
        SELECT game_id, user_id,
            min(row(ts, seq, "day", build)) AS install,
            min(CASE WHEN category = 'business' THEN row(ts, seq) END) AS paid
        FROM fresh WHERE user_id IS NOT NULL GROUP BY ALL
        UNION ALL
        SELECT game_id, user_id, row(installed_at, install_seq, install_day, first_build),
            CASE WHEN paid_seq IS NOT NULL THEN row(paid_at, paid_seq) END
        FROM known_players
    ), earliest AS (
        SELECT game_id, user_id, min(install) AS install, min(paid) AS paid FROM seen GROUP BY ALL
    )
    SELECT game_id, user_id, install[1] AS installed_at, install[2] AS install_seq, install[3] AS install_day,
        install[4] AS first_build, paid[1] AS paid_at, paid[2] AS paid_seq
    FROM earliest ORDER BY game_id, user_id"""


def _write_day(workshop: Workshop, organisation: str, day: date, old: Path | None, folder: Path, root: Path) -> File:
    path = _new_file(folder, f"{day.isoformat()}.parquet")
    workshop.files("old", [old] if old else [], EVENT_COLUMNS)
    workshop.run(f"CREATE OR REPLACE TEMP VIEW whole AS FROM old UNION ALL FROM fresh WHERE day = DATE '{day}'")
    workshop.run(f"COPY (FROM whole ORDER BY game_id, seq) TO '{_quoted(path)}' (FORMAT parquet, COMPRESSION zstd)")
    return _described(path, root, organisation, day)


def _write_players(workshop: Workshop, organisation: str, folder: Path, root: Path) -> File:
    path = _new_file(folder, "players.parquet")
    workshop.run(f"COPY ({_PLAYERS}) TO '{_quoted(path)}' (FORMAT parquet, COMPRESSION zstd)")
    return _described(path, root, organisation, None)


def _new_file(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _described(path: Path, root: Path, organisation: str, day: date | None) -> File:
    with path.open("rb") as file:
        os.fsync(file.fileno())  # before the manifest names it
    rows = pq.read_metadata(path).num_rows
    return File(path=str(path.relative_to(root)), organisation=organisation, day=day, events=rows)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
