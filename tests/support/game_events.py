"""One good game event, with any of its fields changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
"""The time at which the clock of a test's sandbox stands: an hour after `event` happened."""


def event(**fields: Any) -> dict[str, Any]:
    """Return a good event of a custom integration with *fields* replaced, or removed by None."""
    base = {
        "category": "user",
        "v": 2,
        "user_id": "ann",
        "session_id": "11111111-1111-4111-8111-111111111111",
        "session_num": 1,
        "client_ts": int(NOW.timestamp()) - 3600,
        "sdk_version": "rest api v2",
        "os_version": "ios 17.0",
        "manufacturer": "apple",
        "device": "iPhone15,2",
        "platform": "ios",
        "build": "1.0",
        "country_code": "US",
    }
    return {name: value for name, value in (base | fields).items() if value is not None}
