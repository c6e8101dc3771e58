"""The ledger's columns as numpy arrays, and what follows from them about players.

Names become codes: a column of positions in a list of names, -1 where an event has no value.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import DIMENSIONS
from gamelens.errors import BadQuery
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.simulator.population.session_times import DAY_S
from gamelens.wire.filters import And, Filter, Match, Not, Or

EPOCH: Final = date(1970, 1, 1)
_FALSE_TRUE: Final = ["false", "true"]


class LedgerColumns:
    """Read-only arrays over the events of a ledger, each computed on first use.

    A player is a pair of game and user_id, a session one of game and session_id. Both are numbered from 0.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._coded: dict[str, tuple[Ints, list[str]]] = {}
        self.events = table.num_rows
        self.ts_s = self.numbers("client_ts")

    def numbers(self, name: str) -> Ints:
        """Return a column of whole numbers, 0 where null."""
        values: Ints = pc.fill_null(self._table[name], 0).to_numpy()
        return values

    def codes(self, name: str) -> Ints:
        """Return positions in `names` of the same column or dimension."""
        return self._code(name)[0]

    def names(self, name: str) -> list[str]:
        """Return the distinct values of a column or dimension."""
        return self._code(name)[1]

    def equals(self, name: str, value: str) -> Flags:
        """Return a mask of the events with *value* in the column *name*."""
        return self._is_any(name, (value,))

    def selected(self, where: Filter) -> Flags:
        """Return a mask of the events that *where* selects.

        Raises:
            BadQuery: it names an unknown dimension.
        """
        selected: Flags
        match where:
            case Match(dimension, values):
                return self._is_any(check_dimension("where", dimension), values)
            case And(members):
                selected = np.all([self.selected(member) for member in members], axis=0)
            case Or(members):
                selected = np.any([self.selected(member) for member in members], axis=0)
            case Not(member):
                selected = ~self.selected(member)
            case _:
                raise TypeError(f"{where!r} is not a filter")
        return selected

    @cached_property
    def player(self) -> Ints:
        """Player of each event, -1 without user_id."""
        return self._pairs("user_id")

    @property
    def players(self) -> int:
        """Number of players."""
        return int(self.player.max(initial=-1)) + 1

    @cached_property
    def session(self) -> Ints:
        """Session of each event, -1 without session_id."""
        return self._pairs("session_id")

    @property
    def sessions(self) -> int:
        """Number of sessions."""
        return int(self.session.max(initial=-1)) + 1

    @cached_property
    def install(self) -> Ints:
        """Row of each player's earliest event, and of equal times the one sent first."""
        return self._first_by_player(np.flatnonzero(self.player >= 0))

    @cached_property
    def first_purchase(self) -> Ints:
        """Row of each player's first purchase, -1 for players without one."""
        return self._first_by_player(np.flatnonzero(self.equals("category", "business") & (self.player >= 0)))

    @cached_property
    def day(self) -> Ints:
        """UTC day of each event, in days since 1970."""
        return self.ts_s // DAY_S

    @cached_property
    def impression(self) -> Ints:
        """Impression of each event, -1 for events of other categories.

        Impressions are told apart by the vendor's id, else by event_uuid. Without either, each is one of its own (Wire
        4.6, Impression).
        """
        rows = np.flatnonzero(self.equals("category", "impression"))
        ids = self._table.select(["ilrd_id", "event_uuid"]).take(rows)
        codes, names = _encode(pc.coalesce(ids["ilrd_id"], ids["event_uuid"]))
        own_codes = len(names) + np.arange(len(rows))
        numbered = np.full(self.events, -1, dtype=np.int64)
        numbered[rows] = self._in_game(np.where(codes >= 0, codes, own_codes), rows)
        return numbered

    def _code(self, name: str) -> tuple[Ints, list[str]]:
        if name not in self._coded:
            match name:
                case "first_build":
                    coded = self._of_player(self.codes("build")[self.install]), self.names("build")
                case "installed_on":
                    days = self.day[self.install]
                    first, last = (int(days.min()), int(days.max())) if len(days) else (0, -1)
                    names = [str(EPOCH + timedelta(days=day)) for day in range(first, last + 1)]
                    coded = self._of_player(days - first), names
                case "is_paying":
                    coded = self._since_purchase(self.ts_s, is_same=False)
                case "is_converting":
                    coded = self._since_purchase(self.day, is_same=True)
                case _:
                    coded = _encode(self._table[name])
            self._coded[name] = coded
        return self._coded[name]

    def _is_any(self, column: str, values: tuple[str, ...]) -> Flags:
        wanted_values = set(values)
        codes = [code for code, name in enumerate(self.names(column)) if name in wanted_values]
        return np.isin(self.codes(column), codes)

    def _pairs(self, name: str) -> Ints:
        codes, numbered = self.codes(name), np.full(self.events, -1, dtype=np.int64)
        has = codes >= 0
        numbered[has] = np.unique(self._in_game(codes[has], np.flatnonzero(has)), return_inverse=True)[1]
        return numbered

    def _in_game(self, codes: Ints, rows: Ints) -> Ints:
        """Combine each code with the game of its row into one number."""
        return codes * (len(self.names("game_id")) + 1) + self.codes("game_id")[rows]

    def _first_by_player(self, rows: Ints) -> Ints:
        ordered = rows[np.lexsort((self.ts_s[rows], self.player[rows]))]
        players, first = np.unique(self.player[ordered], return_index=True)
        rows_by_player = np.full(self.players, -1, dtype=np.int64)
        rows_by_player[players] = ordered[first]
        return rows_by_player

    def _of_player(self, values: Ints) -> Ints:
        """Spread *values* by player over their events, with -1 for events without a player."""
        return np.where(self.player >= 0, np.append(values, -1)[self.player], -1)

    def _since_purchase(self, moment: Ints, *, is_same: bool) -> tuple[Ints, list[str]]:
        """Compare *moment* of each event with that of the player's first purchase.

        With *is_same* the dimension is true where both are equal, else from the purchase on.
        """
        bought = self.first_purchase
        never = np.iinfo(np.int64).max
        first = np.where(bought >= 0, moment[bought] if self.events else 0, never)
        first = np.append(first, never)[self.player]
        is_true = moment == first if is_same else moment >= first
        return np.where(self.player >= 0, is_true.astype(np.int64), -1), _FALSE_TRUE


def check_dimension(field: str, name: str) -> str:
    """Return *name* if it is a dimension.

    Raises:
        BadQuery: it is not; the message suggests the nearest.
    """
    if name not in DIMENSIONS:
        raise BadQuery(field, name, "is not a dimension", DIMENSIONS)
    return name


def _encode(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return codes and names of a column, dictionary-encoded first if it is not."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    codes = pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, array.dictionary.to_pylist()
