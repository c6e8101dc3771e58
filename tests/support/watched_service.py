"""The sandbox behind an app that records requests, quick clients, and the expected rows.

A `Watch` stands before the metrics service: it records requests, and fails or changes answers as a test says.
`quick` makes clients without a rate limiter, so that a fan-out is not held to five requests a second. `WideTruth`
computes expected rows by any number of dimensions from the raw events.
"""

from __future__ import annotations

import atexit
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gamelens.catalog import Catalog, find_metric
from gamelens.client.answer_cache import AnswerCache
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import Transport
from gamelens.client.query.executor import QueryExecutor
from gamelens.client.sync_client import Client
from gamelens.client.tables.time_ranges import WhenUnavailable
from gamelens.receipts import Receipt
from gamelens.sandbox.http.http_server import Certificate, load_certificate
from gamelens.wire.intervals import Interval
from support.brute_force import SORTS_BY, Fact, ReceivedEvent, ReferenceMetrics, ReferenceQuery, Row, buckets
from support.game_events import event
from support.random_worlds import GAMES, STUDIOS, play
from support.sandbox_stage import Stage

KEY = "key-of-acme"
ADDRESS = "http://127.0.0.1:9"
SEED, BATCHES = 15, 8  # three games in two studios, several countries a day, null in every dimension that may be null

Body = dict[str, Any]
Request = tuple[str, str, bytes, bytes | None]
"""The end of a path, the query string, the body and the key."""
Response = tuple[int, list[tuple[bytes, bytes]], bytes]
"""Status, headers and body."""


class Sent(NamedTuple):
    """One request: the end of its path, its query string, and its body if it is a metric.

    The interval of the body is shown as start and end, however it was sent.
    """

    name: str
    query: str
    body: Body | None


class Watch:
    """An app in front of *app* that records requests, and fails or changes some.

    With *memory* an answer that was given once is given again.

    Attributes:
        sent: all requests so far.
        fails: which requests are answered 501, which is not sent again, or another status.
        changes: a change to the JSON of good answers.
    """

    def __init__(self, app: ASGIApp, memory: dict[Request, Response] | None = None) -> None:
        self.sent: list[Sent] = []
        self.fails: Callable[[Sent], bool | int] = lambda _: False
        self.changes: Callable[[Sent, Any], object] | None = None
        self._app = app
        self._memory = memory

    @property
    def queries(self) -> list[Sent]:
        """The metric requests."""
        return [request for request in self.sent if request.body is not None]

    @property
    def lists(self) -> list[str]:
        """The names of the lists that were requested, but for the available interval."""
        return [request.name for request in self.sent if request.body is None and request.name != "interval"]

    def intervals(self) -> list[str]:
        """Return the intervals of the metric requests, in order."""
        return sorted(request.body["interval"] for request in self.queries if request.body is not None)

    def clear(self) -> None:
        """Forget all requests."""
        self.sent.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = await _read(receive)
        name = scope["path"].rpartition("/")[2]
        body = json.loads(raw) if scope["method"] == "POST" else None
        if body is not None:
            body["interval"] = str(Interval.parse(body["interval"]))
        sent = Sent(name, scope["query_string"].decode(), body)
        self.sent.append(sent)
        key = (name, sent.query, raw, dict(scope["headers"]).get(b"x-api-key"))
        if failure := self.fails(sent):
            status = 501 if failure is True else failure
            answer: Response = (status, [(b"content-type", b"application/json")], b'{"message": "not today"}')
        elif self._memory is not None and key in self._memory:
            answer = self._memory[key]
        else:
            answer = await self._ask(scope, raw)
            if self._memory is not None:
                self._memory[key] = answer
        status, headers, content = answer
        if self.changes is not None and status == 200:
            content = json.dumps(self.changes(sent, json.loads(content))).encode()
            headers = [(header, value) for header, value in headers if header != b"content-length"]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _ask(self, scope: Scope, raw: bytes) -> Response:
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        async def give() -> Message:
            return {"type": "http.request", "body": raw, "more_body": False}

        await self._app(scope, give, keep)
        return (
            messages[0]["status"],
            messages[0]["headers"],
            b"".join(message.get("body", b"") for message in messages[1:]),
        )


