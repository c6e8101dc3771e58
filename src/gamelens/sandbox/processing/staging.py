"""New batches as Parquet in a scratch folder: decoded by the engine as they stream in, one folder a day already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
from zlib_ng import zlib_ng

from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.processing.event_decoding import decode_sql
from gamelens.sandbox.storage.inbox import InboxBatch

Staged = dict[str, dict[date, list[Path]]]
"""Files by organisation and day."""

_BYTES_AT_ONCE: Final = 1 << 20  # what the caches hold is decoded faster
_BODIES_AT_ONCE: Final = 2048
_BODIES: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("organisation", pa.int32()),
        ("game_id", pa.string()),
        ("arrival_ms", pa.int64()),
        ("country", pa.string()),
        ("body", pa.string()),
    ]
)


def stage(batches: Iterable[InboxBatch], scratch: Path) -> Staged:
    """Decode *batches* into files below *scratch*, which is empty.

    Raises:
        Refused: the engine could not.
    """
    organisations: dict[str, int] = {}
    root = scratch / "staged"
    workshop = DuckDBWriter(scratch)
    try:
        workshop.stream("bodies", pa.RecordBatchReader.from_batches(_BODIES, _streamed(batches, organisations)))
        rows = f"SELECT *, CAST(day AS VARCHAR) AS date FROM ({decode_sql('bodies')})"  # noqa: S608
        by_day = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (organisation, date)"
        workshop.run(f"COPY ({rows}) TO {literal(str(root))} ({by_day})")
    finally:
        workshop.close()
    names = {str(number): name for name, number in organisations.items()}
    staged: Staged = {}
    for path in sorted(root.glob("organisation=*/date=*/*.parquet")):
        number, day = (part.partition("=")[2] for part in path.parts[-3:-1])
        staged.setdefault(names[number], {}).setdefault(date.fromisoformat(day), []).append(path)
    return staged


def _streamed(batches: Iterable[InboxBatch], organisations: dict[str, int]) -> Iterator[pa.RecordBatch]:
    """Unpacked bodies, a few megabytes at a time; gives each of *organisations* a number when it first comes."""
    waiting: list[tuple[object, ...]] = []
    size = 0
    for batch in batches:
        body = zlib_ng.decompress(batch.body, wbits=31) if batch.is_gzipped else batch.body
        number = organisations.setdefault(batch.organisation, len(organisations))
        waiting.append((batch.id, number, batch.game_id, batch.arrival_ms, batch.country, body))
        size += len(body)
        if size >= _BYTES_AT_ONCE or len(waiting) >= _BODIES_AT_ONCE:
            yield _record_batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _record_batch(waiting)


def _record_batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, _BODIES, strict=True)], schema=_BODIES
    )
