"""Segments of a change: the contribution of each country, platform, build or network.

A sum changes by the changes of its segments. A share of a whole (returning players, impressions of a network) changes
because segments changed, or because there are more of one segment than before: the mix. The two add up to the change
exactly, and may have opposite signs: every segment better and the whole worse (Simpson's paradox).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.ads.canonical_names import canonical_values
from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.health.baseline import Levels
from gamelens.analysis.health.board import UNITS, dimension_words, subject
from gamelens.analysis.health.constants import (
    AGAINST,
    AHEAD,
    FEWEST_OF_SHARE,
    LEAST_ALIKE,
    MOST_OF_CHANGE,
    MOVED_P,
    POOLED_DAYS,
)
from gamelens.analysis.health.watched_metrics import WatchedMetric
from gamelens.analysis.significance import two_sided
from gamelens.analysis.tidy_frames import column_of, display_values
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.ratio_parts import ratio_parts
from gamelens.analysis.tidy_frames.returned_columns import named, returns
from gamelens.catalog import METRICS
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]
Verdict = Literal["one segment", "all alike", "the mix", "against each other", "opposite", "unclear"]

_NO_NOISE: Final = "for means, whose noise is not known"
_SEGMENTS: Final = (
    Column("dimension", "text"),
    Column("segment", "category", about="null kept"),
    named("value"),
    named("expected", scale="values"),
    named("change"),
    Column("contribution", "of the row", about="adds up to the change", scale="values"),
    named("share_of_change", about="adds up to 1"),
    Column("mix", "of the row", about="part of the contribution due to more or fewer of the segment; 0 for sums"),
    named("weight", about="the segment's earlier share of the whole"),
    Column("z", "number", na=_NO_NOISE),
    named("p", na=_NO_NOISE),
    named("is_moved", na=_NO_NOISE),
    Column("first_day", "day", about="of a segment that is newer than the frame", na="of others"),
    Column("metric", "text", about="of *watch*"),
    Column("kind", "unit", about="how the value is counted"),
    Column("verdict", "text", about="of all segments"),
)
SEGMENT_COLUMNS: Final = tuple(listed.name for listed in _SEGMENTS)
"""The columns of `segments`."""
_DAY: Final = pd.Timedelta(days=1)


@requires(frame=FrameRequirements(every=("day",), takes_gaps=True))
@returns(*_SEGMENTS)
def segments(
    frame: DataFrame,
    watch: WatchedMetric,
    by: str,
    *,
    day: pd.Timestamp,
    window_days: int = 1,
    since: pd.Timestamp | None = None,
    segment: Any = None,
) -> DataFrame:
    """Return the contribution of each value of *by* to the change of *watch* on *day*.

        players = lens.query("user_unique", by="country_code", games="1001", over="last 28 complete days")
        (watch,) = health.watches("user_unique")
        health.segments(players, watch, "country_code", day=players.timestamp.max())

    Args:
        frame: the answer to one of `drill_queries`, of one game by *by*.
        watch: the watched metric.
        by: the dimension of the segments.
        day: the last day of the change.
        window_days: number of days up to *day*.
        since: first day of an open incident. What is compared is the time before it.
        segment: the network whose share changed, for shares by network.

    Largest contribution first. Claims: "segments", of all rows.

    The verdict "one segment": one of them makes up most of the change, and more than its size, and no other is_moved.
    "all alike": they changed together. "the mix": they did not change, there are more of one and fewer of another.
    "opposite": all changed one way, the whole the other. "against each other": one gained what another lost. "unclear":
    none of these.

    Raises:
        BadQuery: the frame lacks *by* or the metric.
    """
    if by not in frame:
        raise BadQuery("by", by, "is not a column of the frame", [*map(str, frame.columns)])
    if parts := _parts_and_wholes(frame, watch, by, segment):
        is_share = watch.kind == "share"
        result = _ratio_contributions(*parts, day, window_days, since, is_share=is_share)
    else:
        numbers = _by_day(frame, column_of(frame, watch.metric, watch.field), by, day)
        result = _sum_contributions(numbers, watch, day if since is None else since)
    total = result["contribution"].sum()
    result["share_of_change"] = result["contribution"] / total if total else np.nan
    result["is_moved"] = result["p"] <= MOVED_P / max(len(result), 1)
    order = result["contribution"].abs().sort_values(ascending=False, kind="stable").index
    result = result.loc[order].rename_axis("segment").reset_index().assign(dimension=by)
    result["first_day"] = _first_days(frame, by, result["segment"])
    return result.assign(metric=watch.name, kind=watch.kind, verdict=_verdict(result))


@reads("health.segments")
def _read_segments(moved: DataFrame) -> Iterator[Finding]:
    """Say what each split shows. In a health report each sentence names its alarm.

    Changes are counted, so there is no interval: whether a segment moved beyond chance is judged before it is named.
    """
    if moved.empty:
        yield Finding(kind="segments", case="nothing", unit="share")
    of_alarm = [name for name in ("game_id", "watch", "timestamp", "of_dimension", "of_segment") if name in moved]
    for _, rows in moved.groupby([*of_alarm, "dimension"], observed=True, dropna=False, sort=False):
        yield _finding_of(rows, is_of_alarm=bool(of_alarm))


def _finding_of(rows: DataFrame, *, is_of_alarm: bool) -> Finding:
    """Return what one split shows, of an alarm with its name."""
    top, verdict = rows.iloc[0].to_dict(), rows["verdict"].iloc[0]
    others = rows["segment"][np.sign(rows["contribution"]) == -np.sign(top["contribution"])]
    is_named = verdict in ("one segment", "against each other")
    name = display_values(rows["segment"]).iloc[0]
    is_down = top["contribution"] < 0
    case = str(verdict).replace(" ", "_")
    if verdict in ("all alike", "against each other"):
        case += "_down" if is_down else "_up"
    if verdict == "one segment" and top["share_of_change"] >= 1:
        case = "all_of_it"
    about = {**top, "dimension": top.get("of_dimension"), "segment": top.get("of_segment")}
    return Finding(
        kind="segments",
        case=case,
        subject=({"game": str(top["game"])} if "game" in top else {}) | ({top["dimension"]: name} if is_named else {}),
        direction="unknown" if verdict == "unclear" else "lower" if is_down else "higher",
        size=float(top["share_of_change"]),
        unit="share",
        judged="counted",
        numbers={
            "about": subject(about) if is_of_alarm else None,
            "split": dimension_words(str(top["dimension"])),
            "name": name,
            "other": display_values(others).iloc[0] if len(others) else None,
            "measured_in": UNITS.get(top["kind"], ""),
            **{name: top[name] for name in ("value", "expected", "contribution", "first_day", "verdict")},
        },
    )


def _verdict(rows: DataFrame) -> Verdict:
    """Return how the segments of one dimension explain the change."""
    if len(rows) < 2:
        return "unclear"
    total = rows["contribution"].sum()
    gross = rows["contribution"].abs().sum()
    if not gross:
        return "unclear"
    without_mix = rows["contribution"] - rows["mix"]
    if rows["mix"].abs().sum() > 0:
        directions = np.sign(without_mix[without_mix.abs() > LEAST_ALIKE * gross])
        if len(directions) > 1 and (directions == -np.sign(total)).all():
            return "opposite"
        if abs(rows["mix"].sum()) > abs(without_mix.sum()):
            return "the mix"
    if abs(total) < AGAINST * gross:
        return "against each other"
    if _is_alone(rows.iloc[0], rows.iloc[1:]):
        return "one segment"
    same = np.sign(without_mix[without_mix.abs() > LEAST_ALIKE * gross]) == np.sign(total)
    return "all alike" if same.all() else "unclear"


def _is_alone(top: Series[Any], rest: DataFrame) -> bool:
    """Return whether *top* makes up most of the change and changed far more than the rest."""
    share, weight = float(top["share_of_change"]), float(top["weight"])
    is_ahead = share * (1 - weight) >= AHEAD * abs(1 - share) * weight
    return share >= MOST_OF_CHANGE and is_ahead and not rest["is_moved"].any()


def _first_days(frame: DataFrame, by: str, names: Series[Any]) -> Series[Any]:
    """Return the first day of each of *names*, NaT if it was there from the frame's start."""
    rows = DataFrame({"segment": canonical_values(frame[by]).astype("object"), "day": frame["timestamp"]})
    first = rows.groupby("segment", dropna=False)["day"].min()
    first_days = [first.loc[name] if pd.notna(name) and name in first.index else pd.NaT for name in names]
    days = Series(first_days, index=names.index, dtype="datetime64[us, UTC]")
    return days.where(days > frame["timestamp"].min())


