"""Expected rows of the aliases, by formulas written here, from expected rows of the metrics of the service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gamelens.wire.intervals import Granularity, Interval, bucket_start

Row = dict[str, Any]
TableOf = Callable[[str, Granularity], list[Row]]
"""The expected rows of a metric of the service in buckets of a granularity."""

EVERY: dict[str, Granularity] = {"wau": "week", "mau": "month", "stickiness": "month"}
"""The bucket of each alias that has only one."""
FIELDS = {
    "ad_revenue": ["ad_revenue", "impressions"],
    "arpdau": ["arpdau", "iap_revenue", "ad_revenue", "player_days"],
    "dap": ["dap"],
    "dau": ["dau"],
    "ecpm": ["ecpm", "ad_revenue", "impressions"],
    "mau": ["mau"],
    "stickiness": ["stickiness", "mean_dau", "mau"],
    "wau": ["wau"],
}
"""The columns of each alias."""


def alias_rows(name: str, by: Sequence[str], every: Granularity, interval: Interval, table: TableOf) -> list[Row]:
    """Return the rows that a frame of the alias *name* must have, in no order."""
    parts = _parts(name, every, table)
    start = {day.start: _bucket(day.start, every, interval) for day in interval.buckets("day")}
    sums: dict[tuple[Any, ...], dict[str, float]] = {}
    for field, rows, column in parts:
        for row in rows:
            key = (start.get(row["timestamp"], row["timestamp"]), *(row[dimension] for dimension in by))
            fields = sums.setdefault(key, dict.fromkeys((field for field, _, _ in parts), 0))
            fields[field] += row[column] or 0
    for mean in {"mean_dau", "dau", "dap"} & {field for field, _, _ in parts}:
        for key, fields in sums.items():
            fields[mean] = fields[mean] / list(start.values()).count(key[0])
    return [
        {**dict(zip(["timestamp", *by], key, strict=True)), **_with_ratio(name, fields)} for key, fields in sums.items()
    ]


def _parts(name: str, every: Granularity, table: TableOf) -> list[tuple[str, list[Row], str]]:
    """Return the summed fields of an alias, each with the rows and the column it is in."""
    match name:
        case "dau":
            return [("dau", table("user_unique", "day"), "user_unique")]
        case "wau" | "mau":
            return [(name, table("user_unique", EVERY[name]), "user_unique")]
        case "dap":
            return [("dap", table("paying_users", "day"), "paying_users")]
        case "stickiness":
            days = table("user_unique", "day")
            return [("mean_dau", days, "user_unique"), ("mau", table("user_unique", "month"), "user_unique")]
    ads = table("ilrd_revenue", every)
    if name == "arpdau":
        return [
            ("iap_revenue", table("revenue", every), "sum"),
            ("ad_revenue", ads, "sum"),
            ("player_days", table("user_unique", "day"), "user_unique"),
        ]
    return [("ad_revenue", ads, "sum"), ("impressions", ads, "event_count")]


def _with_ratio(name: str, fields: dict[str, float]) -> Row:
    match name:
        case "arpdau":
            ratio = ((fields["iap_revenue"] + fields["ad_revenue"]), fields["player_days"])
        case "ecpm":
            ratio = (1000 * fields["ad_revenue"], fields["impressions"])
        case "stickiness":
            ratio = (fields["mean_dau"], fields["mau"])
        case _:
            return dict(fields)
    return {name: ratio[0] / ratio[1] if ratio[1] else None} | fields


def _bucket(day: Any, every: Granularity, interval: Interval) -> Any:
    return interval.start if every == "all" else bucket_start(day, every)
