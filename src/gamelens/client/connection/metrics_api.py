"""The metrics service as the client sees it: what is available, the lists, and the answer to one request.

Whatever changes at most once an hour (Metrics, What the service does 4) is asked for once an hour.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote, unquote

import msgspec

from gamelens.client.connection.event_loop import gather
from gamelens.client.connection.rate_limit import Route
from gamelens.client.connection.transport import HttpRequest, HttpResponse, HttpSender, Params, RequestStats
from gamelens.client.tables.time_ranges import (
    ResolvedRange,
    TimeRange,
    WhenUnavailable,
    clip_to_available,
    resolve_range,
)
from gamelens.errors import BadQuery, NotYetAvailable, ServiceError, Truncated
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import MetricQuery, encode_query
from gamelens.wire.receipts import Provenance
from gamelens.wire.results import Game, Studio, Values

T = TypeVar("T")

BASE = "/metrics/v1"
_JSON = {"Accept": "application/json"}
_JSON_BOTH = {"Accept": "application/json", "Content-Type": "application/json"}
_LEAST_POLL_S = 0.2
_EDITION = "x-data-edition"
_SCENARIO = "x-sandbox-scenario"
PROVENANCE_HEADERS = (_EDITION, _SCENARIO)
"""Headers of the available interval that only a sandbox sends."""
_OWN_QUESTIONS = {"retention": "lens.retention()"}


class GameListing(msgspec.Struct, frozen=True):
    """A game and the studio it belongs to; *studio* is None where the service does not name it."""

    id: str
    title: str
    studio_id: str
    studio: str | None


def studios_key(interval: Interval) -> object:
    """What the list of studios is remembered by."""
    return "studios", interval


def games_key(studio: str, interval: Interval) -> object:
    """What the list of a studio's games is remembered by."""
    return "games", studio, interval


def values_key(dimension: str, interval: Interval, studios: Collection[str], games: Collection[str]) -> object:
    """What the values of a dimension are remembered by."""
    return "values", dimension, interval, tuple(studios), tuple(games)


