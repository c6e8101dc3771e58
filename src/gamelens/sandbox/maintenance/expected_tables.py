"""Tables that the inbox implies, computed in plain Python without the engine.

Verification compares the lake with them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Any, Final
from zlib import decompress

import msgspec

from gamelens.sandbox.processing.impression_fields import read_impression
from gamelens.sandbox.storage.inbox import InboxBatch

# The lists of the lake are written again here: with those of `lake_schema`, a column that processing forgets would be
# forgotten here as well.
EVENT_DIMENSIONS: Final = (
    *("game_id", "country_code", "platform", "build", "category"),
    *("ad_sdk_name", "ad_type", "ad_action", "severity"),
    *("ilrd_sdk_vendor", "ilrd_adunit_name", "ilrd_network_name", "ilrd_adunit_format"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
EVENT_COLUMNS: Final = (
    *("seq", "ts", "day", *EVENT_DIMENSIONS),
    *("user_id", "session_id", "event_uuid", "ilrd_id", "length", "money", "currency", "arrived_at"),
    *("event_id", "custom_01", "custom_02", "custom_03", "device", "os_version"),
)
SLIM_DIMENSIONS: Final = ("game_id", "country_code", "platform", "build", "category")
CUBE_DIMENSIONS: Final = EVENT_DIMENSIONS[:13]
PLAYER_DIMENSIONS: Final = (
    *("game_id", "country_code", "platform", "build", "install_publisher", "ab_id", "ab_variant_id"),
)
RETURN_DIMENSIONS: Final = ("game_id", "country_code", "platform", "build")
OF_FIRST: Final = ("ts", "seq", *EVENT_DIMENSIONS[1:])
"""Columns of a player's first event."""
_MEMBER: Final = ("day", *PLAYER_DIMENSIONS, "currency")
_SUMS: Final = ("events", "shown", "purchases", "impressions", "ended", "seconds", "money")
KEYS_AND_SUMS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "events": (EVENT_COLUMNS, ()),
    "slim": (("day", *SLIM_DIMENSIONS, "currency"), _SUMS),
    "cube": (("day", *CUBE_DIMENSIONS, "currency"), _SUMS),
    "active": ((*_MEMBER, "user_id"), (*_SUMS, "counts")),
    "daily_players": (_MEMBER, (*_SUMS, "players", "returners")),
    "daily_players_shared": ((*_MEMBER, "user_id"), ("counts", "returners")),
    "weekly_players": (_MEMBER, ("players",)),
    "weekly_players_shared": ((*_MEMBER, "user_id"), ("counts",)),
    "monthly_players": (_MEMBER, ("players",)),
    "monthly_players_shared": ((*_MEMBER, "user_id"), ("counts",)),
    "sessions": (("day", *PLAYER_DIMENSIONS), ("sessions", "ended_sessions")),
    "sessions_shared": (("day", *PLAYER_DIMENSIONS, "session_id"), ("counts", "ended_counts")),
    "impressions_shared": (("day", *EVENT_DIMENSIONS, "ilrd_id"), ()),
    "returns": (("day", "age", *RETURN_DIMENSIONS), ("players",)),
}
"""Columns of each compared table that tell its rows apart, and those that are added up."""

_FUTURE_S: Final = 24 * 3600
_LATEST_TS: Final = 99_999_999_999
_EVENTS_PER_BATCH: Final = 1 << 20
_EPOCH: Final = datetime(1970, 1, 1)  # UTC, without a zone as the lake keeps it
_COPIED: Final = (
    *("category", "user_id", "session_id", "event_uuid", "platform", "build"),
    *("install_publisher", "ab_id", "ab_variant_id"),
    *("custom_01", "custom_02", "custom_03", "device", "os_version"),
)
_NAMED: Final = ("business", "design", "progression", "resource")
_ONE_CATEGORY: Final = {"ad_sdk_name": "ads", "ad_type": "ads", "ad_action": "ads", "severity": "error"}

_PAID: Final = ("business", "impression")
_WHOLE: Final = ("weekly_players", "monthly_players", "sessions")

Event = dict[str, Any]
Player = tuple[str, str]
Cell = tuple[Any, ...]
Rows = Counter[Cell]


