"""Compiler from a metric query to one SQL statement over the smallest exact tables.

Names come from the catalog, and values are always bound as parameters. `metric_sql` says what a metric is in SQL,
`storage.atoms` what an atom is over the rows of each table, `table_sources` what else a table has, and `sql_builder`
writes statements; this module combines them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import msgspec

from gamelens.catalog import Metric
from gamelens.sandbox.engines.engine import SqlQuery
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL, RETURNING_AFTER, Distinct, Sum
from gamelens.sandbox.metrics.sql_builder import FilterSql, Parameters, Select, named, nested, union_all, with_tables
from gamelens.sandbox.metrics.table_sources import (
    ACTIVE,
    EVENTS,
    INSTALLS,
    RETURNS,
    SHARED,
    SOURCES,
    Table,
    TableRows,
)
from gamelens.sandbox.storage.atoms import ATOMS, Join, Read, when
from gamelens.wire.filters import Filter, dimensions_in
from gamelens.wire.intervals import Granularity, Interval, bucket_start
from gamelens.wire.queries import Group, MetricQuery

TABLES: Final = (RETURNS.name, *(source.name for source in SOURCES))
"""Names of all sources, smallest first.

Shared tables go with the sources that they complete.
"""

_FOREVER_DAYS: Final = 10**9
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
        games: ids of the games to read. An empty list reads none, None reads all in the tables (see `query_scope`).
        tables: names of the tables to choose from. Events can answer every query and are always allowed.
    """
    since = query.since_days_ago or 0
    metric_sql = RETURNING_AFTER if since and metric.name == "returning_users" else METRIC_SQL[metric.name]
    names = query.dimensions
    if query.split_by is not None and query.split_by != "game_id":
        names = (query.split_by, "game_id")
    scope = _Scope(games, query.filter, names)
    if metric.kinds == "retention":
        plan, rows = _cohort_rows(scope, query.interval, since, tables)
    else:
        if since:
            scope.parameters.bind(min(since, _FOREVER_DAYS), "since")
        plan = plan_branches(metric_sql.atoms, scope.dimensions, query.interval, query.granularity, tables)
        rows = {"source": scope.event_rows(plan, metric_sql.atoms, query.interval, query.granularity)}
    by = ("bucket", *scope.names)
    parts = {name: _part_sql(part, plan.in_cells) for name, part in metric_sql.parts.items()}
    shown = ["returned"] if metric.kinds == "retention" else list(parts)
    every_group = Select(columns=named(*by) | parts, source="source", by=by)
    rows["grouped"] = Select(
        source=nested(every_group, "every_group"), where=(" OR ".join(f"{part} <> 0" for part in shown),)
    )
    rank = [f"{term} DESC NULLS LAST" for term in metric_sql.sort]
    rank += [f"{name} ASC NULLS LAST" for name in names]
    source = "grouped"
    where: tuple[str, ...] = ()
    if isinstance(query.query, Group):
        place = f"row_number() OVER (PARTITION BY bucket ORDER BY {', '.join(rank)})"
        source = nested(Select(columns={"*": "*", "place": place}, source="grouped"), "ranked")
        where = (f"place <= {scope.parameters.bind(query.query.limit, 'limit')}",)
    last = Select(columns=named(*by, *parts), source=source, where=where, order=("bucket", *rank))
    return SqlQuery(with_tables(rows, last), scope.parameters.values, plan.reads)


def compile_dimension_values(
    dimension: str, interval: Interval, *, games: Sequence[str] | None, limit: int, tables: Collection[str] = TABLES
) -> SqlQuery:
    """Compile the list of the first *limit* values of *dimension* in *interval*.

    The rows have one column, `value`, ascending and without null (Wire 2.11, Lists).
    """
    scope = _Scope(games, None, (dimension,))
    plan = plan_branches(("events",), scope.dimensions, interval, "all", tables)
    rows = scope.event_rows(plan, ("events",), interval, "all")
    values = Select(
        columns={"value": dimension},
        source="source",
        where=(f"{dimension} IS NOT NULL",),
        is_distinct=True,
        order=("value",),
        limit=limit,
    )
    return SqlQuery(with_tables({"source": rows}, values), scope.parameters.values, plan.reads)


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


