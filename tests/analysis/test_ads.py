"""Ads on cases computed by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from gamelens.analysis import ads
from gamelens.errors import BadQuery


@pytest.fixture
def networks(tidy):
    return tidy(
        "ilrd_revenue",
        timestamp=["2026-11-01"] * 3 + ["2026-11-02"],
        ilrd_network_name=["AdMob", "Unity", None, "AdMob"],
        event_count=[1000, 500, 400, 1000],
        mean=[0.004, 0.002, 0.0025, 0.006],
        sum=[4.0, 1.0, 1.0, 6.0],
        sum_cents=[400.0, 100.0, 100.0, 600.0],
    )


@pytest.fixture
def actions(tidy):
    return tidy(
        "event_count",
        timestamp=["2026-11-01"] * 7,
        ad_type=["banner"] * 4 + ["video"] * 3,
        ad_action=["request", "show", "failed_show", "clicked", "request", "show", "reward_received"],
        event_count=[100, 80, 20, 4, 50, 25, 20],
    )


def test_ecpm_is_the_revenue_of_a_thousand_impressions(networks) -> None:
    earned = ads.earnings(networks, by="ilrd_network_name")
    assert earned["ecpm"].tolist() == [5.0, 2.0, 2.5]


def test_ecpm_without_impressions_is_not_known(networks) -> None:
    assert ads.earnings(networks[:0])["ecpm"].isna().all()


def test_shares_are_of_all_networks_the_unknown_one_too(networks) -> None:
    earned = ads.earnings(networks, by="ilrd_network_name")
    assert earned["revenue_share"].tolist() == [10 / 12, 1 / 12, 1 / 12]
    assert earned["ilrd_network_name"].isna().sum() == 1


def test_highest_revenue_comes_first(networks) -> None:
    assert ads.earnings(networks, by="ilrd_network_name")["ad_revenue"].is_monotonic_decreasing


def test_prefixed_columns_of_a_joined_frame_are_found(networks) -> None:
    joined = networks.rename(columns={"sum": "ilrd_revenue_sum", "event_count": "ilrd_revenue_event_count"})
    assert ads.earnings(joined)["ad_revenue"].item() == 12.0


def test_the_money_of_another_metric_is_refused(networks) -> None:
    networks.attrs["gamelens"]["asked"]["metric"] = "revenue"
    with pytest.raises(BadQuery, match="query ilrd_revenue as well"):
        ads.earnings(networks)


def test_impressions_per_player_count_the_players_of_each_day(tidy) -> None:
    frame = tidy(
        timestamp=["2026-11-01", "2026-11-02"],
        user_unique=[10, 30],
        ad_impressions_count=[20, 20],
        sum=[1.0, 3.0],
    )
    whole = ads.per_player(frame).iloc[0]
    assert (whole["impressions_per_dau"], whole["ad_arpdau"]) == (1.0, 0.1)


def test_waterfall_goes_from_request_to_click(actions) -> None:
    steps = ads.waterfall(actions)
    assert steps["step"].tolist() == ["requested", "shown", "clicked"]
    assert steps["events"].tolist() == [150, 105, 4]
    assert steps["share_of_requests"].tolist() == [1.0, 0.7, 4 / 150]


def test_loads_are_a_step_where_sdks_report_them(tidy) -> None:
    actions = tidy(
        "event_count",
        timestamp=["2026-11-01"] * 4,
        ad_action=["request", "loaded", "show", "clicked"],
        event_count=[100, 80, 60, 3],
    )
    assert ads.waterfall(actions)["events"].tolist() == [100, 80, 60, 3]
    rates = ads.fill_rates(actions).iloc[0]
    assert (rates["fill_rate"], rates["show_rate"], rates["click_rate"]) == (0.8, 0.75, 0.05)


def test_loads_that_only_one_of_two_sdks_reports_are_no_step(actions) -> None:
    """25 shown in the group and 20 loaded: some of those shown were never reported as loaded."""
    actions["ad_action"] = actions["ad_action"].cat.rename_categories({"reward_received": "loaded"})
    assert ads.waterfall(actions)["step"].tolist() == ["requested", "shown", "clicked"]
    assert ads.fill_rates(actions, by="ad_type").set_index("ad_type").loc["video", "fill_rate"] == 0.5


def test_impressions_per_session(tidy) -> None:
    frame = tidy(
        game=["A", "A", "B"],
        timestamp=["2026-11-01", "2026-11-02", "2026-11-01"],
        session_unique=[10, 30, 0],
        ad_impressions_count=[20, 40, 0],
    )
    made = ads.per_session(frame, by="game").set_index("game")
    assert made.loc["A", "impressions_per_session"] == 1.5
    assert made["impressions_per_session"].isna().tolist() == [False, True]


def test_concentration_of_hand_computed_shares(tidy) -> None:
    frame = tidy("ilrd_revenue", ilrd_network_name=["A", "B", None], event_count=[1, 1, 1], sum=[6.0, 2.0, 2.0])
    made = ads.concentration(frame, by="ilrd_network_name").iloc[0]
    assert made["hhi"] == pytest.approx(0.36 + 0.04 + 0.04)
    assert made["equal_to"] == pytest.approx(1 / 0.44)
    assert (made["values"], made["largest"], made["largest_share"], made["unknown_share"]) == (3, "A", 0.6, 0.2)
    assert "A brings 60% of the ad revenue" in made["sentence"]
    assert "HHI of 4,400" in made["sentence"]


def test_the_unknown_network_can_be_the_largest(tidy) -> None:
    frame = tidy("ilrd_revenue", ilrd_network_name=[None, "B"], event_count=[1, 1], sum=[6.0, 2.0])
    assert ads.concentration(frame, by="ilrd_network_name").iloc[0]["largest"] == "(unknown)"


def test_concentration_of_nothing_is_not_known(networks) -> None:
    made = ads.concentration(networks[:0], by="ilrd_network_name").iloc[0]
    assert made["values"] == 0
    assert pd.isna(made["hhi"])
    assert made["sentence"] == "Nothing was earned."


def test_rates_of_each_format(actions) -> None:
    rates = ads.fill_rates(actions, by="ad_type").set_index("ad_type")
    assert rates["fill_rate"].to_dict() == {"banner": 0.8, "video": 0.5}
    assert rates.loc["banner", ["fail_rate", "click_rate"]].tolist() == [0.2, 0.05]


def test_waterfall_of_nothing_is_zero(actions) -> None:
    steps = ads.waterfall(actions[:0])
    assert steps["events"].tolist() == [0, 0, 0]
    assert steps["share_of_requests"].isna().all()


def test_waterfall_needs_ad_actions(networks) -> None:
    with pytest.raises(BadQuery, match="query event_count by ad_action"):
        ads.waterfall(networks)
