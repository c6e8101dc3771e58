"""Compiler from a metric query to one SQL statement over the smallest exact tables.

Names come from the catalog, and values are always bound as parameters. `metric_sql` says what a metric is in SQL,
`storage.atoms` what an atom is over the rows of each table, `table_sources` what else a table has, and `sql_builder`
writes statements; this module combines them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from gamelens.catalog import Metric
from gamelens.sandbox.engines.engine import SqlQuery
from gamelens.sandbox.metrics.filter_sql import FilterSql, column
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL, RETURNING_AFTER, Distinct, Sum
from gamelens.sandbox.metrics.sql_builder import Parameters, Select, named, nested, union_all, when, with_tables
from gamelens.sandbox.metrics.table_sources import (
    ACTIVE,
    EVENTS,
    INSTALLS,
    RETURNS,
    SHARED,
    SOURCES,
    Table,
)
from gamelens.sandbox.storage.atoms import ATOMS, Join, Read
from gamelens.wire.filters import Filter, dimensions_in
from gamelens.wire.intervals import Granularity, Interval, bucket_start
from gamelens.wire.queries import Group, MetricQuery

TABLES: Final = (RETURNS.name, *(source.name for source in SOURCES))
"""Names of all sources, smallest first.

Shared tables go with the sources that they complete.
"""

_FOREVER_DAYS: Final = 10**9
_RETENTION: Final = ("cohort", "returned")
_BUCKETS: Final = {
    "day": "CAST(day AS TIMESTAMP)",
    "week": "CAST(date_trunc('week', day) AS TIMESTAMP)",
    "month": "CAST(date_trunc('month', day) AS TIMESTAMP)",
}
_PERIODS: Final[tuple[Granularity, ...]] = ("day", "week", "month")


def compile_query(
    metric: Metric, query: MetricQuery, *, games: Sequence[str] | None, tables: Collection[str] = TABLES
) -> SqlQuery:
    """Compile *query* of *metric* over *games*.

    The rows have the columns `bucket`, the dimensions and the metric's parts, in the order of Wire 2.10, Row order.

    Args:
        metric: the catalog row of the metric.
        query: the query, already checked.
        games: ids of the games to read. An empty list reads none, None reads all in the tables (see `game_scope`).
        tables: names of the tables to choose from. Events can answer every query and are always allowed.
    """
    since = query.since_days_ago or 0
    metric_sql = RETURNING_AFTER if since and metric.name == "returning_users" else METRIC_SQL[metric.name]
    names = query.dimensions
    if query.split_by is not None and query.split_by != "game_id":
        names = (query.split_by, "game_id")
    builder = _QueryBuilder(query.interval, games, query.filter, names, tables)
    in_cells: Collection[str] = ()
    if metric.kinds == "retention":
        rows = builder.cohort_tables(since)
    else:
        rows, in_cells = builder.event_tables(metric_sql.atoms, query.granularity, since)
    by = ("bucket", *map(column, names))
    parts = {name: _part_sql(part, in_cells) for name, part in metric_sql.parts.items()}
    shown = ["returned"] if metric.kinds == "retention" else list(parts)
    every_group = Select(columns=named(*by) | parts, source="source", by=by)
    rows["grouped"] = Select(
        source=nested(every_group, "every_group"), where=(" OR ".join(f"{part} <> 0" for part in shown),)
    )
    rank = [f"{term} DESC NULLS LAST" for term in metric_sql.sort]
    rank += [f"{column(name)} ASC NULLS LAST" for name in names]
    source = "grouped"
    where: tuple[str, ...] = ()
    if isinstance(query.query, Group):
        place = f"row_number() OVER (PARTITION BY bucket ORDER BY {', '.join(rank)})"
        source = nested(Select(columns={"*": "*", "place": place}, source="grouped"), "ranked")
        where = (f"place <= {builder.parameters.bind(query.query.limit, 'limit')}",)
    return builder.build(rows, Select(columns=named(*by, *parts), source=source, where=where, order=("bucket", *rank)))


def compile_dimension_values(
    dimension: str, interval: Interval, *, games: Sequence[str] | None, limit: int, tables: Collection[str] = TABLES
) -> SqlQuery:
    """Compile the list of the first *limit* values of *dimension* in *interval*.

    The rows have one column, `value`, ascending and without null (Wire 2.11, Lists).
    """
    builder = _QueryBuilder(interval, games, None, (dimension,), tables)
    rows, _ = builder.event_tables(("events",), "all", 0)
    name = column(dimension)
    values = Select(
        columns={"value": name},
        source="source",
        where=(f"{name} IS NOT NULL",),
        is_distinct=True,
        order=("value",),
        limit=limit,
    )
    return builder.build(rows, values)


class Branch(msgspec.Struct, frozen=True):
    """One SELECT of a statement: rows of one table in one interval.

    Attributes:
        table: the table.
        interval: the interval.
        atoms: how it has each atom that it adds, by atom.
        values: how it has each dimension of the query, by dimension.
    """

    table: Table
    interval: Interval
    atoms: dict[str, Read]
    values: dict[str, Read] = {}

    @property
    def joins(self) -> frozenset[Join]:
        """What the table is joined with."""
        return frozenset(join for read in (*self.atoms.values(), *self.values.values()) for join in read.joins)

    @property
    def counts_players(self) -> bool:
        """Whether it adds keys of players."""
        return bool(self.table.player) and any(ATOMS[name].is_player for name in self.atoms)

    @property
    def condition(self) -> str:
        """The condition of the rows that add to its atoms; empty if any row may."""
        conditions = {read.where for read in self.atoms.values()}
        return conditions.pop() if len(conditions) == 1 else ""


class Plan(msgspec.Struct, frozen=True):
    """The branches that together answer a query."""

    branches: tuple[Branch, ...]

    @property
    def by_number(self) -> bool:
        """Whether players are numbers: all branches must count the same keys."""
        return any(it.counts_players and it.table.numbers_players(it.joins) for it in self.branches)

    @property
    def in_cells(self) -> frozenset[str]:
        """The atoms that some branch counts by cells."""
        return frozenset(name for branch in self.branches for name, read in branch.atoms.items() if read.cells)


def plan_branches(
    atoms: Iterable[str],
    dimensions: Collection[str],
    interval: Interval,
    granularity: Granularity,
    tables: Collection[str] = TABLES,
) -> Plan:
    """Return the smallest tables that have *atoms* and *dimensions* exactly, each with its interval.

    Atoms that need events anyway take those of daily tables with them. Edges of *interval* that are not whole days
    are read from events, whole days outside whole weeks or months from `active`.
    """
    period, whole = _period_of(interval, granularity), _whole_buckets(interval, "day")
    usable = [it for it in SOURCES if it.name in tables and it.has(dimensions) and (whole or not it.is_by_day)]
    chosen = {atom: next((it for it in usable if atom in it.reads[period]), EVENTS) for atom in atoms}
    if EVENTS in chosen.values():
        chosen = {atom: EVENTS if table.is_by_day else table for atom, table in chosen.items()}
    rest = ACTIVE if ACTIVE.name in tables else EVENTS
    places: dict[tuple[str, Interval], Branch] = {}

    def add(table: Table, atom: str, *intervals: Interval) -> None:
        for inside in intervals:
            if (place := (table.name, inside)) not in places:
                places[place] = Branch(table, inside, {}, {name: table.value(name) for name in dimensions})
            places[place].atoms[atom] = table.reads[period][atom]

    for table in SOURCES:
        for atom in (atom for atom, its_table in chosen.items() if its_table is table):
            if not table.is_by_day or whole is None:
                add(table, atom, interval)
                continue
            read = table.reads[period][atom]
            inside = _whole_buckets(whole, read.period) if read.period in ("week", "month") else whole
            if inside:
                add(table, atom, inside)
                if read.cells:
                    add(SHARED[read.shared], atom, inside)
            add(rest, atom, *(_edges(whole, inside) if inside else [whole]))
            add(EVENTS, atom, *_edges(interval, whole))
    return Plan(tuple(places.values()))


def _period_of(interval: Interval, granularity: Granularity) -> Granularity:
    """Return the bucket in which the query counts.

    It is a finer one than that of the query if the interval is one such bucket. That needs no other table than the
    finer bucket does.
    """
    finer = _PERIODS[: _PERIODS.index(granularity)] if granularity in _PERIODS else _PERIODS
    for period in finer:
        only = next(interval.buckets(period), None)
        if only == interval:
            return period if granularity == "all" or period == "day" else granularity
    return granularity


class _QueryBuilder:
    """A statement under construction: collects the bound parameters and the intervals to read.

    Args:
        interval: time range of the query.
        games: ids of the games to read; None reads all.
        where: filter over dimensions.
        names: dimensions to group by.
        tables: names of the tables to choose from.
    """

    def __init__(
        self,
        interval: Interval,
        games: Sequence[str] | None,
        where: Filter | None,
        names: Sequence[str],
        tables: Collection[str],
    ) -> None:
        self._interval = interval
        self._where = where
        self._names = tuple(dict.fromkeys(map(column, names)))
        self._dimensions = frozenset(names) | frozenset(dimensions_in(where) if where is not None else ())
        self._tables = tables
        self._reads: dict[str, tuple[Interval, ...]] = {}
        self._games = games
        self.parameters = Parameters()
        self._filters = FilterSql(where, self.parameters)

    def build(self, tables: dict[str, str | Select], select: Select) -> SqlQuery:
        """Return the statement *select* over *tables*, its parameters and its reads."""
        return SqlQuery(with_tables(tables, select), self.parameters.values, self._reads)

    def event_tables(
        self, atoms: Sequence[str], granularity: Granularity, since: int
    ) -> tuple[dict[str, str | Select], frozenset[str]]:
        """Return the table `source`, rows of the interval with their bucket and *atoms*, and those counted by cells."""
        if since:
            self.parameters.bind(min(since, _FOREVER_DAYS), "since")
        plan = plan_branches(atoms, self._dimensions, self._interval, granularity, self._tables)
        bucket = _BUCKETS.get(granularity)
        if bucket is None:
            bucket = f"CAST({self.parameters.bind(_naive(self._interval.start), 'start')} AS TIMESTAMP)"
        rows = union_all(self._select(branch, plan, bucket, atoms) for branch in plan.branches)
        return {"source": rows}, plan.in_cells

    def cohort_tables(self, since: int) -> dict[str, str | Select]:
        """Return the table `source`: cohorts of *since* days earlier and their returns.

        The cohort of a day is the players installed *since* days before it; the bucket is the day of return
        (Wire 4.12, Retention).
        """
        days = list(self._interval.buckets("day"))
        try:
            installed = Interval(days[0].start - timedelta(days=since), days[-1].end - timedelta(days=since))
        except OverflowError:  # the cohort days lie before the first year of the calendar
            since, installed = 0, Interval(days[0].start, days[0].start)
        returns = f"CAST(day + CAST({self.parameters.bind(since, 'since')} AS INTEGER) AS TIMESTAMP)"
        whole = _whole_buckets(self._interval, "day")
        if since and whole == self._interval and RETURNS.name in self._tables and RETURNS.has(self._dimensions):
            cohort, returned = self._branch(RETURNS, installed, "cohort"), self._branch(RETURNS, whole, "returned")
            plan = Plan((cohort, returned))
            rows = (
                self._select(branch, plan, bucket, _RETENTION)
                for branch, bucket in ((cohort, returns), (returned, _BUCKETS["day"]))
            )
            return {"source": union_all(rows)}
        cohort = self._branch(INSTALLS, installed, "player_key")
        whole = whole if ACTIVE.name in self._tables else None
        edges = _edges(self._interval, whole) if whole else [self._interval]
        active = [Branch(EVENTS, edge, {"player_key": EVENTS.reads["all"]["player_key"]}) for edge in edges]
        active += [Branch(ACTIVE, whole, {"player_key": ACTIVE.reads["all"]["player_key"]})] if whole else []
        joined = "present JOIN cohort ON cohort.player_key = present.player_key AND cohort.bucket = present.moment"
        back = "returned ON returned.returner = cohort.player_key AND returned.returned_on = cohort.bucket"
        return {
            "cohort": self._select(cohort, Plan((cohort,)), returns, ("player_key",)),
            "present": union_all(map(self._players_of_days, active)),
            "returned": Select(
                columns={"returner": "cohort.player_key", "returned_on": "cohort.bucket"},
                source=joined,
                is_distinct=True,
            ),
            "source": Select(
                columns={
                    **{name: f"cohort.{name}" for name in ("bucket", *self._names)},
                    "cohort": "1",
                    "returned": when("returned_on IS NULL", "0", "1"),
                },
                source=f"cohort LEFT JOIN {back}",
            ),
        }

    def _branch(self, table: Table, interval: Interval, atom: str) -> Branch:
        """Return a branch with one atom and all dimensions of the query."""
        values = {name: table.value(name) for name in self._dimensions}
        return Branch(table, interval, {atom: table.reads["all"][atom]}, values)

    def _players_of_days(self, branch: Branch) -> Select:
        """Return the numbers of the players with an event, once or more per day."""
        rows = branch.table.rows(branch.joins, by_number=True)
        self._add_reads(branch, rows.tables)
        columns = {"player_key": rows.player, "moment": _BUCKETS["day"]}
        return Select(columns=columns, source=rows.sql, where=self._inside(branch))

    def _select(self, branch: Branch, plan: Plan, bucket: str, atoms: Sequence[str]) -> Select:
        """Return the SELECT of *branch*, with null for the atoms of other branches."""
        rows = branch.table.rows(branch.joins, by_number=plan.by_number and branch.counts_players)
        self._add_reads(branch, rows.tables)
        columns = {"bucket": bucket, **{name: branch.values[name].sql for name in self._names}}
        for atom in atoms:
            read = branch.atoms.get(atom, Read())
            columns[atom] = read.sql.format(player=rows.player)
            if atom in plan.in_cells:
                columns[_cells(atom)] = read.cells or "NULL"
        conditions = self._inside(branch)
        if self._games is not None:
            conditions.append(self._filters.one_of("game_id", self._games))
        if branch.condition:
            conditions.append(branch.condition)
        if self._where is not None:
            conditions += self._filters.conditions(self._where, {name: it.sql for name, it in branch.values.items()})
        return Select(columns=columns, source=rows.sql, where=conditions)

    def _inside(self, branch: Branch) -> list[str]:
        """Return the conditions that a row lies in the interval of *branch*."""
        first, last = (self.parameters.bind(_naive(edge)) for edge in (branch.interval.start, branch.interval.end))
        if not branch.table.is_by_day:
            return [f"ts >= {first}", f"ts < {last}"]
        return [f"day >= CAST({first} AS DATE)", f"day < CAST({last} AS DATE)"]

    def _add_reads(self, branch: Branch, tables: Collection[str]) -> None:
        """Add the files of *tables* to the reads.

        Of the table of *branch* these are the files of its interval, of a joined table all.
        """
        for table in sorted(tables):
            inside = (branch.interval,) if table == branch.table.name else ()
            self._reads[table] = (*self._reads.get(table, ()), *inside)


def _part_sql(part: Sum | Distinct, in_cells: Collection[str]) -> str:
    """Return the SQL of *part* over the table `source`."""
    if isinstance(part, Sum):
        return f"COALESCE(SUM({part.atom}), 0)"
    distinct = f"COUNT(DISTINCT {part.atom})"
    return f"{distinct} + COALESCE(SUM({_cells(part.atom)}), 0)" if part.atom in in_cells else distinct


def _cells(atom: str) -> str:
    """Return the column of the memberships of *atom* in cells."""
    return f"{atom}_cells"


def _whole_buckets(interval: Interval, period: Granularity) -> Interval | None:
    """Return the whole UTC days, weeks or months inside *interval*, or None if there are none."""
    first = next(interval.buckets(period), None)
    if first is None:
        return None
    start = first.start if first.start == interval.start else first.end
    end = bucket_start(interval.end, period)
    return Interval(start, end) if start < end else None


def _edges(interval: Interval, whole: Interval) -> list[Interval]:
    """Return the parts of *interval* before and after *whole*, without empty ones."""
    return [edge for edge in (Interval(interval.start, whole.start), Interval(whole.end, interval.end)) if edge]


def _naive(moment: datetime) -> datetime:
    """Return *moment* without a time zone, as the lake stores UTC."""
    return moment.replace(tzinfo=None)
