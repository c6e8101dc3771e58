"""Claims about retention that count: definitions and the terms of a gap."""

from __future__ import annotations

import math

import pytest
from pandas import DataFrame

from gamelens.analysis import retention


def test_definitions_of_retention_are_as_far_apart_as_counted() -> None:
    """Ten players of forty and eighteen of forty are 20 points apart."""
    shown = DataFrame(
        {
            "definition": ["calendar day UTC", "rolling 24 h", "that day or later", "calendar day UTC"],
            "age": [1, 1, 1, 7],
            "retention": [12 / 40, 10 / 40, 18 / 40, math.nan],
        }
    )
    claim = retention.definitions_claim(shown, 1)
    assert claim.size == pytest.approx(20)
    assert claim.text == (
        "D1 retention is 25.0% by one definition (rolling 24 h) and 45.0% by another (that day or later), of the same "
        "events."
    )
    assert retention.definitions_claim(shown, 7).text == "No definition has a player who has reached day 7."


def test_the_terms_of_a_gap_sum_to_it() -> None:
    """Three players more and one fewer of forty are 5 points."""
    gap = DataFrame(
        {
            "age": [1, 1, 1, 7],
            "term": ["second only", "first only", "another cohort", "second only"],
            "amount": [3 / 40, -1 / 40, 0.0, 0.0],
            "players": [3, 1, 0, 0],
        }
    )
    claim = retention.gap_claim(gap, 1)
    assert claim.size == pytest.approx(5)
    assert claim.direction == "higher"
    assert claim.text == (
        "By the second definition D1 retention differs by +5.0 percentage points: +7.5 from 3 players (second only), "
        "-2.5 from 1 player (first only)."
    )
    assert retention.gap_claim(gap, 7).text == "D7 retention is the same by both definitions."
    assert retention.gap_claim(gap, 30).text == "Nobody has reached day 30."
