"""What a body may be: packed, deep, and good or bad event by event (architecture, Decisions: msgspec)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.sandbox.admission import admit
from gamelens.wire.events import LENIENT, STRICT, Rulebook
from wire.candidates import described_events, near_events

MODES = pytest.mark.parametrize("rules", [LENIENT, STRICT], ids=["lenient", "strict"])


@MODES
@settings(max_examples=60, deadline=None)
@given(events=st.lists(near_events(), max_size=6))
def test_a_batch_is_judged_event_by_event(events: list[Any], rules: Rulebook):
    """Public facts 1.7: the valid events of the same request are collected."""
    admission = admit(json.dumps(events).encode(), rules)
    assert msgspec.json.decode(admission.body) == [one for one in events if not rules.faults(one)]
    assert [(msgspec.json.decode(it.event), it.errors) for it in admission.rejected] == [
        (one, rules.faults(one)) for one in events if rules.faults(one)
    ]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_good_event_is_kept_whole(data: st.DataObject):
    """Public facts 2.3: fields nobody knows are accepted and kept, beside good events and bad ones."""
    own = data.draw(st.dictionaries(st.text(max_size=9).map("own_{}".format), st.text() | st.lists(st.integers())))
    one = own | data.draw(described_events(LENIENT))
    assert msgspec.json.decode(admit(json.dumps([one]).encode()).body) == [one]
    assert msgspec.json.decode(admit(json.dumps([one, None]).encode()).body) == [one]
