"""Load on a running collector: many requests, bombs, slow connections, and their cost."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from datetime import date
from functools import reduce
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import msgspec
from zlib_ng import zlib_ng

from gamelens.local.sandbox_info import SandboxGame, SandboxInfo
from gamelens.simulator import load_scenario, play
from gamelens.wire.signing import sign
from support.process_memory import cpu_s, memory_mib

HERE = Path(__file__).parent
T = TypeVar("T")


def gzip_of_zeros(mib: int) -> bytes:
    """Return a valid gzip of *mib* MiB of zeros, made from one packed MiB."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda sum_so_far, _: zlib_ng.crc32(bytes(1 << 20), sum_so_far), range(mib), 0)
    end = struct.pack("<II", checksum, mib << 20 & 0xFFFFFFFF)
    return gzip.compress(b"", mtime=0)[:10] + block * mib + b"\x03\x00" + end


def signed_request(game: SandboxGame, body: bytes) -> bytes:
    """Return the HTTP request that submits the gzipped *body*, with a valid signature."""
    head = (
        f"POST /v2/{game.game_key}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: {sign(body, secret_key=game.secret_key)}\r\n\r\n"
    )
    return head.encode() + body


def event_requests(game: SandboxGame, events_each: int) -> bytes:
    """Return about 60,000 different events as requests for `load_generator.py`."""
    events: list[msgspec.Raw] = []
    for batch in play(load_scenario("small"), ends_on=date(2026, 11, 20)):
        events += msgspec.json.decode(batch.body, type=list[msgspec.Raw])
    framed = []
    for start in range(0, len(events) - events_each, events_each):
        body = gzip.compress(b"[" + b",".join(map(bytes, events[start : start + events_each])) + b"]", 6)
        request = signed_request(game, body)
        framed.append(struct.pack(">I", len(request)) + request)
    return b"".join(framed)


def collector_port(ready: SandboxInfo) -> int:
    """Return the port that the collector listens at."""
    return int(ready.collector_url.rpartition(":")[2])


async def _status_and_seconds(port: int, request: bytes) -> tuple[int, float]:
    """Send *request* over a new connection and return the status and its latency.

    The seconds count from the last byte sent to the first line of the answer.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.transport.set_write_buffer_limits(0)  # drained means that the last byte is out
        writer.write(request)
        await writer.drain()
        sent = perf_counter()
        line = await reader.readline()
        return int(line.split()[1]), perf_counter() - sent
    finally:
        writer.close()


class RefusalCost(NamedTuple):
    """The cost of requests that a collector refuses.

    Attributes:
        statuses: the statuses of all answers.
        p50_ms: the median latency of requests one after the other.
        cpu_ms: the CPU time of the collector for one of these.
        grown_mib: by how much its peak memory exceeds its memory before, many requests in parallel included.
    """

    statuses: set[int]
    p50_ms: float
    cpu_ms: float
    grown_mib: float


def measure_refusals(ready: SandboxInfo, request: bytes, *, times: int, at_once: int) -> RefusalCost:
    """Send *request* *times* one after the other, then *at_once* in parallel."""

    async def send_all() -> tuple[list[tuple[int, float]], float, list[tuple[int, float]]]:
        began = cpu_s(pid)
        single = [await _status_and_seconds(port, request) for _ in range(times)]
        used = cpu_s(pid) - began
        return single, used, await asyncio.gather(*(_status_and_seconds(port, request) for _ in range(at_once)))

    assert ready.pid is not None
    port, pid = collector_port(ready), ready.pid
    before = memory_mib(pid, "VmRSS")
    Path(f"/proc/{ready.pid}/clear_refs").write_text("5")  # the peak is counted from here
    single, used, many = asyncio.run(send_all())
    return RefusalCost(
        statuses={status for status, _ in single + many},
        p50_ms=1000 * median(seconds for _, seconds in single),
        cpu_ms=1000 * used / times,
        grown_mib=memory_mib(ready.pid, "VmHWM") - before,
    )


def send_load(port: int, requests: bytes, *, seconds: float, connections: int) -> dict[str, Any]:
    """Return the measurements of `load_generator.py`, run as a process of its own."""
    command = [sys.executable, str(HERE / "load_generator.py"), str(port), str(seconds), str(connections)]
    result: dict[str, Any] = json.loads(subprocess.run(command, input=requests, capture_output=True, check=True).stdout)
    return result


def best_of_rounds(port: int, requests: bytes, *, rounds: int, seconds: float, connections: int) -> dict[str, Any]:
    """Return the round with the smallest p99, as other load can only make it larger."""
    measured = [send_load(port, requests, seconds=seconds, connections=connections) for _ in range(rounds)]
    statuses = set().union(*(one["statuses"] for one in measured))
    return {**min(measured, key=lambda one: float(one["p99_ms"])), "statuses": statuses}


def run_beside_slow_connections(
    ready: SandboxInfo, connections: int, work: Callable[[], T], *, to_the_end: bool
) -> tuple[T, dict[str, Any]]:
    """Run *work* while *connections* slow connections are open.

    Returns:
        The result of *work*, and with *to_the_end* what `slow_connections.py` measured about their end, else `{}`.
    """
    key = ready.organisations[0].games[0].game_key
    command = [sys.executable, str(HERE / "slow_connections.py"), str(collector_port(ready)), str(connections), key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "open\n"
        result = work()
        if not to_the_end:
            slow.kill()
            return result, {}
        return result, json.loads(slow.stdout.read())
