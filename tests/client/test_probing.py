"""How `pace="adaptive"` finds what a service carries beyond its guarantee (Metrics, Limits 1)."""

from __future__ import annotations

from gamelens.client.connection.rate_limit import ANSWERS_PER_SLOT, HOLD_S, MEMORY_S, MOST_SLOTS, AdaptiveLimit
from gamelens.wire.limits import REQUESTS_PER_SECOND


def answered(
    number: int, *, probe: AdaptiveLimit | None = None, at: float = 0.0, every_s: float = 0.0
) -> AdaptiveLimit:
    """A probe that has heard *number* answers."""
    probe = probe or AdaptiveLimit()
    for count in range(number):
        probe.mark_answered(at + count * every_s, at + count * every_s, is_wanted=True)
    return probe


def test_it_starts_at_the_guarantee() -> None:
    assert AdaptiveLimit().extra == 0


def test_some_answers_open_a_slot() -> None:
    assert [answered(number).extra for number in (ANSWERS_PER_SLOT - 1, ANSWERS_PER_SLOT)] == [0, 1]


def test_answers_open_none_while_nobody_waits() -> None:
    """What is not needed is not tried out, and would be a burst later."""
    probe = AdaptiveLimit()
    for _ in range(100):
        probe.mark_answered(0.0, 0.0, is_wanted=False)
    assert probe.extra == 0


def test_there_is_an_end_to_it() -> None:
    assert answered(10_000).extra == MOST_SLOTS - REQUESTS_PER_SECOND


def test_a_refusal_where_several_nodes_serve_closes_one_slot() -> None:
    probe = answered(9 * ANSWERS_PER_SLOT)
    probe.mark_refused(0.1)
    assert probe.extra == 8


def test_a_refusal_where_one_node_serves_closes_all_and_ends_the_probing_for_a_minute() -> None:
    """Five answers a second are what one node gives."""
    probe = answered(4 * ANSWERS_PER_SLOT, every_s=0.2)
    probe.mark_refused(3.0)
    assert probe.extra == 0
    assert answered(100, probe=probe, at=3.0 + HOLD_S - 50, every_s=0.49).extra == 0
    assert answered(ANSWERS_PER_SLOT, probe=probe, at=3.0 + HOLD_S).extra == 1


def test_that_several_nodes_serve_is_forgotten_after_a_while() -> None:
    """They may have become one."""
    probe = answered(9 * ANSWERS_PER_SLOT)
    probe.mark_refused(MEMORY_S)
    assert probe.extra == 0


def test_a_late_answer_does_not_make_one_node_look_like_several() -> None:
    """Six answers within a second, to requests of different seconds."""
    probe = answered(5, at=10.0, every_s=0.2)
    probe.mark_answered(3.0, 10.9, is_wanted=True)
    probe.mark_answered(11.0, 11.0, is_wanted=True)
    probe.mark_refused(11.1)
    assert probe.extra == 0


def test_refusals_never_close_what_is_guaranteed() -> None:
    probe = answered(6)
    for _ in range(10):
        probe.mark_refused(0.1)
    assert probe.extra == 0
