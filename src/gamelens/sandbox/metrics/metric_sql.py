"""Each metric in SQL: integer parts of a statement, and the row fields computed from them.

A statement returns integers, the *parts* of a metric. Means, ratios and money are computed from them in Python, so that
every engine gives the same digits (Wire 4.13, Numbers). Each part sums one *atom* or counts its different values: a
number or key that `storage.atoms` defines over the rows of each table.
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
"""Integers that a statement returns for one row, by name."""

_CENT_SCALE: Final = 100 * RATE_SCALE  # of purchase sums per US dollar
_NANO_SCALE: Final = NANO * RATE_SCALE  # of impression sums per US dollar


class Sum(msgspec.Struct, frozen=True):
    """A part of a metric: the sum of *atom*, 0 without rows."""

    atom: str


class Distinct(msgspec.Struct, frozen=True):
    """A part of a metric: the number of different values of *atom*."""

    atom: str


class MetricSql(msgspec.Struct, frozen=True):
    """A metric in SQL.

    Attributes:
        parts: each integer that the statement returns, by name.
        sort: terms that order the rows, highest first (Wire 2.10, Row order).
        row: function from the parts to the fields of a row.
    """

    parts: dict[str, Sum | Distinct]
    sort: tuple[str, ...]
    row: Callable[[Parts], Row]

    @property
    def atoms(self) -> tuple[str, ...]:
        """The atoms that the parts are made of."""
        return tuple(dict.fromkeys(part.atom for part in self.parts.values()))


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def _summed(name: str, atom: str) -> MetricSql:
    return MetricSql({name: Sum(atom)}, (name,), lambda parts: {name: parts[name]})


def _distinct(name: str, atom: str) -> MetricSql:
    return MetricSql({name: Distinct(atom)}, (name,), lambda parts: {name: parts[name]})


def _order_by_quotient(numerator: str, denominator: str) -> tuple[str, ...]:
    """Return the terms that order rows by an exact quotient: its whole part, then the rest.

    One float would make large sums that differ by a cent equal.
    """
    return f"{numerator} // NULLIF({denominator}, 0)", f"({numerator} % NULLIF({denominator}, 0)) / {denominator}"


def _share(name: str, numerator: str, denominator: str) -> MetricSql:
    """Return the ratio of two counting metrics."""
    return MetricSql(
        {**METRIC_SQL[numerator].parts, **METRIC_SQL[denominator].parts},
        _order_by_quotient(numerator, denominator),
        lambda parts: {
            name: _ratio(parts[numerator], parts[denominator]),
            numerator: parts[numerator],
            denominator: parts[denominator],
        },
    )


def _money(count: str, earned: str, scale: int) -> MetricSql:
    """Return the money of one category in US dollars.

    *count* is the atom of its events, *earned* that of their amounts in US dollars times *scale*.
    """
    return MetricSql(
        {"event_count": Sum(count), "usd": Sum(earned)},
        ("usd",),
        lambda parts: {
            "event_count": parts["event_count"],
            "mean": _ratio(parts["usd"], scale * parts["event_count"]),
            "sum": parts["usd"] / scale,
            "sum_cents": 100 * parts["usd"] / scale,
        },
    )


def _revenue_per(name: str, players: str) -> MetricSql:
    """Return the revenue per counted player, with the revenue in US cents."""
    return MetricSql(
        {"usd": METRIC_SQL["revenue"].parts["usd"], **METRIC_SQL[players].parts},
        _order_by_quotient("usd", players),
        lambda parts: {
            name: _ratio(parts["usd"], _CENT_SCALE * parts[players]),
            players: parts[players],
            "total_revenue": round(Fraction(parts["usd"], RATE_SCALE)),  # US cents, half to even, once
        },
    )


METRIC_SQL: dict[str, MetricSql] = {
    "event_count": _summed("event_count", "events"),
    "user_unique": _distinct("user_unique", "player"),
    "session_unique": _distinct("session_unique", "session"),
    "new_users": _summed("new_users", "installed"),
    "converting_users": _summed("converting_users", "converted"),
    "paying_users": _distinct("paying_users", "payer"),
    "ad_impressions_count": _summed("ad_impressions_count", "shown"),
    "ilrd_id_unique": _distinct("ilrd_id_unique", "impression"),
    "returning_users": _distinct("returning_users", "returner"),
    "revenue": _money("purchases", "paid", _CENT_SCALE),
    "ilrd_revenue": _money("impressions", "earned", _NANO_SCALE),
    "session_length": MetricSql(
        {
            "total_session_length": Sum("seconds"),
            "ended": Sum("ended"),
            "session_unique": Distinct("ended_session"),
        },
        _order_by_quotient("total_session_length", "ended"),
        lambda parts: {
            "session_length": _ratio(parts["total_session_length"], parts["ended"]),
            "session_unique": parts["session_unique"],
            "total_session_length": parts["total_session_length"],
        },
    ),
}
METRIC_SQL |= {
    "installs_ratio": _share("installs_ratio", "new_users", "user_unique"),
    "conversion": _share("conversion", "paying_users", "user_unique"),
    "conversion_ft": _share("conversion_ft", "converting_users", "user_unique"),
    "ad_impressions_per_session": _share("ad_impressions_per_session", "ad_impressions_count", "session_unique"),
    "arpu": _revenue_per("arpu", "user_unique"),
    "arppu": _revenue_per("arppu", "paying_users"),
    "retention_retro": MetricSql(
        {"installed": Sum("cohort"), "returned": Sum("returned")},
        _order_by_quotient("returned", "installed"),
        lambda parts: {"retention": parts["returned"] / parts["installed"]},
    ),
}


RETURNING_AFTER: Final = _distinct("returning_users", "returner_after")
"""Returning players of one age."""


def row_of(metric: Metric, parts: Parts) -> Row:
    """Return the metric's row fields from the integers of a statement, 0 for missing ones."""
    metric_sql = METRIC_SQL[metric.name]
    return metric_sql.row({name: int(parts.get(name) or 0) for name in metric_sql.parts})
