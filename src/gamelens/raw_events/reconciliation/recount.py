"""A count of events under any rules, and the rules by which another answer may have counted them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal
from zoneinfo import ZoneInfoNotFoundError

import msgspec
import numpy as np
import pandas as pd

from gamelens.raw_events.reconciliation.event_rows import MARGIN, NO_TIME, QUARTER_S, EventRows, Flags, Floats, Ints
from gamelens.wire.intervals import Granularity, Interval

LATE: Final = "late arrivals"
ARRIVAL_DAY: Final = "client time against arrival day"
DUPLICATES: Final = "duplicates without event_uuid"
SKEW: Final = "clock skew"
ZONE: Final = "time zone"
NETWORKS: Final = "undisclosed networks"
BOTS: Final = "bots"
APPROXIMATE: Final = "approximate unique counts"
DIMENSION: Final = "dimension of the first or last event"

CAUSES: Final = (LATE, ARRIVAL_DAY, DUPLICATES, SKEW, ZONE, NETWORKS, BOTS, APPROXIMATE, DIMENSION)
"""The causes that are judged, by name."""
OF_ARRIVALS: Final = (LATE, ARRIVAL_DAY, SKEW)
"""Causes that a lake cannot show whose events have no time of arrival."""
OUTSIDE: Final = -1
"""The bucket of an event that counts in none."""

_CLOSED_AFTER_H: Final = (0, 1, 3, 6, 12, 24, 48, 72)
_ZONE_MINUTES: Final = (*(60 * hours for hours in range(-12, 15) if hours), -210, 210, 270, 330, 345, 390, 570, 630)
_ZONES_WITH_SUMMER_TIME: Final = (
    *("America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York", "America/Halifax"),
    *("America/St_Johns", "America/Santiago", "Europe/London", "Europe/Berlin", "Europe/Athens", "Africa/Cairo"),
    *("Asia/Beirut", "Asia/Jerusalem", "Australia/Adelaide", "Australia/Sydney", "Pacific/Auckland"),
)
"""One of each group of zones that change their clocks alike."""

Zone = tuple[tuple[int, int], ...]
"""How far the days of a zone are ahead of UTC: pairs of an epoch second, from 0, and the seconds ahead since then."""


class CountingRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one count. By default the lake's."""

    cut: int = 0  # number of the moment after which an event may not arrive, from 1; 0 takes every event
    # seconds after the end of a bucket from which its events are not taken; None takes every event
    closed_after_s: int | None = None
    # the time that gives an event its bucket: the client's, the client's without the error of its clock, or arrival
    clock: Literal["client", "corrected", "arrival"] = "client"
    zone: Zone = ((0, 0),)  # how far its days are ahead of UTC
    is_deduplicated: bool = False  # whether events without `event_uuid` count once if they are alike
    is_without_bots: bool = False  # whether players with implausible activity are left out
    # the event that gives a player's events of a bucket their dimension: each its own, the first, the last
    split_by: Literal["own", "first", "last"] = "own"


class RuleChange(msgspec.Struct, frozen=True):
    """One rule that the other answer may have."""

    cause: str  # name of the cause, one of `CAUSES`
    text: str  # the rule as half a sentence
    field: str  # the field of `CountingRules` that it changes
    value: int | bool | str | Zone  # the value that the field gets


Changes = tuple[RuleChange, ...]


def possible_changes(cuts: Sequence[datetime], interval: Interval) -> list[RuleChange]:
    """Return the rules that another answer may have.

    It may have been made at one of *cuts*. Zones that change their clocks in *interval* are tried with that change.
    """
    late = [
        RuleChange(LATE, f"without arrivals after {moment:%Y-%m-%d %H:%M} UTC", "cut", number)
        for number, moment in enumerate(cuts, start=1)
    ]
    for hours in _CLOSED_AFTER_H:
        after = f"{hours} h or more after" if hours else "after"
        late.append(RuleChange(LATE, f"without arrivals {after} its period ended", "closed_after_s", hours * 3600))
    zones = []
    for minutes in sorted(_ZONE_MINUTES, key=abs):
        hours, rest = divmod(abs(minutes), 60)
        name = f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02d}" if rest else "")
        zones.append(RuleChange(ZONE, f"days of {name}", "zone", ((0, minutes * 60),)))
    for name in _ZONES_WITH_SUMMER_TIME:
        zone = _clocks_of(name, interval)
        if len(zone) > 1:
            zones.append(RuleChange(ZONE, f"days of {name}", "zone", zone))
    return [
        *late,
        RuleChange(ARRIVAL_DAY, "by the time of arrival", "clock", "arrival"),
        RuleChange(DUPLICATES, "identical events counted once", "is_deduplicated", True),
        RuleChange(SKEW, "wrong clocks corrected", "clock", "corrected"),
        RuleChange(BOTS, "without players whose activity is implausible", "is_without_bots", True),
        RuleChange(DIMENSION, "of a player's first event in the period", "split_by", "first"),
        RuleChange(DIMENSION, "of a player's last event in the period", "split_by", "last"),
        *zones,
    ]


def _clocks_of(name: str, interval: Interval) -> Zone:
    """Return how far the days of a zone are ahead of UTC around *interval*, with changes of its clocks to the hour."""
    hours = pd.date_range(interval.start - MARGIN, interval.end + MARGIN, freq="h").floor("h")
    try:
        there = hours.tz_convert(name)
    except ZoneInfoNotFoundError:  # this machine does not know when it changes its clocks
        return ()
    ahead_s = (there.tz_localize(None) - hours.tz_localize(None)).total_seconds().to_numpy(dtype=np.int64)
    changes = np.flatnonzero(np.diff(ahead_s)) + 1
    since_s = hours.as_unit("s").astype("int64").to_numpy()
    return ((0, int(ahead_s[0])), *((int(since_s[place]), int(ahead_s[place])) for place in changes))


