"""Files to import, found by paths and URLs and recognised by their content."""

from __future__ import annotations

import codecs
import contextlib
import glob
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from zlib_ng import zlib_ng

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import filesystem_of
from gamelens.sandbox.storage.manifest import FileMark

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


_CHECKSUMS: Final = ("ETag", "etag", "md5Hash", "md5", "Content-MD5", "crc32c", "sha256", "sha")
_TIMES: Final = ("LastModified", "last_modified", "Last-Modified", "mtime", "modified", "updated")
_COARSEST_S: Final = 2.0
"""The coarsest times of files, which FAT has."""

EMPTY: Final = "it is empty: get it again"
"""Why a file without content is not imported."""
BLANK: Final = "it has no line but blank ones"
"""Why a file of blank lines is not imported."""


class DamagedFileError(Exception):
    """A file that cannot be taken, with the reason as its text."""


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file at a path or URL, which is not opened yet.

    Attributes:
        url: its address.
        bytes: its size.
        mark: what its storage says that changes with the content, empty if it says nothing or not yet.
        is_named: whether a source names the file, and not a folder that it is in.
        reason: the reason why it cannot be opened, empty if it may be.
    """

    url: str
    bytes: int
    mark: str = ""
    is_named: bool = False
    reason: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """What an import knows it by (`FileMark.key`)."""
        return hashlib.sha256(self.url.encode(errors="surrogateescape")).hexdigest(), self.bytes, self.mark


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of raw events at a path or URL. Its kind is None if it cannot be imported, for the *reason*.

    *arrival_ts* is the arrival of its first event in epoch seconds, 0 where that is not known. *listed* is the file as
    it was listed.
    """

    url: str
    bytes: int
    kind: SourceFormat | None
    arrival_ts: int = 0
    reason: str = ""
    listed: ListedFile | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.url.rstrip("/").rpartition("/")[2]

    def file_mark(self, organisation: str) -> FileMark | None:
        """Return the entry by which an import knows it without opening it, None if its storage has no mark."""
        if self.listed is None or not self.listed.mark:
            return None
        source, size, mark = self.listed.key
        return FileMark(organisation=organisation, source=source, bytes=size, mark=mark)


class _Head(msgspec.Struct):
    """The first line of a file of JSON lines."""

    arrival_ts: int = 0


def list_files(sources: Iterable[str]) -> list[ListedFile]:
    """Return the files in *sources*, and open none.

    A source is a file, a folder, a pattern such as `raw/*/*.gz`, or a URL of any of them, which fsspec reads.

    Raises:
        Refused: a source has no file, or its URL cannot be read.
    """
    found: dict[str, ListedFile] = {}
    for source in sources:
        of_source = list(_remote_files(source) if "://" in source else _local_files(source))
        if not of_source:
            raise Refused(f"there is no file at {source}: pass a file, a folder, a pattern or a URL")
        found |= {file.url: file for file in of_source}
    return list(found.values())


def recognise_files(listed: Iterable[ListedFile]) -> list[SourceFile]:
    """Return files by their first bytes, in the order of their first events.

    Of the files in a folder, those that have neither format and a name with a leading dot or underscore, such as
    `_SUCCESS`, are left out: other tools keep notes there.
    """
    opened = map(_opened, listed)
    return sorted((file for file in opened if not _is_note(file)), key=lambda file: (file.arrival_ts, file.url))


def _local_files(source: str) -> Iterator[ListedFile]:
    path = Path(source)
    names = [source] if path.exists() else glob.glob(source, recursive=True)
    for found in map(Path, names):
        if not found.is_dir():
            yield _local_file(found, is_named=True)
            continue
        unread: list[OSError] = []
        for folder, _, inside in os.walk(found, onerror=unread.append):
            for name in inside:
                yield _local_file(Path(folder, name))
        for error in unread:
            url, reason = str(Path(error.filename).absolute()), f"it cannot be listed: {error.strerror}"
            yield ListedFile(url=url, bytes=0, is_named=True, reason=reason)


