"""The Parquet files of the cache: written once, verified before parsing, never changed.

A file name ends in the checksum of the content, so the index, which stores names, stores checksums too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import pyarrow as pa

from gamelens._files import DRAFT_NAME, write_private
from gamelens.client.tables.table_schema import TIMESTAMP

_NAME: Final = re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}\.parquet")


class ParquetFiles:
    """The cache files of one folder. Files with other names are left alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, body: bytes) -> str:
        """Write *body* to a new file, completely or not at all, and return its name."""
        name = f"{secrets.token_hex(16)}-{crc32(body):08x}.parquet"
        write_private(self.folder / name, body)
        return name

    def read(self, name: str) -> pa.Table | None:
        """Return the table in the file *name*.

        None if it is missing or was changed.
        """
        from pyarrow import parquet

        try:
            body = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        if f"{crc32(body):08x}" != name[33:41]:
            return None
        try:
            return parquet.ParquetFile(pa.BufferReader(body)).read()
        except (pa.ArrowException, OSError):  # written by a version of pyarrow that this one cannot read
            return None

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files *names* that exist."""
        for name in names:
            # On Windows a file in use cannot be removed: a later sweep removes it.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                (self.folder / name).unlink()

    def sweep(self, indexed_files: Collection[str], *, before_s: float) -> set[str]:
        """Remove files that are not indexed, and return the indexed files that are missing.

        A file newer than *before_s* stays: another process may be about to index it.
        """
        missing = set(indexed_files)
        for entry in self._cache_files():
            if entry.name in missing:
                missing.discard(entry.name)
                continue
            with contextlib.suppress(FileNotFoundError):  # another process sweeps too
                if entry.stat().st_mtime < before_s:
                    self.remove([entry.name])
        return missing

    def remove_all(self) -> None:
        """Remove all cache files, unfinished ones too."""
        self.remove([entry.name for entry in self._cache_files()])

    def _cache_files(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.folder) as entries:
            yield from (entry for entry in entries if _is_cache_file(entry.name))


def _is_cache_file(name: str) -> bool:
    draft = DRAFT_NAME.fullmatch(name)
    return _NAME.fullmatch(draft["target"] if draft else name) is not None


def encode(table: pa.Table) -> bytes:
    """Return *table* as Parquet.

    Compressed with zstd and with dictionaries for repeated values: a third smaller than lz4 and hardly slower to read.

    Raises:
        pa.ArrowException: Parquet has no type for a column.
    """
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    repeating = [field.name for field in table.schema if pa.types.is_string(field.type) or field.name == TIMESTAMP]
    parquet.write_table(table, sink, compression="zstd", use_dictionary=repeating, write_statistics=False)
    return bytes(sink.getvalue())


def schema_digest(table: pa.Table) -> str:
    """Return a digest of the schema of *table*.

    Only files of equal digests are merged, so that merging changes no column type.
    """
    return hashlib.sha256(table.schema.serialize()).hexdigest()[:16]
