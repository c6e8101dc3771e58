"""Revenue per player of the arms of an experiment, on cases computed by hand."""

from __future__ import annotations

from math import sqrt

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from support.tidy_frames import tidy_frame


def money(days: list[tuple[str, str, int, float]]) -> DataFrame:
    """Return a frame of install days, variants, players and their money."""
    frame = DataFrame(days, columns=["timestamp", "ab_variant_id", "players", "money"])
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True)
    return frame.astype({"ab_variant_id": "category", "players": "Int64"})


def test_money_of_each_install_day_is_that_of_its_players() -> None:
    """Money is matched by install day and variant, and is 0 where no row has any.

    Rows without a variant or without an install day are left out.
    """
    installs = tidy_frame(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01", "2026-11-02", "2026-11-02"],
        ab_variant_id=["ctrl", "new", "ctrl", None],
        new_users=[10, 12, 9, 5],
    )
    spent = tidy_frame(
        "revenue",
        installed_on=["2026-11-01", "2026-11-01", "2026-10-01", None],
        ab_variant_id=["new", None, "ctrl", "ctrl"],
        sum=[4.5, 9.0, 1.0, 1.0],
    )
    result = experiments.money_per_player(installs, spent)
    assert result[["ab_variant_id", "players", "money"]].to_numpy().tolist() == [
        ["ctrl", 10, 0.0],
        ["new", 12, 4.5],
        ["ctrl", 9, 0.0],
    ]


def test_the_error_of_money_is_that_of_the_days() -> None:
    """The standard error comes from how the arms' difference varies between days.

    Ten players an arm and day, and a difference of 1 and 3 dollars in turn on eight days. Money per player
    differs by 0.2. The days stray from it by 0.1, so the error is 0.1 / sqrt(7), and t(7) = 2.3646.
    """
    days = [
        (f"2026-11-0{day}", name, 10, 5.0 + (0 if name == "ctrl" else 1 + 2 * (day % 2)))
        for day in range(1, 9)
        for name in ("ctrl", "new")
    ]
    result = experiments.money_differences(money(days)).iloc[0]
    assert result["difference"] == pytest.approx(0.2)
    assert result["high"] - result["difference"] == pytest.approx(2.3646 * 0.1 / sqrt(7), abs=1e-5)
    assert result["unit"] == "money"


def test_what_a_day_does_to_both_arms_cancels() -> None:
    """Variation between days that both arms share does not widen the interval."""
    days = [
        (f"2026-11-0{day}", name, 10, 10.0 * day**2 + (0 if name == "ctrl" else 2))
        for day in range(1, 9)
        for name in ("ctrl", "new")
    ]
    result = experiments.money_differences(money(days)).iloc[0]
    assert (result["low"], result["high"]) == pytest.approx((0.2, 0.2))


def test_a_few_days_give_a_difference_and_no_interval() -> None:
    """Six install days are too few for an interval: bounds and p-value are NA."""
    days = [(f"2026-11-0{day}", name, 10, 5.0) for day in range(1, 7) for name in ("ctrl", "new")]
    result = experiments.money_differences(money(days)).iloc[0]
    assert result["difference"] == 0
    assert result[["low", "high", "p_value"]].isna().all()
