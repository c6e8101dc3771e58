"""Headers of two rows: a cell over several columns is part of the names of all of them, and its month their days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import openpyxl
import pytest

import gamelens as gl
from gamelens.analysis.files.header_rows import joined_headers
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

ROWS = [
    ("Land", "Jul 2026", None, "Aug 2026", None, None, "Sep 2026"),
    (None, "Soll", "Ist", "Soll", "Ist†", "Diff", "Soll"),
    ("AT", 10, 11.5, 20, 21.5, 3, 30),
    ("CH", 40, 41.5, 50, 51.5, 6, 60),
    ("PL", 70, 71.5, 80, 81.5, 9, 90),
]


def _workbook(path: Path, rows: Sequence[tuple[object, ...]], *merged: str) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)
    return path


@pytest.mark.parametrize("merged", [("A1:A2", "B1:C1", "D1:F1"), ()])
def test_month_over_columns_is_the_day_of_all_of_them(tmp_path: Path, merged: tuple[str, ...]) -> None:
    table = gl.read_table(_workbook(tmp_path / "plan.xlsx", ROWS, *merged))
    assert [column.name for column in table.columns] == ["Land", "day", "Soll", "Ist", "Ist†", "Diff"]
    frame = table.frame
    found = {
        name: frame.groupby(frame["day"].dt.month)[name].sum().to_dict() for name in ("Soll", "Ist", "Ist†", "Diff")
    }
    assert found == {
        "Soll": {7: 120, 8: 150, 9: 180},
        "Ist": {7: 124.5, 8: 0, 9: 0},
        "Ist†": {7: 0, 8: 154.5, 9: 0},
        "Diff": {7: 0, 8: 18, 9: 0},
    }


def test_amounts_below_a_month_stand_beside_this_month_alone(tmp_path: Path) -> None:
    path = _workbook(tmp_path / "plan.xlsx", ROWS, "B1:C1", "D1:F1")
    months = tidy_frame(
        "new_users",
        timestamp=["2026-07-01", "2026-08-01", "2026-09-01"],
        country_code=["CH"] * 3,
        new_users=[1, 2, 3],
    )
    joined = gl.join(months, path, columns=["Ist", "Soll"], roles={"Ist": "cost", "Soll": "cost"}, currency="EUR")
    assert joined.frame["Soll"].tolist() == [40, 50, 60]
    assert joined.frame["Ist"].fillna(0).tolist() == [41.5, 0, 0]


def test_total_row_is_one_below_every_month(tmp_path: Path) -> None:
    """Also for a month whose amounts do not show it."""
    rows = [*ROWS, ("Summe", 120, 124.5, 150, 154.5, 18, 180)]
    table = gl.read_table(_workbook(tmp_path / "plan.xlsx", rows), roles={"Ist": "cost"}, currency="EUR")
    assert table.frame["Soll"].sum() == 450


@pytest.mark.parametrize(
    ("above", "header", "names"),
    [
        (
            ["", "iOS", "", "Android", ""],
            ["Day", "Spend", "CPI", "Spend", "ROAS"],
            "Day|iOS Spend|iOS CPI|Android Spend|ROAS",
        ),
        (["", "Q1", "", "Q2", ""], ["Land", "Ist", "Ist*", "Ist", "Ist*"], "Land|Q1 Ist|Q1 Ist*|Q2 Ist|Q2 Ist*"),
        (["From", "", "", "To"], ["Day", "Spend", "CPI", "Installs"], "Day|Spend|CPI|Installs"),
    ],
)
def test_a_cell_reaches_as_far_as_equal_names_show(above: list[str], header: list[str], names: str) -> None:
    """Behind the last cell nothing shows how far it reaches but names that are there before."""
    assert joined_headers(header, [above])[0] == names.split("|")


def test_merged_cells_tell_how_far_they_reach() -> None:
    above, header = ["", "Ads", None, "Store", None, None], ["Day", "Spend", "CPI", "Sales", "Fees", "Note"]
    names, used = joined_headers(header, [above], {(0, 1): 2, (0, 3): 4})
    assert names == ["Day", "Ads Spend", "Ads CPI", "Store Sales", "Store Fees", "Note"]
    assert used == 1


def test_merged_title_is_part_of_no_name() -> None:
    header = ["Day", "Spend", "CPI", "Sales"]
    assert joined_headers(header, [["Report of the team", None, None, "v2"]], {(0, 0): 2}) == (header, 0)


def test_measures_beside_months_are_columns(file: WriteFile) -> None:
    text = "Land,Spend Jul 2026 (USD),CPI Jul 2026,Aug 2026 Spend (USD),Aug 2026 CPI\nAT,10,2,20,4\nCH,30,6,40,8\n"
    table = gl.read_table(file(text))
    assert [column.name for column in table.columns] == ["Land", "day", "Spend (USD)", "CPI"]
    assert table.frame.groupby(table.frame["day"].dt.month)["Spend (USD)"].sum().to_dict() == {7: 40, 8: 60}
