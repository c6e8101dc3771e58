"""Files as public tools, browsers, buckets and broken disks leave them: read, or named by what they are.

Wire 5.6, Raw Data.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens.sandbox.imports.cluster_import import examine
from gamelens.sandbox.imports.import_run import ImportOptions, ImportResult
from gamelens.sandbox.imports.json_lines import MOST_LEVELS, JsonLinesFile
from gamelens.sandbox.imports.source_files import SourceFile, list_files, recognise_files
from support.game_events import NOW, event
from support.raw_exports import table_of, take, wrapped, write_lines

pytestmark = pytest.mark.slow
S = int(NOW.timestamp()) - 86_400
ROWS = [wrapped(event(user_id=f"u{number}", client_ts=S + number)) for number in range(3)]
LINES = [json.dumps(row).encode() for row in ROWS]
TEXT = b"\n".join((*LINES, b""))
BOM = b"\xef\xbb\xbf"


def text_of(player: str) -> bytes:
    """Return the lines of three events of a player."""
    rows = (wrapped(event(user_id=player, client_ts=S + number)) for number in range(3))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def nested(levels: int) -> bytes:
    """Return a line that is an event, of which one field that nobody reads is nested."""
    arrays = b"[" * (levels - 2) + b"]" * (levels - 2)
    return (
        json.dumps(wrapped(event(user_id="deep", client_ts=S, custom_fields=0)))
        .encode()
        .replace(b'"custom_fields": 0', b'"custom_fields": ' + arrays)
    )


def zipped() -> bytes:
    """Return a zip archive of the lines."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.json", TEXT)
    return packed.getvalue()


