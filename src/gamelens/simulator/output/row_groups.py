"""The events of blocks by day: from the arrays of the simulation to the columns of a lake.

A `BlockEvents` is one block with its events sorted by day. A `RowGroup` combines several and returns the rows of each
day. Names stay codes throughout. Values that all events of a session share are stored once for a session and repeated
at the end. Since the events of a session and the sessions of a player are adjacent, equal ids need no search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gamelens.errors import BadQuery
from gamelens.simulator.events.event_columns import EventColumns, Names, Numbers, texts_of
from gamelens.simulator.events.event_json import Texts
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.simulator.population.session_times import DAY_S
from gamelens.wire.dimensions import EVENT_COLUMNS

_TEXT: Final = pa.string()
_NAME: Final = pa.dictionary(pa.int16(), _TEXT)
_ID: Final = pa.dictionary(pa.int32(), _TEXT)

_TYPES: Final = {"whole": pa.int64(), "text": _NAME, "time": pa.timestamp("us"), "date": pa.date32()}
_IDS: Final = {"user_id": _ID, "session_id": _ID, "event_uuid": _TEXT, "ilrd_id": _TEXT}

SCHEMA: Final = pa.schema({name: _IDS.get(name, _TYPES[kind]) for name, kind in EVENT_COLUMNS.items()})
"""The columns of a lake, in its order.

