"""Verification that the lake agrees with the inbox, by a second reading in plain Python.

It uses neither the engine nor the SQL of processing. Every event is read again, because an install may lie anywhere.
Compared are the counts of all days, all players, and each row of each table on a sample of days.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from zlib import decompress

import msgspec
import pyarrow.parquet as pq

from gamelens.errors import Refused
from gamelens.sandbox.processing.impression_fields import read_impression
from gamelens.sandbox.state_directory import check_state
from gamelens.sandbox.storage.inbox import InboxBatch, open_store, pending
from gamelens.sandbox.storage.lake import Lake, Snapshot, month_of
from gamelens.sandbox.storage.lake_schema import AGGREGATES, EVENT_COLUMNS, MEASURES, OF_EVENT, RETURN_DIMENSIONS
from gamelens.wire.limits import FUTURE_S

DAYS: Final = 7
"""Number of days of each organisation to compare row by row, by default."""
_LATEST_TS: Final = 99_999_999_999
_EVENTS_PER_BATCH: Final = 1 << 20
_EPOCH: Final = datetime(1970, 1, 1)  # UTC, without a zone as the lake keeps it
_COPIED: Final = (
    *("category", "user_id", "session_id", "event_uuid", "platform", "build"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
_ONE_CATEGORY: Final = {"ad_sdk_name": "ads", "ad_type": "ads", "ad_action": "ads", "severity": "error"}

_ORGANISATIONS: Final = "SELECT organisation FROM batches UNION SELECT organisation FROM files WHERE removed IS NULL"

Event = dict[str, Any]
Player = tuple[str, str]
Rows = Counter[tuple[Any, ...]]


class Difference(NamedTuple):
    """Rows of a table that the lake misses or has in surplus.

    Attributes:
        organisation: name of the organisation.
        table: table of the lake.
        where: day or part of the table, for people.
        missing: rows that the inbox implies and the lake lacks.
        surplus: rows that the lake has beyond them.
    """

    organisation: str
    table: str
    where: str
    missing: int
    surplus: int

    def __str__(self) -> str:
        return f"{self.organisation}: {self.table} {self.where}: {self.missing} rows missing, {self.surplus} too many"


class VerificationResult(msgspec.Struct, frozen=True):
    """The extent of a verification and the differences it found.

    Attributes:
        events: number of events read from the inbox.
        players: number of players.
        days: organisations and days compared row by row.
        differences: the differences, empty if lake and inbox agree.
    """

    events: int
    players: int
    days: list[str]
    differences: list[Difference]


def verify(state: Path, *, days: int = DAYS, seed: int | None = None) -> VerificationResult:
    """Compare the lake of *state* with its inbox, while a sandbox may be running on it.

    Args:
        state: state directory.
        days: number of days of each organisation to compare row by row.
        seed: seed of the choice of days.

    Raises:
        Refused: there is no sandbox, its lake was filled without an inbox, or a batch or file cannot be read.
    """
    check_state(state)
    store = open_store(state / "gamelens.db")
    try:
        lake = Lake(state / "lake", store)
        if lake.is_written():
            raise Refused(f"the lake of {state} was written, not received: it has no raw events to be compared with")
        names = [name for (name,) in store.execute(_ORGANISATIONS)]
        last_batch = lake.last_run().last_batch
        snapshots = {name: lake.snapshot(name) for name in names}
        events = players = 0
        differences: list[Difference] = []
        compared_days: list[str] = []
        for name, snapshot in snapshots.items():
            days_there = sorted(day for day in snapshot.days if day)
            sample = set(Random(seed).sample(days_there, min(days, len(days_there))))  # noqa: S311
            expected = _ExpectedTables(pending(store, after=0, up_to=last_batch, organisation=name), sample)
            events += sum(expected.counts.values())
            players += len(expected.installs)
            compared_days += [f"{name} {day}" for day in sorted(sample)]
            differences += _compare_tables(name, expected, snapshot, sorted(sample))
        return VerificationResult(events, players, compared_days, differences)
    except (OSError, ValueError, sqlite3.Error, msgspec.DecodeError) as error:
        raise Refused(f"cannot be verified: {error}") from error
    finally:
        store.close()


class _ExpectedTables:
    """Events and players of one organisation, read from its inbox.

    Attributes:
        counts: number of events of each day.
        events: all events of the days of the sample.
        installs: earliest event of each player.
        purchases: earliest purchase of each player.
    """

    def __init__(self, batches: Iterable[InboxBatch], sample: set[date]) -> None:
        self.counts: Counter[date] = Counter()
        self.events: dict[date, list[Event]] = defaultdict(list)
        self.installs: dict[Player, Event] = {}
        self.purchases: dict[Player, Event] = {}
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
    latest = min(_LATEST_TS, batch.arrival_ms // 1000 + FUTURE_S)
    ms = client_ts * 1000 if client_ts is not None and 0 <= client_ts <= latest else batch.arrival_ms
    ts = _EPOCH + timedelta(milliseconds=ms)
    category = event["category"]
    row: Event = dict.fromkeys(EVENT_COLUMNS)
    row |= {"seq": seq, "ts": ts, "day": ts.date(), "game_id": batch.game_id}
    row |= {name: event.get(name) for name in _COPIED}
    row |= {name: event[name] for name, only in _ONE_CATEGORY.items() if category == only}
    row["country_code"] = event["country_code"].upper() if event.get("country_code") else batch.country
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


def _compare_tables(name: str, expected: _ExpectedTables, snapshot: Snapshot, days: list[date]) -> Iterator[Difference]:
    counted = Counter({day: pq.read_metadata(path).num_rows for day, path in snapshot.days.items() if day})
    for day in sorted(expected.counts.keys() | counted.keys()):
        if expected.counts[day] != counted[day]:
            more = counted[day] - expected.counts[day]
            yield Difference(name, "events", f"of {day}", max(0, -more), max(0, more))
    players = pq.read_table(snapshot.players).to_pylist() if snapshot.players else []
    numbers = {(row["game_id"], row["user_id"]): row["player"] for row in players}
    yield from _difference(name, "players", "all", _player_rows(expected), _count_rows(players, _PLAYER_FIELDS))
    yield from _difference(
        name,
        "players",
        "by number",
        Counter((number,) for number in set(numbers.values())),
        _count_rows(players, ["player"]),
    )
    for day in days:
        events = expected.events[day]
        tables = {"events": Counter(tuple(event[column] for column in EVENT_COLUMNS) for event in events)}
        tables |= {aggregate.name: _aggregate_rows(aggregate.name, events, numbers) for aggregate in AGGREGATES}
        tables["returns"] = _return_rows(day, events, expected)
        fields = {"events": list(EVENT_COLUMNS), "returns": ["day", "age", *RETURN_DIMENSIONS, "players"]}
        for aggregate in AGGREGATES:
            fields[aggregate.name] = ["day", *aggregate.dimensions, *aggregate.keys, *MEASURES, "seconds", "money"]
        for table, rows in tables.items():
            path = snapshot.tables[table].get(day if table == "events" else month_of(day))
            stored = pq.read_table(path, filters=[("day", "=", day)]).to_pylist() if path else []
            yield from _difference(name, table, f"of {day}", rows, _count_rows(stored, fields[table]))


def _difference(name: str, table: str, where: str, expected: Rows, found: Rows) -> Iterator[Difference]:
    missing, surplus = expected - found, found - expected
    if missing or surplus:
        yield Difference(name, table, where, missing.total(), surplus.total())


def _count_rows(rows: list[dict[str, Any]], fields: list[str]) -> Rows:
    return Counter(tuple(row[field] for field in fields) for row in rows)


_PLAYER_FIELDS: Final = [
    *("game_id", "user_id", "installed_at", "install_seq", *(f"install_{name}" for name in OF_EVENT)),
    *("paid_at", "paid_seq", *(f"paid_{name}" for name in OF_EVENT)),
]


def _player_rows(expected: _ExpectedTables) -> Rows:
    no_purchase: Mapping[str, Any] = dict.fromkeys(EVENT_COLUMNS)
    wanted = ("ts", "seq", *OF_EVENT)
    return Counter(
        (
            *player,
            *(install[name] for name in wanted),
            *(expected.purchases.get(player, no_purchase)[name] for name in wanted),
        )
        for player, install in expected.installs.items()
    )


def _aggregate_rows(name: str, events: list[Event], numbers: Mapping[Player, int]) -> Rows:
    aggregate = next(aggregate for aggregate in AGGREGATES if aggregate.name == name)
    groups: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in events:
        is_purchase = event["category"] == "business"
        player = None if event["user_id"] is None else numbers.get((event["game_id"], event["user_id"]), -1)
        keys = {"currency": event["currency"] if name != "active" or is_purchase else None, "player": player}
        keys["session_id"] = event["session_id"]
        values = (event[dimension] for dimension in aggregate.dimensions)
        groups[event["day"], *values, *(keys[key] for key in aggregate.keys)].append(event)
    return Counter((*group, *_measures(name, members)) for group, members in groups.items())


def _measures(name: str, events: list[Event]) -> tuple[int | None, ...]:
    categories = Counter(event["category"] for event in events)
    shown = sum(event["category"] == "ads" and event["ad_action"] == "show" for event in events)
    seconds = [event["length"] for event in events if event["category"] == "session_end"]
    paid_categories = {"active": ("business",), "sessions": ()}.get(name, ("business", "impression"))
    money = [event["money"] for event in events if event["category"] in paid_categories]
    counts = len(events), shown, categories["business"], categories["impression"], categories["session_end"]
    return *counts, sum(seconds) if seconds else None, sum(money) if money else None


def _return_rows(day: date, events: list[Event], expected: _ExpectedTables) -> Rows:
    players = {(event["game_id"], event["user_id"]) for event in events if event["user_id"] is not None}
    installs = [expected.installs[player] for player in players]
    groups = Counter(
        ((day - install["day"]).days, *(install[name] for name in RETURN_DIMENSIONS)) for install in installs
    )
    return Counter((day, *group, count) for group, count in groups.items())
