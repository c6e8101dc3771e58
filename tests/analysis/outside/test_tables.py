"""Outside tables as they are: cells in their places, nothing guessed, nothing skipped in silence."""

from __future__ import annotations

import gzip
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gamelens.analysis.files.table_reader import ExternalTable, read_table
from gamelens.errors import BadQuery


@pytest.fixture
def csv(tmp_path: Path):
    """Reads a text as the CSV file it would be."""

    def read(text: str | bytes, name: str = "spend.csv", **how: Any) -> ExternalTable:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path, **how)

    return read


def rows(table: ExternalTable) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.cells.to_pylist()]


def test_namibia_is_no_missing_value(csv) -> None:
    assert rows(csv("geo,n\nNA,null\nnan,\n")) == [("NA", "null"), ("nan", None)]


def test_names_of_digits_stay_text(csv) -> None:
    assert rows(csv("id,n\n007,1\n")) == [("007", "1")]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_seen_in_the_header(csv, mark: str) -> None:
    table = csv(f"a{mark}b\n1{mark}2\n")
    assert (rows(table), table.separator) == ([("1", "2")], mark)


def test_a_tsv_is_separated_by_tabs(csv) -> None:
    assert rows(csv("a,b\tc\n1,2\t3\n", "x.tsv")) == [("1,2", "3")]


def test_two_separators_that_do_equally_well_are_refused(csv) -> None:
    with pytest.raises(BadQuery, match="may be separated by"):
        csv("a,b;c\n1,2;3\n")


def test_gzip_is_unpacked(csv) -> None:
    assert rows(csv(gzip.compress(b"a,b\n1,2\n"), "spend.csv.gz")) == [("1", "2")]


def test_a_damaged_gzip_is_refused(csv) -> None:
    with pytest.raises(BadQuery, match="cannot be read"):
        csv(gzip.compress(b"a,b\n1,2\n")[:-9], "spend.csv.gz")


def test_rows_are_numbered_as_in_a_spreadsheet(csv) -> None:
    table = csv('a,b\n1,"x\ny"\n\n2,z\n')
    assert table.rows.tolist() == [2, 4]


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa,b\n1,\xe2\x82\xac\n", "a,b\n1,€\n".encode("utf-16")])
def test_a_byte_order_mark_says_the_encoding(csv, content: bytes) -> None:
    assert (csv(content).columns, rows(csv(content))) == (["a", "b"], [("1", "€")])


def test_another_encoding_must_be_named(csv) -> None:
    content = "a,b\n1,€\n".encode("cp1252")
    with pytest.raises(BadQuery, match='encoding=, such as "cp1252"'):
        csv(content)
    assert rows(csv(content, encoding="cp1252")) == [("1", "€")]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b\n1,2\n3,4,5\n", "has 3 cells in row 3 and 2 columns"),
        ("a,b\n1\n", "has 1 cells in row 2"),
        ('a,b\n1,"2\n3,4\n', "never closed"),
        ("", "is empty"),
        ("a,a\n1,2\n", "two columns that are called a"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused(csv, text: str, match: str) -> None:
    with pytest.raises(BadQuery, match=match):
        csv(text)


def test_a_header_alone_is_an_empty_table(csv) -> None:
    assert (csv("a,b").columns, rows(csv("a,b"))) == (["a", "b"], [])


def test_columns_with_no_name_are_numbered_or_left_out_when_empty(csv) -> None:
    assert csv(",a,\n0,1,\n").columns == ["column_1", "a"]


def test_texts_may_be_named_missing(csv) -> None:
    assert rows(csv("a,b\nn/a,1\n-,2\n", missing=["n/a", "-"])) == [(None, "1"), (None, "2")]


def test_no_such_file() -> None:
    with pytest.raises(BadQuery, match="is not a file"):
        read_table("nowhere.csv")


def test_files_of_other_kinds_are_refused_by_name(csv) -> None:
    with pytest.raises(BadQuery, match=r"\.parquet"):
        csv("x", "spend.ods")


@pytest.mark.parametrize("name", ["x.parquet", "x.xlsx"])
def test_a_file_that_is_not_what_its_name_says_is_refused(csv, name: str) -> None:
    with pytest.raises(BadQuery, match="cannot be read as"):
        csv("a,b\n", name)


def test_typed_sources_keep_their_types(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2026-11-01", None]),
            "id": pd.array([2**62 + 1, None], dtype="Int64"),
            "geo": pd.Categorical(["NA", None]),
            "spend": [1.5, float("nan")],
            "money": [Decimal("1.25"), None],
            "is_on": pd.array([True, None], dtype="boolean"),
            "on": [date(2026, 11, 1), None],
        }
    )
    frame.to_parquet(tmp_path / "x.parquet")
    kinds = ["timestamp[us, tz=UTC]", "int64", "string", "double", "double", "bool", "timestamp[us, tz=UTC]"]
    for source in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame), tmp_path / "x.parquet"):
        table = read_table(source)
        assert [str(column.type) for column in table.cells.columns] == kinds
        assert [column.null_count for column in table.cells.columns] == [1] * len(kinds)
        assert table.column("id")[0].as_py() == 2**62 + 1


