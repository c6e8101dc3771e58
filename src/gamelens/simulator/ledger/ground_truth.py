"""What every metric is, in plain numpy over the ledger's columns; nothing here is shared with the sandbox.

A metric is a recipe: exact whole numbers for each bucket and group, and the fields of a row made from them. Money
stays in whole numbers (hundredths, or 1e-9, of a unit times the scaled rate of its currency) until the row is made.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

import msgspec
import numpy as np

from gamelens.simulator.ledger.ledger_columns import DAY_S, LedgerColumns
from gamelens.simulator.ledger.ledger_query import LedgerQuery, LedgerSelection, Totals, count_by, distinct_by
from gamelens.simulator.population.players import Ints
from gamelens.wire.currencies import RATE_SCALE
from gamelens.wire.intervals import Interval

Row = dict[str, Any]

REVENUE_SCALE: Final = 100 * RATE_SCALE
"""Revenue totals are US dollars times this."""
AD_REVENUE_SCALE: Final = 10**9 * RATE_SCALE
"""Impression revenue totals are US dollars times this."""


class MetricRecipe(msgspec.Struct, frozen=True):
    """How a metric is made: *totals* by name, and *fields*, which turns one number of each into the row's fields."""

    totals: dict[str, Callable[[LedgerSelection], Totals]]
    fields: Callable[..., Row]


def compute_metric(question: LedgerQuery, columns: LedgerColumns) -> list[Row]:
    """The answer to *question*: buckets ascend, rows in each by the metric's own field, highest first, nulls last."""
    asked, recipe = LedgerSelection(question, columns), _RECIPES[question.name]
    totals = {name: total(asked) for name, total in recipe.totals.items()}
    keys: set[int] = set().union(*totals.values())
    if not question.dimensions:
        keys |= set(range(len(asked.buckets)))
    made = []
    for key in keys:
        fields = recipe.fields(**{name: total.get(key, 0) for name, total in totals.items()})
        if not question.dimensions or _exists(question, fields):
            bucket, values = asked.unkey(key)
            made.append((bucket, values, fields))
    own = question.metric.sorts_by
    made.sort(
        key=lambda row: (row[0], row[2][own] is None, -(row[2][own] or 0), [(v is None, v or "") for v in row[1]])
    )
    return [
        {"timestamp": asked.buckets[bucket].start, **dict(zip(question.dimensions, values, strict=True)), **fields}
        for bucket, values, fields in made
    ]


def _exists(question: LedgerQuery, fields: Row) -> bool:
    """A row exists when a whole number in it is not 0; retention, which has none, when somebody returned."""
    counts = [field.name for field in question.metric.fields if field.kind == "count"]
    return any(fields[name] for name in counts or [question.metric.sorts_by])


def revenue(columns: LedgerColumns) -> int:
    """All purchases, US dollars times `REVENUE_SCALE`."""
    return _revenue(_everything(columns)).get(0, 0)


def ad_revenue(columns: LedgerColumns) -> int:
    """All impressions, US dollars times `AD_REVENUE_SCALE`."""
    return _ad_revenue(_everything(columns)).get(0, 0)


def _everything(columns: LedgerColumns) -> LedgerSelection:
    ends = [int(columns.ts_s.min()), int(columns.ts_s.max()) + 1] if columns.events else [0, 0]
    start, end = (datetime.fromtimestamp(moment, UTC) for moment in ends)
    return LedgerSelection(LedgerQuery(name="revenue", interval=Interval(start, end), granularity="all"), columns)


def _events(asked: LedgerSelection) -> Totals:
    return asked.count(asked.within())


def _users(asked: LedgerSelection) -> Totals:
    return asked.distinct(asked.within(), asked.columns.player)


def _sessions(asked: LedgerSelection) -> Totals:
    return asked.distinct(asked.within(), asked.columns.session)


def _ended(asked: LedgerSelection) -> Ints:
    return asked.of("category", "session_end")


def _new_users(asked: LedgerSelection) -> Totals:
    return asked.count(asked.within(asked.columns.install))


def _returning_users(asked: LedgerSelection) -> Totals:
    columns, days_ago = asked.columns, asked.question.since_days_ago
    rows = asked.within()
    rows = rows[columns.player[rows] >= 0]
    age = columns.day[rows] - columns.day[columns.install[columns.player[rows]]]
    return asked.distinct(rows[age > 0 if days_ago is None else age == days_ago], columns.player)


def _purchases(asked: LedgerSelection) -> Ints:
    return asked.of("category", "business")


def _revenue(asked: LedgerSelection) -> Totals:
    return asked.money(_purchases(asked), asked.columns.numbers("amount"), "currency")


def _paying_users(asked: LedgerSelection) -> Totals:
    return asked.distinct(_purchases(asked), asked.columns.player)


def _converting_users(asked: LedgerSelection) -> Totals:
    first = asked.columns.first_purchase
    return asked.count(asked.within(first[first >= 0]))


def _shown(asked: LedgerSelection) -> Totals:
    rows = asked.of("category", "ads")
    return asked.count(rows[asked.columns.equals("ad_action", "show")[rows]])


def _impressions(asked: LedgerSelection) -> Ints:
    return asked.of("category", "impression")


