"""Wilson's interval of a share."""

from __future__ import annotations

import numpy as np
import pytest

from gamelens.analysis import retention
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
