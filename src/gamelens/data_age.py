"""How old the data of an answer are: the end of what the service has processed against the moment of the question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from gamelens.receipts import Receipt


class DataAge(msgspec.Struct, frozen=True):
    """How far data lie behind the moment at which they were asked for; both are in UTC, None where they are not known.

    Attributes:
        ends: the end of the available interval.
        asked_at: that moment.
    """

    ends: datetime | None = None
    asked_at: datetime | None = None

    @classmethod
    def of(cls, receipt: Receipt) -> DataAge:
        """Return the age of the data behind a frame."""
        return cls(_moment(receipt.as_of), _moment(receipt.asked_at))

    @property
    def lag(self) -> timedelta | None:
        """The time between the two, None where one is not known."""
        return None if self.ends is None or self.asked_at is None else self.asked_at - self.ends

    def is_stale(self, after: timedelta | None = None) -> bool:
        """Return whether the data are older than *after*, by default whether the day before the question is incomplete.

        What is not known is not stale.
        """
        if self.ends is None or self.asked_at is None:
            return False
        if after is not None:
            return self.asked_at - self.ends > after
        return self.ends < self.asked_at.replace(hour=0, minute=0, second=0, microsecond=0)


def duration_text(time: timedelta) -> str:
    """Return *time* as text for a person, in minutes, hours or days."""
    minutes = time.total_seconds() / 60
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{time.days} days"


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment is not None and moment.tzinfo else None
