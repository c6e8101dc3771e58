"""Rebuild of tables from the events of the lake, or from the inbox.

If all parts of an organisation's events are whole, the other tables are made again of them; if not, all of its tables
are made again from the inbox. Either is one version, and until it is committed readers see the last one.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.building.batch_builder import build_parts
from gamelens.sandbox.processing.pipeline import opened_lake
from gamelens.sandbox.processing.staging import EVENTS_PER_BATCH, stage
from gamelens.sandbox.state.state_directory import link_or_copy
from gamelens.sandbox.state.tenants import stored_rules
from gamelens.sandbox.storage.inbox import InboxBatch, newest, pending
from gamelens.sandbox.storage.inbox import accept_loss as accept_losses
from gamelens.sandbox.storage.lake import Lake, event_ranges
from gamelens.sandbox.storage.manifest import LakePart, ProcessingRun, file_checksum

ReportShare = Callable[[float], None]
"""A function that is told how far a rebuild is, from 0 to 1."""

_ACCEPT: Final = (
    "`gamelens sandbox rebuild --accept-loss` on the stopped sandbox continues with the events in the inbox, and "
    "moves the files to quarantine/"
)
_STAGED: Final = 0.7  # share of the time that decoding takes


def rebuild(
    state: Path,
    organisations: Collection[str] = (),
    *,
    from_inbox: bool = False,
    accept_loss: bool = False,
    report: ReportShare | None = None,
) -> list[str]:
    """Make the tables of *organisations* again, and return their names.

    Without names these are all. A lake whose manifest is lost is made again as a whole, whatever the names.

    With *from_inbox* events are decoded again if the inbox has all of them, under the rules of today, for example
    about event time. With *accept_loss* a person goes on without events that the inbox lacks.

    Raises:
        Refused: an organisation is not known, events that were never received are lost, or the disk failed. The lake
            is as before.
    """
    with opened_lake(state, failed="the tables were not rebuilt, nothing was changed") as (lake, scratch):
        work = _Rebuild(lake, scratch, report or (lambda _: None), from_inbox=from_inbox, accept_loss=accept_loss)
        if lake.lost_because:
            names = work.restore_lake()
        else:
            known = _received(lake.store) | set(lake.organisations())
            if unknown := sorted(set(organisations) - known):
                raise Refused(f"{unknown[0]!r} has no events here; with events: {', '.join(sorted(known)) or 'none'}")
            names = sorted(organisations or known)
            for name in names:
                work.rebuild_organisation(name)
            lake.sweep()
        if accept_loss:
            accept_losses(lake.store)
        return names


class _Rebuild:
    """Rebuilds in one lake, with temporary files in *scratch*."""

    def __init__(self, lake: Lake, scratch: Path, report: ReportShare, *, from_inbox: bool, accept_loss: bool) -> None:
        self._lake, self._scratch, self._report = lake, scratch, report
        self._from_inbox, self._accept_loss = from_inbox, accept_loss
        self.duplicates, self.dated = 0, dict[str, dict[str, int]]()

    def rebuild_organisation(self, name: str) -> None:
        """Make all tables of one organisation again, as one version."""
        snapshot, last_batch = self._lake.snapshot(name), self._lake.status(name).last_batch
        events, stated = snapshot.parts("events"), snapshot.parts("stated_installs")
        lost = [part for part in (*events, *stated) if not _is_whole(part)]
        days = ", ".join(sorted(f"{part.first_day} to {part.last_day}" for part in lost if part.first_day)) or "all"
        folder = self._new_folder()
        is_written = self._lake.last_run().is_written
        is_decoded = lost or (self._from_inbox and not is_written and not self._missing_batches(last_batch))
        if not is_decoded:
            staged = [folder / f"events-{number}.parquet" for number in range(len(events))]
            for part, link in zip(events, staged, strict=True):  # links, because they may be moved
                link_or_copy(part.path, link)
        elif is_written:
            raise Refused(
                f"events of {name} on these days were written directly and are lost: {days}. Write "
                "them again into a new state directory, with `gamelens lake import` or "
                "`gamelens simulate --into`"
            )
        else:
            staged = self._stage([name], last_batch, folder).get(name, [])
            if missing := self._missing_batches(last_batch):
                raise Refused(
                    f"events of {name} are damaged ({days}), and the inbox lacks {missing} batches. {_ACCEPT}"
                )
        self._report(_STAGED)
        files = self._build(name, staged, folder, stated=[] if is_decoded else [part.path for part in stated])
        dated = self.dated if is_decoded else {}  # else the events are the same
        self._lake.compact(files, [part.path for part in snapshot.all_parts()], dated=dated)
        self._report(1.0)

    def restore_lake(self) -> list[str]:
        """Make a lake whose manifest is lost again from the inbox.

        All organisations are one version.
        """
        last_run, record = self._lake.last_run(), self._lake.record
        last = next(newest(self._lake.store, most=1), None)
        if last is None:
            was_reset = record and not record.days and not any(path.is_file() for path in self._lake.root.rglob("*"))
            if was_reset or self._accept_loss:
                self._lake.restore(ProcessingRun(), [], version=self._lake.unused_version())
                return []
            raise Refused(
                "its files stay in lake/, but the inbox has none of their events: restore the gamelens.db that lists "
                f"them, or write or import the events again into a new state directory. {_ACCEPT}"
            )
        if record and record.version >= last_run.version:
            is_written = record.is_written
        elif last_run.version:
            is_written = last_run.is_written
        else:  # received events have only numbers of events in batches up to the last
            below = (last.id + 1) * EVENTS_PER_BATCH
            ranges = event_ranges(self._lake.root, "seq").values()
            is_written = not all(span and EVENTS_PER_BATCH <= span[0] <= span[1] < below for span in ranges)
        if is_written and not self._accept_loss:
            raise Refused(
                "its files stay in lake/, but the inbox lacks some of their events, which were imported or written "
                "directly: restore the gamelens.db that lists them, or import again into a new state directory. "
                f"{_ACCEPT}"
            )
        names = sorted(_received(self._lake.store))
        folder = self._new_folder()
        staged = self._stage(names, last.id, folder)
        if missing := self._missing_batches(last.id):
            raise Refused(f"the inbox lacks {missing} batches of their events. {_ACCEPT}")
        self._report(_STAGED)
        version = self._lake.unused_version()
        files = [file for name in names for file in self._build(name, staged.get(name, []), folder, version=version)]
        processed_ms = last.arrival_ms if last_run.processed_ms is None else last_run.processed_ms
        run = msgspec.structs.replace(
            last_run, processed_ms=processed_ms, last_batch=last.id, duplicates=self.duplicates, is_written=False
        )
        self._lake.restore(run, files, version=version, dated=self.dated)
        self._report(1.0)
        return names

    def _stage(self, names: Sequence[str], up_to: int, folder: Path) -> dict[str, list[Path]]:
        """Decode all batches of *names* up to the one with id *up_to*."""
        store = self._lake.store
        organisation = names[0] if len(names) == 1 else None
        ((events,),) = store.execute(
            "SELECT sum(events) FROM batches WHERE organisation = coalesce(?, organisation)", (organisation,)
        )

        def counted() -> Iterator[InboxBatch]:
            decoded = 0
            for batch in pending(store, after=0, up_to=up_to, organisation=organisation):
                yield batch
                decoded += batch.events
                self._report(_STAGED * min(1.0, decoded / (events or 1)))

        return stage(counted(), folder, oldest_days=stored_rules(self._lake.root.parent).oldest_days)

    def _missing_batches(self, up_to: int) -> int:
        """Return the number of batches up to *up_to* that the inbox lacks, 0 where a person has accepted that."""
        query = "SELECT count(*) FROM damaged WHERE batch <= ?"
        ((missing,),) = self._lake.store.execute(query, (up_to,))
        return 0 if self._accept_loss else int(missing)

    def _build(
        self,
        name: str,
        staged: Sequence[Path],
        folder: Path,
        *,
        stated: Sequence[Path] = (),
        version: int | None = None,
    ) -> list[LakePart]:
        if not staged:
            return []
        version_folder = str(self._lake.next_version() if version is None else version)
        built = build_parts(name, staged, self._lake, folder, folder=version_folder, is_anew=True, stated=stated)
        self.duplicates += built.repeated
        self.dated[name] = built.dated
        return built.files

    def _new_folder(self) -> Path:
        shutil.rmtree(self._scratch)
        self._scratch.mkdir()
        return self._scratch


def _received(store: sqlite3.Connection) -> set[str]:
    return {name for (name,) in store.execute("SELECT DISTINCT organisation FROM batches")}


def _is_whole(part: LakePart) -> bool:
    try:
        return file_checksum(part.path) == part.content
    except OSError:
        return False
