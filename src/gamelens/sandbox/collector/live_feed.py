"""The live feed: the newest events, good and bad, decoded only when they are shown.

The collector hands each request over after its commit, which takes a few microseconds with or without listeners.
`control.control_app` shows the feed as a page, as JSON and as server-sent events (Wire 5.2, Live feed).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, islice
from typing import Any, Final, Literal, get_args

import msgspec

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.collector.event_admission import broken_rules
from gamelens.sandbox.http.request_body import UndecodableBody, unpack
from gamelens.sandbox.storage.inbox import InboxBatch
from gamelens.wire.currencies import why_no_currency
from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_time import can_be_true, dated_by_arrival
from gamelens.wire.event_validator import STRICT, RejectedEvent, RequestPart
from gamelens.wire.limits import OLDEST_DAYS, USUAL_SESSION_S
from gamelens.wire.rule_checking import Violation

Status = Literal["accepted", "rejected"]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
UNKNOWN: Final = "unknown"
"""Common name of all categories that do not exist: a sender may invent any number."""
_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 10_000
FEED_EVENTS: Final = 1000
"""Events stored of each game and status, and most events that one message shows (Wire 5.2, Live feed).

There may be somewhat more stored, because whole requests are.
"""
FEED_BYTES: Final = 4 << 20
"""Bytes stored of each game and status, unless the newest request alone is larger."""
RESTORED_BYTES: Final = 32 << 20
"""Bytes read back from disk at a start."""
JUDGED_A_SECOND: Final = 1000
"""Accepted events judged by the strict rules in a second: a busy collector is not slowed down."""
STRICT_ERRORS: Final = 100
"""Different errors counted of each part of requests: a sender may invent any number of fields."""
REFUSED_REQUESTS: Final = 200
"""Refused requests that are stored (Wire 5.2, Live feed)."""
MAX_LISTENERS: Final = 64
"""Streams at a time (Wire 5.2, Live feed)."""

Source = tuple[str, Status]
"""Game key and status."""


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the live feed: its JSON as it was sent, and its violations, without any if it was accepted.

    It arrived in epoch seconds on the sandbox's clock. An accepted event has *strict_errors* if the strict rules would
    refuse it, and any event *remarks* if it is unlikely to be what was meant.
    """

    arrival_ts: int
    game_key: str
    status: Status
    event: msgspec.Raw
    errors: list[Violation] = []
    strict_errors: list[Violation] | msgspec.UnsetType = msgspec.UNSET
    remarks: list[str] | msgspec.UnsetType = msgspec.UNSET


