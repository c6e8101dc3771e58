"""One statement for one question: what each metric is in SQL, over the events and players of one organisation.

Names come from the catalog, values are always bound. Statements answer integers, the *parts* of a metric; means, ratios
and money are made from them at the edge, so that every engine gives the same digits. To add a metric: one row in the
catalog, one `Expression` here, one test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import msgspec
from sqlglot import exp, parse_one, select

from gamelens.catalog import DIMENSIONS, Metric
from gamelens.sandbox.impressions import NANO
from gamelens.wire.currencies import RATE_SCALE
from gamelens.wire.filters import And, Filter, Match, Not, Or, dimensions_of
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery
from gamelens.wire.results import Row

Parts = dict[str, int]

_HUNDREDTHS: Final = 100 * RATE_SCALE  # of a purchase
_NANOS: Final = NANO * RATE_SCALE  # of an impression


class Plan(msgspec.Struct, frozen=True):
    """A statement, its bound values, and the spans of event time whose days it reads."""

    statement: exp.Query
    parameters: dict[str, Any]
    spans: tuple[Interval, ...]


class Expression(msgspec.Struct, frozen=True):
    """A metric in SQL: its integer *parts*, what orders its rows (terms, highest first), the fields made from parts."""

    parts: dict[str, str]
    sort: tuple[str, ...]
    row: Callable[[Parts], Row]
    needs_rates: bool = False
    needs_players: bool = False


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def _counted(name: str, sql: str, *, needs_players: bool = False) -> Expression:
    return Expression({name: sql}, (name,), lambda parts: {name: parts[name]}, needs_players=needs_players)


def _quotient(numerator: str, denominator: str) -> tuple[str, ...]:
    """What orders by a quotient exactly: as one float, large sums that differ in the last cent would be ties."""
    return f"{numerator} // NULLIF({denominator}, 0)", f"({numerator} % NULLIF({denominator}, 0)) / {denominator}"


def _share(name: str, of: str, by: str) -> Expression:
    """A ratio of two counted metrics."""
    parts = {**_EXPRESSIONS[of].parts, **_EXPRESSIONS[by].parts}
    return Expression(
        parts,
        _quotient(of, by),
        lambda row: {name: _ratio(row[of], row[by]), of: row[of], by: row[by]},
        needs_players=_EXPRESSIONS[of].needs_players or _EXPRESSIONS[by].needs_players,
    )


def _money(category: str, scale: int) -> Expression:
    """Money of one category; `usd` is in US dollars times *scale*."""
    of_category = f"FILTER (WHERE category = '{category}')"
    return Expression(
        {
            "event_count": f"COUNT(*) {of_category}",
            "usd": f"COALESCE(SUM(CAST(money AS HUGEINT) * scaled) {of_category}, 0)",
        },
        ("usd",),
        lambda parts: {
            "event_count": parts["event_count"],
            "mean": _ratio(parts["usd"], scale * parts["event_count"]),
            "sum": parts["usd"] / scale,
            "sum_cents": 100 * parts["usd"] / scale,
        },
        needs_rates=True,
    )


def _revenue_per(name: str, players: str) -> Expression:
    parts = {"usd": _EXPRESSIONS["revenue"].parts["usd"], **_EXPRESSIONS[players].parts}
    return Expression(
        parts,
        _quotient("usd", players),
        lambda row: {
            name: _ratio(row["usd"], _HUNDREDTHS * row[players]),
            players: row[players],
            "total_revenue": round(Fraction(row["usd"], RATE_SCALE)),  # half to even, once
        },
        needs_rates=True,
    )


_EXPRESSIONS: dict[str, Expression] = {
    "event_count": _counted("event_count", "COUNT(*)"),
    "user_unique": _counted("user_unique", "COUNT(DISTINCT player)"),
    "session_unique": _counted("session_unique", "COUNT(DISTINCT session)"),
    "new_users": _counted("new_users", "COUNT(*) FILTER (WHERE seq = install_seq)", needs_players=True),
    "converting_users": _counted("converting_users", "COUNT(*) FILTER (WHERE seq = paid_seq)", needs_players=True),
    "paying_users": _counted("paying_users", "COUNT(DISTINCT player) FILTER (WHERE category = 'business')"),
    "ad_impressions_count": _counted(
        "ad_impressions_count", "COUNT(*) FILTER (WHERE category = 'ads' AND ad_action = 'show')"
    ),
    "ilrd_id_unique": _counted("ilrd_id_unique", "COUNT(DISTINCT impression) FILTER (WHERE category = 'impression')"),
    "returning_users": _counted(
        "returning_users",
        "COUNT(DISTINCT player) FILTER (WHERE date_diff('day', install_day, day) BETWEEN :nearest AND :farthest)",
        needs_players=True,
    ),
    "revenue": _money("business", _HUNDREDTHS),
    "ilrd_revenue": _money("impression", _NANOS),
    "session_length": Expression(
        {
            "total_session_length": "COALESCE(SUM(length) FILTER (WHERE category = 'session_end'), 0)",
            "ended": "COUNT(*) FILTER (WHERE category = 'session_end')",
            "session_unique": "COUNT(DISTINCT session) FILTER (WHERE category = 'session_end')",
        },
        _quotient("total_session_length", "ended"),
        lambda parts: {
            "session_length": _ratio(parts["total_session_length"], parts["ended"]),
            "session_unique": parts["session_unique"],
            "total_session_length": parts["total_session_length"],
        },
    ),
}
_EXPRESSIONS |= {
    "installs_ratio": _share("installs_ratio", "new_users", "user_unique"),
    "conversion": _share("conversion", "paying_users", "user_unique"),
    "conversion_ft": _share("conversion_ft", "converting_users", "user_unique"),
    "ad_impressions_per_session": _share("ad_impressions_per_session", "ad_impressions_count", "session_unique"),
    "arpu": _revenue_per("arpu", "user_unique"),
    "arppu": _revenue_per("arppu", "paying_users"),
    "retention_retro": Expression(
        {"installed": "COUNT(*)", "returned": "COUNT(returned_on)"},
        _quotient("returned", "installed"),
        lambda parts: {"retention": parts["returned"] / parts["installed"]},
        needs_players=True,
    ),
}

_PLAYER_VALUES: Final = {
    "installed_on": "CAST(install_day AS VARCHAR)",
    "is_paying": "CASE WHEN user_id IS NOT NULL THEN CASE WHEN ts >= paid_at THEN 'true' ELSE 'false' END END",
    "is_converting": "CASE WHEN user_id IS NOT NULL THEN "
    "CASE WHEN day = CAST(paid_at AS DATE) THEN 'true' ELSE 'false' END END",
}
_IDENTITIES: Final = {
    "player": "CASE WHEN user_id IS NOT NULL THEN ROW(game_id, user_id) END",
    "session": "CASE WHEN session_id IS NOT NULL THEN ROW(game_id, session_id) END",
    # The prefixes keep a vendor's id, an event_uuid and a bare event from being taken for one another.
    "impression": "ROW(game_id, COALESCE('i' || ilrd_id, 'u' || event_uuid, 's' || seq))",
}
_FOREVER_DAYS: Final = 10**9


def row_of(metric: Metric, parts: Parts) -> Row:
    """The metric's row fields from the integers a statement answered; no parts at all is a bucket of nothing."""
    expression = _EXPRESSIONS[metric.name]
    return expression.row({name: int(parts.get(name) or 0) for name in expression.parts})


