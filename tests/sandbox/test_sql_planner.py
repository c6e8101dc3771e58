"""The planner's choice of tables, which changes no answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest
from sqlglot import parse_one
from sqlglot.expressions import CTE

from gamelens.catalog import DIMENSIONS, METRICS, Metric
from gamelens.sandbox.engines.engine import SqlQuery
from gamelens.sandbox.metrics.sql_planner import EVENTS, TABLES, Branch, compile_dimension_values, compile_query
from gamelens.sandbox.storage.atoms import ATOMS, Read
from gamelens.sandbox.storage.lake_schema import COLUMNS
from gamelens.wire.intervals import Granularity, Interval
from gamelens.wire.queries import MetricQuery, decode_query
from support.hypothesis_profiles import tries
from support.random_worlds import GAMES, POOLS, UNUSED_VALUES, play, random_query
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

WHOLE_DAYS = (
    *("2026-11-01/P20D", "2026-10-20/P31D", "2026-11-20/P1D", "2026-11-16/P1W", "2026-11-01/P1M", "2026-10-05/P30D"),
)
LONG = ("2026-10-01/P60D", "2026-09-28/P60D", "2026-09-20T03:00/2026-11-24T05:00")
"""The last two have all that a random world holds."""


def random_metric_query(random: Random) -> tuple[str, MetricQuery]:
    """Return a random metric and query, half of them over whole days, as most tables need."""
    query = random_query(random, "acme")
    body = dict(query.body)
    if random.random() < 0.5:
        body["interval"] = random.choice(WHOLE_DAYS if query.granularity == "day" else WHOLE_DAYS + LONG)
    return query.metric, decode_query(body, granularity="day" if query.metric == "retention_retro" else None)


def rows(stage: Stage, plan: SqlQuery) -> list[dict[str, Any]]:
    """Return the rows of *plan* from the lake of *stage*."""
    return stage.sandbox.reader.rows(plan, stage.sandbox.lake.snapshot("acme"))


def different(plans: Iterable[SqlQuery]) -> Iterator[SqlQuery]:
    """Yield those of *plans* that are not equal to an earlier one: with most tables alone, events are read."""
    seen: list[tuple[object, ...]] = []
    for plan in plans:
        identity = plan.sql, plan.parameters, plan.reads
        if identity not in seen:
            seen.append(identity)
            yield plan


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox with a random world."""
    stage = Stage(tmp_path_factory.mktemp("played") / "state")
    play(stage, Random(7))
    yield stage
    stage.sandbox.close()


@pytest.fixture(params=["processed", "reference"])
def make_any_stage(
    request: pytest.FixtureRequest, make_stage: Callable[..., Stage], make_reference_stage: Callable[..., Stage]
) -> Callable[[int], Stage]:
    """Return a function from a seed to a sandbox whose lake is processed, or cut into parts at random."""
    return lambda seed: make_stage() if request.param == "processed" else make_reference_stage(seed=seed)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("seed", range(tries(in_test=1, in_bench=10)))
def test_every_table_that_can_answer_gives_the_same_answer(make_any_stage: Callable[[int], Stage], seed: int) -> None:
    """A query gives the rows of the events, whatever tables the planner may use."""
    random, stage = Random(1000 + seed), make_any_stage(seed)
    play(stage, random)
    compared = 0
    for _ in range(queries := tries(in_test=6, in_bench=500)):
        metric, query = random_metric_query(random)
        plans = [
            compile_query(METRICS[metric], query, games=GAMES["acme"], tables=tables)
            for tables in ((), *((name,) for name in TABLES), TABLES)
        ]
        plans.append(compile_query(METRICS[metric], query, games=None))
        span = stage.sandbox.lake.snapshot("acme").span()
        plans += (compile_query(METRICS[metric], query, games=GAMES["acme"], span=span),)
        first, *others = different(plans)
        expected = rows(stage, first)
        for plan in others:
            assert rows(stage, plan) == expected, (metric, query, plan.reads.keys())
            compared += 1
    assert compared > queries


def test_random_worlds_have_values_of_every_dimension() -> None:
    """A dimension that no event of a random world has is not tested by it."""
    assert POOLS.keys() == DIMENSIONS.keys()


