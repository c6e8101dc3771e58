"""Random events of a few players, and random queries about them, for differential tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.wire.currencies import USD_PER_UNIT
from support.brute_force import PER_GAME, ReceivedEvent, ReferenceQuery
from support.game_events import NOW, event
from support.sandbox_stage import Stage

GAMES = {"acme": ("1001", "1002", "2001"), "rival": ("9001",)}
STUDIOS = {"s1": {"1001", "1002", "2002"}, "s2": {"2001"}}
ADDRESSES = {None: None, "192.0.2.7": "US", "198.51.100.4, 10.0.0.1": "DE", "10.1.2.3": None}
# These look alike and are different players: values are compared exactly (Wire 4.10, Dimensions).
USERS = ("ann", "Ann", "ann ", "bob", "zoë", "zoe\u0308", "李", "'; --")
DAYS = (0, 1, 2, 3, 5, 7, 8, 14, 15, 20, 21, 22, 50, 51)
VENDORS = ("mopub", "fyber", "ironsource", "topon", "hyperbid", "max", "aequus", "admob")
POOLS: dict[str, tuple[str, ...]] = {
    "game_id": ("1001", "1002", "2001", "9001"),
    "build": ("1.0", "1.1", "2.0"),
    "first_build": ("1.0", "1.1", "2.0"),
    "category": ("user", "ads", "business", "impression", "sdk_error", "session_end"),
    "country_code": ("US", "DE", "FR", "us"),
    "platform": ("ios", "android", "iOS"),
    "is_paying": ("true", "false"),
    "is_converting": ("true", "false"),
    "ad_sdk_name": ("unity", "applovin"),
    "ad_type": ("interstitial", "rewarded_video"),
    "ad_action": ("show", "clicked", "request"),
    "ilrd_sdk_vendor": VENDORS,
    "ilrd_adunit_name": ("home", "unit7"),
    "ilrd_network_name": ("NetA", "NetB", ""),
    "ilrd_adunit_format": ("BANNER", "REWARD"),
    "install_publisher": ("organic", "Pub"),
    "ab_id": ("exp1",),
    "ab_variant_id": ("ctrl", "fast"),
    "severity": ("info", "critical"),
}
UNUSED_VALUES = [
    f"nowhere {number}" for number in range(100)
]  # for long lists, which are compared in another way than short ones
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
POOLS["installed_on"] = tuple(f"{MIDNIGHT - timedelta(days=days):%Y-%m-%d}" for days in DAYS)


def play(
    stage: Stage,
    random: Random,
    *,
    batches: int = 14,
    users: Sequence[str] = USERS,
    sessions: Sequence[str] = ("s1", "s2", "s3", "S3"),
) -> dict[str, list[ReceivedEvent]]:
    """Submit random batches, process now and then, and return the events by organisation."""
    received: dict[str, list[ReceivedEvent]] = {"acme": [], "rival": []}
    uuids: list[str] = []
    for number in range(batches):
        at = NOW - timedelta(days=random.choice((0, 0, 1, 3)), milliseconds=random.randrange(10**6))
        stage.clock.freeze(at)
        at = datetime.fromtimestamp(round(stage.clock.now_s() * 1000) / 1000, UTC)
        organisation = "rival" if random.random() < 0.15 else "acme"
        game_id, address = random.choice(GAMES[organisation]), random.choice(list(ADDRESSES))
        events = [_event(random, at, uuids, users, sessions) for _ in range(random.randrange(1, 40))]
        response = stage.submit(events, game_id=game_id, headers={"X-Forwarded-For": address} if address else None)
        assert response.status_code == 200, response.text
        received[organisation] += [ReceivedEvent(at, game_id, ADDRESSES[address], one) for one in events]
        is_early = random.random() < 0.25 and not stage.makes_lake_anew
        if is_early or number == batches - 1:
            stage.clock.freeze(NOW)
            stage.process()
    return received


def random_query(random: Random, organisation: str) -> ReferenceQuery:
    """Return a random query, in any of the kinds that its metric has."""
    metric = random.choice(list(METRICS))
    granularity = "day" if metric == "retention_retro" else random.choice(("day", "week", "month", "all"))
    start, end, interval = _interval(random, longest=31 if granularity == "day" else 80)
    body: dict[str, Any] = {"interval": interval}
    if metric != "retention_retro" or random.random() < 0.5:
        body["granularity"] = granularity
    dimensions = [
        name
        for name, dimension in DIMENSIONS.items()
        if metric != "retention_retro" or dimension.level not in ("ad", "ilrd")
    ]
    games = set(GAMES[organisation])
    if metric == "retention_retro" or (metric in PER_GAME and random.random() < 0.5):
        body["split_by"] = random.choice(dimensions)
    else:
        body["query"] = _kind(random, dimensions)
        if metric in PER_GAME:
            body["game"] = random.choice(GAMES[organisation])
            games &= {body["game"]}
    if metric == "retention_retro" or (metric == "returning_users" and random.random() < 0.7):
        body["since_days_ago"] = random.choice((1, 1, 2, 5, 7, 13))
    if random.random() < 0.5:
        body["filter"] = _filter(random, dimensions, depth=random.choice((1, 1, 2, 3, 4)))
    if organisation == "acme" and random.random() < 0.2:
        body["games"] = random.sample(GAMES["acme"], random.randrange(1, 4))
        games &= set(body["games"])
    if organisation == "acme" and random.random() < 0.2:
        body["studios"] = random.sample(list(STUDIOS), random.randrange(1, 3))
        games &= set().union(*(STUDIOS[studio] for studio in body["studios"]))
    return ReferenceQuery(metric, start, end, granularity, body, games)


def _event(
    random: Random, at: datetime, uuids: list[str], users: Sequence[str], sessions: Sequence[str]
) -> dict[str, Any]:
    category = random.choices(
        ("user", "session_end", "business", "ads", "impression", "error", "design", "sdk_error", "resource"),
        (30, 8, 12, 15, 20, 4, 3, 8, 2),
    )[0]
    fields: dict[str, Any] = {
        "category": category,
        "user_id": random.choice(users),
        "session_id": random.choice(sessions),
        "client_ts": _client_ts(random, at),
        "build": _maybe(random, POOLS["build"]),
        "platform": random.choice(POOLS["platform"]),
        "country_code": _maybe(random, ("US", "us", "de", "FR")),
        "install_publisher": _maybe(random, POOLS["install_publisher"], 0.2),
        "ab_id": _maybe(random, POOLS["ab_id"], 0.3),
        "ab_variant_id": _maybe(random, POOLS["ab_variant_id"], 0.3),
        "event_uuid": _uuid(random, uuids),
    }
    if random.random() < 0.1:  # fields of other categories, which are not read
        fields |= {"ad_type": "banner", "severity": 7, "length": "long", "currency": [], "impression_data": "none"}
    match category:
        case "session_end":
            fields["length"] = random.choice((0, 30, 61, 3600))
        case "business":
            currency = random.choice(("USD", "USD", "EUR", "JPY", "KRW", "BTC"))
            amount = random.choice((0, 1, 99, 499, 500, 12_345_678_901))
            fields |= {"event_id": "pack:gold", "amount": amount, "currency": currency, "transaction_num": 1}
        case "ads":
            fields |= {name: random.choice(POOLS[name]) for name in ("ad_sdk_name", "ad_type", "ad_action")}
            fields["ad_placement"] = "home"
        case "impression":
            fields |= {"ad_network_version": "1.2", "ad_network_name": random.choice(VENDORS)}
            fields["impression_data"] = _impression(random)
        case "error":
            fields |= {"severity": random.choice(POOLS["severity"]), "message": ""}
        case "design":
            fields["event_id"] = "a:b"
        case "resource":
            fields |= {"event_id": "Sink:gold:shop:hat", "amount": -2.5}
        case "sdk_error":
            fields |= {"error_category": "event_validation", "error_area": "ads", "error_action": "x"}
            if random.random() < 0.7:
                fields |= {"user_id": None, "session_id": None, "session_num": None}
    return event(**fields)


def _client_ts(random: Random, at: datetime) -> int | None:
    """Return a random `client_ts`, of which some are unusable (Wire 4.1, Event time)."""
    if random.random() < 0.12:
        latest, oldest = int(at.timestamp()) + 86_400, int(at.timestamp()) - 365 * 86_400
        edges = (latest - 1, latest, latest + 1, latest + 7200, oldest - 1, oldest, oldest + 1)
        return random.choice((None, None, 0, -1, -(10**30), 10**11, 10**30, latest * 1000, *edges))
    day = MIDNIGHT - timedelta(days=random.choice(DAYS))
    # Few times of day, midnight among them, so that some events share their second.
    return int(day.timestamp()) + random.choice((0, 1, 3600, 43_200, 43_200, 43_200, 86_399))


def _impression(random: Random) -> dict[str, Any]:
    amount = random.choice((0, 0.012345678901234, 0.05, 1e-10, 12.5, 3, 1_250_000, -1, "1.5", None, True, 1e300))
    fields: dict[str, Any] = {
        "revenue": amount,
        "publisher_revenue": amount,
        "netPayout": amount,
        "currency": random.choice(("USD", "EUR", "IDR", "nope", None, 5, [])),
        "id": random.choice(("i1", "i2", None)),
        "auction_id": random.choice(("i1", "a2", None)),
        "impressionId": random.choice(("i3", None)),
        "network_name": random.choice(("NetA", "NetB", None)),
        "ad_network": random.choice(("NetB", "")),
        "adunit_id": "unit7",
        "adunit_name": random.choice(("home", None)),
        "ad_unit": random.choice(("BANNER", "REWARD", None)),
    }
    return {name: value for name, value in fields.items() if random.random() < 0.6}


def _uuid(random: Random, uuids: list[str]) -> str | None:
    """Return a new `event_uuid`, a repeated one, or none."""
    if random.random() < 0.4:
        return None
    if not uuids or random.random() < 0.8:
        uuids.append(f"uuid-{len(uuids)}")
        return uuids[-1]
    return random.choice(uuids)


def _maybe(random: Random, values: tuple[str, ...], probability: float = 0.75) -> str | None:
    return random.choice(values) if random.random() < probability else None


def _kind(random: Random, dimensions: list[str]) -> dict[str, Any]:
    kind = random.choice(("group", "group", "split", "split", "timeseries"))
    query: dict[str, Any] = {"type": kind}
    if kind == "group":
        query["dimension"] = random.choice(dimensions)
    if kind == "split":
        query["dimensions"] = random.sample(dimensions, 2)
    if random.random() < 0.4:
        query["limit"] = random.choice((1, 2, 3, 30_000))
    return query


def _filter(random: Random, dimensions: list[str], *, depth: int) -> dict[str, Any]:
    if depth > 1:
        key = random.choice(("and", "or", "not"))
        if key == "not":
            return {"not": _filter(random, dimensions, depth=depth - 1)}
        return {key: [_filter(random, dimensions, depth=depth - 1) for _ in range(random.randrange(1, 4))]}
    name = random.choice(dimensions)
    if random.random() < 0.4:
        values = random.sample(POOLS[name], random.randrange(1, 1 + min(3, len(POOLS[name]))))
        return {name: values + UNUSED_VALUES[: random.choice((0, 0, 0, 10, 100))]}
    return {name: random.choice((*POOLS[name], "elsewhere"))}


def _interval(random: Random, *, longest: int) -> tuple[datetime, datetime, str]:
    """Return start, end and text of a random interval, in one of its three forms."""
    start = MIDNIGHT - timedelta(days=random.randrange(-1, 55))
    if random.random() < 0.5:
        start += timedelta(seconds=random.choice((1, 3600, 43_200, 43_201)))
    if random.random() < 0.5:
        length = timedelta(days=random.randrange(1, longest + 1))
    else:
        length = timedelta(seconds=random.randrange(1, longest * 86_400))
    end, seconds = start + length, int(length.total_seconds())
    written = random.choice(
        (
            f"{start:%Y-%m-%dT%H:%M:%SZ}/{end:%Y-%m-%dT%H:%M:%S}.000",
            f"{start:%Y-%m-%dT%H:%M:%S}/PT{seconds}S",
            f"PT{seconds}S/{end + timedelta(hours=2):%Y-%m-%dT%H:%M:%S}+02:00",
        )
    )
    return start, end, written


assert POOLS.keys() == DIMENSIONS.keys()
assert {"USD", "EUR", "JPY", "KRW", "BTC", "IDR"} <= USD_PER_UNIT.keys()