class ManualClock:
    """The client's own clock, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now_s


def quick(
    app: ASGIApp,
    *,
    cache: Path | None = None,
    key: str = KEY,
    address: str = ADDRESS,
    refresh_s: float = 3600.0,
    max_days: int | None = None,
    clock: ManualClock | None = None,
    when: WhenUnavailable = "raise",
    now: Callable[[], float] = time.time,
    metrics: Mapping[str, Any] | None = None,
) -> Client:
    """Return a client without a rate limiter, whose clock is *clock* or stands still, and that of receipts *now*.

    It has own *metrics*.
    """
    clock = clock or ManualClock()
    lens = copy(_blank())
    answers = AnswerCache(cache, owner=f"{address} {key}", now=clock) if cache is not None else None
    transport = Transport(address, key=Secret(key), pool=httpx.ASGITransport(app), ca_file=str(_authority().ca_file))
    service = MetricsApi(transport, refresh_s=refresh_s, clock=clock)
    lens._executor = QueryExecutor(
        service,
        answers,
        max_days=max_days,
        refresh_s=refresh_s,
        when=when,
        now=now,
        catalog=Catalog.defined(metrics or {}),
    )
    return lens


@cache
def _blank() -> Client:
    """Return the client that all quick clients are copies of."""
    return Client(api_key=KEY, metrics_url=ADDRESS, cache=False, progress=False)


@cache
def _authority() -> Certificate:
    """Return a certificate: reading the usual authorities takes longer than most queries."""
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    return load_certificate(folder)


class World:
    """A sandbox with events in it, and the expected rows of any query."""

    def __init__(self, stage: Stage, arrived: Sequence[ReceivedEvent] = ()) -> None:
        self.stage = stage
        self.truth = WideTruth(list(arrived))
        self._memory: dict[Request, Response] = {}

    @classmethod
    def played(cls, stage: Stage) -> World:
        """Return a world with the random population of `SEED`."""
        return cls(stage, play(stage, Random(SEED), batches=BATCHES)["acme"])

    def watch(self) -> Watch:
        """Return a view of the requests, with answers remembered since no data changes."""
        return Watch(self.stage.metrics_app, self._memory)


class WideTruth(ReferenceMetrics):
    """Expected rows by any number of dimensions, `studio_id` among them."""

    def value(self, fact: Fact, dimension: str) -> str | None:
        """Return the value of *dimension*, which may be `studio_id`."""
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
        """Return the rows that a frame must have, in each bucket as the service orders them.

        Columns: timestamp, *by* (ids), the fields.
        """
        game_ids = set(GAMES["acme"])
        game_ids &= set(games) if games is not None else game_ids
        game_ids &= set().union(*(STUDIOS[studio] for studio in studios)) if studios is not None else game_ids
        names = [*by]
        body: Body = {"filter": where, "since_days_ago": since_days_ago}
        selection = ReferenceQuery(metric, over.start, over.end, every, body, game_ids)
        if metric == "retention_retro":
            return self._returns(selection, names)
        facts = [fact for fact in self.facts if over.start <= fact.ts < over.end and fact.game_id in game_ids]
        facts = [fact for fact in facts if self._meets(fact, where)]
        result: list[Row] = []
        for stamp, first, last in buckets(over.start, over.end, every):
            bucket = [fact for fact in facts if first <= fact.ts < last]
            rows = self._rows(selection, bucket, names) if names else [self._fields(selection, bucket)]
            result += [{"timestamp": _moment(stamp), **_plain(row)} for row in rows]
        return result

    def _returns(self, selection: ReferenceQuery, names: list[str]) -> list[Row]:
        """Return expected retention by any dimensions of the install event."""
        since, result = selection.body["since_days_ago"], []
        for stamp, first, last in buckets(selection.start, selection.end, "day"):
            start, end = max(first, selection.start), min(last, selection.end)
            active = {fact.player for fact in self.facts if fact.player and start <= fact.ts < end}
            cohorts: dict[tuple[Any, ...], list[Any]] = {}
            for player, install in self.installs.items():
                is_asked = install.game_id in selection.games and self._meets(install, selection.body["filter"])
                if is_asked and (first.date() - install.day).days == since:
                    cohorts.setdefault(tuple(self.value(install, name) for name in names), []).append(player)
            rows = [
                {"timestamp": _moment(stamp), **dict(zip(names, key, strict=True)), "retention": back / len(players)}
                for key, players in cohorts.items()
                if (back := len(active & set(players)))
            ]
            result += sorted(rows, key=lambda row: rank(row, "retention", names))
        return result


def sale(day: str, amount: int = 499, **fields: Any) -> Body:
    """Return a purchase at noon of *day*, in cents."""
    noon = datetime.fromisoformat(f"{day}T12:00+00:00")
    bought = {"event_id": "pack:gold", "amount": amount, "currency": "USD", "transaction_num": 1}
    return event(**{"category": "business", "client_ts": int(noon.timestamp())} | bought | fields)


def sell(stage: Stage, *events: Body, game_id: str = "1001") -> None:
    """Submit *events* and process them at once."""
    assert stage.submit(list(events), game_id=game_id).status_code == 200
    stage.process()


def rank(row: Row, main: str, names: Sequence[str]) -> tuple[bool, float, tuple[tuple[bool, str], ...]]:
    """Return the sort key of a row: largest first, null last (Wire 2.10, Row order)."""
    value = row[main]
    return (value is None, -(value or 0), tuple((row[name] is None, row[name] or "") for name in names))


def sorts_by(metric: str) -> str:
    """Return the field that orders the rows of *metric*."""
    return "retention" if metric == "retention_retro" else SORTS_BY.get(metric, metric)


def with_service_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of one metric with the columns named as the service names the fields."""
    asked = Receipt.of(frame.attrs).asked.metrics
    known = find_metric(asked[0]) if len(asked) == 1 else None
    return frame.rename(columns={column: name for name, column in known.columns.items()}) if known else frame


