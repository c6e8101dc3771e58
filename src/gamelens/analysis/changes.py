"""Changes from one period to the next, with intervals from the differences between days: of metrics, of money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens._scales import RARE
from gamelens._text import counted
from gamelens.analysis.claims.findings import HALF_CENT, Clause, Direction, Finding, case_among, direction_among, reads
from gamelens.analysis.decomposition import split_in_halves
from gamelens.analysis.over_days import FEWEST_DAYS, Counted, DayEstimates, day_numbers, over_days
from gamelens.analysis.retention.retention_rates import is_retention_frame
from gamelens.analysis.significance import LEVEL, holm
from gamelens.analysis.tidy_frames import (
    column_of,
    dimension_columns,
    display_values,
    label_columns,
    queried_metrics,
    ratio,
    with_ids,
    with_receipts_of,
)
from gamelens.analysis.tidy_frames.columns import Column, name_of
from gamelens.analysis.tidy_frames.frame_columns import catalog_of, series_names
from gamelens.analysis.tidy_frames.frame_periods import days_text, visible_period
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.ratio_parts import ratio_parts
from gamelens.analysis.tidy_frames.returned_columns import FROM_DAYS, KEYS, between, named, returns
from gamelens.catalog import Catalog
from gamelens.errors import BadQuery, no_such_name
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

__all__ = ["change", "money_drivers"]

Floats = NDArray[np.float64]

_DAILY: Final = FrameRequirements(every=("day",))
_WIDEST_RATIO: Final = 100.0
"""Ratio of the bounds of an interval up to which a change has a percentage: tenfold both ways.

Choice: "between a tenth and ten times as much" is the widest that anybody acts on.
"""
_MOST_NEWEST: Final = 7
"""Most last days that are said beside a change because all lie beyond the days before them.

Choice: the mean of a period shows what lasts longer than a week.
"""
_FEWEST_NEWEST: Final = 3
"""Fewest such days.

Choice: of days that vary alone, the last three lie beyond the fourteen before in 2 of 680 orders, two days in 2 of 120.
"""
_DAYS_BEFORE: Final = 14
"""Days before them.

Choice: two of each weekday.
"""
_LEAST_STEP: Final = 0.2
"""Share by which their mean must differ.

