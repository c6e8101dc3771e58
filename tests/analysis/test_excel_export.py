"""Excel files: real dates, typed cells, text that never runs, receipts, and all of it or nothing."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelens as gl
from gamelens.analysis.files.csv_safety import unguarded
from gamelens.analysis.files.table_reader import read_grid
from gamelens.errors import BadQuery
from support.hypothesis_profiles import examples
from support.tidy_frames import tidy_frame


def sheet(frame: pd.DataFrame, folder: Path) -> list[tuple[Any, ...]]:
    """Return the cells of the sheet that *frame* becomes."""
    book = openpyxl.load_workbook(gl.export_excel({"data": frame}, folder / "x.xlsx"))
    return [tuple(cell for cell in row) for row in book["data"].iter_rows()]


def values(frame: pd.DataFrame, folder: Path) -> list[tuple[Any, ...]]:
    """Return the values of the rows below the header."""
    return [tuple(cell.value for cell in row) for row in sheet(frame, folder)[1:]]


def test_days_are_dates(tmp_path: Path) -> None:
    """A column of days is dates that a spreadsheet sorts and shows without a time."""
    days = pd.to_datetime(pd.Series(["2026-11-01", None]), utc=True)
    (cell, _), (missing, _) = sheet(pd.DataFrame({"timestamp": days, "n": [1, 2]}), tmp_path)[1:]
    assert (cell.value, cell.is_date, cell.number_format) == (datetime(2026, 11, 1), True, "yyyy-mm-dd")
    assert missing.value is None


def test_times_are_in_utc(tmp_path: Path) -> None:
    """A column of times keeps them, in UTC."""
    moments = pd.to_datetime(pd.Series(["2026-11-01T13:30+01:00", "2026-11-02T00:00Z"]), utc=True, format="ISO8601")
    cells = sheet(pd.DataFrame({"at": moments}), tmp_path)[1:]
    assert [row[0].value for row in cells] == [datetime(2026, 11, 1, 12, 30), datetime(2026, 11, 2)]
    assert cells[0][0].number_format == "yyyy-mm-dd hh:mm:ss"


def test_cells_have_the_type_of_their_column(tmp_path: Path) -> None:
    """Counts are integers, shares are floats, flags are flags, missing values are empty cells."""
    frame = pd.DataFrame(
        {
            "n": pd.array([3, None], dtype="Int64"),
            "share": [0.25, None],
            "is_paying": pd.array([True, None], dtype="boolean"),
            "country": pd.Categorical(["NA", None]),
            "text": ["a", "b"],
        }
    )
    first, second = values(frame, tmp_path)
    assert first == (3, 0.25, True, "NA", "a")
    assert [type(value) for value in first] == [int, float, bool, str, str]
    assert second == (None, None, None, None, "b")


def test_long_ids_are_text(tmp_path: Path) -> None:
    """A spreadsheet rounds a number of 19 digits, so that a column with one is text; 15 digits stay numbers."""
    frame = pd.DataFrame({"id": [1234567890123456789, 7], "near": [999_999_999_999_999, 1]})
    assert values(frame, tmp_path) == [("1234567890123456789", 999_999_999_999_999), ("7", 1)]


def test_days_before_the_calendar_are_text(tmp_path: Path) -> None:
    """Spreadsheets disagree about days before March 1900."""
    assert values(pd.DataFrame({"t": pd.to_datetime(["1899-12-30"])}), tmp_path) == [("1899-12-30",)]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "'quoted", '=HYPERLINK("http://x")'])
def test_a_text_is_never_a_formula(tmp_path: Path, text: str) -> None:
    """A text that looks like a formula is a text cell, stays one when it is edited, and reads back unchanged."""
    head, (cell,) = sheet(pd.DataFrame({text: [text]}), tmp_path)
    assert (head[0].value, cell.value, cell.data_type, bool(cell.quotePrefix)) == (text, text, "s", True)
    assert read_grid(tmp_path / "x.xlsx", sheet="data").cells.column(text).to_pylist() == [text]


def test_numbers_are_shown_in_their_unit(tmp_path: Path) -> None:
    """Money with dollars and its unit in the title, shares as percentages, counts with thousands; ids stay bare."""
    frame = pd.DataFrame(
        {"game_id": [1001], "ad_revenue": [12.5], "ads_share": [0.125], "installs": [1200], "x": [0.5]}
    )
    head, cells = sheet(frame, tmp_path)
    titles = ["game_id", "ad_revenue (USD)", "ads_share", "installs", "x"]
    assert [cell.value for cell in head] == titles
    formats = ["General", "[$$-409]#,##0.00", "0.0%", "#,##0", "General"]
    assert [cell.number_format for cell in cells] == formats
    assert [cell.value for cell in cells] == [1001, 12.5, 0.125, 1200, 0.5]


def test_intervals_have_the_places_of_their_number(tmp_path: Path) -> None:
    """Also where it has no unit; other numbers without one are as they are, and counts have none after the point."""
    frame = pd.DataFrame(
        {"index": [1.25, 0.5], "low": [1.2, 0.45], "high": [1.3, 0.55], "installs": [1200, 7], "x": [0.5, 0.25]}
    )
    _, cells, _ = sheet(frame, tmp_path)
    assert [cell.number_format for cell in cells] == [*["#,##0.00"] * 3, "#,##0", "General"]


def test_the_first_row_has_filters(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(
        gl.export_excel({"data": pd.DataFrame({"a": [1, 2], "b": [3, 4]})}, tmp_path / "x.xlsx")
    )
    assert book["data"].auto_filter.ref == "A1:B3"


def test_a_chart_draws_the_numbers_of_one_unit(tmp_path: Path) -> None:
    """Lines over days, bars over names; a name with two rows is refused, and nothing is written."""
    days = pd.to_datetime(pd.Series(["2026-11-01", "2026-11-02"]), utc=True)
    frame = pd.DataFrame({"timestamp": days, "ad_revenue": [1.5, 2.5], "installs": [7, 8], "iap_revenue": [3.0, 4.0]})
    book = openpyxl.load_workbook(gl.export_excel({"a": frame, "b": frame}, tmp_path / "x.xlsx", chart=True))
    (line,) = book["a"]._charts
    assert [type(line).__name__, len(line.series), len(book["b"]._charts)] == ["LineChart", 2, 0]
    names = pd.DataFrame({"network": ["a", "b"], "ecpm": [1.0, 2.0]})
    (bars,) = openpyxl.load_workbook(gl.export_excel({"a": names}, tmp_path / "y.xlsx", chart=True))["a"]._charts
    assert type(bars).__name__ == "BarChart"
    for wrong, why in ((names.assign(network="a"), r"df\.lens\.wide"), (names[["network"]], "no numbers")):
        with pytest.raises(BadQuery, match=why):
            gl.export_excel({"a": wrong}, tmp_path / "z.xlsx", chart=True)
    assert not (tmp_path / "z.xlsx").exists()


def test_receipts_have_a_sheet(tmp_path: Path) -> None:
    """The last sheet has what was asked for each frame that has a receipt."""
    frame = tidy_frame("revenue", revenue=[1.5], revenue_event_count=[1])
    path = gl.export_excel({"ads": frame, "plain": pd.DataFrame({"a": [1]})}, tmp_path / "week.xlsx")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["ads", "plain", "Receipts"]
    rows = list(book["Receipts"].iter_rows(values_only=True))
    assert rows[0] == ("sheet", "what", "value")
    assert ("ads", "asked.metric", "revenue") in rows


@pytest.mark.parametrize("name", ["", "a" * 32, "a/b", "a:b", "'a", "receipts", "History"])
def test_a_name_that_no_sheet_may_have_is_refused(tmp_path: Path, name: str) -> None:
    """Names that Excel refuses or repairs are refused, and nothing is written."""
    with pytest.raises(BadQuery, match="frames"):
        gl.export_excel({name: pd.DataFrame({"a": [1]})}, tmp_path / "x.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_names_that_differ_in_capitals_are_refused(tmp_path: Path) -> None:
    """Excel takes "Ads" and "ads" for one sheet."""
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(BadQuery, match="is already taken"):
        gl.export_excel({"Ads": frame, "ads": frame}, tmp_path / "x.xlsx")


def test_another_ending_is_refused(tmp_path: Path) -> None:
    """Only .xlsx is written; a text file has its own function."""
    with pytest.raises(BadQuery, match=r"gl\.export_csv"):
        gl.export_excel({"a": pd.DataFrame({"a": [1]})}, tmp_path / "x.csv")


def test_a_text_that_no_cell_holds_is_refused(tmp_path: Path) -> None:
    """A text of more than 32,767 letters would be cut silently; the old file stays as it was."""
    path = gl.export_excel({"a": pd.DataFrame({"a": [1]})}, tmp_path / "x.xlsx")
    before = path.read_bytes()
    with pytest.raises(BadQuery, match="32,767"):
        gl.export_excel({"a": pd.DataFrame({"a": ["x" * 32_768]})}, path)
    assert (path.read_bytes(), [entry.name for entry in tmp_path.iterdir()]) == (before, ["x.xlsx"])


@settings(deadline=None, max_examples=examples(50))
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1), min_size=1))
def test_any_text_comes_back(texts: list[str]) -> None:
    """Every text is stored as text, control characters as their numbers."""
    with tempfile.TemporaryDirectory() as folder:
        stored = [row[0] for row in values(pd.DataFrame({"a": texts}), Path(folder))]
    assert unguarded(pa.array([f"x{text}" for text in stored])).to_pylist() == [f"x{text}" for text in texts]
