"""Daily series from the answers of a service, one for each game, metric and segment.

A day without rows counts as 0, since silence is a finding. Days before a series began, gaps, and days that are not over
yet are NA.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, DatetimeIndex, Series
from pandas.api.types import is_integer_dtype

from gamelens.analysis.ads.canonical_names import canonical_values
from gamelens.analysis.health.constants import FEWEST_OF_SEGMENT
from gamelens.analysis.health.watched_metrics import WatchedMetric, watches
from gamelens.analysis.tidy_frames import column_of, display_values, label_columns, queried_metrics, value_columns
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import named, returns
from gamelens.errors import BadQuery
from gamelens.receipts import RECEIPT, QueryRecord, Receipt
from gamelens.wire.filters import parse_filter

Floats = NDArray[np.float64]

_PARTS: Final = (("part", "numerator"), ("whole", "denominator"))
IDENTITY: Final = ["game_id", "game", "watch", "metric", "dimension", "segment", "kind"]
"""Columns that identify the series of a row."""
SERIES: Final = (
    named("timestamp"),
    *(Column(name, "category") for name in ("game_id", "game", "watch", "metric")),
    Column("dimension", "category", na="of a whole game"),
    Column("segment", "category", na="of a whole game, and of what has no name"),
    Column("kind", "unit", about="how the value is counted"),
    named("value", about="a share is 0 to 1", na="of a day without an answer"),
    *(Column(name, "number", about=f"{what} of a share", na="of other kinds") for name, what in _PARTS),
)
"""The columns of a series of days."""
_DAY: Final = pd.Timedelta(days=1)
_DAILY: Final = FrameRequirements(every=("day",), takes_gaps=True, columns=("timestamp",))


class SeriesGrid(msgspec.Struct, frozen=True):
    """Series side by side, as arrays with a row for each series and a column for each day.

    Attributes:
        identity: the columns of `IDENTITY`, a row for each series.
        days: the days, without holes.
        value: the value of each day.
        part: numerator of a share, NaN for every other kind.
        whole: denominator of a share, NaN for every other kind.
    """

    identity: DataFrame
    days: DatetimeIndex
    value: Floats
    part: Floats
    whole: Floats

    def rows(self, **more: Floats) -> DataFrame:
        """Return a long frame, one series after the other, with the arrays *more* as columns."""
        long = self.identity.loc[self.identity.index.repeat(len(self.days))].reset_index(drop=True)
        long.insert(0, "timestamp", self.days.take(np.tile(np.arange(len(self.days)), len(self.identity))))
        numbers = {"value": self.value, "part": self.part, "whole": self.whole, **more}
        return long.assign(**{name: array.ravel() for name, array in numbers.items()})


@requires(frame=_DAILY)
@returns(*SERIES)
def measured(frame: DataFrame, metrics: Mapping[str, str]) -> DataFrame:
    """Return any columns of a query by game as series: integers as counts, others as money.

        income = lens.query(["revenue", "session_unique"], by="game", over="last 14 complete days")
        health.measured(income, {"revenue": "Purchases", "session_unique": "Sessions"})

    *metrics* maps a column of the frame to its display name.

    Raises:
        BadQuery: the frame has no such column.
    """
    if unknown := [column for column in metrics if column not in frame]:
        raise BadQuery("metrics", unknown[0], "is not a column of the frame", value_columns(frame))
    grid = _DailyGrid(frame)
    result = [
        grid.series(
            {"watch": column, "metric": name, "kind": "count" if is_integer_dtype(frame[column]) else "money"},
            grid.sums(column),
        )
        for column, name in metrics.items()
    ]
    return _long_frame(result)


@requires(answers=_DAILY)
@returns(*SERIES)
def daily(answers: Iterable[DataFrame], watched: Iterable[WatchedMetric] | None = None) -> DataFrame:
    """Return the series of every watched metric from the *answers* to `board_queries`.

        watched = health.watches("errors")
        answers = [lens.query(**query.arguments, over="last week") for query in health.board_queries(watched)]
        health.daily(answers, watched)

    Metrics that no answer holds are left out. So is a watched metric whose fields are not in the answer.

    *watch* is the key and *metric* the name; a null dimension is the whole game, a null segment within a dimension
    the unknown one.

    Raises:
        BadQuery: an answer has the metric of one of *watched*, but not its fields: fields="all" brings them.
    """
    answers = list(answers)
    if watched is None:
        watched = [watch for watch in watches() if any(_has_columns(frame, watch) for frame in answers)]
    return _long_frame([series for watch in watched for series in _series_in_answers(watch, answers)])


def series_grid(long: DataFrame) -> SeriesGrid:
    """Return the series of a frame of `daily` as arrays."""
    long = _bare(long, [])
    keys = [name for name in IDENTITY if name in long]
    series_number = long.groupby(keys, observed=True, dropna=False, sort=False).ngroup().to_numpy()
    timestamps = pd.DatetimeIndex(long["timestamp"])
    days = (
        pd.date_range(timestamps.min(), timestamps.max(), freq="D", unit="us")
        if len(long)
        else DatetimeIndex([], tz="UTC")
    )
    first = long[keys].assign(_number=series_number).drop_duplicates("_number").sort_values("_number")
    day_number = (timestamps - days[0]) // _DAY if len(days) else np.array([], dtype=np.int64)
    arrays = []
    for name in ("value", "part", "whole"):
        array = np.full((len(first), len(days)), np.nan)
        array[series_number, day_number] = long[name].to_numpy(dtype="float64")
        arrays.append(array)
    return SeriesGrid(first[keys].reset_index(drop=True), days, *arrays)


def _series_in_answers(watch: WatchedMetric, answers: list[DataFrame]) -> Iterator[SeriesGrid]:
    """Yield the series of *watch* from the first of *answers* that holds them."""
    frame = next((frame for frame in answers if _holds(frame, watch)), None)
    if watch.per is None:
        if frame is not None:
            yield from _series_of(watch, _DailyGrid(frame), column_of(frame, watch.metric, watch.field))
        return
    per = WatchedMetric(key=watch.key, name="", metric=watch.per, field=watch.per, kind="count", over=watch.over)
    wholes = next((frame for frame in answers if _holds(frame, per)), None)
    if frame is not None and wholes is not None:
        yield from _quotient_series(watch, _DailyGrid(frame), _DailyGrid(wholes))


def _holds(frame: DataFrame, watch: WatchedMetric) -> bool:
    """Return whether *frame* is an answer with the series of *watch*."""
    queried = queried_metrics(frame)
    if watch.over is not None and watch.over not in frame:
        return False
    if not queried:
        return not watch.where and _has_columns(frame, watch)
    where = Receipt.of(frame.attrs).asked.where
    wanted = parse_filter(dict(watch.where)) if watch.where else None
    return set(watch.metrics) <= set(queried) and (parse_filter(where) if where else None) == wanted


def _has_columns(frame: DataFrame, watch: WatchedMetric) -> bool:
    fields = (watch.part, watch.whole) if watch.part else (watch.field,)
    try:
        for field in fields:
            column_of(frame, watch.metric, field)
    except BadQuery:
        return False
    return watch.metric != "retention_retro" or "new_users" in frame


def _series_of(watch: WatchedMetric, grid: _DailyGrid, column: str) -> Iterator[SeriesGrid]:
    """Yield the series of *watch* in *grid*, whose value is in *column*."""
    labels = _labels(watch)
    if watch.kind == "share" and watch.over is None:
        fields = (column_of(grid.frame, watch.metric, name) for name in (watch.part, watch.whole))
        yield grid.series(labels, *(grid.sums(name, gaps_of=watch.metric) for name in fields))
        return
    if watch.kind != "share":
        yield grid.series(labels, grid.sums(column, gaps_of=watch.metric))
        return
    if watch.is_mix:
        parts = grid.sums(column, watch.over, gaps_of=watch.metric)
        wholes = grid.sums(column, gaps_of=watch.metric)
        parts = parts[parts.sum(axis="columns") >= FEWEST_OF_SEGMENT]
        yield grid.series(labels, parts, _of_games(wholes, parts.index), over=watch.over)
        return
    yield from _retention_series(watch, grid, column, labels)


def _labels(watch: WatchedMetric) -> dict[str, str]:
    return {"watch": watch.key, "metric": watch.name, "kind": watch.kind}


def _of_games(wholes: DataFrame, segments: pd.Index[Any]) -> DataFrame:
    """Return the row of *wholes* of each segment's game."""
    games = segments.get_level_values(0)
    return DataFrame(wholes.loc[games].to_numpy(), index=segments, columns=wholes.columns)


