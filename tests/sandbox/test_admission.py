"""What a body may be: packed, deep, and good or bad event by event (architecture, Decisions: msgspec)."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import event, examples
from gamelens.sandbox.collector.event_admission import admit
from gamelens.sandbox.http.request_body import BodyTooLarge, UndecodableBody
from gamelens.wire.event_validator import LENIENT, STRICT, EventValidator
from support.candidate_events import described_events, near_events

MODES = pytest.mark.parametrize("rules", [LENIENT, STRICT], ids=["lenient", "strict"])


@MODES
@settings(max_examples=examples(60), deadline=None)
@given(events=st.lists(near_events(), max_size=6))
def test_a_batch_is_judged_event_by_event(events: list[Any], rules: EventValidator) -> None:
    """Public facts 1.7: the valid events of the same request are collected."""
    admission = admit(json.dumps(events).encode(), rules)
    assert msgspec.json.decode(admission.body) == [one for one in events if not rules.faults(one)]
    assert [(msgspec.json.decode(it.event), it.errors) for it in admission.rejected] == [
        (one, rules.faults(one)) for one in events if rules.faults(one)
    ]


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_good_event_is_kept_whole(data: st.DataObject) -> None:
    """Public facts 2.3: fields nobody knows are accepted and kept, beside good events and bad ones."""
    own = data.draw(st.dictionaries(st.text(max_size=9).map("own_{}".format), st.text() | st.lists(st.integers())))
    one = own | data.draw(described_events(LENIENT))
    assert msgspec.json.decode(admit(json.dumps([one]).encode()).body) == [one]
    assert msgspec.json.decode(admit(json.dumps([one, None]).encode()).body) == [one]


GOOD = json.dumps(event()).encode()
MUCH = {  # what begins it, what is repeated, how often, and what ends it
    "numbers": (b"[", b"0,", 8_000_000, b"0]"),
    "objects": (b"[", b"{},", 5_000_000, b"{}]"),
    "lists in a good event": (b"[" + GOOD[:-1] + b',"x":[', b"[],", 5_000_000, b"[]]}]"),
    "lists in a bad event": (b"[" + GOOD[:-1] + b',"v":3,"x":[', b"[],", 5_000_000, b"[]]}]"),
    "fields of a bad event": (b"[" + GOOD[:-1] + b',"v":3', b',"y":0', 2_000_000, b"}]"),
    "no JSON": (b"", b"[]", 8_000_000, b""),
    "bad events": (b"[", b"{},", 10_000, b"{}]"),
}


@pytest.mark.parametrize("what", MUCH)
def test_much_of_little_worth_is_refused_as_a_whole(what: str) -> None:
    """The sandbox package, Our choices. 16 MB of such things fit into 16 kB of gzip; each took a minute or 10 GB."""
    start, little, times, end = MUCH[what]
    body = start + little * times + end
    began = time.monotonic()
    with pytest.raises(BodyTooLarge):
        admit(body)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("body", [b"[" * 16_000_000, b"[" * 40 + b"0," * 2_000_000 + b"0" + b"]" * 40])
def test_what_is_too_deep_is_that_first_of_all(body: bytes) -> None:
    """contract, Collector: undecodable is 400."""
    with pytest.raises(UndecodableBody):
        admit(body)


def test_the_largest_body_of_good_events_is_not_too_much() -> None:
    """54,000 of the shortest there are, and a bad one among them."""
    events = (16 << 20) // (len(GOOD) + 1) - 1
    assert admit(b"[" + b",".join([GOOD] * events) + b"]").events == events
    assert admit(b"[" + b",".join([GOOD] * (events - 1) + [b"0"]) + b"]").events == events - 1


@given(text=st.text(alphabet=st.sampled_from('\\\\"[]{},:a0')), depth=st.integers(0, 4))
def test_what_stands_in_a_string_is_no_structure(text: str, depth: int) -> None:
    """Escaped quotes end no string, and brackets inside one open nothing."""
    nested = "[" * (28 + depth) + json.dumps(text) + "]" * (28 + depth)
    body = b"[" + GOOD[:-1] + b',"x":' + nested.encode() + b"}]"
    if depth <= 2:
        assert admit(body).events == 1
    else:
        with pytest.raises(UndecodableBody):
            admit(body)