They are those of the ledger, with the amounts of purchases and impressions in one column.
"""

_NAMES: Final = frozenset(field.name for field in SCHEMA if field.type == _NAME)
UNFILLED: Final = ("arrived_at", "custom_01", "custom_02", "custom_03")
"""Columns without values: nothing is sent, and the games of scenarios have no fields of their own."""
_NUMBERS: Final = ("length", "money")
_NO_VALUE: Final = np.iinfo(np.int64).min
_MAX_NAMES: Final = np.iinfo(np.int16).max

Arrays = dict[str, NDArray[Any]]
Codes = NDArray[np.int16]
"""Positions in a list of names, -1 for none."""


class Day(NamedTuple):
    """The slices of a block with the events of *day* (days since 1970), and their impressions."""

    day: int
    events: slice
    impressions: slice


@dataclass(frozen=True, eq=False, slots=True)
class BlockEvents:
    """The events of a block by day, and within a day in the order sent.

    Attributes:
        days: the slices of each day.
        events: arrays by event: place (in the block), ts_s, session, event_uuid, length, money, and codes of names.
        sessions: arrays by session: session_id, player, and codes of names.
        users: ids of the players.
        impressions: ids of the impressions.
        names: the names that the codes refer to.
    """

    days: list[Day]
    events: Arrays
    sessions: Arrays
    users: Texts
    impressions: Texts
    names: dict[str, list[str]]

    @property
    def count(self) -> int:
        """Number of events."""
        return len(self.events["place"])


def events_by_day(columns: EventColumns) -> BlockEvents:
    """Sort the events of a block by day."""
    day = (columns.ts_s // DAY_S).astype(np.uint16)  # 16 bits, which numpy sorts by radix
    order = np.argsort(day, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(day[order]), 1)) + 1 if len(day) else order
    names = columns.names | {"currency": _money_currency(columns.names)}
    events: Arrays = {
        "ts_s": columns.ts_s,
        "session": columns.session.astype(np.int32),
        "event_uuid": columns.ids.event,
        "length": _values(columns.numbers["length"]),
        "money": _values(columns.numbers["amount"], columns.numbers["ilrd_nano"]),
        **{name: _codes(each) for name, each in names.items() if name in _NAMES},
    }
    is_shown = names["ilrd_sdk_vendor"].has
    shown = np.flatnonzero(is_shown[order])
    return BlockEvents(
        days=_slice_days(day[order[ends - 1]], ends, np.searchsorted(shown, ends)),
        events={"place": order, **{name: np.take(column, order) for name, column in events.items()}},
        sessions={
            "session_id": columns.ids.session,
            "player": columns.player.astype(np.int32),
            **{name: _codes(each) for name, each in columns.session_names.items()},
        },
        users=columns.ids.user,
        impressions=_impression_ids(columns, is_shown)[(np.cumsum(is_shown) - 1)[order[shown]]],
        names={name: each.names for name, each in (names | columns.session_names).items() if name in _NAMES},
    )


class RowGroup:
    """The events of several blocks, the first of which has the sequence number *seq*.

    Raises:
        BadQuery: there are more names of a kind than codes.
    """

    def __init__(self, blocks: Sequence[BlockEvents], *, seq: int) -> None:
        self._names = {name: _all_names(blocks, name) for name in blocks[0].names}
        self._users = np.concatenate([block.users for block in blocks])
        self._impressions = [block.impressions for block in blocks]
        self._events: list[Arrays] = []
        self._slices_by_day: dict[int, list[tuple[int, Day]]] = {}
        all_sessions: list[Arrays] = []
        session_count = users = 0
        for number, block in enumerate(blocks):
            events, sessions = self._recoded(block.events, block), self._recoded(block.sessions, block)
            self._events.append(
                events | {"place": events["place"] + seq, "session": events["session"] + np.int32(session_count)}
            )
            all_sessions.append(sessions | {"player": sessions["player"] + np.int32(users)})
            for day in block.days:
                self._slices_by_day.setdefault(day.day, []).append((number, day))
            seq += len(events["place"])
            session_count += len(sessions["player"])
            users += len(block.users)
        self._sessions = {name: np.concatenate([each[name] for each in all_sessions]) for name in all_sessions[0]}

    @property
    def days(self) -> list[int]:
        """The days with events, in days since 1970."""
        return sorted(self._slices_by_day)

    def rows(self, day: int) -> pa.Table:
        """Return the events of *day* as rows of `SCHEMA`, in the order sent."""
        spans = [(self._events[number], on.events) for number, on in self._slices_by_day[day]]
        events = {name: np.concatenate([each[name][span] for each, span in spans]) for name in spans[0][0]}
        shown = np.concatenate([self._impressions[number][on.impressions] for number, on in self._slices_by_day[day]])
        count, first = len(events["place"]), _run_starts(events["session"])
        session, length = events["session"][first], np.diff(first, append=count)
        player = self._sessions["player"][session]
        first_of_player = _run_starts(player)
        user, played = player[first_of_player], np.diff(first[first_of_player], append=count)
        columns = {
            "seq": pa.array(events["place"]),
            "ts": pa.array(events["ts_s"] * 1_000_000).view(SCHEMA.field("ts").type),
            "day": pa.array(np.full(count, day, dtype=np.int32)).view(SCHEMA.field("day").type),
            "user_id": _repeat_runs(self._users[user], played),
            "session_id": _repeat_runs(self._sessions["session_id"][session], length),
            "event_uuid": texts_of(events["event_uuid"]),
            "ilrd_id": _place_texts(shown, events["ilrd_sdk_vendor"] >= 0),
            **{name: pa.array(events[name], mask=_null_mask(events[name], _NO_VALUE)) for name in _NUMBERS},
            **{name: pa.nulls(count, SCHEMA.field(name).type) for name in UNFILLED},
            **{name: self._named(name, codes) for name, codes in events.items() if name in self._names},
            **{
                name: self._named(name, np.repeat(codes[session], length))
                for name, codes in self._sessions.items()
                if name in self._names
            },
        }
        return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)

    def _recoded(self, arrays: Arrays, block: BlockEvents) -> Arrays:
        """Return *arrays* of *block* with codes that refer to the names of the row group."""
        recoded = dict(arrays)
        for name in arrays.keys() & self._names.keys():
            if (block_names := block.names[name]) != (names := self._names[name])[: len(block_names)]:
                codes = np.array([*map(names.index, block_names), -1], dtype=np.int16)
                recoded[name] = codes[arrays[name]]
        return recoded

    def _named(self, name: str, codes: Codes) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=_null_mask(codes, -1)), pa.array(self._names[name], _TEXT), safe=False
        )


def _slice_days(days: NDArray[Any], ends: Ints, impressions: Ints) -> list[Day]:
    """Build one `Day` per day from end offsets. Each starts where the previous one ends."""
    starts, shown = np.append(0, ends[:-1]), np.append(0, impressions[:-1])
    columns = (column.tolist() for column in (days, starts, ends, shown, impressions))
    return [
        Day(day, slice(start, end), slice(*impression_ends))
        for day, start, end, *impression_ends in zip(*columns, strict=True)
    ]


def _money_currency(names: dict[str, Names]) -> Names:
    """Return the currency of a purchase, or of an impression."""
    bought, shown = names["currency"], names["ilrd_currency"]
    both = list(dict.fromkeys([*bought.names, *shown.names]))
    bought_in, shown_in = (np.array([both.index(name) for name in each.names]) for each in (bought, shown))
    codes = np.where(bought.has, bought_in[bought.codes], shown_in[shown.codes])
    return Names(both, codes, bought.has | shown.has)


def _codes(names: Names) -> Codes:
    codes: Codes = np.where(names.has, names.codes, -1).astype(np.int16)
    return codes


def _values(*columns: Numbers) -> Ints:
    """Return for each event the value in one of *columns*, or `_NO_VALUE`."""
    values = np.full(len(columns[0].values), _NO_VALUE)
    for column in columns:
        values[column.has] = column.values[column.has]
    return values


def _impression_ids(columns: EventColumns, is_shown: Flags) -> Texts:
    """Return the ids of impressions: "i" and the vendor's id, or "u" and event_uuid."""
    is_by_vendor = len(columns.ids.impression) > 0
    sources = columns.ids.impression if is_by_vendor else columns.ids.event[is_shown]
    text = np.empty((len(sources), 1 + sources.dtype.itemsize), dtype=np.uint8)
    text[:, 0] = ord("i" if is_by_vendor else "u")
    text[:, 1:] = sources.view(np.uint8).reshape(text.shape[0], -1)
    ids: Texts = text.view(f"S{text.shape[1]}").ravel()
    return ids