class StrictErrors(msgspec.Struct, frozen=True):
    """The reasons why the strict rules would refuse an accepted event, which has a *number* in its request."""

    number: int
    category: str
    errors: list[Violation]


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was refused as a whole, and why, for the owner of the sandbox alone.

    *route* is `events`, `init`, `remote init` or another path as sent, *game_key* the key as sent, *game* the title of
    its game or None.
    """

    arrival_ts: int
    route: str
    game_key: str
    game: str | None
    status: int
    cause: str


class FeedRequest(msgspec.Struct, kw_only=True):
    """The accepted or the rejected events of one request, decoded only when they are shown.

    *number* is the order of arrival. Accepted events are in *body*, a JSON array, and judged by the strict rules when
    that is asked for first. A time of a device is used from *oldest_days* before the arrival on.
    """

    number: int
    oldest_days: int
    arrival_ms: int
    game_key: str
    status: Status
    events: int
    body: bytes = b""
    is_gzipped: bool = False
    rejected: list[RejectedEvent] = []
    judged: list[StrictErrors] | None = None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return len(self.body) + sum(len(memoryview(rejected.event)) for rejected in self.rejected)

    def feed_events(self) -> Iterator[FeedEvent]:
        """Yield the events of the request, newest first."""
        common: dict[str, Any] = {
            "arrival_ts": self.arrival_ms // 1000,
            "game_key": self.game_key,
            "status": self.status,
        }
        for rejected in reversed(self.rejected):
            event = rejected.event
            yield FeedEvent(**common, event=event, errors=rejected.errors, remarks=remarks(event) or msgspec.UNSET)
        if self.status == "accepted":
            errors = {strict.number: strict.errors for strict in self.strict_errors()}
            events = self._accepted()
            for number in reversed(range(len(events))):
                event = events[number]
                found = [*self._dated_by(event), *remarks(event)]
                more: dict[str, Any] = {"strict_errors": errors.get(number, msgspec.UNSET)}
                yield FeedEvent(**common, event=event, remarks=found or msgspec.UNSET, **more)

    def strict_errors(self) -> list[StrictErrors]:
        """Return why the strict rules would refuse accepted events of the request, for those that they would."""
        if self.judged is None:
            self.judged = list(_strict_errors(self._accepted()))
        return self.judged

    def _dated_by(self, event: msgspec.Raw) -> Iterator[str]:
        """Yield the remark of an accepted event that is dated by its arrival (Wire 4.1, Event time)."""
        client_ts = msgspec.json.decode(event, type=_Timed).client_ts
        known = client_ts if isinstance(client_ts, int) else None
        reason = dated_by_arrival(known, self.arrival_ms // 1000, oldest_days=self.oldest_days)
        if reason is not None:
            yield f"dated by arrival: {reason}"

    def _accepted(self) -> list[msgspec.Raw]:
        """Return the accepted events as sent, or none if they are damaged on disk, which processing reports."""
        try:
            body = unpack(self.body).content if self.is_gzipped else self.body
            return msgspec.json.decode(body, type=list[msgspec.Raw])
        except (UndecodableBody, msgspec.DecodeError):
            return []


class FeedFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of the live feed. None matches everything; the category `unknown` matches all that do not exist."""

    status: Status | None = None
    game_key: str | None = None
    category: str | None = None
    limit: int = _DEFAULT_LIMIT

    def may_match(self, game_key: str, status: Status) -> bool:
        """Return whether events of this game and status may pass the filter."""
        return self.status in (None, status) and self.game_key in (None, game_key)

    def select(self, requests: Iterable[FeedRequest]) -> Iterator[FeedEvent]:
        """Yield the events of *requests* that have the category, in their order."""
        for feed_event in chain.from_iterable(request.feed_events() for request in requests):
            category = None if self.category is None else category_of(feed_event.event)
            if category == self.category or (self.category == UNKNOWN and category not in CATEGORIES):
                yield feed_event


def parse_feed_filter(query: Mapping[str, str], *, game_keys: Iterable[str], limit: int = _DEFAULT_LIMIT) -> FeedFilter:
    """Read a filter from a query string, with *limit* by default. An empty parameter counts as absent.

    Raises:
        BadQuery: a parameter, status, game or limit does not exist.
    """
    parameters = {name: value for name, value in query.items() if value}
    for name, value in parameters.items():
        if name not in FeedFilter.__struct_fields__:
            raise BadQuery(name, value, "is not a parameter of the live feed", FeedFilter.__struct_fields__, name=name)
    for name, allowed in (("status", STATUSES), ("game_key", tuple(game_keys))):
        if name in parameters and parameters[name] not in allowed:
            raise BadQuery(name, parameters[name], "is not known to this sandbox", allowed)
    limit_text = parameters.pop("limit", str(limit))
    if not (limit_text.isascii() and limit_text.isdigit() and len(limit_text) < 9 and int(limit_text) <= _MAX_LIMIT):
        raise BadQuery("limit", limit_text, f"must be a whole number, 0 to {_MAX_LIMIT}")
    return msgspec.convert({**parameters, "limit": int(limit_text)}, FeedFilter)


class _Categorised(msgspec.Struct):
    category: Any = None


class _Timed(msgspec.Struct):
    client_ts: int | Literal[""] | None = None


class _Remarkable(_Categorised):
    length: Any = None
    currency: Any = None
    impression_data: Any = None


def category_of(event: msgspec.Raw) -> str | None:
    """Return the category that an event, good or bad, claims to have."""
    try:
        category = msgspec.json.decode(event, type=_Categorised).category
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return category if isinstance(category, str) else None


def _strict_errors(events: list[msgspec.Raw]) -> Iterator[StrictErrors]:
    """Yield the *events* that the strict rules would refuse."""
    if _are_strictly_good(*events):
        return
    for number, event in enumerate(events):
        if not _are_strictly_good(event):
            yield StrictErrors(number, category_of(event) or UNKNOWN, broken_rules(event, STRICT))


