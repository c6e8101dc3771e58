"""Key numbers: tiles at the top of a page, and the same as a table in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from pandas import DataFrame

from gamelens._text import counted
from gamelens.analysis.claims import KeyNumber
from gamelens.analysis.tidy_frames.written_columns import WrittenColumn, written_columns
from gamelens.errors import suggests_names
from gamelens.notebook.escaping import escape, escape_dollars, text_of
from gamelens.notebook.sparklines import has_sparkline, sparkline, sparkline_in_words
from gamelens.receipt_text import period_text
from gamelens.receipts import Receipt

if TYPE_CHECKING:
    from gamelens.wire.intervals import Interval

MOST_TILES: Final = 5
"""Tiles side by side, and tiles that are not folded."""
_FEWEST_ACROSS: Final = 4
"""Columns of the grid at least, so that no tile is wider than a quarter of the page."""
_MUTED: Final = "var(--jp-ui-font-color2, GrayText)"
_TILES: Final = ".gamelens-tiles.gamelens-tiles"  # twice, so that the rules of JupyterLab and of sites give way
_STYLE: Final = f"""<style>
{_TILES} {{ container-type: inline-size; margin: .6rem 0; line-height: 1.35 }}
{_TILES} p {{ margin: 0 0 .5rem; max-width: none; font-size: 13px; color: {_MUTED} }}
{_TILES} dl {{
  display: grid; grid-template-columns: repeat(var(--across), minmax(0, 1fr)); gap: 8px; margin: 0 0 8px; padding: 0 }}
{_TILES} dl > div {{
  display: flex; flex-direction: column; margin: 0; padding: 8px 12px 9px; overflow-wrap: anywhere;
  border: 1px solid var(--gamelens-tile-line, rgba(128, 128, 128, .35)); border-radius: 6px }}
{_TILES} :is(dt, dd) {{
  display: block; float: none; width: auto; margin: 0; padding: 0; font-weight: 400; text-align: left }}
{_TILES} dt {{ font-size: 13px; color: {_MUTED} }}
{_TILES} dd {{ font-size: 12px; color: {_MUTED}; font-variant-numeric: tabular-nums }}
{_TILES} dd.value {{
  font-size: clamp(14px, 2.6cqi, 24px); font-weight: 650; line-height: 1.25; color: var(--jp-ui-font-color0, inherit) }}
{_TILES} dd.up {{ font-weight: 600; color: var(--gamelens-up, var(--jp-ui-font-color0, inherit)) }}
{_TILES} dd.down {{ font-weight: 600; color: var(--gamelens-down, var(--jp-ui-font-color0, inherit)) }}
{_TILES} dd.course {{ margin-top: auto; padding-top: 4px; line-height: 0 }}
{_TILES} svg {{ width: 100%; max-width: 180px; height: auto }}
{_TILES} summary {{ font-size: 13px; color: {_MUTED}; cursor: pointer }}
{_TILES} details[open] summary {{ margin-bottom: 8px }}
@container (max-width: 620px) {{
  {_TILES} dl {{ grid-template-columns: repeat(min(2, var(--across)), minmax(0, 1fr)) }}
  {_TILES} dl > div:last-child:nth-child(odd) {{ grid-column: 1 / -1 }}
  {_TILES} div:last-child:nth-child(odd):has(.course) {{
    display: grid; grid-template-columns: 1fr 1fr; column-gap: 32px }}
  {_TILES} div:last-child:nth-child(odd):has(.course) > * {{ grid-column: 1 }}
  {_TILES} div:last-child:nth-child(odd) > dd.course {{ grid-area: 1 / 2 / span 5; align-self: end }}
  {_TILES} dd.value {{ font-size: 22px }} }}
