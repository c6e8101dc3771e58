"""The checks that scenario tables share, and the errors for invalid values."""

from __future__ import annotations

from collections.abc import Iterable

from gamelens.errors import BadQuery


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
    """Raise `InvalidScenarioValue` if *value* is 0 or less."""
    if not value > 0:
        raise InvalidScenarioValue(key, value, "must be more than 0")


def check_within(key: str, value: float, least: float, most: float) -> None:
    """Raise `InvalidScenarioValue` if *value* is outside *least* to *most*."""
    if not least <= value <= most:
        raise InvalidScenarioValue(key, value, f"must be {least} to {most}")


def check_text(key: str, value: str) -> None:
    """Raise `InvalidScenarioValue` if *value* is not a name of 1 to 64 characters."""
    if not 1 <= len(value) <= 64:
        raise InvalidScenarioValue(key, value, "must be 1 to 64 characters")


def check_shares(key: str, shares: dict[str, float]) -> None:
    """Raise `InvalidScenarioValue` if a table of shares is empty or one is 0 or less."""
    if not shares:
        raise InvalidScenarioValue(key, {}, "must hold at least one")
    for name, share in shares.items():
        check_positive(f"{key}.{name}", share)


def check_one_of(key: str, value: str, allowed: Iterable[str]) -> None:
    """Raise `InvalidScenarioValue` if *value* is not among *allowed*.

    The error lists the allowed values, or suggests the nearest.
    """
    options = list(allowed)
    if value not in options:
        raise InvalidScenarioValue(key, value, "is not in the scenario", options)
