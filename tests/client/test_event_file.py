"""Files of events: how they are read, checked and submitted."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.client.events.event_file import (
    EventFile,
    SubmissionReport,
    check_events,
    read_events,
    submit_events,
    take_addresses,
)
from gamelens.errors import AuthError, Unreachable
from support.game_events import event
from support.game_network import Game

LINES = b'{"a":1}\n\n  {"a":2}  \r\n{"a":3}'
ARRAY = b'[\n {"a":1},\n\n {"a":\n  2}, {"a":3}\n]'


def read(data: bytes) -> list[tuple[int, int, Any]]:
    """Return number, line and content of each event of *data*, which has no fault."""
    found = read_events(data)
    assert not found.faults
    return [(each.number, each.line, each.content["a"]) for each in found.events]


def faults(data: bytes) -> list[tuple[int | None, int | None, str]]:
    """Return line, event and words of each fault of *data*."""
    return [(fault.line, fault.event, fault.text) for fault in read_events(data).faults]


def submitted(game: Game, *events: Any, addresses: str | None = None, **keys: str) -> SubmissionReport:
    """Return the report on *events* sent to the collector of *game*, one on each line.

    *addresses* is the field of their players' addresses.
    """
    lines = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in events)
    found = read_events(lines.encode())
    if addresses is not None:
        found = take_addresses(found.events, addresses)
    assert not found.faults

    async def main() -> SubmissionReport:
        async with game.wire.collector(max_wait_s=0.0, **keys) as collector:
            return await submit_events(collector, found.events)

    return asyncio.run(main())


@pytest.mark.parametrize("data", [LINES, gzip.compress(LINES, mtime=0), b"\xef\xbb\xbf" + LINES])
def test_json_lines_have_one_event_a_line(data: bytes) -> None:
    """Blank lines, blanks around an event, gzip and a byte order mark change nothing."""
    assert read(data) == [(1, 1, 1), (2, 3, 2), (3, 4, 3)]


@pytest.mark.parametrize("data", [ARRAY, gzip.compress(ARRAY, mtime=0)])
def test_an_event_of_an_array_has_the_line_it_begins_on(data: bytes) -> None:
    """Lines are counted also inside an event."""
    assert read(data) == [(1, 2, 1), (2, 4, 2), (3, 5, 3)]


@pytest.mark.parametrize("data", [b'{"a":1}', b'\n{\n "a": 1\n}\n'])
def test_a_file_may_be_one_event(data: bytes) -> None:
    """On one line, which is JSON lines as well, or on several."""
    assert [content for _, _, content in read(data)] == [1]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"[]", b" [ ] "])
def test_a_file_may_hold_no_events(data: bytes) -> None:
    """An array may be empty (Wire 1.7, Submitting events)."""
    assert read_events(data) == EventFile([])


def packed(piece: bytes, megabytes: int) -> bytes:
    """Return *piece* again and again, so many *megabytes* in all, as gzip members."""
    member = piece * ((1 << 20) // len(piece))
    return gzip.compress(member, 1) * megabytes


BOMBS = {
    "nothing": (packed(bytes(4), 2000), "has more than 256 MB unpacked: split it"),
    "blank lines": (packed(b"\n", 50), "has more than 10,000,000 lines: split it"),
    "events": (packed(b"{}\n ", 12), "has more than 1,000,000 events: split it"),
    "words": (packed(b"x\n", 12), "has more than 1,000,000 events: split it"),
    "an array of events": (gzip.compress(b"[{}") + packed(b",{} ", 36), "is not JSON"),
    "a whole array": (gzip.compress(b"[{}") + packed(b",{} ", 8) + gzip.compress(b"]"), "1,000,000 events: split it"),
    "an array of numbers": (gzip.compress(b"[0") + packed(b",0", 60), "has more than 10,000,000 fields"),
    "an event of arrays": (gzip.compress(b'{"a":[[]') + packed(b",[] ", 8), "is not JSON"),
    "blanks": (gzip.compress(b"[") + packed(b" ", 50) + gzip.compress(b"{}]"), ""),
    "depth": (packed(b"[", 30), "nested too deeply"),
    "a letter of four bytes": (gzip.compress('["😀'.encode()) + packed(b"xxxx", 50), "is not JSON"),
}
READ = """
import json, sys
from pathlib import Path
from gamelens.client.events.event_file import read_events
texts = [[fault.text for fault in read_events(bytes.fromhex(line)).faults[:1]] for line in sys.stdin]
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps([int(peak.split()[1]) // 1024, texts]))  # `ru_maxrss` starts at that of the process that starts this
"""


@pytest.mark.wide
@pytest.mark.slow
def test_a_small_file_that_unpacks_to_a_lot_is_refused_in_words() -> None:
    """Whatever it unpacks to, reading it takes less than 1.2 GB."""
    lines = "\n".join(data.hex() for data, _ in BOMBS.values())
    done = subprocess.run([sys.executable, "-c", READ], input=lines, capture_output=True, text=True, check=True)
    megabytes, texts = json.loads(done.stdout)
    for kind, said in zip(BOMBS, texts, strict=True):
        assert BOMBS[kind][1] in "".join(said), kind
    assert megabytes < 1200


@pytest.mark.parametrize("before", [0, 1, (1 << 20) - 3, (1 << 20) - 2, (1 << 20) - 1, 1 << 20])
def test_bytes_that_are_not_utf8_are_found_where_they_are(before: int) -> None:
    """Also beside the place at which a long file is cut to be read."""
    whole = b'{"a": "' + "é😀".encode() * 3 + b'"}\n' + b" " * before
    assert faults(whole + b"\n\xf0\x9f\x98x") == [(3, None, "is not UTF-8 text: save it as UTF-8")]
    assert faults(whole + "\n{}😀".encode()[:-1]) == [(3, None, "is not UTF-8 text: save it as UTF-8")]


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text())), st.sampled_from([None, 1]))
def test_both_forms_hold_the_same_events(events: list[dict[str, Any]], indent: int | None) -> None:
    """Events of an array, however indented, are those of JSON lines, each on its own line."""
    lines = read_events("\n".join(map(json.dumps, events)).encode()).events
    array = json.dumps(events, indent=indent)
    found = read_events(array.encode()).events
    assert [each.content for each in found] == [each.content for each in lines] == events
    assert all(array.splitlines()[each.line - 1].lstrip(" [")[:1] == "{" for each in found)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}\n{"a" 2}\n[1]', [(2, 2, "is not JSON, at column 6: Expecting ':' delimiter")]),
        (b'[{"a":1},\n {"a":}]', [(2, None, "is not JSON, at column 7: Expecting value")]),
        (b'[{"a":1}', [(1, None, "is not JSON, at column 9: Expecting ',' delimiter")]),
        (b'[{"a":1},\n\n7, null]', [(3, 2, "is a number, but an event is"), (3, 3, "is null, but an event is")]),
        (b'{"a":1}\n"b"', [(2, 2, "is a string, but an event is a JSON object")]),
        (b'{"a":1}\n{"a":NaN}', [(2, 2, "is not JSON: JSON is malformed: invalid character")]),
        (b'{"a":1}\n{"a":"\xff"}', [(2, None, "is not UTF-8 text: save it as UTF-8")]),
        (gzip.compress(LINES, mtime=0)[:-9], [(None, None, "is damaged or incomplete: the gzip cannot be unpacked")]),
        (b"[" * 100_000, [(1, None, "is not an event: nested too deeply")]),
    ],
)
def test_a_fault_has_line_and_event_and_words(data: bytes, expected: list[tuple[int, int, str]]) -> None:
    """Each event that cannot be read is named, and each file that cannot."""
    found = faults(data)
    assert [fault[:2] for fault in found[: len(expected)]] == [fault[:2] for fault in expected]
    assert all(text.startswith(words) for (_, _, text), (_, _, words) in zip(found, expected, strict=False))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"user_id": None}, "user_id is missing"),
        ({"session_num": 0}, "session_num = 0 must be at least 1"),
        ({"v": 3}, "v = 3 must be 2"),
        ({"session_id": 7}, "session_id = 7 must be of the JSON type string"),
        (
            {"category": "bisness"},
            "category = 'bisness' is not one of the allowed values. Did you mean `business`?",
        ),
        (
            {"category": "business", "event_id": "a:b", "amount": 1, "currency": "VEF", "transaction_num": 1},
            "currency = 'VEF' is not one of the allowed values: "
            "VEF is of another list of currencies: here the country has VES",
        ),
        ({"platform": "iOS"}, "platform = 'iOS' is not one of the allowed values. Did you mean `ios`?"),
        (
            {"connection_type": "5g"},
            "connection_type = '5g' is not one of the allowed values: wwan, wifi, lan, offline",
        ),
        ({"build": "x" * 33}, "build = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' must have 1 to 32 characters"),
        ({"level": 7}, "level = 7 is not a documented field of such an event"),
        ({"custom_fields": {"a/b": 1}}, "custom_fields/a/b = 1 has a form, or a name, that is not allowed"),
        ({"category": "health", "fps_data_table": [1]}, "fps_data_table = [1] must have 121 entries"),
        (
            {"category": "error", "severity": "info", "message": "hm", "line_number": 3},
            "line_number = 3 is allowed only with a function_name",
        ),
    ],
)
def test_a_strict_check_names_value_and_rule(fields: dict[str, Any], text: str) -> None:
    """Every rule of the documentation is told in words (Wire 3.7, Strict validation)."""
    found = check_events(read_events(json.dumps(event(**fields)).encode()).events, "strict")
    assert [fault.text for fault in found] == [text]


def test_a_good_event_has_no_fault() -> None:
    """The event that the other cases change passes both checks."""
    events = read_events(json.dumps([event(), event()]).encode()).events
    assert check_events(events, "strict") == check_events(events, "lenient") == []


def test_events_are_sent_as_they_are_written(game: Game) -> None:
    """Bytes are not written anew, so that a collector judges what the file has."""
    written = json.dumps(event()).replace('"v": 2', '"v" :2, "x": 1.50')
    report = submitted(game, written)
    assert (report.collected, report.faults) == (1, [])
    assert game.wire.events == [json.loads(written)]


def test_rejected_events_are_found_again_in_the_file(game: Game) -> None:
    """Also if several are equal: a collector lists them in batch order (Wire 1.8, Rejected events)."""
    bad, good = event(session_num=0, user_id=None), event()
    report = submitted(game, bad, good, bad, good, bad)
    assert (report.collected, report.rejected, report.not_sent) == (2, 3, 0)
    assert [(fault.line, fault.event, fault.path) for fault in report.faults] == [
        (number, number, path) for number in (1, 3, 5) for path in ("/user_id", "/session_num")
    ]


def test_a_collector_with_other_words_is_understood(game: Game) -> None:
    """Unknown names of rules are printed, and an event that is not in the batch has no line."""
    foreign = [{"event": {"x": 1}, "errors": [{"error_type": "not_unique", "path": "/event_uuid"}]}]
    game.wire.script["events"] = [(400, json.dumps(foreign).encode())]
    report = submitted(game, event(), event())
    (fault,) = report.faults
    assert (fault.line, fault.text) == (None, "event_uuid = None breaks the rule not_unique")


def test_a_batch_that_is_refused_whole_is_halved(game: Game) -> None:
    """The one event that is too deep is named, and the others are collected."""
    nested: dict[str, Any] = {}
    for _ in range(40):
        nested = {"a": nested}
    report = submitted(game, *[event()] * 6, event(custom_fields=nested), event())
    assert (report.collected, report.rejected) == (7, 1)
    assert [(fault.event, fault.text) for fault in report.faults] == [(7, "cannot be read")]


def test_an_event_too_large_for_the_collector_is_named(game: Game) -> None:
    """An event that is 413 alone is refused, the others are collected."""
    game.wire.takes_bytes = 500
    report = submitted(game, event(), event(build="".join(map(chr, range(0x4E00, 0x5000)))), event())
    assert report.collected == 2
    assert [(fault.event, fault.text) for fault in report.faults] == [
        (2, "is not collected: too large for the collector")
    ]


def test_a_request_has_at_most_500_events(game: Game) -> None:
    """As a session's has (Wire 1.15, Client queue)."""
    report = submitted(game, *[event()] * 1100)
    assert [len(sent.content) for sent in game.wire.of("events")] == [500, 500, 100]
    assert report.collected == 1100


def test_a_failure_names_what_was_not_sent(game: Game) -> None:
    """The report of a collector that goes away counts the events before and after."""
    game.wire.script["events"] = [(200, b""), *[(503, b"{}")] * 9]
    report = submitted(game, *[event()] * 700)
    assert (report.collected, report.not_sent) == (500, 200)
    assert "503" in str(report.error)


def test_a_collector_that_is_down_collects_nothing(game: Game) -> None:
    """The error is returned with the report."""
    game.wire.is_down = True
    report = submitted(game, event())
    assert (report.not_sent, isinstance(report.error, Unreachable)) == (1, True)


def test_a_wrong_secret_collects_nothing(game: Game) -> None:
    """401 ends the submission (Wire 1.4, Signature)."""
    report = submitted(game, event(), secret_key="f" * 40)
    assert (report.not_sent, isinstance(report.error, AuthError)) == (1, True)


def test_the_init_is_asked_first(game: Game) -> None:
    """One version 2 init with the fields of the first event comes before the events (Wire 1.11, Version 2 init)."""
    submitted(game, event(build="1.0"), event(user_id="bob"))
    assert [sent.route for sent in game.wire.sent] == ["init_v2", "events"]
    asked = {name: game.wire.sent[0].content[name] for name in ("user_id", "platform", "os_version", "build")}
    assert asked == {"user_id": "ann", "platform": "ios", "os_version": "ios 17.0", "build": "1.0"}


def test_nothing_is_sent_of_a_disabled_game(game: Game) -> None:
    """`enabled` false is obeyed, and is a fault of the first event (Wire 1.11, Version 2 init)."""
    game.wire.script["init_v2"] = [(200, b'{"enabled": false, "server_ts": 1, "flags": []}')]
    report = submitted(game, event(), event(), event())
    assert (report.collected, report.not_sent, report.error) == (0, 3, None)
    assert [(fault.event, fault.text) for fault in report.faults] == [
        (1, "is not sent, and neither are 2 others: the init answers enabled = false")
    ]
    assert game.wire.of("events") == []


@pytest.mark.parametrize("answer", [(400, b"[]"), (404, b"{}"), (200, b"<html>"), (200, b"{}")])
def test_without_a_usable_init_the_events_are_sent(game: Game, answer: tuple[int, bytes]) -> None:
    """A collector that has no such route, or refuses the init, is sent the events (Wire 1.15, Client queue)."""
    game.wire.script["init_v2"] = [answer] * 9
    assert submitted(game, event()).collected == 1


def test_each_player_has_requests_with_their_own_address(game: Game) -> None:
    """Init and events of a player carry that player's address, and no event holds it.

    Wire 1.16, Submitting for players; Wire 1.17, Country.
    """
    sent_from = {"ann": "192.0.2.7", "bob": "198.51.100.1", "cid": None}
    events = [event(user_id=name, ip=sent_from[name], country_code=None) for name in ("ann", "bob", "ann", "cid")]
    report = submitted(game, *events, addresses="ip")
    assert (report.collected, report.faults) == (4, [])
    requests = [(sent.route, sent.headers.get("x-forwarded-for")) for sent in game.wire.sent]
    assert requests == [(route, address) for address in sent_from.values() for route in ("init_v2", "events")]
    assert [[each["user_id"] for each in sent.content] for sent in game.wire.of("events")] == [
        ["ann", "ann"],
        ["bob"],
        ["cid"],
    ]
    assert not [each for each in game.wire.events if "ip" in each]


def test_fields_beside_the_address_stay_as_they_are_written(game: Game) -> None:
    """Only the address is taken out (`1.50` stays `1.50`)."""
    found = read_events(json.dumps(event(ip="2001:DB8::1")).replace('"v": 2', '"v" :2, "x": 1.50').encode())
    (taken,) = take_addresses(found.events, "ip").events
    assert b'"x":1.50' in taken.body.replace(b" ", b"")
    assert taken.forwarded_for == "2001:db8::1"
    assert taken.content == {name: value for name, value in found.events[0].content.items() if name != "ip"}


@pytest.mark.parametrize("address", ["unknown", "192.0.2.7, 10.0.0.1", 5, ["192.0.2.7"], "192.0.2.7:80"])
def test_what_is_no_address_is_a_fault(address: object) -> None:
    """Value, line and event are named, before anything is sent."""
    found = read_events(f"{json.dumps(event())}\n{json.dumps(event(ip=address))}".encode())
    (fault,) = take_addresses(found.events, "ip").faults
    assert (fault.line, fault.event, fault.path) == (2, 2, "/ip")
    assert fault.text.startswith(f"ip = {address!r} is not an IP address")


def test_a_disabled_player_stops_no_other(game: Game) -> None:
    """Each init is the answer to one player (Wire 1.16, Submitting for players)."""
    game.wire.script["init_v2"] = [(200, b'{"enabled": false, "server_ts": 1, "flags": []}')]
    report = submitted(
        game, event(ip="192.0.2.7"), event(user_id="bob", ip="192.0.2.8"), event(ip="192.0.2.7"), addresses="ip"
    )
    assert (report.collected, report.not_sent, len(report.faults)) == (1, 2, 1)
    assert [each["user_id"] for each in game.wire.events] == ["bob"]


def test_the_first_event_that_was_not_sent_is_named_by_player(game: Game) -> None:
    """With requests by player the rest of the file is not what was not sent."""
    game.wire.failing_users = {"bob"}
    names = ("ann", "bob", "ann", "bob")
    report = submitted(game, *(event(user_id=name, ip="192.0.2.7") for name in names), addresses="ip")
    assert (report.collected, report.not_sent) == (2, 2)
    assert report.first_not_sent is not None
    assert report.first_not_sent.number == 2
