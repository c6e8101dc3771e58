"""Rates over days and what is said of them, with days planted so that the truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, revenue
from gamelens.analysis.ads.day_rates import day_rates
from gamelens.errors import BadQuery
from support.hypothesis_profiles import tries
from support.said import said
from support.tidy_frames import tidy_frame

DAYS = [str(day.date()) for day in pd.date_range("2026-11-01", periods=28)]
RNG_SEED = 11


def requests(fills: dict[str, float], *, days: Sequence[str] = DAYS, size: int = 1000) -> DataFrame:
    """Return requests and shown ads of each network by day, filled at its rate."""
    rng = np.random.default_rng(RNG_SEED)
    rows = [
        (day, name, action, count)
        for day in days
        for name, rate in fills.items()
        for action, count in (("request", size), ("show", int(rng.binomial(size, rate))), ("failed_show", 10))
    ]
    day, name, action, count = zip(*rows, strict=True)
    return tidy_frame("event_count", timestamp=day, ad_sdk_name=name, ad_action=action, event_count=count)


def breaks(empty: dict[str, float], *, days: Sequence[str] = DAYS, size: int = 2000) -> DataFrame:
    """Return shown, empty and clicked ads of each type by day; 2 % of the shown ads are clicked."""
    rng = np.random.default_rng(RNG_SEED)
    rows = []
    for day in days:
        for name, rate in empty.items():
            failed = int(rng.binomial(size, rate))
            shown = size - failed
            rows += [(day, name, "show", shown), (day, name, "failed_show", failed)]
            rows += [(day, name, "clicked", int(rng.binomial(shown, 0.02)))]
    at, names, actions, counts = zip(*rows, strict=True)
    return tidy_frame("event_count", timestamp=at, ad_type=names, ad_action=actions, event_count=counts)


def players(worth: dict[str, float], *, days: Sequence[str] = DAYS, spread: float = 0.05) -> DataFrame:
    """Return money, ads, sessions and players of each game by day; ad revenue per player is *worth*."""
    rng = np.random.default_rng(RNG_SEED)
    rows = [
        (day, name, 1000, 2000, 6000, 1000 * dollars * float(rng.normal(1, spread)))
        for day in days
        for name, dollars in worth.items()
    ]
    day, name, active, sessions, shown, money = zip(*rows, strict=True)
    return tidy_frame(
        ["ilrd_revenue", "revenue", "user_unique", "session_unique", "ad_impressions_count"],
        timestamp=day,
        game=name,
        user_unique=active,
        session_unique=sessions,
        ad_impressions_count=shown,
        ilrd_revenue=money,
        ilrd_revenue_event_count=shown,
        revenue=[0.0] * len(rows),
    )


def fills(frame: DataFrame, by: str = "network") -> Any:
    """Return the claim about the highest fill rate."""
    (claim,) = said(ads.fill_rates(frame, by=by))
    return claim


def test_the_network_that_fills_most_is_named_with_its_multiple() -> None:
    """Unity fills 40 %, the next one 20 %: the multiple of 2 lies in the interval."""
    claim = fills(requests({"Unity": 0.4, "AdMob": 0.2, "Meta": 0.1}))
    assert (claim.subject, claim.direction, claim.unit) == ("Unity Ads", "higher", "ratio")
    assert 1 < claim.low < 2 < claim.high < 2.4
    assert "clearly more than Google AdMob" in claim.text
    assert "lowest is Meta" in claim.text


def test_networks_that_fill_alike_carry_no_order() -> None:
    """Two rates of 20 % are not told apart, and the sentence says so."""
    claim = fills(requests({"Unity": 0.2, "AdMob": 0.2}))
    assert claim.direction == "no clear difference"
    assert claim.low < 1 < claim.high
    assert "not clearly more than" in claim.text


def test_a_rate_without_days_is_counted() -> None:
    """One row for the whole interval gives the rates, no interval and no direction."""
    claim = fills(requests({"Unity": 0.4, "AdMob": 0.2}, days=DAYS[:1]))
    assert claim.direction == "unknown"
    assert claim.size == pytest.approx(2.0, rel=0.2)
    assert math.isnan(claim.low)
    assert "followed by Google AdMob" in claim.text
    assert claim.how_judged.startswith("Counted")


def test_a_network_with_few_requests_is_no_leader() -> None:
    """Five requests on one day, all filled, do not lead those that have an interval."""
    large, small = requests({"Unity": 0.4, "AdMob": 0.2}), requests({"Tiny": 1.0}, days=DAYS[:1], size=5)
    frame = pd.concat([large, small], ignore_index=True).astype({"ad_sdk_name": "category", "ad_action": "category"})
    assert fills(frame).subject == "Unity Ads"
    assert fills(small).subject == "Tiny"


def test_the_lead_stands_in_the_row_of_the_highest_rate() -> None:
    """All numbers of the sentence are columns; rows below the highest have no lead."""
    result = ads.fill_rates(requests({"Unity": 0.4, "AdMob": 0.2, "Meta": 0.1}), by="network").set_index("network")
    assert result["lead"].notna().tolist() == (result["fill_rate"] == result["fill_rate"].max()).tolist()
    unity, admob = result.loc["Unity Ads"], result.loc["Google AdMob"]
    assert unity["lead"] == pytest.approx(unity["fill_rate"] / admob["fill_rate"])
    assert (result["fill_rate_low"] < result["fill_rate"]).all()
    assert (result["fill_rate"] < result["fill_rate_high"]).all()


@pytest.mark.wide
def test_an_interval_holds_the_rate_that_was_planted() -> None:
    """Over 200 draws of 28 days the interval of 95 % holds a fill rate of 30 % in 90 to 99 %."""
    part = np.random.default_rng(5).binomial(500, 0.3, 200 * 28)
    draws = np.repeat([f"{draw}" for draw in range(200)], 28)
    frame = DataFrame({"timestamp": pd.to_datetime(DAYS * 200), "draw": draws, "part": part, "whole": 500})
    rates = day_rates(frame, "draw", frame["part"], frame["whole"], counted="shares")
    assert len(rates) == 200
    assert 180 <= ((rates["low"] <= 0.3) & (rates["high"] >= 0.3)).sum() <= 198


def test_empty_breaks_are_a_share_and_the_worst_type() -> None:
    """Of rewarded breaks 8 % stay empty, of the others 2 %; all together 4 %."""
    frame = breaks({"rewarded": 0.08, "banner": 0.02, "video": 0.02})
    (whole,), (worst,) = said(ads.empty_breaks(frame)), said(ads.empty_breaks(frame, by="ad_type"))
    assert whole.low < 0.04 < whole.high
    assert (worst.subject, worst.direction) == ("rewarded", "higher")
    assert worst.low < 4 < worst.high


def test_without_ads_rates_are_unknown() -> None:
    """A frame without rows has no rate, and each sentence says what there was none of."""
    nothing = breaks({"banner": 0.1})[:0]
    results = [ads.fill_rates(nothing), ads.empty_breaks(nothing)]
    results += [ads.empty_breaks(nothing, by="ad_type"), ads.fill_rates(nothing, by="ad_type")]
    found = [claim for result in results for claim in said(result)]
    assert [claim.direction for claim in found] == ["unknown"] * 4
    no_breaks = "There were no ad breaks in this period."
    assert [claim.text for claim in found] == [
        *("No ads were shown in this period.", no_breaks),
        *(no_breaks, "No ads were requested in this period."),
    ]


def test_requests_that_brought_no_ad_are_not_said_to_be_missing() -> None:
    """Of 100 requests none is filled: nothing was shown, but ads were requested."""
    frame = tidy_frame("event_count", ad_sdk_name=["Unity"], ad_action=["request"], event_count=[100])
    results = [ads.fill_rates(frame), ads.empty_breaks(frame), ads.empty_breaks(frame, by="ad_sdk_name")]
    assert [claim.case for result in results for claim in said(result)] == ["nobody", "nobody", "not_known"]
    assert not any("requested" in claim.text for result in results for claim in said(result))


def test_no_empty_break_is_no_loss() -> None:
    """Breaks that all had an ad are said to be so, at a share of 0 and without dollars."""
    result = ads.empty_breaks(breaks({"banner": 0.0}), daily=players({"Tile": 0.1}))
    assert [claim.text for claim in said(result)] == ["No ad break stayed empty."]
    assert result["worth"].tolist() == [0.0]
    for types in ({"banner": 0.0}, {"banner": 0.0, "video": 0.0}):
        (claim,) = said(ads.empty_breaks(breaks(types), by="ad_type"))
        assert (claim.text, claim.subject, claim.direction) == ("No ad break stayed empty.", "", "unknown")


def test_the_worth_of_empty_breaks_is_their_number_at_the_average_ecpm() -> None:
    """1,000 empty breaks at an eCPM of 10 dollars are 10 dollars."""
    frame = tidy_frame("event_count", ad_type=["banner"], ad_action=["failed_show"], event_count=[1000])
    daily = tidy_frame("ilrd_revenue", ilrd_revenue_event_count=[2000], ilrd_revenue=[20.0])
    _, claim = said(ads.empty_breaks(frame, daily=daily))
    assert (claim.size, claim.unit) == (10.0, "USD")
    assert "$10.00" in claim.text
    assert len(said(ads.empty_breaks(frame, daily=daily[:0]))) == len(said(ads.empty_breaks(frame))) == 1


def test_clicks_are_those_of_shown_ads() -> None:
    """Two of a hundred shown ads are clicked, and the interval holds that share."""
    (claim,) = said(ads.fill_rates(breaks({"banner": 0.1})))
    assert claim.low < 0.02 < claim.high
    assert claim.text.startswith("50,427 ads were shown, and 2.0")


def test_ads_and_money_per_player_have_the_intervals_of_days() -> None:
    """Six ads a day, three a session; Tile's players are worth twice those of Farm."""
    frame = players({"Tile": 0.10, "Farm": 0.05})
    shown, worth = said(ads.per_player(frame))
    (session,), (leader,) = said(ads.per_session(frame)), said(ads.per_player(frame, by="game"))
    assert (shown.size, session.size) == (6.0, 3.0)
    assert worth.low < 0.075 < worth.high
    assert (leader.subject, leader.direction) == ("Tile", "higher")
    assert leader.low < 2 < leader.high


