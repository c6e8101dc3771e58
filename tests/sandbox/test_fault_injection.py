"""Faults injected into either service by rules (Wire 5.3, Fault rules)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gamelens.client.events.collector_client import CollectorClient
from gamelens.errors import BadQuery
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.control.fault_injection import FaultInjector, read_rule
from support.app_requests import Call, call
from support.collector_requests import GAME_KEY
from support.game_events import event
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

METRIC = "/metrics/v1/metrics/revenue"
STUDIOS = "/metrics/v1/studios"
INIT = f"/v2/{GAME_KEY}/init"


class FaultyServices:
    """Both services behind fault rules, with chances and sleeps that a test controls."""

    def __init__(self, stage: Stage, *rules: dict[str, Any], chances: tuple[float, ...] = ()) -> None:
        self.slept: list[float] = []
        remaining_chances = iter(chances)

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        self.faults = FaultInjector(random=lambda: next(remaining_chances, 0.0), sleep=sleep)
        for rule in rules:
            self.faults.add(read_rule(rule))
        self.metrics = self.faults.around("metrics", stage.metrics_app)
        self.collector = self.faults.around("collector", stage.sandbox.collector)

    def status(self, path: str = STUDIOS) -> int:
        return self.get(path).status_code

    def get(self, path: str = STUDIOS) -> httpx.Response:
        return call(self.metrics, "GET", path, headers={"X-API-Key": "key-of-acme"})


def test_with_no_rule_the_service_answers(stage: Stage) -> None:
    """Without a rule the service answers as usual (Wire 5.3, Fault rules)."""
    assert FaultyServices(stage).status("/metrics/v1/metrics") == 200


def test_a_rule_answers_in_place_of_the_service(stage: Stage) -> None:
    """A rule with a status answers with it, with Retry-After and a message.

    Wire 5.3, Fault rules.
    """
    answer = FaultyServices(stage, {"service": "metrics", "status": 429, "retry_after": 2}).get()
    assert (answer.status_code, answer.headers["retry-after"], "message" in answer.json()) == (429, "2", True)


def test_a_rule_is_for_one_service(stage: Stage) -> None:
    """A rule for one service does not affect the other (Wire 5.3, Fault rules)."""
    faulty = FaultyServices(stage, {"service": "collector", "status": 503})
    assert faulty.status("/metrics/v1/metrics") == 200
    assert call(faulty.collector, "POST", INIT).status_code == 503


def test_a_browser_may_read_a_failing_collector(stage: Stage) -> None:
    """A fault of the collector has its CORS header.

    Wire 1.5, Response headers; Wire 5.3, Fault rules.
    """
    answer = call(FaultyServices(stage, {"service": "collector", "status": 500}).collector, "POST", INIT)
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_route_is_a_glob_of_the_path(stage: Stage) -> None:
    """The route `/metrics/v1/metrics/*` is every metric and not their list.

    Wire 5.3, Fault rules.
    """
    faulty = FaultyServices(stage, {"service": "metrics", "route": "/metrics/v1/metrics/*", "status": 500})
    assert (faulty.status(METRIC), faulty.status("/metrics/v1/metrics")) == (500, 200)


def test_the_first_match_wins(stage: Stage) -> None:
    """Of several matching rules the first one added applies (Wire 5.3, Fault rules)."""
    rules = ({"service": "metrics", "route": METRIC, "status": 502}, {"service": "metrics", "status": 503})
    faulty = FaultyServices(stage, *rules)
    assert (faulty.status(METRIC), faulty.status()) == (502, 503)


def test_a_rule_hits_as_often_as_it_says(stage: Stage) -> None:
    """A rule applies `times` times, and then the next matching rule does.

    Wire 5.3, Fault rules.
    """
    rules = ({"service": "metrics", "status": 500, "times": 2}, {"service": "metrics", "status": 503, "times": 1})
    faulty = FaultyServices(stage, *rules)
    assert [faulty.status("/metrics/v1/metrics") for _ in range(4)] == [500, 500, 503, 200]


def test_a_rule_hits_with_its_probability(stage: Stage) -> None:
    """A request that a rule misses by chance is served and not counted.

    Wire 5.3, Fault rules.
    """
    rule = {"service": "metrics", "status": 500, "probability": 0.3, "times": 2}
    faulty = FaultyServices(stage, rule, chances=(0.29, 0.3, 0.99, 0.0))
    assert [faulty.status("/metrics/v1/metrics") for _ in range(5)] == [500, 200, 200, 500, 200]


def test_latency_comes_before_the_answer_of_the_service(stage: Stage) -> None:
    """A rule with latency alone delays the response of the service (Wire 5.3, Fault rules)."""
    faulty = FaultyServices(stage, {"service": "metrics", "latency_s": 1.5})
    assert (faulty.status("/metrics/v1/metrics"), faulty.slept) == (200, [1.5])


@pytest.mark.parametrize("rule", [{"status": 0}, {"cut_body": True}, {"cut_body": True, "status": 503}])
def test_the_connection_is_closed_early(stage: Stage, rule: dict[str, Any]) -> None:
    """Status 0 and `cut_body` abort the connection (Wire 5.3, Fault rules)."""
    faulty = FaultyServices(stage, {"service": "metrics", **rule})
    transport = httpx.ASGITransport(faulty.metrics)

    async def ask() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get(STUDIOS)

    with pytest.raises(ConnectionAbortedError):
        asyncio.run(ask())


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"status": 500}, "service"),
        ({"service": "console", "status": 500}, "service"),
        ({"service": ["metrics"], "status": 500}, "service"),
        ({"service": "metrics"}, "status"),
        ({"service": "metrics", "status": 200}, "status"),
        ({"service": "metrics", "status": "500"}, "status"),
        ({"service": "metrics", "status": False}, "status"),
        ({"service": "metrics", "status": 500, "route": ""}, "route"),
        ({"service": "metrics", "status": 429, "retry_after": 1.5}, "retry_after"),
        ({"service": "metrics", "latency_s": 1, "retry_after": 1}, "retry_after"),
        ({"service": "metrics", "status": 500, "probability": 1.1}, "probability"),
        ({"service": "metrics", "status": 500, "latency_s": -1}, "latency_s"),
        ({"service": "metrics", "status": 500, "latency_s": 601}, "latency_s"),
        ({"service": "metrics", "cut_body": "yes"}, "cut_body"),
        ({"service": "metrics", "cut_body": True, "status": 0}, "cut_body"),
        ({"service": "metrics", "status": 500, "times": 0}, "times"),
        ({"service": "metrics", "status": 500, "propability": 0.5}, "propability"),
    ],
)
def test_a_bad_rule_is_refused_with_its_field(rule: dict[str, Any], field: str) -> None:
    """A rule with a wrong value, or without effect, raises `BadQuery` for the field.

    Wire 5.3, Fault rules.
    """
    with pytest.raises(BadQuery) as refused:
        read_rule(rule)
    assert refused.value.field == field


def test_rules_are_listed_as_they_were_given(stage: Stage, control_api: Call) -> None:
    """Rules are listed with the defaults of the fields that were left out.

    Wire 5.3, Fault rules.
    """
    rule = {"service": "metrics", "route": "/metrics/v1/metrics/*", "status": 429, "retry_after": 2}
    given = control_api("POST", "/faults", json=rule).json()
    rest = {"probability": 1.0, "latency_s": 0.0, "cut_body": False, "times": None, "struck": 0}
    assert control_api("GET", "/faults").json() == [given] == [rule | rest]


def test_delete_ends_all_faults(stage: Stage, control_api: Call) -> None:
    """`DELETE /faults` removes all rules (Wire 5.3, Fault rules)."""
    control_api("POST", "/faults", json={"service": "metrics", "status": 500})
    assert (control_api("DELETE", "/faults").json(), control_api("GET", "/faults").json()) == ([], [])


def test_the_control_api_refuses_a_bad_rule_with_a_suggestion(control_api: Call) -> None:
    """A misspelt field gets 422 with the nearest name (Wire 5.3, Fault rules)."""
    answer = control_api("POST", "/faults", json={"service": "metrics", "statsu": 500})
    assert (answer.status_code, answer.json()["did_you_mean"]) == (422, "status")


def test_the_summary_counts_the_rules_in_force(stage: Stage, control_api: Call) -> None:
    """The summary counts the rules, so that a forgotten one is found (Wire 5.1, Control API)."""
    control_api("POST", "/faults", json={"service": "metrics", "status": 500})
    assert control_api("GET", "/summary").json()["faults"] == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the sandbox."""
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[SandboxInfo]:
    """Run a sandbox process."""
    with running_sandbox(folder / "state") as ready:
        yield ready


