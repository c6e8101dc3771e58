"""Severity of a day: the probability, size and weight of its change, and restatements."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, DatetimeIndex

from gamelens.analysis.health.constants import (
    CRITICAL_FALL,
    CRITICAL_RISE,
    LEAST_CHANGE,
    MOST_Q,
    RESTATED,
)
from gamelens.analysis.health.daily_series import SeriesGrid
from gamelens.analysis.health.watched_metrics import WATCHED
from gamelens.catalog import METRICS
from gamelens.receipts import Receipt
from gamelens.wire.intervals import SETTLE_DAYS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

Severity = Literal["unknown", "ok", "info", "warning", "critical"]

SEVERITIES: Final = ("unknown", "ok", "info", "warning", "critical")
"""Severities in ascending order. Unknown means too little history."""

_UNKNOWN, _OK, _INFO, _WARNING, _CRITICAL = range(len(SEVERITIES))
_DAY: Final = pd.Timedelta(days=1)


class Limits(msgspec.Struct, frozen=True):
    """Limits of a finding: its least change, and the most false discoveries."""

    least_change: float = LEAST_CHANGE
    most_q: float = MOST_Q


class DayFindings(msgspec.Struct, frozen=True):
    """Findings of one day, arrays by series.

    Attributes:
        value, expected, p, q, weight: as in `Scores`.
        is_worse_higher: a rise is the worse direction.
        is_settled: no more late rows are expected.
        is_silent: the whole game sent nothing.
        is_harmless: a silent game, a restatement or an annotation explains it.
    """

    value: Floats
    expected: Floats
    p: Floats
    q: Floats
    weight: Floats
    is_worse_higher: Flags
    is_settled: bool
    is_silent: Flags
    is_harmless: Flags


def severity_codes(found: DayFindings, limits: Limits) -> tuple[Ints, Flags]:
    """Return the place in `SEVERITIES` of each series, and whether it is flagged.

    A warning is beyond chance on the whole board (q) and changed by *least_change*. It is critical if half is lost (of
    errors: has doubled) of at least *least_change* of a game, which by itself could be a warning of the game, or if the
    game is silent. Beyond chance alone is info, and so are findings that are explained. Until a day is settled, a fall
    must be twice as large.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.where(found.expected > 0, (found.value - found.expected) / found.expected, np.nan)
        wanted = np.where(~np.bool_(found.is_settled) & (change < 0), 2 * limits.least_change, limits.least_change)
        is_odd = found.q <= limits.most_q
        is_alarm = is_odd & ((np.abs(change) >= wanted) | ((found.expected == 0) & (found.value > 0)))
        is_far = np.where(found.is_worse_higher, change >= CRITICAL_RISE, change <= -CRITICAL_FALL)
        is_grave = is_alarm & is_far & (found.weight >= limits.least_change)
    codes = np.where(np.isfinite(found.p), _OK, _UNKNOWN)
    for flags, code in ((is_odd, _INFO), (is_alarm, _WARNING), (is_grave | found.is_silent, _CRITICAL)):
        codes = np.where(flags, code, codes)
    codes = np.where(found.is_harmless & (codes > _UNKNOWN), np.minimum(codes, _INFO), codes)
    return codes, codes >= _WARNING


def is_settled(days: DatetimeIndex, daily: DataFrame) -> Flags:
    """Return whether each day is settled: no more late rows are expected.

    Without a receipt all days count as settled.
    """
    as_of = Receipt.of(daily.attrs).as_of
    if as_of is None:
        return np.ones(len(days), dtype=np.bool_)
    return np.asarray(days + _DAY * (1 + SETTLE_DAYS) <= pd.Timestamp(as_of))


def restated_days(series: SeriesGrid, restatements: DataFrame | None) -> tuple[Flags, Flags]:
    """Return flags of the days that the service restated upwards, and downwards.

    A restatement explains a deviation if the service changed the number by more than a hundredth, in the direction of
    the deviation, after the day was over: a query in the middle of a day is always followed by a change, and late rows
    cannot explain a low day. The size of a share's restatement is unknown, so it counts in both directions, once the
    day was settled.
    """
    is_up, is_down = (np.zeros(series.value.shape, dtype=np.bool_) for _ in range(2))
    if restatements is None or not len(restatements):
        return is_up, is_down
    watches = series.identity["watch"].astype("str").to_numpy()
    for key in dict.fromkeys(watches.tolist()):
        for day, side in _restated_days(restatements, key):
            column = series.days.get_indexer(pd.DatetimeIndex([day]))[0]
            if column >= 0:
                is_up[watches == key, column] |= side >= 0
                is_down[watches == key, column] |= side <= 0
    return is_up, is_down


def _restated_days(restatements: DataFrame, key: str) -> set[tuple[pd.Timestamp, float]]:
    """Return the restated days of the watched metric *key*, with the sign of the change.

    The sign is 0 if the size of the change is unknown.
    """
    metrics, field = (WATCHED[key].metrics, WATCHED[key].field) if key in WATCHED else ((key,), key)
    columns = [METRICS[metric].columns.get(field, metric) for metric in metrics]
    changes = restatements[restatements["metric"].isin(metrics) & restatements["field"].isin(columns)]
    changes = changes[changes["before_as_of"] >= changes["timestamp"] + _DAY]
    before, after = (changes[name].astype("float64") for name in ("before", "after"))
    is_known = before.notna() & after.notna()
    is_late = changes["before_as_of"] >= changes["timestamp"] + _DAY * (1 + SETTLE_DAYS)
    is_relevant = (is_known & ((after - before).abs() > RESTATED * before.abs())) | (~is_known & is_late)
    sides = np.sign((after - before).fillna(0.0)[is_relevant].to_numpy(dtype="float64"))
    return set(zip(changes.loc[is_relevant, "timestamp"], sides.tolist(), strict=True))
