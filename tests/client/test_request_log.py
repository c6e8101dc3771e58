"""The log of requests: a line each, waits, and never a secret."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from gamelens.client.async_client import AsyncClient
from gamelens.client.connection.control_api import ControlApi
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, Transport
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.sync_client import Client
from gamelens.errors import GamelensError
from support.scripted_service import Script

HOSTILE_KEYS = ["%s%(key)d{0}", "revenue", "sesame/?&=+%", "2026", "attempt", "\\n\\u0073"]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the log, each behind its level."""
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name.startswith("gamel")]


class Clocked:
    """A transport to an app that gives *answers* in turn, each after 38 ms. Time passes only there and in waits."""

    def __init__(self, *answers: Response | Exception, key: str = "sesame-0123456789") -> None:
        self._answers = list(answers)
        self._time = 0.0
        self._transport = Transport(
            "http://127.0.0.1/token-in-the-address",
            key=Secret(key),
            pool=httpx.ASGITransport(self._app),
            clock=lambda: self._time,
            sleep=self._sleep,
            random=lambda: 0.5,
        )

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._time += 0.038
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        await answer(scope, receive, send)

    async def _sleep(self, seconds: float) -> None:
        self._time += seconds

    def send(self, subject: str = "revenue 2026-11-13/P7D") -> None:
        """Send one request, which may fail."""
        request = HttpRequest(method="POST", path="/metrics/v1/metrics/revenue", body=b"{}", subject=subject)
        asyncio.run(self._transport.send(request))


def test_a_request_is_one_line_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """With metric, days, status, duration and attempt."""
    caplog.set_level(logging.DEBUG, "gamelens")
    Clocked(JSONResponse([])).send()
    assert lines(caplog) == ["DEBUG revenue 2026-11-13/P7D: 200 in 38 ms, attempt 1"]


def test_retries_and_the_waits_of_429_are_lines_at_info(caplog: pytest.LogCaptureFixture) -> None:
    """A Retry-After is said as it is waited for, and a failure without an answer has no status."""
    caplog.set_level(logging.INFO, "gamelens")
    refused = JSONResponse({}, 429, {"Retry-After": "7"})
    Clocked(refused, JSONResponse({}, 503), httpx.ReadError("broken"), PlainTextResponse("fine")).send()
    assert lines(caplog) == [
        "INFO revenue 2026-11-13/P7D: 429, attempt 2 in 7.0 s",
        "INFO revenue 2026-11-13/P7D: 503, attempt 3 in 1.0 s",
        "INFO revenue 2026-11-13/P7D: no answer, attempt 4 in 2.0 s",
    ]


def test_a_refused_request_is_a_line_too(caplog: pytest.LogCaptureFixture) -> None:
    """With its status, also where the error says more; a web page is no answer that can be used."""
    caplog.set_level(logging.DEBUG, "gamelens")
    for answer in (JSONResponse({"message": "no"}, 422), Response("<!doctype html>", media_type="text/html")):
        with pytest.raises(GamelensError):
            Clocked(answer).send()
    assert lines(caplog) == [
        "DEBUG revenue 2026-11-13/P7D: 422 in 38 ms, attempt 1",
        "DEBUG revenue 2026-11-13/P7D: unusable answer in 38 ms, attempt 1",
    ]


def test_a_request_that_the_deadline_stops_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """It was sent, and nobody waits for its answer any more."""
    caplog.set_level(logging.DEBUG, "gamelens")

    async def stop() -> None:
        is_asked = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            is_asked.set()
            await asyncio.sleep(60)

        transport = Transport("http://127.0.0.1", pool=httpx.ASGITransport(app))
        sending = asyncio.create_task(transport.send(HttpRequest(method="GET", path="/", subject="metrics")))
        await is_asked.wait()
        sending.cancel()  # as the deadline does
        await sending

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stop())
    (line,) = lines(caplog)
    assert re.fullmatch(r"DEBUG metrics: stopped in \d+ ms, attempt 1", line)


QUERY: dict[str, Any] = {"over": ("2026-11-10", "2026-11-11"), "every": "day"}
QUERY_LINES = [
    r"DEBUG interval: 200 in \d+ ms, attempt 1",
    r"DEBUG revenue 2026-11-10/P2D: 200 in \d+ ms, attempt 1",
]


def test_a_query_logs_its_requests(
    script: Script, make_lens: Callable[..., Client], caplog: pytest.LogCaptureFixture
) -> None:
    """The available interval and the rows; what the cache has takes no request and is no line."""
    caplog.set_level(logging.DEBUG, "gamelens")
    script.answers["revenue"] = lambda _: []
    lens = make_lens()
    for _ in range(2):
        lens.query("revenue", **QUERY)
    said = lines(caplog)
    assert len(said) == len(script.paths) == 2
    assert [line for pattern, line in zip(QUERY_LINES, said, strict=True) if not re.fullmatch(pattern, line)] == []


