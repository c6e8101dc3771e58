"""Files to import, found by paths and URLs and recognised by their content."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
from zlib_ng import zlib_ng

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import filesystem_of

SourceFormat = Literal["raw-json", "event-parquet"]
"""Formats of the service's exports.

They are called Raw Data (Wire 5.6, Raw Data) and Event Data (Wire 5.7, Event Data).
"""

GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
_HEAD_BYTES: Final = 1 << 16
_LINE_BYTES: Final = 1 << 20


class DamagedFileError(Exception):
    """A file that cannot be taken, with the reason as its text."""


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of raw events at a path or URL. Its kind is None if it has neither format.

    *arrival_ts* is the arrival of its first event in epoch seconds, 0 where that is not known.
    """

    url: str
    bytes: int
    kind: SourceFormat | None
    arrival_ts: int = 0

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.url.rstrip("/").rpartition("/")[2]


class _Head(msgspec.Struct):
    """The first line of a file of JSON lines."""

    arrival_ts: int = 0


def find_files(sources: Iterable[str]) -> list[SourceFile]:
    """Return the files in *sources*, in the order of their first events.

    A source is a file, a folder, a pattern such as `raw/*/*.gz`, or a URL of any of them, which fsspec reads.

    Raises:
        Refused: a source has no file, or its URL cannot be read.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        of_source = list(_remote_files(source) if "://" in source else _local_files(source))
        if not of_source:
            raise Refused(f"there is no file at {source}: pass a file, a folder, a pattern or a URL")
        found |= {file.url: file for file in of_source}
    return sorted(found.values(), key=lambda file: (file.arrival_ts, file.url))


def _local_files(source: str) -> Iterator[SourceFile]:
    path = Path(source)
    names = [source] if path.exists() else glob.glob(source, recursive=True)
    for each in map(Path, names):
        files = (file for file in each.rglob("*") if file.is_file()) if each.is_dir() else (each,)
        for file in files:
            try:
                with file.open("rb") as opened:
                    head = opened.read(_HEAD_BYTES)
                yield _recognised(str(file.absolute()), file.stat().st_size, head)
            except OSError as error:
                raise Refused(f"{file} cannot be read: {error.strerror}") from error


def _remote_files(source: str) -> Iterator[SourceFile]:
    filesystem, path = filesystem_of(source, called=source)
    try:
        is_pattern = any(mark in path for mark in "*?[")
        names = filesystem.glob(path) if is_pattern else [path]
        files = {name: entry for each in names for name, entry in filesystem.find(each, detail=True).items()}
        for name, entry in files.items():
            with filesystem.open(name, "rb") as opened:
                head = opened.read(_HEAD_BYTES)
            yield _recognised(filesystem.unstrip_protocol(name), int(entry["size"]), head)
    except (OSError, ValueError) as error:
        raise Refused(f"{source} cannot be read: {error}") from error


def _recognised(url: str, size: int, head: bytes) -> SourceFile:
    """Return the file at *url*, which begins with *head*."""
    if head.startswith(_PARQUET):
        return SourceFile(url=url, bytes=size, kind="event-parquet")
    text = head
    if head.startswith(GZIP):
        with contextlib.suppress(zlib_ng.error):  # type: ignore[arg-type]  # typed as an instance, and is a class
            text = zlib_ng.decompressobj(wbits=31).decompress(head, _LINE_BYTES)
    line = text.lstrip().partition(b"\n")[0]
    if not (line.startswith(b"{") or head.startswith(GZIP)):
        return SourceFile(url=url, bytes=size, kind=None)
    arrival_ts = 0
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        arrival_ts = msgspec.json.decode(line, type=_Head).arrival_ts
    return SourceFile(url=url, bytes=size, kind="raw-json", arrival_ts=arrival_ts)


@contextlib.contextmanager
def local_path(file: SourceFile, scratch: Path) -> Iterator[Path]:
    """Yield a path of *file* on this machine.

    That of a file at a URL is a copy below *scratch*, which is removed afterwards.

    Raises:
        DamagedFileError: it cannot be read.
    """
    if "://" not in file.url:
        yield Path(file.url)
        return
    filesystem, path = filesystem_of(file.url, called=file.url)
    copy = scratch / f"copy-{os.path.basename(path)}"
    try:
        try:
            with filesystem.open(path, "rb") as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, _LINE_BYTES)
        except (OSError, ValueError) as error:
            raise DamagedFileError(f"it cannot be read: {error}") from error
        yield copy
    finally:
        copy.unlink(missing_ok=True)