class Plan(msgspec.Struct, frozen=True, dict=True):
    """The branches that together answer a query."""

    branches: tuple[Branch, ...]

    @property
    def in_cells(self) -> frozenset[str]:
        """The atoms that some branch counts by cells."""
        return frozenset(name for branch in self.branches for name, read in branch.atoms.items() if read.cells)

    @cached_property
    def rows(self) -> list[TableRows]:
        """The rows that each branch reads. Players are numbers in all of them if they are in one."""
        joins = [branch.joins for branch in self.branches]
        by_number = any(
            it.counts_players and it.table.numbers_players(its_joins)
            for it, its_joins in zip(self.branches, joins, strict=True)
        )
        return [
            it.table.rows(its_joins, by_number=by_number and it.counts_players)
            for it, its_joins in zip(self.branches, joins, strict=True)
        ]

    @property
    def reads(self) -> dict[str, tuple[Interval, ...]]:
        """The intervals of each table that it reads; a table that is only joined has none and is read whole."""
        reads: dict[str, tuple[Interval, ...]] = {}
        for branch, rows in zip(self.branches, self.rows, strict=True):
            for table in sorted(rows.tables):
                reads[table] = reads.get(table, ()) + ((branch.interval,) if table == branch.table.name else ())
        return reads


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
    # A query whose interval is one finer bucket counts in that: it needs no other table than the finer bucket does.
    period, whole = granularity, _whole_buckets(interval, "day")
    for finer in _PERIODS[: _PERIODS.index(granularity)] if granularity in _PERIODS else _PERIODS:
        if next(interval.buckets(finer), None) == interval:
            period = finer if granularity == "all" or finer == "day" else granularity
            break
    usable = [it for it in SOURCES if it.name in tables and it.values.keys() >= set(dimensions)]
    usable = [it for it in usable if whole or not it.is_by_day]
    chosen = {atom: next((it for it in usable if atom in it.reads[period]), EVENTS) for atom in atoms}
    if EVENTS in chosen.values():
        chosen = {atom: EVENTS if table.is_by_day else table for atom, table in chosen.items()}
    rest = ACTIVE if ACTIVE.name in tables else EVENTS
    places: dict[tuple[str, Interval], Branch] = {}

    def add(table: Table, atom: str, *intervals: Interval) -> None:
        for inside in intervals:
            if (place := (table.name, inside)) not in places:
                places[place] = Branch(table, inside, {}, {name: table.values[name] for name in dimensions})
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


