"""What is sold is a flow, and neither the money beside it nor a word for what is returned makes money of units."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from support.outside_files import written
from support.tidy_frames import tidy_frame


@pytest.mark.parametrize(
    "header",
    [
        "Units sold",
        "Gross Units Sold",
        "Copies sold",
        "Keys Sold",
        "Sold",
        "Verkauft",
        "Verkaufte Einheiten",
        "Exemplaires vendus",
        "Unidades vendidas",
        "Cópias vendidas",
        "Copie vendute",
        "Verkochte exemplaren",
        "Sprzedane sztuki",
        "Sålda exemplar",
        "Satılan adet",
        "Продано копий",
        "销量",
        "販売本数",
        "판매량",
    ],
)
def test_what_is_sold_adds_up(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "s.csv", f"Date,{header}", "2026-10-01,40", "2026-10-02,42", "2026-10-04,9")
    assert gl.read_table(path).column(header).role == "count"
    frame = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[5])
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-10-01T00:00Z/2026-11-01T00:00Z"}
    assert gl.join(frame, path, columns=[header]).frame[header].tolist() == [91]


@pytest.mark.parametrize("header", ["Sold final", "Sold disponibil", "Sold"])
def test_a_balance_in_romanian_stays_one(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "s.csv", f"Data,{header}", "2026-10-01,40.25", "2026-10-02,42.10", "2026-10-04,9.5")
    assert gl.read_table(path).column(header).role == "stock"


def test_a_level_that_a_join_takes_says_so(tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", "Date,Active subscriptions", "2026-10-01,40", "2026-10-02,42", "2026-10-04,39")
    frame = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[5])
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-10-01T00:00Z/2026-11-01T00:00Z"}
    joined = gl.join(frame, path)
    assert joined.frame["Active subscriptions"].tolist() == [39]
    said = "Active subscriptions is a level, whose rows do not add up: each key has the last"
    assert any(warning.startswith(said) for warning in joined.report.warnings)
    assert any('roles={"Active subscriptions": "count"}' in warning for warning in joined.report.warnings)


_SALES = (
    "2026-10-01,EUR,30,-2,28,200.50,-12.25,-30.10,158.15",
    "2026-10-01,SEK,12,-1,11,90.40,-7.10,-14.25,69.05",
    "2026-10-02,EUR,25,-3,22,170.75,-20.15,-25.40,125.20",
    "2026-10-02,SEK,9,0,9,70.20,0,-11.15,59.05",
    "2026-10-03,EUR,17,-4,13,120.35,-27.45,-18.20,74.70",
)


@pytest.mark.parametrize(
    ("gross", "returned", "net"),
    [
        ("Gross units sold", "Returns/Refunds", "Net units sold"),
        ("Brutto verkauft", "Erstattungen", "Netto verkauft"),
        ("Unidades brutas", "Reembolsos", "Unidades netas"),
    ],
)
def test_units_that_add_up_to_units_are_no_money(tmp_path: Path, gross: str, returned: str, net: str) -> None:
    header = f"Date,Currency,{gross},{returned},{net},Gross (USD),{returned} (USD),VAT/Tax (USD),Net (USD)"
    path = written(tmp_path / "sales.csv", header, *_SALES)
    table = gl.read_table(path, currency="USD")
    assert [table.column(name).role for name in (gross, returned, net)] == ["count"] * 3
    assert table.column("VAT/Tax (USD)").role == "amount"
    assert table.column("VAT/Tax (USD)").currency == "USD"
    tax = outside_data.in_dollars(path, amount="VAT/Tax (USD)", currency="USD", roles={"VAT/Tax (USD)": "cost"})
    assert tax["spend"].sum() == pytest.approx(-99.10)


def test_a_number_beside_the_same_in_dollars_is_no_money(tmp_path: Path) -> None:
    rows = [row.split(",") for row in _SALES]
    lines = [",".join([*row[:2], row[3], row[6]]) for row in rows]
    path = written(tmp_path / "sales.csv", "Date,Currency,Chargebacks,Chargeback (USD)", *lines)
    assert gl.read_table(path, currency="USD").column("Chargebacks").role == "count"


def test_an_amount_beside_the_same_in_dollars_is_money_of_its_row(tmp_path: Path) -> None:
    rows = ["2026-10-01,USD,20,20.00", "2026-10-01,JPY,3000,20.10", "2026-10-02,USD,7,7.00", "2026-10-02,JPY,1500,10"]
    path = written(tmp_path / "spend.csv", "Date,Currency,Cost,Cost (USD)", *rows)
    assert gl.read_table(path).column("Cost").role == "amount"


@pytest.mark.parametrize("header", ["VAT/Tax (USD)", "Fees/Commission (EUR)", "Gebühr/Steuer (EUR)", "Refund/Tax"])
def test_a_slash_between_two_charges_is_no_quotient(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "bill.csv", f"Date,{header}", "2026-10-01,-1.25", "2026-10-02,-3.5", "2026-10-04,-9.75")
    assert gl.read_table(path).column(header).role == "amount"


@pytest.mark.parametrize("header", ["Cost/Install (USD)", "Revenue/Cost", "Spend per sale (USD)"])
def test_a_slash_between_others_is_one(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "bill.csv", f"Date,{header}", "2026-10-01,1.25", "2026-10-02,3.5", "2026-10-04,9.75")
    assert gl.read_table(path).column(header).role == "rate"


def test_what_stands_at_the_end_is_not_added_up(tmp_path: Path) -> None:
    """A level is the one before and what came since: the sum proves no flow."""
    rows = ["2026-10-01,100,7,107", "2026-10-02,107,9,116", "2026-10-03,116,4,120", "2026-10-04,120,2,122"]
    for first, last in (("Followers at start", "Followers at end"), ("Opening", "Closing")):
        path = written(tmp_path / "channel.csv", f"Date,{first},New followers,{last}", *rows)
        assert gl.read_table(path).column(last).role in ("stock", "number")
