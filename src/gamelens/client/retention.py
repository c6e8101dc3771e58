"""Retention by install day, from retention_retro by activity day (Metrics, Result shapes 5).

The service says of each day T which share of those installed N days before came back. An install day D at age N is
therefore read on T = D + N: one series for each age over the days moved by N, never a request for each install day.
How many installed comes from new_users, and the two together give how many came back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from gamelens.catalog import METRICS
from gamelens.client.asking import Inquiry
from gamelens.client.frames import ColumnKind
from gamelens.client.loop import together
from gamelens.client.planning import GAME_ID, Part, Question, plan
from gamelens.errors import BadQuery, ServiceError
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Interval, bucket_start
from gamelens.wire.results import Row, Rows

if TYPE_CHECKING:
    from pandas import DataFrame

Group = tuple[str | None, ...]  # values of the dimensions, in their order
Values = dict[tuple[datetime, Group], float]
Pool = dict[Group, int]  # installs of the groups that are shown as one

_DAY: Final = timedelta(days=1)
_DIMENSION: Final[ColumnKind] = "dimension"


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
            if not isinstance(age, int) or isinstance(age, bool) or age < 1:
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


async def retention(inquiry: Inquiry, cohorts: Cohorts, *, max_days: int | None) -> DataFrame:
    """The frame of `Client.retention`."""
    span = await inquiry.settle()
    days = _whole_days(span.kept, span.available)
    known_until = bucket_start(span.available.end, "day")
    asked = cohorts.question("retention")
    carried = (*(name for name in asked.dimensions if name != GAME_ID), GAME_ID)
    series = {
        age: plan(cohorts.question("retention_retro", age=age), active, max_days=max_days)[0]
        for age in cohorts.ages
        if (active := _moved(days, age, known_until))
    }
    (starts,) = plan(cohorts.question("new_users", by=carried), days, max_days=max_days)
    installs, *returns = await together(_values(inquiry, part, carried) for part in (starts, *series.values()))
    shares = {age: _by_install_day(values, age) for age, values in zip(series, returns, strict=True)}
    places = [carried.index(name) for name in asked.dimensions]
    buckets = [
        Rows(
            day,
            [
                _row(day, age, asked.dimensions, group, pool, shares, known_until)
                for age in cohorts.ages
                for group, pool in pools.items()
            ],
        )
        for day, pools in _pooled(installs, places)
    ]
    columns: dict[str, ColumnKind] = {"age": "count", **dict.fromkeys(asked.dimensions, _DIMENSION)}
    columns |= {"retention": "number", "installs": "count", "returned": "count"}
    return await inquiry.frame(asked, span, buckets, columns, days=list(cohorts.ages))


def _whole_days(interval: Interval, available: Interval) -> Interval:
    """*interval* widened to whole days, as far as they are available: a cohort is always that of the whole day."""
    end = bucket_start(interval.end, "day")
    return Interval(bucket_start(interval.start, "day"), end if end == interval.end else end + _DAY) & available


def _moved(days: Interval, age: int, known_until: datetime) -> Interval | None:
    """The activity days at *age* that are complete; None when there is none."""
    start, end = days.start + age * _DAY, min(days.end + age * _DAY, known_until)
    return Interval(start, end) if start < end else None


async def _values(inquiry: Inquiry, part: Part, carried: Sequence[str]) -> Values:
    """What the metric says of each day and group."""
    field = METRICS[part.metric].sorts_by
    found: Values = {}
    for answer in await inquiry.fetch(part):
        for bucket in answer:
            for row in bucket.rows:
                value = row.get(field)
                if not isinstance(value, int | float) or GAME_ID not in row:
                    raise ServiceError(200, f"a row of {part.metric} without {field} or {GAME_ID}")
                found[bucket.timestamp, tuple(row.get(name) for name in carried)] = value
    return found


def _by_install_day(values: Values, age: int) -> Values:
    return {(day - age * _DAY, group): value for (day, group), value in values.items()}


def _pooled(installs: Values, places: Sequence[int]) -> Iterator[tuple[datetime, dict[Group, Pool]]]:
    """For each install day, ascending, the games' groups under the group they are shown in."""
    days: dict[datetime, dict[Group, Pool]] = {}
    for (day, group), number in installs.items():
        if number > 0:
            shown = tuple(group[place] for place in places)
            days.setdefault(day, {}).setdefault(shown, {})[group] = round(number)
    yield from sorted(days.items())


def _row(
    day: datetime,
    age: int,
    dimensions: Sequence[str],
    group: Group,
    pool: Pool,
    shares: Mapping[int, Values],
    known_until: datetime,
) -> Row:
    """One row of the frame; a group the service does not mention did not come back (Metrics, Result shapes 5)."""
    row: Row = {"age": age, **dict(zip(dimensions, group, strict=True)), "installs": sum(pool.values())}
    if day + (age + 1) * _DAY > known_until:
        return row
    returned = sum(round(shares[age].get((day, member), 0) * number) for member, number in pool.items())
    return {**row, "returned": returned, "retention": returned / row["installs"]}
