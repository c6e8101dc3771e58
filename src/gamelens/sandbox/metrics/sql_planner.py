"""Compiler from a metric query to one SQL statement over the smallest exact tables.

Names come from the catalog, and values are always bound as parameters. `metric_sql` says what a metric is in SQL and
`table_sources` what each table can answer; this module combines the two.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from gamelens.catalog import DIMENSIONS, Metric
from gamelens.sandbox.engines.sql_query import SqlQuery, SqlStatement
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL
from gamelens.sandbox.metrics.table_sources import (
    ACTIVE,
    COUNTED_PLAYERS,
    EVENTS,
    INSTALLS,
    RETURNS,
    SOURCES,
    TableSource,
)
from gamelens.wire.filters import And, Filter, Match, Not, Or, comparisons_in, dimensions_in
from gamelens.wire.intervals import Interval, bucket_start
from gamelens.wire.queries import Group, MetricQuery

TABLES: Final = (RETURNS.name, *(source.name for source in SOURCES))
"""Names of all sources, smallest first."""

_FOREVER_DAYS: Final = 10**9
_MOST_NAMED: Final = 20  # values with a parameter each; longer lists are one parameter
_MOST_JOINED: Final = 16  # such lists; DuckDB takes long to plan a statement with many joins
_RETENTION: Final = ("cohort", "returned")
_PARAMETERS: Final = re.compile(r":(\w+)")


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
    metric_sql = METRIC_SQL[metric.name]
    names = query.dimensions
    if query.split_by is not None and query.split_by != "game_id":
        names = (query.split_by, "game_id")
    builder = _QueryBuilder(query.interval, games, query.filter, names, tables)
    if metric.kinds == "retention":
        source = builder.cohort_source(query.since_days_ago or 0)
    else:
        source = builder.event_source(metric_sql.atoms, query)
    columns = ["bucket", *map(_column, names)]
    parts = ", ".join(f"{builder.part_sql(sql)} AS {part}" for part, sql in metric_sql.parts.items())
    by = ", ".join(columns)
    shown = ["returned"] if metric.kinds == "retention" else list(metric_sql.parts)
    is_shown = " OR ".join(f"{part} <> 0" for part in shown)
    grouped = f"SELECT * FROM (SELECT {by}, {parts} FROM source GROUP BY {by}) AS every_group WHERE {is_shown}"  # noqa: S608
    rank = [f"{term} DESC NULLS LAST" for term in metric_sql.sort]
    rank += [f"{_column(name)} ASC NULLS LAST" for name in names]
    rows = "grouped"
    if isinstance(query.query, Group):
        place = f"row_number() OVER (PARTITION BY bucket ORDER BY {', '.join(rank)}) AS place"
        rows = f"(SELECT *, {place} FROM grouped) AS ranked WHERE place <= :limit"  # noqa: S608
        builder.parameters["limit"] = query.query.limit
    return builder.build(
        f"{source}, grouped AS ({grouped}) "  # noqa: S608
        f"SELECT {by}, {', '.join(metric_sql.parts)} FROM {rows} ORDER BY {', '.join(['bucket', *rank])}"
    )


def compile_dimension_values(
    dimension: str, interval: Interval, *, games: Sequence[str] | None, limit: int, tables: Collection[str] = TABLES
) -> SqlQuery:
    """Compile the list of the first *limit* values of *dimension* in *interval*.

    The rows have one column, `value`, ascending and without null (Wire 2.11, Lists).
    """
    builder = _QueryBuilder(interval, games, None, (dimension,), tables)
    source = builder.event_source(("events",), None)
    name = _column(dimension)
    builder.parameters["limit"] = limit
    return builder.build(
        f"{source} SELECT DISTINCT {name} AS value FROM source "  # noqa: S608
        f"WHERE {name} IS NOT NULL ORDER BY value LIMIT {limit:d}"
    )


class _Branch(msgspec.Struct, frozen=True):
    """One SELECT of a statement: rows of one source in one interval, with some of the atoms."""

    source: TableSource
    interval: Interval
    atoms: frozenset[str]


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
        self._names = tuple(dict.fromkeys(map(_column, names)))
        self._dimensions = frozenset(names) | frozenset(dimensions_in(where) if where is not None else ())
        self._tables = tables
        self._reads: dict[str, tuple[Interval, ...]] = {}
        self._games = games
        lists = sum(len(part.values) > _MOST_NAMED for part in comparisons_in(where)) if where is not None else 0
        self._joins_lists = lists <= _MOST_JOINED
        self._counts_single_rows = False
        self.parameters: dict[str, Any] = {}

    def build(self, statement: str) -> SqlQuery:
        """Return *statement* with the parameters it uses and the intervals it reads."""
        used = {name: self.parameters[name] for name in _PARAMETERS.findall(statement)}
        return SqlQuery(SqlStatement(statement), used, self._reads)

    def event_source(self, atoms: Sequence[str], query: MetricQuery | None) -> str:
        """Return `WITH source AS (...)`: rows of the interval with their bucket and *atoms*."""
        granularity = "all" if query is None else query.granularity
        since = None if query is None else query.since_days_ago
        self.parameters["nearest"] = min(since or 1, _FOREVER_DAYS)
        self.parameters["farthest"] = min(since or _FOREVER_DAYS, _FOREVER_DAYS)
        self.parameters["start"] = _naive(self._interval.start)
        bucket = {
            "day": "CAST(day AS TIMESTAMP)",
            "week": "CAST(date_trunc('week', day) AS TIMESTAMP)",
            "month": "CAST(date_trunc('month', day) AS TIMESTAMP)",
            "all": "CAST(:start AS TIMESTAMP)",
        }[granularity]
        branches = self._branches(atoms)
        self._counts_single_rows = granularity == "day" and any(branch.source.marks_single_rows for branch in branches)
        is_mixed = any(branch.source.is_numbered for branch in branches)
        selects = [self._select(branch, bucket, atoms, by_number=is_mixed) for branch in branches]
        return f"WITH source AS ({' UNION ALL '.join(selects)})"

    def part_sql(self, part: str) -> str:
        """Return the SQL of *part*.

        By day, a player whose only row of the day is marked in the table is counted without the search for duplicates.
        """
        if self._counts_single_rows:
            for atom in COUNTED_PLAYERS:
                part = part.replace(f"COUNT(DISTINCT {atom})", f"(COUNT(DISTINCT {atom}) + COUNT({atom}_alone))")
        return part

    def cohort_source(self, since: int) -> str:
        """Return `WITH ... source AS (...)`: cohorts of *since* days earlier and their returns.

        The cohort of a day is the players installed *since* days before it; the bucket is the day of return
        (Wire 4.12, Retention).
        """
        days = list(self._interval.buckets("day"))
        try:
            installed = Interval(days[0].start - timedelta(days=since), days[-1].end - timedelta(days=since))
        except OverflowError:  # the cohort days lie before the first year of the calendar
            since, installed = 0, Interval(days[0].start, days[0].start)
        self.parameters["since"] = since
        returns = "CAST(day + CAST(:since AS INTEGER) AS TIMESTAMP)"
        if since and self._can_use_returns():
            cohort = self._select(_Branch(RETURNS, installed, frozenset(("cohort",))), returns, _RETENTION)
            returned = _Branch(RETURNS, self._interval, frozenset(("returned",)))
            return f"WITH source AS ({cohort} UNION ALL {self._select(returned, 'CAST(day AS TIMESTAMP)', _RETENTION)})"
        cohort = self._select(_Branch(INSTALLS, installed, frozenset(("who",))), returns, ("who",), by_number=True)
        whole = _whole_days(self._interval) if ACTIVE.name in self._tables else None
        active = [
            self._active_players(EVENTS, interval)
            for interval in (_edges(self._interval, whole) if whole else [self._interval])
        ]
        active += [self._active_players(ACTIVE, whole)] if whole else []
        return (
            f"WITH cohort AS ({cohort}), active AS ({' UNION ALL '.join(active)}), returned AS ("  # noqa: S608
            "SELECT DISTINCT cohort.who AS returner, cohort.bucket AS returned_on FROM active "
            "JOIN cohort ON cohort.who = active.who AND cohort.bucket = active.moment"
            "), source AS (SELECT cohort.*, 1 AS cohort, "
            "CASE WHEN returned_on IS NULL THEN 0 ELSE 1 END AS returned FROM cohort "
            "LEFT JOIN returned ON returned.returner = cohort.who AND returned.returned_on = cohort.bucket)"
        )

    def _can_use_returns(self) -> bool:
        """Return whether the table of returns can answer: whole days, and its dimensions only."""
        is_whole = _whole_days(self._interval) == self._interval
        return is_whole and RETURNS.name in self._tables and self._dimensions <= RETURNS.dimensions

    def _active_players(self, source: TableSource, interval: Interval) -> str:
        """Return a SELECT of the players with an event, once or more per day."""
        rows, _ = source.rows(joins_players=source is EVENTS)
        inside = self._inside(source, interval)
        return f"SELECT player AS who, CAST(day AS TIMESTAMP) AS moment FROM {rows} WHERE {inside}"  # noqa: S608

    def _branches(self, atoms: Sequence[str]) -> list[_Branch]:
        """Choose the tables that answer, each with its interval and its atoms."""
        whole = _whole_days(self._interval)
        chosen: dict[str, list[str]] = {}
        for atom in dict.fromkeys(atoms):
            chosen.setdefault(self._smallest_source(atom, whole).name, []).append(atom)
        by_day = [source for source in SOURCES if source.name in chosen and source.is_by_day]
        if EVENTS.name in chosen or whole is None:  # events are read anyway and hold all that daily tables do
            for source in by_day:
                chosen.setdefault(EVENTS.name, []).extend(chosen.pop(source.name))
            by_day = []
        branches = [
            _Branch(source, whole if source in by_day and whole else self._interval, frozenset(chosen[source.name]))
            for source in SOURCES
            if source.name in chosen
        ]
        if by_day and whole:
            of_edges = frozenset(atom for source in by_day for atom in chosen[source.name])
            branches += [_Branch(EVENTS, interval, of_edges) for interval in _edges(self._interval, whole)]
        return branches

    def _smallest_source(self, atom: str, whole: Interval | None) -> TableSource:
        """Return the first table that has *atom* and every dimension of the query."""
        for source in SOURCES:
            is_exact = whole is not None or not source.is_by_day
            if source.name in self._tables and is_exact and source.has(atom, self._dimensions):
                return source
        return EVENTS

    def _select(self, branch: _Branch, bucket: str, atoms: Sequence[str], *, by_number: bool = False) -> str:
        """Return the SELECT of *branch*, with null for the atoms of other branches."""
        source = branch.source
        joins_players = source.needs_players(branch.atoms, self._dimensions, by_number=by_number)
        rows, values = source.rows(joins_players=joins_players, joins_rates=bool(branch.atoms & {"paid", "earned"}))
        if joins_players or source is INSTALLS:
            self._add_read("players", branch.interval)
        columns = [f"{bucket} AS bucket", *(f"{values.get(name, name)} AS {name}" for name in self._names)]
        for atom in dict.fromkeys(atoms):
            sql, alone = "NULL", "NULL"
            if atom in branch.atoms and self._counts_single_rows and atom in COUNTED_PLAYERS:
                sql, alone = source.daily_atoms(atom, by_number=joins_players)
            elif atom in branch.atoms:
                sql = source.atom(atom, by_number=joins_players)
            columns.append(f"{sql} AS {atom}")
            columns += [f"{alone} AS {atom}_alone"] if self._counts_single_rows and atom in COUNTED_PLAYERS else []
        conditions = [self._inside(source, branch.interval)]
        if self._games is not None:
            conditions.append(self._one_of("game_id", self._games))
        if (condition := source.condition(branch.atoms)) is not None:
            conditions.append(condition)
        if self._where is not None:
            conditions += self._conditions(self._where, values)
        return f"SELECT {', '.join(columns)} FROM {rows} WHERE {' AND '.join(conditions)}"  # noqa: S608

    def _inside(self, source: TableSource, interval: Interval) -> str:
        """Return the condition that a row lies in *interval*, and add its files to the reads."""
        self._add_read(source.table, interval)
        number = len(self.parameters)
        first, last = f"from{number}", f"to{number}"
        self.parameters |= {first: _naive(interval.start), last: _naive(interval.end)}
        if not source.is_by_day:
            return f"ts >= :{first} AND ts < :{last}"
        return f"day >= CAST(:{first} AS DATE) AND day < CAST(:{last} AS DATE)"

    def _add_read(self, table: str, interval: Interval) -> None:
        self._reads[table] = (*self._reads.get(table, ()), interval)

    def _conditions(self, node: Filter, values: dict[str, str]) -> list[str]:
        """Return conditions that must all be true.

        Outside any negation null may stand for false, which is faster: with plain comparisons an engine skips
        row groups that cannot match.
        """
        match node:
            case And(members):
                return [condition for member in members for condition in self._conditions(member, values)]
            case Match(dimension, wanted):
                return [self._one_of(values.get(dimension, _column(dimension)), wanted)]
        return [self._condition(node, values)]

    def _one_of(self, value: str, wanted: Sequence[str], *, most_named: int = _MOST_NAMED) -> str:
        """Return the condition that *value* is one of *wanted*, which is null for a null value.

        Up to *most_named* values get a parameter each; more are bound as one list.
        """
        first = len(self.parameters)
        if not wanted:
            return "FALSE"
        if len(wanted) > most_named:
            self.parameters[f"p{first}"] = list(wanted)
            if self._joins_lists and len(wanted) > _MOST_NAMED:  # list_contains scans the list for each row
                return f"{value} IN (SELECT unnest(:p{first}))"
            return f"list_contains(:p{first}, {value})"
        named = {f"p{number}": text for number, text in enumerate(wanted, first)}
        self.parameters |= named
        return f"{value} IN ({', '.join(f':{name}' for name in named)})"

    def _condition(self, node: Filter, values: dict[str, str]) -> str:
        """Return *node* as a condition that is never null, so that `not` is plain negation."""
        match node:
            case Match(dimension, wanted):
                is_one = self._one_of(values.get(dimension, _column(dimension)), wanted, most_named=1)
                return f"COALESCE({is_one}, FALSE)"
            case And(members):
                return "(" + " AND ".join(self._condition(member, values) for member in members) + ")"
            case Or(members):
                return "(" + " OR ".join(self._condition(member, values) for member in members) + ")"
            case Not(member):
                return f"(NOT {self._condition(member, values)})"
        raise TypeError(f"no filter: {node!r}")


def _whole_days(interval: Interval) -> Interval | None:
    """Return the whole UTC days inside *interval*, or None if there are none."""
    first = bucket_start(interval.start, "day")
    first += timedelta(days=first < interval.start)
    last = bucket_start(interval.end, "day")
    return Interval(first, last) if first < last else None


def _edges(interval: Interval, whole: Interval) -> list[Interval]:
    """Return the parts of *interval* before and after *whole*, without empty ones."""
    return [edge for edge in (Interval(interval.start, whole.start), Interval(whole.end, interval.end)) if edge]


def _column(dimension: str) -> str:
    """Return the column of *dimension*, which must be in the catalog.

    Raises:
        KeyError: the catalog does not list it.
    """
    return DIMENSIONS[dimension].name


def _naive(moment: datetime) -> datetime:
    """Return *moment* without a time zone, as the lake stores UTC."""
    return moment.replace(tzinfo=None)