def _by_day(frame: DataFrame, column: str, by: str, day: pd.Timestamp) -> DataFrame:
    """Return *column* by day (columns) up to *day* for each value of *by* (rows).

    A day without rows is 0.
    """
    rows = DataFrame(
        {"segment": canonical_values(frame[by]).astype("object"), "day": frame["timestamp"], "number": frame[column]}
    )
    wide = rows.groupby(["segment", "day"], dropna=False, sort=False)["number"].sum().astype("float64").unstack("day")
    first = frame["timestamp"].min() if len(frame) else day
    return wide.reindex(columns=pd.date_range(min(first, day), day, freq="D", unit="us")).fillna(0.0)


def _parts_and_wholes(
    frame: DataFrame, watch: WatchedMetric, by: str, segment: Any
) -> tuple[DataFrame, DataFrame] | None:
    """Return numerators and denominators of the watched share or mean, by segment and day; None for a sum."""
    last = frame["timestamp"].max() if len(frame) else pd.Timestamp(0, tz="UTC")
    if watch.is_mix and watch.over is not None:
        column = column_of(frame, watch.metric, watch.field)
        values = canonical_values(frame[watch.over]).astype("object")
        is_segment = values.isna() if pd.isna(segment) else values == segment
        wholes = _by_day(frame, column, by, last)
        parts = _by_day(frame[is_segment], column, by, last).reindex(index=wholes.index, columns=wholes.columns)
        return parts.fillna(0.0), wholes
    metric = METRICS[watch.metric]
    if metric.kinds != "retention":
        ratio = ratio_parts(metric, lambda name: frame[column_of(frame, metric.name, name)])
        if ratio is None or watch.field != metric.sorts_by:
            return None
        part, whole = (_by_day(frame.assign(number=numbers), "number", by, last) for numbers in ratio)
        return part, whole
    wholes = _by_day(frame, column_of(frame, "new_users", "new_users"), by, last)
    wholes = wholes.shift(watch.since_days_ago or 0, axis="columns").fillna(0.0)
    shares = _by_day(frame, column_of(frame, watch.metric, watch.field), by, last)
    return (shares * wholes).round(), wholes


