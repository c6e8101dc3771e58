"""HTTP connections that cannot be kept waiting, and that the application itself can drop.

The server bounds neither how long a request may take to arrive nor how long its headers may be, so a connection looks
after itself: it has one timer, which is late for nobody who is on time and costs a request next to nothing. What never
becomes a request is answered here, in JSON like everything else.
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
"""Our choice: the request line and the headers, and whatever else is sent that brings a request no further."""
_EXTENSION: Final = "gamelens.connection"
_JSON: Final = [(b"content-type", b"application/json"), (b"connection", b"close")]
_FRAMING: Final = (b"content-length", b"transfer-encoding")


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """How long the other side may take, in seconds (our choice).

    *head_s* for the headers of a request, from its first byte or that of the connection; *body_s* for its body;
    *answer_s* to read any more of an answer.
    """

    head_s: float = 10.0
    body_s: float = 15.0
    answer_s: float = 60.0


class _HeadTooLarge(Refused):
    """There is more to read than `HEAD_BYTES` before the body."""


class Connection(HttpToolsProtocol):
    """Closes itself on requests that come too slowly or with too long a head; *headers* go with its own answers."""

    def __init__(self, *given: Any, deadlines: Deadlines = Deadlines(), headers: Headers = (), **named: Any) -> None:  # noqa: B008
        super().__init__(*given, **named)
        self._deadlines = deadlines
        self._own_headers = [*headers, *_JSON]
        self._is_begun = False  # some of a request has come that is not whole yet
        self._is_in_body = False
        self._framing = b""  # of a body that the parser would not read
        self._is_resuming = False
        self._barren_bytes = 0  # come since anything came that brought a request further
        self._due_s: float | None = None  # when what has begun must have come
        self._unread = (0, 0.0)  # bytes of answers that nobody has read yet, and since when it is so many

    def connection_made(self, transport: Any) -> None:
        """From now on, somebody should be saying something."""
        super().connection_made(transport)
        self._due_s = self.loop.time() + self._deadlines.head_s
        self._timer = self.loop.call_later(self._deadlines.head_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._timer.cancel()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The other side says no more; whoever has sent a whole request may still want to hear the answer."""
        is_due = self._is_behind() and not self._is_in_body and not self.cycle.response_started
        if is_due and self.scheme == "http":  # TLS has no half-closed connections
            self.cycle.keep_alive = False
            return True
        return False

    def data_received(self, data: bytes | memoryview) -> None:
        """Some bytes have come."""
        self._unset_keepalive_if_required()
        if self._due_s is None:
            self._due_s = self.loop.time() + self._deadlines.head_s
        self._barren_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            is_long = isinstance(error.__context__, _HeadTooLarge)
            self._refuse(431 if is_long else 400)
        else:
            if self._barren_bytes > HEAD_BYTES:
                self._refuse(431)

    def _feed(self, data: bytes | memoryview) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                (place,) = upgrade.args
                data = data[place:]
                self._decline_upgrade()
            else:
                return

    def _decline_upgrade(self) -> None:
        """Go on in HTTP/1.1 though another protocol was offered (RFC 9110 7.8), as Java's own client always does.

        The parser takes all that follows for that protocol, the body too: another parser has to read it.
        """
        if self._framing:
            framing, self._framing = self._framing, b""
            self.parser = httptools.HttpRequestParser(self)
            self._is_resuming = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
            self._is_resuming = False

    def on_message_begin(self) -> None:
        """A request starts."""
        super().on_message_begin()
        self._is_begun = True
        if self._due_s is None:
            self._due_s = self.loop.time() + self._deadlines.head_s

    def on_headers_complete(self) -> None:
        """Its headers are there; the application tells by them how to hang up."""
        if self._is_resuming:
            return
        if self._barren_bytes > HEAD_BYTES and self._head_bytes() > HEAD_BYTES:
            raise _HeadTooLarge
        super().on_headers_complete()
        self.scope["extensions"] = {_EXTENSION: {"close": self.transport.close, "cycle": ref(self.cycle)}}
        if self.parser.should_upgrade():
            self._framing = b"".join(b"%b: %b\r\n" % field for field in self.headers if field[0] in _FRAMING)
        self.headers = []  # fields that follow the body are no headers (RFC 9110 6.5.1)
        self._is_in_body = True
        self._barren_bytes = 0
        self._due_s = self.loop.time() + self._deadlines.body_s

    def on_body(self, body: bytes) -> None:
        """Some of its body is there."""
        self._barren_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole; nothing is due until the next one begins."""
        if self._framing:
            return
        super().on_message_complete()
        self._is_begun = self._is_in_body = False
        self._barren_bytes = 0
        self._due_s = None

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_behind(self) -> bool:
        """Whether requests that are whole wait for their answers."""
        return bool(self.pipeline) or (self._is_answering() and not self._is_in_body)

    def _look(self) -> None:
        """See whether anything is overdue, and when to look again.

        Whatever is not due yet can become so no sooner than the shorter of both deadlines from now.
        """
        now_s = self.loop.time()
        next_s = now_s + min(self._deadlines.head_s, self._deadlines.body_s)
        if self._is_left_unread(now_s):
            self.transport.abort()
            return
        if self._due_s is not None:
            if self.flow.read_paused or self._is_behind():
                self._due_s = next_s  # it is we who are slow
            elif self._due_s <= now_s:
                self._refuse(408)
                return
            next_s = self._due_s
        self._timer = self.loop.call_at(next_s, self._look)

    def _is_left_unread(self, now_s: float) -> bool:
        """Whether answers lie here of which nobody has read anything for too long."""
        before, since_s = self._unread
        size = self.transport.get_write_buffer_size()
        if not size or size < before or not before:
            since_s = now_s
        self._unread = size, since_s
        return now_s - since_s >= self._deadlines.answer_s

    def _refuse(self, status: int) -> None:
        """Answer what has not become a request, and close; requests that came before it are answered first."""
        if self._is_behind():
            self.flow.pause_reading()
            if not self._is_in_body:  # or its own turn comes, and the rest of it does not
                self.cycle.keep_alive = False
            return
        is_answered = self._is_in_body and self.cycle.response_started
        if self._is_begun and not is_answered and not self.transport.is_closing():
            self.transport.write(self._answer(status))
        self.transport.close()
        self._timer.cancel()
        self._timer = self.loop.call_later(self._deadlines.answer_s, self.transport.abort)

    def _answer(self, status: int) -> bytes:
        body = msgspec.json.encode({"message": _MESSAGES[status]})
        headers = [*self._own_headers, (b"content-length", b"%d" % len(body))]
        lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode()), *map(b": ".join, headers)]
        return b"\r\n".join([*lines, b"", body])


_MESSAGES: Final = {
    400: "this is not HTTP",
    408: "the request did not come in time",
    431: f"the request line and headers are larger than {HEAD_BYTES} bytes",
}


def is_kept(scope: MutableMapping[str, Any]) -> bool:
    """Whether the connection of a request outlives the answer, as far as is known."""
    connection = (scope.get("extensions") or {}).get(_EXTENSION)
    cycle = connection["cycle"]() if connection else None
    return cycle is not None and cycle.keep_alive


async def hang_up(scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    """Close the connection of a request once what was sent is out, and return when that is done.

    Raises:
        ConnectionAbortedError: there is no connection, as when an application is called in process.
    """
    connection = (scope.get("extensions") or {}).get(_EXTENSION)
    if connection is None:
        raise ConnectionAbortedError("hung up")
    connection["close"]()
    while (await receive())["type"] != "http.disconnect":
        pass
