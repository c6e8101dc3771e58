"""Differences between arms whose days are clusters, on cases computed by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from support.experiment_frames import retention_of
from support.hypothesis_profiles import tries


def money(days: list[tuple[str, str, int, float]]) -> DataFrame:
    """Return a frame of install days, variants, players and their money."""
    frame = DataFrame(days, columns=["timestamp", "ab_variant_id", "players", "money"])
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True)
    return frame.astype({"ab_variant_id": "category", "players": "Int64"})


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
    result = experiments.compare(money(days)).iloc[0]
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
    result = experiments.compare(money(days)).iloc[0]
    assert (result["low"], result["high"]) == pytest.approx((0.2, 0.2))


def test_a_few_days_give_a_difference_and_no_interval() -> None:
    """Six install days are too few for an interval: bounds and p-value are NA."""
    days = [(f"2026-11-0{day}", name, 10, 5.0) for day in range(1, 7) for name in ("ctrl", "new")]
    result = experiments.compare(money(days)).iloc[0]
    assert result["difference"] == 0
    assert result[["low", "high", "p_value"]].isna().all()


def test_days_of_one_arm_alone_give_no_degrees_of_freedom() -> None:
    """A variant of 8 days has 7 degrees of freedom, although its control has 40 days."""
    rows = [
        (f"2026-{10 + day // 31}-{1 + day % 31:02}", name, 10, 5.0 + (0 if name == "ctrl" else 1 + 2 * (day % 2)))
        for day in range(40)
        for name in ("ctrl", "new")
        if name == "ctrl" or day >= 32
    ]
    row = experiments.compare(money(rows)).iloc[0]
    assert (row["days"], row["control_days"]) == (8, 8)
    assert row["high"] - row["difference"] == pytest.approx(2.3646 * 0.1 / sqrt(7), abs=1e-5)


def test_a_few_days_of_one_arm_give_no_interval() -> None:
    """Two days of a variant beside forty of the control show nothing of how days differ."""
    rows = [(f"2026-10-{day:02}", "ctrl", 10, 5.0 + day % 3) for day in range(1, 31)]
    rows += [(f"2026-10-{day:02}", "new", 10, 9.0) for day in (29, 30)]
    row = experiments.compare(money(rows)).iloc[0]
    assert row[["low", "high", "p_value"]].isna().all()


@pytest.mark.hypothesis  # more draws in `make bench`
def test_independent_days_cost_little_beside_a_t_test() -> None:
    """Between days the interval is that of scipy's t-test, wider by at most a third for what 20 days leave open."""
    from scipy import stats

    widths = []
    for seed in range(tries(in_test=8, in_bench=20)):
        before, after = np.random.default_rng(seed).normal(50, 4, (2, 20))
        days = pd.date_range("2026-10-01", periods=40).strftime("%Y-%m-%d")
        rows = [(day, "x", 10, amount) for day, amount in zip(days, [*before, *after], strict=True)]
        row = experiments.compare(money(rows), since=days[20]).iloc[0]
        interval = stats.ttest_ind(after / 10, before / 10).confidence_interval()
        widths.append((row["high"] - row["low"]) / (interval.high - interval.low))
        assert (row["p_value"] < 0.05) == (not row["low"] <= 0 <= row["high"])
    assert 1.0 <= float(np.median(widths)) <= 1.33


def test_days_that_differ_less_than_chance_do_not_narrow_the_interval() -> None:
    """Builds whose days all have the same share have the error of their counts, not 0."""
    from scipy import stats

    days = pd.date_range("2026-10-01", periods=20, tz="UTC")
    rows = [(day, "x", 1, 100, 40 if place < 10 else 44) for place, day in enumerate(days)]
    row = experiments.compare(retention_of(rows, arm="first_build"), since=days[10]).iloc[0]
    error = sqrt(0.4 * 0.6 / 1000 + 0.44 * 0.56 / 1000)
    level = 0.05 / (1 + 4 * 4 / 7)  # ten days a side take more evidence than fourteen
    assert row["high"] - row["difference"] == pytest.approx(stats.norm.isf(level / 2) * error, rel=0.02)
    assert row["p_value"] > 0.05


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("arm", ["ab_variant_id", "platform", "period"])
@pytest.mark.parametrize("kind", ["share", "money"])
def test_the_relative_interval_is_judged_as_the_difference(arm: str, kind: str) -> None:
    """It excludes 0 where low and high do, in each design, and in between lies the relative difference."""
    for seed in range(tries(in_test=12, in_bench=60)):
        rng, rows = np.random.default_rng(seed), []
        for day in pd.date_range("2026-10-01", periods=24, tz="UTC"):
            for place, name in enumerate(("ctrl", "new")):
                players, chance = int(rng.poisson(80)) + 1, rng.uniform(0.25, 0.35) + 0.04 * place
                amount = rng.binomial(players, chance) if kind == "share" else rng.gamma(players * chance)
                rows.append((day, name, players, amount))
        frame = DataFrame(rows, columns=["timestamp", arm, "players", "successes" if kind == "share" else "money"])
        since = "2026-10-13" if arm == "period" else None
        if since:
            frame = frame.groupby("timestamp", as_index=False).agg(dict.fromkeys(frame.columns[2:], "sum"))
        row = experiments.compare(frame.astype({"players": "Int64"}), arm=arm, since=since).iloc[0]
        assert row["relative_low"] < row["relative"] < row["relative_high"]
        assert (row["relative_low"] <= 0 <= row["relative_high"]) == (row["low"] <= 0 <= row["high"])
        both = row[["relative_low", "relative_high"]].to_numpy("float64") * row["control_value"]
        assert both == pytest.approx(row[["low", "high"]].to_numpy("float64"), abs=0.6 * (row["high"] - row["low"]))


def test_money_of_days_cannot_fall_by_more_than_all() -> None:
    """One payment in the variant: its revenue may be down by 100%, not by more."""
    rng = np.random.default_rng(2)
    rows = [
        (f"2026-11-{day:02}", name, 50, float(rng.gamma(9.0)) if name == "ctrl" else 5.0 * (day == 3))
        for day in range(1, 15)
        for name in ("ctrl", "new")
    ]
    row = experiments.compare(money(rows)).iloc[0]
    assert row["relative_low"] == -1.0
    assert row["relative"] < row["relative_high"] < 0


def test_what_nobody_in_the_control_paid_has_no_relative_bounds() -> None:
    """Two days of fourteen made the control's money: a share of what may be 0 has no bounds."""
    rows = [
        (f"2026-11-{day:02}", name, 50, 9.0 if name == "new" or day > 13 else 0.0)
        for day in range(1, 15)
        for name in ("ctrl", "new")
    ]
    row = experiments.compare(money(rows)).iloc[0]
    assert row[["relative_low", "relative_high"]].isna().all()
    assert row["low"] > 0
