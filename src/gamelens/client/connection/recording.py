"""Answers of the metrics service, written to a folder and replayed from it.

    revenue-group-country_code-3f9a1c07d2be.json
    {
      "format": 1,
      "recorded_at": "2026-11-20T10:30:00+00:00",
      "version": "0.1.0",
      "service": "https://metrics.example.com",
      "request": {"method": "POST", "path": "/metrics/v1/metrics/revenue", "params": [], "body": {...}},
      "answer": {"status": 200, "body": {...}}
    }

There is one file for each distinct request. The order of object names, parameters, games, studios and filter values,
the nesting of a filter and the form of an interval do not matter, and a file is found by its content, so it may be
renamed. Recorded are answers, and refusals that would be the same next time. Transient failures are not, nor is a
request that holds the key. Titles and numbers are in the files. Each names the service that answered, without a key,
and a sandbox's answer to `GET /metrics/v1/interval` is recorded with its two headers, so that a replay knows who
answered. A folder holds the answers of one source, and refuses answers of another.

A replay is as old as its recording, its available interval and the clock of its receipts too: "last 90 complete days"
end when it was made.

Written here because vcrpy records the bytes of HTTP clients, headers and keys included, and matches requests by URL
and body as sent; these files hold readable JSON, no headers, and match equal queries.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import unquote, urlencode

import msgspec

from gamelens._files import replace_file, why_unwritable
from gamelens._text import shortened
from gamelens.client.connection.error_responses import error_details, error_for
from gamelens.client.connection.metrics_api import BASE, INTERVAL_PATH, SANDBOX_HEADERS, answering_service
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import BadQuery, NotRecorded
from gamelens.receipts import Provenance, package_version
from gamelens.wire.filters import flat_filter, parse_filter, wire_filter
from gamelens.wire.intervals import Interval, MalformedInterval

REFUSALS: Final = frozenset({400, 404, 413, 422})
_RETENTION: Final = f"{BASE}/metrics/retention_retro"
_SETS: Final = frozenset({"games", "studios", "filter"})  # lists whose order says nothing
_NAME_CHARS: Final = 60
_LINE_CHARS: Final = 160
_DEEPEST: Final = 8
_TEXT_CHARS: Final = 400
_LISTED: Final = 6


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request in canonical form, so that equal requests compare equal."""

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
        if isinstance(body, dict) and isinstance(body.get("interval"), str):
            body["interval"] = _start_and_end(body["interval"])
        params = [(name, _start_and_end(text) if name == "interval" else text) for name, text in self.params]
        return RecordedRequest(self.method, self.path, sorted(params), body)

    @property
    def canonical(self) -> bytes:
        """The request as canonical JSON: equal for equal requests."""
        return msgspec.json.encode(self, order="sorted")

    @property
    def file_name(self) -> str:
        """The name of its file: lower-case letters, digits, `-` and `_`, valid on every system."""
        body = self.body if isinstance(self.body, dict) else {}
        query = query if isinstance(query := body.get("query"), dict) else {}
        dimensions = listed if isinstance(listed := query.get("dimensions"), list) else []
        # Metric or list, kind of query, dimensions.
        named = (query.get("type"), query.get("dimension"), *dimensions, body.get("split_by"))
        readable = [unquote(self.path).removeprefix(BASE).removeprefix("/metrics/")]
        readable += [word for word in named if isinstance(word, str)]
        words = re.sub(r"[^a-z0-9_]+", "-", " ".join(readable).lower())[:_NAME_CHARS].strip("-")
        return f"{words or 'request'}-{hashlib.sha256(self.canonical).hexdigest()[:12]}.json"

    @property
    def text(self) -> str:
        """The request in one line for a person, with long lists cut."""
        query = f"?{urlencode(self.params, safe='/:,')}" if self.params else ""
        body = f" {msgspec.json.encode(_shortened(self.body)).decode()}" if self.body is not None else ""
        line = f"{self.method} {self.path}{query}{body}"
        return shortened(line, _TEXT_CHARS)


class RecordedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A response in a file: its body as the JSON received, digit for digit, or else as text.

    Its headers are those that tell a sandbox from the real service (`SANDBOX_HEADERS`).
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


_HeadT = TypeVar("_HeadT", bound=RecordedHead)


