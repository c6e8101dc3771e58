"""Events with planted causes, the lake that has them, and the answers of a service that counts by other rules.

The answers are counted in plain Python from the list of events, so that they share nothing with the recounts.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pandas as pd

from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.raw_events.reconciliation.reconcile import Reconciliation
from gamelens.receipts import RECEIPT
from gamelens.sandbox.imports.import_run import ImportOptions, import_raw_events
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import export_raw, load_scenario
from support.sandbox_stage import Stage

FIRST: Final = datetime(2026, 10, 1, tzinfo=UTC)
DAYS: Final = 10
COUNTED: Final = (2, 9)
"""The days that are compared, the last one excluded: days without an edge of the data."""
DAY_S: Final = 86_400
CUT_S: Final = int((FIRST + timedelta(days=9, hours=2)).timestamp())
"""When an answer `as of` was made."""
LATER: Final = "2026-11-01T00:00:00Z"
OVER: Final = f"{FIRST + timedelta(days=COUNTED[0]):%Y-%m-%d}/{FIRST + timedelta(days=COUNTED[1]):%Y-%m-%d}"

CAUSES: Final = (
    *("as of", "closed", "arrival", "duplicates", "skew", "zone", "summer time"),
    *("networks", "bots", "first", "last", "approximate"),
)
ZONES: Final = {"zone": "Asia/Tokyo", "summer time": "Australia/Sydney"}
"""Zones of a service's days. Sydney changes its clocks on the second of the compared days."""
LEAST: Final = 0.95
"""Share of a difference that must go to the right cause."""
NAMES: Final = {
    "as of": "late arrivals",
    "closed": "late arrivals",
    "arrival": "client time against arrival day",
    "duplicates": "duplicates without event_uuid",
    "skew": "clock skew",
    "zone": "time zone",
    "summer time": "time zone",
    "networks": "undisclosed networks",
    "bots": "bots",
    "first": "dimension of the first or last event",
    "last": "dimension of the first or last event",
    "approximate": "approximate unique counts",
}
"""The name of each planted cause in a result."""


class Happened(NamedTuple):
    """One event as it happened, as its device dated it, and as it arrived."""

    user: str
    session: str
    category: str
    true_s: int
    client_s: int
    arrival_s: int
    country: str
    network: str | None
    is_disclosed: bool
    cents: int
    uuid: str | None
    is_copy: bool
    is_bot: bool


def happened_events(seed: int, *, players: int = 150) -> list[Happened]:
    """Return the events of *players* over ten days, with every cause planted."""
    chance = random.Random(seed)
    begins = int(FIRST.timestamp())
    events: list[Happened] = []
    for number in range(players):
        skew_s = chance.choice((5, 7, 9)) * 3600 if chance.random() < 0.08 else 0
        home = chance.choices(("US", "DE", "BR", "JP"), (5, 3, 2, 2))[0]
        travels = chance.random() < 0.25
        for day in range(DAYS):
            if chance.random() < 0.4:
                continue
            for _ in range(chance.choice((1, 1, 2, 3))):
                start = begins + day * DAY_S + chance.randrange(DAY_S)
                country = chance.choice(("FR", "GB")) if travels and chance.random() < 0.5 else home
                events += _session(chance, f"u{number}", start, country, skew_s)
    for number in range(3):
        for hour in range(DAYS * 24):
            start = begins + hour * 3600 + 60 * number
            events += _session(chance, f"bot{number}", start, "US", 0, is_bot=True)
    return events


