"""Holidays beside ordinary days of their weekday."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis.outside_data.special_days import compare_with_weekdays


def mondays(values: list[float], holidays: dict[int, str], *, growth: float = 1.0) -> DataFrame:
    """A country's Mondays in a game whose other days bring 100, all of it times *growth* from day to day."""
    days = pd.date_range("2026-09-07", periods=7 * len(values), tz="UTC")
    numbers = [values[day // 7] if day % 7 == 0 else 100.0 for day in range(len(days))]
    frame = DataFrame({"timestamp": days, "user_unique": [each * growth**day for day, each in enumerate(numbers)]})
    frame["holiday"] = [holidays.get(day // 7) if day % 7 == 0 else None for day in range(len(days))]
    return frame.assign(country_code="US").astype({"country_code": "category", "holiday": "category"})


def test_a_holiday_is_held_against_the_other_days_of_its_weekday() -> None:
    made = compare_with_weekdays(mondays([10, 12, 14, 30], {3: "Columbus Day"}), "user_unique").iloc[0]
    assert made[["value", "usual", "low", "high", "others"]].tolist() == pytest.approx([30, 12, 10, 14, 3])
    assert made["change"] == pytest.approx(1.5)
    assert made["chance"] == 0.5
    assert made["is_outside"]


def test_a_day_inside_the_range_does_not_stand_out() -> None:
    made = compare_with_weekdays(mondays([10, 12, 14, 13], {3: "Columbus Day"}), "user_unique").iloc[0]
    assert not made["is_outside"]


def test_a_game_that_grows_makes_no_day_special() -> None:
    """Ten percent more every day: the last Monday is 18 times the first, and like any other in its week."""
    made = compare_with_weekdays(mondays([120.0] * 5, {4: "Columbus Day"}, growth=1.1), "user_unique").iloc[0]
    assert made["change"] == pytest.approx(0.0, abs=0.15)


def test_other_holidays_are_not_what_is_usual() -> None:
    made = compare_with_weekdays(mondays([10, 12, 14, 30, 90], {3: "One", 4: "Two"}), "user_unique")
    assert made["holiday"].tolist() == ["Two", "One"]
    assert made["usual"].tolist() == [12, 12]


def test_too_few_ordinary_days_judge_nothing() -> None:
    made = compare_with_weekdays(mondays([10, 12, 30], {2: "One"}), "user_unique").iloc[0]
    assert made["others"] == 2
    assert made[["usual", "change", "chance", "is_outside"]].isna().all()


def test_another_country_is_another_matter() -> None:
    both = pd.concat([mondays([10, 12, 14, 30], {3: "One"}), mondays([1, 1, 1, 1], {}).assign(country_code="NA")])
    assert compare_with_weekdays(both, "user_unique")["usual"].tolist() == [12]


def test_no_holidays_no_rows() -> None:
    made = compare_with_weekdays(mondays([10, 12], {}), "user_unique")
    assert not len(made)
    assert made["is_outside"].dtype == "boolean"
