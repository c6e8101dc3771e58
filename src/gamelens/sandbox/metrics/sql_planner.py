"""Compiler from a metric query to one SQL statement over the smallest exact tables.

`metric_sql` says what a metric is in SQL, `storage.atoms` what an atom is over the rows of each table. Here are the
tables as sources (dimensions, players, joins), the choice among them, and the statements with their filters.

Names come from the catalog and are written as they are; every value of a request is bound as a parameter. Expressions
are in DuckDB's dialect; `engines.spark_engine` translates whole statements for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from gamelens.catalog import Metric
from gamelens.sandbox.engines.engine import SqlQuery
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL, RETURNING_AFTER, Sum
from gamelens.sandbox.storage.atoms import ATOMS, Join, Read, reads_of, when
from gamelens.sandbox.storage.lake_schema import (
    CUBE_DIMENSIONS,
    EVENT_DIMENSIONS,
    OF_EVENT,
    PLAYER_DIMENSIONS,
    PLAYER_PERIODS,
    RETURN_DIMENSIONS,
    SLIM_DIMENSIONS,
)
from gamelens.wire.filters import And, Filter, Match, Not, Or, comparisons_in, dimensions_in
from gamelens.wire.intervals import GRANULARITIES, Granularity, Interval, bucket_start
from gamelens.wire.queries import Group, MetricQuery


def named(*names: str) -> dict[str, str]:
    """Return columns that are taken as they are."""
    return {name: name for name in names}


class TableRows(msgspec.Struct, frozen=True):
    """Rows that a SELECT reads: what FROM names, the tables in it, and the SQL of a player's key."""

    sql: str
    tables: frozenset[str]
    player: str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the lake that a query may read.

    Attributes:
        dimensions: the dimensions that are its columns.
        values: how it has each dimension; given are those that are not columns.
        is_by_day: whether its rows have a day and no moment.
        player: columns that identify a player: none, a number, or game and user.
        has_moved: whether its rows are one event of each player, and the table beside it replaces some.
        reads: how it has the atoms that it can count in buckets of a period, by period; `all` is any other interval.
    """

    name: str
    dimensions: tuple[str, ...]
    values: dict[str, Read] = {}
    is_by_day: bool = True
    player: tuple[str, ...] = ()
    has_moved: bool = False
    reads: dict[Granularity, dict[str, Read]] = {}

    def __post_init__(self) -> None:
        values = {name: Read(name) for name in self.dimensions} | self.values
        msgspec.structs.force_setattr(self, "values", values)
        reads = {
            period: {
                atom: read for atom, by_period in reads_of(self.name).items() if (read := by_period.within(period))
            }
            for period in GRANULARITIES
        }
        msgspec.structs.force_setattr(self, "reads", reads)

    def numbers_players(self, joins: Collection[Join]) -> bool:
        """Return whether players are numbers in its rows when it has *joins*."""
        return self.player == ("player",) or "installs" in joins

    def rows(self, joins: Collection[Join], *, by_number: bool) -> TableRows:
        """Return its rows with *joins*, and with the numbers of players if *by_number*."""
        tables, sql, key = {self.name}, self.name, self.player
        if self.has_moved:
            tables.add(f"{self.name}_moved")
            sql = nested(_as_now(self.name, _FIRST_EVENT), "first_events")
        if "installs" in joins:
            tables |= {"installs", "installs_moved"}
            installs = _as_now("installs", named(*dict.fromkeys((*key, "player"))) | _INSTALL)
            sql = left_join(sql, nested(installs, "of_install"), *key)
        elif by_number and key != ("player",):
            tables.add("installs")
            numbers = Select(columns=named(*key, "player"), source="installs")
            sql = left_join(sql, nested(numbers, "numbers"), *key)
        if "payments" in joins:
            tables |= {"payments", "payments_moved"}
            sql = left_join(sql, nested(_as_now("payments", named(*key) | _PURCHASE), "of_purchase"), *key)
        if "rates" in joins:
            sql = left_join(sql, "rates", "currency")
        is_numbered = by_number or self.numbers_players(joins)
        return TableRows(sql=sql, tables=frozenset(tables), player="player" if is_numbered else _PLAYER_KEY)


_PLAYER_KEY: Final = when("user_id IS NOT NULL", "ROW(game_id, user_id)")
_FIRST_EVENT: Final = {**named("player", "game_id", "ts"), "day": "CAST(ts AS DATE)", **named(*OF_EVENT)}
_INSTALL: Final = {"install_day": "CAST(ts AS DATE)", "install_seq": "seq", "first_build": "build"}
_PURCHASE: Final = {"paid_at": "ts", "paid_seq": "seq"}


def _as_now(table: str, columns: dict[str, str]) -> str:
    """Return the rows of a table of first events as they are now."""
    moved = f"{table}_moved"
    left = f"player NOT IN ({Select(columns=named('player'), source=moved)})"
    return union_all((Select(columns=columns, source=table, where=(left,)), Select(columns=columns, source=moved)))


_BY_INSTALL: Final = {
    "first_build": Read("first_build", ("installs",)),
    "installed_on": Read("CAST(install_day AS VARCHAR)", ("installs",)),
}
_IS_PAYING: Final = when("ts >= paid_at", "'true'", "'false'")
_IS_CONVERTING: Final = when("day = CAST(paid_at AS DATE)", "'true'", "'false'")
_OF_DAYS: Final = {  # what a player has for a whole day
    **_BY_INSTALL,
    "is_converting": Read(when("player IS NOT NULL", _IS_CONVERTING), ("payments",)),
}

INSTALLS: Final = Table(
    name="installs",
    dimensions=EVENT_DIMENSIONS,
    values={
        "first_build": Read("build"),
        "installed_on": Read("CAST(day AS VARCHAR)"),
        "is_paying": Read(_IS_PAYING, ("payments",)),
        "is_converting": Read(_IS_CONVERTING, ("payments",)),
    },
    is_by_day=False,
    player=("player",),
    has_moved=True,
)
ACTIVE: Final = Table(name="active", dimensions=PLAYER_DIMENSIONS, values=_OF_DAYS, player=("player",))
EVENTS: Final = Table(
    name="events",
    dimensions=EVENT_DIMENSIONS,
    values={
        **_BY_INSTALL,
        "is_paying": Read(when("user_id IS NOT NULL", _IS_PAYING), ("payments",)),
        "is_converting": Read(when("user_id IS NOT NULL", _IS_CONVERTING), ("payments",)),
    },
    is_by_day=False,
    player=("game_id", "user_id"),
)
RETURNS: Final = Table(
    name="returns",
    dimensions=RETURN_DIMENSIONS,
    values={
        "first_build": Read("build"),
        "installed_on": Read("CAST(day - CAST(age AS INTEGER) AS VARCHAR)"),
    },
)
SOURCES: Final = (
    INSTALLS,
    Table(
        name="payments",
        dimensions=EVENT_DIMENSIONS,
        values={**_BY_INSTALL, "is_paying": Read("'true'"), "is_converting": Read("'true'")},
        is_by_day=False,
        player=("player",),
        has_moved=True,
    ),
    Table(name="slim", dimensions=SLIM_DIMENSIONS),
    Table(name="cube", dimensions=CUBE_DIMENSIONS),
    *(Table(name=f"{period}_players", dimensions=PLAYER_DIMENSIONS) for period in reversed(PLAYER_PERIODS)),
    Table(name="sessions", dimensions=PLAYER_DIMENSIONS),
    ACTIVE,
    EVENTS,
)
"""All tables but returns and shared ones, smallest first.

