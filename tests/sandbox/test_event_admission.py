"""The admission of a body: its nesting, its number of values, and its events one by one."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.sandbox.collector.event_admission import admit
from gamelens.sandbox.http.request_body import BodyTooLarge, UndecodableBody
from gamelens.wire.event_validator import LENIENT, STRICT, EventValidator
from support.candidate_events import described_events, near_events
from support.game_events import event
from support.hypothesis_profiles import examples

MODES = pytest.mark.parametrize("rules", [LENIENT, STRICT], ids=["lenient", "strict"])


@MODES
@settings(max_examples=examples(60), deadline=None)
@given(events=st.lists(near_events(), max_size=6))
def test_every_event_of_a_batch_is_validated_alone(events: list[Any], rules: EventValidator) -> None:
    """Good events are kept in order, the others listed with their violations.

    Wire 1.8, Rejected events.
    """
    result = admit(json.dumps(events).encode(), rules)
    assert msgspec.json.decode(result.body) == [one for one in events if not rules.violations(one)]
    assert [(msgspec.json.decode(rejected.event), rejected.errors) for rejected in result.rejected] == [
        (one, rules.violations(one)) for one in events if rules.violations(one)
    ]


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_good_event_is_kept_whole(data: st.DataObject) -> None:
    """Unknown fields are kept with their event, beside good events and bad ones.

    Wire 3.3, Common fields.
    """
    extra = data.draw(st.dictionaries(st.text(max_size=9).map("own_{}".format), st.text() | st.lists(st.integers())))
    one = extra | data.draw(described_events(LENIENT))
    assert msgspec.json.decode(admit(json.dumps([one]).encode()).body) == [one]
    assert msgspec.json.decode(admit(json.dumps([one, None]).encode()).body) == [one]


GOOD = json.dumps(event()).encode()
TOO_MANY_VALUES = {  # case begins it, case is repeated, how often, and case ends it
    "numbers": (b"[", b"0,", 8_000_000, b"0]"),
    "objects": (b"[", b"{},", 5_000_000, b"{}]"),
    "lists in a good event": (b"[" + GOOD[:-1] + b',"x":[', b"[],", 5_000_000, b"[]]}]"),
    "lists in a bad event": (b"[" + GOOD[:-1] + b',"v":3,"x":[', b"[],", 5_000_000, b"[]]}]"),
    "fields of a bad event": (b"[" + GOOD[:-1] + b',"v":3', b',"y":0', 2_000_000, b"}]"),
    "no JSON": (b"", b"[]", 8_000_000, b""),
    "bad events": (b"[", b"{},", 10_000, b"{}]"),
}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("case", TOO_MANY_VALUES)
def test_bodies_of_too_many_values_are_refused_as_a_whole(case: str) -> None:
    """16 MB of tiny values are refused within 3 s of computing, whatever they are (Wire 1.6, Body limits)."""
    start, repeated, times, end = TOO_MANY_VALUES[case]
    body = start + repeated * times + end
    began = time.process_time()
    with pytest.raises(BodyTooLarge):
        admit(body)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("body", [b"[" * 16_000_000, b"[" * 40 + b"0," * 2_000_000 + b"0" + b"]" * 40])
def test_a_deeply_nested_body_is_undecodable(body: bytes) -> None:
    """A body that is nested too deep is undecodable, however many values it has.

    Wire 1.8, Rejected events.
    """
    with pytest.raises(UndecodableBody):
        admit(body)


@pytest.mark.wide
def test_the_largest_body_of_good_events_is_not_too_much() -> None:
    """A body of 16 MB with the shortest good events, about 54,000, is admitted.

    Wire 1.6, Body limits.
    """
    events = (16 << 20) // (len(GOOD) + 1) - 1
    assert admit(b"[" + b",".join([GOOD] * events) + b"]").events == events
    assert admit(b"[" + b",".join([GOOD] * (events - 1) + [b"0"]) + b"]").events == events - 1


@given(text=st.text(alphabet=st.sampled_from('\\\\"[]{},:a0')), depth=st.integers(0, 4))
def test_brackets_inside_strings_are_no_nesting(text: str, depth: int) -> None:
    """Only brackets outside of strings count as nesting, escaped quotes considered.

    Wire 1.6, Body limits.
    """
    nested = "[" * (28 + depth) + json.dumps(text) + "]" * (28 + depth)
    body = b"[" + GOOD[:-1] + b',"x":' + nested.encode() + b"}]"
    if depth <= 2:
        assert admit(body).events == 1
    else:
        with pytest.raises(UndecodableBody):
            admit(body)
