"""Recorded requests of an official client, from its bytes to the analyst's frames."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_process import running_sandbox

RECORDING = json.loads((Path(__file__).parents[2] / "data" / "official-client-cpp-5.4.0.json").read_text())
CONFIG = f"""
[[organisation]]
name = "acme"
[[organisation.studio]]
[[organisation.studio.game]]
id = "77"
game_key = "{RECORDING["game_key"]}"
secret_key = "{RECORDING["secret_key"]}"
"""


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[httpx.Response], Client]]:
    """Send the recorded requests, and return the responses and a client an hour later."""
    folder = tmp_path_factory.mktemp("official")
    (folder / "sandbox.toml").write_text(CONFIG)
    with running_sandbox(folder / "state", config=folder / "sandbox.toml") as ready, httpx.Client() as http:
        http.post(f"{ready.console_url}/clock", json={"freeze": "2026-11-20T11:40:00Z"})
        answers = [_send(http, ready.collector_url, request) for request in RECORDING["requests"]]
        http.post(f"{ready.console_url}/clock", json={"advance": "PT1H"})
        http.post(f"{ready.console_url}/process", timeout=60)
        settings = environment_of(ready)
        with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
            yield answers, client


def _send(http: httpx.Client, address: str, request: dict[str, Any]) -> httpx.Response:
    headers = {name: value for name, value in request["headers"] if name != "Host"}
    return http.post(address + request["raw_url"], content=base64.b64decode(request["body_b64"]), headers=headers)


def test_every_request_is_accepted(replay: tuple[list[httpx.Response], Client]) -> None:
    """Every recorded request, signed by the client, gets 200 or 201.

    Wire 1.4, Signature; Wire 1.12, Remote config init.
    """
    answers, _ = replay
    assert {answer.status_code for answer in answers} == {200, 201}


def test_event_responses_have_a_body(replay: tuple[list[httpx.Response], Client]) -> None:
    """Responses to events have a body, because the client takes an empty one for offline.

    Wire 1.7, Submitting events; Wire 1.18, Official clients.
    """
    answers, _ = replay
    assert {answer.text for answer in answers if answer.request.url.path.endswith("/events")} == {"{}"}


def test_every_category_is_counted(replay: tuple[list[httpx.Response], Client]) -> None:
    """Events are counted by category, with the numbers of the recording (Wire 4.11, Metrics)."""
    _, client = replay
    frame = client.query("event_count", by="category", over="2026-11-20T00:00Z/2026-11-20T12:00Z", every="day")
    assert dict(zip(frame.category, frame.event_count, strict=True)) == {
        "progression": 12,
        "design": 9,
        "error": 6,
        "resource": 6,
        "session_end": 6,
        "user": 6,
        "health": 5,
        "business": 3,
        "sdk_error": 3,
        "sdk_init": 3,
    }


def test_sessions_are_counted(replay: tuple[list[httpx.Response], Client]) -> None:
    """Three runs of two sessions each are six sessions (Wire 4.3, Session)."""
    _, client = replay
    frame = client.query("session_unique", over="2026-11-20T00:00Z/2026-11-20T12:00Z")
    assert frame.session_unique.tolist() == [6]


def test_the_purchases_have_their_value(replay: tuple[list[httpx.Response], Client]) -> None:
    """The revenue of the recorded purchases is 14.97 dollars (Wire 4.5, Purchase)."""
    _, client = replay
    frame = client.query("revenue", over="2026-11-20T00:00Z/2026-11-20T12:00Z")
    assert (frame["event_count"].tolist(), frame["sum"].tolist()) == ([3], [14.97])