def _all_names(blocks: Sequence[BlockEvents], name: str) -> list[str]:
    """Return the names of all *blocks*, in order of first use."""
    names = list(dict.fromkeys(chain.from_iterable(block.names[name] for block in blocks)))
    if len(names) > _MAX_NAMES:
        raise BadQuery(name, len(names), f"are too many: a lake is written with {_MAX_NAMES} names of a kind at most")
    return names


def _run_starts(values: Ints) -> Ints:
    """Return the start of each run of equal *values*, none of which may be negative."""
    return np.flatnonzero(np.diff(values, prepend=np.int32(-1)))


def _repeat_runs(texts: Texts, lengths: Ints) -> pa.DictionaryArray:
    """Repeat each of *texts*, which are distinct, as often as *lengths* says."""
    places = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    return pa.DictionaryArray.from_arrays(pa.array(places), texts_of(texts), safe=False)


def _place_texts(texts: Texts, has: Flags) -> pa.StringArray:
    """Place one of *texts* at each element that *has* one, and null elsewhere."""
    ends = np.zeros(len(has) + 1, dtype=np.int32)
    np.cumsum(has, out=ends[1:])
    ends *= texts.dtype.itemsize
    valid = np.packbits(has, bitorder="little")
    return pa.StringArray.from_buffers(len(has), pa.py_buffer(ends), pa.py_buffer(texts), pa.py_buffer(valid))


def _null_mask(values: NDArray[Any], missing: int) -> Flags | None:
    """Return a mask of the elements equal to *missing*, or None if there are none."""
    mask: Flags = values == missing
    return mask if mask.any() else None
