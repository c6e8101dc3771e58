"""Bodies of metric queries over one week, by the kinds of query that a metric has."""

from __future__ import annotations

from typing import Any

WEEK: dict[str, Any] = {"interval": "2026-11-15/P7D", "granularity": "day"}
TIMESERIES: dict[str, Any] = WEEK | {"query": {"type": "timeseries"}}
BY_GAME: dict[str, Any] = WEEK | {"split_by": "platform"}
RETENTION: dict[str, Any] = BY_GAME | {"since_days_ago": 1}
BODIES: dict[str, list[dict[str, Any]]] = {
    "plain": [TIMESERIES, WEEK | {"query": {"type": "group", "dimension": "game_id"}}],
    "per game": [BY_GAME],
    "retention": [RETENTION],
}
"""Bodies of each kind of metric, by the `kinds` of the catalog."""
