"""What players cost and bring back, on cases computed by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

PUBLISHER = "install_publisher"


@pytest.fixture
def bought(tidy):
    """Two publishers and the players nobody was paid for."""
    return tidy(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01", "2026-11-01", "2026-11-02"],
        install_publisher=["Meta", "X", None, "Meta"],
        new_users=[100, 50, 850, 100],
        spend=[50.0, 100.0, None, 70.0],
    )


def test_cost_per_install_by_publisher_keeps_who_came_by_themselves(bought) -> None:
    made = outside_data.cost_per_install(bought, by=PUBLISHER)
    assert made[PUBLISHER].astype("object").where(made[PUBLISHER].notna(), None).tolist() == ["Meta", "X", None]
    assert made["cpi"].tolist()[:2] == [0.6, 2.0]
    assert made.loc[2, ["installs", "paid_installs"]].tolist() == [850, 0]
    assert made.loc[2, ["spend", "cpi"]].isna().all()


def test_blended_cost_counts_everybody(bought) -> None:
    whole = outside_data.cost_per_install(bought).iloc[0]
    assert whole["cpi"] == 220 / 250
    assert whole["blended_cpi"] == 220 / 1100


def test_installs_without_a_file_cost_nobody_knows_what(bought) -> None:
    whole = outside_data.cost_per_install(bought.assign(spend=float("nan"))).iloc[0]
    assert pd.isna(whole["spend"])
    assert pd.isna(whole["cpi"])
    with pytest.raises(BadQuery, match="join ad spend first"):
        outside_data.cost_per_install(bought.drop(columns="spend"))


def test_a_weekend_has_the_rate_of_friday_and_days_before_any_rate_the_first(tidy) -> None:
    """2026-11-05 is a Thursday."""
    days = [f"2026-11-{day:02}" for day in range(5, 10)]
    frame = tidy(timestamp=days, Spend=[10.0] * 5, rate=[None, 1.1, None, None, 1.2])
    made = outside_data.in_dollars(frame, "Spend", "rate")
    assert made["spend"].tolist() == pytest.approx([11.0, 11.0, 11.0, 11.0, 12.0])


def test_amounts_without_any_rate_are_refused(tidy) -> None:
    frame = tidy(timestamp=["2026-11-01"], Spend=[1.0], rate=[None]).astype({"rate": "float64"})
    with pytest.raises(BadQuery, match="join rates of its days"):
        outside_data.in_dollars(frame, "Spend", "rate")
    assert outside_data.in_dollars(frame.assign(Spend=float("nan")), "Spend", "rate")["spend"].isna().all()
    with pytest.raises(BadQuery, match="usd"):
        outside_data.in_dollars(frame, "Spend", "usd")


@pytest.fixture
def earned(tidy):
    """Meta's players of the first day bring 10, 20 and 30; of the second 5 and 10; X's nothing; others 99."""
    return tidy(
        ["revenue", "ilrd_revenue"],
        timestamp=["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-02", "2026-11-03", "2026-11-03"],
        installed_on=["2026-11-01"] * 3 + ["2026-11-02"] * 2 + ["2026-11-01"],
        install_publisher=["Meta"] * 5 + [None],
        revenue_sum=[4.0, 20.0, 0.0, 5.0, 0.0, 99.0],
        ilrd_revenue_sum=[6.0, 0.0, 30.0, 0.0, 10.0, 0.0],
    )


def test_return_on_spend_counts_only_cohorts_that_have_reached_the_age(bought, earned) -> None:
    """Day 0: (10 + 5) / 120; day 1: (30 + 15) / 120; day 2 only the first day's players: 60 / 50."""
    made = outside_data.return_on_spend(bought, earned, ages=[0, 1, 2, 3])
    meta = made[made[PUBLISHER] == "Meta"]
    assert meta["roas"].tolist() == pytest.approx([15 / 120, 45 / 120, 60 / 50])
    assert meta["cohorts"].tolist() == [2, 2, 1]
    assert made[made[PUBLISHER] == "X"]["roas"].tolist() == [0.0, 0.0, 0.0]
    assert not made[PUBLISHER].isna().any()


def test_cohorts_that_are_too_young_can_be_left_out_everywhere(bought, earned) -> None:
    """Only the first day's players have reached day 2: 10, 30 and 60 of 50."""
    made = outside_data.return_on_spend(bought, earned, ages=[0, 1, 2], reaching=2)
    assert made[made[PUBLISHER] == "Meta"]["roas"].tolist() == pytest.approx([0.2, 0.6, 1.2])


def test_paid_back_is_the_first_day_the_money_is_in(bought, earned) -> None:
    made = outside_data.payback_ages(outside_data.return_on_spend(bought, earned, ages=[0, 1, 2])).set_index(PUBLISHER)
    assert made.loc["Meta", ["age", "days_to_pay_back"]].tolist() == [2, 2]
    assert pd.isna(made.loc["X", "days_to_pay_back"])


def test_money_of_a_day_before_install_is_nobodys(bought, earned) -> None:
    """A player whose install is moved by a late event has money dated before it."""
    early = earned.assign(installed_on=pd.Categorical(["2026-11-09"] * 6))
    assert outside_data.return_on_spend(bought, early, ages=[0])["money"].tolist() == [0.0, 0.0]


def test_without_spend_there_is_no_return(bought, earned) -> None:
    nothing = outside_data.return_on_spend(bought.assign(spend=float("nan")), earned)
    assert not len(nothing)
    assert not len(outside_data.payback_ages(nothing))
    assert not len(outside_data.return_on_spend(bought, earned[:0]))


def test_money_must_be_by_install_day(bought, earned) -> None:
    with pytest.raises(BadQuery, match="query it by installed_on"):
        outside_data.return_on_spend(bought, earned.drop(columns="installed_on"))


def test_a_rank_that_falls_as_installs_rise_follows_them(tidy) -> None:
    days = [f"2026-11-{day:02}" for day in range(1, 13)]
    frame = tidy(timestamp=days, game=["A"] * 12, new_users=[*range(12)], Rank=[*range(100, 88, -1)])
    made = outside_data.rank_correlation(frame, "new_users", "Rank", by="game").iloc[0]
    assert made["correlation"] == pytest.approx(-1.0)
    assert made["days"] == 12
    assert made["low"] <= made["correlation"] + 1e-6 <= made["high"] + 1e-5


def test_spearmans_correlation_of_a_hand_computed_case(tidy) -> None:
    """Ranks 1..10 against 2 1 4 3 6 5 8 7 10 9: sum of squares 10, so 1 - 60 / 990; z of it 1.7346 +- 1.96 * .3891."""
    days = [f"2026-11-{day:02}" for day in range(1, 11)]
    frame = tidy(timestamp=days, new_users=[*range(1, 11)], Rank=[2, 1, 4, 3, 6, 5, 8, 7, 10, 9])
    made = outside_data.rank_correlation(frame, "new_users", "Rank").iloc[0]
    assert made["correlation"] == pytest.approx(1 - 60 / 990)
    assert (made["low"], made["high"]) == pytest.approx((0.7497, 0.9866), abs=1e-3)


def test_a_few_days_or_a_constant_rank_say_nothing(tidy) -> None:
    frame = tidy(timestamp=["2026-11-01", "2026-11-02"], game=["A", "A"], new_users=[1, 2], Rank=[5, 4])
    made = outside_data.rank_correlation(frame, "new_users", "Rank", by="game")
    assert made["days"].tolist() == [2]
    assert made["correlation"].isna().all()
    assert not len(outside_data.rank_correlation(frame[:0], "new_users", "Rank", by="game"))
