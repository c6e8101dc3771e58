"""Raw Data: JSON lines as Arrow batches, and the SQL that makes event rows of them.

Wire 5.6, Raw Data.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from zlib_ng import zlib_ng

from gamelens.sandbox.imports.remarks import LONG_SESSION, NO_RATE, NO_REVENUE
from gamelens.sandbox.imports.source_files import BLANK, BOM, EMPTY, GZIP, DamagedFileError
from gamelens.sandbox.processing.staging import EVENT_SHAPE, event_rows_sql
from gamelens.sandbox.storage.dating import StatedTime, service_time_fault
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_time import FIRST_S
from gamelens.wire.limits import MAX_SAFE_INTEGER, USUAL_SESSION_S

if TYPE_CHECKING:
    from hashlib import _Hash

LINES_SCHEMA: Final = pa.schema([("seq", pa.int64()), ("line", pa.string()), ("line_fault", pa.string())])
"""Lines with their numbers, and the reason why a line cannot be an event, null where decoding tells."""

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

MOST_LEVELS: Final = 512
"""Levels to which a line may be nested. Events have half a dozen, and parsers refuse more than about a thousand."""
_TOO_DEEP: Final = f"JSON nested deeper than {MOST_LEVELS} levels"
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_LEADING_MARK: Final = re.compile(b"^" + BOM, re.MULTILINE)
_read_one: Final = json.JSONDecoder().raw_decode
_BEFORE_OBJECT: Final = re.compile(r"[ \t\r\ufeff]*(?={)")
_HALF_PAIR: Final = re.compile(
    rb"\\u[dD][89aAbB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89aAbB]..)\\u[dD][c-fC-F]", re.DOTALL
)

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

    def note(self, lines: Iterable[bytes]) -> list[int]:
        """Compare the fields of *lines*, and return the places of the lines that are no JSON objects."""
        others = []
        for place, line in enumerate(lines):
            try:
                fields = _decode(line)
            except _NOT_JSON:
                others.append(place)
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
        return others

    def _note_unknown(self, fields: Set[str], meta: Set[str]) -> None:
        new = {name: (self._known, name) for name in fields}
        new |= {f"{_META}{name}": (self._known_meta, name) for name in meta}
        for path in sorted(new)[: _MOST_UNKNOWN - len(self._unknown)]:
            known, name = new[path]
            known.add(name)
            self._unknown.append(path)


class JsonLinesFile:
    """One file of JSON lines that is read once: its lines and fields so far.

    Objects that follow each other on a line, as where files were joined without a line end between them, are a row
    each. `within_lines` has the places of the rows that do not begin a line.
    """

    def __init__(self, path: Path, *, first_seq: int) -> None:
        self.rows = self._read_bytes = 0
        self.within_lines: list[int] = []
        self.fields = LineFields()
        self._has_text = False
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
            DamagedFileError: the file cannot be read to its end, or has nothing but blank lines.
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
        if not self._has_text:
            raise DamagedFileError(BLANK if self.rows else EMPTY)

    def _batch(self, text: bytes) -> pa.RecordBatch:
        """Return the lines of *text* as a batch, which shares its memory."""
        if BOM in text:
            text = _LEADING_MARK.sub(b"", text)
        self._has_text = self._has_text or not text.isspace()
        lines = text.split(b"\n")[:-1]
        others = self.fields.note(lines)
        apart = {place: objects for place in others if len(objects := _objects(lines[place])) > 1}
        if apart:
            rows: list[bytes] = []
            for place, line in enumerate(lines):
                objects = apart.get(place, [line])
                self.within_lines += range(self.rows + len(rows) + 1, self.rows + len(rows) + len(objects))
                rows += objects
            lines, text = rows, b"\n".join((*rows, b""))
            others = self.fields.note(lines)
        faults = _line_faults(lines, others, is_utf8=_is_utf8(text))
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
        offsets = np.empty(len(ends) + 1, dtype=np.int32)
        offsets[0], offsets[1:] = 0, ends + 1
        first = self._first_seq + self.rows
        self.rows += len(ends)
        column = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
        listed = [faults.get(place) for place in range(len(ends))] if faults else None
        reasons = pa.array(listed, pa.string()) if listed else pa.nulls(len(ends), pa.string())
        return pa.record_batch([pa.array(np.arange(first, first + len(ends))), column, reasons], schema=LINES_SCHEMA)

    def _texts(self) -> Iterator[bytes]:
        """Yield the unpacked content in pieces."""
        try:
            with self._path.open("rb") as file:
                head = file.read(_READ_BYTES)
                chunks = self._chunks(head, file)
                yield from (self._unpacked(chunks) if head.startswith(GZIP) else chunks)
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

    def _unpacked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content of gzip members that follow each other, with zero bytes behind each as padding.

        A chunk of them unpacks to 66 MB at most, because deflate packs no byte into less than a thousandth.
        """
        unpacker = None
        for packed in chunks:
            chunk = packed
            while chunk := chunk if unpacker else chunk.lstrip(b"\0"):
                if unpacker is None:
                    if not GZIP.startswith(chunk[:2]):
                        raise DamagedFileError(f"what follows its gzip after line {self.rows} is no gzip: get it again")
                    unpacker = zlib_ng.decompressobj(wbits=31)
                yield unpacker.decompress(chunk)
                if not unpacker.eof:
                    break
                chunk, unpacker = unpacker.unused_data, None
        if unpacker:
            raise DamagedFileError("its gzip ends too early: get it again")


