"""Two tables one below the other: never numbers of both, and a step that reads one of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

FIRST = ["Date,Spend (USD),Installs", "2026-11-01,10.5,3", "2026-11-02,11.5,4", "2026-11-03,12.5,5"]
SECONDS = {
    "below a blank line": ["", "Country,Spend (USD),Installs", "US,20.5,7", "DE,14.0,5"],
    "of other measures": ["Campaign,Cost (USD),Clicks", "A,20.5,7", "B,14.0,5"],
    "in another order": ["", "Spend (USD),Installs,Country", "20.5,7,US", "14.0,5,DE"],
    "below a title": ["", "Per network", "Network,Spend (USD),Installs", "Meta,20.5,7", "Google,14.0,5"],
    "with fewer columns": ["", "Country,Spend (USD)", "US,20.5", "DE,14.0"],
    "with more columns": ["", "Campaign,Country,Spend (USD),Clicks", "A,US,20.5,7", "B,DE,14.0,5"],
    "in German": ["", "Kampagne,Kosten (USD),Klicks", "A,20.5,7", "B,14.0,5"],
    "in Japanese": ["", "キャンペーン,費用 (USD),クリック数", "A,20.5,7", "B,14.0,5"],
}


def written(path: Path, lines: list[str]) -> Path:
    """Write a table as text or as a sheet, numbers as numbers, and return *path*."""
    if path.suffix == ".csv":
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return path
    rows = [[*map(_cell, line.split(",")), *[None] * (3 - line.count(","))] for line in lines]
    pd.DataFrame(rows).to_excel(path, header=False, index=False)
    return path


def _cell(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text or None


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("second", SECONDS.values(), ids=SECONDS)
def test_two_tables_are_asked_about_and_each_is_read(tmp_path: Path, second: list[str], suffix: str) -> None:
    lines = [*FIRST, *second]
    path = written(tmp_path / f"two{suffix}", lines)
    header = len(FIRST) + next(place for place, line in enumerate(second) if line.count(",") > 0) + 1
    with pytest.raises(BadQuery, match=rf"header_row=1 reads the first, header_row={header} the second"):
        gl.read_table(path)
    first = outside_data.in_dollars(path, header_row=1)
    assert (len(first), first["spend"].sum()) == (3, 34.5)
    assert any("belong to another table and are left out" in note for note in gl.read_table(path, header_row=1).notes)
    assert outside_data.in_dollars(path, header_row=header)["spend"].tolist() == [20.5, 14.0]


@pytest.mark.parametrize(
    "lines",
    [
        ["Report,Harbor", "Account ID,12345", "Rows,24", "", *FIRST],
        ["Metric,Value", "Spend,34.5", "Installs,12", "", *FIRST],
        ["Spend,34.5", "Installs,12", *FIRST],
        [*FIRST, "Total,34.5,12"],
        [*FIRST, "2026-11-04,n/a,pending"],
        [*FIRST, *FIRST[:1], "2026-11-04,0.5,3"],
    ],
)
def test_lines_above_and_rows_without_numbers_are_no_table(tmp_path: Path, lines: list[str]) -> None:
    table = gl.read_table(written(tmp_path / "one.csv", lines))
    assert [column.name for column in table.columns] == ["Date", "Spend (USD)", "Installs"]
