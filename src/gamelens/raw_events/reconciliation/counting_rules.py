"""Rules by which events are counted, and changes of them that explain a difference."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from gamelens.wire.intervals import Interval

HOUR_S: Final = 3600
UNEXPLAINED: Final = "unexplained"

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
"""Causes that can be seen only in the times of arrival."""

_CLOSED_AFTER_H: Final = (0, 1, 3, 6, 12, 24, 48, 72)
_ZONE_MINUTES: Final = (*(60 * hours for hours in range(-12, 15) if hours), -210, 210, 270, 330, 345, 390, 570, 630)
_ZONES_WITH_SUMMER_TIME: Final = (
    *("America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York", "America/Halifax"),
    *("America/St_Johns", "America/Santiago", "Europe/London", "Europe/Berlin", "Europe/Athens", "Africa/Cairo"),
    *("Asia/Beirut", "Asia/Jerusalem", "Australia/Adelaide", "Australia/Sydney", "Pacific/Auckland"),
)
"""One of each group of zones that change their clocks alike."""

Zone = tuple[tuple[int, int], ...]
"""Seconds that the days of a zone are ahead of UTC.

Pairs of an epoch second, the first of them 0, and what holds from then on.
"""
UTC_DAYS: Final[Zone] = ((0, 0),)


class CountingRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one count. The defaults are those of the lake.

    Attributes:
        cut: number of the moment after which an event may not arrive, from 1; 0 takes every event.
        closed_after_s: seconds after the end of a bucket from which its events are not taken; None takes every event.
        clock: the time that gives an event its bucket: that of the client, the same without the error of the device's
            clock, or that of arrival.
        zone: how far the days are ahead of UTC.
        is_deduplicated: whether events without `event_uuid` count once if they are alike.
        is_without_bots: whether players with implausible activity are left out.
        split_by: the event that gives a player's events of a bucket their dimension: each its own, the first, the last.
    """

    cut: int = 0
    closed_after_s: int | None = None
    clock: Literal["client", "corrected", "arrival"] = "client"
    zone: Zone = UTC_DAYS
    is_deduplicated: bool = False
    is_without_bots: bool = False
    split_by: Literal["own", "first", "last"] = "own"


class RuleChange(msgspec.Struct, frozen=True):
    """One rule that the other answer may have.

    Attributes:
        cause: name of the cause, one of `CAUSES`.
        text: the rule as half a sentence.
        field: the field of `CountingRules` that it changes.
        value: the value that the field gets.
    """

    cause: str
    text: str
    field: str
    value: int | bool | str | Zone

    def applied(self, rules: CountingRules) -> CountingRules:
        """Return *rules* with the change."""
        return msgspec.structs.replace(rules, **{self.field: self.value})


def changed_rules(changes: Sequence[RuleChange]) -> CountingRules:
    """Return the rules of the lake with *changes*."""
    rules = CountingRules()
    for change in changes:
        rules = change.applied(rules)
    return rules


def possible_changes(cuts: Sequence[datetime], interval: Interval) -> list[RuleChange]:
    """Return the rules that another answer may have.

    Args:
        cuts: moments at which the other answer may have been made.
        interval: the time that is counted. Zones that change their clocks in it are tried with that change.
    """
    cut_off = [
        RuleChange(LATE, f"without what arrived after {moment:%Y-%m-%d %H:%M} UTC", "cut", number)
        for number, moment in enumerate(cuts, start=1)
    ]
    closed = [
        RuleChange(LATE, f"without what arrived {_hours(hours)} its period ended", "closed_after_s", hours * HOUR_S)
        for hours in _CLOSED_AFTER_H
    ]
    zones = [
        RuleChange(ZONE, f"days of {_zone(minutes)}", "zone", ((0, minutes * 60),))
        for minutes in sorted(_ZONE_MINUTES, key=abs)
    ]
    changing = [(name, _changes_of_clocks(name, interval)) for name in _ZONES_WITH_SUMMER_TIME]
    zones += [RuleChange(ZONE, f"days of {name}", "zone", zone) for name, zone in changing if len(zone) > 1]
    return [
        *cut_off,
        *closed,
        RuleChange(ARRIVAL_DAY, "by the time of arrival", "clock", "arrival"),
        RuleChange(DUPLICATES, "events that are alike once", "is_deduplicated", True),
        RuleChange(SKEW, "times of wrong clocks put right", "clock", "corrected"),
        RuleChange(BOTS, "without players whose activity is implausible", "is_without_bots", True),
        RuleChange(DIMENSION, "of a player's first event in the period", "split_by", "first"),
        RuleChange(DIMENSION, "of a player's last event in the period", "split_by", "last"),
        *zones,
    ]


@cache
def _changes_of_clocks(name: str, interval: Interval) -> Zone:
    """Return how far the days of a zone are ahead of UTC around *interval*.

    Changes of its clocks are found to the hour.
    """
    try:
        zone = ZoneInfo(name)
    except ZoneInfoNotFoundError:  # this machine does not know when it changes its clocks
        return UTC_DAYS

    def ahead_s(moment: datetime) -> int:
        return round((moment.astimezone(zone).utcoffset() or timedelta()).total_seconds())

    day, step = interval.start - margin(), timedelta(days=1)
    steps = [(0, ahead_s(day))]
    while day < interval.end + margin():
        if ahead_s(day + step) != steps[-1][1]:
            hours = [day + timedelta(hours=hour) for hour in range(1, 25)]
            since = next(hour for hour in hours if ahead_s(hour) != steps[-1][1])
            steps.append((round(since.timestamp()), ahead_s(since)))
        day += step
    return tuple(steps)


def _hours(hours: int) -> str:
    return f"{hours} h or more after" if hours else "after"


def _zone(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02d}" if rest else "")


def margin() -> timedelta:
    """Return the time around the buckets from which a change of rules can bring events."""
    return timedelta(days=1)
