"""What is paid counts, a total is of its own currency, days of another zone are said, and 100 JPY may be a cost."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from support.outside_files import written
from support.tidy_frames import tidy_frame


@pytest.mark.parametrize(
    ("header", "paid", "others"),
    [
        ("Status", "Pago", ("Cancelado", "Pendente", "Agendado")),
        ("Situação", "Pago", ("Atrasado", "Pendente", "Permuta")),
        ("Zahlungsstatus", "Bezahlt", ("Storniert", "Offen", "Geplant")),
        ("Статус", "Оплачено", ("Отменено", "Ожидает оплаты", "Запланировано")),
        ("Estado", "Pagado", ("Anulado", "Pendiente", "Previsto")),
        ("Status", "Paid", ("Cancelled", "Pending", "Planned")),
    ],
)
def test_what_is_paid_is_never_asked_about(
    tmp_path: Path, header: str, paid: str, others: tuple[str, str, str]
) -> None:
    states = (paid, *others, paid)
    rows = [f"2026-10-0{day},{day * 10}.5,{state}" for day, state in enumerate(states, start=1)]
    path = written(tmp_path / "fees.csv", f"Date,Fee (EUR),{header}", *rows)
    problem = gl.read_table(path).column("Fee (EUR)").problem
    assert problem is not None
    assert repr(paid) not in problem.rule
    assert repr(others[0]) in problem.rule or repr(others[1]) in problem.rule


def test_a_payment_among_kinds_of_rows_is_only_moved(tmp_path: Path) -> None:
    rows = [f"2026-10-0{day},{day * 10}.5,{kind}" for day, kind in enumerate(("Cargo", "Pago", "Cargo"), start=1)]
    path = written(tmp_path / "account.csv", "Fecha,Importe (EUR),Tipo", *rows)
    problem = gl.read_table(path).column("Importe (EUR)").problem
    assert problem is not None
    assert "'Pago'" in problem.rule


@pytest.mark.parametrize(
    ("amounts", "total", "said"),
    [
        (("€ 10.50", "$ 20.00", "€ 5.25"), "€ 15.75", None),  # the rows of its currency alone
        (("€ 10.50", "$ 20.00", "€ 5.25"), "€ 16.75", "16.75, its rows in € add up to 15.75"),
        (("€ 10.50", "$ 20.00", "€ 5.25"), "35.75", None),  # of no currency: nothing is added up
        (("€ 10.50", "€ 20.00", "€ 5.25"), "€ 36.75", "36.75, its rows add up to 35.75"),
    ],
)
def test_a_total_is_checked_in_its_currency(
    tmp_path: Path, amounts: tuple[str, ...], total: str, said: str | None
) -> None:
    rows = [f"{name},2026-10-0{day},{amount}" for day, (name, amount) in enumerate(zip("ABC", amounts, strict=True), 1)]
    path = written(tmp_path / "fees.csv", "Creator,Date,Fee", *rows, f"Total,,{total}")
    notes = [note for note in gl.read_table(path).notes if "the total of" in note]
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]


def test_a_total_beside_codes_of_several_currencies_is_not_compared(tmp_path: Path) -> None:
    rows = ["A,2026-10-01,10.50,EUR", "B,2026-10-02,20.00,USD", "C,2026-10-03,5.25,EUR"]
    for total, said in (("Total,,36.75,", 0), ("Total,,15.75,EUR", 0), ("Total,,16.75,EUR", 1)):
        path = written(tmp_path / "fees.csv", "Creator,Date,Fee,Currency", *rows, total)
        notes = [note for note in gl.read_table(path).notes if "the total of" in note]
        assert len(notes) == said
        assert not any("35.75" in note for note in notes)


def test_days_of_a_vendor_in_another_zone_are_said_in_notes_and_joins(tmp_path: Path) -> None:
    header = (
        "Description,Transaction Date,Transaction Time,Tax Type,Transaction Type,Refund Type,Product Title,Product id,"
        "Product Type,Sku Id,Hardware,Buyer Country,Buyer State,Buyer Postal Code,Buyer Currency,"
        "Amount (Buyer Currency),Currency Conversion Rate,Merchant Currency,Amount (Merchant Currency)"
    )
    rows = [
        f'GPA.{day},"Oct {day}, 2026",10:0{day}:00 AM PDT,,Charge,,Gems (Bubble Farm),bubble.farm,inapp,gems,px,SE,,,'
        f"SEK,{day}9.00,0.09,EUR,{day}.50"
        for day in (1, 2, 3)
    ]
    path = written(tmp_path / "PlayApps_202610.csv", header, *rows)
    table = gl.read_table(path)
    assert table.zone == "America/Los_Angeles"
    said = "days are counted in America/Los_Angeles, and a frame has days of UTC"
    assert any(said in note for note in table.notes)
    frame = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[5])
    report = gl.join(frame, table, columns=["Amount (Merchant Currency)"]).report
    assert any(said in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("text", "name"),
    [("Google AdMob", "AdMob"), ("Meta Audience Network", "Meta"), ("Facebook Audience Network", "Meta Ads")],
)
@pytest.mark.parametrize("key", ["install_publisher", "ilrd_network_name"])
def test_networks_of_mediation_have_one_name(tmp_path: Path, text: str, name: str, key: str) -> None:
    path = written(tmp_path / "levelplay.csv", "Date,Network,Revenue (USD)", f"2026-10-01,{text},5.5")
    frame = tidy_frame("new_users", timestamp=["2026-10-01"], **{key: [name]}, new_users=[5])
    assert gl.join(frame, path, columns=["Revenue (USD)"]).frame["Revenue (USD)"].tolist() == [5.5]


@pytest.mark.parametrize("header", ["Cost", "Ausgaben", "費用"])
def test_round_costs_in_several_currencies_are_no_quotes(tmp_path: Path, header: str) -> None:
    rows = ["2026-10-01,100 JPY", "2026-10-02,100 EUR", "2026-10-03,100 PLN"]
    path = written(tmp_path / "cost.csv", f"Date,{header}", *rows)
    column = gl.read_table(path).column(header)
    assert column.role == "amount"
    assert column.currencies is not None
    assert column.currencies.tolist() == ["JPY", "EUR", "PLN"]


def test_units_of_a_bank_are_still_quotes(tmp_path: Path) -> None:
    rows = ["2026-10-01,100 JPY,0.57", "2026-10-01,1 EUR,1.16", "2026-10-02,100 JPY,0.58", "2026-10-02,1 EUR,1.17"]
    path = written(tmp_path / "rates.csv", "Date,Currency unit,Rate", *rows)
    assert gl.read_table(path).column("Currency unit").role in ("text", "currency")
