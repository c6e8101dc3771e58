"""The cache of answered buckets: what a question was answered for a bucket is asked again only while it may change.

Our own and not diskcache or joblib: they keep values under keys, and know neither the buckets that questions of
different length share, nor when one is settled, nor what the service said otherwise the second time.

`store` keeps rows in files and `index` knows where they lie; `restatements` compares. Nothing is written
but what is passed in. A folder that does not work never fails a question: the cache is then off, and says why.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import numpy as np
import platformdirs
import pyarrow as pa

from gamelens.client.cache import index_queries
from gamelens.client.cache.bucket_store import BucketStore, CachedQuery, concatenate_entries, entry_rows, mergeable
from gamelens.client.cache.index_queries import IndexEntry
from gamelens.client.tables.table_differences import Restatement, field_changes, rows_changed
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import MIB

if TYPE_CHECKING:
    pass

T = TypeVar("T")
MAX_BYTES: Final = 512 * MIB
SETTLE_DAYS: Final = 2
PATIENCE_S: Final = 5.0
_FORGET_S: Final = 90 * 86_400.0  # an unsettled unit that nobody asked for again since is not carried along for ever
_TRIES: Final = 5  # to read what other kernels merge meanwhile
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CacheKey(msgspec.Struct, frozen=True):
    """A question without its interval; *text* is canonical JSON of all that *metric* and *dimensions* do not say."""

    metric: str
    dimensions: tuple[str, ...]
    text: str
    adds_up: bool


class CachedRows(msgspec.Struct, frozen=True):
    """Rows of the *units* that are there and fresh, in the order asked for; None when none is."""

    table: pa.Table | None
    units: frozenset[BucketSlice]


class CacheInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache holds: *questions*, *buckets* and *files* of this key at this address, *bytes* of all in the folder.

    *hits* and *misses* count the buckets looked for since the cache was made. *off* says why it has switched itself
    off, *unkept* why the last answer that was not kept was not.
    """

    folder: str
    questions: int = 0
    buckets: int = 0
    files: int = 0
    bytes: int = 0
    max_bytes: int = 0
    hits: int = 0
    misses: int = 0
    off: str | None = None
    unkept: str | None = None

    def __repr__(self) -> str:
        if self.off is not None:
            return f"Cache in {self.folder}: off, {self.off}"
        held = f"{self.questions} questions, {self.buckets} buckets in {self.files} files"
        size = f"{self.bytes / MIB:.1f} of {self.max_bytes / MIB:.0f} MiB"
        found = f"{self.hits} of {self.hits + self.misses} buckets found"
        unkept = f"; last not kept: {self.unkept}" if self.unkept else ""
        return f"Cache in {self.folder}: {held}, {size}; {found}{unkept}"