def test_a_row_a_day_has_no_interval_and_no_sentence() -> None:
    """A day by itself does not differ from others."""
    result = ads.per_player(players({"Tile": 0.1}), by=["timestamp", "game"])
    assert result[["ad_arpdau_low", "lead"]].isna().all(axis=None)
    assert said(result) == []


def test_games_whose_players_are_worth_the_same_are_not_ranked() -> None:
    """The leader of two equal games is not clearly above the other."""
    frame = players({"Tile": 0.1, "Farm": 0.1})
    for (claim,) in (said(ads.per_player(frame, by="game")), said(revenue.arpdau(frame, by="game"))):
        assert claim.direction == "no clear difference"
        assert "not clearly more than" in claim.text


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
def test_equal_games_are_ranked_in_one_of_twenty_draws_at_most() -> None:
    """Of pairs of equal games, 5 % or so get a direction: at most 8 %."""
    pairs = tries(in_test=100, in_bench=300)
    money = np.random.default_rng(3).normal(100.0, 10.0, (pairs, 2 * 28))
    days, games = pd.to_datetime(DAYS * 2), np.repeat(["A", "B"], 28)
    ranked = 0
    for pair in money:
        frame = DataFrame({"timestamp": days, "game": games, "money": pair, "players": 1000.0})
        ranked += int(day_rates(frame, "game", frame["money"], frame["players"])["lead_low"].max() > 1)
    assert ranked <= 0.08 * pairs


