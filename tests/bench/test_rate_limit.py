"""Rate of the client beside the rate that the service allows, and the requests it refuses.

Run by `make bench`, against a sandbox in a process of its own with the limits of the service (Wire 2.3, Rate limits).
The sandbox counts all queries: those beyond the answered ones were refused and sent again. Run as a program, this file
is one process that sends requests: `python test_rate_limit.py URL KEY REQUESTS PACE FOLDER`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.client.limits.rate_limit import Pace, shared_rate_limiter
from gamelens.errors import GamelensError
from gamelens.local.sandbox_info import SandboxInfo, read_sandbox_info
from gamelens.local.sandbox_process import call_control_api
from gamelens.wire.limits import REQUESTS_PER_SECOND

PATIENCE_S = 60


@contextmanager
def sandbox(folder: Path, nodes: int) -> Iterator[SandboxInfo]:
    """Run a sandbox with *nodes* nodes, each of which limits alone."""
    file = folder / "ready.json"
    options = ["--state", str(folder / "state"), "--ready", str(file)]
    command = [sys.executable, "-m", "gamelens", "sandbox", "up", *options]
    with subprocess.Popen([*command, "--nodes", str(nodes)]) as process:
        ends_at = time.monotonic() + PATIENCE_S
        while not file.exists() and process.poll() is None and time.monotonic() < ends_at:
            time.sleep(0.02)
        try:
            yield read_sandbox_info(file)
        finally:
            process.terminate()


async def send_at_once(url: str, key: str, requests: int, pace: Pace, folder: Path) -> dict[str, object]:
    """Send all requests at once, as a long query does, and return the measurements."""
    secret = Secret(key)
    budget = shared_rate_limiter(url, secret.fingerprint, pace, folder=folder)
    transport = Transport(url, key=secret, rate_limiter=budget)
    tally, began = RequestStats(), time.monotonic()
    request = HttpRequest(method="GET", path="/metrics/v1/interval")
    outcomes = await asyncio.gather(*(transport.send(request, tally) for _ in range(requests)), return_exceptions=True)
    ended = time.monotonic()
    await transport.aclose()
    assert all(isinstance(outcome, HttpResponse | GamelensError) for outcome in outcomes)
    return {
        "began": began,
        "ended": ended,
        "answers": sum(isinstance(outcome, HttpResponse) for outcome in outcomes),
        "retries": tally.retries,
        "why_alone": budget.why_alone,
    }


class Run:
    """Measurements of *processes* that each send *requests* at the same time.

    Attributes: seconds, answers, retries, refused, per_second.
    """

    def __init__(
        self, ready: SandboxInfo, folder: Path, *, requests: int, pace: Pace = "guaranteed", processes: int = 1
    ) -> None:
        queries_before = call_control_api(ready, ControlApi.summary).metrics_requests
        key = ready.organisations[0].api_key
        assert key is not None
        command = [sys.executable, __file__, ready.metrics_url, key, str(requests), pace, str(folder / "slots")]
        clients = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
        results = [json.loads(process.communicate()[0]) for process in clients]
        self.seconds = max(one["ended"] for one in results) - min(one["began"] for one in results)
        self.answers = sum(one["answers"] for one in results)
        self.retries = sum(one["retries"] for one in results)
        self.refused = call_control_api(ready, ControlApi.summary).metrics_requests - queries_before - self.answers
        self.per_second = self.answers / self.seconds
        assert {one["why_alone"] for one in results} == {None}


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Run a sandbox with one node."""
    with sandbox(tmp_path_factory.mktemp("one"), 1) as ready:
        yield ready


@pytest.fixture(scope="module")
def four_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Run a sandbox with four nodes."""
    with sandbox(tmp_path_factory.mktemp("four"), 4) as ready:
        yield ready


@pytest.mark.parametrize("processes", [1, 2])
def test_the_guaranteed_rate_is_used_up_without_a_refusal(
    one_node: SandboxInfo, tmp_path: Path, processes: int
) -> None:
    """60 requests take at most 1.08 of 60 / 5 - 1 s, without a 429.

    They are sent by one process, or by two that share the key and its rate.
    """
    time.sleep(1)  # the second that the requests before belong to
    run = Run(one_node, tmp_path, requests=60 // processes, processes=processes)
    ideal_s = 60 / REQUESTS_PER_SECOND - 1
    print(f"\n60 requests of {processes} processes: {run.seconds:.2f} s, {run.seconds / ideal_s:.3f} of the ideal")
    print(f"  refused {run.refused}, repeated {run.retries}")
    assert run.answers == 60
    assert run.refused == run.retries == 0
    # A second process starts up to half a second later: until then the first one has sent alone, at the same rate.
    assert run.seconds <= 1.08 * ideal_s


def test_adaptive_before_four_nodes(four_nodes: SandboxInfo, tmp_path: Path) -> None:
    """With four nodes the adaptive pace is 2.5 times the guaranteed one, at most 5 % refused."""
    steady = Run(four_nodes, tmp_path / "steady", requests=240)
    adaptive = Run(four_nodes, tmp_path / "adaptive", requests=2400, pace="adaptive")
    ratio = adaptive.per_second / steady.per_second
    share = adaptive.refused / (adaptive.answers + adaptive.refused)
    print(f"\nbefore four nodes: {steady.per_second:.1f} and {adaptive.per_second:.1f} requests a second")
    print(f"  adaptive is {ratio:.2f} x as fast; refused {share:.1%} of the requests, lost none")
    assert (steady.answers, adaptive.answers) == (240, 2400)
    assert ratio >= 2.5
    assert share <= 0.05


def test_adaptive_before_one_node(one_node: SandboxInfo, tmp_path: Path) -> None:
    """With one node the adaptive pace answers 120 requests with at most two refused.

    It tries to go faster once a minute.
    """
    run = Run(one_node, tmp_path, requests=120, pace="adaptive")
    print(f"\n120 requests before one node, adaptive: {run.per_second:.1f} a second, refused {run.refused}")
    assert run.answers == 120
    assert run.refused <= 2


if __name__ == "__main__":
    url, key, requests, pace, folder = sys.argv[1:]
    print(json.dumps(asyncio.run(send_at_once(url, key, int(requests), cast("Pace", pace), Path(folder)))))