class MetricsApi:
    """Asks one metrics service with one key.

    Args:
        transport: carries the requests.
        refresh_s: how long an answer that changes hourly is remembered.
        changes: False for a recording, where waiting for more is of no use.
        clock, sleep: time.

    *edition* is the name the service gives to its data, if it does: other data has another. *provenance* is the origin
    of the answers: a service that names an edition is a sandbox. *last_available* is what it last said, however long
    ago.
    """

    def __init__(
        self,
        transport: HttpSender,
        *,
        refresh_s: float = 3600.0,
        changes: bool = True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._refresh_s = refresh_s
        self._changes = changes
        self.edition = ""
        self.provenance = transport.provenance
        self.last_available: Interval | None = None
        self._clock = clock
        self._sleep = sleep
        self._remembered: dict[object, tuple[float, Any]] = {}
        self._asking: dict[object, asyncio.Lock] = {}

    async def available(self) -> Interval:
        """The interval the service has (Metrics, Endpoints)."""
        return await self._remember("available", self._ask_available)

    async def metrics(self) -> list[str]:
        """Names of the metrics the service has."""
        return await self._remember("metrics", lambda: self._get("/metrics", list[str], route="metric list"))

    async def dimensions(self) -> list[str]:
        """Names of the dimensions the service has."""
        return await self._remember("dimensions", lambda: self._get("/dimensions", list[str]))

    async def dimension_values(
        self,
        dimension: str,
        interval: Interval,
        *,
        studios: Collection[str] = (),
        games: Collection[str] = (),
        tally: RequestStats | None = None,
    ) -> list[str]:
        """Values of *dimension* in *interval*, all of them.

        Raises:
            Truncated: there may be more than the service gives.
        """
        params = [("interval", str(interval)), ("limit", str(MAX_LIMIT))]
        params += [("studios", studio) for studio in studios] + [("games", game) for game in games]
        path = f"/dimensions/{quote(dimension, safe='')}"
        answer = await self._remember(
            values_key(dimension, interval, studios, games), lambda: self._get(path, Values, params, tally=tally)
        )
        if len(answer.values) >= MAX_LIMIT:
            raise Truncated(MAX_LIMIT)
        return answer.values

    def remembered(self, key: object) -> Any:
        """What the list called *key* was when it was asked less than a refresh ago; None where it was not."""
        asked_at, answer = self._remembered.get(key, (None, None))
        return answer if asked_at is not None and self._clock() - asked_at < self._refresh_s else None

    async def studios(self, interval: Interval, tally: RequestStats | None = None) -> list[Studio]:
        """Studios that sent data in *interval*."""
        params = [("interval", str(interval))]
        return await self._remember(
            studios_key(interval), lambda: self._get("/studios", list[Studio], params, tally=tally)
        )

    async def games(
        self, interval: Interval, studios: Collection[str] | None = None, tally: RequestStats | None = None
    ) -> list[GameListing]:
        """Games that sent data in *interval*, asked studio by studio: the service does not say whose a game is."""
        names = {studio.id: studio.name for studio in await self.studios(interval, tally)}
        ids = list(names) if studios is None else list(dict.fromkeys(studios))
        found = await gather(self._games_of(studio, interval, tally) for studio in ids)
        return [
            GameListing(game.id, game.title, studio, names.get(studio))
            for studio, games in zip(ids, found, strict=True)
            for game in games
        ]

    async def ask(self, metric: str, query: MetricQuery, tally: RequestStats) -> bytes:
        """The answer to *query*, as it came; raises what `Transport.send` does."""
        request = HttpRequest(
            method="POST",
            path=f"{BASE}/metrics/{quote(metric, safe='')}",
            headers=_JSON_BOTH,
            body=encode_query(query),
        )
        return (await self._transport.send(request, tally)).body

    async def settle(
        self, over: TimeRange, when: WhenUnavailable, deadline_s: float | None = None, tally: RequestStats | None = None
    ) -> ResolvedRange:
        """What *over* asks for and what of it may be asked for now.

        "wait" asks again at most once a refresh, for *deadline_s* at most (None: two refreshes, within which
        whatever the service has received by now has been processed).

        Raises:
            NotYetAvailable: see `clip_to_available`; with "wait", still not available at the deadline.
        """
        available = await self.available()
        asked = resolve_range(over, available)
        if when == "wait" and self._changes and asked.start >= available.start:
            deadline_s = 2 * self._refresh_s if deadline_s is None else deadline_s
            available = await self._wait_for(asked, deadline_s, tally or RequestStats())
        return ResolvedRange(asked, available, clip_to_available(asked, available, when))

    async def list_strange(
        self, field: Literal["metric", "by", "where"], names: Collection[str], known: Collection[str]
    ) -> list[str]:
        """Those of *names*, found in *field*, that are not *known* here and that the service lists.

        Raises:
            BadQuery: it does not list one either; with the nearest name.
        """
        strange = [name for name in names if name not in known]
        if not strange:
            return []
        listed = await (self.metrics() if field == "metric" else self.dimensions())
        for name in strange:
            if name not in listed:
                rule = "is not a metric" if field == "metric" else "is not a dimension"
                raise unknown_name_error(field, name, rule, {*listed, *known})
        return strange

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _wait_for(self, asked: Interval, deadline_s: float, tally: RequestStats) -> Interval:
        ends_at = self._clock() + deadline_s
        while asked not in (available := await self.available()):
            wait_s = max(self._refresh_s, _LEAST_POLL_S)
            if self._clock() + wait_s > ends_at:
                raise NotYetAvailable(asked, available, tried="wait")
            tally.note = f"waiting until {asked.end:%Y-%m-%d %H:%M} is available, now {available.end:%Y-%m-%d %H:%M}"
            await self._sleep(wait_s)
        tally.note = ""
        return available

    async def _games_of(self, studio: str, interval: Interval, tally: RequestStats | None) -> list[Game]:
        params = [("interval", str(interval)), ("studios", studio)]
        return await self._remember(
            games_key(studio, interval), lambda: self._get("/games", list[Game], params, tally=tally)
        )

    async def _ask_available(self) -> Interval:
        answer = await self._send("/interval")
        text = _decoded(answer, str)
        self.edition = answer.headers.get(_EDITION, "")
        self.provenance = _provenance(self._transport.provenance, answer)
        try:
            self.last_available = Interval.parse(text)
            return self.last_available
        except MalformedInterval:
            raise ServiceError(200, f"{text!r} is not the promised interval") from None

    async def _get(
        self,
        path: str,
        kind: type[T],
        params: Params = (),
        *,
        route: Route = "other",
        tally: RequestStats | None = None,
    ) -> T:
        return _decoded(await self._send(path, params, route=route, tally=tally), kind)

    async def _send(
        self, path: str, params: Params = (), *, route: Route = "other", tally: RequestStats | None = None
    ) -> HttpResponse:
        request = HttpRequest(method="GET", path=BASE + path, params=params, headers=_JSON, route=route)
        return await self._transport.send(request, tally)

    async def _remember(self, key: object, ask: Callable[[], Awaitable[T]]) -> T:
        """What *ask* answered less than a refresh ago, or answers now; asked once, however many wait for it."""
        async with self._asking.setdefault(key, asyncio.Lock()):
            asked_at, answer = self._remembered.get(key, (None, None))
            if asked_at is None or self._clock() - asked_at >= self._refresh_s:
                answer = await ask()
                self._forget_stale()
                self._remembered[key] = (self._clock(), answer)
            return cast("T", answer)

    def _forget_stale(self) -> None:
        for key, (asked_at, _) in list(self._remembered.items()):
            if self._clock() - asked_at >= self._refresh_s:
                del self._remembered[key]
                if not self._asking[key].locked():
                    del self._asking[key]


def unknown_name_error(field: str, name: str, rule: str, known: Collection[str]) -> BadQuery:
    """The refusal of *name*; where the client answers to that name itself, it says how."""
    own = _OWN_QUESTIONS.get(name) if field == "metric" else None
    return BadQuery(field, name, rule, [own] if own else sorted(known))


def _provenance(sender: Provenance, answer: HttpResponse) -> Provenance:
    """Return the provenance of *sender* with what the headers of *answer* add to it."""
    scenario = unquote(answer.headers.get(_SCENARIO, "")) or None
    is_sandbox = sender.kind == "real" and _EDITION in answer.headers
    return msgspec.structs.replace(sender, kind="sandbox" if is_sandbox else sender.kind, scenario=scenario)


def _decoded(answer: HttpResponse, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(200, f"not the promised JSON: {error}") from None
