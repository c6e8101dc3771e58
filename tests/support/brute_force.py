"""A reference implementation of every metric: plain Python over the received events.

It was written from sections 2 and 4 of the wire room's README alone and shares nothing with the sandbox but the table
of currencies. Money and ratios are fractions until the very end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from gamelens.wire.currencies import USD_PER_UNIT

Row = dict[str, Any]

ON_ADS = ("ad_sdk_name", "ad_type", "ad_action")
ON_IMPRESSIONS = {
    "ilrd_network_name": ("network_name", "ad_network", "demandSource", "network_class_name"),
    "ilrd_adunit_name": ("adunit_name", "adunit_id", "instance_name"),
    "ilrd_adunit_format": ("adunit_format", "ad_unit", "placementType"),
}
OF_PLAYERS = ("first_build", "installed_on", "is_paying", "is_converting")
EARNED = {
    "max": "revenue",
    "ironsource": "revenue",
    "admob": "revenue",
    "mopub": "publisher_revenue",
    "topon": "publisher_revenue",
    "hyperbid": "publisher_revenue",
    "fyber": "netPayout",
}
SORTS_BY = {"revenue": "sum", "ilrd_revenue": "sum"}
PER_GAME = ("returning_users", "installs_ratio", "conversion", "conversion_ft")


class ReceivedEvent(NamedTuple):
    """An accepted event, with its arrival, game and country of the address."""

    at: datetime
    game_id: str
    country: str | None
    event: dict[str, Any]


class Fact(NamedTuple):
    """An event that counts: not a repetition, and with its event time."""

    place: int
    ts: datetime
    game_id: str
    country: str | None
    event: dict[str, Any]

    @property
    def player(self) -> tuple[str, str] | None:
        return (self.game_id, self.event["user_id"]) if "user_id" in self.event else None

    @property
    def session(self) -> tuple[str, str] | None:
        return (self.game_id, self.event["session_id"]) if "session_id" in self.event else None

    @property
    def day(self) -> date:
        return self.ts.date()

    @property
    def category(self) -> str:
        return str(self.event["category"])


class ReferenceQuery(NamedTuple):
    """A query whose interval is already parsed."""

    metric: str
    start: datetime
    end: datetime
    granularity: str
    body: dict[str, Any]
    games: set[str]


class ReferenceMetrics:
    """The metrics of one organisation, computed from all of its events."""

    def __init__(self, received: list[ReceivedEvent]) -> None:
        self.facts = list(_facts(received))
        in_time = sorted(self.facts, key=lambda fact: (fact.ts, fact.place))
        self.installs: dict[Any, Fact] = {}
        self.first_purchases: dict[Any, Fact] = {}
        for fact in in_time:
            if fact.player:
                self.installs.setdefault(fact.player, fact)
                if fact.category == "business":
                    self.first_purchases.setdefault(fact.player, fact)

    def answer(self, query: ReferenceQuery) -> list[Any]:
        """Return the list under `result` that the service must answer."""
        if query.metric == "retention_retro":
            return self._retention(query)
        chosen = [
            fact
            for fact in self.facts
            if query.start <= fact.ts < query.end and fact.game_id in query.games
            if self._meets(fact, query.body.get("filter"))
        ]
        kind = query.body.get("query")
        answer: list[Any] = []
        for stamp, first, last in buckets(query.start, query.end, query.granularity):
            bucket = [fact for fact in chosen if first <= fact.ts < last]
            if kind is None:
                split_by = query.body["split_by"]
                names = ["game_id"] if split_by == "game_id" else [split_by, "game_id"]
                answer += [{"result": row, "timestamp": stamp} for row in self._rows(query, bucket, names)]
            elif kind["type"] == "group":
                rows = self._rows(query, bucket, [kind["dimension"]])[: kind.get("limit", 100)]
                answer.append({"result": rows, "timestamp": stamp})
            elif kind["type"] == "split":
                rows = self._rows(query, bucket, kind["dimensions"])
                answer += [{"event": row, "timestamp": stamp, "version": "v1"} for row in rows]
            else:
                answer.append({"result": _with_floats(self._fields(query, bucket)), "timestamp": stamp})
        return answer

    def values(self, dimension: str, start: datetime, end: datetime, games: set[str], limit: int = 100) -> list[str]:
        """Return the values that the list of *dimension* must have (Wire 2.11, Lists)."""
        values = {
            self.value(fact, dimension) for fact in self.facts if start <= fact.ts < end and fact.game_id in games
        }
        return sorted(value for value in values if value is not None)[:limit]

    def value(self, fact: Fact, dimension: str) -> str | None:
        """Return the value of *dimension* for an event (Wire 4.10, Dimensions)."""
        event = fact.event
        match dimension:
            case "game_id":
                return fact.game_id
            case "country_code":
                return event["country_code"].upper() if event.get("country_code") else fact.country
            case "severity":
                return event["severity"] if fact.category == "error" else None
            case "ilrd_sdk_vendor":
                return event["ad_network_name"] if fact.category == "impression" else None
        if dimension in ON_ADS:
            return event[dimension] if fact.category == "ads" else None
        if dimension in ON_IMPRESSIONS:
            return _of_impression(fact, ON_IMPRESSIONS[dimension])
        if dimension in OF_PLAYERS:
            return self._of_player(fact, dimension)
        return event.get(dimension)

    def _of_player(self, fact: Fact, dimension: str) -> str | None:
        if fact.player is None:
            return None
        install, bought = self.installs[fact.player], self.first_purchases.get(fact.player)
        match dimension:
            case "first_build":
                return install.event.get("build")
            case "installed_on":
                return install.day.isoformat()
            case "is_paying":
                return "true" if bought and fact.ts >= bought.ts else "false"
        return "true" if bought and fact.day == bought.day else "false"

    def _meets(self, fact: Fact, wanted: dict[str, Any] | None) -> bool:
        if wanted is None:
            return True
        ((key, value),) = wanted.items()
        match key:
            case "and":
                return all(self._meets(fact, member) for member in value)
            case "or":
                return any(self._meets(fact, member) for member in value)
            case "not":
                return not self._meets(fact, value)
        return self.value(fact, key) in (value if isinstance(value, list) else [value])

    def _rows(self, query: ReferenceQuery, facts: list[Fact], names: list[str]) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Fact]] = {}
        for fact in facts:
            groups.setdefault(tuple(self.value(fact, name) for name in names), []).append(fact)
        rows = [dict(zip(names, key, strict=True)) | self._fields(query, some) for key, some in groups.items()]
        counted = [
            row
            for row in rows
            if any(isinstance(value, int) and value for name, value in row.items() if name not in names)
        ]
        return _sorted(counted, SORTS_BY.get(query.metric, query.metric), names)

    def _fields(self, query: ReferenceQuery, facts: list[Fact]) -> Row:
        match query.metric:
            case "revenue":
                return _money([_paid(fact) for fact in facts if fact.category == "business"])
            case "ilrd_revenue":
                return _money([_earned(fact) for fact in facts if fact.category == "impression"])
            case "session_length":
                ends = [fact for fact in facts if fact.category == "session_end"]
                total = sum(fact.event["length"] for fact in ends)
                sessions = len({fact.session for fact in ends})
                return _ratio("session_length", total, len(ends)) | {
                    "session_unique": sessions,
                    "total_session_length": total,
                }
            case "installs_ratio" | "conversion" | "conversion_ft" | "ad_impressions_per_session":
                of, by = {
                    "installs_ratio": ("new_users", "user_unique"),
                    "conversion": ("paying_users", "user_unique"),
                    "conversion_ft": ("converting_users", "user_unique"),
                    "ad_impressions_per_session": ("ad_impressions_count", "session_unique"),
                }[query.metric]
                counts = {of: self._count(of, facts, query), by: self._count(by, facts, query)}
                return _ratio(query.metric, counts[of], counts[by]) | counts
            case "arpu" | "arppu":
                players = {"arpu": "user_unique", "arppu": "paying_users"}[query.metric]
                count = self._count(players, facts, query)
                total = sum((_paid(fact) for fact in facts if fact.category == "business"), Fraction(0))
                return _ratio(query.metric, total, count) | {players: count, "total_revenue": round(total * 100)}
        return {query.metric: self._count(query.metric, facts, query)}

    def _count(self, name: str, facts: list[Fact], query: ReferenceQuery) -> int:
        counters: dict[str, Callable[[], Any]] = {
            "event_count": lambda: facts,
            "user_unique": lambda: {fact.player for fact in facts} - {None},
            "session_unique": lambda: {fact.session for fact in facts} - {None},
            "new_users": lambda: [fact for fact in facts if fact is self.installs.get(fact.player)],
            "converting_users": lambda: [fact for fact in facts if fact is self.first_purchases.get(fact.player)],
            "paying_users": lambda: {fact.player for fact in facts if fact.category == "business"},
            "ad_impressions_count": lambda: [
                fact for fact in facts if fact.category == "ads" and fact.event["ad_action"] == "show"
            ],
            "ilrd_id_unique": lambda: {_impression_id(fact) for fact in facts if fact.category == "impression"},
            "returning_users": lambda: {
                fact.player
                for fact in facts
                if fact.player and self._has_returned(fact, query.body.get("since_days_ago"))
            },
        }
        return len(counters[name]())

    def _has_returned(self, fact: Fact, since: int | None) -> bool:
        days = (fact.day - self.installs[fact.player].day).days
        return days > 0 if since is None else days == since

    def _retention(self, query: ReferenceQuery) -> list[Any]:
        split_by, since = query.body["split_by"], query.body["since_days_ago"]
        names = ["game_id"] if split_by == "game_id" else [split_by, "game_id"]
        answer: list[Any] = []
        for stamp, first, last in buckets(query.start, query.end, "day"):
            day = first.date()
            active = {
                fact.player
                for fact in self.facts
                if fact.player and first <= fact.ts < last and query.start <= fact.ts < query.end
            }
            cohorts: dict[tuple[Any, ...], list[Any]] = {}
            for player, install in self.installs.items():
                is_in_query = install.game_id in query.games and self._meets(install, query.body.get("filter"))
                if is_in_query and (day - install.day).days == since:
                    key = tuple(self.value(install, name) for name in names)
                    cohorts.setdefault(key, []).append(player)
            rows = []
            for key, players in cohorts.items():
                returned = len(active & set(players))
                if returned:
                    rows.append(dict(zip(names, key, strict=True)) | {"retention": Fraction(returned, len(players))})
            answer += [{"result": row, "timestamp": stamp} for row in _sorted(rows, "retention", names)]
        return answer


def _facts(received: list[ReceivedEvent]) -> Iterator[Fact]:
    """Yield the events without repetitions of an `event_uuid` (Wire 4.8, Repeated events)."""
    seen: set[tuple[str, str]] = set()
    for place, one in enumerate(received):
        uuid = one.event.get("event_uuid")
        if uuid is None or (one.game_id, uuid) not in seen:
            if uuid is not None:
                seen.add((one.game_id, uuid))
            yield Fact(place, _event_time(one), one.game_id, one.country, one.event)


def _event_time(received: ReceivedEvent) -> datetime:
    """Return `client_ts` if it is usable, else the arrival (Wire 4.1, Event time)."""
    client_ts = received.event.get("client_ts")
    arrived_s = int(received.at.timestamp())
    if client_ts is None or client_ts > arrived_s + 24 * 3600 or client_ts < max(0, arrived_s - 365 * 24 * 3600):
        return received.at
    return datetime.fromtimestamp(client_ts, UTC)


def buckets(start: datetime, end: datetime, granularity: str) -> Iterator[tuple[str, datetime, datetime]]:
    """Return timestamp, start and end of each bucket, whole even if the interval cuts it."""
    if granularity == "all":
        yield _stamp(start), start, end
        return
    first = start.replace(hour=0, minute=0, second=0, microsecond=0)
    if granularity == "week":
        first -= timedelta(days=first.isoweekday() - 1)
    if granularity == "month":
        first = first.replace(day=1)
    while first < end:
        if granularity == "month":
            last = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        else:
            last = first + timedelta(days={"day": 1, "week": 7}[granularity])
        yield _stamp(first), first, last
        first = last


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"


def _sorted(rows: list[Row], key: str, names: list[str]) -> list[Row]:
    """Sort *rows* by *key*, highest first and nulls last, then by dimension values.

    Wire 2.10, Row order.
    """

    def rank(row: Row) -> Any:
        values = tuple((row[name] is None, row[name] or "") for name in names)
        return (row[key] is None, -(row[key] or 0), values)

    return [_with_floats(row) for row in sorted(rows, key=rank)]


def _with_floats(row: Row) -> Row:
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in row.items()}


def _ratio(name: str, numerator: Any, denominator: int) -> Row:
    return {name: Fraction(numerator) / denominator if denominator else None}


def _money(amounts: list[Fraction]) -> Row:
    total = sum(amounts, Fraction(0))
    return {
        "event_count": len(amounts),
        "mean": total / len(amounts) if amounts else None,
        "sum": total,
        "sum_cents": total * 100,
    }


def _paid(fact: Fact) -> Fraction:
    return Fraction(fact.event["amount"], 100) * Fraction(USD_PER_UNIT[fact.event["currency"]])


def _earned(fact: Fact) -> Fraction:
    """Return the revenue of an impression in US dollars (Wire 3.6, Impression payloads)."""
    vendor, data = fact.event["ad_network_name"], fact.event["impression_data"]
    amount = data.get(EARNED.get(vendor, ""))
    currency = None if vendor in ("max", "ironsource") else data.get("currency")
    currency = "USD" if currency is None else currency
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return Fraction(0)
    if amount < 0 or not isinstance(currency, str) or currency not in USD_PER_UNIT:
        return Fraction(0)
    written = Fraction(repr(amount)) / (10**6 if vendor == "admob" else 1)
    nanos = round(written * 10**9)
    usable = nanos if nanos <= 2**62 else 0  # more than four billions for one impression is not revenue
    return Fraction(usable, 10**9) * Fraction(USD_PER_UNIT[currency])


def _of_impression(fact: Fact, names: tuple[str, ...]) -> str | None:
    if fact.category != "impression":
        return None
    data = fact.event["impression_data"]
    return next((data[name] for name in names if data.get(name) is not None), None)


def _impression_id(fact: Fact) -> tuple[Any, ...]:
    """Return the identity of an impression: its vendor's id, its `event_uuid`, or itself."""
    vendor_id = _of_impression(fact, ("id", "auction_id", "impressionId"))
    if vendor_id is not None:
        return fact.game_id, "id", vendor_id
    if "event_uuid" in fact.event:
        return fact.game_id, "uuid", fact.event["event_uuid"]
    return fact.game_id, "event", fact.place
