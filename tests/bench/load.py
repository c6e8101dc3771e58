"""Sends ready-made requests over a few connections, as fast as answers come; a process of its own.

    python load.py PORT SECONDS CONNECTIONS < requests      (each request: 4 bytes of length, then its bytes)

Prints JSON: requests answered, statuses, seconds, and the latencies p50 and p99 in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from collections import Counter
from itertools import cycle
from time import perf_counter

import uvloop


class Sender(asyncio.Protocol):
    """One connection: the next request goes out when the answer to the last is in."""

    def __init__(self, requests: list[bytes], first: int, ends_at: float, done: asyncio.Future[None]) -> None:
        self.latencies: list[float] = []
        self.statuses: Counter[str] = Counter()
        self._requests = cycle(requests[first:] + requests[:first])
        self._ends_at = ends_at
        self._done = done
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0):
            return
        self.statuses[head[9:12].decode()] += 1
        self.latencies.append(perf_counter() - self._sent_at)
        self._answer = b""
        if perf_counter() < self._ends_at:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _send(self) -> None:
        self._sent_at = perf_counter()
        self._transport.write(next(self._requests))


async def fire(port: int, seconds: float, connections: int, requests: list[bytes]) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    began = perf_counter()
    senders, ends = [], []
    for number in range(connections):
        done = loop.create_future()
        first = number * len(requests) // connections
        sender = Sender(requests, first, began + seconds, done)
        await loop.create_connection(lambda sender=sender: sender, "127.0.0.1", port)
        senders.append(sender)
        ends.append(done)
    await asyncio.gather(*ends)
    took = perf_counter() - began
    latencies = sorted(latency for sender in senders for latency in sender.latencies)
    return {
        "requests": len(latencies),
        "statuses": dict(sum((sender.statuses for sender in senders), Counter())),
        "seconds": took,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
    }


def read(stream: object) -> list[bytes]:
    data, requests, place = sys.stdin.buffer.read(), [], 0
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        requests.append(data[place + 4 : place + 4 + length])
        place += 4 + length
    return requests


if __name__ == "__main__":
    port, seconds, connections = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(fire(port, seconds, connections, read(sys.stdin)))))
