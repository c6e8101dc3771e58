"""Changes from one period to the next: what is compared, intervals, what is refused, and the sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.changes import change
from gamelens.errors import BadQuery
from gamelens.receipts import QueryRecord, Receipt
from support.tidy_frames import tidy_frame

START = "2026-11-02"


def asked(frame: DataFrame, *metrics: str, interval: str | None = None) -> DataFrame:
    """Return *frame* with the receipt of a query for *metrics* by day."""
    record = QueryRecord(metric=metrics, every="day", interval=interval)
    frame.attrs["gamelens"] = Receipt(asked=record, version="1").to_json()
    return frame


def sold(values: dict[str | None, list[float]], start: str = START) -> DataFrame:
    """Return revenue by country and day."""
    days = [str(day.date()) for day in pd.date_range(start, periods=len(next(iter(values.values()))))]
    return asked(
        tidy_frame(
            "revenue",
            timestamp=days * len(values),
            country_code=[name for name in values for _ in days],
            revenue=[value for each in values.values() for value in each],
        ),
        "revenue",
    )


def test_sums_means_of_days_and_ratios_are_compared() -> None:
    """Two weeks: money is summed, players are the mean of the days, ARPDAU is made from both."""
    days = [str(day.date()) for day in pd.date_range(START, periods=14)]
    frame = tidy_frame(
        "revenue",
        timestamp=days,
        revenue=[10.0] * 7 + [12.0] * 7,
        dau=[100] * 6 + [107] + [110] * 7,
        arpdau=[0.1] * 14,
        iap_revenue=[10.0] * 7 + [12.0] * 7,
        ad_revenue=[1.0] * 14,
        player_days=[100] * 7 + [200] * 7,
    )
    changed = change(asked(frame, "revenue", "dau", "arpdau")).set_index("metric")
    assert changed["of"].tolist() == ["sum", "day", "ratio"]
    assert changed["before"].tolist() == pytest.approx([70.0, 101.0, 0.11])
    assert changed["value"].tolist() == pytest.approx([84.0, 110.0, 0.065])
    assert changed["difference"].tolist() == pytest.approx([14.0, 9.0, -0.045])
    assert changed["ratio"].tolist() == pytest.approx([1.2, 110 / 101, 0.065 / 0.11])
    assert changed.loc["revenue", ["value_low", "before_high"]].isna().all()


def test_a_day_without_a_row_counts_as_nothing() -> None:
    """A country without sales on a day, and one that is null, are compared over the same days."""
    frame = sold({"US": [10.0] * 14, None: [1.0] * 14})
    frame = frame[~((frame["timestamp"] == frame["timestamp"].max()) & frame["country_code"].isna())]
    changed = change(frame)
    assert changed["value"].tolist() == [70.0, 6.0]
    assert changed["before"].tolist() == [70.0, 7.0]
    assert pd.isna(changed["country_code"][1])


def test_another_frame_may_be_the_period_before() -> None:
    """A week against the same week a year ago."""
    changed = change(sold({"US": [12.0] * 7}), sold({"US": [10.0] * 7}, "2025-11-03"))
    assert changed["ratio"].tolist() == pytest.approx([1.2])


def test_a_planted_change_is_found_and_its_interval_holds_it() -> None:
    """Of three countries the one that grew by half over four weeks is claimed."""
    rng = np.random.default_rng(3)
    grown = {"US": 1.5, "BR": 1.0, None: 1.0}
    values: dict[str | None, list[float]] = {
        name: [*(rng.normal(100, 8, 28) * np.repeat([1.0, factor], 14))] for name, factor in grown.items()
    }
    changed = change(sold(values))
    found = claims.of(changed).set_index("subject")
    assert found["direction"].to_dict() == {
        "US": "higher",
        "BR": "no clear difference",
        "": "no clear difference",
    }
    row = changed[changed["country_code"] == "US"].iloc[0]
    assert row["ratio_low"] < 1.5 < row["ratio_high"]
    assert row["difference_low"] < 14 * 50 < row["difference_high"]
    assert row["difference_low"] > 0
    assert found["text"].to_dict()["US"] == "US: Purchase revenue +55% (+41% to +70%), from $1,382 to $2,138."


def test_equal_periods_are_rarely_claimed_to_differ() -> None:
    """Of 200 segments that differ by chance alone, at most one is claimed, and 93 % of the intervals hold 1."""
    rng = np.random.default_rng(5)
    changed = change(sold({f"c{place}": [*rng.normal(100, 10, 28)] for place in range(200)}))
    assert (changed["p_adjusted"] < 0.05).sum() <= 1
    assert ((changed["ratio_low"] < 1) & (changed["ratio_high"] > 1)).mean() >= 0.93


def test_retention_is_compared_by_install_day() -> None:
    """Installs and those who came back are summed; an install day whose day has not come counts in neither."""
    days = pd.date_range(START, periods=14, tz="UTC")
    frame = DataFrame(
        {
            "timestamp": [*days, *days],
            "age": pd.array([1] * 14 + [7] * 14, dtype="Int64"),
            "retention": 0.5,
            "installs": pd.array([10] * 28, dtype="Int64"),
            "returned": pd.array([4] * 7 + [5] * 7 + [1] * 7 + [2] * 3 + [pd.NA] * 4, dtype="Int64"),
        }
    )
    changed = change(asked(frame, "retention")).set_index("metric")
    assert changed["before"].to_dict() == pytest.approx({"D1 retention": 0.4, "D7 retention": 0.1})
    assert changed["value"].to_dict() == pytest.approx({"D1 retention": 0.5, "D7 retention": 0.2})


def test_too_few_days_are_compared_without_an_interval() -> None:
    """Three days against three: the ratio is known, whether it is chance is not."""
    changed = change(sold({"US": [12.0, 13.0, 11.0]}), sold({"US": [10.0, 9.0, 11.0]}, "2026-10-20"))
    assert changed["ratio"].tolist() == pytest.approx([1.2])
    assert changed[["ratio_low", "ratio_high", "difference_low", "p_value"]].isna().all(axis=None)
    (claim,) = claims.of(changed).itertuples()
    assert claim.direction == "unknown"
    assert claim.text == (
        "US: Purchase revenue went from $30.00 to $36.00; it cannot be told from these days whether that is a change."
    )


def test_what_cannot_be_compared_is_refused() -> None:
    """Less than two weeks alone, unequal periods, days in part, no receipt, weeks, an unknown metric."""
    with pytest.raises(BadQuery, match=r"13 days.*too few for whole weeks.*last 14 complete days"):
        change(sold({"US": [1.0] * 13}))
    with pytest.raises(BadQuery, match="periods of the same length"):
        change(sold({"US": [1.0] * 8}), sold({"US": [1.0] * 7}, "2026-10-01"))
    in_part = asked(sold({"US": [1.0] * 14}), "revenue", interval="2026-11-02T00:00Z/2026-11-15T11:00Z")
    with pytest.raises(BadQuery, match="not made of whole days"):
        change(in_part)
    bare = sold({"US": [1.0] * 14})
    bare.attrs = {}
    with pytest.raises(BadQuery, match="has no receipt"):
        change(bare)
    with pytest.raises(BadQuery, match="not a metric of the catalog"):
        change(asked(sold({"US": [1.0] * 14}), "gems"))
