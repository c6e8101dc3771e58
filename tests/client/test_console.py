"""The control surface, read from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from conftest import Stage, event
from gamelens.client.console import CONSOLE_URL, Console
from gamelens.errors import BadQuery, GamelensError, ServiceError
from gamelens.sandbox.console import console_app

TOKEN = "a-token-of-its-own"
URL = f"http://127.0.0.1:1/{TOKEN}"


def at(app: Any) -> Console:
    return Console(URL, pool=httpx.ASGITransport(app))


def answering(status: int, body: bytes) -> Console:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return at(app)


@pytest.fixture
def console(stage: Stage) -> Console:
    return at(console_app(stage.sandbox, token=TOKEN))


def test_what_came_is_counted_by_game(stage: Stage, console: Console):
    """contract, GET /summary."""
    stage.submit([event(), event(), event(v=1)])
    summary = asyncio.run(console.summary())
    assert (summary.accepted, summary.rejected, summary.pending) == (2, 1, 2)
    (game,) = [game for game in summary.since_start.games.values() if game.accepted]
    assert (game.title, game.accepted, game.rejected) == ("Tile Saga", 2, 1)


def test_what_came_last_is_first(stage: Stage, console: Console):
    """contract, GET /events."""
    for sent in (event(user_id="one"), event(v=1), "no event"):
        stage.submit([sent])
    three, two, one = asyncio.run(console.events(limit=3))
    assert [it.status for it in (three, two, one)] == ["rejected", "rejected", "accepted"]
    assert (two.errors[0].path, one.event["user_id"], three.event) == ("/v", "one", "no event")


@pytest.mark.parametrize("ask", [Console.summary, Console.events])
@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b'{"accepted": "many"'])
def test_anything_else_is_an_error_of_the_service(ask: Callable[[Console], Any], body: bytes):
    with pytest.raises(ServiceError):
        asyncio.run(ask(answering(200, body)))


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:1/token", "ftp://127.0.0.1/token", "http://127.0.0.1:1", "http:///token"]
)
def test_an_address_must_be_one(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(CONSOLE_URL, raising=False)
    with pytest.raises(BadQuery, match="console_url"):
        Console(url)


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(CONSOLE_URL, URL)
    assert repr(Console()) == "Console('http://127.0.0.1:1')"


def test_the_token_is_in_no_repr_and_no_error(console: Console):
    with pytest.raises(GamelensError) as refused:
        asyncio.run(answering(404, b"{}").summary())
    with pytest.raises(GamelensError) as gone:
        asyncio.run(Console("http://127.0.0.1:9/" + TOKEN).summary())
    assert TOKEN not in f"{console!r}{refused.value!r}{gone.value!r}"
