"""The table of currencies and their exact values in US dollars (Wire 3.8, Currencies)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gamelens.wire.currencies import RATE_SCALE, SCALED_RATES, USD_PER_UNIT


def test_a_dollar_is_a_dollar() -> None:
    """One unit of USD is worth exactly 1 US dollar (Wire 3.8, Currencies)."""
    assert USD_PER_UNIT["USD"] == 1


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("code", USD_PER_UNIT)
def test_scaled_rates_are_exact(code: str) -> None:
    """Scaled rates are exact integers, so that sums are equal on every engine.

    Wire 4.13, Numbers.
    """
    assert Decimal(SCALED_RATES[code]) / RATE_SCALE == USD_PER_UNIT[code] > 0


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("code", USD_PER_UNIT)
def test_codes_are_three_capitals(code: str) -> None:
    """A currency code has three ASCII capitals (Wire 3.8, Currencies)."""
    assert len(code) == 3
    assert code.isascii()
    assert code.isupper()
