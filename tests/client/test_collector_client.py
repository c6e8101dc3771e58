"""The collector client against the sandbox's collector."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gamelens.client.events.collector_client import CollectorClient, GameStatus
from gamelens.errors import AuthError, BadQuery, ServiceError
from gamelens.wire.remote_config import InitAnswer, InitUnchanged
from gamelens.wire.signing import is_signed
from support.game_events import NOW, event
from support.sandbox_stage import Stage

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET_KEY = "0123456789abcdef0123456789abcdef01234567"

T = TypeVar("T")
Use = Callable[[CollectorClient], Awaitable[T]]


def with_client(app: ASGIApp, use: Use[T], **options: Any) -> T:
    """Return what *use* returns for a client of *app*, which is closed afterwards."""

    async def main() -> T:
        defaults: dict[str, Any] = {"collector_url": "http://127.0.0.1", "game_key": GAME_KEY, "secret_key": SECRET_KEY}
        async with CollectorClient(**defaults | {"transport": httpx.ASGITransport(app)} | options) as client:
            return await use(client)

    return asyncio.run(main())


def events(*members: Any) -> bytes:
    """Return the JSON array of *members*."""
    return json.dumps(members).encode()


class Recorder:
    """An app that records one request and always gives the same response."""

    def __init__(self, status: int = 200, body: bytes = b"") -> None:
        self.status = status
        self.answer = body
        self.body = b""
        self.headers: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        message: Message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            self.body += message.get("body", b"")
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": self.answer})


def test_good_events_are_collected(stage: Stage) -> None:
    """200 means that all events were collected (Wire 1.7, Submitting events)."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit(events(event(), event())))
    assert (answer.status, answer.rejected) == (200, ())
    assert repr(answer) == f"<SubmitResult: all events were collected (status 200, {answer.sent_bytes:,} bytes sent)>"


