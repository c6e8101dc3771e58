"""Cost per install, return on ad spend and store ranks, on cases computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import claims, outside_data
from gamelens.analysis.outside_data import cost_per_install
from gamelens.errors import BadQuery
from gamelens.receipts import QueryRecord, Receipt
from gamelens.wire.intervals import Granularity
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


@pytest.mark.parametrize("by", [None, "country_code"])
def test_the_cost_of_names_that_the_frame_lacks_is_said(tmp_path: Path, by: str | None) -> None:
    """Their cost would stand above installs that do not have theirs: 60 / 10 where 60 / 20 is right."""
    file = tmp_path / "spend.csv"
    file.write_text("Day,Country,Spend (USD)\n2026-11-01,Germany,20\n2026-11-01,Atlantis,40\n2026-11-02,Germany,20\n")
    installs = tidy_frame(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01", "2026-11-02"],
        country_code=["DE", "US", "DE"],
        new_users=[10, 10, 10],
    )
    if by == "country_code":  # in a row of its own, without installs
        result = cost_per_install(installs, by=by, spend=str(file))
        assert result.set_index(by)["spend"].dropna().to_dict() == {"DE": 40.0, "Atlantis": 40.0}
        return
    with pytest.warns(UserWarning, match=r"40\.00 of 80\.00 USD in spend\.csv are of 'Atlantis', which country_code"):
        result = cost_per_install(installs, by=by, spend=str(file))
    assert "'Atlantis'" in " ".join(Receipt.of(result.attrs).warnings)
    named = cost_per_install(installs, by=by, spend=str(file), names={"Atlantis": "US"})
    assert named["cpi"].iloc[0] == 80 / 30


def test_a_cost_without_place_is_said_once(tmp_path: Path) -> None:
    """A row whose network and country are both unknown is one cost, and in a row of its own it needs no word."""
    file = tmp_path / "spend.csv"
    file.write_text("Day,Network,Country,Spend (USD)\n2026-11-01,Meta,Germany,20\n2026-11-01,Zork,Atlantis,40\n")
    installs = tidy_frame(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01"],
        install_publisher=["Meta", "X"],
        country_code=["DE", "US"],
        new_users=[10, 10],
    )
    with pytest.warns(UserWarning, match=r"40\.00 of 60\.00 USD in spend\.csv") as said:
        cost_per_install(installs, spend=str(file))
    assert len(said) == 1
    alone = cost_per_install(installs, by=PUBLISHER, spend=str(file))
    assert alone.set_index(PUBLISHER)["spend"].dropna().to_dict() == {"Zork": 40.0, "Meta": 20.0}


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
        revenue=[4.0, 20.0, 0.0, 5.0, 0.0, 99.0],
        ilrd_revenue=[6.0, 0.0, 30.0, 0.0, 10.0, 0.0],
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
    """Rank correlation is Spearman's, its interval that of Fisher's z at least: these ten days follow a trend.

    Ranks 1..10 against 2 1 4 3 6 5 8 7 10 9: the sum of squares is 10, so the correlation is 1 - 60 / 990;
    z is 1.7346 +- 1.96 * .3891.
    """
    days = [f"2026-11-{day:02}" for day in range(1, 11)]
    frame = tidy_frame(timestamp=days, new_users=[*range(1, 11)], Rank=[2, 1, 4, 3, 6, 5, 8, 7, 10, 9])
    result = outside_data.rank_correlation(frame, "new_users", "Rank").iloc[0]
    assert result["correlation"] == pytest.approx(1 - 60 / 990)
    assert result["low"] < 0.7497
    assert 0.9866 < result["high"] < 1


def test_a_few_days_or_a_constant_rank_say_nothing() -> None:
    """Two days are too few for a correlation: the row has the days, the correlation is NA."""
    frame = tidy_frame(timestamp=["2026-11-01", "2026-11-02"], game=["A", "A"], new_users=[1, 2], Rank=[5, 4])
    result = outside_data.rank_correlation(frame, "new_users", "Rank", by="game")
    assert result["days"].tolist() == [2]
    assert result["correlation"].isna().all()
    assert not len(outside_data.rank_correlation(frame[:0], "new_users", "Rank", by="game"))


def test_amounts_are_converted_row_by_row() -> None:
    """Two currencies of one day have their own rates, and dollars none."""
    frame = tidy_frame(
        timestamp=["2026-11-01"] * 4,
        Spend=[10.0, 10.0, 10.0, None],
        Spend_currency=["EUR", "GBP", "USD", "EUR"],
        usd_per_eur=[1.1] * 4,
        usd_per_gbp=[1.3] * 4,
    )
    result = outside_data.in_dollars(frame, "Spend", {"EUR": "usd_per_eur", "GBP": "usd_per_gbp"})
    assert result["spend"].tolist()[:3] == pytest.approx([11.0, 13.0, 10.0])
    assert pd.isna(result["spend"].iloc[3])


def test_rates_joined_by_currency_are_those_of_their_row() -> None:
    """One column of rates may differ by row, and fills weekends within its currency."""
    frame = tidy_frame(
        timestamp=["2026-11-06", "2026-11-06", "2026-11-07", "2026-11-07"],
        Spend=[10.0, 10.0, 10.0, 10.0],
        code=["EUR", "GBP", "EUR", "GBP"],
        rate=[1.1, 1.3, None, None],
    )
    result = outside_data.in_dollars(frame, "Spend", "rate", currency="code")
    assert result["spend"].tolist() == pytest.approx([11.0, 13.0, 11.0, 13.0])


def test_one_rate_for_two_currencies_is_refused() -> None:
    """A rate of the day cannot be that of euros and pounds."""
    frame = tidy_frame(
        timestamp=["2026-11-01"] * 2, Spend=[10.0, 10.0], Spend_currency=["EUR", "GBP"], usd_per_eur=[1.1, 1.1]
    ).assign(rate=1.1)
    with pytest.raises(BadQuery, match="one rate a day for EUR, GBP"):
        outside_data.in_dollars(frame, "Spend", "rate")
    with pytest.raises(BadQuery, match="is of EUR and USD by its name, and not US dollars for one GBP"):
        outside_data.in_dollars(frame, "Spend", "usd_per_eur")
    with pytest.raises(BadQuery, match=r"GBP.*has no rate"):
        outside_data.in_dollars(frame, "Spend", {"EUR": "usd_per_eur"})


def test_spend_in_another_currency_is_refused(bought: DataFrame, earned: DataFrame) -> None:
    """Euros are not dollars: neither the cost of an install nor the return is computed from them."""
    euros = bought.assign(spend_currency="EUR")
    with pytest.raises(BadQuery, match="not in US dollars: convert it with"):
        outside_data.cost_per_install(euros)
    with pytest.raises(BadQuery, match="not in US dollars: convert it with"):
        outside_data.return_on_spend(euros, earned)
    assert outside_data.cost_per_install(bought.assign(spend_currency="USD"))["spend"].item() == 220


@pytest.fixture
def campaigns() -> DataFrame:
    """A week of two campaigns in two countries, with spend; one has no country."""
    days = [f"2026-11-{day:02}" for day in range(1, 8)]
    return tidy_frame(
        "new_users",
        timestamp=days * 3,
        campaign=["sale"] * 14 + ["launch"] * 7,
        country_code=["US"] * 7 + [None] * 7 + ["US"] * 7,
        new_users=[10] * 7 + [5] * 7 + [8] * 7,
        spend=[20.0] * 7 + [5.0] * 7 + [8.0] * 7,
    )


def test_cost_and_return_take_several_keys(campaigns: DataFrame) -> None:
    """By campaign and country last week; spend without a country stays a group."""
    by = ["campaign", "country_code"]
    costs = outside_data.cost_per_install(campaigns, by=by)
    assert costs["cpi"].tolist() == [2.0, 1.0, 1.0]
    money = campaigns[["timestamp", *by]].assign(
        installed_on=campaigns["timestamp"].dt.strftime("%Y-%m-%d").astype("category"), revenue=4.0
    )
    money.attrs = {"gamelens": {"asked": {"metric": "revenue"}, "requests": 1}}
    roas = outside_data.return_on_spend(campaigns, money, by=by, ages=[0])
    assert sorted(roas["roas"]) == pytest.approx([0.2, 0.5, 0.8])
    assert roas["country_code"].isna().sum() == 1
    back = outside_data.payback_ages(roas, by=by)
    assert back[[*by, "low", "high"]].shape == (3, 4)


def test_a_missing_column_is_named_with_the_next_step(bought: DataFrame, earned: DataFrame) -> None:
    """Not a KeyError."""
    with pytest.raises(BadQuery, match="campaign"):
        outside_data.cost_per_install(bought, by=[PUBLISHER, "campaign"])
    with pytest.raises(BadQuery, match=r'has no campaign: use .*"install_publisher", "campaign"'):
        outside_data.return_on_spend(bought.assign(campaign="a"), earned, by=[PUBLISHER, "campaign"])
    with pytest.raises(BadQuery, match="join ad spend"):
        outside_data.return_on_spend(bought.drop(columns="spend"), earned)
    with pytest.raises(BadQuery, match="join store ranks"):
        outside_data.rank_correlation(bought, "new_users", "Rank")
    with pytest.raises(BadQuery, match="campaign"):
        outside_data.payback_ages(outside_data.return_on_spend(bought, earned), by="campaign")


def test_the_cost_of_an_install_has_the_interval_of_a_count_at_least() -> None:
    """A month of installs that differ by chance alone has the exact interval of its count, a quarter wider at most."""
    from statsmodels.stats.rates import confint_poisson

    days = [str(day) for day in pd.date_range("2026-10-01", periods=28)]
    installs = np.random.default_rng(1).poisson(20, 28)
    row = outside_data.cost_per_install(
        tidy_frame("new_users", timestamp=days, new_users=installs.tolist(), spend=[100.0] * 28)
    ).iloc[0]
    fewest, most = confint_poisson(installs.sum(), 1, method="exact-c")
    exact = math.log(most / fewest)
    assert exact * 0.98 <= math.log(row["high"] / row["low"]) <= exact * 1.25


def test_a_few_days_or_installs_show_no_cost_interval(bought: DataFrame) -> None:
    """Two days, or none of the installs, leave the bounds unknown beside the cost."""
    row = outside_data.cost_per_install(bought).iloc[0]
    assert row["cpi"] == pytest.approx(220 / 250)
    assert pd.isna(row["low"])
    none = outside_data.cost_per_install(bought.assign(new_users=pd.array([0] * 4, dtype="Int64"))).iloc[0]
    assert pd.isna(none["high"])


def test_days_that_differ_widen_the_cost_of_an_install() -> None:
    """Fourteen days of 100 installs have the interval of 1,400; of 40 and 160 in turn one several times as wide."""
    days = [f"2026-11-{day:02}" for day in range(1, 15)]
    even = tidy_frame("new_users", timestamp=days, new_users=[100] * 14, spend=[100.0] * 14)
    uneven = tidy_frame("new_users", timestamp=days, new_users=[40, 160] * 7, spend=[100.0] * 14)
    narrow, wide = (outside_data.cost_per_install(frame).iloc[0] for frame in (even, uneven))
    assert 6 < (wide["high"] - wide["low"]) / (narrow["high"] - narrow["low"]) < 14


def spent(dollars: list[float], earned: list[float]) -> DataFrame:
    """Return the return on ad spend of one publisher's install days at age 0."""
    publisher = ["A"] * len(dollars)
    days = [str(day) for day in pd.date_range("2026-10-01", periods=len(dollars))]
    spend = tidy_frame("new_users", timestamp=days, install_publisher=publisher, spend=dollars)
    money = tidy_frame("revenue", timestamp=days, installed_on=days, install_publisher=publisher, revenue=earned)
    return outside_data.return_on_spend(spend, money, ages=[0])


