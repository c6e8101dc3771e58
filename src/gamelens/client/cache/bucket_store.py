"""Rows of units on disk: which file they are read from, which small files are merged, which go when it is too much.

Index and files are two things that no transaction spans. So a file is there before the index names it, and removed
after the index has let it go: whoever is killed in between leaves a file that nobody knows, which a sweep removes.
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
from gamelens.client.cache.parquet_files import ParquetFiles, encode, shape_of
from gamelens.client.cache.sqlite_index import SqliteIndex

MAX_FILES: Final = 12  # of one question and shape; one more, and the smallest are merged
_INDEX_BYTES: Final = 256  # what a unit takes in the index
_USE_S: Final = 60.0  # a file is noted as used at most this often: reading seldom has to wait for who is writing
_ORPHAN_S: Final = 3600.0


class CachedQuery(msgspec.Struct, frozen=True):
    """What units belong to; *key* is a hash of the rest."""

    key: str
    owner: str
    metric: str
    dimensions: str
    text: str


class StoreResult(msgspec.Struct, frozen=True):
    """Which restatements were *noted*, by the entry they replace; *unkept* says why rows were not kept."""

    noted: frozenset[IndexEntry]
    unkept: str | None


class BucketStore:
    """Units and their rows in one folder, *max_bytes* at most; the least recently used go first."""

    def __init__(self, folder: Path, *, max_bytes: int, patience_s: float, now: Callable[[], float]) -> None:
        self.index = SqliteIndex(folder, patience_s=patience_s)
        self._files = ParquetFiles(folder)
        self._max_bytes = max_bytes
        self._now = now

    def entries(
        self, key: str, starts: int = -index_queries.BIGGEST, until: int = index_queries.BIGGEST
    ) -> list[IndexEntry]:
        """Units of the question *key* that start from *starts* to *until*, in time."""
        return self.index.run(lambda db: index_queries.entries(db, key, starts, until))

    def tables(self, names: Iterable[str]) -> dict[str, pa.Table]:
        """The files *names* as they were written; one that vanished or is damaged is forgotten."""
        read = {name: self._files.read(name) for name in names}
        self._forget([name for name, table in read.items() if table is None])
        return {name: table for name, table in read.items() if table is not None}

    def use(self, names: Collection[str]) -> None:
        """Note that the files *names* were used just now."""
        now = self._now()
        idle = self.index.run(lambda db: index_queries.unused_since(db, names, now - _USE_S))
        if idle:
            self.index.run(lambda db: index_queries.mark_used(db, idle, now), writing=True)

    def put(
        self,
        question: CachedQuery,
        fetched: Sequence[IndexEntry],
        rows: pa.Table,
        *,
        restated: Mapping[IndexEntry, bytes],
        is_worth: Callable[[IndexEntry], bool],
    ) -> StoreResult:
        """Keep *fetched*, which lie in *rows*, in place of what was kept for them.

        Where there are many small files, they are merged with it, and units not *is_worth* it left behind. Of what was
        *restated* by entry, that is noted which nobody else has replaced, and so noted, in the meantime.
        """
        carried, merged = self._to_merge(question.key, fetched, rows, is_worth)
        pieces = carried | {entry: entry_rows(rows, entry) for entry in fetched}
        ordered = sorted(pieces, key=lambda entry: entry.span)
        body, unkept = self._encoded(pa.concat_tables([pieces[entry] for entry in ordered]))
        name = self._files.write(body) if body is not None else None

        def commit(db: sqlite3.Connection) -> tuple[frozenset[IndexEntry], list[str]]:
            noted = self._note(db, question, restated)
            index_queries.forget_units(db, question.key, [entry.span for entry in fetched])
            if name is not None and body is not None:
                size = len(body) + _INDEX_BYTES * len(ordered)
                named = msgspec.structs.astuple(question)
                index_queries.add_file(db, name, named, shape=shape_of(rows), size=size, used_at=self._now())
                _place(db, question.key, name, ordered, carried)
            left = merged if name is not None else []
            gone = index_queries.forget_files(db, {*left, *index_queries.empty_files(db, question.key)})
            return noted, [*gone, *index_queries.forget_files(db, index_queries.files_over_limit(db, self._max_bytes))]

        try:
            noted, gone = self.index.run(commit, writing=True)
        except BaseException:
            self._files.remove([name] if name is not None else [])
            raise
        self._files.remove(gone)
        return StoreResult(noted, unkept)

    def sweep(self) -> None:
        """Bring index and files together again, where a killed process or a person has parted them."""
        # Asked before the folder is read: what is missing then is gone, and not just being written.
        known = self.index.run(index_queries.names_of)
        self._forget(self._files.sweep(known, before_s=self._now() - _ORPHAN_S))

    def clear(self, owner: str | None) -> None:
        """Remove all of *owner*; None is all there is, and what was set aside."""

        def forget(db: sqlite3.Connection) -> list[str]:
            names = index_queries.names_of(db, owner)
            index_queries.forget_all(db, owner)
            return names

        self._files.remove(self.index.run(forget, writing=True))
        if owner is None:
            self._files.remove_all()
            self.index.remove_damaged()

    def _to_merge(
        self, key: str, fetched: Sequence[IndexEntry], rows: pa.Table, is_worth: Callable[[IndexEntry], bool]
    ) -> tuple[dict[IndexEntry, pa.Table], list[str]]:
        """Units that move into the new file, with their rows, and the files they leave."""
        shape, shapes = shape_of(rows), self.index.run(lambda db: index_queries.shapes(db, key))
        replaced = {entry.span for entry in fetched}
        staying: dict[str, list[IndexEntry]] = {name: [] for name in shapes}
        for entry in self.entries(key):
            if entry.span not in replaced and entry.file in staying:
                staying[entry.file].append(entry)
        live = {name: sum(entry.rows for entry in units) for name, units in staying.items()}
        # Where no row is left there is no type that merging could change.
        chosen = _smallest({name: live[name] for name in live if shapes[name] == shape or not live[name]}, len(rows))
        tables = self.tables(name for name in chosen if live[name])
        merged = [name for name in chosen if not live[name] or (name in tables and tables[name].schema == rows.schema)]
        moving = {
            entry: entry_rows(tables.get(name, rows), entry)
            for name in merged
            for entry in staying[name]
            if is_worth(entry)
        }
        return moving, merged

    def _note(
        self, db: sqlite3.Connection, question: CachedQuery, restated: Mapping[IndexEntry, bytes]
    ) -> frozenset[IndexEntry]:
        noted = frozenset(was for was in restated if index_queries.is_current(db, question.key, was))
        bodies = [body for was, body in restated.items() if was in noted]
        index_queries.add_restatements(db, question.owner, question.metric, bodies, noticed_at=self._now())
        return noted

    def _encoded(self, table: pa.Table) -> tuple[bytes | None, str | None]:
        try:
            body = encode(table)
        except pa.ArrowException as error:
            return None, f"Parquet cannot hold it: {error}"
        if len(body) > self._max_bytes:
            return None, f"{len(body)} bytes are more than all of max_bytes"
        return body, None

    def _forget(self, names: Collection[str]) -> None:
        if names:
            self.index.run(lambda db: index_queries.forget_files(db, names), writing=True)
            self._files.remove(names)


def entry_rows(table: pa.Table, entry: IndexEntry) -> pa.Table:
    """The rows of *entry* in the table of its file."""
    return table.slice(entry.first_row if entry.rows else 0, entry.rows)


def concatenate_entries(entries: Iterable[IndexEntry], tables: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of *entries* in their order, as one table; there must be a table."""
    slices = [tables[file].slice(first, end - first) for file, first, end in _runs(entries)]
    return pa.concat_tables(slices or [table.slice(0, 0) for table in tables.values()], promote_options="permissive")


