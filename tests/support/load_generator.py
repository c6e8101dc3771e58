"""Program that sends ready-made requests over several connections as fast as answers come.

    python load_generator.py PORT SECONDS CONNECTIONS < requests

Each request on standard input is 4 bytes of length, then its bytes. Prints JSON: requests answered, statuses, seconds,
and the latencies p50 and p99 in milliseconds. It is a process of its own, so that it shares no interpreter with the
program that measures.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from collections import Counter
from itertools import cycle
from time import perf_counter
from typing import cast

import uvloop


class Sender(asyncio.Protocol):
    """One connection, which sends a request when the answer to the last one is complete."""

    def __init__(self, requests: list[bytes], first: int, ends_at: float, done: asyncio.Future[None]) -> None:
        self.latencies: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.done = done
        self._requests = cycle(requests[first:] + requests[:first])
        self._ends_at = ends_at
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Record a complete answer and send the next request, or close when the time is up."""
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
        """Mark the connection as done."""
        if not self.done.done():
            self.done.set_result(None)

    def _send(self) -> None:
        self._sent_at = perf_counter()
        self._transport.write(next(self._requests))


async def open_sender(port: int, requests: list[bytes], first: int, ends_at: float) -> Sender:
    """Open a connection that starts with request number *first*."""
    loop = asyncio.get_running_loop()
    sender = Sender(requests, first, ends_at, loop.create_future())
    await loop.create_connection(lambda: sender, "127.0.0.1", port)
    return sender


async def send(port: int, seconds: float, connections: int, requests: list[bytes]) -> dict[str, object]:
    """Send *requests* over and over for *seconds*, and return the measurements."""
    began = perf_counter()
    firsts = [number * len(requests) // connections for number in range(connections)]
    senders = [await open_sender(port, requests, first, began + seconds) for first in firsts]
    await asyncio.gather(*(sender.done for sender in senders))
    took = perf_counter() - began
    latencies = sorted(latency for sender in senders for latency in sender.latencies)
    return {
        "requests": len(latencies),
        "statuses": dict(sum((sender.statuses for sender in senders), Counter())),
        "seconds": took,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
    }


def split_requests(data: bytes) -> list[bytes]:
    """Return the requests of *data*, each preceded by its length."""
    requests, place = [], 0
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        requests.append(data[place + 4 : place + 4 + length])
        place += 4 + length
    return requests


if __name__ == "__main__":
    port, seconds, connections = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    requests = split_requests(sys.stdin.buffer.read())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(send(port, seconds, connections, requests))))
