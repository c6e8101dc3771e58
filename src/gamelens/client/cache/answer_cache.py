"""The cache of answered buckets: a bucket is requested again only while it may change.

Written here because diskcache and joblib store values under keys: they know neither the buckets that queries of
different length share, nor when a bucket is settled, nor that its rows changed between two answers.

`bucket_store` stores the rows in Parquet files, `sqlite_index` records their places, `table_differences` compares old
rows with new ones. A folder that cannot be used never fails a query: the cache switches itself off and says why.
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
from typing import Final, TypeVar

import msgspec
import platformdirs
import pyarrow as pa

from gamelens.client.cache import index_queries
from gamelens.client.cache.bucket_store import BucketStore, CachedQuery, concatenate_entries, entry_rows, mergeable
from gamelens.client.cache.index_queries import IndexEntry
from gamelens.client.tables.table_differences import Restatement, field_changes, rows_changed
from gamelens.client.tables.table_operations import sort_into_buckets
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.errors import BadQuery
from gamelens.wire.intervals import SETTLE_DAYS, Interval
from gamelens.wire.limits import MIB

T = TypeVar("T")
MAX_BYTES: Final = 512 * MIB
PATIENCE_S: Final = 5.0
_UNSETTLED_MAX_AGE_S: Final = 90 * 86_400.0  # an unsettled entry that is not requested again is dropped after this time
_READ_ATTEMPTS: Final = 5  # other kernels may merge files while they are read
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CacheKey(msgspec.Struct, frozen=True):
    """The key of a query in the cache: everything but its interval.

    Attributes:
        metric: the name of the metric.
        dimensions: the dimensions of each row.
        text: canonical JSON of the rest of the query.
        adds_up: whether the values of rows can be summed.
    """

    metric: str
    dimensions: tuple[str, ...]
    text: str
    adds_up: bool


class CachedRows(msgspec.Struct, frozen=True):
    """Rows of the fresh *slices*, in the order requested.

    *table* is None if there are none.
    """

    table: pa.Table | None
    slices: frozenset[BucketSlice]


class CacheInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The contents and state of a cache.

    Attributes:
        folder: the folder of the cache.
        queries, buckets, files: counts for this key at this address.
        bytes: size of all files in the folder, those of other keys included.
        max_bytes: the limit of that size.
        hits, misses: buckets looked up since the cache was opened.
        off: the reason why the cache has switched itself off; None while it works.
        store_error: the reason why the last answer that could not be stored was not.
    """

    folder: str
    queries: int = 0
    buckets: int = 0
    files: int = 0
    bytes: int = 0
    max_bytes: int = 0
    hits: int = 0
    misses: int = 0
    off: str | None = None
    store_error: str | None = None

    def __repr__(self) -> str:
        if self.off is not None:
            return f"Cache in {self.folder}: off, {self.off}"
        contents = f"{self.queries} questions, {self.buckets} buckets in {self.files} files"
        size = f"{self.bytes / MIB:.1f} of {self.max_bytes / MIB:.0f} MiB"
        lookups = f"{self.hits} of {self.hits + self.misses} buckets found"
        store_error = f"; last not kept: {self.store_error}" if self.store_error else ""
        return f"Cache in {self.folder}: {contents}, {size}; {lookups}{store_error}"


