"""Reading and unpacking of request bodies, within bounds (Wire 1.6, Body limits)."""

from __future__ import annotations

import asyncio
import gzip
import os
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.sandbox.http.request_body import (
    MEMBERS,
    BodyTooLarge,
    ClientDisconnected,
    UndecodableBody,
    read_body,
    unpack,
)
from support.collector_load import gzip_of_zeros
from support.hypothesis_profiles import examples

MIB = 1 << 20


@contextmanager
def at_most(mib: float) -> Iterator[None]:
    """Fail if Python's own memory grows by more than *mib* inside the context."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < mib * MIB
    finally:
        tracemalloc.stop()


def least_cpu_s(work: Callable[[], object]) -> float:
    """Return the least CPU time of seven runs of *work*, which other processes do not add to."""
    took = []
    for _ in range(7):
        began = time.thread_time()
        work()
        took.append(time.thread_time() - began)
    return min(took)


def refusal_of(body: bytes) -> str:
    """Return the name of the error that unpacking *body* raises, or "accepted"."""
    try:
        unpack(body)
    except (BodyTooLarge, UndecodableBody) as error:
        return type(error).__name__
    return "accepted"


# -- unpacking --------------------------------------------------------------------------------------------------------


@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5), level=st.integers(0, 9))
def test_gzip_members_are_unpacked_in_order(parts: list[bytes], level: int) -> None:
    """The members of a gzip file are unpacked and joined in order.

    RFC 1952 2.2.
    """
    unpacked = unpack(b"".join(gzip.compress(part, level) for part in parts))
    assert unpacked.content == b"".join(parts)
    assert unpacked.is_one_member == (len(parts) == 1)


@pytest.mark.parametrize("members", [1, 2, 5])
def test_large_bodies_are_unpacked_in_pieces(members: int) -> None:
    """Bodies beyond 1 MB, of noise and of zeros, are unpacked to the same bytes."""
    content = os.urandom(700_000) + bytes(2 * MIB) + os.urandom(100_000)
    unpacked = unpack(b"".join([gzip.compress(content, 1)] * members))
    assert unpacked.content == content * members
    assert unpacked.is_one_member == (members == 1)


def test_a_header_may_have_every_field_of_its_format() -> None:
    """A gzip header may have an extra field, name, comment and checksum.

    RFC 1952 2.3.
    """
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"name\0" + b"comment\0"
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    assert unpack(header + gzip.compress(b"[]", mtime=0)[10:]).content == b"[]"


@settings(max_examples=examples(60))
@given(content=st.binary(max_size=200), keep=st.floats(0, 1, exclude_max=True), more=st.integers(0, 2))
def test_gzip_that_is_cut_short_is_refused(content: bytes, keep: float, more: int) -> None:
    """A gzip body that is cut anywhere but between two members is undecodable."""
    member = gzip.compress(content)
    cut = member[: int(len(member) * keep)]
    assert refusal_of(gzip.compress(b"[]") * more + cut) == ("accepted" if more and not cut else "UndecodableBody")


BAD_MEMBERS = {
    "other bytes": b"[]" * 20,
    "zeros": bytes(8),
    "one byte": b"\x1f",
    "wrong checksum": gzip.compress(b"[]")[:-8] + bytes(4) + gzip.compress(b"[]")[-4:],
    "wrong length": gzip.compress(b"[]")[:-4] + bytes(4),
    "reserved method": b"\x1f\x8b\x07" + gzip.compress(b"[]")[3:],
    "zlib": zlib.compress(b"[]"),
    "nothing but deflate": zlib.compressobj(wbits=-15).flush(),
}


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("bad", BAD_MEMBERS)
def test_one_bad_member_makes_the_body_undecodable(bad: str, before: int) -> None:
    """A bad member is undecodable, alone and after good ones (Wire 1.8, Rejected events)."""
    assert refusal_of(gzip.compress(b"[]") * before + BAD_MEMBERS[bad]) == "UndecodableBody"


def test_a_small_bomb_is_valid_gzip() -> None:
    """The bombs of this module are valid gzip, and refused for their size alone."""
    assert unpack(gzip_of_zeros(16)).content == bytes(16 * MIB)


def test_damage_far_inside_a_large_body_is_found() -> None:
    """A changed bit in the third megabyte of a body makes it undecodable."""
    packed = bytearray(gzip.compress(os.urandom(3 * MIB), 1))
    packed[2 * MIB] ^= 1
    assert refusal_of(bytes(packed)) == "UndecodableBody"


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("members", [1, 3, 16])
def test_16_mb_are_not_too_much_and_one_byte_more_is(members: int) -> None:
    """16 MB unpacked are accepted, and one byte more is not, in any number of members.

    Wire 1.6, Body limits.
    """
    members_of_16_mb = [gzip.compress(bytes(16 * MIB // members)) for _ in range(members)]
    members_of_16_mb[-1] = gzip.compress(bytes(16 * MIB - (members - 1) * (16 * MIB // members)))
    assert len(unpack(b"".join(members_of_16_mb)).content) == 16 * MIB
    assert refusal_of(b"".join([*members_of_16_mb, gzip.compress(b"x")])) == "BodyTooLarge"


def test_a_gzip_bomb_takes_little_memory_and_time() -> None:
    """1 MB that unpacks to 1 GB is refused within 15 ms of CPU time and 3 MB of memory.

    Wire 1.6, Body limits.
    """
    bomb = gzip_of_zeros(1000)
    with at_most(3):
        assert refusal_of(bomb) == "BodyTooLarge"
    assert least_cpu_s(lambda: refusal_of(bomb)) < 0.015


def test_the_number_of_gzip_members_is_limited() -> None:
    """A body may have the allowed number of gzip members, and not one more.

    Wire 1.6, Body limits.
    """
    assert unpack(gzip.compress(b"x") * MEMBERS).content == b"x" * MEMBERS
    assert refusal_of(gzip.compress(b"x") * (MEMBERS + 1)) == "BodyTooLarge"


def test_50_000_empty_members_take_little_memory_and_time() -> None:
    """50,000 empty members are refused within 10 ms of CPU time and 2.5 MB of memory.

    Wire 1.6, Body limits.
    """
    body = gzip.compress(b"", mtime=0) * 50_000
    with at_most(2.5):
        assert refusal_of(body) == "BodyTooLarge"
    assert least_cpu_s(lambda: refusal_of(body)) < 0.01


# -- reading ----------------------------------------------------------------------------------------------------------


def read(pieces: Iterable[bytes], *, is_whole: bool = True) -> bytes:
    """Read a body that arrives in *pieces*, and is complete unless *is_whole* is False."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if is_whole:
        messages[-1]["more_body"] = False
    left = iter([*messages, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(left)

    return asyncio.run(read_body(receive))


@given(pieces=st.lists(st.binary(max_size=20), min_size=1, max_size=6), times=st.sampled_from([1, 10_000]))
@settings(max_examples=examples(40), deadline=None)
def test_a_body_is_joined_from_its_pieces(pieces: list[bytes], times: int) -> None:
    """A body is the concatenation of its pieces, in memory and on disk."""
    pieces = [piece * times for piece in pieces]
    assert read(pieces) == b"".join(pieces)


@pytest.mark.parametrize("pieces", [[], [b""], [b"[]"], [b"[" * 100_000, b"]"]])
def test_an_incomplete_body_is_refused(pieces: list[bytes]) -> None:
    """A body whose last chunk is missing is refused, even if all bytes are there."""
    with pytest.raises(ClientDisconnected):
        read(pieces, is_whole=False)


@pytest.mark.parametrize("pieces", [1, 4, 64])
def test_the_largest_body_and_one_byte_more(pieces: int) -> None:
    """A body of 1 MB is read, and a byte more is refused after it is read to its end.

    Wire 1.6, Body limits.
    """
    each = [b"x" * (MIB // pieces)] * pieces
    assert len(read(each)) == MIB
    with pytest.raises(BodyTooLarge) as refusal:
        read([*each, b"x"])
    assert not refusal.value.is_cut


def test_reading_an_endless_body_stops() -> None:
    """An endless body is refused within 2 MB of memory, and its connection is cut.

    Wire 1.6, Body limits.
    """
    sent = 0

    def pieces() -> Iterable[bytes]:
        nonlocal sent
        for sent in range(1000):  # noqa: B007
            yield bytes(64 << 10)

    left = pieces()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(iter(left)), "more_body": True}

    with at_most(2), pytest.raises(BodyTooLarge) as refusal:
        asyncio.run(read_body(receive))
    assert refusal.value.is_cut
    assert sent < 100


def test_many_unfinished_bodies_take_little_memory() -> None:
    """100 bodies that stall just before their end of 1 MB take less than 10 MB."""

    async def stall(number: int) -> None:
        pieces = iter([bytes(32 << 10)] * 31)

        async def receive() -> dict[str, Any]:
            if (piece := next(pieces, None)) is None:
                await asyncio.sleep(60)
            return {"type": "http.request", "body": piece, "more_body": True}

        await read_body(receive)

    async def stall_all() -> None:
        stalled = [asyncio.create_task(stall(number)) for number in range(100)]
        await asyncio.sleep(0.1)
        for task in stalled:
            task.cancel()
        await asyncio.gather(*stalled, return_exceptions=True)

    with at_most(10):
        asyncio.run(stall_all())
