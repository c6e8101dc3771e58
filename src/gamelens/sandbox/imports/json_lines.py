"""Raw Data: JSON lines as Arrow batches, and the SQL that makes event rows of them.

Wire 5.6, Raw Data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from zlib_ng import zlib_ng

from gamelens.sandbox.imports.source_files import GZIP, DamagedFileError
from gamelens.sandbox.processing.staging import EVENT_SHAPE, event_rows_sql
from gamelens.sandbox.storage.dating import StatedTime, service_time_fault
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_time import FIRST_S

if TYPE_CHECKING:
    from hashlib import _Hash

LINES_SCHEMA: Final = pa.schema([("seq", pa.int64()), ("line", pa.string())])

WRAPPER: Final = {
    *("arrival_ts", "country_code", "continent", "subdivision_code", "subdivision_name", "subdivision_2_code"),
    *("subdivision_2_name", "city", "data", "game_id", "ip", "user_meta", "first_in_batch"),
}
"""Documented fields of a line."""
USER_META: Final = {
    *("install_ts", "install_hour", "cohort_week", "cohort_month", "first_build", "origin", "is_paying"),
    *("is_converting", "pay_ft", "receipt_status", "revenue", "revenue.usd", "install_publisher"),
    *("install_campaign", "install_site", "install_adgroup", "attribution_partner"),
}
"""Documented fields of `user_meta`."""
_META: Final = "user_meta."
_EXPECTED: Final = ("arrival_ts", "game_id", "data", f"{_META}install_ts")
_MOST_UNKNOWN: Final = 100
"""Fields of a file that are named at most, because their names may differ in each line."""

_NOTHING: Final = msgspec.Raw(b"{}")
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_READ_BYTES: Final = 1 << 16
_LONGEST_LINE: Final = 1 << 24
_NEWLINE: Final = ord("\n")

_SHAPE: Final = (
    '{"arrival_ts": "VARCHAR", "country_code": "VARCHAR", "game_id": "VARCHAR", '
    '"user_meta": {"install_ts": "VARCHAR", "first_build": "VARCHAR", "install_publisher": "VARCHAR"}, '
    f'"data": {EVENT_SHAPE}}}'
)


class LineFields:
    """Comparison of the fields of lines with the documented ones. Values are skipped."""

    def __init__(self) -> None:
        self._known, self._known_meta = set(WRAPPER), set(USER_META)
        self._unknown: list[str] = []
        self._missing = set(_EXPECTED)
        self._is_any = False

    @property
    def unknown(self) -> list[str]:
        """Names of the fields that are not documented, sorted."""
        return sorted(self._unknown)

    @property
    def missing(self) -> list[str]:
        """Names of the documented fields that no line has, sorted. Without lines it is empty."""
        return sorted(self._missing) if self._is_any else []

    def note(self, text: bytes) -> None:
        """Compare the lines of *text*."""
        for line in text.split(b"\n"):
            try:
                fields = _decode(line)
            except _NOT_JSON:  # decoding counts it
                continue
            try:
                meta = _decode(fields.get("user_meta", _NOTHING))
            except _NOT_JSON:
                meta = {}
            self._is_any = True
            if self._missing:
                self._missing -= {*fields, *(f"{_META}{name}" for name in meta)}
            if not (fields.keys() <= self._known and meta.keys() <= self._known_meta):
                self._note_unknown(fields.keys() - self._known, meta.keys() - self._known_meta)

    def _note_unknown(self, fields: Set[str], meta: Set[str]) -> None:
        new = {name: (self._known, name) for name in fields}
        new |= {f"{_META}{name}": (self._known_meta, name) for name in meta}
        for path in sorted(new)[: _MOST_UNKNOWN - len(self._unknown)]:
            known, name = new[path]
            known.add(name)
            self._unknown.append(path)


class JsonLinesFile:
    """One file of JSON lines that is read once: its lines and fields so far."""

    def __init__(self, path: Path, *, first_seq: int) -> None:
        self.rows = self._read_bytes = 0
        self.fields = LineFields()
        self._path, self._first_seq = path, first_seq
        self._digest: _Hash = hashlib.sha256()

    @property
    def content(self) -> str:
        """SHA-256 of what was read, in hexadecimal digits."""
        return self._digest.hexdigest()

    def take_read_bytes(self) -> int:
        """Return the number of bytes read since the last call."""
        count, self._read_bytes = self._read_bytes, 0
        return count

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the lines with their numbers, about a megabyte at a time.

        Raises:
            DamagedFileError: the file cannot be read to its end.
        """
        rest = b""
        for text in self._texts():
            text = rest + text
            end = text.rfind(b"\n") + 1
            rest = text[end:]
            if len(rest) > _LONGEST_LINE:
                raise DamagedFileError(f"line {self.rows + 1} has more than {_LONGEST_LINE >> 20} MB")
            if end:
                yield self._batch(text[:end])
        if rest:
            yield self._batch(rest + b"\n")

    def _batch(self, text: bytes) -> pa.RecordBatch:
        """Return the lines of *text* as a batch, which shares its memory."""
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
        offsets = np.empty(len(ends) + 1, dtype=np.int32)
        offsets[0], offsets[1:] = 0, ends + 1
        self.fields.note(text)
        first = self._first_seq + self.rows
        self.rows += len(ends)
        lines = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
        return pa.record_batch([pa.array(np.arange(first, first + len(ends))), lines], schema=LINES_SCHEMA)

    def _texts(self) -> Iterator[bytes]:
        """Yield the unpacked content in pieces."""
        try:
            with self._path.open("rb") as file:
                head = file.read(_READ_BYTES)
                chunks = self._chunks(head, file)
                yield from (_unpacked(chunks) if head.startswith(GZIP) else chunks)
        except OSError as error:
            raise DamagedFileError(f"it cannot be read: {error.strerror}") from error
        except zlib_ng.error as error:  # type: ignore[misc]  # typed as an instance, and is a class
            raise DamagedFileError(f"its gzip is damaged after line {self.rows}: {error}") from error

    def _chunks(self, head: bytes, file: Any) -> Iterator[bytes]:
        chunk = head
        while chunk:
            self._digest.update(chunk)
            self._read_bytes += len(chunk)
            yield chunk
            chunk = file.read(_READ_BYTES)


