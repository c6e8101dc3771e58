"""The real sandbox behind an app that sees every request, clients that nothing holds up, and the truth about both.

A `WatchedMetric` stands before the metrics service: it keeps what it was asked, fails what a test wants to fail, spoils what it
wants to be wrong. `quick` makes clients without a budget, so that a fan-out is not five requests a second. `Wide`
answers by any number of dimensions from the raw events.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, NamedTuple

import httpx
import pandas as pd

from conftest import Stage, event
from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import Transport
from gamelens.client.query.executor import QueryExecutor
from gamelens.client.sync_client import Client
from gamelens.sandbox.http.certificates import Certificate, load_certificate
from gamelens.wire.intervals import Interval
from support.brute_force import PER_GAME, SORTS_BY, Arrived, Asked, Fact, Row, Truth, _buckets
from support.random_worlds import GAMES, STUDIOS, play

KEY = "key-of-acme"
ADDRESS = "http://127.0.0.1:9"
SEED, BATCHES = 11, 6  # three games in two studios, and null in every dimension that may be null

Body = dict[str, Any]


class Sent(NamedTuple):
    """One request as it came in; *name* is the end of its path, *body* what it asked a metric."""

    name: str
    query: str
    body: Body | None


class Watch:
    """*app*, and what it is asked; with *memory* what has been answered once is answered again."""

    def __init__(self, app: Any, memory: dict[Any, Any] | None = None) -> None:
        self.sent: list[Sent] = []
        self.fails: Callable[[Sent], bool] = lambda _: False
        self.spoils: Callable[[Sent, Any], Any] | None = None
        self._app = app
        self._memory = memory

    @property
    def asked(self) -> list[Sent]:
        """The requests for metrics."""
        return [it for it in self.sent if it.body is not None]

    @property
    def listed(self) -> list[str]:
        """The lists that were asked for, but for the available interval."""
        return [it.name for it in self.sent if it.body is None and it.name != "interval"]

    def intervals(self) -> list[str]:
        """The intervals of the requests for metrics, in order."""
        return sorted(it.body["interval"] for it in self.asked if it.body is not None)

    def clear(self) -> None:
        """Forget what was asked."""
        self.sent.clear()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raw = await _read(receive)
        name = scope["path"].rpartition("/")[2]
        body = json.loads(raw) if scope["method"] == "POST" else None
        sent = Sent(name, scope["query_string"].decode(), body)
        self.sent.append(sent)
        key = (name, sent.query, raw, dict(scope["headers"]).get(b"x-api-key"))
        if self.fails(sent):
            answer = (500, [(b"content-type", b"application/json")], b'{"message": "not today"}')
        elif self._memory is not None and key in self._memory:
            answer = self._memory[key]
        else:
            answer = await self._ask(scope, raw)
            if self._memory is not None:
                self._memory[key] = answer
        status, headers, content = answer
        if self.spoils is not None and status == 200:
            content = json.dumps(self.spoils(sent, json.loads(content))).encode()
            headers = [(header, value) for header, value in headers if header != b"content-length"]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _ask(self, scope: Any, raw: bytes) -> tuple[int, list[Any], bytes]:
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        async def give() -> Any:
            return {"type": "http.request", "body": raw, "more_body": False}

        await self._app(scope, give, keep)
        return messages[0]["status"], messages[0]["headers"], b"".join(it.get("body", b"") for it in messages[1:])


class Ticks:
    """The client's own time, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now_s


def quick(
    app: Any,
    *,
    cache: Path | None = None,
    key: str = KEY,
    address: str = ADDRESS,
    refresh_s: float = 3600.0,
    max_days: int | None = None,
    ticks: Ticks | None = None,
) -> Client:
    """A client that sends at once and whose time stands still, unless *ticks* move."""
    ticks = ticks or Ticks()
    lens = copy(_blank())
    kept = AnswerCache(cache, owner=f"{address} {key}", now=ticks) if cache is not None else None
    door = Transport(address, key=Secret(key), pool=httpx.ASGITransport(app), ca_file=str(_authority().ca_file))
    service = MetricsApi(door, refresh_s=refresh_s, clock=ticks)
    lens._executor = QueryExecutor(service, kept, max_days=max_days, refresh_s=refresh_s)
    return lens


