"""Rows of bucket slices in files: where they are read, when files are merged or removed.

No transaction covers both the index and the files. So a file is written before the index names it, and removed after
the index has dropped it: a process killed in between leaves an unused file, which a later sweep removes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from gamelens.client.cache import index_queries
from gamelens.client.cache.index_queries import IndexEntry
from gamelens.client.cache.parquet_files import ParquetFiles, encode, schema_digest
from gamelens.client.cache.sqlite_index import SqliteIndex

MAX_FILES: Final = 12  # of one query and schema; one more, and the smallest are merged
_INDEX_BYTES_PER_ENTRY: Final = 256  # size of one entry in the index
_USE_RESOLUTION_S: Final = 60.0  # the time of use is written at most this often, so that reads seldom wait for a writer
_ORPHAN_AGE_S: Final = 3600.0


class CachedQuery(msgspec.Struct, frozen=True):
    """The query that entries belong to.

    *key* is a hash of the other fields.

    Attributes:
        key: the primary key in the index.
        owner: a hash of address and key of the service.
        metric: the name of the metric.
        dimensions: the dimensions as a JSON array.
        text: canonical JSON of the rest of the query.
    """

    key: str
    owner: str
    metric: str
    dimensions: str
    text: str


class StoreResult(msgspec.Struct, frozen=True):
    """The outcome of storing rows.

    Attributes:
        noted: entries whose restatement was noted.
        store_error: the reason why the rows were not stored, or None.
    """

    noted: frozenset[IndexEntry]
    store_error: str | None


class BucketStore:
    """Index entries and their rows in one folder of at most *max_bytes*.

    The least recently used files are removed first.
    """

    def __init__(self, folder: Path, *, max_bytes: int, patience_s: float, now: Callable[[], float]) -> None:
        self.index = SqliteIndex(folder, patience_s=patience_s)
        self._files = ParquetFiles(folder)
        self._max_bytes = max_bytes
        self._now = now

    def entries(
        self, key: str, starts: int = -index_queries.BIGGEST, until: int = index_queries.BIGGEST
    ) -> list[IndexEntry]:
        """Return the entries of the query *key* that start between *starts* and *until*, by time."""
        return self.index.run(lambda db: index_queries.entries(db, key, starts, until))

    def tables(self, names: Iterable[str]) -> dict[str, pa.Table]:
        """Read the files *names*.

        Drop those that are missing or damaged from the index.
        """
        read = {name: self._files.read(name) for name in names}
        self._remove_files([name for name, table in read.items() if table is None])
        return {name: table for name, table in read.items() if table is not None}

    def use(self, names: Collection[str]) -> None:
        """Record that the files *names* have been used now."""
        now = self._now()
        idle = self.index.run(lambda db: index_queries.unused_since(db, names, now - _USE_RESOLUTION_S))
        if idle:
            self.index.run(lambda db: index_queries.mark_used(db, idle, now), writing=True)

    def put(
        self,
        query: CachedQuery,
        fetched: Sequence[IndexEntry],
        rows: pa.Table,
        *,
        restated: Mapping[IndexEntry, bytes],
        is_worth_keeping: Callable[[IndexEntry], bool],
    ) -> StoreResult:
        """Store *fetched*, whose rows are in *rows*, in place of older entries of the same bounds.

        Small files are merged into the new one when there are many.

        Args:
            query: the query of the entries.
            fetched: new entries.
            rows: their rows.
            restated: restatements as JSON, by the entry they replace. One is noted unless another process has replaced
                that entry in the meantime.
            is_worth_keeping: whether an old entry moves along when its file is merged.
        """
        moving, merged = self._plan_merge(query.key, fetched, rows, is_worth_keeping)
        rows_by_entry = moving | {entry: entry_rows(rows, entry) for entry in fetched}
        ordered = sorted(rows_by_entry, key=lambda entry: entry.bounds)
        body, store_error = self._encode(pa.concat_tables([rows_by_entry[entry] for entry in ordered]))
        name = self._files.write(body) if body is not None else None

        def commit(db: sqlite3.Connection) -> tuple[frozenset[IndexEntry], list[str]]:
            """Update the index and return the restatements noted and the files to remove."""
            noted = self._add_restatements(db, query, restated)
            index_queries.delete_entries(db, query.key, [entry.bounds for entry in fetched])
            if name is not None and body is not None:
                size = len(body) + _INDEX_BYTES_PER_ENTRY * len(ordered)
                named = msgspec.structs.astuple(query)
                index_queries.add_file(db, name, named, shape=schema_digest(rows), size=size, used_at=self._now())
                _insert_entries(db, query.key, name, ordered, moving)
            merged_away = merged if name is not None else []
            removed = index_queries.delete_files(db, {*merged_away, *index_queries.empty_files(db, query.key)})
            return noted, [
                *removed,
                *index_queries.delete_files(db, index_queries.files_over_limit(db, self._max_bytes)),
            ]

        try:
            noted, removed = self.index.run(commit, writing=True)
        except BaseException:
            self._files.remove([name] if name is not None else [])
            raise
        self._files.remove(removed)
        return StoreResult(noted, store_error)

    def sweep(self) -> None:
        """Repair differences between index and files that a killed process or a user has left."""
        # Read before the folder: a file that is then missing is gone, not just being written.
        indexed_files = self.index.run(index_queries.file_names)
        self._remove_files(self._files.sweep(indexed_files, before_s=self._now() - _ORPHAN_AGE_S))

    def clear(self, owner: str | None) -> None:
        """Remove all entries of *owner*.

        None removes those of all owners, and the copy of a damaged index.
        """

        def delete(db: sqlite3.Connection) -> list[str]:
            names = index_queries.file_names(db, owner)
            index_queries.delete_all(db, owner)
            return names

        self._files.remove(self.index.run(delete, writing=True))
        if owner is None:
            self._files.remove_all()
            self.index.remove_damaged()

    def _plan_merge(
        self, key: str, fetched: Sequence[IndexEntry], rows: pa.Table, is_worth_keeping: Callable[[IndexEntry], bool]
    ) -> tuple[dict[IndexEntry, pa.Table], list[str]]:
        """Return the entries that move into the new file, with rows, and the files they leave."""
        shape, shapes = schema_digest(rows), self.index.run(lambda db: index_queries.shapes(db, key))
        replaced = {entry.bounds for entry in fetched}
        staying: dict[str, list[IndexEntry]] = {name: [] for name in shapes}
        for entry in self.entries(key):
            if entry.bounds not in replaced and entry.file in staying:
                staying[entry.file].append(entry)
        live = {name: sum(entry.rows for entry in entries) for name, entries in staying.items()}
        # A file without live rows has no type that merging could change.
        chosen = _files_to_merge(
            {name: live[name] for name in live if shapes[name] == shape or not live[name]}, len(rows)
        )
        tables = self.tables(name for name in chosen if live[name])
        merged = [name for name in chosen if not live[name] or (name in tables and tables[name].schema == rows.schema)]
        moving = {
            entry: entry_rows(tables.get(name, rows), entry)
            for name in merged
            for entry in staying[name]
            if is_worth_keeping(entry)
        }
        return moving, merged

    def _add_restatements(
        self, db: sqlite3.Connection, query: CachedQuery, restated: Mapping[IndexEntry, bytes]
    ) -> frozenset[IndexEntry]:
        """Note the restatements whose old entry is still current and return these entries."""
        noted = frozenset(entry for entry in restated if index_queries.is_current(db, query.key, entry))
        bodies = [body for entry, body in restated.items() if entry in noted]
        index_queries.add_restatements(db, query.owner, query.metric, bodies, noticed_at=self._now())
        return noted

    def _encode(self, table: pa.Table) -> tuple[bytes | None, str | None]:
        """Return *table* as Parquet, or None and the reason why it cannot be stored."""
        try:
            body = encode(table)
        except pa.ArrowException as error:
            return None, f"Parquet cannot hold it: {error}"
        if len(body) > self._max_bytes:
            return None, f"{len(body)} bytes are more than all of max_bytes"
        return body, None

    def _remove_files(self, names: Collection[str]) -> None:
        if names:
            self.index.run(lambda db: index_queries.delete_files(db, names), writing=True)
            self._files.remove(names)


def entry_rows(table: pa.Table, entry: IndexEntry) -> pa.Table:
    """Return the rows of *entry* from the table of its file."""
    return table.slice(entry.first_row if entry.rows else 0, entry.rows)


def concatenate_entries(entries: Iterable[IndexEntry], tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the rows of *entries*, in their order, as one table. *tables* must not be empty."""
    slices = [tables[file].slice(first, end - first) for file, first, end in _runs(entries)]
    return pa.concat_tables(slices or [table.slice(0, 0) for table in tables.values()], promote_options="permissive")


