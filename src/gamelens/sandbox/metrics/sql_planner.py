"""One statement for one question, over the smallest tables that can answer it exactly.

Names come from the catalog, values are always bound. What a metric is in SQL says `expressions`, what a table can
answer says `sources`; here the two are put together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from gamelens.catalog import DIMENSIONS, Metric
from gamelens.sandbox.engines.sql_query import SqlQuery, SqlStatement
from gamelens.sandbox.metrics.metric_sql import EXPRESSIONS
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
"""What a question may be answered from, smallest first."""

_FOREVER_DAYS: Final = 10**9
_MOST_NAMED: Final = 20  # values, one by one
_MOST_JOINED: Final = 16  # lists of more values than that; a statement of many joins takes long to plan
_RETENTION: Final = ("cohort", "returned")
_PARAMETERS: Final = re.compile(r":(\w+)")


def compile_query(
    metric: Metric, query: MetricQuery, *, games: Sequence[str] | None, tables: Collection[str] = TABLES
) -> SqlQuery:
    """The statement for *query* of *metric* over *games*: columns `bucket`, the dimensions, the metric's parts.

    No games are nothing; None is every game that the tables hold (see `scoping`). *tables* are those it may choose
    from. Events can always answer and are always allowed.
    """
    expression = EXPRESSIONS[metric.name]
    names = query.dimensions
    if query.split_by is not None and query.split_by != "game_id":
        names = (query.split_by, "game_id")
    asking = _QueryBuilder(query.interval, games, query.filter, names, tables)
    if metric.kinds == "retention":
        source = asking.cohorts(query.since_days_ago or 0)
    else:
        source = asking.occurrences(expression.atoms, query)
    columns = ["bucket", *map(_name, names)]
    parts = ", ".join(f"{asking.counted(sql)} AS {part}" for part, sql in expression.parts.items())
    by = ", ".join(columns)
    shown = ["returned"] if metric.kinds == "retention" else list(expression.parts)
    is_shown = " OR ".join(f"{part} <> 0" for part in shown)
    grouped = f"SELECT * FROM (SELECT {by}, {parts} FROM source GROUP BY {by}) AS every_group WHERE {is_shown}"  # noqa: S608
    rank = [f"{term} DESC NULLS LAST" for term in expression.sort]
    rank += [f"{_name(name)} ASC NULLS LAST" for name in names]
    kept = "grouped"
    if isinstance(query.query, Group):
        place = f"row_number() OVER (PARTITION BY bucket ORDER BY {', '.join(rank)}) AS place"
        kept = f"(SELECT *, {place} FROM grouped) AS ranked WHERE place <= :limit"  # noqa: S608
        asking.parameters["limit"] = query.query.limit
    return asking.plan(
        f"{source}, grouped AS ({grouped}) "  # noqa: S608
        f"SELECT {by}, {', '.join(expression.parts)} FROM {kept} ORDER BY {', '.join(['bucket', *rank])}"
    )


def compile_dimension_values(
    dimension: str, interval: Interval, *, games: Sequence[str] | None, limit: int, tables: Collection[str] = TABLES
) -> SqlQuery:
    """The first *limit* values of *dimension* in *interval*, ascending, null left out; one column, `value`."""
    asking = _QueryBuilder(interval, games, None, (dimension,), tables)
    source = asking.occurrences(("events",), None)
    name = _name(dimension)
    asking.parameters["limit"] = limit
    return asking.plan(
        f"{source} SELECT DISTINCT {name} AS value FROM source "  # noqa: S608
        f"WHERE {name} IS NOT NULL ORDER BY value LIMIT {limit:d}"
    )


class _Branch(msgspec.Struct, frozen=True):
    """Rows of one source over one span, with some of the atoms."""

    source: TableSource
    span: Interval
    atoms: frozenset[str]


class _QueryBuilder:
    """One question on its way to a statement: what it binds and reads gathers here."""

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
        self._names = tuple(dict.fromkeys(map(_name, names)))
        self._asked = frozenset(names) | frozenset(dimensions_in(where) if where is not None else ())
        self._tables = tables
        self._reads: dict[str, tuple[Interval, ...]] = {}
        self._games = games
        lists = sum(len(part.values) > _MOST_NAMED for part in comparisons_in(where)) if where is not None else 0
        self._joins_lists = lists <= _MOST_JOINED
        self._is_daily = False  # players are counted by day, and some rows of a source count by themselves
        self.parameters: dict[str, Any] = {}

    def plan(self, statement: str) -> SqlQuery:
        """*statement*, with everything that it turned out to need."""
        used = {name: self.parameters[name] for name in _PARAMETERS.findall(statement)}
        return SqlQuery(SqlStatement(statement), used, self._reads)

    def occurrences(self, atoms: Sequence[str], query: MetricQuery | None) -> str:
        """A statement's `WITH source AS (...)`: what happened in the interval, with its bucket and *atoms*."""
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
        self._is_daily = granularity == "day" and any(branch.source.marks_alone for branch in branches)
        is_mixed = any(branch.source.is_numbered for branch in branches)
        selects = [self._select(branch, bucket, atoms, by_number=is_mixed) for branch in branches]
        return f"WITH source AS ({' UNION ALL '.join(selects)})"

    def counted(self, part: str) -> str:
        """The SQL of a *part*: nobody is looked for twice who is known to be there once."""
        if self._is_daily:
            for atom in COUNTED_PLAYERS:
                part = part.replace(f"COUNT(DISTINCT {atom})", f"(COUNT(DISTINCT {atom}) + COUNT({atom}_alone))")
        return part

    def cohorts(self, since: int) -> str:
        """A statement's `WITH`: the installs N days before each day of the interval, and the day each returned on."""
        days = list(self._interval.buckets("day"))
        try:
            installed = Interval(days[0].start - timedelta(days=since), days[-1].end - timedelta(days=since))
        except OverflowError:  # before the calendar began nobody installed anything
            since, installed = 0, Interval(days[0].start, days[0].start)
        self.parameters["since"] = since
        returns = "CAST(day + CAST(:since AS INTEGER) AS TIMESTAMP)"
        if since and self._is_in_returns():
            cohort = self._select(_Branch(RETURNS, installed, frozenset(("cohort",))), returns, _RETENTION)
            came = _Branch(RETURNS, self._interval, frozenset(("returned",)))
            return f"WITH source AS ({cohort} UNION ALL {self._select(came, 'CAST(day AS TIMESTAMP)', _RETENTION)})"
        cohort = self._select(_Branch(INSTALLS, installed, frozenset(("who",))), returns, ("who",), by_number=True)
        whole = _whole_days(self._interval) if ACTIVE.name in self._tables else None
        active = [self._active(EVENTS, span) for span in (_edges(self._interval, whole) if whole else [self._interval])]
        active += [self._active(ACTIVE, whole)] if whole else []
        return (
            f"WITH cohort AS ({cohort}), active AS ({' UNION ALL '.join(active)}), returned AS ("  # noqa: S608
            "SELECT DISTINCT cohort.who AS returner, cohort.bucket AS returned_on FROM active "
            "JOIN cohort ON cohort.who = active.who AND cohort.bucket = active.moment"
            "), source AS (SELECT cohort.*, 1 AS cohort, "
            "CASE WHEN returned_on IS NULL THEN 0 ELSE 1 END AS returned FROM cohort "
            "LEFT JOIN returned ON returned.returner = cohort.who AND returned.returned_on = cohort.bucket)"
        )

    def _is_in_returns(self) -> bool:
        """Whether whole days are asked for, of cohorts by what is kept of them."""
        is_whole = _whole_days(self._interval) == self._interval
        return is_whole and RETURNS.name in self._tables and self._asked <= RETURNS.dimensions

    def _active(self, source: TableSource, span: Interval) -> str:
        """Who was there on which day, at least once."""
        rows, _ = source.rows(joins_players=source is EVENTS)
        inside = self._inside(source, span)
        return f"SELECT player AS who, CAST(day AS TIMESTAMP) AS moment FROM {rows} WHERE {inside}"  # noqa: S608

    def _branches(self, atoms: Sequence[str]) -> list[_Branch]:
        """Which tables answer, each over which span and with which atoms."""
        whole = _whole_days(self._interval)
        chosen: dict[str, list[str]] = {}
        for atom in dict.fromkeys(atoms):
            chosen.setdefault(self._smallest(atom, whole).name, []).append(atom)
        by_day = [source for source in SOURCES if source.name in chosen and source.is_by_day]
        if EVENTS.name in chosen or whole is None:  # reading events anyway: all that is by day is in them
            for source in by_day:
                chosen.setdefault(EVENTS.name, []).extend(chosen.pop(source.name))
            by_day = []
        branches = [
            _Branch(source, whole if source in by_day and whole else self._interval, frozenset(chosen[source.name]))
            for source in SOURCES
            if source.name in chosen
        ]
        if by_day and whole:
            cut = frozenset(atom for source in by_day for atom in chosen[source.name])
            branches += [_Branch(EVENTS, span, cut) for span in _edges(self._interval, whole)]
        return branches

    def _smallest(self, atom: str, whole: Interval | None) -> TableSource:
        """The first table that has *atom* and every dimension that is asked for."""
        for source in SOURCES:
            is_exact = whole is not None or not source.is_by_day
            if source.name in self._tables and is_exact and source.answers(atom, self._asked):
                return source
        return EVENTS

    def _select(self, branch: _Branch, bucket: str, atoms: Sequence[str], *, by_number: bool = False) -> str:
        """The rows of *branch*; atoms of other branches are null in it."""
        source = branch.source
        joins_players = source.needs_players(branch.atoms, self._asked, by_number=by_number)
        rows, values = source.rows(joins_players=joins_players, joins_rates=bool(branch.atoms & {"paid", "earned"}))
        if joins_players or source is INSTALLS:
            self._note("players", branch.span)
        columns = [f"{bucket} AS bucket", *(f"{values.get(name, name)} AS {name}" for name in self._names)]
        for atom in dict.fromkeys(atoms):
            sql, alone = "NULL", "NULL"
            if atom in branch.atoms and self._is_daily and atom in COUNTED_PLAYERS:
                sql, alone = source.daily_atoms(atom, by_number=joins_players)
            elif atom in branch.atoms:
                sql = source.atom(atom, by_number=joins_players)
            columns.append(f"{sql} AS {atom}")
            columns += [f"{alone} AS {atom}_alone"] if self._is_daily and atom in COUNTED_PLAYERS else []
        conditions = [self._inside(source, branch.span)]
        if self._games is not None:
            conditions.append(self._one_of("game_id", self._games))
        if (matters := source.condition(branch.atoms)) is not None:
            conditions.append(matters)
        if self._where is not None:
            conditions += self._conditions(self._where, values)
        return f"SELECT {', '.join(columns)} FROM {rows} WHERE {' AND '.join(conditions)}"  # noqa: S608

    def _inside(self, source: TableSource, span: Interval) -> str:
        """The condition that a row lies in *span*, whose files are noted to be read."""
        self._note(source.table, span)
        place = len(self.parameters)
        first, last = f"from{place}", f"to{place}"
        self.parameters |= {first: _naive(span.start), last: _naive(span.end)}
        if not source.is_by_day:
            return f"ts >= :{first} AND ts < :{last}"
        return f"day >= CAST(:{first} AS DATE) AND day < CAST(:{last} AS DATE)"

    def _note(self, table: str, span: Interval) -> None:
        self._reads[table] = (*self._reads.get(table, ()), span)

    def _conditions(self, node: Filter, values: dict[str, str]) -> list[str]:
        """Return conditions that must all be true.

        Outside of any negation null may stand for false, which is faster: plain comparisons keep an engine from
        reading what cannot match.
        """
        match node:
            case And(members):
                return [condition for member in members for condition in self._conditions(member, values)]
            case Match(dimension, wanted):
                return [self._one_of(values.get(dimension, _name(dimension)), wanted)]
        return [self._condition(node, values)]

    def _one_of(self, value: str, wanted: Sequence[str], *, most_named: int = _MOST_NAMED) -> str:
        """The condition that *value* is one of *wanted*; null where it is null. Up to *most_named* stand one by one."""
        place = len(self.parameters)
        if not wanted:
            return "FALSE"
        if len(wanted) > most_named:
            self.parameters[f"p{place}"] = list(wanted)
            if self._joins_lists and len(wanted) > _MOST_NAMED:  # or each row goes through the list from its start
                return f"{value} IN (SELECT unnest(:p{place}))"
            return f"list_contains(:p{place}, {value})"
        named = {f"p{place + number}": one for number, one in enumerate(wanted)}
        self.parameters |= named
        return f"{value} IN ({', '.join(f':{name}' for name in named)})"

    def _condition(self, node: Filter, values: dict[str, str]) -> str:
        """*node* as a condition that is true or false and never null, so that `not` is plain negation."""
        match node:
            case Match(dimension, wanted):
                is_one = self._one_of(values.get(dimension, _name(dimension)), wanted, most_named=1)
                return f"COALESCE({is_one}, FALSE)"
            case And(members):
                return "(" + " AND ".join(self._condition(member, values) for member in members) + ")"
            case Or(members):
                return "(" + " OR ".join(self._condition(member, values) for member in members) + ")"
            case Not(member):
                return f"(NOT {self._condition(member, values)})"
        raise TypeError(f"no filter: {node!r}")


def _whole_days(interval: Interval) -> Interval | None:
    """The UTC days that lie in *interval* from midnight to midnight; None where there is none."""
    first = bucket_start(interval.start, "day")
    first += timedelta(days=first < interval.start)
    last = bucket_start(interval.end, "day")
    return Interval(first, last) if first < last else None


def _edges(interval: Interval, whole: Interval) -> list[Interval]:
    """What *interval* has beside *whole*: a part of a day before it and one behind it, where there are any."""
    return [span for span in (Interval(interval.start, whole.start), Interval(whole.end, interval.end)) if span]


def _name(dimension: str) -> str:
    """A dimension's column; raises KeyError for anything the catalog does not list."""
    return DIMENSIONS[dimension].name


def _naive(moment: datetime) -> datetime:
    """The lake keeps UTC without a zone."""
    return moment.replace(tzinfo=None)
