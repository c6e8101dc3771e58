"""The two inits of one player's session, each used without the other.

Version 2 says whether the game is enabled (Wire 1.11, Version 2 init), the other has the configs (Wire 1.12, Remote
config init), and either has the server's time. Whatever a collector answers to one, also that there is no such address,
the other is used, and neither is asked again. Only an init without an answer is. No event of the player is sent until
version 2 is answered, or its first request has ended without an answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from gamelens.client.connection.error_responses import TRANSIENT_STATUSES
from gamelens.client.events.batch_sender import BatchSender
from gamelens.client.events.event_validation import PlayerIdentity
from gamelens.client.events.outbox import BatchKey
from gamelens.errors import AuthError, BadQuery, RateLimited, Retryable, ServiceError, Unreachable
from gamelens.wire.remote_config import InitAnswer

_log = logging.getLogger(__name__)


class SessionInit:
    """The inits of one session, and the configs and experiment that hold.

    Version 2 decides whether *sender* delivers the player's events. *answer* has the configs and experiment: those just
    received, else those stored for the player, else None.
    """

    def __init__(
        self,
        identity: PlayerIdentity,
        sender: BatchSender,
        *,
        forwarded_for: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = sender.outbox.file
        self.answer: InitAnswer | None = self._file.load_init_answer(identity.user_id)
        self._stored = self.answer
        self._sender, self._clock = sender, clock
        self._key = BatchKey(identity.user_id, forwarded_for)
        self._fields: dict[str, Any] = {
            "user_id": identity.user_id,
            "platform": identity.platform,
            "os_version": identity.os_version,
            "build": identity.build,
            "forwarded_for": forwarded_for,
            "attempts": 1,
        }
        self._unanswered: dict[str, Callable[[], Awaitable[None]]] = {"v2": self._ask_v2, "configs": self._ask_configs}
        self._backoff = sender.new_backoff()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._has_configs = False

    @property
    def is_answered(self) -> bool:
        """Whether both inits were answered, whatever the answers."""
        return not self._unanswered

    @property
    def is_due(self) -> bool:
        """Whether the pause is over: the pause after failed events of the player, else its own."""
        return (self._sender.backoff(self._key) or self._backoff).is_over

    @property
    def under_way(self) -> list[asyncio.Task[None]]:
        """The requests that wait for their answers."""
        return list(self._tasks.values())

    def begin(self) -> None:
        """Begin the player's session: events wait for version 2. Of earlier sessions only `enabled` = false counts."""
        self._sender.disabled.pop(self._key.user_id, None)
        self._sender.hold(self._key.user_id)

    async def ask(self, *, within_s: float) -> bool:
        """Send the inits without an answer, both at once, and wait *within_s*.

        A request goes on after the wait, and its answer is used when it comes. Returns whether both are answered now.
        """
        for name in [name for name in self._unanswered if name not in self._tasks]:
            self._tasks[name] = asyncio.create_task(self._use(name, self._unanswered[name]))
        if self._tasks:
            done, _ = await asyncio.wait(self.under_way, timeout=within_s)
            for task in done:
                task.result()
        return self.is_answered

    async def cancel(self) -> None:
        """End the requests under way: their answers are not used."""
        tasks = self.under_way
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _use(self, name: str, ask: Callable[[], Awaitable[None]]) -> None:
        """Send one init and use its answer.

        An unusable answer disables nothing (Wire 1.18, Official clients). A request that is cancelled releases no
        event: the player's next session has begun, or the queue is closed.
        """
        is_answered = True
        try:
            await ask()
        except AuthError as error:
            self._sender.disable(self._key.user_id, str(error))
        except (BadQuery, Retryable) as error:
            # Not answered is also an answer that asks for patience.
            is_answered = not isinstance(error, RateLimited | Unreachable)
            if isinstance(error, ServiceError):
                is_answered = error.status not in TRANSIENT_STATUSES
            if is_answered:
                _log.warning("the %s init is not usable; the session goes on without it: %s", name, error)
            else:
                self._backoff.fail()
        finally:
            del self._tasks[name]
        if name == "v2":
            self._sender.release(self._key.user_id)
        if is_answered:
            del self._unanswered[name]

    async def _ask_v2(self) -> None:
        status = await self._sender.collector.init_v2(**self._fields)
        if status.enabled is False:
            self._sender.disable(self._key.user_id, "the game is disabled (init: enabled = false)", is_permanent=True)
        elif status.enabled:
            self._sender.enable(self._key.user_id)
        if status.server_ts is not None:
            self._correct_clock(status.server_ts)
        if status.init is not None and not self._has_configs:
            self._use_configs(status.init)

    async def _ask_configs(self) -> None:
        stored = self._stored
        configs_hash = stored.configs_hash if stored is not None else None
        answer = await self._sender.collector.init(configs_hash=configs_hash, **self._fields)
        self._has_configs = True
        if isinstance(answer, InitAnswer):
            self._use_configs(answer)
        elif stored is not None and self.answer != stored:  # version 2 was faster and had others
            self._use_configs(stored)
        self._correct_clock(answer.server_ts)

    def _use_configs(self, answer: InitAnswer) -> None:
        self.answer = answer
        self._file.save_init_answer(self._key.user_id, answer)

    def _correct_clock(self, server_ts: int) -> None:
        """Store the clock offset. Wire 1.14, Server time."""
        self._file.offset_s = server_ts - int(self._clock())
