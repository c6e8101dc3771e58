"""Connections that never get to the point, as many as asked for; a process of its own.

    python slow.py PORT CONNECTIONS GAME_KEY

Half of them send the headers of a request byte by byte, one a second, the others its body. Prints a line when all are
open, and JSON when all are closed: how many heard a 408, and the seconds until the first and the last was closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from itertools import cycle
from time import monotonic

PATIENCE_S = 60.0


async def trickle(port: int, start: bytes, opened: asyncio.Semaphore) -> tuple[float, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = monotonic()
    writer.write(start)
    opened.release()
    heard = asyncio.create_task(reader.read())
    drops = cycle(b"a")
    with suppress(ConnectionError):
        while not heard.done() and monotonic() - began < PATIENCE_S:
            writer.write(bytes([next(drops)]))
            await asyncio.wait([heard], timeout=1)
    writer.close()
    answer = await heard if heard.done() else b""
    return monotonic() - began, answer


async def hold(port: int, connections: int, game_key: str) -> dict[str, object]:
    line = f"POST /v2/{game_key}/events HTTP/1.1\r\nHost: localhost\r\n".encode()
    starts = [line + b"X-Slow: ", line + b"Authorization: x\r\nContent-Length: 1000000\r\n\r\n"]
    opened = asyncio.Semaphore(0)
    held = [asyncio.create_task(trickle(port, starts[number % 2], opened)) for number in range(connections)]
    for _ in held:
        await opened.acquire()
    print("open", flush=True)
    ends = await asyncio.gather(*held)
    seconds = [took for took, _ in ends]
    return {
        "refused": sum(answer.startswith(b"HTTP/1.1 408") for _, answer in ends),
        "first_s": min(seconds),
        "last_s": max(seconds),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(hold(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))))
