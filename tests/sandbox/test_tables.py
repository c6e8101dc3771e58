"""architecture: the planner picks the smallest table that can answer exactly, and its choice changes no answer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from conftest import Stage
from gamelens.catalog import METRICS
from gamelens.sandbox.engines.sql_query import SqlQuery
from gamelens.sandbox.metrics.sql_planner import TABLES, compile_dimension_values, compile_query
from gamelens.wire.queries import MetricQuery, decode_query
from support.random_worlds import GAMES, NOWHERE, POOLS, ask, play

pytestmark = pytest.mark.slow

WHOLE_DAYS = ("2026-11-01/P20D", "2026-10-20/P31D", "2026-11-20/P1D", "2026-10-01/P60D")


def question(random: Random) -> tuple[str, MetricQuery]:
    """A random question; half of them about whole days, which most tables need."""
    asked = ask(random, "acme")
    body = dict(asked.body)
    if random.random() < 0.5:
        body["interval"] = random.choice(WHOLE_DAYS[: 3 if asked.granularity == "day" else 4])
    return asked.metric, decode_query(body, granularity="day" if asked.metric == "retention_retro" else None)


def rows(stage: Stage, plan: SqlQuery) -> list[dict[str, Any]]:
    return stage.sandbox.reader.rows(plan, stage.sandbox.lake.snapshot("acme"))


@pytest.mark.parametrize("seed", range(4))
def test_every_table_that_can_answer_gives_the_same_answer(make_stage: Callable[..., Stage], seed: int) -> None:
    """Each table is allowed alone beside the events, which are always allowed."""
    random, stage = Random(1000 + seed), make_stage()
    play(stage, random)
    used: set[str] = set()
    for _ in range(150):
        metric, query = question(random)
        truth = rows(stage, compile_query(METRICS[metric], query, games=GAMES["acme"], tables=()))
        for tables in (*((name,) for name in TABLES), TABLES):
            plan = compile_query(METRICS[metric], query, games=GAMES["acme"], tables=tables)
            used |= plan.reads.keys()
            assert rows(stage, plan) == truth, (metric, query, tables)
        assert rows(stage, compile_query(METRICS[metric], query, games=None)) == truth, (metric, query)
    assert used == {"events", "players", "slim", "cube", "active", "sessions", "returns"}


def test_every_table_lists_the_same_values(make_stage: Callable[..., Stage]) -> None:
    """design/metrics, GET lists."""
    random, stage = Random(7), make_stage()
    play(stage, random)
    for dimension in POOLS:
        for _ in range(4):
            _, query = question(random)
            plans = [
                compile_dimension_values(dimension, query.interval, games=GAMES["acme"], limit=100, tables=tables)
                for tables in ((), *((name,) for name in TABLES), TABLES)
            ]
            plans.append(compile_dimension_values(dimension, query.interval, games=None, limit=100))
            first, *others = [rows(stage, plan) for plan in plans]
            assert all(other == first for other in others), (dimension, query)


def test_lists_mean_the_same_however_many_and_however_long(make_stage: Callable[..., Stage]) -> None:
    """Few long lists are joined, many are gone through: a choice of speed."""
    random, stage = Random(11), make_stage()
    play(stage, random)
    asked = {"interval": "2026-10-01/P60D", "granularity": "all", "query": {"type": "group", "dimension": "build"}}
    for one in ({"platform": "ios"}, {"not": {"platform": "ios"}}):
        found = set()
        for number in (1, 16, 17):
            for nowhere in (0, 1, 19, 20, 100):
                some = {"platform": ["ios", *NOWHERE[:nowhere]]}
                several = {"and": [{"not": some} if "not" in one else {"or": [some]}] * number}
                for where in (one, several, {"or": [several]}):
                    query = decode_query(asked | {"filter": where})
                    plan = compile_query(METRICS["user_unique"], query, games=GAMES["acme"])
                    found.add(str(rows(stage, plan)))
        assert len(found) == 1
        assert "user_unique" in found.pop()


def test_a_longer_list_makes_no_longer_statement() -> None:
    """The sandbox package, Our choices: 30,000 values in one list are allowed, so they must cost little to plan."""
    asked = {"interval": "2026-10-01/P60D", "granularity": "all", "query": {"type": "timeseries"}}
    values = [str(number) for number in range(30_000)]
    texts = set()
    for some in (values[:21], values):
        query = decode_query(asked | {"filter": {"not": {"country_code": some}}})
        plan = compile_query(METRICS["event_count"], query, games=None)
        texts.add(plan.statement.text)
        assert some in plan.parameters.values()
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("metric", "body", "read"),
    [
        ("event_count", {}, {"slim"}),
        ("event_count", {"filter": {"ad_type": "banner"}}, {"cube"}),
        ("event_count", {"filter": {"ab_id": "exp1"}}, {"active"}),
        ("event_count", {"filter": {"is_paying": "true"}}, {"events", "players"}),
        ("event_count", {"interval": "2026-11-01T01:00/P5D"}, {"slim", "events"}),
        ("event_count", {"interval": "2026-11-01T01:00/PT20H"}, {"events"}),
        ("revenue", {}, {"slim"}),
        ("ilrd_revenue", {"filter": {"ilrd_network_name": "NetA"}}, {"cube"}),
        ("user_unique", {}, {"active"}),
        ("user_unique", {"filter": {"category": "ads"}}, {"events"}),
        ("arpu", {}, {"slim", "active"}),
        ("new_users", {"interval": "2026-11-01T01:00/PT20H", "filter": {"category": "ads"}}, {"players"}),
        ("converting_users", {"filter": {"is_paying": "true"}}, {"players"}),
        ("session_unique", {}, {"sessions"}),
        ("session_length", {}, {"slim", "sessions"}),
        ("session_unique", {"filter": {"first_build": "1.0"}}, {"events", "players"}),
        ("ilrd_id_unique", {}, {"events"}),
    ],
)
def test_the_smallest_table_is_read(metric: str, body: dict[str, Any], read: set[str]) -> None:
    """architecture, A question."""
    asked: dict[str, Any] = {"interval": "2026-11-01/P7D", "granularity": "all", "query": {"type": "timeseries"}} | body
    plan = compile_query(METRICS[metric], decode_query(asked), games=["1001"])
    assert plan.reads.keys() == read
