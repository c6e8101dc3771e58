"""The errors of gamelens, as a tree.

    GamelensError
    ├── Refused                 the same query will fail again
    │   ├── AuthError           the service does not know the key
    │   ├── BadQuery            a field has a value that is not allowed
    │   ├── NotAdditive         parts cannot be added up to one number
    │   ├── NotRecorded         a replay has no answer to this request
    │   ├── NotYetAvailable     the interval is not, or not all, processed yet
    │   ├── PartialResult       some requests failed; holds the other rows
    │   └── Truncated           an answer is as long as the limit: there may be more
    └── Retryable               the same query may work later; the client already retried
        ├── RateLimited         the service answered 429 for longer than we may wait
        ├── ServiceError        the service sent an answer that is against its contract
        └── Unreachable         there was no answer

Every message names the value, the rule and the next step. Errors pickle, so that they arrive from a worker process too.
A notebook shows the message, the nearest valid call and the line; `full_traceback()` prints all the rest.
"""

from __future__ import annotations

import ast
import linecache
import os
import pickle
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copyreg import __newobj__  # type: ignore[attr-defined]
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from msgspec import UNSET

from gamelens._text import escape_unprintable

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "AuthError",
    "BadQuery",
    "GamelensError",
    "NotAdditive",
    "NotRecorded",
    "NotYetAvailable",
    "PartialResult",
    "RateLimited",
    "Refused",
    "Retryable",
    "ServiceError",
    "Truncated",
    "Unreachable",
    "full_traceback",
]

_NAMED_GAPS = 3
_CLIP: Final = 'when_unavailable="clip"'
Object = TypeVar("Object")
_PACKAGE: Final = str(Path(__file__).parent) + os.sep


