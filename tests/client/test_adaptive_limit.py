"""The adaptive limit: how many requests beyond the guaranteed rate a service takes."""

from __future__ import annotations

from gamelens.client.limits.rate_limit import (
    ANSWERS_PER_REFUSAL,
    ANSWERS_PER_SLOT,
    HOLD_S,
    MEMORY_S,
    MOST_SLOTS,
    AdaptiveLimit,
)
from gamelens.wire.limits import REQUESTS_PER_SECOND


def after_answers(
    number: int, *, probe: AdaptiveLimit | None = None, at: float = 0.0, every_s: float = 0.0
) -> AdaptiveLimit:
    """Return a limit that has seen *number* successful answers."""
    probe = probe or AdaptiveLimit()
    for count in range(number):
        probe.mark_answered(at + count * every_s, at + count * every_s, is_wanted=True)
    return probe


def test_it_starts_at_the_guarantee() -> None:
    """A new limit allows nothing beyond the guaranteed rate."""
    assert AdaptiveLimit().extra == 0


def test_some_answers_open_a_slot() -> None:
    """A fixed number of answers opens one more slot."""
    assert [after_answers(number).extra for number in (ANSWERS_PER_SLOT - 1, ANSWERS_PER_SLOT)] == [0, 1]


def test_answers_open_no_slot_while_no_request_waits() -> None:
    """An unneeded slot is not opened, since it would be a burst later."""
    probe = AdaptiveLimit()
    for _ in range(100):
        probe.mark_answered(0.0, 0.0, is_wanted=False)
    assert probe.extra == 0


def test_the_number_of_slots_is_bounded() -> None:
    """The number of slots never exceeds `MOST_SLOTS`."""
    assert after_answers(10_000).extra == MOST_SLOTS - REQUESTS_PER_SECOND


def test_more_answers_in_a_second_than_one_node_gives_open_the_slots_of_another() -> None:
    """The sixth answer of a second opens five slots at once, each further one a slot."""
    assert [after_answers(number).extra for number in (5, 6, 8)] == [1, 6, 8]


def test_the_first_refusal_leaves_as_many_slots_as_were_answered() -> None:
    """Twelve answers in the second before a refusal are seven beyond the guarantee."""
    probe = after_answers(12)
    probe.mark_refused(0.0, 0.1)
    assert (probe.extra, probe.is_settled) == (7, True)


def test_answers_and_refusals_balance_at_one_in_twenty_one() -> None:
    """From the first refusal on twenty answers open the slot that a refusal closes."""
    probe = after_answers(12)
    probe.mark_refused(0.0, 0.1)
    probe.mark_refused(0.2, 0.3)
    assert probe.extra == 7 - 1
    assert after_answers(ANSWERS_PER_REFUSAL, probe=probe, at=0.4).extra == 7


def test_requests_under_way_at_a_refusal_close_no_slots_but_delay_the_next() -> None:
    """A refusal of a request sent before the last closing needs twenty answers first."""
    probe = after_answers(12)
    probe.mark_refused(0.0, 0.1)
    probe.mark_refused(0.05, 0.15)
    assert probe.extra == 7
    assert after_answers(ANSWERS_PER_REFUSAL, probe=probe, at=0.4).extra == 7
    assert after_answers(ANSWERS_PER_REFUSAL, probe=probe, at=0.4).extra == 7 + 1


def test_a_refusal_where_one_node_serves_closes_all_and_ends_the_probing_for_a_minute() -> None:
    """Five answers a second is what one node gives: a refusal closes all extra slots."""
    probe = after_answers(4 * ANSWERS_PER_SLOT, every_s=0.2)
    probe.mark_refused(2.9, 3.0)
    assert probe.extra == 0
    assert after_answers(100, probe=probe, at=3.0 + HOLD_S - 50, every_s=0.49).extra == 0
    assert after_answers(ANSWERS_PER_SLOT, probe=probe, at=3.0 + HOLD_S).extra == 1


def test_that_several_nodes_serve_is_forgotten_after_a_while() -> None:
    """Evidence of several nodes expires, since they may have become one."""
    probe = after_answers(9 * ANSWERS_PER_SLOT)
    probe.mark_refused(MEMORY_S, MEMORY_S)
    assert probe.extra == 0


def test_a_late_answer_does_not_make_one_node_look_like_several() -> None:
    """Six answers in a second are not evidence if their requests were sent far apart."""
    probe = after_answers(5, at=10.0, every_s=0.2)
    probe.mark_answered(3.0, 10.9, is_wanted=True)
    probe.mark_answered(11.0, 11.0, is_wanted=True)
    probe.mark_refused(11.1, 11.1)
    assert probe.extra == 0


def test_refusals_never_close_what_is_guaranteed() -> None:
    """Refusals never reduce the limit below the guaranteed rate."""
    probe = after_answers(6)
    for _ in range(10):
        probe.mark_refused(0.1, 0.1)
    assert probe.extra == 0
