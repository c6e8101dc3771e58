"""What both kinds of import share: what is counted, the ids of games, and the statements over decoded rows."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec

from gamelens.sandbox.engines.duckdb_engine import literal
from gamelens.sandbox.imports.source_files import DamagedFileError, SourceFile
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.sandbox.storage.manifest import FileMark, TakenFile

_REPORT_EVERY_S: Final = 0.25
EXAMPLES: Final = 3
"""Rows of a file that are named for each reason for which it has rows that are not events."""

_NEEDED: Final = ("arrival_ts", "data", "game_id")

UNDISCLOSED: Final = "lower(ilrd_network_name) = 'undisclosed'"
"""SQL condition that the service had no permission to show the network of an impression."""
STAGED_COLUMNS: Final = ", ".join(
    f"CASE WHEN {UNDISCLOSED} THEN NULL ELSE {name} END AS {name}" if name == "ilrd_network_name" else name
    for name in EVENT_COLUMNS
)
"""SQL of the columns of an event, made of a decoded row."""

STATED_SQL: Final = """
    SELECT game_id, user_id, make_timestamp(installed * 1000000) AS ts, min(first_build) AS first_build FROM decoded
    WHERE fault IS NULL AND installed IS NOT NULL GROUP BY game_id, user_id, installed"""
"""SQL of the installs that the rows of `decoded` state, several of a player where they differ."""


class EventCounts(msgspec.Struct, kw_only=True):
    """Counts of events that are taken.

    Attributes:
        events: their number.
        undisclosed: impressions without a network, because the service had no permission to show it.
        dated_by_arrival: events without a usable time of their device, by reason (Wire 4.1, Event time).
        unusable_installs: events whose stated install is not used, by reason.
        valued_by_service: purchases whose `amount_usd` counts, by their currency, which has no rate here.
        remarks: events that are unlikely, by what is unlikely about them (`remarks`).
    """

    events: int = 0
    undisclosed: int = 0
    dated_by_arrival: Counter[str] = msgspec.field(default_factory=Counter)
    unusable_installs: Counter[str] = msgspec.field(default_factory=Counter)
    valued_by_service: Counter[str] = msgspec.field(default_factory=Counter)
    remarks: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, run: Callable[[str], Sequence[tuple[Any, ...]]]) -> None:
        """Add the rows of `decoded` that are events. *run* returns the rows of a statement."""
        rows = run(f"""
            SELECT count(*), coalesce(sum(CASE WHEN {UNDISCLOSED} THEN 1 END), 0), dated_by, install_fault, valued_in,
                remark
            FROM decoded WHERE fault IS NULL GROUP BY dated_by, install_fault, valued_in, remark""")  # noqa: S608
        for events, undisclosed, dated_by, install_fault, valued_in, remark in rows:
            self.events += events
            self.undisclosed += undisclosed
            for counted, reason in (
                (self.dated_by_arrival, dated_by),
                (self.unusable_installs, install_fault),
                (self.valued_by_service, valued_in),
                (self.remarks, remark),
            ):
                if reason is not None:
                    counted[reason] += events


class ImportProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of an import: bytes and rows that are read, files taken before included."""

    bytes: int
    read_bytes: int
    rows: int
    seconds: float

    @property
    def rows_per_s(self) -> float:
        """Rows a second so far."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def rest_s(self) -> float | None:
        """Seconds that the rest takes at this speed, None before the first byte."""
        return self.seconds * (self.bytes - self.read_bytes) / self.read_bytes if self.read_bytes else None


ReportImport = Callable[[ImportProgress], None]
"""A function that takes the progress of an import, a few times a second."""


@dataclass(slots=True, eq=False)
class ReadFile:
    """A file that was read to its end, or until it proved damaged.

    Attributes:
        content: SHA-256 of it.
        is_taken: whether its rows are taken: it is whole, and no file with its content was taken before.
        refused: number of rows that are not events, by reason.
        examples: lines, or rows, of the first of them, from 1, by reason.
        within_lines: places of the rows that do not begin a line (`JsonLinesFile`).
        unknown: fields that are not documented.
        missing: documented fields that it lacks.
        arrived: first and last day on which its events arrived, by game; only of Event Data.
    """

    file: SourceFile
    first_seq: int
    rows: int = 0
    content: str = ""
    is_taken: bool = False
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[int]] = field(default_factory=dict)
    arrived: dict[str, tuple[date, date]] = field(default_factory=dict)
    within_lines: list[int] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """What a row of it is called."""
        return "line" if self.file.kind == "raw-json" else "row"

    def refuse(self, seq: int, reason: str, *, count: int = 1) -> None:
        """Count the row with number *seq* as no event, or as the first of *count* rows."""
        self.refused[reason] += count
        examples = self.examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            place = seq - self.first_seq
            examples.append(place + 1 - bisect_right(self.within_lines, place))

    def places(self, reason: str) -> str:
        """Return which of its rows were refused for *reason*, such as `line 3, 17, ...`."""
        more = ", ..." if self.refused[reason] > len(self.examples[reason]) else ""
        return f"{self.word} {', '.join(map(str, self.examples[reason]))}{more}"

    def as_taken(self, organisation: str) -> TakenFile:
        """Return the entry of the manifest."""
        return TakenFile(
            organisation=organisation,
            name=self.file.name,
            bytes=self.file.bytes,
            content=self.content,
            kind=self.file.kind or "",
            first_seq=self.first_seq,
            rows=self.rows,
            refused=msgspec.json.encode(dict(sorted(self.refused.items()))).decode(),
            arrived=msgspec.json.encode(dict(sorted(self.arrived.items()))).decode(),
        )


class ImportCounts:
    """Counts of one import (`import_run.ImportResult`), the events *taken*, and the files that are *committed*."""

    def __init__(
        self,
        files: Iterable[SourceFile],
        taken: Iterable[TakenFile],
        report: ReportImport | None,
        *,
        unopened: int = 0,
    ) -> None:
        taken = list(taken)
        self.taken_before, self.taken = unopened, EventCounts()
        self.damaged: dict[str, str] = {}
        self.unknown: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.committed: list[ReadFile] = []
        self._contents = {(entry.bytes, entry.content) for entry in taken}
        self._in_lake = set(self._contents)
        self._seen: list[tuple[SourceFile, str]] = []
        self._names = {(entry.name, entry.bytes) for entry in taken}
        self._bytes = sum(file.bytes for file in files if file.kind)
        self._read_bytes = self._rows = 0
        self._began = self._reported = monotonic()
        self._send = report or (lambda _: None)

    @property
    def seconds(self) -> float:
        """Time since the import began."""
        return monotonic() - self._began

    def has_name(self, file: SourceFile) -> bool:
        """Return whether a file of this name and size was taken."""
        return (file.name, file.bytes) in self._names

    def has_content(self, file: SourceFile, content: str) -> bool:
        """Return whether a file with this content was taken, whatever its name."""
        return (file.bytes, content) in self._contents

    def note_taken(self, entry: ReadFile) -> bool:
        """Note that a file was read to its end, and return whether its content is new.

        Only then it is to be taken.
        """
        key = (entry.file.bytes, entry.content)
        if key in self._contents:
            self.taken_before += 1
            self._seen.append((entry.file, entry.content))
            return False
        self._contents.add(key)
        self._names.add((entry.file.name, entry.file.bytes))
        return True

    def note_left_out(self, read: ReadFile, reason: str) -> None:
        """Note that a file that was read to its end is not taken, for *reason*."""
        self._contents.discard((read.file.bytes, read.content))
        self.damaged[read.file.url] = reason

    def note_without_events(self, read: ReadFile) -> None:
        """Note that a file is not taken because no row of it is an event."""
        reasons = "; ".join(f"{read.places(reason)}: {reason}" for reason in read.refused)
        lacking = [name for name in read.missing if name in _NEEDED]
        fields = f". Is it an export? It has no {', '.join(lacking)}" if lacking else ""
        self.note_left_out(read, f"no {read.word} of it is an event: {reasons}{fields}")

    def note_committed(self, files: Iterable[ReadFile], counts: EventCounts) -> None:
        """Note that *files* are in the lake, with the events in *counts*."""
        for entry in files:
            self.committed.append(entry)
            self._in_lake.add((entry.file.bytes, entry.content))
            self.unknown.update(entry.unknown)
            self.missing.update(entry.missing)
        self.taken.events += counts.events
        self.taken.undisclosed += counts.undisclosed
        self.taken.dated_by_arrival += counts.dated_by_arrival
        self.taken.unusable_installs += counts.unusable_installs
        self.taken.valued_by_service += counts.valued_by_service
        self.taken.remarks += counts.remarks

    def note_taken_before(self, file: SourceFile, content: str) -> None:
        """Note that *file*, with *content*, was taken already."""
        self.taken_before += 1
        self._seen.append((file, content))
        self.note_rows(0, file.bytes)

    def new_marks(self, organisation: str) -> list[FileMark]:
        """Return the files that were opened, and need not have been: their contents were in the lake."""
        seen = [file for file, content in self._seen if (file.bytes, content) in self._in_lake]
        return file_marks_of(seen, organisation)

    def note_damaged(self, file: SourceFile, reason: DamagedFileError) -> None:
        """Note that *file* cannot be taken."""
        self.damaged[file.url] = str(reason)

    def note_rows(self, rows: int, read_bytes: int) -> None:
        """Note that *rows* more are read, of *read_bytes* bytes."""
        self._rows += rows
        self._read_bytes += read_bytes
        if monotonic() - self._reported >= _REPORT_EVERY_S:
            self.report()

    def report(self) -> None:
        """Tell how far the import is."""
        self._reported = monotonic()
        self._send(
            ImportProgress(
                bytes=self._bytes, read_bytes=self._read_bytes, rows=self._rows, seconds=max(self.seconds, 1e-3)
            )
        )


def file_marks_of(files: Iterable[SourceFile], organisation: str) -> list[FileMark]:
    """Return the entries by which an import knows the *files* that have a mark without opening them."""
    entries = (file.file_mark(organisation) for file in files)
    return [entry for entry in entries if entry is not None]


def file_content(path: Path) -> str:
    """Return the SHA-256 of the file at *path*, in hexadecimal digits.

    Raises:
        DamagedFileError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DamagedFileError(f"it cannot be read: {error.strerror}") from error


