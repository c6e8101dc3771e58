"""The control surface, read from outside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from conftest import Stage, event
from gamelens.client.connection.control_api import CONSOLE_URL, ControlApi
from gamelens.errors import BadQuery, GamelensError, ServiceError, Unreachable
from gamelens.sandbox.control.control_app import console_app

TOKEN = "a-token-of-its-own"
URL = f"http://127.0.0.1:1/{TOKEN}"


def at(app: Any) -> ControlApi:
    return ControlApi(URL, pool=httpx.ASGITransport(app))


def answering(status: int, body: bytes) -> ControlApi:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return at(app)


@pytest.fixture
def console(stage: Stage) -> ControlApi:
    return at(console_app(stage.sandbox, token=TOKEN))


def test_what_came_is_counted_by_game(stage: Stage, console: ControlApi) -> None:
    """contract, GET /summary."""
    stage.submit([event(), event(), event(v=1)])
    summary = asyncio.run(console.summary())
    assert (summary.accepted, summary.rejected, summary.pending) == (2, 1, 2)
    (game,) = [game for game in summary.since_start.games.values() if game.accepted]
    assert (game.title, game.accepted, game.rejected) == ("Tile Saga", 2, 1)


def test_what_came_last_is_first(stage: Stage, console: ControlApi) -> None:
    """contract, GET /events."""
    for sent in (event(user_id="one"), event(v=1), "no event"):
        stage.submit([sent])
    three, two, one = asyncio.run(console.events(limit=3))
    assert [it.status for it in (three, two, one)] == ["rejected", "rejected", "accepted"]
    assert (two.errors[0].path, one.event["user_id"], three.event) == ("/v", "one", "no event")


def test_the_summary_has_every_count_of_the_sandbox(stage: Stage, console: ControlApi) -> None:
    """`gamelens demo --json` writes it as it is."""
    stage.submit([event(), event(v=1)])
    told = stage.sandbox.summary()
    assert json.dumps(msgspec.to_builtins(asyncio.run(console.summary()))) == json.dumps(told)


def test_a_sandbox_is_processed_and_reset(stage: Stage, console: ControlApi) -> None:
    """contract, POST /process and /reset."""
    stage.submit([event()])
    assert set(asyncio.run(console.process())) == {"acme", "rival"}
    assert asyncio.run(console.summary()).processed == 1
    assert asyncio.run(console.reset()).accepted == 0


def test_the_clock_stands_moves_and_runs_again(stage: Stage, console: ControlApi) -> None:
    """contract, POST /clock."""
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert asyncio.run(console.set_clock(freeze=noon)) == noon
    assert asyncio.run(console.set_clock(advance="PT1H")) == noon + timedelta(hours=1)
    assert asyncio.run(console.set_clock(resume=True)) != noon + timedelta(hours=1)
    with pytest.raises(BadQuery):
        asyncio.run(console.set_clock())


def test_a_sandbox_that_takes_requests_is_healthy(console: ControlApi) -> None:
    """contract, GET /health."""
    asyncio.run(console.health())
    with pytest.raises(ServiceError, match="the disk is full"):
        asyncio.run(answering(503, b'{"message": "the disk is full"}').health())


def test_a_call_ends_in_time() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)

    with pytest.raises(Unreachable, match=r"within 0\.05 s"):
        asyncio.run(ControlApi(URL, within_s=0.05, pool=httpx.ASGITransport(app)).health())


@pytest.mark.parametrize("ask", [ControlApi.summary, ControlApi.events])
@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b'{"accepted": "many"'])
def test_anything_else_is_an_error_of_the_service(ask: Callable[[ControlApi], Any], body: bytes) -> None:
    with pytest.raises(ServiceError):
        asyncio.run(ask(answering(200, body)))


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:1/token", "ftp://127.0.0.1/token", "http://127.0.0.1:1", "http:///token"]
)
def test_an_address_must_be_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONSOLE_URL, raising=False)
    with pytest.raises(BadQuery, match="console_url"):
        ControlApi(url)


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONSOLE_URL, URL)
    assert repr(ControlApi()) == "Console('http://127.0.0.1:1')"


def test_the_token_is_in_no_repr_and_no_error(console: ControlApi) -> None:
    with pytest.raises(GamelensError) as refused:
        asyncio.run(answering(404, b"{}").summary())
    with pytest.raises(GamelensError) as gone:
        asyncio.run(ControlApi("http://127.0.0.1:9/" + TOKEN).summary())
    assert TOKEN not in f"{console!r}{refused.value!r}{gone.value!r}"
