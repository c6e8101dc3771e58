"""The pickers of the explorer: their options, and the picked query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Final

import ipywidgets
import msgspec
from pandas import DataFrame

from gamelens.analysis.tidy_frames.columns import column_named, name_of
from gamelens.catalog import CATALOG, DIMENSIONS, Catalog
from gamelens.client.tables.time_ranges import TIME_WORDS
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.controls import (
    NOTHING,
    MultiPicker,
    Option,
    Pane,
    Picker,
    SearchPicker,
    distinct,
    label,
)
from gamelens.notebook.widgets.form_query import FormQuery, needs_age, own_bucket
from gamelens.wire.intervals import Interval

AGES: Final = (1, 3, 7, 14, 28)
_NO: Final[Option] = ("—", NOTHING)
_EVERY_STUDIO: Final[Option] = ("all studios", NOTHING)
_TOPS: Final = (10, 20, 50)
_ALL: Final = 0
_ROW: Final = {"display": "flex", "flex_flow": "row wrap", "grid_gap": "2px 18px", "align_items": "flex-start"}


class FormChoices(msgspec.Struct, frozen=True):
    """The options that the service has.

    Attributes:
        available: the available interval.
        metrics: names of metrics.
        dimensions: names of dimensions.
        games: the frame of `Client.games`.
        studios: the frame of `Client.studios`.
    """

    available: Interval
    metrics: list[str]
    dimensions: list[str]
    games: DataFrame
    studios: DataFrame


class QueryForm(ipywidgets.Box):  # type: ignore[misc]
    """A form that shows a query. It offers what the catalog knows until `offer` is called.

    Args:
        picked: the query to begin with.
        catalog: the metrics of the client, its own among them.
        on_change: called when the query has changed.
        on_dimension: called when another dimension to filter by is picked, so that its values can be offered.
    """

    def __init__(
        self,
        picked: FormQuery,
        catalog: Catalog,
        *,
        on_change: Callable[[], None],
        on_dimension: Callable[[], None],
    ) -> None:
        self._catalog, self._on_change, self._on_dimension = catalog, on_change, on_dimension
        self._lock = RLock()
        self._changes = 0
        self._dimension = picked.where[0] if picked.where else NOTHING
        self._lists: FormChoices | None = None
        self._make(picked)
        columns = (
            [self.metric, self.meaning, self.age, self.over, self.every],
            [self.by, self.then_by, self.top],
            [self.studio, self.games],
            [self.where, self.values],
        )
        super().__init__([ipywidgets.VBox(column) for column in columns], layout=_ROW)
        for picker in (self.metric, self.age, self.over, self.every, self.by, self.then_by, self.top):
            picker.observe(lambda _: self._changed(), "value")
        for picker in (self.games, self.where, self.values):
            picker.observe(lambda _: self._changed(), "value")
        self.studio.observe(lambda _: self._at_once(self._offer_games), "value")
        self._show_what_applies()

    @property
    def picked(self) -> FormQuery:
        """The picked query."""
        metric, by = self.metric.value, [name for name in (self.by.value, self.then_by.value) if name]
        return FormQuery(
            metric=metric,
            by=tuple(dict.fromkeys(by)),
            over=self.over.value,
            every=own_bucket(metric, self._catalog) or self.every.value,
            where=(self.where.value, self.values.value) if self.where.value and self.values.value else None,
            top=self.top.value or None,
            games=self.games.value,
            studio=self.studio.value or None,
            since_days_ago=self.age.value if needs_age(metric) else None,
        )

    def offer(self, lists: FormChoices) -> None:
        """Offer the options of the service. Picked values stay, even if they are none of them."""
        self._lists = lists
        self._at_once(self._offer)

    def offer_values(self, values: list[str]) -> None:
        """Offer *values* of the dimension to filter by."""
        self._at_once(lambda: self.values.offer([(label(value), value) for value in values]))

    def _make(self, picked: FormQuery) -> None:
        """Create the pickers."""
        where, values = picked.where or (NOTHING, ())
        first, second = (*picked.by, NOTHING, NOTHING)[:2]
        self.metric = SearchPicker(
            "metric", self._labelled(self._catalog.metrics), picked.metric, describe=self._meaning
        )
        self.meaning = Pane()
        self.meaning.layout = {"width": "320px", "max_width": "100%"}
        self.age = Picker("day", [(f"D{age} after install", age) for age in AGES], picked.since_days_ago or AGES[0])
        self.over = Picker("over", TIME_WORDS, picked.over)
        self.every = Picker("every", ["day", "week", "month", "all"], picked.every)
        self.by = SearchPicker("by", _splits(DIMENSIONS), first, describe=self._meaning)
        self.then_by = SearchPicker("and by", _splits(DIMENSIONS), second, describe=self._meaning)
        self.top = Picker("largest", [*((str(top), top) for top in _TOPS), ("all", _ALL)], picked.top or _ALL)
        self.studio = Picker("studio", [_EVERY_STUDIO], picked.studio or NOTHING)
        self.games = MultiPicker("games", picked.games)
        self.where = SearchPicker("only where", [_NO, *map(_named, DIMENSIONS)], where, describe=self._meaning)
        self.values = MultiPicker("is", values)

    def _at_once(self, change: Callable[[], None]) -> None:
        """Make several changes and report them as one."""
        self._quietly(change)
        self._changed()

    def _quietly(self, change: Callable[[], None]) -> None:
        """Make changes without reporting them."""
        with self._lock:
            self._changes += 1
            try:
                change()
            finally:
                self._changes -= 1

    def _changed(self) -> None:
        """Report a change, unless several are being made at once."""
        with self._lock:
            if self._changes:
                return
            has_other_values = self.where.value != self._dimension
            if has_other_values:
                self._dimension = self.where.value
                self._quietly(self._forget_values)
            self._show_what_applies()
        # Outside the lock: a callback may wait for a thread that calls `offer`.
        if has_other_values:
            self._on_dimension()
        self._on_change()

    def _show_what_applies(self) -> None:
        """Disable the pickers that have no effect, and describe the picked metric."""
        applies = {
            self.age: needs_age(self.metric.value),
            self.every: own_bucket(self.metric.value, self._catalog) is None,
            self.top: bool(self.by.value or self.then_by.value),
            self.values: bool(self.where.value),
        }
        for picker, is_shown in applies.items():
            picker.disabled = not is_shown
        self.meaning.value = html_blocks.message(self._meaning(self.metric.value))

    def _offer(self) -> None:
        """Put the options of the service into all pickers."""
        if self._lists is None:
            return
        available, studios = self._lists.available, self._lists.studios
        everything = (f"all there is, {available.start:%Y-%m-%d} to {available.end:%Y-%m-%d %H:%M}", str(available))
        self.metric.offer(self._labelled(self._with_aliases(self._lists.metrics)))
        self.over.offer([*TIME_WORDS, everything])
        self.by.offer(_splits(self._lists.dimensions))
        self.then_by.offer(_splits(self._lists.dimensions))
        self.where.offer([_NO, *map(_named, self._lists.dimensions)])
        pairs = list(zip(studios["studio"], studios["studio_id"], strict=True))
        self.studio.offer([_EVERY_STUDIO, *distinct(pairs, [""] * len(pairs))])
        self._offer_games()

    def _offer_games(self) -> None:
        """Offer the games of the picked studio, and drop picked games of other studios."""
        if self._lists is None:
            return
        rows, studio = self._lists.games, self.studio.value
        rows = rows[rows["studio_id"] == studio] if studio else rows
        self.games.offer(distinct(list(zip(rows["game"], rows["game_id"], strict=True)), list(rows["studio"])))
        if studio:
            self.games.value = tuple(game for game in self.games.value if game in self.games.offered)

    def _forget_values(self) -> None:
        """Drop the picked values, which belong to another dimension."""
        self.values.value = ()
        self.values.offer([])

    def _with_aliases(self, metrics: list[str]) -> list[str]:
        """Return the metrics of the service, and the aliases and own metrics that can be made of them, by name."""
        aliases = [name for name in self._catalog.aliases if self._catalog.service_metrics([name]) <= {*metrics}]
        return sorted({*metrics, *aliases})

    def _labelled(self, metrics: Iterable[str]) -> list[Option]:
        """Return *metrics* as options by their readable names."""
        return sorted(_named(name, self._catalog) for name in metrics)

    def _meaning(self, name: str) -> str:
        """Return the definition of a metric, after its unit, or of a dimension, or ""."""
        if name in DIMENSIONS:
            return DIMENSIONS[name].meaning
        found = self._catalog.find(name)
        return "" if found is None else f"{column_named(name, [name], self._catalog).unit_words}: {found.meaning}"


def _named(name: str, catalog: Catalog = CATALOG) -> Option:
    """Return a metric or dimension as an option: `Active players · user_unique`."""
    readable = name_of(name, catalog)
    return f"{readable[:1].upper()}{readable[1:]} · {name}", name


def _splits(dimensions: Iterable[str]) -> list[Option]:
    return [_NO, ("Game", "game"), ("Studio", "studio"), *map(_named, dimensions)]
