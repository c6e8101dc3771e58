"""What was committed to the lake, in a small file beside the store: what is lost can then be told without the store.

SQLite goes back to an older state without an error when its log is missing, and a store that is missing or was put in
the place of another looks like any other. The record has the newest version that was committed, whether events of it
were never received, and their days. It is written after each commit, so it is never ahead of a sound store.
"""

from __future__ import annotations

import logging
from pathlib import Path
from zlib import crc32

import msgspec

from gamelens._files import write_private

_log = logging.getLogger(__name__)


class LakeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The newest version of a lake that was committed.

    Attributes:
        identity: random id that the store has as well; empty before it has one.
        version: number of the version.
        is_written: whether the lake has events that were loaded as files and never received.
        taken: number of files that imports have taken.
        days: first and last day of the events of each organisation, as ISO 8601.
    """

    identity: str = ""
    version: int = 0
    is_written: bool = False
    taken: int = 0
    days: dict[str, tuple[str, str]] = {}


class _Checked(msgspec.Struct, frozen=True):
    checksum: int
    record: msgspec.Raw


def record_file(store: Path) -> Path:
    """Return the path of the record beside *store*."""
    return store.with_suffix(".lake")


def read_record(path: Path) -> LakeRecord | None:
    """Return the record at *path*, or None if there is none that can be read."""
    try:
        checked = msgspec.json.decode(path.read_bytes(), type=_Checked)
        if crc32(checked.record) == checked.checksum:
            return msgspec.json.decode(checked.record, type=LakeRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        _log.warning("the record of the lake cannot be read: %s: %s", path, error)
    return None


def write_record(path: Path, record: LakeRecord) -> None:
    """Replace the record at *path*. A disk that fails leaves the older one, which is right as well."""
    content = msgspec.json.encode(record)
    try:
        write_private(path, msgspec.json.encode(_Checked(crc32(content), msgspec.Raw(content))))
    except OSError as error:
        _log.warning("the record of the lake is not up to date: %s cannot be written: %s", path, error)
