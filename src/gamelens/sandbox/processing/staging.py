"""New batches as Parquet in a scratch folder, one folder per organisation.

The engine decodes the bodies. They were validated when they arrived, so the common fields have the type of their rule.
Fields of one category may hold anything on events of another, where they are not validated: they are read for their own
category and are null for the others. If an event gives a field twice, the first counts (Wire 1.8, Rejected events).
Revenue, network and identity of an impression are in a payload of each vendor (Wire 3.6, Impression payloads; Wire 4.6,
Impression).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from zlib_ng import zlib_ng

from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.storage.dating import device_time
from gamelens.sandbox.storage.inbox import InboxBatch
from gamelens.sandbox.storage.keyed_runs import array_of
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.dimensions import DIMENSIONS, Payload, Sent
from gamelens.wire.limits import OLDEST_DAYS

StagedFiles = dict[str, list[Path]]
"""Files of events by organisation. The folder of each may tell that its events are dated by arrival (`dating`)."""

EVENTS_PER_BATCH: Final = 1 << 20
"""More events than the largest body holds, so that batch id and position order them."""

_COPIED: Final = ("user_id", "session_id", "event_uuid", "custom_01", "custom_02", "custom_03", "device", "os_version")
_NAMED: Final = ("business", "design", "progression", "resource")  # categories whose events have an event_id
_SENT: Final = {
    dimension.name: dimension.source for dimension in DIMENSIONS.values() if isinstance(dimension.source, Sent)
}
_FIELDS: Final = (
    *_COPIED,
    *(source.field or name for name, source in _SENT.items()),
    *("country_code", "ad_network_name", "client_ts", "currency", "event_id"),
)
_TEXTS: Final = ", ".join(f'"{name}": "VARCHAR"' for name in dict.fromkeys(_FIELDS))
_AS_SENT: Final = ", ".join(f'"{name}": "JSON"' for name in ("length", "amount", "amount_usd", "impression_data"))
EVENT_SHAPE: Final = f"{{{_TEXTS}, {_AS_SENT}}}"
"""The fields of an event that are read, as `from_json` takes them.

