"""A question about the currency of one column is answered for it alone, and no answer relabels a column of codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis.outside_data import in_dollars
from support.outside_files import written
from support.tidy_frames import tidy_frame

FRAME = tidy_frame("new_users", timestamp=["2026-10-01", "2026-10-02"], new_users=[5, 7])
ROWS = (
    "2026-10-01,CLP,80,120000,0.00082,98.40,1.23",
    "2026-10-01,GBP,20,31.50,1,31.50,1.58",
    "2026-10-01,PEN,40,260.00,0.2015,52.39,1.31",
    "2026-10-02,CLP,60,84000,0.00082,68.88,1.15",
    "2026-10-02,GBP,10,12.25,1,12.25,1.23",
    "2026-10-02,GBP,12,17.75,1,17.75,1.48",
    "2026-10-02,PEN,30,210.00,0.2015,42.32,1.41",
)


@pytest.fixture(params=["es", "de"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The sales of a store in the currencies of buyers and in pounds, with a mean of one of both."""
    head = {
        "es": "Fecha,Moneda,Usuarios de pago,Importe,Tipo de cambio (a GBP),Importe (GBP),ARPPU (GBP)",
        "de": "Datum,Währung,Zahlende Nutzer,Betrag,Wechselkurs (zu GBP),Betrag (GBP),ARPPU (GBP)",
    }
    return written(tmp_path / "ventas.csv", head[request.param], *ROWS)


def answers(path: Path) -> list[str]:
    return re.findall(r'currency=(\{"[^"]+": "[^"]+"\})', str(gl.read_table(path).column("ARPPU (GBP)").money_problem))


def test_the_question_offers_an_answer_for_its_column(path: Path) -> None:
    codes = gl.read_table(path).columns[1].name
    assert answers(path) == [f'{{"ARPPU (GBP)": "{codes}"}}', '{"ARPPU (GBP)": "GBP"}']
    table = gl.read_table(path, currency={"ARPPU (GBP)": "GBP"})
    assert table.columns[6].currency == "GBP"
    assert table.columns[3].currencies is not None
    assert sorted(table.columns[3].currencies.unique()) == ["CLP", "GBP", "PEN"]
    assert table.columns[5].currency == "GBP"


def test_one_currency_for_the_file_leaves_the_column_of_codes(path: Path) -> None:
    table = gl.read_table(path, currency="GBP")
    assert table.columns[6].currency == "GBP"
    assert table.columns[3].currencies is not None
    assert sorted(table.columns[3].currencies.unique()) == ["CLP", "GBP", "PEN"]


def test_a_currency_against_a_column_of_codes_is_said(tmp_path: Path) -> None:
    rows = [",".join(row.split(",")[:4]) for row in ROWS]
    path = written(tmp_path / "verkoop.csv", "Datum,Valuta,Betalende gebruikers,Omzet", *rows)
    table = gl.read_table(path, currency="GBP")
    said = r"Omzet is taken in GBP, as currency= says, and is in CLP, GBP, PEN by the column of codes \(Valuta\)"
    assert any(re.search(said, note) and 'currency={"Omzet": "Valuta"}' in note for note in table.notes)
    warned = gl.join(FRAME, table, columns=["Omzet"]).report.warnings
    assert any(re.search(said, warning) for warning in warned)
    with pytest.warns(UserWarning, match=said):
        in_dollars(table, "Omzet", rate=1.3)
    right = gl.read_table(path, currency={"Omzet": "Valuta"})
    assert right.column("Omzet").currencies is not None
    assert not any("is taken in" in note for note in right.notes)
