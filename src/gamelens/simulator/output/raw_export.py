"""The events of `play` as files of both formats of the service's exports.

The service exports what its collector accepted, when it arrived: late events lie in the files of later days. Repeated
events are in the JSON lines, which have event_uuid, and not in Parquet, which has no id of an event. Names of files are
not documented, so they are ours. What is lost, malformed or refused is in neither.

A JSON line is one event (Wire 5.6, Raw Data): `data` is the event as sent, with the amount in US dollar cents, and the
wrapper has what the service knows: arrival, place, and `user_meta` about the player.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.errors import Refused
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.events.event_json import join_events
from gamelens.simulator.events.sent_events import REPEATED, SentEvent
from gamelens.simulator.output.event_data_tables import EventDataFiles, event_data_of
from gamelens.simulator.output.play import BlockTask, block_tasks, first_day, send_task
from gamelens.simulator.output.process_pool import map_in_order
from gamelens.wire.currencies import USD_PER_UNIT

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

ExportFormat = Literal["raw-json", "event-parquet"]
"""Formats of the service's exports: "Raw Data" and "Event Data"."""

FILE_ROWS: Final = 250_000
"""Rows of a Parquet file."""


_HOUR_S: Final = 3600
_LEVEL: Final = 6
_CONTINENTS: Final = {"US": "NA", "GB": "EU", "DE": "EU", "FR": "EU", "JP": "AS", "IN": "AS", "BR": "SA"}
_ADDRESS: Final = "203.0.113.0"  # of the range for documentation, as the last byte of an anonymised one is
_COLUMNS: Final = ("user_id", "client_ts", "country_code", "build", "install_publisher", "category", "amount")


class _BlockExport(NamedTuple):
    """The events of a block as they are written.

    JSON lines are by day of arrival, tables by name.
    """

    game_id: str
    events: int
    lines: dict[date, bytes]
    tables: dict[str, pa.Table]
    ledger_rows: pa.Table | None


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
    """Write the events of *scenario* to files below *folder*, and return their number.

    The games have the ids of a sandbox with the games of the scenario: 1001, 1002, 2001.

    Args:
        scenario: the scenario to play.
        folder: an empty folder, or one to be made.
        kind: format of the files.
        ends_on: the day after the last one, today in UTC by default.
        ledger: records every event. Events without a usable time are entered with that of their arrival.
        workers: number of processes.
        file_rows: rows of a Parquet file.
        on_events: called with the number of new events after each block.

    Raises:
        Refused: *folder* is not empty.
        BadQuery: there are no workers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Refused(f"{folder} is not empty: an export needs a folder of its own")
    studios = enumerate(scenario.titles, start=1)
    ids = [f"{studio}{game:03d}" for studio, (_, titles) in studios for game in range(1, len(titles) + 1)]
    begins = first_day(scenario, ends_on)
    work = partial(_export_block, scenario, begins, ids, kind, is_recorded=ledger is not None)
    total = 0
    with EventDataFiles(folder, file_rows) as files:
        for block in map_in_order(work, block_tasks(scenario), workers=workers):
            if ledger is not None and block.ledger_rows is not None:
                ledger.record(block.ledger_rows)
            for day, packed in block.lines.items():
                path = folder / block.game_id / f"{day}.json.gz"
                path.parent.mkdir(exist_ok=True)
                with path.open("ab") as file:
                    file.write(packed)
            for name, rows in block.tables.items():
                files.add(name, rows)
            total += block.events
            on_events(block.events)
    return total


def _export_block(
    scenario: Scenario, begins: date, game_ids: list[str], kind: ExportFormat, task: BlockTask, *, is_recorded: bool
) -> _BlockExport:
    game_id = game_ids[task.game]
    sent, rows = send_task(scenario, begins, task, game_id=game_id)
    # An event without a usable time has that of its arrival.
    arrivals, place = pa.array([event.sent_s for event in sent], pa.int64()), SCHEMA.get_field_index("client_ts")
    times = pc.coalesce(rows["client_ts"].combine_chunks(), arrivals)
    rows = rows.set_column(place, SCHEMA.field(place), times)
    verdicts = (None, REPEATED) if kind == "raw-json" else (None,)
    is_exported = [event.verdict in verdicts for event in sent]
    exported, its_rows = list(compress(sent, is_exported)), rows.filter(pa.array(is_exported, pa.bool_()))
    ledger_rows = rows if is_recorded else None
    if kind == "raw-json":
        return _BlockExport(game_id, len(exported), _json_lines_by_day(exported, its_rows), {}, ledger_rows)
    tables = event_data_of(exported, its_rows)
    return _BlockExport(game_id, sum(map(len, tables.values())), {}, tables, ledger_rows)


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

    def user_meta(self, arrival_ts: int) -> dict[str, Any]:
        """Return the object `user_meta` of an event that arrives at *arrival_ts*."""
        installed = datetime.fromtimestamp(self._install_ts, UTC).replace(hour=0, minute=0, second=0)
        week, month = installed - timedelta(days=installed.weekday()), installed.replace(day=1)
        meta: dict[str, Any] = {
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
            is_first_day = arrival_ts // 86_400 == self._paid_ts // 86_400
            meta |= {"is_paying": True, "is_converting": is_first_day, "pay_ft": self._paid_ts}
        return meta


def _json_lines_by_day(sent: list[SentEvent], rows: pa.Table) -> dict[date, bytes]:
    """Return the lines of *sent* by the UTC day of their arrival, gzipped.

    Args:
        sent: events that the collector accepted, repeated ones included, in the order sent.
        rows: their rows of the ledger, each with a time.
    """
    lines: defaultdict[date, list[bytes]] = defaultdict(list)
    for event, line in zip(sent, _lines(sent, rows), strict=True):
        lines[datetime.fromtimestamp(event.sent_s, UTC).date()].append(line)
    return {
        day: gzip.compress(b"\n".join(of_day) + b"\n", compresslevel=_LEVEL, mtime=0) for day, of_day in lines.items()
    }


def _lines(sent: list[SentEvent], rows: pa.Table) -> Iterator[bytes]:
    game_id: str | int = rows["game_id"][0].as_py() if len(rows) else ""
    game_id = int(game_id) if str(game_id).isdecimal() else game_id
    facts = list(zip(*(rows[name].to_pylist() for name in _COLUMNS), strict=True))
    players = _players(sent, facts)
    for event, (user, ts, country, _, _, category, amount) in zip(sent, facts, strict=True):
        player, data = players[user], join_events([event.event])[1:-1]
        if category == "business":
            cents = round(amount * USD_PER_UNIT[msgspec.json.decode(data)["currency"]])
            data = b'%b,"amount_usd":%d}' % (data[:-1], cents)
            if event.verdict is None:
                player.pay(ts, cents)
        wrapper = {
            "arrival_ts": event.sent_s,
            "country_code": country,
            "continent": _CONTINENTS.get(country),
            "game_id": game_id,
            "ip": _ADDRESS,
            "user_meta": player.user_meta(event.sent_s),
            "data": msgspec.Raw(data),
        }
        yield msgspec.json.encode({name: value for name, value in wrapper.items() if value is not None})


def _players(sent: list[SentEvent], facts: list[tuple[Any, ...]]) -> dict[str, _Player]:
    """Return the players by user_id, installed at the time of their first event that counts."""
    players: dict[str, _Player] = {}
    for event, (user, ts, _, build, publisher, *_) in zip(sent, facts, strict=True):
        if event.verdict is not None:
            continue
        if user in players:
            players[user].see_installed(ts, build, publisher)
        else:
            players[user] = _Player(ts, build, publisher)
    return players
