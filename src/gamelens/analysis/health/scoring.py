"""Scores of all days: the clearest test of a share, and one cause for each event."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.health.baseline import BAND_Z, Baseline, judge_counts, judge_money, judge_shares, recent_sums
from gamelens.analysis.health.daily_series import SeriesGrid
from gamelens.analysis.health.watched_metrics import WATCHED
from gamelens.analysis.significance import false_discovery, two_sided

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEVEL_DAYS: Final = (7, 14)
"""Windows over which a share is tested beside the day itself."""
SILENT_DAYS: Final = 14
"""Days of silence after which a game has no usual day any more."""

_TESTS_PER_SHARE: Final = 1 + len(LEVEL_DAYS)
_ACTIVITY: Final = ("user_unique", "session_unique", "event_count")  # every running game has them
_SILENT_LEAST: Final = 7.0  # 0 instead of 7 expected happens by chance on one day in a thousand
_LEVEL_P: Final = 0.01  # a level replaces the day only below this p-value
_CAUSE_P: Final = 1e-4
_BEFORE_DAYS: Final = 42  # history that the baseline of a share needs
_BATCH_SERIES: Final = 500  # windows of so many series take some 100 MB
_MIXES: Final = [key for key, watch in WATCHED.items() if watch.is_mix]


class Scores:
    """The scores of a grid, as arrays of series by days.

    Attributes:
        series: the grid.
        value, expected, low, high, z, p: of the day, or of the window that shows more.
        window_days: 1, or the days of that window.
        weight: share of its game that a series covers.
        is_silent: the whole game sent nothing.
        is_folded: the finding follows from a silent game.
    """

    def __init__(self, series: SeriesGrid) -> None:
        self.series = series
        shape = series.value.shape
        self.value = series.value.copy()
        self.expected, self.low, self.high, self.z, self.p = (np.full(shape, np.nan) for _ in range(5))
        self.window_days, self.weight = np.ones(shape), np.ones(shape)
        self.is_silent, self.is_folded = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        kinds = series.identity["kind"].astype("str").to_numpy()
        for kind, judge in (("count", judge_counts), ("money", judge_money), ("number", judge_money)):
            for rows in _batches(np.flatnonzero(kinds == kind)):
                self._store(rows, judge(series.value[rows]))
        shares = np.flatnonzero(kinds == "share")
        for rows in _batches(shares):
            self._score_shares(rows)
        self._set_share_weights(shares)
        self._fold_silent_games()
        self._isolate_causes()

    def columns(self) -> dict[str, Floats]:
        """Return the scores by column name. Flags are 0 and 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(self.expected > 0, (self.value - self.expected) / self.expected, np.nan)
        names = ("value", "expected", "low", "high", "z", "p", "window_days", "weight", "is_silent", "is_folded")
        scores = {name: np.asarray(getattr(self, name), dtype="float64") for name in names}
        return {**scores, "q": false_discovery(np.where(self.is_folded, np.nan, self.p)), "change": change}

    def _store(self, rows: Ints, baseline: Baseline) -> None:
        for name in ("expected", "low", "high", "z"):
            getattr(self, name)[rows] = getattr(baseline, name)
        self.p[rows] = two_sided(baseline.z, baseline.noise_days)

    def _score_shares(self, rows: Ints) -> None:
        """Score shares by their day, or by the last weeks if these show a clearer deviation."""
        part, whole = self.series.part[rows], self.series.whole[rows]
        self._store(rows, judge_shares(part, whole))
        with np.errstate(invalid="ignore"):
            is_odd = np.abs(self.z[rows]) > BAND_Z  # such a day is a finding by itself, not part of a level
        for days in LEVEL_DAYS:
            level = judge_shares(part, whole, days=days, without=is_odd)
            chance = two_sided(level.z, level.noise_days)
            with np.errstate(invalid="ignore", divide="ignore"):
                is_clearer = (chance < _LEVEL_P) & ~(chance >= self.p[rows])
                value = np.divide(*recent_sums(part, whole, days=days, without=is_odd))
            columns = {"value": value, "p": chance, "window_days": np.full_like(chance, days)}
            columns |= {name: getattr(level, name) for name in ("expected", "low", "high", "z")}
            for name, values in columns.items():
                getattr(self, name)[rows] = np.where(is_clearer, values, getattr(self, name)[rows])
        self.p[rows] = np.minimum(_TESTS_PER_SHARE * self.p[rows], 1.0)

    def _set_share_weights(self, shares: Ints) -> None:
        """Set the weight of each share: a network by its ads, a country by its installs."""
        identity = self.series.identity.iloc[shares]
        is_segment, is_mix = identity["dimension"].notna().to_numpy(), identity["watch"].isin(_MIXES).to_numpy()
        for rows in _row_groups(identity, ["game_id", "watch"]):
            segments = shares[rows[is_segment[rows]]]
            whole = np.nan_to_num(self.series.whole[segments])
            with np.errstate(divide="ignore", invalid="ignore"):
                size = self.expected[segments] if is_mix[rows[0]] else whole / whole.sum(axis=0)
            self.weight[segments] = np.nan_to_num(size, nan=1.0)

    def _fold_silent_games(self) -> None:
        """Fold the findings of a game that sends nothing into one.

        Its first activity metric is silent, the other findings follow from it.
        """
        is_activity = (
            self.series.identity["dimension"].isna() & self.series.identity["watch"].isin(_ACTIVITY)
        ).to_numpy()
        for rows in _row_groups(self.series.identity, ["game_id"]):
            activity = rows[is_activity[rows]]
            if not len(activity):
                continue
            values = self.series.value[activity]
            is_quiet = (values == 0).all(axis=0)
            if not is_quiet.any():
                continue
            first, usual = activity[0], _usual_before(values[0], is_quiet)
            self.is_silent[first] = is_quiet & (usual >= _SILENT_LEAST)
            self.is_folded[rows] |= is_quiet
            self.is_folded[first] = is_quiet & ~self.is_silent[first]
            is_unknown = self.is_silent[first] & ~(np.nan_to_num(self.expected[first]) > 0)
            self.expected[first] = np.where(is_unknown, usual, self.expected[first])

    def _isolate_causes(self) -> None:
        """Find the shares of a whole that changed by themselves, on each day with a deviation.

        Shares of one whole must change together. The one that deviates most is the cause; the others are judged again
        as shares of the rest.
        """
        mixes = np.flatnonzero(self.series.identity["watch"].isin(_MIXES).to_numpy())
        for rows in _row_groups(self.series.identity.iloc[mixes], ["game_id", "watch"]):
            with np.errstate(invalid="ignore"):
                odd = np.flatnonzero((self.p[mixes[rows]] < _CAUSE_P).any(axis=0))
            for day in odd:
                self._isolate_causes_on(int(day), mixes[rows])

    def _isolate_causes_on(self, day: int, rows: Ints) -> None:
        """Find the causes of one *day* among the shares *rows*."""
        days = slice(max(0, day - _BEFORE_DAYS), day + 1)
        part, whole = self.series.part[rows, days], self.series.whole[rows, days]
        left = list(range(len(rows)))
        while len(left) > 1:
            p, z = self.p[rows[left], day], self.z[rows[left], day]
            if not (np.nan_to_num(p, nan=1.0) < _CAUSE_P).any():
                return
            # of two equal and opposite deviations the one that fell
            cause = left[int(np.lexsort((z, -np.round(np.nan_to_num(np.abs(z)), 6)))[0])]
            whole = whole - np.nan_to_num(part[cause])
            left.remove(cause)
            rest = judge_shares(part[left], whole[left], days=int(self.window_days[rows[cause], day]))
            z = np.nan_to_num(rest.z[:, -1])
            noise_days = np.nan_to_num(rest.noise_days[:, -1], nan=np.inf, posinf=np.inf)
            self.z[rows[left], day] = z
            self.p[rows[left], day] = np.minimum(_TESTS_PER_SHARE * two_sided(z, noise_days), 1.0)


def _batches(rows: Ints) -> list[Ints]:
    """Split *rows* into batches, so that memory does not grow with the number of games."""
    return [rows[first : first + _BATCH_SERIES] for first in range(0, len(rows), _BATCH_SERIES)]


def _row_groups(identity: DataFrame, keys: list[str]) -> list[Ints]:
    """Return the positions of the rows of *identity* for each group of *keys*."""
    groups: Any = identity.groupby(keys, observed=True, dropna=False, sort=False).indices.values()
    return [np.asarray(rows, dtype=np.int64) for rows in groups]


def _usual_before(values: Floats, is_quiet: Flags) -> Floats:
    """Return the mean of the last seven days with data, of those not older than `SILENT_DAYS`."""
    usual = np.zeros(len(values))
    for day in np.flatnonzero(is_quiet).tolist():
        before = [
            earlier
            for earlier in range(max(0, day - SILENT_DAYS), day)
            if not is_quiet[earlier] and np.isfinite(values[earlier])
        ]
        usual[day] = float(np.mean(values[before[-7:]])) if before else 0.0
    return usual
