"""How bad a day is: beyond chance and by a tenth, for how much of the game, and whether the day may still move."""

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
"""From least to most; unknown is what has not enough history to be judged."""
LEAST_CHANGE: Final = 0.10
MOST_Q: Final = 0.01
CRITICAL_FALL: Final = 0.50
CRITICAL_WEIGHT: Final = 0.10
SETTLE_DAYS: Final = 2
"""A day is asked for again for so long after its end (the client's cache does)."""
RESTATED: Final = 0.01
"""A restatement by less changes no verdict."""

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
    as_of = Receipt.of(daily.attrs).as_of
    if as_of is None:
        return Series(True, index=stamps.index)
    return stamps + _DAY * (1 + SETTLE_DAYS) <= pd.Timestamp(as_of)


def is_restated(scores: DataFrame, restatements: DataFrame | None) -> NDArray[np.bool_]:
    """Whether the service said otherwise of a day before, and that is what makes it stand out.

    So it is where the number moved by over a hundredth, to the side it now strays to, after the day was over: what was
    asked in the middle of a day had to move, and what came late cannot be why a day is low. Of a share nobody knows how
    far it moved; it counts once nothing late was expected any more. A level of weeks is not made by one day.
    """
    flags = np.zeros(len(scores), dtype=np.bool_)
    if restatements is None or not len(restatements):
        return flags
    way = np.sign((scores["value"] - scores["expected"]).to_numpy(dtype="float64"))
    for key in scores["watch"].unique():
        own = ((scores["watch"] == key) & (scores["window_days"] == 1)).to_numpy()
        for stamp, moved in _moved(restatements, str(key)):
            flags |= own & (scores["timestamp"] == stamp).to_numpy() & ((way == moved) | (moved == 0))
    return flags


def _moved(restatements: DataFrame, key: str) -> set[tuple[pd.Timestamp, float]]:
    """The days on which what is watched as *key* was restated, and to which side; 0 where nobody knows."""
    asks, field = (WATCHED[key].asks, WATCHED[key].field) if key in WATCHED else ((key,), key)
    told = restatements[restatements["metric"].isin(asks)]
    told = told[told["field"].isin([field, *asks]) & (told["before_as_of"] >= told["timestamp"] + _DAY)]
    before, after = (told[name].astype("float64") for name in ("before", "after"))
    is_known = before.notna() & after.notna()
    is_late = told["before_as_of"] >= told["timestamp"] + _DAY * (1 + SETTLE_DAYS)
    counts = (is_known & ((after - before).abs() > RESTATED * before.abs())) | (~is_known & is_late)
    sides = np.sign((after - before).fillna(0.0)[counts].to_numpy(dtype="float64"))
    return set(zip(told.loc[counts, "timestamp"], sides.tolist(), strict=True))


def is_flagged(severity: Series[Any]) -> Series[Any]:
    """Warning or worse."""
    return (severity.cat.codes >= _WARNING).astype("boolean")
