"""Is everything as it usually is? Every game and metric against its own weekday, and what stands out.

What a day should have been is the median of the same weekday in the four weeks before, plus the drift every day has
lately shown against that median; how much it may differ is the spread (MAD) of the days before. Days after the one
judged are never looked at, so a board says today what it will say tomorrow.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_integer_dtype

from gamelens.analysis.frames import carry, label, label_columns, ratio

WEEKS: Final = 4
FEWEST_WEEKDAYS: Final = 2
FEWEST_DAYS: Final = 7
MEMORY_DAYS: Final = 21
_MAD_TO_SIGMA: Final = 1.4826
_MEAN_TO_SIGMA: Final = 1.2533
_SHORT_MEMORY: Final = 4  # the spread of n days is known to about 1 + 4/n
_LEAST_MONEY_NOISE: Final = 0.03
_SERIES: Final = ["game", "metric"]


def measured(frame: DataFrame, metrics: dict[str, str]) -> DataFrame:
    """A query's frame by game, made long; a day on which a game has no row counts as 0.

    *metrics* maps a column of the frame to the name people read.

    Columns: timestamp (datetime64[us, UTC]), game, metric (category), value (float64), is_count (boolean).
    """
    game = "game" if "game" in frame else next(iter(label_columns(frame)), None)
    named = frame.assign(game=label(frame[game]) if game else "all games")
    days = frame["timestamp"]
    days = pd.Series(pd.date_range(days.min(), days.max(), freq="D")) if len(days) else days
    grid = pd.MultiIndex.from_product([list(named["game"].unique()), list(days)], names=["game", "timestamp"])
    daily = named.groupby(["game", "timestamp"])[list(metrics)].sum().reindex(grid, fill_value=0)
    parts = [
        DataFrame({"metric": name, "value": numbers.astype("float64"), "is_count": is_integer_dtype(numbers)})
        for name, numbers in ((name, daily[column]) for column, name in metrics.items())
    ]
    long = pd.concat(parts).reset_index().astype({"game": "category", "metric": "category"})
    long["timestamp"] = long["timestamp"].astype("datetime64[us, UTC]")
    return carry(long[["timestamp", "game", "metric", "value", "is_count"]], frame)


def judged(daily: DataFrame, *, least_z: float = 3.5, least_change: float = 0.10) -> DataFrame:
    """Every day of every series against its baseline.

    Flagged is a day both far outside its own noise (robust z) and changed by a tenth or more.

    Columns: those of `measured`, and expected, low, high (float64, the band of *least_z*, in the metric's unit), z,
    change (float64, -0.2 is 20 % below), is_flagged (boolean). NA while the history is short (two same weekdays and
    seven days to compare are needed, so the first verdict falls on the twenty-second day), and for money that comes
    on fewer than half of the days.
    """
    series = [
        _judge(rows.sort_values("timestamp"), least_z) for _, rows in daily.groupby(_SERIES, observed=True, sort=False)
    ]
    nothing = daily.assign(**dict.fromkeys(("expected", "low", "high", "z"), Series(dtype="float64")))
    scores = pd.concat(series, ignore_index=True) if series else nothing
    scores["change"] = ratio(scores["value"] - scores["expected"], scores["expected"])
    appeared = (scores["expected"] == 0) & (scores["value"] > 0)
    is_changed = (scores["change"].abs() >= least_change) | appeared
    scores["is_flagged"] = ((scores["z"].abs() >= least_z) & is_changed).astype("boolean")
    return carry(scores, daily)


def board(scores: DataFrame) -> DataFrame:
    """The last day of every game and metric, the largest surprise first.

    Columns: game, metric (category), timestamp (datetime64[us, UTC]), value, expected, change, z (float64),
    is_flagged (boolean).
    """
    last = scores.sort_values("timestamp").groupby(_SERIES, observed=True, sort=False).tail(1)
    order = last["z"].abs().sort_values(ascending=False, na_position="last").index
    columns = [*_SERIES, "timestamp", "value", "expected", "change", "z", "is_flagged"]
    return carry(last.loc[order, columns].reset_index(drop=True), scores)


def flagged(scores: DataFrame) -> DataFrame:
    """The flagged days, newest first, each explained in a sentence.

    Columns: timestamp (datetime64[us, UTC]), game, metric (category), value, expected, change, z (float64), sentence
    (str, plain text: escape it before it becomes HTML).
    """
    days = scores[scores["is_flagged"]].sort_values(["timestamp", "game", "metric"], ascending=[False, True, True])
    made = days[["timestamp", *_SERIES, "value", "expected", "change", "z"]].reset_index(drop=True)
    made["sentence"] = Series([_sentence(row) for row in made.to_dict("records")], dtype="str")
    return carry(made, scores)


def silent_games(daily: DataFrame) -> DataFrame:
    """Games that sent something before and nothing on the last day, whatever the metric.

    Columns: game (category), last_day (datetime64[us, UTC], the last with a value), silent_days (Int64).
    """
    active = daily[daily["value"] > 0].groupby("game", observed=True)["timestamp"].max()
    silent = (daily["timestamp"].max() - active).dt.days.astype("Int64")
    made = DataFrame({"last_day": active, "silent_days": silent}).reset_index()
    return carry(made[made["silent_days"] > 0].reset_index(drop=True), daily)


def _judge(rows: DataFrame, least_z: float) -> DataFrame:
    values, is_count = rows["value"].to_numpy(dtype="float64"), bool(rows["is_count"].all())
    early = values[: 7 * (FEWEST_WEEKDAYS + 1)]
    typical = float(np.median(early[early > 0])) if (early > 0).any() else 1.0
    # one more purchase multiplies a day's money, so money is judged by ratios
    scaled = values if is_count else np.log1p(values / typical)
    expected, noise = _expected(scaled)
    if not is_count:
        expected[_is_rare(values)] = np.nan
    noise = np.maximum(noise, np.sqrt(np.maximum(expected, 1.0)) if is_count else _LEAST_MONEY_NOISE)
    lines = {"expected": expected, "low": expected - least_z * noise, "high": expected + least_z * noise}
    if not is_count:
        lines = {name: typical * np.expm1(line) for name, line in lines.items()}
    return rows.assign(**lines, z=(scaled - expected) / noise).assign(low=np.maximum(lines["low"], 0.0))


def _expected(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each value should have been, and how far it may stray (one sigma), from the values before it."""
    surprise = values - (usual := _same_weekday_median(values))
    expected, noise = np.full_like(values, np.nan), np.full_like(values, np.nan)
    for day in range(len(values)):
        before = surprise[max(0, day - MEMORY_DAYS) : day]
        before = before[~np.isnan(before)]
        if len(before) >= FEWEST_DAYS and not np.isnan(usual[day]):
            drift = float(np.median(before))
            expected[day] = max(usual[day] + drift, 0.0)
            noise[day] = _spread(before - drift) * (1 + _SHORT_MEMORY / len(before))
    return expected, noise


def _is_rare(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True on days before which most days brought nothing: a purchase now and then has no usual size."""
    is_paid = Series(values > 0, dtype="float64")
    rare: NDArray[np.bool_] = (is_paid.rolling(MEMORY_DAYS, min_periods=1).mean().shift(1) < 0.5).to_numpy()
    return rare


def _spread(strays: NDArray[np.float64]) -> float:
    """One sigma: the MAD, or half of what the mean says where most days are alike and the others far off."""
    strays = np.abs(strays)
    return max(_MAD_TO_SIGMA * float(np.median(strays)), 0.5 * _MEAN_TO_SIGMA * float(np.mean(strays)))


def _same_weekday_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    usual = np.full_like(values, np.nan)
    for day in range(FEWEST_WEEKDAYS * 7, len(values)):
        weeks = min(WEEKS, day // 7)
        usual[day] = np.median(values[day - 7 * weeks : day : 7])
    return usual


def _sentence(row: dict[Any, Any]) -> str:
    way = "above" if row["value"] > row["expected"] else "below"
    share = f"{abs(row['change']):.0%}" if pd.notna(row["change"]) else "far"
    day = row["timestamp"]
    return (
        f"{row['game']}: {row['metric']} {share} {way} a usual {day:%A} on {day:%Y-%m-%d} "
        f"({_readable(row['value'])} instead of about {_readable(row['expected'])})"
    )


def _readable(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