Those of weeks and months answer whole weeks and months only.
"""
SHARED: Final = {
    table.name: table
    for table in (
        *(
            Table(name=f"{period}_players_shared", dimensions=PLAYER_DIMENSIONS, values=_OF_DAYS, player=("player",))
            for period in PLAYER_PERIODS
        ),
        Table(name="sessions_shared", dimensions=PLAYER_DIMENSIONS),
        Table(name="impressions_shared", dimensions=EVENT_DIMENSIONS),
    )
}
"""Tables of the keys that several memberships share, by name."""


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
    metric: Metric,
    query: MetricQuery,
    *,
    games: Sequence[str] | None,
    tables: Collection[str] = TABLES,
    span: Interval | None = None,
) -> SqlQuery:
    """Compile *query* of *metric* over *games*: an empty list reads none, None reads all in the tables.

    The rows have the columns `bucket`, the dimensions and the metric's parts, in the order of Wire 2.10, Row order.
    They come from some of *tables*; events can answer every query and are always allowed. All events lie in *span*,
    None where that is not known.
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
        plan = plan_branches(metric_sql.atoms, scope.dimensions, query.interval, query.granularity, tables, span)
        rows = {"source": scope.event_rows(plan, metric_sql.atoms, query.interval, query.granularity)}
    by = ("bucket", *scope.names)
    parts = dict[str, str]()
    for name, part in metric_sql.parts.items():
        parts[name] = f"COALESCE(SUM({part.atom}), 0)" if isinstance(part, Sum) else f"COUNT(DISTINCT {part.atom})"
        if part.atom in plan.in_cells and not isinstance(part, Sum):
            parts[name] += f" + COALESCE(SUM({_cells(part.atom)}), 0)"
    shown = ["returned"] if metric.kinds == "retention" else list(parts)
    every_group = Select(columns=named(*by) | parts, source="source", by=by)
    rows["grouped"] = Select(
        source=nested(every_group, "every_group"), where=(" OR ".join(f"{part} <> 0" for part in shown),)
    )
    rank = [f"{term} DESC NULLS LAST" for term in metric_sql.sort]
    rank += [f"{name} ASC NULLS LAST" for name in names]
    last = Select(columns=named(*by, *parts), source="grouped", order=("bucket", *rank))
    if isinstance(query.query, Group):
        place = f"row_number() OVER (PARTITION BY bucket ORDER BY {', '.join(rank)})"
        ranked = nested(Select(columns={"*": "*", "place": place}, source="grouped"), "ranked")
        most = scope.parameters.bind(query.query.limit, "limit")
        last = msgspec.structs.replace(last, source=ranked, where=(f"place <= {most}",))
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
    """One SELECT of a statement: rows of one table in one interval, with the atoms and dimensions that they add."""

    table: Table
    interval: Interval
    atoms: dict[str, Read]
    values: dict[str, Read] = {}

    @property
    def joins(self) -> frozenset[Join]:
        """What the table is joined with."""
        return frozenset(join for read in (*self.atoms.values(), *self.values.values()) for join in read.joins)