def test_the_return_has_the_interval_of_its_cohorts() -> None:
    """Fourteen cohorts that bring 8 and 12 have an interval near Student's t of their mean; six have none."""
    row = spent([10.0] * 14, [8.0, 12.0] * 7).iloc[0]
    half = 2.1604 * 0.2 / 13**0.5
    assert row["roas"] == pytest.approx(1.0)
    assert half * 0.9 < math.log(row["high"]) < half * 2
    assert math.log(row["high"]) == pytest.approx(-math.log(row["low"]))
    assert pd.isna(spent([10.0] * 6, [8.0, 12.0] * 3).iloc[0]["low"])


def test_a_credit_lowers_the_spend_of_its_publisher() -> None:
    """A cost of -30 is money that came back: the day's revenue stays in the return."""
    row = spent([10.0] * 13 + [-30.0], [8.0] * 13 + [6.0]).iloc[0]
    assert (row["spend"], row["money"], row["cohorts"]) == (100.0, 110.0, 14)
    assert row["roas"] == pytest.approx(1.1)


def test_a_rate_that_is_neither_a_column_nor_columns_is_refused() -> None:
    """Numbers that are no rate are named with what is allowed."""
    for rate in (0.0, True, {"EUR": -1.0}, float("inf")):
        with pytest.raises(BadQuery, match=r"rate = .* must be a number above 0, a column of rates"):
            outside_data.in_dollars(pd.DataFrame(), "Spend", rate)