def test_a_named_index_is_a_column_too() -> None:
    assert read_table(pd.DataFrame({"n": [1]}, index=pd.Index(["x"], name="geo"))).columns == ["geo", "n"]


def test_numbers_and_texts_in_one_column_are_text() -> None:
    assert rows(read_table(pd.DataFrame({"id": [1001, "x", 7.0]}))) == [("1001",), ("x",), ("7",)]


def test_a_period_is_the_text_it_shows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"month": pd.PeriodIndex(["2026-11", None], freq="M")})
    frame.to_parquet(tmp_path / "x.parquet")
    assert rows(read_table(frame)) == rows(read_table(tmp_path / "x.parquet")) == [("2026-11",), (None,)]


def test_what_is_lazy_or_no_table_is_refused() -> None:
    with pytest.raises(BadQuery, match="collect"):
        read_table(pl.DataFrame({"a": [1]}).lazy())


@pytest.fixture
def book(tmp_path: Path):
    """Reads an Excel file of one sheet, or several by name."""

    def read(
        *cells: tuple[Any, ...], more: dict[str, list[tuple[Any, ...]]] | None = None, **how: Any
    ) -> ExternalTable:
        made = openpyxl.Workbook()
        for row in cells:
            made.active.append(row)
        for name, page in (more or {}).items():
            for row in page:
                (made[name] if name in made.sheetnames else made.create_sheet(name)).append(row)
        made.save(tmp_path / "spend.xlsx")
        return read_table(tmp_path / "spend.xlsx", **how)

    return read


def test_excel_keeps_numbers_days_and_row_numbers(book) -> None:
    table = book(("day", "id", "geo"), (datetime(2026, 11, 1), 1001, "NA"), (None, None, None), (None, 7, ""))
    assert rows(table)[0][1:] == (1001, "NA")
    assert rows(table)[1] == (None, 7, None)
    assert (table.rows.tolist(), str(table.column("day").type)) == ([2, 4], "timestamp[us, tz=UTC]")


def test_one_of_several_sheets_must_be_named(book) -> None:
    pages = {"November": [("a", "b"), (1, 2)]}
    with pytest.raises(BadQuery, match="November"):
        book(("a", "b"), (3, 4), more=pages)
    assert rows(book(("a", "b"), (3, 4), more=pages, sheet="November")) == [(1, 2)]
    with pytest.raises(BadQuery, match="Did you mean `November`"):
        book(("a", "b"), (3, 4), more=pages, sheet="november")


def test_an_empty_sheet_beside_does_not_matter(book) -> None:
    assert rows(book(("a", "b"), (3, 4), more={"Empty": []})) == [(3, 4)]


def test_a_formula_that_was_never_computed_is_refused(book) -> None:
    with pytest.raises(BadQuery, match="row 2 that was never computed"):
        book(("a", "b"), (1, "=A2+1"))