def _ad_revenue(asked: LedgerSelection) -> Totals:
    return asked.money(_impressions(asked), asked.columns.numbers("ilrd_nano"), "ilrd_currency")


def _cohort_rows(asked: LedgerSelection) -> Ints:
    """Install rows the filters select, whenever they lie."""
    install = asked.columns.install
    return install[asked.is_selected[install]]


def _installed(asked: LedgerSelection) -> Totals:
    rows = _cohort_rows(asked)
    later_s = asked.columns.ts_s[rows] + (asked.question.since_days_ago or 0) * DAY_S
    bucket = asked.bucket(later_s)
    kept = (bucket >= 0) & (later_s < asked.buckets[-1].end.timestamp())
    return count_by(asked.keys(rows[kept], bucket[kept]))


def _returned(asked: LedgerSelection) -> Totals:
    columns = asked.columns
    rows = np.flatnonzero(asked.is_inside & (columns.player >= 0))
    install = columns.install[columns.player[rows]]
    age = columns.day[rows] - columns.day[install]
    kept = asked.is_selected[install] & (age == asked.question.since_days_ago)
    rows, install = rows[kept], install[kept]
    return distinct_by(asked.keys(install, asked.bucket(columns.ts_s[rows])), columns.player[rows])


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _money_fields(scale: int) -> Callable[..., Row]:
    def fields(*, event_count: int, money: int) -> Row:
        return {
            "event_count": event_count,
            "mean": _share(money, event_count * scale),
            "sum": money / scale,
            "sum_cents": money * 100 / scale,
        }

    return fields


def _one(name: str, total: Callable[[LedgerSelection], Totals]) -> MetricRecipe:
    """A metric that is one whole number."""
    return MetricRecipe({name: total}, lambda **totals: totals)


def _ratio(
    name: str,
    part: str,
    whole: str,
    part_total: Callable[[LedgerSelection], Totals],
    whole_total: Callable[[LedgerSelection], Totals],
) -> MetricRecipe:
    """A metric that is one whole number over another, both in the row."""
    return MetricRecipe({part: part_total, whole: whole_total}, lambda **n: {name: _share(n[part], n[whole]), **n})


def _revenue_per(name: str, whose: str, total: Callable[[LedgerSelection], Totals]) -> MetricRecipe:
    """Revenue by player: exact dollars over players, and the total in cents, rounded half to even."""

    def fields(*, money: int, **players: int) -> Row:
        cents = round(Fraction(money, REVENUE_SCALE // 100))
        return {name: _share(money, players[whose] * REVENUE_SCALE), **players, "total_revenue": cents}

    return MetricRecipe({whose: total, "money": _revenue}, fields)


def _session_length() -> MetricRecipe:
    def fields(*, ended: int, session_unique: int, total_session_length: int) -> Row:
        mean = _share(total_session_length, ended)
        return {
            "session_length": mean,
            "session_unique": session_unique,
            "total_session_length": total_session_length,
        }

    totals: dict[str, Callable[[LedgerSelection], Totals]] = {
        "ended": lambda asked: asked.count(_ended(asked)),
        "session_unique": lambda asked: asked.distinct(_ended(asked), asked.columns.session),
        "total_session_length": lambda asked: asked.add(_ended(asked), asked.columns.numbers("length")),
    }
    return MetricRecipe(totals, fields)


def _retention() -> MetricRecipe:
    return MetricRecipe(
        {"returned": _returned, "installed": _installed},
        lambda *, returned, installed: {"retention": _share(returned, installed)},
    )


_RECIPES: Final[dict[str, MetricRecipe]] = {
    "ad_impressions_count": _one("ad_impressions_count", _shown),
    "ad_impressions_per_session": _ratio(
        "ad_impressions_per_session", "ad_impressions_count", "session_unique", _shown, _sessions
    ),
    "arppu": _revenue_per("arppu", "paying_users", _paying_users),
    "arpu": _revenue_per("arpu", "user_unique", _users),
    "conversion": _ratio("conversion", "paying_users", "user_unique", _paying_users, _users),
    "conversion_ft": _ratio("conversion_ft", "converting_users", "user_unique", _converting_users, _users),
    "converting_users": _one("converting_users", _converting_users),
    "event_count": _one("event_count", _events),
    "ilrd_id_unique": _one(
        "ilrd_id_unique", lambda asked: asked.distinct(_impressions(asked), asked.columns.impression)
    ),
    "ilrd_revenue": MetricRecipe(
        {"event_count": lambda asked: asked.count(_impressions(asked)), "money": _ad_revenue},
        _money_fields(AD_REVENUE_SCALE),
    ),
    "installs_ratio": _ratio("installs_ratio", "new_users", "user_unique", _new_users, _users),
    "new_users": _one("new_users", _new_users),
    "paying_users": _one("paying_users", _paying_users),
    "retention_retro": _retention(),
    "returning_users": _one("returning_users", _returning_users),
    "revenue": MetricRecipe(
        {"event_count": lambda asked: asked.count(_purchases(asked)), "money": _revenue},
        _money_fields(REVENUE_SCALE),
    ),
    "session_length": _session_length(),
    "session_unique": _one("session_unique", _sessions),
    "user_unique": _one("user_unique", _users),
}
