"""The events of `play` as files of both formats of the service's exports.

The service exports what its collector accepted, when it arrived: late events lie in the files of later days. Repeated
events are in the JSON lines, which have event_uuid, and not in Parquet, which has no id of an event. Names of files are
not documented, so they are ours. What is lost, malformed or refused is in neither.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gamelens.errors import Refused
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.events.sent_events import REPEATED, SentEvent
from gamelens.simulator.output.event_data_tables import EventDataFiles, event_data_of
from gamelens.simulator.output.play import BlockTask, block_tasks, first_day, send_task
from gamelens.simulator.output.process_pool import map_in_order
from gamelens.simulator.output.raw_json_lines import append_days, json_lines_by_day

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

ExportFormat = Literal["raw-json", "event-parquet"]
"""Formats of the service's exports: "Raw Data" and "Event Data"."""

FILE_ROWS: Final = 250_000
"""Rows of a Parquet file."""


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
    begins, ids = first_day(scenario, ends_on), _numbered_ids(scenario)
    work = partial(_export_block, scenario, begins, ids, kind, is_recorded=ledger is not None)
    total = 0
    with EventDataFiles(folder, file_rows) as files:
        for block in map_in_order(work, block_tasks(scenario), workers=workers):
            if ledger is not None and block.ledger_rows is not None:
                ledger.record(block.ledger_rows)
            append_days(folder, block.game_id, block.lines)
            for name, rows in block.tables.items():
                files.add(name, rows)
            total += block.events
            on_events(block.events)
    return total


def _numbered_ids(scenario: Scenario) -> list[str]:
    """Return ids of whole numbers, as the service's games have them."""
    studios = enumerate(scenario.titles, start=1)
    return [f"{studio}{game:03d}" for studio, (_, titles) in studios for game in range(1, len(titles) + 1)]


def _export_block(
    scenario: Scenario, begins: date, game_ids: list[str], kind: ExportFormat, task: BlockTask, *, is_recorded: bool
) -> _BlockExport:
    game_id = game_ids[task.game]
    sent, rows = send_task(scenario, begins, task, game_id=game_id)
    rows = _date_arrivals(sent, rows)
    verdicts = (None, REPEATED) if kind == "raw-json" else (None,)
    is_exported = [event.verdict in verdicts for event in sent]
    exported, its_rows = list(compress(sent, is_exported)), rows.filter(pa.array(is_exported, pa.bool_()))
    ledger_rows = rows if is_recorded else None
    if kind == "raw-json":
        return _BlockExport(game_id, len(exported), json_lines_by_day(exported, its_rows), {}, ledger_rows)
    tables = event_data_of(exported, its_rows)
    return _BlockExport(game_id, sum(map(len, tables.values())), {}, tables, ledger_rows)


def _date_arrivals(sent: list[SentEvent], rows: pa.Table) -> pa.Table:
    """Return *rows* with the time of arrival where an event has no usable time."""
    arrivals = pa.array([event.sent_s for event in sent], pa.int64())
    times = pc.coalesce(rows["client_ts"].combine_chunks(), arrivals)
    place = SCHEMA.get_field_index("client_ts")
    return rows.set_column(place, SCHEMA.field(place), times)