class RecordingSender:
    """A sender that passes requests to the service and writes its answers to a folder.

    The folder is created if missing. Several processes may write to it at a time.

    Raises:
        BadQuery: *folder* cannot be created.
    """

    def __init__(
        self, transport: Transport, folder: str | os.PathLike[str], *, now: Callable[[], float] = time.time
    ) -> None:
        self._transport = transport
        self._folder = Path(folder).expanduser()
        self._now = now
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritten(error) from None

    def __repr__(self) -> str:
        return f"RecordingSender({str(self._folder)!r})"

    @property
    def provenance(self) -> Provenance:
        """The service that is recorded."""
        return self._transport.provenance

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """Send *request* and record the response, if a repeated request would get the same.

        Raises:
            BadQuery: the file cannot be written, or the folder holds answers of another source.
            GamelensError: as `Transport.send`.
        """
        wider = msgspec.structs.replace(request, expected_statuses={*request.expected_statuses, *REFUSALS})
        answer = await self._transport.send(wider, tally)
        # In a thread: an answer may have hundreds of thousands of rows.
        await asyncio.to_thread(self._record, request, answer)
        if answer.status in request.expected_statuses:
            return answer
        refusal = self._transport.refusal(request, answer)
        del answer  # which may quote the key, and a traceback may show
        raise refusal.error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def _record(self, request: HttpRequest, answer: HttpResponse) -> None:
        """Write the response, unless it is transient or the request holds the key."""
        canonical_request = RecordedRequest.of(request)
        headers = {name: answer.headers[name] for name in SANDBOX_HEADERS if name in answer.headers}
        recorded = _recorded(answer.status, self._transport.without_key(answer.body), headers)
        # A request that holds the key as a value is not written: a replay has no key to compare with.
        quotable = (canonical_request.canonical, unquote(canonical_request.path).encode())
        quotes_key = any(self._transport.without_key(text) != text for text in quotable)
        if recorded is not None and not quotes_key:
            file = RecordedFile(
                recorded_at=datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds"),
                version=package_version(),
                service=self.provenance.url,
                request=canonical_request,
                answer=recorded,
            )
            self._check_source(file)
            lines = _wrapped_lines(msgspec.json.format(msgspec.json.encode(file), indent=0))
            try:
                with replace_file(self._folder / canonical_request.file_name) as draft, draft.open("wb") as target:
                    target.writelines(lines)
                    target.write(b"\n")
            except OSError as error:
                raise self._unwritten(error) from None

    def _check_source(self, file: RecordedFile) -> None:
        """Refuse to mix the answers of two sources in one folder.

        Raises:
            BadQuery: the folder has the available interval of another source than *file*.
        """
        if (now := file.source) is None:
            return
        try:
            before = _read(self._folder / file.request.file_name, RecordedFile).source
        except BadQuery:  # none yet, or one that is damaged and will be replaced
            return
        if before is not None and before.identity != now.identity:
            rule = f"holds answers of {before.text}, but {now.text} is answering now: name another folder, or empty it"
            raise BadQuery("record", str(self._folder), rule)

    def _unwritten(self, error: OSError) -> BadQuery:
        return BadQuery("record", str(self._folder), f"cannot be written to: {why_unwritable(error)}")


