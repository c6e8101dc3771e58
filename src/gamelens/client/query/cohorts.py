"""Retention by install day, or by weeks and months of install days, computed from retention by activity day.

The service gives, for each day T, the share of the players installed N days before who came back (Wire 4.12,
Retention). An install day D at age N is therefore read on T = D + N: one series for each age, over the days moved by N,
instead of a request for each install day. The number of installs is in new_users; the product of both is the number who
came back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import METRICS
from gamelens.client.query.arguments import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.query.planner import FanOut, MetricPlan, plan_requests
from gamelens.client.tables.table_differences import FieldChange, field_changes, rows_changed
from gamelens.client.tables.table_operations import TIMESTAMP, TIMESTAMP_TYPE, from_rows
from gamelens.client.tables.time_ranges import ResolvedRange
from gamelens.errors import ServiceError
from gamelens.receipts import Gap
from gamelens.wire.intervals import Granularity, Interval, bucket_start

CohortKey = tuple[str | None, ...]
"""Values of the requested dimensions, in their order. The last is the game."""

_DAY: Final = timedelta(days=1)
AGE: Final = "age"
BY_ACTIVITY: Final = "retention_retro"
"""The metric of the service, which has no row of a group in which nobody came back."""


class CohortSubquery(msgspec.Struct, frozen=True):
    """The part of a query that asks for retention, of players by install day.

    Attributes:
        spec: its content, with the ages.
    """

    spec: QuerySpec

    @property
    def sent(self) -> QuerySpec:
        """The query for its installs: by game, since there is a share for each game."""
        carried = (*(name for name in self.spec.dimensions if name not in (GAME_ID, STUDIO_ID)), GAME_ID)
        return self.spec.with_(metrics=("new_users",), by=carried, every="day", ages=())

    def listed_interval(self, times: ResolvedRange) -> Interval:
        """Return the days from the first install to the last activity, whose values a fan-out covers."""
        days, active_days = _install_days(times), _activity_days(self.spec.ages, times).values()
        return Interval(days.start, max([days.end, *(active.end for active in active_days)]))

    def plans(
        self, sent: QuerySpec, times: ResolvedRange, values: FanOut, unknown: Collection[str], max_days: int | None
    ) -> list[MetricPlan]:
        """Return the plan of the installs, then one for each age that has a complete activity day.

        Dimensions that only the service knows, *unknown* to the catalog, are refused: it says which ones players have.
        """
        queries = [(sent, _install_days(times))]
        for age, active in _activity_days(self.spec.ages, times).items():
            queries.append((sent.with_(metrics=(BY_ACTIVITY,), since_days_ago=age), active))
        return [plan_requests(query, days, max_days=max_days, values=values)[0] for query, days in queries]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell the rows of one bucket apart."""
        return (AGE, *self.spec.dimensions)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns beside timestamp and dimensions."""
        return (AGE, "retention", "installs", "returned")

    def starts_in(self, gap: Gap, metric: str, covered: Interval) -> Iterator[datetime]:
        """Yield the starts of the buckets of install days that *gap* of an earlier frame leaves out.

        *covered* is the interval of the frame. Any gap is one of *metric*, which is retention.
        """
        later, every = (gap.scope or {}).get("since_days_ago", 0) * _DAY, self.spec.every
        for bucket in gap.times.buckets("day") if gap.times else ():
            yield bucket_start(covered.start, "day") if every == "all" else bucket_start(bucket.start - later, every)

    def changes(
        self, metric: str, old: pa.Table, new: pa.Table, grown: Collection[int]
    ) -> tuple[int, list[FieldChange]]:
        """Return how many rows of a bucket differ, and the totals of each field that does.

        A row whose day had not come is not compared, nor one of the ages *grown*, which counts more install days now.
        """
        old, new = (rows.filter(pc.invert(pc.is_in(rows[AGE], pa.array(grown, pa.int64())))) for rows in (old, new))
        new = _without_new_days(old, new, self.keys)
        if not (changed := rows_changed(old, new, self.keys)):
            return 0, []
        changes = field_changes(metric, old, new, self.keys, adds_up=False)
        columns = {change: [TIMESTAMP, *self.keys, change.field] for change in changes}
        return changed, [
            change for change, names in columns.items() if rows_changed(old.select(names), new.select(names), self.keys)
        ]


def retention_table(
    spec: QuerySpec,
    sent: QuerySpec,
    built: Sequence[pa.Table],
    times: ResolvedRange,
    missing: Mapping[int | None, Sequence[Interval]],
    studio_of_game: Mapping[str, str | None],
) -> pa.Table:
    """Return one row for each install day, week, month or whole period, each age and each value with installs.

    Buckets whose installs are only partly known are left out. The share and the number who came back are null where
    they are missing, or have not come for any install day of the bucket. The whole period counts the install days that
    are old enough, and is null without any.

    Args:
        spec: the query.
        sent: the query for its installs.
        built: the table of each of its `plans`.
        times: its time range.
        missing: intervals whose requests failed, by age; the key None has the intervals of installs.
        studio_of_game: studio ids by game id, where the rows show the studio.
    """
    installs, *by_age = [
        _daily_values(name, rows, sent.dimensions)
        for name, rows in zip(["new_users", *[BY_ACTIVITY] * (len(built) - 1)], built, strict=True)
    ]
    shares = dict(zip(_activity_days(spec.ages, times), by_age, strict=True))
    # installs by bucket and shown group, each by day and requested group
    buckets: dict[datetime, dict[CohortKey, dict[tuple[datetime, CohortKey], int]]] = {}
    unknown = buckets_of(missing[None], spec.every, times)
    for (day, group), number in installs.items():
        start = start_of(day, spec.every, times)
        if number > 0 and start not in unknown:
            values = dict(zip(sent.dimensions, group, strict=True)) | {STUDIO_ID: studio_of_game.get(group[-1] or "")}
            shown = tuple(values[name] for name in spec.dimensions)
            buckets.setdefault(start, {}).setdefault(shown, {})[day, group] = round(number)
    rows = []
    for start, pools in sorted(buckets.items()):
        for age in spec.ages:
            share, lost, later = shares.get(age, {}), missing[age], age * _DAY
            for group, pool in pools.items():
                numbers: dict[str, Any] = {"installs": sum(pool.values())}
                old = {key: n for key, n in pool.items() if _has_come(key[0], age, times)}
                is_enough = bool(old) if spec.every == "all" else len(old) == len(pool)
                if is_enough and not any(day + later in interval for interval in lost for day, _ in old):
                    # a group without a row has the share 0 (Wire 4.12, Retention)
                    back = (round(share.get((day + later, key), 0.0) * n) for (day, key), n in old.items())
                    numbers |= {"installs": sum(old.values()), "returned": sum(back)}
                    numbers["retention"] = numbers["returned"] / numbers["installs"]
                rows.append({TIMESTAMP: start, "age": age, **dict(zip(spec.dimensions, group, strict=True)), **numbers})
    columns = [
        (TIMESTAMP, TIMESTAMP_TYPE),
        ("age", pa.int64()),
        *((name, pa.string()) for name in spec.dimensions),
        ("retention", pa.float64()),
        ("installs", pa.int64()),
        ("returned", pa.int64()),
    ]
    return from_rows(rows, pa.schema(columns))


def left_out(ages: Sequence[int], every: Granularity, times: ResolvedRange) -> Iterator[str]:
    """Yield a warning for each age that has no row with a number, or leaves out install days, by week, month or "all".

    The whole period counts the days that have reached the age; a week or month is NA until all its days have.
    """
    days = [] if every == "day" else _days(_install_days(times))
    for age in ages:
        young = [day for day in days if not _has_come(day, age, times)]
        several = len(young) > 1
        span = f"{young[0]:%Y-%m-%d}" + (f" to {young[-1]:%Y-%m-%d}" if several else "") if young else ""
        if every == "all" and 0 < len(young) < len(days):
            why = f"day {age} after {'them' if several else 'it'} is not over yet"
            yield f"D{age} retention leaves out {len(young)} of {len(days)} install days, {span}: {why}"
        elif young and {start_of(day, every, times) for day in days} == {start_of(day, every, times) for day in young}:
            rows = "" if every == "all" else f" in each {every}"
            yield f"D{age} retention is NA{rows}: day {age} after {span} is not over yet"


def install_days_behind(spec: QuerySpec, times: ResolvedRange) -> Interval | None:
    """Return the available install days behind the rows of `retention_retro` of *spec*, if it has no installs itself.

    None without such rows, without such days, or if *spec* keeps only the largest rows.
    """
    if BY_ACTIVITY not in spec.metrics or "new_users" in spec.metrics or spec.since_days_ago is None or spec.top:
        return None
    days, later = _install_days(times), spec.since_days_ago * _DAY
    start, end = max(days.start - later, times.available.start), min(days.end - later, times.available.end)
    return Interval(start, end) if start < end else None


def groups_left_out(
    spec: QuerySpec, rows: pa.Table, installs: pa.Table | None, missing: Collection[datetime]
) -> Iterator[str]:
    """Yield a warning if groups with *installs* have no *rows* of `retention_retro`. *missing* days are left aside.

    Without *installs* it has no number.
    """
    advice = f"lens.retention({spec.since_days_ago}, by={[*spec.by]}, ...) has them, with 0"
    if installs is None:
        yield f"{BY_ACTIVITY} has no row where nobody came back, and the number of such groups is not known: {advice}"
        return
    later, names = (spec.since_days_ago or 0) * _DAY, [name for name in spec.dimensions if name in rows.column_names]

    def groups_of(table: pa.Table, moved: timedelta = timedelta()) -> set[tuple[Any, ...]]:
        """Return day of activity and group of each row."""
        columns = [table[name].to_pylist() for name in (TIMESTAMP, *names)]
        return {(day + moved, *group) for day, *group in zip(*columns, strict=True) if day + moved not in missing}

    back, there = groups_of(rows), groups_of(installs.filter(pc.greater(installs["new_users"], 0)), later)
    if lost := there - back:
        groups = {key[1:] for key in there}
        never = groups - {key[1:] for key in back}
        yield (
            f"{BY_ACTIVITY} has no row where nobody came back: {len(never):,} of {len(groups):,} groups have none at "
            f"all, and {len(lost):,} of {len(there):,} by day, so that the mean of the rows is too high: {advice}"
        )


def _has_come(day: datetime, age: int, times: ResolvedRange) -> bool:
    """Return whether the players of an install *day* have reached *age*: that day is over."""
    return day + (age + 1) * _DAY <= bucket_start(times.available.end, "day")


def buckets_of(spans: Collection[Interval], every: Granularity, times: ResolvedRange) -> set[datetime]:
    """Return the starts of the buckets that have a day of *spans*, install days of *times*."""
    return {start_of(day, every, times) for span in spans for day in _days(span)}


def start_of(day: datetime, every: Granularity, times: ResolvedRange) -> datetime:
    """Return the start of the bucket of an install *day* of *times*."""
    return _install_days(times).start if every == "all" else bucket_start(day, every)


def _days(span: Interval) -> list[datetime]:
    return [bucket.start for bucket in span.buckets("day")]


def _install_days(times: ResolvedRange) -> Interval:
    """Return the covered interval widened to whole available days, as cohorts are."""
    end = bucket_start(times.covered.end, "day")
    end = end if end == times.covered.end else end + _DAY
    return Interval(bucket_start(times.covered.start, "day"), end) & times.available


def _activity_days(ages: Sequence[int], times: ResolvedRange) -> dict[int, Interval]:
    """Return the complete activity days of each age that has any."""
    days, known_until = _install_days(times), bucket_start(times.available.end, "day")
    moved = {age: (days.start + age * _DAY, min(days.end + age * _DAY, known_until)) for age in ages}
    return {age: Interval(start, end) for age, (start, end) in moved.items() if start < end}


def _daily_values(metric: str, rows: pa.Table, dimensions: Sequence[str]) -> dict[tuple[datetime, CohortKey], float]:
    """Return the value of *metric* by day and group.

    Raises:
        ServiceError: a row has no value or no game.
    """
    field = METRICS[metric].sorts_by
    columns = [rows[name].to_pylist() for name in (TIMESTAMP, field, *dimensions)]
    values = {}
    for day, value, *group in zip(*columns, strict=True):
        if value is None or group[-1] is None:
            raise ServiceError(200, f"a row of {metric} without {field} or {GAME_ID}")
        values[day, tuple(group)] = value
    return values


def _without_new_days(old: pa.Table, new: pa.Table, dimensions: Sequence[str]) -> pa.Table:
    """Return *new*, rows of retention, with null where *old* has a row whose day had not come."""
    unknown = {tuple(row[name] for name in dimensions) for row in old.to_pylist() if row["returned"] is None}
    mask = pa.array([tuple(row[name] for name in dimensions) in unknown for row in new.to_pylist()], pa.bool_())
    for name in ("retention", "returned"):
        nulled = pc.if_else(mask, pa.scalar(None, new[name].type), new[name])
        new = new.set_column(new.schema.get_field_index(name), name, nulled)
    return new
