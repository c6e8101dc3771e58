"""How bad a day is: beyond chance and by a tenth, for how much of the game, and whether the day may still move."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.frames import RECEIPT
from gamelens.analysis.health.watching import WATCHED

Severity = Literal["unknown", "ok", "info", "warning", "critical"]

SEVERITIES: Final = ("unknown", "ok", "info", "warning", "critical")
"""From least to most; unknown is what has not enough history to be judged."""
LEAST_CHANGE: Final = 0.10
MOST_Q: Final = 0.01
CRITICAL_FALL: Final = 0.50
CRITICAL_WEIGHT: Final = 0.10
SETTLE_DAYS: Final = 2
"""A day is asked for again for so long after its end (the client's cache does)."""
RESTATED: Final = 0.01

_UNKNOWN, _OK, _INFO, _WARNING, _CRITICAL = range(len(SEVERITIES))
_DAY: Final = pd.Timedelta(days=1)


def severities(scores: DataFrame, *, least_change: float, most_q: float) -> pd.Categorical[Any]:
    """The severity of each row.

    A warning is beyond chance on the whole board (q) and changed by *least_change*; critical, where a large enough part
    of a game lost half of it, or the game is silent. Beyond chance alone is info, and so is what follows from a silent
    game and whatever the service has restated. While a day may still move, a fall must be twice as large.
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


def is_settled(stamps: Series[Any], daily: DataFrame) -> Series[bool]:
    """Whether nothing late is expected for a day any more; without a receipt nobody knows, and all is settled."""
    as_of = (daily.attrs.get(RECEIPT) or {}).get("as_of")
    if as_of is None:
        return Series(True, index=stamps.index)
    return stamps + _DAY * (1 + SETTLE_DAYS) <= pd.Timestamp(as_of)


def is_restated(scores: DataFrame, restatements: DataFrame | None) -> NDArray[np.bool_]:
    """Whether the service said otherwise of a day before: by over a hundredth, or by nobody knows how much."""
    flags = np.zeros(len(scores), dtype=np.bool_)
    if restatements is None or not len(restatements):
        return flags
    before, after = (restatements[name].astype("float64") for name in ("before", "after"))
    told = restatements[before.isna() | after.isna() | ((after - before).abs() > RESTATED * before.abs())]
    for key in scores["watch"].unique():
        asks = WATCHED[key].asks if key in WATCHED else (key,)
        days = told.loc[told["metric"].isin(asks), "timestamp"]
        flags |= ((scores["watch"] == key) & scores["timestamp"].isin(days)).to_numpy()
    return flags


def is_flagged(severity: Series[Any]) -> Series[Any]:
    """Warning or worse."""
    return (severity.cat.codes >= _WARNING).astype("boolean")
