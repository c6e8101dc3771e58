"""Holidays against the days around them: false alarms, and the size of a festival.

Run by `make bench`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis.outside_data import compare_with_weekdays

DAYS = 84


def countries(count: int, special: Sequence[int], *, lift: float = 0.0, memory: float = 0.0) -> DataFrame:
    """Return the daily users of *count* countries over 12 weeks: more at weekends, with noise of 5 %.

    Args:
        count: number of countries.
        special: places of the days of a festival.
        lift: effect of the festival, 0.3 is 30 % more.
        memory: autocorrelation of the noise from day to day.
    """
    rng, place = np.random.default_rng(37), np.arange(DAYS)
    noise = rng.normal(0, 0.05, (count, DAYS))
    for day in place[1:]:
        noise[:, day] = memory * noise[:, day - 1] + (1 - memory**2) ** 0.5 * noise[:, day]
    users = 1000 * np.exp(np.array([0, 0, 0, 0, 0.05, 0.25, 0.3])[place % 7] + 0.005 * place + noise)
    users[:, special] *= 1 + lift
    frame = DataFrame({"timestamp": np.tile(pd.date_range("2026-06-01", periods=DAYS, tz="UTC"), count)})
    frame["country_code"] = pd.Categorical(np.repeat(np.arange(count).astype(str), DAYS))
    frame["holiday"] = pd.Categorical(["Festival" if day in special else None for day in np.tile(place, count)])
    return frame.assign(user_unique=users.ravel())


@pytest.mark.parametrize("memory", [0.0, 0.7])
@pytest.mark.parametrize("place", [0, 3, 40, 82, 83])
def test_false_alarms_are_those_promised(place: int, memory: float) -> None:
    """Of 500 ordinary days 2 / 12 lie outside, 6 points more at most, at the ends too."""
    result = compare_with_weekdays(countries(500, [place], memory=memory), "user_unique")
    share, promised = result["is_outside"].mean(), result["chance"].mean()
    print(f"\nday {place}, memory {memory}: {share:.1%} outside, {promised:.1%} promised")
    assert share <= promised + 0.06


@pytest.mark.parametrize("first", [35, 38, 79])
@pytest.mark.parametrize("length", [1, 5, 12])
def test_a_festival_reads_its_effect(first: int, length: int) -> None:
    """30 % more on each day read 28 to 32 % on average, whatever the length."""
    period = [*range(first, min(first + length, DAYS))]
    change = compare_with_weekdays(countries(200, period, lift=0.3), "user_unique")["change"].mean()
    print(f"\n{len(period)} days from day {first}: {change:+.1%}")
    assert change == pytest.approx(0.3, abs=0.02)
