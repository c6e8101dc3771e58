"""A table as HTML, laid out by great-tables.

great-tables reads braces, Markdown and units in some places and not in others, so it gets a placeholder for each text,
and the escaped texts take their places afterwards. Its style sheet is left out: it paints on white and restyles the
other tables of a page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pandas import DataFrame

from gamelens.notebook.labels import escape
from gamelens.notebook.tables.bars import svg_bars, text_bars
from gamelens.notebook.tables.table_source import badged
from gamelens.notebook.tables.text_layout import TOTAL

if TYPE_CHECKING:
    from great_tables import GT

    from gamelens.notebook.tables.table_contents import TableColumn, TableContents

_MUTED: Final = "var(--jp-ui-font-color2, GrayText)"
_LINE: Final = "var(--jp-border-color1, currentColor)"
_TABLE: Final = ".gamelens-table.gamelens-table"  # twice, so that the rules of JupyterLab and of sites give way
STYLE: Final = f"""<style>
{_TABLE} {{ overflow-x: auto; margin: .6rem 0; container-type: inline-size }}
{_TABLE} table {{ border-collapse: collapse; margin: 0; font-variant-numeric: tabular-nums }}
{_TABLE} :is(th, td) {{
  padding: .3em .75em; border: 0; text-align: left; vertical-align: baseline; font-weight: 400; white-space: normal }}
{_TABLE} .gt_right {{ text-align: right }}
{_TABLE} td.gt_right {{ white-space: nowrap }}
{_TABLE} thead th {{ border-bottom: 1px solid {_LINE}; font-weight: 600; vertical-align: bottom }}
{_TABLE} th small {{ display: block; max-width: 9em; font-weight: 400; color: {_MUTED} }}
{_TABLE} th.gt_right small {{ margin-left: auto }}
{_TABLE} :is(tbody th, td) small {{ display: block; max-width: none; white-space: nowrap; color: {_MUTED} }}
{_TABLE} tbody :is(th, td).gt_grand_summary_row {{ border-top: 1px solid {_LINE}; font-weight: 600 }}
{_TABLE} tfoot td {{ padding: .15em .75em; color: {_MUTED}; font-size: .85em }}
{_TABLE} tfoot tr:first-child td {{ border-top: 1px solid {_LINE}; padding-top: .5em }}
{_TABLE} .gt_footnote_marks {{ font-size: .75em; vertical-align: .4em }}
{_TABLE} tfoot td > span:not(.gt_footnote_marks) {{
  position: sticky; left: .75em; display: inline-block; max-width: calc(100cqw - 2.75em); vertical-align: top }}
{_TABLE} td svg {{ display: inline-block; margin-right: .8em }}
@container (max-width: 480px) {{ {_TABLE} td svg {{ display: none }} }}
</style>"""
_CELL: Final = "padding:4px 12px;font:14px sans-serif;vertical-align:baseline"
_HEADING: Final = "padding:4px 12px;font:bold 14px sans-serif;border-bottom:1px solid #888;vertical-align:bottom"
_TOTAL: Final = "padding:4px 12px;font:bold 14px sans-serif;border-top:1px solid #888"
_FOOT: Final = "padding:4px 12px;font:12px sans-serif;color:#666"
_BAR: Final = "color:#4477aa;font-family:monospace;white-space:pre"
_FOR_PAGES: Final = r' (class|headers|id|data-quarto-[a-z-]+)="[^"]*"| (row|col)span="1"'
_LEFT: Final = ";text-align:left"
_RIGHT: Final = ";text-align:right"


def html_of_table(contents: TableContents, *, is_mail: bool = False) -> str:
    """Return the table as HTML.

    Args:
        contents: its texts.
        is_mail: style attributes in place of a style sheet, and bars of block characters in place of SVG.
    """
    if not contents.columns:
        return ""
    texts = _Placeholders()
    laid_out = _layout(contents, texts, is_mail=is_mail)
    table = re.search(r"<table.*</table>", laid_out.as_raw_html(), re.DOTALL)
    if table is None:
        raise RuntimeError("great-tables made no table")
    if is_mail:
        return texts.filled_in(re.sub(_FOR_PAGES, "", table[0]))
    label = escape(contents.label)
    # The classes keep MathJax from reading dollar signs as formulas.
    return (
        f'<div class="gamelens-table tex2jax_ignore mathjax_ignore" role="group" aria-label="{label}" tabindex="0">'
        f"{STYLE}{texts.filled_in(table[0])}</div>"
    )


class _Placeholders:
    """Texts for which great-tables gets placeholders."""

    def __init__(self) -> None:
        self._markup: list[str] = []

    def of(self, markup: str) -> str:
        """Return the placeholder of *markup*."""
        self._markup.append(markup)
        return f"text-{len(self._markup) - 1}-"

    def filled_in(self, page: str) -> str:
        """Return *page* with the texts in place of their placeholders."""
        return re.sub(r"text-(\d+)-", lambda found: self._markup[int(found[1])], page)


def _layout(contents: TableContents, texts: _Placeholders, *, is_mail: bool) -> GT:
    """Return the table with placeholders for all its texts."""
    from great_tables import GT, loc

    names = [f"c{place}" for place in range(len(contents.columns))]
    cells = {
        name: list(map(texts.of, _cells(column, contents.compared if name == "c0" else (), is_mail=is_mail)))
        for name, column in zip(names, contents.columns, strict=True)
    }
    headings = {
        name: texts.of(_heading(column, is_mail=is_mail)) for name, column in zip(names, contents.columns, strict=True)
    }
    numbers = [name for name, column in zip(names, contents.columns, strict=True) if column.is_number]
    stub = names[0] if contents.has_row_names else None
    identity = sha256(msgspec.json.encode(contents, enc_hook=str)).hexdigest()[:12]
    table = GT(DataFrame(cells, dtype="object"), rowname_col=stub, id=f"gamelens-{identity}").cols_label(dict(headings))
    table = table.cols_align("left").cols_align("right", columns=numbers)
    table = table if stub is None else table.tab_stubhead(headings[stub])
    if contents.has_total:
        totals = {name: texts.of(escape(column.total)) for name, column in zip(names, contents.columns, strict=True)}
        table = table.grand_summary_rows(fns={TOTAL: lambda _: _series(totals)})
    for note, rows in contents.notes.items():
        where = loc.stub(rows=list(rows)) if stub else loc.body(columns=names[:1], rows=list(rows))
        table = table.tab_footnote(texts.of(_note(escape(note))), locations=where)
    for line in filter(
        None,
        (
            *map(escape, contents.against),
            escape(contents.cut),
            escape(contents.left_out),
            badged(contents.source, contents.badge),
        ),
    ):
        table = table.tab_source_note(texts.of(_note(line)))
    return (
        _with_styles(table, [name for name in names if name != stub and name not in numbers], numbers)
        if is_mail
        else table
    )


def _with_styles(table: GT, words: Sequence[str], numbers: Sequence[str]) -> GT:
    """Return *table* with style attributes, for mail clients that ignore style sheets."""
    from great_tables import loc, style

    left, right = list(words), list(numbers)
    styles: dict[str, list[Any]] = {
        _HEADING + _LEFT: [loc.stubhead(), loc.column_labels(left)],
        _HEADING + _RIGHT: [loc.column_labels(right)],
        _CELL + _LEFT: [loc.stub(), loc.body(left)],
        f"{_CELL}{_RIGHT};white-space:nowrap": [loc.body(right)],
        _TOTAL + _LEFT: [loc.grand_summary_stub()],
        _TOTAL + _RIGHT: [loc.grand_summary()],
        _FOOT + _LEFT: [loc.source_notes(), loc.footnotes()],
    }
    for css, places in styles.items():
        for place in places:
            table = table.tab_style(style.css(css), place)
    return table


def _series(totals: dict[str, str]) -> Any:
    from pandas import Series

    return Series(totals)


def _note(markup: str) -> str:
    return f"<span>{markup}</span>"


def _heading(column: TableColumn, *, is_mail: bool) -> str:
    unit = f"<br>{escape(column.unit)}" if is_mail else f"<small>{escape(column.unit)}</small>"
    return f"{escape(column.name)}{unit if column.unit else ''}"


def _cells(column: TableColumn, compared: Sequence[str], *, is_mail: bool) -> list[str]:
    """Return the cells as markup, with their bars and what is *compared* below. Days stay on one line."""
    texts = [escape(text) for text in column.texts]
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