def tarred() -> bytes:
    """Return a gzipped tar archive of the lines."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("a.json")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return packed.getvalue()


READ: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "plain": (lambda text: text, 3),
    "gzip": (lambda text: gzip.compress(text), 3),
    "members that follow each other": (lambda text: gzip.compress(text) * 2, 6),
    "zero bytes after gzip": (lambda text: gzip.compress(text) + bytes(512), 3),
    "many zero bytes between members and after them": (
        lambda text: gzip.compress(text) + bytes(70_000) + gzip.compress(text) + bytes(200_000),
        6,
    ),
    "a member of nothing at the end": (lambda text: gzip.compress(text) + gzip.compress(b""), 3),
    "a member of nothing first": (lambda text: gzip.compress(b"") + gzip.compress(text), 3),
    "a byte order mark": (lambda text: BOM + text, 3),
    "a byte order mark in gzip": (lambda text: gzip.compress(BOM + text), 3),
    "byte order marks of joined files": (lambda text: BOM + text + BOM + text, 6),
    "CRLF": (lambda text: text.replace(b"\n", b"\r\n"), 3),
    "CR": (lambda text: text.replace(b"\n", b"\r"), 3),
    "no last line end": (lambda text: text[:-1], 3),
    "blank lines between": (lambda text: text.replace(b"\n", b"\n\n  \n"), 3),
    "blank lines first": (lambda text: b"\n\n" + text, 3),
    "joined without a line end": (lambda text: text[:-1] + text[:-1] + text, 9),
    "joined with marks and no line end": (lambda text: BOM + text[:-1] + BOM + text, 6),
    "all on one line": (lambda text: b"".join(text.splitlines()), 3),
}
"""Content of files that are read, and their number of events."""

REFUSED: dict[str, tuple[bytes, str]] = {
    "expired.json.gz": (
        b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>',
        "it is an XML error page (AccessDenied), as a link that has expired gives: get it again",
    ),
    "sitemap.json": (b"<?xml version='1.0'?><urlset/>", "it is XML, not an export: get it again"),
    "sign-in.json.gz": (b"\n<!DOCTYPE html><html><p>Sign in", "it is a web page, not an export: get it again"),
    "packed-page.json.gz": (gzip.compress(b"<html>"), "it is a web page, not an export: get it again"),
    "array.json.gz": (
        gzip.compress(b"[" + b",".join(LINES) + b"]"),
        "it is one JSON array: write each object on a line of its own, as with `jq -c '.[]'`",
    ),
    "array-over-lines.json": (
        b"[\n" + b",\n".join(LINES) + b"\n]",
        "it is one JSON array: write each object on a line of its own, as with `jq -c '.[]'`",
    ),
    "pretty.json": (
        json.dumps(ROWS[0], indent=2).encode(),
        "its objects have several lines each: write each object on a line of its own, as with `jq -c .`",
    ),
    "windows.json": (TEXT.decode().encode("utf-16"), "it is text in UTF-16: save it as UTF-8"),
    "windows.json.gz": (gzip.compress(TEXT.decode().encode("utf-16")), "it is text in UTF-16: save it as UTF-8"),
    "unmarked.json": (TEXT.decode().encode("utf-16-be"), "it is text in UTF-16: save it as UTF-8"),
    "utf32.json": (TEXT.decode().encode("utf-32"), "it is text in UTF-32: save it as UTF-8"),
    "empty.json.gz": (b"", "it is empty: get it again"),
    "blank.json": (b"\n \n", "it has no line but blank ones"),
    "packed-nothing.json.gz": (gzip.compress(b""), "it is empty: get it again"),
    "packed-nothing-twice.json.gz": (gzip.compress(b"") * 2, "it is empty: get it again"),
    "packed-blank.json.gz": (gzip.compress(b"\n   \t\n\r\n"), "it has no line but blank ones"),
    "packed-mark.json.gz": (gzip.compress(BOM), "it has no line but blank ones"),
    "cut.json.gz": (gzip.compress(TEXT)[:-9], "its gzip ends too early: get it again"),
    "cut-in-header.json.gz": (gzip.compress(TEXT)[:5], "its gzip ends too early: get it again"),
    "cut-in-second.json.gz": (gzip.compress(TEXT) + gzip.compress(TEXT)[:-9], "its gzip ends too early: get it again"),
    "log-at-end.json.gz": (
        gzip.compress(TEXT) + b"curl: (18) transfer closed",
        "what follows its gzip after line 3 is no gzip: get it again",
    ),
    "twice.json.gz": (gzip.compress(gzip.compress(TEXT)), "it is packed with gzip twice: unpack it once"),
    "a.zip": (zipped(), "it is a zip archive: unpack it"),
    "named-gz.json.gz": (zipped(), "it is a zip archive: unpack it"),
    "a.tar.gz": (tarred(), "it is a tar archive: unpack it"),
    "a.zst": (pa.compress(TEXT, "zstd", asbytes=True), "it is packed with zstd: unpack it, or pack it with gzip"),
    "a.bz2": (bz2.compress(TEXT), "it is packed with bzip2: unpack it, or pack it with gzip"),
    "a.xz": (lzma.compress(TEXT), "it is packed with xz: unpack it, or pack it with gzip"),
    "a.avro": (b"Obj\x01" + bytes(99), "it is an Avro file: export JSON lines or Parquet"),
    "a.json.gz.lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "it is a pointer of Git LFS: fetch the file itself",
    ),
    "a.csv": (b"arrival_ts,game_id\n1,2\n", "it is neither JSON lines nor Parquet"),
    "a.csv.gz": (gzip.compress(b"arrival_ts,game_id\n1,2\n"), "it is neither JSON lines nor Parquet"),
    "commas.json": (TEXT.replace(b"\n", b",\n"), "no line of it is an event: line 1, 2, 3: a comma behind the object"),
    "answer.json": (
        b'{"error": "access denied"}',
        "no line of it is an event: line 1: no usable arrival_ts. Is it an export? It has no arrival_ts, data, game_id",
    ),
    "unwrapped.json": (
        b"\n".join(json.dumps(row["data"]).encode() for row in ROWS),
        "no line of it is an event: line 1, 2, 3: no usable arrival_ts. Is it an export? "
        "It has no arrival_ts, data, game_id",
    ),
    "wrapped-again.json": (
        json.dumps({"events": ROWS}).encode(),
        "no line of it is an event: line 1: no usable arrival_ts. Is it an export? It has no arrival_ts, data, game_id",
    ),
}
"""Content of files that cannot be imported, and the reason that is said."""

LEFT_OUT: dict[str, tuple[bytes, str]] = {
    "nested.json": (TEXT + nested(3000) + b"\n" + TEXT, "line 4: JSON nested deeper than 512 levels"),
    "nested-first.json": (nested(3000) + b"\n" + TEXT, "line 1: JSON nested deeper than 512 levels"),
    "nested-very-deep.json.gz": (
        gzip.compress(TEXT + nested(200_000) + b"\n" + TEXT),
        "line 4: JSON nested deeper than 512 levels",
    ),
    "nested-by-one.json": (nested(MOST_LEVELS + 1) + b"\n" + TEXT, "line 1: JSON nested deeper than 512 levels"),
    "nested-after-joint.json": (
        TEXT[:-1] + TEXT + nested(3000) + b"\n" + TEXT,
        "line 6: JSON nested deeper than 512 levels",
    ),
    "latin1.json": (LINES[0].replace(b"ann", b"caf\xe9") + b"\xe9\n" + TEXT, "line 1: text that is not UTF-8"),
    "padded.json": (TEXT + bytes(512), "line 4: zero bytes in place of text"),
    "half-pair.json": (TEXT + LINES[0].replace(b'"u0"', b'"\\ud83d"') + b"\n", "line 4: half of a surrogate pair"),
    "broken-off.json": (TEXT + LINES[0].replace(b'"u0"', b'"\\ud83d\\ude00"')[:-9], "line 4: no JSON object"),
    "joined-and-broken-off.json": (TEXT[:-1] + LINES[0][:-9], "line 3: no JSON object"),
}
"""Content of files of which one line is not an event, and what is said of it."""


class Folder:
    """All those files in one folder, imported at once."""

    def __init__(self, root: Path) -> None:
        self.root = root / "in"
        self.root.mkdir()
        contents = {name: content for table in (REFUSED, LEFT_OUT) for name, (content, _) in table.items()}
        contents |= {name: make(text_of(name)) for name, (make, _) in READ.items()}
        for name, content in contents.items():
            (self.root / name).write_bytes(content)
        self.result: ImportResult = take(root / "state", self.root, options=ImportOptions())
        players = table_of(root / "state", "events")["user_id"].to_pylist()
        self.events = Counter(players)
        self.again: ImportResult = take(root / "state", self.root, options=ImportOptions())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Import all files of this module."""
    return Folder(tmp_path_factory.mktemp("strange"))


