"""Each organisation alone: every address, with the key of one and the objects of another.

Whatever is named, an object of somebody else answers byte for byte as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from conftest import Stage, event
from gamelens.catalog import METRICS
from gamelens.wire.signing import sign
from sandbox.conftest import call

pytestmark = pytest.mark.slow

WEEK = {"interval": "2026-11-15/P7D", "granularity": "day"}
SERIES = WEEK | {"query": {"type": "timeseries"}}
BODIES: dict[str, list[dict[str, Any]]] = {
    "plain": [SERIES, WEEK | {"query": {"type": "group", "dimension": "game_id"}}],
    "per game": [WEEK | {"split_by": "platform"}],
    "retention": [WEEK | {"split_by": "platform", "since_days_ago": 1}],
}
ORGANISATIONS = {
    "acme": {"studio": ["s1", "s2"], "game": ["1001", "2001"], "production game": ["2002"]},
    "rival": {"studio": ["1"], "game": ["9001"], "production game": ["9002"]},
}
NOBODYS = {
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
Way = Callable[[Stage, str, str], httpx.Response]


def asks(path: str, metric: str, body: dict[str, Any]) -> Callable[[str], Way]:
    """Ways to name an object in a metric's body, by the field it is named in."""
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


def gets(path: str, name: str) -> Way:
    """Name an object in a query parameter."""
    return lambda stage, key, id_: call(
        stage.metrics_app, "GET", path, headers={"X-API-Key": key}, params={"interval": WEEK["interval"], name: id_}
    )


def ways() -> Iterator[tuple[str, str, Way]]:
    """Every way to name an object to the metrics service: the address, the field, and how to ask."""
    path = "/metrics/v1/metrics/{metric}"
    for name, metric in METRICS.items():
        for body in BODIES[metric.kinds]:
            for field in ("games", "studios", "filter"):
                yield path, field, asks(path, name, body)(field)
        if metric.kinds == "per game":
            yield path, "game", asks(path, name, SERIES)("game")
    for path in ("/metrics/v1/dimensions/platform", "/metrics/v1/dimensions/game_id"):
        for name in ("games", "studios"):
            yield path, name, gets(path, name)
    yield "/metrics/v1/games", "studios", gets("/metrics/v1/games", "studios")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A sandbox in which both organisations have events."""
    stage = Stage(tmp_path_factory.mktemp("tenancy") / "state")
    for game_id in ("1001", "2001", "9001"):
        stage.submit([event(platform=f"of-{game_id}")], game_id=game_id)
    stage.process()
    yield stage
    stage.sandbox.close()


def written(answer: httpx.Response, id_: str) -> tuple[int, list[Any], str]:
    """Everything of an answer, but for the id that was asked for."""
    text = answer.text.replace(f'"{id_}"', "<id>").replace(f"'{id_}'", "<id>")
    return answer.status_code, sorted(answer.headers.multi_items()), text


@pytest.mark.parametrize("kind", ["studio", "game", "production game"])
@pytest.mark.parametrize("asker", ORGANISATIONS)
def test_an_object_of_somebody_else_is_as_unknown_as_any(both: Stage, asker: str, kind: str) -> None:
    """design/metrics, Query kinds: an id outside the caller's organisation is refused like an unknown one."""
    tried = 0
    for path, field, ask in ways():
        for id_ in ORGANISATIONS[OTHER[asker]][kind] if (field == "studios") == (kind == "studio") else []:
            theirs, nobodys = (ask(both, f"key-of-{asker}", it) for it in (id_, NOBODYS[id_]))
            assert written(theirs, id_) == written(nobodys, NOBODYS[id_]), (path, field)
            assert theirs.status_code == (200 if field == "filter" else 422), (path, field)
            tried += 1
    assert tried >= 25


@pytest.mark.parametrize("asker", ORGANISATIONS)
def test_an_object_of_one_s_own_is_known(both: Stage, asker: str) -> None:
    """Else the matrix would hold for a service that refuses everything."""
    own = ORGANISATIONS[asker]
    for path, field, ask in ways():
        id_ = own["studio" if field == "studios" else "game"][0]
        assert ask(both, f"key-of-{asker}", id_).status_code == 200, (path, field)


def test_every_address_is_in_the_matrix_or_names_no_object(both: Stage) -> None:
    """An address added later belongs to one of the two."""
    addresses = {route.path for route in both.metrics_app.routes if isinstance(route, Route)}
    asked = {path for path, _, _ in ways()}
    named = {it for it in addresses if it in asked or it == "/metrics/v1/dimensions/{dimension}"}
    assert addresses - named == {f"/metrics/v1/{it}" for it in NO_OBJECT}


NO_OBJECT = ["metrics", "interval", "dimensions", "studios", "openapi.json"]


def test_what_names_no_object_does_not_change_with_somebody_else_s_events(stage: Stage) -> None:
    """architecture: scoped to the caller's organisation at the bottom."""

    def answers() -> list[Any]:
        asked = [stage.get(path, interval=WEEK["interval"]) for path in (*NO_OBJECT, "games", "dimensions/platform")]
        asked += [stage.ask(name, **BODIES[it.kinds][0]) for name, it in METRICS.items()]
        return [(answer.status_code, answer.content) for answer in asked]

    stage.submit([event()])
    stage.process()
    before = answers()
    late = event(platform="theirs", client_ts=event()["client_ts"] - 9 * 86_400)
    stage.submit([late, event(platform="theirs")], game_id="9001")
    stage.process()
    assert answers() == before


@pytest.mark.parametrize("key", ["", "key-of-nobody", "key-of-acme,key-of-rival"])
def test_without_a_key_nothing_is_known(both: Stage, key: str) -> None:
    """Metrics, Authentication 1: the same refusal, whatever is asked for."""
    for field in ("games", "studios", "filter"):
        answers = {
            ask(both, key, id_).content
            for _, named, ask in ways()
            if named == field
            for id_ in ("1001", "s1", "nothing")
        }
        assert len(answers) == 1


@pytest.mark.parametrize("path", ["/v2/{}/events", "/v2/{}/init", "/remote_configs/v1/init?game_key={}"])
@pytest.mark.parametrize("game_id", ["9001", "9002", "2002"])
def test_a_secret_opens_no_other_game(both: Stage, path: str, game_id: str) -> None:
    """Collector, Authentication: somebody else's game, a production game and no game at all are refused alike."""
    ours, theirs = both.game("1001"), both.game(game_id)
    body = b"[]" if "events" in path else b'{"user_id": "ann"}'
    signed = {"Authorization": sign(body, secret_key=ours.secret_key)}
    answers = [both.post(path.format(key), body, signed) for key in (theirs.game_key, "0" * 32)]
    assert {answer.status_code for answer in answers} == {401}
    assert answers[0].content == answers[1].content
    assert both.post(path.format(ours.game_key), body, signed).status_code in (200, 201)
