"""Time ranges by the clock of a zone."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from gamelens.raw_events.event_scope import resolve_in_zone
from gamelens.wire.intervals import Interval

AVAILABLE = "2026-10-20T00:00Z/2026-11-24T{hour}:00Z"


@pytest.mark.parametrize(
    ("zone", "hour", "expected"),
    [
        ("UTC", "01", "2026-11-22T00:00Z/2026-11-24T00:00Z"),
        ("America/Sao_Paulo", "01", "2026-11-21T03:00Z/2026-11-23T03:00Z"),
        ("America/Sao_Paulo", "03", "2026-11-22T03:00Z/2026-11-24T03:00Z"),
        ("Asia/Tokyo", "16", "2026-11-22T15:00Z/2026-11-24T15:00Z"),
    ],
)
def test_a_complete_day_has_ended_in_its_zone(zone: str, hour: str, expected: str) -> None:
    """At 01:00 UTC it is still the day before in Sao Paulo, whose last day is not complete."""
    available = Interval.parse(AVAILABLE.format(hour=hour))
    assert resolve_in_zone("last 2 complete days", available, ZoneInfo(zone)) == Interval.parse(expected)