def mergeable(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Those of *tables* that can be one: the first, and what its types can be brought together with."""
    try:
        pa.concat_tables(tables.values(), promote_options="permissive")
    except pa.ArrowException:
        found: dict[str, pa.Table] = {}
        for name, table in tables.items():
            try:
                pa.concat_tables([*found.values(), table], promote_options="permissive")
            except pa.ArrowException:
                continue
            found[name] = table
        return found
    return dict(tables)


def _runs(entries: Iterable[IndexEntry]) -> Iterator[tuple[str, int, int]]:
    """File, first row and end of rows that lie together."""
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


def _place(
    db: sqlite3.Connection, key: str, name: str, ordered: Sequence[IndexEntry], carried: Collection[IndexEntry]
) -> None:
    """Note that the units *ordered* lie one after the other in *name*, but for those *carried* that have moved on."""
    first = 0
    for entry in ordered:
        if entry not in carried or index_queries.is_current(db, key, entry):
            index_queries.insert_entry(db, key, entry.moved(name, first))
        first += entry.rows
    index_queries.verify_entries(db, key, {entry.span for entry in ordered if entry not in carried}, name)


def _smallest(rows_in: Mapping[str, int], coming: int) -> list[str]:
    """Files to merge: none while there are few, else so many that it is a while until the next time.

    A file larger than all before it together stays: each row is then rewritten a few times only, however long it lives.
    """
    if len(rows_in) < MAX_FILES:
        return []
    chosen: list[str] = []
    total = coming
    for name in sorted(rows_in, key=lambda name: rows_in[name]):
        if len(chosen) >= len(rows_in) - MAX_FILES // 2 and rows_in[name] > total:
            break
        chosen.append(name)
        total += rows_in[name]
    return chosen
