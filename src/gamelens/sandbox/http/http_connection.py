"""HTTP connections with deadlines and a bounded head, which an application can also close.

uvicorn bounds neither how long a request may take to arrive nor the size of its headers, so each connection checks
itself. It has one timer, which costs a request next to nothing. Input that never becomes a request is answered here,
in JSON (Wire 1.2, Connections).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from weakref import ref

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gamelens.errors import Refused
from gamelens.wire.limits import KIB

Headers = Sequence[tuple[bytes, bytes]]

HEAD_BYTES: Final = 64 * KIB
"""Most bytes of a request line and headers (Wire 1.2, Connections).

The same limit holds for other input that advances no request.
"""
_EXTENSION: Final = "gamelens.connection"
_JSON: Final = [(b"content-type", b"application/json"), (b"connection", b"close")]
_FRAMING: Final = (b"content-length", b"transfer-encoding")  # the headers that say how long a body is


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that a client may take (Wire 1.2, Connections).

    Attributes:
        head_s: to send request line and headers, from the first byte or from the start of the connection.
        body_s: to send the body.
        answer_s: to read any more of a response.
    """

    head_s: float = 10.0
    body_s: float = 15.0
    answer_s: float = 60.0


class _HeadTooLarge(Refused):
    """More than `HEAD_BYTES` before the body."""