def _sum_contributions(wide: DataFrame, watch: WatchedMetric, since: pd.Timestamp) -> DataFrame:
    """Return the contributions of segments to the change of a sum since *since*.

    What is expected of the segments adds up to what is expected of their sum, as their contributions do.
    """
    values = wide.to_numpy()
    if not values.size:
        empty = np.array([], dtype="float64")
        return _contribution_frame(wide.index, *(empty for _ in range(7)))
    with_sum = np.vstack([values, values.sum(axis=0)])
    levels = Levels(with_sum, is_count=watch.kind == "count")
    is_usual = np.broadcast_to(pd.DatetimeIndex(wide.columns) < since, with_sum.shape)
    baseline = [levels.judge(number, is_usual) for number in range(values.shape[1])][-1]
    expected, of_sum = baseline.expected[:-1], baseline.expected[-1]
    recent = values[:, :-1][:, is_usual[0, :-1]][:, -POOLED_DAYS:]
    mean = recent.mean(axis=1) if recent.shape[1] else np.full(len(values), np.nan)
    expected = np.where(np.isfinite(expected), expected, mean)
    if expected.sum() > 0 and np.isfinite(of_sum):
        expected = expected * of_sum / expected.sum()
    z = baseline.z[:-1]
    p = two_sided(z, baseline.noise_days[:-1])
    now = values[:, -1]
    weight = expected / expected.sum() if expected.sum() else np.full_like(expected, np.nan)
    return _contribution_frame(wide.index, now, expected, now - expected, np.zeros_like(now), weight, z, p)


def _ratio_contributions(
    parts: DataFrame,
    wholes: DataFrame,
    day: pd.Timestamp,
    window_days: int,
    since: pd.Timestamp | None,
    *,
    is_share: bool,
) -> DataFrame:
    """Return the contributions of segments to the change of a share, or of another mean, whose noise is not known."""
    first = day - (window_days - 1) * _DAY
    began = first if since is None else min(first, since)
    days = pd.DatetimeIndex(parts.columns)
    is_now = (days >= first) & (days <= day)
    is_before = (days < began) & (days >= began - POOLED_DAYS * _DAY)
    part, whole = parts.to_numpy(), wholes.to_numpy()
    now, before = ((part[:, days_of].sum(axis=1), whole[:, days_of].sum(axis=1)) for days_of in (is_now, is_before))
    # New and small segments have no earlier share of their own: they are compared with the share of the others.
    is_new = (whole[:, is_before] > 0).argmax(axis=1) > is_before.sum() / 2
    is_known = (before[1] >= FEWEST_OF_SHARE) & ~is_new
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = before[0].sum() / before[1].sum()
        others = before[0][is_known].sum() / before[1][is_known].sum() if is_known.any() else usual
        weight, weight_before = now[1] / now[1].sum(), before[1] / before[1].sum()
        own_share_before = np.nan_to_num(before[0] / before[1])
        share_before = np.where(is_known, own_share_before, others)
        value = np.where(now[1] > 0, now[0] / now[1], np.nan)
        within = weight * (np.nan_to_num(value) - share_before) + weight_before * (share_before - own_share_before)
        mix = (weight - weight_before) * (share_before - usual)
        installs_before = np.where(is_known, before[1], max(before[1][is_known].sum(), FEWEST_OF_SHARE))
        z = (value - share_before) / np.sqrt(share_before * (1 - share_before) * (1 / now[1] + 1 / installs_before))
    z = z if is_share else np.full_like(z, np.nan)
    p = two_sided(z)
    mix = np.nan_to_num(mix)
    size = np.nan_to_num(before[0] / before[0].sum()) if before[0].sum() else np.nan_to_num(weight_before)
    return _contribution_frame(parts.index, value, share_before, np.nan_to_num(within) + mix, mix, size, z, p)


def _contribution_frame(index: pd.Index, value: Floats, expected: Floats, *numbers: Floats) -> DataFrame:
    """Return the columns of `segments` from arrays: contribution, mix, weight, z, p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(expected > 0, (value - expected) / expected, np.nan)
    names = ("contribution", "mix", "weight", "z", "p")
    columns = dict(zip(names, numbers, strict=True))
    return DataFrame({"value": value, "expected": expected, "change": change, **columns}, index=index)