@pytest.mark.wide
def test_the_files_of_a_folder_are_taken_beside_those_that_cannot_be(folder: Folder) -> None:
    """No file stops the import, and those that were not taken are tried again with the same words."""
    lines = len(LEFT_OUT)
    assert folder.result.files == len(READ) + lines
    assert sum(folder.result.refused.values()) == len(folder.result.refused_at) == lines
    assert folder.events.keys() >= {"u0", "u1", "u2"}  # of the other lines
    assert folder.again.damaged == folder.result.damaged
    assert (folder.again.files, folder.again.taken_before) == (0, len(READ) + lines)


@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_an_export_in_substance_is_read(folder: Folder, name: str) -> None:
    """All of its events are taken."""
    assert folder.events[name] == READ[name][1]
    assert str(folder.root / name) not in folder.result.damaged


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_export_is_named_by_what_it_is(folder: Folder, name: str) -> None:
    """The reason is what it is and what to do, never a symptom of a reader."""
    assert folder.result.damaged[str(folder.root / name)] == REFUSED[name][1]


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_line_that_is_no_event_is_named_by_file_and_line(folder: Folder, name: str) -> None:
    """The other lines are taken."""
    assert f"{name}, {LEFT_OUT[name][1]}" in folder.result.refused_at


def test_a_line_may_be_nested_to_the_limit(tmp_path: Path) -> None:
    """Brackets in strings do not count."""
    brackets = json.dumps(wrapped(event(user_id="u", client_ts=S, custom_01="[{" * 3000))).encode()
    (tmp_path / "a").write_bytes(nested(MOST_LEVELS) + b"\n" + brackets + b"\n")
    assert take(tmp_path / "state", tmp_path / "a").events == 2


def test_a_worker_of_a_cluster_finds_the_same_lines(tmp_path: Path) -> None:
    """What a task finds of a file is what an import on one machine finds."""
    for content in (*(make(TEXT) for make, _ in READ.values()), *(content for content, _ in LEFT_OUT.values())):
        path = tmp_path / "a"
        path.write_bytes(content)
        lines = JsonLinesFile(path, first_seq=0)
        assert sum(map(len, lines.batches())) == lines.rows
        found = examine(SourceFile(url=str(path), bytes=len(content), kind="raw-json"))
        assert (found.rows, found.within_lines, found.damage) == (lines.rows, lines.within_lines, None)
    path.write_bytes(gzip.compress(b""))
    assert examine(SourceFile(url=str(path), bytes=20, kind="raw-json")).damage == "it is empty: get it again"


