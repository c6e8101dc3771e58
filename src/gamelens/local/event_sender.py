"""Brings what the simulator makes to the collector, through the client.

`EventSender` submits bodies that are ready: many requests at once, but each device's in order where events are repeated or
have no time of their own, because then the first copy to arrive counts. `record_sessions` has real clients record every
session, `send_live` sends what a population does while time goes by.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import time
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from gamelens.errors import GamelensError, Refused, Retryable

if TYPE_CHECKING:
    from gamelens.client.events.collector_client import CollectorClient, SubmitResult
    from gamelens.client.events.event_recorder import EventRecorder
    from gamelens.client.events.player_session import PlayerSession
    from gamelens.simulator import LiveEvent, PlayedSession, RequestBatch
    from gamelens.simulator.events.defects import RequestDefect
    from gamelens.wire.event_validator import RejectedEvent

SUBMITTED_AT_ONCE: Final = 8
_ATTEMPTS: Final = 6
_PAUSE_S: Final = 0.2
_TICK_S: Final = 0.2
_LONGEST_TICK_S: Final = 5.0
"""Of live play: what is due is looked for as seldom, and as often."""
_ADDRESSES: Final = {"US": "192.0.2.7", "DE": "198.51.100.7", "JP": "203.0.113.7"}
"""Addresses reserved for documentation, which a sandbox takes for these countries."""
_NOWHERE: Final = "198.18.0.1"
"""Reserved for benchmarks: from no country."""

Mode = Literal["batches", "clients", "server"]
"""Bodies that are ready, a client on each player's device, or a server that submits for its players."""

Clients = Mapping[str, "CollectorClient"]
"""A client for each game id."""


class EventSender:
    """Submits batches and checks that the collector rejects exactly what it must.

    Args:
        clients: of the games; closed at the end.
        received: how many events the collector has received so far; asked where a request may have been lost that
            must not be made twice. It raises Retryable as long as nobody answers.
        on_batch: told the events of each batch that was acknowledged.
        on_rejected: told the game id and each event that was rejected.
    """

    def __init__(
        self,
        clients: Clients,
        received: Callable[[], Awaitable[int]],
        *,
        on_batch: Callable[[int], object] = lambda _: None,
        on_rejected: Callable[[str, RejectedEvent], object] = lambda *_: None,
    ) -> None:
        self.events = self.requests = self.sent_bytes = 0
        self._clients, self._received = clients, received
        self._on_batch, self._on_rejected = on_batch, on_rejected

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await _close(self._clients)

    async def submit_all(self, batches: Iterator[RequestBatch], *, in_order: bool) -> None:
        """Submit *batches*: several requests are under way while the next is made, *in_order* one of a device.

        Raises:
            Refused: the collector rejected what is good, or took what is not.
        """
        async with self:
            try:
                await (self._submit_by_device(batches) if in_order else self._submit_at_once(batches))
            except* GamelensError as errors:
                raise errors.exceptions[0] from None

    async def _submit_at_once(self, batches: Iterator[RequestBatch]) -> None:
        turn = asyncio.Lock()

        async def work() -> None:
            while True:
                async with turn:
                    batch = await asyncio.to_thread(next, batches, None)
                if batch is None:
                    return
                await self.submit(batch)

        async with asyncio.TaskGroup() as workers:
            for _ in range(SUBMITTED_AT_ONCE):
                workers.create_task(work())

    async def _submit_by_device(self, batches: Iterator[RequestBatch]) -> None:
        """Several devices at once; alone goes what no device made, and what would count twice."""
        lanes: list[asyncio.Queue[RequestBatch | None]] = [asyncio.Queue(1) for _ in range(SUBMITTED_AT_ONCE)]

        async def work(lane: asyncio.Queue[RequestBatch | None]) -> None:
            while (batch := await lane.get()) is not None:
                await self.submit(batch)
                lane.task_done()

        async with asyncio.TaskGroup() as workers:
            for lane in lanes:
                workers.create_task(work(lane))
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                if batch.device is not None and batch.is_repeatable:
                    await lanes[batch.device % len(lanes)].put(batch)
                    continue
                for lane in lanes:
                    await lane.join()
                await self.submit(batch)
            for lane in lanes:
                await lane.put(None)

    async def submit(self, batch: RequestBatch) -> None:
        """Submit one batch, again where need be.

        Raises:
            Refused: the collector rejected what is good, or took what is not.
        """
        if batch.is_repeatable:
            await self._submit(batch)
        else:
            await self._submit_once(batch)
        self.events += batch.events
        self.requests += 1
        self._on_batch(batch.events)

    async def _submit_once(self, batch: RequestBatch) -> None:
        """Submit what would count twice: when no answer comes, first see whether it was received."""
        for attempt in range(_ATTEMPTS):
            before = await self._has_received()
            try:
                await self._submit(batch, attempts=1)
            except Retryable:
                if attempt + 1 == _ATTEMPTS:
                    raise
                if await self._has_received() == before + batch.events:
                    return
            else:
                return

    async def _submit(self, batch: RequestBatch, *, attempts: int = _ATTEMPTS) -> None:
        client, bad = self._clients[batch.game_id], batch.bad
        answer = await (_submit_badly(client, batch.body, bad) if bad else client.submit(batch.body, attempts=attempts))
        self.sent_bytes += answer.sent_bytes
        if len(answer.rejected) != batch.rejected:
            first = f": {answer.rejected[0]}" if answer.rejected else ""
            raise Refused(
                f"the collector rejected {len(answer.rejected)} of {batch.events} events "
                f"where it must {batch.rejected}{first}"
            )
        for rejected in answer.rejected:
            self._on_rejected(batch.game_id, rejected)

    async def _has_received(self) -> int:
        """What the collector has received, as soon as it says so."""
        for attempt in range(_ATTEMPTS):
            with contextlib.suppress(Retryable):
                return await self._received()
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        return await self._received()


