"""A table as text: columns of a fixed-width font, notes and source below."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Final

from gamelens._text import printable
from gamelens.notebook.tables.bars import text_bars

if TYPE_CHECKING:
    from gamelens.notebook.tables.table_contents import TableColumn, TableContents

TOTAL: Final = "Total"
_WIDEST: Final = 100_000
_MARKS: Final = "¹²³"


def text_of_table(contents: TableContents) -> str:
    """Return the table as lines of text, without trailing blanks."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_footer=contents.has_total, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(contents.columns):
        total = TOTAL if place == 0 and contents.has_row_names else column.total
        table.add_column(
            Text(heading_of(column)),
            Text(total),
            justify="right" if column.is_number else "left",
            no_wrap=True,
        )
    for row in zip(*cells_of(contents), strict=True):
        table.add_row(*map(Text, row))
    page = StringIO()
    Console(file=page, width=_WIDEST, color_system=None, force_jupyter=False).print(table)
    left_out = printable(contents.left_out)
    below = [*map(printable, contents.against), contents.cut, left_out, *notes_of(contents), printable(contents.source)]
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join([*(line for line in lines if line), *(line for line in below if line)])


def heading_of(column: TableColumn) -> str:
    """Return the heading of *column*, with its unit."""
    return printable(f"{column.name} ({column.unit})" if column.unit else column.name)


def cells_of(contents: TableContents) -> list[list[str]]:
    """Return the cells of each column. Those of the first have the marks of notes on their rows."""
    marks = {row: mark for mark, rows in zip(_MARKS, contents.notes.values(), strict=False) for row in rows}
    columns = []
    for place, column in enumerate(contents.columns):
        texts = [printable(text) for text in column.texts]
        if column.changes:
            texts = [f"{text} ({' · '.join(changes)})" for text, *changes in zip(texts, *column.changes, strict=True)]
        if column.bars is not None:
            texts = [f"{bar} {text}" for bar, text in zip(text_bars(column.bars), texts, strict=True)]
        columns.append([text + marks.get(row, "") for row, text in enumerate(texts)] if place == 0 else texts)
    return columns


def notes_of(contents: TableContents) -> list[str]:
    """Return the notes on rows, each behind its mark."""
    return [f"{mark} {note}" for mark, note in zip(_MARKS, contents.notes, strict=False)]