def test_every_table_answers_some_query() -> None:
    """No table is kept that no query reads, but those that processing needs."""
    random, used, wanted = Random(5), set[str](), COLUMNS.keys() - {"combinations", "stated_installs"}
    for _ in range(3000):
        metric, query = random_metric_query(random)
        used |= compile_query(METRICS[metric], query, games=None).reads.keys()
        if used >= wanted:
            break
    assert used == wanted


@pytest.mark.wide
def test_every_table_lists_the_same_values(played: Stage) -> None:
    """The values of a dimension are the same from every table (Wire 2.11, Lists)."""
    random = Random(8)
    for dimension in POOLS:
        for _ in range(tries(in_test=1, in_bench=4)):
            _, query = random_metric_query(random)
            plans = [
                compile_dimension_values(dimension, query.interval, games=GAMES["acme"], limit=100, tables=tables)
                for tables in ((), *((name,) for name in TABLES), TABLES)
            ]
            plans.append(compile_dimension_values(dimension, query.interval, games=None, limit=100))
            first, *others = [rows(played, plan) for plan in different(plans)]
            assert all(other == first for other in others), (dimension, query)


def test_long_and_short_value_lists_mean_the_same(played: Stage) -> None:
    """Filters of equal meaning give equal rows, with few long or many short lists.

    Wire 2.7, Filters.
    """
    body = {"interval": "2026-10-01/P60D", "granularity": "all", "query": {"type": "group", "dimension": "build"}}
    for condition in ({"platform": "ios"}, {"not": {"platform": "ios"}}):
        results = set()
        filters: list[dict[str, Any]] = [condition]
        for repetitions in (1, 16, 17):
            for unused in (0, 1, 19, 20, 100):
                longer = {"platform": ["ios", *UNUSED_VALUES[:unused]]}
                combined = {"and": [{"not": longer} if "not" in condition else {"or": [longer]}] * repetitions}
                filters.append({"or": [combined]} if unused % 2 else combined)
        for filter_ in filters:
            query = decode_query(body | {"filter": filter_})
            plan = compile_query(METRICS["user_unique"], query, games=GAMES["acme"])
            results.add(str(rows(played, plan)))
        assert len(results) == 1
        assert "user_unique" in results.pop()


def test_a_longer_list_makes_no_longer_statement() -> None:
    """A list of 30,000 values makes the statement of a list of 21, as a parameter.

    Wire 2.7, Filters.
    """
    body = {"interval": "2026-10-01/P60D", "granularity": "all", "query": {"type": "timeseries"}}
    values = [str(number) for number in range(30_000)]
    texts = set()
    for some_values in (values[:21], values):
        query = decode_query(body | {"filter": {"not": {"country_code": some_values}}})
        plan = compile_query(METRICS["event_count"], query, games=None)
        texts.add(plan.sql)
        assert some_values in plan.parameters.values()
    assert len(texts) == 1


OF_CATEGORY = {
    "ad_impressions_count": "ads",
    "arppu": "business",
    "converting_users": "business",
    "ilrd_id_unique": "impression",
    "ilrd_revenue": "impression",
    "paying_users": "business",
    "revenue": "business",
    "session_length": "session_end",
}
"""Metrics that only events of one category add to. What is added to the catalog says it in its atoms."""


@pytest.mark.parametrize("metric", sorted(METRICS.keys() - {"retention_retro"}))
def test_a_metric_of_one_category_skips_the_rows_of_others(metric: str) -> None:
    """Events are filtered by the only category that adds to a metric, so that an engine skips row groups."""
    body = {"interval": "2026-11-01/P5D", "granularity": "day", "query": {"type": "timeseries"}}
    plan = compile_query(METRICS[metric], decode_query(body), games=None, tables=())
    (source,) = [part.this for part in parse_one(plan.sql, read="duckdb").find_all(CTE) if part.alias == "source"]
    conditions = re.findall(r"category = '(\w+)'", source.args["where"].sql())
    category = OF_CATEGORY.get(metric, category_of(METRICS[metric]))
    assert conditions == ([category] if category else [])


