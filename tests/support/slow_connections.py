"""Program that opens connections to the collector and sends one byte a second on each.

    python slow_connections.py PORT CONNECTIONS GAME_KEY

The bytes belong to the body of a request. Prints a line when all are open, and JSON when all are closed: how many were
answered 408, and the seconds until the first and the last was closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from time import monotonic

PATIENCE_S = 60.0


async def send_slowly(port: int, start: bytes, opened: asyncio.Semaphore) -> tuple[float, bytes]:
    """Send *start*, then a byte a second until there is an answer.

    Returns:
        The seconds until the end of the connection, and the answer.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = monotonic()
    writer.write(start)
    opened.release()
    reading = asyncio.create_task(reader.read())
    with suppress(ConnectionError):
        while not reading.done() and monotonic() - began < PATIENCE_S:
            writer.write(b"a")
            await asyncio.wait([reading], timeout=1)
    writer.close()
    answer = await reading if reading.done() else b""
    return monotonic() - began, answer


async def hold_open(port: int, connections: int, game_key: str) -> dict[str, object]:
    """Open the connections, wait until all are closed, and return the measurements."""
    head = (
        f"POST /v2/{game_key}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\nContent-Length: 1000000\r\n\r\n"
    )
    opened = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(send_slowly(port, head.encode(), opened)) for _ in range(connections)]
    for _ in tasks:
        await opened.acquire()
    print("open", flush=True)
    ends = await asyncio.gather(*tasks)
    seconds = [took for took, _ in ends]
    return {
        "refused": sum(answer.startswith(b"HTTP/1.1 408") for _, answer in ends),
        "first_s": min(seconds),
        "last_s": max(seconds),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(hold_open(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))))
