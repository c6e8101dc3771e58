"""What an import remarks on in events that it takes, as the live feed of the collector does."""

from __future__ import annotations

from typing import Final

LONG_SESSION: Final = "a length above a day: it is the seconds of the session, not a time or milliseconds"
"""Of sessions (Wire 4.11, Metrics)."""
NO_REVENUE: Final = "no usable revenue: they count as impressions of 0"
"""Of impressions (Wire 4.6, Impression)."""
NO_RATE: Final = "a currency without a rate: they count as impressions of 0"
"""Of impressions (Wire 4.6, Impression)."""
