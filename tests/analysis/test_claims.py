"""The direction that an interval carries."""

from __future__ import annotations

import math

import pytest

from gamelens.analysis.claims import direction_of


@pytest.mark.parametrize(
    ("low", "high", "direction"),
    [
        (0.1, 0.2, "higher"),
        (-0.2, -0.1, "lower"),
        (-0.1, 0.2, "no clear difference"),
        (0.0, 0.2, "no clear difference"),
        (math.nan, 0.2, "unknown"),
        (0.1, math.nan, "unknown"),
    ],
)
def test_the_direction_is_that_of_the_whole_interval(low: float, high: float, direction: str) -> None:
    """A direction is claimed only if both bounds lie on one side of the neutral value."""
    assert direction_of(low, high) == direction


def test_a_ratio_is_neutral_at_one() -> None:
    """An interval of ratios is compared with 1."""
    assert direction_of(1.1, 1.3, neutral=1.0) == "higher"
    assert direction_of(0.9, 1.3, neutral=1.0) == "no clear difference"