def simulated_events(seed: int, folder: Path, *, players: int) -> list[Happened]:
    """Return the last ten days of *players* of the scenario `small`, with every cause planted in their events.

    *folder* is an empty one for the export that they are read from.
    """
    scenario = load_scenario("small", players=players, seed=seed)
    export_raw(scenario, folder, "raw-json", ends_on=(FIRST + timedelta(days=DAYS)).date())
    lines = [
        json.loads(line) for path in folder.rglob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    begins = int(FIRST.timestamp())
    lines = [line for line in lines if line["data"]["client_ts"] >= begins and line["game_id"] == 1001]
    plants = _Plants(seed)
    events = [event for line in lines for event in plants.planted(line)]
    chance = random.Random(seed)
    for hour in range(DAYS * 24):
        events += _session(chance, "bot", begins + hour * 3600, "US", 0, is_bot=True)
    return events


class _Plants:
    """The causes that are planted in simulated events: by player, by session, and by event."""

    def __init__(self, seed: int) -> None:
        self._seed, self._chance = seed, random.Random(seed)

    def planted(self, line: dict[str, Any]) -> Iterator[Happened]:
        """Yield the event of *line* as it is planted, and its copy where it has one."""
        data = line["data"]
        of_user, of_session = (random.Random(f"{self._seed} {data[name]}") for name in ("user_id", "session_id"))
        skew_s = of_user.choice((5, 7, 9)) * 3600 if of_user.random() < 0.08 else 0
        travels = of_user.random() < 0.25 and of_session.random() < 0.5
        late_s = of_session.randrange(6 * 3600, 4 * DAY_S) if of_session.random() < 0.06 and not skew_s else 0
        is_copied = self._chance.random() < 0.04
        is_impression = data["category"] == "impression"
        event = Happened(
            user=data["user_id"],
            session=data["session_id"],
            category=data["category"] if data["category"] in ("user", "impression", "business") else "design",
            true_s=data["client_ts"],
            client_s=data["client_ts"] + skew_s,
            arrival_s=(data["client_ts"] if skew_s else line["arrival_ts"]) + late_s,
            country=of_session.choice(("FR", "GB")) if travels else line["country_code"],
            network=self._chance.choice(("one", "two", "three")) if is_impression else None,
            is_disclosed=self._chance.random() > 0.3,
            cents=data.get("amount", 0) if data["category"] == "business" else 0,
            uuid=data["event_uuid"] if not is_copied and self._chance.random() < 0.5 else None,
            is_copy=False,
            is_bot=False,
        )
        yield event
        if is_copied:
            yield event._replace(is_copy=True, arrival_s=event.arrival_s + 30)


def _session(
    chance: random.Random, user: str, start: int, country: str, skew_s: int, *, is_bot: bool = False
) -> Iterator[Happened]:
    session = str(UUID(int=chance.getrandbits(128), version=4))
    late_s = chance.randrange(6 * 3600, 4 * DAY_S) if chance.random() < 0.06 and not skew_s else 0
    for place in range(chance.randrange(4, 12)):
        true_s = start + 40 * place + chance.randrange(20)
        category = chance.choices(("design", "impression", "business"), (6, 3, 1))[0] if place else "user"
        is_copied = chance.random() < 0.04
        event = Happened(
            user=user,
            session=session,
            category=category,
            true_s=true_s,
            client_s=true_s + skew_s,
            arrival_s=true_s + late_s + chance.randrange(1, 25),
            country=country,
            network=chance.choice(("one", "two", "three")) if category == "impression" else None,
            is_disclosed=chance.random() > 0.3,
            cents=chance.randrange(99, 999) if category == "business" else 0,
            uuid=None if is_copied or chance.random() < 0.5 else str(UUID(int=chance.getrandbits(128), version=4)),
            is_copy=False,
            is_bot=is_bot,
        )
        yield event
        if is_copied:
            yield event._replace(is_copy=True, arrival_s=event.arrival_s + 30)


def raw_line(event: Happened) -> dict[str, Any]:
    """Return a line of an export of raw events."""
    common = {"v": 2, "user_id": event.user, "session_id": event.session, "client_ts": event.client_s}
    data: dict[str, Any] = common | {"category": event.category, "platform": "ios", "sdk_version": "rest api v2"}
    if event.uuid:
        data["event_uuid"] = event.uuid
    if event.category == "business":
        data |= {"amount": event.cents, "currency": "USD", "event_id": "gems:small", "transaction_num": 1}
    if event.category == "impression":
        payload = {"network_name": event.network if event.is_disclosed else "undisclosed", "revenue": 0.01}
        data |= {"ad_network_name": "max", "ad_network_version": "1", "impression_data": payload}
    return {"arrival_ts": event.arrival_s, "country_code": event.country, "game_id": 1001, "data": data}


@contextmanager
def lake_of(events: list[Happened], folder: Path) -> Iterator[LakeClient]:
    """Yield a lake with *events*, imported in the order of their arrival."""
    with lake_of_lines([raw_line(event) for event in sorted(events, key=lambda it: it.arrival_s)], folder) as lake:
        yield lake


@contextmanager
def lake_of_lines(lines: list[dict[str, Any]], folder: Path) -> Iterator[LakeClient]:
    """Yield a lake with the events of the *lines* of an export."""
    source = folder / "export.json.gz"
    source.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode() + b"\n"))
    Stage(folder / "state").sandbox.close()
    clock = Clock()
    clock.freeze(datetime(2026, 11, 1, tzinfo=UTC))
    import_raw_events(folder / "state", [str(source)], ImportOptions(), clock=clock)
    with open_lake(folder / "state", organisation="acme", progress=False) as lake:
        yield lake


Cells = dict[tuple[date, str | None], float]
"""Counts by day and split."""
_COUNTED: dict[tuple[int, frozenset[str], str, str | None], tuple[list[Happened], Cells]] = {}


