"""Random layouts of one table of costs: its sum is that of the numbers that were written, or it is refused."""

from __future__ import annotations

import csv
import io
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.hypothesis_profiles import examples

NETWORKS = ("Meta", "Moloco", "Google Ads", "Unity Ads")
CELLS = ("{}", "€{}", "{} €", "EUR {}", "{} EUR")
HEADERS = ("Cost", "Spend (EUR)", "Kosten", "Gasto (€)", "Koszt EUR", "Coût", "Cost EUR")
DAYS = ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%b %d, %Y", "%d %B %Y")
MARKS = ((",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ","))
"""Marks of thousands and of decimals."""


def _written(amount: Decimal, thousands: str, decimal: str, places: int) -> str:
    whole, _, fraction = f"{amount:,.{places}f}".partition(".")
    return whole.replace(",", thousands) + (decimal + fraction if places else "")


@given(
    amounts=st.lists(st.decimals(0, 99_999, places=2), min_size=3, max_size=12),
    marks=st.sampled_from(MARKS),
    cell=st.sampled_from(CELLS),
    header=st.sampled_from(HEADERS),
    form=st.sampled_from(DAYS),
    separator=st.sampled_from(",;\t"),
    order=st.permutations(range(4)),
    has_total=st.booleans(),
    title=st.sampled_from(("", "Report of the account", "All amounts in EUR")),
)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_sum_is_that_of_what_was_written_or_is_refused(
    tmp_path: Path,
    amounts: list[Decimal],
    marks: tuple[str, str],
    cell: str,
    header: str,
    form: str,
    separator: str,
    order: list[int],
    has_total: bool,
    title: str,
) -> None:
    """In any order of columns, with marks, currencies and days written in any way, with a total or without."""
    days = [date(2026, 10, 12) + timedelta(days=place) for place in range(len(amounts))]
    rows = [
        [day.strftime(form), NETWORKS[place % len(NETWORKS)], cell.format(_written(amount, *marks, 2)), str(place + 7)]
        for place, (day, amount) in enumerate(zip(days, amounts, strict=True))
    ]
    installs = sum(place + 7 for place in range(len(amounts)))
    if has_total:
        rows.append(["Total", "", cell.format(_written(sum(amounts, Decimal()), *marks, 2)), str(installs)])
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    if title:
        writer.writerow([title])
    for row in (["Date", "Network", header, "Installs"], *rows):
        writer.writerow([row[place] for place in order])
    path = tmp_path / "costs.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    try:
        spent = outside_data.in_dollars(path, rate={"EUR": 1.0})["spend"].sum()
    except BadQuery:
        return
    assert spent == pytest.approx(float(sum(amounts)), abs=0.005)


@pytest.mark.parametrize("rule", ["-" * 40, "=====", "+----+----+", "─" * 20])
def test_a_statement_with_rules_and_bars_is_read(tmp_path: Path, rule: str) -> None:
    """Its cells have no blanks around them, and the amount to be paid is no row."""
    lines = ["Publisher Statement", "Statement Period: October 2026", "", "Type | Country | Amount (USD)", rule]
    lines += ["Earnings | United States | 1,510.19", "Earnings | Brazil | 178.73", rule, "Sub Total |  | 1,688.92"]
    lines += ["Correction | Brazil | (14.60)", rule, "Net Payable |  | 1,674.32", ""]
    path = tmp_path / "statement.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = gl.read_table(path, leave_out={"Type": []})
    assert table.frame["Type"].tolist() == ["Earnings", "Earnings", "Correction"]
    assert table.column("Amount (USD)").values.sum() == pytest.approx(1674.32)
    assert f"{table.starts[0]:%Y-%m}" == "2026-10"
