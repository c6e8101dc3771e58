"""The least a collector must do: read the body, check its HMAC, inflate and parse it. Prints its port."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import sys
import zlib

import msgspec
import uvicorn
import uvloop

SECRET = sys.argv[1].encode()


async def app(scope, receive, send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = dict(scope["headers"])
    signature = base64.b64encode(hmac.digest(SECRET, body, hashlib.sha256))
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