@cache
def _blank() -> Client:
    """What all quick clients are copies of."""
    return Client(api_key=KEY, metrics_url=ADDRESS, cache=False, progress=False)


@cache
def _authority() -> Certificate:
    """A short list of authorities: to read the usual ones takes longer than most questions do here."""
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    return load_certificate(folder)


class World:
    """A sandbox that is played in once, and all that happened in it."""

    def __init__(self, stage: Stage, arrived: Sequence[Arrived] = ()) -> None:
        self.stage = stage
        self.truth = Wide(list(arrived))
        self._memory: dict[Any, Any] = {}

    @classmethod
    def played(cls, stage: Stage) -> World:
        """The random population of `SEED`."""
        return cls(stage, play(stage, Random(SEED), batches=BATCHES)["acme"])

    def watch(self) -> Watch:
        """A look at what is asked; answers are remembered for all who look, since nothing changes here."""
        return Watch(self.stage.metrics_app, self._memory)


class Wide(Truth):
    """What happened, by any number of dimensions, `studio_id` among them."""

    def value(self, fact: Fact, dimension: str) -> str | None:
        """As `Truth.value`, which knows no studios."""
        if dimension == "studio_id":
            return next(studio for studio, games in STUDIOS.items() if fact.game_id in games)
        return super().value(fact, dimension)

    def table(
        self,
        metric: str,
        by: Sequence[str] = (),
        *,
        over: Interval,
        every: str = "day",
        where: Body | None = None,
        games: Iterable[str] | None = None,
        studios: Iterable[str] | None = None,
        since_days_ago: int | None = None,
    ) -> list[Row]:
        """The rows that a frame must have: timestamp, *by* (ids), the game where the metric is per game, the fields.

        In each bucket as the service orders them, dimensions in the order of the columns.
        """
        held = set(GAMES["acme"])
        held &= set(games) if games is not None else held
        held &= set().union(*(STUDIOS[it] for it in studios)) if studios is not None else held
        names = [*by]
        if (metric in PER_GAME or metric == "retention_retro") and "game_id" not in names:
            names.append("game_id")
        body: Body = {"filter": where, "since_days_ago": since_days_ago}
        asked = Asked(metric, over.start, over.end, every, body, held)
        if metric == "retention_retro":
            return self._returns(asked, names)
        facts = [it for it in self.facts if over.start <= it.ts < over.end and it.game_id in held]
        facts = [it for it in facts if self._meets(it, where)]
        found: list[Row] = []
        for stamp, first, last in _buckets(over.start, over.end, every):
            bucket = [it for it in facts if first <= it.ts < last]
            rows = self._rows(asked, bucket, names) if names else [self._fields(asked, bucket)]
            found += [{"timestamp": _moment(stamp), **_plain(row)} for row in rows]
        return found

    def _returns(self, asked: Asked, names: list[str]) -> list[Row]:
        """As `Truth._retention`, by any dimensions of the install event."""
        since, found = asked.body["since_days_ago"], []
        for stamp, first, last in _buckets(asked.start, asked.end, "day"):
            start, end = max(first, asked.start), min(last, asked.end)
            active = {fact.player for fact in self.facts if fact.player and start <= fact.ts < end}
            cohorts: dict[tuple[Any, ...], list[Any]] = {}
            for player, install in self.installs.items():
                is_asked = install.game_id in asked.games and self._meets(install, asked.body["filter"])
                if is_asked and (first.date() - install.day).days == since:
                    cohorts.setdefault(tuple(self.value(install, name) for name in names), []).append(player)
            rows = [
                {"timestamp": _moment(stamp), **dict(zip(names, key, strict=True)), "retention": back / len(players)}
                for key, players in cohorts.items()
                if (back := len(active & set(players)))
            ]
            found += sorted(rows, key=lambda row: rank(row, "retention", names))
        return found


