"""What each metric is in SQL: integer parts over atoms, and the row fields that are made of them.

A statement answers integers, the *parts* of a metric; means, ratios and money are made from them at the edge, so that
every engine gives the same digits. Each part sums or counts one *atom*, a column that `sources` knows how to make from
the rows of each table. To add a metric: one row in the catalog, one `MetricSql` here, one test.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import msgspec

from gamelens.catalog import Metric
from gamelens.sandbox.processing.impression_fields import NANO
from gamelens.wire.currencies import RATE_SCALE
from gamelens.wire.results import Row

Parts = dict[str, int]

_HUNDREDTHS: Final = 100 * RATE_SCALE  # of a purchase
_NANOS: Final = NANO * RATE_SCALE  # of an impression


class MetricSql(msgspec.Struct, frozen=True):
    """A metric in SQL: its integer *parts*, what orders its rows (terms, highest first), the fields made from parts.

    *atoms* are the columns that the parts are made of.
    """

    parts: dict[str, str]
    atoms: tuple[str, ...]
    sort: tuple[str, ...]
    row: Callable[[Parts], Row]


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def _summed(name: str, atom: str) -> MetricSql:
    return MetricSql({name: f"COALESCE(SUM({atom}), 0)"}, (atom,), (name,), lambda parts: {name: parts[name]})


def _distinct(name: str, atom: str) -> MetricSql:
    return MetricSql({name: f"COUNT(DISTINCT {atom})"}, (atom,), (name,), lambda parts: {name: parts[name]})


def _quotient(numerator: str, denominator: str) -> tuple[str, ...]:
    """What orders by a quotient exactly: as one float, large sums that differ in the last cent would be ties."""
    return f"{numerator} // NULLIF({denominator}, 0)", f"({numerator} % NULLIF({denominator}, 0)) / {denominator}"


def _share(name: str, of: str, by: str) -> MetricSql:
    """A ratio of two counted metrics."""
    return MetricSql(
        {**EXPRESSIONS[of].parts, **EXPRESSIONS[by].parts},
        (*EXPRESSIONS[of].atoms, *EXPRESSIONS[by].atoms),
        _quotient(of, by),
        lambda row: {name: _ratio(row[of], row[by]), of: row[of], by: row[by]},
    )


def _money(count: str, earned: str, scale: int) -> MetricSql:
    """Money of one category, of whose events *count* says how many; `usd` is in US dollars times *scale*."""
    return MetricSql(
        {"event_count": f"COALESCE(SUM({count}), 0)", "usd": f"COALESCE(SUM({earned}), 0)"},
        (count, earned),
        ("usd",),
        lambda parts: {
            "event_count": parts["event_count"],
            "mean": _ratio(parts["usd"], scale * parts["event_count"]),
            "sum": parts["usd"] / scale,
            "sum_cents": 100 * parts["usd"] / scale,
        },
    )


def _revenue_per(name: str, players: str) -> MetricSql:
    return MetricSql(
        {"usd": EXPRESSIONS["revenue"].parts["usd"], **EXPRESSIONS[players].parts},
        ("paid", *EXPRESSIONS[players].atoms),
        _quotient("usd", players),
        lambda row: {
            name: _ratio(row["usd"], _HUNDREDTHS * row[players]),
            players: row[players],
            "total_revenue": round(Fraction(row["usd"], RATE_SCALE)),  # half to even, once
        },
    )


EXPRESSIONS: dict[str, MetricSql] = {
    "event_count": _summed("event_count", "events"),
    "user_unique": _distinct("user_unique", "player"),
    "session_unique": _distinct("session_unique", "session"),
    "new_users": _summed("new_users", "installed"),
    "converting_users": _summed("converting_users", "converted"),
    "paying_users": _distinct("paying_users", "payer"),
    "ad_impressions_count": _summed("ad_impressions_count", "shown"),
    "ilrd_id_unique": _distinct("ilrd_id_unique", "impression"),
    "returning_users": _distinct("returning_users", "returner"),
    "revenue": _money("purchases", "paid", _HUNDREDTHS),
    "ilrd_revenue": _money("impressions", "earned", _NANOS),
    "session_length": MetricSql(
        {
            "total_session_length": "COALESCE(SUM(seconds), 0)",
            "ended": "COALESCE(SUM(ended), 0)",
            "session_unique": "COUNT(DISTINCT ended_session)",
        },
        ("seconds", "ended", "ended_session"),
        _quotient("total_session_length", "ended"),
        lambda parts: {
            "session_length": _ratio(parts["total_session_length"], parts["ended"]),
            "session_unique": parts["session_unique"],
            "total_session_length": parts["total_session_length"],
        },
    ),
}
EXPRESSIONS |= {
    "installs_ratio": _share("installs_ratio", "new_users", "user_unique"),
    "conversion": _share("conversion", "paying_users", "user_unique"),
    "conversion_ft": _share("conversion_ft", "converting_users", "user_unique"),
    "ad_impressions_per_session": _share("ad_impressions_per_session", "ad_impressions_count", "session_unique"),
    "arpu": _revenue_per("arpu", "user_unique"),
    "arppu": _revenue_per("arppu", "paying_users"),
    "retention_retro": MetricSql(
        {"installed": "COALESCE(SUM(cohort), 0)", "returned": "COALESCE(SUM(returned), 0)"},
        ("cohort", "returned"),
        _quotient("returned", "installed"),
        lambda parts: {"retention": parts["returned"] / parts["installed"]},
    ),
}


def row_of(metric: Metric, parts: Parts) -> Row:
    """The metric's row fields from the integers a statement answered; no parts at all is a bucket of nothing."""
    expression = EXPRESSIONS[metric.name]
    return expression.row({name: int(parts.get(name) or 0) for name in expression.parts})
