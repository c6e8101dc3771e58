"""The ledger: every event sent, and the truth of every metric computed from them.

ledger = Ledger()
for batch in play(scenario, ledger=ledger): ...
ledger.metric("user_unique", interval=Interval.parse("2026-11-01/P7D"), by=("platform",))
ledger.write("truth.parquet")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import UNSET

from gamelens._files import replace_file
from gamelens.errors import BadQuery, suggests_names
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.ledger.ground_truth import LedgerColumns, LedgerSelection, Row, metric_rows
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Granularity, Interval


@suggests_names
class Ledger:
    """The events sent, one row of `event_columns.SCHEMA` each, in the order sent.

    Metrics cover the events that count: no repeats of an event_uuid, and no event that the collector must refuse.
    """

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._columns: LedgerColumns | None = None

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        """Build a ledger of *rows* written by hand, in which columns left out are null."""
        ledger = cls()
        ledger.record(pa.Table.from_pylist(list(rows), schema=SCHEMA))
        return ledger

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the ledger written to *path*.

        Raises:
            BadQuery: there is no such file, or it is not a ledger.
        """
        try:
            table = pq.read_table(path)
            table = table.select(SCHEMA.names).cast(SCHEMA)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise BadQuery("ledger", str(path), f"is not a ledger: {error}") from None
        ledger = cls()
        ledger.record(table)
        return ledger

    def record(self, events: pa.Table) -> None:
        """Append *events*, rows of `event_columns.SCHEMA`."""
        self._tables.append(events)
        self._columns = None

    def date_arrivals(self, at: datetime) -> None:
        """Set the time of every event without a usable client_ts to *at*, the time of its arrival.

        That time is known only after sending. Metrics of whole days need it to the day.
        """
        at_s, place = pa.scalar(int(at.timestamp()), pa.int64()), SCHEMA.get_field_index("client_ts")
        self._tables = [
            table.set_column(place, SCHEMA.field(place), pc.fill_null(table["client_ts"], at_s))
            for table in self._tables
        ]
        self._columns = None

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with one row group for each block of players, as a whole or not at all."""
        with replace_file(Path(path)) as draft, pq.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
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
        """Return the rows a perfect service would return, in its order and without a limit.

        A row holds timestamp (datetime, UTC, start of the bucket), each dimension of *by* (str or None) and the fields
        of the metric. Without *by* every bucket has its row. retention_retro always carries game_id.

        Args:
            name: name of the metric.
            interval: the requested interval, or its ISO 8601 text.
            granularity: length of the buckets.
            by: dimensions to group by.
            where: filter on the events.
            games: ids of the games to include; all by default.
            since_days_ago: age of the cohorts in days, for retention_retro and returning_users only.

        Raises:
            BadQuery: the metric or a dimension is unknown, since_days_ago is missing or does not apply, or events
                without a usable time have not been dated by `date_arrivals`.
        """
        selection = LedgerSelection(
            self._read_columns(),
            name,
            interval=Interval.parse(interval) if isinstance(interval, str) else interval,
            granularity=granularity,
            by=by,
            where=where,
            games=games,
            since_days_ago=since_days_ago,
        )
        return metric_rows(selection)

    def rejected(self) -> list[Row]:
        """Return the events that the collector should have rejected, in the order sent.

        A row holds game_id, event_uuid (None if it cannot be read), sent_as (the name of the defect) and errors, a list
        of pairs of error_type and path as the collector reports them.
        """
        names = ["game_id", "event_uuid", "sent_as", "errors"]
        rows = self._with_verdict("rejected").select(names).to_pylist()
        return [{**row, "errors": [tuple(error.split(" ")) for error in row["errors"].split("; ")]} for row in rows]

    def refused(self) -> dict[int, int]:
        """Return the number of requests the collector should have refused as a whole, by status."""
        statuses = pc.value_counts(self._with_verdict("refused")["errors"]).to_pylist()
        return {int(status["values"]): status["counts"] for status in statuses}

    def labels(self) -> dict[str, int]:
        """Return the number of events altered in transit, by kind of change."""
        counted = pc.value_counts(self._table()["sent_as"].cast(pa.string()).drop_null()).to_pylist()
        return {label["values"]: label["counts"] for label in counted}

    def summary(self) -> dict[str, int | float]:
        """Return totals of the events that count.

        The keys are events, games, players, sessions, payers, purchases, ads_shown, impressions, revenue_usd and
        ad_revenue_usd.
        """
        columns = self._read_columns()
        is_shown = columns.equals("ad_action", "show") & columns.equals("category", "ads")
        ends_s = int(columns.ts_s.min(initial=0)), int(columns.ts_s.max(initial=0)) + 1
        ever = Interval(*(datetime.fromtimestamp(end_s, UTC) for end_s in ends_s))
        revenue, ad_revenue = (
            self.metric(name, interval=ever, granularity="all")[0]["sum"] for name in ("revenue", "ilrd_revenue")
        )
        return {
            "events": columns.events,
            "games": len(columns.names("game_id")),
            "players": columns.players,
            "sessions": columns.sessions,
            "payers": int(np.count_nonzero(columns.first_purchase >= 0)),
            "purchases": int(np.count_nonzero(columns.equals("category", "business"))),
            "ads_shown": int(np.count_nonzero(is_shown)),
            "impressions": int(np.count_nonzero(columns.equals("category", "impression"))),
            "revenue_usd": revenue,
            "ad_revenue_usd": ad_revenue,
        }

    def _table(self) -> pa.Table:
        return pa.concat_tables([SCHEMA.empty_table(), *self._tables])

    def _with_verdict(self, verdict: str) -> pa.Table:
        table = self._table()
        return table.filter(pc.equal(table["verdict"].cast(pa.string()), verdict))

    def _read_columns(self) -> LedgerColumns:
        if self._columns is None:
            table = self._table()
            table = table.filter(pc.is_null(table["verdict"]))
            if table["client_ts"].null_count:
                raise BadQuery("client_ts", UNSET, "is missing on some events: call date_arrivals first")
            self._columns = LedgerColumns(table)
        return self._columns
