"""The client of the sandbox's control API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from gamelens.client.connection.control_api import CONTROL_URL_VARIABLE, ControlApi
from gamelens.errors import BadQuery, GamelensError, ServiceError, Unreachable
from gamelens.sandbox.control.control_app import control_app
from support.game_events import event
from support.sandbox_stage import Stage

TOKEN = "a-token-of-its-own"
URL = f"http://127.0.0.1:1/{TOKEN}"


Ask = Callable[[ControlApi], Coroutine[Any, Any, object]]


def api_of(app: ASGIApp) -> ControlApi:
    """Return the control API that *app* serves."""
    return ControlApi(URL, pool=httpx.ASGITransport(app), within_s=60)


def api_answering(status: int, body: bytes) -> ControlApi:
    """Return a control API that gives every request the same response."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return api_of(app)


@pytest.fixture
def control_api(stage: Stage) -> ControlApi:
    """Return the control API of the fixture `stage`."""
    return api_of(control_app(stage.sandbox, token=TOKEN))


def test_the_summary_counts_events_by_game(stage: Stage, control_api: ControlApi) -> None:
    """`GET /summary` counts accepted, rejected and pending events (Wire 5.1, Control API)."""
    stage.submit([event(), event(), event(v=1)])
    summary = asyncio.run(control_api.summary())
    assert (summary.accepted, summary.rejected, summary.pending) == (2, 1, 2)
    (game,) = [game for game in summary.since_start.games.values() if game.accepted]
    assert (game.title, game.accepted, game.rejected) == ("Tile Saga", 2, 1)


@pytest.mark.parametrize("ask", [ControlApi.summary, ControlApi.process])
@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b'{"accepted": "many"'])
def test_an_answer_of_another_shape_is_a_service_error(ask: Ask, body: bytes) -> None:
    """A body that is not the documented JSON is a `ServiceError`."""
    with pytest.raises(ServiceError):
        asyncio.run(ask(api_answering(200, body)))


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:1/token", "ftp://127.0.0.1/token", "http://127.0.0.1:1", "http:///token"]
)
def test_an_address_without_host_or_token_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address needs http or https, a host and a token (Wire 5.1, Control API)."""
    monkeypatch.delenv(CONTROL_URL_VARIABLE, raising=False)
    with pytest.raises(BadQuery, match="console_url"):
        ControlApi(url)


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an argument the environment names the address, shown without its token."""
    monkeypatch.setenv(CONTROL_URL_VARIABLE, URL)
    assert repr(ControlApi()) == "ControlApi('http://127.0.0.1:1')"


def test_the_token_is_in_no_repr_and_no_error(control_api: ControlApi) -> None:
    """The token appears in no repr and in no error message."""
    with pytest.raises(GamelensError) as refused:
        asyncio.run(api_answering(404, b"{}").summary())
    with pytest.raises(GamelensError) as gone:
        asyncio.run(ControlApi("http://127.0.0.1:9/" + TOKEN).summary())
    assert TOKEN not in f"{control_api!r}{refused.value!r}{gone.value!r}"


def test_the_summary_has_every_count_of_the_sandbox(stage: Stage, control_api: ControlApi) -> None:
    """The decoded summary encodes to the JSON that the sandbox sent: `gamelens demo --json` prints it."""
    stage.submit([event(), event(v=1)])
    sent = stage.sandbox.summary()
    assert json.dumps(msgspec.to_builtins(asyncio.run(control_api.summary()))) == json.dumps(sent)


def test_a_sandbox_is_processed_and_reset(stage: Stage, control_api: ControlApi) -> None:
    """`POST /process` processes every organisation, `POST /reset` forgets all events (Wire 5.1, Control API)."""
    stage.submit([event()])
    assert set(asyncio.run(control_api.process())) == {"acme", "rival"}
    assert asyncio.run(control_api.summary()).processed == 1
    assert asyncio.run(control_api.reset()).accepted == 0


def test_the_clock_stands_moves_and_runs_again(stage: Stage, control_api: ControlApi) -> None:
    """`POST /clock` freezes, advances and resumes; an order without any of them is a `BadQuery`."""
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert asyncio.run(control_api.set_clock(freeze=noon)) == noon
    assert asyncio.run(control_api.set_clock(advance="PT1H")) == noon + timedelta(hours=1)
    assert asyncio.run(control_api.set_clock(resume=True)) != noon + timedelta(hours=1)
    with pytest.raises(BadQuery):
        asyncio.run(control_api.set_clock())


def test_a_sandbox_that_takes_requests_is_healthy(control_api: ControlApi) -> None:
    """`GET /health` with 200 returns; with 503 it raises the reason as a `ServiceError`."""
    asyncio.run(control_api.health())
    with pytest.raises(ServiceError, match="the disk is full"):
        asyncio.run(api_answering(503, b'{"message": "the disk is full"}').health())


def test_a_call_ends_in_time() -> None:
    """A call whose response does not come within *within_s* is `Unreachable`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(60)

    with pytest.raises(Unreachable, match=r"within 0\.05 s"):
        asyncio.run(ControlApi(URL, within_s=0.05, pool=httpx.ASGITransport(app)).health())