def test_a_rate_may_be_a_number_and_dollars_need_none() -> None:
    """One number is for the one foreign currency; without any rate foreign amounts are refused."""
    frame = tidy_frame(timestamp=["2026-11-01"] * 2, Spend=[10.0, 20.0], Spend_currency=["EUR", "USD"])
    assert outside_data.in_dollars(frame, "Spend", 1.1)["spend"].tolist() == pytest.approx([11.0, 20.0])
    assert outside_data.in_dollars(frame, "Spend", {"EUR": 1.2})["spend"].tolist() == pytest.approx([12.0, 20.0])
    assert outside_data.in_dollars(frame[["timestamp", "Spend"]], "Spend")["spend"].tolist() == [10.0, 20.0]
    with pytest.raises(BadQuery, match=r"EUR.*has no rate: pass a number"):
        outside_data.in_dollars(frame, "Spend")
    both = frame.assign(Spend_currency=["EUR", "GBP"])
    with pytest.raises(BadQuery, match="one rate a day for EUR, GBP"):
        outside_data.in_dollars(both, "Spend", 1.1)


def costs(lines: list[tuple[str, str, str]]) -> DataFrame:
    """Return a file of costs: day, network and amount as text."""
    return DataFrame(lines, columns=["Day", "Network", "Cost"])


