"""How fast the collector acknowledges what is validated and on disk, beside a floor that only reads and parses.

Run by `make bench`. Server and load generator share the machine, as always here; floor and collector take turns.
"""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec
import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.sandbox_info import SandboxGame
from gamelens.local.sandbox_process import call_console, running_sandbox
from gamelens.simulator import load_scenario, play
from gamelens.wire.signing import sign

HERE = Path(__file__).parent
SECONDS = 5
CONNECTIONS = 64
ROUNDS = 3


def requests_of(game: SandboxGame, events_each: int) -> bytes:
    """About 60,000 different events as HTTP requests, for load.py."""
    events: list[msgspec.Raw] = []
    for batch in play(load_scenario("small"), ends_on=date(2026, 11, 20)):
        events += msgspec.json.decode(batch.body, type=list[msgspec.Raw])
    made = []
    for start in range(0, len(events) - events_each, events_each):
        body = gzip.compress(b"[" + b",".join(map(bytes, events[start : start + events_each])) + b"]", 6)
        head = (
            f"POST /v2/{game.game_key}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: {sign(body, secret_key=game.secret_key)}\r\n\r\n"
        )
        request = head.encode() + body
        made.append(struct.pack(">I", len(request)) + request)
    return b"".join(made)


def fire(port: int, requests: bytes) -> dict:
    command = [sys.executable, HERE / "load.py", str(port), str(SECONDS), str(CONNECTIONS)]
    return json.loads(subprocess.run(command, input=requests, capture_output=True, check=True).stdout)


@contextmanager
def floor(secret_key: str) -> Iterator[int]:
    server = subprocess.Popen([sys.executable, HERE / "floor.py", secret_key], stdout=subprocess.PIPE, text=True)
    try:
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


@pytest.mark.parametrize("events_each", [20, 100])
def test_durable_events_a_second(tmp_path: Path, events_each: int) -> None:
    """Issue: at least 0.5 of the floor, 0.35 while a million events or so are processed, and above 100,000 a second."""
    with running_sandbox(tmp_path / "state") as ready, ThreadPoolExecutor() as threads:
        game, port = ready.organisations[0].games[0], int(ready.collector_url.rpartition(":")[2])
        requests = requests_of(game, events_each)
        with floor(game.secret_key) as floor_port:
            rounds = [(fire(floor_port, requests), fire(port, requests)) for _ in range(ROUNDS)]
        processing = threads.submit(call_console, ready, ControlApi.process)
        busy = fire(port, requests)
        was_processing = not processing.done()
        processing.result()
    least, real = (sorted(side, key=rate)[ROUNDS // 2] for side in zip(*rounds, strict=True))
    ratio = sorted(rate(real) / rate(least) for least, real in rounds)[ROUNDS // 2]
    print(f"\n{events_each} events a request")
    for name, result in (("floor", least), ("durable", real), ("while processing", busy)):
        assert set(result["statuses"]) == {"200"}
        print(
            f"  {name:<17}{events_each * rate(result):>9,.0f} events/s, {rate(result) / rate(least):.2f} of the floor; "
            f"p50 {result['p50_ms']:.1f} ms, p99 {result['p99_ms']:.1f} ms"
        )
    assert was_processing
    assert ratio >= 0.5
    assert rate(busy) / rate(least) >= 0.35
    if events_each == 100:
        assert events_each * rate(real) > 100_000


def rate(result: dict) -> float:
    """Requests a second."""
    return result["requests"] / result["seconds"]
