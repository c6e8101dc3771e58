"""Recorded requests of clients that others wrote, from their bytes to the analyst's frames."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox

DATA = Path(__file__).parents[2] / "data"


class Recording(NamedTuple):
    """The file of a recording, when it arrived, and what its events amount to.

    Attributes:
        name: of the file.
        arrived_at: the clock of the sandbox.
        over: the hours of its events.
        categories: distinct events by category.
        sessions: how many there were.
        purchases: how many, at 4.99 dollars each.
        reply: the body of a 200 for events that the client needs.
    """

    name: str
    arrived_at: str
    over: str
    categories: dict[str, int]
    sessions: int
    purchases: int
    reply: str


CPP = Recording(
    name="official-client-cpp-5.4.0",
    arrived_at="2026-11-20T11:40:00Z",
    over="2026-11-20T00:00Z/2026-11-20T12:00Z",
    categories={
        **{"progression": 12, "design": 9, "error": 6, "resource": 6, "session_end": 6, "user": 6, "health": 5},
        **{"business": 3, "sdk_error": 3, "sdk_init": 3},
    },
    sessions=6,
    purchases=3,
    reply="{}",
)
JAVASCRIPT = Recording(
    name="official-client-javascript-4.4.7",
    arrived_at="2026-11-22T06:45:00Z",
    over="2026-11-22T00:00Z/2026-11-22T07:00Z",
    categories={
        **{"ads": 6, "progression": 6, "resource": 6, "business": 3, "design": 3, "error": 3},
        **{"sdk_error": 3, "session_end": 3, "user": 3},
    },
    sessions=3,
    purchases=3,
    reply="{}",
)
NODE = Recording(
    name="client-node-sdk-1.1.4",
    arrived_at="2026-11-22T06:45:00Z",
    over="2026-11-22T00:00Z/2026-11-22T07:00Z",
    categories={
        **{"design": 2, "business": 1, "error": 1, "progression": 1, "resource": 1, "session_end": 1, "user": 1},
    },
    sessions=1,
    purchases=1,
    reply="",
)


class Replay(NamedTuple):
    """A recording, the sandbox's responses to it, and a client an hour later."""

    recording: Recording
    responses: list[httpx.Response]
    client: Client


RECORDINGS = (CPP, JAVASCRIPT, NODE)  # by arrival; those of one game have events of different days


def _read(recording: Recording) -> dict[str, Any]:
    """Return the requests of a recording, and the keys of its game."""
    file: dict[str, Any] = json.loads((DATA / f"{recording.name}.json").read_text())
    return file


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Run a sandbox with the recorded games, each in an organisation of its own."""
    folder = tmp_path_factory.mktemp("official")
    games = {file["game_key"]: file["secret_key"] for file in map(_read, RECORDINGS)}
    organisations = (
        f'[[organisation]]\nname = "{key}"\n[[organisation.studio]]\n[[organisation.studio.game]]\n'
        f'id = "{number}"\ngame_key = "{key}"\nsecret_key = "{secret}"\n'
        for number, (key, secret) in enumerate(games.items(), start=77)
    )
    (folder / "sandbox.toml").write_text("".join(organisations))
    with running_sandbox(folder / "state", config=folder / "sandbox.toml") as ready:
        yield ready


@pytest.fixture(scope="module", params=RECORDINGS, ids=lambda recording: recording.name)
def replay(request: pytest.FixtureRequest, ready: SandboxInfo) -> Iterator[Replay]:
    """Send the recorded requests to the sandbox."""
    recording: Recording = request.param
    file = _read(recording)
    (key,) = (own.api_key for own in ready.organisations if own.games[0].game_key == file["game_key"])
    with httpx.Client() as http:
        http.post(f"{ready.console_url}/clock", json={"freeze": recording.arrived_at})
        responses = [_send(http, ready.collector_url, sent) for sent in file["requests"]]
        http.post(f"{ready.console_url}/clock", json={"advance": "PT1H"})
        http.post(f"{ready.console_url}/process", timeout=60)
    with Client(api_key=key, metrics_url=ready.metrics_url) as client:
        yield Replay(recording, responses, client)


def _send(http: httpx.Client, address: str, request: dict[str, Any]) -> httpx.Response:
    headers = {name: value for name, value in request["headers"] if name != "Host"}
    body = base64.b64decode(request["body_b64"])
    return http.request(request["method"], address + request["raw_url"], content=body, headers=headers)


def test_every_request_is_accepted(replay: Replay) -> None:
    """Every recorded request, signed by the client, gets 200 or 201, and a browser's preflight 204.

    Wire 1.4, Signature; Wire 1.12, Remote config init.
    """
    statuses = {"POST": {200, 201}, "OPTIONS": {204}}
    refused = [
        (response.request.url.path, response.status_code, response.text)
        for response in replay.responses
        if response.status_code not in statuses[response.request.method]
    ]
    assert refused == []


def test_a_browser_may_send_what_it_asks_for(replay: Replay) -> None:
    """A preflight allows each header that the page wants to send (Wire 1.5, Response headers)."""
    for response in replay.responses:
        if wanted := response.request.headers.get("Access-Control-Request-Headers"):
            allowed = response.headers["Access-Control-Allow-Headers"].lower().replace(" ", "").split(",")
            assert set(wanted.split(",")) <= set(allowed)
        assert response.headers["Access-Control-Allow-Origin"] == "*"


def test_event_responses_have_the_body_that_the_client_needs(replay: Replay) -> None:
    """Official clients take an empty one for offline, others are answered as specified.

    Wire 1.7, Submitting events; Wire 1.18, Official clients.
    """
    bodies = [
        response.text
        for response in replay.responses
        if response.request.url.path.endswith("/events") and response.request.method == "POST"
    ]
    assert set(bodies) == {replay.recording.reply}


def test_every_category_is_counted(replay: Replay) -> None:
    """Events are counted by category, those that were sent again once.

    Wire 4.11, Metrics; Wire 4.8, Repeated events.
    """
    frame = replay.client.query("event_count", by="category", over=replay.recording.over, every="day")
    assert dict(zip(frame.category, frame.event_count, strict=True)) == replay.recording.categories


def test_sessions_are_counted(replay: Replay) -> None:
    """Each session of the recording is one (Wire 4.3, Session)."""
    frame = replay.client.query("session_unique", over=replay.recording.over)
    assert frame.session_unique.tolist() == [replay.recording.sessions]


def test_the_purchases_have_their_value(replay: Replay) -> None:
    """Each purchase of the recordings is worth 4.99 dollars (Wire 4.5, Purchase)."""
    frame = replay.client.query("revenue", over=replay.recording.over, fields="all")
    purchases = replay.recording.purchases
    assert (frame["revenue_event_count"].tolist(), frame["revenue"].tolist()) == (
        [purchases],
        [round(4.99 * purchases, 2)],
    )