class Recount:
    """The counts of *rows* in each bucket of *interval*, for each of *splits*.

    *kind* is the kind of a `CountedMetric`. The columns are in the order of *splits*, which hold all values of the
    rows.
    """

    def __init__(
        self, rows: EventRows, kind: str, interval: Interval, every: Granularity, splits: Sequence[str | None]
    ) -> None:
        self._rows, self._kind = rows, kind
        self.starts = [bucket.start for bucket in interval.buckets(every)]
        edges = [*(max(start, interval.start) for start in self.starts), interval.end]
        self._edges = np.array([int(edge.timestamp()) // QUARTER_S for edge in edges])
        self.shape = (len(self.starts), len(splits))
        places = {value: place for place, value in enumerate(splits)}
        self._split = np.array([places[value] for value in rows.splits], dtype=np.int64)[rows.split]
        self._counted: dict[CountingRules, Floats] = {}

    def cells(self, changes: Iterable[RuleChange] = ()) -> Floats:
        """Return the counts by bucket and split under the rules of the lake with *changes*."""
        rules = _rules_with(changes)
        if rules not in self._counted:
            self._counted[rules] = self._count(rules)
        return self._counted[rules]

    def moved(self, change: RuleChange) -> tuple[int, datetime | None]:
        """Return how many events *change* counts elsewhere than the lake, or no longer, and the bucket with most."""
        counts = self._rows.counts
        both = _rules_with(()), _rules_with((change,))
        before, after = (np.where(counts, self._cell_codes(rules), OUTSIDE) for rules in both)
        is_moved = before != after
        if not is_moved.any():
            return 0, None
        events, bucket = self._rows.events[is_moved], np.maximum(before, after)[is_moved] // self.shape[1]
        return int(events.sum()), self.starts[int(np.bincount(bucket, weights=events).argmax())]

    def _count(self, rules: CountingRules) -> Floats:
        rows, codes = self._rows, self._cell_codes(rules)
        if self._kind == "first":  # a player counts where the first event is, also if that is in no bucket
            clock, _, is_taken = self._placed(rules)
            order = np.lexsort((rows.first_us, clock, rows.player))
            order = order[(is_taken & rows.counts)[order]]
            first = order[np.flatnonzero(np.diff(rows.player[order], prepend=-1))]
            counted = first[codes[first] != OUTSIDE]
        else:
            counted = np.flatnonzero(rows.counts & (codes != OUTSIDE))
        cells, weights = codes[counted], rows.value[counted] if self._kind == "sum" else None
        if self._kind == "distinct":
            keys = int(rows.key.max(initial=0)) + 1
            cells = pd.unique(cells * keys + rows.key[counted]) // keys
        sums = np.bincount(cells, weights=weights, minlength=self.shape[0] * self.shape[1])
        return sums.astype(np.float64).reshape(self.shape)

    def _cell_codes(self, rules: CountingRules) -> Ints:
        """Return bucket and split of each row as one number, or `OUTSIDE`."""
        rows, (_, bucket, is_taken) = self._rows, self._placed(rules)
        is_in, split = is_taken & (bucket != OUTSIDE), self._split
        if rules.split_by != "own":  # but by the player's first or last event of the bucket
            moment = rows.first_us if rules.split_by == "first" else -rows.last_us
            order = np.lexsort((moment, rows.player))
            order = order[(is_in & rows.is_named)[order]]
            codes, _ = pd.factorize((rows.player * self.shape[0] + bucket)[order])
            first = np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())
            split = split.copy()
            split[order] = self._split[order][first][codes]
        return np.where(is_in, bucket * self.shape[1] + split, OUTSIDE)

    def _placed(self, rules: CountingRules) -> tuple[Ints, Ints, Flags]:
        """Return the time of each row by the clock of *rules*, its bucket, and whether the rules take it."""
        rows, edges = self._rows, self._edges
        clock = rows.corrected if rules.clock == "corrected" else rows.client
        if rules.clock == "arrival":
            clock = np.where(rows.arrival == NO_TIME, rows.client, rows.arrival)
        bucket = np.searchsorted(edges, clock + _ahead(rules.zone, clock), side="right") - 1
        bucket[bucket >= self.shape[0]] = OUTSIDE
        is_taken = np.ones(len(bucket), dtype=np.bool_)
        if rules.cut:
            is_taken &= rows.cut < rules.cut
        if rules.closed_after_s is not None:
            ends = edges[1:] - _ahead(rules.zone, edges[1:] - _ahead(rules.zone, edges[1:]))
            is_taken &= (rows.arrival < ends[bucket] + rules.closed_after_s // QUARTER_S) | (bucket == OUTSIDE)
        if rules.is_deduplicated:
            is_taken &= ~rows.is_repeated
        if rules.is_without_bots:
            is_taken &= ~rows.is_bot
        return clock, bucket, is_taken


def _rules_with(changes: Iterable[RuleChange]) -> CountingRules:
    """Return the rules of the lake with *changes*. Where two change the same rule, the last holds."""
    return CountingRules(**{change.field: change.value for change in changes})  # type: ignore[arg-type]


def _ahead(zone: Zone, quarters: Ints) -> Ints:
    """Return how many quarters of an hour *zone* is ahead of UTC at each of *quarters*."""
    since, ahead = (np.array(values, dtype=np.int64) // QUARTER_S for values in zip(*zone, strict=True))
    found: Ints = ahead[np.maximum(np.searchsorted(since, quarters, side="right") - 1, 0)]
    return found
