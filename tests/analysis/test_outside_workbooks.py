"""Workbooks as invoices and reports have them: number formats of currencies beside lines that are no rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

ROWS: Sequence[Sequence[Any]] = [
    ["Date", "Network", "Cost"],
    ["2026-11-01", "Meta", 10.5],
    ["2026-11-02", "Moloco", 20.25],
]


def _workbook(path: Path, rows: Sequence[Sequence[Any]], form: str) -> Path:
    """Return the path of a workbook of *rows*, all numbers in one number format."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([*row])
    for cells in book.active.iter_rows():
        for cell in cells:
            if isinstance(cell.value, float):
                cell.number_format = form
    book.save(path)
    return path


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "below",
    [
        [[], ["Please pay within 30 days."]],
        [["All amounts are without tax"]],
        [[], ["IBAN DE00 1234"], ["Thank you"]],
        [[], [], ["Seite 1 von 1"]],
    ],
)
@pytest.mark.parametrize("form", ["[$€-407] #,##0.00", '#,##0.00" EUR"', "€#,##0.00"])
def test_lines_below_amounts_with_a_currency_format_are_left_out(tmp_path: Path, below: list[Any], form: str) -> None:
    """The formats of the rows that stay name the currency."""
    path = _workbook(tmp_path / "invoice.xlsx", [*ROWS, *below], form)
    table = gl.read_table(path)
    assert (len(table.rows), table.column("Cost").currency) == (2, "EUR")
    assert outside_data.in_dollars(path, rate={"EUR": 1.1})["spend"].sum() == pytest.approx(30.75 * 1.1)


def test_formats_stay_with_their_rows_around_a_blank_row_and_a_total(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1], [], ROWS[2], ["Total", None, 30.75], [], ["Note", None, None]]
    path = _workbook(tmp_path / "invoice.xlsx", rows, "[$€-407] #,##0.00")
    assert outside_data.in_dollars(path, rate={"EUR": 1.0})["spend"].tolist() == [10.5, 20.25]


@pytest.mark.parametrize("form", ["[$€-413] #,##0", '"€" #,##0', "#,##0 [$EUR]"])
def test_a_plan_with_months_as_headers_is_money_by_its_format(tmp_path: Path, form: str) -> None:
    rows: list[list[Any]] = [
        ["Kanaal", "Land", "2026-10-01", "2026-11-01"],
        ["Meta", "NL", 10.0, 20.0],
        ["Meta", "BE", 5.0, 7.0],
    ]
    table = gl.read_table(_workbook(tmp_path / "plan.xlsx", rows, form))
    (column,) = table.of_role("amount")
    assert (column.currency, column.values.sum()) == ("EUR", 42.0)


def test_numbers_and_dates_stand_among_texts_of_a_sheet(tmp_path: Path) -> None:
    """A number has no decimal mark, and a date no order of day and month: both are read beside texts of either."""
    rows: list[list[Any]] = [
        [datetime(2026, 10, 1), 599.89],
        ["03/10/2026", "332,60 €"],
        [datetime(2026, 10, 15), 1563.6],
        ["25/10/2026", "2 453,07 €"],
    ]
    path = _sheet(tmp_path / "suivi.xlsx", ["Date", "Dépense"], rows)
    table = gl.read_table(path, currency="EUR")
    assert table.starts.dt.strftime("%m-%d").tolist() == ["10-01", "10-03", "10-15", "10-25"]
    assert table.column("Dépense").values.tolist() == [599.89, 332.6, 1563.6, 2453.07]


def test_days_that_a_spreadsheet_may_have_swapped_are_refused(tmp_path: Path) -> None:
    """It takes 03/10 for 10 March, and leaves 25/10 a text."""
    rows: list[list[Any]] = [
        [datetime(2026, 3, 10), 1],
        ["25/10/2026", 2],
        [datetime(2026, 5, 10), 3],
        ["13/10/2026", 4],
    ]
    problem = gl.read_table(_sheet(tmp_path / "swapped.xlsx", ["Date", "Cost (EUR)"], rows)).periods.problem
    assert problem is not None
    assert "written in two ways" in str(problem)


