"""The exceptions for error responses of a service. Wire 2.12, Refusals."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gamelens.errors import BadQuery, ServiceError

_LIST_CALLS: Final = {name: f"lens.{name.removesuffix('s')}s(over=...)" for name in ("game", "games", "studios")}


class ErrorDetails(msgspec.Struct):
    """The details in the body of an error response. Every field may be missing.

    Attributes:
        field, value: the invalid field of the query and its value.
        message: a text for people.
        allowed: the allowed values.
        did_you_mean: the nearest allowed value.
    """

    field: str | None = None
    value: Any = None
    message: str | None = None
    allowed: list[str] = []
    did_you_mean: str | None = None

    @property
    def text(self) -> str:
        """The text for people, or an empty string."""
        return self.message or ""

    def bad_query(self, status: int) -> BadQuery:
        """Return the `BadQuery` for these fields."""
        if listed := _LIST_CALLS.get(self.field or ""):
            return BadQuery(self.field or "", self.value, f"is no id that the service knows: {listed} has them")
        error = BadQuery(self.field or "request", self.value, f"is refused by the service ({status})", self.allowed)
        error.did_you_mean = self.did_you_mean or error.did_you_mean
        if self.message:
            error.args = (self.message,)
        return error


def error_details(body: bytes) -> ErrorDetails:
    """Return the details in *body*, all missing if it is not JSON."""
    try:
        return msgspec.json.decode(body, type=ErrorDetails)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ErrorDetails()


def error_for(status: int, body: bytes) -> BadQuery | ServiceError:
    """Return the exception for an error response.

    `BadQuery` for 400, 413 and 422, else `ServiceError`.
    """
    details = error_details(body)
    if status in (400, 413, 422):
        return details.bad_query(status)
    return ServiceError(status, details.text or "no reason given")
