"""Refused requests: why each one was refused, for the owner of the sandbox alone (Wire 5.2, Live feed).

Outsiders must not learn the cause of a 401, neither from the answer nor from the time of the request or of the next one
on its connection. So a refused request is only put in a queue, and examined a moment later, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from time import monotonic
from typing import Final

import msgspec

from gamelens._text import printable, shortened
from gamelens.sandbox.collector.live_feed import REFUSED_REQUESTS, LiveFeed, RefusedRequest
from gamelens.sandbox.collector.request_examiner import why_unreadable
from gamelens.sandbox.collector.signature_mistakes import signature_mistake
from gamelens.sandbox.state.tenants import TenantDirectory
from gamelens.wire.limits import MIB

NO_SECRET: Final = "0" * 40
"""The secret key of a game that does not exist."""
EXAMINE_S: Final = 0.25
"""Pause between a refused request and its examination."""
QUEUED_BYTES: Final = 16 * MIB
"""Bytes of requests in the queue, unless one alone is larger."""
NOT_EXAMINED: Final = "not examined: more requests were refused at once than are examined"
_LOGGED_A_MINUTE: Final = 60  # a client in a loop must not fill a disk
_SHOWN_LETTERS: Final = 80

_log = logging.getLogger(__name__)


class QueuedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A refused request that is not examined yet.

    *route* and *game_key* are as sent. A known *cause* is stated; otherwise *body* and headers are those to examine.
    """

    arrival_ts: int
    route: str
    game_key: str
    status: int
    cause: str
    authorization: str
    content_encoding: str
    body: bytes

    @property
    def size(self) -> int:
        """Bytes in memory, roughly."""
        return len(self.body) + len(self.authorization) + len(self.route)


class RefusedRequests:
    """The queue of refused requests, which are listed in *live* and in the log once they are examined."""

    def __init__(self, tenants: TenantDirectory, live: LiveFeed) -> None:
        self._tenants = tenants
        self._live = live
        self._queue: deque[QueuedRequest] = deque()
        self._bytes = 0
        self._added = asyncio.Event()
        self._examining = asyncio.Lock()
        self._logged_s: deque[float] = deque(maxlen=_LOGGED_A_MINUTE)
        self._unlogged = 0

    def add(self, request: QueuedRequest) -> None:
        """Put *request* in the queue. What is too much for it is listed without being examined, the oldest first."""
        self._queue.append(request)
        self._bytes += request.size
        while len(self._queue) > REFUSED_REQUESTS or (len(self._queue) > 1 and self._bytes > QUEUED_BYTES):
            oldest = self._next()
            self._list(oldest, oldest.cause or NOT_EXAMINED)
        self._added.set()

    async def examine(self) -> None:
        """Examine and list the requests that are in the queue now."""
        async with self._examining:
            for _ in range(len(self._queue)):
                if not self._queue:  # the others were too much for it meanwhile
                    return
                request = self._next()
                self._list(request, request.cause or await asyncio.to_thread(self._cause, request))

    async def examine_as_they_come(self) -> None:
        """Examine refused requests, `EXAMINE_S` after they came, until the task is cancelled."""
        while True:
            await self._added.wait()
            await asyncio.sleep(EXAMINE_S)
            self._added.clear()
            await self.examine()

    def _next(self) -> QueuedRequest:
        request = self._queue.popleft()
        self._bytes -= request.size
        return request

    def _list(self, request: QueuedRequest, cause: str) -> None:
        """Add a request to the live feed and to the log, which has no more than 60 of them in a minute."""
        owner = self._tenants.game(request.game_key)
        refused = RefusedRequest(
            arrival_ts=request.arrival_ts,
            route="/".join(map(self._shown, request.route.split("/"))),
            game_key=self._shown(request.game_key),
            game=owner[1].title if owner else None,
            status=request.status,
            cause=printable(cause),
        )
        self._live.record_refused_request(refused)
        now_s = monotonic()
        if len(self._logged_s) == _LOGGED_A_MINUTE and now_s - self._logged_s[0] < 60:
            self._unlogged += 1
            return
        self._logged_s.append(now_s)
        of_game = printable(refused.game or refused.game_key or "no game")
        more = f" ({self._unlogged} more were not logged)" if self._unlogged else ""
        self._unlogged = 0
        _log.warning("%s of %s was refused with %s: %s%s", refused.route, of_game, refused.status, refused.cause, more)

    def _shown(self, text: str) -> str:
        """Return *text* of a request, short and printable, unless it is a secret."""
        return "…" if self._tenants.is_secret(text) else printable(shortened(text, _SHOWN_LETTERS))

    def _cause(self, request: QueuedRequest) -> str:
        """Return in words why *request* was refused."""
        try:
            if request.status == 401:
                return self._why_unauthorised(request)
            return why_unreadable(request.body, request.content_encoding)
        except Exception:  # a defect here must not end the examination of the others
            _log.exception("a refused request could not be examined")
            return "not known: the sandbox failed to examine the request, see its log"

    def _why_unauthorised(self, request: QueuedRequest) -> str:
        """Return what is wrong with key or signature. The work is the same for a known and an unknown key."""
        owner = self._tenants.game(request.game_key)
        games = [game for org in self._tenants.organisations for game in org.games]
        mistake = signature_mistake(
            request.authorization,
            request.body,
            secret_key=owner[1].secret_key if owner else NO_SECRET,
            game_key=request.game_key,
            other_keys={f"{game.title} ({game.id})": game.secret_key for game in games},
        )
        if owner is None:
            is_known = "the secret key of " in mistake
            return self._why_no_game(request.game_key) + (f"; {mistake}" if is_known else "")
        is_production = owner[1].environment != "sandbox"
        production = "the game is of the environment production, whose keys a sandbox refuses" if is_production else ""
        return "; ".join(filter(None, (production, mistake)))

    def _why_no_game(self, game_key: str) -> str:
        """Return what *game_key* is, which no game has."""
        games = [game for org in self._tenants.organisations for game in org.games]
        if not game_key:
            return "there is no game key in the address"
        if self._tenants.is_secret(game_key):
            return "the address holds a secret key or an API key, where the game key belongs: it is not secret any more"
        bare = re.sub(r"%[0-9a-f]{2}|[^0-9a-f]", "", game_key.lower())
        for game in games:
            if game_key in (game.id, game.title):
                return f"the address holds the id or title of {game.title}, where its game key belongs"
            if bare == game.game_key:
                return f"the game key of {game.title} is 32 lower-case hexadecimal characters and nothing else"
            if len(bare) >= len(game.game_key) // 2 and (bare in game.game_key or game.game_key in bare):
                return f"the game key is part of the key of {game.title}, or more than it"
        return "no game of this sandbox has this key: its ready.json lists the keys of its games"
