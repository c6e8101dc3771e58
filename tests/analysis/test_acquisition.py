"""Cost per install, return on ad spend and store ranks, on cases computed by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

PUBLISHER = "install_publisher"


@pytest.fixture
def bought() -> DataFrame:
    """Two publishers with spend, and organic installs without any."""
    return tidy_frame(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01", "2026-11-01", "2026-11-02"],
        install_publisher=["Meta", "X", None, "Meta"],
        new_users=[100, 50, 850, 100],
        spend=[50.0, 100.0, None, 70.0],
    )


def test_cost_per_install_by_publisher_keeps_organic_installs(bought: DataFrame) -> None:
    """Installs without a publisher keep their row, with spend and cost per install NA."""
    result = outside_data.cost_per_install(bought, by=PUBLISHER)
    assert result[PUBLISHER].astype("object").where(result[PUBLISHER].notna(), None).tolist() == ["Meta", "X", None]
    assert result["cpi"].tolist()[:2] == [0.6, 2.0]
    assert result[["installs", "paid_installs"]].iloc[2].tolist() == [850, 0]
    assert result[["spend", "cpi"]].iloc[2].isna().all()


def test_blended_cost_counts_organic_installs(bought: DataFrame) -> None:
    """Cost per install divides by paid installs, the blended cost by all installs."""
    total = outside_data.cost_per_install(bought).iloc[0]
    assert total["cpi"] == 220 / 250
    assert total["blended_cpi"] == 220 / 1100


def test_cost_of_installs_without_spend_is_na(bought: DataFrame) -> None:
    """Spend that is NA gives a cost of NA, and a frame without spend is refused."""
    total = outside_data.cost_per_install(bought.assign(spend=float("nan"))).iloc[0]
    assert pd.isna(total["spend"])
    assert pd.isna(total["cpi"])
    with pytest.raises(BadQuery, match="join ad spend first"):
        outside_data.cost_per_install(bought.drop(columns="spend"))


def test_a_weekend_has_the_rate_of_friday_and_days_before_any_rate_the_first() -> None:
    """A day without a rate takes the last rate before it, else the first rate there is.

    2026-11-05 is a Thursday.
    """
    days = [f"2026-11-{day:02}" for day in range(5, 10)]
    frame = tidy_frame(timestamp=days, Spend=[10.0] * 5, rate=[None, 1.1, None, None, 1.2])
    result = outside_data.in_dollars(frame, "Spend", "rate")
    assert result["spend"].tolist() == pytest.approx([11.0, 11.0, 11.0, 11.0, 12.0])


def test_amounts_without_any_rate_are_refused() -> None:
    """Amounts need at least one exchange rate, unless every amount is NA."""
    frame = tidy_frame(timestamp=["2026-11-01"], Spend=[1.0], rate=[None]).astype({"rate": "float64"})
    with pytest.raises(BadQuery, match="join rates of its days"):
        outside_data.in_dollars(frame, "Spend", "rate")
    assert outside_data.in_dollars(frame.assign(Spend=float("nan")), "Spend", "rate")["spend"].isna().all()
    with pytest.raises(BadQuery, match="usd"):
        outside_data.in_dollars(frame, "Spend", "usd")


@pytest.fixture
def earned() -> DataFrame:
    """Return revenue by day and install day.

    Meta's players of the first day bring 10, 20 and 30, those of the second 5 and 10; X's bring
    nothing, and players without a publisher 99.
    """
    return tidy_frame(
        ["revenue", "ilrd_revenue"],
        timestamp=["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-02", "2026-11-03", "2026-11-03"],
        installed_on=["2026-11-01"] * 3 + ["2026-11-02"] * 2 + ["2026-11-01"],
        install_publisher=["Meta"] * 5 + [None],
        revenue_sum=[4.0, 20.0, 0.0, 5.0, 0.0, 99.0],
        ilrd_revenue_sum=[6.0, 0.0, 30.0, 0.0, 10.0, 0.0],
    )


def test_return_on_spend_counts_only_cohorts_that_have_reached_the_age(bought: DataFrame, earned: DataFrame) -> None:
    """The return at an age pools only the install days that have reached it.

    Day 0: (10 + 5) / 120. Day 1: (30 + 15) / 120. Day 2 has only the first day's players: 60 / 50.
    """
    result = outside_data.return_on_spend(bought, earned, ages=[0, 1, 2, 3])
    meta = result[result[PUBLISHER] == "Meta"]
    assert meta["roas"].tolist() == pytest.approx([15 / 120, 45 / 120, 60 / 50])
    assert meta["cohorts"].tolist() == [2, 2, 1]
    assert result[result[PUBLISHER] == "X"]["roas"].tolist() == [0.0, 0.0, 0.0]
    assert not result[PUBLISHER].isna().any()


def test_cohorts_that_are_too_young_can_be_left_out_everywhere(bought: DataFrame, earned: DataFrame) -> None:
    """With `reaching`, install days that are too young for that age count at no age.

    Only the first day's players have reached day 2: 10, 30 and 60 of 50.
    """
    result = outside_data.return_on_spend(bought, earned, ages=[0, 1, 2], reaching=2)
    assert result[result[PUBLISHER] == "Meta"]["roas"].tolist() == pytest.approx([0.2, 0.6, 1.2])


def test_paid_back_is_the_first_day_the_money_is_in(bought: DataFrame, earned: DataFrame) -> None:
    """Payback is the first age at which revenue reaches spend, and NA while it does not."""
    result = outside_data.payback_ages(outside_data.return_on_spend(bought, earned, ages=[0, 1, 2])).set_index(
        PUBLISHER
    )
    assert result.loc[["Meta"], ["age", "days_to_pay_back"]].iloc[0].tolist() == [2, 2]
    assert pd.isna(result["days_to_pay_back"]["X"])


def test_money_dated_before_the_install_day_is_not_counted(bought: DataFrame, earned: DataFrame) -> None:
    """Revenue dated before its install day counts for no cohort.

    A late event moves the install of a player who has paid before.
    """
    early = earned.assign(installed_on=pd.Categorical(["2026-11-09"] * 6))
    assert outside_data.return_on_spend(bought, early, ages=[0])["money"].tolist() == [0.0, 0.0]


def test_without_spend_there_is_no_return(bought: DataFrame, earned: DataFrame) -> None:
    """Without spend or without revenue, the result has no rows."""
    nothing = outside_data.return_on_spend(bought.assign(spend=float("nan")), earned)
    assert not len(nothing)
    assert not len(outside_data.payback_ages(nothing))
    assert not len(outside_data.return_on_spend(bought, earned[:0]))


def test_money_must_be_by_install_day(bought: DataFrame, earned: DataFrame) -> None:
    """Revenue without `installed_on` is refused, and the message names the query to make."""
    with pytest.raises(BadQuery, match=r'has no installed_on: use lens.query\(.*"installed_on"'):
        outside_data.return_on_spend(bought, earned.drop(columns="installed_on"))


def test_a_rank_that_falls_as_installs_rise_follows_them() -> None:
    """The correlation of installs with a rank that falls as they rise is -1."""
    days = [f"2026-11-{day:02}" for day in range(1, 13)]
    frame = tidy_frame(timestamp=days, game=["A"] * 12, new_users=[*range(12)], Rank=[*range(100, 88, -1)])
    result = outside_data.rank_correlation(frame, "new_users", "Rank", by="game").iloc[0]
    assert result["correlation"] == pytest.approx(-1.0)
    assert result["days"] == 12
    assert result["low"] <= result["correlation"] + 1e-6 <= result["high"] + 1e-5


def test_spearmans_correlation_of_a_hand_computed_case() -> None:
    """Rank correlation is Spearman's, its interval that of Fisher's z.

    Ranks 1..10 against 2 1 4 3 6 5 8 7 10 9: the sum of squares is 10, so the correlation is 1 - 60 / 990;
    z is 1.7346 +- 1.96 * .3891.
    """
    days = [f"2026-11-{day:02}" for day in range(1, 11)]
    frame = tidy_frame(timestamp=days, new_users=[*range(1, 11)], Rank=[2, 1, 4, 3, 6, 5, 8, 7, 10, 9])
    result = outside_data.rank_correlation(frame, "new_users", "Rank").iloc[0]
    assert result["correlation"] == pytest.approx(1 - 60 / 990)
    assert (result["low"], result["high"]) == pytest.approx((0.7497, 0.9866), abs=1e-3)


def test_a_few_days_or_a_constant_rank_say_nothing() -> None:
    """Two days are too few for a correlation: the row has the days, the correlation is NA."""
    frame = tidy_frame(timestamp=["2026-11-01", "2026-11-02"], game=["A", "A"], new_users=[1, 2], Rank=[5, 4])
    result = outside_data.rank_correlation(frame, "new_users", "Rank", by="game")
    assert result["days"].tolist() == [2]
    assert result["correlation"].isna().all()
    assert not len(outside_data.rank_correlation(frame[:0], "new_users", "Rank", by="game"))
