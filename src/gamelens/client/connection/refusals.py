"""The failure that an error response stands for: key, rate, redirect, query or service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from gamelens.client.connection.error_responses import Mask, error_details, error_for, shown_words
from gamelens.errors import AuthError, GamelensError, RateLimited, ServiceError

TRANSIENT_STATUSES: Final = frozenset({429, 502, 503, 504})


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
        says = f": {details.text}" if details.text else ""
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
            return max(0.0, float(header)) if header.strip().isdigit() else self._until(header)
        except ValueError:
            return None

    def _until(self, date: str) -> float:
        moment = parsedate_to_datetime(date)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - self._now())