@pytest.mark.wide
def test_notes_of_other_tools_are_no_exports(tmp_path: Path) -> None:
    """They are left out of a folder, and refused where they are named; an export with such a name is taken."""
    write_lines(tmp_path / "in" / "_late.gz", ROWS[0])
    for name in ("_SUCCESS", ".DS_Store", "._a.json.gz"):
        (tmp_path / "in" / name).write_bytes(b"" if name == "_SUCCESS" else b"\0\0\0\1Bud1")
    result = take(tmp_path / "state", tmp_path / "in")
    assert (result.files, result.damaged) == (1, {})
    memory = take(tmp_path / "state", (tmp_path / "in").as_uri())
    assert (memory.taken_before, memory.damaged) == (1, {})
    named = take(tmp_path / "state", tmp_path / "in" / "_SUCCESS")
    assert list(named.damaged.values()) == ["it is empty: get it again"]


def test_what_is_not_a_file_is_said(tmp_path: Path) -> None:
    """A pipe, and a link that leads nowhere."""
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in" / "pipe")
    (tmp_path / "in" / "link.gz").symlink_to(tmp_path / "gone.gz")
    write_lines(tmp_path / "in" / "a.gz", ROWS[0])
    reasons = {file.name: file.reason for file in recognise_files(list_files([str(tmp_path / "in")]))}
    assert reasons == {
        "a.gz": "",
        "link.gz": "it cannot be read: No such file or directory",
        "pipe": "it is not a regular file",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
def test_files_and_folders_that_may_not_be_read_are_said(tmp_path: Path) -> None:
    """They stop no other file."""
    secret = write_lines(tmp_path / "in" / "secret.gz", ROWS[0])
    (tmp_path / "in" / "closed").mkdir(mode=0)
    secret.chmod(0)
    write_lines(tmp_path / "in" / "a.gz", ROWS[1])
    reasons = {file.name: file.reason for file in recognise_files(list_files([str(tmp_path / "in")]))}
    denied = "Permission denied"
    assert reasons == {
        "a.gz": "",
        "secret.gz": f"it cannot be read: {denied}",
        "closed": f"it cannot be listed: {denied}",
    }


def test_a_table_without_events_is_not_imported(tmp_path: Path) -> None:
    """As a file of lines without events."""
    row = {"game_id": 1001, "user_id": None, "session_id": "s", "event_id_01": "kill", "event_arrival_ts": NOW}
    pq.write_table(pa.Table.from_pylist([row, row]), tmp_path / "a.parquet")
    result = take(tmp_path / "state", tmp_path / "a.parquet")
    assert list(result.damaged.values()) == ["no row of it is an event: row 1, 2: no user_id"]


PURCHASES: list[tuple[dict[str, Any], int | None]] = [
    ({"currency": "VEF", "amount": 100, "amount_usd": 7}, 7),
    ({"currency": "", "amount": 100, "amount_usd": 8}, 8),
    ({"currency": None, "amount": 100, "amount_usd": 9}, 9),
    ({"currency": "XYZ", "amount": None, "amount_usd": 10}, 10),
    ({"currency": "usd", "amount": 100, "amount_usd": 11}, 11),
    ({"currency": "VEF", "amount": 100}, None),
    ({"currency": "USD", "amount": 499, "amount_usd": 1}, 499),
]
"""Fields of purchases, and the US cents that they are, None for those that are left out."""


def test_the_value_of_the_service_counts_where_a_currency_has_no_rate(tmp_path: Path) -> None:
    """It is said for how many purchases, and in which currencies (Wire 5.6, Raw Data)."""
    lines = [
        wrapped(event(category="business", event_id="a:b", user_id=f"u{n}", client_ts=S) | fields)
        for n, (fields, _) in enumerate(PURCHASES)
    ]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    assert result.valued_by_service == {"VEF": 1, "XYZ": 1, "no currency code": 3}
    assert result.refused == {"a currency without a rate and no amount_usd": 1}
    rows = table_of(tmp_path / "state", "events").to_pylist()
    money = {row["user_id"]: (row["money"], row["currency"]) for row in rows}
    assert money == {f"u{n}": (cents, "USD") for n, (_, cents) in enumerate(PURCHASES) if cents is not None}


MOST = 2**53 - 1
NO_NUMBERS = ("abc", "", "60", True, [60], {"s": 60})
OUT_OF_RANGE = (-100, -1, 99.5, 1e-9, MOST + 1, 10**30)


def faulty(category: str, name: str, **fields: Any) -> list[tuple[bytes, str]]:
    """Return lines of which the field *name* is no usable number, and what is said of each."""
    article = "an" if name.startswith("a") else "a"
    whole = f"whole number from 0 to {MOST}"
    values = [(json.dumps(value), f"{article} {name} that is no number") for value in NO_NUMBERS]
    values += [(json.dumps(value), f"{article} {name} that is no {whole}") for value in OUT_OF_RANGE]
    values += [(value, f"{article} {name} that is no {whole}") for value in ("NaN", "Infinity", "1e400", "-1e400")]
    line = json.dumps(wrapped(event(category=category, user_id="bad", client_ts=S, **fields) | {name: "HERE"}))
    absent = wrapped(event(category=category, user_id="bad", client_ts=S, **fields))
    absent["data"].pop(name, None)
    lines = [(line.replace('"HERE"', value).encode(), reason) for value, reason in values]
    none = "a currency without a rate and no amount_usd" if name == "amount_usd" else f"no {name}"
    return [*lines, (line.replace('"HERE"', "null").encode(), none), (json.dumps(absent).encode(), none)]


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("category", "name", "fields"),
    [
        ("session_end", "length", {}),
        ("business", "amount", {"currency": "USD", "event_id": "a:b", "transaction_num": 1}),
        ("business", "amount_usd", {"currency": "VEF", "event_id": "a:b", "amount": 1, "transaction_num": 1}),
    ],
)
def test_a_line_with_an_unusable_number_is_left_out(
    tmp_path: Path, category: str, name: str, fields: dict[str, Any]
) -> None:
    """As the collector refuses it: nothing that is no value counts as one, and each is named by its line."""
    bad = faulty(category, name, **fields)
    good = [
        wrapped(event(category=category, user_id=f"u{value}", client_ts=S, **fields) | {name: value})
        for value in (0, 60, 60.0, MOST)
    ]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *(line for line, _ in bad), *good))
    assert (result.events, result.damaged) == (4, {})
    assert result.refused == Counter(reason for _, reason in bad)
    assert {place.rpartition(": ")[2] for place in result.refused_at} == result.refused.keys()
    column = "length" if name == "length" else "money"
    assert sorted(table_of(tmp_path / "state", "events")[column].to_pylist()) == [0, 60, 60, MOST]