Choice: the days of a growing game lie beyond the two weeks before as well, by less.
"""
_LATER: Final = "is later"
_ALL: Final = "All together"
_FIELDS: Final = {
    "players": ("user_unique", "user_unique"),
    "purchases": ("revenue", "sum"),
    "impressions": ("ilrd_revenue", "event_count"),
    "ads": ("ilrd_revenue", "sum"),
}
_MONEY: Final = FrameRequirements(metrics=("user_unique", "revenue", "ecpm"), every=("day",), counts_players=True)
_COUNTS: Final = {  # what the money or the number of each driver is counted from
    "players": "players",
    "player mix": "players",
    "purchases per player": "bought",
    "ads per player": "impressions",
    "ecpm": "impressions",
}
_DRIVERS: Final[dict[str, tuple[str, str | None]]] = {  # numerator and denominator of what each driver is
    "players": ("players", None),
    "player mix": ("worth", "players"),
    "purchases per player": ("purchases", "players"),
    "ads per player": ("impressions", "players"),
    "ecpm": ("ads", "impressions"),
}


@requires(equal_periods=("before", "frame"), frame=_DAILY, before=_DAILY)
@returns(
    KEYS,
    Column("metric", "category", about="such as revenue or D7 retention"),
    "unit",
    Column("of", "category", about="what the numbers are of", values=("sum", "day", "ratio")),
    between(named("value", about="of the period"), f"{FROM_DAYS}, and for sums"),
    between(named("before", about="of the period before"), f"{FROM_DAYS}, and for sums"),
    between(named("difference", about="value - before, in points for shares"), FROM_DAYS),
    between(named("ratio", about="value / before"), FROM_DAYS),
    "p_value",
    named("p_adjusted", about="Holm, over all rows"),
    Column(
        "newest_days",
        "count",
        about="last days, 3 to 7, all above or below all of the 14 before, by a fifth",
        na="none are",
    ),
    Column("newest_ratio", "ratio", about="the mean of these days to that of the 14 before", na="none are"),
    has_own_receipt=True,
)
def change(frame: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Return how each metric of each segment changed from the period before, largest segments first.

        days = lens.query(["dau", "revenue"], by="platform", over="last 2 complete weeks")
        changes.change(days)

    Money and counts are sums of the period. Players and sessions, which cannot be added up, are means of its days.
    Means, ratios and retention are made from their parts. A day without a row counts as 0. Intervals come from the
    differences between days (`over_days`): with fewer than 7 days a period there are none. A count of fewer than ten
    before, and what has an interval wider than tenfold both ways, has no ratio.

    Args:
        frame: the answer to a query by day, or of retention by install day.
        before: the same query over an equally long period, or for means, ratios and retention of a calendar month over
            the month before. Without it the last weeks of *frame* are compared with as
            many before them, and it must have at least two.

    The intervals of differences and ratios with p_adjusted below 0.05 are corrected for having been selected
    (Benjamini and Yekutieli 2005). Claims: "change", one a row.

    Raises:
        BadQuery: the frame has less than two weeks and there is no *before*, or ends within a day; sums of months of
            unequal length, which differ for that reason alone.
    """
    periods = [_period(given) for given in (before, frame) if given is not None]
    if before is None:
        if (days := periods[0].length.days) < 2 * FEWEST_DAYS:
            rule = 'are too few for whole weeks: query over="last 14 complete days", or pass the period before'
            raise BadQuery("frame", counted(days, "day"), rule)
        before, frame = split_in_halves(frame)
        periods = [_period(half) for half in (before, frame)]
    names = ["retention"] if is_retention_frame(frame) else queried_metrics(frame)
    if not names:
        raise BadQuery("frame", [*map(str, frame.columns)], "has no receipt: pass a frame as query() returned it")
    series = [_series(name, before, frame, periods) for name in names]
    sums = [name for name, measured in zip(names, series, strict=True) if measured.is_sum]
    if sums and periods[0].length != periods[1].length:
        texts = " and ".join(map(days_text, periods))
        raise BadQuery("before", sums, f"are sums, which months of unequal length cannot compare: {texts}")
    result = pd.concat([measured.numbers() for measured in series], ignore_index=True)
    result["difference"], result["ratio"] = result["value"] - result["before"], ratio(result["value"], result["before"])
    result[["p_value", "p_adjusted", "ratio_low", "ratio_high"]] = _judged([measured.change for measured in series])
    middle = np.sqrt(result["value"] * result["before"])  # a ratio r moves it to middle * sqrt(r) from middle / sqrt(r)
    for side in ("low", "high"):
        root = np.sqrt(result[f"ratio_{side}"])
        result[f"difference_{side}"] = middle * (root - 1 / root)
    is_sized = _is_narrow(result["ratio_low"], result["ratio_high"]) & ~_is_rare(result)
    compared = ["difference_low", "difference_high", "ratio", "ratio_low", "ratio_high"]
    result[compared] = result[compared].where(is_sized)
    return with_receipts_of(result, before, frame)