class OtherService:
    """A service that counts *events* by the rules of *causes*, with the one method that a reconciliation calls."""

    def __init__(self, events: list[Happened], causes: Collection[str]) -> None:
        self._events, self._causes = events, frozenset(causes)
        self._zone = ZoneInfo(next((ZONES[cause] for cause in causes if cause in ZONES), "UTC"))

    @classmethod
    def counted(cls, events: list[Happened], causes: Collection[str], metric: str, by: str | None) -> Cells:
        """Return the counts of a service, which are counted once for each list of events."""
        key = (id(events), frozenset(causes), metric, by)
        if key not in _COUNTED:
            _COUNTED[key] = (events, cls(events, causes).count(metric, by))
        return _COUNTED[key][1]

    def query(self, metric: str, *, by: str | None, over: object, every: str) -> pd.DataFrame:
        """Return the answer of the service, with a receipt."""
        cells = self.counted(self._events, self._causes, metric, by)
        rows = [
            {"timestamp": pd.Timestamp(day, tz="UTC"), **({by: split} if by else {}), metric: count}
            for (day, split), count in cells.items()
        ]
        frame = pd.DataFrame(rows)
        asked_at = datetime.fromtimestamp(CUT_S, UTC).isoformat() if "as of" in self._causes else LATER
        asked = {"metric": metric, "by": [by] if by else [], "every": "day", "interval": OVER}
        frame.attrs[RECEIPT] = {"asked": asked, "asked_at": asked_at, "as_of": LATER}
        return frame

    def count(self, metric: str, by: str | None) -> Cells:
        """Return the counts by day and split."""
        members: defaultdict[tuple[date, str | None], set[str]] = defaultdict(set)
        sums: defaultdict[tuple[date, str | None], float] = defaultdict(float)
        for day, event, split in self._placed(by):
            if not FIRST.date() + timedelta(days=COUNTED[0]) <= day < FIRST.date() + timedelta(days=COUNTED[1]):
                continue
            if metric == "event_count":
                sums[day, split] += 1
            elif metric == "revenue":
                sums[day, split] += event.cents / 100
            elif metric == "user_unique":
                members[day, split].add(event.user)
            else:
                members[day, split].add(event.session)
        if metric in ("event_count", "revenue"):
            return {cell: value for cell, value in sums.items() if value}
        chance = random.Random(0)
        noise = 0.012 if "approximate" in self._causes else 0.0
        return {cell: round(len(it) * (1 + chance.gauss(0, noise))) for cell, it in members.items()}

    def _placed(self, by: str | None) -> list[tuple[date, Happened, str | None]]:
        placed = [(self._day(event), event) for event in self._events]
        placed = [(day, event) for day, event in placed if self._is_taken(day, event)]
        if by != "country_code" or not self._causes & {"first", "last"}:
            return [(day, event, self._split(event, by)) for day, event in placed]
        chosen: dict[tuple[date, str], Happened] = {}
        ordered = sorted(placed, key=lambda it: it[1].client_s, reverse="last" in self._causes)
        for day, event in ordered:
            chosen.setdefault((day, event.user), event)
        return [(day, event, chosen[day, event.user].country) for day, event in placed]

    def _day(self, event: Happened) -> date:
        time_s = event.client_s
        if "arrival" in self._causes:
            time_s = event.arrival_s
        elif "skew" in self._causes:
            time_s = event.true_s
        return datetime.fromtimestamp(time_s, self._zone).date()

    def _is_taken(self, day: date, event: Happened) -> bool:
        if "as of" in self._causes and event.arrival_s >= CUT_S:
            return False
        if "closed" in self._causes:
            ends_s = datetime.combine(day + timedelta(days=1), datetime.min.time(), self._zone).timestamp()
            if event.arrival_s >= ends_s + 12 * 3600:
                return False
        return not ("bots" in self._causes and event.is_bot) and not ("duplicates" in self._causes and event.is_copy)

    def _split(self, event: Happened, by: str | None) -> str | None:
        if by == "ilrd_network_name":
            return event.network if event.is_disclosed or "networks" in self._causes else None
        return event.country if by == "country_code" else None


def planted_shares(events: list[Happened], causes: tuple[str, str], metric: str, by: str | None) -> dict[str, float]:
    """Return the share of each of two causes: its Shapley value, summed without signs, from counts in plain Python."""
    sets: list[tuple[str, ...]] = [(), (causes[0],), (causes[1],), causes]
    counts = [OtherService.counted(events, each, metric, by) for each in sets]
    gross = dict.fromkeys(causes, 0.0)
    for cell in set().union(*counts):
        none, first, second, both = (each.get(cell, 0.0) for each in counts)
        gross[causes[0]] += abs((first - none) + (both - second)) / 2
        gross[causes[1]] += abs((second - none) + (both - first)) / 2
    return {NAMES[cause]: amount / sum(gross.values()) for cause, amount in gross.items()}


def assert_shares_of(found: Reconciliation, planted: dict[str, float]) -> None:
    """Check that no cause has more than 5 % of the difference too much or too little."""
    assert largest_error(found, planted) <= 1 - LEAST, (shares(found), planted)
    assert sum(shares(found).get(cause, 0.0) for cause in planted) >= LEAST


def largest_error(found: Reconciliation, planted: dict[str, float]) -> float:
    """Return by how much the share of a cause is too large or too small at most."""
    shown = shares(found)
    return max(abs(shown.get(cause, 0.0) - planted.get(cause, 0.0)) for cause in {*shown, *planted})


def shares(found: Reconciliation) -> dict[str, float]:
    """Return the share of each cause that explains something."""
    return {row["cause"]: row["share"] for row in found.causes.to_dict("records") if row["share"] > 0}
