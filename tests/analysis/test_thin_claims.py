"""What analyses say of little: one day, one group, nothing earned, nothing before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, health, revenue
from support.said import as_made_by, said
from support.tidy_frames import tidy_frame


def priced(days: int, **money: float) -> DataFrame:
    """Return ad revenue by day of a network for each of *money*, in one game, country and format."""
    rows = pd.date_range("2026-11-01", periods=days, tz="UTC").repeat(len(money))
    return tidy_frame(
        "ecpm",
        timestamp=[f"{day:%Y-%m-%d}" for day in rows],
        game=["Tile"] * len(rows),
        country_code=["US"] * len(rows),
        ilrd_adunit_format=["Banner"] * len(rows),
        ilrd_network_name=[*money] * days,
        ilrd_revenue_event_count=[1000] * len(rows),
        ilrd_revenue=[*money.values()] * days,
    )


@pytest.mark.parametrize(
    ("days", "money", "text"),
    [
        (
            3,
            {"AdMob": 3.0, "Unity": 2.0},
            "pays 50% more than the other networks in the same game, country, format and day on 3",
        ),
        (
            3,
            {"AdMob": 3.0},
            "AdMob cannot be compared: 0.0% of its impressions overlap with those of others, on 0 days.",
        ),
        (
            30,
            {"AdMob": 0.0, "Unity": 0.0},
            "AdMob cannot be compared: no ads of others earned anything beside its own.",
        ),
    ],
)
def test_an_ecpm_without_an_interval_has_its_own_reason(days: int, money: dict[str, float], text: str) -> None:
    """Few days are no lack of overlap."""
    first, *_, advice = said(ads.ecpm_index(priced(days, **money)))
    assert text in first.text
    assert advice.text.startswith("There are too few days" if days == 3 and len(money) > 1 else "No networks can be")


def players_of(games: list[str], money: float) -> DataFrame:
    """Return ten days of players and money of *games*."""
    days = pd.date_range("2026-11-01", periods=10, tz="UTC").repeat(len(games))
    columns: dict[str, Any] = {"user_unique": [100] * len(days), "ad_impressions_count": [300] * len(days)}
    return tidy_frame(
        "user_unique",
        timestamp=[f"{day:%Y-%m-%d}" for day in days],
        game=games * 10,
        revenue=[money] * len(days),
        ilrd_revenue=[money] * len(days),
        **columns,
    )


def test_the_highest_of_nothing_and_of_one_is_not_named() -> None:
    """Where no ads earned anything no game leads, and a single game has no next one."""
    for frame, ad, whole in (
        (
            players_of(["Tile", "Roof"], 0.0),
            "Ads earned nothing in this period.",
            "There was no revenue in this period.",
        ),
        (players_of(["Tile"], 1.0), "Ad revenue per player per day in Tile is $0.01", "purchases included, in Tile is"),
    ):
        assert ad in said(ads.per_player(frame, by="game"))[0].text
        assert whole in said(revenue.arpdau(frame, by="game"))[0].text


def test_numbers_that_stay_at_zero_or_cannot_be_computed_say_so() -> None:
    """They have enough days, so another reason must be given."""
    rows = {"metric": ["revenue", "ecpm"], "unit": ["USD", "USD per 1,000 impressions"], "of": ["day", "ratio"]}
    newest = ("newest_days", "newest_ratio")
    numbers = {name: [np.nan, np.nan] for name in ("p_adjusted", "ratio", "ratio_low", "ratio_high", *newest)}
    amounts = {"before": [0.0, np.nan], "value": [0.0, 3.5], "difference": [0.0, np.nan]}
    first, second = said(as_made_by("changes.change", DataFrame({**rows, **amounts, **numbers})))
    assert (first.text, first.direction) == ("Purchase revenue stayed at zero.", "no clear difference")
    assert second.text == "eCPM cannot be computed for both periods, $3.50 now."


def test_no_money_has_no_drivers() -> None:
    """An empty table of drivers says that there is nothing to explain, not that nothing changed."""
    columns = ("game", "driver", "effect", "like_for_like", "like_for_like_low", "like_for_like_high", "p_adjusted")
    empty = DataFrame(columns=[*columns, "behind", "behind_effect"])
    (claim,) = said(as_made_by("changes.money_drivers", empty.astype({"effect": "float64"}), by="game"))
    assert claim.text == "There is no money in this period to explain."


def test_segments_without_a_day_before_have_no_change() -> None:
    """Nothing rose from nothing."""
    players = tidy_frame("user_unique", timestamp=["2026-11-01"] * 2, country_code=["US", "BR"], user_unique=[200, 100])
    (watch,) = health.watches("user_unique")
    moved = health.segments(players, watch, "country_code", day=players["timestamp"].max())
    assert moved[["expected", "contribution", "share_of_change"]].isna().all(axis=None)
    assert said(moved)[0].text == "By country, no segment stands out."


def test_arms_without_a_payer_are_zero_for_both() -> None:
    """Players are enough; what lacks is a payment."""
    row = {"measure": "conversion", "ab_variant_id": "new", "control": "old", "design": "within days", "unit": "share"}
    none = dict.fromkeys(("low", "high", "p_adjusted"), np.nan)
    frame = DataFrame(
        [
            {**row, "value": value, "control_value": value, "difference": value - value, **none}
            for value in (0.0, np.nan)
        ]
    )
    order = ["measure", "ab_variant_id", "control"]
    zero, nobody = said(
        as_made_by("experiments.compare", frame[[*order, *(name for name in frame if name not in order)]])
    )
    assert zero.text == "Conversion is zero for new and old."
    assert nobody.text == "Conversion: new and old cannot be compared before both have players."


def test_a_p_value_of_one_is_no_number_of_days() -> None:
    """It has two places, as "1 day by day" would be read as one day."""
    arms = {"ab_id": ["gate"] * 2, "ab_variant_id": ["a", "b"], "players": [10, 10], "share": [0.5] * 2}
    tests = {"expected_share": [0.5] * 2, "p_value": [1.0] * 2, "p_days": [0.4] * 2, "is_suspect": [False] * 2}
    frame = DataFrame({**arms, **tests, "worst_day": pd.NaT, "p_worst_day": np.nan})
    (claim,) = said(as_made_by("experiments.sample_ratio", frame, arm="ab_variant_id", by=None))
    assert claim.text.endswith("no reason for doubt (p = 1.00 in total, and 0.40 day by day).")
