"""The health board: all games and metrics, and the segments behind a clicked row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import ipywidgets
import pandas as pd
from pandas import DataFrame, Series

from gamelens._text import one_line
from gamelens.analysis import claims, health
from gamelens.client.base_client import BaseClient, quiet_copy
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, suggests_names
from gamelens.investigations import health_check
from gamelens.notebook import charts
from gamelens.notebook.escaping import escape, plain
from gamelens.notebook.labels import shorten
from gamelens.notebook.tables.table_source import source_html
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.background_task import LatestTask, Showing, all_settled
from gamelens.notebook.widgets.controls import NOTHING, Button, Pane, Picker, RowList, TextField
from gamelens.notebook.widgets.html_blocks import error_text
from gamelens.notebook.widgets.static_view import StaticView, WidgetWithStaticView

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from gamelens.client.tables.time_ranges import TimeRange

EntryRow = dict[Any, Any]

FIRST_BOARD_S: Final = 60.0
MOST_ROWS: Final = 30
_MOST_DRAWN: Final = 6
_MOST_SEGMENTS: Final = 8
_SIGNS: Final = {"critical": "▲▲ ", "warning": "▲ "}
_BUTTON_LETTERS: Final = 26
_SERIES: Final = ("game_id", "watch", "dimension", "segment")
_BACK: Final = "The last results stay visible: press Ask again when the service is back."


@suggests_names
class HealthBoard(WidgetWithStaticView):
    """A widget that shows the report of `check_health`.

    Attributes:
        seen: the newest report, or None.
        picked: the clicked row, or None.
        least: the picker of the lowest severity shown.
        search: the text field that narrows the rows.
        rows: the rows shown.
        again: the button that checks anew.
    """

    def __init__(self, lens: BaseClient, **check_arguments: Any) -> None:
        self._lens = quiet_copy(lens, Client)
        self._check_arguments = check_arguments
        self._board_task, self._drill_task = LatestTask(quiet_s=0.0), LatestTask(quiet_s=0.1)
        self.seen: health_check.HealthReport | None = None
        self.picked: EntryRow | None = None
        self._figure: Figure | None = None
        self.least = Picker("at least", [("every row", NOTHING), *reversed(health.SEVERITIES)], NOTHING)
        self.search = TextField("search", "game, metric or segment")
        self.again = Button("Ask again", on_click=self.ask_again, tooltip="requests the newest day from the service")
        self.rows = RowList(lambda place: self.pick(self._listed[place]))
        self._listed: list[EntryRow] = []
        self._status, self._more, self._about, self._segments = Pane(), Pane(), Pane(), Pane()
        self._output = ipywidgets.Output()
        pickers = ipywidgets.Box([self.least, self.search, self.again], layout={"flex_flow": "row wrap"})
        panels = [self._status, self.rows, self._more, self._about, self._output, self._segments]
        super().__init__([pickers, *panels])
        for picker in (self.least, self.search):
            picker.observe(lambda _: self._fill(), "value")
        self.ask_again()

    @property
    def figure(self) -> Figure | None:
        """The figure of the clicked row."""
        return self._figure

    def ask_again(self) -> None:
        """Query the board anew."""
        self._status.value = html_blocks.message("asking …", "asking")
        self._board_task.start(self._load_board)

    def pick(self, row: EntryRow) -> None:
        """Show the days of a *row* of the board, and the segments behind it."""
        self.picked = row
        self._about.value = html_blocks.message(f"{row['sentence']} Looking up its segments …", "asking")
        self._drill_task.start(partial(self._drill, row))

    def shown(self) -> DataFrame:
        """Return the rows of the board that severity and search select, the worst first."""
        if self.seen is None:
            return DataFrame()
        board: DataFrame = self.seen.board
        wanted = self.search.value.strip().casefold()
        if self.least.value:
            board = board[board["severity"] >= self.least.value]
        if wanted:
            board = board[[wanted in sentence.casefold() for sentence in board["sentence"]]]
        return board

    def settled(self, within_s: float = FIRST_BOARD_S) -> bool:
        """Wait until no query is under way. Returns False if that takes longer than *within_s*."""
        return all_settled((self._board_task, self._drill_task), within_s)

    def static(self) -> StaticView:
        """Return table and figure of the worst rows, once the query under way is answered."""
        self.settled()
        if self.seen is None:
            return StaticView(self._status.value)
        table = html_blocks.table(_worst_rows(self.shown()), most=MOST_ROWS, tones="Severity")
        worst = self.shown().head(_MOST_DRAWN).to_dict("records")
        return StaticView(self._status.value + table, _draw_days(self.seen.scores, worst))

    def close(self) -> None:
        """Stop all queries, and remove the widget from the page."""
        self._board_task.stop()
        self._drill_task.stop()
        super().close()

    async def _load_board(self) -> Showing:
        """Check the health. Returns the function that shows either the report or the error."""
        try:
            seen = await asyncio.to_thread(health_check.check_health, self._lens, **self._check_arguments)
        except Exception as error:  # a widget has no caller that could handle it
            why = error_text(error, then=_BACK)
            return partial(self._fail, self._status, why)
        return partial(self._show, seen)

    @staticmethod
    def _fail(where: Any, why: str) -> None:
        where.value = html_blocks.message(why, "wrong")

    def _show(self, seen: health_check.HealthReport) -> None:
        self.seen = seen
        day = f" on {seen.day:%Y-%m-%d}" if seen.day is not None else ""
        numbers = [f"{seen.count(severity)} {severity}" for severity in reversed(health.SEVERITIES)]
        text = f"{len(seen.board):,} series{day}: {', '.join(numbers)}." if len(seen.board) else "No complete day yet."
        self._status.value = html_blocks.message(text) + html_blocks.pane(source_html(seen.board))
        self._fill()

    def _fill(self) -> None:
        """Show the worst of the selected rows, each as a button with its severity and a sentence."""
        board = self.shown()
        self._listed = board.head(MOST_ROWS).to_dict("records")
        self.rows.rows = [_row(row) for row in self._listed]
        left_out = len(board) > MOST_ROWS
        more = f"The first {MOST_ROWS} of {len(board):,} rows: search for others." if left_out else ""
        self._more.value = html_blocks.message(more if len(board) or self.seen is None else "No row matches.")

    async def _drill(self, row: EntryRow) -> Showing:
        """Draw the days and query the segments of *row*. Returns the function that shows them."""
        seen = self.seen
        try:
            figure = await asyncio.to_thread(_draw_days, seen.scores, [row]) if seen is not None else None
            html = await asyncio.to_thread(self._segment_tables, row)
        except Exception as error:
            why = error_text(error, then=_BACK)
            return partial(self._fail, self._about, why)
        return partial(self._show_drill, row, figure, html)

    def _show_drill(self, row: EntryRow, figure: Figure | None, html: str) -> None:
        self._figure = figure
        self._about.value = html_blocks.pane(f'<b class="{escape(row["severity"])}">{escape(row["sentence"])}</b>')
        self._output.outputs = html_blocks.outputs_of([figure] if figure is not None else [])
        self._segments.value = html

    def _segment_tables(self, row: EntryRow) -> str:
        """Return the segments behind *row* as HTML, one table for each dimension."""
        parts = []
        for dimension in health.drill_queries(row):
            moved = health_check.segments_of(self._lens, row, dimension)
            parts += [html_blocks.message(text) for text in claims.of(moved)["text"]]
            parts += [html_blocks.table(_worst_segments(moved, dimension), most=_MOST_SEGMENTS)]
        return "".join(parts) or html_blocks.message("There is nothing to split it by.")


def health_board(
    lens: BaseClient,
    *,
    over: TimeRange = health_check.HISTORY,
    games: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    days: int = 1,
    accept: str | Path | health.BoardNotes | None = None,
) -> HealthBoard:
    """Return a widget with all games and metrics, the worst first.

    A click on a row shows its days and the segments behind it.

    Args:
        lens: a client.
        over: the scored days and their history, as in `gamelens.notebook.check_health`.
        games: ids of games. None means all.
        metrics: as in `check_health`. None means all watched metrics.
        days: how many of the last days are scored.
        accept: accepted levels and annotations, as in `check_health`.

    Raises:
        BadQuery: *lens* is not a client.
    """
    if not isinstance(lens, BaseClient):
        raise BadQuery("lens", type(lens).__name__, "must be a client: gl.connect() gives one")
    return HealthBoard(lens, over=over, games=games, metrics=metrics and tuple(metrics), days=days, accept=accept)


def _row(row: EntryRow) -> dict[str, str]:
    """Return a row of the board as a button and a sentence. The button says severity and subject."""
    severity, about = str(row["severity"]), plain(health.subject(row))
    return {
        "label": f"{_SIGNS.get(severity, '')}{severity} · {shorten(about, _BUTTON_LETTERS)}",
        "tooltip": f"{severity}: {about}. Show its days and segments",
        "tone": severity if severity in _SIGNS else "",
        "text": one_line(row["sentence"]),
    }


def _draw_days(scores: DataFrame, rows: list[EntryRow]) -> Figure | None:
    """Return a figure with the series of each of *rows*, or None without rows.

    The series of a segment has the segment in its name.
    """
    parts = []
    for row in rows:
        series = scores[_same_series(scores, row)]
        segment: str = "" if pd.isna(row["dimension"]) else f", {_segment_name(row['segment'])}"
        parts.append(series.assign(metric=f"{row['metric']}{segment}", game=str(row["game"])))
    if not parts:
        return None
    drawn = pd.concat(parts, ignore_index=True)
    drawn.attrs = dict(scores.attrs)
    return charts.draw_bands(drawn)


def _same_series(scores: DataFrame, row: EntryRow) -> Series[bool]:
    """Return a mask of the scores that belong to the series of *row*."""
    same = Series(True, index=scores.index)
    for name in _SERIES:
        column = scores[name].astype("object")
        same &= column.isna() if pd.isna(row[name]) else column == row[name]
    return same


def _worst_rows(board: DataFrame) -> DataFrame:
    """Return what a table shows of a board: the segment where a row has one."""
    is_split = board["dimension"].notna()
    shown = board.assign(segment=[_segment_name(name) for name in board["segment"]])
    shown["segment"] = shown["segment"].where(is_split, "")
    names = ["severity", "game", "metric", *["segment"] * bool(is_split.any()), "timestamp"]
    return shown[[*names, "change", "change_low", "change_high", "sentence"]]


def _worst_segments(moved: DataFrame, dimension: str) -> DataFrame:
    """Return what a table shows of the segments by *dimension*, which is the name of their column."""
    shown = moved[["segment", "value", "expected", "change", "share_of_change", "is_moved", "kind"]]
    return shown.rename(columns={"segment": health.dimension_words(dimension)})


def _segment_name(value: Any) -> str:
    return "(unknown)" if pd.isna(value) else str(value)