class ExpectedTables:
    """Events and players of one organisation, read from its inbox.

    Attributes:
        counts: number of events of each day.
        events: all events of the days of the sample.
        installs: earliest event of each player.
        purchases: earliest purchase of each player.
        members: cells of each player and week, each player and month, and each session, by table.
        ended: cells of each session in which it ended.
        impressions: number of events of each vendor's id of an impression.
    """

    def __init__(self, batches: Iterable[InboxBatch], sample: set[date]) -> None:
        self.counts: Counter[date] = Counter()
        self.events: dict[date, list[Event]] = defaultdict(list)
        self.installs: dict[Player, Event] = {}
        self.purchases: dict[Player, Event] = {}
        self.members: dict[str, dict[Cell, set[Cell]]] = {name: defaultdict(set) for name in _WHOLE}
        self.ended: dict[Cell, set[Cell]] = defaultdict(set)
        self.impressions: Counter[tuple[str, str]] = Counter()
        seen: set[tuple[str, str]] = set()
        for event in _read_events(batches):
            key = (event["game_id"], event["event_uuid"])
            if event["event_uuid"] is not None and key in seen:
                continue
            seen.add(key)
            self.counts[event["day"]] += 1
            if event["day"] in sample:
                self.events[event["day"]].append(event)
            if event["user_id"] is not None:
                player = (event["game_id"], event["user_id"])
                _keep_earliest(self.installs, player, event)
                if event["category"] == "business":
                    _keep_earliest(self.purchases, player, event)
            self._add_memberships(event)

    def _add_memberships(self, event: Event) -> None:
        game, user, session, day = event["game_id"], event["user_id"], event["session_id"], event["day"]
        cell = tuple(event[name] for name in PLAYER_DIMENSIONS)
        for table, first in (
            ("weekly_players", day - timedelta(days=day.weekday())),
            ("monthly_players", day.replace(day=1)),
        ):
            if user is not None:
                self.members[table][first, game, user].add((first, *cell, _purchase_currency(event)))
        if session is not None:
            self.members["sessions"][game, session].add((day, *cell))
            if event["category"] == "session_end":
                self.ended[game, session].add((day, *cell))
        if event["category"] == "impression":
            self.impressions[game, event["ilrd_id"]] += 1


def _keep_earliest(firsts: dict[Player, Event], player: Player, event: Event) -> None:
    first = firsts.get(player)
    if first is None or (event["ts"], event["seq"]) < (first["ts"], first["seq"]):
        firsts[player] = event


def _read_events(batches: Iterable[InboxBatch]) -> Iterator[Event]:
    for batch in batches:
        body = decompress(batch.body, wbits=31) if batch.is_gzipped else batch.body
        for position, event in enumerate(msgspec.json.decode(body, type=list[dict[str, Any]])):
            yield _event_row(event, batch, seq=batch.id * _EVENTS_PER_BATCH + position)


