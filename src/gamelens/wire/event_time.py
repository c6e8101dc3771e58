"""Event time: the time of the device where it can be true, else the time of arrival (Wire 4.1, Event time)."""

from __future__ import annotations

from typing import Any, Final

from gamelens.wire.limits import FUTURE_S, OLDEST_DAYS

DAY_S: Final = 86_400
UNITS: Final = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units in which a time that should be in seconds is recognised, with their number in a second."""
FIRST_S: Final = 946_684_800
"""2000-01-01: the earliest time that is recognised in another unit than seconds."""
_MOST_S: Final = 2**63 - 1  # a larger number is in no column


def absent(field: str) -> str:
    """Return the reason of a time that is not there."""
    return f"no {field}"


def unreadable(field: str) -> str:
    """Return the reason of a time that is text, or too large a number."""
    return f"{field} that is no usable number of seconds"


def in_unit(field: str, unit: str) -> str:
    """Return the reason of a time in another *unit* than seconds."""
    return f"{field} in {unit}"


def too_late(field: str) -> str:
    """Return the reason of a time that lies too far ahead."""
    return f"{field} more than {FUTURE_S // 3600} h after arrival"


def too_old(field: str, oldest_days: int) -> str:
    """Return the reason of a time that is older than it may be."""
    return f"{field} more than {oldest_days} days before arrival"


def can_be_true(client_ts: Any, arrival_s: Any, *, oldest_days: int = OLDEST_DAYS) -> Any:
    """Return whether an event that arrived at *arrival_s* can have happened at *client_ts*, both epoch seconds.

    Both may be arrays, and then the result is one of flags.
    """
    return (client_ts >= arrival_s - oldest_days * DAY_S) & (client_ts >= 0) & (client_ts <= arrival_s + FUTURE_S)


def dated_by_arrival(client_ts: int | None, arrival_s: int, *, oldest_days: int = OLDEST_DAYS) -> str | None:
    """Return why an event that arrived at *arrival_s* has no better time than that, or None if it has *client_ts*."""
    field = "client_ts"
    if client_ts is None:
        return absent(field)
    if abs(client_ts) > _MOST_S:
        return unreadable(field)
    if can_be_true(client_ts, arrival_s, oldest_days=oldest_days):
        return None
    for unit, per_second in UNITS.items():
        if FIRST_S <= client_ts // per_second <= arrival_s + FUTURE_S:
            return in_unit(field, unit)
    return too_late(field) if client_ts > arrival_s else too_old(field, oldest_days)
