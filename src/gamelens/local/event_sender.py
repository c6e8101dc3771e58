"""Delivery of simulated events to the collector, through the client.

`EventSender` submits ready-made batches. Many requests are in flight. The requests of one device keep their order if
its events are repeated or have no time, because then the first copy to arrive counts. `record_sessions` has real
clients record every session. `send_live` sends events when they are due.
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
_MIN_TICK_S: Final = 0.2
_MAX_TICK_S: Final = 5.0
"""Shortest and longest pause of live play between two looks for due events."""
_ADDRESSES: Final = {"US": "192.0.2.7", "DE": "198.51.100.7", "JP": "203.0.113.7"}
"""Addresses reserved for documentation, which a sandbox maps to these countries."""
_UNKNOWN_COUNTRY: Final = "198.18.0.1"
"""An address reserved for benchmarks, which belongs to no country."""

Mode = Literal["clients", "server"]
"""Recorder of simulated sessions: a client per player, or a server for all players."""

Clients = Mapping[str, "CollectorClient"]
"""A client for each game id."""


class EventSender:
    """Submits batches and checks that the collector rejects exactly the events that it must.

    Args:
        clients: closed at the end.
        received: returns how many events the collector has received so far. It is called after a request that may
            have been lost and must not be sent twice, and raises Retryable while the sandbox does not answer.
        on_batch: called with the number of events of each acknowledged batch.
        on_rejected: called with the game id and the event for each event that was rejected.
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
        """Submit *batches*, several at once. If *in_order*, each device has one in flight.

        The next batch is made while requests are in flight.

        Raises:
            Refused: the collector rejected a valid event, or accepted one that it must reject.
        """
        async with self:
            try:
                await (self._submit_by_device(batches) if in_order else self._submit_at_once(batches))
            except* GamelensError as errors:
                raise errors.exceptions[0] from None

    async def _submit_at_once(self, batches: Iterator[RequestBatch]) -> None:
        lock = asyncio.Lock()

        async def work() -> None:
            while True:
                async with lock:
                    batch = await asyncio.to_thread(next, batches, None)
                if batch is None:
                    return
                await self.submit(batch)

        async with asyncio.TaskGroup() as workers:
            for _ in range(SUBMITTED_AT_ONCE):
                workers.create_task(work())

    async def _submit_by_device(self, batches: Iterator[RequestBatch]) -> None:
        """Submit the batches of several devices at once, each device's in order.

        A batch of no device, or one that would count twice, is submitted alone.
        """
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
        """Submit one batch, again if necessary.

        Raises:
            Refused: the collector rejected a valid event, or accepted one that it must reject.
        """
        if batch.is_repeatable:
            await self._submit(batch)
        else:
            await self._submit_once(batch)
        self.events += batch.events
        self.requests += 1
        self._on_batch(batch.events)

    async def _submit_once(self, batch: RequestBatch) -> None:
        """Submit a batch that would count twice: retry only if it was not received."""
        for attempt in range(_ATTEMPTS):
            before = await self._count_received()
            try:
                await self._submit(batch, attempts=1)
            except Retryable:
                if attempt + 1 == _ATTEMPTS:
                    raise
                if await self._count_received() == before + batch.events:
                    return
            else:
                return

    async def _submit(self, batch: RequestBatch, *, attempts: int = _ATTEMPTS) -> None:
        client, defect = self._clients[batch.game_id], batch.bad
        answer = await (
            _submit_with_defect(client, batch.body, defect) if defect else client.submit(batch.body, attempts=attempts)
        )
        self.sent_bytes += answer.sent_bytes
        if len(answer.rejected) != batch.rejected:
            first = f": {answer.rejected[0]}" if answer.rejected else ""
            raise Refused(
                f"the collector rejected {len(answer.rejected)} of {batch.events} events "
                f"instead of {batch.rejected}{first}"
            )
        for rejected in answer.rejected:
            self._on_rejected(batch.game_id, rejected)

    async def _count_received(self) -> int:
        """Return how many events the collector has received, waiting for a sandbox that restarts."""
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
    """Record *sessions* with real clients, one by one, and return the number of events.

    *set_time* is called with the second at which each session begins: clients correct their clocks by the service, so
    the service must be at that time.

    Raises:
        Refused: an event was not delivered.
    """
    record = _record_on_device if mode == "clients" else _record_by_server
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