class AnswerCache:
    """The answered buckets of one *owner*; those of others are never seen. Safe in threads, processes and forks.

    Args:
        folder: made when missing; everything lies in `answers` below it, for its owner's eyes only.
        owner: a hash of address and key.
        max_bytes: of all owners' files in the folder; the least recently used go first.
        settle_days: a bucket is settled when, as it was asked, it had ended so long before the available end.
        patience_s: how long another kernel that is writing is waited for.
        now: seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        *,
        owner: str,
        max_bytes: int = MAX_BYTES,
        settle_days: int = SETTLE_DAYS,
        patience_s: float = PATIENCE_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._owner = owner
        self._max_bytes = max_bytes
        self._settle = timedelta(days=settle_days) // _MICROSECOND
        self._now = now
        self._store = BucketStore(folder / "answers", max_bytes=max_bytes, patience_s=patience_s, now=now)
        self._swept: set[int] = set()
        self._looked: Counter[str] = Counter()
        self._off: str | None = None
        self._unkept: str | None = None

    @property
    def off(self) -> str | None:
        """Why the cache has switched itself off; None while it works."""
        return self._off

    def look(
        self, asked: CacheKey, units: Iterable[BucketSlice], *, available: Interval, fresh_s: float
    ) -> frozenset[BucketSlice]:
        """Those of *units* that are there and fresh, as far as the index knows."""
        wanted = tuple(units)
        return self._try(lambda: frozenset(self._fresh(asked, wanted, available, fresh_s)), frozenset())

    def find(self, asked: CacheKey, units: Iterable[BucketSlice], *, available: Interval, fresh_s: float) -> CachedRows:
        """Rows of those of *units* that are there and fresh; one that is there may have none."""
        wanted = tuple(dict.fromkeys(units))
        found = self._try(lambda: self._find(asked, wanted, available, fresh_s), CachedRows(None, frozenset()))
        with self._store.index.lock:
            self._looked.update(hits=len(found.units), misses=len(wanted) - len(found.units))
        return found

    def keep(
        self, asked: CacheKey, units: Sequence[BucketSlice], table: pa.Table, *, available: Interval
    ) -> list[Restatement]:
        """Keep *table*, the rows of exactly these *units*; the answer is what was kept otherwise before.

        Raises:
            ValueError: two units have the same stamp, or a row has that of none.
        """
        rows, places = _arranged(table.replace_schema_metadata(None), [_micros(unit.stamp) for unit in units])
        end, now = _micros(available.end), self._now()
        fetched = {
            IndexEntry(*_span(unit), _micros(unit.stamp), "", *place, end, now): unit
            for unit, place in zip(units, places, strict=True)
        }
        return self._try(lambda: self._keep(asked, fetched, rows, available), []) if fetched else []

    def restatements(self, metric: str | None = None) -> list[Restatement]:
        """What the service was found to have restated, oldest first; with *metric* only of that."""
        nothing: list[bytes] = []
        listed = functools.partial(index_queries.restatements, owner=self._owner, metric=metric)
        bodies = self._try(lambda: self._store.index.run(listed), nothing)
        return [msgspec.json.decode(body, type=Restatement) for body in bodies]

    def info(self) -> CacheInfo:
        """What there is, and whether it works."""
        nothing = (0, 0, 0, 0)
        counted = functools.partial(index_queries.usage, owner=self._owner)
        figures = self._try(lambda: self._store.index.run(counted), nothing)
        return CacheInfo(
            folder=str(self.folder),
            questions=figures[0],
            buckets=figures[1],
            files=figures[2],
            bytes=figures[3],
            max_bytes=self._max_bytes,
            hits=self._looked["hits"],
            misses=self._looked["misses"],
            off=self._off,
            unkept=self._unkept,
        )

    def clear(self, *, everything: bool = False) -> None:
        """Remove all of this owner, restatements too; *everything*: of all owners. Switches on what was off.

        Raises:
            BadQuery: the folder cannot be used.
        """
        was_closed, self._store.index.is_closed = self._store.index.is_closed, False
        self._off = self._unkept = None
        self._try(lambda: self._store.clear(None if everything else self._owner), None)
        off = self._off
        if was_closed:
            self.close()
        if off is not None:
            raise BadQuery("cache", str(self.folder), f"cannot be cleared: {off}")

    def close(self) -> None:
        """Let the folder go; from now on nothing is found and nothing kept."""
        with self._store.index.lock:
            self._off = self._off or "closed"
            self._store.index.is_closed = True
            self._store.index.close()

    def _try(self, work: Callable[[], T], otherwise: T) -> T:
        """What *work* answers; where the folder fails it, *otherwise*, and the cache is off from then on."""
        if self._off is not None:
            return otherwise
        try:
            self._sweep_once()
            return work()
        except (OSError, sqlite3.Error) as error:
            self._off = self._off or f"{type(error).__name__}: {error}"
            self._store.index.close()
            return otherwise

    def _sweep_once(self) -> None:
        with self._store.index.lock:
            if os.getpid() not in self._swept:
                self._store.sweep()
                self._swept.add(os.getpid())

    def _find(self, asked: CacheKey, units: Sequence[BucketSlice], available: Interval, fresh_s: float) -> CachedRows:
        for _ in range(_TRIES):
            fresh = self._fresh(asked, units, available, fresh_s)
            # Newest first: where a type has changed, what does not go with the newest is asked again.
            newest = sorted(fresh.values(), key=lambda entry: -entry.fetched_at)
            names = dict.fromkeys(entry.file for entry in newest if entry.rows) or {it.file: None for it in newest[:1]}
            tables = self._store.tables(names)
            if len(tables) == len(names):
                break
        tables = mergeable(tables)
        there = {unit: entry for unit, entry in fresh.items() if entry.file in tables or not entry.rows}
        if not there or not tables:
            return CachedRows(None, frozenset())
        self._store.use({entry.file for entry in there.values()})
        return CachedRows(concatenate_entries(there.values(), tables), frozenset(there))

    def _fresh(
        self, asked: CacheKey, units: Sequence[BucketSlice], available: Interval, fresh_s: float
    ) -> dict[BucketSlice, IndexEntry]:
        """Where those of *units* lie that are there and fresh, in the order of *units*."""
        if not units:
            return {}
        spans = {unit: _span(unit) for unit in units}
        starts = [start for start, _ in spans.values()]
        held = {it.span: it for it in self._store.entries(self._question(asked).key, min(starts), max(starts))}
        end, now = _micros(available.end), self._now()

        def is_fresh(unit: BucketSlice, entry: IndexEntry) -> bool:
            is_young = entry.as_of == end and 0 <= now - entry.fetched_at < fresh_s
            return entry.stamp == _micros(unit.stamp) and (is_young or self._is_settled(entry))

        return {unit: held[span] for unit, span in spans.items() if span in held and is_fresh(unit, held[span])}

    def _is_settled(self, entry: IndexEntry) -> bool:
        return entry.ends + self._settle <= entry.as_of

    def _keep(
        self, asked: CacheKey, fetched: Mapping[IndexEntry, BucketSlice], rows: pa.Table, available: Interval
    ) -> list[Restatement]:
        question, now = self._question(asked), self._now()
        restated = self._restated(asked, question, fetched, rows, available)
        kept = self._store.put(
            question,
            list(fetched),
            rows,
            restated={was: msgspec.json.encode(found) for was, found in restated.items()},
            is_worth=lambda entry: self._is_settled(entry) or now - entry.fetched_at < _FORGET_S,
        )
        self._unkept = kept.unkept or self._unkept
        return [found for was, found in restated.items() if was in kept.noted]

    def _restated(
        self,
        asked: CacheKey,
        question: CachedQuery,
        fetched: Mapping[IndexEntry, BucketSlice],
        rows: pa.Table,
        available: Interval,
    ) -> dict[IndexEntry, Restatement]:
        """What is otherwise in *fetched*, by the entry it is to replace."""
        held = {entry.span: entry for entry in self._store.entries(question.key)}
        pairs = [(held[entry.span], entry) for entry in fetched if entry.span in held]
        tables = self._store.tables({was.file for was, _ in pairs if was.rows})
        found = {}
        for was, entry in pairs:
            if was.rows and was.file not in tables:
                continue  # damaged: what it said is not known any more
            old, new = entry_rows(tables.get(was.file, rows), was), entry_rows(rows, entry)
            if changed := rows_changed(old, new, asked.dimensions):
                found[was] = Restatement(
                    metric=asked.metric,
                    dimensions=asked.dimensions,
                    text=asked.text,
                    interval=fetched[entry].interval,
                    stamp=fetched[entry].stamp,
                    before_as_of=_EPOCH + was.as_of * _MICROSECOND,
                    as_of=available.end,
                    rows_changed=changed,
                    fields=field_changes(asked.metric, old, new, asked.dimensions, adds_up=asked.adds_up),
                    noticed_at=datetime.fromtimestamp(self._now(), UTC),
                )
        return found

    def _question(self, asked: CacheKey) -> CachedQuery:
        told = (self._owner, asked.metric, msgspec.json.encode(asked.dimensions).decode(), asked.text)
        return CachedQuery(hashlib.sha256(msgspec.json.encode(told)).hexdigest(), *told)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's cache is: GAMELENS_CACHE_DIR, else the place the system has for caches."""
    named = environ.get("GAMELENS_CACHE_DIR")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("gamelens")