def test_rejected_events_come_back_with_their_violations(stage: Stage) -> None:
    """Each rejected event comes with type and path of the error (Wire 1.8, Rejected events)."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit(events(event(), event(session_id=7))))
    (rejected,) = answer.rejected
    assert "1 event was rejected and all others collected; .rejected names the broken rules (status 400" in repr(answer)
    assert [(fault.error_type, fault.path) for fault in rejected.errors] == [("wrong_type", "/session_id")]


def test_an_unreadable_body_is_rejected_as_a_whole(stage: Stage) -> None:
    """A body that is not JSON is one rejection without an event (Wire 1.8, Rejected events)."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit(b"[{"))
    assert (answer.status, answer.rejected[0].event) == (400, None)
    assert "the body could not be read, so no event was collected" in repr(answer)


def test_a_wrong_secret_is_an_auth_error(stage: Stage) -> None:
    """A wrong signature is answered 401 and raised as `AuthError` (Wire 1.4, Signature)."""
    with pytest.raises(AuthError):
        with_client(stage.sandbox.collector, lambda client: client.submit(events(event())), secret_key="f" * 40)


def test_a_body_too_large_is_a_bad_query(stage: Stage) -> None:
    """A body over 1 MB as sent is refused (Wire 1.6, Body limits)."""
    with pytest.raises(BadQuery, match=r"1 MB|bytes"):
        with_client(stage.sandbox.collector, lambda client: client.submit(b"[" + b" " * 1_100_000 + b"]"), gzip_level=0)


def answer_to_raw(stage: Stage, body: bytes, **how: Any) -> tuple[int, int]:
    """Return status and number of rejections of a body sent exactly as given."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit_as_is(body, **how))
    return answer.status, len(answer.rejected)


def test_submit_as_is_returns_every_status(stage: Stage) -> None:
    """`submit_as_is` returns every answer as a status (Wire 1.10, Collector statuses)."""
    good = events(event())
    packed = gzip.compress(good)
    assert answer_to_raw(stage, good, is_gzipped=False) == (200, 0)
    assert answer_to_raw(stage, packed, is_gzipped=True) == (200, 0)
    assert answer_to_raw(stage, packed, is_gzipped=True, signed=good) == (401, 0)
    assert answer_to_raw(stage, packed[:-9], is_gzipped=True) == (400, 1)
    assert answer_to_raw(stage, good, is_gzipped=True) == (400, 1)
    assert answer_to_raw(stage, good + b" " * 1_048_576, is_gzipped=False) == (413, 0)


def test_the_signature_covers_the_gzipped_bytes() -> None:
    """The signature is made of the bytes as sent, after gzip (Wire 1.4, Signature)."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert is_signed(recorder.body, recorder.headers["authorization"], secret_key=SECRET_KEY)


def test_the_body_is_gzipped_and_labelled() -> None:
    """A gzipped body has `Content-Encoding: gzip` (Wire 1.3, Request headers)."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert (gzip.decompress(recorder.body), recorder.headers["content-encoding"]) == (b"[]", "gzip")


def test_a_gzipped_body_holds_no_time() -> None:
    """MTIME is 0 (RFC 1952, 2.3.1), so the same events are always the same bytes."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert recorder.body[4:8] == bytes(4)


_WITHOUT_ZLIB_NG = """
import gzip, sys
sys.modules["zlib_ng"] = None  # as where only the client is installed
from gamelens.client.events import collector_client as collector
body = collector.compress(b"[]", 2, wbits=31)
assert (gzip.decompress(body), body[4:8]) == (b"[]", bytes(4))
"""


def test_without_zlib_ng_bodies_are_gzipped_as_well() -> None:
    """zlib-ng comes with the sandbox only, Python's own zlib does the same."""
    assert subprocess.run([sys.executable, "-c", _WITHOUT_ZLIB_NG], check=False).returncode == 0


def test_level_zero_sends_plain_json() -> None:
    """`Content-Encoding` is sent only with a gzipped body (Wire 1.3, Request headers)."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"), gzip_level=0)
    assert (recorder.body, "content-encoding" in recorder.headers) == (b"[]", False)


def test_the_length_is_sent() -> None:
    """`Content-Length` is the number of bytes sent (Wire 1.3, Request headers)."""
    recorder = Recorder()
    answer = with_client(recorder, lambda client: client.submit(b"[]"))
    assert int(recorder.headers["content-length"]) == answer.sent_bytes == len(recorder.body)


def test_all_requests_and_their_bytes_are_counted() -> None:
    """Inits, retries and requests that fail count as well as those that are answered 200."""
    statuses, sizes = [200, 503, 200, 500], list[int]()

    def answer(request: httpx.Request) -> httpx.Response:
        sizes.append(len(request.content))
        return httpx.Response(statuses.pop(0), content=b'{"server_ts":1795000000}')

    async def use(client: CollectorClient) -> tuple[int, int]:
        await client.init_v2(user_id="ann", platform="ios", os_version="ios 17.0")
        await client.submit(b"[]", attempts=2)
        with pytest.raises(ServiceError):
            await client.submit(b"[]", attempts=1)
        return client.requests, client.sent_bytes

    assert with_client(Recorder(), use, transport=httpx.MockTransport(answer)) == (4, sum(sizes))


def test_a_server_names_the_players_address() -> None:
    """X-Forwarded-For names the player's address (Wire 1.16, Submitting for players)."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]", forwarded_for="192.0.2.7"))
    assert recorder.headers["x-forwarded-for"] == "192.0.2.7"


def test_the_metrics_key_is_not_sent_to_the_collector() -> None:
    """The collector never receives the API key of the metrics service."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert "x-api-key" not in recorder.headers


def test_a_400_of_another_shape_is_a_service_error() -> None:
    """A 400 whose body is not an array of rejected events is a `ServiceError`."""
    with pytest.raises(ServiceError, match="rejected events"):
        with_client(Recorder(400, b'{"no": 1}'), lambda client: client.submit(b"[]"))


async def init(client: CollectorClient) -> InitAnswer:
    """Return the answer to a first init, which has all fields."""
    answer = await client.init(user_id="ann", platform="ios", os_version="ios 17.0")
    assert isinstance(answer, InitAnswer)
    return answer


def init_v2(client: CollectorClient) -> Awaitable[GameStatus]:
    """Return the answer to a version 2 init."""
    return client.init_v2(user_id="ann", platform="ios", os_version="ios 17.0")


def test_init_brings_the_configs(stage: Stage) -> None:
    """A first init is answered 201 with the configs (Wire 1.12, Remote config init)."""
    answer = with_client(stage.sandbox.collector, init)
    assert [(config.key, config.value) for config in answer.configs] == [("difficulty", "normal")]


def test_a_current_hash_brings_the_small_answer(stage: Stage) -> None:
    """An init with the current hash gets the server time only (Wire 1.12, Remote config init)."""

    async def twice(client: CollectorClient) -> InitUnchanged | InitAnswer:
        known = await init(client)
        return await client.init(user_id="ann", platform="ios", os_version="ios 17.0", configs_hash=known.configs_hash)

    assert with_client(stage.sandbox.collector, twice) == InitUnchanged(server_ts=int(NOW.timestamp()))


def test_v2_init_has_enabled_and_the_server_time(stage: Stage) -> None:
    """A version 2 init returns `enabled` and `server_ts` (Wire 1.11, Version 2 init)."""
    answer = with_client(stage.sandbox.collector, init_v2)
    assert (answer.enabled, answer.server_ts) == (True, int(NOW.timestamp()))


def test_an_init_request_has_the_documented_fields() -> None:
    """An init names player, platform, OS, SDK version and a salt (Wire 1.11, Version 2 init)."""
    recorder = Recorder(200, b'{"enabled":true,"server_ts":1795000000,"flags":[]}')
    with_client(recorder, init_v2)
    assert json.loads(recorder.body).keys() == {"user_id", "platform", "os_version", "sdk_version", "random_salt"}


def test_a_full_init_answer_is_read() -> None:
    """A 201 with configs, hash and experiment is read in full (Wire 1.12, Remote config init)."""
    body = (
        b'{"server_ts":1795000000,"configs":[{"key":"difficulty","value":"easy","start_ts":1,"end_ts":null}],'
        b'"configs_hash":"abc","ab_id":"exp1","ab_variant_id":"fast"}'
    )
    answer = with_client(Recorder(201, body), init)
    assert (answer.ab_id, answer.configs[0].value) == ("exp1", "easy")


def test_configs_of_unknown_kinds_are_skipped() -> None:
    """Configs of a kind unknown today are skipped (Wire 1.13, Configs and experiments)."""
    body = b'{"server_ts":1795000000,"configs":[7,{"kind":"new"},{"key":"a","value":{"b":1}}],"configs_hash":"abc"}'
    assert [config.value for config in with_client(Recorder(201, body), init).configs] == [{"b": 1}]


def test_an_answer_without_configs_to_a_first_init_is_a_service_error() -> None:
    """Only a client that sent a hash may get no configs (Wire 1.12, Remote config init)."""
    with pytest.raises(ServiceError):
        with_client(Recorder(200, b'{"server_ts":1795000000}'), init)


@pytest.mark.parametrize("server_ts", [0, -1])
def test_a_server_without_a_clock_is_a_service_error(server_ts: int) -> None:
    """`server_ts` is above 0 (Wire 1.12, Remote config init)."""
    with pytest.raises(ServiceError, match="server_ts"):
        with_client(Recorder(200, b'{"enabled":true,"server_ts":%d}' % server_ts), init_v2)


def test_one_attempt_is_one_request() -> None:
    """With `attempts=1` a 503 is raised after a single request."""
    recorder = Recorder(503)
    with pytest.raises(ServiceError):
        with_client(recorder, lambda client: client.submit(b"[]", attempts=1), gzip_level=0)
    assert recorder.body == b"[]"


def test_the_repr_holds_no_secret() -> None:
    """The repr of a collector client does not contain the secret key."""

    async def shown(client: CollectorClient) -> str:
        return repr(client)

    assert SECRET_KEY not in with_client(Recorder(), shown)