async def _record_on_device(client: CollectorClient, session: PlayedSession) -> int:
    """Record *session* with a `PlayerSession`, and return how many events were delivered."""
    from gamelens.client.events.player_session import PlayerSession

    device = _SessionClock(session)
    identity: dict[str, Any] = {**session.identity, "also": session.also}
    async with PlayerSession(client, **identity, clock=device.now, make_uuid=device.next_uuid) as player:
        device.play(player)
    return player.report().collected


async def _record_by_server(client: CollectorClient, session: PlayedSession) -> int:
    """Record *session* with a `GameServer`, and return how many events were delivered."""
    from gamelens.client.events.game_server import GameServer

    device, also = _SessionClock(session), dict(session.also)
    address = _ADDRESSES.get(also["country_code"])
    if address:  # then the service finds the country out by itself
        del also["country_code"]
    server = GameServer(client, clock=device.now, make_uuid=device.next_uuid)
    async with server:
        player = await server.join(**session.identity, also=also, ip=address or _UNKNOWN_COUNTRY)
        device.play(player)
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
    """Send the events of *days* when they are due, in a time that runs *speed* times as fast.

    Simulated time is *begins_s* at the start; earlier events are skipped. Events carry the time at which they are sent,
    because the service runs in real time. Each day is made while the one before is sent. Returns after the last day.
    """
    began = clock()
    next_day = asyncio.create_task(asyncio.to_thread(next, days, None))
    while (day := await next_day) is not None:
        next_day = asyncio.create_task(asyncio.to_thread(next, days, None))
        place = bisect_left(day, begins_s, key=lambda event: event.ts_s)
        while place < len(day):
            now = clock()
            due = bisect_right(day, begins_s + (now - began) * speed, key=lambda event: event.ts_s)
            for batch in _due_batches(day[place:due], game_ids, int(now)):
                await sender.submit(batch)
            place = max(place, due)
            if place < len(day):
                until_next_s = (day[place].ts_s - begins_s) / speed - (clock() - began)
                await sleep(min(max(until_next_s, _MIN_TICK_S), _MAX_TICK_S))


def _due_batches(events: list[LiveEvent], game_ids: list[str], now_s: int) -> Iterator[RequestBatch]:
    """Yield a batch for each game that has any of *events*."""
    from gamelens.simulator import batches_of

    for game, game_id in enumerate(game_ids):
        if due := [event.at(now_s) for event in events if event.game == game]:
            yield from batches_of(due, game_id)


async def _submit_with_defect(client: CollectorClient, content: bytes, defect: RequestDefect) -> SubmitResult:
    """Submit *content* in a request with a defect, and check the status of the answer."""
    body = gzip.compress(content) if defect.is_gzipped else content
    body = body[: len(body) * 2 // 3] if defect.is_cut else body
    answer = await client.submit_as_is(body, is_gzipped=defect.is_gzipped, signed=None if defect.is_signed else content)
    if answer.status != defect.status:
        raise Refused(
            f"the collector answered {answer.status} to a request that should get {defect.status}: {defect.name}"
        )
    return answer


class _SessionClock:
    """The device of one simulated session: its time, and the ids in the order it makes them."""

    def __init__(self, session: PlayedSession) -> None:
        self._session = session
        self._now_s = session.events[0].ts_s
        self._ids = iter([session.session_id, *(event.event_uuid for event in session.events)])

    def now(self) -> float:
        return self._now_s

    def next_uuid(self) -> str:
        return next(self._ids)

    def play(self, player: EventRecorder | PlayerSession) -> None:
        """Record the events between the first and the last, then set the time of the last."""
        for event in self._session.events[1:-1]:
            self._now_s = event.ts_s
            player.add(event.category, **event.fields)
        self._now_s = self._session.events[-1].ts_s


async def _close(clients: Clients) -> None:
    for client in clients.values():
        await client.aclose()
