"""Retention by install day, from retention_retro by activity day (Metrics, Result shapes 5).

The service says of each day T which share of those installed N days before came back. An install day D at age N is
therefore read on T = D + N: one series for each age over the days moved by N, never a request for each install day.
How many installed comes from new_users, and the two together give how many came back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.asking import Answered, Inquiry, pass_through
from gamelens.client.planning import GAME_ID, STUDIO_ID, Part, Question, is_whole, plan
from gamelens.client.tables import STAMP, TIMESTAMP, from_rows
from gamelens.errors import BadQuery, ServiceError
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Interval, bucket_start

Group = tuple[str | None, ...]  # values of the dimensions, in their order
Values = dict[tuple[datetime, Group], float]
Pool = dict[Group, int]  # installs of the groups that are shown as one

_DAY: Final = timedelta(days=1)


class Cohorts(msgspec.Struct, frozen=True, kw_only=True):
    """Who is followed, and to which ages.

    Raises:
        BadQuery: no age, one below 1, or one twice.
    """

    ages: tuple[int, ...]
    by: tuple[str, ...] = ()
    where: Filter | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.ages or len(set(self.ages)) < len(self.ages):
            raise BadQuery("days", list(self.ages), "must name at least one age, and none twice")
        for age in self.ages:
            if not is_whole(age) or age < 1:
                raise BadQuery("days", age, "must be whole numbers of days after install, 1 or more")

    def question(self, metric: str, *, by: tuple[str, ...] | None = None, age: int | None = None) -> Question:
        """What is asked of *metric* about these cohorts."""
        return Question(
            metrics=(metric,),
            by=self.by if by is None else by,
            where=self.where,
            games=self.games,
            studios=self.studios,
            since_days_ago=age,
        )


async def retention(inquiry: Inquiry, cohorts: Cohorts, *, max_days: int | None) -> Answered:
    """The answer of `Client.retention`."""
    await inquiry.deadline.run(pass_through(inquiry, cohorts.question("new_users")))
    span = await inquiry.settle()
    days = _whole_days(span.kept, span.available)
    known_until = bucket_start(span.available.end, "day")
    active = {age: moved for age in cohorts.ages if (moved := _moved(days, age, known_until))}
    asked = cohorts.question("retention")
    carried = (*(name for name in asked.dimensions if name not in (GAME_ID, STUDIO_ID)), GAME_ID)
    by_game = cohorts.question("new_users", by=carried)
    reach = Interval(days.start, max([days.end, *(moved.end for moved in active.values())]))
    lists = await inquiry.lists(by_game, reach)
    (starts,) = plan(by_game, days, max_days=max_days, lists=lists)
    returns = [
        plan(cohorts.question("retention_retro", by=carried, age=age), moved, max_days=max_days, lists=lists)[0]
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
    return await inquiry.answered(asked, span, table, asked.dimensions, days=list(cohorts.ages))


def _whole_days(interval: Interval, available: Interval) -> Interval:
    """*interval* widened to whole days, as far as they are available: a cohort is always that of the whole day."""
    end = bucket_start(interval.end, "day")
    return Interval(bucket_start(interval.start, "day"), end if end == interval.end else end + _DAY) & available


def _moved(days: Interval, age: int, known_until: datetime) -> Interval | None:
    """The activity days at *age* that are complete; None when there is none."""
    start, end = days.start + age * _DAY, min(days.end + age * _DAY, known_until)
    return Interval(start, end) if start < end else None


def _values(part: Part, table: pa.Table, carried: Sequence[str]) -> Values:
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
            (TIMESTAMP, STAMP),
            ("age", pa.int64()),
            *((name, pa.string()) for name in dimensions),
            ("retention", pa.float64()),
            ("installs", pa.int64()),
            ("returned", pa.int64()),
        ]
    )
