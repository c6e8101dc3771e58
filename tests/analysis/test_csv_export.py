"""CSV that no spreadsheet executes and that reads back unchanged (RFC 4180, OWASP)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelens as gl
from gamelens.analysis.files.table_reader import read_grid
from gamelens.errors import BadQuery

Export = Callable[..., str]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """A function that returns the CSV text of a frame of the given columns."""

    def make(**columns: object) -> str:
        """Return the CSV text of a frame of *columns*."""
        return gl.export_csv(pd.DataFrame(columns), tmp_path / "x.csv").read_bytes().decode()

    return make


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", " =", "'="])
def test_a_text_that_would_run_gets_an_apostrophe(export: Export, begin: str) -> None:
    """A text that a spreadsheet reads as a formula, or that starts so, gets an apostrophe."""
    assert export(a=[f"{begin}1"]) == f'"a"\n"\'{begin}1"\n'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("red\x1b[31m", r"red\u{1b}[31m"),
        ("\u202egnp", r"\u{202e}gnp"),
        ("\x9b1m", r"\u{9b}1m"),
        (r"as \u{1b}", r"as \\u{1b}"),
        ("\\\x1b", r"\\\u{1b}"),
        ("C:\\users", "C:\\users"),
    ],
)
def test_a_character_that_a_terminal_obeys_is_written_as_its_number(
    export: Export, tmp_path: Path, text: str, written: str
) -> None:
    """Control characters and those that reorder a line are numbers in the file, and come back."""
    assert export(a=[text]) == f'"a"\n"{written}"\n'
    assert read_grid(tmp_path / "x.csv").cells.column("a").to_pylist() == [text]


def test_a_column_name_that_would_run_gets_an_apostrophe(export: Export) -> None:
    """A column name that a spreadsheet would execute gets an apostrophe too."""
    assert export(**{"=1+1": ["x"]}) == '"\'=1+1"\n"x"\n'


def test_numbers_stay_numbers(export: Export) -> None:
    """Negative numbers are neither quoted nor escaped, flags are lower case, NA is empty."""
    columns = {"a": [-1.5, 2.0], "b": pd.array([-1, None], dtype="Int64"), "c": [True, False]}
    assert export(**columns) == '"a","b","c"\n-1.5,-1,true\n2,,false\n'


def test_numbers_among_texts_stay_numbers_too(export: Export) -> None:
    """In a column of mixed values, numbers stay bare digits while texts are escaped."""
    assert export(a=pd.Series([-1, "-1", None, -2.5], dtype="object")) == '"a"\n"-1"\n"\'-1"\n\n"-2.5"\n'


def test_namibia_and_no_country_differ(export: Export) -> None:
    """The country code NA is quoted text, a missing country an empty cell."""
    assert export(geo=pd.Categorical(["NA", None]), n=[1, 2]) == '"geo","n"\n"NA",1\n,2\n'


def test_quotes_commas_and_line_ends_are_quoted(export: Export) -> None:
    """Quotes are doubled, and commas and line ends stand inside quotes (RFC 4180)."""
    assert export(a=['x"y', "a,b", "l\nm"]) == '"a"\n"x""y"\n"a,b"\n"l\nm"\n'


def test_days_are_days(export: Export) -> None:
    """Days are written without a time and with four digits of the year; a missing day is empty."""
    moments = pd.to_datetime(pd.Series(["2026-11-01", None, "0999-01-01"]), utc=True, format="ISO8601").astype(
        "datetime64[us, UTC]"
    )
    assert export(t=moments, n=[1, 2, 3]) == '"t","n"\n"2026-11-01",1\n,2\n"0999-01-01",3\n'


def test_times_are_iso(export: Export) -> None:
    """In a column with one time that is not a day, all are ISO 8601 in UTC."""
    moments = pd.to_datetime(pd.Series(["2026-11-01T00:00Z", "2026-11-01T13:30+01:00"]), utc=True, format="ISO8601")
    assert export(t=moments) == '"t"\n"2026-11-01T00:00:00Z"\n"2026-11-01T12:30:00Z"\n'


@pytest.mark.parametrize("name", ["week.xlsx", "WEEK.XLS"])
def test_a_spreadsheets_name_is_refused(tmp_path: Path, name: str) -> None:
    """Text in a file called .xlsx is refused, with the call that writes such a file."""
    with pytest.raises(BadQuery, match=r"gl\.export_excel"):
        gl.export_csv(pd.DataFrame({"a": [1]}), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_named_index_comes_first(tmp_path: Path) -> None:
    """A named index, as a cohort matrix has, is the first column."""
    matrix = pd.DataFrame({1: [0.5]}, index=pd.Index(["x"], name="day"))
    assert gl.export_csv(matrix, tmp_path / "x.csv").read_text() == '"day","1"\n"x",0.5\n'


def test_an_empty_frame_has_its_header(export: Export) -> None:
    """A frame without rows is a header line alone."""
    assert export(a=pd.Series(dtype="str"), b=pd.Series(dtype="Int64")) == '"a","b"\n'


def test_gz_is_compressed(tmp_path: Path) -> None:
    """A name that ends in .gz is written as gzip."""
    path = gl.export_csv(pd.DataFrame({"a": ["x"], "b": [1]}), tmp_path / "x.csv.gz")
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read_grid(path).cells.to_pylist() == [{"a": "x", "b": "1"}]


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """A missing folder raises `BadQuery` that names the folder to create."""
    with pytest.raises(BadQuery, match=r"create .*nowhere first"):
        gl.export_csv(pd.DataFrame({"a": [1]}), tmp_path / "nowhere" / "x.csv")


def test_a_missing_path_is_refused() -> None:
    """A path of None raises `BadQuery` for the argument `path`."""
    with pytest.raises(BadQuery, match="path"):
        gl.export_csv(pd.DataFrame(), None)  # type: ignore[arg-type]


def test_a_failed_export_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """An export that fails half-way leaves the old file as it was and no draft."""
    path = gl.export_csv(pd.DataFrame({"a": [1]}), tmp_path / "x.csv")
    before = path.read_bytes()
    with pytest.raises(BadQuery, match="UTF-8"):
        gl.export_csv(pd.DataFrame({"a": pd.Series(["\ud800"], dtype="object")}), path)
    assert (path.read_bytes(), [entry.name for entry in tmp_path.iterdir()]) == (before, ["x.csv"])


HOSTILE = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("=+-@'\t\r\n\",; ＝")))


def test_a_number_with_an_exponent_is_no_header(tmp_path: Path) -> None:
    """Below a column without any text, the first such number stood alone among plain ones."""
    frame = pd.DataFrame({"text": pd.Series([None] * 3, dtype="str"), "number": [1e16, 0.0, 1.5]})
    assert read_grid(gl.export_csv(frame, tmp_path / "x.csv")).columns == ["text", "number"]


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), HOSTILE), max_size=8), st.data())
def test_any_text_comes_back_as_it_was(texts: list[str | None], data: st.DataObject) -> None:
    """Reading an exported file returns every text and number unchanged."""
    numbers = data.draw(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=len(texts), max_size=len(texts))
    )
    frame = pd.DataFrame({"text": pd.Series(texts, dtype="str"), "number": pd.Series(numbers, dtype="float64")})
    with tempfile.TemporaryDirectory() as folder:
        table = read_grid(gl.export_csv(frame, Path(folder) / "x.csv"))
    assert table.cells.column("text").to_pylist() == texts
    assert [float(text) for text in table.cells.column("number").to_pylist()] == numbers


@settings(deadline=None)
@given(HOSTILE)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    """No cell, as a CSV reader sees it, starts with a character that begins a formula."""
    with tempfile.TemporaryDirectory() as folder:
        path = gl.export_csv(pd.DataFrame({"a": [text], "b": ["x"]}), Path(folder) / "x.csv")
        cell = pd.read_csv(path, keep_default_na=False, lineterminator=None, dtype="str")["a"][0]
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
