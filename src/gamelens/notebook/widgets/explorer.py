"""The explorer: pickers, and below them the table, the figure and the code of what they ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import ipywidgets
from pandas import DataFrame

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.aside import Aside
from gamelens.client.faces import Face
from gamelens.client.loop import together
from gamelens.client.spans import Over
from gamelens.errors import BadQuery, PartialResult
from gamelens.notebook import charts
from gamelens.notebook.labels import name_of
from gamelens.notebook.widgets import panes
from gamelens.notebook.widgets.latest import Latest, Showing, all_settled
from gamelens.notebook.widgets.messages import said
from gamelens.notebook.widgets.pickers import NOTHING, Option, Several, distinct, label, offer, one
from gamelens.notebook.widgets.question import Picked, needs_age, only_match, written
from gamelens.notebook.widgets.twin import Twin, Twinned
from gamelens.wire.filters import Filter, WireFilter
from gamelens.wire.intervals import Granularity, Interval

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

DEADLINE_S: Final = 60.0
FIRST_ANSWER_S: Final = 20.0  # how long the cell that shows the explorer waits for something to show
_PRESETS: Final = (
    "last 7 complete days",
    "last 28 complete days",
    "last 90 complete days",
    "last 12 complete weeks",
    "last 6 complete months",
)
_NO: Final[Option] = ("—", NOTHING)
_EVERY_STUDIO: Final[Option] = ("all studios", NOTHING)
_ALL: Final = 0
_AGES: Final = (1, 3, 7, 14, 28)
_TOPS: Final = (10, 20, 50)
_ROW: Final = {"display": "flex", "flex_flow": "row wrap", "grid_gap": "2px 18px", "align_items": "flex-start"}


class Explorer(Twinned):
    """Asks *lens* what is picked, in the background, and shows the newest answer.

    `frame` is that answer, `picked` the question; `code` the cell that asks it again.
    """

    def __init__(self, lens: Face, picked: Picked, *, name: str) -> None:
        self._lens = Aside(lens)
        self._name = name
        self._lock = RLock()
        self._filling = 0
        self._answers, self._lists, self._values = Latest(), Latest(quiet_s=0.0), Latest()
        self._games: DataFrame | None = None
        self.picked: Picked = picked
        self.frame: DataFrame | None = None
        self._figure: Figure | None = None
        self._make_pickers(picked)
        self._status, self._listed = ipywidgets.HTML(), ipywidgets.HTML()
        self._table, self._code, self._output = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.Output()
        panels = [self._listed, self._status, self._output, self._table, self._code]
        super().__init__([ipywidgets.HTML(panes.STYLE), self._pickers(), *panels])
        self._watch()
        self.again.on_click(lambda _: self.ask_again())
        self.ask_again(quiet_s=0.0)

    @property
    def code(self) -> str:
        """The call that answers what is picked, as text to copy."""
        return self.picked.code(self._name)

    @property
    def figure(self) -> Figure | None:
        """The figure that is shown."""
        return self._figure

    def ask_again(self, *, quiet_s: float | None = None) -> None:
        """Ask for the lists and for what is picked, whether or not it was asked before."""
        self._lists.start(self._list)
        self._ask(quiet_s=quiet_s)
        self._ask_values()

    def settled(self, within_s: float = FIRST_ANSWER_S) -> bool:
        """True once nothing is asked any more; false when that takes longer."""
        return all_settled((self._lists, self._values, self._answers), within_s)

    def static(self) -> Twin:
        """Table, code and messages, and the figure, as ordinary outputs; waits for the answer under way."""
        self.settled()
        shown = (self._listed, self._status, self._table, self._code)
        return Twin("".join(each.value for each in shown), self._figure)

    def close(self) -> None:
        """Stop asking, and leave the page."""
        for each in (self._answers, self._lists, self._values):
            each.stop()
        super().close()

    def _make_pickers(self, picked: Picked) -> None:
        where, values = picked.where or (NOTHING, ())
        first, second = (*picked.by, NOTHING, NOTHING)[:2]
        self.metric = one("metric", sorted({*METRICS}), picked.metric)
        self.age = one("day", [(f"D{age} after install", age) for age in _AGES], picked.since_days_ago or _AGES[0])
        self.over = one("over", _PRESETS, picked.over)
        self.every = one("every", ["day", "week", "month", "all"], picked.every)
        self.by = one("by", self._dimensions([*DIMENSIONS]), first)
        self.then_by = one("and by", self._dimensions([*DIMENSIONS]), second)
        self.top = one("largest", [*((str(top), top) for top in _TOPS), ("all", _ALL)], picked.top or _ALL)
        self.studio = one("studio", [_EVERY_STUDIO], picked.studio or NOTHING)
        self.games = Several("games", picked.games)
        self.where = one("only where", [_NO, *DIMENSIONS], where)
        self.values = Several("is", values)
        self.again = ipywidgets.Button(description="Ask again", tooltip="asks the service, also for the lists")

    def _pickers(self) -> Any:
        columns = (
            [self.metric, self.age, self.over, self.every],
            [self.by, self.then_by, self.top],
            [self.studio, self.games],
            [self.where, self.values, self.again],
        )
        return ipywidgets.Box([ipywidgets.VBox(column) for column in columns], layout=_ROW)

    def _watch(self) -> None:
        for picker in (self.metric, self.age, self.over, self.every, self.by, self.then_by, self.top, self.games):
            picker.observe(lambda _: self._changed(), "value")
        self.values.observe(lambda _: self._changed(), "value")
        self.studio.observe(lambda _: self._while_filling(self._offer_games), "value")
        self.where.observe(lambda _: self._while_filling(self._forget_values), "value")
        self._show_what_applies()

    def _while_filling(self, change: Callable[[], None]) -> None:
        """Make several changes to the pickers, which are one question."""
        with self._lock:
            self._filling += 1
            try:
                change()
            finally:
                self._filling -= 1
        self._changed()

    def _changed(self) -> None:
        with self._lock:
            if self._filling or (picked := self._read()) == self.picked:
                return
            self.picked = picked
            self._show_what_applies()
            self._ask()

    def _read(self) -> Picked:
        metric, by = self.metric.value, [name for name in (self.by.value, self.then_by.value) if name]
        return Picked(
            metric=metric,
            by=tuple(dict.fromkeys(by)),
            over=self.over.value,
            every="day" if needs_age(metric) else self.every.value,
            where=(self.where.value, self.values.value) if self.where.value and self.values.value else None,
            top=self.top.value or None,
            games=self.games.value,
            studio=self.studio.value or None,
            since_days_ago=self.age.value if needs_age(metric) else None,
        )

    def _show_what_applies(self) -> None:
        """Hide what says nothing about the metric and the dimensions picked."""
        applies = {
            self.age: needs_age(self.metric.value),
            self.every: not needs_age(self.metric.value),
            self.top: bool(self.by.value or self.then_by.value),
            self.values: bool(self.where.value),
        }
        for picker, is_shown in applies.items():
            picker.layout.display = None if is_shown else "none"

    def _ask(self, *, quiet_s: float | None = None) -> None:
        self._status.value = panes.message("asking …", "asking")
        self._answers.start(partial(self._answer, self.picked), quiet_s=quiet_s)

    async def _answer(self, picked: Picked) -> Showing:
        try:
            note, frame = "", await self._lens.query(picked.metric, **picked.arguments(), deadline_s=DEADLINE_S)
        except PartialResult as error:
            note, frame = f"{error} Press Ask again for the rest.", error.frame
        except Exception as error:  # whatever it is, a widget has nobody to raise it to
            return partial(self._fail, picked, said(error))
        try:
            table = await asyncio.to_thread(panes.table, _newest_first(frame))
            figure, undrawn = await asyncio.to_thread(_draw, frame, picked.metric)
        except Exception as error:
            return partial(self._fail, picked, said(error))
        return partial(self._show, picked, frame, table, figure, note or undrawn or _reserves(frame))

    def _show(self, picked: Picked, frame: DataFrame, table: str, figure: Figure | None, note: str) -> None:
        self.frame, self._figure = frame, figure
        self._table.value = table
        self._code.value = panes.code(picked.code(self._name))
        self._output.outputs = panes.outputs_of([figure] if figure is not None else [])
        self._status.value = panes.message(note, "wrong" if note else "quiet")

    def _fail(self, picked: Picked, why: str) -> None:
        """What is shown stays no longer: it would look like the answer to what is picked now."""
        self.frame, self._figure = None, None
        self._table.value, self._output.outputs = "", ()
        self._code.value = panes.code(picked.code(self._name))
        self._status.value = panes.message(why, "wrong")

    async def _list(self) -> Showing:
        try:
            available = await self._lens.available()
            metrics, dimensions, games, studios = await together(
                _listed(work)
                for work in (
                    self._lens.metrics(),
                    self._lens.dimensions(),
                    self._lens.games(over=available),
                    self._lens.studios(over=available),
                )
            )
        except Exception as error:
            why = f"The pickers offer what is known without the service. {said(error)}"
            return partial(self._show_listed, why)
        return partial(self._while_filling, partial(self._offer, available, metrics, dimensions, games, studios))

    def _offer(
        self, available: Interval, metrics: list[str], dimensions: list[str], games: DataFrame, studios: DataFrame
    ) -> None:
        self._show_listed("")
        self._games = games
        everything = (f"all there is, {available.start:%Y-%m-%d} to {available.end:%Y-%m-%d %H:%M}", str(available))
        offer(self.metric, [*metrics])
        offer(self.over, [*_PRESETS, everything])
        offer(self.by, self._dimensions(dimensions))
        offer(self.then_by, self._dimensions(dimensions))
        offer(self.where, [_NO, *dimensions])
        pairs = list(zip(studios["studio"], studios["studio_id"], strict=True))
        offer(self.studio, [_EVERY_STUDIO, *distinct(pairs, [""] * len(pairs))])
        self._offer_games()

    def _offer_games(self) -> None:
        """The games of the studio that is picked; one of another studio is picked no longer."""
        if self._games is None:
            return
        rows = self._games
        rows = rows if not self.studio.value else rows[rows["studio_id"] == self.studio.value]
        self.games.offer(distinct(list(zip(rows["game"], rows["game_id"], strict=True)), list(rows["studio"])))
        if self.studio.value:
            self.games.value = tuple(game for game in self.games.value if game in self.games.offered)

    def _forget_values(self) -> None:
        """Another dimension has other values: none is picked, and its own are asked for."""
        self.values.value = ()
        self.values.offer([])
        self._show_what_applies()
        self._ask_values()

    def _ask_values(self) -> None:
        if self.where.value:
            self._values.start(partial(self._list_values, self.where.value))

    async def _list_values(self, dimension: str) -> Showing:
        try:
            values = await self._lens.dimension_values(dimension, over=await self._lens.available())
        except Exception as error:
            why = f"The values of {dimension} are not known. {said(error)}"
            return partial(self._show_listed, why)
        return partial(self._offer_values, values)

    def _offer_values(self, values: list[str]) -> None:
        self._show_listed("")
        self.values.offer([(label(value), value) for value in values])

    def _show_listed(self, why: str) -> None:
        """Say *why* the lists are not what they should be."""
        self._listed.value = panes.message(why, "wrong")

    @staticmethod
    def _dimensions(names: list[str]) -> list[Option | str]:
        return [_NO, "game", "studio", *names]


def explorer(
    lens: Face,
    *,
    metric: str = "revenue",
    by: str | list[str] | None = None,
    over: Over = "last 28 complete days",
    every: Granularity = "day",
    where: Filter | WireFilter | None = None,
    top: int | None = 20,
    games: str | list[str] | None = None,
    studio: str | None = None,
    since_days_ago: int | None = None,
    name: str = "lens",
) -> Explorer:
    """Pickers for one metric, with its table, its figure and the code that asks for it; see `Client.query`.

    The keywords are what is picked to begin with; *where* is one dimension and its values, *name* what the client is
    called in your notebook. Nothing blocks but the cell that shows it, until the first answer is there.

    Raises:
        BadQuery: *lens* is no client; more than two dimensions, or a filter the pickers cannot show.
    """
    if not isinstance(lens, Face):
        raise BadQuery("lens", type(lens).__name__, "must be a client: gl.connect() gives one")
    picked = Picked(
        metric=metric,
        by=_all(by),
        over=written(over),
        every=every,
        where=only_match(where),
        top=top,
        games=_all(games),
        studio=studio,
        since_days_ago=since_days_ago if since_days_ago or not needs_age(metric) else _AGES[0],
    )
    if len(picked.by) > 2:
        raise BadQuery("by", list(picked.by), "must be two dimensions at most here: query() takes more")
    return Explorer(lens, picked, name=name)


async def _listed(work: Any) -> Any:
    return await work


def _all(names: str | list[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _newest_first(frame: DataFrame) -> DataFrame:
    return frame.sort_values("timestamp", ascending=False, kind="stable")


def _draw(frame: DataFrame, metric: str) -> tuple[Figure | None, str]:
    """The figure of *frame*, or why there is none."""
    try:
        is_one_bucket = frame["timestamp"].nunique() == 1
        return (charts.draw_bars(frame) if is_one_bucket else charts.draw_lines(frame)), ""
    except BadQuery as error:
        return None, f"{name_of(metric)} cannot be drawn: {error}"


def _reserves(frame: DataFrame) -> str:
    """What the receipt warns of."""
    receipt = frame.attrs.get("gamelens") or {}
    cut = [f"Cut to what is available: {receipt['clipped']}."] if receipt.get("clipped") else []
    return " ".join([*cut, *map(str, receipt.get("warnings") or [])])
