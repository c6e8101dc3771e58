"""Frames as tables: boxes in a terminal, plain columns in a pipe.

A terminal shows the names, units, numbers and notes of `df.lens.table()`, a pipe the names and numbers of the frame.
Numbers are aligned right and never cut. In a pipe a missing value of a dimension is `(unknown)`, a missing number an
empty cell. A frame wider than the terminal is shown as several tables, each with the timestamp and the dimensions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from gamelens._text import is_terminal, printable

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from rich.table import Table

    from gamelens.notebook.tables.table_contents import TableContents

UNKNOWN: Final = "(unknown)"
SHOWN_ROWS: Final = 1000
MIN_TEXT_WIDTH: Final = 12  # a name is not cut shorter
_FRAME: Final = 3  # a border and two blanks for each column
_DECIMALS: Final = 4
_MAX_DECIMALS: Final = 10


class PrintedColumn(msgspec.Struct, frozen=True):
    """One column as text.

    *is_key* marks the timestamp and dimensions, which every table repeats, *is_text* what is aligned left and may be
    cut.
    """

    name: str
    cells: list[str]
    is_key: bool = False
    is_text: bool = False

    @property
    def width(self) -> int:
        """Width of the widest cell."""
        from rich.cells import cell_len

        return max(map(cell_len, (self.name, *self.cells)))


def print_table(frame: DataFrame) -> None:
    """Print *frame* as boxes in a terminal, with notes on its rows, else as plain columns."""
    if not is_terminal(sys.stdout):
        print_columns(columns_of(frame))
        return
    from gamelens.notebook.tables.table_contents import contents_of
    from gamelens.notebook.tables.text_layout import notes_of

    contents = contents_of(frame, rows=SHOWN_ROWS, total=False, bars=())
    print_columns(screen_columns(contents))
    for note in notes_of(contents):
        click.echo(note)
    if len(frame) > SHOWN_ROWS:
        more = len(frame) - SHOWN_ROWS
        click.echo(f"… and {more:,} more rows: see all with --out FILE or --json", err=True)


def print_columns(columns: Sequence[PrintedColumn]) -> None:
    """Print *columns* as boxes in a terminal, else as plain ones."""
    if not is_terminal(sys.stdout):
        for line in plain(columns):
            click.echo(line)
        return
    from rich.console import Console

    console = Console()
    for table in boxed(columns, console.width):
        # Only keys can be wider than the terminal; rich would then cut or wrap the cells.
        console.print(table, crop=False, width=max(console.width, console.measure(table).minimum))


def screen_columns(contents: TableContents) -> list[PrintedColumn]:
    """Return the columns of *contents* for a terminal."""
    from gamelens.notebook.tables.text_layout import cells_of, heading_of

    cells = cells_of(contents)
    return [
        PrintedColumn(heading_of(column), texts, is_key=column.is_key, is_text=not column.is_number)
        for column, texts in zip(contents.columns, cells, strict=True)
    ]


def columns_of(frame: DataFrame) -> list[PrintedColumn]:
    """Return the columns of *frame* for a pipe."""
    return [_column(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)]


def plain(columns: Sequence[PrintedColumn]) -> Iterator[str]:
    """Yield lines with two blanks between *columns*, the names first."""
    from rich.cells import cell_len

    widths = [column.width for column in columns]
    for row in zip(*((column.name, *column.cells) for column in columns), strict=True):
        padded = []
        for column, width, cell in zip(columns, widths, row, strict=True):
            blanks = " " * (width - cell_len(cell))
            padded.append(cell + blanks if column.is_key or column.is_text else blanks + cell)
        yield "  ".join(padded).rstrip()


def boxed(columns: Sequence[PrintedColumn], width: int) -> Iterator[Table]:
    """Yield *columns* as one table or, if it is too wide, as several that repeat the keys."""
    widths = _widths(columns, width)
    keys = [place for place, column in enumerate(columns) if column.is_key]
    room = width - 1 - sum(widths[place] + _FRAME for place in keys)
    block: list[int] = []
    for place, column in enumerate(columns):
        if column.is_key:
            continue
        if block and sum(widths[index] + _FRAME for index in (*block, place)) > room:
            yield _table(columns, widths, [*keys, *block])
            block = []
        block.append(place)
    yield _table(columns, widths, [*keys, *block])


def _widths(columns: Sequence[PrintedColumn], width: int) -> list[int]:
    """Return the width of each column: texts share the space that other columns leave."""
    wanted = [column.width for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    values = [wanted[place] + _FRAME for place, column in enumerate(columns) if not column.is_key]
    fixed = sum(wanted[place] + _FRAME for place, column in enumerate(columns) if column.is_key and not column.is_text)
    if not texts or fixed + sum(wanted[place] + _FRAME for place in texts) + sum(values) < width:
        return wanted
    # First try all values side by side with shorter texts, then several tables with at least one value each.
    for value_width in (sum(values), max(values, default=0)):
        share = (width - 1 - fixed - value_width) // len(texts) - _FRAME
        if share >= MIN_TEXT_WIDTH:
            break
    limit = max(share, MIN_TEXT_WIDTH)
    return [min(width, limit) if column.is_text else width for width, column in zip(wanted, columns, strict=True)]


def _table(columns: Sequence[PrintedColumn], widths: Sequence[int], places: Sequence[int]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for place in places:
        column, width = columns[place], widths[place]
        table.add_column(
            Text(column.name),
            justify="left" if column.is_key or column.is_text else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=width,
            max_width=width,
        )
    for row in zip(*(columns[place].cells for place in places), strict=True):
        table.add_row(*map(Text, row))
    return table


def _column(name: str, values: Series[Any]) -> PrintedColumn:
    from pandas import CategoricalDtype
    from pandas.api import types

    name = printable(name)
    if isinstance(values.dtype, CategoricalDtype):
        return PrintedColumn(name, _texts(values, UNKNOWN), is_key=True, is_text=True)
    if types.is_datetime64_any_dtype(values):
        is_midnight = bool((values.dropna() == values.dropna().dt.normalize()).all())
        form = "%Y-%m-%d" if is_midnight else "%Y-%m-%dT%H:%MZ"
        return PrintedColumn(name, values.dt.strftime(form).fillna("").tolist(), is_key=name == "timestamp")
    if types.is_float_dtype(values):
        smallest = values.abs()[lambda sizes: sizes > 0].min()
        return PrintedColumn(name, _numbers(values, f".{_decimals(float(smallest))}f"))
    if types.is_integer_dtype(values):
        return PrintedColumn(name, _numbers(values, "d"))
    return PrintedColumn(name, _texts(values, ""), is_text=True)


def _numbers(values: Series[Any], form: str) -> list[str]:
    return ["" if is_missing else format(value, form) for value, is_missing in zip(values, values.isna(), strict=True)]


def _texts(values: Series[Any], missing: str) -> list[str]:
    return [
        missing if is_missing else printable(str(value))
        for value, is_missing in zip(values, values.isna(), strict=True)
    ]


def _decimals(smallest: float) -> int:
    """Return 4, or as many decimals as *smallest* needs to show three digits. NaN gives 4."""
    if not 0 < smallest < math.inf:
        return _DECIMALS
    return min(max(_DECIMALS, 2 - math.floor(math.log10(smallest))), _MAX_DECIMALS)
