"""Purchases and ads together, on cases computed by hand."""

from __future__ import annotations

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


def test_money_of_both_kinds(daily):
    both = revenue.together(daily, by="game").set_index("game")
    assert both.loc["Tile", ["iap_revenue", "ad_revenue", "total_revenue"]].tolist() == [40.0, 20.0, 60.0]


def test_a_game_without_purchases_lives_on_ads(daily):
    assert revenue.together(daily, by="game").set_index("game").loc["Farm", "ads_share"] == 1.0


def test_arpdau_is_money_per_player_day(daily):
    worth = revenue.arpdau(daily, by="game").set_index("game")
    assert worth.loc["Tile", ["iap_arpdau", "ad_arpdau", "arpdau"]].round(9).tolist() == [0.2, 0.1, 0.3]


def test_the_id_stays_beside_the_title(daily):
    assert revenue.arpdau(daily, by="game").columns[:2].tolist() == ["game_id", "game"]


def test_payer_share_is_weighted_by_players(daily):
    assert revenue.payer_share(daily)["payer_share"].item() == 4 / 250