def _retention_series(
    watch: WatchedMetric, grid: _DailyGrid, column: str, labels: dict[str, str]
) -> Iterator[SeriesGrid]:
    """Yield the shares of returning players, of the whole game and of each value of the split."""
    installs = column_of(grid.frame, "new_users", "new_users")
    wholes = grid.sums(installs, watch.over, gaps_of="new_users").shift(watch.since_days_ago or 0, axis="columns")
    shares = grid.sums(column, watch.over, gaps_of=watch.metric).reindex(wholes.index)
    parts = (shares * wholes).round()
    yield grid.series(labels, *(_game_sums(numbers) for numbers in (parts, wholes)))
    is_large = wholes.sum(axis="columns") >= FEWEST_OF_SEGMENT
    yield grid.series(labels, parts[is_large], wholes[is_large], over=watch.over)


def _game_sums(numbers: DataFrame) -> DataFrame:
    return numbers.groupby(level=0, sort=False).sum(min_count=1)


def _quotient_series(watch: WatchedMetric, grid: _DailyGrid, per: _DailyGrid) -> Iterator[SeriesGrid]:
    """Yield one number by another, of the game and of each segment still there.

    A value of the split that appeared later, for instance a build, is compared with the whole game before it: on those
    days it has the game's history and no value of its own.
    """
    wholes = per.sums(column_of(per.frame, str(watch.per), str(watch.per)), watch.over, gaps_of=watch.per)
    parts = grid.sums(column_of(grid.frame, watch.metric, watch.field), watch.over)
    parts = parts.rename(index=dict(enumerate(per.places_of(grid))), level=0 if watch.over else None)
    parts = parts.reindex(index=wholes.index, columns=wholes.columns).fillna(0.0).where(wholes.notna())
    for day in grid.days_in_gaps(watch.metric):
        parts[day] = np.nan
    wholes = wholes + parts if watch.is_of_both else wholes
    labels = _labels(watch)
    if watch.over is None:
        yield per.series(labels, parts, wholes)
        return
    of_games = [_game_sums(numbers) for numbers in (parts, wholes)]
    yield per.series(labels, *of_games)
    is_there = (wholes.sum(axis="columns") >= FEWEST_OF_SEGMENT) & (wholes.iloc[:, -1:].sum(axis="columns") > 0)
    parts, wholes = parts[is_there], wholes[is_there]
    before = wholes.isna().to_numpy()
    earlier = [_of_games(numbers, parts.index).to_numpy() for numbers in of_games]
    series = per.series(labels, parts, wholes, over=watch.over)
    numbers = (np.where(before, *pair) for pair in zip(earlier, (series.part, series.whole), strict=True))
    part, whole = numbers
    yield msgspec.structs.replace(series, part=part, whole=whole)


