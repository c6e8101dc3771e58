"""Isolation of organisations: an object of another one is refused like an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from gamelens.catalog import METRICS
from gamelens.wire.signing import sign
from support.app_requests import call
from support.game_events import event
from support.query_bodies import BODIES, TIMESERIES, WEEK
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

ORGANISATIONS = {
    "acme": {"studio": ["s1", "s2"], "game": ["1001", "2001"], "production game": ["2002"]},
    "rival": {"studio": ["1"], "game": ["9001"], "production game": ["9002"]},
}
UNKNOWN = {
    "s1": "s9",
    "s2": "s9",
    "1": "8",
    "1001": "1009",
    "2001": "2009",
    "2002": "2099",
    "9001": "9009",
    "9002": "9099",
}
OTHER = {"acme": "rival", "rival": "acme"}
Request = Callable[[Stage, str, str], httpx.Response]


def query_naming(path: str, metric: str, body: dict[str, Any]) -> Callable[[str], Request]:
    """Return a function that makes requests naming an object in a field of *body*."""
    return lambda field: (
        lambda stage, key, id_: call(
            stage.metrics_app,
            "POST",
            path.replace("{metric}", metric),
            headers={"X-API-Key": key},
            json=body
            | ({"filter": {"game_id": id_}} if field == "filter" else {field: id_ if field == "game" else [id_]}),
        )
    )


def list_naming(path: str, name: str) -> Request:
    """Return a request that names an object in the query parameter *name*."""
    return lambda stage, key, id_: call(
        stage.metrics_app, "GET", path, headers={"X-API-Key": key}, params={"interval": WEEK["interval"], name: id_}
    )


def requests_naming() -> Iterator[tuple[str, str, Request]]:
    """Return path, field and request for every way to name an object to the metrics service."""
    path = "/metrics/v1/metrics/{metric}"
    for name, metric in METRICS.items():
        for body in BODIES[metric.kinds][: None if name == "event_count" else 1]:
            for field in ("games", "studios", "filter"):
                yield path, field, query_naming(path, name, body)(field)
        if metric.kinds == "per game":
            yield path, "game", query_naming(path, name, TIMESERIES)("game")
    for path in ("/metrics/v1/dimensions/platform", "/metrics/v1/dimensions/game_id"):
        for name in ("games", "studios"):
            yield path, name, list_naming(path, name)
    yield "/metrics/v1/games", "studios", list_naming("/metrics/v1/games", "studios")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox in which both organisations have events."""
    stage = Stage(tmp_path_factory.mktemp("tenancy") / "state")
    for game_id in ("1001", "2001", "9001"):
        stage.submit([event(platform=f"of-{game_id}")], game_id=game_id)
    stage.process()
    yield stage
    stage.sandbox.close()


def comparable(answer: httpx.Response, id_: str) -> tuple[int, list[Any], str]:
    """Return everything of a response, with the id that was sent replaced."""
    text = answer.text.replace(f'"{id_}"', "<id>").replace(f"'{id_}'", "<id>")
    return answer.status_code, sorted(answer.headers.multi_items()), text


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("kind", ["studio", "game", "production game"])
@pytest.mark.parametrize("organisation", ORGANISATIONS)
def test_a_foreign_object_is_refused_like_an_unknown_one(stage: Stage, organisation: str, kind: str) -> None:
    """A foreign id gets the response of an unknown one, byte for byte (Wire 2.13, Scope)."""
    compared = 0
    for path, field, ask in requests_naming():
        for id_ in ORGANISATIONS[OTHER[organisation]][kind] if (field == "studios") == (kind == "studio") else []:
            foreign, unknown = (ask(stage, f"key-of-{organisation}", name) for name in (id_, UNKNOWN[id_]))
            assert comparable(foreign, id_) == comparable(unknown, UNKNOWN[id_]), (path, field)
            assert foreign.status_code == (200 if field == "filter" else 422), (path, field)
            compared += 1
    assert compared >= len(METRICS)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("organisation", ORGANISATIONS)
def test_an_own_object_is_accepted(stage: Stage, organisation: str) -> None:
    """An id of the own organisation gets 200 in every request of this module.

    Wire 2.13, Scope.
    """
    own = ORGANISATIONS[organisation]
    for path, field, ask in requests_naming():
        id_ = own["studio" if field == "studios" else "game"][0]
        assert ask(stage, f"key-of-{organisation}", id_).status_code == 200, (path, field)


def test_every_path_is_tested_or_names_no_object(stage: Stage) -> None:
    """Every path of the service is in the requests of this module or names no object.

    Wire 2.1, Metrics addresses.
    """
    addresses = {route.path for route in stage.metrics_app.routes if isinstance(route, Route)}
    tested = {path for path, _, _ in requests_naming()}
    addresses_with_objects = {
        path for path in addresses if path in tested or path == "/metrics/v1/dimensions/{dimension}"
    }
    assert addresses - addresses_with_objects == {f"/metrics/v1/{path}" for path in NO_OBJECT}


NO_OBJECT = ["metrics", "interval", "dimensions", "studios", "openapi.json"]


@pytest.mark.wide
def test_foreign_events_change_no_answer(stage: Stage) -> None:
    """Events of another organisation change no byte of an answer (Wire 2.13, Scope)."""

    def answers() -> list[Any]:
        responses = [
            stage.get(path, interval=WEEK["interval"]) for path in (*NO_OBJECT, "games", "dimensions/platform")
        ]
        responses += [stage.ask(name, **BODIES[metric.kinds][0]) for name, metric in METRICS.items()]
        return [(answer.status_code, answer.content) for answer in responses]

    stage.submit([event()])
    stage.process()
    before = answers()
    late = event(platform="theirs", client_ts=event()["client_ts"] - 9 * 86_400)
    stage.submit([late, event(platform="theirs")], game_id="9001")
    stage.process()
    assert answers() == before


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("key", ["", "key-of-nobody", "key-of-acme,key-of-rival"])
def test_without_a_valid_key_every_answer_is_the_same(stage: Stage, key: str) -> None:
    """Without a valid key the response does not depend on the request (Wire 2.2, API key)."""
    for field in ("games", "studios", "filter"):
        answers = {
            ask(stage, key, id_).content
            for _, addresses_with_objects, ask in requests_naming()
            if addresses_with_objects == field
            for id_ in ("1001", "s1", "nothing")
        }
        assert len(answers) == 1


@pytest.mark.parametrize("path", ["/v2/{}/events", "/v2/{}/init", "/remote_configs/v1/init?game_key={}"])
@pytest.mark.parametrize("game_id", ["9001", "9002", "2002"])
def test_a_secret_key_is_valid_for_its_own_game_alone(stage: Stage, path: str, game_id: str) -> None:
    """A foreign, a production and an unknown game are refused alike (Wire 1.4, Signature)."""
    own_game, foreign = stage.game("1001"), stage.game(game_id)
    body = b"[]" if "events" in path else b'{"user_id": "ann"}'
    signed = {"Authorization": sign(body, secret_key=own_game.secret_key)}
    answers = [stage.post(path.format(key), body, signed) for key in (foreign.game_key, "0" * 32)]
    assert {answer.status_code for answer in answers} == {401}
    assert answers[0].content == answers[1].content
    assert stage.post(path.format(own_game.game_key), body, signed).status_code in (200, 201)
