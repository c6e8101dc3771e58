"""Requests and responses of the collector as bytes written by hand."""

import base64
import gzip
import hashlib
import hmac
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from gamelens.wire.signing import sign
from support.game_events import NOW, event
from support.sandbox_stage import CONFIG, Stage

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET = "0123456789abcdef0123456789abcdef01234567"


def _signed(body: bytes) -> dict[str, str]:
    """Return the headers of a request with *body*, signed without the code under test."""
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).digest()
    return {"Authorization": base64.b64encode(digest).decode(), "Content-Type": "application/json"}


def test_signature_is_base64_of_hmac_sha256() -> None:
    """A signature is the Base64 of the HMAC-SHA256 of the body (Wire 1.4, Signature).

    The value was computed with `openssl dgst -sha256 -hmac`.
    """
    assert sign(b'{"test": "test"}', secret_key="16813a12f718bc5c620f56944e1abc3ea13ccbac") == (
        "slnR8CKJtKtFDaESSrqnqQeUvp5FaVV7d5XHxt50N5A="
    )


def test_signature_covers_the_gzipped_bytes(stage: Stage) -> None:
    """The signature of a gzipped body is that of the bytes as sent (Wire 1.4, Signature)."""
    body = gzip.compress(json.dumps([event()]).encode())
    assert stage.post(f"/v2/{GAME_KEY}/events", body, _signed(body) | {"Content-Encoding": "gzip"}).status_code == 200


def test_events_may_come_without_gzip(stage: Stage) -> None:
    """A batch of events may be plain JSON (Wire 1.6, Body limits)."""
    body = json.dumps([event()]).encode()
    assert stage.post(f"/v2/{GAME_KEY}/events", body, _signed(body)).status_code == 200


def test_custom_integrations_get_an_empty_body(stage: Stage) -> None:
    """A batch of `rest api v2` events gets 200 with an empty body.

    Wire 1.7, Submitting events.
    """
    assert stage.submit([event()]).content == b""


def test_official_clients_get_a_json_body(stage: Stage) -> None:
    """A batch of an official client gets `{}`: it takes an empty body for offline.

    Wire 1.7, Submitting events; Wire 1.18, Official clients.
    """
    assert stage.submit([event(sdk_version="cpp 5.4.0")]).content == b"{}"


def test_zero_events_are_collected(stage: Stage) -> None:
    """An empty batch gets 200 with `{}` (Wire 1.7, Submitting events)."""
    answer = stage.submit([])
    assert (answer.status_code, answer.content) == (200, b"{}")


def test_version_2_init_answers_in_full_and_then_in_short(stage: Stage) -> None:
    """A version 2 init gets 201 with configs, and 200 without once the hash is known.

    Both have `enabled`, `server_ts` and `flags`. Wire 1.11, Version 2 init.
    """
    body = b'{"user_id":"ann","platform":"ios","os_version":"ios 17","sdk_version":"rest api v2","random_salt":"x"}'
    full = stage.post(f"/v2/{GAME_KEY}/init", body, _signed(body))
    assert full.status_code == 201
    configs_hash = full.json()["configs_hash"]
    assert re.fullmatch("[0-9a-f]{16}", configs_hash)
    assert full.json() == {
        "enabled": True,
        "server_ts": int(NOW.timestamp()),
        "flags": [],
        "configs": [{"key": "difficulty", "value": "normal", "end_ts": None}],
        "configs_hash": configs_hash,
    }
    short = stage.post(f"/v2/{GAME_KEY}/init?configs_hash={configs_hash}", body, _signed(body))
    assert short.status_code == 200
    assert short.content == b'{"enabled":true,"server_ts":%d,"flags":[]}' % NOW.timestamp()


@pytest.mark.parametrize(("variant", "configs"), [("ctrl", []), ("fast", [("speed", "2")])])
def test_version_2_init_names_the_experiment(
    make_stage: Callable[..., Stage], variant: str, configs: list[Any]
) -> None:
    """A player in an experiment gets both ids and the configs of the variant alone.

    The control group gets none. Wire 1.11, Version 2 init; Wire 1.13, Configs and experiments.
    """
    experiment = f"""
      [[organisation.studio.game.experiment]]
      id = "exp1"
        [[organisation.studio.game.experiment.variant]]
        id = "{variant}"
"""
    for key, value in configs:
        experiment += f"""
          [[organisation.studio.game.experiment.variant.config]]
          key = "{key}"
          value = "{value}"
"""
    stage = make_stage(tenants=CONFIG.replace('      value = "normal"\n', f'      value = "normal"\n{experiment}', 1))
    body = b'{"user_id":"ann","platform":"ios","os_version":"ios 17","sdk_version":"rest api v2","random_salt":"x"}'
    answer = stage.post(f"/v2/{GAME_KEY}/init", body, _signed(body)).json()
    assert (answer["ab_id"], answer["ab_variant_id"]) == ("exp1", variant)
    assert [(config["key"], config["value"]) for config in answer["configs"]] == configs


@pytest.mark.parametrize("path", [f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"platform":"ios","os_version":"ios 17","sdk_version":"rest api v2"}',
        b'[{"platform":"ios","os_version":"ios 17","sdk_version":"rest api v2"}]',
    ],
)
def test_an_init_of_an_older_integration_is_accepted(stage: Stage, path: str, body: bytes) -> None:
    """An init without `user_id` and `random_salt` gets the global configs.

    Wire 1.11, Version 2 init.
    """
    answer = stage.post(path, body, _signed(body))
    assert answer.status_code == 201
    assert [config["key"] for config in answer.json()["configs"]] == ["difficulty"]


def test_remote_init_answers_in_full_and_then_in_short(stage: Stage) -> None:
    """A remote init gets 201 with configs, and 200 without once the hash is known.

    Wire 1.12, Remote config init.
    """
    body = b'{"user_id":"ann","platform":"ios","os_version":"ios 17","sdk_version":"rest api v2","random_salt":1}'
    path = f"/remote_configs/v1/init?game_key={GAME_KEY}&interval_seconds=0&configs_hash="
    full = stage.post(path, body, _signed(body))
    short = stage.post(path + full.json()["configs_hash"], body, _signed(body))
    assert (full.status_code, sorted(full.json())) == (201, ["configs", "configs_hash", "server_ts"])
    assert [(config["key"], config["value"]) for config in full.json()["configs"]] == [("difficulty", "normal")]
    assert (short.status_code, short.json()) == (200, {"server_ts": int(NOW.timestamp())})


def test_every_answer_has_the_headers_of_the_collector(stage: Stage) -> None:
    """A 404, too, has the service header, CORS and a JSON content type.

    Wire 1.5, Response headers.
    """
    headers = stage.post("/nowhere", b"").headers
    assert headers["x-svc-service"] == "collect"
    assert headers["access-control-allow-origin"] == "*"
    assert headers["content-type"] == "application/json"
