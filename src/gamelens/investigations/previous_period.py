"""The period before: what a page compares its own period with."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gamelens.client.tables.time_ranges import clip_to_available, resolve_range
from gamelens.wire.intervals import Interval, bucket_start, whole_months

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from gamelens.client.sync_client import Client
    from gamelens.client.tables.time_ranges import TimeRange

_DAY = timedelta(days=1)


def query_before(lens: Client, metric: str | Sequence[str], *, over: TimeRange, **arguments: Any) -> DataFrame | None:
    """Return the answer to the same query over the period right before *over*: equally long, or as many months.

    The part of *over* that is available decides. Whole calendar months are compared with as many months before, which
    may be some days longer or shorter; any other period with one of the same length. Where it ends within a day, the
    period before ends at the same time of its last day. None if the service does not have data of all of that period.

    Args:
        lens: a client.
        metric: the metrics of the query.
        over: its time range, as `Client.query` takes it.
        arguments: the other arguments of `Client.query`.

    Raises:
        NotYetAvailable: no part of *over* is available.
        BadQuery: as `Client.query`.
    """
    available = lens.available()
    period = clip_to_available(resolve_range(over, available), available, "clip")
    before = _before(period)
    return lens.query(metric, over=before, **arguments) if before in available else None


def _before(period: Interval) -> Interval:
    """Return what *period* is compared with."""
    if months := whole_months(period):
        start = period.start
        for _ in range(months):
            start = bucket_start(start - _DAY, "month")
        return Interval(start, period.start)
    days = -(-period.length // _DAY) * _DAY
    return Interval(period.start - days, period.end - days)