@reads("changes.change", row_by_row=True)
def _read_change(changes: DataFrame) -> Iterator[Finding]:
    """Say of each number how it changed; it is clear if it stays so after the correction for all of them."""
    keys = [name for name in label_columns(changes) if name not in ("metric", "unit", "of")]
    names = series_names(changes, keys) if keys else Series("", index=changes.index)
    catalog = catalog_of(changes)
    is_rare = (_is_rare(changes) | (changes["ratio_low"].isna() & changes["p_adjusted"].notna())).tolist()
    for place, (name, row) in enumerate(zip(names, changes.to_dict("records"), strict=True)):
        direction = direction_among(row["ratio_low"], row["ratio_high"], row["p_adjusted"], neutral=1.0)
        case = case_among(direction, row["ratio_low"], row["ratio_high"], neutral=1.0)
        if is_rare[place]:
            direction, case = _direction_of(row["difference"], row["p_adjusted"]), "rare"
        if row["before"] == row["value"] == 0:
            direction, case = "no clear difference", "zero"
        if pd.isna(row["difference"]):
            direction, case = "unknown", "not_known"
        yield Finding(
            kind="change",
            case=case,
            subject={key: str(row[key]) for key in keys if not pd.isna(row[key])},
            direction=direction,
            size=row["ratio"],
            low=row["ratio_low"],
            high=row["ratio_high"],
            unit="ratio",
            judged="days",
            is_shown=not pd.isna(row["newest_days"]),
            numbers={
                "measure": name_of(str(row["metric"]), catalog),
                "measured_in": "USD" if str(row["unit"]).startswith("USD") else row["unit"],
                "name": name or None,
                **{key: row[key] for key in ("before", "value", "of", "p_adjusted", "newest_days", "newest_ratio")},
            },
        )


def _is_rare(rows: DataFrame) -> Series[bool]:
    """Return which rows count so few before that the change has no percentage."""
    is_count = (rows["of"] != "ratio") & ~rows["unit"].astype("str").str.startswith("USD")
    return is_count & (rows["before"] < RARE)


