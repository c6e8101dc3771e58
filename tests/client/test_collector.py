"""The collector client against the sandbox's collector (Collector, Endpoints and Authentication)."""

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

from conftest import NOW, Stage, event
from gamelens.client.events.collector_client import CollectorClient
from gamelens.errors import AuthError, BadQuery, ServiceError
from gamelens.wire.remote_config import InitUnchanged
from gamelens.wire.signing import is_signed

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET_KEY = "0123456789abcdef0123456789abcdef01234567"

T = TypeVar("T")
Use = Callable[[CollectorClient], Awaitable[T]]


def with_client(app: Any, use: Use[T], **options: Any) -> T:
    async def main() -> T:
        keys = {
            "game_key": "0123456789abcdef0123456789abcdef",
            "secret_key": "0123456789abcdef0123456789abcdef01234567",
        }
        options_ = {"collector_url": "http://127.0.0.1", **keys, "transport": httpx.ASGITransport(app)} | options
        async with CollectorClient(**options_) as client:
            return await use(client)

    return asyncio.run(main())


def events(*members: Any) -> bytes:
    return json.dumps(members).encode()


class Recorder:
    """An app that keeps one request and gives one answer."""

    def __init__(self, status: int = 200, body: bytes = b"") -> None:
        self.status = status
        self.answer = body
        self.body = b""
        self.headers: dict[str, str] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        message: dict[str, Any] = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            self.body += message.get("body", b"")
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": self.answer})


def test_good_events_are_collected(stage: Stage) -> None:
    """Collector, POST events: 200, all events were collected."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit(events(event(), event())))
    assert (answer.status, answer.rejected) == (200, ())


def test_rejected_events_come_back_with_their_faults(stage: Stage) -> None:
    """public-facts 1.7."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit(events(event(), event(session_id=7))))
    (rejected,) = answer.rejected
    assert [(fault.error_type, fault.path) for fault in rejected.errors] == [("wrong_type", "/session_id")]


def test_a_body_nobody_can_read_is_rejected_as_a_whole(stage: Stage) -> None:
    answer = with_client(stage.sandbox.collector, lambda client: client.submit(b"[{"))
    assert (answer.status, answer.rejected[0].event) == (400, None)


def test_a_wrong_secret_is_an_auth_error(stage: Stage) -> None:
    """Collector, Authentication 2."""
    with pytest.raises(AuthError):
        with_client(stage.sandbox.collector, lambda client: client.submit(events(event())), secret_key="f" * 40)


def test_a_body_too_large_is_a_bad_query(stage: Stage) -> None:
    """Collector, Limits: 1 MB."""
    with pytest.raises(BadQuery, match=r"1 MB|bytes"):
        with_client(stage.sandbox.collector, lambda client: client.submit(b"[" + b" " * 1_100_000 + b"]"), gzip_level=0)


def as_is(stage: Stage, body: bytes, **how: Any) -> tuple[int, int]:
    """Status and number of rejected entries of what was sent as it is."""
    answer = with_client(stage.sandbox.collector, lambda client: client.submit_as_is(body, **how))
    return answer.status, len(answer.rejected)


def test_what_is_sent_as_it_is_is_answered_for_what_it_is(stage: Stage) -> None:
    """Contract, Collector: whoever tests a collector wants the answer, not an error."""
    good = events(event())
    packed = gzip.compress(good)
    assert as_is(stage, good, is_gzipped=False) == (200, 0)
    assert as_is(stage, packed, is_gzipped=True) == (200, 0)
    assert as_is(stage, packed, is_gzipped=True, signed=good) == (401, 0)
    assert as_is(stage, packed[:-9], is_gzipped=True) == (400, 1)
    assert as_is(stage, good, is_gzipped=True) == (400, 1)
    assert as_is(stage, good + b" " * 1_048_576, is_gzipped=False) == (413, 0)


def test_the_signature_covers_the_gzipped_bytes() -> None:
    """Collector, Authentication 3."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert is_signed(recorder.body, recorder.headers["authorization"], secret_key=SECRET_KEY)


def test_the_body_is_gzipped_and_says_so() -> None:
    """Collector, Common request headers."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert (gzip.decompress(recorder.body), recorder.headers["content-encoding"]) == (b"[]", "gzip")


def test_a_gzipped_body_does_not_tell_the_time() -> None:
    """RFC 1952, 2.3.1: MTIME 0 is none, so that the same events are the same bytes whenever they are sent."""
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


def test_without_the_sandbox_bodies_are_gzipped_as_well() -> None:
    """zlib-ng comes with the sandbox only; Python's own zlib does the same."""
    assert subprocess.run([sys.executable, "-c", _WITHOUT_ZLIB_NG], check=False).returncode == 0


