"""Events a second that the collector acknowledges, beside a server that only parses.

Run by `make bench`. An acknowledged event is validated and on disk. Server and load generator share the machine; the
bare server and the collector take turns.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.sandbox_process import call_control_api, running_sandbox
from support.collector_load import collector_port, event_requests, send_load

HERE = Path(__file__).parent
SECONDS = 5
CONNECTIONS = 64
ROUNDS = 3


def send(port: int, requests: bytes) -> dict[str, Any]:
    """Send *requests* for one round."""
    return send_load(port, requests, seconds=SECONDS, connections=CONNECTIONS)


@contextmanager
def bare_collector(secret_key: str) -> Iterator[int]:
    """Run `bare_collector.py` and yield its port."""
    command = [sys.executable, str(HERE / "bare_collector.py"), secret_key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


@pytest.mark.parametrize("events_each", [20, 100])
def test_durable_events_a_second(tmp_path: Path, events_each: int) -> None:
    """At least 0.5 of the bare server, 0.35 during processing, 100,000 events/s of 100 each.

    Processing runs over about a million events meanwhile.
    """
    with running_sandbox(tmp_path / "state") as ready, ThreadPoolExecutor() as threads:
        game, port = ready.organisations[0].games[0], collector_port(ready)
        requests = event_requests(game, events_each)
        with bare_collector(game.secret_key) as bare_port:
            rounds = [(send(bare_port, requests), send(port, requests)) for _ in range(ROUNDS)]
        processing = threads.submit(call_control_api, ready, ControlApi.process)
        busy = send(port, requests)
        was_processing = not processing.done()
        processing.result()
    bare, durable = (sorted(side, key=rate)[ROUNDS // 2] for side in zip(*rounds, strict=True))
    ratio = sorted(rate(durable) / rate(bare) for bare, durable in rounds)[ROUNDS // 2]
    print(f"\n{events_each} events a request")
    for name, result in (("bare", bare), ("durable", durable), ("while processing", busy)):
        assert set(result["statuses"]) == {"200"}
        print(
            f"  {name:<17}{events_each * rate(result):>9,.0f} events/s, {rate(result) / rate(bare):.2f} of bare; "
            f"p50 {result['p50_ms']:.1f} ms, p99 {result['p99_ms']:.1f} ms"
        )
    assert was_processing
    assert ratio >= 0.5
    assert rate(busy) / rate(bare) >= 0.35
    if events_each == 100:
        assert events_each * rate(durable) > 100_000


def rate(result: dict[str, Any]) -> float:
    """Return the requests a second."""
    return float(result["requests"] / result["seconds"])
