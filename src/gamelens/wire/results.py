"""Answers of the metrics service as frozen values, and the body of an error.

There are four shapes: group, split, timeseries, and by game, which is a timeseries whose rows have dimensions.
`decode_answer` reads each of them into the same flat rows, `encode_answer` writes them. Wire 2.9, Answer shapes.

A decoder keeps the last of two values of one key. `decode_json` refuses such a body: one of the two numbers is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain, groupby
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_origin

import msgspec

from gamelens._text import escape_unprintable, one_line, shortened
from gamelens.errors import ServiceError
from gamelens.wire.intervals import read_moment, wire_timestamp
from gamelens.wire.queries import Group, MetricQuery, Split

Row = dict[str, Any]
_Row = TypeVar("_Row")
_Kind = TypeVar("_Kind")
_Stamp = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]

ErrorName = Literal[
    "bad_request",
    "unauthorised",
    "not_found",
    "method_not_allowed",
    "too_slow",
    "too_large",
    "unprocessable",
    "too_many_requests",
    "failed",
    "unavailable",
    "refused",
]


class Rows(msgspec.Struct, frozen=True):
    """One bucket of an answer: its timestamp and its rows in the service's order."""

    timestamp: datetime
    rows: list[Row]


class GroupBucket(msgspec.Struct, Generic[_Row], frozen=True):
    """One bucket of a group query (Wire 2.9, Answer shapes)."""

    timestamp: _Stamp
    result: list[_Row]


class SplitRow(msgspec.Struct, Generic[_Row], frozen=True):
    """One row of a split query (Wire 2.9, Answer shapes)."""

    timestamp: _Stamp
    event: _Row
    version: str = "v1"


class SeriesRow(msgspec.Struct, Generic[_Row], frozen=True):
    """One row of a timeseries or a by-game query (Wire 2.9, Answer shapes)."""

    timestamp: _Stamp
    result: _Row


class GroupAnswer(msgspec.Struct, Generic[_Row], frozen=True):
    """The answer to a group query."""

    result: list[GroupBucket[_Row]]


class SplitAnswer(msgspec.Struct, Generic[_Row], frozen=True):
    """The answer to a split query."""

    result: list[SplitRow[_Row]]


class SeriesAnswer(msgspec.Struct, Generic[_Row], frozen=True):
    """The answer to a timeseries or a by-game query."""

    result: list[SeriesRow[_Row]]


class _Event(msgspec.Struct, frozen=True):
    timestamp: str
    event: Any


class _AnyVersion(msgspec.Struct, frozen=True):
    """The answer to a split query, of a version that may be another one."""

    result: list[_Event]


_SHOWN_CHARS: Final = 80
_WORDS_CHARS: Final = 300
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
_FAILURE: Final = frozenset(("error", "errors", "exception", "fault"))
_SUCCESS: Final = frozenset(("success", "ok"))
_SPACES: Final = (b" ", b"\n", b"\r", b"\t")


class Studio(msgspec.Struct, frozen=True):
    """A studio of the caller's organisation (Wire 2.11, Lists)."""

    id: str
    name: str


class Game(msgspec.Struct, frozen=True):
    """A game of the caller's organisation (Wire 2.11, Lists)."""

    id: str
    title: str


