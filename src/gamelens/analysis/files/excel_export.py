"""Export of frames as an Excel file: a sheet for each frame, and one for their receipts."""

from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pandas import DataFrame, Series
from pandas.api.types import infer_dtype, is_bool_dtype, is_integer_dtype, is_numeric_dtype

from gamelens._files import replace_file
from gamelens._scales import Scale
from gamelens.analysis.files.csv_safety import numbered
from gamelens.analysis.files.export_target import (
    column_title,
    moments_of,
    plain_values,
    target_of,
    with_index,
)
from gamelens.analysis.tidy_frames.written_columns import WrittenColumn, written_columns
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from gamelens.wire.currencies import USD_PER_UNIT

RECEIPTS: Final = "Receipts"
_FORBIDDEN: Final = re.compile(r"[\[\]:*?/\\\x00-\x1f]|^'|'$")
_MOST_LETTERS: Final = 31
_MOST_ROWS: Final = 1_048_576
_MOST_COLUMNS: Final = 16_384
_LONGEST_TEXT: Final = 32_767
_EXACT: Final = 10**15  # a spreadsheet keeps 15 digits of a number
_FIRST_DAY: Final = np.datetime64("1900-03-01")  # before it, calendars of spreadsheets differ
_WIDTHS: Final = (8, 60)
_RECEIPT_HEAD: Final = ("sheet", "what", "value")
_CHART_PIXELS: Final = (907, 454)
_BARE: Final = (bool, int, float, date)


class _SheetColumn(NamedTuple):
    """A column of a sheet: its title, cells, format, of all or of each, and whether they are bounds of another one."""

    title: str
    cells: list[Any]
    number_format: str | list[str] | None = None
    is_bound: bool = False

    def format_of(self, row: int) -> str | None:
        """Return the format of the cell of a row."""
        return self.number_format[row] if isinstance(self.number_format, list) else self.number_format


def export_excel(frames: Mapping[str, DataFrame], path: str | os.PathLike[str], *, chart: bool = False) -> Path:
    """Write *frames* as the sheets of an Excel file and return the path.

        income = lens.query("revenue", by="game", over="last 28 complete days")
        cohorts = lens.retention([1, 7], by="game", over="last 28 complete days")
        gl.export_excel({"revenue": income, "retention": cohorts}, "week.xlsx")

    Days are dates, times are dates with a time in UTC, numbers are numbers and flags are flags; a missing value is an
    empty cell. Text stays text, also where it looks like a formula; a control character is written as its number,
    `\\u{1b}`. Whole numbers of more than 15 digits, such as ids, are text, because a spreadsheet would round them.
    Money, shares and counts are shown as such, with as many decimals as in a table, and the title of a column of money
    has its unit. The first row stays in view and has filters. The last sheet, "Receipts", has a row for each entry of
    each frame's receipt. The file is replaced atomically.

    Args:
        frames: the frames by the name of their sheet, at most 31 letters.
        path: the file, which ends in .xlsx.
        chart: whether to draw the first sheet beside its cells: the numbers in the unit of its first number, as lines
            over time or as bars over its first column. `df.lens.wide()` has a column for each line.

    Raises:
        BadQuery: XlsxWriter is not installed, the folder is missing, a sheet's name is not allowed, a frame or text is
            larger than a sheet or cell may be, or the first frame has nothing to draw.
    """
    target = target_of(path, is_excel=True)
    _check_names(frames)
    sheets = {name: _columns(name, with_index(frame)) for name, frame in frames.items()}
    drawn = _drawn(*next(iter(sheets.items()))) if chart else []
    receipts = [
        (name, *entry) for name, frame in frames.items() for entry in _entries(Receipt.of(frame.attrs).to_json())
    ]
    sheets[RECEIPTS] = _columns(RECEIPTS, DataFrame(receipts, columns=list(_RECEIPT_HEAD), dtype="object"))
    try:
        xlsxwriter = import_module("xlsxwriter")
    except ImportError:
        raise BadQuery("path", str(path), "is written by XlsxWriter: pip install 'gamelens[excel]'") from None
    with (
        replace_file(target) as draft,
        _system_errors(xlsxwriter),
        xlsxwriter.Workbook(str(draft), {"constant_memory": True}) as book,
    ):
        made: dict[tuple[Any, ...], Any] = {(): None}

        def format_of(value: Any, **properties: Any) -> Any:
            """Return a format, which a workbook has once. A text that looks like a formula is marked as none."""
            said = {name: set_ for name, set_ in properties.items() if set_}
            said |= {"quote_prefix": True} if isinstance(value, str) and value[:1] in {*"=+-@'"} else {}
            key = tuple(said.items())
            return made[key] if key in made else made.setdefault(key, book.add_format(said))

        pages = [book.add_worksheet(name) for name in sheets]
        for page, columns in zip(pages, sheets.values(), strict=True):
            _write_sheet(page, columns, format_of)
        if drawn:
            _add_chart(book, pages[0], next(iter(sheets.values())), drawn)
    return target


