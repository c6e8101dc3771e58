"""The body of a request: read whole and unpacked, neither without bounds.

Nobody is trusted yet when a body is read, so it costs memory only while it is small: what is larger lies in a file
without a name until it is whole. A sender that stalls then holds up nobody but itself, which a fixed number of places
in memory could not promise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any, Final

import msgspec
from zlib_ng import zlib_ng

from gamelens.errors import Refused
from gamelens.wire.limits import BODY_BYTES, KIB, MIB, UNPACKED_BYTES

MEMBERS: Final = 512
"""Our choice: so many gzip members may follow each other; 16 MB in the blocks of `bgzip` are half as many."""
_HELD_BYTES: Final = 32 * KIB
_DRAINED_BYTES: Final = 4 * BODY_BYTES  # past the limit a body is read on, so that its sender hears the answer
_AT_ONCE_BYTES: Final = MIB
_PIECE_BYTES: Final = 256 * KIB
_FED_BYTES: Final = 4 * KIB  # what is fed and not used is copied each time
_InflateError: type[Exception] = zlib_ng.error  # type: ignore[assignment]


class UndecodableBody(Refused):
    """A body that holds nothing that can be read: nothing of it is kept."""

    def __init__(self, error_type: str) -> None:
        self.error_type = error_type
        super().__init__(error_type)


class BodyTooLarge(Refused):
    """A body of more than the limit; when *is_cut*, some of it has not even been read."""

    def __init__(self, message: str, *, is_cut: bool = False) -> None:
        self.is_cut = is_cut
        super().__init__(f"{message}: send fewer events at a time")


class ClientDisconnected(Refused):
    """A body whose sender went away, or was sent away, before it was whole."""


class Unpacked(msgspec.Struct, frozen=True):
    """What is in a body; *is_one_member* when that is one gzip member and nothing else, as every reader can read it."""

    content: bytes
    is_one_member: bool


async def read_body(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> bytes:
    """The whole body of a request (ASGI 3). Its connection sees to it that it comes in time (`connections`).

    Raises:
        TooLarge: more than 1 MB as sent.
        BrokenOff: it never became whole.
        OSError: the disk does not take it.
    """
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body") and len(message["body"]) <= BODY_BYTES:
        return bytes(message["body"])
    size = 0
    with SpooledTemporaryFile(max_size=_HELD_BYTES) as held:
        while message["type"] == "http.request":
            size += len(message["body"])
            if size <= BODY_BYTES:
                held.write(message["body"])
            if size > _DRAINED_BYTES or not message.get("more_body"):
                check_size(size, is_cut=bool(message.get("more_body")))
                held.seek(0)
                return held.read()
            message = await receive()
    raise ClientDisconnected("the body ended early")


def check_size(size: int, *, is_cut: bool = True) -> None:
    """Raise TooLarge when no body may have *size* bytes as sent."""
    if size > BODY_BYTES:
        raise BodyTooLarge(f"the body is larger than {BODY_BYTES} bytes", is_cut=is_cut)


def unpack(body: bytes) -> Unpacked:
    """What is in a gzipped *body*: one member or several (RFC 1952 2.2), never more than 16 MB.

    Raises:
        Undecodable: no gzip, cut short, damaged, or followed by something else.
        TooLarge: more than the limit when unpacked, or more than `MEMBERS` members.
    """
    try:
        inflater = zlib_ng.decompressobj(wbits=31)
        content = inflater.decompress(body, _AT_ONCE_BYTES)
        if inflater.eof and not inflater.unused_data:
            return Unpacked(content, is_one_member=True)
        del inflater, content
        return _unpack_by_pieces(body)
    except _InflateError:
        raise UndecodableBody("wrong_format") from None


def _unpack_by_pieces(body: bytes) -> Unpacked:
    """Count first and keep afterwards, so that a bomb takes no more memory than one of its pieces."""
    size = 0
    for _, piece in _pieces(body):
        size += len(piece)
        if size > UNPACKED_BYTES:
            raise BodyTooLarge(f"the body unpacks to more than {UNPACKED_BYTES} bytes")
    members = 0
    with BytesIO() as content:
        for members, piece in _pieces(body):  # noqa: B007 - the last one counts
            content.write(piece)
        return Unpacked(content.getvalue(), is_one_member=members == 1)


def _pieces(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The content of *body*, and in which member each piece of it lies, counted from 1."""
    rest = memoryview(body)
    member = 0
    while rest or not member:
        member += 1
        if member > MEMBERS:
            raise BodyTooLarge(f"the body has more than {MEMBERS} gzip members")
        inflater = zlib_ng.decompressobj(wbits=31)
        while not inflater.eof:
            fed: bytes | memoryview = inflater.unconsumed_tail
            if not fed:
                fed, rest = rest[:_FED_BYTES], rest[_FED_BYTES:]
            if not fed:
                raise UndecodableBody("wrong_format")
            yield member, inflater.decompress(fed, _PIECE_BYTES)
        rest = memoryview(body)[len(body) - len(rest) - len(inflater.unused_data) :]
