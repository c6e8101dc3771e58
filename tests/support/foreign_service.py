"""A metrics service that shares no code with gamelens: other words, the same specification.

It runs on the standard library alone, aggregates its own made-up players in plain Python, and spells whatever the
specification leaves open differently from the sandbox: keys in another order, counts as `3.0`, timestamps without
seconds, lists in no order, errors of any shape, answers compressed, chunked or ended by closing the connection.
A `Dialect` chooses among these, and `ForeignService.truth` is the expected answer to any query.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import threading
import zlib
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "key-of-elsewhere"  # and any key that begins with it, all of one organisation
END = datetime(2026, 11, 20, 11, tzinfo=UTC)
DAYS = 45
STUDIOS = {"st-9": "Südwind", "st-10": 'East & "West"'}
GAMES = {"700": ("st-10", "Tile Harbor"), "g-1": ("st-9", "Ember"), "g-2": ("st-9", "Ember")}
COUNTRIES = ("US", "DE", "NA", "JP", None)
DIMENSIONS = (
    *("game_id", "country_code", "platform", "is_paying", "is_converting", "ad_type", "ad_action"),
    *("ilrd_network_name", "ilrd_adunit_name", "category", "build", "device_tier"),
)
PER_GAME = ("conversion", "conversion_ft", "installs_ratio", "returning_users")
MAIN_FIELD = {"revenue": "sum", "ilrd_revenue": "sum", "retention_retro": "retention"}
BODY_FIELDS = {"interval", "granularity", "query", "filter", "game", "games", "studios", "split_by", "since_days_ago"}
DAY = timedelta(days=1)

Row = dict[str, Any]
Moments = tuple[datetime, datetime]


@dataclass(frozen=True)
class Fact:
    """One event. *values* are its dimensions but the game; *cents* its money, in hundredths."""

    at: datetime
    game: str
    player: str
    session: str
    values: dict[str, str | None]
    installed: datetime
    is_install: bool = False
    is_first_purchase: bool = False
    cents: int = 0
    seconds: int = 0

    def value(self, dimension: str) -> str | None:
        """Return the value of *dimension*."""
        return self.game if dimension == "game_id" else self.values.get(dimension)


@dataclass
class Dialect:
    """What the specification leaves to the service.

    Attributes:
        encodings, framings: of the bodies, taken in turn.
        moments: spellings of a timestamp, taken in turn.
        keeps_empty: whether a series names buckets in which nothing happened.
        is_terse: whether rows hold only the fields that the specification shows.
        extra_field: a field of its own in every row.
        nests: whether `and` and `or` may hold another of them.
        limit_cap, cuts_silently: most rows of a bucket and values of a list; a higher limit is refused or ignored.
        titles: whether games have titles.
        missing: metrics it does not have.
        renamed: fields that it calls otherwise, with their names.
        numeric_ids: whether ids of games are numbers.
        sunday: whether weeks begin on Sunday.
        stamps_end: whether the whole interval as one bucket has the timestamp of its end.
        half_cents: whether amounts in cents have fractions.
    """

    encodings: tuple[str, ...] = ("identity", "gzip", "deflate")
    framings: tuple[str, ...] = ("length", "chunked", "close")
    moments: tuple[str, ...] = ("millis", "offset", "minutes", "naive", "micros", "east", "comma", "basic")
    keeps_empty: bool = False
    is_terse: bool = False
    extra_field: str = ""
    nests: bool = False
    limit_cap: int = 30_000
    cuts_silently: bool = False
    titles: bool = True
    missing: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    numeric_ids: bool = False
    sunday: bool = False
    stamps_end: bool = False
    half_cents: bool = False


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    parameters: dict[str, list[str]]
    body: Row | None = None


@dataclass(frozen=True)
class RefusalError(Exception):
    """An answer that is not a success: its status, body, headers and media type."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    media: str = "text/plain"