def _event_row(event: dict[str, Any], batch: InboxBatch, *, seq: int) -> Event:
    """Return an event as a row with the columns of the lake."""
    client_ts = event.get("client_ts")
    latest = min(_LATEST_TS, batch.arrival_ms // 1000 + _FUTURE_S)
    ms = client_ts * 1000 if client_ts is not None and 0 <= client_ts <= latest else batch.arrival_ms
    ts = _EPOCH + timedelta(milliseconds=ms)
    category = event["category"]
    row: Event = dict.fromkeys(EVENT_COLUMNS)
    row |= {"seq": seq, "ts": ts, "day": ts.date(), "game_id": batch.game_id}
    row["arrived_at"] = _EPOCH + timedelta(milliseconds=batch.arrival_ms)
    row |= {name: event.get(name) for name in _COPIED}
    row |= {name: event[name] for name, only in _ONE_CATEGORY.items() if category == only}
    row["country_code"] = event["country_code"].upper() if event.get("country_code") else batch.country
    if category in _NAMED:
        row["event_id"] = event["event_id"]
    if category == "session_end":
        row["length"] = event["length"]
    if category == "business":
        row |= {"money": event["amount"], "currency": event["currency"]}
    if category == "impression":
        impression = read_impression(event["ad_network_name"], event["impression_data"])
        row |= {"ilrd_sdk_vendor": event["ad_network_name"], "ilrd_network_name": impression.network}
        row |= {"ilrd_adunit_name": impression.unit, "ilrd_adunit_format": impression.format}
        uuid = event.get("event_uuid")
        row["ilrd_id"] = f"i{impression.id}" if impression.id is not None else f"s{seq}" if uuid is None else f"u{uuid}"
        row |= {"money": impression.nanos, "currency": impression.currency}
    return row


def tables_of_day(day: date, expected: ExpectedTables) -> dict[str, Rows]:
    """Return the rows that the tables must have for *day*, added up."""
    events = expected.events[day]
    by_user: dict[Player, set[Cell]] = defaultdict(set)
    for event in events:
        if event["user_id"] is not None:
            by_user[event["game_id"], event["user_id"]].add(_cell(event, (*PLAYER_DIMENSIONS, "purchase")))
    returning = {player for player in by_user if expected.installs[player]["day"] < day}
    cells = Counter(cell for own in by_user.values() for cell in own)
    returners = Counter(cell for player in returning for cell in by_user[player])
    shared = [
        (*cell, player[1], 1, int(player in returning))
        for player, own in by_user.items()
        if len(own) > 1
        for cell in own
    ]
    daily = _grouped(events, (*PLAYER_DIMENSIONS, "purchase"), ("business",))
    repeated = [
        event
        for event in events
        if event["category"] == "impression" and expected.impressions[event["game_id"], event["ilrd_id"]] > 1
    ]
    return {
        "events": Counter(tuple(event[column] for column in EVENT_COLUMNS) for event in events),
        "slim": _flat(_grouped(events, (*SLIM_DIMENSIONS, "currency"), _PAID)),
        "cube": _flat(_grouped(events, (*CUBE_DIMENSIONS, "currency"), _PAID)),
        "active": Counter(
            (*key, *sums, int(key[-1] is not None))
            for key, sums in _grouped(events, (*PLAYER_DIMENSIONS, "purchase", "user_id"), ("business",)).items()
        ),
        "daily_players": Counter((*key, *sums, cells[key], returners[key]) for key, sums in daily.items()),
        "daily_players_shared": Counter(shared),
        "impressions_shared": Counter(
            (day, *(event[name] for name in EVENT_DIMENSIONS), event["ilrd_id"]) for event in repeated
        ),
        "returns": _return_rows(day, events, expected),
    }


def _cell(event: Event, names: Iterable[str]) -> Cell:
    return (event["day"], *(_purchase_currency(event) if name == "purchase" else event[name] for name in names))


def _purchase_currency(event: Event) -> str | None:
    return event["currency"] if event["category"] == "business" else None


def _flat(groups: dict[Cell, Cell]) -> Rows:
    return Counter((*key, *sums) for key, sums in groups.items())


def _grouped(events: list[Event], names: tuple[str, ...], paid: tuple[str, ...]) -> dict[Cell, Cell]:
    """Return the measures, seconds and money of *paid* categories of the events of each cell."""
    groups: dict[Cell, list[Event]] = defaultdict(list)
    for event in events:
        groups[_cell(event, names)].append(event)
    return {cell: _measures(members, paid) for cell, members in groups.items()}


def _measures(events: list[Event], paid: tuple[str, ...]) -> Cell:
    categories = Counter(event["category"] for event in events)
    shown = sum(event["category"] == "ads" and event["ad_action"] == "show" for event in events)
    counts = len(events), shown, categories["business"], categories["impression"], categories["session_end"]
    seconds = sum_known(event["length"] for event in events if event["category"] == "session_end")
    return *counts, seconds, sum_known(event["money"] for event in events if event["category"] in paid)


def _return_rows(day: date, events: list[Event], expected: ExpectedTables) -> Rows:
    players = {(event["game_id"], event["user_id"]) for event in events if event["user_id"] is not None}
    installs = [expected.installs[player] for player in players]
    groups = Counter(
        ((day - install["day"]).days, *(install[name] for name in RETURN_DIMENSIONS)) for install in installs
    )
    return Counter((day, *group, count) for group, count in groups.items())


def sum_known(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the known *numbers*, None if there are none."""
    known = [int(number) for number in numbers if number is not None]
    return sum(known) if known else None
