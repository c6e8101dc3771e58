"""Severity of a day: the probability, size and weight of its change, and restatements."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.health.watched_metrics import WATCHED
from gamelens.wire.receipts import Receipt

Severity = Literal["unknown", "ok", "info", "warning", "critical"]

SEVERITIES: Final = ("unknown", "ok", "info", "warning", "critical")
"""Severities in ascending order. Unknown means too little history."""
LEAST_CHANGE: Final = 0.10
MOST_Q: Final = 0.01
CRITICAL_FALL: Final = 0.50
CRITICAL_WEIGHT: Final = 0.10
SETTLE_DAYS: Final = 2
"""Days after its end until a day is settled, as in the client's cache."""
RESTATED: Final = 0.01
"""Relative change below which a restatement is ignored."""

_UNKNOWN, _OK, _INFO, _WARNING, _CRITICAL = range(len(SEVERITIES))
_DAY: Final = pd.Timedelta(days=1)


def severities(scores: DataFrame, *, least_change: float, most_q: float) -> pd.Categorical[Any]:
    """Return the severity of each row.

    A warning is beyond chance on the whole board (q) and changed by *least_change*. It is critical if a large enough
    part of a game lost half of it, or if the game is silent. Beyond chance alone is info, and so are findings that
    follow from a silent game and days that the service has restated. Until a day is settled, a fall must be twice as
    large.
    """
    change, q, weight = (scores[name].to_numpy(dtype="float64") for name in ("change", "q", "weight"))
    value, expected = (scores[name].to_numpy(dtype="float64") for name in ("value", "expected"))
    settled, restated, silent, folded = (
        scores[name].to_numpy(dtype="bool") for name in ("is_settled", "is_restated", "is_silent", "is_folded")
    )
    with np.errstate(invalid="ignore"):
        wanted = np.where(~settled & (change < 0), 2 * least_change, least_change)
        is_odd = q <= most_q
        is_alarm = is_odd & ((np.abs(change) >= wanted) | ((expected == 0) & (value > 0)))
        is_grave = is_alarm & (change <= -CRITICAL_FALL) & (weight >= CRITICAL_WEIGHT)
    codes = np.where(scores["p"].notna(), _OK, _UNKNOWN)
    for flags, code in ((is_odd, _INFO), (is_alarm, _WARNING), (is_grave | silent, _CRITICAL)):
        codes = np.where(flags, code, codes)
    codes = np.where((folded & (codes > _UNKNOWN)) | (restated & (codes > _INFO)), _INFO, codes)
    return pd.Categorical.from_codes(codes.tolist(), categories=pd.Index(SEVERITIES), ordered=True)


def is_settled(days: Series[Any], daily: DataFrame) -> Series[bool]:
    """Return whether each day is settled: no more late rows are expected.

    Without a receipt all days count as settled.
    """
    as_of = Receipt.of(daily.attrs).as_of
    if as_of is None:
        return Series(True, index=days.index)
    return days + _DAY * (1 + SETTLE_DAYS) <= pd.Timestamp(as_of)


def is_restated(scores: DataFrame, restatements: DataFrame | None) -> NDArray[np.bool_]:
    """Return whether a restatement of the day made it stand out.

    It did if the service changed the number by more than a hundredth, in the direction of the deviation, after the day
    was over: a query in the middle of a day is always followed by a change, and late rows cannot explain a low day. The
    size of a share's restatement is unknown, so it counts once the day was settled. One restated day does not explain a
    change over weeks, so only windows of one day count.
    """
    flags = np.zeros(len(scores), dtype=np.bool_)
    if restatements is None or not len(restatements):
        return flags
    direction = np.sign((scores["value"] - scores["expected"]).to_numpy(dtype="float64"))
    for key in scores["watch"].unique():
        is_own = ((scores["watch"] == key) & (scores["window_days"] == 1)).to_numpy()
        for day, side in _restated_days(restatements, str(key)):
            flags |= is_own & (scores["timestamp"] == day).to_numpy() & ((direction == side) | (side == 0))
    return flags


def _restated_days(restatements: DataFrame, key: str) -> set[tuple[pd.Timestamp, float]]:
    """Return the restated days of the watched metric *key*, with the sign of the change.

    The sign is 0 if the size of the change is unknown.
    """
    metrics, field = (WATCHED[key].metrics, WATCHED[key].field) if key in WATCHED else ((key,), key)
    changes = restatements[restatements["metric"].isin(metrics)]
    changes = changes[
        changes["field"].isin([field, *metrics]) & (changes["before_as_of"] >= changes["timestamp"] + _DAY)
    ]
    before, after = (changes[name].astype("float64") for name in ("before", "after"))
    is_known = before.notna() & after.notna()
    is_late = changes["before_as_of"] >= changes["timestamp"] + _DAY * (1 + SETTLE_DAYS)
    is_relevant = (is_known & ((after - before).abs() > RESTATED * before.abs())) | (~is_known & is_late)
    sides = np.sign((after - before).fillna(0.0)[is_relevant].to_numpy(dtype="float64"))
    return set(zip(changes.loc[is_relevant, "timestamp"], sides.tolist(), strict=True))


def is_flagged(severity: Series[Any]) -> Series[Any]:
    """Return whether each row is a warning or worse."""
    return (severity.cat.codes >= _WARNING).astype("boolean")
