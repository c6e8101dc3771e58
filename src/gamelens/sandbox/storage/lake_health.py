"""Checks of the lake's files against the manifest, and what of the lake cannot answer.

Each file is read once and compared with its checksum, again only if it is replaced or touched. Sizes are compared at
each use. So a question waits for the checks of the files that it reads and of no others.

A start reads every file again, in the background. A run does not wait for that: it relies on what the process before
noted (`checked.json`) of the files that have not changed since.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from gamelens._files import write_private
from gamelens.sandbox.storage.inbox import lost_events
from gamelens.sandbox.storage.lake import Lake, Snapshot, folder_of
from gamelens.sandbox.storage.manifest import LakePart, LakeUnavailable, file_checksum

EVERY_ORGANISATION: Final = ""
"""Name under which the loss of the whole lake is noted."""
DEADLINE_S: Final = 10.0
"""Seconds for which a question waits for checksums."""

_Stamp = tuple[int, int, int, int]  # size, inode, times of the last change of content and of anything, in nanoseconds

_log = logging.getLogger(__name__)


class LakeHealth:
    """Knowledge of the files of *lake*. Safe to use from several threads.

    *memory* is the file in which the next process finds what this one has checked, None for a lake of another process.

    Attributes:
        rebuilds: for each organisation whose lake is being made again, how far that is, from 0 to 1.
        losses: for each organisation whose lake cannot be made again, the reason.
    """

    def __init__(self, lake: Lake, *, memory: Path | None = None, deadline_s: float = DEADLINE_S) -> None:
        self._lake, self._memory, self._deadline_s = lake, memory, deadline_s
        lake.explain_loss = partial(self.reason, EVERY_ORGANISATION)
        self._sound: dict[Path, _Stamp] = {}
        self._sound_before: dict[Path, _Stamp] = {}
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):  # then all files are read again
            stamps = msgspec.json.decode(memory.read_bytes(), type=dict[str, _Stamp]) if memory else {}
            self._sound_before = {lake.root / path: stamp for path, stamp in stamps.items()}
        self._is_news = False
        self._damaged: dict[str, dict[Path, str]] = {}
        self._lock = threading.Lock()
        self.rebuilds: dict[str, float] = {}
        self.losses: dict[str, str] = {}

    def require(self, organisation: str, parts: Sequence[LakePart]) -> None:
        """Return if *parts* are whole.

        Raises:
            LakeUnavailable: one is not, or cannot be checked in the time that a question may take.
        """
        ends_at = time.monotonic() + self._deadline_s

        def give_up() -> None:
            if time.monotonic() > ends_at:
                raise LakeUnavailable("the files of the lake are still being checked: ask again in a moment")

        for part in parts:
            self._check(part, on_chunk=give_up)
        if not self._damaged.get(organisation, {}).keys().isdisjoint(part.path for part in parts):
            raise LakeUnavailable(self.reason(organisation))

    def recheck(self, organisation: str, parts: Sequence[LakePart]) -> None:
        """Read *parts* again after an engine has failed over them.

        Raises:
            LakeUnavailable: one of them is damaged.
        """
        with self._lock:
            for part in parts:
                self._sound.pop(part.path, None)
        self.require(organisation, parts)

    def check_all(self, snapshot: Snapshot, *, pause: float = 1.0) -> None:
        """Check every file of *snapshot*: all sizes first, then checksums.

        Rests *pause* times as long as it has worked, so that questions go on.
        """
        self._check_each(snapshot, list(snapshot.all_parts()), pause)

    def check_changed(self, snapshot: Snapshot) -> None:
        """Check the files of *snapshot* that have changed since this process or the one before checked them."""
        before = self._sound_before
        changed = [part for part in snapshot.all_parts() if before.get(part.path) != _look_at(part)[0]]
        self._check_each(snapshot, changed, 0.0)

    def _check_each(self, snapshot: Snapshot, parts: Sequence[LakePart], pause: float) -> None:
        for part in parts:
            if reason := _look_at(part)[1]:
                self._note(part, reason)
        for part in parts:
            began = time.monotonic()
            self._check(part)
            time.sleep(pause * (time.monotonic() - began))
        # Files of the organisation that are in the version no more are forgotten.
        organisation, paths = snapshot.organisation, {part.path for part in snapshot.all_parts()}
        folder = folder_of(organisation)
        with self._lock:
            for files in (self._sound, self._sound_before):
                for path in [path for path in files if path not in paths and path.parent.name == folder]:
                    del files[path]
            damaged = self._damaged.pop(organisation, {})
            if kept := {path: why for path, why in damaged.items() if path in paths}:
                self._damaged[organisation] = kept
            else:
                self.losses.pop(organisation, None)
        self._remember()

    def note_written(self) -> None:
        """Take every file of the newest version that is not known to be damaged as checked, but for its size.

        An import or a bulk load that has just read what it wrote for its checksums need not leave that to a start.
        """
        for part in (part for name in self._lake.organisations() for part in self._lake.snapshot(name).all_parts()):
            stamp, reason = _look_at(part)
            if reason is None and part.path not in self._damaged.get(part.organisation, {}):
                self._sound.setdefault(part.path, stamp)
        self._is_news = True
        self._remember()

    def damaged_organisations(self) -> list[str]:
        """Return the organisations that have a damaged file in the newest version."""
        with self._lock:
            return sorted(self._damaged)

    def reasons(self) -> dict[str, str]:
        """Return why questions are not answered, by organisation."""
        if self._lake.lost_because:
            return {EVERY_ORGANISATION: self.reason(EVERY_ORGANISATION)}
        if lost := lost_events(self._lake.store):
            return {EVERY_ORGANISATION: lost}
        return {organisation: self.reason(organisation) for organisation in self.damaged_organisations()}

    def damage(self) -> dict[str, str]:
        """Return the damaged files, by organisation: three of them, and how many more."""
        found = {}
        with self._lock:
            for organisation, files in sorted(self._damaged.items()):
                listed = [f"{path.relative_to(self._lake.root)} {reason}" for path, reason in files.items()]
                more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
                found[organisation] = "; ".join(listed[:3]) + more
        return found

    def reason(self, organisation: str) -> str:
        """Return a sentence about the damage to *organisation* and what becomes of it."""
        damage = self.damage().get(organisation, "")
        if lost_because := self._lake.known_loss:
            damage, organisation = lost_because, EVERY_ORGANISATION
        if organisation in self.losses:
            return f"{damage}. {self.losses[organisation]}"
        if organisation in self.rebuilds:
            return f"{damage}: its tables are being rebuilt, {self.rebuilds[organisation]:.0%} done. Ask again later"
        return f"{damage}: its tables will be rebuilt. Ask again later"

    def _check(self, part: LakePart, on_chunk: Callable[[], None] | None = None) -> None:
        stamp, reason = _look_at(part)
        if reason is None:
            if self._sound.get(part.path, stamp[:0])[:3] == stamp[:3]:  # a link may be made to it
                return
            try:
                is_sound = file_checksum(part.path, on_chunk=on_chunk) == part.content
            except OSError as error:
                reason = f"cannot be read ({error.strerror})"
            else:
                reason = None if is_sound else "is damaged"
        if reason is not None:
            self._note(part, reason)
            return
        with self._lock:
            self._sound[part.path], self._is_news = stamp, True
            self._damaged.get(part.organisation, {}).pop(part.path, None)

    def _note(self, part: LakePart, reason: str) -> None:
        with self._lock:
            files = self._damaged.setdefault(part.organisation, {})
            if part.path not in files:
                _log.error("a file of the lake %s: %s", reason, part.path)
            files[part.path] = reason
            self._sound_before.pop(part.path, None)

    def _remember(self) -> None:
        """Note for the next process what is checked."""
        with self._lock:
            if self._memory is None or not self._is_news:
                return
            checked = self._sound_before | self._sound
            stamps = {str(path.relative_to(self._lake.root)): stamp for path, stamp in checked.items()}
            try:
                write_private(self._memory, msgspec.json.encode(stamps))
                self._is_news = False
            except OSError as error:
                _log.warning("the next start will read all files again: %s cannot be written: %s", self._memory, error)


def _look_at(part: LakePart) -> tuple[_Stamp, str | None]:
    """Return what tells whether a file has changed, and the reason why it is not whole: it is missing or too short."""
    try:
        status = part.path.stat()
    except FileNotFoundError:
        return (0, 0, 0, 0), "is missing"
    except OSError as error:
        return (0, 0, 0, 0), f"cannot be read ({error.strerror})"
    stamp = status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
    return stamp, None if status.st_size == part.bytes else f"has {status.st_size} bytes instead of {part.bytes}"
