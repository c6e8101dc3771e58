"""The body of a request, read in full and unpacked, both within bounds.

Wire 1.6, Body limits. A body is read before its sender is authorised, so it may cost memory only while it is small: a
larger one is spooled to an unnamed file until it is complete. A sender that stalls then delays no other request,
which a fixed number of buffers in memory could not guarantee.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any, Final

import msgspec
from zlib_ng import zlib_ng

from gamelens.errors import Refused
from gamelens.wire.limits import BODY_BYTES, KIB, MIB, UNPACKED_BYTES

BODY_DEADLINE_S: Final = 15.0
"""Seconds in which a body must be complete (Wire 1.2, Connections)."""
MEMBERS: Final = 512
"""Most gzip members of one body (Wire 1.6, Body limits).

16 MB in the blocks of `bgzip` are half as many.
"""
_MEMORY_BYTES: Final = 32 * KIB
_DRAINED_BYTES: Final = 4 * BODY_BYTES  # a body is read past the limit, so that its sender gets the answer
_ONE_STEP_BYTES: Final = MIB
_OUTPUT_BYTES: Final = 256 * KIB
_INPUT_BYTES: Final = 4 * KIB  # small, because zlib copies the unused rest of each input
_InflateError: type[Exception] = zlib_ng.error  # type: ignore[assignment]


class UndecodableBody(Refused):
    """A body that cannot be read. Nothing of it is stored."""

    def __init__(self, error_type: str) -> None:
        self.error_type = error_type
        super().__init__(error_type)


class BodyTooLarge(Refused):
    """A body over a limit. With *is_cut*, part of it has not been read."""

    def __init__(self, message: str, *, is_cut: bool = False) -> None:
        self.is_cut = is_cut
        super().__init__(f"{message}: send fewer events at a time")


class BodyTooSlow(Refused):
    """A body that was not complete in time."""


class ClientDisconnected(Refused):
    """A body whose sender disconnected before it was complete."""


class Unpacked(msgspec.Struct, frozen=True):
    """Content of a body.

    *is_one_member* is true if the body is exactly one gzip member, which every reader can read.
    """

    content: bytes
    is_one_member: bool


async def read_body(
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]], *, deadline_s: float = BODY_DEADLINE_S
) -> bytes:
    """Return the whole body of a request (ASGI 3).

    Raises:
        BodyTooLarge: more than 1 MB as sent.
        BodyTooSlow: the body was not complete within *deadline_s* seconds.
        ClientDisconnected: the body was never complete.
        OSError: the disk does not take it.
    """
    try:
        async with asyncio.timeout(deadline_s):
            message = await receive()
            is_whole = message["type"] == "http.request" and not message.get("more_body")
            if is_whole and len(message["body"]) <= BODY_BYTES:
                return bytes(message["body"])
            size = 0
            with SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
                while message["type"] == "http.request":
                    size += len(message["body"])
                    if size <= BODY_BYTES:
                        spool.write(message["body"])
                    if size > _DRAINED_BYTES or not message.get("more_body"):
                        check_size(size, is_cut=bool(message.get("more_body")))
                        spool.seek(0)
                        return spool.read()
                    message = await receive()
    except TimeoutError:
        raise BodyTooSlow(f"the body was not complete within {deadline_s:g} s") from None
    raise ClientDisconnected("the body ended early")


def check_size(size: int, *, is_cut: bool = True) -> None:
    """Raise `BodyTooLarge` if *size* bytes are more than a body may have as sent."""
    if size > BODY_BYTES:
        raise BodyTooLarge(f"the body is larger than {BODY_BYTES} bytes", is_cut=is_cut)


def unpack(body: bytes) -> Unpacked:
    """Return the content of a gzipped *body*, at most 16 MB.

    It may have several members (RFC 1952 2.2).

    Raises:
        UndecodableBody: not gzip, cut short, damaged, or followed by other bytes.
        BodyTooLarge: more than the limit when unpacked, or more than `MEMBERS` members.
    """
    try:
        inflater = zlib_ng.decompressobj(wbits=31)
        content = inflater.decompress(body, _ONE_STEP_BYTES)
        if inflater.eof and not inflater.unused_data:
            return Unpacked(content, is_one_member=True)
        del inflater, content
        return _unpack_bounded(body)
    except _InflateError:
        raise UndecodableBody("wrong_format") from None


def _unpack_bounded(body: bytes) -> Unpacked:
    """Unpack twice, counting first: a gzip bomb takes no more memory than one chunk."""
    size = 0
    for _, output in _members(body):
        size += len(output)
        if size > UNPACKED_BYTES:
            raise BodyTooLarge(f"the body unpacks to more than {UNPACKED_BYTES} bytes")
    members = 0
    with BytesIO() as content:
        for members, output in _members(body):  # noqa: B007 - the last one counts
            content.write(output)
        return Unpacked(content.getvalue(), is_one_member=members == 1)


def _members(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the content of *body* in chunks, each with the number of its member from 1."""
    rest = memoryview(body)
    member = 0
    while rest or not member:
        member += 1
        if member > MEMBERS:
            raise BodyTooLarge(f"the body has more than {MEMBERS} gzip members")
        inflater = zlib_ng.decompressobj(wbits=31)
        while not inflater.eof:
            chunk: bytes | memoryview = inflater.unconsumed_tail
            if not chunk:
                chunk, rest = rest[:_INPUT_BYTES], rest[_INPUT_BYTES:]
            if not chunk:
                raise UndecodableBody("wrong_format")
            yield member, inflater.decompress(chunk, _OUTPUT_BYTES)
        rest = memoryview(body)[len(body) - len(rest) - len(inflater.unused_data) :]
