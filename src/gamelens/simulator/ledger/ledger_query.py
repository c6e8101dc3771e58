"""A query on the ledger: selected events, their buckets and groups, exact totals."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from gamelens.catalog import Metric, metric_named
from gamelens.errors import BadQuery
from gamelens.simulator.ledger.ledger_columns import LedgerColumns, check_dimension
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.wire.currencies import SCALED_RATES
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval

Totals = dict[int, int]
"""A whole number for each key, which combines a bucket with a value of each dimension.

`LedgerSelection.unkey` takes a key apart.
"""


class LedgerQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query on the ledger, checked when made.

    Attributes:
        name: name of the metric.
        interval: the requested interval.
        granularity: length of the buckets.
        by: dimensions to group by.
        where: filter on the events, or None.
        games: ids of the games to include, or None for all.
        since_days_ago: age of the cohorts in days, or None.

    Raises:
        BadQuery: the metric or a dimension is unknown, or since_days_ago is missing or does not apply.
    """

    name: str
    interval: Interval
    granularity: Granularity = "day"
    by: tuple[str, ...] = ()
    where: Filter | None = None
    games: tuple[str, ...] | None = None
    since_days_ago: int | None = None

    def __post_init__(self) -> None:
        metric = self.metric
        if not self.interval:
            raise MalformedInterval(str(self.interval))
        if self.since_days_ago is not None and not metric.takes_since_days_ago:
            raise BadQuery("since_days_ago", self.since_days_ago, f"does not apply to {self.name}")
        if self.since_days_ago is not None and self.since_days_ago < 1:
            raise BadQuery("since_days_ago", self.since_days_ago, "must be 1 or more")
        if metric.kinds == "retention" and (self.since_days_ago is None or self.granularity != "day"):
            raise BadQuery("since_days_ago", self.since_days_ago, f"must be there for {self.name}, at granularity day")
        if len(set(self.by)) != len(self.by):
            raise BadQuery("by", list(self.by), "must name different dimensions")
        for name in self.by:
            check_dimension("by", name)

    @property
    def metric(self) -> Metric:
        """The metric of the query."""
        return metric_named(self.name)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of the rows. Retention always has game_id."""
        needs_game = self.metric.kinds == "retention" and "game_id" not in self.by
        return (*self.by, "game_id") if needs_game else self.by


class LedgerSelection:
    """The events a query selects, with the bucket and group of each."""

    def __init__(self, query: LedgerQuery, columns: LedgerColumns) -> None:
        self.columns, self.query = columns, query
        self.buckets = list(query.interval.buckets(query.granularity))
        self._starts_s = np.array([math.floor(bucket.start.timestamp()) for bucket in self.buckets], dtype=np.int64)
        start, end = (math.ceil(moment.timestamp()) for moment in (query.interval.start, query.interval.end))
        self.is_inside: Flags = (columns.ts_s >= start) & (columns.ts_s < end)
        self.is_selected: Flags = np.ones(columns.events, dtype=np.bool_)
        if query.where is not None:
            self.is_selected &= columns.selected(query.where)
        if query.games is not None:
            game_ids = columns.names("game_id")
            wanted = [code for code, game in enumerate(game_ids) if game in query.games]
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
        """Return one number for the bucket and the dimension values of each row."""
        key = self.bucket(self.columns.ts_s[rows]) if bucket is None else bucket
        for name in self.query.dimensions:
            key = key * (len(self.columns.names(name)) + 1) + self.columns.codes(name)[rows] + 1
        return key

    def unkey(self, key: int) -> tuple[int, list[str | None]]:
        """Return the bucket and the dimension values of a key."""
        values: list[str | None] = []
        for name in reversed(self.query.dimensions):
            names = self.columns.names(name)
            key, code = divmod(key, len(names) + 1)
            values.append(names[code - 1] if code else None)
        return key, values[::-1]

    def count(self, rows: Ints) -> Totals:
        """Count rows by key."""
        return count_by(self.keys(rows))

    def distinct(self, rows: Ints, ids: Ints) -> Totals:
        """Count different *ids* (an array over all events) by key, without -1."""
        rows = rows[ids[rows] >= 0]
        return distinct_by(self.keys(rows), ids[rows])

    def add(self, rows: Ints, values: Ints) -> Totals:
        """Sum *values* (an array over all events) by key."""
        return sum_by(self.keys(rows), values[rows])

    def money(self, rows: Ints, values: Ints, currency: str) -> Totals:
        """Sum *values* times the scaled rate of their currency by key.

        Values without a currency are USD.
        """
        totals: Totals = {}
        codes = self.columns.codes(currency)
        for code, name in [*enumerate(self.columns.names(currency)), (-1, "USD")]:
            for key, amount in self.add(rows[codes[rows] == code], values).items():
                totals[key] = totals.get(key, 0) + amount * SCALED_RATES[name]
        return totals


def count_by(keys: Ints) -> Totals:
    """Count each key."""
    unique_keys, counts = np.unique(keys, return_counts=True)
    return dict(zip(unique_keys.tolist(), counts.tolist(), strict=True))


def distinct_by(keys: Ints, ids: Ints) -> Totals:
    """Count the different *ids* of each key."""
    unique_keys, group = np.unique(keys, return_inverse=True)
    size = int(ids.max(initial=0)) + 1
    groups, counts = np.unique(np.unique(group * size + ids) // size, return_counts=True)
    return dict(zip(unique_keys[groups].tolist(), counts.tolist(), strict=True))


def sum_by(keys: Ints, values: Ints) -> Totals:
    """Sum the *values* of each key."""
    if not len(keys):
        return {}
    order = np.argsort(keys, kind="stable")
    unique_keys, first = np.unique(keys[order], return_index=True)
    # Sums of the largest amounts an event may hold overflow 64 bits. Python's own integers do not.
    wide = values.astype(object) if int(np.abs(values).max()) * len(values) >= 2**63 else values
    sums = np.add.reduceat(wide[order], first)
    return {int(key): int(total) for key, total in zip(unique_keys, sums, strict=True)}
