"""Every day of every series against its baseline, and what of it needs somebody: the board.

A day is judged by what came before it and nothing else, so a board says today what it will say tomorrow, unless the
service restates the day. What stands out must do so beyond chance on the whole board (false discoveries, q) and by a
tenth or more; a game that sends nothing is one finding and not one for each of its numbers; days that were restated
raise no alarm, and of those that may still move more is wanted.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.frames import RECEIPT, carry
from gamelens.analysis.health.baseline import BAND_Z, Judged, judge_counts, judge_money, judge_shares, recent
from gamelens.analysis.health.discoveries import false_discovery, two_sided
from gamelens.analysis.health.measuring import IDENTITY, Series2D, side_by_side
from gamelens.analysis.health.segments import level_moved
from gamelens.analysis.health.watching import WATCHED
from gamelens.analysis.health.wording import sentence_of

Severity = Literal["unknown", "ok", "info", "warning", "critical"]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SEVERITIES: Final = ("unknown", "ok", "info", "warning", "critical")
"""From least to most; unknown is what has not enough history to be judged."""
LEAST_CHANGE: Final = 0.10
MOST_Q: Final = 0.01
CRITICAL_FALL: Final = 0.50
CRITICAL_WEIGHT: Final = 0.10
SETTLE_DAYS: Final = 2
RESTATED: Final = 0.01
LEVEL_DAYS: Final = (7, 14)
SILENT_DAYS: Final = 14
_SILENT_LEAST: Final = 7.0  # chance makes nothing of seven expected once in a thousand days
_LIFE: Final = ("user_unique", "session_unique", "event_count")  # what a game that runs cannot be without
_CAUSE_P: Final = 1e-4
_AT_ONCE: Final = 2000  # series, whose days with all days before each take 100 MB
_DAY: Final = pd.Timedelta(days=1)


def judged(
    daily: DataFrame,
    *,
    least_change: float = LEAST_CHANGE,
    most_q: float = MOST_Q,
    restatements: DataFrame | None = None,
) -> DataFrame:
    """Every day of every series of `daily` against its baseline.

    A share is judged by its day, and by the seven and fourteen days up to it, whichever says most;
    *value*, *expected* and the rest are then those of that window. *restatements* is the frame of `Client.restatements`.

    Columns: those of `daily`, and expected, low, high (float64, the band of usual days), change (float64, -0.2 is 20 %
    below; NA where nothing was expected), z (float64, the stray in units of its noise), p, q (float64, the chance of
    such a stray, and the share of false discoveries on the day's board up to it), window_days (Int64, 1, 7 or 14),
    is_settled, is_restated (boolean), is_silent (boolean, the whole game sent nothing), severity (ordered category
    of `SEVERITIES`), is_flagged (boolean, warning or worse). NA while the history is short: two same weekdays and seven
    days to compare are needed, fourteen for shares.
    """
    if not len(daily):
        return _nothing(daily)
    series = side_by_side(daily)
    table = _Scores(series)
    table.fold_silent_games()
    table.name_causes()
    table.q = false_discovery(np.where(table.is_folded, np.nan, table.p))
    scores = series.rows(**table.numbers()).astype({"window_days": "Int64"})
    flags = {"is_silent": table.is_silent, "is_folded": table.is_folded}
    scores = scores.assign(**{name: flag.ravel() for name, flag in flags.items()}, weight=table.weight.ravel())
    scores["is_settled"] = _is_settled(scores["timestamp"], daily)
    scores["is_restated"] = _is_restated(scores, restatements)
    codes = _severity_codes(scores, least_change=least_change, most_q=most_q)
    scores["severity"] = pd.Categorical.from_codes(codes, categories=list(SEVERITIES), ordered=True)
    scores["is_flagged"] = Series(codes >= SEVERITIES.index("warning"), dtype="boolean")
    flagged_types = dict.fromkeys(("is_silent", "is_settled", "is_restated"), "boolean")
    return carry(scores.drop(columns=["is_folded", "weight"]).astype(flagged_types), daily)


def board(scores: DataFrame, *, days: int = 1) -> DataFrame:
    """The last *days* days of every series, the worst first, each explained in a sentence.

    Columns: those of `judged`, and since (datetime64[us, UTC], the first day of what is flagged; NA elsewhere) and
    sentence (str, plain text: escape it before it becomes HTML or Markdown). The ones to count on: game_id, game,
    metric, dimension, segment, timestamp, value, expected, low, high, change, z, p, q, severity, sentence.
    """
    receipt, scores = scores, scores.copy(deep=False)
    scores.attrs = {}  # pandas would copy them with every column that is read
    stamps = scores["timestamp"]
    last = scores[stamps > stamps.max() - days * _DAY] if len(scores) else scores
    size = last["z"].abs().fillna(-1.0)
    order = DataFrame({"severity": last["severity"].cat.codes, "size": size, "day": last["timestamp"]})
    order = order.sort_values(["severity", "day", "size"], ascending=False, kind="stable")
    made = last.loc[order.index].reset_index(drop=True)
    made["since"] = _since(made, scores)
    made["sentence"] = Series([sentence_of(row) for row in made.to_dict("records")], dtype="str")
    return carry(made, receipt)


def flagged(scores: DataFrame) -> DataFrame:
    """The flagged days of all time, newest first, each explained in a sentence. Columns: those of `board`."""
    if not len(scores):
        return board(scores)
    all_days = (scores["timestamp"].max() - scores["timestamp"].min()).days + 1
    found = board(scores[scores["is_flagged"] | (scores["timestamp"] == scores["timestamp"].max())], days=all_days)
    found = found[found["is_flagged"]]
    return found.sort_values("timestamp", ascending=False, kind="stable").reset_index(drop=True)


def silent_games(daily: DataFrame) -> DataFrame:
    """Games that sent something before and nothing on the last day, whatever the metric.

    Columns: game_id, game (category), last_day (datetime64[us, UTC], the last with a value), silent_days (Int64).
    """
    whole = daily[daily["dimension"].isna() & (daily["kind"] != "share")]
    active = whole[whole["value"] > 0].groupby(["game_id", "game"], observed=True)["timestamp"].max()
    silent = (daily["timestamp"].max() - active).dt.days.astype("Int64")
    made = DataFrame({"last_day": active, "silent_days": silent}).reset_index()
    return carry(made[made["silent_days"] > 0].reset_index(drop=True), daily)


class _Scores:
    """The verdict on each day of each series, as arrays of series by days."""

    def __init__(self, series: Series2D) -> None:
        self.series = series
        shape = series.value.shape
        self.value = series.value.copy()
        self.expected, self.low, self.high, self.z, self.p, self.q = (np.full(shape, np.nan) for _ in range(6))
        self.window_days = np.ones(shape)
        self.weight = np.ones(shape)
        self.is_silent, self.is_folded = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        kinds = series.who["kind"].astype("str").to_numpy()
        for kind, judge in (("count", judge_counts), ("money", judge_money), ("number", judge_money)):
            self._take(kinds == kind, judge(series.value[kinds == kind]))
        shares = np.flatnonzero(kinds == "share")
        for first in range(0, len(shares), _AT_ONCE):
            self._take_shares(shares[first : first + _AT_ONCE])

    def numbers(self) -> dict[str, Floats]:
        """The columns of numbers."""
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(self.expected > 0, (self.value - self.expected) / self.expected, np.nan)
        names = ("value", "expected", "low", "high", "z", "p", "q", "window_days")
        return {**{name: getattr(self, name) for name in names}, "change": change}

    def _take(self, rows: Flags | NDArray[np.int64], found: Judged) -> None:
        self.expected[rows], self.low[rows], self.high[rows], self.z[rows] = (
            found.expected,
            found.low,
            found.high,
            found.z,
        )
        self.p[rows] = two_sided(found.z, found.known)

    def _take_shares(self, rows: NDArray[np.int64]) -> None:
        """The day by itself, and the level of the last weeks: whichever says more."""
        part, whole = self.series.part[rows], self.series.whole[rows]
        self._take(rows, judge_shares(part, whole))
        with np.errstate(invalid="ignore"):
            is_odd = np.abs(self.z[rows]) > BAND_Z  # such a day speaks for itself, and for no level
        for days in LEVEL_DAYS:
            level = judge_shares(part, whole, days=days, without=is_odd)
            chance = two_sided(level.z, level.known)
            with np.errstate(invalid="ignore", divide="ignore"):
                says_more = np.isfinite(chance) & ~(chance >= self.p[rows])
                value = np.divide(*recent(part, whole, days=days, without=is_odd))
            found = {"value": value, "p": chance, "window_days": np.full_like(chance, days)}
            found |= {name: getattr(level, name) for name in ("expected", "low", "high", "z")}
            for name, own in found.items():
                getattr(self, name)[rows] = np.where(says_more, own, getattr(self, name)[rows])
        self.p[rows] = np.minimum((1 + len(LEVEL_DAYS)) * self.p[rows], 1.0)  # several looks at the same share
        self._weigh(rows)

    def _weigh(self, rows: NDArray[np.int64]) -> None:
        """How much of its game each share is about: a network by its ads, a country by those who installed there."""
        who, whole = self.series.who.iloc[rows], self.series.whole[rows]
        is_segment = who["dimension"].notna().to_numpy()
        is_mix = np.array([key == "network_share" for key in who["watch"]])
        groups = who.groupby(["game_id", "watch"], observed=True, dropna=False).ngroup().to_numpy()
        for group in np.unique(groups):
            inside = groups == group
            total = np.nansum(np.where(is_segment[inside, None], whole[inside], 0.0), axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(is_mix[inside, None], self.expected[rows[inside]], whole[inside] / total)
            self.weight[rows[inside]] = np.where(is_segment[inside, None], own, 1.0)

    def fold_silent_games(self) -> None:
        """A game that sends nothing at all is one finding: its first number is silent, the others follow from it."""
        who = self.series.who
        is_whole = (who["dimension"].isna() & who["watch"].isin(_LIFE)).to_numpy()
        for _, rows in who.groupby("game_id", observed=True, sort=False).indices.items():
            whole = rows[is_whole[rows]]
            if not len(whole):
                continue
            values = self.series.value[whole]
            is_quiet = (np.nan_to_num(values) == 0).all(axis=0) & np.isfinite(values).any(axis=0)
            first = whole[0]
            usual = _usual_before(self.series.value[first], is_quiet)
            is_silent = is_quiet & (usual >= _SILENT_LEAST)
            self.is_folded[np.ix_(rows, np.flatnonzero(is_quiet))] = True
            self.is_silent[first] = is_silent
            self.is_folded[first] = is_quiet & ~is_silent
            self.expected[first] = np.where(is_silent & ~(self.expected[first] > 0), usual, self.expected[first])

    def name_causes(self) -> None:
        """Of shares of one whole, which must move together, find those that move by themselves.

        The one that strays farthest is the cause; the others are judged anew as shares of what is left without it.
        """
        who = self.series.who
        is_mix = (who["watch"] == "network_share").to_numpy()
        for _, rows in who[is_mix].groupby("game_id", observed=True, sort=False).indices.items():
            places = np.flatnonzero(is_mix)[rows]
            with np.errstate(invalid="ignore"):
                odd = np.flatnonzero((self.p[places] < _CAUSE_P).any(axis=0))
            for day in odd:
                self._name_causes_of(places, int(day))

    def _name_causes_of(self, rows: NDArray[np.int64], day: int) -> None:
        first = max(0, day - 40)
        part, whole = self.series.part[rows, first : day + 1], self.series.whole[rows, first : day + 1]
        left = list(range(len(rows)))
        while len(left) > 1:
            p = self.p[rows[left], day]
            if not (np.nan_to_num(p, nan=1.0) < _CAUSE_P).any():
                return
            z = self.z[rows[left], day]
            # of two that mirror each other the one that fell
            cause = left[int(np.lexsort((z, -np.round(np.nan_to_num(np.abs(z)), 6)))[0])]
            whole = whole - np.nan_to_num(part[cause])
            left.remove(cause)
            window = int(self.window_days[rows[cause], day])
            found = judge_shares(part[left], whole[left], days=window)
            for place, z_left, known in zip(left, found.z[:, -1], found.known[:, -1], strict=True):
                row = rows[place]
                self.z[row, day] = z_left if np.isfinite(z_left) else 0.0
                alone = two_sided(np.array([self.z[row, day]]), np.array([known if known > 0 else np.inf]))
                self.p[row, day] = min((1 + len(LEVEL_DAYS)) * float(alone[0]), 1.0)


def _usual_before(values: Floats, is_quiet: Flags) -> Floats:
    """The mean of the last seven days that were not quiet, as long as they are not too long ago."""
    usual = np.zeros(len(values))
    for day in np.flatnonzero(is_quiet):
        before = [it for it in range(max(0, day - SILENT_DAYS), day) if not is_quiet[it] and np.isfinite(values[it])]
        usual[day] = float(np.mean(values[before[-7:]])) if before else 0.0
    return usual


def _severity_codes(scores: DataFrame, *, least_change: float, most_q: float) -> NDArray[np.int8]:
    """Places in `SEVERITIES`."""
    change, q = scores["change"].to_numpy(), scores["q"].to_numpy()
    value, expected = scores["value"].to_numpy(), scores["expected"].to_numpy()
    settled, restated = scores["is_settled"].to_numpy(dtype=bool), scores["is_restated"].to_numpy(dtype=bool)
    is_silent, is_folded = scores["is_silent"].to_numpy(dtype=bool), scores["is_folded"].to_numpy(dtype=bool)
    with np.errstate(invalid="ignore"):
        appeared = (expected == 0) & (value > 0)
        # what is still to come can only fill up a fall
        wanted = np.where(~settled & (change < 0), 2 * least_change, least_change)
        is_odd = q <= most_q
        is_alarm = is_odd & ((np.abs(change) >= wanted) | appeared)
        is_grave = is_alarm & (change <= -CRITICAL_FALL) & (scores["weight"].to_numpy() >= CRITICAL_WEIGHT)
        codes = np.where(np.isfinite(scores["p"].to_numpy()), 1, 0)
        codes = np.where(is_odd, 2, codes)
        codes = np.where(is_alarm, 3, codes)
        codes = np.where(is_grave | is_silent, 4, codes)
        codes = np.where(is_folded & (codes > 0), 2, codes)
    return np.where(restated, np.minimum(codes, 2), codes).astype(np.int8)


def _is_settled(stamps: Series[Any], daily: DataFrame) -> Series[Any]:
    """Whether nothing is expected to come late for a day any more; without a receipt nobody knows, and all is settled."""
    as_of = (daily.attrs.get(RECEIPT) or {}).get("as_of")
    if as_of is None:
        return Series(True, index=stamps.index)
    return stamps + _DAY * (1 + SETTLE_DAYS) <= pd.Timestamp(as_of)


def _is_restated(scores: DataFrame, restatements: DataFrame | None) -> Series[Any]:
    """Whether the service said otherwise of a day before: by a hundredth or more, or by nobody knows how much."""
    if restatements is None or not len(restatements):
        return Series(False, index=scores.index)
    before, after = restatements["before"].astype("float64"), restatements["after"].astype("float64")
    told = restatements[before.isna() | after.isna() | ((after - before).abs() > RESTATED * before.abs())]
    days = {(str(row["metric"]), pd.Timestamp(row["timestamp"])) for row in told[["metric", "timestamp"]].to_dict("records")}
    asks = {key: watch.asks for key, watch in WATCHED.items()}
    keys = {key: asks.get(str(key), (str(key),)) for key in scores["watch"].unique()}
    flags = np.zeros(len(scores), dtype=bool)
    for key, metrics in keys.items():
        stamps = [stamp for metric, stamp in days if metric in metrics]
        flags |= ((scores["watch"] == key) & scores["timestamp"].isin(stamps)).to_numpy()
    return Series(flags, index=scores.index)


def _since(rows: DataFrame, scores: DataFrame) -> Series[Any]:
    """The first day of what is flagged: of a run of flagged days, or where the level of a share moved."""
    keys = [name for name in IDENTITY if name in rows]
    since = []
    for row in rows.to_dict("records"):
        if not row["is_flagged"]:
            since.append(pd.NaT)
            continue
        own = scores
        for key in keys:
            same = own[key].isna() if pd.isna(row[key]) else own[key] == row[key]
            own = own[same]
        own = own[own["timestamp"] <= row["timestamp"]].sort_values("timestamp")
        if row["window_days"] > 1:
            since.append(level_moved(own))
            continue
        run = own["is_flagged"].to_numpy(dtype=bool)[::-1]
        length = int(np.argmin(run)) if not run.all() else len(run)
        since.append(own["timestamp"].iloc[-max(length, 1)])
    return Series(since, index=rows.index, dtype="datetime64[us, UTC]")


def _nothing(daily: DataFrame) -> DataFrame:
    numbers = ("expected", "low", "high", "change", "z", "p", "q")
    flags = ("is_silent", "is_settled", "is_restated", "is_flagged")
    empty: dict[str, Any] = {name: Series(dtype="float64") for name in numbers}
    empty |= {name: Series(dtype="boolean") for name in flags} | {"window_days": Series(dtype="Int64")}
    made = daily.assign(**empty)
    made["severity"] = pd.Categorical([], categories=list(SEVERITIES), ordered=True)
    return carry(made, daily)