def rows_of(frame: pd.DataFrame, *, titles: bool = False) -> list[Row]:
    """Return the rows of a frame in plain Python, null as None, titles only if wanted.

    The fields of one metric are named as the service names them.
    """
    frame = with_service_names(frame)
    names = [name for name in frame.columns if titles or name not in ("game", "studio")]
    plain = pd.DataFrame(frame)[names].astype(object)  # without the receipt, which pandas copies at every step
    records = plain.where(plain.notna(), None).to_dict("records")
    return [
        {str(name): value for name, value in row.items()} | {"timestamp": row["timestamp"].to_pydatetime()}
        for row in records
    ]


def assert_equal(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Assert the same rows, order, columns, dtypes and categories.

    Receipts may differ.
    """
    left, right = pd.DataFrame(one), pd.DataFrame(other)  # without their receipts
    pd.testing.assert_frame_equal(left, right, check_exact=False, rtol=1e-12)


def is_close(one: object, other: object) -> bool:
    """Return whether two values are equal but for the last digits of a number."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))
    return bool(one == other)


def assert_same(frame: pd.DataFrame, expected: list[Row], metric: str, names: Sequence[str]) -> None:
    """Assert that *frame* has exactly the rows *expected*, ordered as the service does.

    It has all fields if it was asked for them, else the metric and its parts.
    """
    rows = rows_of(frame)
    known = find_metric(metric)
    hidden = {*known.columns} - {*known.shown} if known and Receipt.of(frame.attrs).asked.fields is None else set()
    expected = [{name: value for name, value in row.items() if name not in hidden} for row in expected]
    keys = ["timestamp", *(name for name in frame.columns if name in (*names, "game_id", "studio_id"))]

    def by_key(some: list[Row]) -> dict[Any, Row]:
        by_values = {tuple(row[key] for key in keys): row for row in some}
        assert len(by_values) == len(some), "two rows of the same bucket and values"
        return by_values

    actual, expected_rows = by_key(rows), by_key(expected)
    assert actual.keys() == expected_rows.keys(), (
        sorted(map(str, actual.keys() ^ expected_rows.keys())),
        len(actual),
        len(expected_rows),
    )
    for key, row in expected_rows.items():
        assert actual[key].keys() == row.keys(), (key, actual[key], row)
        assert all(is_close(actual[key][name], row[name]) for name in row), (key, actual[key], row)
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


async def _read(receive: Receive) -> bytes:
    parts, is_more = [], True
    while is_more:
        message = await receive()
        parts.append(message.get("body", b""))
        is_more = message.get("more_body", False)
    return b"".join(parts)