class SqlPlan(msgspec.Struct, frozen=True):
    """The branches that together answer a query, each with the rows that it reads.

    *in_cells* are the atoms that some branch counts by cells. *reads* has the intervals of each table; one that is only
    joined has none and is read whole.
    """

    branches: list[tuple[Branch, TableRows]]
    in_cells: frozenset[str]
    reads: dict[str, tuple[Interval, ...]]


def plan_of(branches: Iterable[Branch]) -> SqlPlan:
    """Return the plan of *branches*. Players are numbers in all of them if they are in one."""
    counted = [
        (branch, bool(branch.table.player) and any(ATOMS[name].is_player for name in branch.atoms))
        for branch in branches
    ]
    by_number = any(counts and branch.table.numbers_players(branch.joins) for branch, counts in counted)
    placed = [(branch, branch.table.rows(branch.joins, by_number=by_number and counts)) for branch, counts in counted]
    in_cells, reads = set[str](), dict[str, tuple[Interval, ...]]()
    for branch, rows in placed:
        in_cells |= {name for name, read in branch.atoms.items() if read.cells}
        for table in sorted(rows.tables):
            reads[table] = reads.get(table, ()) + ((branch.interval,) if table == branch.table.name else ())
    return SqlPlan(placed, frozenset(in_cells), reads)