def test_roas_is_one_call_from_the_file(earned: DataFrame) -> None:
    """Names differ in case and blanks, a day is split in two lines, other days are left out, euros have a rate.

    Money of a name that is nowhere in the revenue keeps its spend, and its return is unknown, not 0.
    """
    lines = [
        ("2026-11-01", " meta", "€20"),
        ("2026-11-01", "META", "€30.00"),
        ("2026-11-02", "Meta", "€70"),
        ("2026-11-01", "Y Ads", "US$8"),
        ("2026-01-01", "Meta", "US$999"),
    ]
    on = {"timestamp": "Day", PUBLISHER: "Network"}
    frame, report = outside_data.roas(costs(lines), earned, on=on, amount="Cost", rate=1.1, ages=[0])
    found = frame.set_index(PUBLISHER)
    assert found["spend"].to_dict() == pytest.approx({"Meta": 132.0, "Y Ads": 8.0})
    assert found["roas"]["Meta"] == pytest.approx(found["money"]["Meta"] / 132.0)
    assert found.loc["Y Ads", ["money", "roas"]].isna().all()
    assert report.only_right["Network"].tolist() == ["Y Ads"]
    assert (
        "1 row of other on days that money does not cover left out, with 999.00 US dollars of Cost" in report.warnings
    )
    assert any('names={"Y Ads": ...} says what it means' in warning for warning in report.warnings)
    expected = outside_data.payback_ages(frame, PUBLISHER).set_index(PUBLISHER)
    assert found["days_to_pay_back"].to_dict() == expected["days_to_pay_back"].to_dict()
    by_role, _ = outside_data.roas(costs(lines), earned, rate=1.1, ages=[0])
    assert by_role.equals(frame)


