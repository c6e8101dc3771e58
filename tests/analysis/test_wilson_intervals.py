"""Wilson's interval of a share, and those of a difference and of a ratio that are made of it."""

from __future__ import annotations

import numpy as np
import pytest

from gamelens.analysis import retention
from gamelens.analysis.wilson_intervals import newcombe, newcombe_ratio
from gamelens.errors import BadQuery


def test_wilson_interval_of_a_textbook_case() -> None:
    """The 95 % interval of 81 in 263 is 0.2553 to 0.3662 (Newcombe 1998, table I)."""
    low, high = retention.wilson([81], [263])
    assert (round(low[0], 4), round(high[0], 4)) == (0.2553, 0.3662)


def test_wilson_interval_of_no_successes_has_a_width() -> None:
    """The 95 % interval of 0 in 20 is 0 to 0.1611 (Newcombe 1998, table I)."""
    low, high = retention.wilson([0], [20])
    assert (low[0], round(high[0], 4)) == (0.0, 0.1611)


def test_wilson_interval_without_trials_is_not_known() -> None:
    """Without trials both bounds are NaN."""
    assert np.isnan(retention.wilson([0], [0])).all()


def test_confidence_is_a_share() -> None:
    """A confidence outside 0 to 1 raises `BadQuery`."""
    with pytest.raises(BadQuery, match="between 0 and 1"):
        retention.wilson([1], [2], confidence=95)


def test_the_ratio_of_shares_is_judged_as_their_difference() -> None:
    """Newcombe's interval of the ratio holds 1 where the one of the difference holds 0, and lies around Katz's."""
    rng = np.random.default_rng(5)
    for base, treated in zip(rng.binomial(200, 0.1, 300) + 1, rng.binomial(200, 0.12, 300) + 1, strict=True):
        low, high = newcombe(treated / 200, base / 200, 200, 200, 1.96)
        ratios = newcombe_ratio(treated / 200, base / 200, 200, 200, 1.96)
        assert (ratios[0] <= 1 <= ratios[1]) == (low <= 0 <= high)
        error = np.sqrt((1 - treated / 200) / treated + (1 - base / 200) / base)
        assert np.log(ratios[1] / ratios[0]) == pytest.approx(2 * 1.96 * error, rel=0.25)


def test_a_ratio_of_shares_has_bounds_where_somebody_did_it() -> None:
    """Nobody in the first arm: the ratio is 0 at least. Nobody in the second: it has no bounds."""
    assert newcombe_ratio(0.0, 0.03, 100, 100, 1.96)[0] == 0.0
    assert np.isnan(newcombe_ratio(0.03, 0.0, 100, 100, 1.96)).all()
