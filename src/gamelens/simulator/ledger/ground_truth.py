"""Every metric, in plain numpy over the ledger's columns.

Nothing here is shared with the sandbox but the rows of the catalog.

A metric is a recipe: exact whole numbers for each bucket and group, and the fields of a row computed from them. Money
stays in whole numbers (hundredths, or 1e-9, of a unit times the scaled rate of its currency) until the row is built.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

import msgspec
import numpy as np

from gamelens.catalog import METRICS, Metric
from gamelens.simulator.ledger.ledger_columns import LedgerColumns
from gamelens.simulator.ledger.ledger_query import LedgerQuery, LedgerSelection, Totals, count_by, distinct_by
from gamelens.simulator.population.arrays import Ints
from gamelens.simulator.population.session_times import DAY_S
from gamelens.wire.currencies import RATE_SCALE
from gamelens.wire.intervals import Interval

Row = dict[str, Any]

REVENUE_SCALE: Final = 100 * RATE_SCALE
"""Factor from US dollars to totals of revenue."""
AD_REVENUE_SCALE: Final = 10**9 * RATE_SCALE
"""Factor from US dollars to totals of impression revenue."""


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
    rows = []
    for key in keys:
        fields = recipe.fields(**{name: total.get(key, 0) for name, total in totals.items()})
        if not query.dimensions or _exists(query, fields):
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


def _exists(query: LedgerQuery, fields: Row) -> bool:
    """Return whether the service has a row with these fields.

    A row exists if one of its counts is not 0. Retention has no counts; its rows exist if a player returned.
    """
    counts = [field.name for field in query.metric.fields if field.kind == "count"]
    return any(fields[name] for name in counts or [query.metric.sorts_by])


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


def _events(selection: LedgerSelection) -> Totals:
    return selection.count(selection.within())


def _users(selection: LedgerSelection) -> Totals:
    return selection.distinct(selection.within(), selection.columns.player)


def _sessions(selection: LedgerSelection) -> Totals:
    return selection.distinct(selection.within(), selection.columns.session)


def _ended(selection: LedgerSelection) -> Ints:
    return selection.of("category", "session_end")


def _new_users(selection: LedgerSelection) -> Totals:
    return selection.count(selection.within(selection.columns.install))


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


def _paying_users(selection: LedgerSelection) -> Totals:
    return selection.distinct(_purchases(selection), selection.columns.player)


def _converting_users(selection: LedgerSelection) -> Totals:
    first = selection.columns.first_purchase
    return selection.count(selection.within(first[first >= 0]))


def _shown(selection: LedgerSelection) -> Totals:
    rows = selection.of("category", "ads")
    return selection.count(rows[selection.columns.equals("ad_action", "show")[rows]])


def _impressions(selection: LedgerSelection) -> Ints:
    return selection.of("category", "impression")


def _ad_revenue(selection: LedgerSelection) -> Totals:
    return selection.money(_impressions(selection), selection.columns.numbers("ilrd_nano"), "ilrd_currency")


def _cohort_rows(selection: LedgerSelection) -> Ints:
    """Return the rows of all installs that the filters select, at any time."""
    install = selection.columns.install
    return install[selection.is_selected[install]]


def _installed(selection: LedgerSelection) -> Totals:
    """Count the installs of each cohort, in the bucket of the day of return."""
    rows = _cohort_rows(selection)
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


def _ratio(name: str, numerator: str, denominator: str) -> MetricRecipe:
    """Build a metric that is one counting metric over another, with both in the row."""
    return MetricRecipe(
        {each: _TOTALS[METRICS[each].made_of[0]] for each in (numerator, denominator)},
        lambda **n: {name: _share(n[numerator], n[denominator]), **n},
    )


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


def _retention() -> MetricRecipe:
    return MetricRecipe(
        {"returned": _returned, "installed": _installed},
        lambda *, returned, installed: {"retention": _share(returned, installed)},
    )


_TOTALS: Final[dict[str, Callable[[LedgerSelection], Totals]]] = {
    "converted": _converting_users,
    "earned": _ad_revenue,
    "events": _events,
    "impression": lambda selection: selection.distinct(_impressions(selection), selection.columns.impression),
    "impressions": lambda selection: selection.count(_impressions(selection)),
    "installed": _new_users,
    "paid": _revenue,
    "payer": _paying_users,
    "player": _users,
    "purchases": lambda selection: selection.count(_purchases(selection)),
    "returner": _returning_users,
    "session": _sessions,
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
            return _ratio(metric.name, part, whole)
        case "revenue per", (players,):
            return _revenue_per(metric.name, players)
    return {"session_length": _session_length, "retention_retro": _retention}[metric.name]()


_RECIPES: Final = {name: _recipe(metric) for name, metric in METRICS.items()}
