"""New batches as Parquet in a scratch folder, decoded by the engine, one folder per day."""

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

StagedFiles = dict[str, dict[date, list[Path]]]
"""Staged files by organisation and day."""

_BYTES_AT_ONCE: Final = 1 << 20  # what fits into the processor's cache is decoded faster
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


def stage(batches: Iterable[InboxBatch], scratch: Path) -> StagedFiles:
    """Decode *batches* into Parquet files below *scratch*, an empty folder.

    Raises:
        Refused: the engine failed.
    """
    organisations: dict[str, int] = {}
    root = scratch / "staged"
    writer = DuckDBWriter(scratch)
    try:
        writer.view_batches(
            "bodies", pa.RecordBatchReader.from_batches(_BODIES, _record_batches(batches, organisations))
        )
        rows = f"SELECT *, CAST(day AS VARCHAR) AS date FROM ({decode_sql('bodies')})"  # noqa: S608
        by_day = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (organisation, date)"
        writer.run(f"COPY ({rows}) TO {literal(str(root))} ({by_day})")
    finally:
        writer.close()
    names = {str(number): name for name, number in organisations.items()}
    staged: StagedFiles = {}
    for path in sorted(root.glob("organisation=*/date=*/*.parquet")):
        number, day = (part.partition("=")[2] for part in path.parts[-3:-1])
        staged.setdefault(names[number], {}).setdefault(date.fromisoformat(day), []).append(path)
    return staged


def _record_batches(batches: Iterable[InboxBatch], organisations: dict[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield unpacked bodies in chunks of about a megabyte.

    Numbers *organisations* in the order in which they first appear.
    """
    rows: list[tuple[object, ...]] = []
    size = 0
    for batch in batches:
        body = zlib_ng.decompress(batch.body, wbits=31) if batch.is_gzipped else batch.body
        number = organisations.setdefault(batch.organisation, len(organisations))
        rows.append((batch.id, number, batch.game_id, batch.arrival_ms, batch.country, body))
        size += len(body)
        if size >= _BYTES_AT_ONCE or len(rows) >= _BODIES_AT_ONCE:
            yield _record_batch(rows)
            rows, size = [], 0
    if rows:
        yield _record_batch(rows)


def _record_batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, _BODIES, strict=True)], schema=_BODIES
    )