@pytest.fixture
def fail(running: SandboxInfo) -> Iterator[Callable[..., None]]:
    """Return a function that adds a fault rule, and delete all rules afterwards."""

    def post(**rule: Any) -> None:
        httpx.post(f"{running.console_url}/faults", json=rule).raise_for_status()

    yield post
    httpx.delete(f"{running.console_url}/faults")


def test_cut_body_sends_the_first_half_of_the_body(running: SandboxInfo, fail: Callable[..., None]) -> None:
    """`cut_body` sends half of the body under its full length, then closes.

    Wire 5.3, Fault rules.
    """
    address = f"{running.metrics_url}/metrics/v1/metrics"
    key = {"X-API-Key": str(running.organisations[0].api_key)}
    whole = httpx.get(address, headers=key).content
    fail(service="metrics", cut_body=True)
    received: list[bytes] = []
    with (
        httpx.stream("GET", address, headers=key) as answer,
        pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"),
    ):
        received.extend(answer.iter_raw())
    assert b"".join(received) == whole[: len(whole) // 2]


def test_status_0_closes_without_a_response(running: SandboxInfo, fail: Callable[..., None]) -> None:
    """With status 0 the connection is closed without a byte (Wire 5.3, Fault rules)."""
    fail(service="metrics", status=0)
    with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
        httpx.get(f"{running.metrics_url}{STUDIOS}")


def test_a_fault_is_not_logged(running: SandboxInfo, fail: Callable[..., None], folder: Path) -> None:
    """A connection that a rule closes leaves no line in the log (Wire 5.3, Fault rules)."""
    fail(service="metrics", status=0)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{running.metrics_url}{STUDIOS}")
    assert (folder / "state" / "log.txt").read_text() == ""


def test_a_lost_response_makes_no_second_event(running: SandboxInfo, fail: Callable[..., None]) -> None:
    """An event sent again after a lost response counts once, by its `event_uuid`.

    Wire 4.8, Repeated events.
    """
    fail(service="collector", cut_body=True, times=1)
    game = running.organisations[0].games[0]
    body = json.dumps([event(event_uuid="7c9e6679-7425-40de-944b-e07fc1f90ae7")]).encode()

    async def submit() -> int:
        async with CollectorClient(
            collector_url=running.collector_url, game_key=game.game_key, secret_key=game.secret_key
        ) as client:
            return (await client.submit(body)).status

    assert asyncio.run(submit()) == 200
    httpx.post(f"{running.console_url}/process", timeout=60)
    summary = httpx.get(f"{running.console_url}/summary").json()
    assert (summary["accepted"], summary["duplicate"], summary["processed"]) == (2, 1, 1)


def test_an_open_live_stream_does_not_delay_the_shutdown(tmp_path: Path) -> None:
    """After SIGTERM a sandbox with an open live stream ends within 5 s."""
    with (
        running_sandbox(tmp_path / "state") as ready,
        httpx.stream("GET", f"{ready.console_url}/live") as stream,
    ):
        chunks = stream.iter_raw()
        next(chunks)
        began = time.monotonic()
        os.kill(ready.pid or 0, signal.SIGTERM)
        for _ in chunks:
            pass
        assert time.monotonic() - began < 5
