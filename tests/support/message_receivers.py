"""Real receivers of messages on this machine: a webhook and a mail server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


class ReceivedPosts:
    """The bodies that a webhook received, and the status it answers with; 0 closes without an answer."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.status = 200
        self.address = ""

    def target(self, path: str) -> str:
        """Return the target of apprise that posts JSON to *path*."""
        return f"{self.address.replace('http', 'json', 1)}/{path}"


@contextmanager
def webhook() -> Iterator[ReceivedPosts]:
    """Yield a webhook that runs in a thread."""
    received = ReceivedPosts()

    class Handler(BaseHTTPRequestHandler):
        """Takes one POST."""

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender was killed
                return
            received.paths.append(self.path)
            received.bodies.append(json.loads(body))
            if received.status:
                self.send_response(received.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                return

        def log_message(self, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class ReceivedMails:
    """A handler of aiosmtpd that keeps each mail; *refuses* answers 550 instead."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.refuses = False
        self.port = 0

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:  # noqa: N802
        """Keep the mail."""
        if self.refuses:
            return "550 not here"
        self.contents.append(envelope.content)
        return "250 taken"


@contextmanager
def mail_server() -> Iterator[ReceivedMails]:
    """Yield a mail server that runs in a thread."""
    received = ReceivedMails()
    with socket.create_server(("127.0.0.1", 0)) as free:
        received.port = free.getsockname()[1]
    controller = Controller(received, hostname="127.0.0.1", port=received.port)
    controller.start()
    try:
        yield received
    finally:
        controller.stop()
