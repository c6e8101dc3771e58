"""Requests and events of the live feed, and the filter of both (Wire 5.2, Live feed)."""

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
"""Common name of all categories that do not exist: a sender may invent any number."""
_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 10_000


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the live feed.

    Attributes:
        arrival_ts: epoch seconds on the sandbox's clock.
        game_key: of its game.
        status: `accepted` or `rejected`.
        event: the JSON as it was sent.
        errors: its violations; empty if it was accepted.
    """

    arrival_ts: int
    game_key: str
    status: Status
    event: msgspec.Raw
    errors: list[Violation] = []


class FeedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The accepted or the rejected events of one request, decoded only when they are shown.

    Attributes:
        number: order of arrival.
        arrival_ms: epoch milliseconds on the sandbox's clock.
        game_key: of the game.
        status: `accepted` or `rejected`.
        events: number of events.
        body: accepted events as a JSON array.
        is_gzipped: whether *body* is gzipped.
        rejected: rejected events.
    """

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
        """Bytes in memory."""
        return len(self.body) + sum(map(_size, self.rejected))

    def feed_events(self) -> Iterator[FeedEvent]:
        """Yield its events, the last one of the request first."""
        for event, errors in self._stored_events():
            yield FeedEvent(
                arrival_ts=self.arrival_ms // 1000,
                game_key=self.game_key,
                status=self.status,
                event=event,
                errors=errors,
            )

    def _stored_events(self) -> Iterable[tuple[msgspec.Raw, list[Violation]]]:
        if self.status == "rejected":
            return ((rejected.event, rejected.errors) for rejected in reversed(self.rejected))
        try:
            body = unpack(self.body).content if self.is_gzipped else self.body
            return ((event, []) for event in reversed(msgspec.json.decode(body, type=list[msgspec.Raw])))
        except (UndecodableBody, msgspec.DecodeError):  # damaged on disk: processing reports it
            return ()


class FeedFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of the live feed. None matches everything.

    Attributes:
        status: `accepted` or `rejected`.
        game_key: of one game.
        category: a category, or `unknown` for all that do not exist.
        limit: events at most.
    """

    status: Status | None = None
    game_key: str | None = None
    category: str | None = None
    limit: int = _DEFAULT_LIMIT

    def may_match(self, request: FeedRequest) -> bool:
        """Return whether events of *request* may pass the filter."""
        return self.status in (None, request.status) and self.game_key in (None, request.game_key)

    def select(self, requests: Iterable[FeedRequest]) -> Iterator[FeedEvent]:
        """Yield the events of *requests* that pass the filter, in their order."""
        feed_events = chain.from_iterable(request.feed_events() for request in requests if self.may_match(request))
        return (feed_event for feed_event in feed_events if self.category is None or self._has_category(feed_event))

    def _has_category(self, feed_event: FeedEvent) -> bool:
        category = category_of(feed_event.event)
        return category == self.category or (self.category == UNKNOWN and category not in CATEGORIES)


def parse_feed_filter(query: Mapping[str, str], *, game_keys: Iterable[str], limit: int = _DEFAULT_LIMIT) -> FeedFilter:
    """Read a filter from a query string. An empty parameter counts as absent.

    Args:
        query: the parameters.
        game_keys: keys of the games of this sandbox.
        limit: the default limit.

    Raises:
        BadQuery: a parameter, status, game or limit does not exist.
    """
    parameters = {name: value for name, value in query.items() if value}
    for name, value in parameters.items():
        if name not in FeedFilter.__struct_fields__:
            raise BadQuery(name, value, "is not asked for here", FeedFilter.__struct_fields__, name=name)
    for name, allowed in (("status", STATUSES), ("game_key", tuple(game_keys))):
        if name in parameters and parameters[name] not in allowed:
            raise BadQuery(name, parameters[name], "is none of this sandbox", allowed)
    limit_text = parameters.pop("limit", str(limit))
    if not (limit_text.isascii() and limit_text.isdigit() and len(limit_text) < 9 and int(limit_text) <= _MAX_LIMIT):
        raise BadQuery("limit", limit_text, f"must be a whole number, 0 to {_MAX_LIMIT}")
    return msgspec.convert({**parameters, "limit": int(limit_text)}, FeedFilter)


def _size(rejected: RejectedEvent) -> int:
    return len(memoryview(rejected.event))


class _Categorised(msgspec.Struct):
    category: Any = None


def category_of(event: msgspec.Raw) -> str | None:
    """Return the category that an event, good or bad, claims to have."""
    try:
        category = msgspec.json.decode(event, type=_Categorised).category
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return category if isinstance(category, str) else None
