"""Changes from one period to the next: what is compared, intervals, what is refused, and the sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.changes import change, money_drivers
from gamelens.analysis.claims.findings import findings_of
from gamelens.analysis.claims.templates import spoken, words
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
    holds_1 = (changed["ratio_low"] < 1) & (changed["ratio_high"] > 1)
    assert holds_1.mean() >= 0.93
    alone = changed.loc[~holds_1 & (changed["p_adjusted"] >= 0.05), "country_code"].astype("str")
    found = claims.of(changed)
    among_many = found["text"].str.contains("not clear after correction for all numbers")
    assert found.loc[among_many, "subject"].sort_values().tolist() == alone.sort_values().tolist() != []


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
        "US: Purchase revenue went from $30.00 to $36.00; there are too few days to tell whether that is a change."
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


def earned(segments: dict[tuple[str, str], list[tuple[float, float, float, float]]], days: int = 28) -> DataFrame:
    """Return players, purchases, impressions and ad revenue a day by game and country.

    A segment has two tuples, for each day of the two halves, which scatter by a tenth.
    """
    rng = np.random.default_rng(5)
    rows = [
        (str(day.date()), game, country, *(np.array(halves[at >= days // 2]) * rng.uniform(0.9, 1.1, 4)))
        for (game, country), halves in segments.items()
        for at, day in enumerate(pd.date_range(START, periods=days))
    ]
    names = ["timestamp", "game", "country_code", "user_unique", "revenue", "ilrd_revenue_event_count", "ad_revenue"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return asked(tidy_frame(None, **columns), "user_unique", "revenue", "ecpm")


def test_effects_of_drivers_sum_to_the_change_of_the_money() -> None:
    """By hand: 100 to 120 players, 2 to 3 dollars each; 5 ads a player become 4, an eCPM of 10 becomes 12."""
    frame = earned({("Tile", "US"): [(100, 200, 500, 5), (120, 360, 480, 5.76)]})
    for name, (before, after) in {
        "user_unique": (100, 120),
        "revenue": (200, 360),
        "ilrd_revenue_event_count": (500, 480),
        "ad_revenue": (5, 5.76),
    }.items():
        frame[name] = [float(before)] * 14 + [float(after)] * 14
    effects = money_drivers(frame).set_index("driver")["effect"] / 14
    assert effects["players"] == pytest.approx(20 * 2.5 + 20 * (5 * 0.01 + 4 * 0.012 + (5 * 0.012 + 4 * 0.01) / 2) / 3)
    assert effects["purchases per player"] == pytest.approx(1 * 110)
    assert effects["ads per player"] == pytest.approx(-(100 * 0.01 + 120 * 0.012 + (100 * 0.012 + 120 * 0.01) / 2) / 3)
    assert effects.sum() == pytest.approx(160 + 0.76)


def test_a_driver_that_moved_is_named_with_the_country_behind_it() -> None:
    """The eCPM of one of two countries halves; nothing else moves."""
    drivers = money_drivers(
        earned(
            {
                ("Tile", "US"): [(1000, 100, 5000, 100), (1000, 100, 5000, 50)],
                ("Tile", "BR"): [(1000, 100, 5000, 20), (1000, 100, 5000, 20)],
            }
        )
    )
    first = drivers.to_dict("records")[0]
    assert (first["driver"], first["behind"], first["p_adjusted"] < 0.05) == ("ecpm", "US", True)
    assert first["like_for_like_low"] < 70 / 120 - 1 < first["like_for_like_high"]
    claim: Any
    (claim, *others) = claims.of(drivers).itertuples()
    assert claim.direction == "lower"
    assert claim.text.startswith("Tile: a lower eCPM like for like, -4")
    assert " cost $" in claim.text
    assert {other.direction for other in others} == {"no clear difference"}


def test_a_shift_between_countries_is_no_change_of_what_a_player_brings() -> None:
    """Players move from the dear country to the cheap one: money falls by their mix, per player nothing changes."""
    drivers = money_drivers(
        earned(
            {
                ("Tile", "US"): [(2000, 400, 10_000, 100), (1000, 200, 5000, 50)],
                ("Tile", "BR"): [(1000, 20, 5000, 5), (2000, 40, 10_000, 10)],
            }
        )
    )
    effects = drivers.set_index("driver")["effect"]
    assert effects.abs().idxmax() == "player mix"
    assert effects.drop("player mix").abs().max() < 0.1 * abs(effects["player mix"])
    assert claims.of(drivers).text[0].startswith("Tile: a shift to players who bring less, -")
    assert drivers["behind"][0] in {"US", "BR"}  # a shift has two ends
    assert not claims.of(drivers).text.str.contains("fewer players").any()  # there are as many as before


def test_all_together_and_too_few_days() -> None:
    segments = {("Tile", "US"): [(100.0, 10.0, 500.0, 5.0)] * 2, ("Farm", "US"): [(100.0, 10.0, 500.0, 5.0)] * 2}
    whole = money_drivers(earned(segments), by=None)
    assert len(whole) == 5
    assert claims.of(whole).text.str.startswith("All together: ").all()
    with pytest.raises(BadQuery, match=r"10 days.*too few for whole weeks"):
        money_drivers(earned(segments, days=10))


def test_players_who_grew_brought_money_and_their_mix_cost_it() -> None:
    """Players grew, but not those of the country that pays: the two effects have signs that agree with DAU."""
    segments = {
        ("Tile", "US"): [(100.0, 10.0, 0.0, 0.0), (95.0, 9.5, 0.0, 0.0)],
        ("Tile", "BR"): [(20.0, 0.0, 0.0, 0.0), (60.0, 0.0, 0.0, 0.0)],
    }
    frame = earned(segments)
    drivers = money_drivers(frame)
    found = drivers.set_index("driver")
    assert min(found["effect"]["players"], found["like_for_like"]["players"]) > 0
    assert max(found["effect"]["player mix"], found["like_for_like"]["player mix"]) < 0
    is_later = frame["timestamp"] >= frame["timestamp"][14]
    assert drivers["effect"].sum() == pytest.approx(frame["revenue"].where(is_later, -frame["revenue"]).sum())


def test_a_driver_that_brought_nothing_is_not_named() -> None:
    """A game without ads says nothing of ads, and one without money that nothing changed."""
    bought, poor = (
        money_drivers(earned({("Tile", "US"): [(100.0, money, 0.0, 0.0), (150.0, money, 0.0, 0.0)]}))
        for money in (10.0, 0.0001)
    )
    texts = claims.of(bought).text
    assert len(texts)
    assert not texts.str.contains(r"eCPM|ads per player|\$0\.00").any(), texts.tolist()
    assert claims.of(poor).text.tolist() == [words()["money"]["none"]]


@pytest.mark.parametrize(("before", "says"), [(0.5, "Converting users went from "), (50, "Converting users ")])
def test_a_rare_count_has_no_percentage(before: float, says: str) -> None:
    """From three or four players there is none, from hundreds there is."""
    days = [str(day.date()) for day in pd.date_range(START, periods=14)]
    counts = np.random.default_rng(5).poisson(np.repeat([before, 4 * before], 7)).tolist()
    frame = tidy_frame("converting_users", timestamp=days, converting_users=counts)
    claim = claims.of(change(asked(frame, "converting_users"))).iloc[0]
    assert claim["text"].startswith(says), claim["text"]
    assert ("%" in claim["text"], claim["case"] == "rare") == (before == 50, before != 50)


def test_a_driver_that_nobody_can_size_has_no_percentage() -> None:
    """A purchase now and then: an interval from a hundredth to a hundredfold says nothing."""
    days = [str(day.date()) for day in pd.date_range(START, periods=28)]
    rng = np.random.default_rng(2)
    players, sold = rng.poisson(1000, 28), np.where(rng.random(28) < 0.08, 4.99, 0.0)
    rows = {"timestamp": days, "game": ["Tile"] * 28, "user_unique": players.tolist(), "revenue": sold.tolist()}
    frame = tidy_frame("revenue", **rows, ilrd_revenue=[20.0] * 28, ecpm=[4.0] * 28, impressions=[5000] * 28)
    made = money_drivers(asked(frame, "user_unique", "revenue", "ecpm"))
    texts = {name: claims.of(made[made["driver"] == name])["text"][0] for name in ("purchases per player", "players")}
    assert texts["purchases per player"].endswith("from purchases per player, too few or too uneven for a percentage.")
    assert "%" in texts["players"]
    bounds = made.set_index("driver").loc["purchases per player", ["like_for_like", "like_for_like_high"]]
    assert bounds.isna().all()
    frame["revenue_event_count"] = (frame["revenue"] > 0).astype("Int64")
    counted = money_drivers(asked(frame, "user_unique", "revenue", "ecpm")).set_index("driver")["like_for_like"]
    assert counted.isna().tolist() == [driver == "purchases per player" for driver in counted.index]
    sales = change(asked(frame, "revenue"))
    assert sales[["ratio", "ratio_low", "ratio_high", "difference_high"]].isna().all(axis=None)
    assert "%" not in claims.of(sales)["text"][0]


def test_the_line_on_what_did_not_change_names_what_was_tested() -> None:
    """Four numbers without a change, and one that changed beside them."""
    days = [str(day.date()) for day in pd.date_range(START, periods=28)]
    rng = np.random.default_rng(8)
    games = [game for game in ("Tile", "Ember") for _ in days]
    counts = {name: rng.poisson(900, 56).tolist() for name in ("user_unique", "new_users")}
    frame = tidy_frame("user_unique", timestamp=days * 2, game=games, **counts)
    same = change(asked(frame, *counts))
    tested = "Active players and New players"
    assert spoken(findings_of(same)) == [
        f"Over the whole period no clear change beyond day-to-day variation in {tested}: 4 numbers were tested.",
    ]
    counts["new_users"][14:28] = (100 * np.ones(14, dtype=int)).tolist()
    fallen = change(asked(tidy_frame("user_unique", timestamp=days * 2, game=games, **counts), *counts))
    clear, others = spoken(findings_of(fallen))
    assert clear.startswith("Tile: New players ")
    assert others == f"3 other numbers show no change beyond day-to-day variation, of {tested}."


def test_newest_days_beyond_two_weeks_are_said(subtests: pytest.Subtests) -> None:
    """The mean of a period hides them; days that grow steadily, or only a little, are none."""
    usual = [100.0, 104, 98, 101, 97, 103, 99, 102, 100, 96, 105, 101, 99, 100] * 2
    cases: dict[str, tuple[list[float], int | None]] = {
        "a fall": ([*usual[:25], 65, 61, 63], 3),
        "a rise": ([*usual[:24], 165, 161, 163, 170], 4),
        "a small fall": ([*usual[:25], 90, 91, 89], None),
        "one day": ([*usual[:27], 20], None),
        "usual": (usual, None),
        "from nothing": ([0.0] * 25 + [30, 31, 32], None),
    }
    for name, (values, count) in cases.items():
        with subtests.test(name):
            changed = change(sold({"US": values}))
            found = changed["newest_days"].tolist()
            assert found == [count] if count else changed["newest_days"].isna().all()
            if count:
                ratio = np.mean(values[-count:]) / np.mean(values[-count - 14 : -count])
                assert changed["newest_ratio"].tolist() == pytest.approx([ratio])
                (text,) = spoken(findings_of(changed))
                assert text.endswith(
                    f"{abs(100 * ratio - 100):.0f}% {'less' if ratio < 1 else 'more'} on the last {count} days."
                )
