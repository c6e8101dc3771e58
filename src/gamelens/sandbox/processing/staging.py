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
from typing import Final

import msgspec
import pyarrow as pa
from zlib_ng import zlib_ng

from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.storage.inbox import InboxBatch
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.dimensions import DIMENSIONS, Payload, Sent
from gamelens.wire.limits import FUTURE_S

StagedFiles = dict[str, list[Path]]
"""Files of events by organisation."""

EVENTS_PER_BATCH: Final = 1 << 20
"""More events than the largest body holds, so that batch id and position order them."""

_LATEST_TS: Final = 99_999_999_999
_COPIED: Final = ("user_id", "session_id", "event_uuid", "custom_01", "custom_02", "custom_03", "device", "os_version")
_NAMED: Final = ("business", "design", "progression", "resource")  # categories whose events have an event_id
_SENT: Final = {it.name: it.source for it in DIMENSIONS.values() if isinstance(it.source, Sent)}
_FIELDS: Final = (
    *_COPIED,
    *(source.field or name for name, source in _SENT.items()),
    *("country_code", "ad_network_name", "client_ts", "length", "amount", "currency", "event_id"),
)
_TEXTS: Final = ", ".join(f'"{name}": "VARCHAR"' for name in dict.fromkeys(_FIELDS))
EVENT_SHAPE: Final = f"""{{{_TEXTS}, "impression_data": "JSON"}}"""
"""The fields of an event that are read, as `from_json` takes them."""
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
    """The place of the revenue in a vendor's payload.

    Attributes:
        field: name of the field.
        per_unit: amount of the field that makes one unit of the currency.
        names_currency: whether the payload names a currency; otherwise it is US dollars.
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
_NAMES: Final = {it.name: it.source.fields for it in DIMENSIONS.values() if isinstance(it.source, Payload)}


def stage(batches: Iterable[InboxBatch], scratch: Path) -> StagedFiles:
    """Decode *batches* into Parquet files below *scratch*, an empty folder.

    Raises:
        Refused: the engine failed.
    """
    organisations: dict[str, int] = {}
    root = scratch / "staged"
    writer = DuckDBWriter(scratch)
    try:
        writer.view("bodies", pa.RecordBatchReader.from_batches(_BODIES, _record_batches(batches, organisations)))
        by_organisation = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (organisation)"
        writer.run(f"COPY ({decode_sql('bodies')}) TO {literal(str(root))} ({by_organisation})")
    finally:
        writer.close()
    names = {str(number): name for name, number in organisations.items()}
    staged: StagedFiles = {}
    for path in sorted(root.glob("organisation=*/*.parquet")):
        staged.setdefault(names[path.parent.name.partition("=")[2]], []).append(path)
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


def decode_sql(bodies: str) -> str:
    """Return the SQL of the rows of all events in *bodies*.

    *bodies* is a table of `id`, `organisation`, `game_id`, `arrival_ms`, `country`, `body`. The rows have the columns
    of the events table, then `organisation`.
    """
    return f"""
        WITH bodies AS (
            SELECT id, organisation, game_id, arrival_ms, country, from_json(body, '[{EVENT_SHAPE}]') AS events
            FROM {bodies}
        ), placed AS (
            SELECT id, organisation, game_id, arrival_ms, country,
                unnest(events) AS event, generate_subscripts(events, 1) AS place
            FROM bodies
        ), events AS (
            SELECT *, id * {EVENTS_PER_BATCH} + place - 1 AS seq FROM placed
        )
        FROM ({event_rows_sql("events", others=("organisation",))})"""  # noqa: S608


def event_rows_sql(events: str, *, others: Sequence[str]) -> str:
    """Return the SQL of the rows of *events*.

    They have the columns of the events table, then the columns *others*.

    Args:
        events: a table of `seq`, `game_id`, `arrival_ms`, `country` and `event`, which `from_json` makes of an event
            in `EVENT_SHAPE`. An event without an arrival has no time unless it names one.
        others: columns of it that are passed on.
    """
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in _columns().items())
    return f"""
        WITH paid AS (
            SELECT *, {_payload_sql("event")} AS payload, TRY_CAST(event.client_ts AS BIGINT) AS told,
                least({_LATEST_TS}, arrival_ms // 1000 + {FUTURE_S}) AS latest
            FROM {events}
        ), timed AS (
            SELECT *, {_earned_sql("event.ad_network_name", "payload")} AS earned, make_timestamp(
                CASE WHEN told BETWEEN 0 AND latest THEN told * 1000000 ELSE arrival_ms * 1000 END
            ) AS ts
            FROM paid
        )
        SELECT {", ".join((columns, *others))} FROM timed"""  # noqa: S608


def _columns() -> dict[str, str]:
    """Return the SQL of each column of the events table."""
    columns = {
        "seq": "seq",
        "ts": "ts",
        "day": "CAST(ts AS DATE)",
        "arrived_at": "make_timestamp(arrival_ms * 1000)",
        "game_id": "game_id",
        "country_code": "coalesce(upper(event.country_code), country)",
        "length": "CASE WHEN event.category = 'session_end' THEN TRY_CAST(event.length AS BIGINT) END",
        "event_id": f"CASE WHEN event.category IN {_NAMED} THEN event.event_id END",
        **{name: f"event.{name}" for name in _COPIED},
        **{name: _sent_sql(source, name) for name, source in _SENT.items()},
    }
    fallback_id = f"'u' || event.event_uuid, 's' || ({columns['seq']})"
    impression = _impression_sql("event.ad_network_name", "payload", "earned", fallback_id)
    money = {"money": "TRY_CAST(event.amount AS BIGINT)", "currency": "event.currency"}
    for name, of_impression in impression.items():
        of_purchase = f"WHEN event.category = 'business' THEN {money[name]} " if name in money else ""
        columns[name] = f"CASE {of_purchase}WHEN event.category = 'impression' THEN {of_impression} END"
    return {name: columns[name] for name in EVENT_COLUMNS}


def _sent_sql(source: Sent, name: str) -> str:
    """Return the SQL of the dimension *name*, which is as it was sent."""
    field = f"event.{source.field or name}"
    return field if source.only is None else f"CASE WHEN event.category = '{source.only}' THEN {field} END"


def _payload_sql(event: str) -> str:
    """Return the SQL of the payload's fields to read, each as JSON, and null for other events."""
    read = [*_IDS, *(name for names in _NAMES.values() for name in names)]
    read += [*(revenue.field for revenue in _REVENUE.values()), "currency"]
    shape = ", ".join(f'"{name}": "JSON"' for name in dict.fromkeys(read))
    return f"CASE WHEN {event}.category = 'impression' THEN from_json({event}.impression_data, '{{{shape}}}') END"


def _earned_sql(vendor: str, payload: str) -> str:
    """Return the SQL of the revenue in *payload* in nano-units.

    Null if its *vendor* names none.
    """
    whens: dict[int, str] = {}
    for name, revenue in _REVENUE.items():
        whens[revenue.per_unit] = whens.get(revenue.per_unit, "") + f"WHEN '{name}' THEN {payload}.{revenue.field} "
    nanos = [_nanos_sql(f"CASE {vendor} {fields}END", per_unit=per_unit) for per_unit, fields in whens.items()]
    return f"CASE WHEN {payload} IS NOT NULL THEN coalesce({', '.join(nanos)}) END"


def _impression_sql(vendor: str, payload: str, earned: str, fallback_id: str) -> dict[str, str]:
    """Return the SQL of the columns of an impression that its payload tells.

    Args:
        vendor: SQL of the mediation SDK.
        payload: SQL of the fields that `_payload_sql` reads.
        earned: SQL of the revenue that `_earned_sql` reads.
        fallback_id: SQL of the identity where the vendor gives none. Prefixes keep both kinds of id apart.
    """
    currency = _currency_sql(vendor, payload)
    usable = f"{earned} BETWEEN 0 AND {_MOST_NANOS} AND {currency} IS NOT NULL"
    return {
        **{column: _first_sql(payload, names) for column, names in _NAMES.items()},
        "ilrd_id": f"coalesce('i' || {_first_sql(payload, _IDS)}, {fallback_id})",
        "money": f"CASE WHEN {usable} THEN CAST({earned} AS BIGINT) ELSE 0 END",
        "currency": f"CASE WHEN {usable} THEN {currency} ELSE 'USD' END",
    }


def _currency_sql(vendor: str, payload: str) -> str:
    """Return the SQL of the currency, null if it is not one of the table."""
    fixed = ", ".join(f"'{name}'" for name, revenue in _REVENUE.items() if not revenue.names_currency)
    currencies = ", ".join(f"'{code}'" for code in USD_PER_UNIT)
    currency = f"{payload}.currency"
    text = (
        f"CASE WHEN {currency} IS NULL OR {currency} = 'null' THEN 'USD' ELSE {_first_sql(payload, ('currency',))} END"
    )
    return f"(CASE WHEN {vendor} IN ({fixed}) THEN 'USD' WHEN ({text}) IN ({currencies}) THEN {text} END)"


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


def _first_sql(payload: str, names: tuple[str, ...]) -> str:
    """Return the SQL of the first of *names* that holds a string."""
    texts = [f"CASE WHEN starts_with({payload}.{name}, '\"') THEN {payload}.{name} ->> '$' END" for name in names]
    return f"coalesce({', '.join(texts)})"
