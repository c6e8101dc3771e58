"""The two inits of one player's session, each used without the other.

Version 2 says whether the game is enabled (Wire 1.11, Version 2 init), the other has the configs (Wire 1.12, Remote
config init), and either has the server's time. Whatever a collector answers to one, also that there is no such address,
the other is used, and neither is asked again. Only an init without an answer is.
"""

from __future__ import annotations

import asyncio
import contextlib
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

    Args:
        identity: the player and device.
        sender: whose delivery an init may disable or, after an earlier init disabled it, enable.
        forwarded_for: the player's IP, if a server submits for players.
        clock: epoch seconds of this machine.

    Attributes:
        answer: the configs and experiment: those just received, else those stored for the player, else None.
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
        self._is_refused = self._has_configs = False

    @property
    def is_answered(self) -> bool:
        """Whether both inits were answered, whatever the answers."""
        return not self._unanswered

    @property
    def is_due(self) -> bool:
        """Whether the pause is over: that of the player's failed events, else its own."""
        return (self._sender.backoff(self._key) or self._backoff).is_over

    async def ask(self, *, within_s: float) -> bool:
        """Send the inits without an answer, both at once, and wait *within_s*.

        Returns:
            Whether both are answered now.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(self._use(name, ask) for name, ask in self._unanswered.items()))
        if self._unanswered:
            self._backoff.fail()
        return self.is_answered

    async def _use(self, name: str, ask: Callable[[], Awaitable[None]]) -> None:
        """Send one init and use its answer.

        An unusable answer disables nothing (Wire 1.18, Official clients).
        """
        try:
            await ask()
        except AuthError as error:
            self._refuse(str(error))
        except (BadQuery, Retryable) as error:
            if _is_unanswered(error):
                return
            _log.warning("the %s init is not usable, the session goes on without it: %s", name, error)
        del self._unanswered[name]

    async def _ask_v2(self) -> None:
        status = await self._sender.collector.init_v2(**self._fields)
        if not status.enabled:
            self._refuse("the game is disabled (init: enabled = false)")
        self._accept(status.server_ts)
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
        self._accept(answer.server_ts)

    def _use_configs(self, answer: InitAnswer) -> None:
        self.answer = answer
        self._file.save_init_answer(self._key.user_id, answer)

    def _refuse(self, because: str) -> None:
        self._is_refused = True
        self._sender.disable(because)

    def _accept(self, server_ts: int) -> None:
        """Enable delivery unless one of these inits refused it, and store the clock offset.

        Wire 1.14, Server time.
        """
        if not self._is_refused:
            self._sender.enable()
        self._file.offset_s = server_ts - int(self._clock())


def _is_unanswered(error: BadQuery | Retryable) -> bool:
    """Return whether there was no answer, or one that asks for patience."""
    if isinstance(error, ServiceError):
        return error.status in TRANSIENT_STATUSES
    return isinstance(error, RateLimited | Unreachable)