def test_level_zero_sends_plain_json() -> None:
    """Collector, Common request headers: Content-Encoding only when gzipped."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"), gzip_level=0)
    assert (recorder.body, "content-encoding" in recorder.headers) == (b"[]", False)


def test_the_length_is_sent() -> None:
    """Collector, Common request headers."""
    recorder = Recorder()
    answer = with_client(recorder, lambda client: client.submit(b"[]"))
    assert int(recorder.headers["content-length"]) == answer.sent_bytes == len(recorder.body)


def test_a_server_names_the_players_address() -> None:
    """Collector, Submitting on behalf of clients 2."""
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]", forwarded_for="192.0.2.7"))
    assert recorder.headers["x-forwarded-for"] == "192.0.2.7"


def test_the_metrics_key_is_not_sent_to_the_collector() -> None:
    recorder = Recorder()
    with_client(recorder, lambda client: client.submit(b"[]"))
    assert "x-api-key" not in recorder.headers


def test_a_400_of_another_shape_is_a_service_error() -> None:
    with pytest.raises(ServiceError, match="rejected events"):
        with_client(Recorder(400, b'{"no": 1}'), lambda client: client.submit(b"[]"))


def init(client: CollectorClient) -> Awaitable[Any]:
    return client.init(user_id="ann", platform="ios", os_version="ios 17.0")


def init_v2(client: CollectorClient) -> Awaitable[Any]:
    return client.init_v2(user_id="ann", platform="ios", os_version="ios 17.0")


def test_init_brings_the_configs(stage: Stage) -> None:
    """Collector, POST remote_configs init: 201 with all fields."""
    answer = with_client(stage.sandbox.collector, init)
    assert [(config.key, config.value) for config in answer.configs] == [("difficulty", "normal")]


def test_a_current_hash_brings_the_small_answer(stage: Stage) -> None:
    """Collector, POST remote_configs init 4."""

    async def twice(client: CollectorClient) -> Any:
        known = await init(client)
        return await client.init(user_id="ann", platform="ios", os_version="ios 17.0", configs_hash=known.configs_hash)

    assert with_client(stage.sandbox.collector, twice) == InitUnchanged(server_ts=int(NOW.timestamp()))


def test_v2_init_says_enabled_and_the_time(stage: Stage) -> None:
    """Collector, Init response."""
    answer = with_client(stage.sandbox.collector, init_v2)
    assert (answer.enabled, answer.server_ts) == (True, int(NOW.timestamp()))


def test_an_introduction_has_the_fields_of_the_specification() -> None:
    """Collector, Init request body."""
    recorder = Recorder(200, b'{"enabled":true,"server_ts":1795000000,"flags":[]}')
    with_client(recorder, init_v2)
    assert json.loads(recorder.body).keys() == {"user_id", "platform", "os_version", "sdk_version", "random_salt"}


def test_the_specifications_big_answer_is_read() -> None:
    """Collector, Init response."""
    body = (
        b'{"server_ts":1795000000,"configs":[{"key":"difficulty","value":"easy","start_ts":1,"end_ts":null}],'
        b'"configs_hash":"abc","ab_id":"exp1","ab_variant_id":"fast"}'
    )
    answer = with_client(Recorder(201, body), init)
    assert (answer.ab_id, answer.configs[0].value) == ("exp1", "easy")


def test_configs_of_a_kind_that_comes_later_break_nothing() -> None:
    """Collector, Init response: clients must not break if it holds new kinds of values later."""
    body = b'{"server_ts":1795000000,"configs":[7,{"kind":"new"},{"key":"a","value":{"b":1}}],"configs_hash":"abc"}'
    assert [config.value for config in with_client(Recorder(201, body), init).configs] == [{"b": 1}]


def test_a_small_answer_to_a_first_request_is_a_service_error() -> None:
    """Collector, POST remote_configs init 4: small only when the client holds the configuration."""
    with pytest.raises(ServiceError):
        with_client(Recorder(200, b'{"server_ts":1795000000}'), init)


@pytest.mark.parametrize("server_ts", [0, -1])
def test_a_server_without_a_clock_is_a_service_error(server_ts: int) -> None:
    """public-facts 1.5: server_ts is above 0."""
    with pytest.raises(ServiceError, match="server_ts"):
        with_client(Recorder(200, b'{"enabled":true,"server_ts":%d}' % server_ts), init_v2)


def test_one_attempt_is_one_request() -> None:
    recorder = Recorder(503)
    with pytest.raises(ServiceError):
        with_client(recorder, lambda client: client.submit(b"[]", attempts=1), gzip_level=0)
    assert recorder.body == b"[]"


def test_the_repr_holds_no_secret() -> None:
    async def shown(client: CollectorClient) -> str:
        return repr(client)

    assert SECRET_KEY not in with_client(Recorder(), shown)
