"""Rows of several answers made into rows of one: pieces added up, metrics joined, the largest picked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from math import fsum
from typing import Any

from gamelens.catalog import Metric
from gamelens.wire.results import Row, Rows

Key = tuple[Any, ...]


def add_up(
    metric: Metric, dimensions: Sequence[str], pieces: Iterable[Sequence[Rows]], stamp: datetime | None
) -> list[Rows]:
    """Buckets of *pieces* with what lies in the same bucket added, largest first.

    Counts and money are summed, a mean is made again from its sum and count. *stamp* replaces the timestamps where the
    bucket is the whole interval. Only for metrics that add up everywhere. A field the catalog does not know cannot be
    added and is left out.
    """
    buckets: dict[datetime, dict[Key, list[Row]]] = {}
    for piece in pieces:
        for bucket in piece:
            groups = buckets.setdefault(stamp or bucket.timestamp, {})
            for row in bucket.rows:
                groups.setdefault(_key(row, dimensions), []).append(row)
    order = _largest_first(metric, dimensions)
    return [
        Rows(timestamp, sorted((_sum(metric, dimensions, rows) for rows in groups.values()), key=order))
        for timestamp, groups in sorted(buckets.items())
    ]


def join(
    dimensions: Sequence[str], answers: Sequence[tuple[str, Sequence[Rows]]], shared: frozenset[str]
) -> list[Rows]:
    """Rows of several metrics side by side where timestamp and *dimensions* are the same.

    Fields in *shared* are prefixed with their metric. A row that one metric does not have lacks its fields.
    """
    buckets: dict[datetime, dict[Key, Row]] = {}
    for metric, answer in answers:
        for bucket in answer:
            groups = buckets.setdefault(bucket.timestamp, {})
            for row in bucket.rows:
                joined = groups.setdefault(_key(row, dimensions), {})
                joined.update((prefixed(name, metric, shared), value) for name, value in row.items())
    return [Rows(timestamp, list(groups.values())) for timestamp, groups in sorted(buckets.items())]


def fields_of(dimensions: Sequence[str], answer: Iterable[Rows]) -> list[str]:
    """Names of the fields in *answer* that are no dimensions, as they come."""
    seen: dict[str, None] = {}
    for bucket in answer:
        for row in bucket.rows:
            seen.update(dict.fromkeys(row))
    return [name for name in seen if name not in dimensions]


def shared_fields(fields: Iterable[Iterable[str]]) -> frozenset[str]:
    """Names that occur in more than one of *fields*."""
    times = Counter(name for names in fields for name in names)
    return frozenset(name for name, number in times.items() if number > 1)


def prefixed(name: str, metric: str, shared: frozenset[str]) -> str:
    """*name* as the joined rows call it."""
    return f"{metric}_{name}" if name in shared else name


def _key(row: Row, dimensions: Sequence[str]) -> Key:
    return tuple(row.get(name) for name in dimensions)


def _sum(metric: Metric, dimensions: Sequence[str], rows: Sequence[Row]) -> Row:
    total: Row = {name: rows[0].get(name) for name in dimensions}
    for field in metric.fields:
        values = [row.get(field.name) or 0 for row in rows]
        total[field.name] = sum(values) if field.kind == "count" else fsum(values)
    if "mean" in total:
        total["mean"] = total["sum"] / total["event_count"] if total["event_count"] else None
    return total


def _largest_first(metric: Metric, dimensions: Sequence[str]) -> Callable[[Row], Key]:
    """The order of a grouped answer: the metric's own field, then the values, null last."""

    def order(row: Row) -> Key:
        values = [(row.get(name) is None, row.get(name) or "") for name in dimensions]
        return (-row[metric.sorts_by], *values)

    return order
