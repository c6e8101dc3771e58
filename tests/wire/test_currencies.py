"""design/metrics, Words: purchase."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gamelens.wire.currencies import RATE_SCALE, SCALED_RATES, USD_PER_UNIT


def test_a_dollar_is_a_dollar() -> None:
    assert USD_PER_UNIT["USD"] == 1


@pytest.mark.parametrize("code", USD_PER_UNIT)
def test_scaled_rates_are_exact(code: str) -> None:
    """Money is summed in integers: a rate that rounds would make two engines differ."""
    assert Decimal(SCALED_RATES[code]) / RATE_SCALE == USD_PER_UNIT[code] > 0


@pytest.mark.parametrize("code", USD_PER_UNIT)
def test_codes_are_three_capitals(code: str) -> None:
    """Public facts 2.5, business: currency."""
    assert len(code) == 3
    assert code.isascii()
    assert code.isupper()
