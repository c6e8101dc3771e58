"""Ad revenue, waterfalls and concentration, on cases computed by hand."""

from __future__ import annotations

import pytest
from pandas import DataFrame

from gamelens.analysis import ads
from gamelens.errors import BadQuery
from support.said import said
from support.tidy_frames import tidy_frame


@pytest.fixture
def networks() -> DataFrame:
    """Ad revenue of two days by network, one network null."""
    return tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01"] * 3 + ["2026-11-02"],
        ilrd_network_name=["AdMob", "Unity", None, "AdMob"],
        ilrd_revenue_event_count=[1000, 500, 400, 1000],
        ilrd_revenue_mean=[0.004, 0.002, 0.0025, 0.006],
        ilrd_revenue=[4.0, 1.0, 1.0, 6.0],
        ilrd_revenue_sum_cents=[400.0, 100.0, 100.0, 600.0],
    )


@pytest.fixture
def actions() -> DataFrame:
    """Ad events of one day by type and action."""
    return tidy_frame(
        "event_count",
        timestamp=["2026-11-01"] * 7,
        ad_type=["banner"] * 4 + ["video"] * 3,
        ad_action=["request", "show", "failed_show", "clicked", "request", "show", "reward_received"],
        event_count=[100, 80, 20, 4, 50, 25, 20],
    )


def test_ecpm_is_the_revenue_of_a_thousand_impressions(networks: DataFrame) -> None:
    """The eCPM is revenue per thousand impressions, pooled over the days of a network."""
    earned = ads.earnings(networks, by="ilrd_network_name")
    assert earned["ecpm"].tolist() == [5.0, 2.0, 2.5]


def test_ecpm_without_impressions_is_not_known(networks: DataFrame) -> None:
    """An empty frame has an eCPM of NA, not 0 and not an error."""
    assert ads.earnings(networks[:0])["ecpm"].isna().all()


def test_shares_are_of_all_networks_the_unknown_one_too(networks: DataFrame) -> None:
    """Revenue shares are of all revenue, that of the null network included."""
    earned = ads.earnings(networks, by="ilrd_network_name")
    assert earned["revenue_share"].tolist() == [10 / 12, 1 / 12, 1 / 12]
    assert earned["ilrd_network_name"].isna().sum() == 1


def test_highest_revenue_comes_first(networks: DataFrame) -> None:
    """Rows are sorted by ad revenue, highest first."""
    assert ads.earnings(networks, by="ilrd_network_name")["ad_revenue"].is_monotonic_decreasing


def test_what_the_frame_lacks_is_named_with_the_query(networks: DataFrame) -> None:
    """The money of another metric is not taken for ad revenue, and the count of impressions has to be asked for."""
    with pytest.raises(BadQuery, match="has no ilrd_revenue: query ilrd_revenue as well"):
        ads.earnings(networks.rename(columns={"ilrd_revenue": "revenue"}))
    with pytest.raises(BadQuery, match="has no impressions: query ecpm as well"):
        ads.earnings(networks.drop(columns="ilrd_revenue_event_count"))


def test_impressions_per_player_count_the_players_of_each_day() -> None:
    """Impressions and ad revenue per player divide by the sum of daily players."""
    frame = tidy_frame(
        timestamp=["2026-11-01", "2026-11-02"],
        user_unique=[10, 30],
        ad_impressions_count=[20, 20],
        ilrd_revenue=[1.0, 3.0],
    )
    total = ads.per_player(frame).iloc[0]
    assert (total["impressions_per_dau"], total["ad_arpdau"]) == (1.0, 0.1)


def test_waterfall_goes_from_request_to_click(actions: DataFrame) -> None:
    """The steps are requested, shown and clicked, each with its share of requests."""
    steps = ads.waterfall(actions)
    assert steps["step"].tolist() == ["requested", "shown", "clicked"]
    assert steps["events"].tolist() == [150, 105, 4]
    assert steps["share_of_requests"].tolist() == [1.0, 0.7, 4 / 150]


