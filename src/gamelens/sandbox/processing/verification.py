"""Whether the lake says what the inbox says: a second reading of every batch, in plain Python, beside the files.

Nothing of processing is used here, neither its engine nor its SQL. Every event is read again, since an install may
lie anywhere; counts of all days and all players are compared, and of a sample of days each row of each table.
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
_LATEST_TS: Final = 99_999_999_999
_PLACES: Final = 1 << 20
_EPOCH: Final = datetime(1970, 1, 1)  # UTC, without a zone as the lake keeps it
_COPIED: Final = (
    *("category", "user_id", "session_id", "event_uuid", "platform", "build"),
    *("install_publisher", "ab_id", "ab_variant_id"),
)
_ONLY_OF: Final = {"ad_sdk_name": "ads", "ad_type": "ads", "ad_action": "ads", "severity": "error"}

_ORGANISATIONS: Final = "SELECT organisation FROM batches UNION SELECT organisation FROM files WHERE removed IS NULL"

Event = dict[str, Any]
Player = tuple[str, str]
Rows = Counter[tuple[Any, ...]]


class Difference(NamedTuple):
    """Something the lake says and the inbox does not, or the other way round."""

    organisation: str
    table: str
    where: str
    missing: int
    surplus: int

    def __str__(self) -> str:
        return f"{self.organisation}: {self.table} {self.where}: {self.missing} rows missing, {self.surplus} too many"


class VerificationResult(msgspec.Struct, frozen=True):
    """What was looked at, and what differs."""

    events: int
    players: int
    days: list[str]
    differences: list[Difference]


def verify(state: Path, *, days: int = DAYS, seed: int | None = None) -> VerificationResult:
    """Compare the lake of *state*, served or not, with its inbox; of *days* days row by row, which *seed* chooses.

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
        looked_at: list[str] = []
        for name, snapshot in snapshots.items():
            known = sorted(day for day in snapshot.days if day)
            sample = set(Random(seed).sample(known, min(days, len(known))))  # noqa: S311
            truth = _ExpectedTables(pending(store, after=0, up_to=last_batch, organisation=name), sample)
            events += sum(truth.counts.values())
            players += len(truth.installs)
            looked_at += [f"{name} {day}" for day in sorted(sample)]
            differences += _compare(name, truth, snapshot, sorted(sample))
        return VerificationResult(events, players, looked_at, differences)
    except (OSError, ValueError, sqlite3.Error, msgspec.DecodeError) as error:
        raise Refused(f"cannot be verified: {error}") from error
    finally:
        store.close()


class _ExpectedTables:
    """What happened in one organisation: how much on each day, all events of some days, every player's two firsts."""

    def __init__(self, batches: Iterable[InboxBatch], sample: set[date]) -> None:
        self.counts: Counter[date] = Counter()
        self.events: dict[date, list[Event]] = defaultdict(list)
        self.installs: dict[Player, Event] = {}
        self.purchases: dict[Player, Event] = {}
        seen: set[tuple[str, str]] = set()
        for event in _events(batches):
            named = (event["game_id"], event["event_uuid"])
            if event["event_uuid"] is not None and named in seen:
                continue
            seen.add(named)
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


def _events(batches: Iterable[InboxBatch]) -> Iterator[Event]:
    for batch in batches:
        body = decompress(batch.body, wbits=31) if batch.is_gzipped else batch.body
        for place, event in enumerate(msgspec.json.decode(body, type=list[dict[str, Any]])):
            yield _row(event, batch, seq=batch.id * _PLACES + place)


