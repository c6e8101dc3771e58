"""Parquet files of events, as the service's "Event Data" has them.

The tables and their columns are those of the service's public documentation: one for each of six categories (Wire 5.7,
Event Data). `user`, `session_end` and `business` events have no table, and no table has a column for the id, country,
platform or build of an event.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.simulator.events.event_json import join_events
from gamelens.simulator.events.sent_events import SentEvent
from gamelens.wire.currencies import USD_PER_UNIT

_TIME: Final = pa.timestamp("us", "UTC")
_COMMON: Final = {
    "event_dt": pa.date32(),
    "event_client_ts": _TIME,
    "event_arrival_ts": _TIME,
    "game_id": pa.int64(),
    **dict.fromkeys(("user_id", "player_id", "session_id", "custom_01", "custom_02", "custom_03"), pa.string()),
    "custom_fields": pa.string(),
}
_OWN: Final[dict[str, dict[str, pa.DataType]]] = {
    "adactivity_event": {
        **dict.fromkeys(
            ("ad_sdk_name", "ad_placement", "ad_type", "ad_action", "ad_fail_show_reason"),
            pa.string(),
        ),
        "ad_duration": pa.int64(),
    },
    "impression_event": {
        **dict.fromkeys(
            ("ad_network_name", "adunit_name", "adgroup_name", "adgroup_type", "adunit_format"),
            pa.string(),
        ),
        "publisher_revenue_usd_cents": pa.float64(),
    },
    "design_event": {
        **dict.fromkeys((f"event_id_0{part}" for part in range(1, 6)), pa.string()),
        "value": pa.float64(),
    },
    "progression_event": {
        **dict.fromkeys(("progression_status", "progression_1", "progression_2", "progression_3"), pa.string()),
        "score": pa.int64(),
        "attempt_num": pa.int64(),
    },
    "resource_event": {
        **dict.fromkeys(("flow_type", "currency", "item_type", "item_id"), pa.string()),
        "amount": pa.float64(),
    },
    "error_event": dict.fromkeys(("severity", "message"), pa.string()),
}
TABLES: Final = {
    "ads": "adactivity_event",
    "impression": "impression_event",
    "design": "design_event",
    "progression": "progression_event",
    "resource": "resource_event",
    "error": "error_event",
}
"""The table of each category that has one."""
_SCHEMAS: Final = {name: pa.schema(_COMMON | own) for name, own in _OWN.items()}
_FACTS: Final = (
    *("game_id", "user_id", "session_id", "client_ts", "category"),
    *("ilrd_network_name", "ilrd_adunit_name", "ilrd_adunit_format", "ilrd_nano", "ilrd_currency"),
)
_NANOS_PER_CENT: Final = 10**7
_DAY_S: Final = 86_400
_UNDISCLOSED: Final = "undisclosed"

Fields = dict[str, Any]


def event_data_of(sent: list[SentEvent], rows: pa.Table) -> dict[str, pa.Table]:
    """Return the tables of *sent* by name, in the order sent.

    Args:
        sent: events that count.
        rows: their rows of the ledger, each with a time.
    """
    tables: defaultdict[str, list[Fields]] = defaultdict(list)
    facts = rows.select(_FACTS).to_pylist()
    for event, row in zip(sent, facts, strict=True):
        name = TABLES.get(row["category"])
        if name is not None:
            data = msgspec.json.decode(join_events([event.event])[1:-1])
            common = {
                "event_dt": row["client_ts"] // _DAY_S,
                "event_client_ts": row["client_ts"] * 1_000_000,
                "event_arrival_ts": event.sent_s * 1_000_000,
                "game_id": int(row["game_id"]),
                "user_id": row["user_id"],
                "player_id": f"{row['game_id']}-{row['user_id']}",  # a player is that of one game
                "session_id": row["session_id"],
            }
            tables[name].append(common | _own_fields(name, data, row))
    return {name: pa.Table.from_pylist(of_table, _SCHEMAS[name]) for name, of_table in tables.items()}


class EventDataFiles:
    """Parquet files below *folder*, of about *file_rows* rows each.

    Each table has a folder of its own.
    """

    def __init__(self, folder: Path, file_rows: int) -> None:
        self._folder, self._file_rows = folder, file_rows
        self._tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for name in self._tables:
                self._write(name)

    def add(self, name: str, rows: pa.Table) -> None:
        """Add *rows* to the table *name*."""
        self._tables[name].append(rows)
        if sum(map(len, self._tables[name])) >= self._file_rows:
            self._write(name)

    def _write(self, name: str) -> None:
        rows, self._tables[name] = self._tables[name], []
        if rows:
            self._files += 1
            path = self._folder / name / f"{self._files:06d}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.concat_tables(rows), path, compression="zstd")


def _own_fields(name: str, data: Fields, row: Fields) -> Fields:
    """Return the columns that only the table *name* has, from an event as sent and its row of the ledger."""
    parts = data["event_id"].split(":") if "event_id" in data else []
    match name:
        case "impression_event":
            cents = float(row["ilrd_nano"] * USD_PER_UNIT[row["ilrd_currency"]] / _NANOS_PER_CENT)
            return {
                "ad_network_name": row["ilrd_network_name"] or _UNDISCLOSED,
                "adunit_name": row["ilrd_adunit_name"],
                "adgroup_name": _UNDISCLOSED,
                "adunit_format": row["ilrd_adunit_format"],
                "publisher_revenue_usd_cents": cents,
            }
        case "design_event":
            return {f"event_id_0{place}": part for place, part in enumerate(parts, 1)} | {"value": data.get("value")}
        case "progression_event":
            levels = {f"progression_{place}": part for place, part in enumerate(parts[1:], 1)}
            numbers = {"score": data.get("score"), "attempt_num": data.get("attempt_num")}
            return {"progression_status": parts[0], **numbers, **levels}
        case "resource_event":
            names = dict(zip(("flow_type", "currency", "item_type", "item_id"), parts, strict=False))
            return {"amount": data.get("amount"), **names}
    return {column: data.get(column) for column in _OWN[name]}