def plan_query(metric: Metric, query: MetricQuery, *, games: Sequence[str]) -> Plan:
    """The statement for *query* of *metric* over *games*: columns `bucket`, the dimensions, the metric's parts."""
    expression = _EXPRESSIONS[metric.name]
    dimensions = query.dimensions
    if query.split_by is not None and query.split_by != "game_id":
        dimensions = (query.split_by, "game_id")
    source, parameters, spans = (_cohorts if metric.kinds == "retention" else _occurrences)(query, games, expression)
    grouped = select(
        "bucket",
        *map(_name, dimensions),
        *(f"{sql} AS {part}" for part, sql in expression.parts.items()),
        dialect="duckdb",
    )
    grouped = grouped.from_("source", copy=False).group_by("bucket", *map(_name, dimensions), copy=False)
    shown = ["returned"] if metric.kinds == "retention" else list(expression.parts)
    grouped = grouped.having(" OR ".join(f"{part} <> 0" for part in shown)) if dimensions else grouped
    rank = [f"{term} DESC NULLS LAST" for term in expression.sort]
    rank += [f"{_name(name)} ASC NULLS LAST" for name in dimensions]
    statement = select("*").from_("grouped").order_by("bucket", *rank, dialect="duckdb")
    if isinstance(query.query, Group):
        place = f"row_number() OVER (PARTITION BY bucket ORDER BY {', '.join(rank)})"
        statement.set("qualify", exp.Qualify(this=_sql(f"{place} <= :limit")))
        parameters["limit"] = query.query.limit
    statement = statement.with_("source", as_=source, copy=False).with_("grouped", as_=grouped, copy=False)
    return Plan(statement, parameters, spans)


def plan_values(dimension: str, interval: Interval, *, games: Sequence[str], limit: int) -> Plan:
    """The first *limit* values of *dimension* in *interval*, ascending, null left out; one column, `value`."""
    parameters: dict[str, Any] = {}
    source = _scoped(interval, games, None, parameters, players=DIMENSIONS[dimension].level == "player", rates=False)
    statement = select(f"{_name(dimension)} AS value").distinct().from_("source")
    statement = statement.where(f"{_name(dimension)} IS NOT NULL").order_by("value").limit(limit)
    return Plan(statement.with_("source", as_=source), parameters, (interval,))