def test_arpdau_counts_purchases_and_ads() -> None:
    """Purchases of 50 dollars a day beside 100 of ads make 15 cents for each of 1,000 players."""
    frame = players({"Tile": 0.1}, spread=0.0).assign(revenue=50.0)
    (whole,), (alone,) = said(revenue.arpdau(frame)), said(revenue.arpdau(frame, by="game"))
    assert whole.size == pytest.approx(0.15)
    assert (alone.direction, alone.subject) == ("unknown", "Tile")
    assert [claim.text for claim in said(revenue.arpdau(frame[:0]))] == ["No players were active in this period."]


def test_a_day_that_brings_most_of_the_money_is_named() -> None:
    """Of 28 days with 100 dollars of ads one brings 5,000 more in purchases: 5,100 / 7,800 less its part of 1 / 28."""
    frame = players({"Tile": 0.1}, spread=0.001)
    frame["revenue"] = [5000.0, *[0.0] * 27]
    (claim,) = said(revenue.arpdau(frame))
    assert claim.largest_day == pytest.approx(5100 / 7800 - 1 / 28, abs=0.01)
    assert "the interval is rough, since one day brought an extra 6" in claim.text


def test_the_share_of_ads_is_counted() -> None:
    """Farm lives on ads alone; of all income they are 150 of 200 dollars."""
    frame = tidy_frame(
        ["revenue", "ilrd_revenue"],
        timestamp=["2026-11-01"] * 2,
        game=["Tile", "Farm"],
        revenue=[50.0, 0.0],
        ilrd_revenue=[50.0, 100.0],
    )
    whole, most = said(revenue.revenue_by_source(frame, by="game"))
    assert (whole.size, most.subject, most.size) == (0.75, "Farm", 1.0)
    assert "smallest in Tile, 50.0%" in most.text
    assert math.isnan(whole.low)
    assert [claim.text for claim in said(revenue.revenue_by_source(frame[:0]))] == [
        "There was no revenue in this period."
    ]


def test_weeks_are_refused() -> None:
    """A player counts once in a week, so numbers per player per day take days only."""
    weeks = players({"Tile": 0.1}, days=[str(day.date()) for day in pd.date_range("2026-10-05", periods=8, freq="7D")])
    for analysis in (ads.per_player, revenue.arpdau):
        with pytest.raises(BadQuery, match="one row a week"):
            analysis(weeks)
