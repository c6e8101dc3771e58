"""Processing of one organisation from the inbox to the lake, in three steps.

*Stage* (`staging`) decodes new batches into Parquet. *Build* (`batch_builder`) drops repeated events and writes the
parts that the others add to each table. *Commit* makes all of it one version of the lake. A crash before the commit
changes nothing: the next run takes the same batches again. Late events need no special case, because no table is sorted
by arrival and the earliest event of a player can only move earlier (Wire 4.9, Late events).
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Final

import msgspec

from gamelens._files import disk_trouble
from gamelens.errors import Refused
from gamelens.sandbox.building.batch_builder import build_parts
from gamelens.sandbox.building.event_facts import restore_runs
from gamelens.sandbox.building.repeated_events import MOST_EVENTS
from gamelens.sandbox.processing.staging import StagedFiles, stage
from gamelens.sandbox.state.tenants import stored_rules
from gamelens.sandbox.storage.inbox import InboxBatch, open_store, pending
from gamelens.sandbox.storage.keyed_runs import PAYLOADS, PREFIX, read_ahead
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.manifest import FileMark, LakePart, TakenFile

_REPORT_EVERY_S: Final = 0.25
LOADED: Final = "load"
"""Folder of a state directory for files that `load` takes."""


class RunProgress(msgspec.Struct, frozen=True):
    """Progress of a processing run: of *events* to take in so many are *decoded* and *committed*."""

    events: int
    decoded: int
    committed: int
    seconds: float

    @property
    def events_per_s(self) -> float:
        """Events a second so far, decoding and building taken for halves of the work."""
        return (self.decoded + self.committed) / 2 / self.seconds if self.seconds else 0.0

    @property
    def rest_s(self) -> float | None:
        """Seconds that the rest takes at this speed, None before the first event."""
        rest = self.events - (self.decoded + self.committed) / 2
        return rest / self.events_per_s if self.events_per_s else None

    def to_json(self) -> dict[str, float | None]:
        """Return the progress as `GET /summary` shows it, rounded."""
        rest = None if self.rest_s is None else round(self.rest_s, 1)
        shown = {"events": self.events, "decoded": self.decoded, "committed": self.committed}
        return {**shown, "seconds": round(self.seconds, 1), "events_per_s": round(self.events_per_s), "rest_s": rest}


Report = Callable[[RunProgress], None]
"""A function that takes the progress of a run, up to four times a second."""


class RunOrder(msgspec.Struct, frozen=True, tag=True):
    """An order to process one organisation up to *last_batch*, at *processed_ms* on the sandbox's clock."""

    organisation: str
    last_batch: int
    processed_ms: int


def process(state: Path, order: RunOrder, *, report: Report | None = None) -> None:
    """Process the batches of *order* into the lake of *state*.

    *report* is told how far the run is.

    Raises:
        Refused: the engine or the disk failed. The lake is as after the last portion.
    """
    with opened_lake(state, failed="processing stopped; nothing was changed") as (lake, scratch):
        organisation, oldest_days = order.organisation, stored_rules(state).oldest_days
        after = lake.status(organisation).last_batch
        batches: list[tuple[int, int]] = lake.store.execute(
            "SELECT id, events FROM batches WHERE id > ? AND id <= ? AND organisation = ? ORDER BY id",
            (after, order.last_batch, organisation),
        ).fetchall()
        count, snapshot = sum(events for _, events in batches), lake.snapshot(organisation)
        runs = {kind: snapshot.files(PREFIX + kind) for kind in PAYLOADS}
        Thread(target=read_ahead, args=(runs, count), daemon=True).start()  # while it decodes
        reporter = _Reporter(count, report)
        is_empty = not snapshot.tables
        for up_to in _portions(batches, order.last_batch, is_empty=is_empty):
            folder = scratch / str(up_to)
            folder.mkdir()
            received = pending(lake.store, after=after, up_to=up_to, organisation=organisation)
            staged = stage(reporter.counted(received), folder, oldest_days=oldest_days) if batches else {}
            commit_staged(
                staged,
                lake,
                folder,
                processed_ms=order.processed_ms,
                last_batch=order.last_batch,
                reached=(organisation, up_to),
            )
            reporter.tell_committed()
            shutil.rmtree(folder)
            after = up_to