def _objects(line: bytes) -> list[bytes]:
    """Return the JSON objects that follow each other on *line*, the last of them as it is, or else the line alone."""
    if b"{" not in line.partition(b"}")[2] or not _is_utf8(line):
        return [line]
    text, found = line.decode(), []
    starts = _BEFORE_OBJECT.match(text)
    begin = starts.end() if starts else 0
    while starts:
        try:
            _, end = _read_one(text, begin)
        except (ValueError, RecursionError):  # decoding says what is wrong with the rest
            break
        if starts := _BEFORE_OBJECT.match(text, end):
            found.append(text[begin:end].encode())
            begin = starts.end()
    return [*found, text[begin:].encode()] if found else [line]


def _line_faults(lines: Sequence[bytes], others: Iterable[int], *, is_utf8: bool) -> dict[int, str]:
    """Return why some of *lines* cannot be events, by their places. *others* are those that are no JSON objects."""
    faults = {}
    for place in others:
        line = lines[place].strip()
        if line.endswith(b"},"):
            faults[place] = "a comma behind the object"
        elif line and not line.strip(b"\0"):
            faults[place] = "zero bytes in place of text"
        elif _HALF_PAIR.search(line.replace(rb"\\", b"")):
            faults[place] = "half of a surrogate pair"
    if is_utf8 and max(map(len, lines)) <= 2 * MOST_LEVELS:
        return faults
    for place, line in enumerate(lines):
        if len(line) > 2 * MOST_LEVELS and _depth(line) > MOST_LEVELS:
            faults[place] = _TOO_DEEP
        elif not (is_utf8 or _is_utf8(line)):
            faults[place] = "text that is not UTF-8"
    return faults


