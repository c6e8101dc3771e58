"""What stands beside the numbers: a quarter among months, a currency in a rate's header, words of two meanings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


@pytest.mark.parametrize(
    ("months", "quarter"),
    [("Okt 2026;Nov 2026;Dez 2026", "Q4 2026"), ("oct.-26;nov.-26;déc.-26", "T4"), ("2026-10;2026-11;2026-12", "Q4")],
)
def test_a_quarter_beside_its_months_is_their_total(file: WriteFile, months: str, quarter: str) -> None:
    rows = ["Budget 2026 (EUR)", f"Netzwerk;{months};{quarter}", "Meta;10;20;35;65", "Moloco;1;2;4;7", "Unity;5;6;7;18"]
    table = gl.read_table(file("\n".join(rows)), header_row=2)
    assert (table.period, len(table.rows)) == ("month", 9)
    assert any(note.startswith(f"{quarter} left out: ") for note in table.notes)


@pytest.mark.parametrize(
    ("title", "concept"), [("广告消耗日报", "cost"), ("売上日報", "income"), ("広告費日報", "cost")]
)
def test_a_title_says_what_the_numbers_of_days_are(file: WriteFile, title: str, concept: str) -> None:
    """A daily report of spend is no day."""
    table = gl.read_table(file(f"{title},,\n,,\n国家,2026-10-01,2026-10-02\n美国,5,7\n日本,8,9\n"), currency="CNY")
    column = table.column("value")
    assert (column.role, column.concept, column.values.sum()) == ("amount", concept, 29)


@pytest.mark.parametrize(
    ("title", "currency"),
    [
        ("Presupuesto 2026 – Real; importes en €", "EUR"),
        ("Gastos 2026, real vs plan; importes en €", "EUR"),
        ("Valores em real brasileiro", "BRL"),
        ("Valores em reais", "BRL"),
        ("Svi iznosi u evrima, iznosi u EUR", "EUR"),
        ("Tutarlar avro cinsindendir", "EUR"),
        ("Všechny částky v EUR", "EUR"),
        ("Бюджет, все суммы в евро", "EUR"),
        ("货币单位：人民币元", "CNY"),
        ("金额单位：新台币元", "TWD"),
        ("통화: 미화", "USD"),
        ("Importes en pesos mexicanos", "MXN"),
        ("All amounts in Swiss francs", "CHF"),
    ],
)
def test_a_line_names_a_currency_or_what_was_spent(file: WriteFile, title: str, currency: str) -> None:
    """Real is what was spent, beside a plan, and a currency only with its country or in the plural."""
    path = file(f'"{title}"\n\nDate,Network,Cost\n2026-10-01,Meta,5\n2026-10-13,Moloco,6\n')
    assert gl.read_table(path).column("Cost").currency == currency


def test_the_header_of_a_rate_names_the_currency_of_the_amount_that_it_is_made_of(file: WriteFile) -> None:
    rows = ["Dzień;Źródło reklam;Przychody;eCPM (zł);Wyświetlenia", "2026-10-01;AdMob;12,50;5,00;2500"]
    rows += ["2026-10-02;AdMob;9,00;4,50;2000", "2026-10-03;Meta;21,00;7,00;3000", "2026-10-04;Meta;3,20;3,20;1000"]
    table = gl.read_table(file("\n".join(rows)))
    assert table.column("Przychody").currency == "PLN"
    left = gl.read_table(file("\n".join(rows).replace("21,00", "24,00")))  # it is not made of it
    assert left.column("Przychody").currency is None


@pytest.mark.parametrize("month", ["Oktober 2026", "2026-10", "Q4 2026"])
def test_a_month_among_days_is_named_with_its_row(file: WriteFile, month: str) -> None:
    rows = [f"{day:02}.10.2026,Deutschland,{day}" for day in range(11, 17)]
    path = file("\n".join(["Datum,Land,Umsatz (EUR)", *rows, f"{month},Österreich,4"]))
    installs = tidy_frame("new_users", timestamp=["2026-10-11", "2026-10-12"], new_users=[10, 20])
    with pytest.raises(BadQuery, match=f"in row 8 of .* most others are days: leave_out=.*{month}") as refused:
        gl.join(installs, path)
    assert refused.value.field == "Datum"
    assert gl.read_table(path, leave_out={"Datum": [month]}).period == "day"


@pytest.mark.parametrize(
    ("header", "debit", "credit"), [("Dr/Cr", "Dr", "Cr"), ("S/H", "S", "H"), ("借/贷", "借", "贷"), ("D/H", "D", "H")]
)
def test_the_sides_of_a_ledger_are_signs(file: WriteFile, header: str, debit: str, credit: str) -> None:
    """The answer that is offered keeps the unit and the currency that were given before."""
    rows = ["(in Lakhs)", "", f"Date,Vendor,Cost,{header}"]
    rows += [f"2026-10-0{k},V{k},{10 * k},{credit if k == 3 else debit}" for k in range(1, 6)]
    path = file("\n".join(rows))
    given = {"Cost": {"role": "cost", "scale": 100000, "currency": "INR"}}
    with pytest.raises(BadQuery, match="counts rows of both sides of a ledger") as refused:
        outside_data.in_dollars(path, rate=1.0, roles=given)
    offered = re.search(r"roles=(.*?\}\}\}) subtracts", refused.value.rule)
    assert offered is not None
    assert outside_data.in_dollars(path, rate=1.0, roles=eval(offered[1]))["spend"].sum() == 90e5


def test_a_note_names_a_unit_and_the_name_of_a_file_a_currency(file: WriteFile) -> None:
    """The first is a witness; the second may be of something else, so that the question names it."""
    rows = "媒体,広告費\nMeta,4998\nMoloco,1595\n"
    assert gl.read_table(file(f"※広告費は円単位（税抜）,\n{rows}")).column("広告費").currency == "JPY"
    problem = gl.read_table(file(rows, "Revenue_Oct-2026_INR.csv")).column("広告費").money_problem
    assert 'currency="INR" if it is the INR in the name of Revenue_Oct-2026_INR.csv' in str(problem)
