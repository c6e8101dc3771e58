"""The period before: what a page compares its own period with."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gamelens.client.tables.time_ranges import clip_to_available, resolve_range
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from gamelens.client.sync_client import Client
    from gamelens.client.tables.time_ranges import TimeRange

_DAY = timedelta(days=1)


def query_before(lens: Client, metric: str | Sequence[str], *, over: TimeRange, **arguments: Any) -> DataFrame | None:
    """Return the answer to the same query over the equally long period right before *over*.

    The part of *over* that is available decides, so the two are always of one length. Where it ends within a day, the
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
    days = -(-period.length // _DAY) * _DAY
    before = Interval(period.start - days, period.end - days)
    return lens.query(metric, over=before, **arguments) if before in available else None
