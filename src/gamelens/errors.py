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

Every message names the value, the rule and the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

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
]

_NEXT_STEPS = {
    "raise": 'Ask for less, or pass when_unavailable="clip" or "wait"',
    "clip": "Ask for another interval",
    "wait": 'Ask for less, wait longer with deadline_s=, or pass when_unavailable="clip"',
}


class GamelensError(Exception):
    """Base class of all errors that gamelens raises deliberately."""


class Refused(GamelensError):
    """Base class of errors that the same query will raise again."""


class Retryable(GamelensError):
    """Base class of errors that may not occur when the same query is tried later."""


class AuthError(Refused):
    """The service does not know the key."""


class BadQuery(Refused):
    """A field has a value that is not allowed.

    Args:
        field: its name in the request.
        value: its value; `msgspec.UNSET` if it has none, which the attribute *value* shows as None.
        rule: the rule it breaks, as half a sentence ("must be 1 to 30000").
        allowed: the allowed values, if they can be listed.
        name: the text to compare with *allowed* for a suggestion, if it is not the value.
    """

    def __init__(
        self, field: str, value: object, rule: str, allowed: Iterable[str] = (), *, name: str | None = None
    ) -> None:
        self.field = field
        self.is_missing = value is UNSET
        self.value = None if self.is_missing else value
        self.rule = rule
        self.allowed = tuple(allowed)
        self.did_you_mean = _nearest(value if name is None else name, self.allowed)
        super().__init__(self.sentence())

    def sentence(self, show: Callable[[object], str] = repr) -> str:
        """Return the message, with the value as *show* writes it."""
        shown = "" if self.is_missing else f" = {show(self.value)}"
        hint = f" Did you mean `{self.did_you_mean}`?" if self.did_you_mean else ""
        names = f" Allowed: {', '.join(self.allowed)}." if self.allowed and not hint else ""
        return escape_unprintable(f"{self.field}{shown} {self.rule}.{hint}{names}")


class NotAdditive(Refused):
    """Parts cannot be added up to one number.

    Args:
        metric: the metric that cannot be added up.
        use: the query that returns the number instead.
    """

    def __init__(self, metric: str, use: str) -> None:
        self.metric = metric
        self.use = use
        super().__init__(f"{metric} cannot be added up over pieces. Use {use}")


class NotRecorded(Refused):
    """A replay holds no answer to this request.

    Args:
        asked: the request.
        nearest: the recorded request that is most similar, or None if nothing is recorded.
    """

    def __init__(self, asked: str, nearest: str | None) -> None:
        self.asked = asked
        self.nearest = nearest
        hint = f" The nearest that is: {nearest}." if nearest else ""
        super().__init__(f"no answer is recorded for {asked}.{hint} Record it: Client(record=DIR) asks the service")


class NotYetAvailable(Refused):
    """The requested interval is not, or not all, available.

    Args:
        asked: the requested interval, ISO 8601.
        available: the interval the service has, ISO 8601.
        tried: the value of `when_unavailable`: "raise", "clip" or "wait".
    """

    def __init__(self, asked: object, available: object, *, tried: str = "raise") -> None:
        self.asked = asked
        self.available = available
        self.tried = tried
        is_not = "is not available at all" if tried == "clip" else "is not all available"
        super().__init__(f"{asked} {is_not}: the service has {available}. {_NEXT_STEPS[tried]}")


class PartialResult(Refused):
    """Some requests of a query failed. The first failure is the cause of this error.

    Args:
        frame: the rows of the other requests, with their receipt; `resume(frame)` requests the rest.
        gaps: what is missing, each as `{"metric", "interval", "scope", "error"}`.
    """

    def __init__(self, frame: DataFrame, gaps: Sequence[dict[str, Any]]) -> None:
        self.frame = frame
        self.gaps = list(gaps)
        first = self.gaps[0]
        pieces = f"{len(gaps)} pieces are missing, the first of them" if len(gaps) > 1 else "1 piece is missing:"
        why = str(first["error"]).rstrip(".")
        super().__init__(
            f"{pieces} {first['metric']} in {first['interval']}: {why}. "
            "What came is in .frame; client.resume(frame) asks for the rest"
        )


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

    Args:
        retry_after: seconds the service asked to wait, or None if it did not say.
        message: the text of the error.
    """

    def __init__(self, retry_after: float | None, message: str) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class ServiceError(Retryable):
    """The service sent an answer that is against its contract.

    Args:
        status: the HTTP status.
        message: what is wrong, often from the answer itself.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(f"the service answered {status}: {message}")


class Unreachable(Retryable):
    """There was no answer: no such address, no connection, or a timeout."""


def _nearest(value: object, allowed: tuple[str, ...]) -> str | None:
    if not isinstance(value, str):
        return None
    return next(iter(get_close_matches(value, allowed, n=1, cutoff=0.6)), None)
