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
    marks = _row_marks(contents)
    for place, column in enumerate(contents.columns):
        heading = f"{column.name} ({column.unit})" if column.unit else column.name
        total = TOTAL if place == 0 and contents.has_row_names else column.total
        table.add_column(
            Text(printable(heading)),
            Text(total),
            justify="right" if column.is_number else "left",
            no_wrap=True,
        )
    cells = [_cells(column) for column in contents.columns]
    for row in range(contents.rows):
        texts = [cell[row] for cell in cells]
        table.add_row(*map(Text, [texts[0] + marks.get(row, ""), *texts[1:]]))
    page = StringIO()
    Console(file=page, width=_WIDEST, color_system=None, force_jupyter=False).print(table)
    notes = [f"{mark} {note}" for mark, note in zip(_MARKS, contents.notes, strict=False)]
    below = [contents.cut, *notes, printable(contents.source)]
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join([*(line for line in lines if line), *(line for line in below if line)])


def _row_marks(contents: TableContents) -> dict[int, str]:
    return {row: mark for mark, rows in zip(_MARKS, contents.notes.values(), strict=False) for row in rows}


def _cells(column: TableColumn) -> list[str]:
    texts = [printable(text) for text in column.texts]
    if column.bars is None:
        return texts
    return [f"{bar} {text}" for bar, text in zip(text_bars(column.bars), texts, strict=True)]