def category_of(metric: Metric) -> str | None:
    """Return the only category of what *metric* sums or counts; None for several, and for what is made of metrics."""
    if metric.recipe not in ("sum", "distinct", "money"):
        return None
    categories = {ATOMS[name].category for name in metric.made_of}
    return categories.pop() if len(categories) == 1 else None


def test_rows_of_one_bucket_have_a_constant() -> None:
    """The edges of months, which are read day by day, truncate no dates; what may lie in two buckets does."""
    by_country = {"type": "group", "dimension": "country_code"}
    body = {"query": by_country, "interval": "2026-09-20/2026-11-20"}
    months = compile_query(METRICS["user_unique"], decode_query(body, granularity="month"), games=["1001"])
    assert {"active", "monthly_players"} <= set(months.reads)
    assert months.sql.count("date_trunc('month', day)") == 0  # October is the only whole month
    body["interval"] = "2026-08-20/2026-11-20"
    months = compile_query(METRICS["user_unique"], decode_query(body, granularity="month"), games=["1001"])
    assert months.sql.count("date_trunc('month', day)") == 2  # of whole months, and those who are in several cells


INSTALLS = {"installs", "installs_moved"}
PAYMENTS = {"payments", "payments_moved"}
DAILY = {"daily_players", "daily_players_shared"}
WEEKLY = {"weekly_players", "weekly_players_shared"}
MONTHLY = {"monthly_players", "monthly_players_shared"}
SESSIONS = {"sessions", "sessions_shared"}
SPAN = Interval.parse("2026-09-20/2026-11-20")


@pytest.mark.parametrize(
    ("granularity", "interval", "tables"),
    [
        ("month", "2026-09-20/2026-11-20", MONTHLY),  # what the lake has lies inside
        ("month", "2026-09-19T07:00/2026-11-20T07:00", MONTHLY),
        ("month", "2026-09-21/2026-11-20", MONTHLY | {"active"}),
        ("month", "2026-09-20/2026-11-19", MONTHLY | {"active"}),
        ("month", "2026-09-20/2026-11-19T23:00", MONTHLY | {"active", "events", "installs"}),
        ("week", "2026-11-09/2026-11-20", WEEKLY),
        ("week", "2026-11-10/2026-11-20", WEEKLY | {"active"}),
        ("all", "2026-11-01/2026-11-20", MONTHLY),  # the month to date
        ("all", "2026-11-16/2026-11-20", WEEKLY),
        ("all", "2026-11-02/2026-11-20", {"active"}),
        ("all", "2026-11-19/2026-11-20T07:00", DAILY),
        ("month", "2026-11-25/2026-11-28", {"active"}),  # no event lies there
    ],
)
def test_a_month_is_whole_where_it_lacks_only_days_without_events(
    granularity: Granularity, interval: str, tables: set[str]
) -> None:
    """The first and the last month of a lake are read from months, as those between them are."""
    body = {"interval": interval, "query": {"type": "timeseries"}}
    query = decode_query(body, granularity=granularity)
    plan = compile_query(METRICS["user_unique"], query, games=["1001"], span=SPAN)
    assert plan.reads.keys() == tables
    assert compile_query(METRICS["user_unique"], query, games=["1001"]).reads.keys() >= {"active"}


def test_a_table_is_joined_with_what_is_declared_and_nothing_else() -> None:
    """An atom that reads `install_publisher`, a column of events, joins no installs."""
    moment = Interval.parse("2026-11-01/P1D")
    publisher = Branch(EVENTS, moment, {"publisher": Read("install_publisher")})
    assert EVENTS.rows(publisher.joins, by_number=False).tables == {"events"}
    installed = Branch(EVENTS, moment, {"publisher": Read("install_day", ("installs",))})
    assert EVENTS.rows(installed.joins, by_number=False).tables == {"events"} | INSTALLS


BY_DAY = {"granularity": "day"}
BY_WEEK = {"granularity": "week", "interval": "2026-11-02/P14D"}
BY_MONTH = {"granularity": "month", "interval": "2026-10-01/P2M"}