def _occurrences(
    query: MetricQuery, games: Sequence[str], expression: Expression
) -> tuple[exp.Select, dict[str, Any], tuple[Interval, ...]]:
    """The events of the interval, each with its bucket."""
    parameters: dict[str, Any] = {}
    source = _scoped(
        query.interval,
        games,
        query.filter,
        parameters,
        players=expression.needs_players or _reads_players(query),
        rates=expression.needs_rates,
    )
    if any(":nearest" in sql for sql in expression.parts.values()):
        parameters["nearest"] = min(query.since_days_ago or 1, _FOREVER_DAYS)
        parameters["farthest"] = min(query.since_days_ago or _FOREVER_DAYS, _FOREVER_DAYS)
    bucket = {
        "day": "CAST(day AS TIMESTAMP)",
        "week": "CAST(date_trunc('week', ts) AS TIMESTAMP)",
        "month": "CAST(date_trunc('month', ts) AS TIMESTAMP)",
        "all": "CAST(:start AS TIMESTAMP)",
    }[query.granularity]
    return source.select(_sql(bucket).as_("bucket"), copy=False), parameters, (query.interval,)


def _cohorts(
    query: MetricQuery, games: Sequence[str], expression: Expression
) -> tuple[exp.Select, dict[str, Any], tuple[Interval, ...]]:
    """The installs N days before each day of the interval, each with the day it returned on, if it did."""
    days = list(query.interval.buckets("day"))
    since = query.since_days_ago or 0
    try:
        installed = Interval(days[0].start - timedelta(days=since), days[-1].end - timedelta(days=since))
    except OverflowError:  # before the calendar began nobody installed anything
        since, installed = 0, Interval(days[0].start, days[0].start)
    parameters: dict[str, Any] = {
        "active_from": _naive(query.interval.start),
        "active_to": _naive(query.interval.end),
        "since": since,
    }
    installs = _scoped(installed, games, query.filter, parameters, players=expression.needs_players, rates=False)
    installs = installs.where("seq = install_seq")
    active = (
        select("game_id", "user_id", _sql("day AS returned_on"))
        .distinct()
        .from_("events")
        .where(_sql("ts >= :active_from AND ts < :active_to"))
    )
    source = (
        select("installs.*", "returned_on", _sql("CAST(installs.day + CAST(:since AS INTEGER) AS TIMESTAMP) AS bucket"))
        .from_(installs.subquery("installs"))
        .join(
            active.subquery("active"),
            on=_sql(
                "active.game_id = installs.game_id AND active.user_id = installs.user_id "
                "AND active.returned_on = installs.day + CAST(:since AS INTEGER)"
            ),
            join_type="left",
        )
    )
    return source, parameters, (installed, query.interval)


def _scoped(
    interval: Interval,
    games: Sequence[str],
    where: Filter | None,
    parameters: dict[str, Any],
    *,
    players: bool,
    rates: bool,
) -> exp.Select:
    """The events of *games* in *interval* that meet *where*, with what is derived for each; binds its values."""
    parameters |= {"start": _naive(interval.start), "end": _naive(interval.end), "games": list(games)}
    columns = ["events.*", *(f"{sql} AS {name}" for name, sql in _IDENTITIES.items())]
    joined = {}
    if players:
        columns += ["install_seq", "install_day", "first_build", "paid_at", "paid_seq"]
        columns += [f"{sql} AS {name}" for name, sql in _PLAYER_VALUES.items()]
        joined["players"] = ["game_id", "user_id"]
    if rates:
        columns.append("scaled")
        joined["rates"] = ["currency"]
    scoped = select(*columns, dialect="duckdb").from_("events", copy=False)
    for table, using in joined.items():
        scoped.join(table, using=[*using], join_type="left", copy=False)
    scoped.where(_sql("ts >= :start AND ts < :end AND list_contains(:games, game_id)"), copy=False)
    return scoped.where(_condition(where, parameters), copy=False) if where is not None else scoped


def _condition(node: Filter, parameters: dict[str, Any]) -> exp.Expr:
    """*node* as a condition that is true or false and never null, so that `not` is plain negation."""
    match node:
        case Match(dimension, values):
            name = f"p{len(parameters)}"
            parameters[name] = list(values)
            value = _PLAYER_VALUES.get(dimension, _name(dimension))
            return _sql(f"COALESCE(list_contains(:{name}, {value}), FALSE)")
        case And(members):
            return exp.and_(*(_condition(member, parameters) for member in members))
        case Or(members):
            return exp.or_(*(_condition(member, parameters) for member in members))
        case Not(member):
            return exp.not_(_condition(member, parameters))
    raise TypeError(f"no filter: {node!r}")


def _reads_players(query: MetricQuery) -> bool:
    names = {*query.dimensions, *(dimensions_of(query.filter) if query.filter is not None else ())}
    return any(DIMENSIONS[name].level == "player" for name in names)


def _sql(text: str) -> exp.Expr:
    return parse_one(text, dialect="duckdb")


def _name(dimension: str) -> str:
    """A dimension's column; raises KeyError for anything the catalog does not list."""
    return DIMENSIONS[dimension].name


def _naive(moment: datetime) -> datetime:
    """The lake keeps UTC without a zone."""
    return moment.replace(tzinfo=None)
