"""CSV that no spreadsheet runs and that comes back as it was (OWASP, CSV injection; RFC 4180)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelens as gl
from gamelens.analysis.files.table_reader import read_table
from gamelens.errors import BadQuery


@pytest.fixture
def export(tmp_path: Path):
    def make(**columns) -> str:
        return gl.export_csv(pd.DataFrame(columns), tmp_path / "x.csv").read_bytes().decode()

    return make


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", " =", "'="])
def test_a_text_that_would_run_gets_an_apostrophe(export, begin: str) -> None:
    assert export(a=[f"{begin}1"]) == f'"a"\n"\'{begin}1"\n'


def test_so_does_a_name_of_a_column(export) -> None:
    assert export(**{"=1+1": ["x"]}) == '"\'=1+1"\n"x"\n'


def test_numbers_stay_numbers(export) -> None:
    columns = {"a": [-1.5, 2.0], "b": pd.array([-1, None], dtype="Int64"), "c": [True, False]}
    assert export(**columns) == '"a","b","c"\n-1.5,-1,true\n2,,false\n'


def test_numbers_among_texts_stay_numbers_too(export) -> None:
    assert export(a=pd.Series([-1, "-1", None, -2.5], dtype="object")) == '"a"\n"-1"\n"\'-1"\n\n"-2.5"\n'


def test_namibia_and_no_country_differ(export) -> None:
    assert export(geo=pd.Categorical(["NA", None]), n=[1, 2]) == '"geo","n"\n"NA",1\n,2\n'


def test_quotes_commas_and_line_ends_are_quoted(export) -> None:
    assert export(a=['x"y', "a,b", "l\nm"]) == '"a"\n"x""y"\n"a,b"\n"l\nm"\n'


def test_timestamps_are_iso(export) -> None:
    moments = pd.to_datetime(["2026-11-01", None, "0999-01-01"], utc=True, format="ISO8601").astype(
        "datetime64[us, UTC]"
    )
    assert export(t=moments, n=[1, 2, 3]) == '"t","n"\n"2026-11-01T00:00:00Z",1\n,2\n"0999-01-01T00:00:00Z",3\n'


def test_a_named_index_comes_first(tmp_path: Path) -> None:
    matrix = pd.DataFrame({1: [0.5]}, index=pd.Index(["x"], name="day"))
    assert gl.export_csv(matrix, tmp_path / "x.csv").read_text() == '"day","1"\n"x",0.5\n'


def test_an_empty_frame_has_its_header(export) -> None:
    assert export(a=pd.Series(dtype="str"), b=pd.Series(dtype="Int64")) == '"a","b"\n'


def test_gz_is_compressed(tmp_path: Path) -> None:
    path = gl.export_csv(pd.DataFrame({"a": ["x"], "b": [1]}), tmp_path / "x.csv.gz")
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read_table(path).cells.to_pylist() == [{"a": "x", "b": "1"}]


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadQuery, match=r"make .*nowhere first"):
        gl.export_csv(pd.DataFrame({"a": [1]}), tmp_path / "nowhere" / "x.csv")


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(BadQuery, match="path"):
        gl.export_csv(pd.DataFrame(), None)


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = gl.export_csv(pd.DataFrame({"a": [1]}), tmp_path / "x.csv")
    before = path.read_bytes()
    with pytest.raises(BadQuery, match="UTF-8"):
        gl.export_csv(pd.DataFrame({"a": pd.Series(["\ud800"], dtype="object")}), path)
    assert (path.read_bytes(), [found.name for found in tmp_path.iterdir()]) == (before, ["x.csv"])


HOSTILE = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("=+-@'\t\r\n\",; ＝")))


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), HOSTILE), max_size=8), st.data())
def test_any_text_comes_back_as_it_was(texts: list[str | None], data: st.DataObject) -> None:
    numbers = data.draw(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=len(texts), max_size=len(texts))
    )
    frame = pd.DataFrame({"text": pd.Series(texts, dtype="str"), "number": pd.Series(numbers, dtype="float64")})
    with tempfile.TemporaryDirectory() as folder:
        back = read_table(gl.export_csv(frame, Path(folder) / "x.csv"))
    assert back.column("text").to_pylist() == texts
    assert [float(text) for text in back.column("number").to_pylist()] == numbers


@settings(deadline=None)
@given(HOSTILE)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = gl.export_csv(pd.DataFrame({"a": [text], "b": ["x"]}), Path(folder) / "x.csv")
        cell = pd.read_csv(path, keep_default_na=False, lineterminator=None, dtype="str")["a"][0]
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
