"""The Parquet files of the cache: written once, checked whole before they are parsed, never changed.

A name ends in the checksum of what is in the file, so that the index, which holds names, holds the checksums too.
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
    """The files of one folder. Whatever in it is not named as ours is left alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, body: bytes) -> str:
        """The name of a new file that holds *body*; it is there whole or not at all."""
        name = f"{secrets.token_hex(16)}-{crc32(body):08x}.parquet"
        write_private(self.folder / name, body)
        return name

    def read(self, name: str) -> pa.Table | None:
        """The table in the file *name*; None when it vanished or is not what was written."""
        from pyarrow import parquet

        try:
            body = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        if f"{crc32(body):08x}" != name[33:41]:
            return None
        try:
            return parquet.ParquetFile(pa.BufferReader(body)).read()
        except (pa.ArrowException, OSError):  # written with what this version of the library cannot read
            return None

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files *names*, as far as they are there."""
        for name in names:
            # Where a file in use cannot be removed (Windows), the next sweep but one does it.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                (self.folder / name).unlink()

    def sweep(self, known: Collection[str], *, before_s: float) -> set[str]:
        """Remove files that are not *known* and older than *before_s*; the answer is what of *known* is not there."""
        missing = set(known)
        for entry in self._ours():
            if entry.name in missing:
                missing.discard(entry.name)
                continue
            with contextlib.suppress(FileNotFoundError):  # somebody else sweeps too
                if entry.stat().st_mtime < before_s:
                    self.remove([entry.name])
        return missing

    def remove_all(self) -> None:
        """Remove all files, finished or not."""
        self.remove([entry.name for entry in self._ours()])

    def _ours(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.folder) as entries:
            yield from (entry for entry in entries if _is_ours(entry.name))


def _is_ours(name: str) -> bool:
    draft = DRAFT_NAME.fullmatch(name)
    return _NAME.fullmatch(draft["target"] if draft else name) is not None


def encode(table: pa.Table) -> bytes:
    """*table* as Parquet: zstd, and a dictionary for what repeats; a third smaller than lz4, and hardly slower to read.

    Raises:
        pa.ArrowException: Parquet has nothing for a column of this type.
    """
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    repeating = [field.name for field in table.schema if pa.types.is_string(field.type) or field.name == TIMESTAMP]
    parquet.write_table(table, sink, compression="zstd", use_dictionary=repeating, write_statistics=False)
    return bytes(sink.getvalue())


def shape_of(table: pa.Table) -> str:
    """What tells schemas apart: only files of one shape are merged, so that merging changes no type."""
    return hashlib.sha256(table.schema.serialize()).hexdigest()[:16]