</style>"""


class _Cells(NamedTuple):
    """A number in words, with "" for what is unknown: name, value, interval, change with its interval, target.

    *against* is what the change is from.
    """

    name: str
    value: str
    interval: str
    change: str
    target: str
    against: str


@suggests_names
class KeyNumbers:
    """Key numbers as tiles in notebooks and reports, and as a table where only Markdown or text is shown.

    Names from outside are escaped in each of them.
    """

    def __init__(self, numbers: Sequence[KeyNumber], period: str) -> None:
        self._numbers = [*numbers]
        self._period = period
        self._cells = _cells_of(self._numbers)

    def __repr__(self) -> str:
        return f"<{len(self._numbers)} key numbers>"

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_markdown_(self) -> str:
        return self.data

    @property
    def data(self) -> str:
        """The period, and a table in Markdown. A column that no number fills is left out."""
        headings = ("Number", "Value", "95% interval", "Change", "Target")
        rows = [
            [
                text_of(cells.name),
                escape_dollars(cells.value),
                escape_dollars(cells.interval),
                _change(cells, text_of),
                escape_dollars(cells.target),
            ]
            for cells in self._cells
        ]
        shown = [place for place in range(len(headings)) if any(row[place] for row in rows)]
        lines = [[*headings], ["---", *["---:"] * (len(headings) - 1)], *rows]
        texts = (" | ".join(line[place] for place in shown) for line in lines)
        table = "\n".join(f"| {text} |" for text in texts) if rows else ""
        return f"{self._period}\n\n{table}"

    def html(self) -> str:
        """Return the tiles as HTML that follows the theme of its page, light or dark; those after the fifth fold."""
        tiles = [_tile(number, cells) for number, cells in zip(self._numbers, self._cells, strict=True)]
        first, more = tiles[:MOST_TILES], tiles[MOST_TILES:]
        words = counted(len(more), "more number")
        folded = f"<details><summary>{words}</summary>{_list_of(more, MOST_TILES)}</details>" if more else ""
        period = f"<p>{escape(self._period)}</p>" if self._period else ""
        # The classes keep MathJax from reading dollar signs as formulas.
        return (
            f'<div class="gamelens-tiles tex2jax_ignore mathjax_ignore">{_STYLE}{period}'
            f"{_list_of(first, len(first)) if first else ''}{folded}</div>"
        )


def key_numbers(
    frame: DataFrame,
    numbers: Iterable[KeyNumber],
    *,
    before: DataFrame | None = None,
    period: Interval | None = None,
) -> KeyNumbers:
    """Return *numbers* as tiles below the period of *frame*: value, interval, change, course and target of each.

    Five tiles at most stand side by side, on a phone two, and those after the fifth fold. Only a change whose interval
    excludes no change has a colour.

    Args:
        frame: a frame with a receipt, which has the period.
        numbers: the most important first.
        before: a frame of the period that they changed from, which is then named too.
        period: what the numbers are of, where that is a part of the frame.
    """
    of_frame, of_before = (Receipt.of(given.attrs).interval if given is not None else None for given in (frame, before))
    period = period or of_frame
    words = period_text(period) if period else ""
    if of_before:
        words += f". Changes are from {period_text(of_before)}{_longer_by(of_before, period)}."
    numbers = [*numbers]
    every = {number.every for number in numbers if has_sparkline(number.history)}
    if len(every) == 1 and every != {"day"}:
        words += f"{' ' if words.endswith('.') else '. '}Lines: a point a {every.pop()}."
    return KeyNumbers(numbers, words)


def _longer_by(before: Interval, period: Interval | None) -> str:
    """Return by how many days a month before is longer or shorter than *period*, empty where they are equally long."""
    days = 0 if period is None else (before.length - period.length).days
    return f", {counted(abs(days), 'day')} {'more' if days > 0 else 'fewer'}" if days else ""


def _list_of(tiles: Sequence[str], across: int) -> str:
    return f'<dl style="--across:{max(across, _FEWEST_ACROSS)}">{"".join(tiles)}</dl>'


def _tile(number: KeyNumber, cells: _Cells) -> str:
    """Return a tile as HTML. Every text is escaped here."""
    direction = ("up" if number.change > 0 else "down") if number.is_clear else "usual"
    change = f'<dd class="{direction}">{_change(cells, escape)}</dd>'
    label = f"{cells.name}, {_history_in_words(number)}" if has_sparkline(number.history) else ""
    picture = sparkline(number.history, label)
    return (
        f'<div><dt>{escape(cells.name)}</dt><dd class="value">{escape(cells.value)}</dd>'
        + (f"<dd>likely {escape(cells.interval)}</dd>" if cells.interval else "")
        + (change if cells.change else "")
        + (f"<dd>Target {escape(cells.target)}</dd>" if cells.target else "")
        + (f'<dd class="course">{picture}</dd>' if picture else "")
        + "</div>"
    )


def _history_in_words(number: KeyNumber) -> str:
    """Return the history of *number* in words, in its unit."""
    frame = DataFrame({"value": number.history, "unit": number.kind})
    column = next(column for column in written_columns(frame) if column.name == "value")
    return sparkline_in_words(number.history, number.every, lambda value: column.text(value, 0))


def _cells_of(numbers: Sequence[KeyNumber]) -> list[_Cells]:
    """Return the texts of each number.

    Numbers with an interval have the decimal places of their kind, each of the others has its own.
    """
    fields = [name for name in KeyNumber.__struct_fields__ if name not in ("history", "every")]
    frame = DataFrame([msgspec.structs.asdict(number) for number in numbers], columns=fields)
    frame = frame.rename(columns={"kind": "unit"}).assign(measure=frame["name"].where(frame["low"].isna(), ""))
    written = {column.name: column for column in written_columns(frame)}
    rows = []
    for place, number in enumerate(numbers):
        value, interval = _texts(written["value"], place, number.value, number.low, number.high)
        change, of_change = _texts(written["change"], place, number.change, number.change_low, number.change_high)
        change = "" if change == "n/a" else f"{change} ({of_change})" if of_change else change
        target = "" if math.isnan(number.target) else written["value"].text(number.target, place)
        rows.append(
            _Cells(_capitalised(number.name), value, interval, change, target, number.against if change else "")
        )
    return rows


def _change(cells: _Cells, escaped: Callable[[str], str]) -> str:
    """Return the change and what it is from, which may be a name from outside."""
    return escape_dollars(cells.change) + (f" vs {escaped(cells.against)}" if cells.against else "")


def _texts(column: WrittenColumn, place: int, value: float, low: float, high: float) -> tuple[str, str]:
    """Return a number, and its interval or an empty text without one."""
    is_interval = not (math.isnan(low) or math.isnan(high))
    return column.text(value, place), column.interval_text(low, high, place) if is_interval else ""


def _capitalised(name: str) -> str:
    """Return *name* with a capital, unless it begins like eCPM."""
    return name if name[1:2].isupper() else name[:1].upper() + name[1:]
