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

from gamelens.catalog import METRICS, Metric
from gamelens.sandbox.storage.atoms import ATOMS
from gamelens.wire.results import Row

Parts = dict[str, int]
"""Integers that a statement returns for one row, by name."""


class Sum(msgspec.Struct, frozen=True):
    """A part of a metric: the sum of *atom*, 0 without rows."""

    atom: str


class Distinct(msgspec.Struct, frozen=True):
    """A part of a metric: the number of different values of *atom*."""

    atom: str


class MetricSql(msgspec.Struct, frozen=True):
    """A metric in SQL: the integers that the statement returns, and the function from these to the fields of a row.

    *sort* has the terms that order the rows, highest first (Wire 2.10, Row order).
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


def _one(name: str, part: Sum | Distinct) -> MetricSql:
    return MetricSql({name: part}, (name,), lambda parts: {name: parts[name]})


def _order_by_quotient(numerator: str, denominator: str) -> tuple[str, ...]:
    """Return the terms that order rows by an exact quotient: its whole part, then the rest.

    One float would make large sums that differ by a cent equal.
    """
    return f"{numerator} // NULLIF({denominator}, 0)", f"({numerator} % NULLIF({denominator}, 0)) / {denominator}"


_WITHOUT_RECIPE: Final = {
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
    "retention_retro": MetricSql(
        {"installed": Sum("cohort"), "returned": Sum("returned")},
        _order_by_quotient("returned", "installed"),
        lambda parts: {"retention": parts["returned"] / parts["installed"]},
    ),
}
"""The metrics whose recipe is their own."""


def sql_of(metric: Metric) -> MetricSql:
    """Return *metric* in SQL, by its recipe."""
    name = metric.name
    match metric.recipe, metric.made_of:
        case "sum", (atom,):
            return _one(name, Sum(atom))
        case "distinct", (atom,):
            return _one(name, Distinct(atom))
        case "money", (count, earned):
            scale = ATOMS[earned].per_usd
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
        case "share", (part, whole):
            return MetricSql(
                {**sql_of(METRICS[part]).parts, **sql_of(METRICS[whole]).parts},
                _order_by_quotient(part, whole),
                lambda parts: {name: _ratio(parts[part], parts[whole]), part: parts[part], whole: parts[whole]},
            )
        case "revenue per", (players,):
            scale = ATOMS["paid"].per_usd
            return MetricSql(
                {"usd": Sum("paid"), **sql_of(METRICS[players]).parts},
                _order_by_quotient("usd", players),
                lambda parts: {
                    name: _ratio(parts["usd"], scale * parts[players]),
                    players: parts[players],
                    "total_revenue": round(Fraction(100 * parts["usd"], scale)),  # US cents, half to even, once
                },
            )
    return _WITHOUT_RECIPE[name]


METRIC_SQL: Final = {name: sql_of(metric) for name, metric in METRICS.items()}
RETURNING_AFTER: Final = _one("returning_users", Distinct("returner_after"))
"""Returning players of one age."""


def row_of(metric: Metric, parts: Parts) -> Row:
    """Return the metric's row fields from the integers of a statement, 0 for missing ones."""
    metric_sql = METRIC_SQL[metric.name]
    return metric_sql.row({name: int(parts.get(name) or 0) for name in metric_sql.parts})
