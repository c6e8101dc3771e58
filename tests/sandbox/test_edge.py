"""The collector under siege, in short; `make bench` has the long version (issue, Bad input)."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.siege import besiege, best, bombard, port_of, post, zeros
from conftest import event
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import running_sandbox

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edge")


@pytest.fixture(scope="module")
def ready(folder: Path) -> Iterator[SandboxInfo]:
    with running_sandbox(folder / "state") as ready:
        yield ready


def test_many_bombs_at_once_take_little_memory(ready: SandboxInfo) -> None:
    """50 of 1 MB that unpack to 1 GB: less than half of what they are before they are unpacked."""
    answers, p50_ms, grown_mib = bombard(ready, post(ready.organisations[0].games[0], zeros(1000)), times=5, at_once=50)
    assert answers == {413}
    assert p50_ms < 20
    assert grown_mib < 20


def test_good_clients_are_served_beside_slow_ones(ready: SandboxInfo) -> None:
    """40 that send a byte a second; the bound is wide, because so few seconds on a busy machine measure little."""
    request = post(ready.organisations[0].games[0], gzip.compress(json.dumps([event()] * 20).encode()))
    requests, port = struct.pack(">I", len(request)) + request, port_of(ready)

    def good() -> dict:
        return best(port, requests, rounds=4, seconds=0.5, connections=4)

    alone = good()
    beside, _ = besiege(ready, 40, good, to_the_end=False)
    assert alone["statuses"] == beside["statuses"] == {"200"}
    assert beside["p99_ms"] < 2 * alone["p99_ms"] + 50


def test_nothing_of_it_was_logged(ready: SandboxInfo, folder: Path) -> None:
    """Neither a mistake nor an address."""
    bombard(ready, b"garbage\r\n\r\n", times=3, at_once=3)
    assert (folder / "state" / "log.txt").read_text() == ""
