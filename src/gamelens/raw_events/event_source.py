"""What an analysis of events needs of the place where they lie: a lake, or a table of another engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from gamelens.client.tables.time_ranges import WhenUnavailable
from gamelens.receipts import Provenance
from gamelens.wire.intervals import Interval


class EventSource(Protocol):
    """A place of events: a lake (`open_lake`), or a table that `open_events` opened.

    Statements read `events` and `players`, whose columns the view of that name of a lake has. They are written once, in
    a part of DuckDB's SQL that every engine has (`gamelens.sandbox.engines.plain_sql`).

    Attributes:
        when_unavailable: what an analysis does about days that are not there.
    """

    when_unavailable: WhenUnavailable

    @property
    def event_order(self) -> tuple[str, ...]:
        """The columns that order the events of a second, empty if there are none."""
        ...

    @property
    def provenance(self) -> Provenance:
        """The origin of its numbers."""
        ...

    @property
    def event_warnings(self) -> tuple[str, ...]:
        """What the receipt of every analysis says about its events."""
        ...

    @property
    def bytes_billed(self) -> int:
        """The bytes that were billed for all statements so far."""
        ...

    @property
    def dated_by_arrival(self) -> dict[str, int]:
        """The number of its events that count at the time of their arrival, by reason."""
        ...

    def available(self) -> Interval:
        """Return the interval of its events."""
        ...

    def event_games(self) -> list[str]:
        """Return the ids of its games, in order."""
        ...

    def event_columns(self) -> dict[str, str]:
        """Return the columns of its events with their types, in DuckDB's words."""
        ...

    def check_condition(self, condition: str) -> None:
        """Check a condition of SQL over its events.

        Raises:
            BadQuery: it does not take it.
        """
        ...

    def run(self, statement: str, parameters: Mapping[str, Any], reads: Interval | None = None) -> pa.Table:
        """Return the rows of *statement*, which reads events of the interval *reads* alone; None is any.

        Raises:
            Refused: it takes more than it may take.
        """
        ...

    def lacks(self, category: str, interval: Interval, games: Sequence[str]) -> str | None:
        """Return why the money of *category* is not known for *games* in *interval*, None if it is."""
        ...