def test_costs_of_other_days_alone_and_without_a_currency_are_refused(earned: DataFrame) -> None:
    """Costs on days without money are refused, and amounts that name no currency are not taken for dollars."""
    asked: dict[str, Any] = {"on": {"timestamp": "Day", PUBLISHER: "Network"}, "amount": "Cost", "ages": [0]}
    old = costs([("2025-11-01", "Meta", "9"), ("2025-11-03", "Meta", "9")])
    with pytest.raises(BadQuery, match="has costs from 2025-11-01 to 2025-11-03 only, days that money does not cover"):
        outside_data.roas(old, earned, **asked, currency="USD")
    for amount in ("9", "$9"):
        lines = costs([("2026-11-01", "Meta", amount)])
        with pytest.raises(BadQuery, match=r'pass currency=".*, or the column of codes'):
            outside_data.roas(lines, earned, **asked)
        assert outside_data.roas(lines, earned, **asked, currency="USD").frame["spend"].tolist() == [9.0]


def test_the_file_of_costs_is_read_as_a_join_reads_it(earned: DataFrame, tmp_path: Path) -> None:
    """What an error of the reader recommends can be passed on: an encoding, a text that means an empty cell."""
    path = tmp_path / "spend.csv"
    path.write_bytes("Day,Network,Köln\n2026-11-01,Meta,12.5\n2026-11-02,Meta,tba\n".encode("cp1252"))
    asked: dict[str, Any] = {"on": {PUBLISHER: "Network"}, "amount": "Köln", "ages": [0], "currency": "USD"}
    with pytest.raises(BadQuery, match=r'encoding=: "cp1252" reads .Köln'):
        outside_data.roas(path, earned, **asked)
    with pytest.raises(BadQuery, match=r"missing=\['tba'\]"):
        outside_data.roas(path, earned, **asked, encoding="cp1252")
    frame, _ = outside_data.roas(path, earned, **asked, encoding="cp1252", missing=["tba"])
    assert frame["spend"].tolist() == [12.5]


def test_amounts_that_are_text_are_refused() -> None:
    frame = DataFrame({"timestamp": pd.to_datetime(["2026-11-01"], utc=True), "Spend": ["twelve"]})
    with pytest.raises(BadQuery, match=r"Spend.* is not a column of numbers: it holds 'twelve'"):
        outside_data.in_dollars(frame, "Spend")


def test_a_name_that_the_frame_spells_in_two_ways_is_refused(earned: DataFrame) -> None:
    """Both spellings are named."""
    doubled = pd.concat([earned, earned.assign(**{PUBLISHER: "META"})], ignore_index=True)
    doubled.attrs = earned.attrs
    with pytest.raises(BadQuery, match=r"'meta' may be 'META' or 'Meta', which the frame has both"):
        outside_data.roas(costs([("2026-11-01", "meta", "US$1")]), doubled)


def test_whether_it_has_paid_back_is_read_off_the_interval() -> None:
    """Returns far above, around and far below their cost, and of too few days."""
    rng = np.random.default_rng(4)
    parts = {"A": 2.0, "B": 1.0, "C": 0.3}
    frames = [
        spent([10.0] * 20, [*(10.0 * rate * rng.uniform(0.7, 1.3, 20))]).assign(**{PUBLISHER: name})
        for name, rate in parts.items()
    ]
    frames.append(spent([10.0] * 3, [9.0, 10.0, 11.0]).assign(**{PUBLISHER: "D"}))
    paid = outside_data.payback_ages(pd.concat(frames, ignore_index=True), PUBLISHER).set_index(PUBLISHER)
    assert paid["is_paid_back"].astype("object").where(paid["is_paid_back"].notna(), None).to_dict() == {
        "A": True,
        "B": None,
        "D": None,
        "C": False,
    }
    said = claims.of(outside_data.payback_ages(pd.concat(frames, ignore_index=True), PUBLISHER)).set_index("subject")
    assert said["case"].to_dict() == {"A": "higher", "B": "no_clear_difference", "D": "unknown", "C": "lower"}
    assert said["text"]["C"].startswith("C has not paid for itself: ")