@requires(frame=_MONEY)
@returns(
    KEYS,
    Column("driver", "category", about="player mix if there are other dimensions"),
    named("effect", about="on the later half"),
    between(
        named("like_for_like", about="the change of the driver within the segments, -0.1 is a tenth less"),
        "95%, corrected as in `change`",
    ),
    "p_value",
    named("p_adjusted", about="Holm, over all rows"),
    "behind behind_effect",
)
def money_drivers(frame: DataFrame, by: str | None = "game") -> DataFrame:
    """Return what moved the money of each value of *by* between the two halves of the days, clear changes first.

        metrics = ["user_unique", "revenue", "ecpm"]
        days = lens.query(metrics, by=["game", "country_code"], over="last 4 complete weeks")
        changes.money_drivers(days)

    Money is purchases and ad revenue: players x (purchases per player + ads per player x eCPM). Its change is split
    into these four, each with the others at the mean of both halves (Shapley), so the effects of a value of *by* sum to
    its change. They are taken in the finest segments that the frame has, such as countries. Players are all of them, at
    what the average one brings; a shift between segments that bring more and less is the player mix; the other drivers
    are like for like, within the segments, so they differ from drivers of all segments together. How much a driver
    itself changed, with the segments at their usual levels, has an interval from the differences between days
    (`over_days`); below 7 days a half there is none, nor where the driver is from fewer than ten purchases or ads
    before, or the interval is wider than tenfold both ways.

    Args:
        frame: user_unique, revenue and ecpm by day, *by* and what else may be behind a change, such as country_code.
        by: a dimension, None is all together.

    Claims: "money", one for each effect of half a cent or more.

    Raises:
        BadQuery: the frame has less than two weeks, or ends within a day.
    """
    if (length := _period(frame).length.days) < 2 * FEWEST_DAYS:
        rule = 'are too few for whole weeks: query over="last 14 complete days"'
        raise BadQuery("frame", counted(length, "day"), rule)
    earlier, later = split_in_halves(frame)
    rows, begins = pd.concat([earlier, later], ignore_index=True), [_period(half).start for half in (earlier, later)]
    keys = with_ids(rows, by)
    cells = [*dict.fromkeys([*keys, *dimension_columns(rows)])]
    cell, (first, middle) = _places(rows, cells), day_numbers(pd.Index(begins)).tolist()
    days = np.arange(first, 2 * middle - first)
    is_later = days >= middle
    sums = {name: np.zeros((int(cell.max(initial=-1)) + 1, len(days))) for name in _FIELDS}
    for name, field in _FIELDS.items():
        amounts = _floats(rows[column_of(rows, *field)]).fillna(0.0).to_numpy()
        np.add.at(sums[name], (cell, day_numbers(rows["timestamp"]) - first), amounts)
    bought = rows["revenue_event_count"] if "revenue_event_count" in rows else Series(np.inf, rows.index)
    sums["bought"] = np.zeros_like(sums["players"])
    np.add.at(sums["bought"], (cell, day_numbers(rows["timestamp"]) - first), _floats(bought).fillna(0.0).to_numpy())
    segments = rows[~Series(cell).duplicated()].reset_index(drop=True)
    group = _places(segments, keys)
    groups = segments[~Series(group).duplicated()][keys].reset_index(drop=True)
    others = [name for name in label_columns(segments) if name not in keys]
    names = series_names(segments, others) if others else Series(pd.NA, segments.index)
    before, after = ({name: table[:, at].sum(axis=1) for name, table in sums.items()} for at in (~is_later, is_later))
    effects, worth = _effects(before, after, group)
    sums["worth"] = sums["players"] * worth[:, None]
    if not others:
        del effects["player mix"]
    blocks, estimates, is_rare = [], [], []
    for driver, effect in effects.items():
        part, whole = _DRIVERS[driver]
        parts: Floats = np.zeros((int(group.max(initial=-1)) + 1, len(days)))
        wholes = np.zeros_like(parts) if whole else np.ones_like(parts)
        np.add.at(parts, group, sums[part])
        if whole:
            usual = 1.0 if driver == "player mix" else _ratios(before[part] + after[part], before[whole] + after[whole])
            np.add.at(wholes, group, sums[whole] * np.reshape(usual, (-1, 1)))
        counts: Counted | None = None if whole else "events"
        estimates.append(over_days(parts, wholes, days, later=is_later, counted=counts, is_balanced=False))
        is_rare.append(np.bincount(group, before[_COUNTS[driver]], len(groups)) < RARE)
        by_group = DataFrame({"group": group, "effect": effect, "behind": names})
        total = by_group.groupby("group")["effect"].sum()
        by_group["same"] = by_group["effect"] * np.sign(total.to_numpy())[group]
        largest = by_group.loc[by_group.groupby("group")["same"].idxmax()].set_index("group")
        blocks.append(
            groups.assign(
                driver=driver,
                effect=total,
                like_for_like=estimates[-1].value - 1,
                behind=largest["behind"],
                behind_effect=largest["effect"].where(largest["behind"].notna()),
            )
        )
    result = pd.concat(blocks, ignore_index=True)
    bounds = ["like_for_like_low", "like_for_like_high"]
    result[["p_value", "p_adjusted", *bounds]] = _judged(estimates) - np.array([0, 0, 1, 1])
    is_sized = _is_narrow(*(result[name] + 1 for name in bounds)) & ~np.concatenate(is_rare)
    result[["like_for_like", *bounds]] = result[["like_for_like", *bounds]].where(is_sized)
    is_clear = result["p_adjusted"] < LEVEL
    largest = result.assign(is_clear=is_clear, size=result["effect"].abs()).sort_values(
        ["is_clear", "size"], ascending=False, kind="stable", ignore_index=True
    )
    return largest[[*result.columns]]