class Values(msgspec.Struct, frozen=True):
    """The values of one dimension in an interval (Wire 2.11, Lists)."""

    dimension: str
    values: list[str]


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error: *error* is for programs, *message* for people.

    If one part of the request is to blame, *field* names it as the request does, *value* is what it held, *allowed*
    lists what it may hold where that can be listed, and *did_you_mean* is the nearest of these (Wire 2.12, Refusals).
    """

    error: ErrorName
    message: str
    field: str | msgspec.UnsetType = msgspec.UNSET
    value: Any = msgspec.UNSET
    allowed: list[str] | msgspec.UnsetType = msgspec.UNSET
    did_you_mean: str | msgspec.UnsetType | None = msgspec.UNSET


def decode_answer(query: MetricQuery, body: bytes, beside: dict[str, Any] | None = None) -> list[Rows]:
    """Decode the answer to *query* into its buckets, ascending, with empty ones.

    *beside* gets what the answer has beside its rows, by name, without what is empty.

    Raises:
        ServiceError: the body is not the expected JSON, says that there was an error, or has a key twice.
    """
    members: dict[str, Any] = {}
    # Rows of any type, which are not copied: `decode_json` has decoded them already.
    match query.query:
        case Group():
            groups = decode_json(body, GroupAnswer[Any], members).result
            buckets = [Rows(read_timestamp(bucket.timestamp), bucket.result) for bucket in groups]
        case Split():
            entries = decode_json(body, _AnyVersion, members).result
            buckets = list(_group_rows((row.timestamp, row.event) for row in entries))
        case _:
            series = decode_json(body, SeriesAnswer[Any], members).result
            buckets = list(_group_rows((row.timestamp, row.result) for row in series))
    if beside is not None:
        beside |= members
    if any(type(row) is not dict for bucket in buckets for row in bucket.rows):
        raise ServiceError(200, "not the expected JSON: a row is not an object")
    return buckets


def decode_json(body: bytes, kind: type[_Kind], beside: dict[str, Any] | None = None) -> _Kind:
    """Decode a body of this *kind*.

    *beside* gets the members of the object, and of the entries of its `result`, that are not of this kind, by name and
    without those that are empty.

    Raises:
        ServiceError: the body is not the expected JSON, says that there was an error, or has a key twice.
    """
    try:
        tree = msgspec.json.decode(body)
        members = _members_beside(tree, kind)
        if (said := _error_text(members)) is not None:
            raise ServiceError(200, f"an error in place of an answer, or beside it: {said}")
        decoded = msgspec.convert(tree, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceError(200, f"not the expected JSON: {error}") from None
    if beside is not None:
        beside |= members
    # Written without white space before it, each key is a quotation mark and a colon; text can only add such pairs.
    if any(space + b":" in body for space in _SPACES) or body.count(b'":') != _key_count(tree):
        refuse_repeated_keys(body)
    return decoded


def _members_beside(tree: Any, kind: type[Any]) -> dict[str, Any]:
    """Return what an answer has beside its rows or values: of each name the first member that is not empty."""
    if type(tree) is not dict:
        return {}
    members: dict[str, Any] = {}
    struct = get_origin(kind) or kind
    known: frozenset[str] = frozenset(getattr(struct, "__struct_fields__", ()))
    of_entries = frozenset(("timestamp", "event" if struct is _AnyVersion else "result"))
    entries = tree.get("result") if "result" in known else None
    for entry, names in ((tree, known), *((entry, of_entries) for entry in (entries if type(entries) is list else ()))):
        for name in entry.keys() - names if type(entry) is dict else ():
            is_empty = entry[name] in _EMPTY or (name.lower() in _FAILURE and not entry[name])
            if not is_empty and (name, entry[name]) != ("version", "v1"):
                members.setdefault(name, entry[name])
    return members


def _error_text(members: dict[str, Any]) -> str | None:
    """Return what the members of an answer say of an error, or None."""
    for name, value in members.items():
        is_failure = name.lower() in _SUCCESS and value is False
        if is_failure or name.lower() in _FAILURE:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            return shortened(escape_unprintable(one_line(f"{name} = {text}")), _WORDS_CHARS)
    return None


def refuse_repeated_keys(body: bytes) -> None:
    """Refuse valid JSON in which an object has a key twice.

    It takes several times as long as to decode *body*: call it where the number of keys shows that it may be so.

    Raises:
        ServiceError: names the object, the key and its values.
    """
    found: list[tuple[dict[str, Any], str, list[Any]]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs) and not found:
            names = [name for name, _ in pairs]
            repeated = next(name for name in names if names.count(name) > 1)
            found.append((members, repeated, [value for name, value in pairs if name == repeated]))
        return members

    try:
        tree = json.loads(body, object_pairs_hook=keep)
    except (ValueError, RecursionError) as error:
        raise ServiceError(200, f"not the expected JSON: {error}") from None
    for members, name, values in found:
        texts = " and ".join(map(shown, values))
        raise impossible_answer(f"{_path_of(members, tree)} has the key {shown(name)} more than once, with {texts}")


def impossible_answer(fault: str) -> ServiceError:
    """Return the error for an answer that is the promised JSON and cannot be right."""
    next_step = "The answer was discarded: retry, and report it to the service if it recurs"
    return ServiceError(200, f"an impossible answer: {fault}. {next_step}")


def shown(value: object) -> str:
    """Return a value of an answer as Python writes it, on one line and of bounded length."""
    return shortened(escape_unprintable(repr(value)), _SHOWN_CHARS)


def read_timestamp(text: str) -> datetime:
    """Return the timestamp of a bucket, in any form of ISO 8601 (Wire 2.9, Answer shapes).

    Raises:
        ServiceError: *text* is not a timestamp.
    """
    with suppress(ValueError, OverflowError):
        if len(text) > len("2026-11-20") and text.isprintable():  # a date alone is not a moment
            return read_moment(text)
    raise ServiceError(200, f"not the expected JSON: {shown(text)} is not a timestamp")


def encode_answer(query: MetricQuery, buckets: Iterable[Rows]) -> bytes:
    """Encode the answer to *query* in the shape of its kind (Wire 2.9, Answer shapes)."""
    # Encoded entry by entry, because an answer may have a bucket for every week of history.
    return b'{"result":[' + b",".join(map(msgspec.json.encode, _entries(query, buckets))) + b"]}"


def _entries(query: MetricQuery, buckets: Iterable[Rows]) -> Iterator[dict[str, Any]]:
    for bucket in buckets:
        timestamp = wire_timestamp(bucket.timestamp)
        match query.query:
            case Group():
                yield {"result": bucket.rows, "timestamp": timestamp}
            case Split():
                yield from ({"event": row, "timestamp": timestamp, "version": "v1"} for row in bucket.rows)
            case _:
                yield from ({"result": row, "timestamp": timestamp} for row in bucket.rows)


def _group_rows(rows: Iterable[tuple[str, Row]]) -> Iterator[Rows]:
    for timestamp, members in groupby(rows, key=lambda row: row[0]):
        yield Rows(read_timestamp(timestamp), [row for _, row in members])


def _key_count(tree: Any) -> int:
    """Return how many keys all objects of decoded JSON have."""
    count, level = 0, [tree]
    while level:
        objects = [node for node in level if type(node) is dict]
        count += sum(map(len, objects))
        lists = (node for node in level if type(node) is list)
        members = chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(lists))
        level = [member for member in members if type(member) is dict or type(member) is list]
    return count


def _path_of(wanted: dict[str, Any], tree: Any) -> str:
    """Return the path of one object of decoded JSON, such as `result[3].event`."""
    waiting = [("", tree)]
    while waiting:
        path, node = waiting.pop()
        if node is wanted:
            break
        if isinstance(node, dict):
            waiting.extend((f"{path}.{name}", member) for name, member in node.items())
        elif isinstance(node, list):
            waiting.extend((f"{path}[{place}]", member) for place, member in enumerate(node))
    return path.lstrip(".") or "the answer"
