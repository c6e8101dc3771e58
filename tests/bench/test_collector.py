"""How fast the collector acknowledges what is validated and on disk, beside a floor that only reads and parses.

Run by `make bench`; server and load generator share the machine, as always here.
"""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec
import pytest

from gamelens.lab import ReadyGame, sandbox_at
from gamelens.simulator import load_scenario, play
from gamelens.wire.signing import sign

HERE = Path(__file__).parent
SECONDS = 5
CONNECTIONS = 16


def requests_of(game: ReadyGame, events_each: int) -> bytes:
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
def test_durable_events_a_second(tmp_path: Path, events_each: int):
    """Collector, POST events: every request acknowledged; the ratio is printed, not judged."""
    with sandbox_at(tmp_path / "state") as ready:
        game = ready.organisations[0].games[0]
        requests = requests_of(game, events_each)
        with floor(game.secret_key) as port:
            least = fire(port, requests)
        real = fire(int(ready.collector_url.rpartition(":")[2]), requests)
    assert set(real["statuses"]) == set(least["statuses"]) == {"200"}
    rates = [events_each * result["requests"] / result["seconds"] for result in (real, least)]
    print(
        f"\n{events_each} events a request: {rates[0]:,.0f} events/s durable, {rates[0] / rates[1]:.2f} of the floor's "
        f"{rates[1]:,.0f}; p50 {real['p50_ms']:.1f} ms, p99 {real['p99_ms']:.1f} ms"
    )
