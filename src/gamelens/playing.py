"""Brings what the simulator makes to the collector, through the client: many requests at once, or strictly in order.

Order matters where events are repeated or have no time of their own: then the first copy to arrive counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from gamelens.errors import GamelensError, Refused, Retryable

if TYPE_CHECKING:
    from gamelens.client.collector import CollectorClient, Rejected
    from gamelens.simulator import Batch

SUBMITTED_AT_ONCE: Final = 8
_ATTEMPTS: Final = 6
_PAUSE_S: Final = 0.2

Clients = Mapping[str, "CollectorClient"]
"""A client for each game id."""


class Sender:
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
        on_rejected: Callable[[str, Rejected], object] = lambda *_: None,
    ) -> None:
        self.events = self.requests = self.sent_bytes = 0
        self._clients, self._received = clients, received
        self._on_batch, self._on_rejected = on_batch, on_rejected

    async def submit_all(self, batches: Iterator[Batch], *, in_order: bool) -> None:
        """Submit *batches*: several requests are under way while the next is made, unless they go *in_order*.

        Raises:
            Refused: the collector rejected what is good, or took what is not.
        """
        turn = asyncio.Lock()

        async def work() -> None:
            while True:
                async with turn:
                    batch = await asyncio.to_thread(next, batches, None)
                if batch is None:
                    return
                await self.submit(batch)

        async with self._closing():
            try:
                async with asyncio.TaskGroup() as workers:
                    for _ in range(1 if in_order else SUBMITTED_AT_ONCE):
                        workers.create_task(work())
            except* GamelensError as errors:
                raise errors.exceptions[0] from None

    async def submit(self, batch: Batch) -> None:
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

    async def _submit_once(self, batch: Batch) -> None:
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

    async def _submit(self, batch: Batch, *, attempts: int = _ATTEMPTS) -> None:
        answer = await self._clients[batch.game_id].submit(batch.body, attempts=attempts)
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

    @contextlib.asynccontextmanager
    async def _closing(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for client in self._clients.values():
                await client.aclose()
