"""The collector process under gzip bombs and slow connections.

`make bench` has a longer version.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from support.collector_load import (
    best_of_rounds,
    collector_port,
    gzip_of_zeros,
    measure_refusals,
    run_beside_slow_connections,
    signed_request,
)
from support.game_events import event

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the sandbox."""
    return tmp_path_factory.mktemp("edge")


@pytest.fixture(scope="module")
def ready(folder: Path) -> Iterator[SandboxInfo]:
    """Run a sandbox process."""
    with running_sandbox(folder / "state") as ready:
        yield ready


def test_many_bombs_at_once_take_little_memory(ready: SandboxInfo) -> None:
    """Bodies of 1 MB that unpack to 1 GB take 20 ms of CPU time each, and 50 less than 20 MB.

    Wire 1.6, Body limits.
    """
    bomb = signed_request(ready.organisations[0].games[0], gzip_of_zeros(1000))
    cost = measure_refusals(ready, bomb, times=5, at_once=50)
    assert cost.statuses == {413}
    assert cost.cpu_ms < 20
    assert cost.grown_mib < 20


def test_good_clients_are_served_beside_slow_ones(ready: SandboxInfo) -> None:
    """Beside 40 clients that send a byte a second, the p99 of others stays below a bound.

    The bound is wide, because a few seconds on a busy machine measure little.

    Wire 1.2, Connections.
    """
    request = signed_request(ready.organisations[0].games[0], gzip.compress(json.dumps([event()] * 20).encode()))
    requests, port = struct.pack(">I", len(request)) + request, collector_port(ready)

    def measure() -> dict[str, Any]:
        return best_of_rounds(port, requests, rounds=4, seconds=0.5, connections=4)

    alone = measure()
    under_load, _ = run_beside_slow_connections(ready, 40, measure, to_the_end=False)
    assert alone["statuses"] == under_load["statuses"] == {"200"}
    assert under_load["p99_ms"] < 2 * alone["p99_ms"] + 50


@pytest.mark.wide
def test_bad_requests_are_not_logged(ready: SandboxInfo, folder: Path) -> None:
    """What is no HTTP leaves nothing in the log: no error and no address (Wire 1.2, Connections)."""
    log = folder / "state" / "log.txt"
    before = log.read_text()
    measure_refusals(ready, b"garbage\r\n\r\n", times=3, at_once=3)
    assert log.read_text() == before