async def record_sessions(
    sessions: Iterator[PlayedSession],
    clients: Clients,
    *,
    mode: Mode,
    set_time: Callable[[int], Awaitable[object]],
    on_batch: Callable[[int], object] = lambda _: None,
) -> int:
    """Have a client record each of *sessions*, one after the other; answers how many events there were.

    *set_time* is told the second at which each begins: the service must live in that time, since clients believe it.

    Raises:
        Refused: an event was not delivered.
    """
    record = _on_a_device if mode == "clients" else _by_a_server
    events = 0
    try:
        while (session := await asyncio.to_thread(next, sessions, None)) is not None:
            await set_time(session.events[0].ts_s)
            delivered = await record(clients[session.game_id], session)
            if delivered != len(session.events):
                raise Refused(f"{delivered} of {len(session.events)} events of session {session.session_id} arrived")
            events += delivered
            on_batch(delivered)
    finally:
        await _close(clients)
    return events


async def _on_a_device(client: CollectorClient, session: PlayedSession) -> int:
    """A `PlayerSession` of its own; how many events were delivered."""
    from gamelens.client.events.player_session import PlayerSession

    course = _SessionClock(session)
    who: dict[str, Any] = {**session.identity, "also": session.also}
    async with PlayerSession(client, **who, clock=course.now, make_uuid=course.next_uuid) as player:
        course.play(player)
    return player.report().collected


async def _by_a_server(client: CollectorClient, session: PlayedSession) -> int:
    """A `GameServer` that submits with the player's address; how many events were delivered."""
    from gamelens.client.events.game_server import GameServer

    course, also = _SessionClock(session), dict(session.also)
    address = _ADDRESSES.get(also["country_code"])
    if address:  # then the service finds the country out by itself
        del also["country_code"]
    server = GameServer(client, clock=course.now, make_uuid=course.next_uuid)
    async with server:
        player = await server.join(**session.identity, also=also, ip=address or _NOWHERE)
        course.play(player)
    return server.report().collected


async def send_live(
    days: Iterator[list[LiveEvent]],
    sender: EventSender,
    game_ids: list[str],
    *,
    begins_s: int,
    speed: float,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Send what is due of *days*, one after the other, while time goes by *speed* times as fast from *begins_s* on.

    Events say they happen when they are sent: the service lives in real time. The next day is made while one is played.
    Ends when there are no more days.
    """
    began = clock()
    coming = asyncio.create_task(asyncio.to_thread(next, days, None))
    while (day := await coming) is not None:
        coming = asyncio.create_task(asyncio.to_thread(next, days, None))
        place = bisect_left(day, begins_s, key=lambda event: event.ts_s)
        while place < len(day):
            now = clock()
            due = bisect_right(day, begins_s + (now - began) * speed, key=lambda event: event.ts_s)
            for batch in _due(day[place:due], game_ids, int(now)):
                await sender.submit(batch)
            place = max(place, due)
            if place < len(day):
                until_next_s = (day[place].ts_s - begins_s) / speed - (clock() - began)
                await sleep(min(max(until_next_s, _TICK_S), _LONGEST_TICK_S))


def _due(events: list[LiveEvent], game_ids: list[str], now_s: int) -> Iterator[RequestBatch]:
    """A request for each game that has any of *events*."""
    from gamelens.simulator import batches_of

    for game, game_id in enumerate(game_ids):
        if own := [event.at(now_s) for event in events if event.game == game]:
            yield from batches_of(own, game_id)


async def _submit_badly(client: CollectorClient, content: bytes, bad: RequestDefect) -> SubmitResult:
    """Submit *content* with what is *bad* about the request, and see that it is answered with what that is owed."""
    body = gzip.compress(content) if bad.is_gzipped else content
    body = body[: len(body) * 2 // 3] if bad.is_cut else body
    answer = await client.submit_as_is(body, is_gzipped=bad.is_gzipped, signed=None if bad.is_signed else content)
    if answer.status != bad.status:
        raise Refused(f"the collector answers {answer.status} to a request that is owed {bad.status}: {bad.name}")
    return answer


class _SessionClock:
    """A session as it is played: the time on its device, and the ids it makes, in the order it makes them."""

    def __init__(self, session: PlayedSession) -> None:
        self._session = session
        self._now_s = session.events[0].ts_s
        self._ids = iter([session.session_id, *(event.event_uuid for event in session.events)])

    def now(self) -> float:
        return self._now_s

    def next_uuid(self) -> str:
        return next(self._ids)

    def play(self, player: EventRecorder | PlayerSession) -> None:
        """Record what lies between the start and the end, and go to the end."""
        for event in self._session.events[1:-1]:
            self._now_s = event.ts_s
            player.add(event.category, **event.fields)
        self._now_s = self._session.events[-1].ts_s


async def _close(clients: Clients) -> None:
    for client in clients.values():
        await client.aclose()
