"""A plain HTTP server of the standard library, whose answers a test writes byte by byte."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PlainRequest(BaseHTTPRequestHandler):
    """One request, answered by the `respond` of its server.

    Attributes:
        content: the body of the request.
    """

    protocol_version = "HTTP/1.1"
    content = b""

    def do_GET(self) -> None:
        """Read the request and answer it. The client may hang up meanwhile."""
        assert isinstance(self.server, PlainServer)
        self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.paths.append(self.path)
        self.close_connection = True
        with suppress(ConnectionError):
            self.server.respond(self)

    def do_POST(self) -> None:
        """Answer as to GET."""
        self.do_GET()

    def begin(self, status: int, **headers: str) -> None:
        """Send the head of an answer whose body ends with the connection. `a_b` is the header `A-B`."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-").title(), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole answer."""
        self.begin(status, content_length=str(len(body)), **headers)
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


Respond = Callable[[PlainRequest], None]


class PlainServer(ThreadingHTTPServer):
    """The server, and the paths of the requests it received."""

    daemon_threads = True

    def __init__(self, respond: Respond) -> None:
        super().__init__(("127.0.0.1", 0), PlainRequest)
        self.respond = respond
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        """The address, as an environment variable has it."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def plain_server(respond: Respond) -> Iterator[PlainServer]:
    """Run a server that answers each request by *respond*, in a thread of its own."""
    with PlainServer(respond) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
