"""Rows that are no money spent or earned: pending, cancelled, test, forecasts, deposits, by what a column says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    ("header", "done", "other"),
    [
        ("Status", "paid", "pending"),
        ("Status", "approved", "Cancelled by client"),
        ("Payment status", "settled", "not paid"),
        ("Zahlungsstatus", "bezahlt", "offen"),
        ("Stato", "pagato", "annullato"),
        ("Statut", "réglé", "en attente"),
        ("Estado", "pagado", "rechazado"),
        ("Situação", "pago", "em aberto"),
        ("Durum", "ödendi", "iptal edildi"),
        ("Статус", "оплачено", "отменён"),
        ("Stan", "zapłacone", "niezapłacone"),
        ("状态", "已付款", "已取消"),
        ("ステータス", "支払済み", "未払い"),
        ("상태", "지급완료", "취소"),
        ("Trạng thái", "đã thanh toán", "chưa thanh toán"),
        ("สถานะ", "ชำระแล้ว", "ยกเลิก"),
        ("الحالة", "مدفوع", "ملغي"),
        ("סטטוס", "שולם", "בוטל"),
        ("Tila", "maksettu", "peruttu"),
        ("Type", "Ad spend", "Top-up"),
        ("Buchungsart", "Werbung", "Einzahlung"),
        ("类型", "消耗", "充值"),
        ("Comment", "creative 3", "estimate"),
        ("Test", "no", "yes"),
        ("is_test", "false", "true"),
        ("is_fraud", "0", "1"),
        ("Storniert", "", "x"),
        ("Paid?", "yes", "no"),
        ("Bezahlt", "ja", ""),
        ("A/F", "A", "F"),
        ("Status", "P", "C"),
        ("Situação", "Emitida", "Substituída por 4440"),
        ("Tip", "Publicitate", "Restituire"),
        ("Type", "charge", "stripe_fee"),
        ("Art", "Media", "Agenturhonorar"),
        ("is_current", "true", "false"),
        ("Include?", "yes", "no"),
        ("Paid on", "2026-11-20", ""),
        ("Bezahlt am", "20.11.2026", ""),
    ],
)
def test_rows_that_are_not_spent_are_asked_about(tmp_path: Path, header: str, done: str, other: str) -> None:
    """Both steps that the refusal names work, and a file without such rows asks nothing."""
    rows = [f"2026-11-0{day},{'de' if day % 2 else 'us'},{other if day > 4 else done},1{day}" for day in range(1, 7)]
    path = written(tmp_path / "costs.csv", f"Day,Country,{header},Cost (USD)", *rows)
    with pytest.raises(BadQuery, match=r"counts rows of|is above 0 in 2 rows of") as refused:
        outside_data.in_dollars(path)
    for texts, total in (([other], 50), ([], 81)):
        assert f'{header}": {texts!r}}}' in str(refused.value).replace(f"'{header}'", f'"{header}"')
        assert outside_data.in_dollars(path, leave_out={header: texts})["spend"].sum() == total
    said = "no value" if other == "" else repr(other)
    notes = gl.read_table(path, leave_out={header: [other]}).notes
    assert f"rows 6, 7 of costs.csv with {said} in {header} are left out, as leave_out= says" in notes
    alone = written(tmp_path / "done.csv", f"Day,Country,{header},Cost (USD)", *(row for row in rows[:4]))
    assert outside_data.in_dollars(alone)["spend"].sum() == 50


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ("Campaign status", ("Active", "Removed")),
        ("Status", ("Paused", "Rejected")),
        ("Status", ("Enabled", "Pending")),
        ("Ad set name", ("Test", "Broad")),
        ("Event name", ("open", "refund")),
        ("Keyword", ("plan", "budget")),
        ("Match type", ("E", "B")),
        ("Gender", ("F", "M")),
        ("Network type", ("Search", "Display")),
        ("Status", ("paid", "paid late")),
        ("Ad group", ("Fee", "Tax")),
        ("Creative", ("Red", "Blue")),
    ],
)
def test_what_tells_no_state_of_a_row_is_not_asked_about(tmp_path: Path, header: str, texts: tuple[str, str]) -> None:
    rows = [f"2026-11-0{day},{texts[day % 2]},1{day}" for day in range(1, 7)]
    path = written(tmp_path / "costs.csv", f"Day,{header},Cost (USD)", *rows)
    assert outside_data.in_dollars(path)["spend"].sum() == 81


def test_all_columns_are_asked_about_at_once(tmp_path: Path) -> None:
    """One step answers for a status, a flag, and what is paid back; a row of no money asks nothing."""
    rows = ["1,done,no,10", "2,refunded,no,20", "3,canceled,no,40", "4,done,yes,80", "5,done,no,160", "6,draft,no,0"]
    path = written(tmp_path / "shop.csv", "Day,Status,Test,Payout (USD)", *(f"2026-11-0{row}" for row in rows))
    column = gl.read_table(path).column("Payout (USD)")
    leave = {"Status": ["canceled", "refunded"], "Test": ["yes"]}
    assert f"leave_out={leave!r} leaves them out, leave_out={ {'Status': [], 'Test': []}!r} counts all" in str(
        column.problem
    )
    assert gl.read_table(path, leave_out=leave).column("Payout (USD)").values.sum() == 170
    roles = {"Payout (USD)": {"role": "income", "negative": {"Status": ["refunded"]}}}
    assert "subtracts 'refunded'" in str(column.problem)
    left = gl.read_table(path, leave_out={"Status": ["canceled"], "Test": ["yes"]}, roles=roles)
    assert (left.column("Payout (USD)").problem, left.column("Payout (USD)").values.sum()) == (None, 150)


def test_what_is_left_out_must_be_there(tmp_path: Path) -> None:
    path = written(tmp_path / "costs.csv", "Day,Status,Cost (USD)", "2026-11-01,paid,1", "2026-11-02,open,2")
    for leave, rule in (
        ({"State": ["open"]}, "is not a column of costs.csv"),
        ({"Status": ["opened"]}, "is in no cell of Status in costs.csv"),
        ({"Status": "open"}, "is one text: name a list"),
    ):
        with pytest.raises(BadQuery, match=rule):
            gl.read_table(path, leave_out=leave)


def test_flags_and_numbers_of_a_frame_can_be_left_out() -> None:
    """A typed column has no texts: its values are named."""
    frame = pd.DataFrame({"Day": ["2026-11-01", "2026-11-02"], "Test": [True, False], "Cost (USD)": [5.0, 6.0]})
    with pytest.raises(BadQuery, match=r"counts rows of 'true' \(Test\)"):
        outside_data.in_dollars(gl.read_table(frame))
    for given, texts in ((frame, [True]), (frame.assign(Test=[7, 8]), [7]), (frame.assign(Test=[7.5, 8.5]), [7.5])):
        table = gl.read_table(given, leave_out={"Test": texts})
        assert outside_data.in_dollars(table)["spend"].tolist() == [6]


def test_what_was_deleted_at_a_time_is_asked_about(tmp_path: Path) -> None:
    """Any value names a row; in a dump of a database none is written as a backslash and N."""
    rows = ["2026-11-01,DE,\\N,10", "2026-11-02,DE,2026-11-03 10:00:00,20", "2026-11-03,DE,\\N,40"]
    path = written(tmp_path / "dump.csv", "day,country,deleted_at,Cost (USD)", *rows)
    with pytest.raises(BadQuery, match=r"counts rows of any value \(deleted_at\), .*leave_out=\{'deleted_at': True\}"):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, leave_out={"deleted_at": True})["spend"].sum() == 50
    assert outside_data.in_dollars(path, leave_out={"deleted_at": []})["spend"].sum() == 70
    assert (
        "row 3 of dump.csv with a value in deleted_at is left out, as leave_out= says"
        in gl.read_table(path, leave_out={"deleted_at": True}).notes
    )


def test_parts_of_the_row_above_are_asked_about(tmp_path: Path) -> None:
    rows = [f"2026-11-0{day},{name},{cost}" for day in (1, 2) for name, cost in (("Meta", 30), ("  herav iOS", 20))]
    path = written(tmp_path / "weeks.csv", "Day,Channel,Cost (USD)", *rows)
    with pytest.raises(BadQuery, match="beside the rows that they are parts of: leave_out="):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, leave_out={"Channel": ["  herav iOS"]})["spend"].sum() == 60
    assert outside_data.in_dollars(path, leave_out={"Channel": []})["spend"].sum() == 100


def test_measures_that_are_left_in_are_asked_about_again(tmp_path: Path) -> None:
    """One measure less leaves two that do not add up."""
    cells = (("Cost", 10), ("Installs", 3), ("Clicks", 50))
    rows = [f"2026-11-0{day},{name},{value}" for day in (1, 2) for name, value in cells]
    path = written(tmp_path / "long.csv", "Date,Metric,Value", *rows)
    said: dict[str, Any] = {"amount": "Value", "currency": "USD", "leave_out": {"Metric": ["Clicks"]}}
    with pytest.raises(BadQuery, match="holds Cost, Installs, by Metric"):
        outside_data.in_dollars(path, **said)
    assert (
        outside_data.in_dollars(path, **{**said, "leave_out": {"Metric": ["Clicks", "Installs"]}})["spend"].sum() == 20
    )


def test_a_sum_says_what_counts_in_doubt(tmp_path: Path) -> None:
    """An amount without a day, and rows that are there twice."""
    rows = [",earlier days,400", "2026-11-01,DE,10", "2026-11-02,DE,20", "2026-11-02,DE,20"]
    path = written(tmp_path / "costs.csv", "Day,Country,Cost (USD)", *rows)
    with pytest.warns(UserWarning, match=r"costs\.csv") as warned:
        assert outside_data.in_dollars(path)["spend"].sum() == 450
    assert [str(warning.message) for warning in warned] == [
        'row 5 of costs.csv has the cells of an earlier row and counts; repeats="skip" leaves it out',
        "row 2 of costs.csv without a day counts: leave_out={'Day': ['']} leaves it out",
    ]
    assert outside_data.in_dollars(path, repeats="skip", leave_out={"Day": [""]})["spend"].sum() == 30


def test_what_was_spent_is_above_zero(tmp_path: Path) -> None:
    """The lines of a bank have their charges below it; the step turns their sign."""
    path = written(tmp_path / "bank.csv", "Country,Betrag (USD)", "DE,-30", "US,-8")
    frame = tidy_frame("new_users", country_code=["DE", "US"], new_users=[10, 4])
    with pytest.raises(BadQuery, match=r"adds up to -38.00, and what was spent is above 0: roles=.*turns the sign"):
        outside_data.cost_per_install(frame, "country_code", spend=path)
    roles = {"Betrag (USD)": {"role": "cost", "scale": -1}}
    assert outside_data.cost_per_install(frame, "country_code", spend=path, roles=roles)["cpi"].tolist() == [3, 2]


def test_a_balance_is_no_amount(tmp_path: Path) -> None:
    path = written(
        tmp_path / "ledger.csv", "Day,Art,Betrag (USD),Saldo (USD)", "2026-11-01,Werbung,5,5", "2026-11-02,Werbung,6,11"
    )
    assert gl.read_table(path).column("Saldo (USD)").role == "stock"
    with pytest.raises(BadQuery, match="is a stock, no amount"):
        outside_data.in_dollars(path, "Saldo (USD)")


def test_codes_of_currencies_may_be_small_letters_and_rates_a_column(tmp_path: Path) -> None:
    """One rate for several currencies is refused; a name of a currency that needs none too."""
    rows = ["2026-11-01,5.5,eur,1.2", "2026-11-02,6.5,pln,0.25"]
    path = written(tmp_path / "stripe.csv", "Date,Cost,Currency,usd_rate", *rows)
    with pytest.raises(BadQuery, match="is one rate for EUR, PLN"):
        outside_data.in_dollars(path, rate=1.0)
    found = outside_data.in_dollars(path, rate={"EUR": "usd_rate", "PLN": "usd_rate"})
    assert found["spend"].tolist() == pytest.approx([6.6, 1.625])
    with pytest.raises(BadQuery, match="is of USD, which need none"):
        outside_data.in_dollars(path, rate={"EUR": 1.2, "PLN": 0.25, "USD": 0.5})


def test_minor_units_are_of_the_currency_of_each_row(tmp_path: Path) -> None:
    rows = ["2026-11-01,1000,USD", "2026-11-02,1000,JPY", "2026-11-03,1000,KWD"]
    path = written(tmp_path / "minor.csv", "Day,spend_minor_units,Currency", *rows)
    column = gl.read_table(path, roles={"spend_minor_units": {"role": "cost"}}).column("spend_minor_units")
    assert (column.problem, column.values.tolist()) == (None, [10, 1000, 1])


def test_roles_stay_beside_an_amount_that_is_named(tmp_path: Path) -> None:
    rows = ["2026-11-01,2026-10-01,7.25", "2026-11-02,2026-10-02,8.25"]
    path = written(tmp_path / "two.csv", "Paid,Service,XYZ", *rows)
    roles = {"Paid": "text", "Service": "day"}
    found = outside_data.in_dollars(path, amount="XYZ", rate=1.0, roles=roles)
    assert found["timestamp"].dt.month.tolist() == [10, 10]


@pytest.mark.parametrize("header", ["Kampanya bütçesi türü", "Tipo de presupuesto de la campaña", "Ad network"])
def test_a_word_of_totals_beside_whole_rows_is_no_total(tmp_path: Path, header: str) -> None:
    """Numbers that are the sums of no rows count."""
    rows = [
        f"2026-11-0{day},{name},{kind},{cost + day * day}"
        for day in range(1, 7)
        for name, kind, cost in (("A", "Daily", 10), ("B", "Total", 20), ("C", "Daily", 35))
    ]
    path = written(tmp_path / "meta.csv", f"Day,Campaign,{header},Cost (USD)", *rows)
    column = gl.read_table(path).column("Cost (USD)")
    assert (column.problem, column.values.sum()) == (None, 65 * 6 + 3 * 91)


@pytest.mark.parametrize("header", ["Week ending", "Week ending (Sunday)", "Tydzień do", "Woche bis", "To"])
def test_a_week_is_named_by_its_last_day(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "weeks.csv", f"{header},Cost (USD)", "2026-11-08,10", "2026-11-15,20", "2026-11-22,30")
    table = gl.read_table(path)
    assert (table.period, f"{table.starts[0]:%m-%d}", f"{table.ends[0]:%m-%d}") == (
        "week from Monday",
        "11-02",
        "11-09",
    )
    frame = tidy_frame("new_users", timestamp=[f"2026-11-{day:02}" for day in range(2, 23)], new_users=[1] * 21)
    assert gl.join(gl.in_periods(frame, table), table).frame["new_users"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("header", ["Event", "Goal", "Conversion action", "事件"])
def test_counts_of_events_by_a_column_of_texts_are_not_added_up(tmp_path: Path, header: str) -> None:
    rows = [f"2026-11-0{day},{event},{count}" for day in (1, 2) for event, count in (("Install", 3), ("Level 10", 2))]
    path = written(tmp_path / "events.csv", f"Day,{header},Conversions", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-11-01", "2026-11-02"], new_users=[5, 6])
    with pytest.raises(BadQuery, match="counts different things by"):
        gl.join(frame, path, columns=["Conversions"])


def test_forecasts_in_brackets_are_no_amounts_of_days(tmp_path: Path) -> None:
    """As headers they are left out with a note, as days of rows they are asked about."""
    path = written(
        tmp_path / "wide.csv", "媒体,2026年9月,2026年10月,2026年11月(見込)", "Meta,10,20,400", "Google,1,2,40"
    )
    table = gl.read_table(path, roles={"value": "cost"}, currency="JPY")
    assert outside_data.in_dollars(table, rate=0.0066)["spend"].sum() == pytest.approx(33 * 0.0066)
    assert "2026年11月(見込) left out: no amounts of days that were, by their brackets" in table.notes
    rows = ["2026-11-01,10", "2026-11-02,20", "2026-11-03 (plan),400"]
    path = written(tmp_path / "long.csv", "Day,Cost (USD)", *rows)
    with pytest.raises(BadQuery, match=r"counts rows of '2026-11-03 \(plan\)' \(Day\)"):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, leave_out={"Day": ["2026-11-03 (plan)"]})["spend"].sum() == 30


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("debit", "credit"), [("Soll", "Haben"), ("Debit", "Credit"), ("Debe", "Haber"), ("借方", "贷方")]
)
def test_one_side_of_a_ledger_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debit: str, credit: str
) -> None:
    """The code of the refusal gives the difference, and the other step one side."""
    monkeypatch.chdir(tmp_path)
    rows = ["2026-11-01,1000,", "2026-11-02,500,", "2026-11-03,,200"]
    path = written(tmp_path / "ledger.csv", f"Day,{debit} (USD),{credit} (USD)", *rows)
    with pytest.raises(BadQuery, match="is one side of a ledger") as refused:
        outside_data.in_dollars(path, f"{debit} (USD)")
    code = str(refused.value).partition(f"{credit} (USD): ")[2].partition("; gl.read_table(frame)")[0]
    names: dict[str, Any] = {"gl": gl}
    with pytest.warns(UserWarning, match="is one side of a ledger"):
        exec(code, names)
    assert outside_data.in_dollars(gl.read_table(names["frame"]), "net", currency="USD")["spend"].sum() == 1300
    told = {f"{debit} (USD)": "cost"}
    assert outside_data.in_dollars(path, f"{debit} (USD)", roles=told)["spend"].sum() == 1500


def test_a_bill_of_units_and_a_price_says_to_multiply(tmp_path: Path) -> None:
    rows = ["2026-11-01,3,1,2.5", "2026-11-02,5,0,3"]
    path = written(tmp_path / "bill.csv", "Day,Installs accepted,Rejected,CPI (USD)", *rows)
    with pytest.raises(BadQuery, match=r"CPI \(USD\) is what one costs: frame = gl.read_table"):
        outside_data.in_dollars(path)


@pytest.mark.parametrize(("line", "scale"), [("단위: 원", 1), ("単位:円", 1), ("Unit: JPY", 1)])
def test_a_line_of_units_names_the_currency(tmp_path: Path, line: str, scale: int) -> None:
    path = written(tmp_path / "units.csv", line, "", "Day,Cost", "2026-11-01,1000", "2026-11-02,2000")
    assert gl.read_table(path).column("Cost").currency == ("KRW" if "원" in line else "JPY")
    assert gl.read_table(path).column("Cost").values.sum() == 3000 * scale


@pytest.mark.parametrize("header", ["KDV %20 (TL)", "VAT 20% (TL)", "Ajans Hizmet Bedeli %10 (TL)"])
def test_the_rate_of_a_tax_is_no_rate_of_its_amount(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "tax.csv", f"Gün,{header}", "2026-11-01,1000.50", "2026-11-02,2000.50")
    assert gl.read_table(path).column(header).role in ("amount", "number")


def test_a_total_that_its_rows_do_not_add_up_to_is_told(tmp_path: Path) -> None:
    """Such as of a sheet with hidden, struck or forgotten rows; an average is no total."""
    path = written(tmp_path / "sheet.csv", "Country,Cost (USD)", "DE,10", "US,20", "FR,40", "Total,50")
    said = "Cost (USD): the total of row 5 of sheet.csv is 50, its rows add up to 70"
    assert said in gl.read_table(path).notes
    with pytest.warns(UserWarning, match="its rows add up to 70"):
        assert outside_data.in_dollars(path)["spend"].sum() == 70
    for last in ("Total,70", "Total,", "Average,23.33"):
        notes = gl.read_table(written(path, "Country,Cost (USD)", "DE,10", "US,20", "FR,40", last)).notes
        assert not any("add up to" in note for note in notes)


def test_an_optional_end_below_empty_cells_is_read(tmp_path: Path) -> None:
    """A merged cell is filled from above, where there is one."""
    rows = ["US,2026-11-01,,5", "DE,2026-11-02,2026-11-03,6", "FR,2026-11-04,,7"]
    path = written(tmp_path / "subs.csv", "country,start_time,end_time,Cost (USD)", *rows)
    assert gl.read_table(path).column("Cost (USD)").values.sum() == 18


def test_small_amounts_are_no_sums_of_each_other(tmp_path: Path) -> None:
    """Each impression of a file of impressions counts, however little it earned."""
    draw = np.random.default_rng(5)
    rows = [f"2026-11-14 10:{place:02},u{place},{draw.gamma(2, 0.002):.6f}" for place in range(60)]
    table = gl.read_table(written(tmp_path / "ilrd.csv", "Date,IDFV,Revenue (USD)", *rows))
    assert len(table.rows) == 60


def test_the_world_beside_its_countries_counts_once(tmp_path: Path) -> None:
    costs = (("WW", 30), ("US", 20), ("DE", 10))
    rows = [f"2026-11-0{day},{code},{cost * day}" for day in (1, 2, 3) for code, cost in costs]
    table = gl.read_table(written(tmp_path / "tower.csv", "Day,Country,Cost (USD)", *rows))
    assert table.column("Cost (USD)").values.sum() == 180


@pytest.mark.parametrize("header", ["_airbyte_extracted_at", "loaded_at", "synced_at"])
def test_the_time_of_a_copy_is_no_day_of_its_rows(header: str) -> None:
    days = pd.to_datetime(["2026-10-01", "2026-10-02"])
    loaded = pd.to_datetime(["2026-10-23 04:12"] * 2)
    frame = pd.DataFrame({header: loaded, "date_start": days, "date_stop": days, "spend_usd": [5.0, 6.0]})
    assert gl.read_table(frame, currency="USD").starts.dt.day.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("type_of", "rows", "total"),
    [
        ("General Payment", ["Bank Deposit to PP Account,5000", "General Payment,-200", "Payment Refund,30"], -170),
        ("Owner", ["Dan,5", "Eva,6"], 11),
    ],
)
def test_deposits_are_asked_about_and_people_are_not(tmp_path: Path, type_of: str, rows: list[str], total: int) -> None:
    """A refund above 0 beside payments below it has its sign."""
    header = "Owner" if type_of == "Owner" else "Type"
    lines = [f"2026-11-0{day},{row}" for day, row in enumerate(rows, 1)]
    path = written(tmp_path / "paypal.csv", f"Day,{header},Amount (USD)", *lines)
    problem = gl.read_table(path).column("Amount (USD)").problem
    assert (problem is None) == (type_of == "Owner")
    assert "subtracts" not in str(problem)
    leave = {} if type_of == "Owner" else {"Type": ["Bank Deposit to PP Account"]}
    assert gl.read_table(path, leave_out=leave).column("Amount (USD)").values.sum() == total


def test_rates_of_a_month_for_one_pound_are_turned(tmp_path: Path) -> None:
    """Dollars for one euro follow from both rows, and hold on each day of the month."""
    rows = ["EUR,1.15,2026-11-01,2026-11-30", "USD,1.3,2026-11-01,2026-11-30", "JPY,195,2026-11-01,2026-11-30"]
    rates = written(tmp_path / "hmrc.csv", "Currency Code,Currency Units per £1,Start date,End date", *rows)
    costs = written(tmp_path / "costs.csv", "Day,Cost (EUR)", "2026-11-05,115", "2026-11-29,230")
    assert outside_data.in_dollars(costs, rate=rates)["spend"].tolist() == pytest.approx([130, 260])
    pounds = written(tmp_path / "pounds.csv", "Day,Cost (GBP)", "2026-11-15,100")
    assert outside_data.in_dollars(pounds, rate=rates)["spend"].tolist() == pytest.approx([130])


def test_rows_that_are_struck_through_are_asked_about(tmp_path: Path) -> None:
    """Both steps work; a struck cell among others is none, and a sheet without them has no column of them."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["Day", "Network", "Cost (USD)"], *([f"2026-11-0{day}", "Meta", 10 * day] for day in range(1, 6))]:
        book.active.append(row)
    book.active["C2"].font = openpyxl.styles.Font(strike=True)
    book.save(tmp_path / "plain.xlsx")
    for cell in (*book.active[3], *book.active[5][:2]):
        cell.font = openpyxl.styles.Font(strike=True)
    book.save(tmp_path / "struck.xlsx")
    assert outside_data.in_dollars(tmp_path / "plain.xlsx")["spend"].sum() == 150
    assert "struck through" not in gl.read_table(tmp_path / "plain.xlsx").in_words()
    with pytest.raises(BadQuery, match=r"counts rows of 'yes' \(struck through\)"):
        outside_data.in_dollars(tmp_path / "struck.xlsx")
    for texts, total in ((["yes"], 90), ([], 150)):
        left = outside_data.in_dollars(tmp_path / "struck.xlsx", leave_out={"struck through": texts})
        assert (left["spend"].sum(), "struck through" in left) == (total, False)
    assert "rows 3, 5 of struck.xlsx are struck through in the sheet" in gl.read_table(tmp_path / "struck.xlsx").notes


