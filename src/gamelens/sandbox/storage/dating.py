"""The SQL of times that devices and exports state: which are used, and why the others are not.

An event has the time of its device where that can be true, else the time of its arrival (`wire.event_time`). Here the
rule holds for whole columns, of received events and of both exports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from gamelens.wire import event_time
from gamelens.wire.event_time import FIRST_S
from gamelens.wire.limits import FUTURE_S

LAST_S: Final = 4_102_444_800
"""2100-01-01: a time after it was never on the clock of a service, nor one before `FIRST_S`."""
_FOLDER: Final = "dated_by="
_NOT_DATED: Final = "__HIVE_DEFAULT_PARTITION__"  # the name that DuckDB gives to a partition of nulls


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

    @property
    def is_used(self) -> str:
        """SQL condition that the time is used; null where there is none."""
        return f"({self.number} BETWEEN {self.earliest} AND {self._latest})"

    @property
    def _latest(self) -> str:
        return f"{self.arrival} + {FUTURE_S * self.per_second}"

    @property
    def reason(self) -> str:
        """SQL of the reason why the time is not used, null where it is."""
        units = " ".join(
            f"WHEN {self.number} // {count} BETWEEN {FIRST_S * self.per_second} AND {self._latest} "
            f"THEN '{event_time.in_unit(self.field, unit)}'"
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


def dated_folder(reason: str | None) -> str:
    """Return the name of a folder for files of events that are dated by their arrival for *reason*, or are not (None).

    DuckDB names the folders of a partition by `dated_by` alike.
    """
    return _FOLDER + (_NOT_DATED if reason is None else quote(reason))


def dated_because(path: Path) -> str | None:
    """Return the reason that the events of the file at *path* are dated by their arrival for, None if they are not."""
    name = path.parent.name
    is_dated = name.startswith(_FOLDER) and name != dated_folder(None)
    return unquote(name.removeprefix(_FOLDER)) if is_dated else None


def service_time_fault(field: str, number: str, *, otherwise: str, per_second: int = 1) -> str:
    """Return the SQL of the reason why a *number* is no time of a service's clock, null where it is one."""
    first, last = FIRST_S * per_second, LAST_S * per_second
    units = " ".join(
        f"WHEN {number} // {count} BETWEEN {first} AND {last} THEN '{event_time.in_unit(field, unit)}'"
        for unit, count in event_time.UNITS.items()
    )
    return f"CASE WHEN {number} BETWEEN {first} AND {last} THEN NULL {units} ELSE '{otherwise}' END"
