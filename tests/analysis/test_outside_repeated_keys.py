"""Keys that are written once for several rows: merged cells, pivot tables, lists for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


def _workbook(
    path: Path, rows: Sequence[Sequence[Any]], merged: Sequence[str] = (), hidden: Sequence[int] = ()
) -> Path:
    book = openpyxl.Workbook()
    for cells in rows:
        book.active.append([*cells])
    for span in merged:
        book.active.merge_cells(span)
    for row in hidden:
        book.active.row_dimensions[row].hidden = True
    book.save(path)
    return path


def _sums(table: Any, by: str, amount: str) -> dict[str, float]:
    return {str(key): float(sums) for key, sums in table.frame.groupby(by, observed=True)[amount].sum().items()}


def test_a_merged_cell_is_the_value_of_all_its_rows(tmp_path: Path) -> None:
    """Whatever the column: the workbook says which cells are one."""
    rows: list[list[Any]] = [
        ["Plan de influencers"],
        ["Mes", "Red", "Creador", "Gasto (EUR)"],
        ["2026-10", "YouTube", "Lola", 100],
        [None, None, "Juanjo", 50],
        [None, "TikTok", "Lola", 30],
        [None, None, "Marta", 20],
        ["2026-11", "YouTube", "Lola", 7],
        [None, None, "Juanjo", 3],
    ]
    path = _workbook(tmp_path / "plan.xlsx", rows, ["A3:A6", "B3:B4", "B5:B6", "A7:A8", "B7:B8"])
    table = gl.read_table(path)
    assert _sums(table, "Red", "Gasto (EUR)") == {"TikTok": 50, "YouTube": 160}
    assert table.starts.dt.strftime("%m").tolist() == ["10"] * 4 + ["11"] * 2
    assert "cells of Red in rows 3 to 4, 5 to 6, 7 to 8 are merged and have one value in each row" in table.notes


def test_a_merged_number_is_not_the_number_of_each_of_its_rows(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["Date", "Network", "Cost (USD)"],
        ["2026-11-01", "Meta", 90],
        ["2026-11-02", "Meta", None],
        ["2026-11-03", "Meta", 5],
    ]
    table = gl.read_table(_workbook(tmp_path / "flat.xlsx", rows, ["C2:C3"]))
    assert table.column("Cost (USD)").values.sum() == 95
    note = "cells of Cost (USD) in rows 2 to 3 are merged and have one number, which counts in the first row alone"
    assert note in table.notes


PIVOT = [
    "Region;Land;Netzwerk;Kosten (EUR)",
    "Europa;Frankreich;Meta;10",
    ";;Moloco;20",
    ";Polen;Meta;5",
    ";;Moloco;6",
    "Summe Europa;;;41",
    "Amerika;Brasilien;Meta;7",
    ";;Moloco;9",
    "Summe Amerika;;;16",
    "Gesamt;;;57",
]


def test_a_subtotal_proves_that_blank_keys_are_those_above(file: WriteFile) -> None:
    """The column behind it is laid out the same way."""
    table = gl.read_table(file("\n".join(PIVOT)))
    assert _sums(table, "Region", "Kosten (EUR)") == {"Amerika": 16, "Europa": 41}
    assert _sums(table, "Land", "Kosten (EUR)") == {"Brasilien": 16, "Frankreich": 30, "Polen": 11}
    assert "empty cells of Land have the value above them" in table.notes


def test_blank_keys_without_a_proof_are_asked_about(file: WriteFile) -> None:
    """They may also be rows of which nobody knows the country; both answers are possible."""
    rows = [line.replace("Region", "Bereich") for line in PIVOT if not line.startswith(("Summe", "Gesamt"))]
    path = file("\n".join(rows))
    installs = tidy_frame("new_users", country_code=["FR", "PL", "BR"], new_users=[10, 10, 10])
    table = gl.read_table(path)
    with pytest.warns(UserWarning, match="is empty in rows") as warned:
        assert table.frame["Bereich"].notna().sum() == 2
    assert "Bereich is empty in rows 3, 4, 5, 7 of table.csv below a name" in str(warned[0].message)
    with pytest.raises(BadQuery, match=r"roles=.*'Land': .*'country', 'filled_down': True"):
        gl.join(installs, path, on={"country_code": "Land"}, columns=["Kosten (EUR)"])
    roles = {name: {"role": role, "filled_down": True} for name, role in (("Bereich", "text"), ("Land", "country"))}
    assert _sums(gl.read_table(path, roles=roles), "Land", "Kosten (EUR)")["Frankreich"] == 30
    left = {name: {**said, "filled_down": False} for name, said in roles.items()}
    assert _sums(gl.read_table(path, roles=left), "Land", "Kosten (EUR)")["Frankreich"] == 10


def test_a_blank_network_is_not_the_one_above_it(file: WriteFile) -> None:
    """Players without a network stand beside those of the network above them, in the same country."""
    rows = [
        f"2026-11-0{day},{network},{country},{cost}"
        for day in (1, 2)
        for network, country, cost in (("Meta", "US", 5), ("", "US", 0), ("Moloco", "US", 7), ("", "DE", 0))
    ]
    table = gl.read_table(file("\n".join(["Date,Network,Country,Cost (USD)", *rows])))
    assert table.column("Network").problem is None
    assert table.column("Network").values.isna().sum() == 4


def test_hidden_rows_that_the_totals_leave_out_are_asked_about(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["Réseau", "Pays", "Coût (EUR)"],
        ["Meta", "France", 10],
        [None, "Italie", 20],
        [None, "Espagne", 400],
        ["Total Meta", None, 30],
        ["Moloco", "France", 5],
        [None, "Italie", 6],
        ["Total Moloco", None, 11],
        ["Total général", None, 41],
    ]
    path = _workbook(tmp_path / "campagnes.xlsx", rows, hidden=[4])
    with pytest.raises(BadQuery, match=r"counts row 4 of campagnes\.xlsx, which the sheet hides"):
        outside_data.in_dollars(path, rate={"EUR": 1.0})
    for answer, total in ((["yes"], 41), ([], 441)):
        spent = outside_data.in_dollars(path, rate={"EUR": 1.0}, leave_out={"hidden": answer})
        assert spent["spend"].sum() == total
    seen = gl.read_table(path, leave_out={"hidden": ["yes"]})
    assert _sums(seen, "Réseau", "Coût (EUR)") == {"Meta": 30, "Moloco": 11}


@pytest.mark.parametrize(
    "remark", ["исключено: тест", "виключено", "ausgeschlossen", "已剔除", "집계 제외", "wykluczone"]
)
def test_rows_with_a_remark_that_they_are_excluded_are_asked_about(file: WriteFile, remark: str) -> None:
    rows = ["2026-11-01,Meta,10,", f"2026-11-02,Meta,20,{remark}", "2026-11-03,Meta,30,"]
    with pytest.raises(BadQuery, match="leave_out="):
        outside_data.in_dollars(file("\n".join(["Date,Network,Cost (USD),Status", *rows])))


@pytest.mark.parametrize(
    ("first", "second"), [("окт 2026", "ноя 2026"), ("сен 2026", "окт 2026"), ("лис 2026", "гру 2026")]
)
def test_months_of_three_letters_are_headers_of_months(file: WriteFile, first: str, second: str) -> None:
    table = gl.read_table(file(f"Сеть,{first},{second}\nMeta,10,20\nMoloco,30,45\n"))
    assert (table.period, len(table.rows)) == ("month", 4)
