"""What both faces of the client are made of: how one is set up, and how what is typed becomes a question."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Coroutine, Iterable
from importlib.util import find_spec
from numbers import Real
from typing import Any, TypeVar, get_args

from gamelens.client.asking import Answered, Terms
from gamelens.client.cache import Cache
from gamelens.client.core import Core, open_cache
from gamelens.client.fetching import ON_ERROR
from gamelens.client.frames import KINDS, To
from gamelens.client.loop import shared_loop
from gamelens.client.pacing import Pace, shared_budget
from gamelens.client.planning import Question, filter_of, is_whole, names
from gamelens.client.progress import Progress
from gamelens.client.recording import Recording, Replay
from gamelens.client.retention import Cohorts
from gamelens.client.service import MetricsService
from gamelens.client.settings import metrics_settings
from gamelens.client.spans import WHEN_UNAVAILABLE, Over
from gamelens.client.transport import Answering, HttpPool, Transport
from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, WireFilter
from gamelens.wire.intervals import Granularity

Asking = Callable[[Progress], Coroutine[Any, Any, Answered]]
Folder = str | os.PathLike[str]
Names = str | Iterable[str]
Where = Filter | WireFilter
Word = TypeVar("Word", bound=str)

_CONNECTIONS = 50  # opened as they are needed: an adaptive pace may have that many under way


class Face:
    """What a client is made of, and how it lets go."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        metrics_url: str | None = None,
        cache: bool | Folder = True,
        pace: Pace = "guaranteed",
        max_days: int | None = None,
        max_wait_s: float = 60.0,
        refresh_s: float = 3600.0,
        progress: bool | None = None,
        record: Folder | None = None,
        replay: Folder | None = None,
        transport: HttpPool | None = None,
    ) -> None:
        if max_days is not None and not (is_whole(max_days) and max_days >= 1):
            raise BadQuery("max_days", max_days, "must be a whole number, 1 or more, or None")
        _check_seconds("max_wait_s", max_wait_s)
        _check_seconds("refresh_s", refresh_s)
        one_of("pace", pace, get_args(Pace))
        if record is not None and replay is not None:
            raise BadQuery("replay", str(replay), "cannot stand beside record: record first, replay then")
        self._loop = shared_loop()
        self._progress = progress
        kept: Cache | None = None
        door: Answering
        if replay is not None:
            self._address = f"replay of {os.fspath(replay)}"
            door = Replay(replay)
        else:
            settings = metrics_settings(api_key=api_key, metrics_url=metrics_url)
            self._address = settings.metrics_url
            fingerprint = settings.api_key.fingerprint
            door = Transport(
                settings.metrics_url,
                key=settings.api_key,
                budget=shared_budget(settings.metrics_url, fingerprint, pace),
                max_wait_s=max_wait_s,
                at_once=_CONNECTIONS,
                pool=transport,
            )
            if record is not None:
                door = Recording(door, record)
            else:
                kept = open_cache(cache, address=settings.metrics_url, fingerprint=fingerprint)
        service = MetricsService(door, refresh_s=refresh_s, changes=replay is None)
        self._core = Core(service, kept, max_days=max_days, refresh_s=refresh_s)
        # A notebook seldom closes anything: the connections go with the last reference.
        self._closing = weakref.finalize(self, _close, service)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r})"

    @property
    def cache(self) -> Cache | None:
        """What was answered and is kept on disk: `cache.info()`, `cache.clear()`; None where nothing is."""
        return self._core.cache


def question_of(
    metric: Names,
    by: Names | None,
    every: Granularity,
    where: Where | None,
    top: int | None,
    games: Names | None,
    studios: Names | None,
    since_days_ago: int | None,
    other: bool,
    check: bool,
) -> Question:
    """The question that the arguments of `query` ask.

    Raises:
        BadQuery: they ask nothing.
    """
    return Question(
        metrics=names("metric", metric),
        by=names("by", by),
        every=every,
        where=filter_of(where),
        top=top,
        games=optional("games", games),
        studios=optional("studios", studios),
        since_days_ago=since_days_ago,
        other=other,
        check=check,
    )


def terms_of(over: Over, when: str, deadline_s: float | None, on_error: str, to: str) -> Terms:
    """How it is to be answered.

    Raises:
        BadQuery: a word that is not allowed, or a deadline that is no number.
    """
    if deadline_s is not None:
        _check_seconds("deadline_s", deadline_s)
    return Terms(
        over=over,
        when=one_of("when_unavailable", when, WHEN_UNAVAILABLE),
        deadline_s=deadline_s,
        on_error=one_of("on_error", on_error, ON_ERROR),
        to=check_kind(to),
    )


def cohorts_of(
    days: int | Iterable[int], by: Names | None, where: Where | None, games: Names | None, studios: Names | None
) -> Cohorts:
    """Whom the arguments of `retention` follow.

    Raises:
        BadQuery: an age that is none.
    """
    return Cohorts(
        ages=tuple(days) if isinstance(days, Iterable) else (days,),
        by=names("by", by),
        where=filter_of(where),
        games=optional("games", games),
        studios=optional("studios", studios),
    )


def one_of(field: str, value: str, allowed: tuple[Word, ...]) -> Word:
    """Return *value*, the argument *field*, as the one of *allowed* that it is.

    Raises:
        BadQuery: it is none of them.
    """
    for word in allowed:
        if value == word:
            return word
    raise BadQuery(field, value, "is not allowed", allowed)


def check_kind(to: str) -> To:
    """Return *to*, a kind of frame that can be made here.

    Raises:
        BadQuery: there is no such kind, or polars is not installed.
    """
    kind = one_of("to", to, KINDS)
    if kind == "polars" and find_spec(kind) is None:
        raise BadQuery("to", to, "needs polars: pip install polars")
    return kind


def optional(field: str, given: Names | None) -> tuple[str, ...] | None:
    """One name or several, the argument *field*, as a tuple; None is all."""
    return None if given is None else names(field, given)


def _check_seconds(field: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(number):
        raise BadQuery(field, number, "must be a number of seconds")


def _close(service: MetricsService) -> None:
    """Let the loop close the connections of a client that is gone, without waiting for it."""
    shared_loop().hand_over(service.aclose())