def _are_strictly_good(*events: msgspec.Raw) -> bool:
    try:
        STRICT.decode(b"[%b]" % b",".join(map(bytes, events)))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class _StrictCounts(msgspec.Struct):
    """Counts of one part of accepted requests: how many the strict rules judged and would refuse, and their errors."""

    judged: int = 0
    refused: int = 0
    errors: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, errors: Iterable[Violation]) -> None:
        names = [f"{violation.error_type} {violation.path}" for violation in errors]
        self.judged += 1
        self.refused += bool(names)
        self.errors.update(name for name in names if name in self.errors or len(self.errors) < STRICT_ERRORS)


def remarks(event: msgspec.Raw) -> list[str]:
    """Return what is unlikely about an *event*, good or bad."""
    content = bytes(event)
    if b"session_end" not in content and b"currency" not in content:
        return []
    try:
        told = msgspec.json.decode(content, type=_Remarkable)
    except msgspec.DecodeError:  # a bad event
        return []
    found: list[str] = []
    match told:
        case _Remarkable(category="session_end", length=int(length)) if length > USUAL_SESSION_S:
            lasted = f"{length:,} s, {length / USUAL_SESSION_S:,.1f} days"
            found.append(
                f"the session lasted {lasted}: length is the seconds of the session, not a time or milliseconds"
            )
        case _Remarkable(category="business", currency=code):
            found += filter(None, [why_no_currency(code)])
        case _Remarkable(category="impression", impression_data={"currency": code}):
            found += (f"it counts as an impression of 0: {reason}" for reason in filter(None, [why_no_currency(code)]))
    return found


