"""A table as HTML. Every text is escaped where its cell is written, in `_cells`, `_heading` and `_foot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gamelens.notebook.escaping import escape
from gamelens.notebook.sparklines import sparkline
from gamelens.notebook.tables.bars import svg_bars, text_bars
from gamelens.notebook.tables.table_source import badged
from gamelens.notebook.tables.text_layout import TOTAL

if TYPE_CHECKING:
    from gamelens.notebook.tables.table_contents import TableColumn, TableContents

_MUTED: Final = "var(--jp-ui-font-color2, GrayText)"
_LINE: Final = "var(--jp-border-color1, currentColor)"
_TABLE: Final = ".gamelens-table.gamelens-table"  # twice, so that the rules of JupyterLab and of sites give way
MOST_AT_ONCE: Final = 100
"""Rows up to which a table is one. A longer one comes in parts with their headings: a browser draws those in sight."""
_PART: Final = 50
_WIDE: Final = 9
"""Columns from which on a table has narrow gaps, so that it fits a report."""
STYLE: Final = f"""<style>
{_TABLE} {{ overflow-x: auto; margin: .6rem 0; container-type: inline-size }}
{_TABLE} table {{ border-collapse: collapse; margin: 0; font-variant-numeric: tabular-nums }}
{_TABLE} :is(th, td) {{
  padding: .3em .75em; border: 0; text-align: left; vertical-align: baseline; font-weight: 400; white-space: normal }}
{_TABLE} .number {{ text-align: right }}
{_TABLE} td.number {{ white-space: nowrap }}
{_TABLE} thead th {{ border-bottom: 1px solid {_LINE}; font-weight: 600; vertical-align: bottom }}
{_TABLE} th small {{ display: block; max-width: 9em; font-weight: 400; color: {_MUTED} }}
{_TABLE} th.number small {{ margin-left: auto }}
{_TABLE} :is(tbody th, td) small {{ display: block; max-width: none; white-space: nowrap; color: {_MUTED} }}
{_TABLE} tbody :is(th, td).total {{ border-top: 1px solid {_LINE}; font-weight: 600 }}
{_TABLE} tfoot td {{ padding: .15em .75em; color: {_MUTED}; font-size: .85em }}
{_TABLE} tfoot tr:first-child td {{ border-top: 1px solid {_LINE}; padding-top: .5em }}
{_TABLE} .note-mark {{ font-size: .75em; vertical-align: .4em }}
{_TABLE} tfoot td > span:not(.note-mark) {{
  position: sticky; left: .75em; display: inline-block; max-width: calc(100cqw - 2.75em); vertical-align: top }}
{_TABLE} > .part {{
  content-visibility: auto; contain-intrinsic-height: auto {26 * _PART}px; min-width: min-content }}
{_TABLE} rect {{ fill: var(--gamelens-bar, #4477aa) }}
{_TABLE} rect.below {{ fill: var(--gamelens-bar-below, #cc6677) }}
{_TABLE} td svg {{ display: inline-block; margin-right: .8em }}
{_TABLE}:where(.wide) :is(th, td) {{ padding: .3em .4em }}
{_TABLE} td svg[role] {{ display: block; width: 64px; height: auto; margin: 0; color: {_MUTED} }}
@container (max-width: 480px) {{ {_TABLE} td svg:not([role]) {{ display: none }} }}
</style>"""
_CELL: Final = "padding:4px 12px;font:14px sans-serif;vertical-align:baseline"
_NUMBER: Final = f"{_CELL};white-space:nowrap"
_HEADING: Final = "padding:4px 12px;font:bold 14px sans-serif;border-bottom:1px solid #888;vertical-align:bottom"
_TOTAL: Final = "padding:4px 12px;font:bold 14px sans-serif;border-top:1px solid #888"
_FOOT: Final = "padding:4px 12px;font:12px sans-serif;color:#666"
_BAR: Final = "color:#4477aa;font-family:monospace;white-space:pre"


def html_of_table(contents: TableContents, *, is_mail: bool = False, tones: str = "") -> str:
    """Return the table as HTML.

    Args:
        contents: its texts.
        is_mail: style attributes in place of a style sheet, and bars of block characters in place of SVG.
        tones: the heading of a column whose texts are also the CSS classes of its cells, in a page that has them.
    """
    if not contents.columns:
        return ""
    cells = [
        _cells(column, () if place else contents.compared, is_mail=is_mail)
        for place, column in enumerate(contents.columns)
    ]
    for place, column in enumerate(contents.columns):
        if column.name == tones:
            cells[place] = [f'<span class="{text}">{text}</span>' for text in cells[place]]
    for number, rows in enumerate(contents.notes.values(), 1):
        for row in rows:
            cells[0][row] += _mark(number, is_mail=is_mail)
    headings = "".join(
        _cell(_heading(column, is_mail=is_mail), column, head="col", css=_HEADING if is_mail else "")
        for column in contents.columns
    )
    body = [_row(row, contents, is_mail=is_mail) for row in zip(*cells, strict=True)]
    if contents.has_total:
        totals = [escape(column.total) for column in contents.columns]
        if contents.has_row_names:
            totals[0] = TOTAL
        body.append(_row(totals, contents, is_mail=is_mail, is_total=True))
    foot = _foot(contents, is_mail=is_mail)

    def table_of(rows: Sequence[str], foot: str) -> str:
        return f"<table><thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody>{foot}</table>"

    if is_mail:
        return table_of(body, foot)
    if len(body) <= MOST_AT_ONCE:
        table = table_of(body, foot)
    else:
        *parts, last = (body[place : place + _PART] for place in range(0, len(body), _PART))
        tables = [*(table_of(rows, "") for rows in parts), table_of(last, foot)]
        table = "".join(f'<div class="part">{part}</div>' for part in tables)
    # The classes keep MathJax from reading dollar signs as formulas.
    wide = " wide" if len(contents.columns) >= _WIDE else ""
    return (
        f'<div class="gamelens-table tex2jax_ignore mathjax_ignore{wide}" role="group" '
        f'aria-label="{escape(contents.label)}" tabindex="0">{STYLE}{table}</div>'
    )


def _row(markups: Sequence[str], contents: TableContents, *, is_mail: bool, is_total: bool = False) -> str:
    """Return a row of the body. Its first cell is a heading if the first column names the rows."""
    cells = []
    for place, (markup, column) in enumerate(zip(markups, contents.columns, strict=True)):
        style = _TOTAL if is_total else _NUMBER if column.is_number else _CELL
        head = "row" if place == 0 and contents.has_row_names else ""
        kind = "total" if is_total else ""
        cells.append(_cell(markup, column, head=head, css=style if is_mail else "", kind=kind))
    return f"<tr>{''.join(cells)}</tr>"


def _cell(markup: str, column: TableColumn, *, head: str, css: str, kind: str = "") -> str:
    """Return a cell that shows *markup*, on the right in a column of numbers.

    Args:
        markup: what it shows, escaped.
        column: its column.
        head: `col` or `row` for a heading of a column or a row, or empty.
        css: its style attribute in mail, or empty for the classes of a page.
        kind: a class beside the one for numbers, or empty.
    """
    name = "th" if head else "td"
    scope = f' scope="{head}"' if head else ""
    classes = " ".join(filter(None, ("number" if column.is_number else "", kind)))
    if css:
        shown = f' style="{css};text-align:{"right" if column.is_number else "left"}"'
    else:
        shown = f' class="{classes}"' if classes else ""
    return f"<{name}{scope}{shown}>{markup}</{name}>"


def _foot(contents: TableContents, *, is_mail: bool) -> str:
    """Return the lines below the rows: sentences, the source, and the notes behind their marks."""
    lines = [
        *map(escape, (*contents.against, contents.cut, contents.left_out)),
        badged(contents.source, contents.badge),
    ]
    below = [f"<span>{line}</span>" for line in lines if line]
    below += [
        f"{_mark(number, is_mail=is_mail)} <span>{escape(note)}</span>" for number, note in enumerate(contents.notes, 1)
    ]
    opened = f'<td colspan="{len(contents.columns)}"' + (f' style="{_FOOT};text-align:left">' if is_mail else ">")
    rows = "".join(f"<tr>{opened}{line}</td></tr>" for line in below)
    return f"<tfoot>{rows}</tfoot>" if rows else ""


def _mark(number: int, *, is_mail: bool) -> str:
    """Return the mark of note *number*, which stands at its rows and before its text."""
    return f"<sup>{number}</sup>" if is_mail else f'<span class="note-mark">{number}</span>'


def _heading(column: TableColumn, *, is_mail: bool) -> str:
    unit = f"<br>{escape(column.unit)}" if is_mail else f"<small>{escape(column.unit)}</small>"
    return f"{escape(column.name)}{unit if column.unit else ''}"


def _cells(column: TableColumn, compared: Sequence[str], *, is_mail: bool) -> list[str]:
    """Return the cells as markup, with their bars and what is *compared* below. Days stay on one line."""
    texts = [escape(text) for text in column.texts]
    if column.sparklines and not is_mail:
        return [sparkline(values, words) for values, words in column.sparklines]
    if column.is_day:
        return [f'<span style="white-space:nowrap">{text}</span>' for text in texts]
    if column.changes or compared:
        small = '<br><small style="color:#666">' if is_mail else "<small>"
        below = column.changes or [[name] * len(texts) for name in compared]
        return [
            f'<span style="white-space:nowrap">{text}</span>'
            + "".join(f"{small}{escape(line)}</small>" for line in lines)
            for text, *lines in zip(texts, *below, strict=True)
        ]
    if column.bars is None:
        return texts
    if is_mail:
        return [
            f'<span style="{_BAR}">{bar}</span> {text}' for bar, text in zip(text_bars(column.bars), texts, strict=True)
        ]
    width = max(map(len, column.texts), default=0)  # the same for all numbers, so that all bars begin at one place
    return [
        f'{bar}<span style="display:inline-block;min-width:{width}ch">{text}</span>'
        for bar, text in zip(svg_bars(column.bars), texts, strict=True)
    ]