def refused(status: int, text: str) -> RefusalError:
    """Return a refusal as this service words it."""
    return RefusalError(
        status, json.dumps({"problems": [{"code": status, "why": text}]}).encode(), media="application/json"
    )


def history(seed: int, end: datetime, days: int) -> list[Fact]:
    """Return the events of all players of all games, by time."""
    chance, numbers = random.Random(seed), count(1)
    facts: list[Fact] = []
    first_day = end.replace(hour=0) - days * DAY
    for game in GAMES:
        for day in (first_day + number * DAY for number in range(days + 1)):
            if game != "g-2" or day.day % 5:  # on some days nobody installs this one
                for _ in range(chance.randrange(1, 4)):
                    facts += _life(chance, game, f"p{next(numbers)}", day, end)
    return sorted(facts, key=lambda fact: fact.at)


def _life(chance: random.Random, game: str, player: str, install_day: datetime, end: datetime) -> Iterator[Fact]:
    """Yield the events of one player until *end*."""
    origin = {
        "country_code": chance.choice(COUNTRIES),
        "platform": chance.choice(("ios", "android")),
        "device_tier": chance.choice(("low", "high")),
    }
    is_new, has_paid = True, False
    for age in range((end - install_day).days + 1):
        start = install_day + age * DAY + timedelta(seconds=chance.randrange(80_000))
        if start > end - timedelta(minutes=10) or (age and chance.random() > 0.8 / (1 + age)):
            continue
        session, shared = f"{player}/{age}", origin | {"build": "1.0" if start.day < 15 else "2.0"}
        kinds = chance.choices(("design", "ads", "impression", "business"), (3, 4, 3, 1), k=chance.randrange(2, 7))
        for second, category in enumerate(("user", *kinds, "session_end")):
            cents = chance.randrange(99, 2000) if category == "business" else chance.randrange(1, 9)
            is_first_purchase = category == "business" and not has_paid
            has_paid |= is_first_purchase
            own = _own_values(chance, category)
            paid = {"is_paying": "true" if has_paid else "false", "is_converting": str(is_first_purchase).lower()}
            yield Fact(
                *(start + timedelta(seconds=second), game, player, session, shared | own | paid, install_day),
                is_install=is_new,
                is_first_purchase=is_first_purchase,
                cents=cents if category in ("business", "impression") else 0,
                seconds=chance.randrange(1, 900) if category == "session_end" else 0,
            )
            is_new = False


def _own_values(chance: random.Random, category: str) -> dict[str, str | None]:
    """Return the values that only events of *category* have."""
    if category == "ads":
        action = chance.choice(("request", "show", "clicked", "failed_show"))
        return {"category": category, "ad_type": chance.choice(("banner", "rewarded_video")), "ad_action": action}
    if category == "impression":
        network = chance.choice(("undisclosed", "AdHouse", None))
        return {"category": category, "ilrd_network_name": network, "ilrd_adunit_name": chance.choice("ab")}
    return {"category": category}


