"""Every metric, in plain numpy over the ledger's columns.

Nothing here is shared with the sandbox but the rows of the catalog.

A metric is a recipe: exact whole numbers for each bucket and group, and the fields of a row computed from them. Money
stays in whole numbers (hundredths, or 1e-9, of a unit times the scaled rate of its currency) until the row is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

import msgspec
import numpy as np

from gamelens.catalog import METRICS, Metric, metric_named
from gamelens.errors import BadQuery
from gamelens.simulator.ledger.ledger_columns import LedgerColumns, check_dimension
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.simulator.population.session_times import DAY_S
from gamelens.wire.currencies import RATE_SCALE, SCALED_RATES
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval

Row = dict[str, Any]

REVENUE_SCALE: Final = 100 * RATE_SCALE
"""Factor from US dollars to totals of revenue."""
AD_REVENUE_SCALE: Final = 10**9 * RATE_SCALE
"""Factor from US dollars to totals of impression revenue."""


Totals = dict[int, int]
"""A whole number for each key, which combines a bucket with a value of each dimension.

`LedgerSelection.unkey` takes a key apart.
"""


class LedgerQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query on the ledger, checked when made.

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


class MetricRecipe(msgspec.Struct, frozen=True):
    """The computation of one metric.

    *totals* are whole numbers by bucket and group, and *fields* turns one number of each into the fields of a row.
    """

    totals: dict[str, Callable[[LedgerSelection], Totals]]
    fields: Callable[..., Row]


def compute_metric(query: LedgerQuery, columns: LedgerColumns) -> list[Row]:
    """Compute the rows of *query*.

    Buckets ascend. The rows of a bucket are sorted by the metric's own field, highest first, nulls last.
    """
    selection, recipe = LedgerSelection(query, columns), _RECIPES[query.name]
    totals = {name: total(selection) for name, total in recipe.totals.items()}
    keys: set[int] = set().union(*totals.values())
    if not query.dimensions:
        keys |= set(range(len(selection.buckets)))
    # A row exists if one of its counts is not 0. Retention has no counts; its rows exist if a player returned.
    counts = [field.name for field in query.metric.fields if field.kind == "count"] or [query.metric.sorts_by]
    rows = []
    for key in keys:
        fields = recipe.fields(**{name: total.get(key, 0) for name, total in totals.items()})
        if not query.dimensions or any(fields[name] for name in counts):
            bucket, values = selection.unkey(key)
            rows.append((bucket, values, fields))
    sort_field = query.metric.sorts_by
    rows.sort(
        key=lambda row: (
            row[0],
            row[2][sort_field] is None,
            -(row[2][sort_field] or 0),
            [(v is None, v or "") for v in row[1]],
        )
    )
    return [
        {"timestamp": selection.buckets[bucket].start, **dict(zip(query.dimensions, values, strict=True)), **fields}
        for bucket, values, fields in rows
    ]


def revenue(columns: LedgerColumns) -> int:
    """Return the revenue of all purchases, in US dollars times `REVENUE_SCALE`."""
    return _revenue(_select_everything(columns)).get(0, 0)


def ad_revenue(columns: LedgerColumns) -> int:
    """Return the revenue of all impressions, in US dollars times `AD_REVENUE_SCALE`."""
    return _ad_revenue(_select_everything(columns)).get(0, 0)


def _select_everything(columns: LedgerColumns) -> LedgerSelection:
    """Return a selection of all events in one bucket."""
    ends = [int(columns.ts_s.min()), int(columns.ts_s.max()) + 1] if columns.events else [0, 0]
    start, end = (datetime.fromtimestamp(moment, UTC) for moment in ends)
    return LedgerSelection(LedgerQuery(name="revenue", interval=Interval(start, end), granularity="all"), columns)


def _ended(selection: LedgerSelection) -> Ints:
    return selection.of("category", "session_end")


def _returning_users(selection: LedgerSelection) -> Totals:
    columns, days_ago = selection.columns, selection.query.since_days_ago
    rows = selection.within()
    rows = rows[columns.player[rows] >= 0]
    age = columns.day[rows] - columns.day[columns.install[columns.player[rows]]]
    return selection.distinct(rows[age > 0 if days_ago is None else age == days_ago], columns.player)


def _purchases(selection: LedgerSelection) -> Ints:
    return selection.of("category", "business")


def _revenue(selection: LedgerSelection) -> Totals:
    return selection.money(_purchases(selection), selection.columns.numbers("amount"), "currency")


def _shown(selection: LedgerSelection) -> Totals:
    rows = selection.of("category", "ads")
    return selection.count(rows[selection.columns.equals("ad_action", "show")[rows]])


def _impressions(selection: LedgerSelection) -> Ints:
    return selection.of("category", "impression")


def _ad_revenue(selection: LedgerSelection) -> Totals:
    return selection.money(_impressions(selection), selection.columns.numbers("ilrd_nano"), "ilrd_currency")


def _installed(selection: LedgerSelection) -> Totals:
    """Count the installs of each cohort, in the bucket of the day of return."""
    install = selection.columns.install
    rows = install[selection.is_selected[install]]  # of all installs that the filters select, at any time
    later_s = selection.columns.ts_s[rows] + (selection.query.since_days_ago or 0) * DAY_S
    bucket = selection.bucket(later_s)
    is_counted = (bucket >= 0) & (later_s < selection.buckets[-1].end.timestamp())
    return count_by(selection.keys(rows[is_counted], bucket[is_counted]))


def _returned(selection: LedgerSelection) -> Totals:
    """Count the players of each cohort who returned on that day."""
    columns = selection.columns
    rows = np.flatnonzero(selection.is_inside & (columns.player >= 0))
    install = columns.install[columns.player[rows]]
    age = columns.day[rows] - columns.day[install]
    is_counted = selection.is_selected[install] & (age == selection.query.since_days_ago)
    rows, install = rows[is_counted], install[is_counted]
    return distinct_by(selection.keys(install, selection.bucket(columns.ts_s[rows])), columns.player[rows])


def _share(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def _money_fields(scale: int) -> Callable[..., Row]:
    def fields(*, event_count: int, money: int) -> Row:
        return {
            "event_count": event_count,
            "mean": _share(money, event_count * scale),
            "sum": money / scale,
            "sum_cents": money * 100 / scale,
        }

    return fields


def _revenue_per(name: str, players_name: str) -> MetricRecipe:
    """Build a metric of revenue by player.

    The row has exact dollars per player, and the total in cents, rounded half to even.
    """

    def fields(*, money: int, **players: int) -> Row:
        cents = round(Fraction(money, REVENUE_SCALE // 100))
        return {name: _share(money, players[players_name] * REVENUE_SCALE), **players, "total_revenue": cents}

    return MetricRecipe({players_name: _TOTALS[METRICS[players_name].made_of[0]], "money": _revenue}, fields)


def _session_length() -> MetricRecipe:
    def fields(*, ended: int, session_unique: int, total_session_length: int) -> Row:
        mean = _share(total_session_length, ended)
        return {
            "session_length": mean,
            "session_unique": session_unique,
            "total_session_length": total_session_length,
        }

    totals: dict[str, Callable[[LedgerSelection], Totals]] = {
        "ended": lambda selection: selection.count(_ended(selection)),
        "session_unique": lambda selection: selection.distinct(_ended(selection), selection.columns.session),
        "total_session_length": lambda selection: selection.add(_ended(selection), selection.columns.numbers("length")),
    }
    return MetricRecipe(totals, fields)


_TOTALS: Final[dict[str, Callable[[LedgerSelection], Totals]]] = {
    "converted": lambda selection: selection.count(
        selection.within(selection.columns.first_purchase[selection.columns.first_purchase >= 0])
    ),
    "earned": _ad_revenue,
    "events": lambda selection: selection.count(selection.within()),
    "impression": lambda selection: selection.distinct(_impressions(selection), selection.columns.impression),
    "impressions": lambda selection: selection.count(_impressions(selection)),
    "installed": lambda selection: selection.count(selection.within(selection.columns.install)),
    "paid": _revenue,
    "payer": lambda selection: selection.distinct(_purchases(selection), selection.columns.player),
    "player": lambda selection: selection.distinct(selection.within(), selection.columns.player),
    "purchases": lambda selection: selection.count(_purchases(selection)),
    "returner": _returning_users,
    "session": lambda selection: selection.distinct(selection.within(), selection.columns.session),
    "shown": _shown,
}
"""The whole number of each atom, by its name."""


def _recipe(metric: Metric) -> MetricRecipe:
    """Return how *metric* is computed from the totals of its atoms."""
    match metric.recipe, metric.made_of:
        case "sum" | "distinct", (atom,):
            return MetricRecipe({metric.name: _TOTALS[atom]}, lambda **totals: totals)
        case "money", (count, money):
            scale = AD_REVENUE_SCALE if money == "earned" else REVENUE_SCALE
            return MetricRecipe({"event_count": _TOTALS[count], "money": _TOTALS[money]}, _money_fields(scale))
        case "share", (part, whole):
            totals = {name: _TOTALS[METRICS[name].made_of[0]] for name in (part, whole)}
            return MetricRecipe(totals, lambda **n: {metric.name: _share(n[part], n[whole]), **n})
        case "revenue per", (players,):
            return _revenue_per(metric.name, players)
    if metric.name == "session_length":
        return _session_length()
    return MetricRecipe(
        {"returned": _returned, "installed": _installed},
        lambda *, returned, installed: {"retention": _share(returned, installed)},
    )


_RECIPES: Final = {name: _recipe(metric) for name, metric in METRICS.items()}
