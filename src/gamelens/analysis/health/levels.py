"""Slow changes of level: the last week of every series against a week up to eight weeks earlier.

The board takes a fall of a tenth per week for drift, which its baseline follows, so that no day stands out. Here the
last seven days are compared with the same weekdays eight weeks earlier (four at least), and the days between show how
much a level moves for no reason: a straight line through the logarithms, and the days around it (`over_days`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, direction_of, reads
from gamelens.analysis.health.board import UNITS, subject
from gamelens.analysis.health.constants import FEWEST_EVENTS_OF_WEEK, FEWEST_WEEKS, LEAST_LEVEL_CHANGE, MOST_WEEKS
from gamelens.analysis.health.daily_series import IDENTITY, SERIES, series_grid
from gamelens.analysis.over_days import changes_over_days, day_numbers
from gamelens.analysis.significance import LEVEL, holm
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import between, named, returns

_WEEK: Final = 7
"""Days of a week.

Derived: levels of whole weeks have the same weekdays.
"""
_NUMBERS: Final = ("before", "value", "change", "low", "high", "p_value")


@requires(daily=result_of("health.daily(answers)", "timestamp", *IDENTITY, "value", "part", "whole"))
@returns(
    *SERIES[1:-3],
    Column("weeks", "count", about="from one week to the other"),
    named("before", about="the mean of a day"),
    named("value", about="the mean of a day"),
    between(named("change", about="-0.2 is 20% less"), "95%", low="low", high="high"),
    "p_value",
    named("p_adjusted", about="Holm, for all rows"),
    named("is_moved", about="beyond chance, and by a fifth or more"),
)
def levels(daily: DataFrame) -> DataFrame:
    """Return how the level of each number of a game moved over the last weeks, the largest change first.

        sessions = lens.query("session_unique", by="game", over="last 35 complete days")
        health.levels(health.daily([sessions]))

    Left out are series in which a day of the two weeks compared is missing or zero, and counts of fewer than 20 a
    week.

    Claims: "level", one a row.
    """
    grid = series_grid(daily[daily["dimension"].isna()])
    rows: list[dict[str, Any]] = []
    for place in range(len(grid.identity)):
        kind = grid.identity["kind"].iloc[place]
        found = _moved(grid.value[place], grid.whole[place], day_numbers(grid.days), is_counted=kind == "count")
        if found:
            rows.append(dict(grid.identity.iloc[place]) | found)
    result = DataFrame(rows, columns=[*IDENTITY, "weeks", *_NUMBERS]).astype(dict.fromkeys(_NUMBERS, "float64"))
    result = result.astype({name: daily[name].dtype for name in IDENTITY if name != "segment"})
    result["p_adjusted"] = holm(result["p_value"])
    result["is_moved"] = (result["p_adjusted"] < LEVEL) & (result["change"].abs() >= LEAST_LEVEL_CHANGE)
    order = Series(np.log1p(result["change"])).abs().where(result["is_moved"], -1.0)
    return result.loc[order.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


@reads("health.levels", row_by_row=True)
def _read_levels(levels: DataFrame) -> Iterator[Finding]:
    """Say of each level how it moved."""
    if levels.empty:
        yield Finding(kind="level", case="none_known", unit="change")
    for row in levels.to_dict("records"):
        direction = direction_of(row["low"], row["high"]) if row["is_moved"] else "no clear difference"
        yield Finding(
            kind="level",
            case=direction.replace(" ", "_"),
            subject={"game": str(row["game"])},
            direction=direction,
            size=row["change"],
            low=row["low"],
            high=row["high"],
            unit="change",
            judged="days",
            numbers={
                **{name: row[name] for name in ("metric", "weeks", "before", "value", "p_adjusted")},
                "measure": subject(row),
                "measured_in": UNITS.get(row["kind"], ""),
                "least": LEAST_LEVEL_CHANGE,
            },
        )


def _moved(value: NDArray[np.float64], whole: NDArray[np.float64], days: NDArray[np.int64], *, is_counted: bool) -> Any:
    """Return weeks, before, value, change, low, high and p_value of a series, or None."""
    known = np.flatnonzero(np.isfinite(value))
    if not len(known) or known[-1] != len(value) - 1:
        return None
    first = len(value) - 1 - int(np.argmax(~np.isfinite(value[::-1]))) if not np.isfinite(value).all() else -1
    weeks = min(MOST_WEEKS, (len(value) - 1 - first) // _WEEK - 1)
    if weeks < FEWEST_WEEKS:
        return None
    compared = slice(len(value) - (weeks + 1) * _WEEK, None)
    series, day = value[compared], days[compared]
    size = whole[compared] if np.isfinite(whole[compared]).all() else np.ones(len(series))
    if not (series > 0).all() or not (size > 0).all():
        return None
    before, after = (float(np.average(series[at], weights=size[at])) for at in (slice(_WEEK), slice(-_WEEK, None)))
    if is_counted and min(before, after) * _WEEK < FEWEST_EVENTS_OF_WEEK:
        return None
    found = changes_over_days(np.log(series), size, day)
    low, high = found.bounds()
    return {
        "weeks": weeks,
        "before": before,
        "value": after,
        "change": float(found.value[0]) - 1,
        "low": float(low[0]) - 1,
        "high": float(high[0]) - 1,
        "p_value": float(found.p_value()[0]),
    }