Numbers that are summed are read as JSON, which tells them from text.
"""
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

_NANO: Final = 10**9
_MICRO: Final = 10**6
_MOST_NANOS: Final = 2**62


class _Revenue(msgspec.Struct, frozen=True):
    """The field of the revenue in a vendor's payload. One unit of the currency is *per_unit* of its numbers.

    It is US dollars if the payload never *names_currency*.
    """

    field: str
    per_unit: int = 1
    names_currency: bool = True


_REVENUE: Final = {
    "max": _Revenue("revenue", names_currency=False),
    "ironsource": _Revenue("revenue", names_currency=False),
    "admob": _Revenue("revenue", per_unit=_MICRO),
    "mopub": _Revenue("publisher_revenue"),
    "topon": _Revenue("publisher_revenue"),
    "hyperbid": _Revenue("publisher_revenue"),
    "fyber": _Revenue("netPayout"),
}
_IDS: Final = ("id", "auction_id", "impressionId")
_NAMES: Final = {
    dimension.name: dimension.source.fields
    for dimension in DIMENSIONS.values()
    if isinstance(dimension.source, Payload)
}


def stage(batches: Iterable[InboxBatch], scratch: Path, *, oldest_days: int = OLDEST_DAYS) -> StagedFiles:
    """Decode *batches* into Parquet files below *scratch*, an empty folder.

    A time of a device that is more than *oldest_days* before the arrival is not used (Wire 4.1, Event time).

    Raises:
        Refused: the engine failed.
    """
    organisations: dict[str, int] = {}
    root = scratch / "staged"
    writer = DuckDBWriter(scratch)
    try:
        writer.view("bodies", pa.RecordBatchReader.from_batches(_BODIES, _record_batches(batches, organisations)))
        partitioned = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (organisation, dated_by)"
        writer.run(f"COPY ({_decode_sql(oldest_days)}) TO {literal(str(root))} ({partitioned})")
    finally:
        writer.close()
    names = {str(number): name for name, number in organisations.items()}
    staged: StagedFiles = {}
    for path in sorted(root.glob("organisation=*/*/*.parquet")):
        staged.setdefault(names[path.parent.parent.name.partition("=")[2]], []).append(path)
    return staged


def _record_batches(batches: Iterable[InboxBatch], organisations: dict[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield unpacked bodies in chunks of about a megabyte.

    Numbers *organisations* in the order in which they first appear.
    """
    rows: list[tuple[object, ...]] = []
    size = 0

    def taken() -> pa.RecordBatch:
        columns = zip(zip(*rows, strict=True), _BODIES, strict=True)
        return pa.record_batch([_array(column, field.type) for column, field in columns], schema=_BODIES)

    for batch in batches:
        body = zlib_ng.decompress(batch.body, wbits=31) if batch.is_gzipped else batch.body
        number = organisations.setdefault(batch.organisation, len(organisations))
        rows.append((batch.id, number, batch.game_id, batch.arrival_ms, batch.country, body))
        size += len(body)
        if size >= _BYTES_AT_ONCE or len(rows) >= _BODIES_AT_ONCE:
            yield taken()
            rows, size = [], 0
    if rows:
        yield taken()


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return integers, or texts with nulls, as an array of *kind*, without pandas (`array_of`)."""
    if not pa.types.is_string(kind):
        return array_of(np.array(values, dtype=str(kind)))
    texts = [value.encode() if isinstance(value, str) else value or b"" for value in values]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    is_there = np.packbits([value is not None for value in values], bitorder="little")
    return pa.StringArray.from_buffers(len(texts), *map(pa.py_buffer, (offsets, b"".join(texts), is_there)))


def _decode_sql(oldest_days: int) -> str:
    """Return the SQL of the rows of all events in `bodies`.

    They have the columns of the events table, then `organisation` and `dated_by` (`event_rows_sql`).
    """
    return f"""
        WITH bodies AS (
            SELECT id, organisation, game_id, arrival_ms, country, from_json(body, '[{EVENT_SHAPE}]') AS events
            FROM bodies
        ), placed AS (
            SELECT id, organisation, game_id, arrival_ms, country,
                unnest(events) AS event, generate_subscripts(events, 1) AS place
            FROM bodies
        ), events AS (
            SELECT *, id * {EVENTS_PER_BATCH} + place - 1 AS seq FROM placed
        )
        FROM ({event_rows_sql("events", others=("organisation", "dated_by"), oldest_days=oldest_days)})"""  # noqa: S608


def event_rows_sql(events: str, *, others: Sequence[str], oldest_days: int) -> str:
    """Return the SQL of the rows of *events*.

    They have the columns of the events table, then *others*: SQL of the columns of *events* or of `dated_by`, the
    reason why an event is dated by its arrival (`dating`), null where it is not, `has_revenue`, whether an impression
    has a usable revenue, and `payload_currency`, its currency, null where that has no rate.

    *events* is a table of `seq`, `game_id`, `arrival_ms`, `country` and `event`, which `from_json` makes of an event in
    `EVENT_SHAPE`. An event without an arrival has no time unless it names one.
    """
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in _columns().items())
    # The payload's fields to read, each as JSON.
    fields = [*_IDS, *(name for names in _NAMES.values() for name in names)]
    fields += [*(revenue.field for revenue in _REVENUE.values()), "currency"]
    shape = ", ".join(f'"{name}": "JSON"' for name in dict.fromkeys(fields))
    payload = f"CASE WHEN event.category = 'impression' THEN from_json(event.impression_data, '{{{shape}}}') END"
    # The revenue in nano-units, null if the vendor names none.
    whens: dict[int, str] = {}
    for name, revenue in _REVENUE.items():
        whens[revenue.per_unit] = whens.get(revenue.per_unit, "") + f"WHEN '{name}' THEN payload.{revenue.field} "
    nanos = [
        _nanos_sql(f"CASE event.ad_network_name {of_vendor}END", per_unit=per_unit)
        for per_unit, of_vendor in whens.items()
    ]
    earned = f"CASE WHEN payload IS NOT NULL THEN coalesce({', '.join(nanos)}) END"
    has_revenue = f"coalesce(earned BETWEEN 0 AND {_MOST_NANOS}, false)"
    time = device_time(
        "client_ts", sent=_sent_sql("client_ts"), number="told", arrival="arrival_s", oldest_days=oldest_days
    )
    return f"""
        WITH paid AS (
            SELECT *, {payload} AS payload, TRY_CAST(event.client_ts AS BIGINT) AS told,
                arrival_ms // 1000 AS arrival_s
            FROM {events}
        ), timed AS (
            SELECT *, {earned} AS earned, {has_revenue} AS has_revenue,
                {_payload_currency_sql()} AS payload_currency, {time.reason} AS dated_by,
                make_timestamp(arrival_ms * 1000) AS arrival,
                make_timestamp(CASE WHEN {time.is_used} THEN told * 1000000 ELSE arrival_ms * 1000 END) AS ts
            FROM paid
        )
        SELECT {", ".join((columns, *others))} FROM timed"""  # noqa: S608


def _columns() -> dict[str, str]:
    """Return the SQL of each column of the events table."""
    columns = {
        "seq": "seq",
        "ts": "ts",
        "day": "CAST(ts AS DATE)",
        "arrived_at": "arrival",
        "game_id": "game_id",
        "country_code": f"coalesce(upper({_sent_sql('country_code')}), country)",
        "length": "CASE WHEN event.category = 'session_end' THEN TRY_CAST(event.length AS BIGINT) END",
        "event_id": f"CASE WHEN event.category IN {_NAMED} THEN event.event_id END",
        **{name: _sent_sql(name) for name in _COPIED},
    }
    for name, source in _SENT.items():
        field = _sent_sql(source.field or name)
        columns[name] = f"CASE WHEN event.category = '{source.only}' THEN {field} END" if source.only else field
    usable = "has_revenue AND payload_currency IS NOT NULL"
    impression = {
        **{column: _first_sql(names) for column, names in _NAMES.items()},
        # Prefixes keep the vendor's ids and others apart.
        "ilrd_id": f"coalesce('i' || {_first_sql(_IDS)}, 'u' || {_sent_sql('event_uuid')}, 's' || (seq))",
        "money": f"CASE WHEN {usable} THEN CAST(earned AS BIGINT) ELSE 0 END",
        "currency": f"CASE WHEN {usable} THEN payload_currency ELSE 'USD' END",
    }
    money = {"money": "TRY_CAST(event.amount AS BIGINT)", "currency": "event.currency"}
    for name, of_impression in impression.items():
        of_purchase = f"WHEN event.category = 'business' THEN {money[name]} " if name in money else ""
        columns[name] = f"CASE {of_purchase}WHEN event.category = 'impression' THEN {of_impression} END"
    return {name: columns[name] for name in EVENT_COLUMNS}


def _payload_currency_sql() -> str:
    """Return the SQL of the currency of an impression's revenue, null if it is not one of the table."""
    in_dollars = ", ".join(f"'{name}'" for name, revenue in _REVENUE.items() if not revenue.names_currency)
    currencies = ", ".join(f"'{code}'" for code in USD_PER_UNIT)
    text = (
        "CASE WHEN payload.currency IS NULL OR payload.currency = 'null' THEN 'USD' "
        f"ELSE {_first_sql(('currency',))} END"
    )
    return (
        f"CASE WHEN event.ad_network_name IN ({in_dollars}) THEN 'USD' WHEN ({text}) IN ({currencies}) THEN {text} END"
    )


