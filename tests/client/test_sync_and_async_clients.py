"""The two clients: the same methods, in scripts, threads, running loops and interrupts."""

from __future__ import annotations

import _thread
import asyncio
import inspect
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from gamelens.client.async_client import AsyncClient
from gamelens.client.connection.event_loop import Interrupted, shared_loop
from gamelens.client.sync_client import Client
from gamelens.errors import AuthError, BadQuery, Refused
from support.scripted_service import KEY, Script

pytestmark = pytest.mark.slow

Make = Callable[..., Client]
_addresses = (f"http://127.0.0.2:{port}" for port in itertools.count(1))
METHODS = ["available", "metrics", "dimensions", "dimension_values", "studios", "games", "query", "retention"]
METHODS += ["plan", "refresh", "restatements", "describe"]


def async_client(app: ASGIApp) -> AsyncClient:
    """Return an async client of *app* at an address of its own."""
    return AsyncClient(api_key=KEY, metrics_url=next(_addresses), transport=httpx.ASGITransport(app))


class Slow:
    """An app that answers the available interval and then never, and counts requests."""

    def __init__(self) -> None:
        self.arrived = 0
        self.waiting = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].endswith("/interval"):
            self.arrived += 1
            self.waiting.set()
            await asyncio.sleep(60)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'"2026-08-22T00:00:00Z/2026-11-20T11:00:00Z"'})

    def interrupt_when_waiting(self) -> None:
        """Interrupt the main thread, as Ctrl-C does, once a request is under way."""

        def interrupt() -> None:
            self.waiting.wait(5)
            _thread.interrupt_main()

        threading.Thread(target=interrupt).start()


@pytest.mark.parametrize("method", ["__init__", *METHODS])
def test_both_clients_take_the_same_arguments(method: str) -> None:
    """Each method has the same parameters and defaults on both clients."""

    def parameters(face: type) -> list[inspect.Parameter]:
        return list(inspect.signature(getattr(face, method)).parameters.values())

    assert parameters(Client) == parameters(AsyncClient)


def test_both_clients_have_the_same_methods() -> None:
    """The public methods are the same but for `close` and `aclose`."""

    def public(face: type) -> set[str]:
        return {name for name in dir(face) if not name.startswith("_")}

    assert public(Client) - {"close"} == public(AsyncClient) - {"aclose"}


@pytest.mark.parametrize("method", METHODS)
def test_both_clients_have_the_same_docstrings(method: str) -> None:
    """Each method has the same docstring on both clients."""
    assert getattr(Client, method).__doc__ == getattr(AsyncClient, method).__doc__


def test_the_sync_client_works_inside_a_running_loop(lens: Client) -> None:
    """`Client` may be used inside a coroutine, as in a notebook."""

    async def main() -> list[str]:
        return lens.metrics()

    assert "revenue" in asyncio.run(main())


def test_the_async_client_works_on_several_loops(script: Script) -> None:
    """One `AsyncClient` may be used by one event loop after another."""
    client = async_client(script.app())
    asyncio.run(client.metrics())
    assert "revenue" in asyncio.run(client.metrics())
    asyncio.run(client.aclose())


def test_the_async_client_is_a_context_manager(script: Script) -> None:
    """`async with` opens and closes an `AsyncClient`."""

    async def main() -> str:
        async with async_client(script.app()) as lens:
            return str(await lens.available())

    assert asyncio.run(main()) == "2026-08-22T00:00Z/2026-11-20T11:00Z"


