"""Repair of SQLite's write-ahead log.

SQLite reads a log up to the first frame that fails its checksum and passes over the rest without an error. If the
header is damaged, it reads nothing. Here each frame is checked alone, against the stored checksum of the frame before
it. The checksum is linear (fileformat2, The Write-Ahead Log): it also tells which word of a frame was changed, if
only one was. Frames with more damage are left out.
"""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

_HEADER: Final = struct.Struct(">IIII8s")  # magic, version, page size, number of checkpoints, salt
_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_MAGIC: Final = {"<": 0x377F0682, ">": 0x377F0683}  # by the byte order of the checksum
_VERSION: Final = 3_007_000
_FRAMES_AT_ONCE: Final = 1024
_MASK: Final = 0xFFFFFFFF

_Sum = tuple[int, int]
_Words = NDArray[np.uint32]


def repair_log(log: Path, repaired: Path, *, page_size: int) -> int | None:
    """Write *log* to *repaired* as it was before it was damaged, as far as that can be told.

    Args:
        log: a write-ahead log that no process has open.
        repaired: is written, and synced, only if SQLite would not read every transaction in *log*.
        page_size: of the database.

    Returns:
        The number of frames that were left out, or None if the log is undamaged.
    """
    if not log.exists():
        return None
    with log.open("rb") as file:
        frames = _Frames(file, page_size)
        if not frames.repair():
            return None
        with repaired.open("wb") as target:
            frames.write(target)
            os.fsync(target.fileno())
    return len(frames.lost)