def _sent_sql(field: str) -> str:
    """Return the SQL of a field of the event, null where it is an empty string (Wire 3.3, Common fields)."""
    return f"nullif(event.{field}, '')"


def _nanos_sql(number: str, *, per_unit: int) -> str:
    """Return the SQL of *number*, JSON text, in nano-units, rounded half to even.

    Null where it is not a number or far too large. A decimal of 38 digits holds every amount up to the limit with all
    the digits that a float can have, so nothing is rounded twice.
    """
    places = len(str(_NANO // per_unit)) - 1
    # Cast by way of text, because DuckDB casts the JSON string "1" to a number.
    exact = f"TRY_CAST(CAST({number} AS VARCHAR) AS DECIMAL(38, {places + 19}))"
    near = f"CAST({exact} AS DECIMAL(38, {places}))"  # half away from zero
    nanos = f"CAST(replace(CAST({near} AS VARCHAR), '.', '') AS HUGEINT)"
    is_tie = f"abs(CAST({near} AS DECIMAL(38, {places + 19})) - {exact}) = 0.{'0' * places}5"
    return f"CASE WHEN {is_tie} AND {nanos} % 2 = 1 THEN {nanos} - 1 ELSE {nanos} END"


def _first_sql(names: tuple[str, ...]) -> str:
    """Return the SQL of the first of the fields *names* of a payload that holds a string."""
    texts = [f"CASE WHEN starts_with(payload.{name}, '\"') THEN payload.{name} ->> '$' END" for name in names]
    return f"coalesce({', '.join(texts)})"
