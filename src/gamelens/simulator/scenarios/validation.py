"""Tables of a scenario that check themselves: the bounds stand in the types of their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import msgspec

from gamelens.errors import BadQuery

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


def check_positive(key: str, value: float) -> None:
    """Check that *value* is more than 0."""
    if not value > 0:
        raise InvalidScenarioValue(key, value, "must be more than 0")


def within(least: float, most: float) -> Check:
    """Return the check of a number, *least* to *most*."""

    def check(key: str, value: float) -> None:
        if not least <= value <= most:
            raise InvalidScenarioValue(key, value, f"must be {least} to {most}")

    return check


def text_of(most: int) -> Check:
    """Return the check of a name, 1 to *most* characters."""

    def check(key: str, value: str) -> None:
        if not 1 <= len(value) <= most:
            raise InvalidScenarioValue(key, value, f"must be 1 to {most} characters")

    return check


def check_shares(key: str, shares: Mapping[str, float]) -> None:
    """Check that a table of shares is not empty, and each more than 0."""
    if not shares:
        raise InvalidScenarioValue(key, {}, "must hold at least one")
    for name, share in shares.items():
        check_positive(f"{key}.{name}", share)


def check_one_of(key: str, value: str, allowed: Iterable[str]) -> None:
    """Check that *value* is among *allowed*, which the error lists, or suggests the nearest of."""
    options = list(allowed)
    if value not in options:
        raise InvalidScenarioValue(key, value, "is not in the scenario", options)


Share = Annotated[float, within(0, 1)]
Positive = Annotated[float, check_positive]
Name = Annotated[str, text_of(64)]
Day = Annotated[int, within(0, 3660)]
Days = Annotated[int, within(1, 3660)]


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
