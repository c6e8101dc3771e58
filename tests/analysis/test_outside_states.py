"""Rows that are no money spent or earned: pending, cancelled, test, forecasts, deposits, by what a column says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery


def written(path: Path, header: str, *rows: str) -> Path:
    """Write a table and return *path*."""
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


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
    ],
)
def test_rows_that_are_not_spent_are_asked_about(tmp_path: Path, header: str, done: str, other: str) -> None:
    """Both steps that the refusal names work, and a file without such rows asks nothing."""
    rows = [f"2026-11-0{day},{'de' if day % 2 else 'us'},{other if day > 4 else done},1{day}" for day in range(1, 7)]
    path = written(tmp_path / "costs.csv", f"Day,Country,{header},Cost (USD)", *rows)
    with pytest.raises(BadQuery, match="counts rows of") as refused:
        outside_data.in_dollars(path)
    for texts, total in (([other], 50), ([], 81)):
        assert f'{header}": {texts!r}}}' in str(refused.value).replace(f"'{header}'", f'"{header}"')
        assert outside_data.in_dollars(path, leave_out={header: texts})["spend"].sum() == total
    said = "no value" if other == "" else repr(other)
    notes = gl.read_table(path, leave_out={header: [other]}).notes
    assert f"rows 6, 7 of costs.csv with {said} in {header} are left out, as leave_out= says" in notes
    alone = written(tmp_path / "done.csv", f"Day,Country,{header},Cost (USD)", *(row for row in rows[:4]))
    assert outside_data.in_dollars(alone)["spend"].sum() == 50


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
    for given, texts in ((frame, [True]), (frame.assign(Test=[7, 8]), [7]), (frame.assign(Test=[7.5, None]), [7.5])):
        table = gl.read_table(given, leave_out={"Test": texts})
        assert outside_data.in_dollars(table)["spend"].tolist() == [6]
