"""The explorer: pickers, and below them the table, the figure and the code of their query."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import ipywidgets
from pandas import DataFrame

from gamelens.analysis.tidy_frames.columns import name_of
from gamelens.analysis.tidy_frames.frame_columns import catalog_of
from gamelens.client.async_client import AsyncClient
from gamelens.client.base_client import BaseClient, quiet_copy
from gamelens.client.connection.event_loop import gather
from gamelens.client.query.arguments import Where
from gamelens.client.query.signatures import with_plain_types
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery, Retryable, suggests_names
from gamelens.notebook import charts
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.background_task import LatestTask, Showing, all_settled
from gamelens.notebook.widgets.controls import Button, Code, Pane
from gamelens.notebook.widgets.form_query import FormQuery, empty_pairs, needs_age, only_match, own_bucket, range_text
from gamelens.notebook.widgets.html_blocks import error_text
from gamelens.notebook.widgets.query_form import AGES, FormChoices, QueryForm
from gamelens.notebook.widgets.static_view import StaticView, WidgetWithStaticView
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Granularity

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

DEADLINE_S: Final = 60.0
FIRST_ANSWER_S: Final = 20.0  # how long the cell that shows the explorer waits for something to show


@suggests_names
class Explorer(WidgetWithStaticView):
    """A widget that runs the picked query in the background and shows the newest answer.

    Attributes:
        picked: the query.
        frame: the newest answer, or None.
        figure: the figure of `frame`, or None.
        pick: the pickers.
        again: the button that runs the query anew.
    """

    def __init__(self, lens: BaseClient, picked: FormQuery, *, name: str) -> None:
        self._lens = quiet_copy(lens, AsyncClient)
        self._name = name
        self._lock = RLock()
        self._answers, self._lists, self._values = LatestTask(), LatestTask(quiet_s=0.0), LatestTask()
        self.picked: FormQuery = picked
        self.frame: DataFrame | None = None
        self.figure: Figure | None = None
        self.pick = QueryForm(picked, lens.metric_catalog, on_change=self._changed, on_dimension=self._ask_values)
        self.again = Button(
            "Ask again",
            on_click=self.ask_again,
            tooltip="requests everything from the service again, including the lists",
        )
        self._status, self._list_status, self._table, self._code = Pane(), Pane(), Pane(), Code()
        self._output, self._is_stale = ipywidgets.Output(), True
        panels = [self._list_status, self._status, self._output, self._table, self._code]
        super().__init__([self.pick, self.again, *panels])
        self.ask_again(quiet_s=0.0)

    @property
    def code(self) -> str:
        """The call of the picked query, as text to copy into a cell."""
        return self.picked.code(self._name)

    def ask_again(self, *, quiet_s: float | None = None) -> None:
        """Query the lists of the pickers and the picked query anew."""
        self._lists.start(self._list)
        self._ask(quiet_s=quiet_s)
        self._ask_values()

    def settled(self, within_s: float = FIRST_ANSWER_S) -> bool:
        """Wait until no query is under way. Returns False if that takes longer than *within_s*."""
        return all_settled((self._lists, self._values, self._answers), within_s)

    def static(self) -> StaticView:
        """Return the contents as ordinary outputs, once the query under way is answered."""
        self.settled()
        answer = "" if self._is_stale else self._table.value  # a page cannot show that it is an older one
        code = html_blocks.code(self._code.value) if self._code.value else ""
        shown = (self._list_status.value, self._status.value, answer, code)
        return StaticView("".join(shown), None if self._is_stale else self.figure)

    def close(self) -> None:
        """Stop all queries, and remove the widget from the page."""
        for task in (self._answers, self._lists, self._values):
            task.stop()
        super().close()

    def _changed(self) -> None:
        with self._lock:
            if (picked := self.pick.picked) != self.picked:
                self.picked = picked
                self._ask()

    def _ask(self, *, quiet_s: float | None = None) -> None:
        self._status.value = html_blocks.message("asking …", "asking")
        self._show_stale(True)
        self._answers.start(partial(self._answer, self.picked), quiet_s=quiet_s)

    async def _answer(self, picked: FormQuery) -> Showing:
        """Run the query, draw its answer, and return the function that shows it or the error."""
        try:
            frame = await self._lens.query(picked.metric, **picked.arguments(), on_error="gaps", deadline_s=DEADLINE_S)
            table = await asyncio.to_thread(html_blocks.table, _newest_first(frame))
            figure, undrawn = await asyncio.to_thread(_draw, frame, picked.metric)
        except Exception as error:  # a widget has no caller that could handle it
            return partial(self._fail, picked, error_text(error), is_gone=isinstance(error, Retryable))
        empty = empty_pairs(picked, self._lens.metric_catalog)
        remarks = " ".join(part for part in (*_limitations(frame), undrawn, *empty) if part)
        return partial(self._show, picked, frame, table, figure, remarks)

    def _show(self, picked: FormQuery, frame: DataFrame, table: str, figure: Figure | None, remarks: str) -> None:
        self.frame, self.figure = frame, figure
        self._table.value = table
        self._show_stale(False)
        self._code.value = picked.code(self._name)
        self._output.outputs = html_blocks.outputs_of([figure] if figure is not None else [])
        self._status.value = html_blocks.message(remarks, "wrong" if remarks else "quiet")

    def _fail(self, picked: FormQuery, why: str, *, is_gone: bool) -> None:
        """Show *why* the query failed.

        The previous answer stays, dimmed, where the service is gone. Else it is removed.
        """
        if not is_gone:
            self.frame = self.figure = None
            self._table.value, self._output.outputs = "", ()
        self._code.value = picked.code(self._name)
        self._status.value = html_blocks.message(why, "wrong")

    def _show_stale(self, is_stale: bool) -> None:
        """Dim the answer while another one is asked for."""
        self._is_stale = self._table.is_stale = is_stale
        (self._output.add_class if is_stale else self._output.remove_class)("gamelens-stale")

    async def _list(self) -> Showing:
        """Query what the pickers offer. Returns the function that shows it, or the error."""
        try:
            available = await self._lens.available()
            requests: list[Coroutine[Any, Any, Any]] = [self._lens.metrics(), self._lens.dimensions()]
            requests += [self._lens.games(over=available), self._lens.studios(over=available)]
            lists = FormChoices(available, *await gather(requests))
        except Exception as error:
            why = f"The pickers show what is known without the service. {error_text(error)}"
            return partial(self._show_lists, why)
        return partial(self._show_lists, "", partial(self.pick.offer, lists))

    def _ask_values(self) -> None:
        if self.pick.where.value:
            self._values.start(partial(self._list_values, self.pick.where.value))

    async def _list_values(self, dimension: str) -> Showing:
        """Query the values of *dimension*. Returns the function that shows them."""
        try:
            values = await self._lens.dimension_values(dimension, over=await self._lens.available())
        except Exception as error:
            return partial(self._show_lists, f"The values of {dimension} are not known. {error_text(error)}")
        return partial(self._show_lists, "", partial(self.pick.offer_values, values))

    def _show_lists(self, why: str, offer: Showing | None = None) -> None:
        """Call *offer* with the new lists, and show *why* there are none, if so."""
        self._list_status.value = html_blocks.message(why, "wrong")
        if offer is not None:
            offer()


@with_plain_types
def explorer(
    lens: BaseClient,
    *,
    metric: str = "revenue",
    by: str | list[str] | None = None,
    over: TimeRange = "last 28 complete days",
    every: Granularity | None = None,
    where: Where | None = None,
    top: int | None = 20,
    games: str | list[str] | None = None,
    studio: str | None = None,
    since_days_ago: int | None = None,
    name: str = "lens",
) -> Explorer:
    """Return pickers for one metric, with its table, its figure and the code of the query.

    Example: `widgets.explorer(lens, metric="ilrd_revenue", by="game")`

    Nothing blocks but the cell that shows the widget, until the first answer is there.

    Args:
        lens: a client.
        metric: a metric or an alias, such as `arpdau`.
        by: up to two dimensions.
        over: a time range, as in `Client.query`.
        every: the bucket. None is the metric's own, or a day.
        where: a filter of one dimension and its values.
        top: the number of values of *by*, the largest first. None means all.
        games: ids or titles of games. None means all.
        studio: the id or name of a studio. None means all.
        since_days_ago: the age, for a retention metric.
        name: name of the client in the notebook, for the code.

    Raises:
        BadQuery: *lens* is not a client, there are more than two dimensions, or the pickers cannot show the filter.
    """
    if not isinstance(lens, BaseClient):
        raise BadQuery("lens", type(lens).__name__, "must be a client: gl.connect() gives one")
    picked = FormQuery(
        metric=metric,
        by=_as_tuple(by),
        over=range_text(over),
        every=every or own_bucket(metric, lens.metric_catalog) or "day",
        where=only_match(where),
        top=top,
        games=_as_tuple(games),
        studio=studio,
        since_days_ago=since_days_ago if since_days_ago or not needs_age(metric) else AGES[0],
    )
    if len(picked.by) > 2:
        raise BadQuery("by", list(picked.by), "must be two dimensions at most here: query() takes more")
    return Explorer(lens, picked, name=name)


def _as_tuple(names: str | list[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _newest_first(frame: DataFrame) -> DataFrame:
    return frame.sort_values("timestamp", ascending=False, kind="stable")


def _draw(frame: DataFrame, metric: str) -> tuple[Figure | None, str]:
    """Return the figure of *frame*, or None and the reason why it cannot be drawn."""
    try:
        is_one_bucket = frame["timestamp"].nunique() == 1
        return (charts.draw_bars(frame) if is_one_bucket else charts.draw_lines(frame)), ""
    except BadQuery as error:
        return None, f"{name_of(metric, catalog_of(frame))} cannot be drawn: {error}"


def _limitations(frame: DataFrame) -> list[str]:
    """Return what the receipt says is missing from the frame, and its warnings."""
    receipt = Receipt.of(frame.attrs)
    gaps = receipt.gaps
    pieces = "1 piece is" if len(gaps) == 1 else f"{len(gaps)} pieces are"
    missing = [f"{pieces} missing: {gap.error.rstrip('.')}. Press Ask again for the rest." for gap in gaps[:1]]
    cut = [f"Cut to what is available: {receipt.clipped}."] if receipt.clipped else []
    return [*missing, *cut, *receipt.warnings]