@contextmanager
def _system_errors(xlsxwriter: Any) -> Iterator[None]:
    """In the block, an error of the system is itself, not what the library makes of it."""
    try:
        yield
    except xlsxwriter.exceptions.FileCreateError as error:
        raise error.args[0] from None


class OneFrame(BadQuery):
    """A frame where frames by sheet are wanted."""

    def amended(self, call: str) -> str:
        """Return *call* with its frame under the name of a sheet."""
        tree = ast.parse(call, mode="eval").body
        if not isinstance(tree, ast.Call):
            return ""
        named = [keyword for keyword in tree.keywords if keyword.arg == "frames"]
        for keyword in named:
            keyword.value = _by_sheet(keyword.value)
        tree.args[:1] = map(_by_sheet, tree.args[:1])
        return ast.unparse(tree)


def _by_sheet(frame: ast.expr) -> ast.expr:
    return ast.Dict(keys=[ast.Constant("data")], values=[frame])


def _check_names(frames: object) -> None:
    """Check that *frames* are frames by the name of a sheet.

    Raises:
        BadQuery: they are not, or a name is not allowed.
    """
    if isinstance(frames, DataFrame):
        rule = "must be frames by the name of their sheet"
        raise OneFrame("frames", "a DataFrame", rule, meant='{"data": df}')
    if not isinstance(frames, Mapping) or not frames:
        raise BadQuery("frames", f"a {type(frames).__name__}", 'must be frames by sheet, such as {"ads": df}')
    seen = {RECEIPTS.casefold(), "history"}
    for name in frames:
        if not isinstance(name, str) or not name or len(name) > _MOST_LETTERS or _FORBIDDEN.search(name):
            rule = rf"must be 1 to {_MOST_LETTERS} letters without [ ] : * ? / \ and no apostrophe at its ends"
            raise BadQuery("frames", name, f"is not a valid sheet name: it {rule}")
        if name.casefold() in seen:
            raise BadQuery("frames", name, "is already taken: sheet names must differ in more than case")
        seen.add(name.casefold())


def _columns(sheet: str, frame: DataFrame) -> list[_SheetColumn]:
    """Return the columns of a sheet.

    Raises:
        BadQuery: the frame does not fit on a sheet.
    """
    if len(frame) >= _MOST_ROWS or len(frame.columns) > _MOST_COLUMNS:
        rule = (
            f"does not fit on a sheet of {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns: gl.export_csv has no limit"
        )
        raise BadQuery("frames", sheet, rule)
    titles = _texts(sheet, [column_title(column) for column in frame.columns])
    named = frame.infer_objects()
    columns = []
    for title, written in zip(titles, written_columns(named), strict=True):
        column = frame.iloc[:, written.place]
        columns.append(_column(title, column, written)._replace(is_bound=written.is_bound))
    return columns


def _format(column: Series[Any], written: WrittenColumn) -> str | list[str] | None:
    """Return the format of a column or of each of its cells, None of numbers that may be ids."""
    if not ((written.is_known and written.column.is_number) or written.rows):
        return None
    if written.column.kind == "p":
        return "0.000"
    scales = [written.scale(row) for row in range(len(column))]
    if written.is_bound:
        return [scale.near(value).excel for scale, value in zip(scales, column, strict=True)]
    return [scale.excel for scale in scales] if written.rows else written.scale().excel


def _column(title: str, column: Series[Any], written: WrittenColumn) -> _SheetColumn:
    """Return a column with the cells of its type, and the format of its numbers, one for all or for each row.

    Raises:
        BadQuery: a text is too long for a cell, or cannot be encoded.
    """
    if (times := moments_of(column)) is not None:
        moments, is_days = times
        if (moments[~np.isnat(moments)] < _FIRST_DAY).any():
            texts = np.datetime_as_string(moments, unit="D" if is_days else "s")
            return _SheetColumn(title, [None if text == "NaT" else str(text) for text in texts])
        cells = list(moments.astype("datetime64[D]" if is_days else "datetime64[us]").astype(object))
        return _SheetColumn(title, cells, "yyyy-mm-dd" if is_days else "yyyy-mm-dd hh:mm:ss")
    column, values = plain_values(column)
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        unit = written.column.unit
        if written.column.kind == "money" and unit not in title:
            title = f"{title} ({unit})"
        number_format = _format(column, written)
        if written.column.kind == "number" and unit in USD_PER_UNIT:
            number_format = Scale.of("money", values).excel.replace("[$$-409]", f"[${unit}] ")
    if is_bool_dtype(column):
        return _SheetColumn(title, [None if value is None else bool(value) for value in values])
    if is_integer_dtype(column):
        of_cell = int if all(value is None or abs(int(value)) < _EXACT for value in values) else str
        return _SheetColumn(title, [None if value is None else of_cell(value) for value in values], number_format)
    if is_numeric_dtype(column):
        return _SheetColumn(title, [value if value is None else float(value) for value in values], number_format)
    return _SheetColumn(title, _texts(title, values), "yyyy-mm-dd" if infer_dtype(column) == "date" else None)


