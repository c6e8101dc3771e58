"""architecture: scoped to the caller's organisation at the bottom, by what its tables hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from conftest import Stage, event
from gamelens.catalog import METRICS
from gamelens.sandbox.engines.engine import Engine
from gamelens.sandbox.engines.sql_query import SqlQuery
from gamelens.sandbox.http.rate_limiter import RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.tenants import Organisation, TenantDirectory, TenantGame
from sandbox.conftest import call
from sandbox.test_tenancy import BODIES, SERIES, WEEK

pytestmark = pytest.mark.slow

KEY = {"X-API-Key": "key-of-acme"}
LISTS = ("studios", "games", "dimensions/platform", "dimensions/game_id")
ASKED = {"filter": {"not": {"platform": "nothing"}}}


def days_of(game_id: str) -> list[dict[str, Any]]:
    """Everything that is counted, on two days of a player of a game."""
    kinds: list[dict[str, Any]] = [
        {},
        {"category": "session_end", "length": 60},
        {"category": "business", "event_id": "a:b", "amount": 99, "currency": "USD", "transaction_num": 1},
        {"category": "ads", "ad_sdk_name": "x", "ad_type": "video", "ad_action": "show", "ad_placement": "home"},
        {
            "category": "impression",
            "ad_network_name": "max",
            "ad_network_version": "1",
            "impression_data": {"revenue": 1.5},
        },
    ]
    first = event()["client_ts"] - 2 * 86_400
    return [
        event(platform=f"of-{game_id}", client_ts=first + day * 86_400 + place, **kind)
        for day in range(2)
        for place, kind in enumerate(kinds)
    ]


def played(path: Any, *game_ids: str) -> Stage:
    stage = Stage(path / "state")
    for game_id in game_ids:
        assert stage.submit(days_of(game_id), game_id=game_id).status_code == 200
    stage.process()
    return stage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two games have events."""
    stage = played(tmp_path_factory.mktemp("whole"), "1001", "2001")
    yield stage
    stage.sandbox.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Only one of them has."""
    stage = played(tmp_path_factory.mktemp("one"), "1001")
    yield stage
    stage.sandbox.close()


def answers(app: Any, **named: Any) -> list[tuple[Any, ...]]:
    """What every metric in every kind of question, and every list, says; metrics narrowed by what is *named*."""
    asked: list[httpx.Response] = []
    for name, metric in METRICS.items():
        address = f"/metrics/v1/metrics/{name}"
        for body in BODIES[metric.kinds]:
            asked += [call(app, "POST", address, json=body | named | more, headers=KEY) for more in ({}, ASKED)]
    if not named:
        over = {"interval": WEEK["interval"]}
        asked += [call(app, "GET", f"/metrics/v1/{path}", params=over, headers=KEY) for path in LISTS]
    assert {answer.status_code for answer in asked} == {200}
    return [(str(answer.request.url), answer.json()) for answer in asked]


def served(stage: Stage, tenants: TenantDirectory, engine: Engine) -> Any:
    """A service of its own over the lake of *stage*."""
    return MetricsApp(tenants, stage.sandbox.lake, engine, stage.clock, limits=RateLimits(10_000, 10_000)).app()


def without(stage: Stage, change: dict[str, Any] | None) -> Any:
    """The service over the same lake once the configuration says otherwise of game 2001, or no longer names it."""

    def changed(organisation: Organisation) -> Organisation:
        studios = [replace(it, games=tuple(filter(None, map(kept, it.games)))) for it in organisation.studios]
        return replace(organisation, studios=tuple(studios))

    def kept(game: TenantGame) -> TenantGame | None:
        return game if game.id != "2001" else replace(game, **change) if change else None

    tenants = TenantDirectory(tuple(map(changed, stage.sandbox.tenants.organisations)))
    return served(stage, tenants, stage.sandbox.reader)


def test_every_question_sees_both_games(whole: Stage, one: Stage) -> None:
    """Else nothing would be proved by what follows."""
    differ = [ours != theirs for ours, theirs in zip(answers(whole.metrics_app), answers(one.metrics_app), strict=True)]
    assert sum(differ) > len(differ) / 2


@pytest.mark.parametrize("change", [None, {"environment": "production"}])
def test_a_game_that_was_taken_out_of_the_configuration_is_seen_by_nobody(
    whole: Stage, one: Stage, change: dict[str, Any] | None
) -> None:
    """Its events stay in the lake; design/metrics, Availability: production games are never listed."""
    assert answers(without(whole, change)) == answers(one.metrics_app)


@pytest.mark.parametrize("named", [{"games": ["1001"]}, {"studios": ["s1"]}, {"games": ["1001", "1002", "2002"]}])
def test_what_is_named_narrows(whole: Stage, one: Stage, named: dict[str, Any]) -> None:
    """design/metrics, Query kinds: `games` and `studios` narrow the events."""
    assert answers(whole.metrics_app, **named) == answers(one.metrics_app, **named)


def test_naming_no_game_is_asking_about_nothing(whole: Stage) -> None:
    assert whole.ask("event_count", **SERIES, games=[]).json()["result"][0]["result"] == {"event_count": 0}


class Listening(Engine):
    """An engine that remembers what it was asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.plans: list[SqlQuery] = []

    def rows(self, plan: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        self.plans.append(plan)
        return self._engine.rows(plan, snapshot)

    def close(self) -> None:
        self._engine.close()

    def is_conditional(self) -> list[bool]:
        """Of each plan, whether it has a condition on games; and they are forgotten."""
        plans, self.plans = self.plans, []
        return ["game_id IN" in plan.statement.sql("duckdb") for plan in plans]


def test_what_every_row_meets_is_no_condition_and_is_looked_up_once_a_version(stage: Stage) -> None:
    """A condition costs a fifth of some questions. The first plan of a version is the one that looks."""
    engine = Listening(stage.sandbox.reader)
    app = served(stage, stage.sandbox.tenants, engine)

    def ask(**named: Any) -> list[bool]:
        answer = call(app, "POST", "/metrics/v1/metrics/event_count", json=SERIES | named, headers=KEY)
        assert answer.status_code == 200
        return engine.is_conditional()

    stage.submit([event()])
    stage.process()
    assert [ask(), ask(), ask(games=["1001"]), ask(games=["2001"])] == [[False, False], [False], [False], [True]]
    stage.submit([event()], game_id="2001")
    stage.process()
    assert [ask(), ask(), ask(games=["1001"]), ask(studios=["s2"])] == [[False, False], [False], [True], [True]]
