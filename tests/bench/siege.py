"""What the edge of the collector is measured with: bombs, slow connections, and the memory of a process."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from zlib_ng import zlib_ng

from gamelens.local.sandbox_info import SandboxGame, SandboxInfo
from gamelens.wire.signing import sign

HERE = Path(__file__).parent


def zeros(mib: int) -> bytes:
    """An honest gzip of so many MiB, made from one packed MiB."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda sum_so_far, _: zlib_ng.crc32(bytes(1 << 20), sum_so_far), range(mib), 0)
    end = struct.pack("<II", checksum, mib << 20 & 0xFFFFFFFF)
    return gzip.compress(b"", mtime=0)[:10] + block * mib + b"\x03\x00" + end


def post(game: SandboxGame, body: bytes) -> bytes:
    """The request with gzipped *body*, well signed."""
    head = (
        f"POST /v2/{game.game_key}/events HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
        f"Content-Length: {len(body)}\r\nAuthorization: {sign(body, secret_key=game.secret_key)}\r\n\r\n"
    )
    return head.encode() + body


def port_of(ready: SandboxInfo) -> int:
    return int(ready.collector_url.rpartition(":")[2])


async def ask(port: int, request: bytes) -> tuple[int, float]:
    """The status over a connection of its own, and the seconds since the last byte was sent."""
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


def bombard(ready: SandboxInfo, request: bytes, *, times: int, at_once: int) -> tuple[set[int], float, float]:
    """Send one after the other, then many at once: statuses, median milliseconds of the first, MiB that grew."""

    async def attack() -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        single = [await ask(port, request) for _ in range(times)]
        return single, await asyncio.gather(*(ask(port, request) for _ in range(at_once)))

    port = port_of(ready)
    before = memory_mib(ready, "VmRSS")
    Path(f"/proc/{ready.pid}/clear_refs").write_text("5")  # the peak is counted from here
    single, many = asyncio.run(attack())
    grown_mib = memory_mib(ready, "VmHWM") - before
    return {status for status, _ in single + many}, 1000 * median(took for _, took in single), grown_mib


def memory_mib(ready: SandboxInfo, which: str) -> float:
    status = Path(f"/proc/{ready.pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(which))


def fire(port: int, requests: bytes, *, seconds: float, connections: int) -> dict[str, Any]:
    """What load.py measures."""
    command = [sys.executable, HERE / "load.py", str(port), str(seconds), str(connections)]
    return json.loads(subprocess.run(command, input=requests, capture_output=True, check=True).stdout)


def best(port: int, requests: bytes, *, rounds: int, seconds: float, connections: int) -> dict[str, Any]:
    """The round with the smallest p99: whatever else the machine does can only make it larger."""
    measured = [fire(port, requests, seconds=seconds, connections=connections) for _ in range(rounds)]
    statuses = set().union(*(one["statuses"] for one in measured))
    return {**min(measured, key=lambda one: one["p99_ms"]), "statuses": statuses}


def besiege(
    ready: SandboxInfo, connections: int, work: Callable[[], Any], *, to_the_end: bool
) -> tuple[Any, dict[str, Any]]:
    """What *work* answers while so many slow connections are open, and how those ended, if that is waited for."""
    key = ready.organisations[0].games[0].game_key
    command = [sys.executable, HERE / "slow.py", str(port_of(ready)), str(connections), key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "open\n"
        answer = work()
        if not to_the_end:
            slow.kill()
            return answer, {}
        return answer, json.loads(slow.stdout.read())