class AnswerCache:
    """The answered buckets of one *owner*, safe in threads, processes and forks.

    Rows of other owners are never returned.

    Args:
        folder: created if missing; all files are in its folder `answers`, readable by the user only.
        owner: a hash of address and key.
        max_bytes: limit for the files of all owners in the folder; the least recently used are removed first.
        settle_days: a bucket is settled if it ended this long before the end of the available interval when requested.
        patience_s: longest wait for another process that is writing.
        now: a clock, seconds since 1970.
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
        self._lookups: Counter[str] = Counter()
        self._off: str | None = None
        self._store_error: str | None = None

    @property
    def off(self) -> str | None:
        """The reason why the cache has switched itself off.

        None while it works.
        """
        return self._off

    def fresh_slices(
        self, key: CacheKey, slices: Iterable[BucketSlice], *, available: Interval, fresh_s: float
    ) -> frozenset[BucketSlice]:
        """Return the slices that are cached and fresh. Reads the index, no files."""
        requested = tuple(slices)
        return self._try(lambda: frozenset(self._fresh(key, requested, available, fresh_s)), frozenset())

    def find(self, key: CacheKey, slices: Iterable[BucketSlice], *, available: Interval, fresh_s: float) -> CachedRows:
        """Return the rows of the slices that are cached and fresh.

        A cached slice may have no rows.
        """
        requested = tuple(dict.fromkeys(slices))
        result = self._try(lambda: self._find(key, requested, available, fresh_s), CachedRows(None, frozenset()))
        with self._store.index.lock:
            self._lookups.update(hits=len(result.slices), misses=len(requested) - len(result.slices))
        return result

    def keep(
        self, key: CacheKey, slices: Sequence[BucketSlice], table: pa.Table, *, available: Interval
    ) -> list[Restatement]:
        """Store *table*, the rows of exactly these *slices*, and return the restatements found.

        A restatement is a slice that was stored before with other rows.

        Raises:
            ValueError: two slices have the same bucket start, or a row has the timestamp of no slice.
        """
        rows, ranges = sort_into_buckets(
            table.replace_schema_metadata(None), [_micros(bucket_slice.bucket_start) for bucket_slice in slices]
        )
        end, now = _micros(available.end), self._now()
        fetched = {
            IndexEntry(
                *_bounds(bucket_slice), _micros(bucket_slice.bucket_start), "", *row_range, end, now
            ): bucket_slice
            for bucket_slice, row_range in zip(slices, ranges, strict=True)
        }
        return self._try(lambda: self._keep_rows(key, fetched, rows, available), []) if fetched else []

    def restatements(self, metric: str | None = None) -> list[Restatement]:
        """Return the restatements noticed, oldest first, of all metrics or of *metric*."""
        empty: list[bytes] = []
        restatements_query = functools.partial(index_queries.restatements, owner=self._owner, metric=metric)
        bodies = self._try(lambda: self._store.index.run(restatements_query), empty)
        return [msgspec.json.decode(body, type=Restatement) for body in bodies]

    def info(self) -> CacheInfo:
        """Return the contents and the state of the cache."""
        empty = (0, 0, 0, 0)
        usage_query = functools.partial(index_queries.usage, owner=self._owner)
        counts = self._try(lambda: self._store.index.run(usage_query), empty)
        return CacheInfo(
            folder=str(self.folder),
            queries=counts[0],
            buckets=counts[1],
            files=counts[2],
            bytes=counts[3],
            max_bytes=self._max_bytes,
            hits=self._lookups["hits"],
            misses=self._lookups["misses"],
            off=self._off,
            store_error=self._store_error,
        )

    def clear(self, *, everything: bool = False) -> None:
        """Remove the rows and restatements of this owner and switch the cache on again.

        Args:
            everything: remove those of all owners.

        Raises:
            BadQuery: the folder cannot be used.
        """
        was_closed, self._store.index.is_closed = self._store.index.is_closed, False
        self._off = self._store_error = None
        self._try(lambda: self._store.clear(None if everything else self._owner), None)
        off = self._off
        if was_closed:
            self.close()
        if off is not None:
            raise BadQuery("cache", str(self.folder), f"cannot be cleared: {off}")

    def close(self) -> None:
        """Close the index.

        From now on nothing is found and nothing is stored.
        """
        with self._store.index.lock:
            self._off = self._off or "closed"
            self._store.index.is_closed = True
            self._store.index.close()

    def _try(self, work: Callable[[], T], default: T) -> T:
        """Return the result of *work*, or *default* if the folder fails.

        After a failure the cache is off.
        """
        if self._off is not None:
            return default
        try:
            self._sweep_once()
            return work()
        except (OSError, sqlite3.Error) as error:
            self._off = self._off or f"{type(error).__name__}: {error}"
            self._store.index.close()
            return default

    def _sweep_once(self) -> None:
        with self._store.index.lock:
            if os.getpid() not in self._swept:
                self._store.sweep()
                self._swept.add(os.getpid())

    def _find(self, key: CacheKey, slices: Sequence[BucketSlice], available: Interval, fresh_s: float) -> CachedRows:
        """Read the files of the fresh entries, again if another process has merged them."""
        for _ in range(_READ_ATTEMPTS):
            fresh = self._fresh(key, slices, available, fresh_s)
            # Newest first: when a column type has changed, rows that do not fit the newest are requested again.
            newest = sorted(fresh.values(), key=lambda entry: -entry.fetched_at)
            names = dict.fromkeys(entry.file for entry in newest if entry.rows) or {
                entry.file: None for entry in newest[:1]
            }
            tables = self._store.tables(names)
            if len(tables) == len(names):
                break
        tables = mergeable(tables)
        readable = {
            bucket_slice: entry for bucket_slice, entry in fresh.items() if entry.file in tables or not entry.rows
        }
        if not readable or not tables:
            return CachedRows(None, frozenset())
        self._store.use({entry.file for entry in readable.values()})
        return CachedRows(concatenate_entries(readable.values(), tables), frozenset(readable))

    def _fresh(
        self, key: CacheKey, slices: Sequence[BucketSlice], available: Interval, fresh_s: float
    ) -> dict[BucketSlice, IndexEntry]:
        """Return the index entries of the fresh slices, in the order of *slices*."""
        if not slices:
            return {}
        bounds_of = {bucket_slice: _bounds(bucket_slice) for bucket_slice in slices}
        starts = [start for start, _ in bounds_of.values()]
        cached = {
            entry.bounds: entry for entry in self._store.entries(self._cached_query(key).key, min(starts), max(starts))
        }
        end, now = _micros(available.end), self._now()

        def is_fresh(bucket_slice: BucketSlice, entry: IndexEntry) -> bool:
            is_young = entry.as_of == end and 0 <= now - entry.fetched_at < fresh_s
            return entry.bucket_start == _micros(bucket_slice.bucket_start) and (is_young or self._is_settled(entry))

        return {
            bucket_slice: cached[bounds]
            for bucket_slice, bounds in bounds_of.items()
            if bounds in cached and is_fresh(bucket_slice, cached[bounds])
        }

    def _is_settled(self, entry: IndexEntry) -> bool:
        return entry.ends + self._settle <= entry.as_of

    def _keep_rows(
        self, key: CacheKey, fetched: Mapping[IndexEntry, BucketSlice], rows: pa.Table, available: Interval
    ) -> list[Restatement]:
        """Store *rows* and return the restatements that no other process has noted first."""
        query, now = self._cached_query(key), self._now()
        restated = self._find_restatements(key, query, fetched, rows, available)
        stored = self._store.put(
            query,
            list(fetched),
            rows,
            restated={old_entry: msgspec.json.encode(restatement) for old_entry, restatement in restated.items()},
            is_worth_keeping=lambda entry: self._is_settled(entry) or now - entry.fetched_at < _UNSETTLED_MAX_AGE_S,
        )
        self._store_error = stored.store_error or self._store_error
        return [restatement for old_entry, restatement in restated.items() if old_entry in stored.noted]

    def _find_restatements(
        self,
        key: CacheKey,
        query: CachedQuery,
        fetched: Mapping[IndexEntry, BucketSlice],
        rows: pa.Table,
        available: Interval,
    ) -> dict[IndexEntry, Restatement]:
        """Compare *fetched* with the stored rows.

        Return restatements by the entry they replace.
        """
        cached = {entry.bounds: entry for entry in self._store.entries(query.key)}
        pairs = [(cached[entry.bounds], entry) for entry in fetched if entry.bounds in cached]
        tables = self._store.tables({old_entry.file for old_entry, _ in pairs if old_entry.rows})
        restatements = {}
        for old_entry, entry in pairs:
            if old_entry.rows and old_entry.file not in tables:
                continue  # damaged: the old rows are gone
            old, new = entry_rows(tables.get(old_entry.file, rows), old_entry), entry_rows(rows, entry)
            if changed := rows_changed(old, new, key.dimensions):
                restatements[old_entry] = Restatement(
                    metric=key.metric,
                    dimensions=key.dimensions,
                    text=key.text,
                    interval=fetched[entry].interval,
                    bucket_start=fetched[entry].bucket_start,
                    before_as_of=_EPOCH + old_entry.as_of * _MICROSECOND,
                    as_of=available.end,
                    rows_changed=changed,
                    fields=field_changes(key.metric, old, new, key.dimensions, adds_up=key.adds_up),
                    noticed_at=datetime.fromtimestamp(self._now(), UTC),
                )
        return restatements

    def _cached_query(self, key: CacheKey) -> CachedQuery:
        identity = (self._owner, key.metric, msgspec.json.encode(key.dimensions).decode(), key.text)
        return CachedQuery(hashlib.sha256(msgspec.json.encode(identity)).hexdigest(), *identity)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's cache folder: `GAMELENS_CACHE_DIR`, else the system's place."""
    named = environ.get("GAMELENS_CACHE_DIR")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("gamelens")


def _bounds(bucket_slice: BucketSlice) -> tuple[int, int]:
    """Return the interval of a slice in microseconds since 1970."""
    return _micros(bucket_slice.interval.start), _micros(bucket_slice.interval.end)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def open_cache(cache: bool | str | os.PathLike[str], *, address: str, fingerprint: str) -> AnswerCache | None:
    """Open the cache of one key at one address.

    Args:
        cache: the folder; True is the user's cache folder, False returns None.
        address: the address of the service, without a port of this machine, where editions of data tell services apart.
        fingerprint: of the key.
    """
    if cache is False:
        return None
    owner = hashlib.sha256(f"{address} {fingerprint}".encode()).hexdigest()[:32]
    return AnswerCache(cache_folder() if cache is True else Path(cache), owner=owner)
