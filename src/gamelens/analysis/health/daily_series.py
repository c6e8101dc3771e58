"""The answers of a service made into series: one for each game and metric, and for each value of a split, day by day.

A day on which nothing came counts as 0, since silence is a finding; days before a series began, days that did not come
(gaps) and days that are not over yet are NA.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, DatetimeIndex, Series
from pandas.api.types import is_integer_dtype

from gamelens.analysis.health.watched_metrics import WatchedMetric, watches
from gamelens.analysis.tidy_frames import asked_metrics, column_of, display_values, label_columns, with_receipts_of
from gamelens.errors import BadQuery
from gamelens.wire.receipts import RECEIPT, QueryRecord, Receipt

Floats = NDArray[np.float64]

IDENTITY: Final = ["game_id", "game", "watch", "metric", "dimension", "segment", "kind"]
"""Columns that say which series a row belongs to."""
_DAY: Final = pd.Timedelta(days=1)
_FEWEST: Final = 100.0  # a value of a split that has had less in all can show nothing but chance


class SeriesGrid(msgspec.Struct, frozen=True):
    """Series side by side: a row of *value*, *part* and *whole* for each row of *who*, a column for each of *days*.

    *part* and *whole* are what a share is made of, NaN for everything else.
    """

    who: DataFrame
    days: DatetimeIndex
    value: Floats
    part: Floats
    whole: Floats

    def rows(self, **more: Floats) -> DataFrame:
        """A long frame, a series after the other, with the arrays *more* as columns."""
        long = self.who.loc[self.who.index.repeat(len(self.days))].reset_index(drop=True)
        long.insert(0, "timestamp", self.days.take(np.tile(np.arange(len(self.days)), len(self.who))))
        numbers = {"value": self.value, "part": self.part, "whole": self.whole, **more}
        return long.assign(**{name: array.ravel() for name, array in numbers.items()})


def measured(frame: DataFrame, metrics: Mapping[str, str]) -> DataFrame:
    """A query's frame by game, made long: any columns, whole numbers as counts and others as money.

    *metrics* maps a column of the frame to the name people read.

    Columns: those of `daily`.
    """
    grid = _Grid(frame)
    made = [
        grid.series(
            {"watch": column, "metric": name, "kind": "count" if is_integer_dtype(frame[column]) else "money"},
            grid.sums(column),
        )
        for column, name in metrics.items()
    ]
    return with_receipts_of(_long(made), frame)


def daily(answers: Iterable[DataFrame], watched: Iterable[WatchedMetric] | None = None) -> DataFrame:
    """What the *answers* to `questions` say of everything *watched*, day by day; what no answer holds is left out.

    Columns: timestamp (datetime64[us, UTC]), game_id, game, watch, metric, dimension, segment, kind (category), value
    (float64; a share is 0 to 1), part, whole (float64, what a share is made of). *watch* is the key and *metric* the
    name; no dimension is the whole game, a null segment of one the unknown.
    """
    answers = list(answers)
    made = [found for watch in (watches() if watched is None else watched) for found in _found(watch, answers)]
    return with_receipts_of(_long(made), *answers)


def series_grid(long: DataFrame) -> SeriesGrid:
    """The series of a frame as `daily` makes it."""
    long = _bare(long, [])
    keys = [name for name in IDENTITY if name in long]
    number = long.groupby(keys, observed=True, dropna=False, sort=False).ngroup().to_numpy()
    stamps = pd.DatetimeIndex(long["timestamp"])
    days = pd.date_range(stamps.min(), stamps.max(), freq="D", unit="us") if len(long) else DatetimeIndex([], tz="UTC")
    first = long[keys].assign(_number=number).drop_duplicates("_number").sort_values("_number")
    place = (stamps - days[0]) // _DAY if len(days) else np.array([], dtype=np.int64)
    arrays = []
    for name in ("value", "part", "whole"):
        array = np.full((len(first), len(days)), np.nan)
        array[number, place] = long[name].to_numpy(dtype="float64")
        arrays.append(array)
    return SeriesGrid(first[keys].reset_index(drop=True), days, *arrays)


def _found(watch: WatchedMetric, answers: list[DataFrame]) -> Iterator[SeriesGrid]:
    """The series of *watch* in the first of *answers* that holds them."""
    for frame in answers:
        asked = asked_metrics(frame)
        has_split = watch.over is None or watch.over in frame
        if has_split and (set(watch.asks) <= set(asked) if asked else _holds(frame, watch)):
            yield from _series_of(watch, _Grid(frame), column_of(frame, watch.metric, watch.field))
            return


def _holds(frame: DataFrame, watch: WatchedMetric) -> bool:
    try:
        column_of(frame, watch.metric, watch.field)
    except BadQuery:
        return False
    return watch.metric != "retention_retro" or "new_users" in frame


def _series_of(watch: WatchedMetric, grid: _Grid, column: str) -> Iterator[SeriesGrid]:
    about = {"watch": watch.key, "metric": watch.name, "kind": watch.kind}
    if watch.kind == "share" and watch.over is None:
        fields = (column_of(grid.frame, watch.metric, name) for name in (watch.part, watch.whole))
        yield grid.series(about, *(grid.sums(name, gaps_of=watch.metric) for name in fields))
        return
    if watch.kind != "share":
        yield grid.series(about, grid.sums(column, gaps_of=watch.metric))
        return
    if watch.is_mix:
        parts = grid.sums(column, watch.over, gaps_of=watch.metric)
        wholes = grid.sums(column, gaps_of=watch.metric)
        parts = parts[parts.sum(axis="columns") >= _FEWEST]
        wholes = DataFrame(
            wholes.loc[parts.index.get_level_values(0)].to_numpy(), index=parts.index, columns=parts.columns
        )
        yield grid.series(about, parts, wholes, over=watch.over)
        return
    yield from _came_back(watch, grid, column, about)


def _came_back(watch: WatchedMetric, grid: _Grid, column: str, about: dict[str, str]) -> Iterator[SeriesGrid]:
    """How many of those installed so many days before came back, of the whole game and of each value of the split."""
    installs = column_of(grid.frame, "new_users", "new_users")
    wholes = grid.sums(installs, watch.over, gaps_of="new_users").shift(watch.since_days_ago or 0, axis="columns")
    shares = grid.sums(column, watch.over, gaps_of=watch.metric).reindex(wholes.index)
    parts = (shares * wholes).round()
    yield grid.series(about, *(numbers.groupby(level=0, sort=False).sum(min_count=1) for numbers in (parts, wholes)))
    is_large = wholes.sum(axis="columns") >= _FEWEST
    yield grid.series(about, parts[is_large], wholes[is_large], over=watch.over)


class _Grid:
    """A frame by game with every complete day of what was asked, whether a row came or not."""

    def __init__(self, frame: DataFrame) -> None:
        receipt = Receipt.of(frame.attrs)
        self.frame = frame = _bare(frame, asked_metrics(frame))
        self.days = _days(frame, receipt)
        self._gaps = receipt.gaps
        game = "game" if "game" in frame else next(iter(label_columns(frame)), None)
        names = display_values(frame[game]) if game else Series("all games", index=frame.index, dtype="str")
        ids = frame["game_id"].astype("object") if "game_id" in frame else names
        self._game = pd.Series(pd.factorize(ids)[0], index=frame.index)
        self.games = DataFrame({"game_id": ids, "game": names}).drop_duplicates("game_id").reset_index(drop=True)

    def sums(self, column: str, over: str | None = None, *, gaps_of: str | None = None) -> DataFrame:
        """*column* by day (columns) for each game and value of *over* (rows); 0 where nothing came."""
        rows = DataFrame({"game": self._game, "day": self.frame["timestamp"], "number": self.frame[column]})
        keys = ["game"]
        if over is not None:
            rows["value"] = self.frame[over].astype("object")
            keys.append("value")
        table = rows.groupby([*keys, "day"], dropna=False, sort=False)["number"].sum().astype("float64")
        wide = table.unstack("day").reindex(columns=self.days).fillna(0.0)
        began = (wide.to_numpy() > 0).cumsum(axis=1) > 0
        wide = wide.where(began)
        for day in self._lost(gaps_of):
            wide[day] = np.nan
        return wide

    def series(
        self, about: dict[str, str], parts: DataFrame, wholes: DataFrame | None = None, *, over: str | None = None
    ) -> SeriesGrid:
        """The rows of *parts*, or of their shares in *wholes*, as series *about* something."""
        games = parts.index.get_level_values(0) if over is not None else parts.index
        who = self.games.loc[games].reset_index(drop=True).assign(**about, dimension=over)
        who["segment"] = None if over is None else parts.index.get_level_values(1).to_numpy(dtype="object")
        numbers = parts.to_numpy(dtype="float64")
        nothing = np.full_like(numbers, np.nan)
        if wholes is None:
            return SeriesGrid(who, self.days, numbers, nothing, nothing)
        of = wholes.to_numpy(dtype="float64")
        part = np.where(of > 0, numbers, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            return SeriesGrid(who, self.days, np.where(of > 0, numbers / of, np.nan), part, of)

    def _lost(self, metric: str | None) -> list[pd.Timestamp]:
        lost = [gap.times for gap in self._gaps if gap.times and metric in (None, gap.metric)]
        return [day for day in self.days if any(day.to_pydatetime() in interval for interval in lost)]


def _bare(frame: DataFrame, metrics: list[str]) -> DataFrame:
    """*frame* with a receipt that only says what was asked: pandas copies it with every column that is read."""
    bare = frame.copy(deep=False)
    bare.attrs = {RECEIPT: Receipt(asked=QueryRecord(metric=tuple(metrics))).to_json()} if metrics else {}
    return bare


def _days(frame: DataFrame, receipt: Receipt) -> DatetimeIndex:
    """Every day that was asked for and is over; without a receipt, from the first row to the last."""
    span, stamps = receipt.interval, frame["timestamp"]
    if span is not None:
        first, end = pd.Timestamp(span.start).ceil("D"), pd.Timestamp(span.end).floor("D")
    elif len(stamps):
        first, end = stamps.min(), stamps.max() + _DAY
    else:
        return DatetimeIndex([], tz="UTC").as_unit("us")
    if receipt.as_of:
        end = min(end, pd.Timestamp(datetime.fromisoformat(receipt.as_of)).floor("D"))
    return pd.date_range(first, end - _DAY, freq="D", unit="us")


def _long(made: list[SeriesGrid]) -> DataFrame:
    rows = [series.rows() for series in made]
    columns = ["timestamp", *IDENTITY, "value", "part", "whole"]
    long = pd.concat(rows, ignore_index=True) if rows else DataFrame(columns=columns)
    long = long[columns].astype(dict.fromkeys(IDENTITY, "category"))
    numbers = dict.fromkeys(("value", "part", "whole"), "float64")
    return long.astype({"timestamp": "datetime64[us, UTC]", **numbers})