@pytest.mark.parametrize(
    ("metric", "change", "tables"),
    [
        ("event_count", {}, {"slim"}),
        ("event_count", {"filter": {"ad_type": "banner"}}, {"cube"}),
        ("event_count", {"filter": {"ab_id": "exp1"}}, {"daily_players"}),
        ("event_count", {"filter": {"first_build": "1.0"}}, {"active"} | INSTALLS),
        ("event_count", {"filter": {"is_paying": "true"}}, {"events"} | PAYMENTS),
        ("event_count", {"interval": "2026-11-01T01:00/P5D"}, {"slim", "events"}),
        ("event_count", {"interval": "2026-11-01T01:00/PT20H"}, {"events"}),
        ("revenue", {}, {"slim"}),
        ("revenue", {"filter": {"is_converting": "true"}}, {"active"} | PAYMENTS),
        ("ilrd_revenue", {"filter": {"ilrd_network_name": "NetA"}}, {"cube"}),
        ("user_unique", {}, {"active"}),
        ("user_unique", BY_DAY, DAILY),
        ("user_unique", BY_DAY | {"filter": {"first_build": "1.0"}}, {"active", "daily_players_shared"} | INSTALLS),
        ("user_unique", BY_DAY | {"interval": "2026-11-01T01:00/P5D"}, DAILY | {"events", "installs"}),
        ("user_unique", BY_WEEK, WEEKLY),
        ("user_unique", BY_WEEK | {"interval": "2026-11-01/P14D"}, WEEKLY | {"active"}),
        ("user_unique", BY_WEEK | {"interval": "2026-11-03/P5D"}, {"active"}),
        ("user_unique", BY_WEEK | {"filter": {"first_build": "1.0"}}, {"active"} | INSTALLS),
        ("user_unique", BY_MONTH, MONTHLY),
        ("user_unique", BY_MONTH | {"interval": "2026-10-01T01:00/P2M"}, MONTHLY | {"active", "events", "installs"}),
        ("user_unique", {"interval": "2026-11-01/P1D"}, DAILY),
        ("user_unique", {"interval": "2026-11-02/P7D"}, WEEKLY),
        ("user_unique", {"interval": "2026-11-01/P1M"}, MONTHLY),
        ("user_unique", {"filter": {"category": "ads"}}, {"events"}),
        ("paying_users", BY_DAY, DAILY),
        ("arpu", {}, {"slim", "active"}),
        ("arpu", BY_DAY, {"slim"} | DAILY),
        ("returning_users", BY_DAY, DAILY),
        ("returning_users", {}, {"active"} | INSTALLS),
        ("returning_users", BY_DAY | {"since_days_ago": 7}, {"active", "daily_players_shared"} | INSTALLS),
        ("new_users", {"interval": "2026-11-01T01:00/PT20H", "filter": {"category": "ads"}}, INSTALLS),
        ("new_users", {"filter": {"is_paying": "true"}}, INSTALLS | PAYMENTS),
        ("converting_users", {"filter": {"is_paying": "true"}}, PAYMENTS),
        ("converting_users", {"filter": {"first_build": "1.0"}}, INSTALLS | PAYMENTS),
        ("session_unique", {}, SESSIONS),
        ("session_unique", {"interval": "2026-11-01T01:00/P5D"}, SESSIONS | {"events"}),
        ("session_length", {}, {"slim"} | SESSIONS),
        ("session_unique", {"filter": {"first_build": "1.0"}}, {"events"} | INSTALLS),
        ("ilrd_id_unique", {}, {"slim", "impressions_shared"}),
        ("ilrd_id_unique", {"filter": {"ilrd_network_name": "NetA"}}, {"cube", "impressions_shared"}),
        ("ilrd_id_unique", {"filter": {"ab_id": "exp1"}}, {"daily_players", "impressions_shared"}),
        ("ilrd_id_unique", {"filter": {"and": [{"ab_id": "exp1"}, {"ad_type": "banner"}]}}, {"events"}),
    ],
)
def test_the_smallest_table_is_read(metric: str, change: dict[str, Any], tables: set[str]) -> None:
    """The planner reads the smallest tables that can answer exactly."""
    body: dict[str, Any] = {
        "interval": "2026-11-01/P5D",
        "granularity": "all",
        "query": {"type": "timeseries"},
    } | change
    plan = compile_query(METRICS[metric], decode_query(body), games=["1001"])
    assert plan.reads.keys() == tables
