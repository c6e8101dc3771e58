"""Totals of blocks of rows, in none of whose names they are, and totals of all days."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]

PERIODS = [
    "Geschäftswoche;Netzwerk;Kosten (EUR);Abweichung (EUR);Kumuliert (EUR)",
    "P1 W1;Meta;100;-10;100",
    "P1 W1;Moloco;-5;-20;95",
    "P1 W2;Meta;40;4;135",
    "P1 gesamt;Alle Netzwerke;135;-26;330",
    "P2 W1;Meta;30;3;165",
    "P2 W1;Moloco;50;5;215",
    "P2 gesamt;Alle Netzwerke;80;8;380",
    "P3 W1;Meta;20;1;235",
    "P3 W1;Moloco;10;2;245",
    "P3 gesamt;Alle Netzwerke;30;3;480",
    "Gesamtsumme;;245;-15;245",
]


def test_a_total_of_a_block_is_one_with_negative_rows_too(file: WriteFile) -> None:
    """Its words are those of its siblings, and no name is in them; a running total is no reason to keep it."""
    table = gl.read_table(file("\n".join(PERIODS)))
    assert table.column("Kosten (EUR)").values.sum() == 245
    assert table.larger == {}
    assert outside_data.in_dollars(table, "Kosten (EUR)", rate={"EUR": 1.0})["spend"].sum() == 245


def test_a_row_called_like_totals_that_is_no_sum_is_asked_about(file: WriteFile) -> None:
    rows = [line.replace("P2 gesamt;Alle Netzwerke;80", "P2 gesamt;Alle Netzwerke;83") for line in PERIODS]
    path = file("\n".join(rows))
    with pytest.raises(BadQuery, match=r"may count twice: row 8 .*totals=\['P2 gesamt'\]"):
        outside_data.in_dollars(path, "Kosten (EUR)", rate={"EUR": 1.0})
    left = outside_data.in_dollars(path, "Kosten (EUR)", rate={"EUR": 1.0}, totals=["P2 gesamt"])
    assert left["spend"].sum() == 245


@pytest.mark.parametrize("day", ["2026-11-01", "2026-11-30"])
def test_a_row_for_all_countries_that_is_the_sum_of_all_days_counts_once(file: WriteFile, day: str) -> None:
    """Also with a correction below 0 that is of no country."""
    rows = [f"2026-11-0{k},{land},{10 * k + len(land)}" for k in (1, 2, 3) for land in ("Deutschland", "Polen")]
    total = sum(int(row.rsplit(",", 1)[1]) for row in rows) - 7
    text = "\n".join(["Datum,Land,Umsatz (EUR)", f"{day},Alle Länder,{total}", *rows, "2026-11-03,,-7"])
    assert gl.read_table(file(text)).column("Umsatz (EUR)").values.sum() == total