def plan_branches(
    atoms: Iterable[str],
    dimensions: Collection[str],
    interval: Interval,
    granularity: Granularity,
    tables: Collection[str] = TABLES,
    span: Interval | None = None,
) -> SqlPlan:
    """Return the smallest tables that have *atoms* and *dimensions* exactly, each with its interval.

    Atoms that need events anyway take the atoms of daily tables with them. Edges of *interval* that are not whole days
    are read from events, whole days outside whole weeks or months from `active`. A day, week or month is whole also
    where *interval* lacks only days outside *span*: the month to date is answered by the month.
    """
    if span is not None:
        interval = interval & span or interval
    period, whole = _counted_in(interval, granularity, span), _whole_buckets(_widened(interval, "day", span), "day")
    usable = [table for table in SOURCES if table.name in tables and table.values.keys() >= set(dimensions)]
    usable = [table for table in usable if whole or not table.is_by_day]
    chosen = {atom: next((table for table in usable if atom in table.reads[period]), EVENTS) for atom in atoms}
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
            of_period = read.period in ("week", "month")
            inside = _whole_buckets(_widened(whole, read.period, span), read.period) if of_period else whole
            if inside:
                add(table, atom, inside)
                if read.cells:
                    add(SHARED[read.shared], atom, inside)
            add(rest, atom, *(_edges(whole, inside) if inside else [whole]))
            add(EVENTS, atom, *_edges(interval, whole))
    return plan_of(places.values())