def measure(metric: str, facts: Sequence[Fact], since: int | None = None) -> Row:
    """Return the fields of *metric* for these events."""
    of = {name: [fact for fact in facts if fact.values["category"] == name] for name in ("business", "impression")}
    users, payers = {fact.player for fact in facts}, {fact.player for fact in of["business"]}
    sessions, ended = {fact.session for fact in facts}, [fact.seconds for fact in facts if fact.seconds]
    shown = sum(fact.values.get("ad_action") == "show" for fact in facts)
    installs, first_purchases = sum(fact.is_install for fact in facts), sum(fact.is_first_purchase for fact in facts)
    ages = {fact.player: set[int]() for fact in facts}
    for fact in facts:
        ages[fact.player].add((fact.at - fact.installed) // DAY)
    back = sum(bool(own - {0}) if since is None else since in own for own in ages.values())
    cents = sum(fact.cents for fact in of["business"])
    parts: dict[str, Row] = {
        "event_count": {"event_count": len(facts)},
        "user_unique": {"user_unique": len(users)},
        "session_unique": {"session_unique": len(sessions)},
        "new_users": {"new_users": installs},
        "converting_users": {"converting_users": first_purchases},
        "paying_users": {"paying_users": len(payers)},
        "returning_users": {"returning_users": back},
        "ad_impressions_count": {"ad_impressions_count": shown},
        "ad_impressions_per_session": {"ad_impressions_count": shown, "session_unique": len(sessions)},
        "ilrd_id_unique": {"ilrd_id_unique": len(of["impression"])},
        "revenue": _money(of["business"]),
        "ilrd_revenue": _money(of["impression"]),
        "arppu": {"paying_users": len(payers), "total_revenue": cents},
        "arpu": {"user_unique": len(users), "total_revenue": cents},
        "conversion": {"paying_users": len(payers), "user_unique": len(users)},
        "conversion_ft": {"converting_users": first_purchases, "user_unique": len(users)},
        "installs_ratio": {"new_users": installs, "user_unique": len(users)},
        "session_length": {"session_unique": len(ended), "total_session_length": sum(ended)},
        "attention_span": {"attention_span": sum(ended) / 60},
    }
    row = parts[metric]
    if metric == "session_length":
        return row | {metric: _share(sum(ended), len(ended))}
    if metric not in row and "mean" not in row:
        whole = "session_unique" if metric == "ad_impressions_per_session" else "user_unique"
        part, whole = next(name for name in row if name != whole), "paying_users" if metric == "arppu" else whole
        part = "total_revenue" if "total_revenue" in row else part
        row = row | {metric: _share(row[part] / (100 if part == "total_revenue" else 1), row[whole])}
    return row


def _money(facts: Sequence[Fact]) -> Row:
    cents = sum(fact.cents for fact in facts)
    mean = _share(cents / 100, len(facts))
    return {"event_count": len(facts), "mean": mean, "sum": cents / 100, "sum_cents": float(cents)}


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def number(id_: str) -> int | str:
    """Return an id as the number that it is, if it is one that JSON keeps."""
    return int(id_) if id_.isdecimal() and str(int(id_)) == id_ and len(id_) < 16 else id_


def buckets(over: Moments, every: str, *, sunday: bool = False) -> Iterator[tuple[datetime, Moments]]:
    """Yield the timestamp of each bucket and the part of *over* in it."""
    start, end = over
    while start < end:
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
        stamp = {"week": midnight - (midnight.weekday() + sunday) % 7 * DAY, "month": midnight.replace(day=1)}.get(
            every, midnight
        )
        length = {"week": 7, "month": monthrange(start.year, start.month)[1]}.get(every, 1)
        stop = end if every == "all" else min(end, stamp + length * DAY)
        yield (start if every == "all" else stamp), (start, stop)
        start = stop


class ForeignService:
    """The service, its events, and every request that arrived.

    Attributes:
        facts: the events; a test may remove or add some.
        ends: the ends of the available interval, one for each time it is asked; the last one stays.
        refusals: answers to the next metric queries in place of theirs.
        seen: the requests.
    """

    def __init__(self, address: str, *, end: datetime = END, seed: int = 4) -> None:
        self.address = address
        self.dialect = Dialect()
        self.facts = history(seed, end, DAYS)
        self.start, self.ends = self.facts[0].at.replace(hour=0, minute=0, second=0), [end]
        self.refusals: list[RefusalError] = []
        self.seen: list[Seen] = []
        self._turn, self._chance = count(), random.Random(seed)

    @property
    def queries(self) -> list[Seen]:
        """The metric queries."""
        return [seen for seen in self.seen if seen.method == "POST"]

    def truth(
        self,
        metric: str,
        by: Sequence[str] = (),
        *,
        over: Moments,
        every: str = "day",
        where: Callable[[Fact], bool] = lambda _: True,
        since: int | None = None,
    ) -> Iterator[Row]:
        """Yield every row of *metric* by any number of dimensions, with its timestamp."""
        facts = [fact for fact in self.facts if over[0] <= fact.at < over[1] and where(fact)]
        for stamp, (start, end) in buckets(over, every, sunday=self.dialect.sunday):
            groups: dict[tuple[str | None, ...], list[Fact]] = defaultdict(list)
            for fact in (fact for fact in facts if start <= fact.at < end):
                groups[tuple(map(fact.value, by))].append(fact)
            if not by:
                groups.setdefault((), [])
            for key, members in groups.items():
                row = measure(metric, members, since)
                if not by or any(row.values()):
                    yield {"timestamp": stamp, **dict(zip(by, key, strict=True)), **row}

    def returns(self, by: Sequence[str], *, over: Moments, age: int, where: Callable[[Fact], bool]) -> Iterator[Row]:
        """Yield the share of the players installed *age* days before each day who are active on it."""
        for day, (start, end) in buckets(over, "day"):
            active = {fact.player for fact in self.facts if start <= fact.at < end}
            cohorts: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
            for fact in self.facts:
                if fact.is_install and fact.installed == day - age * DAY and where(fact):
                    cohorts[tuple(map(fact.value, by))].append(fact.player)
            for key, players in cohorts.items():
                if active.intersection(players):
                    share = len(active.intersection(players)) / len(players)
                    yield {"timestamp": day, **dict(zip(by, key, strict=True)), "retention": share}

    def answer(self, seen: Seen) -> Any:
        """Return the JSON value that answers a request."""
        self.seen.append(seen)
        path = [unquote(part) for part in seen.path.strip("/").split("/")]
        if path[:2] != ["metrics", "v1"] or len(path) > 4:
            raise refused(404, "nothing here")
        match (seen.method, *path[2:]):
            case ("GET", "interval"):
                end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
                return f"{self.spelled(self.start)}/{self.spelled(end)}"
            case ("GET", "metrics"):
                return self._shuffled({*METRICS} - {*self.dialect.missing})
            case ("GET", "dimensions"):
                return self._shuffled(DIMENSIONS)
            case ("GET", "dimensions", dimension) if dimension in DIMENSIONS:
                return {"values": self._values(seen, dimension), "dimension": dimension, "cached": False}
            case ("GET", "studios"):
                ids = {GAMES[fact.game][0] for fact in self._listed(seen)}
                return self._shuffled({"name": STUDIOS[id_], "tier": None, "id": id_} for id_ in ids)
            case ("GET", "games"):
                return self._shuffled(map(self._game, {fact.game for fact in self._listed(seen)}))
            case ("POST", "metrics", metric) if metric in METRICS and metric not in self.dialect.missing:
                if self.refusals:
                    raise self.refusals.pop(0)
                return self._metric(metric, seen.body)
        raise refused(404, f"no {path[-1]} here")

    def spelled(self, moment: datetime) -> str:
        """Return *moment* in one of the spellings of ISO 8601."""
        styles = self.dialect.moments
        style, plain = styles[next(self._turn) % len(styles)], moment.replace(tzinfo=None)
        return {
            "millis": f"{plain.isoformat(timespec='milliseconds')}Z",
            "offset": f"{plain.isoformat(timespec='seconds')}+00:00",
            "minutes": f"{plain.isoformat(timespec='minutes')}Z",
            "naive": plain.isoformat(timespec="seconds"),
            "micros": f"{plain.isoformat(timespec='microseconds')}+0000",
            "east": moment.astimezone(timezone(timedelta(hours=2))).isoformat(),
            "comma": f"{plain.isoformat(timespec='seconds')},000Z",
            "basic": f"{plain:%Y%m%dT%H%M%SZ}",
        }[style]

    def _shuffled(self, values: Any) -> list[Any]:
        listed = sorted(values, key=str)
        self._chance.shuffle(listed)
        return listed

    def _game(self, game: str) -> Row:
        if self.dialect.numeric_ids:
            return {"title": GAMES[game][1], "id": number(game)}
        untitled: dict[str, Row] = {"700": {"id": game, "title": None}}
        if self.dialect.titles:
            return {"released": "2026", "title": GAMES[game][1], "id": game}
        return untitled.get(game, {"id": game, "released": "2026"})

    def _listed(self, seen: Seen) -> list[Fact]:
        if "interval" not in seen.parameters:
            raise refused(422, "interval is needed")
        start, end = parsed(seen.parameters["interval"][0])
        scope = _scope({name: seen.parameters.get(name) for name in ("games", "studios")})
        return [fact for fact in self.facts if start <= fact.at < end and fact.game in scope]

    def _values(self, seen: Seen, dimension: str) -> list[str]:
        limit = self._limit(int(seen.parameters.get("limit", ["100"])[0]))
        values = self._shuffled({fact.value(dimension) for fact in self._listed(seen)} - {None})
        return values[:limit]

    def _limit(self, limit: int) -> int:
        cap = self.dialect.limit_cap
        if limit > cap and not self.dialect.cuts_silently:
            raise refused(422, f"limit {limit} is above {cap}")
        return min(limit, cap)

    def _metric(self, metric: str, body: Row | None) -> Row:
        """Return the answer to a query, in the shape of its kind."""
        if body is None or body.keys() - BODY_FIELDS:
            raise refused(422, f"unexpected: {sorted((body or {}).keys() - BODY_FIELDS)}")
        over, every = parsed(body.get("interval")), body.get("granularity", "day")
        if every == "day" and over[1] - over[0] > 31 * DAY:
            raise refused(422, "at most 31 days")
        scope, where = _scope(body), _condition(body.get("filter"), nests=self.dialect.nests)
        query, since = body.get("query") or {}, body.get("since_days_ago")
        self._check(metric, body, query)
        by = [query["dimension"]] if "dimension" in query else list(query.get("dimensions", ()))
        if not query:
            by = list(dict.fromkeys((body["split_by"], "game_id")))

        def selects(fact: Fact) -> bool:
            return fact.game in scope and where(fact)

        if metric == "retention_retro":
            rows = list(self.returns(by, over=over, age=since or 0, where=selects))
        else:
            rows = list(self.truth(metric, by, over=over, every=every, where=selects, since=since))
        if every == "all" and self.dialect.stamps_end:
            rows = [row | {"timestamp": over[1]} for row in rows]
        return {"took_ms": 1.5, "result": self._shape(metric, query, [self._in_other_words(row) for row in rows])}

    def _in_other_words(self, row: Row) -> Row:
        """Return *row* with the names and types of this dialect."""
        dialect = self.dialect
        if dialect.half_cents and "sum_cents" in row:
            row = row | {"sum_cents": row["sum_cents"] + 0.5}
        if dialect.numeric_ids and "game_id" in row:
            row = row | {"game_id": number(row["game_id"])}
        return {dialect.renamed.get(name, name): value for name, value in row.items()}

    def _check(self, metric: str, body: Row, query: Row) -> None:
        """Refuse a query kind that the metric does not have."""
        if metric == "retention_retro":
            is_good = not query and {"split_by", "since_days_ago"} <= body.keys() and "granularity" not in body
        elif metric in PER_GAME:
            is_good = ("game" in body) == bool(query) and ("split_by" in body) != bool(query)
        else:
            is_good = query.get("type") in ("group", "split", "timeseries") and not body.keys() & {"game", "split_by"}
        allowed = {"group": {"dimension", "limit"}, "split": {"dimensions"}, "timeseries": {"limit"}}
        if not is_good or query.keys() - {"type"} - allowed.get(query.get("type", ""), set()):
            raise refused(422, f"{metric} does not take {json.dumps(body)}")

    def _shape(self, metric: str, query: Row, rows: list[Row]) -> list[Row]:
        if self.dialect.is_terse:
            rows = [{name: row[name] for name in row if name not in _UNSHOWN.get(metric, ())} for row in rows]
        if self.dialect.extra_field:
            rows = [row | {self.dialect.extra_field: 1} for row in rows]
        if query.get("type") == "group":
            return [*self._group(metric, query, rows)]
        if query.get("type") == "timeseries" and not self.dialect.keeps_empty:
            rows = [row for row in rows if any(row[name] for name in row if name != "timestamp")]
        shaped = [(row.pop("timestamp"), row) for row in (dict(row) for row in rows)]
        if query.get("type") == "split":
            self._chance.shuffle(shaped)
            return [{"version": "v1", "timestamp": self.spelled(stamp), "event": row} for stamp, row in shaped]
        return [{"final": True, "timestamp": self.spelled(stamp), "result": row} for stamp, row in shaped]

    def _group(self, metric: str, query: Row, rows: list[Row]) -> Iterator[Row]:
        main, limit = MAIN_FIELD.get(metric, metric), self._limit(query.get("limit", 100))
        groups: dict[datetime, list[Row]] = defaultdict(list)
        for row in rows:
            groups[row["timestamp"]].append({name: row[name] for name in row if name != "timestamp"})
        for stamp, members in groups.items():
            kept = sorted(members, key=lambda row: -(row[self.dialect.renamed.get(main, main)] or 0))[:limit]
            yield {"more": None, "timestamp": self.spelled(stamp), "result": kept}


METRICS = (
    *("arpu", "arppu", "conversion", "conversion_ft", "converting_users", "event_count", "installs_ratio"),
    *("new_users", "paying_users", "retention_retro", "returning_users", "revenue", "session_length"),
    *("session_unique", "user_unique", "ad_impressions_count", "ilrd_id_unique", "ilrd_revenue"),
    *("ad_impressions_per_session", "attention_span"),
)
_UNSHOWN = {
    "arpu": ("user_unique", "total_revenue"),
    "conversion": ("paying_users", "user_unique"),
    "conversion_ft": ("converting_users", "user_unique"),
    "installs_ratio": ("new_users", "user_unique"),
    "session_length": ("session_unique", "total_session_length"),
}
"""Row fields that the specification does not show."""


def parsed(text: object) -> Moments:
    """Return the two ends of an ISO 8601 interval, which is a start and a duration: no document shows an end."""
    left, _, right = str(text).partition("/")
    try:
        start = datetime.fromisoformat(left)
        start = start.replace(tzinfo=UTC) if start.tzinfo is None else start
    except ValueError:
        raise refused(400, f"{text} is not an interval") from None
    period = re.fullmatch(r"P(?:(\d+)W|(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?)", right)
    if period is None:
        raise refused(400, f"{text} is not a start and a duration")
    weeks, days, hours, minutes, seconds = (float(number or 0) for number in period.groups())
    return start, start + timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _scope(names: Row) -> set[str]:
    """Return the games that a query is narrowed to."""
    game, games, studios = names.get("game"), names.get("games"), names.get("studios")
    unknown = {*([game] if game else []), *(games or ())} - GAMES.keys() | {*(studios or ())} - STUDIOS.keys()
    if unknown:
        raise refused(422, f"unknown ids: {sorted(unknown)}")
    wanted = {game} if game else set(games) if games is not None else set(GAMES)
    return {id_ for id_ in wanted if studios is None or GAMES[id_][0] in studios}


def _condition(node: Any, *, nests: bool, is_inside: bool = False) -> Callable[[Fact], bool]:
    """Return the test that a filter stands for."""
    if node is None:
        return lambda _: True
    ((name, value),) = node.items()
    if name in ("and", "or"):
        if is_inside and not nests:
            raise refused(422, f"{name} must not stand inside and, or, not")
        members = [_condition(member, nests=nests, is_inside=True) for member in value]
        combine = all if name == "and" else any
        return lambda fact: combine(member(fact) for member in members)
    if name == "not":
        member = _condition(value, nests=nests, is_inside=True)
        return lambda fact: not member(fact)
    if name not in DIMENSIONS:
        raise refused(422, f"{name} is not a dimension")
    values = value if isinstance(value, list) else [value]
    return lambda fact: fact.value(name) in values


def spelled_json(value: Any, turn: Iterator[int], depth: int = 0) -> str:
    """Return *value* as JSON with white space, numbers and escapes that are unusual and legal."""
    if isinstance(value, dict):
        items = (f"{json.dumps(name)} :{spelled_json(value[name], turn, depth + 1)}" for name in reversed(value))
        return "{\n\t" + " ,\r\n\t".join(items) + "}"
    if isinstance(value, list):
        return "[ " + ", ".join(spelled_json(item, turn, depth + 1) for item in value) + " ]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return (str(value), f"{value}.0", f"{value}e0", f"{value / 1000!r}E+3")[next(turn) % 4]
    if isinstance(value, float):
        return (repr(value), f"{value:.16e}")[next(turn) % 2]
    return json.dumps(value).replace("/", r"\/")


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    service: ForeignService
    turn: Iterator[int]

    def do_GET(self) -> None:
        """Answer a list."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer a query."""
        self._answer("POST")

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def _answer(self, method: str) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            value = self.service.answer(self._read(method, raw))
        except RefusalError as refusal:
            self._send(refusal.status, refusal.body, refusal.media, refusal.headers)
        else:
            text = spelled_json(value, self.turn)
            self._send(200, f"\n{text}\n".encode(), "Application/JSON; Charset=UTF-8", {})

    def _read(self, method: str, raw: bytes) -> Seen:
        """Return the request, or refuse it."""
        if not self.headers.get("x-api-key", "").startswith(KEY):
            raise refused(401, "this key opens nothing here")
        if "application/json" not in self.headers.get("Accept", ""):
            raise refused(406, "this service speaks JSON")
        if method == "POST" and not self.headers.get("Content-Type", "").startswith("application/json"):
            raise refused(415, "a query is JSON")
        url = urlsplit(self.path)
        return Seen(method, url.path, parse_qs(url.query), json.loads(raw) if raw else None)

    def _send(self, status: int, body: bytes, media: str, headers: dict[str, str]) -> None:
        """Send a body in the next of the encodings and framings."""
        turn, dialect = next(self.turn), self.service.dialect
        encoding = dialect.encodings[turn % len(dialect.encodings)]
        framing = dialect.framings[turn % len(dialect.framings)]
        if encoding.split()[-1] not in self.headers.get("Accept-Encoding", ""):
            encoding = "identity"
        if encoding == "gzip":
            body = gzip.compress(body)
        elif encoding == "deflate":
            body = zlib.compress(body)
        elif encoding == "raw deflate":
            body = zlib.compress(body, wbits=-15)
        self.send_response_only(status)
        self.send_header("dATE", format_datetime(datetime.now(UTC), usegmt=True))
        self.send_header("content-TYPE", media)
        for name, text in headers.items():
            self.send_header(name, text)
        if encoding != "identity":
            self.send_header("CONTENT-ENCODING", encoding.split()[-1])
        if framing == "chunked":
            self.send_header("Transfer-ENCODING", "chunked")
            half = len(body) // 2
            body = b"".join(b"%x;n=1\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
            body += b"0\r\n\r\n"
        elif framing == "length":
            self.send_header("content-length", str(len(body)))
        else:
            self.send_header("connection", "Close")
            self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # a client that no longer waits
            self.end_headers()
            self.wfile.write(body)


@contextmanager
def foreign_service(*, end: datetime = END) -> Iterator[ForeignService]:
    """Serve on a free port of this machine."""

    class Handler(_Handler):
        turn = count()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Handler.service = service = ForeignService(f"http://127.0.0.1:{server.server_address[1]}", end=end)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
