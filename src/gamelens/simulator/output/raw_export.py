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
from itertools import compress, count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelens._files import named_errors
from gamelens.errors import Refused
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.events.event_json import Fragments, encode_events, join_events
from gamelens.simulator.events.request_batches import send_times
from gamelens.simulator.events.sent_events import REPEATED, SentEvent
from gamelens.simulator.output.play import (
    BlockTask,
    block_tasks,
    first_day,
    map_in_order,
    play_task,
    seed_of_delivery,
    send_task,
)
from gamelens.simulator.population.arrays import Flags, Ints, run_starts
from gamelens.simulator.population.behaviour import EventSlot
from gamelens.simulator.population.installs import publishers_of
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.event_time import can_be_true

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

ExportFormat = Literal["raw-json", "event-parquet"]
"""Formats of the service's exports: "Raw Data" and "Event Data"."""

FILE_ROWS: Final = 250_000
"""Rows of a Parquet file."""
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
_LEVEL: Final = 3  # half the time of 6, and a quarter larger
_ARRIVAL: Final = b'{"arrival_ts":%010d' % 0
_CONTINENTS: Final = {"US": "NA", "GB": "EU", "DE": "EU", "FR": "EU", "JP": "AS", "IN": "AS", "BR": "SA"}
_ADDRESS: Final = "203.0.113.0"  # of the range for documentation, as the last byte of an anonymised one is
_FACTS: Final = (
    *("game_id", "user_id", "session_id", "client_ts", "category"),
    *("ilrd_network_name", "ilrd_adunit_name", "ilrd_adunit_format", "ilrd_nano", "ilrd_currency"),
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
    if kind == "raw-json" and scenario.is_clean and not is_recorded:
        events = _Arrivals.of_clean(scenario, begins, task)
        return len(events), _json_lines(events, game_id), {}, None
    sent, rows = send_task(scenario, begins, task, game_id=game_id)
    # An event without a usable time has the time of its arrival.
    arrivals, place = pa.array([event.sent_s for event in sent], pa.int64()), SCHEMA.get_field_index("client_ts")
    times = pc.coalesce(rows["client_ts"].combine_chunks(), arrivals)
    rows = rows.set_column(place, SCHEMA.field(place), times)
    verdicts = (None, REPEATED) if kind == "raw-json" else (None,)
    is_exported = [event.verdict in verdicts for event in sent]
    exported = list(compress(sent, is_exported))
    exported_rows, ledger_rows = rows.filter(pa.array(is_exported, pa.bool_())), rows if is_recorded else None
    if kind == "raw-json":
        return len(exported), _json_lines(_Arrivals.of_sent(exported, exported_rows), game_id), {}, ledger_rows
    tables = _event_data(exported, exported_rows.select(_FACTS).to_pylist())
    return sum(map(len, tables.values())), {}, tables, ledger_rows


class _Names(NamedTuple):
    """A column of texts: the place of the text of each row in *texts*, -1 where it has none."""

    places: Ints
    texts: list[str]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Names:
        """Return a column of Arrow."""
        column = column.combine_chunks()
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        return cls(encoded.indices.fill_null(-1).to_numpy().astype(np.int64), encoded.dictionary.to_pylist())

    def text_of(self, row: int) -> str | None:
        """Return the text of a row."""
        place = self.places[row]
        return self.texts[place] if place >= 0 else None


class _Arrivals(NamedTuple):
    """Events of one game in the order of their arrival, one value of each attribute for an event.

    Attributes:
        fragments: JSON fragments, shape (n, 3).
        sent_s: time of arrival, in epoch seconds.
        client_ts: time of the event, or of the arrival where its own cannot be true.
        player: number of the player.
        country, build, publisher: what the player's device says.
        is_counted: whether it counts; a repeated event does not.
        amounts: money of the purchases in hundredths, by the number of the event.
    """

    fragments: Fragments
    sent_s: Ints
    client_ts: Ints
    player: Ints
    country: _Names
    build: _Names
    publisher: _Names
    is_counted: Flags
    amounts: dict[int, int]

    @classmethod
    def of_clean(cls, scenario: Scenario, begins: date, task: BlockTask) -> _Arrivals:
        """Return the events of a block of a scenario without defects, from its arrays: each arrives once."""
        block, ids = play_task(scenario, begins, task)
        game, sessions, players = scenario.games[task.game], block.sessions, block.players
        sent_s = send_times(block, scenario=scenario, seed=seed_of_delivery(scenario, task))
        order = np.argsort(sent_s, kind="stable")
        fragments = encode_events(block, ids, game=game, scenario=scenario)[order]
        session, sent_s, ts_s = block.events.session[order], sent_s[order], block.events.ts_s[order]
        player = sessions.player[session]
        bought = np.flatnonzero(block.events.slot[order] == EventSlot.BUSINESS).tolist()
        return cls(
            fragments=fragments,
            sent_s=sent_s,
            client_ts=np.where(can_be_true(ts_s, sent_s), ts_s, sent_s),
            player=player,
            country=_Names(players.country[player], list(game.countries)),
            build=_Names(sessions.build[session], [build.name for build in game.builds]),
            publisher=_Names(players.publisher[player], list(publishers_of(game, scenario=scenario))),
            is_counted=np.ones(len(order), dtype=bool),
            amounts={row: _decoded(fragments[row])["amount"] for row in bought},
        )

    @classmethod
    def of_sent(cls, sent: list[SentEvent], rows: pa.Table) -> _Arrivals:
        """Return events that were sent, with their *rows* of the ledger, which all have a time."""
        fragments = np.empty((len(sent), 3), dtype=object)
        fragments[:] = [event.event for event in sent]
        is_bought = pc.equal(rows["category"].cast(pa.string()), "business")
        bought = np.flatnonzero(is_bought.combine_chunks().to_numpy(zero_copy_only=False)).tolist()
        return cls(
            fragments=fragments,
            sent_s=np.array([event.sent_s for event in sent], dtype=np.int64),
            client_ts=rows["client_ts"].to_numpy(),
            player=_Names.of(rows["user_id"]).places,
            country=_Names.of(rows["country_code"]),
            build=_Names.of(rows["build"]),
            publisher=_Names.of(rows["install_publisher"]),
            is_counted=np.array([event.verdict is None for event in sent], dtype=bool),
            amounts=dict(zip(bought, rows["amount"].take(pa.array(bought, pa.int64())).to_pylist(), strict=True)),
        )

    def __len__(self) -> int:
        return len(self.sent_s)


def _json_lines(events: _Arrivals, game_id: str) -> dict[Path, bytes]:
    """Return the lines of *events*, gzipped by UTC day of arrival.

    Lines are joined from fragments: the wrapper is made once for all events of a player that have the same.
    """
    if not len(events):
        return {}
    cents, ends = np.zeros(len(events), dtype=np.int64), [end[:-1] + b"}\n" for end in events.fragments[:, 2].tolist()]
    contents, heads = events.fragments[:, 0].tolist(), events.fragments[:, 1].tolist()
    for row, amount in events.amounts.items():
        data = join_events([tuple(events.fragments[row])])[1:-1]
        cents[row] = round(amount * USD_PER_UNIT[msgspec.json.decode(data)["currency"]])
        contents[row], heads[row], ends[row] = b'%b,"amount_usd":%d}}\n' % (data[:-1], cents[row]), b"", b""
    wrappers, places = _wrappers(events, cents, game_id)
    moment, power = events.sent_s[:, None], 10 ** np.arange(9, -1, -1)
    begins = np.tile(np.frombuffer(_ARRIVAL, dtype=np.uint8), (len(events), 1))
    begins[:, -10:] = ord("0") + moment // power % 10
    parts = np.empty((len(events), 5), dtype=object)
    parts[:, 0] = begins.view(f"S{len(_ARRIVAL)}").ravel()
    parts[:, 1] = wrappers[places]
    parts[:, 2], parts[:, 3], parts[:, 4] = contents, heads, ends
    days = events.sent_s // _DAY_S
    starts = np.flatnonzero(run_starts(days)).tolist()
    return {
        Path(game_id) / f"{datetime.fromtimestamp(int(events.sent_s[start]), UTC).date()}.json.gz": gzip.compress(
            b"".join(parts[start:end].ravel().tolist()), compresslevel=_LEVEL, mtime=0
        )
        for start, end in pairwise([*starts, len(events)])
    }


def _wrappers(events: _Arrivals, cents: Ints, game_id: str) -> tuple[Fragments, Ints]:
    """Return the different wrappers of events, from the arrival to the data, and which of them an event has."""
    order = np.argsort(events.player, kind="stable")  # by player, in the order of arrival
    of_player = events.player[order]
    group = np.cumsum(run_starts(of_player)) - 1
    first = np.flatnonzero(run_starts(of_player))
    is_paid = np.zeros(len(events), dtype=bool)
    is_paid[list(events.amounts)] = True
    is_paid &= events.is_counted
    payments, paid = np.empty_like(events.sent_s), np.empty_like(events.sent_s)
    for totals, values in ((payments, is_paid[order].astype(np.int64)), (paid, np.where(is_paid, cents, 0)[order])):
        so_far = np.cumsum(values)  # of all players: less what those before have
        totals[order] = so_far - (so_far - values)[first][group]
    paid_ts = np.zeros(len(first), dtype=np.int64)
    first_paid = order[(payments[order] == 1) & is_paid[order]]
    numbers = np.empty(len(events), dtype=np.int64)
    numbers[order] = group
    paid_ts[numbers[first_paid]] = events.client_ts[first_paid]
    by_time = np.lexsort((events.client_ts, ~events.is_counted, events.player))  # an install is an event that counts
    installs = by_time[run_starts(events.player[by_time])].tolist()
    is_first_day = (payments > 0) & (events.sent_s // _DAY_S == paid_ts[numbers] // _DAY_S)
    keys = (numbers * (int(payments.max()) + 1) + payments) * 2 + is_first_day
    keys = keys * (len(events.country.texts) + 1) + events.country.places + 1
    _, examples, places = np.unique(keys, return_index=True, return_inverse=True)
    wrappers = np.empty(len(examples), dtype=object)
    for number, row in enumerate(examples.tolist()):
        install, country = installs[numbers[row]], events.country.text_of(row)
        continent = _CONTINENTS.get(country) if country else None
        meta = _user_meta(
            int(events.client_ts[install]),
            events.build.text_of(install),
            events.publisher.text_of(install),
            int(paid[row]),
        )
        if payments[row]:
            meta |= {"is_paying": True, "is_converting": bool(is_first_day[row]), "pay_ft": int(paid_ts[numbers[row]])}
        wrapper = {
            "country_code": country,
            "continent": continent,
            "game_id": int(game_id),
            "ip": _ADDRESS,
            "user_meta": meta,
        }
        known = msgspec.json.encode({name: value for name, value in wrapper.items() if value is not None})
        wrappers[number] = b',%b,"data":' % known[1:-1]
    return wrappers, places


def _user_meta(install_ts: int, build: str | None, publisher: str | None, revenue_cents: int) -> RawFields:
    """Return the object `user_meta` of a player who has not paid."""
    installed = datetime.fromtimestamp(install_ts, UTC).replace(hour=0, minute=0, second=0)
    week, month = installed - timedelta(days=installed.weekday()), installed.replace(day=1)
    meta: RawFields = {
        "install_ts": install_ts,
        "install_hour": install_ts - install_ts % _HOUR_S,
        "cohort_week": round(week.timestamp()),
        "cohort_month": round(month.timestamp()),
        "first_build": build,
        "origin": publisher or "organic",
        "revenue": {"usd": revenue_cents},
    }
    return meta | {"install_publisher": publisher} if publisher else meta


def _decoded(fragments: Fragments) -> RawFields:
    """Return an event as an object."""
    event: RawFields = msgspec.json.decode(join_events([tuple(fragments)])[1:-1])
    return event


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