class _DailyGrid:
    """A frame by game with every complete day of the query, with or without rows."""

    def __init__(self, frame: DataFrame) -> None:
        receipt = Receipt.of(frame.attrs)
        self.frame = frame = _bare(frame, queried_metrics(frame))
        self.days = _days(frame, receipt)
        self._gaps = receipt.gaps
        game = "game" if "game" in frame else next(iter(label_columns(frame)), None)
        names = display_values(frame[game]) if game else Series("all games", index=frame.index, dtype="str")
        ids = frame["game_id"].astype("object") if "game_id" in frame else names
        self._game = pd.Series(pd.factorize(ids)[0], index=frame.index)
        self.games = DataFrame({"game_id": ids, "game": names}).drop_duplicates("game_id").reset_index(drop=True)

    def sums(self, column: str, over: str | None = None, *, gaps_of: str | None = None) -> DataFrame:
        """Return *column* by day (columns) for each game and value of *over* (rows).

        A day without rows is 0, days before a series began and days in *gaps_of* are NaN.
        """
        rows = DataFrame({"game": self._game, "day": self.frame["timestamp"], "number": self.frame[column]})
        keys = ["game"]
        if over is not None:
            rows["value"] = canonical_values(self.frame[over]).astype("object")
            keys.append("value")
        table = rows.groupby([*keys, "day"], dropna=False, sort=False)["number"].sum().astype("float64")
        wide = table.unstack("day").reindex(columns=self.days).fillna(0.0)
        began = (wide.to_numpy() > 0).cumsum(axis=1) > 0
        wide = wide.where(began)
        for day in self.days_in_gaps(gaps_of):
            wide[day] = np.nan
        return wide

    def series(
        self, labels: dict[str, str], parts: DataFrame, wholes: DataFrame | None = None, *, over: str | None = None
    ) -> SeriesGrid:
        """Return the rows of *parts*, or their shares of *wholes*, as series with *labels*."""
        games = parts.index.get_level_values(0) if over is not None else parts.index
        identity = self.games.loc[games].reset_index(drop=True).assign(**labels, dimension=over)
        identity["segment"] = None if over is None else parts.index.get_level_values(1).to_numpy(dtype="object")
        numbers = parts.to_numpy(dtype="float64")
        missing = np.full_like(numbers, np.nan)
        if wholes is None:
            return SeriesGrid(identity, self.days, numbers, missing, missing)
        denominators = wholes.to_numpy(dtype="float64")
        part = np.where(denominators > 0, numbers, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            return SeriesGrid(
                identity, self.days, np.where(denominators > 0, numbers / denominators, np.nan), part, denominators
            )

    def days_in_gaps(self, metric: str | None) -> list[pd.Timestamp]:
        """Return the days in gaps of *metric*, or of any metric."""
        gaps = [gap.times for gap in self._gaps if gap.times and metric in (None, gap.metric)]
        return [day for day in self.days if any(day.to_pydatetime() in interval for interval in gaps)]

    def places_of(self, other: _DailyGrid) -> list[int]:
        """Return for each game of *other* its place in this grid, -1 if it is not there."""
        places = {identity: place for place, identity in enumerate(self.games["game_id"])}
        return [places.get(identity, -1) for identity in other.games["game_id"]]


def _bare(frame: DataFrame, metrics: list[str]) -> DataFrame:
    """Return *frame* with the metrics as its whole receipt.

    pandas copies the receipt with every column read.
    """
    bare = frame.copy(deep=False)
    bare.attrs = {RECEIPT: Receipt(asked=QueryRecord(metric=tuple(metrics))).to_json()} if metrics else {}
    return bare


def _days(frame: DataFrame, receipt: Receipt) -> DatetimeIndex:
    """Return the days of the query that are over.

    Without a receipt they are the days from the first row to the last.
    """
    interval, timestamps = receipt.interval, frame["timestamp"]
    if interval is not None:
        first, end = pd.Timestamp(interval.start).ceil("D"), pd.Timestamp(interval.end).floor("D")
    elif len(timestamps):
        first, end = timestamps.min(), timestamps.max() + _DAY
    else:
        return DatetimeIndex([], tz="UTC").as_unit("us")
    if receipt.as_of:
        end = min(end, pd.Timestamp(datetime.fromisoformat(receipt.as_of)).floor("D"))
    return pd.date_range(first, end - _DAY, freq="D", unit="us")


def _long_frame(grids: list[SeriesGrid]) -> DataFrame:
    rows = [series.rows() for series in grids]
    columns = ["timestamp", *IDENTITY, "value", "part", "whole"]
    long = pd.concat(rows, ignore_index=True) if rows else DataFrame(columns=columns)
    return long.astype({"timestamp": "datetime64[us, UTC]"})
