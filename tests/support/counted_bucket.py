"""A bucket of objects that fsspec reads, at addresses such as `bucket://raw/a.gz`, and counts what is read of it."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import fsspec
from fsspec import AbstractFileSystem

SCHEME = "bucket"


class CountedBucket(AbstractFileSystem):  # type: ignore[misc]  # without types
    """Objects by their paths. As in a store of objects, the ETag of one changes with its content.

    Attributes:
        objects: their contents.
        opens: paths of the objects that were opened, in order.
        read_bytes: bytes that were read of them.
        listings: the number of folders that were listed.
    """

    protocol = SCHEME
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}
    opens: ClassVar[list[str]] = []
    read_bytes: ClassVar[int] = 0
    listings: ClassVar[int] = 0

    def ls(self, path: str, detail: bool = True, **_: object) -> list[Any]:
        """Return what is directly in a folder, or the object at *path*."""
        type(self).listings += 1
        path = path.strip("/")
        names, first = sorted(self.objects), f"{path}/"
        entries: list[dict[str, Any]] = [self._entry(path)] if path in self.objects else []
        place = bisect_left(names, first)
        while place < len(names) and names[place].startswith(first):
            inside, slash = names[place].removeprefix(first).partition("/")[:2]
            name = first + inside
            entries.append({"name": name, "size": 0, "type": "directory"} if slash else self._entry(name))
            place = bisect_left(names, f"{name}0") if slash else place + 1  # "0" follows "/"
        if not entries:
            raise FileNotFoundError(path)
        return entries if detail else [entry["name"] for entry in entries]

    def _entry(self, name: str) -> dict[str, Any]:
        content = self.objects[name]
        etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return {"name": name, "size": len(content), "type": "file", "ETag": f'"{etag}"'}

    def _open(self, path: str, mode: str = "rb", **_: object) -> io.BytesIO:
        type(self).opens.append(path)
        return _CountedBytes(self.objects[path])


class _CountedBytes(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        CountedBucket.read_bytes += len(content)
        return content


@contextmanager
def counted_bucket() -> Iterator[type[CountedBucket]]:
    """Yield the bucket, which is empty before and after the block."""
    fsspec.register_implementation(SCHEME, CountedBucket, clobber=True)
    reset_counts()
    CountedBucket.objects = {}
    try:
        yield CountedBucket
    finally:
        CountedBucket.objects = {}


def reset_counts() -> None:
    """Count from nothing."""
    CountedBucket.opens, CountedBucket.read_bytes, CountedBucket.listings = [], 0, 0