def worth(**bounds: tuple[float, float, float]) -> DataFrame:
    """Return the value of a player of each publisher: half by day 0, all of it, with bounds, by day 2."""
    rows = [
        {
            PUBLISHER: name,
            "age": age,
            "ltv": part * ltv,
            "low": part * low,
            "high": part * high,
            "is_projected": age > 1,
        }
        for name, (ltv, low, high) in bounds.items()
        for age, part in ((0, 0.5), (1, 0.5), (2, 1.0))
    ]
    return DataFrame(rows).astype({PUBLISHER: "category", "age": "Int64"})


def priced(**cpi: float) -> DataFrame:
    """Return the cost of an install of each publisher, known to a tenth."""
    prices = DataFrame({PUBLISHER: [*cpi], "spend": 10.0, "cpi": [*cpi.values()], "blended_cpi": 1.0})
    return prices.assign(low=prices["cpi"] / 1.1, high=prices["cpi"] * 1.1)


def test_the_value_of_a_player_is_held_against_the_cost_of_an_install() -> None:
    """The last age counts, with an interval; a day is given where it is clear; without a cost there is no row."""
    values = worth(Meta=(2.0, 1.8, 2.2), X=(0.5, 0.4, 0.6), Y=(1.1, 0.5, 2.0), free=(1.0, 0.9, 1.1))
    result = outside_data.ltv_against_cpi(values, priced(Meta=1.0, X=1.0, Y=1.0)).set_index(PUBLISHER)
    assert result["ltv_to_cpi"].tolist() == pytest.approx([2.0, 0.5, 1.1])
    assert result.loc["Meta", "low"] == pytest.approx(2.0 * math.exp(-math.hypot(math.log(1 / 0.9), math.log(1.1))))
    assert result["days_to_pay_back"].tolist() == [0, pd.NA, pd.NA]
    assert result["is_projected"].tolist() == [False, pd.NA, pd.NA]
    assert result["pays_back"].tolist() == [True, False, pd.NA]


def test_whether_a_publisher_pays_for_itself_is_said_of_its_interval() -> None:
    """Above or below the cost, or not clear; bounds a thousand apart say nothing."""
    values = worth(Meta=(2.0, 1.8, 2.2), X=(0.5, 0.4, 0.6), Y=(1.1, 0.5, 2.0), Z=(1.0, 0.001, 90.0))
    said = claims.of(outside_data.ltv_against_cpi(values, priced(Meta=1.0, X=1.0, Y=1.0, Z=1.0)))
    assert said["direction"].tolist() == ["higher", "lower", "no clear difference", "unknown"]
    assert said["text"][0].startswith(
        "Meta pays for itself: an install costs $1.00, and a player brings $2.00 by day 2"
    )
    assert said["text"][0].endswith("the cost is back by day 0.")
    assert "too few install days or payments" in said["text"][3]


def test_a_value_by_another_split_is_refused() -> None:
    """Both frames need the column."""
    with pytest.raises(BadQuery, match=r"split retention\.ltv by it"):
        outside_data.ltv_against_cpi(worth(Meta=(1.0, 0.9, 1.1)), priced(Meta=1.0), by="country_code")


def test_the_cost_of_an_install_is_said(bought: DataFrame) -> None:
    """For all, and which publisher has the highest CPI; without spend it is said that none were bought."""
    texts = [claims.of(outside_data.cost_per_install(bought, by=by))["text"].tolist() for by in (None, PUBLISHER)]
    assert texts == [
        ["A bought install costs $0.88, $0.20 with organic installs included."],
        ["X has the highest CPI, $2.00, followed by Meta with $0.60."],
    ]
    nothing = bought.assign(spend=float("nan"))
    assert claims.of(outside_data.cost_per_install(nothing, by=PUBLISHER))["text"].tolist() == [
        "No installs were bought in this period."
    ]


def test_whether_a_rank_follows_is_said() -> None:
    """Of each game, by its interval."""
    days = [f"2026-11-{day:02}" for day in range(1, 29)]
    rng = np.random.default_rng(1)
    installs = rng.integers(100, 200, 28).tolist()
    frame = tidy_frame(
        "new_users", timestamp=days, game=["A"] * 28, new_users=installs, Rank=[300 - each for each in installs]
    )
    (text,) = claims.of(outside_data.rank_correlation(frame, "new_users", "Rank", by="game"))["text"]
    assert text.startswith("New players of A: higher numbers go with a better store rank")
    (text,) = claims.of(outside_data.rank_correlation(frame[:3], "new_users", "Rank", by="game"))["text"]
    assert text == "New players of A: too few days have a store rank to compare."


