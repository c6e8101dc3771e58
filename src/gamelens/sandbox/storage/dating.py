"""The SQL of times that devices and exports state: which are used, and why the others are not.

An event has the time of its device where that can be true, else that of its arrival (`wire.event_time`). Here the rule
holds for whole columns, of received events and of both exports.
"""

from __future__ import annotations

from typing import Final

import msgspec

from gamelens.wire import event_time
from gamelens.wire.limits import FUTURE_S

FIRST_S: Final = 946_684_800
"""2000-01-01: a time before it was never on the clock of a service."""
LAST_S: Final = 4_102_444_800
"""2100-01-01, likewise."""
IS_DATED_BY_ARRIVAL: Final = "ts = arrived_at"
"""SQL condition that a stored event has the time of its arrival."""
_LEAST: Final = "INTERVAL 1 MICROSECOND"


class StatedTime(msgspec.Struct, frozen=True, kw_only=True):
    """A column of times that somebody states of events.

    Attributes:
        field: name of the field, for reasons.
        sent: SQL of the field as it came.
        number: SQL of the whole number that it holds, null if it holds none.
        arrival: SQL of the time of arrival.
        earliest: SQL of the earliest time that can be true.
        too_early: the reason of an earlier one.
        per_second: how many of these numbers make a second.
    """

    field: str
    sent: str
    number: str
    arrival: str
    earliest: str
    too_early: str
    per_second: int = 1

    def _can_be_true(self, number: str) -> str:
        return f"({number} BETWEEN {self.earliest} AND {self.arrival} + {FUTURE_S * self.per_second})"

    @property
    def is_used(self) -> str:
        """SQL condition that the time is used; null where there is none."""
        return self._can_be_true(self.number)

    @property
    def reason(self) -> str:
        """SQL of the reason why the time is not used, null where it is."""
        units = " ".join(
            f"WHEN {self._can_be_true(f'{self.number} // {count}')} THEN '{event_time.in_unit(self.field, unit)}'"
            for unit, count in event_time.UNITS.items()
        )
        return f"""CASE
            WHEN {self.is_used} THEN NULL
            WHEN {self.sent} IS NULL THEN '{event_time.absent(self.field)}'
            WHEN {self.number} IS NULL THEN '{event_time.unreadable(self.field)}'
            {units}
            WHEN {self.number} > {self.arrival} THEN '{event_time.too_late(self.field)}'
            ELSE '{self.too_early}' END"""


def device_time(
    field: str, *, sent: str, number: str, arrival: str, oldest_days: int, per_second: int = 1
) -> StatedTime:
    """Return the time of a device, which is used from *oldest_days* before the arrival on."""
    oldest = oldest_days * event_time.DAY_S * per_second
    return StatedTime(
        field=field,
        sent=sent,
        number=number,
        arrival=arrival,
        earliest=f"greatest(0, {arrival} - {oldest})",
        too_early=event_time.too_old(field, oldest_days),
        per_second=per_second,
    )


def arrived_at_sql(arrival: str) -> str:
    """Return the SQL of `arrived_at` of an event, of its *arrival*, its `ts` and `dated_by`.

    It equals `ts` where that is the time of the arrival; where the device says the same time, it is a microsecond
    later.
    """
    return f"{arrival} + CASE WHEN dated_by IS NULL AND ts = {arrival} THEN {_LEAST} ELSE INTERVAL 0 SECOND END"


def service_time_fault(field: str, number: str, *, otherwise: str, per_second: int = 1) -> str:
    """Return the SQL of the reason why a *number* is no time of a service's clock, null where it is one."""
    first, last = FIRST_S * per_second, LAST_S * per_second
    units = " ".join(
        f"WHEN {number} // {count} BETWEEN {first} AND {last} THEN '{event_time.in_unit(field, unit)}'"
        for unit, count in event_time.UNITS.items()
    )
    return f"CASE WHEN {number} BETWEEN {first} AND {last} THEN NULL {units} ELSE '{otherwise}' END"
