"""One core, two faces: scripts, threads, running loops, interrupts (promise 8)."""

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

from gamelens.client.async_client import AsyncClient
from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.sync_client import Client
from gamelens.errors import AuthError, BadQuery, Refused
from support.scripted_service import KEY, Script

pytestmark = pytest.mark.slow

Make = Callable[..., Client]
_addresses = (f"http://127.0.0.2:{port}" for port in itertools.count(1))
METHODS = ["available", "metrics", "dimensions", "dimension_values", "studios", "games", "query", "retention"]
METHODS += ["plan", "resume", "refresh", "restatements"]


def async_client(app: Any) -> AsyncClient:
    return AsyncClient(api_key=KEY, metrics_url=next(_addresses), transport=httpx.ASGITransport(app))


class Slow:
    """An app that answers the available interval and then never; counts what arrives."""

    def __init__(self) -> None:
        self.arrived = 0
        self.waiting = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not scope["path"].endswith("/interval"):
            self.arrived += 1
            self.waiting.set()
            await asyncio.sleep(60)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'"2026-08-22T00:00:00Z/2026-11-20T11:00:00Z"'})


@pytest.mark.parametrize("method", ["__init__", *METHODS])
def test_both_faces_take_the_same_arguments(method: str) -> None:
    def parameters(face: type) -> list[Any]:
        return list(inspect.signature(getattr(face, method)).parameters.values())

    assert parameters(Client) == parameters(AsyncClient)


def test_both_faces_have_the_same_methods() -> None:
    def public(face: type) -> set[str]:
        return {name for name in dir(face) if not name.startswith("_")}

    assert public(Client) - {"close"} == public(AsyncClient) - {"aclose"}


@pytest.mark.parametrize("method", METHODS)
def test_both_faces_have_the_same_words(method: str) -> None:
    assert getattr(Client, method).__doc__ == getattr(AsyncClient, method).__doc__


def test_the_sync_face_works_inside_a_running_loop(lens: Client) -> None:
    async def main() -> list[str]:
        return lens.metrics()

    assert "revenue" in asyncio.run(main())


def test_the_async_face_works_on_several_loops(script: Script) -> None:
    client = async_client(script.app())
    asyncio.run(client.metrics())
    assert "revenue" in asyncio.run(client.metrics())
    asyncio.run(client.aclose())


def test_the_async_face_is_a_context_manager(script: Script) -> None:
    async def main() -> str:
        async with async_client(script.app()) as lens:
            return str(await lens.available())

    assert asyncio.run(main()) == "2026-08-22T00:00Z/2026-11-20T11:00Z"


def test_threads_may_share_a_client(lens: Client, script: Script) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: lens.available(), range(8)))
    assert (len(set(map(str, answers))), len(script.paths)) == (1, 1)


def test_all_clients_live_on_one_loop() -> None:
    assert shared_loop() is shared_loop()


def test_an_interrupt_stops_the_requests(make_lens: Make) -> None:
    slow = Slow()
    lens = make_lens(slow)
    threading.Thread(target=lambda: (slow.waiting.wait(5), _thread.interrupt_main())).start()
    with pytest.raises(KeyboardInterrupt):
        lens.query("event_count", over="last 90 complete days")
    time.sleep(0.1)  # those that were starting as it was interrupted
    arrived = slow.arrived
    time.sleep(1.3)  # long enough for the next second's requests, were there any
    assert slow.arrived == arrived


def test_after_an_interrupt_the_next_call_works(make_lens: Make) -> None:
    slow = Slow()
    lens = make_lens(slow)
    threading.Thread(target=lambda: (slow.waiting.wait(5), _thread.interrupt_main())).start()
    with pytest.raises(KeyboardInterrupt):
        lens.query("event_count", over="2026-11-01")
    assert lens.available()


def test_a_cancelled_task_stops_the_requests() -> None:
    slow = Slow()

    async def main() -> int:
        async with async_client(slow) as lens:
            task = asyncio.create_task(lens.query("event_count", over="last 88 complete days"))
            await asyncio.to_thread(slow.waiting.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.1)  # those that were starting as it was cancelled
            arrived = slow.arrived
            await asyncio.sleep(1.3)
            return slow.arrived - arrived

    assert asyncio.run(main()) == 0


def test_a_client_is_a_context_manager(script: Script) -> None:
    with Client(api_key=KEY, metrics_url=next(_addresses), transport=httpx.ASGITransport(script.app())) as lens:
        assert lens.metrics() == script.metrics


def test_closing_twice_does_no_harm(lens: Client) -> None:
    lens.close()
    lens.close()


def test_the_repr_shows_the_address(make_lens: Make) -> None:
    assert repr(make_lens(metrics_url="https://a.example/")) == "Client('https://a.example')"


def test_everything_is_given_by_keyword() -> None:
    with pytest.raises(TypeError):
        Client(KEY)  # type: ignore[misc]


@pytest.mark.parametrize("max_days", [0, -1])
def test_max_days_is_at_least_one(make_lens: Make, max_days: int) -> None:
    with pytest.raises(BadQuery, match="max_days"):
        make_lens(max_days=max_days)


def test_a_client_without_a_key_says_where_to_put_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAMELENS_API_KEY", raising=False)
    with pytest.raises(AuthError, match="GAMELENS_API_KEY"):
        Client(metrics_url="https://a.example")


@pytest.mark.parametrize(
    "options", [{"max_days": "3"}, {"max_days": 0}, {"max_wait_s": "60"}, {"refresh_s": None}, {"pace": "fast"}]
)
def test_an_option_that_cannot_be_is_refused(make_lens: Make, options: dict[str, Any]) -> None:
    with pytest.raises(BadQuery) as refused:
        make_lens(**options)
    assert refused.value.field == next(iter(options))


@pytest.mark.parametrize("deadline_s", ["5", float("nan"), True])
def test_a_deadline_that_is_no_number_is_refused(lens: Client, deadline_s: Any) -> None:
    with pytest.raises(BadQuery, match="deadline_s"):
        lens.query("revenue", over="2026-11-01", deadline_s=deadline_s)


def test_days_that_are_none_are_refused(lens: Client) -> None:
    with pytest.raises(BadQuery, match="days = None"):
        lens.retention(None, over="2026-11-01")  # type: ignore[arg-type]


def test_a_closed_client_says_so(lens: Client) -> None:
    lens.close()
    with pytest.raises(Refused, match="this client is closed"):
        lens.available()
