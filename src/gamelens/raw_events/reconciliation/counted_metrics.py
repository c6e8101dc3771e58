"""The metrics that events can be recounted for, as SQL over the events of a lake."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from gamelens.errors import BadQuery
from gamelens.wire.dimensions import DIMENSIONS, EVENT_DIMENSIONS

_OF_GAMES: Final = ("game_id", "category")
EVENT_SPLITS: Final = tuple(name for name in EVENT_DIMENSIONS if name in _OF_GAMES or DIMENSIONS[name].only)
"""Dimensions that are the event's own."""
PLAYER_SPLITS: Final = tuple(name for name in EVENT_DIMENSIONS if name not in EVENT_SPLITS)
"""Dimensions of an event that usually stay the same for a player."""
NETWORK: Final = "ilrd_network_name"

_NAMED: Final = "user_id IS NOT NULL"


class CountedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric as it is counted from events.

    Attributes:
        name: name of the metric.
        field: column of its answers that is compared.
        kind: whether values are added, different keys counted, or players by their first event.
        counts: SQL of whether an event counts.
        value: SQL of what it adds.
        key: SQL of what is counted once.
    """

    name: str
    field: str
    kind: Literal["sum", "distinct", "first"] = "sum"
    counts: str = "TRUE"
    value: str = "1"
    key: str = "hash(game_id, user_id)"


COUNTED_METRICS: Final = {
    each.name: each
    for each in (
        CountedMetric(name="event_count", field="event_count"),
        CountedMetric(
            name="ad_impressions_count",
            field="ad_impressions_count",
            counts="category = 'ads' AND coalesce(ad_action = 'show', FALSE)",
        ),
        CountedMetric(name="revenue", field="sum", counts="category = 'business'", value="money * scaled / 100 / 1e9"),
        CountedMetric(
            name="ilrd_revenue", field="sum", counts="category = 'impression'", value="money / 1e9 * scaled / 1e9"
        ),
        CountedMetric(name="user_unique", field="user_unique", kind="distinct", counts=_NAMED),
        CountedMetric(
            name="paying_users",
            field="paying_users",
            kind="distinct",
            counts=f"{_NAMED} AND category = 'business'",
        ),
        CountedMetric(
            name="session_unique",
            field="session_unique",
            kind="distinct",
            counts="session_id IS NOT NULL",
            key="hash(game_id, session_id)",
        ),
        CountedMetric(name="new_users", field="new_users", kind="first", counts=_NAMED),
    )
}
"""The metrics, by name."""


def counted_metric(name: object) -> CountedMetric:
    """Return the metric called *name*.

    Raises:
        BadQuery: it cannot be recounted from events.
    """
    if not isinstance(name, str) or name not in COUNTED_METRICS:
        raise BadQuery("metric", name, "cannot be recounted from events: pass one name", COUNTED_METRICS)
    return COUNTED_METRICS[name]


def check_split(by: object) -> None:
    """Check that *by* is None or one dimension of events.

    Raises:
        BadQuery: it is something else.
    """
    allowed = (*EVENT_SPLITS, *PLAYER_SPLITS)
    if by is not None and by not in allowed:
        raise BadQuery("by", by, "must be one dimension of events, or None", allowed)
