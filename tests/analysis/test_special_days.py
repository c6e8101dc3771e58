"""Holidays compared with ordinary days of their weekday."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis.outside_data.special_days import compare_with_weekdays


def mondays(values: list[float], holidays: dict[int, str], *, growth: float = 1.0) -> DataFrame:
    """Return one country's days: Mondays with *values*, all others 100, times *growth* a day."""
    days = pd.date_range("2026-09-07", periods=7 * len(values), tz="UTC")
    numbers = [values[day // 7] if day % 7 == 0 else 100.0 for day in range(len(days))]
    frame = DataFrame({"timestamp": days, "user_unique": [each * growth**day for day, each in enumerate(numbers)]})
    frame["holiday"] = [holidays.get(day // 7) if day % 7 == 0 else None for day in range(len(days))]
    return frame.assign(country_code="US").astype({"country_code": "category", "holiday": "category"})


def test_a_holiday_is_held_against_the_other_days_of_its_weekday() -> None:
    """A holiday is compared with median and range of the other days of its weekday."""
    result = compare_with_weekdays(mondays([10, 12, 14, 30], {3: "Columbus Day"}), "user_unique").iloc[0]
    assert result[["value", "usual", "low", "high", "others"]].tolist() == pytest.approx([30, 12, 10, 14, 3])
    assert result["change"] == pytest.approx(1.5)
    assert result["chance"] == 0.5
    assert result["is_outside"]


def test_a_day_inside_the_range_does_not_stand_out() -> None:
    """A holiday within the range of its weekday is not marked."""
    result = compare_with_weekdays(mondays([10, 12, 14, 13], {3: "Columbus Day"}), "user_unique").iloc[0]
    assert not result["is_outside"]


def test_a_game_that_grows_makes_no_day_special() -> None:
    """Days are compared within their week, so steady growth makes no holiday special.

    At ten percent a day the last Monday is 18 times the first one.
    """
    result = compare_with_weekdays(mondays([120.0] * 5, {4: "Columbus Day"}, growth=1.1), "user_unique").iloc[0]
    assert result["change"] == pytest.approx(0.0, abs=0.15)


def test_other_holidays_are_not_what_is_usual() -> None:
    """Other holidays are left out of the comparison, and the largest change comes first."""
    result = compare_with_weekdays(mondays([10, 12, 14, 30, 90], {3: "One", 4: "Two"}), "user_unique")
    assert result["holiday"].tolist() == ["Two", "One"]
    assert result["usual"].tolist() == [12, 12]


def test_too_few_ordinary_days_judge_nothing() -> None:
    """With two ordinary days the comparison is NA."""
    result = compare_with_weekdays(mondays([10, 12, 30], {2: "One"}), "user_unique").iloc[0]
    assert result["others"] == 2
    assert result[["usual", "change", "chance", "is_outside"]].isna().all()


def test_countries_are_compared_separately() -> None:
    """Each country is compared with its own days."""
    both = pd.concat([mondays([10, 12, 14, 30], {3: "One"}), mondays([1, 1, 1, 1], {}).assign(country_code="NA")])
    assert compare_with_weekdays(both, "user_unique")["usual"].tolist() == [12]


def test_no_holidays_no_rows() -> None:
    """Without holidays the result has no rows and the same dtypes."""
    result = compare_with_weekdays(mondays([10, 12], {}), "user_unique")
    assert not len(result)
    assert result["is_outside"].dtype == "boolean"
