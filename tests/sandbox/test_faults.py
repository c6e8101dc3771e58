"""contract, POST /faults: rules that make either service fail, first match wins."""

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

from conftest import Stage, event
from gamelens.client.events.collector_client import CollectorClient
from gamelens.errors import BadQuery
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.control.fault_injection import FaultInjector, read_rule
from sandbox.conftest import GAME_KEY, Call, call

pytestmark = pytest.mark.slow

METRIC = "/metrics/v1/metrics/revenue"
STUDIOS = "/metrics/v1/studios"
INIT = f"/v2/{GAME_KEY}/init"


class Failing:
    """Both services behind fault rules, with chance and time in the test's hand."""

    def __init__(self, stage: Stage, *rules: dict[str, Any], chances: tuple[float, ...] = ()) -> None:
        self.slept: list[float] = []
        left = iter(chances)

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        self.faults = FaultInjector(random=lambda: next(left, 0.0), sleep=sleep)
        for rule in rules:
            self.faults.add(read_rule(rule))
        self.metrics = self.faults.around("metrics", stage.metrics_app)
        self.collector = self.faults.around("collector", stage.sandbox.collector)

    def status(self, path: str = STUDIOS) -> int:
        return self.get(path).status_code

    def get(self, path: str = STUDIOS) -> httpx.Response:
        return call(self.metrics, "GET", path, headers={"X-API-Key": "key-of-acme"})


def test_with_no_rule_the_service_answers(stage: Stage) -> None:
    assert Failing(stage).status("/metrics/v1/metrics") == 200


def test_a_rule_answers_in_place_of_the_service(stage: Stage) -> None:
    """contract: status and Retry-After."""
    answer = Failing(stage, {"service": "metrics", "status": 429, "retry_after": 2}).get()
    assert (answer.status_code, answer.headers["retry-after"], "message" in answer.json()) == (429, "2", True)


def test_a_rule_is_for_one_service(stage: Stage) -> None:
    """contract: service."""
    failing = Failing(stage, {"service": "collector", "status": 503})
    assert failing.status("/metrics/v1/metrics") == 200
    assert call(failing.collector, "POST", INIT).status_code == 503


def test_a_browser_may_read_a_failing_collector(stage: Stage) -> None:
    """contract, Collector: every answer carries Access-Control-Allow-Origin."""
    answer = call(Failing(stage, {"service": "collector", "status": 500}).collector, "POST", INIT)
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_route_is_a_glob_of_the_path(stage: Stage) -> None:
    """contract: /metrics/v1/metrics/* is every metric and not their list."""
    failing = Failing(stage, {"service": "metrics", "route": "/metrics/v1/metrics/*", "status": 500})
    assert (failing.status(METRIC), failing.status("/metrics/v1/metrics")) == (500, 200)


def test_the_first_match_wins(stage: Stage) -> None:
    """contract: rules are asked in the order they were given."""
    rules = ({"service": "metrics", "route": METRIC, "status": 502}, {"service": "metrics", "status": 503})
    failing = Failing(stage, *rules)
    assert (failing.status(METRIC), failing.status()) == (502, 503)


def test_a_rule_strikes_as_often_as_it_says(stage: Stage) -> None:
    """contract: times; a rule that is used up leaves its place to the next."""
    rules = ({"service": "metrics", "status": 500, "times": 2}, {"service": "metrics", "status": 503, "times": 1})
    failing = Failing(stage, *rules)
    assert [failing.status("/metrics/v1/metrics") for _ in range(4)] == [500, 500, 503, 200]


def test_a_rule_strikes_with_its_probability(stage: Stage) -> None:
    """contract: probability; a miss goes to the service, and counts for no strike."""
    rule = {"service": "metrics", "status": 500, "probability": 0.3, "times": 2}
    failing = Failing(stage, rule, chances=(0.29, 0.3, 0.99, 0.0))
    assert [failing.status("/metrics/v1/metrics") for _ in range(5)] == [500, 200, 200, 500, 200]


def test_latency_comes_before_the_answer_of_the_service(stage: Stage) -> None:
    """contract: latency_s."""
    failing = Failing(stage, {"service": "metrics", "latency_s": 1.5})
    assert (failing.status("/metrics/v1/metrics"), failing.slept) == (200, [1.5])