def load(state: Path, organisation: str, *, processed_ms: int) -> None:
    """Make the files in `LOADED` of *state* the lake of *organisation*, which has no events.

    They are Parquet files with the columns of `lake_schema.EVENT_COLUMNS`, named in the order of days.

    Raises:
        Refused: the engine or the disk failed; the lake is as before.
    """
    paths = sorted((state / LOADED).glob("*.parquet"))
    with opened_lake(state, failed="the lake could not be filled") as (lake, scratch):
        commit_staged({organisation: paths}, lake, scratch, processed_ms=processed_ms, is_written=True)


@contextlib.contextmanager
def opened_lake(state: Path, *, failed: str) -> Iterator[tuple[Lake, Path]]:
    """Open the lake of *state* for work on it, and make an empty folder for temporary files.

    Raises:
        Refused: the disk fails. The message says that *failed*.
    """
    store, scratch = open_store(state / "gamelens.db"), state / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        yield Lake(state / "lake", store), scratch
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"{failed}: {disk_trouble(error, state)}") from error
    finally:
        store.close()
        shutil.rmtree(scratch, ignore_errors=True)


class _Reporter:
    """Counts the events of a run and tells how far it is."""

    def __init__(self, events: int, report: Report | None) -> None:
        self._events, self._report = events, report
        self._began = self._reported = monotonic()
        self._decoded = self._committed = 0

    def counted(self, batches: Iterable[InboxBatch]) -> Iterator[InboxBatch]:
        """Yield *batches* as they are decoded."""
        for batch in batches:
            yield batch
            self._decoded += batch.events
            if monotonic() - self._reported >= _REPORT_EVERY_S:
                self._tell()

    def tell_committed(self) -> None:
        """Tell that all events decoded so far are in the lake."""
        self._committed = self._decoded
        self._tell()

    def _tell(self) -> None:
        self._reported = monotonic()
        if self._report is not None:
            self._report(RunProgress(self._events, self._decoded, self._committed, self._reported - self._began))


def commit_staged(
    staged: StagedFiles,
    lake: Lake,
    scratch: Path,
    *,
    processed_ms: int,
    last_batch: int | None = None,
    reached: tuple[str, int] | None = None,
    stated: StagedFiles | None = None,
    taken: Sequence[TakenFile] = (),
    marks: Sequence[FileMark] = (),
    is_written: bool = False,
) -> int:
    """Build and commit *staged*, files of new events, as the next version of *lake*, and return its number.

    *stated* has files of the installs that an import names, by organisation. `Lake.commit` describes
    the facts of the version.
    """
    for organisation in staged:
        restore_runs(organisation, lake, scratch)
    folder = str(lake.next_version())
    files: list[LakePart] = []
    retired: list[Path] = []
    duplicates, dated = 0, dict[str, dict[str, int]]()
    for organisation, paths in staged.items():
        installs = (stated or {}).get(organisation, ())
        built = build_parts(organisation, paths, lake, scratch, folder=folder, stated=installs)
        files += built.files
        retired += built.retired
        duplicates += built.repeated
        dated[organisation] = built.dated
    version = lake.commit(
        processed_ms=processed_ms,
        last_batch=last_batch,
        duplicates=duplicates,
        dated=dated,
        files=files,
        retired=retired,
        reached=reached,
        taken=taken,
        marks=marks,
        is_written=is_written,
    )
    lake.sweep()
    return version


def _portions(batches: Iterable[tuple[int, int]], last: int, *, is_empty: bool) -> Iterator[int]:
    """Yield the id of the last batch of each portion, *last* at the end.

    A portion has about `MOST_EVENTS` events. An empty lake takes everything at once, which costs less: nothing has to
    be looked up.
    """
    events, end = 0, None
    for number, count in batches:
        if end is not None:
            yield end
            end = None
        events += count
        if events >= MOST_EVENTS and not is_empty:
            end, events = number, 0
    yield last
