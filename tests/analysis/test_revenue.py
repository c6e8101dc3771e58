"""Purchases and ads together, on cases computed by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from gamelens.analysis import revenue


@pytest.fixture
def daily(tidy):
    return tidy(
        ["revenue", "ilrd_revenue", "user_unique", "paying_users"],
        timestamp=["2026-11-01", "2026-11-01", "2026-11-02"],
        game_id=["1", "2", "1"],
        game=["Tile", "Farm", "Tile"],
        revenue_sum=[30.0, None, 10.0],
        ilrd_revenue_sum=[10.0, 2.0, 10.0],
        user_unique=[100, 50, 100],
        paying_users=[3, None, 1],
    )


def test_money_of_both_kinds(daily) -> None:
    both = revenue.revenue_by_source(daily, by="game").set_index("game")
    assert both.loc["Tile", ["iap_revenue", "ad_revenue", "total_revenue"]].tolist() == [40.0, 20.0, 60.0]


def test_a_game_without_purchases_lives_on_ads(daily) -> None:
    assert revenue.revenue_by_source(daily, by="game").set_index("game").loc["Farm", "ads_share"] == 1.0


def test_arpdau_is_money_per_player_day(daily) -> None:
    worth = revenue.arpdau(daily, by="game").set_index("game")
    assert worth.loc["Tile", ["iap_arpdau", "ad_arpdau", "arpdau"]].round(9).tolist() == [0.2, 0.1, 0.3]


def test_the_id_stays_beside_the_title(daily) -> None:
    assert revenue.arpdau(daily, by="game").columns[:2].tolist() == ["game_id", "game"]


def test_payer_share_is_weighted_by_players(daily) -> None:
    assert revenue.payer_share(daily)["payer_share"].item() == 4 / 250


def test_arppu_is_purchases_per_paying_player_day(daily) -> None:
    """40 dollars of 3 + 1 payers; ads stay out."""
    assert revenue.arppu(daily, by="game").set_index("game").loc["Tile", "arppu"] == 10.0


def test_nobody_paid_is_no_arppu(daily) -> None:
    farm = revenue.arppu(daily, by="game").set_index("game").loc["Farm"]
    assert (farm["paying_player_days"], farm["iap_revenue"]) == (0, 0.0)
    assert pd.isna(farm["arppu"])


def test_arpdau_times_payers_adds_up(daily) -> None:
    """ARPDAU of purchases = payer share x ARPPU."""
    worth, share, each = revenue.arpdau(daily), revenue.payer_share(daily), revenue.arppu(daily)
    assert worth["iap_arpdau"].item() == pytest.approx(share["payer_share"].item() * each["arppu"].item())


@pytest.mark.parametrize("analysis", [revenue.revenue_by_source, revenue.arpdau, revenue.payer_share, revenue.arppu])
def test_a_null_group_keeps_its_money(tidy, analysis) -> None:
    frame = tidy(
        ["revenue", "ilrd_revenue", "user_unique", "paying_users"],
        timestamp=["2026-11-01"] * 3,
        country_code=["US", None, None],
        revenue_sum=[1.0, 2.0, 3.0],
        ilrd_revenue_sum=[0.5, None, 0.5],
        user_unique=[10, 20, None],
        paying_users=[1, 1, 4],
    )
    made = analysis(frame, by="country_code")
    unknown = made[made["country_code"].isna()].iloc[0]
    found = {name: unknown[name] for name in made.columns.drop("country_code")}
    expected = {
        "together": {"iap_revenue": 5.0, "ad_revenue": 0.5, "total_revenue": 5.5, "ads_share": 0.5 / 5.5},
        "arpdau": {"player_days": 20, "iap_arpdau": 0.25, "ad_arpdau": 0.025, "arpdau": 0.275},
        "payer_share": {"player_days": 20, "paying_player_days": 5, "payer_share": 0.25},
        "arppu": {"paying_player_days": 5, "iap_revenue": 5.0, "arppu": 1.0},
    }
    assert found == pytest.approx(expected[analysis.__name__])


def test_money_without_players_is_no_arpdau(tidy) -> None:
    """Money that came on a day nobody was seen is not infinite money per player."""
    frame = tidy(
        ["revenue", "ilrd_revenue", "user_unique"],
        timestamp=["2026-11-01"],
        revenue_sum=[4.0],
        ilrd_revenue_sum=[1.0],
        user_unique=[0],
    )
    assert revenue.arpdau(frame)[["iap_arpdau", "ad_arpdau", "arpdau"]].isna().to_numpy().all()


@pytest.mark.parametrize("analysis", [revenue.revenue_by_source, revenue.arpdau, revenue.payer_share, revenue.arppu])
def test_of_nothing_come_the_same_columns(daily, analysis) -> None:
    assert analysis(daily[:0], by="game").dtypes.equals(analysis(daily, by="game").dtypes)