class Connection(HttpToolsProtocol):
    """A connection that rejects requests whose head is too long or that arrive too slowly.

    Overrides callbacks of uvicorn's httptools protocol. *headers* go with the responses that it writes itself.
    """

    def __init__(self, *args: Any, deadlines: Deadlines = Deadlines(), headers: Headers = (), **kwargs: Any) -> None:  # noqa: B008
        super().__init__(*args, **kwargs)
        self._deadlines = deadlines
        self._error_headers = [*headers, *_JSON]
        self._is_begun = False  # a request has begun and is not complete
        self._is_in_body = False
        self._body_framing = b""  # headers of a body that the parser skips after an upgrade
        self._is_resuming = False
        self._bytes_without_progress = 0  # received since a request last advanced
        self._due_s: float | None = None  # when the current head or body must be complete
        self._unread = (0, 0.0)  # bytes of responses the client has not read, and the time of the last progress

    def connection_made(self, transport: Any) -> None:
        """Start the deadline of the first request."""
        super().connection_made(transport)
        self._due_s = self.loop.time() + self._deadlines.head_s
        self._timer = self.loop.call_later(self._deadlines.head_s, self._check_deadlines)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._timer.cancel()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether to stay open for a response after the client's end of file."""
        is_due = self._has_unanswered_requests() and not self._is_in_body and not self.cycle.response_started
        if is_due and self.scheme == "http":  # TLS has no half-closed connections
            self.cycle.keep_alive = False
            return True
        return False

    def data_received(self, data: bytes | memoryview) -> None:
        """Feed the parser, and reject input that is not HTTP or whose head is too long."""
        self._unset_keepalive_if_required()
        if self._due_s is None:
            self._due_s = self.loop.time() + self._deadlines.head_s
        self._bytes_without_progress += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            is_long = isinstance(error.__context__, _HeadTooLarge)
            self._reject(431 if is_long else 400)
        else:
            if self._bytes_without_progress > HEAD_BYTES:
                self._reject(431)

    def _feed(self, data: bytes | memoryview) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                (offset,) = upgrade.args
                data = data[offset:]
                self._decline_upgrade()
            else:
                return

    def _decline_upgrade(self) -> None:
        """Continue in HTTP/1.1 when a client offers another protocol.

        Java's own client always does, and RFC 9110 7.8 allows the refusal. The parser takes all that follows for the
        other protocol, the body of this request included, so a new parser reads the body.
        """
        if self._body_framing:
            framing, self._body_framing = self._body_framing, b""
            self.parser = httptools.HttpRequestParser(self)
            self._is_resuming = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
            self._is_resuming = False

    def on_message_begin(self) -> None:
        """Start the deadline of a request's head, unless it is running."""
        super().on_message_begin()
        self._is_begun = True
        if self._due_s is None:
            self._due_s = self.loop.time() + self._deadlines.head_s

    def on_headers_complete(self) -> None:
        """Start the deadline of the body, and let the application close the connection."""
        if self._is_resuming:
            return
        if self._bytes_without_progress > HEAD_BYTES and self._head_bytes() > HEAD_BYTES:
            raise _HeadTooLarge
        super().on_headers_complete()
        self.scope["extensions"] = {_EXTENSION: {"close": self.transport.close, "cycle": ref(self.cycle)}}
        if self.parser.should_upgrade():
            self._body_framing = b"".join(b"%b: %b\r\n" % field for field in self.headers if field[0] in _FRAMING)
        self.headers = []  # trailers after the body are not headers (RFC 9110 6.5.1)
        self._is_in_body = True
        self._bytes_without_progress = 0
        self._due_s = self.loop.time() + self._deadlines.body_s

    def on_body(self, body: bytes) -> None:
        """Note that the body advances."""
        self._bytes_without_progress = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Clear the deadline until the next request begins."""
        if self._body_framing:
            return
        super().on_message_complete()
        self._is_begun = self._is_in_body = False
        self._bytes_without_progress = 0
        self._due_s = None

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _has_unanswered_requests(self) -> bool:
        """Return whether complete requests wait for their responses."""
        return bool(self.pipeline) or (self._is_answering() and not self._is_in_body)

    def _check_deadlines(self) -> None:
        """Reject or abort what is overdue, and schedule the next check.

        A deadline that starts later cannot end sooner than the shorter of both from now.
        """
        now_s = self.loop.time()
        next_s = now_s + min(self._deadlines.head_s, self._deadlines.body_s)
        if self._is_stalled(now_s):
            self.transport.abort()
            return
        if self._due_s is not None:
            if self.flow.read_paused or self._has_unanswered_requests():
                self._due_s = next_s  # the delay is on this side
            elif self._due_s <= now_s:
                self._reject(408)
                return
            next_s = self._due_s
        self._timer = self.loop.call_at(next_s, self._check_deadlines)

    def _is_stalled(self, now_s: float) -> bool:
        """Return whether the client has read nothing of its responses for too long."""
        before, since_s = self._unread
        size = self.transport.get_write_buffer_size()
        if not size or size < before or not before:
            since_s = now_s
        self._unread = size, since_s
        return now_s - since_s >= self._deadlines.answer_s

    def _reject(self, status: int) -> None:
        """Answer input that is not a request with *status*, then close.

        Requests that arrived complete before it are answered first.
        """
        if self._has_unanswered_requests():
            self.flow.pause_reading()
            if not self._is_in_body:  # a request in its body is rejected in its turn: the rest does not arrive
                self.cycle.keep_alive = False
            return
        is_answered = self._is_in_body and self.cycle.response_started
        if self._is_begun and not is_answered and not self.transport.is_closing():
            self.transport.write(self._error_response(status))
        self.transport.close()
        self._timer.cancel()
        self._timer = self.loop.call_later(self._deadlines.answer_s, self.transport.abort)

    def _error_response(self, status: int) -> bytes:
        body = msgspec.json.encode({"message": _MESSAGES[status]})
        headers = [*self._error_headers, (b"content-length", b"%d" % len(body))]
        lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode()), *map(b": ".join, headers)]
        return b"\r\n".join([*lines, b"", body])


_MESSAGES: Final = {
    400: "this is not HTTP",
    408: "the request did not come in time",
    431: f"the request line and headers are larger than {HEAD_BYTES} bytes",
}


def is_keep_alive(scope: MutableMapping[str, Any]) -> bool:
    """Return whether the connection of a request will stay open after the response."""
    connection = (scope.get("extensions") or {}).get(_EXTENSION)
    cycle = connection["cycle"]() if connection else None
    return cycle is not None and cycle.keep_alive


async def hang_up(scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    """Close the connection of a request after all written bytes are out, and wait for that.

    Raises:
        ConnectionAbortedError: there is no connection, as when an application is called in process.
    """
    connection = (scope.get("extensions") or {}).get(_EXTENSION)
    if connection is None:
        raise ConnectionAbortedError("hung up")
    connection["close"]()
    while (await receive())["type"] != "http.disconnect":
        pass