def _row(event: dict[str, Any], batch: InboxBatch, *, seq: int) -> Event:
    """One event with the columns of the lake."""
    told = event.get("client_ts")
    latest = min(_LATEST_TS, batch.arrival_ms // 1000 + FUTURE_S)
    ms = told * 1000 if told is not None and 0 <= told <= latest else batch.arrival_ms
    ts = _EPOCH + timedelta(milliseconds=ms)
    category = event["category"]
    row: Event = dict.fromkeys(EVENT_COLUMNS)
    row |= {"seq": seq, "ts": ts, "day": ts.date(), "game_id": batch.game_id}
    row |= {name: event.get(name) for name in _COPIED}
    row |= {name: event[name] for name, only in _ONLY_OF.items() if category == only}
    row["country_code"] = event["country_code"].upper() if event.get("country_code") else batch.country
    if category == "session_end":
        row["length"] = event["length"]
    if category == "business":
        row |= {"money": event["amount"], "currency": event["currency"]}
    if category == "impression":
        made = read_impression(event["ad_network_name"], event["impression_data"])
        row |= {"ilrd_sdk_vendor": event["ad_network_name"], "ilrd_network_name": made.network}
        row |= {"ilrd_adunit_name": made.unit, "ilrd_adunit_format": made.format}
        uuid = event.get("event_uuid")
        row["ilrd_id"] = f"i{made.id}" if made.id is not None else f"s{seq}" if uuid is None else f"u{uuid}"
        row |= {"money": made.nanos, "currency": made.currency}
    return row


def _compare(name: str, truth: _ExpectedTables, snapshot: Snapshot, days: list[date]) -> Iterator[Difference]:
    counted = Counter({day: pq.read_metadata(path).num_rows for day, path in snapshot.days.items() if day})
    for day in sorted(truth.counts.keys() | counted.keys()):
        if truth.counts[day] != counted[day]:
            more = counted[day] - truth.counts[day]
            yield Difference(name, "events", f"of {day}", max(0, -more), max(0, more))
    found = pq.read_table(snapshot.players).to_pylist() if snapshot.players else []
    numbers = {(row["game_id"], row["user_id"]): row["player"] for row in found}
    yield from _differs(name, "players", "all", _players(truth), _chosen(found, _PLAYER_FIELDS))
    yield from _differs(
        name, "players", "by number", Counter((number,) for number in set(numbers.values())), _chosen(found, ["player"])
    )
    for day in days:
        events = truth.events[day]
        expected = {"events": Counter(tuple(event[column] for column in EVENT_COLUMNS) for event in events)}
        expected |= {aggregate.name: _aggregate(aggregate.name, events, numbers) for aggregate in AGGREGATES}
        expected["returns"] = _returns(day, events, truth)
        fields = {"events": list(EVENT_COLUMNS), "returns": ["day", "age", *RETURN_DIMENSIONS, "players"]}
        for aggregate in AGGREGATES:
            fields[aggregate.name] = ["day", *aggregate.dimensions, *aggregate.keys, *MEASURES, "seconds", "money"]
        for table, rows in expected.items():
            path = snapshot.tables[table].get(day if table == "events" else month_of(day))
            there = pq.read_table(path, filters=[("day", "=", day)]).to_pylist() if path else []
            yield from _differs(name, table, f"of {day}", rows, _chosen(there, fields[table]))


def _differs(name: str, table: str, where: str, expected: Rows, found: Rows) -> Iterator[Difference]:
    missing, surplus = expected - found, found - expected
    if missing or surplus:
        yield Difference(name, table, where, missing.total(), surplus.total())


def _chosen(rows: list[dict[str, Any]], fields: list[str]) -> Rows:
    return Counter(tuple(row[field] for field in fields) for row in rows)


_PLAYER_FIELDS: Final = [
    *("game_id", "user_id", "installed_at", "install_seq", *(f"install_{name}" for name in OF_EVENT)),
    *("paid_at", "paid_seq", *(f"paid_{name}" for name in OF_EVENT)),
]


def _players(truth: _ExpectedTables) -> Rows:
    nothing: Mapping[str, Any] = dict.fromkeys(EVENT_COLUMNS)
    wanted = ("ts", "seq", *OF_EVENT)
    return Counter(
        (*player, *(install[name] for name in wanted), *(truth.purchases.get(player, nothing)[name] for name in wanted))
        for player, install in truth.installs.items()
    )


def _aggregate(name: str, events: list[Event], numbers: Mapping[Player, int]) -> Rows:
    aggregate = next(it for it in AGGREGATES if it.name == name)
    groups: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in events:
        is_purchase = event["category"] == "business"
        player = None if event["user_id"] is None else numbers.get((event["game_id"], event["user_id"]), -1)
        keys = {"currency": event["currency"] if name != "active" or is_purchase else None, "player": player}
        keys["session_id"] = event["session_id"]
        values = (event[dimension] for dimension in aggregate.dimensions)
        groups[event["day"], *values, *(keys[key] for key in aggregate.keys)].append(event)
    return Counter((*group, *_measures(name, inside)) for group, inside in groups.items())


def _measures(name: str, events: list[Event]) -> tuple[int | None, ...]:
    categories = Counter(event["category"] for event in events)
    shown = sum(event["category"] == "ads" and event["ad_action"] == "show" for event in events)
    seconds = [event["length"] for event in events if event["category"] == "session_end"]
    earning = {"active": ("business",), "sessions": ()}.get(name, ("business", "impression"))
    money = [event["money"] for event in events if event["category"] in earning]
    counts = len(events), shown, categories["business"], categories["impression"], categories["session_end"]
    return *counts, sum(seconds) if seconds else None, sum(money) if money else None


def _returns(day: date, events: list[Event], truth: _ExpectedTables) -> Rows:
    players = {(event["game_id"], event["user_id"]) for event in events if event["user_id"] is not None}
    installs = [truth.installs[player] for player in players]
    groups = Counter(((day - it["day"]).days, *(it[name] for name in RETURN_DIMENSIONS)) for it in installs)
    return Counter((day, *group, count) for group, count in groups.items())
