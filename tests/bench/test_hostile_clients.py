"""Cost of hostile clients: bombs in time and memory, slow connections in latency.

Run by `make bench`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.http.request_body import BODY_DEADLINE_S
from support.collector_load import (
    best_of_rounds,
    collector_port,
    event_requests,
    gzip_of_zeros,
    measure_refusals,
    run_beside_slow_connections,
    signed_request,
)

SLOW_CONNECTIONS = 200
ROUNDS = 7  # of SECONDS each: all end before the first slow connection is closed
SECONDS = 1
GOOD_CONNECTIONS = 8


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Start a sandbox."""
    with running_sandbox(tmp_path_factory.mktemp("edge") / "state") as ready:
        yield ready


def test_a_bomb_is_refused_at_once_and_takes_no_memory(ready: SandboxInfo) -> None:
    """1 MB that unpacks to 1 GB: 413 within 20 ms, and 50 at once take under 20 MiB more."""
    game = ready.organisations[0].games[0]
    request = signed_request(game, gzip_of_zeros(1000))
    cost = measure_refusals(ready, request, times=20, at_once=50)
    print(
        f"\nbomb: refused {cost.p50_ms:.1f} ms after its last byte (p50), in {cost.cpu_ms:.1f} ms of CPU time; "
        f"50 at once: {cost.grown_mib:+.1f} MiB at the peak"
    )
    assert cost.statuses == {413}
    assert cost.p50_ms < 20
    assert cost.grown_mib < 20


def test_good_clients_hardly_notice_the_slow_ones(ready: SandboxInfo) -> None:
    """Beside 200 slow connections p99 at most doubles, and each is closed at its deadline."""
    requests, port = event_requests(ready.organisations[0].games[0], 20), collector_port(ready)

    def good() -> dict[str, Any]:
        return best_of_rounds(port, requests, rounds=ROUNDS, seconds=SECONDS, connections=GOOD_CONNECTIONS)

    before = good()
    beside, slow = run_beside_slow_connections(ready, SLOW_CONNECTIONS, good, to_the_end=True)
    after = good()
    print(
        f"\ngood clients: p99 {before['p99_ms']:.1f} ms alone, {beside['p99_ms']:.1f} ms beside {SLOW_CONNECTIONS} "
        f"slow, {after['p99_ms']:.1f} ms alone; slow ones closed after {slow['first_s']:.1f} to {slow['last_s']:.1f} s"
    )
    assert before["statuses"] == beside["statuses"] == after["statuses"] == {"200"}
    assert beside["p99_ms"] <= 2 * max(before["p99_ms"], after["p99_ms"])
    assert slow["refused"] == SLOW_CONNECTIONS
    assert BODY_DEADLINE_S - 1 < slow["first_s"] < slow["last_s"] < BODY_DEADLINE_S + 2