def test_loads_are_a_step_where_sdks_report_them() -> None:
    """With load events, loaded is a step and the fill rate is loads per request."""
    actions = tidy_frame(
        "event_count",
        timestamp=["2026-11-01"] * 4,
        ad_action=["request", "loaded", "show", "clicked"],
        event_count=[100, 80, 60, 3],
    )
    assert ads.waterfall(actions)["events"].tolist() == [100, 80, 60, 3]
    rates = ads.fill_rates(actions).iloc[0]
    assert (rates["fill_rate"], rates["show_rate"], rates["click_rate"]) == (0.8, 0.75, 0.05)


def test_loads_that_some_sdks_do_not_report_are_no_step(actions: DataFrame) -> None:
    """Fewer loads than shown ads mean that not every SDK reports loads, so they are not steps.

    The group has 25 shown ads and 20 loads.
    """
    actions["ad_action"] = actions["ad_action"].cat.rename_categories({"reward_received": "loaded"})
    assert ads.waterfall(actions)["step"].tolist() == ["requested", "shown", "clicked"]
    assert ads.fill_rates(actions, by="ad_type").set_index("ad_type").loc["video", "fill_rate"] == 0.5


def test_impressions_per_session() -> None:
    """Impressions per session pool the days of a game, and are NA without sessions."""
    frame = tidy_frame(
        game=["A", "A", "B"],
        timestamp=["2026-11-01", "2026-11-02", "2026-11-01"],
        session_unique=[10, 30, 0],
        ad_impressions_count=[20, 40, 0],
    )
    result = ads.per_session(frame, by="game").set_index("game")
    assert result.loc["A", "impressions_per_session"] == 1.5
    assert result["impressions_per_session"].isna().tolist() == [False, True]


def test_concentration_of_hand_computed_shares() -> None:
    """Concentration is the sum of squared shares (HHI), with the equal number of networks."""
    frame = tidy_frame(
        "ilrd_revenue",
        ilrd_network_name=["A", "B", None],
        ilrd_revenue_event_count=[1, 1, 1],
        ilrd_revenue=[6.0, 2.0, 2.0],
    )
    result = ads.concentration(frame, by="ilrd_network_name").iloc[0]
    assert result["hhi"] == pytest.approx(0.36 + 0.04 + 0.04)
    assert result["equal_to"] == pytest.approx(1 / 0.44)
    assert (result["values"], result["largest"], result["largest_share"], result["unknown_share"]) == (3, "A", 0.6, 0.2)
    assert (result["degree"], result["credited"]) == ("concentrated", 0.0)


def test_the_unknown_network_can_be_the_largest() -> None:
    """The null network can lead, and is then called (unknown)."""
    frame = tidy_frame(
        "ilrd_revenue", ilrd_network_name=[None, "B"], ilrd_revenue_event_count=[1, 1], ilrd_revenue=[6.0, 2.0]
    )
    assert ads.concentration(frame, by="ilrd_network_name").iloc[0]["largest"] == "(unknown)"


def test_concentration_of_nothing_is_not_known(networks: DataFrame) -> None:
    """An empty frame has no networks, an HHI of NA and a claim that says so."""
    result = ads.concentration(networks[:0], by="ilrd_network_name")
    assert result["values"].tolist() == [0]
    assert result["hhi"].isna().all()
    assert [claim.text for claim in said(result)] == ["Nothing was earned."]


def test_rates_of_each_format(actions: DataFrame) -> None:
    """Fill, fail and click rates are computed for each value of the split."""
    rates = ads.fill_rates(actions, by="ad_type").set_index("ad_type")
    assert rates["fill_rate"].to_dict() == {"banner": 0.8, "video": 0.5}
    assert rates.loc[["banner"], ["fail_rate", "click_rate"]].iloc[0].tolist() == [0.2, 0.05]


def test_waterfall_of_nothing_is_zero(actions: DataFrame) -> None:
    """An empty frame has all steps with 0 events and shares of NA."""
    steps = ads.waterfall(actions[:0])
    assert steps["events"].tolist() == [0, 0, 0]
    assert steps["share_of_requests"].isna().all()


def test_waterfall_needs_ad_actions(networks: DataFrame) -> None:
    """A frame without `ad_action` is refused, and the message names the query to make."""
    with pytest.raises(BadQuery, match=r'lens.query\("event_count", by=.*"ad_action"'):
        ads.waterfall(networks)
