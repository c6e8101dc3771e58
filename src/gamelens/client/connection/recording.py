"""What the service answered, written to a folder and answered from it again.

    revenue-group-country_code-3f9a1c07d2be.json
    {
      "format": 1,
      "recorded_at": "2026-11-20T10:30:00+00:00",
      "version": "0.1.0",
      "request": {"method": "POST", "path": "/metrics/v1/metrics/revenue", "params": [], "body": {...}},
      "answer": {"status": 200, "body": {...}}
    }

One file for each different request: the order of an object's names, of parameters, games, studios and of what a filter
lists makes no difference. A file is known by what is in it, so it may be renamed. Kept are answers, and refusals that
would come again; faults that pass are not, nor is a request that holds the key. Titles and figures are in there.
The answer of a sandbox to `GET /metrics/v1/interval` has its two headers too, so that a replay knows the scenario.

A replay is as old as the recording, its available interval too: "last 90 complete days" are those of back then.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import unquote, urlencode

import msgspec

from gamelens._files import replace_file
from gamelens.client.connection.metrics_api import BASE, PROVENANCE_HEADERS
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport, error_for
from gamelens.errors import BadQuery, NotRecorded
from gamelens.wire.receipts import Provenance, package_version

REFUSALS: Final = frozenset({400, 404, 413, 422})
_SETS: Final = frozenset({"games", "studios", "filter"})  # lists whose order says nothing
_NAME_CHARS: Final = 60
_LINE_CHARS: Final = 160
_DEEPEST: Final = 8
_TEXT_CHARS: Final = 400
_LISTED: Final = 6


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request in the one way it is spelled here."""

    method: str
    path: str
    params: list[tuple[str, str]] = []
    body: Any = None

    @classmethod
    def of(cls, request: HttpRequest) -> RecordedRequest:
        """What *request* asks, without its headers."""
        body = msgspec.json.decode(request.body) if request.body else None
        return cls(request.method, request.path, list(request.params), body).settled()

    def settled(self) -> RecordedRequest:
        """The same with everything in order whose order says nothing."""
        return RecordedRequest(self.method, self.path, sorted(self.params), _settled(self.body, is_set=False))

    @property
    def spelled(self) -> bytes:
        """What two requests share that are the same."""
        return msgspec.json.encode(self, order="sorted")

    @property
    def file_name(self) -> str:
        """Small letters, digits, `-` and `_` only: whatever a name holds, it is one file in one folder anywhere."""
        words = re.sub(r"[^a-z0-9_]+", "-", " ".join(self._words()).lower())[:_NAME_CHARS].strip("-")
        return f"{words or 'request'}-{hashlib.sha256(self.spelled).hexdigest()[:12]}.json"

    @property
    def text(self) -> str:
        """One line for a person; long lists are cut."""
        query = f"?{urlencode(self.params, safe='/:,')}" if self.params else ""
        body = f" {msgspec.json.encode(_brief(self.body)).decode()}" if self.body is not None else ""
        line = f"{self.method} {self.path}{query}{body}"
        return line if len(line) <= _TEXT_CHARS else line[:_TEXT_CHARS] + "…"

    def _words(self) -> Iterator[str]:
        """What a person would call it: the metric or list, the kind of query, the dimensions."""
        yield unquote(self.path).removeprefix(BASE).removeprefix("/metrics/")
        body = self.body if isinstance(self.body, dict) else {}
        query = body.get("query")
        query = query if isinstance(query, dict) else {}
        dimensions = query.get("dimensions")
        listed = dimensions if isinstance(dimensions, list) else []
        named = (query.get("type"), query.get("dimension"), *listed, body.get("split_by"))
        yield from (word for word in named if isinstance(word, str))


class RecordedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer on disk: its body as the JSON that came, digit for digit, or as text where it is no JSON.

    *headers* are those that tell a sandbox from the real service (`PROVENANCE_HEADERS`).
    """

    status: int
    headers: dict[str, str] = {}
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET

    def answer(self) -> HttpResponse:
        """The answer as it came, but for white space."""
        text = "" if self.text is msgspec.UNSET else self.text
        body = text.encode() if self.body is msgspec.UNSET else bytes(self.body)
        return HttpResponse(self.status, body, self.headers)


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    format: Literal[1] = 1
    recorded_at: str
    version: str
    request: RecordedRequest


class _File(_Head, frozen=True, kw_only=True):
    answer: RecordedResponse


_Head_ = TypeVar("_Head_", bound=_Head)


class RecordingSender:
    """Asks the service and writes down what it answers.

    Args:
        transport: asks.
        folder: made when missing; others may write to it at the same time.
        now: the wall clock.

    Raises:
        BadQuery: *folder* cannot be made.
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
        return f"Recording({str(self._folder)!r})"

    @property
    def provenance(self) -> Provenance:
        """The service that is recorded."""
        return self._transport.provenance

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """As `Transport.send`; what will be answered alike next time is in the folder before it is here.

        Raises:
            BadQuery: the file cannot be written; and whatever `Transport.send` raises.
        """
        wider = msgspec.structs.replace(request, answers={*request.answers, *REFUSALS})
        answer = await self._transport.send(wider, tally)
        # In a thread: an answer may have hundreds of thousands of rows.
        await asyncio.to_thread(self._keep, request, answer)
        if answer.status in request.answers:
            return answer
        answer = HttpResponse(answer.status, self._transport.without_key(answer.body))  # which a traceback may show
        raise error_for(answer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def _keep(self, request: HttpRequest, answer: HttpResponse) -> None:
        asked = RecordedRequest.of(request)
        headers = {name: answer.headers[name] for name in PROVENANCE_HEADERS if name in answer.headers}
        kept = _kept(answer.status, self._transport.without_key(answer.body), headers)
        # Somebody put the key where a value goes: nothing is written, and a replay has no key to look for.
        quotes_key = any(self._transport.without_key(said) != said for said in _said(asked))
        if kept is not None and not quotes_key:
            moment = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds")
            file = _File(recorded_at=moment, version=package_version(), request=asked, answer=kept)
            self._write(asked.file_name, _spread(msgspec.json.format(msgspec.json.encode(file), indent=0)))

    def _write(self, name: str, parts: Iterator[bytes]) -> None:
        try:
            with replace_file(self._folder / name) as draft, draft.open("wb") as file:
                file.writelines(parts)
                file.write(b"\n")
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> BadQuery:
        return BadQuery("record", str(self._folder), f"cannot be written to: {error.strerror or error}")


class ReplaySender:
    """Answers from a folder what was recorded there, and nothing else. Needs no network, no address and no key.

    Args:
        folder: of `RecordingSender`.

    Raises:
        BadQuery: *folder* is none, or holds no recorded answers.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).expanduser()
        self._found: Mapping[bytes, tuple[RecordedRequest, Path]] | None = None
        if next(_files(self._folder), None) is None:
            rule = "holds no recorded answers" if self._folder.is_dir() else "is no folder"
            raise BadQuery("replay", str(self._folder), f"{rule}: Client(record=DIR) records what the service answers")

    def __repr__(self) -> str:
        return f"Replay({str(self._folder)!r})"

    @property
    def provenance(self) -> Provenance:
        """A replay of the folder, with its name and without its path."""
        return Provenance(kind="replay", url=self._folder.resolve().name)

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """The recorded answer to *request*; *tally* counts nothing, for nothing is sent.

        Raises:
            NotRecorded: there is none; names the nearest that is.
            BadQuery: the file is damaged; or as the service refused when it was recorded.
            ServiceError: as the service answered then.
        """
        answer = await asyncio.to_thread(self._answer, RecordedRequest.of(request))
        if answer.status in request.answers:
            return answer
        raise error_for(answer)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _answer(self, asked: RecordedRequest) -> HttpResponse:
        path = self._folder / asked.file_name
        if path.exists():
            file = _read(path, _File)
            if file.request.settled().spelled == asked.spelled:
                return file.answer.answer()
        # Not under its name: all files are looked into, once.
        self._found = self._found if self._found is not None else _index(self._folder)
        found = self._found.get(asked.spelled)
        if found is None:
            raise NotRecorded(asked.text, _nearest(asked, [recorded for recorded, _ in self._found.values()]))
        return _read(found[1], _File).answer.answer()


def _kept(status: int, body: bytes, headers: dict[str, str]) -> RecordedResponse | None:
    """What of an answer is written; None where it would not come again."""
    try:
        body.decode()
        msgspec.json.format(body, indent=0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RecordedResponse(status, headers, text=body.decode(errors="replace")) if status in REFUSALS else None
    is_lasting = status in REFUSALS or 200 <= status < 300
    return RecordedResponse(status, headers, body=msgspec.Raw(body)) if is_lasting else None


def _said(asked: RecordedRequest) -> tuple[bytes, bytes]:
    return asked.spelled, unquote(asked.path).encode()


def _index(folder: Path) -> Mapping[bytes, tuple[RecordedRequest, Path]]:
    found = {}
    for path in sorted(_files(folder)):
        asked = _read(path, _Head).request.settled()
        found[asked.spelled] = (asked, path)
    return found


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob("[!.]*.json")


def _read(path: Path, kind: type[_Head_]) -> _Head_:
    try:
        return msgspec.json.decode(path.read_text(encoding="utf-8"), type=kind)
    except OSError as error:
        raise BadQuery("replay", str(path), f"cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        rule = f"is damaged, or of another version: {error}. Remove it and record again"
        raise BadQuery("replay", str(path), rule) from None


def _nearest(asked: RecordedRequest, recorded: Sequence[RecordedRequest]) -> str | None:
    """The recorded request most like *asked*, of the same path where there is one."""
    alike = [other.text for other in recorded if (other.method, other.path) == (asked.method, asked.path)]
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(asked.text)
    best, nearest = -1.0, None
    for text in alike or [other.text for other in recorded]:
        matcher.set_seq1(text)
        # The two bounds cost next to nothing, the ratio itself does.
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, nearest = matcher.ratio(), text
    return nearest


def _settled(value: Any, *, is_set: bool) -> Any:
    if isinstance(value, dict):
        return {name: _settled(member, is_set=is_set or name in _SETS) for name, member in sorted(value.items())}
    if isinstance(value, list):
        members = [_settled(member, is_set=is_set) for member in value]
        return sorted(members, key=msgspec.json.encode) if is_set else members
    return value


def _brief(value: Any) -> Any:
    """*value* with its long lists cut."""
    if isinstance(value, dict):
        return {name: _brief(member) for name, member in value.items()}
    if isinstance(value, list):
        shown = [_brief(member) for member in value[:_LISTED]]
        return [*shown, f"… {len(value) - _LISTED} more"] if len(value) > _LISTED else shown
    return value


def _spread(json: bytes, indent: bytes = b"") -> Iterator[bytes]:
    """*json*, which is on one line, with as much on a line as fits: a row, mostly."""
    members = _members(json) if len(json) > _LINE_CHARS and len(indent) < 2 * _DEEPEST else []
    if not members:
        yield json
        return
    inner = indent + b"  "
    before = json[:1] + b"\n"
    for name, member in members:
        yield before + inner + name
        yield from _spread(member, inner)
        before = b",\n"
    yield b"\n" + indent + json[-1:]


def _members(json: bytes) -> list[tuple[bytes, bytes]]:
    if json[:1] == b"{":
        named = msgspec.json.decode(json, type=dict[str, msgspec.Raw])
        return [(msgspec.json.encode(name) + b": ", bytes(member)) for name, member in named.items()]
    if json[:1] == b"[":
        return [(b"", bytes(member)) for member in msgspec.json.decode(json, type=list[msgspec.Raw])]
    return []
