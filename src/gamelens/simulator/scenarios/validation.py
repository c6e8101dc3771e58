"""Tables of a scenario that check themselves: the bounds stand in the types of their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import msgspec

from gamelens.errors import BadQuery, suggests_names

Check = Callable[[str, Any], None]
"""Raises `InvalidScenarioValue` if the value of this key is not allowed."""


class InvalidScenarioValue(BadQuery, ValueError):
    """A value that a scenario must not have.

    It is a ValueError too, because msgspec then adds the path of the table to its message.
    """


class InvalidScenario(BadQuery):
    """A scenario file that cannot be played: the message begins with the name of *file*."""

    def __init__(self, file: str, field: str, value: object, rule: str, allowed: Iterable[str] = ()) -> None:
        super().__init__(field, value, rule, allowed)
        self.args = (f"{file}: {self.args[0]}",)


class Above(msgspec.Struct, frozen=True):
    """The check of a number, more than *least*."""

    least: float

    def __call__(self, key: str, value: float) -> None:
        """Raise `InvalidScenarioValue` for another number."""
        if not value > self.least:
            raise InvalidScenarioValue(key, value, f"must be more than {self.least}")


@suggests_names
class Within(msgspec.Struct, frozen=True):
    """The check of a number, *least* to *most*."""

    least: float
    most: float

    def __call__(self, key: str, value: float) -> None:
        """Raise `InvalidScenarioValue` for another number."""
        if not self.least <= value <= self.most:
            raise InvalidScenarioValue(key, value, f"must be {self.least} to {self.most}")


@suggests_names
class Characters(msgspec.Struct, frozen=True):
    """The check of a name, 1 to *most* characters."""

    most: int

    def __call__(self, key: str, value: str) -> None:
        """Raise `InvalidScenarioValue` for another name."""
        if not 1 <= len(value) <= self.most:
            raise InvalidScenarioValue(key, value, f"must be 1 to {self.most} characters")


check_positive = Above(0)


def check_shares(key: str, shares: Mapping[str, float]) -> None:
    """Check that a table of shares is not empty, and each more than 0."""
    if not shares:
        raise InvalidScenarioValue(key, {}, "must have at least one")
    for name, share in shares.items():
        check_positive(f"{key}.{name}", share)


def check_one_of(key: str, value: str, allowed: Iterable[str]) -> None:
    """Check that *value* is among *allowed*, which the error lists, or suggests the nearest of."""
    options = list(allowed)
    if value not in options:
        raise InvalidScenarioValue(key, value, "is not in the scenario", options)


Share = Annotated[float, Within(0, 1)]
Positive = Annotated[float, check_positive]
Name = Annotated[str, Characters(64)]
Day = Annotated[int, Within(0, 3660)]
Days = Annotated[int, Within(1, 3660)]


@suggests_names
class ScenarioTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a scenario file, which refuses unknown keys and values that its fields do not allow.

    *at* is the start of its keys in errors.
    """

    at: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, check in _checks(type(self)).items():
            if (value := getattr(self, name)) is not None:
                check(self.at + name, value)


@cache
def _checks(table: type[ScenarioTable]) -> dict[str, Check]:
    """Return the check of each field whose type, or that without None, is annotated with one."""
    checks: dict[str, Check] = {}
    for name, hint in get_type_hints(table, include_extras=True).items():
        for type_ in (hint, *get_args(hint)):
            if get_origin(type_) is Annotated:
                checks[name] = get_args(type_)[1]
    return checks
