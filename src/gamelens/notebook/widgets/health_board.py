"""The health board: every game and number, the worst first; a click shows its days and what is behind it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import ipywidgets
import pandas as pd
from pandas import DataFrame, Series

from gamelens._text import format_number
from gamelens.analysis import health
from gamelens.client.base_client import BaseClient
from gamelens.client.quiet_clients import QuietClient
from gamelens.notebook import charts, health_check
from gamelens.notebook.labels import escape
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.background_task import LatestTask, Showing, all_settled
from gamelens.notebook.widgets.html_blocks import error_text
from gamelens.notebook.widgets.pickers import NOTHING, one
from gamelens.notebook.widgets.static_view import StaticView, WidgetWithStaticView

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Row = dict[Any, Any]

FIRST_BOARD_S: Final = 60.0
MOST_ROWS: Final = 30
_MOST_DRAWN: Final = 6
_MOST_SEGMENTS: Final = 8
_STYLES: Final = {"critical": "danger", "warning": "warning", "info": "info"}
_SERIES: Final = ("game_id", "watch", "dimension", "segment")
_BACK: Final = "What was seen before stays: press Ask again when the service is back."


class HealthBoard(WidgetWithStaticView):
    """The health board of *lens*; `seen` is what `notebook.health_board.watch` answered, `picked` the row clicked."""

    def __init__(self, lens: BaseClient, **watched: Any) -> None:
        self._lens = QuietClient(lens)
        self._watched = watched
        self._looks, self._drills = LatestTask(quiet_s=0.0), LatestTask(quiet_s=0.1)
        self.seen: health_check.HealthReport | None = None
        self.picked: Row | None = None
        self._figure: Figure | None = None
        self.least = one("at least", [("every row", NOTHING), *reversed(health.SEVERITIES)], NOTHING)
        self.search = ipywidgets.Text(placeholder="game, metric or segment", description="search")
        self.again = ipywidgets.Button(description="Ask again", tooltip="asks the service for the newest day")
        self.rows = ipywidgets.VBox(layout={"max_height": "360px", "overflow": "auto"})  # what a click shows is below
        self._status, self._more, self._about = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._output, self._segments = ipywidgets.Output(), ipywidgets.HTML()
        pickers = ipywidgets.Box([self.least, self.search, self.again], layout={"flex_flow": "row wrap"})
        panels = [self._status, self.rows, self._more, self._about, self._output, self._segments]
        super().__init__([pickers, *panels])
        for picker in (self.least, self.search):
            picker.observe(lambda _: self._fill(), "value")
        self.again.on_click(lambda _: self.ask_again())
        self.ask_again()

    @property
    def figure(self) -> Figure | None:
        """The figure of the row that is picked."""
        return self._figure

    def ask_again(self) -> None:
        """Ask for the board anew."""
        self._status.value = html_blocks.message("asking …", "asking")
        self._looks.start(self._look)

    def pick(self, row: Row) -> None:
        """Show the days of a *row* of the board, and the segments behind it."""
        self.picked = row
        self._about.value = html_blocks.message(f"{row['sentence']} Asking for what is behind it …", "asking")
        self._drills.start(partial(self._drill, row))

    def shown(self) -> DataFrame:
        """The rows of the board that the pickers leave, the worst first."""
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
        """True once nothing is asked any more; false when that takes longer."""
        return all_settled((self._looks, self._drills), within_s)

    def static(self) -> StaticView:
        """The board as a table, and the days of its worst rows as a figure; waits for the board under way."""
        self.settled()
        if self.seen is None:
            return StaticView(self._status.value)
        table = html_blocks.table(_told(self.shown()), most=MOST_ROWS, classes={"severity": "severity"})
        worst = self.shown().head(_MOST_DRAWN).to_dict("records")
        return StaticView(self._status.value + table, _days_of(self.seen.scores, worst))

    def close(self) -> None:
        """Stop asking, and leave the page."""
        self._looks.stop()
        self._drills.stop()
        super().close()

    async def _look(self) -> Showing:
        try:
            seen = await asyncio.to_thread(health_check.check_health, self._lens, **self._watched)
        except Exception as error:  # whatever it is, a widget has nobody to raise it to
            why = error_text(error, then=_BACK)
            return partial(self._fail, self._status, why)
        return partial(self._show, seen)

    @staticmethod
    def _fail(where: Any, why: str) -> None:
        where.value = html_blocks.message(why, "wrong")

    def _show(self, seen: health_check.HealthReport) -> None:
        self.seen = seen
        day = f" on {seen.day:%Y-%m-%d}" if seen.day is not None else ""
        counted = [f"{seen.count(severity)} {severity}" for severity in reversed(health.SEVERITIES)]
        text = f"{len(seen.board):,} series{day}: {', '.join(counted)}." if len(seen.board) else "No complete day yet."
        self._status.value = html_blocks.message(text)
        self._fill()

    def _fill(self) -> None:
        """A row for each of the worst that the pickers leave: a button that says how bad, and a sentence."""
        board, before = self.shown(), self.rows.children
        self.rows.children = [self._row(row) for row in board.head(MOST_ROWS).to_dict("records")]
        left_out = len(board) > MOST_ROWS
        more = f"The first {MOST_ROWS} of {len(board):,} rows: search for others." if left_out else ""
        self._more.value = html_blocks.message(more if len(board) or self.seen is None else "No row is like that.")
        for row in before:
            for part in (*row.children, row):
                part.close()

    def _row(self, row: Row) -> Any:
        severity = str(row["severity"])
        button = ipywidgets.Button(
            description=severity,
            button_style=_STYLES.get(severity, ""),
            tooltip="show its days, and what is behind it",
            layout={"width": "92px", "flex": "0 0 auto"},
        )
        button.on_click(lambda _: self.pick(row))
        sentence = ipywidgets.HTML(html_blocks.pane(escape(row["sentence"])))
        return ipywidgets.HBox([button, sentence], layout={"flex": "0 0 auto"})

    async def _drill(self, row: Row) -> Showing:
        seen = self.seen
        try:
            figure = await asyncio.to_thread(_days_of, seen.scores, [row]) if seen is not None else None
            html = await asyncio.to_thread(self._behind, row)
        except Exception as error:
            why = error_text(error, then=_BACK)
            return partial(self._fail, self._about, why)
        return partial(self._show_drill, row, figure, html)

    def _show_drill(self, row: Row, figure: Figure | None, html: str) -> None:
        self._figure = figure
        self._about.value = html_blocks.pane(f'<b class="{escape(row["severity"])}">{escape(row["sentence"])}</b>')
        self._output.outputs = html_blocks.outputs_of([figure] if figure is not None else [])
        self._segments.value = html

    def _behind(self, row: Row) -> str:
        """The segments that moved, dimension by dimension."""
        parts = []
        for dimension in health.drill_queries(row):
            moved = health_check.segments_of(self._lens, row, dimension)
            says = next(iter(moved["says"]), "")
            parts += [html_blocks.message(says or f"by {health.dimension_words(dimension)}, none stands out")]
            parts += [html_blocks.table(_segments(moved, dimension), most=_MOST_SEGMENTS)]
        return "".join(parts) or html_blocks.message("There is nothing to split it by.")


def _days_of(scores: DataFrame, rows: list[Row]) -> Figure | None:
    """The days of the series that *rows* are about, each with its band; a segment's series is called after it."""
    parts = []
    for row in rows:
        series = scores[_is_same(scores, row)]
        of: str = "" if pd.isna(row["dimension"]) else f", {_segment(row['segment'])}"
        parts.append(series.assign(metric=f"{row['metric']}{of}", game=str(row["game"])))
    if not parts:
        return None
    drawn = pd.concat(parts, ignore_index=True)
    drawn.attrs = dict(scores.attrs)
    return charts.draw_bands(drawn)