def _effects(
    before: Mapping[str, Floats], after: Mapping[str, Floats], group: NDArray[np.int64]
) -> tuple[dict[str, Floats], Floats]:
    """Return what each driver added to the money of each segment (USD), and what a player of each brings (USD).

    The effects sum to the change. An additional player counts at the mean worth of the group. What players of the
    segment bring above or below that mean is the mix.
    """
    players, pairs = (before["players"], after["players"]), ((before, after), (after, before))
    a, b, c = (
        [_ratios(sums[part], sums[whole], other[part], other[whole]) for sums, other in pairs]
        for part, whole in (("purchases", "players"), ("impressions", "players"), ("ads", "impressions"))
    )
    more_players = players[1] - players[0]
    by_purchases = (a[0] + a[1]) / 2
    by_ads = (b[0] * c[0] + b[1] * c[1] + (b[0] * c[1] + b[1] * c[0]) / 2) / 3
    by_ads_per_player = (
        (b[1] - b[0]) * (players[0] * c[0] + players[1] * c[1] + (players[0] * c[1] + players[1] * c[0]) / 2) / 3
    )
    worth = by_purchases + by_ads
    totals: list[Floats] = [np.bincount(group, count)[group].astype("float64") for count in players]
    shares = [_ratios(players[at], totals[at], players[1 - at], totals[1 - at]) for at in (0, 1)]
    mean_worth = np.bincount(group, worth * (shares[0] + shares[1]) / 2)[group]
    return {
        "players": more_players * mean_worth,
        "player mix": more_players * (worth - mean_worth),
        "purchases per player": after["purchases"] - before["purchases"] - more_players * by_purchases,
        "ads per player": by_ads_per_player,
        "ecpm": after["ads"] - before["ads"] - more_players * by_ads - by_ads_per_player,  # also without impressions
    }, worth


def _is_narrow(low: Series[float], high: Series[float]) -> Series[bool]:
    """Return which intervals of ratios are worth a percentage."""
    return low.isna() | (high <= _WIDEST_RATIO * low)


def _ratios(part: Floats, whole: Floats, *other: Floats) -> Floats:
    """Return *part* / *whole*. Where *whole* is 0, return the ratio of the *other* period, or 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(whole > 0, part / whole, np.nan)
    return np.where(np.isnan(ratios), _ratios(*other) if other else 0.0, ratios)


@reads("changes.money_drivers", row_by_row=True)
def _read_drivers(drivers: DataFrame, by: str | None) -> Iterator[Finding]:
    """Say of each driver what it brought or cost; it is clear if its own change stays so after the correction.

    One that brought less than half a cent did nothing and is not named.
    """
    is_nothing = not drivers["effect"].any()
    drivers = drivers[drivers["effect"].abs() >= HALF_CENT]
    if drivers.empty:
        yield Finding(kind="money", case="nothing" if is_nothing else "none", unit="change")
    names = display_values(drivers[by]) if by else Series(_ALL, index=drivers.index)
    for name, row in zip(names, drivers.to_dict("records"), strict=True):
        direction = direction_among(row["like_for_like_low"], row["like_for_like_high"], row["p_adjusted"])
        case = case_among(direction, row["like_for_like_low"], row["like_for_like_high"])
        if pd.isna(row["like_for_like_low"]) and not pd.isna(row["p_adjusted"]):
            direction, case = _direction_of(row["effect"], row["p_adjusted"]), "rare"
        is_clear = case in ("higher", "lower")
        is_against = row["effect"] * row["like_for_like"] <= 0  # within countries the money moved the other way
        if is_clear and is_against:
            direction, case, is_clear = "no clear difference", "no_clear_difference", False
        driver, cut = str(row["driver"]).replace(" ", "_"), "up" if row["like_for_like"] > 0 else "down"
        is_within = driver in ("purchases_per_player", "ads_per_player", "ecpm") and not pd.isna(row["behind"])
        yield Finding(
            kind="money",
            case=("brought" if row["effect"] > 0 else "cost") if is_clear else case,
            subject={by: name} if by else {},
            direction=direction,
            size=row["like_for_like"],
            low=row["like_for_like_low"],
            high=row["like_for_like_high"],
            unit="change",
            judged="days",
            numbers={
                "name": name,
                "driver": [Clause(f"{driver}_{cut}" if is_clear else driver)],
                "basis": [Clause("like_for_like")] if is_within else None,
                "behind": row["behind"] if HALF_CENT <= abs(row["behind_effect"]) < abs(row["effect"]) else None,
                "own_change": None if is_against else [Clause("own_change")],
                **{key: row[key] for key in ("effect", "behind_effect", "p_adjusted")},
            },
        )


def _direction_of(size: float, p_adjusted: float) -> Direction:
    """Return the direction of a change that has no interval to show."""
    if pd.isna(p_adjusted):
        return "unknown"
    return "no clear difference" if p_adjusted >= LEVEL else "higher" if size > 0 else "lower"


def _judged(estimates: Sequence[DayEstimates]) -> Floats:
    """Return p-value, Holm's of all, and the bounds of the ratio of each row; those selected are corrected for it."""
    p_values = np.concatenate([estimate.p_value() for estimate in estimates])
    adjusted = holm(Series(p_values)).to_numpy()
    is_selected = adjusted < LEVEL
    level = LEVEL * max(1, is_selected.sum()) / max(1, np.isfinite(p_values).sum())
    uncorrected, corrected = (np.hstack([estimate.bounds(1 - at) for estimate in estimates]) for at in (LEVEL, level))
    return np.column_stack([p_values, adjusted, *np.where(is_selected, corrected, uncorrected)])


