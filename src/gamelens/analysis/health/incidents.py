"""Incidents: changes that stay open until the series returns, for all series at once.

An incident opens with a flagged day. It began where the days up to it are best explained by one change (the change-
point of a CUSUM), and its days are no longer usual ones, so the baseline stays what it was before. It closes once the
days speak for the baseline and against the level of the incident (Page's test on the likelihood ratio), or if nothing
is left of the deviation. A rise that lasts, of numbers that are no worse when higher, becomes the new level after two
weeks. A fall stays open: a fault that lasts is not a level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.health.constants import GONE, LASTING_DAYS, LEVEL_DAYS, RETURN_EVIDENCE

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Incidents:
    """The incidents of all series, updated day by day.

    Attributes:
        is_usual: days that belong to the baseline, flags of series by days.
        since: first day of the open incident by series, -1 without one.
        severity: the worst severity code of the open incident so far.
        new_level: rows whose incident became the new level on the last day that was given.
    """

    def __init__(self, series: int, days: int) -> None:
        self.is_usual = np.ones((series, days), dtype=np.bool_)
        self.since = np.full(series, -1)
        self.severity = np.zeros(series, dtype=np.int64)
        self.new_level = np.zeros(0, dtype=np.int64)
        self._z = np.full((series, days), np.nan)
        self._evidence = np.zeros(series)
        self._returned = np.full(series, -1)

    def update(self, day: int, z: Floats, *, side: Floats, codes: Ints, is_flagged: Flags, is_silent: Flags) -> None:
        """Close the incidents that are over on *day*, and open those in *is_flagged*.

        Args:
            day: the number of the day.
            z: the deviation of the day alone from its baseline.
            side: the sign of the finding, which may be about several days.
            codes: the severity of the finding.
            is_flagged: whether it is one that opens an incident.
            is_silent: whether the game sends nothing, which is not a return, whatever the deviation.
        """
        self._z[:, day] = z
        self._close(day, ~is_silent)
        opens = np.flatnonzero(is_flagged & (self.since < 0))
        if len(opens):
            self.since[opens] = np.where(is_silent[opens], day, self._change_points(day, opens, side[opens]))
            self._evidence[opens], self._returned[opens], self.severity[opens] = 0.0, -1, 0
        is_under_way = self.since >= 0
        self.severity = np.where(is_under_way, np.maximum(self.severity, codes * is_flagged), 0)
        for row in np.flatnonzero(is_under_way).tolist():
            self.is_usual[row, self.since[row] : day + 1] = False

    def adopt_levels(self, day: int, may_last: Flags) -> None:
        """End the incidents that have lasted for `LASTING_DAYS` and deviate as *may_last* (series by two sides) allows.

        The days of the incident become the usual ones, and those before it are no longer. An incident whose days have
        begun to return waits.
        """
        is_old = (self.since >= 0) & (day - self.since + 1 >= LASTING_DAYS) & (self._returned < 0)
        adopted = []
        for row in np.flatnonzero(is_old & may_last.any(axis=1)).tolist():
            during = self._z[row, self.since[row] : day + 1]
            is_known = np.isfinite(during)
            is_higher = bool(during[is_known].sum() > 0)
            is_alike = is_known.sum() >= LASTING_DAYS and (during[is_known] > 0).all() == is_higher
            if may_last[row, int(is_higher)] and is_alike:
                self.is_usual[row, : self.since[row]] = False
                self.is_usual[row, self.since[row] : day + 1] = is_known
                adopted.append(row)
        self.new_level = np.array(adopted, dtype=np.int64)
        self.since[self.new_level], self._evidence[self.new_level] = -1, 0.0

    def _close(self, day: int, may_close: Flags) -> None:
        """Close the incidents whose series has returned by *day*: (14) of the page "Health"."""
        z = self._z[:, day]
        for row in np.flatnonzero((self.since >= 0) & may_close & np.isfinite(z)).tolist():
            until = self._returned[row] if self._returned[row] >= 0 else day
            during = self._z[row, self.since[row] : max(until, self.since[row] + 1)]
            during = during[np.isfinite(during)]
            level = float(during.mean()) if len(during) else 0.0
            gain = level * (level / 2 - float(z[row]))
            if self._evidence[row] + gain <= 0:
                self._evidence[row], self._returned[row] = 0.0, -1
                together = np.append(during, z[row])
                is_over = abs(together.sum()) < GONE * np.sqrt(len(together))
            else:
                self._evidence[row] += gain
                self._returned[row] = until
                is_over = self._evidence[row] >= RETURN_EVIDENCE
            if is_over:
                self.is_usual[row, max(self._returned[row], self.since[row] + 1) : day + 1] = True
                self.since[row], self._evidence[row], self._returned[row] = -1, 0.0, -1

    def _change_points(self, day: int, rows: Ints, side: Floats) -> Ints:
        """Return the first day of the level that each of *rows* has on *day*: (13) of the page "Health"."""
        first = max(0, day - LEVEL_DAYS[-1])  # the longest window that may have flagged it
        z = np.where(self.is_usual[rows, first : day + 1], self._z[rows, first : day + 1], np.nan)
        sums = np.cumsum(np.nan_to_num(z)[:, ::-1], axis=1)[:, ::-1]
        days = np.cumsum(np.isfinite(z)[:, ::-1], axis=1)[:, ::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            is_beyond = (z * side[:, None] > 0) & (sums * side[:, None] > 0)
            gain = np.where(is_beyond, sums**2 / days, -1.0)
        return np.asarray(np.where((gain > 0).any(axis=1), first + np.argmax(gain, axis=1), day))