class LiveFeed:
    """The newest events of each game, and their counts since *since_ts*, epoch seconds.

    A time of a device is used from *oldest_days* before the arrival on (Wire 4.1, Event time).

    A listener is what it has seen: the number of events of each game and status. It is woken by a change and reads
    what is `after` that, so nothing is stored for it.

    Attributes:
        titles: titles of the games, by game key.
        listeners: an event for each stream under way, set by every change.
        resets: how often the feed was cleared.
        is_closed: whether no further events follow.
    """

    def __init__(self, titles: Mapping[str, str], *, since_ts: int = 0, oldest_days: int = OLDEST_DAYS) -> None:
        self.titles = titles
        self.listeners: set[asyncio.Event] = set()
        self.resets = 0
        self.is_closed = False
        self._since_ts = since_ts
        self._oldest_days = oldest_days
        self._dated: Counter[str] = Counter()
        self._number = 0
        self._recent: defaultdict[Source, _RecentRequests] = defaultdict(_RecentRequests)
        self._counts: defaultdict[Source, Counter[str]] = defaultdict(Counter)
        self._strict: defaultdict[RequestPart, _StrictCounts] = defaultdict(_StrictCounts)
        self._strict_refusals: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._unjudged: list[FeedRequest] = []
        self._judged_in = (0, 0)  # a second, and the events judged in it
        self._refused_counts: Counter[int] = Counter()
        self._refused: deque[RefusedRequest] = deque(maxlen=REFUSED_REQUESTS)

    def record_batch(
        self,
        game_key: str,
        batch: InboxBatch,
        *,
        categories: Mapping[str, int],
        times: Sequence[int | None],
        rejected: list[RejectedEvent],
    ) -> None:
        """Add one request whose good events are on disk, with their number by category and the bad ones.

        *times* has the `client_ts` of each good event.
        """
        self._dated.update(self._dated_by(times, batch.arrival_ms // 1000))
        category_counts = self._counts[game_key, "accepted"]
        for category, events in categories.items():
            category_counts[category] += events
        for event in rejected:
            claimed = category_of(event.event)
            self._counts[game_key, "rejected"][claimed if claimed in CATEGORIES else UNKNOWN] += 1
        if accepted := self._store(game_key, batch, rejected):
            self._unjudged.append(accepted)
        self._wake_listeners()

    def _dated_by(self, times: Sequence[int | None], arrival_s: int) -> Iterator[str]:
        """Yield the reason of each of *times* that is not used. Mostly none is, which two comparisons show."""
        known = [time for time in times if time is not None]
        if len(known) == len(times) and all(
            can_be_true(edge, arrival_s, oldest_days=self._oldest_days) for edge in known and (min(known), max(known))
        ):
            return
        for client_ts in times:
            reason = dated_by_arrival(client_ts, arrival_s, oldest_days=self._oldest_days)
            if reason is not None:
                yield reason

    def record_strict(self, part: RequestPart, errors: list[Violation]) -> None:
        """Count what the strict rules say of headers or init of a request that was accepted."""
        self._strict[part].add(errors)

    def judge_recorded(self) -> None:
        """Judge the events recorded since the last call by the strict rules, as far as `JUDGED_A_SECOND` allows.

        One request in a second is always judged.
        """
        requests, self._unjudged = self._unjudged, []
        for request in requests:
            second = int(time.monotonic())
            judged = self._judged_in[1] if self._judged_in[0] == second else 0
            if judged and judged + request.events > JUDGED_A_SECOND:
                continue
            self._judged_in = second, judged + request.events
            refused = request.strict_errors()
            self._strict["events"].judged += request.events - len(refused)
            for strict in refused:
                self._strict["events"].add(strict.errors)
                self._strict_refusals[request.game_key][strict.category] += 1
            if refused:
                self._wake_listeners()

    def record_refused_request(self, refused: RefusedRequest) -> None:
        """Add a request that was refused as a whole."""
        self._refused_counts[refused.status] += 1
        self._refused.append(refused)
        self._wake_listeners()

    def refused_after(self, seen: int) -> list[RefusedRequest]:
        """Return the requests that were refused after the first *seen*, oldest first, as far as they are stored."""
        unseen = min(self.refused_total - seen, len(self._refused))
        return list(islice(self._refused, len(self._refused) - unseen, None))

    @property
    def refused_total(self) -> int:
        """The number of refused requests there were."""
        return self._refused_counts.total()

    def restore(self, stored: Iterable[tuple[str, InboxBatch]]) -> None:
        """Add events that earlier starts accepted, up to `RESTORED_BYTES`.

        *stored* yields game keys and batches, newest first.
        """
        batches: list[tuple[str, InboxBatch]] = []
        batch_bytes = 0
        for game_key, batch in stored:
            batches.append((game_key, batch))
            batch_bytes += len(batch.body)
            if batch_bytes > RESTORED_BYTES:
                break
        for game_key, batch in reversed(batches):
            self._store(game_key, batch, [])

    def newest(self, feed_filter: FeedFilter) -> list[FeedEvent]:
        """Return the newest events that pass *feed_filter*, newest first."""
        recent = [requests.newest_first() for source, requests in self._sources(feed_filter)]
        newest = merge(*recent, key=lambda request: -request.number)
        return list(islice(feed_filter.select(newest), feed_filter.limit))

    def seen(self) -> dict[Source, int]:
        """Return the number of all events there were, by game and status."""
        return {source: requests.total for source, requests in self._recent.items()}

    def after(self, seen: Mapping[Source, int], feed_filter: FeedFilter) -> tuple[list[FeedEvent], int]:
        """Return the events that came after *seen*, oldest first, and how many of them are left out.

        Left out are all but the newest `FEED_EVENTS`, and those that are no longer stored.
        """
        fresh: list[FeedRequest] = []
        count = 0
        for source, requests in self._sources(feed_filter):
            unseen = requests.total - seen.get(source, 0)
            count += unseen
            fresh += requests.newest_of(unseen)
        fresh.sort(key=lambda request: -request.number)
        feed_events = list(islice(feed_filter.select(fresh), FEED_EVENTS))
        shown = min(sum(request.events for request in fresh), FEED_EVENTS)
        return feed_events[::-1], count - shown

    def counts(self) -> dict[str, Any]:
        """Return the numbers of events since the start and of refused requests.

        Events are counted in total, by category and by game key, requests by status. `strict_refusals` are accepted
        events that the strict rules would refuse, of those that were judged; `strict` has them by error, with the same
        for headers and inits. `dated_by_arrival` are accepted events by the reason why they are dated by their arrival.
        """
        totals = _zeros()
        categories: dict[str, dict[str, int]] = {}
        by_game = {game_key: _zeros() for game_key in self.titles}
        for (game_key, status), counts in self._counts.items():
            for category, events in sorted(counts.items()):
                for sums in (totals, by_game[game_key], categories.setdefault(category, _zeros())):
                    sums[status] += events
        for game_key, refusals in self._strict_refusals.items():
            for category, events in refusals.items():
                for sums in (totals, by_game[game_key], categories.setdefault(category, _zeros())):
                    sums["strict_refusals"] += events
        games = {game_key: {"title": self.titles[game_key], **sums} for game_key, sums in by_game.items()}
        refused = {str(status): requests for status, requests in sorted(self._refused_counts.items())}
        return {
            "since_ts": self._since_ts,
            **totals,
            "categories": categories,
            "games": games,
            "refused": refused,
            "dated_by_arrival": dict(sorted(self._dated.items())),
            "strict": {part: msgspec.to_builtins(counts) for part, counts in self._strict.items()},
        }

    def listen(self) -> asyncio.Event:
        """Add a listener, which whoever called removes from `listeners` in the end.

        Raises:
            Refused: there are `MAX_LISTENERS` already.
        """
        if len(self.listeners) >= MAX_LISTENERS:
            raise Refused(f"the live feed has reached its limit of {MAX_LISTENERS} streams: close one, then try again")
        woken = asyncio.Event()
        self.listeners.add(woken)
        return woken

    def forget(self, *, since_ts: int) -> None:
        """Delete all events and counts, and count from *since_ts*."""
        self._since_ts = since_ts
        self._recent.clear()
        self._counts.clear()
        self._strict.clear()
        self._strict_refusals.clear()
        self._unjudged.clear()
        self._dated.clear()
        self._refused_counts.clear()
        self._refused.clear()
        self.resets += 1
        self._wake_listeners()

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        self._wake_listeners()

    def _wake_listeners(self) -> None:
        for woken in self.listeners:
            woken.set()

    def _sources(self, feed_filter: FeedFilter) -> list[tuple[Source, _RecentRequests]]:
        return [(source, requests) for source, requests in self._recent.items() if feed_filter.may_match(*source)]

    def _store(self, game_key: str, batch: InboxBatch, rejected: list[RejectedEvent]) -> FeedRequest | None:
        """Store one feed request for each status that occurs, and return the request of the accepted events."""
        common: dict[str, Any] = {
            "arrival_ms": batch.arrival_ms,
            "game_key": game_key,
            "oldest_days": self._oldest_days,
        }
        if rejected:
            self._number += 1
            self._recent[game_key, "rejected"].add(
                FeedRequest(**common, number=self._number, status="rejected", events=len(rejected), rejected=rejected)
            )
        if not batch.events:
            return None
        self._number += 1
        common |= {"body": batch.body, "is_gzipped": batch.is_gzipped}
        accepted = FeedRequest(**common, number=self._number, status="accepted", events=batch.events)
        self._recent[game_key, "accepted"].add(accepted)
        return accepted


class _RecentRequests:
    """The newest requests of one game and status. The last one stays, whatever its size."""

    def __init__(self) -> None:
        self.total = 0  # events there were
        self._requests: deque[FeedRequest] = deque()
        self._events = 0
        self._bytes = 0

    def newest_first(self) -> Iterator[FeedRequest]:
        return reversed(self._requests)

    def newest_of(self, events: int) -> Iterator[FeedRequest]:
        """Yield the requests with the newest *events* events, as far as they are stored."""
        for request in self.newest_first():
            if events <= 0:
                return
            yield request
            events -= request.events

    def add(self, request: FeedRequest) -> None:
        self._requests.append(request)
        self.total += request.events
        self._events += request.events
        self._bytes += request.size
        while len(self._requests) > 1 and (
            self._events - self._requests[0].events >= FEED_EVENTS or self._bytes > FEED_BYTES
        ):
            oldest = self._requests.popleft()
            self._events -= oldest.events
            self._bytes -= oldest.size


def _zeros() -> dict[str, int]:
    return dict.fromkeys((*STATUSES, "strict_refusals"), 0)