def _places(rows: DataFrame, keys: list[str]) -> NDArray[np.int64]:
    """Return the number of the group that each row is in, in order of appearance."""
    if not keys:
        return np.zeros(len(rows), dtype="int64")
    places = rows[keys].astype("object").groupby(keys, dropna=False, sort=False).ngroup()
    return np.asarray(places, dtype="int64")


@dataclass(frozen=True, eq=False)
class _Series:
    """One metric of both periods.

    Attributes:
        keys: the segments and what is measured, a row for each; its column "of" is one of "sum", "day" and "ratio".
        part, whole: numerator and denominator by segment and day.
        days: days since 1970-01-01.
        is_later: mask of the days of the later period.
        counted: what the numerator counts, as `over_days` takes it.
    """

    keys: DataFrame
    part: Floats
    whole: Floats
    days: NDArray[np.int64]
    is_later: NDArray[np.bool_]
    counted: Counted | None

    @cached_property
    def change(self) -> DayEstimates:
        """The later period against the other."""
        options: Any = {"later": self.is_later, "counted": self.counted, "is_balanced": False}
        return over_days(self.part, self.whole, self.days, **options)

    @property
    def is_sum(self) -> bool:
        """Whether its numbers are sums of the days."""
        return bool((self.keys["of"] == "sum").all())

    def numbers(self) -> DataFrame:
        """Return the segments with value and before, and the intervals of both unless they are sums."""
        result = self.keys.copy()
        for name, at in (("value", self.is_later), ("before", ~self.is_later)):
            sums = Series(self.part[:, at].sum(axis=1)), Series(self.whole[:, at].sum(axis=1))
            result[name] = sums[0] if self.is_sum else ratio(*sums)
            found = over_days(self.part[:, at], self.whole[:, at], self.days[at], counted=self.counted)
            for side, sign in (("low", -1), ("high", 1)):
                result[f"{name}_{side}"] = np.nan if self.is_sum else result[name] * np.exp(sign * found.half_width())
        newest = [self._newest(days) for days in self.part]
        return result.join(DataFrame(newest, columns=["newest_days", "newest_ratio"], dtype="float64"))

    def _newest(self, values: Floats) -> tuple[float, float]:
        """Return how many of the last days lie beyond the two weeks before them, and their ratio to these."""
        most = min(_MOST_NEWEST, int(self.is_later.sum()) - 1)
        for count in range(0 if (self.keys["of"] == "ratio").any() else most, _FEWEST_NEWEST - 1, -1):
            span = count + _DAYS_BEFORE
            if len(values) < span or self.days[-1] - self.days[-span] != span - 1:
                continue
            newest, before = values[-count:], values[-span:-count]
            is_beyond = newest.max() < before.min() or newest.min() > before.max()
            if is_beyond and before.min() > 0 and abs(newest.mean() / before.mean() - 1) >= _LEAST_STEP:
                return count, newest.mean() / before.mean()
        return np.nan, np.nan


