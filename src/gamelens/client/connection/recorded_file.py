"""One recorded answer as a file: the canonical request, the response, and who answered."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final, Literal
from urllib.parse import unquote, urlencode

import msgspec

from gamelens._text import shortened
from gamelens.client.connection.metrics_api import BASE, INTERVAL_PATH, answering_service
from gamelens.client.connection.transport import HttpRequest, HttpResponse
from gamelens.errors import BadQuery
from gamelens.receipts import Provenance
from gamelens.wire.filters import flat_filter, parse_filter, wire_filter

_RETENTION: Final = f"{BASE}/metrics/retention_retro"
_SETS: Final = frozenset({"games", "studios", "filter"})  # lists whose order says nothing
_NAME_CHARS: Final = 60
_LINE_CHARS: Final = 160
_DEEPEST: Final = 8
_TEXT_CHARS: Final = 400
_LISTED: Final = 6


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request in canonical form, so that equal requests compare equal.

    Attributes:
        method, path: of the request.
        params: query parameters, sorted.
        body: the decoded JSON body, or None.
    """

    method: str
    path: str
    params: list[tuple[str, str]] = []
    body: Any = None

    @classmethod
    def of(cls, request: HttpRequest) -> RecordedRequest:
        """Return the canonical form of *request*, without its headers."""
        body = msgspec.json.decode(request.body) if request.body else None
        return cls(request.method, request.path, list(request.params), body).normalised()

    def normalised(self) -> RecordedRequest:
        """Return the request with sorted parameters and sets, and a flat filter."""
        body = _normalised(_with_flat_filter(self.body), is_set=False)
        if self.path == _RETENTION and body.get("granularity") == "day":  # the only one there is, named or not
            del body["granularity"]
        return RecordedRequest(self.method, self.path, sorted(self.params), body)

    @property
    def canonical(self) -> bytes:
        """The request as canonical JSON: equal for equal requests."""
        return msgspec.json.encode(self, order="sorted")

    @property
    def file_name(self) -> str:
        """The name of its file: lower-case letters, digits, `-` and `_`, valid on every system."""
        words = re.sub(r"[^a-z0-9_]+", "-", " ".join(self._words()).lower())[:_NAME_CHARS].strip("-")
        return f"{words or 'request'}-{hashlib.sha256(self.canonical).hexdigest()[:12]}.json"

    @property
    def text(self) -> str:
        """The request in one line for a person, with long lists cut."""
        query = f"?{urlencode(self.params, safe='/:,')}" if self.params else ""
        body = f" {msgspec.json.encode(_shortened(self.body)).decode()}" if self.body is not None else ""
        line = f"{self.method} {self.path}{query}{body}"
        return shortened(line, _TEXT_CHARS)

    def _words(self) -> Iterator[str]:
        """Yield the parts of a readable name: metric or list, kind of query, dimensions."""
        yield unquote(self.path).removeprefix(BASE).removeprefix("/metrics/")
        body = self.body if isinstance(self.body, dict) else {}
        query = body.get("query")
        query = query if isinstance(query, dict) else {}
        dimensions = query.get("dimensions")
        listed = dimensions if isinstance(dimensions, list) else []
        named = (query.get("type"), query.get("dimension"), *listed, body.get("split_by"))
        yield from (word for word in named if isinstance(word, str))


class RecordedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A response in a file: its body as the JSON received, digit for digit, or else as text.

    Attributes:
        status: the HTTP status.
        headers: those that tell a sandbox from the real service (`PROVENANCE_HEADERS`).
        body: the JSON body.
        text: the body if it is not JSON.
    """

    status: int
    headers: dict[str, str] = {}
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET

    def answer(self) -> HttpResponse:
        """Return the response as it was received, but for white space."""
        text = "" if self.text is msgspec.UNSET else self.text
        body = text.encode() if self.body is msgspec.UNSET else bytes(self.body)
        return HttpResponse(self.status, body, self.headers)


class RecordedHead(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a file but the answer: enough to find a request without reading its rows."""

    format: Literal[1] = 1
    recorded_at: str
    version: str
    service: str | None = None
    request: RecordedRequest


class RecordedFile(RecordedHead, frozen=True, kw_only=True):
    """A file as a whole: a request and the response to it."""

    answer: RecordedResponse

    @property
    def source(self) -> Provenance | None:
        """The recorded service, if this is its available interval and says who answered."""
        if self.request.path != INTERVAL_PATH or not (self.service or self.answer.headers):
            return None
        return answering_service(Provenance(kind="real", url=self.service), self.answer.answer())


def _with_flat_filter(body: Any) -> Any:
    """Return *body* with its filter in the form in which the client sends it.

    A filter that cannot be read stays as it is.
    """
    try:
        return body | {"filter": wire_filter(flat_filter(parse_filter(body["filter"])))}
    except (KeyError, TypeError, BadQuery):
        return body


def _normalised(value: Any, *, is_set: bool) -> Any:
    """Return *value* with sorted object names, and sorted lists in fields that are sets."""
    if isinstance(value, dict):
        return {name: _normalised(member, is_set=is_set or name in _SETS) for name, member in sorted(value.items())}
    if isinstance(value, list):
        members = [_normalised(member, is_set=is_set) for member in value]
        return sorted(members, key=msgspec.json.encode) if is_set else members
    return value


def _shortened(value: Any) -> Any:
    """Return *value* with its long lists cut."""
    if isinstance(value, dict):
        return {name: _shortened(member) for name, member in value.items()}
    if isinstance(value, list):
        shown = [_shortened(member) for member in value[:_LISTED]]
        return [*shown, f"… {len(value) - _LISTED} more"] if len(value) > _LISTED else shown
    return value


def wrapped_lines(json: bytes, indent: bytes = b"") -> Iterator[bytes]:
    """Yield *json*, given on one line, with line breaks so that mostly one row is on a line."""
    members = _members(json) if len(json) > _LINE_CHARS and len(indent) < 2 * _DEEPEST else []
    if not members:
        yield json
        return
    inner = indent + b"  "
    before = json[:1] + b"\n"
    for name, member in members:
        yield before + inner + name
        yield from wrapped_lines(member, inner)
        before = b",\n"
    yield b"\n" + indent + json[-1:]


def _members(json: bytes) -> list[tuple[bytes, bytes]]:
    """Return the members of an object, with their names, or of an array, or an empty list."""
    if json[:1] == b"{":
        named = msgspec.json.decode(json, type=dict[str, msgspec.Raw])
        return [(msgspec.json.encode(name) + b": ", bytes(member)) for name, member in named.items()]
    if json[:1] == b"[":
        return [(b"", bytes(member)) for member in msgspec.json.decode(json, type=list[msgspec.Raw])]
    return []
