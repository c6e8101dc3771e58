"""Outside tables are read cell by cell: nothing is guessed or skipped silently."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.analysis.files.csv_reader import read_delimited
from gamelens.analysis.files.excel_reader import SheetBounds, read_sheet
from gamelens.analysis.files.table_reader import Grid, read_grid
from gamelens.errors import BadQuery
from support.hypothesis_profiles import examples
from support.process_memory import memory_mib

TEXT = "dictionary<values=string, indices=int32, ordered=0>"
ReadCsv = Callable[..., Grid]
ReadWorkbook = Callable[..., Grid]


@pytest.fixture
def csv(tmp_path: Path) -> ReadCsv:
    """A function that reads a text as a CSV file."""

    def read(text: str | bytes, name: str = "spend.csv", **how: Any) -> Grid:
        """Write *text* to the file *name* and read it."""
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_grid(path, **how)

    return read


def rows(table: Grid) -> list[tuple[Any, ...]]:
    """Return the rows of *table*."""
    return [tuple(row.values()) for row in table.cells.to_pylist()]


def test_namibia_is_no_missing_value(csv: ReadCsv) -> None:
    """NA, null and nan are texts, and only an empty cell is missing."""
    assert rows(csv("geo,n\nNA,null\nnan,\n")) == [("NA", "null"), ("nan", None)]


def test_names_of_digits_stay_text(csv: ReadCsv) -> None:
    """Leading zeros of ids are kept."""
    assert rows(csv("id,n\n007,1\n")) == [("007", "1")]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("line", ["\n", "\r\n", ",,\n", ' ,"",\n', "\t\n"])
@pytest.mark.parametrize("hint", ["", "sep=,\n"])
def test_blank_lines_above_the_table_are_none_of_it(csv: ReadCsv, line: str, hint: str) -> None:
    """However many there are; rows keep their numbers, also that of a header that is named."""
    for told in ({}, {"header_row": 70_001 + bool(hint)}):
        table = csv(line * 70_000 + f"{hint}geo,n,m\nUS,1,2\n", **told)
        assert (rows(table), table.rows.tolist()) == ([("US", "1", "2")], [70_002 + bool(hint)])
    with pytest.raises(BadQuery, match="is above the first row of the table"):
        csv(line * 70_000 + "geo,n,m\nUS,1,2\n", header_row=5)


@pytest.mark.parametrize(
    "above",
    [
        "Report,Daily installs\nApp,Tile Harbor\nFrom,2026-10-31\nTo,2026-11-02\n\n",
        "Report name,Daily cost\nAccount,Studio\nCurrency,EUR\n",
        "Metric,Installs\nAccount,12345\nCreated,2026-11-03\n",
        "Name,First-Time Downloads\nStart Date,10/31/26\nEnd Date,11/27/26\n,\n",
        "",
    ],
)
@pytest.mark.parametrize("count", [1, 2, 30])
def test_lines_of_two_columns_above_a_header_of_two_columns_are_no_rows(csv: ReadCsv, above: str, count: int) -> None:
    """Names and their values, of which some are days or numbers, however few rows follow."""
    lines = [f"2026-11-{day:02},{100 + day}" for day in range(1, count + 1)]
    table = csv(above + "\n".join(["Date,Installs", *lines, ""]))
    assert (table.columns, len(table.rows)) == (["Date", "Installs"], count)


@pytest.mark.parametrize(
    "text",
    [
        "data;1USD;1EUR;100JPY\n20261030;3,9;4,25;2,6\n20261102;3,95;4,3;2,6\n",
        "Tag;Kosten\n2026-10-31;1,5\n2026-11-01;2,5\n",
        "Tag;Kosten;Klicks\n2026-10-31;1,5;1,2\n2026-11-01;2,5;1,3\n",
    ],
)
def test_a_comma_in_each_number_separates_nothing(csv: ReadCsv, text: str) -> None:
    """The separator is the one by which the first lines are of one length, the header too."""
    table = csv(text)
    assert (table.separator, len(table.rows)) == (";", 2)


def test_cells_with_as_many_separators_in_each_line_are_quoted(csv: ReadCsv) -> None:
    """Lines that have the same length without quotation marks have it with them too, and these enclose cells."""
    table = csv('Time,n,Note\n"Oct 31, 2026, 12:00 AM",5,"a, b"\n"Nov 1, 2026, 12:00 AM",6,"c, d"\n')
    assert rows(table) == [("Oct 31, 2026, 12:00 AM", "5", "a, b"), ("Nov 1, 2026, 12:00 AM", "6", "c, d")]


def test_a_column_that_is_there_twice_is_read_once(csv: ReadCsv) -> None:
    """One of another content has another name, so that what is used can be named."""
    table = csv("a,n,n,n\nx,1,1,2\ny,3,3,4\n")
    assert (table.columns, rows(table)) == (["a", "n", "n (2)"], [("x", "1", "2"), ("y", "3", "4")])
    assert table.notes == ("n of spend.csv is there twice with the same cells, and is read once",)


def test_a_sentence_below_the_table_is_none_of_its_rows(csv: ReadCsv) -> None:
    """Also where it has as many separators; a name without numbers is a row."""
    table = csv('day,geo,n\n2026-11-01,US,5\nNorth Rhine Westphalia,,\n"All amounts in EUR",,\n')
    assert (len(table.rows), table.above) == (1, ("All amounts in EUR", "North Rhine Westphalia"))
    assert len(csv("geo,n,m\nUS,5,6\nDE,,\n").rows) == 2


def test_a_row_without_numbers_in_a_table_is_no_header(csv: ReadCsv) -> None:
    """Such as a total, or a first day for which nothing is known yet."""
    for text in ("Day,Geo,n\n2026-11-01,US,--\n2026-11-02,US,5\n", "Geo,n\nUS,4\nTotal Meta,--\nDE,5\nFR,6\n"):
        table = csv(text)
        assert (table.columns[-1], len(table.rows)) == ("n", text.count("\n") - 1)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_seen_in_the_header(csv: ReadCsv, mark: str) -> None:
    """Comma, semicolon, tab and bar are recognised from the header."""
    table = csv(f"a{mark}b\n1{mark}2\n")
    assert (rows(table), table.separator) == ([("1", "2")], mark)


def test_a_tsv_is_separated_by_tabs(csv: ReadCsv) -> None:
    """A file called .tsv is separated by tabs, whatever its header has."""
    assert rows(csv("a,b\tc\n1,2\t3\n", "x.tsv")) == [("1,2", "3")]


def test_two_separators_that_do_equally_well_are_refused(csv: ReadCsv) -> None:
    """A header that two separators split equally well is refused."""
    with pytest.raises(BadQuery, match="may be separated by"):
        csv("a,b;c\n1,2;3\n")


def test_gzip_is_unpacked(csv: ReadCsv) -> None:
    """A file called .gz is decompressed."""
    assert rows(csv(gzip.compress(b"a,b\n1,2\n"), "spend.csv.gz")) == [("1", "2")]


def test_a_damaged_gzip_is_refused(csv: ReadCsv) -> None:
    """A truncated gzip file raises `BadQuery`."""
    with pytest.raises(BadQuery, match="cannot be read"):
        csv(gzip.compress(b"a,b\n1,2\n")[:-9], "spend.csv.gz")


def test_rows_are_numbered_as_in_a_spreadsheet(csv: ReadCsv) -> None:
    """Rows have the numbers of a spreadsheet, in which a quoted line end is not a new row."""
    table = csv('a,b\n1,"x\ny"\n\n2,z\n')
    assert table.rows.tolist() == [2, 4]


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa,b\n1,\xe2\x82\xac\n", "a,b\n1,€\n".encode("utf-16")])
def test_a_byte_order_mark_says_the_encoding(csv: ReadCsv, content: bytes) -> None:
    """A byte order mark selects UTF-8 or UTF-16."""
    assert (csv(content).columns, rows(csv(content))) == (["a", "b"], [("1", "€")])


def test_another_encoding_must_be_named(csv: ReadCsv) -> None:
    """A file that is not UTF-8 is refused until `encoding` is given."""
    content = "a,b\n1,€\n".encode("cp1252")
    with pytest.raises(BadQuery, match=r'encoding=: "cp1252" reads .€'):
        csv(content)
    assert rows(csv(content, encoding="cp1252")) == [("1", "€")]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b\n1,2\n3,4,5\n", "has 3 cells in row 3 and 2 columns"),
        ("a,b\n1\n", "has 1 cells in row 2"),
        ('"two\nlines"\n\na,b\n1,2\n3,4,5\n', "has 3 cells in row 5"),
        ('a,b\n1,"2\n3,4,5\n', "never closed"),
        ("", "is empty"),
        ("a,a,a (2)\n1,2,3\n", r"two columns that are called a \(2\)"),
    ],
)
def test_a_malformed_csv_is_refused(csv: ReadCsv, text: str, match: str) -> None:
    """Uneven rows, open quotes, an empty file and repeated names raise `BadQuery`."""
    with pytest.raises(BadQuery, match=match):
        csv(text)


def test_a_header_alone_is_an_empty_table(csv: ReadCsv) -> None:
    """A file with a header alone is a table without rows."""
    assert (csv("a,b").columns, rows(csv("a,b"))) == (["a", "b"], [])


def test_columns_with_no_name_are_numbered_or_left_out_when_empty(csv: ReadCsv) -> None:
    """A column without a name is called by its number, or left out if it is empty."""
    assert csv(",a,\n0,1,\n").columns == ["column_1", "a"]


def test_texts_may_be_named_missing(csv: ReadCsv) -> None:
    """Texts in `missing` are read as empty cells."""
    assert rows(csv("a,b\nn/a,1\n-,2\n", missing=["n/a", "-"])) == [(None, "1"), (None, "2")]


def test_no_such_file() -> None:
    """A path without a file raises `BadQuery`."""
    with pytest.raises(BadQuery, match="is not a file"):
        read_grid("nowhere.csv")


def test_files_of_other_kinds_are_refused_by_name(csv: ReadCsv) -> None:
    """A file of another kind raises `BadQuery` that lists the kinds."""
    with pytest.raises(BadQuery, match=r"\.parquet"):
        csv("x", "spend.ods")


@pytest.mark.parametrize("name", ["x.parquet", "x.xlsx"])
def test_a_file_that_contradicts_its_name_is_refused(csv: ReadCsv, name: str) -> None:
    """A text called .parquet or .xlsx raises `BadQuery`."""
    with pytest.raises(BadQuery, match="cannot be read as"):
        csv("a,b\n", name)


def test_typed_sources_keep_their_types(tmp_path: Path) -> None:
    """Typed sources keep their types and nulls, and integers beyond 2 ** 53 their digits."""
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(pd.Series(["2026-11-01", None])),
            "id": pd.array([2**62 + 1, None], dtype="Int64"),
            "geo": pd.Categorical(["NA", None]),
            "spend": [1.5, float("nan")],
            "money": [Decimal("1.25"), None],
            "is_on": pd.array([True, None], dtype="boolean"),
            "on": [date(2026, 11, 1), None],
        }
    )
    frame.to_parquet(tmp_path / "x.parquet")
    kinds = ["timestamp[us, tz=UTC]", "int64", TEXT, "double", "double", "bool", "timestamp[us, tz=UTC]"]
    for source in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame), tmp_path / "x.parquet"):
        table = read_grid(source)
        assert [str(column.type) for column in table.cells.columns] == kinds
        assert [column.null_count for column in table.cells.columns] == [1] * len(kinds)
        assert table.cells.column("id")[0].as_py() == 2**62 + 1


def test_a_named_index_is_a_column_too() -> None:
    """The named index of a pandas frame is read as its first column."""
    assert read_grid(pd.DataFrame({"n": [1]}, index=pd.Index(["x"], name="geo"))).columns == ["geo", "n"]


def test_numbers_and_texts_in_one_column_are_text() -> None:
    """A column of numbers and texts is text, whole numbers without a decimal point."""
    assert rows(read_grid(pd.DataFrame({"id": [1001, "x", 7.0]}))) == [("1001",), ("x",), ("7",)]


def test_a_period_is_the_text_it_shows(tmp_path: Path) -> None:
    """A column of periods is read as text, from a frame and from Parquet."""
    frame = pd.DataFrame({"month": pd.PeriodIndex(["2026-11", None], freq="M")})
    frame.to_parquet(tmp_path / "x.parquet")
    assert rows(read_grid(frame)) == rows(read_grid(tmp_path / "x.parquet")) == [("2026-11",), (None,)]


def test_ranges_of_numbers_are_the_text_they_show() -> None:
    """The categories that `pandas.cut` makes are intervals, and are read as text."""
    frame = pd.DataFrame({"spend": pd.cut([1.0, 5.0, float("nan")], [0, 2, 9])})
    assert rows(read_grid(frame)) == [("(0, 2]",), ("(2, 9]",), (None,)]


def test_what_is_lazy_or_no_table_is_refused() -> None:
    """A lazy polars frame raises `BadQuery` that says to collect it."""
    with pytest.raises(BadQuery, match="collect"):
        read_grid(pl.DataFrame({"a": [1]}).lazy())


@pytest.fixture
def book(tmp_path: Path) -> ReadWorkbook:
    """A function that reads cells as an Excel file of one or several sheets."""

    def read(*cells: tuple[Any, ...], more: dict[str, list[tuple[Any, ...]]] | None = None, **how: Any) -> Grid:
        """Write *cells*, and the sheets *more*, to an Excel file and read it."""
        workbook = openpyxl.Workbook()
        for row in cells:
            workbook.active.append(row)
        for name, page in (more or {}).items():
            for row in page:
                (workbook[name] if name in workbook.sheetnames else workbook.create_sheet(name)).append(row)
        workbook.save(tmp_path / "spend.xlsx")
        return read_grid(tmp_path / "spend.xlsx", **how)

    return read


def test_excel_keeps_numbers_days_and_row_numbers(book: ReadWorkbook) -> None:
    """Excel cells keep numbers and dates, empty rows are skipped, row numbers stay."""
    table = book(("day", "id", "geo"), (datetime(2026, 11, 1), 1001, "NA"), (None, None, None), (None, 7, ""))
    assert rows(table)[0][1:] == (1001, "NA")
    assert rows(table)[1] == (None, 7, None)
    assert (table.rows.tolist(), str(table.cells.column("day").type)) == ([2, 4], "timestamp[us, tz=UTC]")


def test_one_of_several_sheets_must_be_named(book: ReadWorkbook) -> None:
    """With several sheets `sheet` is required, and a wrong name gets the nearest."""
    pages = {"November": [("a", "b"), (1, 2)]}
    with pytest.raises(BadQuery, match="November"):
        book(("a", "b"), (3, 4), more=pages)
    assert rows(book(("a", "b"), (3, 4), more=pages, sheet="November")) == [(1, 2)]
    with pytest.raises(BadQuery, match="Did you mean `November`"):
        book(("a", "b"), (3, 4), more=pages, sheet="november")


def test_an_empty_sheet_beside_does_not_matter(book: ReadWorkbook) -> None:
    """An empty second sheet does not make `sheet` necessary."""
    assert rows(book(("a", "b"), (3, 4), more={"Empty": []})) == [(3, 4)]


def test_a_formula_that_was_never_computed_is_refused(book: ReadWorkbook) -> None:
    """A formula without a stored value raises `BadQuery` that names its row."""
    with pytest.raises(BadQuery, match="row 2 that was never computed"):
        book(("a", "b"), (1, "=A2+1"))


@settings(deadline=None, max_examples=examples(30))
@given(
    st.lists(
        st.lists(
            st.none()
            | st.booleans()
            | st.integers(-(2**53) + 1, 2**53 - 1)
            | st.floats(-1e9, 1e9).map(lambda number: round(number, 3)).filter(lambda number: number % 1 != 0)
            | st.datetimes(datetime(1901, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(microsecond=0))
            | st.text("abc é字=+-'<&\"", min_size=1, max_size=5).map(lambda text: f"t{text}"),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_cells_of_a_workbook_are_those_that_were_written(written: list[list[Any]]) -> None:
    """Numbers whole or not, texts, flags and times, wherever cells are empty; openpyxl reads the same."""
    workbook = openpyxl.Workbook()
    for place, row in enumerate(written, 1):
        for column, value in enumerate(row, 1):
            workbook.active.cell(place, column).value = value
    with tempfile.TemporaryDirectory() as folder:
        workbook.save(Path(folder) / "x.xlsx")
        read = read_sheet(Path(folder) / "x.xlsx", None).rows
        theirs = [*openpyxl.load_workbook(Path(folder) / "x.xlsx").active.iter_rows(values_only=True)]
    width = max(map(len, read), default=0)
    padded = [tuple(row + [None] * width)[:width] for row in written]
    while padded and not any(cell is not None for cell in padded[-1]):
        padded.pop()
    for found in (read, [row[:width] for row in theirs][: len(padded)]):
        assert [[*map(type, row)] for row in found] == [[*map(type, row)] for row in padded]
        assert found == padded


def test_errors_of_a_workbook_stay_texts(tmp_path: Path) -> None:
    """Among numbers #N/A stands for no value, and #NAME? is refused as a text is; an empty text is computed."""
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as workbook:
        page = workbook.add_worksheet()
        page.write_row(0, 0, ["geo", "n", "note"])
        page.write_row(1, 0, ["US", 5, "a"])
        page.write_formula(2, 0, '="D"&"E"', None, "DE")
        page.write_formula(2, 1, "=NA()", None, "#N/A")
        page.write_formula(2, 2, "=nothing", None, "#NAME?")
        page.write_formula(3, 0, "=1+1", None, 2)
    assert read_sheet(tmp_path / "x.xlsx", None).rows[2:] == [("DE", "#N/A", "#NAME?"), (2, None, None)]
    with ZipFile(tmp_path / "x.xlsx") as book, ZipFile(tmp_path / "y.xlsx", "w") as empty:
        for name in book.namelist():
            empty.writestr(name, book.read(name).replace(b"<v>DE</v>", b"<v></v>"))
    assert read_sheet(tmp_path / "y.xlsx", None).rows[2][0] is None


