"""Requests as the live record keeps them, the events in them, and which of those somebody wants to see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal, get_args

import msgspec

from gamelens.errors import BadQuery
from gamelens.sandbox.http.request_body import UndecodableBody, unpack
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_validator import RejectedEvent
from gamelens.wire.field_rules import Violation

Status = Literal["accepted", "rejected"]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
UNKNOWN: Final = "unknown"
"""What a category that is none is counted as: senders may invent as many as they like."""
_DEFAULT_LIMIT: Final = 100
_MOST: Final = 10_000


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event as the console shows it (contract, Control surface); *errors* is empty when it was accepted."""

    arrival_ts: int
    game_key: str
    status: Status
    event: msgspec.Raw
    errors: list[Violation] = []


class FeedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The accepted or the rejected events of one request, as they came. *number* is the order of arrival."""

    number: int
    arrival_ms: int
    game_key: str
    status: Status
    events: int
    body: bytes = b""
    is_gzipped: bool = False
    rejected: list[RejectedEvent] = []

    @property
    def size(self) -> int:
        """Bytes held."""
        return len(self.body) + sum(map(_size, self.rejected))

    def entries(self) -> Iterator[FeedEvent]:
        """Its events, the last one of the request first."""
        for event, errors in self._told():
            yield FeedEvent(
                arrival_ts=self.arrival_ms // 1000,
                game_key=self.game_key,
                status=self.status,
                event=event,
                errors=errors,
            )

    def _told(self) -> Iterable[tuple[msgspec.Raw, list[Violation]]]:
        if self.status == "rejected":
            return ((it.event, it.errors) for it in reversed(self.rejected))
        try:
            body = unpack(self.body).content if self.is_gzipped else self.body
            return ((event, []) for event in reversed(msgspec.json.decode(body, type=list[msgspec.Raw])))
        except (UndecodableBody, msgspec.DecodeError):  # damaged on disk, which is the store's to report
            return ()


class FeedFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events somebody wants to see, and how many; None is any."""

    status: Status | None = None
    game_key: str | None = None
    category: str | None = None
    limit: int = _DEFAULT_LIMIT

    def wants(self, arrival: FeedRequest) -> bool:
        """Whether any of *arrival* may be shown."""
        return self.status in (None, arrival.status) and self.game_key in (None, arrival.game_key)

    def shown(self, arrivals: Iterable[FeedRequest]) -> Iterator[FeedEvent]:
        """What is to be shown of *arrivals*, in their order."""
        entries = chain.from_iterable(arrival.entries() for arrival in arrivals if self.wants(arrival))
        return (entry for entry in entries if self.category is None or self._is_of(entry))

    def _is_of(self, entry: FeedEvent) -> bool:
        said = category_of(entry.event)
        return said == self.category or (self.category == UNKNOWN and said not in CATEGORIES)


def parse_feed_filter(query: Mapping[str, str], *, game_keys: Iterable[str], limit: int = _DEFAULT_LIMIT) -> FeedFilter:
    """The look that a query string asks for.

    Raises:
        BadQuery: it has a parameter, a status, a game or a limit that does not exist.
    """
    given = {name: value for name, value in query.items() if value}
    for name, value in given.items():
        if name not in FeedFilter.__struct_fields__:
            raise BadQuery(name, value, "is not asked for here", FeedFilter.__struct_fields__, name=name)
    for name, allowed in (("status", STATUSES), ("game_key", tuple(game_keys))):
        if name in given and given[name] not in allowed:
            raise BadQuery(name, given[name], "is none of this sandbox", allowed)
    asked = given.pop("limit", str(limit))
    if not (asked.isascii() and asked.isdigit() and len(asked) < 9 and int(asked) <= _MOST):
        raise BadQuery("limit", asked, f"must be a whole number, 0 to {_MOST}")
    return msgspec.convert({**given, "limit": int(asked)}, FeedFilter)


def _size(rejected: RejectedEvent) -> int:
    return len(memoryview(rejected.event))


class _Categorised(msgspec.Struct):
    category: Any = None


def category_of(event: msgspec.Raw) -> str | None:
    """What an event, good or bad, says its category is."""
    try:
        said = msgspec.json.decode(event, type=_Categorised).category
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return said if isinstance(said, str) else None