def _unpacked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of gzip members that follow each other.

    A chunk of them unpacks to 66 MB at most, because deflate packs no byte into less than a thousandth.
    """
    unpacker = zlib_ng.decompressobj(wbits=31)
    for chunk in chunks:
        yield unpacker.decompress(chunk)
        while rest := unpacker.unused_data:
            unpacker = zlib_ng.decompressobj(wbits=31)
            yield unpacker.decompress(rest)
    if not unpacker.eof:
        raise DamagedFileError("its gzip ends too early")


def line_rows_sql(lines: str, game_sql: str, *, oldest_days: int) -> str:
    """Return the SQL of one row for each line of *lines*, a table of `LINES_SCHEMA`.

    The rows have the columns of the events table, `installed` (the install that the service states, epoch seconds),
    `first_build` (the build of it) and reasons, or null: `dated_by`, why an event is dated by its arrival,
    `install_fault`, why a stated install is not used, and `fault`, why a line is not an event. *game_sql* is the SQL
    of the game's id in the lake, of `exported_game`; *oldest_days* that of `staging.stage`.
    """
    categories = ", ".join(f"'{name}'" for name in CATEGORIES)
    currencies = ", ".join(f"'{code}'" for code in USD_PER_UNIT)
    has_text = "strlen(line) > 2 OR trim(line, E' \\t\\r\\n') <> ''"
    arrival_fault = service_time_fault("arrival_ts", "arrived_s", otherwise="no usable arrival_ts")
    install = StatedTime(
        field="install_ts",
        sent="install_sent",
        number="install_s",
        arrival="arrived_s",
        earliest=str(FIRST_S),
        too_early="install_ts before 2000",
    )
    events = f"""(
        SELECT seq, {game_sql} AS game_id, CASE WHEN arrival_fault IS NULL THEN arrived_s * 1000 END AS arrival_ms,
            upper(wrapper.country_code) AS country, wrapper.data AS event,
            wrapper.user_meta.install_publisher AS publisher,
            CASE WHEN {install.is_used} AND wrapper.data.user_id IS NOT NULL THEN install_s END AS installed,
            CASE WHEN install_sent IS NOT NULL THEN {install.reason} END AS install_fault,
            nullif(wrapper.user_meta.first_build, '') AS first_build,
            CASE
                WHEN wrapper IS NULL THEN 'no JSON object'
                WHEN arrived_s IS NULL THEN arrival_fault
                WHEN exported_game IS NULL THEN 'no game_id'
                WHEN arrival_fault IS NOT NULL THEN arrival_fault
                WHEN coalesce(wrapper.data.category NOT IN ({categories}), true) THEN 'no known category'
                WHEN wrapper.data.user_id IS NULL AND wrapper.data.category <> 'sdk_error' THEN 'no user_id'
                WHEN wrapper.data.category = 'business' AND (TRY_CAST(wrapper.data.amount AS BIGINT) IS NULL
                    OR coalesce(wrapper.data.currency NOT IN ({currencies}), true)) THEN 'no usable amount'
            END AS fault
        FROM (
            SELECT *, {arrival_fault} AS arrival_fault, wrapper.game_id AS exported_game FROM (
                SELECT seq, wrapper, TRY_CAST(wrapper.arrival_ts AS BIGINT) AS arrived_s,
                    wrapper.user_meta.install_ts AS install_sent, TRY_CAST(install_sent AS BIGINT) AS install_s
                FROM (SELECT seq, TRY(from_json(line, '{_SHAPE}')) AS wrapper FROM {lines} WHERE {has_text})
            )
        )
    )"""  # noqa: S608
    others = ("installed", "first_build", "dated_by", "install_fault", "fault", "publisher")
    rows = event_rows_sql(events, others=others, oldest_days=oldest_days)
    return f"""
        SELECT * EXCLUDE (publisher)
            REPLACE (coalesce(install_publisher, publisher) AS install_publisher) FROM ({rows})"""  # noqa: S608
