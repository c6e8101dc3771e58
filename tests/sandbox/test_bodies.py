"""How a body is read and unpacked: whole, or not at all, and never without bounds (RFC 1952; issue, Bad input)."""

from __future__ import annotations

import asyncio
import gzip
import os
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.siege import zeros
from conftest import examples
from gamelens.sandbox.http.request_body import (
    MEMBERS,
    BodyTooLarge,
    ClientDisconnected,
    UndecodableBody,
    read_body,
    unpack,
)

MIB = 1 << 20


@contextmanager
def at_most(mib: float):
    """Fails when Python's own memory grows by more."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < mib * MIB
    finally:
        tracemalloc.stop()


def least_s(work: Callable[[], object]) -> float:
    """The best of a few tries: what it takes when nobody else is busy."""
    took = []
    for _ in range(7):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


def refused(body: bytes) -> str:
    try:
        unpack(body)
    except (BodyTooLarge, UndecodableBody) as error:
        return type(error).__name__
    return "nobody"


# -- unpacking --------------------------------------------------------------------------------------------------------


@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5), level=st.integers(0, 9))
def test_what_was_packed_is_unpacked(parts: list[bytes], level: int) -> None:
    """RFC 1952 2.2: members one after the other are one file."""
    unpacked = unpack(b"".join(gzip.compress(part, level) for part in parts))
    assert unpacked.content == b"".join(parts)
    assert unpacked.is_one_member == (len(parts) == 1)


@pytest.mark.parametrize("members", [1, 2, 5])
def test_much_is_unpacked_as_well_as_little(members: int) -> None:
    """Past 1 MB it goes by pieces: noise, which packs badly, and zeros, of which one piece holds a lot."""
    content = os.urandom(700_000) + bytes(2 * MIB) + os.urandom(100_000)
    unpacked = unpack(b"".join([gzip.compress(content, 1)] * members))
    assert unpacked.content == content * members
    assert unpacked.is_one_member == (members == 1)


def test_a_header_may_have_every_field_of_its_format() -> None:
    """RFC 1952 2.3: extra field, name, comment and checksum of the header."""
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"name\0" + b"comment\0"
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    assert unpack(header + gzip.compress(b"[]", mtime=0)[10:]).content == b"[]"


@settings(max_examples=examples(60))
@given(content=st.binary(max_size=200), keep=st.floats(0, 1, exclude_max=True), more=st.integers(0, 2))
def test_whatever_is_cut_short_is_refused(content: bytes, keep: float, more: int) -> None:
    """Every cut but one between two members."""
    member = gzip.compress(content)
    cut = member[: int(len(member) * keep)]
    assert refused(gzip.compress(b"[]") * more + cut) == ("nobody" if more and not cut else "UndecodableBody")


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
def test_one_bad_member_spoils_all(bad: str, before: int) -> None:
    """contract, Collector: undecodable gzip; also what follows good members."""
    assert refused(gzip.compress(b"[]") * before + BAD_MEMBERS[bad]) == "UndecodableBody"


def test_a_bomb_would_be_good_gzip() -> None:
    """What the tests below throw is refused for its size alone."""
    assert unpack(zeros(16)).content == bytes(16 * MIB)


def test_damage_far_inside_is_found() -> None:
    """The second time over it would be too late."""
    packed = bytearray(gzip.compress(os.urandom(3 * MIB), 1))
    packed[2 * MIB] ^= 1
    assert refused(bytes(packed)) == "UndecodableBody"


@pytest.mark.parametrize("members", [1, 3, 16])
def test_16_mb_are_not_too_much_and_one_byte_more_is(members: int) -> None:
    """contract, Collector: over 16 MB when unpacked, in however many members."""
    whole = [gzip.compress(bytes(16 * MIB // members)) for _ in range(members)]
    whole[-1] = gzip.compress(bytes(16 * MIB - (members - 1) * (16 * MIB // members)))
    assert len(unpack(b"".join(whole)).content) == 16 * MIB
    assert refused(b"".join([*whole, gzip.compress(b"x")])) == "BodyTooLarge"


def test_a_bomb_takes_neither_memory_nor_time() -> None:
    """1 MB that unpacks to 1 GB. Without the bound it would be seconds and 1 GB."""
    bomb = zeros(1000)
    with at_most(3):
        assert refused(bomb) == "BodyTooLarge"
    assert least_s(lambda: refused(bomb)) < 0.015


def test_so_many_members_and_no_more() -> None:
    """The sandbox package, Our choices."""
    assert unpack(gzip.compress(b"x") * MEMBERS).content == b"x" * MEMBERS
    assert refused(gzip.compress(b"x") * (MEMBERS + 1)) == "BodyTooLarge"


def test_50_000_empty_members_cost_next_to_nothing() -> None:
    """Each is 20 bytes; nobody needs them."""
    body = gzip.compress(b"", mtime=0) * 50_000
    with at_most(2.5):
        assert refused(body) == "BodyTooLarge"
    assert least_s(lambda: refused(body)) < 0.01


# -- reading ----------------------------------------------------------------------------------------------------------


def read(pieces: Iterable[bytes], *, is_whole: bool = True) -> bytes:
    """What is read when *pieces* come, and then nothing more or the end of the connection."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": it, "more_body": True} for it in pieces]
    if is_whole:
        messages[-1]["more_body"] = False
    left = iter([*messages, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(left)

    return asyncio.run(read_body(receive))


@given(pieces=st.lists(st.binary(max_size=20), min_size=1, max_size=6), times=st.sampled_from([1, 10_000]))
@settings(max_examples=examples(40), deadline=None)
def test_a_body_is_all_its_pieces(pieces: list[bytes], times: int) -> None:
    """In memory or on disk, it is the same."""
    pieces = [piece * times for piece in pieces]
    assert read(pieces) == b"".join(pieces)


@pytest.mark.parametrize("pieces", [[], [b""], [b"[]"], [b"[" * 100_000, b"]"]])
def test_a_body_that_was_never_whole_is_none(pieces: list[bytes]) -> None:
    """Not even when all of it seems to be there: the last chunk is missing."""
    with pytest.raises(ClientDisconnected):
        read(pieces, is_whole=False)


@pytest.mark.parametrize("pieces", [1, 4, 64])
def test_the_largest_body_and_one_byte_more(pieces: int) -> None:
    """Collector, Limits: POST size."""
    each = [b"x" * (MIB // pieces)] * pieces
    assert len(read(each)) == MIB
    with pytest.raises(BodyTooLarge) as refusal:
        read([*each, b"x"])
    assert not refusal.value.is_cut


def test_an_endless_body_is_not_read_to_its_end() -> None:
    """Its sender hears the answer only if it listens; nobody else is held up."""
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
    """Issue, Bad input: large bodies that stall, each just before its end."""

    async def stall(number: int) -> None:
        pieces = iter([bytes(32 << 10)] * 31)

        async def receive() -> dict[str, Any]:
            if (piece := next(pieces, None)) is None:
                await asyncio.sleep(60)
            return {"type": "http.request", "body": piece, "more_body": True}

        await read_body(receive)

    async def all_of_them() -> None:
        stalled = [asyncio.create_task(stall(number)) for number in range(100)]
        await asyncio.sleep(0.1)
        for task in stalled:
            task.cancel()
        await asyncio.gather(*stalled, return_exceptions=True)

    with at_most(10):
        asyncio.run(all_of_them())
