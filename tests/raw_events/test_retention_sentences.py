"""Sentences about definitions of retention and the terms of a gap."""

from __future__ import annotations

import math

import pytest
from pandas import DataFrame

import gamelens.raw_events.reconciliation.retention_definitions  # noqa: F401  (has the readers)
from support.said import as_made_by, said


def test_definitions_of_retention_are_as_far_apart_as_counted() -> None:
    """Ten players of forty and eighteen of forty are 20 points apart."""
    shown = DataFrame(
        {
            "definition": ["calendar day UTC", "rolling 24 h", "that day or later", "calendar day UTC"],
            "age": [1, 1, 1, 7],
            "retention": [12 / 40, 10 / 40, 18 / 40, math.nan],
        }
    )
    first, second = said(as_made_by("raw_events.retention_definitions", shown))
    assert first.size == pytest.approx(0.2)
    assert first.text == (
        "Day 1 retention is 25.0% by one definition (rolling 24 h) and 45.0% by another (that day or later), for "
        "the same events."
    )
    assert second.text == "No player has reached day 7 yet, by any definition."


def test_the_terms_of_a_gap_sum_to_it() -> None:
    """Three players more and one fewer of forty are 5 points."""
    gap = DataFrame(
        {
            "age": [1, 1, 1, 7, 30],
            "term": ["second only", "first only", "another cohort", "second only", "second only"],
            "amount": [3 / 40, -1 / 40, 0.0, 0.0, math.nan],
            "players": [3, 1, 0, 0, 0],
        }
    )
    first, second, third = said(as_made_by("raw_events.retention_gap", gap, first="UTC", second="rolling"))
    assert first.size == pytest.approx(0.05)
    assert first.direction == "higher"
    assert first.text == (
        "Day 1 retention changes by +5.0 pp from UTC to rolling: +7.5 pp from 3 players (second only) and -2.5 pp "
        "from 1 player (first only)."
    )
    assert second.text == "Day 7 retention is the same by UTC and rolling."
    assert third.text == ("Day 30 retention cannot be compared: by UTC or by rolling no player has reached that day.")
