"""The verdict on each day of each series: which look at it says most, what is one cause and not many findings."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.health.baseline import BAND_Z, Baseline, judge_counts, judge_money, judge_shares, recent
from gamelens.analysis.health.daily_series import SeriesGrid
from gamelens.analysis.health.watched_metrics import WATCHED
from gamelens.analysis.significance import false_discovery, two_sided

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEVEL_DAYS: Final = (7, 14)
"""Of the last so many days together a share is judged besides the day itself."""
SILENT_DAYS: Final = 14
"""A game that has sent nothing for longer has no usual day any more."""

_LOOKS: Final = 1 + len(LEVEL_DAYS)
_LIFE: Final = ("user_unique", "session_unique", "event_count")  # what a game that runs cannot be without
_SILENT_LEAST: Final = 7.0  # chance makes nothing of seven expected once in a thousand days
_SAYS_P: Final = 0.01  # a level that chance makes more often leaves the word to the day
_CAUSE_P: Final = 1e-4
_BEFORE_DAYS: Final = 42  # that a judgement of a share looks back
_AT_ONCE: Final = 500  # series, whose days with all days before each take some 100 MB
_MIXES: Final = [key for key, watch in WATCHED.items() if watch.is_mix]


class Scores:
    """The verdicts as arrays of series by days; *weight* is the part of its game a series is about."""

    def __init__(self, series: SeriesGrid) -> None:
        self.series = series
        shape = series.value.shape
        self.value = series.value.copy()
        self.expected, self.low, self.high, self.z, self.p = (np.full(shape, np.nan) for _ in range(5))
        self.window_days, self.weight = np.ones(shape), np.ones(shape)
        self.is_silent, self.is_folded = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        kinds = series.who["kind"].astype("str").to_numpy()
        for kind, judge in (("count", judge_counts), ("money", judge_money), ("number", judge_money)):
            for rows in _batches(np.flatnonzero(kinds == kind)):
                self._take(rows, judge(series.value[rows]))
        shares = np.flatnonzero(kinds == "share")
        for rows in _batches(shares):
            self._take_shares(rows)
        self._weigh(shares)
        self._fold_silent_games()
        self._name_causes()

    def columns(self) -> dict[str, Floats]:
        """The verdicts by name; flags are 0 and 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(self.expected > 0, (self.value - self.expected) / self.expected, np.nan)
        names = ("value", "expected", "low", "high", "z", "p", "window_days", "weight", "is_silent", "is_folded")
        found = {name: np.asarray(getattr(self, name), dtype="float64") for name in names}
        return {**found, "q": false_discovery(np.where(self.is_folded, np.nan, self.p)), "change": change}

    def _take(self, rows: Ints, found: Baseline) -> None:
        for name in ("expected", "low", "high", "z"):
            getattr(self, name)[rows] = getattr(found, name)
        self.p[rows] = two_sided(found.z, found.known)

    def _take_shares(self, rows: Ints) -> None:
        """The day by itself, or the level of the last weeks where it says more, and something at all."""
        part, whole = self.series.part[rows], self.series.whole[rows]
        self._take(rows, judge_shares(part, whole))
        with np.errstate(invalid="ignore"):
            is_odd = np.abs(self.z[rows]) > BAND_Z  # such a day speaks for itself, and for no level
        for days in LEVEL_DAYS:
            level = judge_shares(part, whole, days=days, without=is_odd)
            chance = two_sided(level.z, level.known)
            with np.errstate(invalid="ignore", divide="ignore"):
                says_more = (chance < _SAYS_P) & ~(chance >= self.p[rows])
                value = np.divide(*recent(part, whole, days=days, without=is_odd))
            found = {"value": value, "p": chance, "window_days": np.full_like(chance, days)}
            found |= {name: getattr(level, name) for name in ("expected", "low", "high", "z")}
            for name, own in found.items():
                getattr(self, name)[rows] = np.where(says_more, own, getattr(self, name)[rows])
        self.p[rows] = np.minimum(_LOOKS * self.p[rows], 1.0)

    def _weigh(self, shares: Ints) -> None:
        """How much of its game each share is about: a network by its ads, a country by those who installed there."""
        who = self.series.who.iloc[shares]
        is_segment, is_mix = who["dimension"].notna().to_numpy(), who["watch"].isin(_MIXES).to_numpy()
        for rows in _places(who, ["game_id", "watch"]):
            segments = shares[rows[is_segment[rows]]]
            whole = np.nan_to_num(self.series.whole[segments])
            with np.errstate(divide="ignore", invalid="ignore"):
                size = self.expected[segments] if is_mix[rows[0]] else whole / whole.sum(axis=0)
            self.weight[segments] = np.nan_to_num(size, nan=1.0)

    def _fold_silent_games(self) -> None:
        """A game that sends nothing at all is one finding: its first number is silent, the others follow from it."""
        is_life = (self.series.who["dimension"].isna() & self.series.who["watch"].isin(_LIFE)).to_numpy()
        for rows in _places(self.series.who, ["game_id"]):
            life = rows[is_life[rows]]
            if not len(life):
                continue
            values = self.series.value[life]
            is_quiet = (values == 0).all(axis=0)
            if not is_quiet.any():
                continue
            first, usual = life[0], _usual_before(values[0], is_quiet)
            self.is_silent[first] = is_quiet & (usual >= _SILENT_LEAST)
            self.is_folded[rows] |= is_quiet
            self.is_folded[first] = is_quiet & ~self.is_silent[first]
            is_unknown = self.is_silent[first] & ~(np.nan_to_num(self.expected[first]) > 0)
            self.expected[first] = np.where(is_unknown, usual, self.expected[first])

    def _name_causes(self) -> None:
        """Of shares of one whole, which must move together, find those that move by themselves.

        The one that strays farthest is the cause; the others are judged anew as shares of what is left without it.
        """
        mixes = np.flatnonzero(self.series.who["watch"].isin(_MIXES).to_numpy())
        for rows in _places(self.series.who.iloc[mixes], ["game_id", "watch"]):
            with np.errstate(invalid="ignore"):
                odd = np.flatnonzero((self.p[mixes[rows]] < _CAUSE_P).any(axis=0))
            for day in odd:
                self._name_causes_on(int(day), mixes[rows])

    def _name_causes_on(self, day: int, rows: Ints) -> None:
        days = slice(max(0, day - _BEFORE_DAYS), day + 1)
        part, whole = self.series.part[rows, days], self.series.whole[rows, days]
        left = list(range(len(rows)))
        while len(left) > 1:
            p, z = self.p[rows[left], day], self.z[rows[left], day]
            if not (np.nan_to_num(p, nan=1.0) < _CAUSE_P).any():
                return
            # of two that mirror each other the one that fell
            cause = left[int(np.lexsort((z, -np.round(np.nan_to_num(np.abs(z)), 6)))[0])]
            whole = whole - np.nan_to_num(part[cause])
            left.remove(cause)
            found = judge_shares(part[left], whole[left], days=int(self.window_days[rows[cause], day]))
            z = np.nan_to_num(found.z[:, -1])
            known = np.nan_to_num(found.known[:, -1], nan=np.inf, posinf=np.inf)
            self.z[rows[left], day] = z
            self.p[rows[left], day] = np.minimum(_LOOKS * two_sided(z, known), 1.0)


def _batches(rows: Ints) -> list[Ints]:
    """*rows* a few hundred at a time: memory does not grow with the portfolio."""
    return [rows[first : first + _AT_ONCE] for first in range(0, len(rows), _AT_ONCE)]


def _places(who: DataFrame, keys: list[str]) -> list[Ints]:
    """The places of the rows of *who* that agree in *keys*, for each group."""
    groups: Any = who.groupby(keys, observed=True, dropna=False, sort=False).indices.values()
    return [np.asarray(rows, dtype=np.int64) for rows in groups]


def _usual_before(values: Floats, is_quiet: Flags) -> Floats:
    """The mean of the last seven days that were not quiet, as long as they are not too long ago."""
    usual = np.zeros(len(values))
    for day in np.flatnonzero(is_quiet).tolist():
        before = [it for it in range(max(0, day - SILENT_DAYS), day) if not is_quiet[it] and np.isfinite(values[it])]
        usual[day] = float(np.mean(values[before[-7:]])) if before else 0.0
    return usual