@pytest.mark.wide
def test_numbers_of_other_categories_are_not_judged(tmp_path: Path) -> None:
    """A field counts for its own category alone, so nothing is left out for it elsewhere."""
    lines = [wrapped(event(user_id="u", client_ts=S) | {"length": "x", "amount": -1, "amount_usd": None})]
    assert take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines)).events == 1


def test_what_is_unlikely_is_remarked_and_taken(tmp_path: Path) -> None:
    """As the live feed remarks on it: sessions above a day, and impressions that count as 0 (Wire 4.11, Metrics)."""

    def shown(vendor: str, **payload: Any) -> dict[str, Any]:
        return event(category="impression", ad_network_name=vendor, impression_data=payload)

    data = [
        *(event(category="session_end", length=length) for length in (86_400, 86_401, 1_795_766_996)),
        *(shown("max", revenue=revenue) for revenue in (0, 0.5, None, "abc", "0.5", -1, 1e30)),
        shown("max"),
        shown("aequus", revenue=1),
        *(shown("fyber", netPayout=1, currency=code) for code in (None, "EUR", "VEF", "")),
    ]
    lines = [wrapped(each | {"client_ts": S, "user_id": f"u{n}"}) for n, each in enumerate(data)]
    rows = [
        {"game_id": 1001, "user_id": f"t{n}", "adunit_name": "a", "publisher_revenue_usd_cents": cents}
        | {"event_client_ts": S, "event_arrival_ts": S}
        for n, cents in enumerate((0.0, 1.5, -1.0, None, float("nan"), float("inf")))
    ]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / "a.parquet")
    write_lines(tmp_path / "in" / "a.gz", *lines)
    result = take(tmp_path / "state", tmp_path / "in")
    assert (result.events, result.refused) == (len(lines) + len(rows), {})
    assert result.remarks == {
        "a length above a day: it is the seconds of the session, not a time or milliseconds": 2,
        "no usable revenue: they count as impressions of 0": 7 + 4,
        "a currency without a rate: they count as impressions of 0": 2,
    }
