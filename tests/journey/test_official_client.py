"""What an official client of the real service really sent, from its bytes to the analyst's numbers."""

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

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "official-client-cpp-5.4.0.json").read_text())
CONFIG = f"""
[[organisation]]
name = "acme"
[[organisation.studio]]
[[organisation.studio.game]]
id = "77"
game_key = "{RECORDED["game_key"]}"
secret_key = "{RECORDED["secret_key"]}"
"""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[httpx.Response], Client]]:
    """The answers to the recorded requests, and a client of the metrics service an hour later."""
    folder = tmp_path_factory.mktemp("official")
    (folder / "sandbox.toml").write_text(CONFIG)
    with running_sandbox(folder / "state", config=folder / "sandbox.toml") as ready, httpx.Client() as http:
        http.post(f"{ready.console_url}/clock", json={"freeze": "2026-11-20T11:40:00Z"})
        answers = [_send(http, ready.collector_url, request) for request in RECORDED["requests"]]
        http.post(f"{ready.console_url}/clock", json={"advance": "PT1H"})
        http.post(f"{ready.console_url}/process", timeout=60)
        settings = environment_of(ready)
        with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
            yield answers, client


def _send(http: httpx.Client, address: str, request: dict[str, Any]) -> httpx.Response:
    headers = {name: value for name, value in request["headers"] if name != "Host"}
    return http.post(address + request["raw_url"], content=base64.b64decode(request["body_b64"]), headers=headers)


def test_every_request_is_accepted(replayed: tuple[list[httpx.Response], Client]) -> None:
    """Collector, Authentication 3; public facts 1.4."""
    answers, _ = replayed
    assert {answer.status_code for answer in answers} == {200, 201}


def test_event_answers_are_bodies_the_client_takes_for_success(replayed: tuple[list[httpx.Response], Client]) -> None:
    """Public facts 1.8: an empty body means offline."""
    answers, _ = replayed
    assert {answer.text for answer in answers if answer.request.url.path.endswith("/events")} == {"{}"}


def test_every_category_is_counted(replayed: tuple[list[httpx.Response], Client]) -> None:
    """metrics.md, event_count; the counts were taken from the recording."""
    _, client = replayed
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


def test_sessions_are_counted(replayed: tuple[list[httpx.Response], Client]) -> None:
    """metrics.md, session_unique: three runs, two sessions each."""
    _, client = replayed
    frame = client.query("session_unique", over="2026-11-20T00:00Z/2026-11-20T12:00Z")
    assert frame.session_unique.tolist() == [6]


def test_the_purchases_are_worth_what_was_paid(replayed: tuple[list[httpx.Response], Client]) -> None:
    """metrics.md, revenue: hundredths of USD."""
    _, client = replayed
    frame = client.query("revenue", over="2026-11-20T00:00Z/2026-11-20T12:00Z")
    assert (frame["event_count"].tolist(), frame["sum"].tolist()) == ([3], [14.97])
