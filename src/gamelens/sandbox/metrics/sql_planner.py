"""Compiler from a metric query to one SQL statement over the smallest exact tables.

Names come from the catalog, and values are always bound as parameters. `metric_sql` says what a metric is in SQL,
`table_sources` what each table can answer, and `sql_builder` writes statements; this module combines the three.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from gamelens.catalog import Metric
from gamelens.sandbox.engines.sql_query import SqlQuery, SqlStatement
from gamelens.sandbox.metrics.filter_sql import FilterSql, column
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL, RETURNING_AFTER, Distinct, Sum
from gamelens.sandbox.metrics.sql_builder import Parameters, Select, named, nested, union_all, when, with_tables
from gamelens.sandbox.metrics.table_sources import (
    ACTIVE,
    EVENTS,
    INSTALLS,
    RETURNS,
    SHARED_SOURCES,
    SOURCES,
    TableSource,
)
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
    if metric.kinds == "retention":
        rows = builder.cohort_tables(since)
    else:
        rows = builder.event_tables(metric_sql.atoms, query.granularity, since)
    by = ("bucket", *map(column, names))
    parts = {name: builder.part_sql(part) for name, part in metric_sql.parts.items()}
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
    rows = builder.event_tables(("events",), "all", 0)
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


class _Branch(msgspec.Struct, frozen=True):
    """One SELECT of a statement: rows of one source in one interval, with some of the atoms."""

    source: TableSource
    interval: Interval
    atoms: frozenset[str]


class _Names(dict[str, str]):
    """Names in the SQL of atoms: a player's key, and the days since the install.

    The days are bound as a parameter when they are used.
    """

    def __init__(self, player_key: str, since: int, parameters: Parameters) -> None:
        super().__init__(player_key=player_key)
        self._since = since
        self._parameters = parameters

    def __missing__(self, name: str) -> str:
        return self._parameters.bind(self._since, name)


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
        self._whole = _whole_buckets(interval, "day")
        self._where = where
        self._names = tuple(dict.fromkeys(map(column, names)))
        self._dimensions = frozenset(names) | frozenset(dimensions_in(where) if where is not None else ())
        self._tables = tables
        self._reads: dict[str, tuple[Interval, ...]] = {}
        self._games = games
        self._period: Granularity = "all"
        self._in_cells: frozenset[str] = frozenset()
        self._by_number = False
        self._since = 0
        self.parameters = Parameters()
        self._filters = FilterSql(where, self.parameters)

    def build(self, tables: dict[str, str | Select], select: Select) -> SqlQuery:
        """Return the statement *select* over *tables*, its parameters and its reads."""
        return SqlQuery(SqlStatement(with_tables(tables, select)), self.parameters.values, self._reads)

    def event_tables(self, atoms: Sequence[str], granularity: Granularity, since: int) -> dict[str, str | Select]:
        """Return the table `source`: rows of the interval with their bucket and *atoms*."""
        self._since = min(since, _FOREVER_DAYS)
        self._period = self._period_of(granularity)
        bucket = _BUCKETS.get(granularity)
        if bucket is None:
            bucket = f"CAST({self.parameters.bind(_naive(self._interval.start), 'start')} AS TIMESTAMP)"
        branches = self._branches(atoms)
        self._by_number = any(branch.source.numbers_players(branch.atoms) for branch in branches)
        self._in_cells = frozenset(
            atom for branch in branches for atom in branch.atoms if self._counts_cells(branch.source, atom)
        )
        return {"source": union_all(self._select(branch, bucket, atoms) for branch in branches)}

    def part_sql(self, part: Sum | Distinct) -> str:
        """Return the SQL of *part* over the table `source`."""
        if isinstance(part, Sum):
            return f"COALESCE(SUM({part.atom}), 0)"
        distinct = f"COUNT(DISTINCT {part.atom})"
        return f"{distinct} + COALESCE(SUM({_cells(part.atom)}), 0)" if part.atom in self._in_cells else distinct

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
        self._since = since
        returns = f"CAST(day + CAST({self.parameters.bind(since, 'since')} AS INTEGER) AS TIMESTAMP)"
        if since and self._can_use_returns():
            cohort = self._select(_Branch(RETURNS, installed, frozenset(("cohort",))), returns, _RETENTION)
            returned = _Branch(RETURNS, self._interval, frozenset(("returned",)))
            return {"source": union_all((cohort, self._select(returned, _BUCKETS["day"], _RETENTION)))}
        self._by_number = True
        whole = self._whole if ACTIVE.name in self._tables else None
        active = [
            _Branch(EVENTS, interval, frozenset(("player_key",)))
            for interval in (_edges(self._interval, whole) if whole else [self._interval])
        ]
        active += [_Branch(ACTIVE, whole, frozenset(("player_key",)))] if whole else []
        joined = "present JOIN cohort ON cohort.player_key = present.player_key AND cohort.bucket = present.moment"
        back = "returned ON returned.returner = cohort.player_key AND returned.returned_on = cohort.bucket"
        return {
            "cohort": self._select(_Branch(INSTALLS, installed, frozenset(("player_key",))), returns, ("player_key",)),
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

    def _can_use_returns(self) -> bool:
        """Return whether the table of returns can answer: whole days, and its dimensions only."""
        is_whole = self._whole == self._interval
        return is_whole and RETURNS.name in self._tables and self._dimensions <= RETURNS.dimensions

    def _players_of_days(self, branch: _Branch) -> Select:
        """Return the players with an event, once or more per day."""
        rows = branch.source.rows(branch.atoms, frozenset(), by_number=True)
        self._add_reads(branch, rows.tables)
        columns = {"player_key": rows.player_key, "moment": _BUCKETS["day"]}
        return Select(columns=columns, source=rows.sql, where=self._inside(branch))

    def _period_of(self, granularity: Granularity) -> Granularity:
        """Return the bucket in which the query counts.

        It is a finer one than that of the query if the interval is one such bucket. That needs no other table than
        the finer bucket does.
        """
        finer = _PERIODS[: _PERIODS.index(granularity)] if granularity in _PERIODS else _PERIODS
        for period in finer:
            only = next(self._interval.buckets(period), None)
            if only == self._interval:
                return period if granularity == "all" or period == "day" else granularity
        return granularity

    def _counts_cells(self, source: TableSource, atom: str) -> bool:
        return source.counts_by_cells(atom, self._period)

    def _branches(self, atoms: Sequence[str]) -> list[_Branch]:
        """Choose the tables that answer, each with its interval and its atoms."""
        chosen: dict[str, list[str]] = {}
        for atom in dict.fromkeys(atoms):
            chosen.setdefault(self._smallest_source(atom).name, []).append(atom)
        if EVENTS.name in chosen:  # events are read anyway and hold all that daily tables do
            for source in SOURCES:
                if source.is_by_day and source.name in chosen:
                    chosen[EVENTS.name] += chosen.pop(source.name)
        places: dict[tuple[str, Interval], tuple[TableSource, list[str]]] = {}
        for source in SOURCES:
            for atom in chosen.get(source.name, ()):
                for table, interval in self._reads_of(source, atom):
                    places.setdefault((table.name, interval), (table, []))[1].append(atom)
        return [_Branch(table, place[1], frozenset(some)) for place, (table, some) in places.items()]

    def _reads_of(self, source: TableSource, atom: str) -> list[tuple[TableSource, Interval]]:
        """Return the sources that together have *atom* in the whole interval.

        Each comes with the part of the interval that it reads.
        """
        whole = self._whole
        if not source.is_by_day or whole is None:
            return [(source, self._interval)]
        inside: Interval | None = whole
        if atom not in source.atoms and source.period(atom) in ("week", "month"):
            inside = _whole_buckets(whole, source.period(atom))
        reads = [(source, inside)] if inside else []
        if inside and self._counts_cells(source, atom):
            reads.append((SHARED_SOURCES[source.shared[atom]], inside))
        rest = ACTIVE if ACTIVE.name in self._tables else EVENTS
        reads += [(rest, edge) for edge in (_edges(whole, inside) if inside else [whole])]
        return reads + [(EVENTS, edge) for edge in _edges(self._interval, whole)]

    def _smallest_source(self, atom: str) -> TableSource:
        """Return the first table that has *atom* and every dimension of the query."""
        for source in SOURCES:
            is_exact = self._whole is not None or not source.is_by_day
            if source.name in self._tables and is_exact and source.has(atom, self._dimensions, self._period):
                return source
        return EVENTS

    def _select(self, branch: _Branch, bucket: str, atoms: Sequence[str]) -> Select:
        """Return the SELECT of *branch*, with null for the atoms of other branches."""
        source = branch.source
        rows = source.rows(branch.atoms, self._dimensions, by_number=self._by_number)
        self._add_reads(branch, rows.tables)
        names = _Names(rows.player_key, self._since, self.parameters)
        columns = {"bucket": bucket, **{name: source.values.get(name, name) for name in self._names}}
        for atom in atoms:
            is_there = atom in branch.atoms
            in_cells = is_there and self._counts_cells(source, atom)
            has_key = is_there and not (in_cells and atom in source.shared)
            columns[atom] = source.atoms[atom].format_map(names) if has_key else "NULL"
            if atom in self._in_cells:
                columns[_cells(atom)] = source.cells[atom].format_map(names) if in_cells else "NULL"
        conditions = self._inside(branch)
        if self._games is not None:
            conditions.append(self._filters.one_of("game_id", self._games))
        if (condition := source.condition(branch.atoms)) is not None:
            conditions.append(condition.format_map(names))
        if self._where is not None:
            conditions += self._filters.conditions(self._where, source.values)
        return Select(columns=columns, source=rows.sql, where=conditions)

    def _inside(self, branch: _Branch) -> list[str]:
        """Return the conditions that a row lies in the interval of *branch*."""
        first, last = (self.parameters.bind(_naive(edge)) for edge in (branch.interval.start, branch.interval.end))
        if not branch.source.is_by_day:
            return [f"ts >= {first}", f"ts < {last}"]
        return [f"day >= CAST({first} AS DATE)", f"day < CAST({last} AS DATE)"]

    def _add_reads(self, branch: _Branch, tables: Collection[str]) -> None:
        """Add the files of *tables* to the reads.

        Of the table of *branch* these are the files of its interval, of a joined table all.
        """
        for table in sorted(tables):
            inside = (branch.interval,) if table == branch.source.table else ()
            self._reads[table] = (*self._reads.get(table, ()), *inside)


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
