"""The events of one player's session on one device. Wire 3.3, Common fields."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from gamelens.client.events.batch_sender import DISABLED, BatchSender
from gamelens.client.events.event_validation import (
    SESSION_CATEGORIES,
    PlayerIdentity,
    check_no_session_fields,
    validated_json,
)
from gamelens.client.events.outbox import OpenSession, Outbox
from gamelens.client.events.session_init import SessionInit
from gamelens.errors import BadQuery, Refused, suggests_names

VITAL: Final = frozenset({"user", "business"})
"""Categories queued even if the queue is full, like session_end. Wire 1.15, Client queue."""


def new_uuid() -> str:
    """Return a random UUID in lower case."""
    return str(uuid.uuid4())


@suggests_names
class EventRecorder:
    """A recorder of one player's events, which never waits for the network.

    *forwarded_for* is the player's IP, if a server submits for players.
    """

    def __init__(
        self,
        identity: PlayerIdentity,
        sender: BatchSender,
        *,
        forwarded_for: str | None = None,
        clock: Callable[[], float] = time.time,
        make_uuid: Callable[[], str] = new_uuid,
    ) -> None:
        self.identity = identity
        self.session_id = make_uuid()
        self.last_s = int(clock())
        self._sender = sender
        self._outbox = sender.outbox
        self.init = SessionInit(identity, sender, forwarded_for=forwarded_for, clock=clock)
        self._forwarded_for = forwarded_for
        self._clock = clock
        self._make_uuid = make_uuid
        self._session: OpenSession | None = None
        self._is_open = False  # in the outbox too: a disabled player records nothing
        self._lock = threading.RLock()  # the loop may end the session while the game adds events on its own thread

    def start(self) -> None:
        """Open the session with its user event. That of a disabled player opens none."""
        now_s = int(self._clock())
        fields = {**self.identity.fields(), "session_id": self.session_id, "session_num": 1}
        if self.identity.user_id not in self._sender.disabled:
            fields["session_num"] = self._outbox.open_session(
                self.session_id, self.identity.user_id, fields, now_s=now_s, forwarded_for=self._forwarded_for
            )
            self._is_open = True
        self._session = OpenSession(self.session_id, fields, now_s, now_s)
        self._record("user", {})

    def add(self, category: str, **fields: Any) -> bool:
        """Record an event that happens now, and return whether it was queued.

        A field that is None is left out. An event that is not queued is dropped and counted in `DeliveryReport`.

        Raises:
            BadQuery: a field breaks its rule (Wire 3.5, Category fields); nothing is queued.
            Refused: no session is open, or this is a forked child.
        """
        self._outbox.file.process.check()
        if category in SESSION_CATEGORIES:
            raise BadQuery("category", category, "is recorded by the session itself")
        check_no_session_fields(fields)
        with self._lock:
            return self._record(category, fields)

    def end(self, *, at_s: int | None = None) -> None:
        """Close the session with its session_end event, now or at the earlier time *at_s*."""
        self._outbox.file.process.check()
        with self._lock:
            session, self._session = self._session, None
            if session is not None and self._is_open:
                fields = {**session.fields, **self._experiment_fields()}
                end_session(self._outbox, session, fields, at_s or int(self._clock()), self._make_uuid())

    @property
    def configs(self) -> dict[str, Any]:
        """The values of the remote configs that are active now, by key.

        Wire 1.13, Configs and experiments.
        """
        now_s = int(self._clock()) + self._outbox.file.offset_s
        answer = self.init.answer
        return {
            config.key: config.value
            for config in (answer.configs if answer is not None else ())
            if not (isinstance(config.start_ts, int) and config.start_ts >= now_s)
            and (config.end_ts is None or now_s < config.end_ts)
        }

    def _record(self, category: str, fields: dict[str, Any]) -> bool:
        """Queue an event with the common fields."""
        if self._session is None:
            raise Refused("no session is open: add events between its start and its end")
        self.last_s = now_s = int(self._clock())
        body = validated_json(
            {
                "category": category,
                **self._session.fields,
                **self._experiment_fields(),
                **fields,
                "client_ts": now_s + self._outbox.file.offset_s,
                "event_uuid": self._make_uuid(),
            }
        )
        if self.identity.user_id in self._sender.disabled or not self._is_open:
            self._outbox.drop(DISABLED)
            return False
        return self._outbox.add(self.session_id, body, now_s=now_s, is_vital=category in VITAL)

    def _experiment_fields(self) -> dict[str, str | None]:
        """Return the player's experiment and variant. Wire 1.13, Configs and experiments."""
        answer = self.init.answer
        return {"ab_id": answer.ab_id or None, "ab_variant_id": answer.ab_variant_id or None} if answer else {}


def end_session(outbox: Outbox, session: OpenSession, fields: dict[str, Any], at_s: int, event_uuid: str) -> None:
    """Queue the session_end of *session* at *at_s*, a time of this machine's clock."""
    length = max(0, at_s - session.started_s)
    event = {"category": "session_end", **fields, "length": length, "event_uuid": event_uuid}
    outbox.end_session(session.id, validated_json(event | {"client_ts": at_s + outbox.file.offset_s}))


def end_killed_sessions(outbox: Outbox, make_uuid: Callable[[], str] = new_uuid) -> None:
    """End each session that a killed process left open, at the time of its last event.

    Wire 1.15, Client queue.
    """
    for session in outbox.open_sessions():
        end_session(outbox, session, dict(session.fields), session.last_s, make_uuid())
