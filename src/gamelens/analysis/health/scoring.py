"""Scores of all days (`score_days`), one after the other: tests, causes and open incidents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens._scales import RARE
from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.health.baseline import Baseline, Levels, judge_shares
from gamelens.analysis.health.board_notes import BoardNotes, accepted_starts, exempt_days, note_texts
from gamelens.analysis.health.constants import (
    BAND_Z,
    LEAST_CHANGE,
    LEVEL_DAYS,
    LEVEL_P,
    LEVEL_Z,
    MOST_OF_NONE,
    MOST_Q,
    SILENT_DAYS,
    SILENT_LEAST,
)
from gamelens.analysis.health.daily_series import IDENTITY, SERIES, SeriesGrid, series_grid
from gamelens.analysis.health.incidents import Incidents
from gamelens.analysis.health.severity import (
    SEVERITIES,
    DayFindings,
    Limits,
    is_settled,
    restated_days,
    severity_codes,
)
from gamelens.analysis.health.watched_metrics import WATCHED
from gamelens.analysis.significance import false_discovery, two_sided
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import between, named, returns

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


DAILY: Final = result_of("health.daily(answers)", "timestamp", *IDENTITY, "value", "part", "whole")
"""The frame that is scored."""
SHORT: Final = "while the history is short"
SCORE_COLUMNS: Final = (
    *SERIES,
    between(named("expected", scale="values", na=SHORT), "the band of usual days", low="low", high="high"),
    between(
        named("change", about="-0.2 is 20% below", na=f"{SHORT}, and if fewer than ten events were expected"),
        "95%, by the noise of the day and of what was expected, never below -1",
    ),
    Column("z", "number", about="the deviation in units of noise", na=SHORT),
    named("p", about="the probability of such a deviation", na=SHORT),
    named("q", about="the share of false discoveries on the day's board up to it", na=SHORT),
    Column("window_days", "count", about="1, 7, 14, 21 or 28"),
    *(Column(name, "flag", na=SHORT) for name in ("is_settled", "is_restated")),
    Column("is_silent", "flag", about="the whole game sent nothing", na=SHORT),
    Column("severity", "category", about="while an incident is open, the worst that it had", values=SEVERITIES),
    Column("is_flagged", "flag", about="warning or worse", na=SHORT),
    Column("since", "day", about="the first day of the open incident", na="without one"),
    Column("open_days", "count", about="days since then, both counted", na="without one"),
    Column("note", "text", about="what an annotation or a person says of the day, empty without one"),
)

_OF_BASELINE: Final = ("expected", "low", "high", "z", "own_low", "own_high")
_TESTS_PER_SHARE: Final = 1 + len(LEVEL_DAYS)
_ACTIVITY: Final = ("user_unique", "session_unique", "event_count")  # every running game has them
_MIXES: Final = [key for key, watch in WATCHED.items() if watch.is_mix]
_WORSE_HIGHER: Final = [key for key, watch in WATCHED.items() if watch.is_worse_higher]


@requires(daily=DAILY)
@returns(*SCORE_COLUMNS)
def score_days(
    daily: DataFrame,
    *,
    least_change: float = LEAST_CHANGE,
    most_q: float = MOST_Q,
    restatements: DataFrame | None = None,
    notes: BoardNotes | None = None,
) -> DataFrame:
    """Return every day of every series of `daily` with its baseline and severity.

        installs = lens.query("new_users", by="game", over="last 28 complete days")
        health.score_days(health.daily([installs]), least_change=0.2)

    A share is judged by its day, or by the one to four weeks up to it if they show more. *value*, *expected* and
    the other numbers then cover that window. *restatements* is the frame of `Client.restatements`, *notes* are accepted
    levels and annotations.

    NA while the history is short: two same weekdays and seven days to compare are needed, fourteen days for shares.
    Claims: "health coverage", of all rows.
    """
    series, notes = series_grid(daily), notes if notes and len(daily) else BoardNotes()
    settled, (up, down) = is_settled(series.days, daily), restated_days(series, restatements)
    evidence = DayEvidence(settled, up, down, exempt_days(series, notes), accepted_starts(series, notes))
    judged = Scores(series, evidence, Limits(least_change, most_q))
    columns = judged.columns()
    codes, since = columns.pop("severity"), columns.pop("since")
    scores = series.rows(**columns)
    scores["is_settled"] = np.tile(settled, len(series.identity))
    scores["severity"] = pd.Categorical.from_codes(codes.ravel().tolist(), pd.Index(SEVERITIES), ordered=True)
    scores["is_flagged"] = codes.ravel() >= SEVERITIES.index("warning")
    scores["since"] = Series(series.days.take(since.ravel()), index=scores.index).where(since.ravel() >= 0)
    scores["open_days"] = (scores["timestamp"] - scores["since"]).dt.days + 1
    scores["note"] = note_texts(series, notes, since, judged.is_new_level)
    return scores.astype({"since": "datetime64[us, UTC]"})


@reads("health.score_days")
def _read_coverage(scores: DataFrame) -> Iterator[Finding]:
    """Count the games, series and days that are watched."""
    if not len(scores):
        yield Finding(kind="health coverage", case="nothing", unit="series")
        return
    counts = {name: scores[column].nunique() for name, column in (("games", "game_id"), ("days", "timestamp"))}
    series = len(scores[IDENTITY].drop_duplicates())
    numbers = {**counts, "last_day": scores["timestamp"].max()}
    yield Finding(
        kind="health coverage", case="counted", size=float(series), unit="series", judged="counted", numbers=numbers
    )


class DayEvidence(msgspec.Struct, frozen=True):
    """Knowledge of the days besides their numbers, arrays of series by days.

    Attributes:
        is_settled: no more late rows are expected, by day.
        restated_up: the service has changed the day, to a higher or an unknown number.
        restated_down: the same to a lower or an unknown number.
        is_exempt: an annotation explains whatever the day shows.
        starts: first day of the level that a person has accepted, 0 without one, by series.
    """

    is_settled: Flags
    restated_up: Flags
    restated_down: Flags
    is_exempt: Flags
    starts: Ints


class Scores:
    """The scores of a grid, as arrays of series by days.

    Attributes:
        series: the grid.
        value, expected, low, high, z, p, q: of the day, or of the window that shows more.
        own_low, own_high: the bounds of the value, as in `Baseline`.
        window_days: 1, or the days of that window.
        weight: share of its game that a series covers.
        is_silent: the whole game sent nothing.
        is_folded: the finding follows from a silent game.
        is_restated: a restatement made the day stand out.
        is_new_level: the open incident becomes the new level at the end of the day.
        severity: the code of the day's severity, of the open incident if that is worse.
        since: number of the first day of the open incident, -1 without one.
    """

    def __init__(self, series: SeriesGrid, evidence: DayEvidence, limits: Limits) -> None:
        self.series, self._evidence, self._limits = series, evidence, limits
        shape = series.value.shape
        self.value = series.value.copy()
        self.expected, self.low, self.high, self.z, self.p, self.q = (np.full(shape, np.nan) for _ in range(6))
        self.own_low, self.own_high = np.full(shape, np.nan), np.full(shape, np.nan)
        self._day_z, self._is_odd = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
        self.window_days, self.weight = np.ones(shape), np.ones(shape)
        self.is_silent, self.is_folded, self.is_restated = (np.zeros(shape, dtype=np.bool_) for _ in range(3))
        self.is_new_level = np.zeros(shape, dtype=np.bool_)
        self.severity, self.since = np.zeros(shape, dtype=np.int64), np.full(shape, -1)
        self._incidents = Incidents(*shape)
        self._incidents.is_usual &= ~evidence.is_exempt
        self._incidents.is_usual &= np.arange(shape[1]) >= evidence.starts[:, None]
        identity = series.identity
        kinds = identity["kind"].astype("str").to_numpy()
        self._levels = [
            (rows, Levels(series.value[rows], is_count=is_count))
            for is_count in (True, False)
            if len(rows := np.flatnonzero(kinds == "count" if is_count else np.isin(kinds, ["money", "number"])))
        ]
        self._shares = [(np.flatnonzero(kinds == kind), kind == "rate") for kind in ("share", "rate")]
        is_split = identity["dimension"].notna().to_numpy()
        is_mix = identity["watch"].isin(_MIXES).to_numpy()
        splits = _row_groups(identity, ["game_id", "watch"], is_split & np.isin(kinds, ["share", "rate"]))
        for rows in splits:  # a country by its installs; a share of a mix gets its weight each day
            whole = np.nan_to_num(series.whole[rows])
            with np.errstate(divide="ignore", invalid="ignore"):
                self.weight[rows] = np.nan_to_num(whole / whole.sum(axis=0), nan=1.0)
        self._mixes = _row_groups(identity, ["game_id", "watch"], is_mix)
        self._games = _row_groups(identity, ["game_id"])
        self._is_activity = ~is_split & identity["watch"].isin(_ACTIVITY).to_numpy()
        self._is_worse_higher = identity["watch"].isin(_WORSE_HIGHER).to_numpy()
        # A share of a whole changes with the others, and a segment with its game: only whole games get used to a level.
        may_last = ~is_split & ~is_mix
        self._may_last = np.stack([may_last & self._is_worse_higher, may_last & ~self._is_worse_higher], axis=1)
        for day in range(shape[1]):
            self._score_day(day)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the scores by column name. Flags are 0 and 1."""
        shown = ("value", *_OF_BASELINE[:4], "p", "q", "window_days", "is_silent", "is_restated", "severity", "since")
        columns = {name: getattr(self, name) for name in shown}
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, value in (("", self.value), ("_low", self.own_low), ("_high", self.own_high)):
                columns[f"change{name}"] = np.where(self.expected > 0, value / self.expected - 1, np.nan)
        columns["change"] = np.where(self._expected_events() < RARE, np.nan, columns["change"])
        return columns

    def _expected_events(self) -> Floats:
        """Return how many events were expected, infinite for money and means, whose parts are not events."""
        kinds = self.series.identity["kind"].astype("str").to_numpy()[:, None]
        parts = self.expected * self.series.whole * self.window_days
        return np.where(kinds == "count", self.expected, np.where(np.isin(kinds, ["share", "rate"]), parts, np.inf))

    def _score_day(self, day: int) -> None:
        """Score a day by the usual days before it, then open and close incidents."""
        for rows, levels in self._levels:
            self._store(rows, day, levels.judge(day, self._incidents.is_usual[rows]))
        for rows, is_rate in self._shares:
            if len(rows):
                self._score_shares(day, rows, is_rate)
                self._score_levels(day, rows, is_rate)
        is_unjudged = ~np.isfinite(self.series.value[:, day])
        for name in (*_OF_BASELINE, "p"):
            getattr(self, name)[is_unjudged, day] = np.nan
        self._day_z[is_unjudged, day] = np.nan
        self._set_share_weights(day)
        self._fold_silent_games(day)
        for rows in self._mixes:
            self._isolate_causes(day, rows)
        tested = np.where(self.is_folded[:, day], np.nan, self.p[:, day])
        self.q[:, day] = false_discovery(tested[:, None])[:, 0]
        self._update_incidents(day)

    def _update_incidents(self, day: int) -> None:
        with np.errstate(invalid="ignore"):
            is_up, is_down = self.value[:, day] > self.expected[:, day], self.value[:, day] < self.expected[:, day]
        evidence = self._evidence
        restated = (evidence.restated_up[:, day] & is_up) | (evidence.restated_down[:, day] & is_down)
        self.is_restated[:, day] = restated & (self.window_days[:, day] == 1)
        found = DayFindings(
            value=self.value[:, day],
            expected=self.expected[:, day],
            p=self.p[:, day],
            q=self.q[:, day],
            weight=self.weight[:, day],
            is_worse_higher=self._is_worse_higher,
            is_settled=bool(evidence.is_settled[day]),
            is_silent=self.is_silent[:, day],
            is_harmless=self.is_folded[:, day] | self.is_restated[:, day] | evidence.is_exempt[:, day],
        )
        codes, is_flagged = severity_codes(found, self._limits)
        day_z = np.where(evidence.is_exempt[:, day] | self.is_folded[:, day], np.nan, self._day_z[:, day])
        incidents = self._incidents
        incidents.update(
            day,
            day_z,
            side=np.nan_to_num(np.sign(self.z[:, day]), nan=-1.0),
            codes=codes,
            is_flagged=is_flagged,
            is_silent=self.is_silent[:, day],
        )
        worst = np.maximum(codes, incidents.severity)
        since = incidents.since.copy()
        incidents.adopt_levels(day, self._may_last)
        self.is_new_level[incidents.new_level, day] = True
        for rows, levels in self._levels:
            if len(places := np.flatnonzero(np.isin(rows, incidents.new_level))):
                levels.adopt(places, day)
        incidents.is_usual[:, day] &= ~self.is_folded[:, day]
        for rows in self._mixes:  # shares of one whole change together, so they keep their baselines together
            incidents.is_usual[rows] = incidents.is_usual[rows].all(axis=0)
        self.severity[:, day] = worst
        self.since[:, day] = since

    def _store(self, rows: Ints, day: int, baseline: Baseline) -> None:
        for name in _OF_BASELINE:
            getattr(self, name)[rows, day] = getattr(baseline, name)
        self._day_z[rows, day] = baseline.z
        self.p[rows, day] = two_sided(baseline.z, baseline.noise_days)

    def _score_shares(self, day: int, rows: Ints, is_rate: bool) -> None:
        """Score shares by their day alone."""
        part, whole = (array[rows, : day + 1] for array in (self.series.part, self.series.whole))
        is_usual = self._incidents.is_usual[rows, : day + 1]
        self._store(rows, day, judge_shares(part, whole, is_usual, is_rate=is_rate))
        with np.errstate(invalid="ignore"):
            self._is_odd[rows, day] = np.abs(self._day_z[rows, day]) > BAND_Z
        for group in self._mixes:
            self._is_odd[group, day] = self._is_odd[group, day].any()

    def _score_levels(self, day: int, rows: Ints, is_rate: bool) -> None:
        """Replace the score of the day where the last weeks show a clearer deviation."""
        is_usual = self._incidents.is_usual[rows, : day + 1]
        level_part, level_whole = self._level_numbers(rows, day)
        # the history that a new segment has from its game is not part of its own level
        is_earlier = np.isnan(self.series.value[rows, : day + 1]) & np.isfinite(level_part)
        for days in LEVEL_DAYS:
            part = np.where(is_earlier & (np.arange(day + 1) > day - days), np.nan, level_part)
            level = judge_shares(part, level_whole, is_usual, days=days, is_rate=is_rate, least_z=LEVEL_Z)
            if not np.isfinite(level.z).any():
                continue
            chance = two_sided(level.z, level.noise_days)
            with np.errstate(invalid="ignore", divide="ignore"):
                is_clearer = (chance < LEVEL_P) & ~(chance >= self.p[rows, day])
                if not is_clearer.any():
                    continue
                wholes = np.where(np.isfinite(part), level_whole, 0.0)
                value = np.nansum(part[:, -days:], axis=1) / np.nansum(wholes[:, -days:], axis=1)
            columns = {"value": value, "p": chance, "window_days": np.full_like(chance, days)}
            columns |= {name: getattr(level, name) for name in _OF_BASELINE}
            for name, values in columns.items():
                getattr(self, name)[rows, day] = np.where(is_clearer, values, getattr(self, name)[rows, day])
        self.p[rows, day] = np.minimum(_TESTS_PER_SHARE * self.p[rows, day], 1.0)

    def _level_numbers(self, rows: Ints, day: int) -> tuple[Floats, Floats]:
        """Return numerators and denominators up to *day*, without odd days.

        An odd day is a finding by itself, not part of a level, and one for all shares of a whole.
        """
        is_odd = self._is_odd[rows, : day + 1]
        part, whole = (
            np.where(is_odd, np.nan, array[rows, : day + 1]) for array in (self.series.part, self.series.whole)
        )
        return part, whole

    def _set_share_weights(self, day: int) -> None:
        """Set the weight of each share of a mix, such as a network by its ads."""
        for segments in self._mixes:
            self.weight[segments, day] = np.nan_to_num(self.expected[segments, day], nan=1.0)

    def _fold_silent_games(self, day: int) -> None:
        """Fold the findings of a game that sends nothing into one.

        Its first activity metric is silent, the other findings follow from it.
        """
        for rows in self._games:
            activity = rows[self._is_activity[rows]]
            if not len(activity) or not (self.series.value[activity, day] == 0).all():
                continue
            first, usual = activity[0], self._usual_before(day, activity)
            self.is_silent[first, day] = usual >= SILENT_LEAST
            self.is_folded[rows, day] = True
            self.is_folded[first, day] = not self.is_silent[first, day]
            if self.is_silent[first, day] and not np.nan_to_num(self.expected[first, day]) > 0:
                self.expected[first, day] = usual
                self.own_low[first, day], self.own_high[first, day] = 0.0, MOST_OF_NONE

    def _usual_before(self, day: int, activity: Ints) -> float:
        """Return the mean of the last seven days with data, of those not older than `SILENT_DAYS`."""
        before = self.series.value[activity, max(0, day - SILENT_DAYS) : day]
        values = before[0][(before != 0).any(axis=0) & np.isfinite(before[0])]
        return float(np.mean(values[-7:])) if len(values) else 0.0

    def _isolate_causes(self, day: int, rows: Ints) -> None:
        """Find the shares of a whole that changed by themselves.

        Shares of one whole must change together. The one that changed most is the cause; the others are judged again as
        shares of the rest. A share is odd if it would stand out as the only one on the whole board.
        """
        most_p = self._limits.most_q / max(1, int(np.isfinite(self.p[:, day]).sum()))
        is_usual = self._incidents.is_usual[rows, : day + 1]
        numbers = {1: (self.series.part[rows, : day + 1], self.series.whole[rows, : day + 1])}
        numbers |= dict.fromkeys(LEVEL_DAYS, self._level_numbers(rows, day))
        others = np.zeros(day + 1)
        left = list(range(len(rows)))
        while len(left) > 1:
            odd = [place for place in left if self.p[rows[place], day] < most_p]
            if not odd:
                return
            change = self.value[rows[odd], day] - self.expected[rows[odd], day]
            # of two equal and opposite changes the one that fell
            cause = odd[int(np.lexsort((change, -np.round(np.abs(change), 6)))[0])]
            others = others + np.nan_to_num(numbers[1][0][cause])
            left.remove(cause)
            days = int(self.window_days[rows[cause], day])
            part, whole = numbers[days]
            rest = judge_shares(part[left], whole[left] - others, is_usual[left], days=days)
            z = np.nan_to_num(rest.z)
            noise_days = np.nan_to_num(rest.noise_days, nan=np.inf, posinf=np.inf)
            self.z[rows[left], day] = self._day_z[rows[left], day] = z
            self.p[rows[left], day] = np.minimum(_TESTS_PER_SHARE * two_sided(z, noise_days), 1.0)


def _row_groups(identity: DataFrame, keys: list[str], is_member: Flags | None = None) -> list[Ints]:
    """Return the positions of the rows of *identity* for each group of *keys*.

    With *is_member* only the rows that it flags belong to groups.
    """
    rows = np.arange(len(identity)) if is_member is None else np.flatnonzero(is_member)
    groups: Any = identity.iloc[rows].groupby(keys, observed=True, dropna=False, sort=False).indices.values()
    return [rows[np.asarray(group, dtype=np.int64)] for group in groups]
