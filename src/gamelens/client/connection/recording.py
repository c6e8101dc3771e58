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

There is one file for each distinct request. The order of object names, parameters, games, studios and filter values
and the nesting of a filter do not matter, and a file is found by its content, so it may be renamed. Recorded are
answers, and refusals that would be the same next time. Transient failures are not, nor is a request that holds the
key. Titles and numbers are in the files. Each names the service that answered, without a key, and a sandbox's answer to
`GET /metrics/v1/interval` is recorded with its two headers, so that a replay knows who answered. A folder holds the
answers of one source: those of another are refused.

A replay is as old as its recording, its available interval too: "last 90 complete days" are those of that time.

Written here because vcrpy records the bytes of HTTP clients, headers and keys included, and matches requests by URL
and body as sent; these files hold readable JSON, no headers, and match equal queries.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote

import msgspec

from gamelens._files import replace_file
from gamelens.client.connection.error_responses import error_details, error_for
from gamelens.client.connection.metrics_api import PROVENANCE_HEADERS
from gamelens.client.connection.recorded_file import (
    RecordedFile,
    RecordedHead,
    RecordedRequest,
    RecordedResponse,
    wrapped_lines,
)
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import BadQuery, NotRecorded
from gamelens.receipts import Provenance, package_version

REFUSALS: Final = frozenset({400, 404, 413, 422})
_HeadT = TypeVar("_HeadT", bound=RecordedHead)


class RecordingSender:
    """A sender that passes requests to the service and writes its answers to a folder.

    Args:
        transport: sends the requests.
        folder: created if missing; several processes may write to it at a time.
        now: the wall clock.

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
        headers = {name: answer.headers[name] for name in PROVENANCE_HEADERS if name in answer.headers}
        recorded = _recorded(answer.status, self._transport.without_key(answer.body), headers)
        # A request that holds the key as a value is not written: a replay has no key to compare with.
        quotes_key = any(self._transport.without_key(text) != text for text in _quotable_forms(canonical_request))
        if recorded is not None and not quotes_key:
            file = RecordedFile(
                recorded_at=datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds"),
                version=package_version(),
                service=self.provenance.url,
                request=canonical_request,
                answer=recorded,
            )
            self._check_source(file)
            self._write(
                canonical_request.file_name, wrapped_lines(msgspec.json.format(msgspec.json.encode(file), indent=0))
            )

    def _check_source(self, file: RecordedFile) -> None:
        """Refuse to mix the answers of two sources in one folder.

        Raises:
            BadQuery: the folder has the available interval of another source than that of *file*.
        """
        if (now := file.source) is None:
            return
        try:
            before = _read(self._folder / file.request.file_name, RecordedFile).source
        except BadQuery:  # none yet, or one that is damaged and will be replaced
            return
        if before is not None and before.identity != now.identity:
            rule = f"holds answers of {before.text}, and {now.text} answers now: name another folder, or empty it"
            raise BadQuery("record", str(self._folder), rule)

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
    """A sender that answers from a folder and needs no network, address or key.

    Args:
        folder: as written by `RecordingSender`.

    Attributes:
        provenance: the folder by its name, and once the available interval was answered, the service that was recorded.

    Raises:
        BadQuery: *folder* does not exist or holds no recorded answers.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).expanduser()
        self._by_request: Mapping[bytes, tuple[RecordedRequest, Path]] | None = None
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
        # The file may have been renamed: read all files once.
        self._by_request = self._by_request if self._by_request is not None else _index(self._folder)
        match = self._by_request.get(request.canonical)
        if match is None:
            raise NotRecorded(request.text, _nearest(request, [recorded for recorded, _ in self._by_request.values()]))
        return self._replayed(_read(match[1], RecordedFile))

    def _replayed(self, file: RecordedFile) -> HttpResponse:
        """Return the response in *file*, and note the service that was recorded."""
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


def _quotable_forms(request: RecordedRequest) -> tuple[bytes, bytes]:
    """Return the forms of a request in which a key could appear."""
    return request.canonical, unquote(request.path).encode()


def _index(folder: Path) -> Mapping[bytes, tuple[RecordedRequest, Path]]:
    """Return all recorded requests and their files, by canonical form."""
    by_request = {}
    for path in sorted(_files(folder)):
        request = _read(path, RecordedHead).request.normalised()
        by_request[request.canonical] = (request, path)
    return by_request


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
