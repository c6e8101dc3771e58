"""The books: every event sent, as columns, and the truth of every metric computed from them.

ledger = Ledger()
for batch in play(scenario, ledger=ledger): ...
ledger.metric("user_unique", interval=Interval.parse("2026-11-01/P7D"), by=("platform",))
ledger.write("truth.parquet")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelens.errors import BadQuery
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.ledger.ground_truth import AD_REVENUE_SCALE, REVENUE_SCALE, ad_revenue, compute_metric, revenue
from gamelens.simulator.ledger.ledger_columns import LedgerColumns
from gamelens.simulator.ledger.ledger_query import LedgerQuery
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Granularity, Interval

Row = dict[str, Any]


class Ledger:
    """What was sent, one row of `facts.SCHEMA` an event; rows are in the order sent.

    Metrics are of what counts: no repeats of the same event_uuid, nothing that the collector refuses.
    """

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._columns: LedgerColumns | None = None

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        """A ledger of *rows* written by hand; columns left out are null."""
        ledger = cls()
        ledger.record(pa.Table.from_pylist(list(rows), schema=SCHEMA))
        return ledger

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The ledger written to *path*.

        Raises:
            BadQuery: no such file, or not a ledger.
        """
        try:
            table = pq.read_table(path)
            table = table.select(SCHEMA.names).cast(SCHEMA)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise BadQuery("ledger", str(path), f"is no ledger: {error}") from None
        ledger = cls()
        ledger.record(table)
        return ledger

    def record(self, events: pa.Table) -> None:
        """Enter *events*, rows of `facts.SCHEMA`, after those that are there."""
        self._tables.append(events)
        self._columns = None

    def date_arrivals(self, at: datetime) -> None:
        """Have every event without a usable client_ts be from *at*, when it arrived.

        Nobody knows that before it is sent. Metrics of whole days need it to the day.
        """
        at_s, place = pa.scalar(int(at.timestamp()), pa.int64()), SCHEMA.get_field_index("client_ts")
        self._tables = [
            table.set_column(place, SCHEMA.field(place), pc.fill_null(table["client_ts"], at_s))
            for table in self._tables
        ]
        self._columns = None

    def write(self, path: str | Path) -> None:
        """Write a Parquet file, one row group for each block of players."""
        with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            for table in self._tables:
                writer.write_table(table)

    def metric(
        self,
        name: str,
        *,
        interval: Interval | str,
        granularity: Granularity = "day",
        by: Sequence[str] = (),
        where: Filter | None = None,
        games: Sequence[str] | None = None,
        since_days_ago: int | None = None,
    ) -> list[Row]:
        """The rows a perfect service would answer, sorted as it sorts them, no limit applied.

        A row holds timestamp (datetime, UTC, start of the bucket), each dimension of *by* (str or None) and the
        fields of the metric. Without *by* every bucket has its row; retention_retro always carries game_id.

        Raises:
            BadQuery: an unknown metric or dimension, since_days_ago missing or out of place, or nobody said when events
                without a usable time arrived.
        """
        query = LedgerQuery(
            name=name,
            interval=Interval.parse(interval) if isinstance(interval, str) else interval,
            granularity=granularity,
            by=tuple(by),
            where=where,
            games=None if games is None else tuple(games),
            since_days_ago=since_days_ago,
        )
        return compute_metric(query, self._read_columns())

    def rejected(self) -> list[Row]:
        """What the collector must have rejected, in the order sent.

        A row holds game_id, event_uuid (None where it cannot be read), sent_as (what is wrong in our words) and errors,
        pairs of error_type and path as the collector tells them.
        """
        names = ["game_id", "event_uuid", "sent_as", "errors"]
        table = pa.concat_tables([SCHEMA.empty_table(), *self._tables])
        rows = table.filter(pc.equal(table["verdict"].cast(pa.string()), "rejected")).select(names).to_pylist()
        return [{**row, "errors": [tuple(error.split(" ")) for error in row["errors"].split("; ")]} for row in rows]

    def refused(self) -> dict[int, int]:
        """How many requests the collector must have refused as a whole, by the status that it owes them."""
        table = pa.concat_tables([SCHEMA.empty_table(), *self._tables])
        statuses = table.filter(pc.equal(table["verdict"].cast(pa.string()), "refused"))["errors"]
        return {int(each["values"]): each["counts"] for each in pc.value_counts(statuses).to_pylist()}

    def labels(self) -> dict[str, int]:
        """How many events were tampered with on their way, by what was done to them."""
        table = pa.concat_tables([SCHEMA.empty_table(), *self._tables])
        counted = pc.value_counts(table["sent_as"].cast(pa.string()).drop_null()).to_pylist()
        return {each["values"]: each["counts"] for each in counted}

    def summary(self) -> dict[str, int | float]:
        """Totals of what counts: events, players, sessions, payers, purchases, ads shown, impressions, USD."""
        columns = self._read_columns()
        is_shown = columns.equals("ad_action", "show") & columns.equals("category", "ads")
        return {
            "events": columns.events,
            "games": len(columns.names("game_id")),
            "players": columns.players,
            "sessions": columns.sessions,
            "payers": int(np.count_nonzero(columns.first_purchase >= 0)),
            "purchases": int(np.count_nonzero(columns.equals("category", "business"))),
            "ads_shown": int(np.count_nonzero(is_shown)),
            "impressions": int(np.count_nonzero(columns.equals("category", "impression"))),
            "revenue_usd": revenue(columns) / REVENUE_SCALE,
            "ad_revenue_usd": ad_revenue(columns) / AD_REVENUE_SCALE,
        }

    def _read_columns(self) -> LedgerColumns:
        if self._columns is None:
            table = pa.concat_tables([SCHEMA.empty_table(), *self._tables])
            table = table.filter(pc.is_null(table["verdict"]))
            if table["client_ts"].null_count:
                raise BadQuery("client_ts", None, "is missing on some events: say when they arrived (date_arrivals)")
            self._columns = LedgerColumns(table)
        return self._columns