@pytest.mark.parametrize("rule", [{"status": 0}, {"cut_body": True}, {"cut_body": True, "status": 503}])
def test_the_connection_is_closed_early(stage: Stage, rule: dict[str, Any]) -> None:
    """contract: cut_body, and status 0 for no answer at all. In process that is an aborted connection."""
    failing = Failing(stage, {"service": "metrics", **rule})
    transport = httpx.ASGITransport(failing.metrics)

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
def test_a_rule_that_cannot_be_is_refused_by_name(rule: dict[str, Any], field: str) -> None:
    """house-style: every refusal names the field, the value and the rule."""
    with pytest.raises(BadQuery) as refused:
        read_rule(rule)
    assert refused.value.field == field


def test_rules_are_listed_as_they_were_given(stage: Stage, console: Call) -> None:
    """contract: POST, GET; what was left out is shown as it holds."""
    order = {"service": "metrics", "route": "/metrics/v1/metrics/*", "status": 429, "retry_after": 2}
    given = console("POST", "/faults", json=order).json()
    rest = {"probability": 1.0, "latency_s": 0.0, "cut_body": False, "times": None, "struck": 0}
    assert console("GET", "/faults").json() == [given] == [order | rest]


def test_delete_ends_all_faults(stage: Stage, console: Call) -> None:
    """contract: DELETE."""
    console("POST", "/faults", json={"service": "metrics", "status": 500})
    assert (console("DELETE", "/faults").json(), console("GET", "/faults").json()) == ([], [])


def test_the_console_refuses_a_bad_rule_by_name(console: Call) -> None:
    answer = console("POST", "/faults", json={"service": "metrics", "statsu": 500})
    assert (answer.status_code, answer.json()["did_you_mean"]) == (422, "status")


def test_the_summary_says_that_faults_are_in_force(stage: Stage, console: Call) -> None:
    """A rule that was forgotten explains everything, once somebody mentions it."""
    console("POST", "/faults", json={"service": "metrics", "status": 500})
    assert console("GET", "/summary").json()["faults"] == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[SandboxInfo]:
    with running_sandbox(folder / "state") as ready:
        yield ready


@pytest.fixture
def fail(running: SandboxInfo) -> Iterator[Callable[..., None]]:
    def post(**rule: Any) -> None:
        httpx.post(f"{running.console_url}/faults", json=rule).raise_for_status()

    yield post
    httpx.delete(f"{running.console_url}/faults")


def test_half_an_answer_is_half_an_answer(running: SandboxInfo, fail: Callable[..., None]) -> None:
    """contract: cut_body sends half of the real answer, of its full length, and closes the connection."""
    address = f"{running.metrics_url}/metrics/v1/metrics"
    key = {"X-API-Key": running.organisations[0].api_key}
    whole = httpx.get(address, headers=key).content
    fail(service="metrics", cut_body=True)
    received: list[bytes] = []
    with (
        httpx.stream("GET", address, headers=key) as answer,
        pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"),
    ):
        received.extend(answer.iter_raw())
    assert b"".join(received) == whole[: len(whole) // 2]


def test_no_answer_is_no_answer(running: SandboxInfo, fail: Callable[..., None]) -> None:
    """contract: status 0."""
    fail(service="metrics", status=0)
    with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
        httpx.get(f"{running.metrics_url}{STUDIOS}")


def test_hanging_up_is_not_logged_as_a_mistake(running: SandboxInfo, fail: Callable[..., None], folder: Path) -> None:
    """A fault on demand is no error of the sandbox."""
    fail(service="metrics", status=0)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{running.metrics_url}{STUDIOS}")
    assert (folder / "state" / "log.txt").read_text() == ""


def test_an_answer_lost_on_the_way_makes_no_second_event(running: SandboxInfo, fail: Callable[..., None]) -> None:
    """contract, Collector: sent again with the same event_uuid, stored once (public-facts 1.8)."""
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


def test_a_page_that_listens_does_not_keep_the_sandbox_from_stopping(tmp_path: Path) -> None:
    """contract, Commands: until SIGTERM, then drained; a stream has no end of its own."""
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
