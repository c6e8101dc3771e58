"""The events of `play` as files of both formats of the service's exports.

The service exports what its collector accepted, when it arrived: late events lie in the files of later days. Repeated
events are in the JSON lines, which have event_uuid, and not in Parquet, which has no id of an event. Names of files are
not documented, so they are ours. What is lost, malformed or refused is in neither.

A JSON line is one event (Wire 5.6, Raw Data): `data` is the event as sent, with the amount in US dollar cents, and the
wrapper has what the service knows: arrival, place, and `user_meta` about the player.

The service's public documentation gives the tables of Event Data and their columns: one for each of six
categories (Wire 5.7, Event Data). `user`, `session_end` and `business` events have no table, and no table has a column
for the id, country, platform or build of an event.
"""

from __future__ import annotations

import gzip
import shutil
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import compress, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelens._files import named_errors
from gamelens.errors import Refused
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.events.event_json import join_events
from gamelens.simulator.events.sent_events import REPEATED, SentEvent
from gamelens.simulator.output.play import BlockTask, block_tasks, first_day, map_in_order, send_task
from gamelens.wire.currencies import USD_PER_UNIT

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

ExportFormat = Literal["raw-json", "event-parquet"]
"""Formats of the service's exports: "Raw Data" and "Event Data"."""

FILE_ROWS: Final = 250_000
"""Rows of a Parquet file."""
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
_LEVEL: Final = 6
_CONTINENTS: Final = {"US": "NA", "GB": "EU", "DE": "EU", "FR": "EU", "JP": "AS", "IN": "AS", "BR": "SA"}
_ADDRESS: Final = "203.0.113.0"  # of the range for documentation, as the last byte of an anonymised one is
_FACTS: Final = (
    *("game_id", "user_id", "session_id", "client_ts", "category", "country_code", "build", "install_publisher"),
    *("amount", "ilrd_network_name", "ilrd_adunit_name", "ilrd_adunit_format", "ilrd_nano", "ilrd_currency"),
)
_NANOS_PER_CENT: Final = 10**7
_UNDISCLOSED: Final = "undisclosed"

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
_DRAFT: Final = ".part"
"""Folder of the files that are being written, in the folder of the export."""
_SCHEMAS: Final = {name: pa.schema(_COMMON | columns) for name, columns in _OWN.items()}
RawFields = dict[str, Any]
_Block = tuple[int, dict[Path, bytes], dict[str, pa.Table], pa.Table | None]
"""The events of a block as written: their number, JSON lines by file, tables by name, and rows of the ledger."""


