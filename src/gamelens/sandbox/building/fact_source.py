"""Facts of earlier events that a batch needs: the interface of those who look them up.

There are two. `RunFacts` looks keys up in the keyed runs, so that the cost is that of the batch. `TableFacts` joins the
tables of the lake, as a cluster does. Both create the same relations, so that all other statements are the same.
"""

from __future__ import annotations

from typing import Final, Protocol

from gamelens.sandbox.storage.lake_schema import PLAYER_DIMENSIONS

NEVER: Final = (1 << 63) - 1
"""Time and arrival of an event that there is not."""

EPOCH_DAY: Final = "CAST(DATE '1970-01-01' + CAST({} AS INTEGER) AS DATE)"
"""SQL of the date of a number of days since 1970."""
DAY_NUMBER: Final = "date_diff('day', DATE '1970-01-01', {})"
"""SQL of the number of days from 1970 to a date."""

_SAME: Final = " AND ".join(f"{{0}}.{name} IS NOT DISTINCT FROM combined.{name}" for name in PLAYER_DIMENSIONS)
SAME_CELL: Final = f"{_SAME} AND {{0}}.currency IS NOT DISTINCT FROM combined.currency"
"""SQL condition that a row has the dimensions and the currency of a row of `combined`."""
SAME_WITHOUT_MONEY: Final = f"{_SAME} AND combined.currency IS NULL"
"""SQL condition that a row has the dimensions of a row of `combined` without a currency."""


class FactSource(Protocol):
    """The events of the last version, as far as those of a batch meet them."""

    def create_repeated(self) -> None:
        """Create `repeated`, the `seq` of the events of `staged` whose name came before.

        The first copy to arrive counts, whether the others arrive with it or years later (Wire 4.8, Repeated events).
        """
        ...

    def create_known_players(self) -> None:
        """Create `known_players` of the players in `found`.

        It has game_id, user_id, player, installed_us, install_seq and combination of the earliest event, paid_us and
        paid_seq of the earliest purchase (`NEVER` without one).
        """
        ...

    def create_known_days(self, name: str, spans: str) -> None:
        """Create *name* of the earlier memberships in *spans*: player, day, combination.

        The relation *spans* has player, first and last, both days since 1970 and included.
        """
        ...

    def key_sql(self, *columns: str) -> str:
        """Return the SQL of a key for each row of distinct *columns*, the game and a text."""
        ...

    def create_old_sessions(self) -> None:
        """Create `old_sessions` of the sessions in `session_ids`: sid, day, combination, ended."""
        ...

    def create_old_impressions(self) -> None:
        """Create `old_impressions` of the ids in `impression_ids`.

        It has iid, `had`, the number of earlier impressions, and `day` of the first of them.
        """
        ...

    def note_players(self) -> None:
        """Keep what the batch adds to the players, of `numbers`."""
        ...

    def note_days(self) -> None:
        """Keep the memberships that the batch adds, of `new_daily`."""
        ...

    def note_sessions(self) -> None:
        """Keep the sessions that the batch adds, of `session_changes`."""
        ...

    def note_impressions(self) -> None:
        """Keep the impressions that the batch adds, of `impression_days`: iid, day."""
        ...