class _Scope:
    """What every SELECT of a statement has in common: games, filter, dimensions, and the values that it binds."""

    def __init__(self, games: Sequence[str] | None, where: Filter | None, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.dimensions = frozenset(names) | frozenset(dimensions_in(where) if where is not None else ())
        self.parameters = Parameters()
        self._games, self._where = games, where
        self._filters = FilterSql(where, self.parameters)

    def event_rows(self, plan: SqlPlan, atoms: Sequence[str], interval: Interval, granularity: Granularity) -> str:
        """Return the rows of *plan* with their bucket, their dimensions and *atoms*."""
        return union_all(
            self.select(branch, rows, self._bucket_of(branch, interval, granularity), atoms, plan.in_cells)
            for branch, rows in plan.branches
        )

    def _bucket_of(self, branch: Branch, interval: Interval, granularity: Granularity) -> str:
        """Return the bucket of each row of *branch*, as SQL: a constant where all are in one.

        The edges of a period of months are, and truncating a date is a sixth of the time of counting its players.
        """
        if granularity == "all":
            return f"CAST({self.parameters.bind(_naive(interval.start), 'start')} AS TIMESTAMP)"
        inside, last = branch.interval, branch.interval.end - timedelta(microseconds=1)
        if granularity != "day" and (start := bucket_start(inside.start, granularity)) == bucket_start(
            last, granularity
        ):
            return f"CAST({self.parameters.bind(_naive(start))} AS TIMESTAMP)"
        return _BUCKETS[granularity]

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
        only = {read.where for read in branch.atoms.values()}
        if len(only) == 1:  # else rows of other categories add as well
            conditions += filter(None, only)
        if self._where is not None:
            conditions += self._filters.conditions(
                self._where, {name: value.sql for name, value in branch.values.items()}
            )
        return Select(columns=columns, source=rows.sql, where=conditions)

    def inside(self, branch: Branch) -> list[str]:
        """Return the conditions that a row lies in the interval of *branch*."""
        first, last = (self.parameters.bind(_naive(edge)) for edge in (branch.interval.start, branch.interval.end))
        if not branch.table.is_by_day:
            return [f"ts >= {first}", f"ts < {last}"]
        return [f"day >= CAST({first} AS DATE)", f"day < CAST({last} AS DATE)"]


def _cohort_rows(
    scope: _Scope, interval: Interval, since: int, tables: Collection[str]
) -> tuple[SqlPlan, dict[str, str | Select]]:
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
        plan = plan_of((cohort, branch(RETURNS, whole, "returned", scope.dimensions)))
        buckets = (returns, _BUCKETS["day"])
        selects = (
            scope.select(branch, rows, bucket, ("cohort", "returned"))
            for (branch, rows), bucket in zip(plan.branches, buckets, strict=True)
        )
        return plan, {"source": union_all(selects)}
    cohort = branch(INSTALLS, installed, "player_key", scope.dimensions)
    whole = whole if ACTIVE.name in tables else None
    active = [branch(EVENTS, edge, "player_key") for edge in (_edges(interval, whole) if whole else [interval])]
    active += [branch(ACTIVE, whole, "player_key")] if whole else []
    plan = plan_of((cohort, *active))
    (_, cohort_rows), *active_rows = plan.branches
    back = "returned ON returned.returner = cohort.player_key AND returned.returned_on = cohort.bucket"
    return plan, {
        "cohort": scope.select(cohort, cohort_rows, returns, ("player_key",)),
        "present": union_all(
            Select(
                columns={"player_key": rows.player, "moment": _BUCKETS["day"]},
                source=rows.sql,
                where=scope.inside(days),
            )
            for days, rows in active_rows
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


def _counted_in(interval: Interval, granularity: Granularity, span: Interval | None) -> Granularity:
    """Return *granularity*, or a finer one if *interval* is one bucket of that: it needs no other table then."""
    for finer in _PERIODS[: _PERIODS.index(granularity)] if granularity in _PERIODS else _PERIODS:
        if next(interval.buckets(finer), None) == _widened(interval, finer, span):
            return finer if granularity == "all" or finer == "day" else granularity
    return granularity


def _widened(interval: Interval, period: Granularity, span: Interval | None) -> Interval:
    """Return *interval* with the rest of its first and of its last *period*, where *span* has nothing in that rest."""
    if span is None or not interval:
        return interval
    start = bucket_start(interval.start, period) if interval.start <= span.start else interval.start
    last = next(Interval(interval.end - timedelta(microseconds=1), interval.end).buckets(period))
    return Interval(start, last.end if span.end <= interval.end else interval.end)


def _edges(interval: Interval, whole: Interval) -> list[Interval]:
    """Return the parts of *interval* before and after *whole*, without empty ones."""
    before = Interval(interval.start, max(interval.start, whole.start))
    return [edge for edge in (before, Interval(min(whole.end, interval.end), interval.end)) if edge]


def _naive(moment: datetime) -> datetime:
    """Return *moment* without a time zone, as the lake stores UTC."""
    return moment.replace(tzinfo=None)


_MOST_NAMED: Final = 20  # values with a parameter each; longer lists are one parameter
_MOST_JOINED: Final = 16  # such lists; DuckDB takes long to plan a statement with many joins
_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def identifier(name: str) -> str:
    """Return *name*, which is written into statements as it is.

    Raises:
        ValueError: it would need quotes.
    """
    if not _IDENTIFIER.match(name):
        raise ValueError(f"no plain identifier: {name!r}")
    return name


class Parameters:
    """The values that a statement binds, by name."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: Any, name: str | None = None) -> str:
        """Bind *value* and return its placeholder.

        It has the next number, or a *name* that always has this value.
        """
        key = identifier(name or f"p{len(self.values)}")
        self.values[key] = value
        return f"${key}"


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """One SELECT, as text by `str`: all *columns* if none are named.

    The *source* is what FROM names: a table, joined tables, or `nested` rows.
    """

    source: str = ""
    columns: Mapping[str, str] = {}
    where: Sequence[str] = ()
    by: Sequence[str] = ()
    is_distinct: bool = False
    order: Sequence[str] = ()
    limit: int | None = None

    def __str__(self) -> str:
        columns = [sql if sql == name else f"{sql} AS {identifier(name)}" for name, sql in self.columns.items()]
        words = ["SELECT DISTINCT" if self.is_distinct else "SELECT", ", ".join(columns) or "*"]
        words += ["FROM", self.source] if self.source else []
        words += ["WHERE", " AND ".join(self.where)] if self.where else []
        words += ["GROUP BY", ", ".join(map(identifier, self.by))] if self.by else []
        words += ["ORDER BY", ", ".join(self.order)] if self.order else []
        words += ["LIMIT", str(int(self.limit))] if self.limit is not None else []
        return " ".join(words)


def union_all(selects: Iterable[Select]) -> str:
    """Return the rows of all *selects*. There is at least one."""
    return " UNION ALL ".join(map(str, selects))


def nested(rows: Select | str, name: str) -> str:
    """Return *rows* as a source that is called *name*."""
    return f"({rows}) AS {identifier(name)}"


def left_join(source: str, other: str, *keys: str) -> str:
    """Return *source* with the columns of *other*, null where no row has equal *keys*."""
    return f"{source} LEFT JOIN {other} USING ({', '.join(map(identifier, keys))})"


def with_tables(tables: Mapping[str, Select | str], select: Select) -> str:
    """Return the statement *select* over named intermediate *tables*.

    Each table may use those before it.
    """
    return f"WITH {', '.join(f'{identifier(name)} AS ({rows})' for name, rows in tables.items())} {select}"


class FilterSql:
    """Compiler of the filter *where*, which binds values in *parameters*."""

    def __init__(self, where: Filter | None, parameters: Parameters) -> None:
        lists = sum(len(part.values) > _MOST_NAMED for part in comparisons_in(where)) if where is not None else 0
        self._joins_lists = lists <= _MOST_JOINED
        self._parameters = parameters

    def conditions(self, node: Filter, values: Mapping[str, str]) -> list[str]:
        """Return conditions that must all be true.

        *values* has the SQL of each dimension.
        Outside any negation null may stand for false, which is faster: with plain comparisons an engine skips
        row groups that cannot match.
        """
        match node:
            case And(members):
                return [condition for member in members for condition in self.conditions(member, values)]
            case Match(dimension, wanted):
                return [self.one_of(values[dimension], wanted)]
        return [self._condition(node, values)]

    def one_of(self, value: str, wanted: Sequence[str], *, most_named: int = _MOST_NAMED) -> str:
        """Return the condition that *value* is one of *wanted*, which is null for a null value.

        Up to *most_named* values get a parameter each; more are bound as one list.
        """
        if not wanted:
            return "FALSE"
        if len(wanted) <= most_named:
            return f"{value} IN ({', '.join(map(self._parameters.bind, wanted))})"
        values = self._parameters.bind(list(wanted))
        if self._joins_lists and len(wanted) > _MOST_NAMED:  # list_contains scans the list for each row
            return f"{value} IN ({Select(columns={'wanted': f'unnest({values})'})})"
        return f"list_contains({values}, {value})"

    def _condition(self, node: Filter, values: Mapping[str, str]) -> str:
        """Return *node* as a condition that is never null, so that `not` is plain negation."""
        match node:
            case Match(dimension, wanted):
                is_one = self.one_of(values[dimension], wanted, most_named=1)
                return f"COALESCE({is_one}, FALSE)"
            case And(members):
                return f"({' AND '.join(self._condition(member, values) for member in members)})"
            case Or(members):
                return "(" + " OR ".join(self._condition(member, values) for member in members) + ")"
            case Not(member):
                return f"(NOT {self._condition(member, values)})"
        raise TypeError(f"no filter: {node!r}")
