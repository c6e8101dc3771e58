"""Every metric, in plain numpy over the ledger's columns.

Nothing here is shared with the sandbox but the rows of the catalog.

Names become codes: a column of positions in a list of names, -1 where an event has no value. A metric is exact whole
numbers for each bucket and group, and the fields of a row computed from them. Money stays in whole numbers (hundredths,
or 1e-9, of a unit times the scaled rate of its currency) until the row is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import DIMENSIONS, METRICS, Metric, metric_named
from gamelens.errors import BadQuery
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.simulator.population.session_times import DAY_S, EPOCH
from gamelens.wire.currencies import RATE_SCALE, SCALED_RATES
from gamelens.wire.filters import And, Filter, Match, Not, Or
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval

Row = dict[str, Any]

_REVENUE_SCALE: Final = 100 * RATE_SCALE
_AD_REVENUE_SCALE: Final = 10**9 * RATE_SCALE
"""Factors from US dollars to totals of revenue and of impression revenue."""
_FALSE_TRUE: Final = ["false", "true"]

Totals = dict[int, int]
"""A whole number for each key, which combines a bucket with a value of each dimension.

`LedgerSelection.unkey` takes a key apart.
"""


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
                return self._is_any(_check_dimension("where", dimension), values)
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
        """Compare *moment* of each event with the moment of the player's first purchase.

        With *is_same* the dimension is true where both are equal, else from the purchase on.
        """
        bought = self.first_purchase
        never = np.iinfo(np.int64).max
        first = np.where(bought >= 0, moment[bought] if self.events else 0, never)
        first = np.append(first, never)[self.player]
        is_true = moment == first if is_same else moment >= first
        return np.where(self.player >= 0, is_true.astype(np.int64), -1), _FALSE_TRUE


def _check_dimension(field: str, name: str) -> str:
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


class LedgerSelection:
    """The events that a query on the ledger selects, with the bucket and group of each. `Ledger.metric` has the query.

    Raises:
        BadQuery: the metric or a dimension is unknown, or since_days_ago is missing or does not apply.
    """

    def __init__(
        self,
        columns: LedgerColumns,
        name: str,
        *,
        interval: Interval,
        granularity: Granularity,
        by: Sequence[str],
        where: Filter | None,
        games: Sequence[str] | None,
        since_days_ago: int | None,
    ) -> None:
        self.columns, self.metric, self.since_days_ago = columns, metric_named(name), since_days_ago
        if not interval:
            raise MalformedInterval(str(interval))
        if since_days_ago is not None and not self.metric.takes_since_days_ago:
            raise BadQuery("since_days_ago", since_days_ago, f"does not apply to {name}")
        if since_days_ago is not None and since_days_ago < 1:
            raise BadQuery("since_days_ago", since_days_ago, "must be 1 or more")
        is_retention = self.metric.kinds == "retention"
        if is_retention and (since_days_ago is None or granularity != "day"):
            raise BadQuery("since_days_ago", since_days_ago, f"is required for {name}, with granularity day")
        if len(set(by)) != len(by):
            raise BadQuery("by", list(by), "must name different dimensions")
        for dimension in by:
            _check_dimension("by", dimension)
        self.dimensions = (*by, "game_id") if is_retention and "game_id" not in by else tuple(by)
        self.buckets = list(interval.buckets(granularity))
        self._starts_s = np.array([math.floor(bucket.start.timestamp()) for bucket in self.buckets], dtype=np.int64)
        start, end = (math.ceil(moment.timestamp()) for moment in (interval.start, interval.end))
        self.is_inside: Flags = (columns.ts_s >= start) & (columns.ts_s < end)
        self.is_selected: Flags = np.ones(columns.events, dtype=np.bool_)
        if where is not None:
            self.is_selected &= columns.selected(where)
        if games is not None:
            wanted = [code for code, game in enumerate(columns.names("game_id")) if game in games]
            self.is_selected &= np.isin(columns.codes("game_id"), wanted)

    def within(self, rows: Ints | None = None) -> Ints:
        """Return the selected *rows* (of all events by default) inside the interval."""
        is_counted = self.is_inside & self.is_selected
        return np.flatnonzero(is_counted) if rows is None else rows[is_counted[rows]]

    def of(self, column: str, value: str) -> Ints:
        """Return the selected rows inside the interval with *value* in *column*."""
        return self.within(np.flatnonzero(self.columns.equals(column, value)))

    def bucket(self, ts_s: Ints) -> Ints:
        """Return the position of the bucket of each moment."""
        return np.searchsorted(self._starts_s, ts_s, side="right") - 1

    def keys(self, rows: Ints, bucket: Ints | None = None) -> Ints:
        """Return one number for the *bucket*, by default from its time, and the dimension values of each row."""
        key = self.bucket(self.columns.ts_s[rows]) if bucket is None else bucket
        for name in self.dimensions:
            key = key * (len(self.columns.names(name)) + 1) + self.columns.codes(name)[rows] + 1
        return key

    def unkey(self, key: int) -> tuple[int, list[str | None]]:
        """Return the bucket and the dimension values of a key."""
        values: list[str | None] = []
        for name in reversed(self.dimensions):
            names = self.columns.names(name)
            key, code = divmod(key, len(names) + 1)
            values.append(names[code - 1] if code else None)
        return key, values[::-1]

    def count(self, rows: Ints, bucket: Ints | None = None) -> Totals:
        """Count rows by key."""
        unique_keys, counts = np.unique(self.keys(rows, bucket), return_counts=True)
        return dict(zip(unique_keys.tolist(), counts.tolist(), strict=True))

    def distinct(self, rows: Ints, ids: Ints, bucket: Ints | None = None) -> Totals:
        """Count different *ids* (an array over all events) by key, without -1."""
        has, ids_of_rows = ids[rows] >= 0, ids[rows]
        unique_keys, group = np.unique(self.keys(rows, bucket)[has], return_inverse=True)
        size = int(ids_of_rows.max(initial=0)) + 1
        groups, counts = np.unique(np.unique(group * size + ids_of_rows[has]) // size, return_counts=True)
        return dict(zip(unique_keys[groups].tolist(), counts.tolist(), strict=True))

    def add(self, rows: Ints, values: Ints) -> Totals:
        """Sum *values* (an array over all events) by key."""
        if not len(rows):
            return {}
        keys, values = self.keys(rows), values[rows]
        order = np.argsort(keys, kind="stable")
        unique_keys, first = np.unique(keys[order], return_index=True)
        # Sums of the largest amounts an event may hold overflow 64 bits. Python's own integers do not.
        wide = values.astype(object) if int(np.abs(values).max()) * len(values) >= 2**63 else values
        sums = np.add.reduceat(wide[order], first)
        return {int(key): int(total) for key, total in zip(unique_keys, sums, strict=True)}

    def money(self, category: str, amount: str, currency: str) -> Totals:
        """Sum the column *amount* of a category times the scaled rate of its *currency* by key.

        Values without a currency are USD.
        """
        totals: Totals = {}
        rows, values, codes = self.of("category", category), self.columns.numbers(amount), self.columns.codes(currency)
        for code, name in [*enumerate(self.columns.names(currency)), (-1, "USD")]:
            for key, total in self.add(rows[codes[rows] == code], values).items():
                totals[key] = totals.get(key, 0) + total * SCALED_RATES[name]
        return totals


def metric_rows(selection: LedgerSelection) -> list[Row]:
    """Return the rows of the metric that *selection* asks for.

    Buckets ascend. The rows of a bucket are sorted by the metric's own field, highest first, nulls last.
    """
    metric, (total_of, fields_of) = selection.metric, _recipe(selection.metric)
    totals = {name: total(selection) for name, total in total_of.items()}
    keys: set[int] = set().union(*totals.values())
    if not selection.dimensions:
        keys |= set(range(len(selection.buckets)))
    # A row exists if one of its counts is not 0. Retention has no counts; its rows exist if a player returned.
    counts = [field.name for field in metric.fields if field.kind == "count"] or [metric.sorts_by]
    rows = []
    for key in keys:
        fields = fields_of(**{name: total.get(key, 0) for name, total in totals.items()})
        if not selection.dimensions or any(fields[name] for name in counts):
            bucket, values = selection.unkey(key)
            rows.append((bucket, values, fields))
    sort_field = metric.sorts_by
    rows.sort(
        key=lambda row: (
            row[0],
            row[2][sort_field] is None,
            -(row[2][sort_field] or 0),
            [(v is None, v or "") for v in row[1]],
        )
    )
    return [
        {"timestamp": selection.buckets[bucket].start, **dict(zip(selection.dimensions, values, strict=True)), **fields}
        for bucket, values, fields in rows
    ]


def _returning_users(selection: LedgerSelection) -> Totals:
    columns, days_ago = selection.columns, selection.since_days_ago
    rows = selection.within()
    rows = rows[columns.player[rows] >= 0]
    age = columns.day[rows] - columns.day[columns.install[columns.player[rows]]]
    return selection.distinct(rows[age > 0 if days_ago is None else age == days_ago], columns.player)


def _shown(selection: LedgerSelection) -> Totals:
    rows = selection.of("category", "ads")
    return selection.count(rows[selection.columns.equals("ad_action", "show")[rows]])


def _installed(selection: LedgerSelection) -> Totals:
    """Count the installs of each cohort, in the bucket of the day of return."""
    install = selection.columns.install
    rows = install[selection.is_selected[install]]  # of all installs that the filters select, at any time
    later_s = selection.columns.ts_s[rows] + (selection.since_days_ago or 0) * DAY_S
    bucket = selection.bucket(later_s)
    is_counted = (bucket >= 0) & (later_s < selection.buckets[-1].end.timestamp())
    return selection.count(rows[is_counted], bucket[is_counted])


def _returned(selection: LedgerSelection) -> Totals:
    """Count the players of each cohort who returned on that day."""
    columns = selection.columns
    rows = np.flatnonzero(selection.is_inside & (columns.player >= 0))
    install = columns.install[columns.player[rows]]
    age = columns.day[rows] - columns.day[install]
    is_counted = selection.is_selected[install] & (age == selection.since_days_ago)
    rows, install = rows[is_counted], install[is_counted]
    return selection.distinct(install, columns.player, selection.bucket(columns.ts_s[rows]))


_Total = Callable[[LedgerSelection], Totals]
_TOTALS: Final[dict[str, _Total]] = {
    "converted": lambda selection: selection.count(
        selection.within(selection.columns.first_purchase[selection.columns.first_purchase >= 0])
    ),
    "earned": lambda selection: selection.money("impression", "ilrd_nano", "ilrd_currency"),
    "events": lambda selection: selection.count(selection.within()),
    "impression": lambda selection: selection.distinct(
        selection.of("category", "impression"), selection.columns.impression
    ),
    "impressions": lambda selection: selection.count(selection.of("category", "impression")),
    "installed": lambda selection: selection.count(selection.within(selection.columns.install)),
    "paid": lambda selection: selection.money("business", "amount", "currency"),
    "payer": lambda selection: selection.distinct(selection.of("category", "business"), selection.columns.player),
    "player": lambda selection: selection.distinct(selection.within(), selection.columns.player),
    "purchases": lambda selection: selection.count(selection.of("category", "business")),
    "returner": _returning_users,
    "session": lambda selection: selection.distinct(selection.within(), selection.columns.session),
    "shown": _shown,
}
"""The whole number of each atom, by its name."""


def _recipe(metric: Metric) -> tuple[dict[str, _Total], Callable[..., Row]]:
    """Return the totals that *metric* is made of, and what turns a number of each into the fields of a row."""
    match metric.recipe, metric.made_of:
        case "sum" | "distinct", (atom,):
            return {metric.name: _TOTALS[atom]}, lambda **totals: totals
        case "money", (count, money):
            scale = _AD_REVENUE_SCALE if money == "earned" else _REVENUE_SCALE
            return {"event_count": _TOTALS[count], "money": _TOTALS[money]}, lambda *, event_count, money: {
                "event_count": event_count,
                "mean": _share(money, event_count * scale),
                "sum": money / scale,
                "sum_cents": money * 100 / scale,
            }
        case "share", (part, whole):
            totals = {name: _TOTALS[METRICS[name].made_of[0]] for name in (part, whole)}
            return totals, lambda **n: {metric.name: _share(n[part], n[whole]), **n}
        case "revenue per", (players,):
            # Exact dollars per player, and the total in cents, rounded half to even.
            return {players: _TOTALS[METRICS[players].made_of[0]], "money": _TOTALS["paid"]}, lambda *, money, **n: {
                metric.name: _share(money, n[players] * _REVENUE_SCALE),
                **n,
                "total_revenue": round(Fraction(money, _REVENUE_SCALE // 100)),
            }
    if metric.name == "retention_retro":
        totals = {"returned": _returned, "installed": _installed}
        return totals, lambda *, returned, installed: {"retention": _share(returned, installed)}

    def ended(selection: LedgerSelection) -> Ints:
        return selection.of("category", "session_end")

    totals = {
        "ended": lambda selection: selection.count(ended(selection)),
        "session_unique": lambda selection: selection.distinct(ended(selection), selection.columns.session),
        "total_session_length": lambda selection: selection.add(ended(selection), selection.columns.numbers("length")),
    }
    return totals, lambda *, ended, **n: {"session_length": _share(n["total_session_length"], ended), **n}


def _share(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None
