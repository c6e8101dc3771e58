"""The part that both clients share: arguments, transport, cache and executor."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from gamelens.catalog import Catalog
from gamelens.client.answer_cache import AnswerCache, open_cache
from gamelens.client.connection.event_loop import BackgroundLoop, shared_loop
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.recording import RecordingSender, ReplaySender
from gamelens.client.connection.settings import client_catalog, metrics_settings, portless
from gamelens.client.connection.transport import ANSWER_BYTES, HttpBackend, HttpSender, Transport
from gamelens.client.limits.rate_limit import Pace, shared_rate_limiter
from gamelens.client.query.arguments import check_seconds, is_integer, one_of
from gamelens.client.query.assemble import QueryResult
from gamelens.client.query.description import Description, describe
from gamelens.client.query.executor import QueryExecutor
from gamelens.client.query.progress import Progress
from gamelens.client.tables.time_ranges import WhenUnavailable
from gamelens.errors import BadQuery, suggests_names

if TYPE_CHECKING:
    from pandas import DataFrame

C = TypeVar("C", bound="BaseClient")
OwnMetrics = Mapping[str, str | Mapping[str, str]]
"""Own metrics: by name a formula, or a table with `formula`, `unit` and `title`."""
RunQuery = Callable[[Progress], Coroutine[Any, Any, QueryResult]]
Folder = str | os.PathLike[str]
_CONNECTIONS = 50  # opened as needed: an adaptive pace may have that many requests under way


@suggests_names
class BaseClient:
    """The base of both clients: checks the arguments, builds the executor, closes connections."""

    _is_quiet = False
    _shares_with: BaseClient | None = None

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
        max_answer_bytes: int = ANSWER_BYTES,
        allow_http: bool = False,
        when_unavailable: WhenUnavailable = "raise",
        metrics: OwnMetrics | None = None,
        progress: bool | None = None,
        record: Folder | None = None,
        replay: Folder | None = None,
        transport: HttpBackend | None = None,
    ) -> None:
        check_settings(
            max_days=max_days,
            max_wait_s=max_wait_s,
            refresh_s=refresh_s,
            max_answer_bytes=max_answer_bytes,
            pace=pace,
            when_unavailable=when_unavailable,
        )
        if record is not None and replay is not None:
            raise BadQuery("replay", str(replay), "cannot be combined with record: record first, then replay")
        catalog = client_catalog(metrics)
        self._loop = shared_loop()
        self._progress = progress
        answers: AnswerCache | None = None
        sender: HttpSender
        if replay is not None:
            self._address = f"replay of {os.fspath(replay)}"
            sender = ReplaySender(replay)
        else:
            settings = metrics_settings(api_key=api_key, metrics_url=metrics_url, allow_http=allow_http)
            self._address = settings.metrics_url
            fingerprint = settings.api_key.fingerprint
            sender = Transport(
                settings.metrics_url,
                key=settings.api_key,
                key_hint=settings.key_hint,
                rate_limiter=shared_rate_limiter(settings.metrics_url, fingerprint, pace),
                max_wait_s=max_wait_s,
                max_answer_bytes=max_answer_bytes,
                at_once=_CONNECTIONS,
                pool=transport,
            )
            if record is not None:
                sender = RecordingSender(sender, record)
            else:
                answers = open_cache(cache, address=portless(settings.metrics_url), fingerprint=fingerprint)
        self._start(sender, answers, catalog, max_days=max_days, refresh_s=refresh_s, when=when_unavailable)

    def _start(
        self,
        sender: HttpSender,
        answers: AnswerCache | None,
        catalog: Catalog,
        *,
        refresh_s: float,
        max_days: int | None = None,
        when: WhenUnavailable = "raise",
    ) -> None:
        """Build what answers, from *sender*, the cache *answers* and the metrics of *catalog*."""
        recording = sender if isinstance(sender, ReplaySender) else None
        service = MetricsApi(sender, refresh_s=refresh_s, changes=recording is None)
        now = recording.now if recording is not None else time.time
        self._executor = QueryExecutor(
            service, answers, max_days=max_days, refresh_s=refresh_s, when=when, now=now, catalog=catalog
        )
        # A notebook seldom closes anything: the connections close with the last reference.
        self._closing = weakref.finalize(self, _close, service, self._loop)
        self._closing.atexit = False  # with Python they end by themselves, and the loop stands still by then

    def __repr__(self) -> str:
        service = self._executor.service
        badge = f" ({service.provenance.badge})" if service.provenance.badge else ""
        if service.last_available is None:
            return f"<{type(self).__name__} of {self._address}{badge}: .available() asks until when there is data>"
        end = service.last_available.end
        return f"<{type(self).__name__} of {self._address}{badge}: data until {end.day} {end:%b %Y %H:%M} UTC>"

    def describe(self, name: str) -> Description:
        """Return the definition of a metric, of an alias such as `arpdau`, of an own metric, or of a dimension.

        No request is sent. The result prints as a small table and has `definition`, `unit`, `additivity` and `fields`.

        Raises:
            BadQuery: no such name; suggests the nearest one.
        """
        return describe(name, self.metric_catalog)

    @property
    def metric_catalog(self) -> Catalog:
        """What can be queried: the metrics of the service, the aliases, and the own metrics of this client."""
        return self._executor.catalog

    def _frame_of(self, result: QueryResult) -> DataFrame:
        return cast("DataFrame", result.frame) if self._is_quiet else self._executor.emit_warnings(result)

    def _emit_notes(self) -> None:
        if not self._is_quiet:
            self._executor.emit_notes()

    @property
    def cache(self) -> AnswerCache | None:
        """The answers stored on disk, or None for a client without a cache.

        `cache.info()` describes them, `cache.clear()` deletes them.
        """
        return self._executor.cache


def quiet_copy(client: BaseClient, kind: type[C]) -> C:
    """Return a client of *kind* that shares connections, rate limit, cache and remembered lists with *client*.

    It is for queries in the background: it draws no bar and emits no warning, which would appear in an arbitrary
    notebook cell. The texts are in the receipt of each frame.
    """
    copy = kind.__new__(kind)
    copy._loop, copy._address, copy._executor, copy._closing = (
        client._loop,
        client._address,
        client._executor,
        client._closing,
    )
    copy._shares_with = client  # whose connections close with the last reference to it
    copy._progress, copy._is_quiet = False, True
    return copy


def check_settings(
    *,
    max_days: object = None,
    max_wait_s: object = 0,
    refresh_s: object = 0,
    max_answer_bytes: object = ANSWER_BYTES,
    pace: str = "guaranteed",
    when_unavailable: str = "raise",
    metrics: OwnMetrics | None = None,
    **_: object,
) -> None:
    """Check the settings of a client that do not say which service answers.

    Raises:
        BadQuery: a setting has a value that is not allowed.
    """
    if max_days is not None and not (isinstance(max_days, int) and is_integer(max_days) and max_days >= 1):
        raise BadQuery("max_days", max_days, "must be a whole number, 1 or more, or None")
    check_seconds("max_wait_s", max_wait_s)
    check_seconds("refresh_s", refresh_s)
    if not (isinstance(max_answer_bytes, int) and is_integer(max_answer_bytes) and max_answer_bytes >= 1):
        raise BadQuery("max_answer_bytes", max_answer_bytes, "must be a whole number of bytes, 1 or more")
    one_of("pace", pace, get_args(Pace))
    one_of("when_unavailable", when_unavailable, get_args(WhenUnavailable))
    client_catalog(metrics)


def _close(service: MetricsApi, loop: BackgroundLoop) -> None:
    """Close the connections of a collected client on its background loop, without waiting.

    A forked child leaves them to the parent.
    """
    if loop.process.is_this:
        loop.submit_unawaited(service.aclose())
