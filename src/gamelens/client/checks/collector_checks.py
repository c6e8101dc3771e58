"""Checks of a collector: reachable, keys accepted, game enabled, clock.

They send an empty batch, which collects nothing and is signed as every batch is (Wire 1.7, Submitting events), and an
init for the collector's time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from gamelens.client.checks.service_checks import SLOW_S, clock_finding
from gamelens.client.checks.setup_checks import CheckResult
from gamelens.client.events.collector_client import CollectorClient
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, Retryable, ServiceError, Unreachable

_DEVICE: Final[dict[str, Any]] = {"user_id": "gamelens-doctor", "platform": "unknown", "os_version": "unknown 1.0"}


class CollectorChecks:
    """Checks of one collector with the keys of one game. The client is closed at the end."""

    def __init__(
        self,
        collector: CollectorClient,
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collector = collector
        self._now, self._clock = now, clock
        self._error: GamelensError | None = None
        self._duration_s = 0.0
        self._offset_s: float | None = None
        self._is_enabled = True

    async def findings(self, *, deadline_s: float) -> list[CheckResult]:
        """Return the findings after *deadline_s* at most."""
        self._error = Unreachable(f"{self._collector.address} did not answer within {deadline_s:.2g} s")
        with contextlib.suppress(TimeoutError):
            async with self._collector, asyncio.timeout(deadline_s):
                self._error = await self._batch_error()
                if self._error is None:
                    await self._ask_time()
        return list(self._all_findings())

    async def _batch_error(self) -> GamelensError | None:
        """Send an empty batch, and return the error unless the keys are accepted."""
        began = self._clock()
        try:
            await self._collector.submit(b"[]", attempts=1)
        except (AuthError, Retryable) as error:
            # A collector that wants at least one event has accepted the keys before it says so.
            return None if isinstance(error, ServiceError) and error.status == 400 else error
        except BadQuery:
            return None
        finally:
            self._duration_s = self._clock() - began
        return None

    async def _ask_time(self) -> None:
        """Send the inits until one of them is answered."""
        for init in (self._collector.init_v2, self._collector.init):
            sent_at = self._now()
            try:
                answer = await init(**_DEVICE, attempts=1)
            except GamelensError:
                continue
            self._is_enabled = getattr(answer, "enabled", None) is not False
            if answer.server_ts is not None:
                # The time of the answer is in whole seconds, rounded down.
                self._offset_s = (sent_at + self._now()) / 2 - answer.server_ts - 0.5
            return

    def _all_findings(self) -> Iterator[CheckResult]:
        """Yield the findings, in the order in which they are printed."""
        yield self._address_finding()
        if isinstance(self._error, AuthError):
            says = f"{self._collector.address} does not accept the game key or its signature (401)"
            step = "copy game_key and secret_key again, and check that they are of one game of this collector"
            yield CheckResult.problem("collector keys", says, step)
        elif self._error is None and not self._is_enabled:
            step = "enable the game where it is configured; until then no session sends events"
            yield CheckResult.warning(
                "collector keys", "accepted, but the game is disabled (init: enabled = false)", step
            )
        elif self._error is None:
            yield CheckResult.ok("collector keys", "accepted")
        if self._error is None:
            step = "set the clock: sessions correct their times by the init, other senders do not"
            yield clock_finding("collector clock", self._offset_s, "collector", step)

    def _address_finding(self) -> CheckResult:
        """Report whether the collector answers, and how fast."""
        address = self._collector.address
        says = f"{address} answers in {self._duration_s * 1000:.0f} ms"
        step = "see where collector_url comes from; then look at the network and, where there is one, the proxy"
        match self._error:
            case None | AuthError():
                if self._duration_s > SLOW_S:
                    return CheckResult.warning("collector", says, "expect to wait; check the network")
                return CheckResult.ok("collector", says)
            case RateLimited():
                return CheckResult.warning("collector", f"{says}, but 429", "try again later")
            case ServiceError(status=status) if status >= 500:
                return CheckResult.problem("collector", f"{says}, but {status}", "try again later")
            case ServiceError(status=status):
                says = f"{address} answers {status} to an empty batch of events: is it a collector?"
                return CheckResult.problem("collector", says, step)
        return CheckResult.problem("collector", str(self._error), step)
