"""The games whose events a query may read (Wire 2.13, Scope)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from gamelens.catalog import METRICS
from gamelens.sandbox.engines.engine import Engine, SqlQuery
from gamelens.sandbox.http.rate_limiter import RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.state.tenants import Organisation, TenantDirectory, TenantGame
from gamelens.sandbox.storage.lake import Snapshot
from support.app_requests import call
from support.game_events import event
from support.query_bodies import BODIES, TIMESERIES, WEEK
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

KEY = {"X-API-Key": "key-of-acme"}
LISTS = ("studios", "games", "dimensions/platform", "dimensions/game_id")
WITH_FILTER = {"filter": {"not": {"platform": "nothing"}}}


def days_of(game_id: str) -> list[dict[str, Any]]:
    """Return events of every kind that a metric counts, on two days of a player."""
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


def stage_with_events(path: Path, *game_ids: str) -> Stage:
    """Return a sandbox with processed events of *game_ids*."""
    stage = Stage(path / "state")
    for game_id in game_ids:
        assert stage.submit(days_of(game_id), game_id=game_id).status_code == 200
    stage.process()
    return stage


@pytest.fixture(scope="module")
def two_games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox in which two games have events."""
    stage = stage_with_events(tmp_path_factory.mktemp("whole"), "1001", "2001")
    yield stage
    stage.sandbox.close()


@pytest.fixture(scope="module")
def one_game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox in which only one of the two games has events."""
    stage = stage_with_events(tmp_path_factory.mktemp("one"), "1001")
    yield stage
    stage.sandbox.close()


def answers(app: Any, **scope: Any) -> list[tuple[Any, ...]]:
    """Return the answers to every kind of query in *scope*, and to every list."""
    responses: list[httpx.Response] = []
    for name, metric in METRICS.items():
        address = f"/metrics/v1/metrics/{name}"
        for body in BODIES[metric.kinds]:
            responses.append(call(app, "POST", address, json=body | scope, headers=KEY))
    for kind, bodies in BODIES.items():  # with a filter, a metric of each kind
        address = f"/metrics/v1/metrics/{next(name for name, metric in METRICS.items() if metric.kinds == kind)}"
        responses += [call(app, "POST", address, json=body | scope | WITH_FILTER, headers=KEY) for body in bodies]
    if not scope:
        interval = {"interval": WEEK["interval"]}
        responses += [call(app, "GET", f"/metrics/v1/{path}", params=interval, headers=KEY) for path in LISTS]
    assert {answer.status_code for answer in responses} == {200}
    return [(str(answer.request.url), answer.json()) for answer in responses]


@pytest.fixture(scope="module")
def answers_of_one(one_game: Stage) -> list[tuple[Any, ...]]:
    """Return the answers of the sandbox in which only one game has events."""
    return answers(one_game.metrics_app)


def metrics_app(stage: Stage, tenants: TenantDirectory, engine: Engine) -> Any:
    """Return a metrics service over the lake of *stage*."""
    return MetricsApp(tenants, stage.sandbox.lake, engine, stage.clock, limits=RateLimits(10_000, 10_000)).app()


def metrics_app_without_2001(stage: Stage, change: dict[str, Any] | None) -> Any:
    """Return a metrics service whose configuration has game 2001 changed or left out."""

    def changed(organisation: Organisation) -> Organisation:
        studios = [
            replace(studio, games=tuple(filter(None, map(changed_game, studio.games))))
            for studio in organisation.studios
        ]
        return replace(organisation, studios=tuple(studios))

    def changed_game(game: TenantGame) -> TenantGame | None:
        return game if game.id != "2001" else replace(game, **change) if change else None

    tenants = TenantDirectory(tuple(map(changed, stage.sandbox.tenants.organisations)))
    return metrics_app(stage, tenants, stage.sandbox.reader)


@pytest.mark.wide
def test_most_answers_depend_on_both_games(two_games: Stage, answers_of_one: list[tuple[Any, ...]]) -> None:
    """The second game changes most answers, so that its absence can be tested.

    Wire 2.13, Scope.
    """
    differences = [
        with_both != with_one
        for with_both, with_one in zip(answers(two_games.metrics_app), answers_of_one, strict=True)
    ]
    assert sum(differences) > len(differences) / 2


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("change", [None, {"environment": "production"}])
def test_a_game_removed_from_the_configuration_is_in_no_answer(
    two_games: Stage, answers_of_one: list[tuple[Any, ...]], change: dict[str, Any] | None
) -> None:
    """Events of a removed game, or of one now in production, are in no answer.

    Wire 2.13, Scope.
    """
    assert answers(metrics_app_without_2001(two_games, change)) == answers_of_one


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("scope", [{"games": ["1001"]}, {"studios": ["s1"]}, {"games": ["1001", "1002", "2002"]}])
def test_games_and_studios_narrow_a_query(
    two_games: Stage, answers_of_one: list[tuple[Any, ...]], scope: dict[str, Any]
) -> None:
    """`games` and `studios` select the events of these games alone (Wire 2.13, Scope)."""
    assert answers(two_games.metrics_app, **scope) == answers_of_one[: -len(LISTS)]


def test_an_empty_list_of_games_selects_no_event(two_games: Stage) -> None:
    """A query with an empty list of games counts no event (Wire 2.13, Scope)."""
    assert two_games.ask("event_count", **TIMESERIES, games=[]).json()["result"][0]["result"] == {"event_count": 0}


class RecordingEngine(Engine):
    """An engine that records the plans it runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.bounds = engine, engine.bounds
        self.plans: list[SqlQuery] = []

    def rows(self, plan: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        self.plans.append(plan)
        return self._engine.rows(plan, snapshot)

    def close(self) -> None:
        self._engine.close()

    def is_conditional(self) -> list[bool]:
        """Return for each recorded plan whether it has a condition on games, and clear the record."""
        plans, self.plans = self.plans, []
        return ["game_id IN" in plan.sql for plan in plans]


@pytest.mark.wide
def test_a_condition_on_games_is_left_out_if_all_rows_meet_it(stage: Stage) -> None:
    """A condition that all rows meet is left out, as one look-up per version finds.

    Such a condition can take a fifth of the time of a query.
    """
    engine = RecordingEngine(stage.sandbox.reader)
    app = metrics_app(stage, stage.sandbox.tenants, engine)

    def ask(**scope: Any) -> list[bool]:
        answer = call(app, "POST", "/metrics/v1/metrics/event_count", json=TIMESERIES | scope, headers=KEY)
        assert answer.status_code == 200
        return engine.is_conditional()

    stage.submit([event()])
    stage.process()
    assert [ask(), ask(), ask(games=["1001"]), ask(games=["2001"])] == [[False, False], [False], [False], [True]]
    stage.submit([event()], game_id="2001")
    stage.process()
    assert [ask(), ask(), ask(games=["1001"]), ask(studios=["s2"])] == [[False, False], [False], [True], [True]]