def export_raw(
    scenario: Scenario,
    folder: Path,
    kind: ExportFormat,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    file_rows: int = FILE_ROWS,
    on_events: Callable[[int], object] = lambda _: None,
) -> int:
    """Write the events of *scenario* to files below *folder*, all of them or none, and return their number.

    The games have the ids of a sandbox with the games of the scenario: 1001, 1002, 2001.

    Args:
        scenario: the scenario to play.
        folder: an empty folder, or one to be made.
        kind: format of the files.
        ends_on: the day after the last one, today in UTC by default.
        ledger: records every event. Events without a usable time are entered with the time of their arrival.
        workers: number of processes.
        file_rows: rows of a Parquet file.
        on_events: called with the number of new events after each block.

    Raises:
        Refused: *folder* is not empty.
        BadQuery: there are no workers.
        OSError: the disk is full, for instance. It names *folder*, or a file in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Refused(f"{folder} is not empty: an export needs a folder of its own")
    studios = enumerate(scenario.titles, start=1)
    ids = [f"{studio}{game:03d}" for studio, (_, titles) in studios for game in range(1, len(titles) + 1)]
    begins = first_day(scenario, ends_on)
    work = partial(_export_block, scenario, begins, ids, kind, is_recorded=ledger is not None)
    total, numbers = 0, count(1)
    waiting: defaultdict[str, list[pa.Table]] = defaultdict(list)
    draft = folder / _DRAFT

    def write_table(name: str) -> None:
        rows, waiting[name] = waiting[name], []
        if rows:
            path = draft / name / f"{next(numbers):06d}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.concat_tables(rows), path, compression="zstd")

    try:
        with named_errors(folder):
            draft.mkdir()
            for events, lines, tables, ledger_rows in map_in_order(work, block_tasks(scenario), workers=workers):
                if ledger is not None and ledger_rows is not None:
                    ledger.record(ledger_rows)
                for path, packed in lines.items():
                    (draft / path).parent.mkdir(exist_ok=True)
                    with (draft / path).open("ab") as file:
                        file.write(packed)
                for name, rows in tables.items():
                    waiting[name].append(rows)
                    if sum(map(len, waiting[name])) >= file_rows:
                        write_table(name)
                total += events
                on_events(events)
            for name in list(waiting):
                write_table(name)
            for written in draft.iterdir():
                written.rename(folder / written.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return total


def _export_block(
    scenario: Scenario, begins: date, game_ids: list[str], kind: ExportFormat, task: BlockTask, *, is_recorded: bool
) -> _Block:
    game_id = game_ids[task.game]
    sent, rows = send_task(scenario, begins, task, game_id=game_id)
    # An event without a usable time has the time of its arrival.
    arrivals, place = pa.array([event.sent_s for event in sent], pa.int64()), SCHEMA.get_field_index("client_ts")
    times = pc.coalesce(rows["client_ts"].combine_chunks(), arrivals)
    rows = rows.set_column(place, SCHEMA.field(place), times)
    verdicts = (None, REPEATED) if kind == "raw-json" else (None,)
    is_exported = [event.verdict in verdicts for event in sent]
    exported = list(compress(sent, is_exported))
    facts = rows.select(_FACTS).filter(pa.array(is_exported, pa.bool_())).to_pylist()
    ledger_rows = rows if is_recorded else None
    if kind == "raw-json":
        return len(exported), _json_lines(exported, facts), {}, ledger_rows
    tables = _event_data(exported, facts)
    return sum(map(len, tables.values())), {}, tables, ledger_rows


class _Player:
    """The facts of a player that `user_meta` repeats on every event."""

    def __init__(self, install_ts: int, build: str | None, publisher: str | None) -> None:
        self._install_ts, self._build, self._publisher = install_ts, build, publisher
        self._paid_ts: int | None = None
        self._revenue_cents = 0

    def see_installed(self, ts: int, build: str | None, publisher: str | None) -> None:
        """Take an event at *ts* for the install, if it is the earliest."""
        if ts < self._install_ts:
            self._install_ts, self._build, self._publisher = ts, build, publisher

    def pay(self, ts: int, cents: int) -> None:
        """Add a purchase."""
        self._paid_ts = ts if self._paid_ts is None else self._paid_ts
        self._revenue_cents += cents

    def user_meta(self, arrival_ts: int) -> RawFields:
        """Return the object `user_meta` of an event that arrives at *arrival_ts*."""
        installed = datetime.fromtimestamp(self._install_ts, UTC).replace(hour=0, minute=0, second=0)
        week, month = installed - timedelta(days=installed.weekday()), installed.replace(day=1)
        meta: RawFields = {
            "install_ts": self._install_ts,
            "install_hour": self._install_ts - self._install_ts % _HOUR_S,
            "cohort_week": round(week.timestamp()),
            "cohort_month": round(month.timestamp()),
            "first_build": self._build,
            "origin": self._publisher or "organic",
            "revenue": {"usd": self._revenue_cents},
        }
        if self._publisher:
            meta["install_publisher"] = self._publisher
        if self._paid_ts is not None:
            is_first_day = arrival_ts // _DAY_S == self._paid_ts // _DAY_S
            meta |= {"is_paying": True, "is_converting": is_first_day, "pay_ft": self._paid_ts}
        return meta


def _json_lines(sent: list[SentEvent], rows: list[RawFields]) -> dict[Path, bytes]:
    """Return the lines of *sent*, repeated events included, gzipped by game and UTC day of arrival.

    *rows* come from the ledger. All have a time.
    """
    players: dict[str, _Player] = {}
    for event, row in zip(sent, rows, strict=True):
        if event.verdict is None:  # a player was installed at the first event that counts
            installed = row["client_ts"], row["build"], row["install_publisher"]
            players.setdefault(row["user_id"], _Player(*installed)).see_installed(*installed)
    lines: defaultdict[Path, list[bytes]] = defaultdict(list)
    for event, row in zip(sent, rows, strict=True):
        player, data = players[row["user_id"]], join_events([event.event])[1:-1]
        if row["category"] == "business":
            cents = round(row["amount"] * USD_PER_UNIT[msgspec.json.decode(data)["currency"]])
            data = b'%b,"amount_usd":%d}' % (data[:-1], cents)
            if event.verdict is None:
                player.pay(row["client_ts"], cents)
        wrapper = {
            "arrival_ts": event.sent_s,
            "country_code": row["country_code"],
            "continent": _CONTINENTS.get(row["country_code"]),
            "game_id": int(row["game_id"]),
            "ip": _ADDRESS,
            "user_meta": player.user_meta(event.sent_s),
            "data": msgspec.Raw(data),
        }
        path = Path(row["game_id"]) / f"{datetime.fromtimestamp(event.sent_s, UTC).date()}.json.gz"
        lines[path].append(msgspec.json.encode({name: value for name, value in wrapper.items() if value is not None}))
    return {
        path: gzip.compress(b"\n".join(of_day) + b"\n", compresslevel=_LEVEL, mtime=0) for path, of_day in lines.items()
    }


def _event_data(sent: list[SentEvent], rows: list[RawFields]) -> dict[str, pa.Table]:
    """Return the tables of *sent*, which count, by name. *rows* come from the ledger. All have a time."""
    tables: defaultdict[str, list[RawFields]] = defaultdict(list)
    for event, row in zip(sent, rows, strict=True):
        name = TABLES.get(row["category"])
        if name is not None:
            data = msgspec.json.decode(join_events([event.event])[1:-1])
            common = {
                "event_dt": row["client_ts"] // _DAY_S,
                "event_client_ts": row["client_ts"] * 1_000_000,
                "event_arrival_ts": event.sent_s * 1_000_000,
                "game_id": int(row["game_id"]),
                "user_id": row["user_id"],
                "player_id": f"{row['game_id']}-{row['user_id']}",  # a player belongs to one game
                "session_id": row["session_id"],
            }
            tables[name].append(common | _own_fields(name, data, row))
    return {name: pa.Table.from_pylist(of_table, _SCHEMAS[name]) for name, of_table in tables.items()}


def _own_fields(name: str, data: RawFields, row: RawFields) -> RawFields:
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