@pytest.mark.parametrize(
    "header",
    [
        "Товар,Сумма (USD),Комиссия (USD),К выплате (USD)",
        "Order ID,Amount (USD),Commission (USD),Refund",
        "SKU,Amount (USD),Product,X",
    ],
)
def test_what_was_sold_is_no_cost(tmp_path: Path, header: str) -> None:
    """Nothing is chosen of a list of sales; an amount that is named is taken."""
    rows = [f"2026-11-0{day},Gems {day},{day}0,{day},{day * 9}" for day in range(1, 6)]
    path = written(tmp_path / "store.csv", f"Day,{header}", *rows)
    amount = next(name for name in header.split(",") if name.startswith(("Amount", "Сумма")))
    with pytest.raises(BadQuery, match="looks like sales by") as refused:
        outside_data.in_dollars(path)
    assert f'amount="{amount}"' in str(refused.value)
    assert outside_data.in_dollars(path, amount)["spend"].sum() == 150


def test_a_bill_of_an_agency_is_a_cost(tmp_path: Path) -> None:
    rows = [f"2026-11-0{day},Harbor,{day}0,{day}" for day in range(1, 6)]
    path = written(tmp_path / "bill.csv", "Day,Product,Amount (USD),Commission (USD)", *rows)
    assert outside_data.in_dollars(path)["spend"].sum() == 150


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("header", ["कुल (₹)", "Всего за день, ₽", "Razem (PLN)", "Sommer € i alt"])
def test_a_number_with_a_currency_in_its_header_is_an_amount(tmp_path: Path, header: str) -> None:
    """So a rate converts it; what it does not convert is refused."""
    quoted = f'"{header}"'
    path = written(tmp_path / "kul.csv", f"Day,{quoted}", "2026-11-01,10", "2026-11-02,20")
    column = gl.read_table(path).column(header)
    assert (column.role, column.currency is not None) == ("amount", True)
    frame = tidy_frame("new_users", timestamp=["2026-11-01", "2026-11-02"], new_users=[5, 6])
    joined = gl.join(frame, path, columns=[header], rate={str(column.currency): column_rate(column.currency)}).frame
    assert joined[header].sum() == pytest.approx(30 * column_rate(column.currency))
    path = written(tmp_path / "x.csv", "Day,X", "2026-11-01,10", "2026-11-02,20")
    with pytest.raises(BadQuery, match=r"converts nothing: no column of x\.csv is money"):
        gl.join(frame, path, columns=["X"], rate={"EUR": 1.1})
    path = written(tmp_path / "y.csv", "Day,X,Cost (EUR)", "2026-11-01,10,5", "2026-11-02,20,6")
    with pytest.raises(BadQuery, match="which rate= does not convert"):
        gl.join(frame, path, columns=["X"], rate={"EUR": 1.1})


