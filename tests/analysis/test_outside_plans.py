"""Columns called nothing but a plan and what was are money in a sheet whose name, or a line, has a currency."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from support.outside_files import written

ROWS = ("2026-10,Meta,1000,900.5,90.1", "2026-11,Meta,1200,1300,108.3", "2026-12,Meta,900,,")


@pytest.mark.parametrize(
    ("line", "plan", "actual"),
    [
        ("Marketing budget (all amounts in EUR)", "Planned", "Actual"),
        ("Mediaplan, alle Beträge in EUR", "Soll", "Ist"),
        ("Budget marketing (montants en EUR)", "Prévu 2026", "Réalisé 2026"),
        ("UA spend, values in EUR", "Q4 Forecast", "Q4 Actuals"),
    ],
)
def test_plan_and_actual_are_amounts_of_the_currency_beside(tmp_path: Path, line: str, plan: str, actual: str) -> None:
    path = written(
        tmp_path / "q4.tsv", line, "", *[row.replace(",", "\t") for row in (f"Month,Channel,{plan},{actual},%", *ROWS)]
    )
    table = gl.read_table(path)
    assert table.in_words()[plan] == "planned amount, EUR"
    assert table.in_words()[actual] == "amount, EUR"
    spent = outside_data.in_dollars(table, rate={"EUR": 2})
    assert spent["spend"].sum() == pytest.approx(4401.0)


def test_without_a_currency_they_are_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "installs.csv", "Installs of Q4", "", "Month,Channel,Planned,Actual,%", *ROWS)
    assert {gl.read_table(path).column(name).role for name in ("Planned", "Actual")} == {"number"}
