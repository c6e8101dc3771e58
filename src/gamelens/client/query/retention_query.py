"""Retention by install day, computed from retention by activity day.

The service gives, for each day T, the share of the players installed N days before who came back (Wire 4.12,
Retention). An install day D at age N is therefore read on T = D + N: one series for each age, over the days moved by N,
instead of a request for each install day. The number of installs is in new_users; the product of both is the number who
came back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.plans.metric_plan import FanOutValues, MetricPlan
from gamelens.client.plans.planner import plan_requests
from gamelens.client.plans.query_spec import GAME_ID, STUDIO_ID, QuerySpec, RetentionSpec
from gamelens.client.query.query_run import QueryRun
from gamelens.client.tables.table_operations import from_rows
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE
from gamelens.client.tables.time_ranges import ResolvedRange
from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval, bucket_start

Group = tuple[str | None, ...]
"""Values of the carried dimensions, in their order."""
DailyValues = dict[tuple[datetime, Group], float]
"""Value of a metric by day and group."""
Pool = dict[Group, int]
"""Installs of the groups that are shown as one row."""

_DAY: Final = timedelta(days=1)


class RetentionSteps:
    """The steps of a query for retention: one plan for installs and one for each age."""

    def __init__(self, spec: RetentionSpec, *, max_days: int | None) -> None:
        self.ages = spec.ages
        self.recorded = spec.metric_spec("retention")
        ids = (GAME_ID, STUDIO_ID)
        self._carried = (*(name for name in self.recorded.dimensions if name not in ids), GAME_ID)
        self.sent = spec.metric_spec("new_users", by=self._carried)
        self._spec = spec
        self._max_days = max_days

    def fan_out_interval(self, times: ResolvedRange) -> Interval:
        """Return the days from the first install to the last activity."""
        days = _whole_days(times)
        return Interval(days.start, max([days.end, *(active.end for active in self._activity_days(times).values())]))

    def plan(self, times: ResolvedRange, values: FanOutValues, unknown: Collection[str]) -> list[MetricPlan]:
        """Return the plan of the installs, then one for each age that has a complete activity day.

        Dimensions that only the service knows are refused: the catalog says which ones players have.
        """
        queries = [(self.sent, _whole_days(times))]
        for age, active in self._activity_days(times).items():
            queries.append((self._spec.metric_spec("retention_retro", by=self._carried, age=age), active))
        return [self._metric_plan(query, interval, values) for query, interval in queries]

    def assemble(
        self, run: QueryRun, plans: Sequence[MetricPlan], tables: Sequence[pa.Table], times: ResolvedRange
    ) -> pa.Table:
        """Return one row for each install day, age and value with installs.

        Install days whose installs are only partly known are left out.
        """
        installs, *shares = [
            _daily_values(plan, table, self._carried) for plan, table in zip(plans, tables, strict=True)
        ]
        shares_by_age = dict(zip(self._activity_days(times), shares, strict=True))
        known_until = bucket_start(times.available.end, "day")
        missing_days = run.missing_intervals(None)
        dimensions = self.recorded.dimensions
        rows = [
            {TIMESTAMP: day, "age": age, **dict(zip(dimensions, group, strict=True)), **_retention(pool, share_of)}
            for day, pools in self._pools(installs, run.studio_of_game)
            if not any(day in interval for interval in missing_days)
            for age in self.ages
            for share_of in [
                _share_lookup(shares_by_age.get(age, {}), day + age * _DAY, known_until, run.missing_intervals(age))
            ]
            for group, pool in pools.items()
        ]
        return from_rows(rows, _schema(dimensions))

    def columns(self, plans: Sequence[MetricPlan]) -> tuple[str, ...]:
        """Return the dimensions of the rows."""
        return self.recorded.dimensions

    def _metric_plan(self, query: QuerySpec, interval: Interval, values: FanOutValues) -> MetricPlan:
        return plan_requests(query, interval, max_days=self._max_days, values=values)[0]

    def _activity_days(self, times: ResolvedRange) -> dict[int, Interval]:
        """Return the complete activity days of each age that has any."""
        days, known_until = _whole_days(times), bucket_start(times.available.end, "day")
        moved = {age: (days.start + age * _DAY, min(days.end + age * _DAY, known_until)) for age in self.ages}
        return {age: Interval(start, end) for age, (start, end) in moved.items() if start < end}

    def _pools(
        self, installs: DailyValues, studio_of_game: Mapping[str, str | None]
    ) -> Iterator[tuple[datetime, dict[Group, Pool]]]:
        """Yield, for each install day, the groups of all games by the group they are shown in."""
        days: dict[datetime, dict[Group, Pool]] = {}
        for (day, group), number in installs.items():
            if number > 0:
                values = dict(zip(self._carried, group, strict=True)) | {STUDIO_ID: studio_of_game.get(group[-1] or "")}
                shown = tuple(values[name] for name in self.recorded.dimensions)
                days.setdefault(day, {}).setdefault(shown, {})[group] = round(number)
        yield from sorted(days.items())


def _whole_days(times: ResolvedRange) -> Interval:
    """Return the covered interval widened to whole available days, as cohorts are."""
    end = bucket_start(times.covered.end, "day")
    end = end if end == times.covered.end else end + _DAY
    return Interval(bucket_start(times.covered.start, "day"), end) & times.available


def _daily_values(plan: MetricPlan, table: pa.Table, carried: Sequence[str]) -> DailyValues:
    """Return the value of the metric by day and group.

    Raises:
        ServiceError: a row has no value or no game.
    """
    field = METRICS[plan.metric].sorts_by
    columns = [table[name].to_pylist() for name in (TIMESTAMP, field, *carried)]
    values: DailyValues = {}
    for day, value, *group in zip(*columns, strict=True):
        if value is None or group[-1] is None:
            raise ServiceError(200, f"a row of {plan.metric} without {field} or {GAME_ID}")
        values[day, tuple(group)] = value
    return values


def _share_lookup(
    shares: DailyValues, active_day: datetime, known_until: datetime, missing: Sequence[Interval]
) -> Callable[[Group], float] | None:
    """Return a function from a group to the share that was active on *active_day*.

    A group without a row has the share 0 (Wire 4.12, Retention). The result is None where the day is missing or has not
    come.
    """
    if active_day + _DAY > known_until or any(active_day in interval for interval in missing):
        return None
    return lambda group: shares.get((active_day, group), 0.0)


def _retention(pool: Pool, share_of: Callable[[Group], float] | None) -> dict[str, Any]:
    """Return the numbers of one row."""
    installs = sum(pool.values())
    if share_of is None:
        return {"installs": installs}
    returned = sum(round(share_of(group) * number) for group, number in pool.items())
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