@pytest.fixture
def memory_growth_mib() -> Callable[[], float]:
    """A function that returns by how many MiB the peak of this process's memory has grown since the test began."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = memory_mib("self", "VmHWM")
    return lambda: memory_mib("self", "VmHWM") - before


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        ("XFD1048576", "a cell in row 1,048,576 beyond 1,000 columns, 500,000 rows or 10,000,000 cells"),
        ("XFD2", "a cell in row 2 beyond"),
        ("ALL20000", "has 20,000 rows of 1,000 columns, over 10,000,000 cells"),
    ],
)
def test_a_cell_far_outside_the_table_is_refused_in_little_memory(
    tmp_path: Path, memory_growth_mib: Callable[[], float], cell: str, rule: str
) -> None:
    """The refusal names the bounds and what to do; the gap between table and cell is never filled."""
    workbook = openpyxl.Workbook()
    workbook.active.append(("day", "spend"))
    workbook.active[cell] = 1
    workbook.save(tmp_path / "spend.xlsx")
    with pytest.raises(BadQuery, match=f"{rule}.*: delete what is far outside the table, or save it as CSV"):
        read_grid(tmp_path / "spend.xlsx")
    assert memory_growth_mib() < 100


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("form", ["the only sheet", "a named sheet", "other names", "no numbers"])
@pytest.mark.parametrize(
    ("size", "most"),
    [((12_000, 2), SheetBounds(rows=11_999)), ((3_000, 40), SheetBounds(cells=110_000))],
)
def test_a_sheet_beyond_the_bounds_is_refused_early(
    tmp_path: Path, size: tuple[int, int], most: SheetBounds, form: str
) -> None:
    """Before a reader reads its first byte, which takes a minute at the bounds, however its XML is written."""
    workbook = openpyxl.Workbook()
    workbook.active.append(("day", "spend"))
    if form == "a named sheet":
        workbook.create_sheet("Small").append(("a", "b"))
    workbook.save(tmp_path / "small.xlsx")
    row = "".join(f'<c r="A{{0}}" t="n"><v>{column}</v></c>' for column in range(size[1]))
    text = "".join(f'<row r="{number}">{row.format(number)}</row>' for number in range(1, size[0] + 1))
    if form == "other names":
        text = re.sub("<(/?)(row|c|v)", r"<\1x:\2", text)
    if form == "no numbers":
        text = re.sub(' r="[A-Z]*[0-9]+"', "", text)
    with ZipFile(tmp_path / "small.xlsx") as small, ZipFile(tmp_path / "large.xlsx", "w", ZIP_DEFLATED) as large:
        for name in small.namelist():
            content = small.read(name)
            if name.endswith("sheet1.xml"):
                content = re.sub(b"<row.*</row>", text.encode(), content)
            if name.endswith("styles.xml"):
                content = b"nothing that can be read"
            large.writestr(name, content, compresslevel=1)
    with pytest.raises(BadQuery, match=rf"a cell in row [0-9,]+ beyond 1,000 columns, {most.rows:,} rows or"):
        read_sheet(tmp_path / "large.xlsx", "Sheet" if form == "a named sheet" else None, most=most)


def test_a_format_far_outside_the_table_does_not_matter(tmp_path: Path) -> None:
    """Only cells with a value count: a table with gaps and a stray format in the last cell of the sheet is read."""
    workbook = openpyxl.Workbook()
    for number in range(300):
        workbook.active.append([f"c{column}" if number == 0 else column for column in range(40)])
    workbook.active["BZ1"], workbook.active["BZ300"] = "note", "far"
    for cell in ("XFD1", "XFD1048576"):
        workbook.active[cell].number_format = "0.00"
    workbook.save(tmp_path / "spend.xlsx")
    table = read_grid(tmp_path / "spend.xlsx")
    assert (table.columns, len(table.cells)) == ([*(f"c{column}" for column in range(40)), "note"], 299)
    assert table.cells.column("note").to_pylist()[-2:] == [None, "far"]


def test_a_workbook_that_unpacks_to_more_than_the_bound_is_refused(tmp_path: Path) -> None:
    """Its size unpacked is known before any of it is read, and the refusal names the bound."""
    workbook = openpyxl.Workbook()
    for letter in "abcdefghijklmnopqrstuvwxyz" * 2:
        workbook.active.append([letter * 30_000, letter.upper() * 30_000])
    workbook.save(tmp_path / "spend.xlsx")
    assert (tmp_path / "spend.xlsx").stat().st_size < 100_000
    with pytest.raises(BadQuery, match=r"has more than 1 MB unpacked.*: leave out sheets, rows and columns"):
        read_sheet(tmp_path / "spend.xlsx", None, most=SheetBounds(bytes=1 << 20))
    assert len(read_sheet(tmp_path / "spend.xlsx", None).rows) == 52


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path: Path, memory_growth_mib: Callable[[], float]) -> None:
    """No more than the bound is unpacked, and the refusal names it."""
    path = tmp_path / "spend.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * (1 << 20)) * 64)  # 256 MiB
    with pytest.raises(BadQuery, match=r"has more than 1 MB of text unpacked.*: leave out rows and columns"):
        read_delimited(path, None, most_bytes=1 << 20)
    assert memory_growth_mib() < 50