def _period(frame: DataFrame) -> Interval:
    """Return the whole days that *frame* covers.

    Raises:
        BadQuery: it has no rows, or begins or ends within a day.
    """
    receipt = Receipt.of(frame.attrs)
    period = receipt.interval or visible_period(frame, "day")
    if period is None:
        raise BadQuery("frame", UNSET, "has no days to compare: query days with data")
    if receipt.partial_buckets:
        rule = 'is not made of whole days: query over="last 14 complete days"'
        raise BadQuery("frame", str(period), rule)
    return period


def _series(name: str, before: DataFrame, later: DataFrame, periods: Sequence[Interval]) -> _Series:
    """Return the metric *name* of two frames, largest segments of the later one first.

    Raises:
        BadQuery: the metric is not in the catalog, or the frames do not hold it.
    """
    both = pd.concat([before.assign(**{_LATER: False}), later.assign(**{_LATER: True})], ignore_index=True)
    basis, unit, counts, part, whole = _measured(name, both, catalog_of(later))
    keys = [key for key in dimension_columns(later) if key in before] + (["age"] if name == "retention" else [])
    rows, group = both[keys].astype("object"), _places(both, keys)
    days = np.concatenate([np.arange(*day_numbers(pd.Index([covered.start, covered.end]))) for covered in periods])
    is_later = np.repeat([False, True], [period.length.days for period in periods])
    places = np.searchsorted(days, day_numbers(both["timestamp"]))
    shape = group.max(initial=-1) + 1, len(days)
    tables = np.zeros(shape), np.ones(shape) if whole is None else np.zeros(shape)
    for table, column in zip(tables, (part, whole), strict=True):
        if column is not None:
            np.add.at(table, (group, places), column.fillna(0.0).to_numpy())
    order = np.argsort(-(tables[0] if basis != "ratio" else tables[1])[:, is_later].sum(axis=1), kind="stable")
    shown = rows.loc[~pd.Series(group).duplicated()].reset_index(drop=True).loc[order].reset_index(drop=True)
    shown = shown if keys else DataFrame(index=range(shape[0]))
    title = shown["age"].map("D{} retention".format) if name == "retention" else name
    labelled = shown.drop(columns="age", errors="ignore").assign(metric=title, unit=unit, of=basis)
    return _Series(labelled, tables[0][order], tables[1][order], days, is_later, counts)


def _measured(
    name: str, rows: DataFrame, catalog: Catalog
) -> tuple[str, str, Counted | None, Series[float], Series[float] | None]:
    """Return what the numbers of a metric are of, their unit, what they count, numerator and denominator by row."""
    if name == "retention":
        is_known = rows["returned"].notna()
        return "ratio", "share", "shares", _floats(rows["returned"]), _floats(rows["installs"].where(is_known))
    metric = catalog.find(name)
    if metric is None:
        raise BadQuery("frame", name, "is not a metric of the catalog, so it is not known how its days combine")
    columns = {field: rows[column].astype("float64") for field, column in metric.columns.items() if column in rows}
    main_field = next(field for field in metric.fields if field.name == metric.sorts_by)
    unit = metric.unit or main_field.unit
    if missing := {*metric.shown} - {*columns}:
        raise BadQuery("frame", sorted(missing), f"are missing, and {name} needs them: query it again")
    if parts := ratio_parts(metric, columns.__getitem__):
        return "ratio", unit, "shares" if unit == "share" else None, *parts
    is_sum = metric.adds in ("everywhere", "over time and games")
    return (
        "sum" if is_sum else "day",
        unit,
        "events" if main_field.kind == "count" else None,
        columns[main_field.name],
        None,
    )


def _floats(column: Series[Any]) -> Series[float]:
    return column.astype("float64")


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