class _Scope:
    """What every SELECT of a statement has in common, and the values that the statement binds.

    Args:
        games: ids of the games to read; None reads all.
        where: filter over dimensions.
        names: dimensions to group by.
    """

    def __init__(self, games: Sequence[str] | None, where: Filter | None, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.dimensions = frozenset(names) | frozenset(dimensions_in(where) if where is not None else ())
        self.parameters = Parameters()
        self._games, self._where = games, where
        self._filters = FilterSql(where, self.parameters)

    def event_rows(self, plan: Plan, atoms: Sequence[str], interval: Interval, granularity: Granularity) -> str:
        """Return the rows of *plan* with their bucket, their dimensions and *atoms*."""
        bucket = _BUCKETS.get(granularity)
        if bucket is None:
            bucket = f"CAST({self.parameters.bind(_naive(interval.start), 'start')} AS TIMESTAMP)"
        return union_all(
            self.select(branch, rows, bucket, atoms, plan.in_cells)
            for branch, rows in zip(plan.branches, plan.rows, strict=True)
        )

    def select(
        self,
        branch: Branch,
        rows: TableRows,
        bucket: str,
        atoms: Sequence[str],
        in_cells: Collection[str] = (),
    ) -> Select:
        """Return the SELECT of *branch* from *rows*, with null for the atoms of other branches."""
        columns = {"bucket": bucket, **{name: branch.values[name].sql for name in self.names}}
        for atom in atoms:
            read = branch.atoms.get(atom, Read())
            columns[atom] = read.sql.format(player=rows.player)
            if atom in in_cells:
                columns[_cells(atom)] = read.cells or "NULL"
        conditions = self.inside(branch)
        if self._games is not None:
            conditions.append(self._filters.one_of("game_id", self._games))
        if branch.condition:
            conditions.append(branch.condition)
        if self._where is not None:
            conditions += self._filters.conditions(self._where, {name: it.sql for name, it in branch.values.items()})
        return Select(columns=columns, source=rows.sql, where=conditions)

    def inside(self, branch: Branch) -> list[str]:
        """Return the conditions that a row lies in the interval of *branch*."""
        first, last = (self.parameters.bind(_naive(edge)) for edge in (branch.interval.start, branch.interval.end))
        if not branch.table.is_by_day:
            return [f"ts >= {first}", f"ts < {last}"]
        return [f"day >= CAST({first} AS DATE)", f"day < CAST({last} AS DATE)"]


def _cohort_rows(
    scope: _Scope, interval: Interval, since: int, tables: Collection[str]
) -> tuple[Plan, dict[str, str | Select]]:
    """Return the table `source`, after those that it needs: cohorts of *since* days earlier and their returns.

    The cohort of a day is the players installed *since* days before it; the bucket is the day of return
    (Wire 4.12, Retention).
    """
    days = list(interval.buckets("day"))
    try:
        installed = Interval(days[0].start - timedelta(days=since), days[-1].end - timedelta(days=since))
    except OverflowError:  # the cohort days lie before the first year of the calendar
        since, installed = 0, Interval(days[0].start, days[0].start)

    def branch(table: Table, inside: Interval, atom: str, dimensions: Iterable[str] = ()) -> Branch:
        return Branch(
            table, inside, {atom: table.reads["all"][atom]}, {name: table.values[name] for name in dimensions}
        )

    returns = f"CAST(day + CAST({scope.parameters.bind(since, 'since')} AS INTEGER) AS TIMESTAMP)"
    whole = _whole_buckets(interval, "day")
    if since and whole == interval and RETURNS.name in tables and RETURNS.values.keys() >= scope.dimensions:
        cohort = branch(RETURNS, installed, "cohort", scope.dimensions)
        plan = Plan((cohort, branch(RETURNS, whole, "returned", scope.dimensions)))
        buckets = (returns, _BUCKETS["day"])
        selects = (
            scope.select(it, rows, bucket, ("cohort", "returned"))
            for it, rows, bucket in zip(plan.branches, plan.rows, buckets, strict=True)
        )
        return plan, {"source": union_all(selects)}
    cohort = branch(INSTALLS, installed, "player_key", scope.dimensions)
    whole = whole if ACTIVE.name in tables else None
    active = [branch(EVENTS, edge, "player_key") for edge in (_edges(interval, whole) if whole else [interval])]
    active += [branch(ACTIVE, whole, "player_key")] if whole else []
    plan = Plan((cohort, *active))
    cohort_rows, *active_rows = plan.rows
    back = "returned ON returned.returner = cohort.player_key AND returned.returned_on = cohort.bucket"
    return plan, {
        "cohort": scope.select(cohort, cohort_rows, returns, ("player_key",)),
        "present": union_all(
            Select(
                columns={"player_key": rows.player, "moment": _BUCKETS["day"]}, source=rows.sql, where=scope.inside(it)
            )
            for it, rows in zip(active, active_rows, strict=True)
        ),
        "returned": Select(
            columns={"returner": "cohort.player_key", "returned_on": "cohort.bucket"},
            source="present JOIN cohort ON cohort.player_key = present.player_key AND cohort.bucket = present.moment",
            is_distinct=True,
        ),
        "source": Select(
            columns={
                **{name: f"cohort.{name}" for name in ("bucket", *scope.names)},
                "cohort": "1",
                "returned": when("returned_on IS NULL", "0", "1"),
            },
            source=f"cohort LEFT JOIN {back}",
        ),
    }


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