def split_installs(every: Granularity = "day") -> pd.DataFrame:
    """Return the new players of four days, publishers and countries."""
    days = ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"] if every == "day" else ["2026-11-01"]
    rows = [(day, who, where) for day in days for who in ("Meta", "Unity Ads") for where in ("US", "BR", None)]
    day, who, where = ([row[place] for row in rows] for place in range(3))
    frame = tidy_frame(
        "new_users",
        timestamp=day,
        install_publisher=who,
        country_code=where,
        new_users=[10 + n for n in range(len(rows))],
    )
    interval = "2026-11-01T00:00Z/2026-11-05T00:00Z"
    record = QueryRecord(metric="new_users", by=("install_publisher", "country_code"), every=every, interval=interval)
    frame.attrs["gamelens"] = Receipt(asked=record, version="1", requests=1).to_json()
    return frame


COSTS_BY_NETWORK = """Fecha;Red;Gasto USD
2026-11-01;Meta;12,50
2026-11-02;Meta;7,50
2026-11-03;Unity Ads;30,00
2026-11-04;Unity Ads;10,25
"""


@pytest.mark.parametrize("by", ["install_publisher", None])
def test_a_cost_stands_once_beside_installs_of_many_countries(by: str | None, tmp_path: Path) -> None:
    """The file has no countries, so players are added up over them: a cost is not each country's."""
    path = tmp_path / "gasto.csv"
    path.write_text(COSTS_BY_NETWORK, encoding="utf-8")
    costs = cost_per_install(split_installs(), by, spend=path)
    assert costs["spend"].sum() == 60.25
    assert costs["installs"].sum() == split_installs()["new_users"].sum()


def test_costs_are_split_by_what_the_file_tells_apart_only(tmp_path: Path) -> None:
    path = tmp_path / "gasto.csv"
    path.write_text(COSTS_BY_NETWORK, encoding="utf-8")
    with pytest.raises(BadQuery, match=r"country_code.*is not told apart in gasto\.csv: leave it out of by"):
        cost_per_install(split_installs(), ["install_publisher", "country_code"], spend=path)
    path.write_text("Land,Kosten USD\nUS,20\nBR,30\n", encoding="utf-8")
    with pytest.raises(BadQuery, match="install_publisher"):
        cost_per_install(split_installs("all"), "install_publisher", spend=path)
    assert cost_per_install(split_installs("all"), "country_code", spend=path)["spend"].sum() == 50.0


def test_the_cost_of_an_install_by_day(tmp_path: Path) -> None:
    """Alone, and beside another column."""
    path = tmp_path / "gasto.csv"
    path.write_text(COSTS_BY_NETWORK, encoding="utf-8")
    days = [f"2026-11-0{day}" for day in range(1, 5)]
    installs = tidy_frame("new_users", timestamp=days, new_users=[5, 3, 6, 2])
    costs = cost_per_install(installs, "timestamp", spend=path)
    assert dict(zip(costs["timestamp"].dt.day, costs["cpi"], strict=True)) == {1: 2.5, 2: 2.5, 3: 5.0, 4: 5.125}
    assert claims.of(costs)["text"][0].startswith("2026-11-04 has the highest CPI, $5.12, followed by 2026-11-03")
    by = ["timestamp", "install_publisher"]
    assert cost_per_install(split_installs(), by, spend=path)["spend"].sum() == 60.25


