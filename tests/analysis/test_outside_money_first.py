"""What is offered as an amount is money: a column with a currency, no count, no price of one, no payout of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.outside_files import written

STREAMERS = (
    "Streamer,Channel,Live on,Fee €,Codes used,Price per code (EUR)",
    '"Ana",YouTube,3 Oct 26,"€1,200",412,€4.10',
    '"Bob",Twitch,9 Oct 26,"€800",220,€3.20',
    '"Cyd",YouTube,12 Oct 26,"€2,450",390,€2.90',
    '"Dee",Twitch,20 Oct 26,"€610",318,€1.10',
)


def test_a_column_with_a_currency_is_offered_and_counts_are_not(tmp_path: Path) -> None:
    path = written(tmp_path / "streamers.csv", *STREAMERS)
    with pytest.raises(BadQuery, match="amount is needed") as refused:
        outside_data.in_dollars(path, rate=1.1)
    assert refused.value.allowed == ("Fee €",)
    assert outside_data.in_dollars(path, "Fee €", rate=1.0)["spend"].sum() == pytest.approx(5060)


@pytest.mark.parametrize("amount", ["Codes used", "Price per code (EUR)"])
def test_a_count_and_a_price_are_no_dollars(tmp_path: Path, amount: str) -> None:
    path = written(tmp_path / "streamers.csv", *STREAMERS)
    with pytest.raises(BadQuery, match="no amount"):
        outside_data.in_dollars(path, amount, rate=1.1)


def test_installs_are_no_dollars(tmp_path: Path) -> None:
    path = written(tmp_path / "o.csv", "Day,Installs,Cost", "2026-10-01,1200,310.50", "2026-10-02,1100,290.10")
    with pytest.raises(BadQuery, match="is a count, no amount"):
        outside_data.in_dollars(path, "Installs", rate=1.1)
    assert outside_data.in_dollars(path, "Cost", currency="USD")["spend"].sum() == pytest.approx(600.6)


def test_whole_yen_without_a_sign_may_be_money(tmp_path: Path) -> None:
    rows = ["2026-10-01,¥120000,81000", "2026-10-02,¥90000,64000"]
    path = written(tmp_path / "o.csv", "Day,Fee,Studio", *rows)
    with pytest.raises(BadQuery, match="amount is needed") as refused:
        outside_data.in_dollars(path, rate=0.007)
    assert "Studio" in refused.value.allowed


BATCH = (
    "Booked,Kind,Reference,Currency,Debit net,Credit net,Debit gross,Credit gross",
    "2026-10-02,Sale,a1,EUR,,19.60,,20.00",
    "2026-10-02,Sale,a2,EUR,,9.70,,9.99",
    "2026-10-03,Sale,a3,EUR,,48.90,,49.99",
    "2026-10-03,Sale,a4,EUR,,19.60,,20.00",
    "2026-10-04,Refund,a1,EUR,20.00,,20.00,",
    "2026-10-04,Fee,,EUR,4.10,,,",
    "2026-10-05,{payout},b9,EUR,73.70,,,",
)


@pytest.mark.parametrize("word", ["ShopPayout", "To our bank", "Batch closed"])
def test_a_row_that_pays_out_a_batch_is_asked_about_first(tmp_path: Path, word: str) -> None:
    path = written(tmp_path / "batch.csv", *(row.format(payout=word) for row in BATCH))
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path, "Debit net", rate=1)
    assert f"leave_out={ {'Kind': [word]}!r} leaves out what is only moved" in str(refused.value)
    table = gl.read_table(path, leave_out={"Kind": [word]})
    assert any("'Refund', 'Fee' in Kind count" in note for note in table.notes)
    assert table.column("Debit net").problem is None
    assert table.column("Debit net").values.sum() == pytest.approx(24.1)


def test_a_debit_is_not_turned_below_zero(tmp_path: Path) -> None:
    path = written(tmp_path / "batch.csv", *(row.format(payout="Payout") for row in BATCH))
    for name in ("Debit net", "Debit gross"):
        assert "negative" not in str(gl.read_table(path).column(name).problem)
    assert outside_data.in_dollars(path, "Credit net", rate=1)["spend"].sum() == pytest.approx(97.8)


def test_a_journal_whose_sides_are_equal_has_no_payout(tmp_path: Path) -> None:
    rows = [f"2026-10-0{day},{kind},{day * 11}.50,{day * 11}.50" for day in (1, 2, 3, 4) for kind in ("Ads", "Rent")]
    path = written(tmp_path / "journal.csv", "Day,Kind,Net debit,Net credit", *rows)
    problem = gl.read_table(path).column("Net debit").problem
    assert problem is None or "moved" not in str(problem)


def test_rows_beside_a_fee_that_lack_its_names_are_asked_about_with_it(tmp_path: Path) -> None:
    rows = [
        "Media,Meta,DE,1000.10",
        "Media,TikTok,DE,800.20",
        "Media,Meta,AT,300.00",
        "Media,TikTok,AT,200.00",
        "Media,Unity Ads,AT,120.00",
        "Management fee,,,250.00",
        "Banner design,,,90.00",
        "Quarterly review,,,60.00",
    ]
    path = written(tmp_path / "bill.csv", "Item,Network,Country,Amount EUR", *rows)
    with pytest.raises(BadQuery, match=r"Banner design.*Quarterly review") as refused:
        outside_data.in_dollars(path, rate=1)
    leave = {"Item": ["Management fee", "Banner design", "Quarterly review"]}
    assert f"leave_out={leave!r} leaves them out" in str(refused.value)
    assert outside_data.in_dollars(path, rate=1, leave_out=leave)["spend"].sum() == pytest.approx(2420.3)


@pytest.mark.parametrize("header", ["Gross", "Netto", "Total", "Invoice total"])
def test_a_whole_number_that_is_called_an_amount_is_one(tmp_path: Path, header: str) -> None:
    rows = [f"2026-10-0{day},{day}00.50,{day}19" for day in (1, 2, 3)]
    path = written(tmp_path / "bills.csv", f"Day,Cost (EUR),{header}", *rows)
    assert outside_data.in_dollars(path, header, currency="EUR", rate=1)["spend"].sum() == pytest.approx(657)


def test_a_currency_against_the_header_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "weeks.csv", "Day,비용(원),클릭수", "2026-10-01,120000,41", "2026-10-02,90000,30")
    with pytest.warns(UserWarning, match="taken in USD, as currency= says, and is in KRW by the header"):
        outside_data.in_dollars(path, currency="USD")
    assert not [note for note in gl.read_table(path, currency="KRW").notes if "is taken in" in note]


def test_an_argument_that_settles_a_symbol_is_no_contradiction(tmp_path: Path) -> None:
    path = written(tmp_path / "weeks.csv", "Day,Cost ($)", "2026-10-01,$12.50", "2026-10-02,$9.10")
    assert outside_data.in_dollars(path, currency="USD")["spend"].sum() == pytest.approx(21.6)


def test_a_credit_below_zero_is_told(tmp_path: Path) -> None:
    rows = ["2026-10-01,VM-2,Virtual machine,30.50", "2026-10-02,VM-2,Virtual machine,31.00"]
    rows += ["2026-10-03,NET,Traffic,4.10", "2026-10-31,ADJ,Applied credit: welcome,-20.00"]
    path = written(tmp_path / "cloud.csv", "Usage day,Item code,Description,Amount EUR", *rows)
    notes = gl.read_table(path).notes
    assert any("'Applied credit: welcome' lessens the sum of Amount EUR by 20.00" in note for note in notes)
    assert outside_data.in_dollars(path, rate=1)["spend"].sum() == pytest.approx(45.6)


@pytest.mark.parametrize(
    ("above", "header", "said"),
    [
        ("Amount Billed;$65.60", "Amount", "the line 'Amount Billed $65.60' does"),
        ("Customer;Pinewood", "Unit price ($);Amount", "the header Unit price"),
    ],
)
def test_a_currency_that_stands_elsewhere_is_named_in_the_question(
    tmp_path: Path, above: str, header: str, said: str
) -> None:
    beside = "0.5;" if ";" in header else ""
    rows = [f"2026-10-0{day};Machine {day};{beside}{day}0.50" for day in (1, 2, 3)]
    path = written(tmp_path / "cloud.csv", above, "", f"Usage day;Item;{header}", *rows)
    problem = gl.read_table(path).column("Amount").money_problem
    assert said in str(problem)
    assert 'currency="USD"' in str(problem)


def test_where_creators_post_is_no_platform_of_players(tmp_path: Path) -> None:
    path = written(tmp_path / "streamers.csv", "Creator,Platform,Day,Cost EUR", "A,Twitch,2026-10-01,5.5")
    assert gl.read_table(path).column("Platform").role != "platform"
    other = written(
        tmp_path / "stores.csv", "Creator,Platform,Day,Cost EUR", "A,iOS,2026-10-01,5.5", "B,X,2026-10-01,5"
    )
    assert gl.read_table(other).column("Platform").role == "platform"