def test_an_asynchronous_query_logs_its_requests(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    """As the client without await does."""
    caplog.set_level(logging.DEBUG, "gamelens")
    script.answers["revenue"] = lambda _: []

    async def query() -> None:
        pool = httpx.ASGITransport(script.app())
        async with AsyncClient(api_key="k", metrics_url="http://127.0.0.1:9", transport=pool, cache=False) as lens:
            await lens.query("revenue", **QUERY)

    asyncio.run(query())
    said = lines(caplog)
    assert [line for pattern, line in zip(QUERY_LINES, said, strict=True) if not re.fullmatch(pattern, line)] == []


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_no_line_has_a_key_however_it_is_formed(key: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not where the service quotes it in every place, nor where a name or the text of the log is the key."""
    caplog.set_level(logging.DEBUG, "gamelens")
    quoted = JSONResponse({"message": key, "field": key}, 503, {"Retry-After": "0", "X-Key": key, "Location": key})
    for subject in (key, f"a{key}b 2026-11-13/P7D", f"{key[:1]}\u200b{key[1:]}"):
        Clocked(quoted, httpx.ReadError(key), JSONResponse([]), key=key).send(subject)
    records = [record for record in caplog.records if record.name.startswith("gamelens")]
    assert len(records) == 3 * 5
    assert [record.getMessage() for record in records if key in f"{record.getMessage()} {record.args}"] == []


def test_a_metric_that_a_service_calls_by_the_key_is_masked(
    script: Script, make_lens: Callable[..., Client], caplog: pytest.LogCaptureFixture
) -> None:
    """Names that only the service knows are passed on, and are in the log as they are in its address."""
    caplog.set_level(logging.DEBUG, "gamelens")
    key = "sesame/0123"
    script.metrics.append(key)
    with pytest.raises(GamelensError):  # no route has such a name
        make_lens(api_key=key, cache=False).query(key, **QUERY)
    assert "DEBUG … 2026-11-10/P2D: 404 in" in "\n".join(lines(caplog))
    assert key not in "\n".join(lines(caplog))


def test_no_line_has_a_line_break(caplog: pytest.LogCaptureFixture) -> None:
    """A name from the service cannot write a line of its own."""
    caplog.set_level(logging.DEBUG, "gamelens")
    Clocked(JSONResponse([])).send("x\nINFO revenue\r\u2028y")
    assert not re.search(r"[\n\r\u2028]", "".join(lines(caplog)))


def test_no_line_has_an_address_or_a_key_of_a_game(caplog: pytest.LogCaptureFixture) -> None:
    """Addresses may have a token in them, and that of the collector has the game's key."""
    caplog.set_level(logging.DEBUG, "gamelens")
    Clocked(JSONResponse([])).send()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"server_ts": 1, "enabled": True})(scope, receive, send)

    async def send_events() -> None:
        keys: dict[str, Any] = {"game_key": "game-key-of-it", "secret_key": "secret-key-of-it"}
        url, pool = "http://127.0.0.1/collector-token", httpx.ASGITransport(app)
        async with CollectorClient(collector_url=url, transport=pool, **keys) as collector:
            await collector.init_v2(user_id="ada", platform="ios", os_version="ios 17")
            await collector.submit(b"[]")
        control = ControlApi("http://127.0.0.1:1/control-token", pool=pool)
        await control.summary()
        await control.aclose()

    asyncio.run(send_events())
    said = lines(caplog)
    assert [re.sub(r"\d+ ms", "ms", line) for line in said[1:]] == [
        "DEBUG version 2 init: 200 in ms, attempt 1",
        "DEBUG events: 200 in ms, attempt 1",
        "DEBUG control API /summary: 200 in ms, attempt 1",
    ]
    assert not re.search(r"token|key|http|127|ada", "\n".join(said))


WARN = "import logging; logging.getLogger('gamelens.client').warning('a warning')"


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (f"import gamelens; {WARN}", ""),
        (f"import gamelens, logging; logging.basicConfig(format='%(message)s'); {WARN}", "a warning\n"),
        (f"import sys; from gamelens.__main__ import main; sys.argv = ['gamelens', '--version']\n"
         f"try:\n    main()\nexcept SystemExit:\n    {WARN}", "a warning\n"),
    ],
    ids=["the library", "a program that asks for it", "a command"],
)  # fmt: skip
def test_the_library_prints_nothing_by_default(program: str, printed: str) -> None:
    """Not even warnings, until a program sets logging up. A command is a program."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == printed