class _Checksum:
    """SQLite's checksum of a fixed number of bytes: two weighted sums of their words."""

    def __init__(self, size: int, order: str) -> None:
        self._type = np.dtype(f"{order}u4")
        # A pair of words (x, y) turns (s, t) into (s + t + x, s + 2 t + x + y).
        a, b, c, d = 1, 0, 0, 1
        weights = []
        for _ in range(size // 8):
            weights.append(((a + b, b), (c + d, d)))
            a, b, c, d = (value & _MASK for value in (a + b, a + 2 * b, c + d, c + 2 * d))
        self._matrix = a, b, c, d
        self._weights = np.array(weights[::-1], dtype=np.uint64).transpose(1, 0, 2).reshape(2, -1).astype(np.uint32)

    def sums(self, rows: NDArray[np.uint8]) -> list[_Sum]:
        """Return the checksum of each row of bytes, started at zero."""
        words = np.ascontiguousarray(rows).view(self._type).astype(np.uint32)
        return [(int(first), int(second)) for first, second in words @ self._weights.T]

    def sum(self, content: bytes) -> _Sum:
        """Return the checksum of *content*, started at zero."""
        return self.sums(np.frombuffer(content, dtype=np.uint8)[None])[0]

    def chained(self, before: _Sum, alone: _Sum) -> _Sum:
        """Return the checksum that goes on from *before* over content with the checksum *alone*."""
        a, b, c, d = self._matrix
        return (a * before[0] + b * before[1] + alone[0]) & _MASK, (c * before[0] + d * before[1] + alone[1]) & _MASK

    def corrected(self, content: bytes, missing: _Sum) -> list[bytes]:
        """Return each *content* with one word changed so that its checksum grows by *missing*.

        There is one as a rule, and several if only the high byte of the word was changed.
        """
        first, second = self._weights.astype(np.uint64)
        mask = np.uint64(_MASK)
        fits = (np.uint64(missing[0]) * second & mask) == (np.uint64(missing[1]) * first & mask)
        places = np.flatnonzero(fits).tolist() if any(missing) else []
        return [self._added(content, place, missing) for place in places]

    def _added(self, content: bytes, place: int, missing: _Sum) -> bytes:
        # The weights of a word are neighbours in Fibonacci's sequence, so one of them is odd and has an inverse.
        weights = (int(sums[place]) for sums in self._weights)
        weight, wanted = next(pair for pair in zip(weights, missing, strict=True) if pair[0] % 2)
        words = np.frombuffer(content, dtype=self._type).astype(np.uint32)
        words[place] = (int(words[place]) + wanted * pow(weight, -1, _MASK + 1)) & _MASK
        return words.astype(self._type).tobytes()


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a log.

    Attributes:
        order: byte order of the checksums.
        seeds: checksums from which that of the first frame may start.
        salts: possible salts of the frames.
        is_intact: whether SQLite accepts the header.
    """

    order: str
    seeds: tuple[_Sum, ...]
    salts: tuple[bytes, ...]
    is_intact: bool

    @classmethod
    def read(cls, content: bytes, page_size: int) -> _Header:
        """Read a header, with what it may have been if it is damaged."""
        stored = struct.unpack(">II", content[24:32])
        for order, magic in _MAGIC.items():
            alone = _Checksum(24, order).sum(content[:24])
            if alone == stored and _HEADER.unpack(content[:24])[:3] == (magic, _VERSION, page_size):
                return cls(order, (stored,), (content[16:24],), is_intact=True)
        order = "<" if sys.byteorder == "little" else ">"  # no other machine has written it
        checksum = _Checksum(24, order)
        alone = checksum.sum(content[:24])
        corrected = checksum.corrected(content[:24], _minus(stored, alone))
        salts = (content[16:24], *(header[16:24] for header in corrected))
        return cls(order, (stored, alone), salts, is_intact=False)


class _Frames:
    """The frames of a log up to the end of its current round."""

    def __init__(self, file: BinaryIO, page_size: int) -> None:
        self._file = file
        self._page_size = page_size
        self._header = _Header.read(file.read(_HEADER_BYTES).ljust(_HEADER_BYTES, b"\0"), page_size)
        self._checksum = _Checksum(8 + page_size, self._header.order)
        self._salts: list[bytes] = []
        self._heads: list[bytes] = []  # page number and, at the end of a transaction, size of the database
        self._stored: list[_Sum] = []
        self._alone: list[_Sum] = []
        self._pages: dict[int, bytes] = {}  # corrected ones
        self._changed: set[int] = set()
        self.lost: set[int] = set()
        self._read()

    def _read(self) -> None:
        size = _FRAME_HEADER_BYTES + self._page_size
        while chunk := self._file.read(size * _FRAMES_AT_ONCE):
            whole = len(chunk) // size
            if not whole:
                break
            rows = np.frombuffer(chunk, dtype=np.uint8, count=whole * size).reshape(whole, size)
            self._alone += self._checksum.sums(np.hstack([rows[:, :8], rows[:, _FRAME_HEADER_BYTES:]]))
            for row in rows[:, :_FRAME_HEADER_BYTES]:
                head = row.tobytes()
                self._heads.append(head[:8])
                self._salts.append(head[8:16])
                self._stored.append(struct.unpack(">II", head[16:24]))

    def repair(self) -> bool:
        """Correct each damaged frame or add it to `lost`.

        Returns:
            False if SQLite reads every transaction as it is.
        """
        if not self._heads:
            return False
        salt = self._salt()
        self._cut(1 + self._last_of_round(salt))
        for number in range(len(self._heads)):
            if self._links(number):
                if self._salts[number] != salt:
                    self._changed.add(number)
            else:
                self._changed.add(number)
                if not self._correct(number):
                    self.lost.add(number)
        ends = [number for number, head in enumerate(self._heads) if head[4:] != bytes(4)]
        self._cut(1 + max(ends, default=-1))
        return bool(self._changed) or (not self._header.is_intact and bool(self._heads))

    def write(self, file: BinaryIO) -> None:
        """Write a log of all frames that are not lost."""
        salt = self._salt()
        order = self._header.order
        header = _HEADER.pack(_MAGIC[order], _VERSION, self._page_size, 0, salt)
        running = _Checksum(24, order).sum(header)
        file.write(header + struct.pack(">II", *running))
        for number in sorted(set(range(len(self._heads))) - self.lost):
            running = self._checksum.chained(running, self._alone[number])
            file.write(self._heads[number] + salt + struct.pack(">II", *running) + self._page(number))
        file.flush()

    def _salt(self) -> bytes:
        """Return the salt of the header, or of the first frames if that is damaged."""
        if self._header.is_intact:
            return self._header.salts[0]
        return next((salt for salt in self._salts[:2] if salt in self._header.salts), self._salts[0])

    def _last_of_round(self, salt: bytes) -> int:
        """Return the number of the last frame of the round of *salt*, -1 for none."""
        last = max((number for number, other in enumerate(self._salts) if other == salt), default=-1)
        while last + 1 < len(self._heads) and self._links(last + 1):
            last += 1
        return last

    def _cut(self, count: int) -> None:
        """Forget the frames after the first *count*."""
        for values in (self._salts, self._heads, self._stored, self._alone):
            del values[count:]
        self._changed = {number for number in self._changed if number < count}
        self.lost = {number for number in self.lost if number < count}

    def _links(self, number: int) -> bool:
        """Whether the checksum of a frame continues that of the frame before it."""
        return any(
            self._checksum.chained(before, self._alone[number]) == self._stored[number]
            for before in self._before(number)
        )

    def _before(self, number: int) -> tuple[_Sum, ...]:
        return (self._stored[number - 1],) if number else self._header.seeds

    def _correct(self, number: int) -> bool:
        """Correct the checksum of a frame or one word of it, if that explains the damage."""
        for before in self._before(number):
            continued = self._checksum.chained(before, self._alone[number])
            if self._explains(number, continued):
                self._stored[number] = continued
                return True
            missing = _minus(self._stored[number], continued)
            if content := self._likely(number, self._checksum.corrected(self._content(number), missing)):
                self._heads[number], self._pages[number] = content[:8], content[8:]
                self._alone[number] = self._checksum.sum(content)
                return True
        return False

    def _likely(self, number: int, candidates: list[bytes]) -> bytes | None:
        """Return what a frame held before it was changed, None if that cannot be told."""
        if len(candidates) > 1:
            candidates = [content for content in candidates if self._is_likely_head(number, content[:8])]
        return candidates[0] if len(candidates) == 1 else None

    def _is_likely_head(self, number: int, head: bytes) -> bool:
        """Whether a page number and the size of the database fit those of the frames around.

        SQLite writes the pages of a transaction in ascending order, mostly. The size grows by pages that it writes.
        """
        page, size = struct.unpack(">II", head)
        earlier = [struct.unpack(">II", other) for other in self._heads[:number]]
        if earlier and not earlier[-1][1] and page <= earlier[-1][0]:
            return False
        if size:
            return bool(size >= page and size == max(page, next((end for _, end in reversed(earlier) if end), size)))
        following = self._heads[number + 1 : number + 2]
        return bool(following and page < struct.unpack(">II", following[0])[0])

    def _explains(self, number: int, continued: _Sum) -> bool:
        """Whether only the stored checksum of a frame is damaged, and *continued* is what it was."""
        if number + 1 < len(self._heads):
            return self._checksum.chained(continued, self._alone[number + 1]) == self._stored[number + 1]
        return 0 in _minus(self._stored[number], continued)

    def _content(self, number: int) -> bytes:
        return self._heads[number] + self._page(number)

    def _page(self, number: int) -> bytes:
        if number in self._pages:
            return self._pages[number]
        size = _FRAME_HEADER_BYTES + self._page_size
        self._file.seek(_HEADER_BYTES + number * size + _FRAME_HEADER_BYTES)
        return self._file.read(self._page_size)


def _minus(left: _Sum, right: _Sum) -> _Sum:
    return (left[0] - right[0]) & _MASK, (left[1] - right[1]) & _MASK
