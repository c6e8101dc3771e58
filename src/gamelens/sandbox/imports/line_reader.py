"""Reader of JSON lines: file by file, in chunks that may end within a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from gamelens.sandbox.imports.import_counts import ImportCounts, ReadFile
from gamelens.sandbox.imports.json_lines import JsonLinesFile
from gamelens.sandbox.imports.source_files import DamagedFileError, SourceFile, local_path


class LineReader:
    """The lines of *files*, numbered from *first_seq* on.

    Attributes:
        is_exhausted: whether all files are read.
        next_seq: number of the next line.
        current: the file that the last chunk ended in, if it did not end with a file.
        finished: the files that were finished in the last chunk, dropped ones included.
        dropped: those of them that are not to be taken: they are damaged, or were taken under another name.
    """

    def __init__(self, files: Sequence[SourceFile], counts: ImportCounts, *, first_seq: int, scratch: Path) -> None:
        self.is_exhausted = False
        self.next_seq = first_seq
        self.current: ReadFile | None = None
        self.finished: list[ReadFile] = []
        self.dropped: list[ReadFile] = []
        self._counts, self._scratch = counts, scratch
        self._batches = self._read_all(files)

    def chunk(self, rows: int, *, ends_after: Callable[[int], bool]) -> Iterator[pa.RecordBatch]:
        """Yield the next *rows* lines or a few more.

        *ends_after* is called at the end of each file with the lines of the chunk so far: whether the chunk ends there.
        """
        self.finished, self.dropped = [], []
        count = 0
        for batch in self._batches:
            if batch is not None:
                count += len(batch)
                yield batch
            if count >= rows or (batch is None and ends_after(count)):
                return
        self.is_exhausted = True

    def _read_all(self, files: Sequence[SourceFile]) -> Iterator[pa.RecordBatch | None]:
        """Yield the lines of each file, then None."""
        for file in files:
            try:
                with local_path(file, self._scratch) as path:
                    if self._counts.is_taken(file, path):
                        self._counts.note_taken_before(file)
                        continue
                    yield from self._read(file, path)
            except DamagedFileError as error:
                self._counts.note_damaged(file, error)
            yield None

    def _read(self, file: SourceFile, path: Path) -> Iterator[pa.RecordBatch]:
        reader, each = JsonLinesFile(path, first_seq=self.next_seq), ReadFile(file, self.next_seq)
        self.current = each
        is_whole = False
        try:
            for batch in reader.batches():
                each.rows = reader.rows
                self._counts.note_rows(len(batch), reader.take_read_bytes())
                yield batch
            is_whole = True
        finally:
            each.rows, each.content = reader.rows, reader.content
            self.next_seq += each.rows
            self.current = None
            self.finished.append(each)
            unknown, missing = reader.fields.unknown, reader.fields.missing
            if not is_whole or not self._counts.note_taken(each, unknown=unknown, missing=missing):
                self.dropped.append(each)