def _is_same(scores: DataFrame, row: Row) -> Series[bool]:
    same = Series(True, index=scores.index)
    for name in _SERIES:
        column = scores[name].astype("object")
        same &= column.isna() if pd.isna(row[name]) else column == row[name]
    return same


def _told(board: DataFrame) -> DataFrame:
    """A board as people read it."""
    names = ["severity", "game", "metric", "segment", "timestamp", "change", "sentence"]
    told = board[names].astype({"severity": "str", "segment": "object"})
    told["segment"] = [
        "" if pd.isna(row["dimension"]) else _segment(row["segment"]) for row in board.to_dict("records")
    ]
    told["change"] = _percent(board["change"])
    return told.rename(columns={"timestamp": "day"})


def _segments(moved: DataFrame, dimension: str) -> DataFrame:
    names = ["segment", "value", "expected", "change", "share_of_change"]
    told = moved[names].copy()
    told["segment"] = [_segment(segment) for segment in moved["segment"]]
    told["moved"] = ["yes" if is_moved else "" for is_moved in moved["is_moved"].fillna(False)]
    for name in ("change", "share_of_change"):
        told[name] = _percent(moved[name])
    words = {"segment": health.dimension_words(dimension), "share_of_change": "share of the change"}
    return told.rename(columns=words)


def _percent(numbers: Series[Any]) -> list[str]:
    return [format_number(number, "change", places=0) for number in numbers]


def _segment(value: Any) -> str:
    return "(unknown)" if pd.isna(value) else str(value)