def mergeable(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the first table and those whose column types can be merged with it."""
    try:
        pa.concat_tables(tables.values(), promote_options="permissive")
    except pa.ArrowException:
        compatible: dict[str, pa.Table] = {}
        for name, table in tables.items():
            try:
                pa.concat_tables([*compatible.values(), table], promote_options="permissive")
            except pa.ArrowException:
                continue
            compatible[name] = table
        return compatible
    return dict(tables)


def _runs(entries: Iterable[IndexEntry]) -> Iterator[tuple[str, int, int]]:
    """Yield file, first row and end row of runs of adjacent rows."""
    file, first, end = "", 0, 0
    for entry in entries:
        if not entry.rows:
            continue
        if (entry.file, entry.first_row) != (file, end):
            if end > first:
                yield file, first, end
            file, first = entry.file, entry.first_row
        end = entry.first_row + entry.rows
    if end > first:
        yield file, first, end


def _insert_entries(
    db: sqlite3.Connection, key: str, name: str, ordered: Sequence[IndexEntry], moving: Collection[IndexEntry]
) -> None:
    """Index the entries *ordered* one after the other in the file *name*.

    Entries of *moving* that another process has moved in the meantime are skipped.
    """
    first = 0
    for entry in ordered:
        if entry not in moving or index_queries.is_current(db, key, entry):
            index_queries.insert_entry(db, key, entry.moved(name, first))
        first += entry.rows
    index_queries.verify_entries(db, key, {entry.bounds for entry in ordered if entry not in moving}, name)


def _files_to_merge(row_counts: Mapping[str, int], new_rows: int) -> list[str]:
    """Return the files to merge.

    None while there are few, else enough to leave room for new ones. A file with more rows than all smaller ones
    together stays, so that each row is rewritten a few times only.
    """
    if len(row_counts) < MAX_FILES:
        return []
    chosen: list[str] = []
    total = new_rows
    for name in sorted(row_counts, key=lambda name: row_counts[name]):
        if len(chosen) >= len(row_counts) - MAX_FILES // 2 and row_counts[name] > total:
            break
        chosen.append(name)
        total += row_counts[name]
    return chosen