def _sheet(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in (header, *rows):
        book.active.append(list(row))
    book.save(path)
    return path


def test_the_name_of_a_sheet_has_the_currency_and_the_month_of_its_rows(tmp_path: Path) -> None:
    """A workbook has a sheet for each country or month; one whose name is another word says nothing."""
    book, path = openpyxl.Workbook(), tmp_path / "actuals.xlsx"
    book.remove(book.active)
    for name in ("PL (PLN)", "Oktober 2026", "Notes"):
        sheet = book.create_sheet(name)
        for row in (["Network", "Media Cost"], ["Meta", 100.5], ["Moloco", 20]):
            sheet.append(row)
    book.save(path)
    polish, october, notes = (gl.read_table(path, sheet=name) for name in ("PL (PLN)", "Oktober 2026", "Notes"))
    assert [table.column("Media Cost").currency for table in (polish, october, notes)] == ["PLN", None, None]
    assert [table.period for table in (polish, october, notes)] == [None, "period", None]


def _with_sheet(path: Path, title: str, lines: Sequence[Sequence[Any]], header: str = "Cost") -> Path:
    """Return the path of a workbook whose costs have a sheet of *lines* beside them."""
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in [[*ROWS[0][:2], header], *ROWS[1:]]:
        book.active.append([*row])
    beside = book.create_sheet(title)
    for line in lines:
        beside.append([*line])
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("title", "lines", "currency"),
    [
        ("Info", [["Report", "Weekly"], ["Currency", "KRW"], ["Timezone", "UTC"]], "KRW"),
        ("Berichtsdetails", [["Bericht"], [], ["Währung", "CHF"], ["Erstellt am", "02.11.2026"]], "CHF"),
        ("レポート情報", [["期間", "2026-11"], ["通貨", "JPY"]], "JPY"),
        ("Metadata", [["Filters", "Currency: EUR"]], "EUR"),
        ("Info", [["Moneda: MXN"], ["Zona horaria: CST"]], "MXN"),
    ],
)
def test_a_sheet_of_lines_beside_the_table_names_its_currency(
    tmp_path: Path, title: str, lines: Sequence[Sequence[Any]], currency: str
) -> None:
    path = _with_sheet(tmp_path / "export.xlsx", title, lines)
    table = gl.read_table(path, sheet="Data")
    assert table.column("Cost").currency == currency
    assert f"{currency}: a line of the sheet {title}" in str(table)
    other = gl.read_table(path, sheet="Data", currency="USD")
    assert any(f"is in {currency} by a line of the sheet {title}" in note for note in other.notes)


@pytest.mark.parametrize(
    "lines",
    [
        [["Date", "Network", "Currency"], ["2026-11-01", "Meta", "KRW"]],
        [["Network", "Budget EUR"], ["Meta", 100], ["Moloco", 50]],
        [["Currency", "EUR"], ["Second currency", "USD"]],
        [["Comment", "All costs in EUR were checked"]],
        [["Currency", "EUR"], *([f"Note {row}", "x"] for row in range(100))],
    ],
)
def test_another_table_or_two_currencies_beside_the_table_say_nothing(
    tmp_path: Path, lines: Sequence[Sequence[Any]]
) -> None:
    path = _with_sheet(tmp_path / "export.xlsx", "Other", lines)
    assert gl.read_table(path, sheet="Data").column("Cost").currency is None


def test_a_sheet_beside_the_table_that_says_another_currency_is_asked_about(tmp_path: Path) -> None:
    path = _with_sheet(tmp_path / "export.xlsx", "Info", [["Currency", "KRW"]], "Cost (EUR)")
    with pytest.raises(BadQuery, match=r"in EUR by the header .* in KRW by a line of the sheet Info"):
        outside_data.in_dollars(path, sheet="Data", rate=1.1)


def test_a_cell_far_outside_another_sheet_costs_nothing(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(_with_sheet(tmp_path / "export.xlsx", "Info", [["Currency", "KRW"]]))
    book["Info"]["XFD1048576"] = "far"
    book.save(tmp_path / "far.xlsx")
    assert gl.read_table(tmp_path / "far.xlsx", sheet="Data").column("Cost").currency is None
