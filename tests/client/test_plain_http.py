"""Where a key may travel: over https or loopback, and never along a redirect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gamelens.client.async_client import AsyncClient
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, ServiceError, Unreachable
from support.command_process import run_here
from support.plain_server import PlainRequest, PlainServer, plain_server
from support.scripted_service import KEY

GAME: dict[str, Any] = {
    "game_key": "0123456789abcdef0123456789abcdef",
    "secret_key": "0123456789abcdef0123456789abcdef01234567",
}
BEYOND = "http://metrics.invalid"  # a name that never resolves (RFC 6761)

Call = Callable[[str], object]


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a configuration folder of its own and no leave."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GAMELENS_ALLOW_HTTP", raising=False)


def available(url: str, **options: Any) -> None:
    """Read the available interval with `Client`."""
    with Client(api_key=KEY, metrics_url=url, cache=False, **options) as lens:
        lens.available()


def available_async(url: str, **options: Any) -> None:
    """Read the available interval with `AsyncClient`."""

    async def run() -> None:
        async with AsyncClient(api_key=KEY, metrics_url=url, cache=False, **options) as lens:
            await lens.available()

    asyncio.run(run())


def submit(url: str, **options: Any) -> None:
    """Submit an empty batch with `CollectorClient`."""

    async def run() -> None:
        async with CollectorClient(collector_url=url, **GAME, **options) as collector:
            await collector.submit(b"[]")

    asyncio.run(run())


CALLS = [available, available_async, submit]


@pytest.mark.parametrize("call", CALLS)
def test_a_client_refuses_plain_http(call: Callable[..., None]) -> None:
    """Each client refuses an http address beyond this machine before it sends anything."""
    with pytest.raises(BadQuery, match=r"must be https.*allow_http=True"):
        call(BEYOND)


@pytest.mark.parametrize("call", CALLS)
def test_a_client_may_be_allowed_plain_http(call: Callable[..., None]) -> None:
    """With `allow_http=True` each client tries the address."""
    with pytest.raises(Unreachable, match=r"metrics\.invalid"):
        call(BEYOND, allow_http=True, max_wait_s=0)


@pytest.mark.slow
@pytest.mark.parametrize(("leave", "says"), [({}, "must be https"), ({"GAMELENS_ALLOW_HTTP": "1"}, "nothing answers")])
def test_the_command_obeys_the_variable(leave: dict[str, str], says: str, tmp_path: Path) -> None:
    """`gamelens query` refuses plain http in one line unless the environment allows it."""
    settings = {"GAMELENS_API_KEY": KEY, "GAMELENS_METRICS_URL": BEYOND, "GAMELENS_CACHE_DIR": str(tmp_path)}
    done = run_here("query", "revenue", "--over", "2026-11-01", env=settings | leave)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert says in done.stderr


# -- redirects --------------------------------------------------------------------------------------------------------


def redirection(status: int, call: Call, target: str = "/elsewhere") -> tuple[ServiceError, PlainServer, PlainServer]:
    """Return the error of *call* to a server that redirects to another, and both servers."""
    with plain_server(lambda request: request.answer(200)) as other:

        def respond(request: PlainRequest) -> None:
            request.answer(status, b"moved", location=other.url + target)

        with plain_server(respond) as first, pytest.raises(ServiceError) as failed:
            call(first.url)
    return failed.value, first, other


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, call: Call) -> None:
    """A redirect is a `ServiceError` after one request; its target receives none."""
    error, first, other = redirection(status, call)
    assert (error.status, len(first.paths), other.paths) == (status, 1, [])


def test_the_error_of_a_redirect_names_its_target() -> None:
    """The message has the target, the reason and the next step."""
    error, _, other = redirection(302, available)
    redirect = f"a redirect to {other.url}/elsewhere, which is not followed, because the key would go with it"
    assert str(error) == f"the service answered 302: {redirect}. Set the address of the service itself"


def test_a_target_that_quotes_the_key_is_masked() -> None:
    """A login page that gets the key as a parameter is named without it."""
    error, _, _ = redirection(302, available, f"/login?key={KEY}")
    assert KEY not in str(error)


def test_a_redirect_without_a_target_keeps_its_words() -> None:
    """Without `Location` a 300 is a `ServiceError` with the words of its body."""
    with (
        plain_server(lambda request: request.answer(300, b"several answers")) as server,
        pytest.raises(ServiceError, match="answered 300: several answers"),
    ):
        available(server.url)
