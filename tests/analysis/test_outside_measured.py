"""Counts in units that differ by row are no money and are not added up; hours of work are no hours of a day."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame

CLOUD = (
    "Day,Meter,Quantity consumed,Measure unit,Unit rate,Charge",
    "2026-10-01,VM size B2,120.5,1 Hour,0.100000,12.05",
    "2026-10-01,Blob store,800.25,GB/Month,0.020000,16.005",
    "2026-10-02,VM size B2,96.25,1 Hour,0.100000,9.625",
    "2026-10-02,Queue calls,5000,10K Operations,0.005000,25",
)


def test_a_quantity_in_several_units_is_a_count_also_where_the_currency_is_known(tmp_path: Path) -> None:
    path = written(tmp_path / "azure.csv", *CLOUD)
    table = gl.read_table(path, currency="EUR", roles={"Charge": "cost"})
    assert table.in_words()["Quantity consumed"] == "count, of several things by Measure unit"
    assert str(table.column("Unit rate").weight) == "Charge / Quantity consumed"
    frame = tidy_frame("new_users", timestamp=["2026-10-01", "2026-10-02"], new_users=[5, 6])
    joined = gl.join(frame, path, currency="EUR", roles={"Charge": "cost"}).frame
    assert joined["Charge"].tolist() == [28.055, 34.625]
    assert "Quantity consumed" not in joined
    with pytest.raises(BadQuery, match="counts different things by Measure unit, '1 Hour' and 'GB/Month'"):
        gl.join(frame, path, currency="EUR", columns=["Quantity consumed"])


@pytest.mark.parametrize(
    ("amount", "unit", "texts"),
    [
        ("Usage amount", "Usage unit", ("hour", "gibibyte month", "request")),
        ("line_usage_amount", "pricing_unit", ("Hrs", "GB-Mo", "ReadRequestUnits")),
        ("Menge", "Einheit", ("Stunde", "GB", "Stk")),
        ("Cantidad", "Unidad", ("hora", "GB", "mes")),
        ("用量", "单位", ("小时", "GB", "次")),
    ],
)
def test_amounts_of_usage_are_no_money(tmp_path: Path, amount: str, unit: str, texts: tuple[str, ...]) -> None:
    rows = [
        f"2026-10-0{day},{number},{text},{day}"
        for day, (number, text) in enumerate(zip((3.5, 7, 8), texts, strict=True), 1)
    ]
    path = written(tmp_path / "bill.csv", f"Date,{amount},{unit},Cost (USD)", *rows)
    table = gl.read_table(path, currency="USD")
    assert (table.column(amount).role, table.column(amount).kinds) == ("count", unit)
    assert table.column(amount).values.tolist() == [3.5, 7.0, 8.0]
    stated = gl.read_table(path, roles={amount: "count"})
    assert stated.column(amount).kinds == unit


def test_an_amount_beside_names_stays_money(tmp_path: Path) -> None:
    """The names of business units are no units of numbers, and the money behind a unit is the only money."""
    names = written(tmp_path / "teams.csv", "Business unit,Amount", "Growth,20", "Brand,30", "Growth,12")
    behind = written(tmp_path / "hours.csv", "Team,Unit,Amount", "A,hour,20", "B,hour,30", "C,month,12")
    for path in (names, behind):
        assert gl.read_table(path, currency="EUR").in_words()["Amount"] == "amount, EUR"


@pytest.mark.parametrize(
    ("header", "numbers", "role"),
    [
        ("Hours", (38.5, 40, 12), "count"),
        ("Hours", (8, 7, 8), "count"),
        ("Stunden", (8, 7, 8), "count"),
        ("Hour", (8, 7, 23), "hour"),
        ("Hour", (8.5, 70, 23), "number"),
        ("Hours", tuple(range(24)), "hour"),
    ],
)
def test_hours_of_work_are_counted(tmp_path: Path, header: str, numbers: tuple[float, ...], role: str) -> None:
    rows = [f"2026-10-05,{number},{number * 3}" for number in numbers]
    table = gl.read_table(written(tmp_path / "hours.csv", f"Date,{header},Cost (EUR)", *rows))
    assert table.column(header).role == role
