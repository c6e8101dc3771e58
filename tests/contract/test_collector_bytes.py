"""Bytes and JSON typed by hand from the collector's specification."""

import base64
import gzip
import hashlib
import hmac
import json

from conftest import NOW, Stage, event
from gamelens.wire.signing import sign

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET = "0123456789abcdef0123456789abcdef01234567"


def _signed(body: bytes) -> dict[str, str]:
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).digest()
    return {"Authorization": base64.b64encode(digest).decode(), "Content-Type": "application/json"}


def test_signature_is_base64_of_hmac_sha256() -> None:
    """Collector, Authentication 2. The value was computed with `openssl dgst -sha256 -hmac`."""
    assert sign(b'{"test": "test"}', secret_key="16813a12f718bc5c620f56944e1abc3ea13ccbac") == (
        "slnR8CKJtKtFDaESSrqnqQeUvp5FaVV7d5XHxt50N5A="
    )


def test_signature_covers_the_gzipped_bytes(stage: Stage) -> None:
    """Collector, Authentication 3."""
    body = gzip.compress(json.dumps([event()]).encode())
    assert stage.post(f"/v2/{GAME_KEY}/events", body, _signed(body) | {"Content-Encoding": "gzip"}).status_code == 200


def test_events_may_come_without_gzip(stage: Stage) -> None:
    """Collector, What the service does 4."""
    body = json.dumps([event()]).encode()
    assert stage.post(f"/v2/{GAME_KEY}/events", body, _signed(body)).status_code == 200


def test_success_has_an_empty_body_for_custom_integrations(stage: Stage) -> None:
    """Collector, POST events: HTTP 200 with an empty body."""
    assert stage.submit([event()]).content == b""


def test_success_has_a_json_body_for_official_clients(stage: Stage) -> None:
    """Public facts 1.8: an empty body means offline to them."""
    assert stage.submit([event(sdk_version="cpp 5.4.0")]).content == b"{}"


def test_zero_events_are_collected(stage: Stage) -> None:
    """Collector, POST events: zero or more."""
    answer = stage.submit([])
    assert (answer.status_code, answer.content) == (200, b"{}")


def test_v2_init_says_enabled_server_ts_and_flags(stage: Stage) -> None:
    """Collector, Init response."""
    body = b'{"user_id":"ann","platform":"ios","os_version":"ios 17","sdk_version":"rest api v2","random_salt":"x"}'
    answer = stage.post(f"/v2/{GAME_KEY}/init", body, _signed(body))
    assert answer.status_code == 200
    assert answer.content == b'{"enabled":true,"server_ts":%d,"flags":[]}' % NOW.timestamp()


def test_remote_init_answers_big_and_then_small(stage: Stage) -> None:
    """Collector, POST remote_configs init 3 and 4."""
    body = b'{"user_id":"ann","platform":"ios","os_version":"ios 17","sdk_version":"rest api v2","random_salt":1}'
    path = f"/remote_configs/v1/init?game_key={GAME_KEY}&interval_seconds=0&configs_hash="
    big = stage.post(path, body, _signed(body))
    small = stage.post(path + big.json()["configs_hash"], body, _signed(body))
    assert (big.status_code, sorted(big.json())) == (201, ["configs", "configs_hash", "server_ts"])
    assert [(it["key"], it["value"]) for it in big.json()["configs"]] == [("difficulty", "normal")]
    assert (small.status_code, small.json()) == (200, {"server_ts": int(NOW.timestamp())})


def test_every_answer_says_it_is_the_collector(stage: Stage) -> None:
    """Collector, Common request headers: response headers seen."""
    headers = stage.post("/nowhere", b"").headers
    assert headers["x-svc-service"] == "collect"
    assert headers["access-control-allow-origin"] == "*"
    assert headers["content-type"] == "application/json"