def column_rate(currency: str | None) -> float:
    """Return a rate of US dollars near the usual one."""
    return {"INR": 0.012, "RUB": 0.011, "PLN": 0.27, "EUR": 1.1}[str(currency)]


@pytest.mark.parametrize(
    ("proforma", "unpaid", "cancelled"),
    [
        ("Pro forma invoice", "Unpaid", "Cancelled"),
        ("Facture proforma", "Non payée", "Annulée"),
        ("Fattura proforma", "Da pagare", "Annullata"),
        ("Proforma-Rechnung", "Überfällig", "Storniert"),
        ("Díjbekérő", "Fizetetlen", "Törölve"),
        ("プロフォーマ", "未払い", "キャンセル"),
        ("Счёт-проформа", "Не оплачен", "Отменён"),
    ],
)
def test_what_is_only_not_paid_is_offered_apart_from_what_is_not_spent(
    file: Callable[..., Path], proforma: str, unpaid: str, cancelled: str
) -> None:
    """The first answer counts the invoice that is not paid yet, and leaves out what its invoice bills again."""
    rows = [
        f"2026-10-01,{proforma},Meta,100,Paid",
        "2026-10-09,Invoice,Meta,100,Paid",
        f"2026-10-12,Invoice,Moloco,40,{unpaid}",
        f"2026-10-14,Invoice,Unity,7,{cancelled}",
    ]
    path = file("\n".join(["Date,Document type,Vendor,Net cost (EUR),Payment status", *rows]))
    with pytest.raises(BadQuery, match="counts what is only not paid yet") as refused:
        outside_data.in_dollars(path, rate={"EUR": 1.0})
    first = re.search(r"leave_out=(\{.*?\}) counts what", refused.value.rule)
    assert first is not None
    left = eval(first[1])
    assert left == {"Document type": [proforma], "Payment status": [cancelled]}
    assert outside_data.in_dollars(path, rate={"EUR": 1.0}, leave_out=left)["spend"].sum() == 140
