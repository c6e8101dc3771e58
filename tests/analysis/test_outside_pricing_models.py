"""Money that the name of a rate only qualifies, such as CPM revenue, is an amount and no average."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from support.outside_files import written
from support.tidy_frames import tidy_frame

FRAME = tidy_frame("new_users", timestamp=["2026-10-01", "2026-10-02"], new_users=[5, 7])
ROWS = ("2026-10-01;12000;48.20", "2026-10-01;9000;31.75", "2026-10-02;15500;66.10", "2026-10-02;700;2.45")


@pytest.mark.parametrize(
    "header",
    [
        "Total CPM and CPC revenue (US$)",
        "Total CPM, CPC, CPD, and vCPM revenue (US$)",
        "Receita total de CPM e CPC (US$)",
        "Receita de CPM (US$)",
        "Ingresos por CPM y CPC (USD)",
        "Ingresos de CPC (USD)",
        "Revenus du CPM (USD)",
        "Revenue from CPM (USD)",
        "CPM revenue (USD)",
        "CPI-Umsatz (USD)",
        "Einnahmen aus CPM und CPC (USD)",
        "CPM-Einnahmen (USD)",
        "Доход от CPM (USD)",
        "CPM収益 (USD)",
        "CPC 收入 (USD)",
        "Przychód z CPM (USD)",
        "CPC spend (USD)",
        "CPI-Ausgaben (USD)",
        "Gasto de CPC (USD)",
        "Total CPC cost (USD)",
        "Gesamtkosten CPM und CPC (USD)",
    ],
)
def test_money_of_a_pricing_model_is_added_up(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "ads.csv", f"Date;Impressions;{header}", *ROWS)
    column = gl.read_table(path).columns[2]
    assert (column.role, column.currency) == ("amount", "USD")
    assert gl.join(FRAME, path, columns=[column.name]).frame[column.name].tolist() == pytest.approx([79.95, 68.55])


@pytest.mark.parametrize(
    "header",
    [
        "Revenue per thousand (USD)",
        "Revenue per user (USD)",
        "eCPM (revenue) (USD)",
        "eCPM revenue (USD)",
        "Revenue eCPM",
        "CPM (cost) (USD)",
        "CPC (USD)",
        "CPI cost (USD)",
        "Costo CPC (USD)",
        "Revenue CPM (USD)",
        "CPM de gasto (USD)",
        "vCPM",
        "CPI / revenue",
    ],
)
def test_a_rate_beside_a_word_of_money_stays_one(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "ads.csv", f"Date;Impressions;{header}", *ROWS)
    assert gl.read_table(path).columns[2].role == "rate"


@pytest.mark.parametrize("header", ["CPM cost (EUR)", "Costo CPM (EUR)", "Umsatz CPM (EUR)", "Доход CPM (EUR)"])
def test_the_numerator_of_another_rate_is_no_average(tmp_path: Path, header: str) -> None:
    rows = ("2026-10-01;12000;48.20;4.02", "2026-10-01;9000;31.75;3.53", "2026-10-02;15500;66.10;4.26")
    path = written(tmp_path / "ads.csv", f"Date;Impressions;{header};eCPM (EUR)", *rows)
    column = gl.read_table(path).columns[2]
    assert column.role == "amount"
    assert "eCPM (EUR) = 1,000 * " in str(column.evidence[0])
    assert gl.join(FRAME, path, columns=[column.name]).frame[column.name].tolist() == pytest.approx([79.95, 66.1])


@pytest.mark.parametrize(
    ("total", "role"), [("Total;37200;148.50;2.10", "amount"), ("Total;37200;3.99;2.10", "rate"), ("", "rate")]
)
def test_what_a_total_adds_up_is_no_average(tmp_path: Path, total: str, role: str) -> None:
    rows = ("2026-10-01;12000;48.50;0.7", "2026-10-02;9700;33.75;0.7", "2026-10-03;15500;66.25;0.7")
    path = written(tmp_path / "ads.csv", "Date;Impressions;CPI cost (EUR);Index", *rows, *([total] if total else []))
    assert gl.read_table(path).columns[2].role == role
