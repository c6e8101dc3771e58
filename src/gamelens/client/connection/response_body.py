"""The body of a response, read and unpacked in small steps, within a bound of size."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Iterator
from io import BytesIO
from typing import Final

from gamelens.errors import Refused
from gamelens.wire.limits import KIB, MIB

ACCEPTED_ENCODING: Final = "gzip"
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN: Final = frozenset({"", "identity"})
_GZIP_OR_ZLIB: Final = 47  # wbits: reads the header of either
_STEP_BYTES: Final = 256 * KIB


class UnusableBody(Refused):
    """A body beyond the bound, or in an encoding that was not asked for.

    The same request would get it again.
    """


class DamagedBody(Refused):
    """A body that ends early or cannot be unpacked."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str, *, max_bytes: int, is_lenient: bool = False) -> bytes:
    """Return the unpacked content of *chunks*, as sent in the Content-Encoding *encoding*.

    Never more than *max_bytes* are held, sent or unpacked. With *is_lenient* the readable part of a body that is too
    large or damaged is returned.

    Raises:
        UnusableBody: the body or its content is larger than the bound, or in another encoding.
        DamagedBody: the body is incomplete or cannot be unpacked.
    """
    content = BytesIO()
    try:
        await _unpack(chunks, encoding.strip().lower(), content, max_bytes)
    except (UnusableBody, DamagedBody):
        if not is_lenient:
            raise
    return content.getvalue()


async def _unpack(chunks: AsyncIterable[bytes], encoding: str, content: BytesIO, max_bytes: int) -> None:
    """Write the content of *chunks* to *content*, up to *max_bytes*."""
    if encoding not in _PACKED | _PLAIN:
        raise UnusableBody(f"an answer in the encoding {encoding[:40]!r}, which was not requested")
    packed = _PackedBody() if encoding in _PACKED else None
    sent_bytes = 0
    async for chunk in chunks:
        sent_bytes += len(chunk)
        for part in packed.parts(chunk) if packed else (chunk,):
            room = max_bytes - content.tell()
            content.write(part[:room])
            if len(part) > room or sent_bytes > max_bytes:
                raise UnusableBody(
                    f"an answer of more than {max_bytes / MIB:.4g} MiB{' when unpacked' if packed else ''}: "
                    "ask for less at a time, or raise max_answer_bytes"
                )
    if packed and not packed.is_complete:  # HTTP itself tells where a plain body ends
        raise DamagedBody("its gzip ends early")


class _PackedBody:
    """A gzip body of any number of members, or a zlib body."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._is_empty = True

    @property
    def is_complete(self) -> bool:
        """Whether the last member is complete."""
        return self._inflater.eof or self._is_empty

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the content of *chunk* in steps of bounded size.

        Raises:
            DamagedBody: it cannot be unpacked.
        """
        self._is_empty &= not chunk
        is_full = False
        while chunk or is_full:
            if self._inflater.eof:
                if not chunk.startswith(b"\x1f"):  # padding after the last member
                    return
                self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
            try:
                part = self._inflater.decompress(chunk, _STEP_BYTES)
            except zlib.error:
                raise DamagedBody("it cannot be unpacked") from None
            yield part
            is_full = len(part) == _STEP_BYTES  # then more may follow from what was read before
            chunk = self._inflater.unused_data or self._inflater.unconsumed_tail
