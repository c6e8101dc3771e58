"""Players of a lake under each definition of retention, counted together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from pandas import DataFrame

from gamelens.client.plans.query_spec import is_integer
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.receipts import QueryRecord, Receipt
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from gamelens.raw_events.lake_client import LakeClient

DEFINITIONS: Final = (
    "calendar day UTC",
    "calendar day in the zone",
    "rolling 24 h",
    "return day UTC",
    "that day or later",
)
"""Definitions of retention at age N.

- `calendar day UTC`: installed on a UTC day of the interval, and an event N UTC days later.
- `calendar day in the zone`: the same with the days of a zone.
- `rolling 24 h`: installed on a UTC day of the interval, and an event from N times 24 hours after the install until a
  day later.
- `return day UTC`: an event on a UTC day of the interval, N days after the UTC day of the install. The cohorts are
  those of N days before.
- `that day or later`: installed on a UTC day of the interval, and an event N UTC days later or after that.
"""

_MOST_AGE: Final = 3650


class RetentionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ages and install days, checked.

    Attributes:
        ages: days since install.
        interval: the install days, or the return days.
        zone: name of the zone.
        ends: the end of the lake: no age is counted that was not over by then.
        receipt: the receipt of the lake.
    """

    ages: tuple[int, ...]
    interval: Interval
    zone: str
    ends: datetime
    receipt: Receipt


def retention_request(lake: LakeClient, ages: Sequence[int], over: TimeRange, zone: str) -> RetentionRequest:
    """Check the arguments of a comparison of definitions.

    Raises:
        BadQuery: an age, or the zone, is not allowed, or *over* has hours.
        NotYetAvailable: part of *over* is not in the lake.
    """
    ages = tuple(ages)
    if not ages or not all(is_integer(age) and 1 <= age <= _MOST_AGE for age in ages):
        raise BadQuery("ages", ages, f"must be whole numbers of days, 1 to {_MOST_AGE:,}")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadQuery("zone", zone, "is not a time zone: write it as Europe/Berlin") from None
    receipt = Receipt.of(lake.query("new_users", over=over).attrs)
    interval = receipt.interval
    if (
        interval is None
        or not interval
        or any(moment.hour or moment.minute for moment in (interval.start, interval.end))
    ):
        raise BadQuery("over", str(interval), "must be whole UTC days")
    asked = QueryRecord(metric="retention", days=ages, over=receipt.asked.over, interval=str(interval))
    receipt = msgspec.structs.replace(receipt, asked=asked)
    return RetentionRequest(ages=ages, interval=interval, zone=zone, ends=lake.available().end, receipt=receipt)


def counted_players(lake: LakeClient, request: RetentionRequest, age: int) -> DataFrame:
    """Return the number of players for each combination of cohorts and returns.

    Columns: `in_0`, `back_0` and so on for each definition (bool), players (int64).
    """
    interval = request.interval
    parameters = {
        "zone": request.zone,
        "age": age,
        "start": interval.start.replace(tzinfo=None),
        "ends": interval.end.replace(tzinfo=None),
        "known": request.ends.replace(tzinfo=None),
        "wide_start": (interval.start - timedelta(days=age + 2)).replace(tzinfo=None),
        "wide_ends": (interval.end + timedelta(days=2)).replace(tzinfo=None),
    }
    return lake.sql(_PLAYERS_SQL, parameters, seconds=600.0, memory="4GB")


def _local(moment: str) -> str:
    return f"CAST(timezone($zone, timezone('UTC', {moment})) AS DATE)"


_FLAGS: Final = ", ".join(f"in_{number}, back_{number}" for number in range(len(DEFINITIONS)))
_DAY: Final = "INTERVAL 1 DAY"
_PLAYERS_SQL: Final = f"""
    WITH installed AS (
        SELECT game_id, user_id, installed_at AS born, CAST(installed_at AS DATE) AS day,
            {_local("installed_at")} AS own_day
        FROM players WHERE installed_at >= $wide_start AND installed_at < $wide_ends
    ), seen AS (
        SELECT game_id, user_id,
            bool_or(events.day = installed.day + CAST($age AS INT)) AS on_day,
            bool_or({_local("ts")} = own_day + CAST($age AS INT)) AS on_own_day,
            bool_or(ts >= born + $age * {_DAY} AND ts < born + ($age + 1) * {_DAY}) AS in_time,
            bool_or(events.day >= installed.day + CAST($age AS INT)) AS later
        FROM installed JOIN events USING (game_id, user_id)
        WHERE ts < $known GROUP BY ALL
    ), judged AS (
        SELECT born >= $start AND born < $ends AND day + CAST($age + 1 AS INT) <= $known AS in_0,
            on_day AS back_0,
            timezone('UTC', timezone($zone, CAST(own_day + CAST($age + 1 AS INT) AS TIMESTAMP))) <= $known
                AND own_day >= CAST($start AS DATE) AND own_day < CAST($ends AS DATE) AS in_1,
            on_own_day AS back_1,
            born >= $start AND born < $ends AND born + ($age + 1) * {_DAY} <= $known AS in_2,
            in_time AS back_2,
            day + CAST($age AS INT) >= $start AND day + CAST($age AS INT) < $ends AS in_3,
            on_day AS back_3,
            in_0 AS in_4,
            later AS back_4
        FROM installed LEFT JOIN seen USING (game_id, user_id)
    )
    SELECT {", ".join(f"coalesce({each.strip()}, FALSE) AS {each.strip()}" for each in _FLAGS.split(","))},
        count(*) AS players
    FROM judged GROUP BY ALL"""  # noqa: S608