class ReplaySender:
    """A sender that answers from the folder of a `RecordingSender` and needs no network, address or key.

    Its provenance is the folder by its name, and once the available interval was answered, the service that was
    recorded.

    Raises:
        BadQuery: *folder* does not exist or holds no recorded answers.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).expanduser()
        self._by_request: dict[bytes, tuple[RecordedRequest, Path]] | None = None
        self._recorded_at: float | None = None
        self.provenance = Provenance(kind="replay", url=self._folder.resolve().name)
        if next(_files(self._folder), None) is None:
            rule = "holds no recorded answers" if self._folder.is_dir() else "is not a folder"
            raise BadQuery("replay", str(self._folder), f"{rule}: Client(record=DIR) records what the service answers")

    def __repr__(self) -> str:
        return f"ReplaySender({str(self._folder)!r})"

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """Return the recorded response to *request*.

        *tally* stays at 0, since nothing is sent.

        Raises:
            NotRecorded: the request was not recorded; names the most similar one that was.
            BadQuery: the file is damaged, or the service refused the request when it was recorded.
            ServiceError: as the service answered then.
        """
        answer = await asyncio.to_thread(self._answer, RecordedRequest.of(request))
        if answer.status in request.expected_statuses:
            return answer
        raise error_for(answer.status, error_details(answer.body), request.sent_value)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _answer(self, request: RecordedRequest) -> HttpResponse:
        """Return the recorded response, by file name or else by content."""
        path = self._folder / request.file_name
        if path.exists():
            file = _read(path, RecordedFile)
            if file.request.normalised().canonical == request.canonical:
                return self._replayed(file)
        if self._by_request is None:  # the file may have been renamed: read all files once
            self._by_request = {}
            for renamed in sorted(_files(self._folder)):
                recorded = _read(renamed, RecordedHead).request.normalised()
                self._by_request[recorded.canonical] = (recorded, renamed)
        match = self._by_request.get(request.canonical)
        if match is None:
            raise NotRecorded(request.text, _nearest(request, [recorded for recorded, _ in self._by_request.values()]))
        return self._replayed(_read(match[1], RecordedFile))

    def now(self) -> float:
        """Return when the available interval was recorded, or without one the time of the clock, in epoch seconds."""
        if self._recorded_at is None:
            with suppress(NotRecorded, BadQuery):
                self._answer(RecordedRequest("GET", INTERVAL_PATH))
        return time.time() if self._recorded_at is None else self._recorded_at

    def _replayed(self, file: RecordedFile) -> HttpResponse:
        """Return the response in *file*, and note the service that was recorded."""
        if file.request.path == INTERVAL_PATH:
            with suppress(ValueError):
                self._recorded_at = datetime.fromisoformat(file.recorded_at).timestamp()
        if (source := file.source) is not None:
            self.provenance = msgspec.structs.replace(self.provenance, scenario=source.scenario, sources=(source,))
        return file.answer.answer()


def _recorded(status: int, body: bytes, headers: dict[str, str]) -> RecordedResponse | None:
    """Return the response to write, or None if a repeated request might get another."""
    try:
        body.decode()
        msgspec.json.format(body, indent=0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RecordedResponse(status, headers, text=body.decode(errors="replace")) if status in REFUSALS else None
    is_lasting = status in REFUSALS or 200 <= status < 300
    return RecordedResponse(status, headers, body=msgspec.Raw(body)) if is_lasting else None


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob("[!.]*.json")


def _read(path: Path, kind: type[_HeadT]) -> _HeadT:
    """Read one file.

    Raises:
        BadQuery: it cannot be read, is damaged or of another version.
    """
    try:
        return msgspec.json.decode(path.read_text(encoding="utf-8"), type=kind)
    except OSError as error:
        raise BadQuery("replay", str(path), f"cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        rule = f"is damaged, or of another version: {error}. Remove it and record again"
        raise BadQuery("replay", str(path), rule) from None


def _nearest(request: RecordedRequest, recorded: Sequence[RecordedRequest]) -> str | None:
    """Return the recorded request most similar to *request*, preferably of the same path."""
    alike = [other.text for other in recorded if (other.method, other.path) == (request.method, request.path)]
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(request.text)
    best, nearest = -1.0, None
    for text in alike or [other.text for other in recorded]:
        matcher.set_seq1(text)
        # The two upper bounds are cheap, the ratio itself is not.
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, nearest = matcher.ratio(), text
    return nearest


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


def _start_and_end(interval: str) -> str:
    """Return *interval* in one form, whichever it was sent in."""
    try:
        return str(Interval.parse(interval))
    except MalformedInterval:
        return interval


def _shortened(value: Any) -> Any:
    """Return *value* with its long lists cut."""
    if isinstance(value, dict):
        return {name: _shortened(member) for name, member in value.items()}
    if isinstance(value, list):
        shown = [_shortened(member) for member in value[:_LISTED]]
        return [*shown, f"… {len(value) - _LISTED} more"] if len(value) > _LISTED else shown
    return value


def _wrapped_lines(json: bytes, indent: bytes = b"") -> Iterator[bytes]:
    """Yield *json*, given on one line, with line breaks so that mostly one row is on a line."""
    members = _members(json) if len(json) > _LINE_CHARS and len(indent) < 2 * _DEEPEST else []
    if not members:
        yield json
        return
    inner = indent + b"  "
    before = json[:1] + b"\n"
    for name, member in members:
        yield before + inner + name
        yield from _wrapped_lines(member, inner)
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
