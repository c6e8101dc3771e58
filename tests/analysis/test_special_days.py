"""Holidays compared with ordinary days of their weekday."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.outside_data.special_days import compare_with_weekdays
from gamelens.errors import BadQuery


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


def days_of(numbers: NDArray[np.float64], special: Sequence[int]) -> DataFrame:
    """Return one country's days with *numbers*, of which those at *special* are a festival."""
    days = pd.date_range("2026-06-01", periods=len(numbers), tz="UTC")
    names = ["Festival" if day in special else None for day in range(len(numbers))]
    frame = DataFrame({"timestamp": days, "user_unique": numbers, "holiday": pd.Categorical(names)})
    return frame.assign(country_code=pd.Categorical(["US"] * len(numbers)))


def weeks(count: int, rng: np.random.Generator, noise: float = 0.05) -> NDArray[np.float64]:
    """Return *count* weeks of about 1,000 users, a third more at weekends, with *noise*."""
    weekend = np.tile([0, 0, 0, 0, 0.05, 0.25, 0.3], count)
    return 1000 * np.exp(weekend + rng.normal(0, noise, 7 * count))


@pytest.mark.parametrize("first", [21, 30, 51], ids=["a week", "across a weekend", "to the last day"])
@pytest.mark.parametrize("length", [1, 5, 10])
def test_a_long_holiday_is_measured_against_the_days_around_it(first: int, length: int) -> None:
    """A festival of 30 % more reads 25 to 35 % on average, whatever its length."""
    numbers, period = weeks(8, np.random.default_rng(1), noise=0.01), range(first, min(first + length, 56))
    numbers[list(period)] *= 1.3
    result = compare_with_weekdays(days_of(numbers, period), "user_unique")
    assert result["change"].mean() == pytest.approx(0.3, abs=0.05)
    assert set(result["days"]) == {len(period)}


@pytest.mark.wide
@pytest.mark.parametrize("place", [0, 2, 40, 83], ids=["first", "third", "in the middle", "last"])
def test_ordinary_days_stand_out_as_often_as_promised(place: int) -> None:
    """In 100 countries 2 / 12 of such days lie outside, give or take 9 %, at the ends too."""
    rng = np.random.default_rng(7)
    frames = [days_of(weeks(12, rng), [place]).assign(country_code=str(country)) for country in range(100)]
    found = compare_with_weekdays(pd.concat(frames), "user_unique")
    assert set(found["chance"]) == {2 / 12}
    assert found["is_outside"].mean() == pytest.approx(2 / 12, abs=0.09)


def test_a_day_in_several_rows_is_refused() -> None:
    """Two rows for one day and country raise `BadQuery`: their values are parts of a day."""
    frame = mondays([10, 12, 14, 30], {3: "One"})
    with pytest.raises(BadQuery, match="several rows for one day"):
        compare_with_weekdays(pd.concat([frame, frame]), "user_unique")


def test_countries_are_compared_separately() -> None:
    """Each country is compared with its own days."""
    both = pd.concat([mondays([10, 12, 14, 30], {3: "One"}), mondays([1, 1, 1, 1], {}).assign(country_code="NA")])
    assert compare_with_weekdays(both, "user_unique")["usual"].tolist() == [12]


def test_no_holidays_no_rows() -> None:
    """Without holidays the result has no rows and the same dtypes."""
    result = compare_with_weekdays(mondays([10, 12], {}), "user_unique")
    assert not len(result)
    assert result["is_outside"].dtype == "boolean"


def test_holidays_outside_are_said_with_how_many_chance_puts_there() -> None:
    """One of one is no more than chance may bring, of others none lies outside, and of too few days none is judged."""

    def text(values: list[float]) -> str:
        (said,) = claims.of(compare_with_weekdays(mondays(values, {2: "New Year's Day"}), "user_unique"))["text"]
        return str(said)

    ordinary = [100.0, 104.0, 100.0, 98.0, 102.0, 96.0]
    assert text([*ordinary[:2], 60.0, *ordinary[3:]]).startswith("1 of 1 holidays are outside")
    assert text(ordinary) == "None of 1 holidays is outside the usual range of its weekday."
    assert text(ordinary[:3]) == "No holiday of this period has enough ordinary days beside it."


def test_more_holidays_outside_than_chance_are_said_to_be_more() -> None:
    """Nine of nine in three countries, each with a chance of a quarter or so."""
    countries = []
    for code in ("DE", "FR", "US"):
        values = [100.0 + number % 3 for number in range(12)]
        for holiday in (2, 5, 8):
            values[holiday] = 40.0
        frame = mondays(values, {2: "A", 5: "B", 8: "C"}).assign(country_code=code)
        countries.append(frame)
    special = compare_with_weekdays(pd.concat(countries, ignore_index=True), "user_unique")
    (claim,) = claims.of(special).itertuples()
    assert claim.direction == "higher"
    assert "more than the" in str(claim.text)
    assert "(DE, -60" in str(claim.text)
