"""What the collector costs those who mean well while others do not; issue, Bad input. Run by `make bench`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.siege import besiege, best, bombard, port_of, post, zeros
from bench.test_collector import requests_of
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.http.http_connection import Deadlines

SLOW_CONNECTIONS = 200
ROUNDS = 7  # of so many seconds: all of them before the first slow connection is closed
SECONDS = 1
GOOD_CONNECTIONS = 8


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    with running_sandbox(tmp_path_factory.mktemp("edge") / "state") as ready:
        yield ready


def test_a_bomb_is_refused_at_once_and_takes_no_memory(ready: SandboxInfo) -> None:
    """1 MB that unpacks to 1 GB: under 20 ms after it has arrived; 50 at once: under 20 MiB more."""
    game = ready.organisations[0].games[0]
    answers, p50_ms, grown_mib = bombard(ready, post(game, zeros(1000)), times=20, at_once=50)
    print(f"\nbomb: refused {p50_ms:.1f} ms after its last byte (p50); 50 at once: {grown_mib:+.1f} MiB at the peak")
    assert answers == {413}
    assert p50_ms < 20
    assert grown_mib < 20


def test_good_clients_hardly_notice_the_slow_ones(ready: SandboxInfo) -> None:
    """The p99 of good clients at most doubles, and every slow connection is closed at its deadline."""
    requests, port = requests_of(ready.organisations[0].games[0], 20), port_of(ready)

    def good() -> dict:
        return best(port, requests, rounds=ROUNDS, seconds=SECONDS, connections=GOOD_CONNECTIONS)

    before = good()
    beside, slow = besiege(ready, SLOW_CONNECTIONS, good, to_the_end=True)
    after = good()
    print(
        f"\ngood clients: p99 {before['p99_ms']:.1f} ms alone, {beside['p99_ms']:.1f} ms beside {SLOW_CONNECTIONS} "
        f"slow, {after['p99_ms']:.1f} ms alone; slow ones closed after {slow['first_s']:.1f} to {slow['last_s']:.1f} s"
    )
    deadlines = Deadlines()
    assert before["statuses"] == beside["statuses"] == after["statuses"] == {"200"}
    assert beside["p99_ms"] <= 2 * max(before["p99_ms"], after["p99_ms"])
    assert slow["refused"] == SLOW_CONNECTIONS
    assert deadlines.head_s - 1 < slow["first_s"] < slow["last_s"] < deadlines.body_s + 2
