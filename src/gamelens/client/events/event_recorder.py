"""One user on one device: the session that is played, and what is recorded in it (Collector, Event object)."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from gamelens.client.events.batch_sender import DISABLED, BatchSender
from gamelens.client.events.event_validation import BY_THE_SESSION, PlayerIdentity, refuse_own_fields, validated_json
from gamelens.client.events.outbox import OpenSession, Outbox
from gamelens.errors import AuthError, BadQuery, Refused
from gamelens.wire.remote_config import InitAnswer, RemoteConfig

VITAL: Final = frozenset({"user", "business"})
"""Queued even when the queue is full, as the end of a session is (public-facts 1.10)."""


def new_uuid() -> str:
    """A random UUID in lower case."""
    return str(uuid.uuid4())


class EventRecorder:
    """Records what one user does. It never waits for the network, except in `greet`.

    Args:
        identity: who plays on what.
        courier: brings the events away.
        forwarded_for: the player's IP, when a server submits for the player.
        clock: epoch seconds of this machine.
        make_uuid: for sessions and events.
    """

    def __init__(
        self,
        identity: PlayerIdentity,
        courier: BatchSender,
        *,
        forwarded_for: str | None = None,
        clock: Callable[[], float] = time.time,
        make_uuid: Callable[[], str] = new_uuid,
    ) -> None:
        self.identity = identity
        self.session_id = make_uuid()
        self.is_greeted = False
        self.last_s = int(clock())
        self._courier = courier
        self._outbox = courier.outbox
        self.answer: InitAnswer | None = self._outbox.file.recall(identity.user_id)
        self._forwarded_for = forwarded_for
        self._clock = clock
        self._make_uuid = make_uuid
        self._session: OpenSession | None = None
        self._is_open = False  # in the outbox, too: a disabled game records nothing
        self._turn = threading.RLock()  # a session may end on the loop while the game adds on its own thread

    async def greet(self) -> None:
        """Ask how to behave: enabled or not, the server's time, configs and experiment (Collector, POST init).

        Both routes are asked, as only v2 says *enabled* and only the other has configs. Our choice: in this order,
        so that a disabled game is not even asked for configs.

        Raises:
            BadQuery: the collector refuses a field.
            Retryable: no good answer; what was known before still holds.
        """
        who = self.identity
        about: dict[str, Any] = {"user_id": who.user_id, "platform": who.platform, "os_version": who.os_version}
        about |= {"build": who.build, "forwarded_for": self._forwarded_for, "attempts": 1}
        collector, known = self._courier.collector, self.answer
        try:
            status = await collector.init_v2(**about)
            self._set_clock(status.server_ts)
            if not status.enabled:
                self._courier.disable("the game is disabled (init: enabled = false)")
                return
            answer = await collector.init(configs_hash=known.configs_hash if known else None, **about)
        except AuthError as error:
            self._courier.disable(str(error))
            return
        self._set_clock(answer.server_ts)
        if isinstance(answer, InitAnswer):
            self.answer = answer
            self._outbox.file.remember(who.user_id, answer)
        self.is_greeted = True

    def start(self) -> None:
        """Open the session with its user event. A disabled game opens none."""
        now_s = int(self._clock())
        fields = {**self.identity.fields(), "session_id": self.session_id, "session_num": 1}
        if self._courier.disabled is None:
            fields["session_num"] = self._outbox.open_session(
                self.session_id, self.identity.user_id, fields, now_s=now_s, forwarded_for=self._forwarded_for
            )
            self._is_open = True
        self._session = OpenSession(self.session_id, fields, now_s, now_s)
        self._record("user", {})

    def add(self, category: str, **fields: Any) -> bool:
        """Record an event that happens now; a field that is None is left out.

        True when it is queued, False when it was dropped and counted: see `DeliveryReport`.

        Raises:
            BadQuery: a field breaks its rule (public-facts 2.5); nothing is queued.
            Refused: no session is open.
        """
        if category in BY_THE_SESSION:
            raise BadQuery("category", category, "is recorded by the session itself")
        refuse_own_fields(fields)
        with self._turn:
            return self._record(category, fields)

    def end(self, *, at_s: int | None = None) -> None:
        """Close the session with its session_end event, now or at an earlier time; nothing can be added after it."""
        with self._turn:
            session, self._session = self._session, None
            if session is not None and self._is_open:
                fields = {**session.fields, **self._experiment()}
                end_session(self._outbox, session, fields, at_s or int(self._clock()), self._make_uuid())

    @property
    def configs(self) -> dict[str, Any]:
        """Values of the remote configs that hold now, by key (public-facts 1.5, Active window)."""
        now_s = int(self._clock()) + self._outbox.file.offset_s
        known = self.answer.configs if self.answer is not None else ()
        return {config.key: config.value for config in known if _is_active(config, now_s)}

    def _record(self, category: str, fields: dict[str, Any]) -> bool:
        if self._session is None:
            raise Refused("no session is open: add events between its start and its end")
        self.last_s = now_s = int(self._clock())
        body = validated_json(
            {
                "category": category,
                **self._session.fields,
                **self._experiment(),
                **fields,
                "client_ts": now_s + self._outbox.file.offset_s,
                "event_uuid": self._make_uuid(),
            }
        )
        if self._courier.disabled is not None:
            self._outbox.drop(DISABLED)
            return False
        return self._outbox.put(self.session_id, body, now_s=now_s, is_vital=category in VITAL)

    def _experiment(self) -> dict[str, str | None]:
        """Where the player stands in an A/B test (Collector, Init response)."""
        answer = self.answer
        return {"ab_id": answer.ab_id or None, "ab_variant_id": answer.ab_variant_id or None} if answer else {}

    def _set_clock(self, server_ts: int) -> None:
        self._outbox.file.offset_s = server_ts - int(self._clock())


def _is_active(config: RemoteConfig, now_s: int) -> bool:
    has_begun = not isinstance(config.start_ts, int) or config.start_ts < now_s
    return has_begun and (config.end_ts is None or now_s < config.end_ts)


def end_session(outbox: Outbox, session: OpenSession, fields: dict[str, Any], at_s: int, event_uuid: str) -> None:
    """Queue the end of *session* at *at_s*, a time of this machine's clock."""
    length = max(0, at_s - session.started_s)
    event = {"category": "session_end", **fields, "length": length, "event_uuid": event_uuid}
    outbox.end_session(session.id, validated_json(event | {"client_ts": at_s + outbox.file.offset_s}))


def end_killed_sessions(outbox: Outbox, make_uuid: Callable[[], str] = new_uuid) -> None:
    """Make up the end of each session that was killed: it ended with its last event (public-facts 1.10)."""
    for session in outbox.unfinished():
        end_session(outbox, session, dict(session.fields), session.last_s, make_uuid())