def _depth(line: bytes) -> int:
    """Return how deep arrays and objects of *line* are nested, `MOST_LEVELS` or less where it has few of them."""
    if (number := line.count(b"{") + line.count(b"[")) <= MOST_LEVELS:
        return number
    return max(accumulate(_STEP.get(mark, 0) for mark in _STRING.sub(b"", line)))


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def line_rows_sql(lines: str, game_sql: str, *, oldest_days: int) -> str:
    """Return the SQL of one row for each line of *lines*, a table of `LINES_SCHEMA`.

    The rows have the columns of the events table, `installed` (the install that the service states, epoch seconds),
    `first_build` (the build of it) and reasons, or null: `dated_by`, why an event is dated by its arrival,
    `install_fault`, why a stated install is not used, and `fault`, why a line is not an event. `valued_in` is the
    currency of a purchase that has no rate, so that its `amount_usd` counts; `remark` says what is unlikely about an
    event. *game_sql* turns the column `exported_game` into the game's id in the lake; *oldest_days* is as in
    `staging.stage`.
    """
    categories = ", ".join(f"'{name}'" for name in CATEGORIES)
    currencies = ", ".join(f"'{code}'" for code in USD_PER_UNIT)
    has_no_rate = f"wrapper.data.category = 'business' AND coalesce(wrapper.data.currency NOT IN ({currencies}), true)"
    has_text = "starts_with(line, '{') OR trim(line, E' \\t\\r\\n') <> ''"
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
        SELECT seq, {game_sql} AS game_id, {has_no_rate} AS has_no_rate,
            CASE WHEN has_no_rate THEN TRY_CAST(wrapper.data.amount_usd AS BIGINT) END AS usd_cents,
            CASE WHEN usd_cents IS NOT NULL THEN
                CASE WHEN regexp_full_match(wrapper.data.currency, '[A-Z]{{3}}') THEN wrapper.data.currency
                ELSE 'no currency code' END END AS valued_in,
            CASE WHEN arrival_fault IS NULL THEN arrived_s * 1000 END AS arrival_ms,
            upper(wrapper.country_code) AS country, wrapper.data AS event,
            wrapper.user_meta.install_publisher AS publisher,
            CASE WHEN {install.is_used} AND wrapper.data.user_id IS NOT NULL THEN install_s END AS installed,
            CASE WHEN install_sent IS NOT NULL THEN {install.reason} END AS install_fault,
            nullif(wrapper.user_meta.first_build, '') AS first_build,
            CASE
                WHEN line_fault IS NOT NULL THEN line_fault
                WHEN wrapper IS NULL THEN 'no JSON object'
                WHEN arrived_s IS NULL THEN arrival_fault
                WHEN exported_game IS NULL THEN 'no game_id'
                WHEN arrival_fault IS NOT NULL THEN arrival_fault
                WHEN coalesce(wrapper.data.category NOT IN ({categories}), true) THEN 'no known category'
                WHEN wrapper.data.user_id IS NULL AND wrapper.data.category <> 'sdk_error' THEN 'no user_id'
                WHEN wrapper.data.category = 'session_end' THEN {_number_fault("length")}
                WHEN has_no_rate AND wrapper.data.amount_usd IS NULL THEN 'a currency without a rate and no amount_usd'
                WHEN has_no_rate THEN {_number_fault("amount_usd")}
                WHEN wrapper.data.category = 'business' THEN {_number_fault("amount")}
            END AS fault
        FROM (
            SELECT *, {arrival_fault} AS arrival_fault, wrapper.game_id AS exported_game FROM (
                SELECT seq, line_fault, wrapper, TRY_CAST(wrapper.arrival_ts AS BIGINT) AS arrived_s,
                    wrapper.user_meta.install_ts AS install_sent, TRY_CAST(install_sent AS BIGINT) AS install_s
                FROM (
                    SELECT seq, line_fault,
                        CASE WHEN line_fault IS NULL THEN TRY(from_json(line, '{_SHAPE}')) END AS wrapper
                    FROM {lines} WHERE {has_text}
                )
            )
        )
    )"""  # noqa: S608
    remark = f"""CASE
        WHEN event.category = 'session_end' AND TRY_CAST(event.length AS BIGINT) > {USUAL_SESSION_S}
            THEN '{LONG_SESSION}'
        WHEN event.category = 'impression' AND NOT has_revenue THEN '{NO_REVENUE}'
        WHEN event.category = 'impression' AND payload_currency IS NULL THEN '{NO_RATE}' END AS remark"""
    others = (
        *("installed", "first_build", "dated_by", "install_fault", "valued_in", remark, "fault", "publisher"),
        "usd_cents",
    )
    rows = event_rows_sql(events, others=others, oldest_days=oldest_days)
    return f"""
        SELECT * EXCLUDE (publisher, usd_cents) REPLACE (
            coalesce(install_publisher, publisher) AS install_publisher,
            coalesce(usd_cents, money) AS money,
            CASE WHEN usd_cents IS NULL THEN currency ELSE 'USD' END AS currency
        ) FROM ({rows})"""  # noqa: S608


def _number_fault(field: str) -> str:
    """Return the SQL of why a *field* of an event is not what the collector takes, null where it is.

    A whole number may be written with a point, such as 60.0.
    """
    number = f"TRY_CAST(CAST(wrapper.data.{field} AS VARCHAR) AS DOUBLE)"
    article = "an" if field[0] in "aeiou" else "a"
    return f"""CASE
        WHEN wrapper.data.{field} IS NULL THEN 'no {field}'
        WHEN {number} IS NULL THEN '{article} {field} that is no number'
        WHEN {number} NOT BETWEEN 0 AND {MAX_SAFE_INTEGER} OR {number} <> trunc({number})
            THEN '{article} {field} that is no whole number from 0 to {MAX_SAFE_INTEGER}' END"""
