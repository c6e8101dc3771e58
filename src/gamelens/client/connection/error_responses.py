"""The failures of error responses, in the service's own words (Wire 2.12, Refusals).

Only the sandbox is known to answer with the documented object. Another service, or a proxy before it, answers JSON of
any keys, a page of HTML, or text: what is readable in it becomes part of the error.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, get_args

import msgspec

from gamelens._text import one_line, printable, shortened
from gamelens.errors import BadQuery, ServiceError
from gamelens.wire.limits import KIB
from gamelens.wire.results import ErrorName

TRANSIENT_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
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


class ErrorDetails(msgspec.Struct, frozen=True):
    """The content of an error response. Every part may be missing.

    *words* are for people, as the service wrote them, and *is_sentence* says whether they are the documented `message`
    and nothing else.
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

    The charset is the one that *content_type* names, else UTF-8, and what is not text becomes the replacement
    character. *mask* removes what must not be shown, such as a key that the service quotes.
    """
    charset = _CHARSET.search(content_type)
    try:
        text = body.decode(charset[1] if charset else "utf-8-sig", errors="replace")
    except (LookupError, UnicodeError):  # no such charset
        text = body.decode("utf-8-sig", errors="replace")
    try:
        content = _masked(msgspec.json.decode(text), mask)
    except (msgspec.DecodeError, RecursionError):
        if text.lstrip().startswith("<"):
            # The visible text of HTML or XML, without a heading that repeats the title.
            pieces = filter(None, (piece.strip() for piece in _TAG.split(_HIDDEN.sub(" ", text[:_PAGE_CHARS]))))
            text = html.unescape(" ".join(piece for piece, _ in groupby(pieces)))
        return ErrorDetails(mask(text))
    if not isinstance(content, dict):
        return ErrorDetails(_words(content))
    # Undocumented keys make the words.
    field, value, allowed, nearest = (content.get(name) for name in _FIELD_KEYS)
    has_field = isinstance(field, str)
    rest = {
        name: part
        for name, part in content.items()
        if (name != "error" or str(part) not in _CODE_WORDS) and not (has_field and name in _FIELD_KEYS)
    }
    words, is_sentence = _words(rest), rest.keys() == {"message"} and isinstance(rest["message"], str)
    if not has_field:
        return ErrorDetails(words, is_sentence)
    allowed = [name for name in allowed if isinstance(name, str)] if isinstance(allowed, list) else ()
    return ErrorDetails(words, is_sentence, field, value, allowed, nearest if isinstance(nearest, str) else None)


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
                return str(content[sentence]) + (f" {msgspec.json.encode(rest).decode()}" if rest else "")
            case _:
                return msgspec.json.encode(content).decode()


def _wrapped(content: dict[str, Any]) -> Any:
    """Return the value of an object whose one key says nothing, such as `error`, else None."""
    ((name, value),) = content.items()
    return value if name.lower() in _WRAPPER_KEYS and isinstance(value, str | dict | list) else None


def _sentence_key(content: dict[str, Any]) -> str | None:
    """Return the key of *content* that has the most telling sentence, or None."""
    names = {name.lower(): name for name, value in reversed(content.items()) if isinstance(value, str) and value}
    return next((names[name] for name in _SENTENCE_KEYS if name in names), None)


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