class GameIds:
    """Ids of games in the lake, by their ids in the export, which are the same unless mapped."""

    def __init__(self, of_lake: list[str], mapped: Mapping[str, str]) -> None:
        self._own, self._mapped = of_lake, dict(mapped)

    @property
    def sql(self) -> str:
        """SQL of the id in the lake, of `exported_game`."""
        whens = " ".join(f"WHEN {literal(old)} THEN {literal(new)}" for old, new in self._mapped.items())
        return f"CASE exported_game {whens} ELSE exported_game END" if whens else "exported_game"

    def unknown(self, found: Iterable[str]) -> list[str]:
        """Return the *found* ids in the lake that the organisation does not have, sorted."""
        return sorted(set(found).difference(self._own))

    def how_to_map(self, unknown: Sequence[str]) -> str:
        """Return why a file with events of *unknown* games is not imported, and how it would be."""
        one = "game" if len(unknown) == 1 else "games"
        more = f" and {len(unknown) - EXAMPLES:,} more" if len(unknown) > EXAMPLES else ""
        known = self._own[0] if self._own else "ID"
        exported = [[old for old, new in self._mapped.items() if new == game] or [game] for game in unknown[:EXAMPLES]]
        options = " ".join(f"--game {old}={known}" for olds in exported for old in olds)
        return (
            f"it has events of {one} {', '.join(unknown[:EXAMPLES])}{more}, which the organisation does not have: map "
            f"each to one that it has ({', '.join(self._own)}), as with {options}"
        )