def _arranged(table: pa.Table, stamps: Sequence[int]) -> tuple[pa.Table, list[tuple[int, int]]]:
    """*table* by timestamp, rows of one keeping their order; first row and number of rows of each of *stamps*."""
    moments: Any = table[TIMESTAMP].cast(TIMESTAMP_TYPE).cast(pa.int64())
    if moments.null_count or len(set(stamps)) < len(stamps):
        raise ValueError("a row has no timestamp, or two units have the same")
    moments = np.asarray(moments)
    if np.any(moments[1:] < moments[:-1]):
        order = np.argsort(moments, kind="stable")
        table, moments = table.take(order), moments[order]
    found = [column.tolist() for column in np.unique(moments, return_index=True, return_counts=True)]
    places = {stamp: (first, rows) for stamp, first, rows in zip(*found, strict=True)}
    if strange := places.keys() - set(stamps):
        raise ValueError(f"{len(strange)} timestamps of rows are those of no unit")
    return table, [places.get(stamp, (0, 0)) for stamp in stamps]


def _span(unit: BucketSlice) -> tuple[int, int]:
    """Its interval in microseconds since 1970."""
    return _micros(unit.interval.start), _micros(unit.interval.end)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def open_cache(cache: bool | str | os.PathLike[str], *, address: str, fingerprint: str) -> AnswerCache | None:
    """The cache of one key at one address: in *cache*, in the user's cache folder when True, none when False."""
    if cache is False:
        return None
    owner = hashlib.sha256(f"{address} {fingerprint}".encode()).hexdigest()[:32]
    return AnswerCache(cache_folder() if cache is True else Path(cache), owner=owner)
