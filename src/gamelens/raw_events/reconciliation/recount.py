"""Recounts of a metric under other rules, from event rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gamelens.raw_events.reconciliation.counting_rules import CountingRules, Zone
from gamelens.raw_events.reconciliation.event_rows import NO_TIME, QUARTER_S, EventRows, Flags, Floats, Ints
from gamelens.wire.intervals import Granularity, Interval

OUTSIDE = -1
"""The bucket of an event that counts in none."""


@dataclass(frozen=True, eq=False, slots=True)
class ChangedEvents:
    """The events that a change of rules counts elsewhere, or no longer.

    Attributes:
        events: how many.
        bucket: number of the bucket that has most of them, None without any.
    """

    events: int
    bucket: int | None


class Recount:
    """The counts of *rows* in each bucket of *interval*, for each of *splits*.

    Args:
        rows: the events.
        kind: `sum`, `distinct` or `first`.
        interval: the time that is counted.
        every: the buckets.
        splits: values of the dimension in the order of the columns; all that the rows have are among them.
    """

    def __init__(
        self, rows: EventRows, kind: str, interval: Interval, every: Granularity, splits: Sequence[str | None]
    ) -> None:
        self._rows, self._kind = rows, kind
        self.starts = [bucket.start for bucket in interval.buckets(every)]
        starts = [_quarter(max(start, interval.start)) for start in self.starts]
        self._edges = np.array([*starts, _quarter(interval.end)])
        self.shape = (len(self.starts), len(splits))
        places = {value: place for place, value in enumerate(splits)}
        self._split = np.array([places[value] for value in rows.splits], dtype=np.int64)[rows.split]
        self._order = np.lexsort((rows.first_us, rows.player))
        self._last_order = np.lexsort((-rows.last_us, rows.player))
        self._counted: dict[CountingRules, Floats] = {}

    def cells(self, rules: CountingRules) -> Floats:
        """Return the counts by bucket and split under *rules*."""
        if rules not in self._counted:
            self._counted[rules] = self._count(rules)
        return self._counted[rules]

    def changed(self, rules: CountingRules) -> ChangedEvents:
        """Return the events that *rules* count elsewhere than the lake, or no longer."""
        counts = self._rows.counts
        before, after = (np.where(counts, self._cell_codes(each), OUTSIDE) for each in (CountingRules(), rules))
        moved = before != after
        events = self._rows.events[moved]
        if not len(events):
            return ChangedEvents(0, None)
        cell = np.maximum(before, after)[moved] // self.shape[1]
        by_bucket = np.bincount(cell, weights=events, minlength=self.shape[0])
        return ChangedEvents(int(events.sum()), int(by_bucket.argmax()))

    def _count(self, rules: CountingRules) -> Floats:
        rows = self._rows
        if self._kind == "first":
            return self._count_first(rules)
        codes = self._cell_codes(rules)
        has = rows.counts & (codes != OUTSIDE)
        cells, size = codes[has], self.shape[0] * self.shape[1]
        if self._kind == "sum":
            counted = np.bincount(cells, weights=rows.value[has], minlength=size)
        else:
            members = pd.unique(cells * (int(rows.key.max(initial=0)) + 1) + rows.key[has])
            counted = np.bincount(members // (int(rows.key.max(initial=0)) + 1), minlength=size)
        return counted.astype(np.float64).reshape(self.shape)

    def _count_first(self, rules: CountingRules) -> Floats:
        """Count each player in the bucket of the first event."""
        rows = self._rows
        bucket = self._buckets(rules)
        is_taken = self._is_taken(rules, bucket) & rows.counts
        # By the rule's own clock; within a quarter of an hour by that of the client.
        order = np.lexsort((rows.first_us, self._clock(rules), rows.player))
        order = order[is_taken[order]]
        first = order[np.flatnonzero(np.diff(rows.player[order], prepend=-1))]
        first = first[bucket[first] != OUTSIDE]
        cells = bucket[first] * self.shape[1] + self._split[first]
        counted = np.bincount(cells, minlength=self.shape[0] * self.shape[1])
        return counted.astype(np.float64).reshape(self.shape)

    def _cell_codes(self, rules: CountingRules) -> Ints:
        """Return bucket and split of each row as one number, or `OUTSIDE`."""
        bucket = self._buckets(rules)
        is_in = self._is_taken(rules, bucket) & (bucket != OUTSIDE)
        split = self._split if rules.split_by == "own" else self._split_of_player(rules, bucket, is_in)
        codes: Ints = np.where(is_in, bucket * self.shape[1] + split, OUTSIDE)
        return codes

    def _split_of_player(self, rules: CountingRules, bucket: Ints, is_in: Flags) -> Ints:
        """Return the split of a player's first or last event of the bucket."""
        rows = self._rows
        order = self._order if rules.split_by == "first" else self._last_order
        order = order[(is_in & rows.is_named)[order]]
        group = rows.player * self.shape[0] + bucket
        codes, _ = pd.factorize(group[order])
        first = np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())
        split = self._split.copy()
        split[order] = self._split[order][first][codes]
        return split

    def _clock(self, rules: CountingRules) -> Ints:
        rows = self._rows
        if rules.clock == "arrival":
            return np.where(rows.arrival == NO_TIME, rows.client, rows.arrival)
        return rows.client if rules.clock == "client" else rows.corrected

    def _buckets(self, rules: CountingRules) -> Ints:
        utc = self._clock(rules)
        quarters = utc + _ahead(rules.zone, utc)
        bucket = np.searchsorted(self._edges, quarters, side="right") - 1
        found: Ints = np.where((bucket < 0) | (bucket >= self.shape[0]), OUTSIDE, bucket)
        return found

    def _is_taken(self, rules: CountingRules, bucket: Ints) -> Flags:
        rows = self._rows
        taken = np.ones(len(bucket), dtype=np.bool_)
        if rules.cut:
            taken &= rows.cut < rules.cut
        if rules.closed_after_s is not None:
            ends = self._edges[1:] - _ahead(rules.zone, self._edges[1:] - _ahead(rules.zone, self._edges[1:]))
            closes = ends[bucket] + rules.closed_after_s // QUARTER_S
            taken &= (rows.arrival < closes) | (bucket == OUTSIDE)
        if rules.is_deduplicated:
            taken &= ~rows.is_repeated
        if rules.is_without_bots:
            taken &= ~rows.is_bot
        return taken


def _ahead(zone: Zone, quarters: Ints) -> Ints:
    """Return how many quarters of an hour *zone* is ahead of UTC at each of *quarters*."""
    since, ahead = (np.array(values, dtype=np.int64) // QUARTER_S for values in zip(*zone, strict=True))
    found: Ints = ahead[np.maximum(np.searchsorted(since, quarters, side="right") - 1, 0)]
    return found


def _quarter(moment: object) -> int:
    return int(pd.Timestamp(str(moment)).timestamp()) // QUARTER_S