def _texts(field: str, values: Sequence[Any]) -> list[Any]:
    """Return *values* as cells: numbers, flags and dates as they are, everything else as text.

    Raises:
        BadQuery: a text is too long for a cell, or holds what UTF-8 cannot encode.
    """
    plain = [None if value is None or isinstance(value, _BARE) else str(value) for value in values]
    try:
        safe = numbered(pa.array(plain, pa.string())).to_pylist()
    except UnicodeEncodeError as error:
        raise BadQuery(field, error.object[:40], "holds half of a surrogate pair, which UTF-8 cannot encode") from None
    for text in safe:
        if text is not None and len(text) > _LONGEST_TEXT:
            raise BadQuery(field, f"{text[:40]}...", f"is longer than the {_LONGEST_TEXT:,} letters of a cell")
    return [value if text is None else text for value, text in zip(values, safe, strict=True)]


def _drawn(sheet: str, columns: Sequence[_SheetColumn]) -> list[int]:
    """Return the places of the columns that a chart of the sheet draws.

    Raises:
        BadQuery: there is no number, or a name or day of the first column has several rows.
    """
    numbers = [place for place, column in enumerate(columns) if place and _is_number(column) and not column.is_bound]
    if not numbers:
        raise BadQuery("chart", sheet, "has no numbers to draw")
    names = [*map(str, columns[0].cells)]
    if len({*names}) < len(names):
        raise BadQuery("chart", sheet, f"has several rows for one {columns[0].title}: pass df.lens.wide() to draw it")
    return [place for place in numbers if columns[place].number_format == columns[numbers[0]].number_format]


def _is_number(column: _SheetColumn) -> bool:
    return any(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in column.cells)


def _add_chart(book: Any, page: Any, columns: Sequence[_SheetColumn], drawn: Sequence[int]) -> None:
    """Draw the columns at the places *drawn* to the right of the cells."""
    chart = book.add_chart({"type": "line" if isinstance(columns[0].cells[0], date) else "column"})
    rows = len(columns[0].cells)
    for place in drawn:
        cells = {
            "name": [page.get_name(), 0, place],
            "categories": [page.get_name(), 1, 0, rows, 0],
            "values": [page.get_name(), 1, place, rows, place],
        }
        chart.add_series(cells)
    chart.set_y_axis({"num_format": columns[drawn[0]].format_of(0) or "General"})
    chart.set_x_axis({"num_format": columns[0].format_of(0) or "General"})
    chart.set_title({"name": columns[drawn[0]].title} if len(drawn) == 1 else {"none": True})
    chart.set_size(dict(zip(("width", "height"), _CHART_PIXELS, strict=True)))
    page.insert_chart(1, len(columns) + 1, chart)


def _write_sheet(page: Any, columns: Sequence[_SheetColumn], format_of: Callable[..., Any]) -> None:
    """Write the titles in bold, the cells below them, and the widths that show them."""
    page.freeze_panes(1, 0)
    if columns:
        page.autofilter(0, 0, len(columns[0].cells), len(columns) - 1)
    for place, column in enumerate(columns):
        longest = max(len(str(value)) for value in (column.title, *column.cells[:200]))
        page.set_column(place, place, min(max(longest + 2, _WIDTHS[0]), _WIDTHS[1]))
        page.write_string(0, place, column.title, format_of(column.title, bold=True))
    for row in range(len(columns[0].cells) if columns else 0):
        for place, column in enumerate(columns):
            value, written = column.cells[row], column.format_of(row)
            if isinstance(value, float) and not math.isfinite(value):  # a cell cannot hold it
                value = str(value)
            if isinstance(value, str):  # one of text is never a formula, neither now nor after it is edited
                page.write_string(row + 1, place, value, format_of(value))
            elif isinstance(value, bool):
                page.write_boolean(row + 1, place, value)
            elif isinstance(value, date):
                usual = "yyyy-mm-dd hh:mm:ss" if isinstance(value, datetime) else "yyyy-mm-dd"
                page.write_datetime(row + 1, place, value, format_of(value, num_format=written or usual))
            elif value is not None:
                page.write_number(row + 1, place, value, format_of(value, num_format=written))


def _entries(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """Yield each value of a receipt with its path, such as `asked.metric`.

    A list of texts is one value.
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _entries(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value, 1):
            yield from _entries(part, f"{name}.{number}")
    elif value not in (None, []):
        yield name, "; ".join(map(str, value)) if isinstance(value, list) else value
