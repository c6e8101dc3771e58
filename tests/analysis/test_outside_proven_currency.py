"""An amount is in the currency in whose rows it equals the same amount in the currencies of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from support.outside_files import written

ROWS = (
    "2026-10-01,Meta,EUR,100.00,116.00,58.00,0.5",
    "2026-10-02,Meta,EUR,80.50,93.38,28.01,0.3",
    "2026-10-01,Moloco,GBP,50.00,50.00,20.00,0.4",
    "2026-10-02,Moloco,GBP,61.25,61.25,6.13,0.1",
    "2026-10-03,Moloco,GBP,75.75,75.75,60.60,0.8",
    "2026-10-03,Liftoff,JPY,9000,45.90,45.90,1.0",
)


@pytest.mark.parametrize(
    ("header", "local", "home"),
    [
        ("Date,Network,Booking currency,Cost (booking),Cost total,Revenue total,ROAS", "Cost (booking)", "Cost total"),
        ("Date,Network,local_currency,local_spend,spend (GBP),revenue,roas", "local_spend", "spend (GBP)"),
        (
            "Date,Network,spend_local_currency,spend_local,spend_home (GBP),revenue,roas",
            "spend_local",
            "spend_home (GBP)",
        ),
    ],
)
def test_rows_of_one_currency_that_are_equal_prove_it(tmp_path: Path, header: str, local: str, home: str) -> None:
    table = gl.read_table(written(tmp_path / "costs.csv", header, *ROWS))
    assert table.column(home).currency == "GBP"
    assert table.column(home).money_problem is None
    currencies = table.column(local).currencies
    assert currencies is not None
    assert sorted(currencies.unique()) == ["EUR", "GBP", "JPY"]
    revenue = next(column for column in table.columns if column.concept == "income")
    assert revenue.currency == "GBP"  # of the ROAS that its cells prove
    again = gl.read_table(table, currency=header.split(",")[2])
    assert again.column(home).currency == "GBP"


def test_amounts_that_are_equal_in_all_rows_prove_nothing(tmp_path: Path) -> None:
    rows = [row.replace(",".join(row.split(",")[3:5]), ",".join([row.split(",")[3]] * 2)) for row in ROWS]
    header = "Date,Network,Booking currency,Cost (booking),Cost total,Revenue total,ROAS"
    table = gl.read_table(written(tmp_path / "costs.csv", header, *rows))
    assert table.column("Cost total").currency is None


def test_a_header_that_names_a_currency_needs_no_codes_of_another_amount(tmp_path: Path) -> None:
    """Also where too few rows prove it."""
    header = "Date,Network,adn_original_currency,adn_original_cost,adn_cost (USD),revenue,roas"
    table = gl.read_table(written(tmp_path / "costs.csv", header, *ROWS[:2], *ROWS[5:]))
    assert table.column("adn_cost (USD)").currency == "USD"
    assert table.column("adn_cost (USD)").money_problem is None
