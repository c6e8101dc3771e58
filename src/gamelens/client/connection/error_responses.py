"""The failures of error responses, in the service's own words (Wire 2.12, Refusals).

Only the sandbox is known to answer with the documented object. Another service, or a proxy before it, answers JSON of
any keys, a page of HTML, or text: what is readable in it becomes part of the error.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import groupby
from typing import Any, Final, get_args

import msgspec

from gamelens._text import one_line, printable, shortened
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, ServiceError
from gamelens.wire.limits import KIB
from gamelens.wire.results import ErrorName

TRANSIENT_STATUSES: Final = frozenset({429, 502, 503, 504})
MAX_WORDS: Final = 300
"""Most characters of the service's own words in a message."""
_PAGE_CHARS: Final = 64 * KIB
_CODE_WORDS: Final = frozenset(get_args(ErrorName))
_LIST_CALLS: Final = {name: f"lens.{name.removesuffix('s')}s(over=...)" for name in ("game", "games", "studios")}
# Keys under which services put a sentence for people, the most telling first.
_SENTENCE_KEYS: Final = (
    *("message", "msg", "detail", "error_description", "error_message", "errormessage", "description", "reason"),
    *("title", "error", "fault", "faultstring"),
)
_WRAPPER_KEYS: Final = frozenset({*_SENTENCE_KEYS, "errors", "details", "messages", "response", "body", "data"})
_FIELD_KEYS: Final = ("field", "value", "allowed", "did_you_mean")
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.I)
_HIDDEN: Final = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|template|svg)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.I)
_TAG: Final = re.compile(r"<[^<>]*>?")

Mask = Callable[[str], str]


class FailedAttempt(msgspec.Struct, frozen=True):
    """One failed attempt.

    Attributes:
        error: the exception to raise.
        is_transient: whether another attempt may succeed.
        retry_after_s: the wait in the Retry-After header.
        never_answered: whether the address has not answered a single request yet.
    """

    error: GamelensError
    is_transient: bool = False
    retry_after_s: float | None = None
    never_answered: bool = False


class RefusalReader:
    """Reads the error responses of one service.

    Args:
        address: the address of the service.
        key_hint: the source of the keys and the places to set others.
        mask: redacts the key, which a service may quote.
        max_wait_s: the longest Retry-After that is waited for.
        now: the wall clock.
    """

    def __init__(self, address: str, *, key_hint: str, mask: Mask, max_wait_s: float, now: Callable[[], float]) -> None:
        self._address = address
        self._key_hint = key_hint
        self._mask = mask
        self._max_wait_s = max_wait_s
        self._now = now

    def read(
        self, status: int, body: bytes, headers: Mapping[str, str], sent: Callable[[str], object], times: int
    ) -> FailedAttempt:
        """Return the failure that a response stands for.

        Args:
            status: the status of the response.
            body: its content.
            headers: its headers, with names in lower case.
            sent: returns what the request has in a field, or None.
            times: how often the request was answered 429 so far, this answer included.
        """
        details = error_details(body, headers.get("content-type", ""), mask=self._mask)
        says = f": {text}" if (text := details.field_and_text) else ""
        wait_s = self._retry_after_s(headers.get("retry-after"))
        if status in (401, 403):
            hint = f". {self._key_hint}" if self._key_hint else ""
            return FailedAttempt(AuthError(f"{self._address} answers {status}, it refuses the key{says}{hint}"))
        if status == 429:
            return FailedAttempt(RateLimited(wait_s, self._limited_text(wait_s, times) + says), True, wait_s)
        if 300 <= status < 400 and (target := headers.get("location")):
            text = (
                f"a redirect to {shown_words(self._mask(target))}, which is not followed, as the key would go with it"
            )
            return FailedAttempt(ServiceError(status, f"{text}. Set the address of the service itself"))
        return FailedAttempt(error_for(status, details, sent), status in TRANSIENT_STATUSES, wait_s)

    def _limited_text(self, wait_s: float | None, times: int) -> str:
        """Return what a 429 means: a wait that is too long, a limit that lasts, or one met once."""
        wish = f" and asks to wait {wait_s:g} s" if wait_s is not None else ""
        if wait_s is not None and wait_s > self._max_wait_s:
            return f"{self._address} answers 429{wish}, more than max_wait_s={self._max_wait_s:g}: ask again then"
        if times > 1:
            return f"{self._address} keeps answering 429 ({times} times){wish}: ask less at a time, or again later"
        return f"{self._address} answers 429{wish}: ask again later"

    def _retry_after_s(self, header: str | None) -> float | None:
        """Return the seconds of a Retry-After header, or None if it is invalid.

        The header has seconds or a date.
        """
        if header is None:
            return None
        try:
            is_seconds = header.isascii() and header.strip().isdigit()
            return max(0.0, float(header)) if is_seconds else self._until(header)
        except ValueError:
            return None

    def _until(self, date: str) -> float:
        moment = parsedate_to_datetime(date)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - self._now())


