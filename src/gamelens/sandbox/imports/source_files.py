"""Files to import, found by paths and URLs and recognised by their content."""

from __future__ import annotations

import codecs
import contextlib
import glob
import os
import re
import shutil
import stat
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
BOM: Final = codecs.BOM_UTF8
_PARQUET: Final = b"PAR1"
_HEAD_BYTES: Final = 1 << 16
_LINE_BYTES: Final = 1 << 20
_BEGINNINGS: Final = [  # of what is kept in place of an export; longer ones before their beginnings
    (codecs.BOM_UTF32_LE, "text in UTF-32: save it as UTF-8"),
    (codecs.BOM_UTF32_BE, "text in UTF-32: save it as UTF-8"),
    (b"{\0\0\0", "text in UTF-32: save it as UTF-8"),
    (b"\0\0\0{", "text in UTF-32: save it as UTF-8"),
    (codecs.BOM_UTF16_LE, "text in UTF-16: save it as UTF-8"),
    (codecs.BOM_UTF16_BE, "text in UTF-16: save it as UTF-8"),
    (b"{\0", "text in UTF-16: save it as UTF-8"),
    (b"\0{", "text in UTF-16: save it as UTF-8"),
    (GZIP, "packed with gzip twice: unpack it once"),
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd: unpack it, or pack it with gzip"),
    (b"\x04\x22\x4d\x18", "packed with LZ4: unpack it, or pack it with gzip"),
    (b"BZh", "packed with bzip2: unpack it, or pack it with gzip"),
    (b"\xfd7zXZ", "packed with xz: unpack it, or pack it with gzip"),
    (b"\xff\x06\0\0sNaPpY", "packed with Snappy: unpack it, or pack it with gzip"),
    (b"PARE", "an encrypted Parquet file: decrypt it"),
    (b"Obj\x01", "an Avro file: export JSON lines or Parquet"),
    (b"ORC", "an ORC file: export JSON lines or Parquet"),
    (b"version https://git-lfs", "a pointer of Git LFS: fetch the file itself"),
]
_TAR: Final = (b"ustar", 257)
_ERROR_CODE: Final = re.compile(rb"<Error>\s*<Code>(\w{1,40})</Code>")
_WEB_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html|head)\b", re.IGNORECASE)
_ARRAY: Final = re.compile(rb"\[\s*[{\]]")
_PRETTY: Final = re.compile(rb"\{\s*\n")
_ONE_A_LINE: Final = "write each object on a line of its own, as with `jq -c"


EMPTY: Final = "it is empty: get it again"
"""Why a file without content is not imported."""
BLANK: Final = "it has no line but blank ones"
"""Why a file of blank lines is not imported."""


class DamagedFileError(Exception):
    """A file that cannot be taken, with the reason as its text."""


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of raw events at a path or URL. Its kind is None if it cannot be imported, for the *reason*.

    *arrival_ts* is the arrival of its first event in epoch seconds, 0 where that is not known.
    """

    url: str
    bytes: int
    kind: SourceFormat | None
    arrival_ts: int = 0
    reason: str = ""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.url.rstrip("/").rpartition("/")[2]


class _Head(msgspec.Struct):
    """The first line of a file of JSON lines."""

    arrival_ts: int = 0


def find_files(sources: Iterable[str]) -> list[SourceFile]:
    """Return the files in *sources*, in the order of their first events.

    A source is a file, a folder, a pattern such as `raw/*/*.gz`, or a URL of any of them, which fsspec reads. Of the
    files in a folder, those that have neither format and a name with a leading dot or underscore, such as `_SUCCESS`,
    are left out: other tools keep notes there.

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
    for found in map(Path, names):
        if not found.is_dir():
            yield _local_file(found)
            continue
        unread: list[OSError] = []
        for folder, _, inside in os.walk(found, onerror=unread.append):
            files = (_local_file(Path(folder, name)) for name in inside)
            yield from (file for file in files if not _is_note(file))
        for error in unread:
            yield _unusable(str(Path(error.filename).absolute()), f"it cannot be listed: {error.strerror}")


def _local_file(path: Path) -> SourceFile:
    url = str(path.absolute())
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return _unusable(url, "it is not a regular file")
        with path.open("rb") as opened:
            return _recognised(url, status.st_size, opened.read(_HEAD_BYTES))
    except OSError as error:
        return _unusable(url, f"it cannot be read: {error.strerror}")


def _is_note(file: SourceFile) -> bool:
    """Return whether *file*, which was found in a folder, is one that other tools leave beside data."""
    return file.kind is None and file.name.startswith((".", "_"))


def _unusable(url: str, reason: str, *, size: int = 0) -> SourceFile:
    return SourceFile(url=url, bytes=size, kind=None, reason=reason)


def _remote_files(source: str) -> Iterator[SourceFile]:
    filesystem, path = filesystem_of(source, called=source)
    try:
        is_pattern = any(mark in path for mark in "*?[")
        names = filesystem.glob(path) if is_pattern else [path]
        found = [(place, filesystem.find(place, detail=True)) for place in names]
    except (OSError, ValueError) as error:
        raise Refused(f"{source} cannot be read: {error}") from error
    for place, files in found:
        for name, entry in files.items():
            url = filesystem.unstrip_protocol(name)
            try:
                with filesystem.open(name, "rb") as opened:
                    file = _recognised(url, int(entry["size"]), opened.read(_HEAD_BYTES))
            except (OSError, ValueError) as error:
                file = _unusable(url, f"it cannot be read: {error}")
            if name == place or not _is_note(file):
                yield file


def _recognised(url: str, size: int, head: bytes) -> SourceFile:
    """Return the file at *url*, which begins with *head*."""
    if head.startswith(_PARQUET):
        return SourceFile(url=url, bytes=size, kind="event-parquet")
    text = head
    if head.startswith(GZIP):
        text = b""  # reading says what is wrong with gzip that cannot be unpacked
        with contextlib.suppress(zlib_ng.error):  # type: ignore[arg-type]  # typed as an instance, and is a class
            text = zlib_ng.decompressobj(wbits=31).decompress(head, _LINE_BYTES)
    elif not head.strip():
        return _unusable(url, BLANK if head else EMPTY, size=size)
    text = text.removeprefix(BOM)
    if reason := _why_not_lines(text):
        return _unusable(url, reason, size=size)
    arrival_ts = 0
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        arrival_ts = msgspec.json.decode(text.lstrip().partition(b"\n")[0], type=_Head).arrival_ts
    return SourceFile(url=url, bytes=size, kind="raw-json", arrival_ts=arrival_ts)


def _why_not_lines(text: bytes) -> str | None:
    """Return why a file whose unpacked content begins with *text* is not JSON lines, None if it may be."""
    for mark, what in _BEGINNINGS:
        if text.startswith(mark):
            return f"it is {what}"
    if text.startswith(*_TAR):
        return "it is a tar archive: unpack it"
    text = text.lstrip()
    if text.startswith(b"<"):
        if code := _ERROR_CODE.search(text):
            return f"it is an XML error page ({code[1].decode()}), as a link that has expired gives: get it again"
        return f"it is {'a web page' if _WEB_PAGE.search(text) else 'XML'}, not an export: get it again"
    if _ARRAY.match(text):
        return f"it is one JSON array: {_ONE_A_LINE} '.[]'`"
    if _PRETTY.match(text):
        return f"its objects have several lines each: {_ONE_A_LINE} .`"
    if text and not any(line.lstrip().startswith(b"{") for line in text.split(b"\n")):
        return "it is neither JSON lines nor Parquet"
    return None


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