def test_days_are_no_groups_of_an_analysis_that_adds_them_up(
    bought: DataFrame, earned: DataFrame, tmp_path: Path
) -> None:
    """A refusal with what to type, and no error of pandas."""
    path = tmp_path / "gasto.csv"
    path.write_text(COSTS_BY_NETWORK, encoding="utf-8")
    values = DataFrame({"timestamp": [], "age": [], "ltv": [], "low": [], "high": [], "is_projected": []})
    calls: list[Callable[[Any], Any]] = [
        lambda by: outside_data.return_on_spend(bought, earned, by=by),
        lambda by: outside_data.ltv_against_cpi(values, path, by=by, installs=bought),
        lambda by: outside_data.rank_correlation(bought, "new_users", "spend", by=by),
        lambda by: outside_data.compare_with_weekdays(bought.assign(holiday="x"), "new_users", by=by),
    ]
    for call in calls:
        with pytest.raises(BadQuery, match=r"by = 'timestamp' .*name a column such as \"country_code\""):
            call("timestamp")
    with pytest.raises(BadQuery, match=r"pass by=\['install_publisher'\]"):
        outside_data.return_on_spend(bought, earned, by=["timestamp", PUBLISHER])


def test_costs_without_days_are_those_of_a_whole_interval_only(tmp_path: Path) -> None:
    """Beside days they would be the cost of each."""
    path = tmp_path / "total.csv"
    path.write_text("Network,Spend (USD)\nMeta,1500.00\nUnity Ads,500\n", encoding="utf-8")
    with pytest.raises(BadQuery, match=r"has no column of days.*every=\"all\""):
        cost_per_install(split_installs(), "install_publisher", spend=path)
    assert cost_per_install(split_installs("all"), "install_publisher", spend=path)["spend"].sum() == 2000.0


def test_costs_of_some_days_are_not_those_of_the_whole_interval(tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("day,network,cost_usd\n2026-11-01,Meta,5\n2026-11-02,Meta,7\n", encoding="utf-8")
    with pytest.raises(BadQuery, match=r"query new_users over=\"2026-11-01/2026-11-03\""):
        cost_per_install(split_installs("all"), "install_publisher", spend=path)
    path.write_text("day,network,cost_usd\n2026-10-01,Meta,5\n2026-10-02,Meta,7\n", encoding="utf-8")
    with pytest.raises(
        BadQuery, match="has costs from 2026-10-01 to 2026-10-02 only, days that the frame does not cover"
    ):
        cost_per_install(split_installs("all"), "install_publisher", spend=path)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("header", ["spend", "Spend", "SPEND", "cost"])
def test_a_column_of_costs_may_have_any_name(header: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(f"date,network,{header},currency\n2026-11-01,Meta,101.00,USD\n2026-11-02,Meta,102,USD\n")
    costs = cost_per_install(split_installs(), "install_publisher", spend=path)
    assert costs["spend"].sum() == 203.0


def test_amounts_without_days_have_no_times(tmp_path: Path) -> None:
    path = tmp_path / "total.csv"
    path.write_text("Network,Spend (USD)\nMeta,1500.00\n", encoding="utf-8")
    dollars = outside_data.in_dollars(path)
    assert "timestamp" not in dollars
    assert dollars["spend"].tolist() == [1500.0]


def test_costs_without_a_day_are_said_to_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("Date,Network,Cost (USD)\n2026-11-01,Meta,5\n2026-11-01,Google Ads,3\n,Meta,7\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"7\.00 of 15\.00 USD are left out: row 4 of costs\.csv without a day"):
        costs = cost_per_install(split_installs(), "install_publisher", spend=path)
    assert costs["spend"].sum() == 8.0
    assert any("row 4 of costs.csv without a day" in said for said in Receipt.of(costs.attrs).warnings)


def test_costs_of_a_whole_period_stay_whatever_their_names(tmp_path: Path) -> None:
    """A name that the frame lacks stands by itself, and counts in the whole."""
    path = tmp_path / "costs.csv"
    path.write_text("Network,Cost (USD)\nMeta,5\nGoogle Ads - UAC,7\n", encoding="utf-8")
    costs = cost_per_install(split_installs("all"), "install_publisher", spend=path)
    assert (
        dict(zip(costs["install_publisher"].astype("object"), costs["spend"], strict=True))["Google Ads - UAC"] == 7.0
    )
    with pytest.warns(UserWarning, match="'Google Ads - UAC', which install_publisher does not have"):
        assert cost_per_install(split_installs("all"), spend=path)["spend"].tolist() == [12.0]