class ErrorDetails(msgspec.Struct, frozen=True):
    """The content of an error response. Every part may be missing.

    Attributes:
        words: the text for people, as the service wrote it.
        is_sentence: whether they are the documented `message` and nothing else.
        field, value: the invalid field of the query and its value.
        allowed: the allowed values.
        did_you_mean: the nearest allowed value.
    """

    words: str = ""
    is_sentence: bool = False
    field: str | None = None
    value: Any = None
    allowed: Sequence[str] = ()
    did_you_mean: str | None = None

    @property
    def text(self) -> str:
        """The words on one line of at most 300 characters, without control characters."""
        return shown_words(self.words)

    @property
    def field_and_text(self) -> str:
        """The words behind the field and its value, for errors that have no place for these."""
        if self.field is None or self.is_sentence:
            return self.text
        subject = self.field if self.value is None else f"{self.field} = {self.value!r}"
        return shown_words(f"{subject}: {self.words}" if self.words else subject)

    def bad_query(self, status: int, sent: object = None) -> BadQuery:
        """Return the `BadQuery` for this response.

        A documented sentence that names its field stands alone. Other words follow the field, its value, by default the
        one *sent*, and the status.
        """
        value = sent if self.value is None else self.value
        rule = f"is refused by the service ({status})" + (f": {self.text.rstrip('.')}" if self.text else "")
        error = BadQuery(self.field or "request", msgspec.UNSET if value is None else value, rule, self.allowed)
        error.did_you_mean = self.did_you_mean or error.did_you_mean
        if self.is_sentence and (self.field is None or self.field.rpartition(".")[2] in self.text):
            error.args = (self.text,)
        if listed := _LIST_CALLS.get(self.field or ""):
            error.args = (f"{str(error).rstrip('.')}. {listed} has the ids that the service knows",)
        return error


def error_for(
    status: int, details: ErrorDetails, sent: Callable[[str], object] = lambda _: None
) -> BadQuery | ServiceError:
    """Return the exception for an error response.

    `BadQuery` for 400, 413 and 422, else `ServiceError`. *sent* returns what the request has in a field, or None.
    """
    if status in (400, 413, 422):
        return details.bad_query(status, sent(details.field) if details.field else None)
    return ServiceError(status, details.field_and_text or "no reason given")


def error_details(body: bytes, content_type: str = "", *, mask: Mask = str) -> ErrorDetails:
    """Return the details in *body*, whatever its shape.

    Args:
        body: the body of an error response.
        content_type: its type, for the charset; UTF-8 without one.
        mask: removes what must not be shown, such as a key that the service quotes.
    """
    text = _decoded(body, content_type)
    try:
        content = _masked(msgspec.json.decode(text), mask)
    except (msgspec.DecodeError, RecursionError):
        return ErrorDetails(mask(_page_text(text) if text.lstrip().startswith("<") else text))
    return _object_details(content) if isinstance(content, dict) else ErrorDetails(_words(content))


