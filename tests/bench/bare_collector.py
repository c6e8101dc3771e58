"""Program that does the least a collector must: check the HMAC, inflate and parse.

    python bare_collector.py SECRET_KEY

Listens on a free port of loopback and prints its number.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import sys
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn
import uvloop

Message = dict[str, Any]
SECRET_KEY = sys.argv[1].encode()


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer a signed, gzipped JSON body with an empty 200."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = dict(scope["headers"])
    signature = base64.b64encode(hmac.digest(SECRET_KEY, body, hashlib.sha256))
    assert hmac.compare_digest(signature, headers[b"authorization"])
    msgspec.json.decode(zlib.decompress(body, wbits=31))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve(sockets=[listener]))