def _local_file(path: Path, *, is_named: bool = False) -> ListedFile:
    url = str(path.absolute())
    try:
        status = path.stat()
    except OSError as error:
        return ListedFile(url=url, bytes=0, is_named=is_named, reason=f"it cannot be read: {error.strerror}")
    reason = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    mark = f"mtime {status.st_mtime_ns}" if _is_settled(status.st_mtime) else ""
    return ListedFile(url=url, bytes=status.st_size, mark=mark, is_named=is_named, reason=reason)


def _remote_files(source: str) -> Iterator[ListedFile]:
    filesystem, path = filesystem_of(source, called=source)
    try:
        is_pattern = any(mark in path for mark in "*?[")
        found = filesystem.glob(path, detail=True) if is_pattern else {path: {"type": "directory"}}
        for place, entry in found.items():
            inside = filesystem.find(place, detail=True) if entry.get("type") == "directory" else {place: entry}
            for name, listed in inside.items():
                url = filesystem.unstrip_protocol(name)
                known = listed if listed.get("size") is not None else filesystem.info(name)
                yield ListedFile(url=url, bytes=int(known["size"]), mark=_mark_of(known), is_named=name == place)
    except (OSError, ValueError) as error:
        raise Refused(f"{source} cannot be read: {error}") from error


def _mark_of(entry: Mapping[str, Any]) -> str:
    """Return what a storage says of a file that changes with its content, empty if it says nothing."""
    for name in _CHECKSUMS:
        if entry.get(name):
            return f"{name} {entry[name]}"
    for name in _TIMES:
        if moment := entry.get(name):
            seconds = moment.timestamp() if isinstance(moment, datetime) else moment
            if not isinstance(seconds, int | float) or _is_settled(seconds):
                return f"{name} {moment}"
    return ""


def _is_settled(written_s: float) -> bool:
    """Return whether a file that is written again would have another time than *written_s*, epoch seconds."""
    return written_s < time.time() - _COARSEST_S


def _is_note(file: SourceFile) -> bool:
    """Return whether *file*, which was found in a folder, is one that other tools leave beside data."""
    is_named = file.listed is not None and file.listed.is_named
    return file.kind is None and not is_named and file.name.startswith((".", "_"))


def _opened(listed: ListedFile) -> SourceFile:
    """Return a file by its first bytes."""
    if listed.reason:
        return _unusable(listed, listed.reason)
    try:
        if "://" in listed.url:
            filesystem, path = filesystem_of(listed.url, called=listed.url)
            with filesystem.open(path, "rb") as opened:
                return _recognised(listed, opened.read(_HEAD_BYTES))
        with Path(listed.url).open("rb") as opened:
            return _recognised(listed, opened.read(_HEAD_BYTES))
    except OSError as error:
        return _unusable(listed, f"it cannot be read: {error.strerror or error}")
    except ValueError as error:
        return _unusable(listed, f"it cannot be read: {error}")


def _unusable(listed: ListedFile, reason: str) -> SourceFile:
    return SourceFile(url=listed.url, bytes=listed.bytes, kind=None, reason=reason, listed=listed)


def _recognised(listed: ListedFile, head: bytes) -> SourceFile:
    """Return a file that begins with *head*."""
    if head.startswith(_PARQUET):
        return SourceFile(url=listed.url, bytes=listed.bytes, kind="event-parquet", listed=listed)
    text = head
    if head.startswith(GZIP):
        text = b""  # reading says what is wrong with gzip that cannot be unpacked
        with contextlib.suppress(zlib_ng.error):  # type: ignore[arg-type]  # typed as an instance, and is a class
            text = zlib_ng.decompressobj(wbits=31).decompress(head, _LINE_BYTES)
    elif not head.strip():
        return _unusable(listed, BLANK if head else EMPTY)
    text = text.removeprefix(BOM)
    if reason := _why_not_lines(text):
        return _unusable(listed, reason)
    arrival_ts = 0
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        arrival_ts = msgspec.json.decode(text.lstrip().partition(b"\n")[0], type=_Head).arrival_ts
    return SourceFile(url=listed.url, bytes=listed.bytes, kind="raw-json", arrival_ts=arrival_ts, listed=listed)


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