def test_threads_may_share_a_client(lens: Client, script: Script) -> None:
    """Eight threads that ask for the available interval at once cost one request."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: lens.available(), range(8)))
    assert (len(set(map(str, answers))), len(script.paths)) == (1, 1)


def test_all_clients_live_on_one_loop() -> None:
    """All sync clients share one background event loop."""
    assert shared_loop() is shared_loop()


def test_an_interrupt_stops_the_requests(make_lens: Make) -> None:
    """After Ctrl-C no further request of the query arrives."""
    slow = Slow()
    lens = make_lens(slow)
    slow.interrupt_when_waiting()
    with pytest.raises(KeyboardInterrupt):
        lens.query("event_count", over="last 90 complete days")
    time.sleep(0.5)  # for requests that were starting at the interrupt
    arrived = slow.arrived
    time.sleep(1.3)  # long enough for requests of the next second to arrive
    assert slow.arrived == arrived


def test_after_an_interrupt_the_next_call_works(make_lens: Make) -> None:
    """A client can be used again after Ctrl-C."""
    slow = Slow()
    lens = make_lens(slow)
    slow.interrupt_when_waiting()
    with pytest.raises(KeyboardInterrupt):
        lens.query("event_count", over="2026-11-01")
    assert lens.available()


def test_a_cancelled_task_stops_the_requests() -> None:
    """After a task is cancelled no further request of its query arrives."""
    slow = Slow()

    async def main() -> int:
        async with async_client(slow) as lens:
            task = asyncio.create_task(lens.query("event_count", over="last 88 complete days"))
            await asyncio.to_thread(slow.waiting.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.5)  # for requests that were starting at the cancellation
            arrived = slow.arrived
            await asyncio.sleep(1.3)
            return slow.arrived - arrived

    assert asyncio.run(main()) == 0


def test_a_client_is_a_context_manager(script: Script) -> None:
    """`with` opens and closes a `Client`."""
    with Client(api_key=KEY, metrics_url=next(_addresses), transport=httpx.ASGITransport(script.app())) as lens:
        assert lens.metrics() == script.metrics


def test_closing_twice_does_no_harm(lens: Client) -> None:
    """A second `close` does nothing."""
    lens.close()
    lens.close()


def test_the_repr_shows_the_address(make_lens: Make) -> None:
    """The repr of a client is its address without a trailing slash."""
    shown = repr(make_lens(metrics_url="https://a.example/"))
    assert shown == "<Client of https://a.example: .available() asks until when there is data>"


def test_the_repr_says_until_when_there_is_data(script: Script) -> None:
    """It sends no request for that: it shows what the client already knows, and never the key."""
    with Client(api_key=KEY, metrics_url=next(_addresses), transport=httpx.ASGITransport(script.app())) as lens:
        before = repr(lens)
        end = lens.available().end
        after = repr(lens)
    assert ".available() asks" in before
    assert after.endswith(f": data until {end.day} {end:%b %Y %H:%M} UTC>")
    assert KEY not in before + after


def test_everything_is_given_by_keyword() -> None:
    """A client takes keyword arguments only, so a key is never passed by accident."""
    with pytest.raises(TypeError):
        Client(KEY)  # type: ignore[call-arg]


def test_a_missing_key_is_refused_with_where_to_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key the error names the environment variable to set."""
    monkeypatch.delenv("GAMELENS_API_KEY", raising=False)
    with pytest.raises(AuthError, match="GAMELENS_API_KEY"):
        Client(metrics_url="https://a.example")


@pytest.mark.parametrize(
    "options", [{"max_days": "3"}, {"max_days": 0}, {"max_wait_s": "60"}, {"refresh_s": None}, {"pace": "fast"}]
)
def test_an_invalid_option_is_refused_by_name(make_lens: Make, options: dict[str, Any]) -> None:
    """An option of a wrong type or value is a `BadQuery` with its name."""
    with pytest.raises(BadQuery) as refused:
        make_lens(**options)
    assert refused.value.field == next(iter(options))


def test_a_closed_client_refuses_with_the_reason(lens: Client) -> None:
    """A call to a closed client raises `Refused` and states that it is closed."""
    lens.close()
    with pytest.raises(Refused, match="this client is closed"):
        lens.available()


def test_a_notebook_shows_an_interrupt_in_one_line(make_lens: Make) -> None:
    """Whatever the call was waiting in."""
    slow = Slow()
    slow.interrupt_when_waiting()
    with pytest.raises(Interrupted) as raised:
        make_lens(slow).query("event_count", over="2026-11-01")
    assert len(raised.value._render_traceback_()) == 1
