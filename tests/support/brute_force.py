"""Every metric the slow way: plain Python over the events as they arrived, written from design/metrics.md alone.

Nothing here is shared with the sandbox but the rate table. Money and ratios are fractions until the very end.
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


class Arrived(NamedTuple):
    """One accepted event, and what the collector knew of its request."""

    at: datetime
    game_id: str
    country: str | None
    event: dict[str, Any]


class Fact(NamedTuple):
    """One event that counts."""

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
        return self.event["category"]


class Asked(NamedTuple):
    """A question with its interval already read."""

    metric: str
    start: datetime
    end: datetime
    granularity: str
    body: dict[str, Any]
    games: set[str]


class Truth:
    """What happened in one organisation."""

    def __init__(self, arrived: list[Arrived]) -> None:
        self.facts = list(_facts(arrived))
        in_time = sorted(self.facts, key=lambda fact: (fact.ts, fact.place))
        self.installs: dict[Any, Fact] = {}
        self.first_purchases: dict[Any, Fact] = {}
        for fact in in_time:
            if fact.player:
                self.installs.setdefault(fact.player, fact)
                if fact.category == "business":
                    self.first_purchases.setdefault(fact.player, fact)

    def answer(self, asked: Asked) -> list[Any]:
        """The list under `result`, as the service must answer it."""
        if asked.metric == "retention_retro":
            return self._retention(asked)
        chosen = [
            fact
            for fact in self.facts
            if asked.start <= fact.ts < asked.end and fact.game_id in asked.games
            if self._meets(fact, asked.body.get("filter"))
        ]
        query = asked.body.get("query")
        answer: list[Any] = []
        for stamp, first, last in _buckets(asked.start, asked.end, asked.granularity):
            bucket = [fact for fact in chosen if first <= fact.ts < last]
            if query is None:
                split_by = asked.body["split_by"]
                names = ["game_id"] if split_by == "game_id" else [split_by, "game_id"]
                answer += [{"result": row, "timestamp": stamp} for row in self._rows(asked, bucket, names)]
            elif query["type"] == "group":
                rows = self._rows(asked, bucket, [query["dimension"]])[: query.get("limit", 100)]
                answer.append({"result": rows, "timestamp": stamp})
            elif query["type"] == "split":
                rows = self._rows(asked, bucket, query["dimensions"])
                answer += [{"event": row, "timestamp": stamp, "version": "v1"} for row in rows]
            else:
                answer.append({"result": _travelling(self._fields(asked, bucket)), "timestamp": stamp})
        return answer

    def values(self, dimension: str, start: datetime, end: datetime, games: set[str], limit: int = 100) -> list[str]:
        """What GET dimensions/<dimension> must list."""
        found = {self.value(fact, dimension) for fact in self.facts if start <= fact.ts < end and fact.game_id in games}
        return sorted(found - {None})[:limit]

    def value(self, fact: Fact, dimension: str) -> str | None:
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

    def _rows(self, asked: Asked, facts: list[Fact], names: list[str]) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Fact]] = {}
        for fact in facts:
            groups.setdefault(tuple(self.value(fact, name) for name in names), []).append(fact)
        rows = [dict(zip(names, key, strict=True)) | self._fields(asked, some) for key, some in groups.items()]
        kept = [
            row
            for row in rows
            if any(isinstance(value, int) and value for name, value in row.items() if name not in names)
        ]
        return _sorted(kept, SORTS_BY.get(asked.metric, asked.metric), names)

    def _fields(self, asked: Asked, facts: list[Fact]) -> Row:
        match asked.metric:
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
                }[asked.metric]
                counts = {of: self._count(of, facts, asked), by: self._count(by, facts, asked)}
                return _ratio(asked.metric, counts[of], counts[by]) | counts
            case "arpu" | "arppu":
                players = {"arpu": "user_unique", "arppu": "paying_users"}[asked.metric]
                count = self._count(players, facts, asked)
                total = sum((_paid(fact) for fact in facts if fact.category == "business"), Fraction(0))
                return _ratio(asked.metric, total, count) | {players: count, "total_revenue": round(total * 100)}
        return {asked.metric: self._count(asked.metric, facts, asked)}

    def _count(self, name: str, facts: list[Fact], asked: Asked) -> int:
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
                if fact.player and self._has_returned(fact, asked.body.get("since_days_ago"))
            },
        }
        return len(counters[name]())

    def _has_returned(self, fact: Fact, since: int | None) -> bool:
        days = (fact.day - self.installs[fact.player].day).days
        return days > 0 if since is None else days == since

    def _retention(self, asked: Asked) -> list[Any]:
        split_by, since = asked.body["split_by"], asked.body["since_days_ago"]
        names = ["game_id"] if split_by == "game_id" else [split_by, "game_id"]
        answer: list[Any] = []
        for stamp, first, last in _buckets(asked.start, asked.end, "day"):
            day = first.date()
            active = {
                fact.player
                for fact in self.facts
                if fact.player and first <= fact.ts < last and asked.start <= fact.ts < asked.end
            }
            cohorts: dict[tuple[Any, ...], list[Any]] = {}
            for player, install in self.installs.items():
                is_asked = install.game_id in asked.games and self._meets(install, asked.body.get("filter"))
                if is_asked and (day - install.day).days == since:
                    key = tuple(self.value(install, name) for name in names)
                    cohorts.setdefault(key, []).append(player)
            rows = []
            for key, players in cohorts.items():
                returned = len(active & set(players))
                if returned:
                    rows.append(dict(zip(names, key, strict=True)) | {"retention": Fraction(returned, len(players))})
            answer += [{"result": row, "timestamp": stamp} for row in _sorted(rows, "retention", names)]
        return answer


def _facts(arrived: list[Arrived]) -> Iterator[Fact]:
    seen: set[tuple[str, str]] = set()
    for place, it in enumerate(arrived):
        key = (it.game_id, it.event.get("event_uuid"))
        if key[1] is None or key not in seen:
            seen.add(key)
            yield Fact(place, _event_time(it), it.game_id, it.country, it.event)


def _event_time(it: Arrived) -> datetime:
    told = it.event.get("client_ts")
    if told is None or not 0 <= told <= 99_999_999_999:
        return it.at
    moment = datetime.fromtimestamp(told, UTC)
    return it.at if moment > it.at + timedelta(hours=24) else moment


def _buckets(start: datetime, end: datetime, granularity: str) -> Iterator[tuple[str, datetime, datetime]]:
    """Timestamp, first moment and end of each bucket; what lies outside the interval is for the caller to leave out."""
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
    """Highest first, nulls last; ties by dimension values in code points, null last. Only then floats are made."""

    def rank(row: Row) -> Any:
        values = tuple((row[name] is None, row[name] or "") for name in names)
        return (row[key] is None, -(row[key] or 0), values)

    return [_travelling(row) for row in sorted(rows, key=rank)]


def _travelling(row: Row) -> Row:
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
    usable = nanos if nanos <= 2**62 else 0  # more than four billions for one impression is no revenue
    return Fraction(usable, 10**9) * Fraction(USD_PER_UNIT[currency])


def _of_impression(fact: Fact, names: tuple[str, ...]) -> str | None:
    if fact.category != "impression":
        return None
    data = fact.event["impression_data"]
    return next((data[name] for name in names if data.get(name) is not None), None)


def _impression_id(fact: Fact) -> tuple[Any, ...]:
    vendor_id = _of_impression(fact, ("id", "auction_id", "impressionId"))
    if vendor_id is not None:
        return fact.game_id, "id", vendor_id
    if "event_uuid" in fact.event:
        return fact.game_id, "uuid", fact.event["event_uuid"]
    return fact.game_id, "event", fact.place
