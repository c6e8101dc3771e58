"""The highest id of an acknowledged batch, in a small file beside the store.

The ids of batches have no gaps, so this one number tells whether any batch is missing, whatever happened to the store
and its log. The number is written after each commit and before the commit is acknowledged. A killed process loses none
of it. It is synced once a second: syncing it with every commit would halve how many commits a disk can take. So after a
power failure it may be a second old, which matters only if the log was damaged as well.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from pathlib import Path
from time import monotonic
from typing import Final
from zlib import crc32

_RECORD: Final = struct.Struct(">QQQ")  # number of the record, ids up to which batches were deleted and acknowledged
_COPIES: Final = 2  # of a record in its block: a changed byte damages one of them
_BLOCK: Final = 4096  # records go to two blocks in turn: a write that is cut short leaves the other
_SYNC_EVERY_S: Final = 1.0


class AcknowledgedBatches:
    """The ids of all batches that were acknowledged and not deleted since: one range, from `deleted` + 1 to `last`.

    Several threads may use it. The file beside *store* is created if it does not exist; `is_new` tells that there was
    none, or that nothing in it could be read.
    """

    def __init__(self, store: Path) -> None:
        descriptor = os.open(acknowledged_file(store), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._lock = threading.Lock()
        self._synced_at = monotonic()
        self._number, self.deleted, self.last = _newest_record(self._file.fileno())
        self.is_new = not self._number
        if self.is_new:
            os.pwrite(
                self._file.fileno(), bytes(2 * _BLOCK), 0
            )  # takes its space now: a full disk stops no later record
            self._write()

    def acknowledge(self, last: int) -> None:
        """Record that batches up to the id *last* are stored."""
        with self._lock:
            self.last = max(last, self.last)
            self._write()

    def delete(self, last: int) -> None:
        """Record that batches up to the id *last* were deleted on purpose."""
        with self._lock:
            self.deleted = last
            self.last = max(last, self.last)
            self._write()
            self._sync()

    def sync_if_due(self) -> None:
        """Sync the file unless that was done within the last second."""
        if monotonic() - self._synced_at > _SYNC_EVERY_S:
            self._sync()

    def close(self) -> None:
        """Sync and close the file."""
        if not self._file.closed:
            self._sync()
            self._file.close()

    def _write(self) -> None:
        self._number += 1
        record = _RECORD.pack(self._number, self.deleted, self.last)
        record += struct.pack(">Q", crc32(record))
        os.pwrite(self._file.fileno(), record * _COPIES, self._number % 2 * _BLOCK)

    def _sync(self) -> None:
        os.fdatasync(self._file.fileno())
        self._synced_at = monotonic()


def acknowledged_file(store: Path) -> Path:
    """Return the path of the file beside *store*."""
    return store.with_suffix(".acknowledged")


def _newest_record(file: int) -> tuple[int, int, int]:
    """Return the newest record that is whole, zeros without one."""
    size = _RECORD.size + 8
    newest = (0, 0, 0)
    for place in (block * _BLOCK + copy * size for block in (0, 1) for copy in range(_COPIES)):
        content = os.pread(file, size, place)
        with contextlib.suppress(struct.error):
            (checksum,) = struct.unpack(">Q", content[_RECORD.size :])
            if checksum == crc32(content[: _RECORD.size]):
                newest = max(newest, _RECORD.unpack(content[: _RECORD.size]))
    return newest