def sale(day: str, amount: int = 499, **fields: Any) -> Body:
    """A purchase at noon of *day*, in hundredths of a dollar."""
    noon = datetime.fromisoformat(f"{day}T12:00+00:00")
    bought = {"event_id": "pack:gold", "amount": amount, "currency": "USD", "transaction_num": 1}
    return event(**{"category": "business", "client_ts": int(noon.timestamp())} | bought | fields)


def sell(stage: Stage, *events: Body, game_id: str = "1001") -> None:
    """Let the service know of *events*, at once."""
    assert stage.submit(list(events), game_id=game_id).status_code == 200
    stage.process()


def rank(row: Row, main: str, names: Sequence[str]) -> Any:
    """Where a row stands in its bucket: largest first, null last; ties by the values, null last (design/metrics)."""
    value = row[main]
    return (value is None, -(value or 0), tuple((row[name] is None, row[name] or "") for name in names))


def sorts_by(metric: str) -> str:
    """The field that orders the rows of *metric*."""
    return "retention" if metric == "retention_retro" else SORTS_BY.get(metric, metric)


def rows_of(frame: pd.DataFrame, *, titles: bool = False) -> list[Row]:
    """The rows of a frame in plain Python, null as None, titles left out unless wanted."""
    kept = [name for name in frame.columns if titles or name not in ("game", "studio")]
    plain = frame[kept].astype(object)
    records: list[Row] = plain.where(plain.notna(), None).to_dict("records")
    return [{**row, "timestamp": row["timestamp"].to_pydatetime()} for row in records]


def assert_equal(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """The same rows in the same order, columns, dtypes and categories; receipts may differ."""
    plain = [frame.copy() for frame in (one, other)]
    for frame in plain:
        frame.attrs = {}
    pd.testing.assert_frame_equal(*plain, check_exact=False, rtol=1e-12)


def is_close(one: Any, other: Any) -> bool:
    """Whether two values of a row are the same but for the last digits of a number."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))
    return bool(one == other)


def assert_same(frame: pd.DataFrame, expected: list[Row], metric: str, names: Sequence[str]) -> None:
    """*frame* has exactly the rows *expected*; in each bucket largest first, ties by *names*."""
    rows = rows_of(frame)
    keys = ["timestamp", *(name for name in frame.columns if name in (*names, "game_id", "studio_id"))]

    def by_key(some: list[Row]) -> dict[Any, Row]:
        found = {tuple(row[key] for key in keys): row for row in some}
        assert len(found) == len(some), "two rows of the same bucket and values"
        return found

    got, wanted = by_key(rows), by_key(expected)
    assert got.keys() == wanted.keys(), (sorted(map(str, got.keys() ^ wanted.keys())), len(got), len(wanted))
    for key, row in wanted.items():
        assert got[key].keys() == row.keys(), (key, got[key], row)
        assert all(is_close(got[key][name], row[name]) for name in row), (key, got[key], row)
    stamps = [row["timestamp"] for row in rows]
    assert stamps == sorted(stamps)
    for _, bucket in groupby(rows, key=lambda row: row["timestamp"]):
        shown = list(bucket)
        assert shown == sorted(shown, key=lambda row: rank(row, sorts_by(metric), names)), shown


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).astimezone(UTC)


def _plain(row: Row) -> Row:
    return {
        name: float(value) if hasattr(value, "numerator") and not isinstance(value, int) else value
        for name, value in row.items()
    }


async def _read(receive: Any) -> bytes:
    parts, is_more = [], True
    while is_more:
        message = await receive()
        parts.append(message.get("body", b""))
        is_more = message.get("more_body", False)
    return b"".join(parts)
