"""Purchase and ad revenue together, on cases computed by hand."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import claims, revenue
from support.tidy_frames import tidy_frame


@pytest.fixture
def daily() -> DataFrame:
    """Revenue, ad revenue, players and payers of two games on two days."""
    return tidy_frame(
        ["revenue", "ilrd_revenue", "user_unique", "paying_users"],
        timestamp=["2026-11-01", "2026-11-01", "2026-11-02"],
        game_id=["1", "2", "1"],
        game=["Tile", "Farm", "Tile"],
        revenue=[30.0, None, 10.0],
        ilrd_revenue=[10.0, 2.0, 10.0],
        user_unique=[100, 50, 100],
        paying_users=[3, None, 1],
    )


def test_money_of_both_kinds(daily: DataFrame) -> None:
    """Total revenue is purchases plus ad revenue."""
    both = revenue.revenue_by_source(daily, by="game").set_index("game")
    assert both.loc[["Tile"], ["iap_revenue", "ad_revenue", "total_revenue"]].iloc[0].tolist() == [40.0, 20.0, 60.0]


def test_a_game_without_purchases_lives_on_ads(daily: DataFrame) -> None:
    """Missing purchases count as 0, so the share of ads is 1."""
    assert revenue.revenue_by_source(daily, by="game").set_index("game").loc["Farm", "ads_share"] == 1.0


def credited(revenue_of: list[float], ads: list[float]) -> DataFrame:
    """Return the money of two games on one day."""
    return tidy_frame(
        ["revenue", "ilrd_revenue"],
        timestamp=["2026-11-01"] * 2,
        game_id=["1", "2"],
        game=["Tile", "Farm"],
        revenue=revenue_of,
        ilrd_revenue=ads,
    )


def test_more_credited_than_earned_is_no_share_and_says_so() -> None:
    """Of $10 and -$2, ads are neither 125 % nor -25 %; the game whose parts are positive keeps its share."""
    frame = credited([-2.0, 3.0], [10.0, 1.0])
    both = revenue.revenue_by_source(frame, by="game").set_index("game")
    assert both.loc["Farm", "ads_share"] == 0.25
    assert both.loc[["Tile"], "ads_share"].isna().all()
    assert claims.of(revenue.revenue_by_source(frame)).text.tolist() == [
        "Ads earn 91.7% of the total revenue of $12.00."
    ]
    (text,) = claims.of(revenue.revenue_by_source(credited([-2.0, -3.0], [10.0, 1.0]))).text
    assert text == ("Purchases brought -$5.00 and ads $11.00: credits exceed ad earnings, so there is no share of ads.")


def test_arpdau_is_money_per_player_day(daily: DataFrame) -> None:
    """ARPDAU divides each kind of revenue by the sum of daily players."""
    worth = revenue.arpdau(daily, by="game").set_index("game")
    assert worth.loc[["Tile"], ["iap_arpdau", "ad_arpdau", "arpdau"]].iloc[0].round(9).tolist() == [0.2, 0.1, 0.3]


def test_the_id_stays_beside_the_title(daily: DataFrame) -> None:
    """A split by game keeps `game_id` before `game`."""
    assert revenue.arpdau(daily, by="game").columns[:2].tolist() == ["game_id", "game"]


def test_payer_share_is_weighted_by_players(daily: DataFrame) -> None:
    """The payer share is payers per player day, not a mean of daily shares."""
    assert revenue.payer_share(daily)["payer_share"].item() == 4 / 250


def test_arppu_is_purchases_per_paying_player_day(daily: DataFrame) -> None:
    """ARPPU is purchases per paying player day, without ad revenue: 40 dollars of 3 + 1."""
    assert revenue.arppu(daily, by="game").set_index("game").loc["Tile", "arppu"] == 10.0


def test_without_payers_arppu_is_na(daily: DataFrame) -> None:
    """Without paying players the ARPPU is NA and the revenue 0."""
    farm = revenue.arppu(daily, by="game").set_index("game").loc["Farm"]
    assert (farm["paying_player_days"], farm["iap_revenue"]) == (0, 0.0)
    assert pd.isna(farm["arppu"])


def test_arpdau_times_payers_adds_up(daily: DataFrame) -> None:
    """ARPDAU of purchases equals payer share times ARPPU."""
    worth, share, each = revenue.arpdau(daily), revenue.payer_share(daily), revenue.arppu(daily)
    assert worth["iap_arpdau"].item() == pytest.approx(share["payer_share"].item() * each["arppu"].item())


@pytest.mark.parametrize("analysis", [revenue.revenue_by_source, revenue.arpdau, revenue.payer_share, revenue.arppu])
def test_a_null_group_keeps_its_money(analysis: Callable[..., DataFrame]) -> None:
    """The null group is a row of its own, with missing numbers counted as 0."""
    frame = tidy_frame(
        ["revenue", "ilrd_revenue", "user_unique", "paying_users"],
        timestamp=["2026-11-01"] * 3,
        country_code=["US", None, None],
        revenue=[1.0, 2.0, 3.0],
        ilrd_revenue=[0.5, None, 0.5],
        user_unique=[10, 20, None],
        paying_users=[1, 1, 4],
    )
    result = analysis(frame, by="country_code")
    unknown = result[result["country_code"].isna()].iloc[0]
    expected = {
        "revenue_by_source": {"iap_revenue": 5.0, "ad_revenue": 0.5, "total_revenue": 5.5, "ads_share": 0.5 / 5.5},
        "arpdau": {"player_days": 20, "iap_arpdau": 0.25, "ad_arpdau": 0.025, "arpdau": 0.275},
        "payer_share": {"player_days": 20, "paying_player_days": 5, "payer_share": 0.25},
        "arppu": {"paying_player_days": 5, "iap_revenue": 5.0, "arppu": 1.0},
    }
    own = expected[analysis.__name__]
    assert {name: unknown[name] for name in own} == pytest.approx(own)


def test_money_without_players_is_no_arpdau() -> None:
    """Revenue on a day without players gives an ARPDAU of NA, not infinity."""
    frame = tidy_frame(
        ["revenue", "ilrd_revenue", "user_unique"],
        timestamp=["2026-11-01"],
        revenue=[4.0],
        ilrd_revenue=[1.0],
        user_unique=[0],
    )
    assert revenue.arpdau(frame)[["iap_arpdau", "ad_arpdau", "arpdau"]].isna().to_numpy().all()


@pytest.mark.parametrize("analysis", [revenue.revenue_by_source, revenue.arpdau, revenue.payer_share, revenue.arppu])
def test_an_empty_frame_gives_the_same_columns(daily: DataFrame, analysis: Callable[..., DataFrame]) -> None:
    """A frame without rows gives a result without rows, of the same columns and dtypes."""
    assert analysis(daily[:0], by="game").dtypes.equals(analysis(daily, by="game").dtypes)
