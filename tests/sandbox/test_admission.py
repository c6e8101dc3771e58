"""What a body may be: packed, deep, and good or bad event by event (architecture, Decisions: msgspec)."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.sandbox.admission import TooLarge, admit, unpack
from gamelens.wire.events import faults
from wire.candidates import near_events


def packed_zeros(mib: int) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(mib)), packer.flush()])


def test_a_bomb_is_unpacked_no_further_than_the_limit():
    """contract, Collector: over 16 MB when unpacked. However much it would be."""
    bomb = packed_zeros(96)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            unpack(bomb)
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()


@given(content=st.binary(max_size=300))
def test_what_was_packed_is_unpacked(content: bytes):
    packer = zlib.compressobj(wbits=31)
    assert unpack(packer.compress(content) + packer.flush()) == content


@settings(max_examples=60, deadline=None)
@given(events=st.lists(near_events(), max_size=6))
def test_a_batch_is_judged_event_by_event(events: list[Any]):
    """Public facts 1.7: the valid events of the same request are collected."""
    admission = admit(json.dumps(events).encode())
    assert msgspec.json.decode(admission.body) == [one for one in events if not faults(one)]
    assert [(msgspec.json.decode(it.event), it.errors) for it in admission.rejected] == [
        (one, faults(one)) for one in events if faults(one)
    ]