def sent_value(field: str, params: Iterable[tuple[str, str]], body: bytes | None) -> object:
    """Return what a request has at the path *field*, such as `query.limit`, or None."""
    given: dict[str, str] = {}
    for name, text in params:
        given[name] = f"{given[name]},{text}" if name in given else text
    if field in given:
        return given[field]
    try:
        content = msgspec.json.decode(body or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for name in field.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def shown_words(words: str) -> str:
    """Return *words* from outside on one line, without control characters.

    The line has 300 characters at most.
    """
    return shortened(printable(one_line(words)).strip(), MAX_WORDS)


def _object_details(content: dict[str, Any]) -> ErrorDetails:
    """Return the details in a JSON object: undocumented keys make the words."""
    field, value, allowed, nearest = (content.get(name) for name in _FIELD_KEYS)
    rest = {name: part for name, part in content.items() if name != "error" or str(part) not in _CODE_WORDS}
    if not isinstance(field, str):
        return ErrorDetails(_words(rest), is_sentence=_is_sentence(rest))
    rest = {name: part for name, part in rest.items() if name not in _FIELD_KEYS}
    return ErrorDetails(
        _words(rest),
        is_sentence=_is_sentence(rest),
        field=field,
        value=value,
        allowed=[name for name in allowed if isinstance(name, str)] if isinstance(allowed, list) else (),
        did_you_mean=nearest if isinstance(nearest, str) else None,
    )


def _is_sentence(content: dict[str, Any]) -> bool:
    return content.keys() == {"message"} and isinstance(content["message"], str)


def _words(content: Any) -> str:
    """Return decoded JSON as text: a sentence, then the rest as JSON.

    Objects and lists around a single sentence are left away.
    """
    while True:
        match content:
            case str():
                return content
            case None | {} | [] if not content:
                return ""
            case [str() | dict() | list() as only]:
                content = only
            case dict() if len(content) == 1 and (only := _wrapped(content)) is not None:
                content = only
            case dict() if sentence := _sentence_key(content):
                rest = {name: part for name, part in content.items() if name != sentence and part not in _EMPTY}
                return f"{content[sentence]} {_json(rest)}" if rest else str(content[sentence])
            case _:
                return _json(content)


def _wrapped(content: dict[str, Any]) -> Any:
    """Return the value of an object whose one key says nothing, such as `error`, else None."""
    ((name, value),) = content.items()
    return value if name.lower() in _WRAPPER_KEYS and isinstance(value, str | dict | list) else None


def _sentence_key(content: dict[str, Any]) -> str | None:
    """Return the key of *content* that has the most telling sentence, or None."""
    names = {name.lower(): name for name, value in reversed(content.items()) if isinstance(value, str) and value}
    return next((names[name] for name in _SENTENCE_KEYS if name in names), None)


def _json(content: object) -> str:
    return msgspec.json.encode(content).decode()


def _masked(content: Any, mask: Mask) -> Any:
    """Return decoded JSON with *mask* applied to all its texts."""
    match content:
        case str():
            return mask(content)
        case list():
            return [_masked(part, mask) for part in content]
        case dict():
            return {mask(name): _masked(part, mask) for name, part in content.items()}
    return content


def _decoded(body: bytes, content_type: str) -> str:
    """Return *body* as text, in the charset of *content_type* or as UTF-8.

    Bytes that are not text become the replacement character.
    """
    found = _CHARSET.search(content_type)
    try:
        return body.decode(found[1] if found else "utf-8-sig", errors="replace")
    except (LookupError, UnicodeError):  # no such charset
        return body.decode("utf-8-sig", errors="replace")


def _page_text(page: str) -> str:
    """Return the visible text of HTML or XML, without a heading that repeats the title."""
    pieces = (piece.strip() for piece in _TAG.split(_HIDDEN.sub(" ", page[:_PAGE_CHARS])))
    return html.unescape(" ".join(text for text, _ in groupby(filter(None, pieces))))