def no_such_name(
    owner: str, names: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> Callable[[str], NoReturn]:
    """Return what `__getattr__` of *owner* does with a name that it does not have: the nearest of *names* is suggested.

    *elsewhere* has names that are looked for here, each with how it is written. A name that begins with `_` is one that
    other programs look for, and gets Python's own words.
    """

    def refuse(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"{owner} has no attribute {name!r}")
        known = [known_name for known_name in names if known_name[0] != "_"]
        moved = dict(elsewhere or {})
        near = name if name in moved else next(iter(get_close_matches(name, [*known, *moved], n=1, cutoff=0.6)), "")
        raise NoSuchName("name", name, f"does not exist in {owner}", known, meant=moved.get(near))

    return refuse


def suggests_names(class_: type[Object]) -> type[Object]:
    """Let a misspelt attribute of *class_*, whose objects users hold, suggest the nearest, as misspelt arguments do."""

    def refuse(self: object, name: str) -> NoReturn:
        names = [] if name.startswith("_") else [*dir(type(self)), *getattr(self, "__dict__", ())]
        no_such_name(type(self).__name__, names)(name)

    class_.__getattr__ = refuse  # type: ignore[attr-defined]  # so type checkers still find a name that does not exist
    return class_


@suggests_names
class GamelensError(Exception):
    """Base class of all errors that gamelens raises deliberately."""

    def amended(self, call: str) -> str:
        """Return *call*, the source that failed, corrected, or "" if the correction is unknown."""
        return ""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the message, the nearest valid call, and the line."""
        where, call = _raised_at(self.__traceback__)
        valid = self.amended(call) if call else ""
        lines = [f"{type(self).__name__}: {self}", f"Try: {valid}" if valid else "", where]
        return [escape_unprintable(part) for line in lines for part in line.splitlines()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the error.

        The copy is made without `__init__`, whose arguments `Exception` does not keep.
        """
        return __newobj__, (type(self), *self.args), vars(self)


class Refused(GamelensError):
    """Base class of errors that the same query will raise again."""


class Retryable(GamelensError):
    """Base class of errors that may not occur when the same query is tried later."""


class AuthError(Refused):
    """The service does not know the key."""


class BadQuery(Refused):
    """A field has a value that is not allowed.

    Args:
        value: `msgspec.UNSET` if there is none, which the attribute *value* shows as None.
        rule: the rule it breaks, as half a sentence ("must be 1 to 30000").
        name: the text to compare with *allowed* for a suggestion, if it is not the value.
        meant: the suggestion, where it is known and not to be found among *allowed*.
    """

    def __init__(
        self,
        field: str,
        value: object,
        rule: str,
        allowed: Iterable[str] = (),
        *,
        name: str | None = None,
        meant: str | None = None,
    ) -> None:
        self.field = field
        self.is_missing = value is UNSET
        self.value = None if self.is_missing else value
        is_plain = not isinstance(field, str) or (repr(field)[1:-1] == field and '"' not in field)
        self.rule = rule if is_plain else rule.replace(f'"{field}"', repr(field))  # which a step of the rule spells
        self.allowed = tuple(allowed)
        self.name = value if name is None else name
        similar = get_close_matches(self.name, self.allowed, n=1, cutoff=0.6) if isinstance(self.name, str) else []
        self.did_you_mean = meant or next(iter(similar), None)
        super().__init__(self.sentence())

    def amended(self, call: str) -> str:
        """Return *call* with the suggestion.

        "" without one, or where the call does not spell the wrong text. A suggestion with quotation marks replaces the
        whole literal.
        """
        if not self.did_you_mean:
            return ""
        wrong, right = re.escape(str(self.name)), self.did_you_mean
        named = re.sub(rf"(?<!\w){wrong}(?!\w)", lambda _: right, call)
        quoted = re.sub(rf"""(["']){wrong}\1""", lambda _: repr(right), call)
        return next((valid for valid in (named, quoted) if valid != call and _is_expression(valid)), "")

    def sentence(self, show: Callable[[object], str] = repr) -> str:
        """Return the message, with the value as *show* writes it."""
        shown = "" if self.is_missing else f" = {show(self.value)}"
        hint = f" Did you mean `{self.did_you_mean}`?" if self.did_you_mean else ""
        names = f" Allowed: {', '.join(self.allowed)}." if self.allowed and not hint else ""
        return escape_unprintable(f"{self.field}{shown} {self.rule}.{hint}{names}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the error, with the text of a value that cannot be pickled itself."""
        make, arguments, state = super().__reduce__()
        return make, arguments, {name: _picklable(value) for name, value in state.items()}


class NoSuchName(BadQuery, AttributeError):  # type: ignore[misc]  # both have a name
    """A name that an object or a module does not have."""


class NotAdditive(Refused):
    """Parts of *metric* cannot be added up to one number. *use* is the query that returns the number instead."""

    def __init__(self, metric: str, use: str) -> None:
        self.metric = metric
        self.use = use
        super().__init__(f"{metric} cannot be added up over pieces. Use {use}")


class NotRecorded(Refused):
    """A replay holds no answer to the request *asked*. *nearest* is the most similar one that was recorded."""

    def __init__(self, asked: str, nearest: str | None) -> None:
        self.asked = asked
        self.nearest = nearest
        hint = f" The most similar recorded request is {nearest}." if nearest else ""
        super().__init__(f"no answer is recorded for {asked}.{hint} Client(record=DIR) asks the service and records it")


NO_DATA: Final = "the service has no data yet. Ask again when its first events are processed"
"""Why nothing is available of a service that never processed an event."""


class NotYetAvailable(Refused):
    """The requested interval is unavailable, or available only in part.

    *tried* is the value of `when_unavailable`, and *asked* may be an ISO 8601 text. *whole* is the bucket of a query
    for whole buckets alone, and none is available.
    """

    def __init__(self, asked: object, available: object, *, tried: str = "raise", whole: str | None = None) -> None:
        self.asked = asked
        self.available = available
        self.tried = tried
        self.whole = whole
        self._can_clip = False
        if _is_empty(available):
            super().__init__(f"{asked} is not available: {NO_DATA}")
            return
        if whole:
            rule = f"no whole {whole} of {asked} is available: the service has {available}"
            super().__init__(f"{rule}. Ask for shorter buckets, or again when a {whole} is complete")
            return
        is_past, is_partly = _relation(asked, available)
        can_clip = is_partly and tried != "clip"
        extent = "not all available" if can_clip else "not available at all"
        limit = " and nothing earlier" if is_past else ""
        steps = ["Ask for less" if can_clip else "Ask for another interval"]
        if is_past and not is_partly:  # nothing is gained by waiting for the past
            steps = ["Ask for a later interval"]
        else:
            steps += ["wait longer with deadline_s="] if tried == "wait" and not is_past else []
            values = ['"clip"'] * can_clip + ['"wait"'] * (tried == "raise" and not is_past)
            steps += [f"pass when_unavailable={' or '.join(values)}"] if values else []
        *first, last = steps
        advice = f"{', '.join(first)}, or {last}" if first else last
        self._can_clip = _CLIP in advice
        super().__init__(f"{asked} is {extent}: the service has {available}{limit}. {advice}")

    def amended(self, call: str) -> str:
        """Return *call* cut to what is available, or "" if it would still be refused."""
        return with_argument(call, _CLIP) if self._can_clip else ""


class PartialResult(Refused):
    """Some requests of a query failed. The first failure is the cause of this error.

    Args:
        frame: the rows of the other requests, with their receipt. The same query again requests what is not cached.
        gaps: each as `{"metric", "interval", "scope", "error"}`.
    """

    def __init__(self, frame: DataFrame, gaps: Sequence[dict[str, Any]]) -> None:
        self.frame = frame
        self.gaps = list(gaps)
        pieces = f"{len(gaps)} pieces are missing" if len(gaps) > 1 else "1 piece is missing"
        came = "The rest of the answer is in .frame" if len(frame) else "No rows were returned"
        super().__init__(f"{pieces}: {_gaps_text(self.gaps)}. {came}; the same query again requests the rest")


class Truncated(Refused):
    """An answer is as long as the limit, so there may be more values than it shows."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(
            f"an answer holds {limit} values, the most the service gives: there may be more. "
            "Narrow it with where=, games= or a shorter interval, or pass top= to ask for the largest only"
        )


class RateLimited(Retryable):
    """The service kept answering 429 for longer than the client may wait.

    *retry_after* is the seconds it asked to wait, or None if it did not say.
    """

    def __init__(self, retry_after: float | None, message: str) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class ServiceError(Retryable):
    """The service sent an answer that violates its contract, with the HTTP *status*."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(f"the service answered {status}: {message}")


class Unreachable(Retryable):
    """The service did not answer: it has no such address, cannot be reached or is too slow."""


def _gaps_text(gaps: Sequence[dict[str, Any]]) -> str:
    """Return the first *gaps* in words: metric, interval, scope and each error once."""
    errors = [str(gap["error"]).rstrip(".") for gap in gaps]
    is_same = len(set(errors)) == 1
    texts = []
    for gap, error in zip(gaps[:_NAMED_GAPS], errors, strict=False):
        scope = ", ".join(f"{name} = {value}" for name, value in (gap["scope"] or {}).items())
        where = f" ({scope})" if scope else ""
        texts.append(f"{gap['metric']} in {gap['interval']}{where}" + ("" if is_same else f": {error}"))
    texts += [f"and {len(gaps) - _NAMED_GAPS} more, see .gaps"] if len(gaps) > _NAMED_GAPS else []
    return escape_unprintable("; ".join(texts) + (f": {errors[0]}" if is_same else ""))


def full_traceback() -> None:
    """Print the whole traceback of the last error that reached the prompt or the notebook."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        traceback.print_exception(error)


def _raised_at(trace: TracebackType | None) -> tuple[str, str]:
    """Return the last line of the user's code in *trace*, in words, and its call."""
    innermost: TracebackType | None = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(_PACKAGE) and innermost is not None:
            break
        if not file.startswith(_PACKAGE) and "site-packages" not in file:
            innermost = trace
        trace = trace.tb_next
    if innermost is None:
        return "", ""
    code = innermost.tb_frame.f_code
    file = "this cell" if "ipykernel_" in code.co_filename or "<ipython" in code.co_filename else code.co_filename
    where = f"(line {innermost.tb_lineno} of {file}; gl.errors.full_traceback() shows all)"
    # The place of the call: first and last line, first and last column in bytes.
    place = next(islice(code.co_positions(), innermost.tb_lasti // 2, None), None)
    lines = linecache.getlines(code.co_filename)
    if place is None or not lines or None in place:
        return where, ""
    first, last, start, end = (number or 0 for number in place)
    encoded = [line.encode() for line in lines[first - 1 : last]]
    encoded[-1] = encoded[-1][:end]  # before the start, which may be on the same line
    encoded[0] = encoded[0][start:]
    return where, b"".join(encoded).decode()


def with_argument(call: str, argument: str) -> str:
    """Return *call* with *argument* as its last, or "" if that is not a valid source."""
    inside = call.rstrip().removesuffix(")").rstrip().removesuffix(",")
    valid = f"{inside}{'' if inside.endswith('(') else ', '}{argument})"
    return valid if call.rstrip().endswith(")") and _is_expression(valid) else ""


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


@contextmanager
def extra_named(what: str, extra: str = "lab,sandbox") -> Iterator[None]:
    """Name the *extra* to install where *what* misses a package.

    Raises:
        ModuleNotFoundError: it does.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "gamelens") or "pip install" in str(error):
            raise
        hint = f"{what} needs {package}: pip install 'gamelens[{extra}]'"
        raise ModuleNotFoundError(hint, name=package) from None


def emit_warning(text: str) -> None:
    """Emit *text* as a UserWarning that names the first line outside gamelens."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _is_empty(available: Any) -> bool:
    """Return whether *available* is an interval without length, as before the first events."""
    return getattr(available, "start", 0) == getattr(available, "end", 1)


def _relation(requested: Any, available: Any) -> tuple[bool, bool]:
    """Return whether *requested* begins before *available*, and whether they overlap."""
    try:
        return requested.start < available.start, bool(requested & available)
    except (AttributeError, TypeError):  # texts, whose relation is not known
        return False, True


def _picklable(value: object) -> object:
    """Return *value*, or its text if it cannot be pickled."""
    try:
        pickle.dumps(value)
    except Exception:  # a value of any type, whose pickling may raise anything
        return repr(value)
    return value


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
