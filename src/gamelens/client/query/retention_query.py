"""Retention by install day, from retention_retro by activity day (Metrics, Result shapes 5).

The service says of each day T which share of those installed N days before came back. An install day D at age N is
therefore read on T = D + N: one series for each age over the days moved by N, never a request for each install day.
How many installed comes from new_users, and the two together give how many came back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.query.planner import MetricPlan, plan_requests
from gamelens.client.query.query_run import QueryResult, QueryRun, check_names
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, RetentionSpec
from gamelens.client.tables.table_operations import from_rows
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE
from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval, bucket_start

Group = tuple[str | None, ...]  # values of the dimensions, in their order
Values = dict[tuple[datetime, Group], float]
Pool = dict[Group, int]  # installs of the groups that are shown as one
_DAY: Final = timedelta(days=1)


async def retention(inquiry: QueryRun, cohorts: RetentionSpec, *, max_days: int | None) -> QueryResult:
    """The answer of `Client.retention`."""
    await inquiry.deadline.run(check_names(inquiry, cohorts.question("new_users")))
    span = await inquiry.settle()
    days = _whole_days(span.kept, span.available)
    known_until = bucket_start(span.available.end, "day")
    active = {age: moved for age in cohorts.ages if (moved := _moved(days, age, known_until))}
    asked = cohorts.question("retention")
    carried = (*(name for name in asked.dimensions if name not in (GAME_ID, STUDIO_ID)), GAME_ID)
    by_game = cohorts.question("new_users", by=carried)
    reach = Interval(days.start, max([days.end, *(moved.end for moved in active.values())]))
    lists = await inquiry.lists(by_game, reach)
    (starts,) = plan_requests(by_game, days, max_days=max_days, lists=lists)
    returns = [
        plan_requests(cohorts.question("retention_retro", by=carried, age=age), moved, max_days=max_days, lists=lists)[
            0
        ]
        for age, moved in active.items()
    ]
    await inquiry.name(asked, span, studios=STUDIO_ID in asked.dimensions)
    came = await inquiry.fetch([starts, *returns], span)
    installs, *shares = [_values(part, table, carried) for part, table in zip([starts, *returns], came, strict=True)]
    known = dict(zip(active, shares, strict=True))
    rows = [
        {TIMESTAMP: day, "age": age, **dict(zip(asked.dimensions, group, strict=True)), **_returned(pool, values)}
        for day, pools in _pooled(installs, carried, asked.dimensions, inquiry.studios)
        if not any(day in interval for interval in inquiry.lost(None))  # a part of a cohort is none
        for age in cohorts.ages
        for values in [_shares_of(known.get(age, {}), day, age, known_until, inquiry.lost(age))]
        for group, pool in pools.items()
    ]
    table = from_rows(rows, _schema(asked.dimensions))
    return await inquiry.answered(asked, span, table, asked.dimensions, days=tuple(cohorts.ages))


def _whole_days(interval: Interval, available: Interval) -> Interval:
    """*interval* widened to whole days, as far as they are available: a cohort is always that of the whole day."""
    end = bucket_start(interval.end, "day")
    return Interval(bucket_start(interval.start, "day"), end if end == interval.end else end + _DAY) & available


def _moved(days: Interval, age: int, known_until: datetime) -> Interval | None:
    """The activity days at *age* that are complete; None when there is none."""
    start, end = days.start + age * _DAY, min(days.end + age * _DAY, known_until)
    return Interval(start, end) if start < end else None


def _values(part: MetricPlan, table: pa.Table, carried: Sequence[str]) -> Values:
    """What the metric says of each day and group."""
    field = METRICS[part.metric].sorts_by
    columns = [table[name].to_pylist() for name in (TIMESTAMP, field, *carried)]
    found: Values = {}
    for day, value, *group in zip(*columns, strict=True):
        if value is None or group[-1] is None:
            raise ServiceError(200, f"a row of {part.metric} without {field} or {GAME_ID}")
        found[day, tuple(group)] = value
    return found


def _pooled(
    installs: Values, carried: Sequence[str], dimensions: Sequence[str], studios: Mapping[str, str | None]
) -> Iterator[tuple[datetime, dict[Group, Pool]]]:
    """For each install day, ascending, the games' groups under the group they are shown in."""
    days: dict[datetime, dict[Group, Pool]] = {}
    for (day, group), number in installs.items():
        if number > 0:
            values = {**dict(zip(carried, group, strict=True)), STUDIO_ID: studios.get(group[-1] or "")}
            shown = tuple(values[name] for name in dimensions)
            days.setdefault(day, {}).setdefault(shown, {})[group] = round(number)
    yield from sorted(days.items())


def _shares_of(
    values: Values, day: datetime, age: int, known_until: datetime, lost: Sequence[Interval]
) -> Callable[[Group], float] | None:
    """Which share of each group installed on *day* came back; None where that is not known, or not yet.

    A group the service does not mention did not come back (Metrics, Result shapes 5).
    """
    active = day + age * _DAY
    if active + _DAY > known_until or any(active in interval for interval in lost):
        return None
    return lambda group: values.get((active, group), 0.0)


def _returned(pool: Pool, share: Callable[[Group], float] | None) -> dict[str, Any]:
    """The numbers of one row."""
    installs = sum(pool.values())
    if share is None:
        return {"installs": installs}
    returned = sum(round(share(group) * number) for group, number in pool.items())
    return {"retention": returned / installs, "installs": installs, "returned": returned}


def _schema(dimensions: Sequence[str]) -> pa.Schema:
    return pa.schema(
        [
            (TIMESTAMP, TIMESTAMP_TYPE),
            ("age", pa.int64()),
            *((name, pa.string()) for name in dimensions),
            ("retention", pa.float64()),
            ("installs", pa.int64()),
            ("returned", pa.int64()),
        ]
    )
