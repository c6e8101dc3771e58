"""SQL that turns the bodies of batches into rows of the lake, many bodies at once.

Bodies were validated when they arrived, so the common fields have the type of their rule. Fields of one category may
hold anything on events of another, where they are not validated: they are read for their own category and are null for
the others. If an event gives a field twice, the first counts (Wire 1.8, Rejected events).
"""

from __future__ import annotations

from typing import Final

from gamelens.sandbox.processing.impression_fields import earned_sql, impression_sql, payload_sql
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.wire.limits import FUTURE_S

EVENTS_PER_BATCH: Final = 1 << 20
"""More events than the largest body holds, so that batch id and position order them."""

_LATEST_TS: Final = 99_999_999_999
_COPIED: Final = (
    *("category", "user_id", "session_id", "event_uuid", "platform", "build"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
_ONE_CATEGORY: Final = {"ad_sdk_name": "ads", "ad_type": "ads", "ad_action": "ads", "severity": "error"}
_FIELDS: Final = (
    *_COPIED,
    *_ONE_CATEGORY,
    "country_code",
    "ad_network_name",
    "client_ts",
    "length",
    "amount",
    "currency",
)


def decode_sql(bodies: str) -> str:
    """Return the SQL of the rows of all events in *bodies*.

    *bodies* is a table of `id`, `organisation`, `game_id`, `arrival_ms`, `country`, `body`. The rows have the columns
    of the events table, then `organisation`.
    """
    shape = ", ".join(f'"{name}": "VARCHAR"' for name in _FIELDS)
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in _columns().items())
    return f"""
        WITH bodies AS (
            SELECT id, organisation, game_id, arrival_ms, country,
                from_json(body, '[{{{shape}, "impression_data": "JSON"}}]') AS events
            FROM {bodies}
        ), events AS (
            SELECT id, organisation, game_id, arrival_ms, country,
                unnest(events) AS event, generate_subscripts(events, 1) AS place
            FROM bodies
        ), paid AS (
            SELECT *, {payload_sql("event")} AS payload, TRY_CAST(event.client_ts AS BIGINT) AS told,
                least({_LATEST_TS}, arrival_ms // 1000 + {FUTURE_S}) AS latest
            FROM events
        ), timed AS (
            SELECT *, {earned_sql("event.ad_network_name", "payload")} AS earned, make_timestamp(
                CASE WHEN told BETWEEN 0 AND latest THEN told * 1000000 ELSE arrival_ms * 1000 END
            ) AS ts
            FROM paid
        )
        SELECT {columns}, organisation FROM timed"""  # noqa: S608


def _columns() -> dict[str, str]:
    """Return the SQL of each column of the events table."""
    columns = {
        "seq": f"id * {EVENTS_PER_BATCH} + place - 1",
        "ts": "ts",
        "day": "CAST(ts AS DATE)",
        "game_id": "game_id",
        "country_code": "coalesce(upper(event.country_code), country)",
        "length": "CASE WHEN event.category = 'session_end' THEN TRY_CAST(event.length AS BIGINT) END",
        **{name: f"event.{name}" for name in _COPIED},
        **{name: f"CASE WHEN event.category = '{only}' THEN event.{name} END" for name, only in _ONE_CATEGORY.items()},
    }
    fallback_id = f"'u' || event.event_uuid, 's' || ({columns['seq']})"
    impression = impression_sql("event.ad_network_name", "payload", "earned", fallback_id)
    money = {"money": "TRY_CAST(event.amount AS BIGINT)", "currency": "event.currency"}
    for name, of_impression in impression.items():
        of_purchase = f"WHEN event.category = 'business' THEN {money[name]} " if name in money else ""
        columns[name] = f"CASE {of_purchase}WHEN event.category = 'impression' THEN {of_impression} END"
    return {name: columns[name] for name in EVENT_COLUMNS}
