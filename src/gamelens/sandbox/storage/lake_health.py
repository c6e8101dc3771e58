"""Checks of the lake's files against the manifest, and what of the lake cannot answer.

Each file is read once and compared with its checksum, again only if it is replaced or touched. Sizes are compared at
each use. So a question waits for the checks of the files that it reads and of no others.

A start reads every file again, in the background. A run does not wait for that: it takes the word of the process
before for the files that have not changed since (`checked.json`), as a sandbox that was never stopped would.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    Args:
        lake: the lake.
        memory: file in which the next process finds what this one has checked, None for a lake of another process.
        deadline_s: seconds for which a question waits for checksums.

    Attributes:
        rebuilds: for each organisation whose lake is being made again, how far that is, from 0 to 1.
        losses: for each organisation whose lake cannot be made again, the reason.
    """

    def __init__(self, lake: Lake, *, memory: Path | None = None, deadline_s: float = DEADLINE_S) -> None:
        self._lake, self._memory, self._deadline_s = lake, memory, deadline_s
        lake.explain_loss = partial(self.reason, EVERY_ORGANISATION)
        self._sound: dict[Path, _Stamp] = {}
        self._sound_before = _read_memory(memory, lake.root)
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
            self._check(organisation, part, on_chunk=give_up)
        self.raise_damage(organisation, [part.path for part in parts])

    def raise_damage(self, organisation: str, paths: Iterable[Path]) -> None:
        """Raise `LakeUnavailable` if one of *paths* is known to be damaged."""
        damaged = self._damaged.get(organisation, {})
        if any(path in damaged for path in paths):
            raise LakeUnavailable(self.reason(organisation))

    def check_all(self, snapshot: Snapshot, *, pause: float = 1.0) -> None:
        """Check every file of *snapshot*: all sizes first, then checksums.

        Rests *pause* times as long as it has worked, so that questions go on.
        """
        self._check_each(snapshot, _parts(snapshot), pause)

    def check_changed(self, snapshot: Snapshot) -> None:
        """Check the files of *snapshot* that have changed since they were last checked.

        An earlier process may have done that.
        """
        before = self._sound_before
        self._check_each(snapshot, [part for part in _parts(snapshot) if before.get(part.path) != _look_at(part)[0]])

    def note_written(self) -> None:
        """Take every file of the newest version that is not known to be damaged as checked, but for its size.

        An import or a bulk load that has just read what it wrote for its checksums need not leave that to a start.
        """
        for name in self._lake.organisations():
            damaged = self._damaged.get(name, {})
            for part in _parts(self._lake.snapshot(name)):
                stamp, reason = _look_at(part)
                if reason is None and part.path not in damaged:
                    self._sound.setdefault(part.path, stamp)
        self._is_news = True
        self._remember()

    def _check_each(self, snapshot: Snapshot, parts: Sequence[LakePart], pause: float = 0.0) -> None:
        paths = {part.path for part in _parts(snapshot)}
        for part in parts:
            _, reason = _look_at(part)
            if reason:
                self._note(snapshot.organisation, part, reason)
        for part in parts:
            began = time.monotonic()
            self._check(snapshot.organisation, part)
            time.sleep(pause * (time.monotonic() - began))
        self._forget_others(snapshot.organisation, paths)
        self._remember()

    def recheck(self, organisation: str, parts: Sequence[LakePart]) -> None:
        """Read *parts* again after an engine has failed over them.

        Raises:
            LakeUnavailable: one of them is damaged.
        """
        for part in parts:
            with self._lock:
                self._sound.pop(part.path, None)
            self._check(organisation, part)
        self.raise_damage(organisation, [part.path for part in parts])

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
        """Return the damaged files, by organisation."""
        with self._lock:
            return {
                organisation: _listed([f"{path.relative_to(self._lake.root)} {what}" for path, what in files.items()])
                for organisation, files in sorted(self._damaged.items())
            }

    def reason(self, organisation: str) -> str:
        """Return a sentence about the damage to *organisation* and what becomes of it."""
        what = self.damage().get(organisation, "")
        if lost_because := self._lake.known_loss:
            what, organisation = lost_because, EVERY_ORGANISATION
        if organisation in self.losses:
            return f"{what}. {self.losses[organisation]}"
        if organisation in self.rebuilds:
            return f"{what}: its tables are being made again, {self.rebuilds[organisation]:.0%} done. Ask again later"
        return f"{what}: its tables will be made again. Ask again later"

    def _check(self, organisation: str, part: LakePart, on_chunk: Callable[[], None] | None = None) -> None:
        stamp, reason = _look_at(part)
        if reason is None and self._sound.get(part.path, stamp[:0])[:3] == stamp[:3]:  # a link may be made to it
            return
        if reason is None:
            try:
                checksum = file_checksum(part.path, on_chunk=on_chunk)
            except OSError as error:
                reason = f"cannot be read ({error.strerror})"
            else:
                reason = None if checksum == part.content else "is damaged"
        if reason is None:
            with self._lock:
                self._sound[part.path], self._is_news = stamp, True
                self._damaged.get(organisation, {}).pop(part.path, None)
        else:
            self._note(organisation, part, reason)

    def _note(self, organisation: str, part: LakePart, reason: str) -> None:
        with self._lock:
            of_organisation = self._damaged.setdefault(organisation, {})
            if part.path not in of_organisation:
                _log.error("a file of the lake %s: %s", reason, part.path)
            of_organisation[part.path] = reason
            self._sound_before.pop(part.path, None)

    def _forget_others(self, organisation: str, paths: set[Path]) -> None:
        """Forget the files of *organisation* that are no longer in the newest version."""
        folder = folder_of(organisation)

        def without_others(files: Mapping[Path, _Stamp]) -> dict[Path, _Stamp]:
            return {path: stamp for path, stamp in files.items() if path in paths or path.parent.name != folder}

        with self._lock:
            self._sound, self._sound_before = without_others(self._sound), without_others(self._sound_before)
            kept = {path: why for path, why in self._damaged.pop(organisation, {}).items() if path in paths}
            if kept:
                self._damaged[organisation] = kept
            else:
                self.losses.pop(organisation, None)

    def _remember(self) -> None:
        """Note for the next process what is checked."""
        with self._lock:
            if self._memory is None or not self._is_news:
                return
            files = {
                str(path.relative_to(self._lake.root)): s for path, s in (self._sound_before | self._sound).items()
            }
            try:
                write_private(self._memory, msgspec.json.encode(files))
                self._is_news = False
            except OSError as error:
                _log.warning("the next start will read all files again: %s cannot be written: %s", self._memory, error)


def _parts(snapshot: Snapshot) -> list[LakePart]:
    return [part for of_table in snapshot.tables.values() for part in of_table]


def _read_memory(memory: Path | None, root: Path) -> dict[Path, _Stamp]:
    """Return the stamps that an earlier process left, of none if its file cannot be read."""
    try:
        stamps = msgspec.json.decode(memory.read_bytes(), type=dict[str, _Stamp]) if memory else {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):  # then all files are read again
        return {}
    return {root / path: stamp for path, stamp in stamps.items()}


def _look_at(part: LakePart) -> tuple[_Stamp, str | None]:
    """Return what tells whether a file has changed, and the reason if it is not whole.

    Its size is wrong, or it is missing.
    """
    try:
        status = part.path.stat()
    except OSError as error:
        return (0, 0, 0, 0), "is missing" if isinstance(
            error, FileNotFoundError
        ) else f"cannot be read ({error.strerror})"
    stamp = status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
    return stamp, None if status.st_size == part.bytes else f"has {status.st_size} bytes instead of {part.bytes}"


def _listed(damage: Sequence[str]) -> str:
    more = f" and {len(damage) - 3} more" if len(damage) > 3 else ""
    return "; ".join(damage[:3]) + more
