"""What a scenario may not hold: the checks its tables share, and the error that says where in the file it stands."""

from __future__ import annotations

from collections.abc import Iterable

from gamelens.errors import BadQuery


class InvalidScenarioValue(BadQuery, ValueError):
    """A value a scenario may not have. A ValueError too: the decoder then adds the table it was found in."""


class InvalidScenario(BadQuery):
    """A scenario file that cannot be played.

    Args:
        where: the file and the line.
        field: the key, from the top of the file.
        value: what it held.
        rule: the rule it breaks, as half a sentence.
        allowed: what it may be, where that can be listed.
        name: what to look for among *allowed*, where it is not the value.
    """

    def __init__(
        self,
        where: str,
        field: str,
        value: object,
        rule: str,
        allowed: Iterable[str] = (),
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(field, value, rule, allowed, name=name)
        self.where = where
        self.args = (f"{where}: {self.args[0]}",)


def check_positive(key: str, value: float) -> None:
    """Refuse a *value* of 0 or less."""
    if not value > 0:
        raise InvalidScenarioValue(key, value, "must be more than 0")


def check_within(key: str, value: float, least: float, most: float) -> None:
    """Refuse a *value* outside *least* to *most*."""
    if not least <= value <= most:
        raise InvalidScenarioValue(key, value, f"must be {least} to {most}")


def check_text(key: str, value: str) -> None:
    """Refuse a *value* that no event could carry as a name."""
    if not 1 <= len(value) <= 64:
        raise InvalidScenarioValue(key, value, "must be 1 to 64 characters")


def check_shares(key: str, shares: dict[str, float]) -> None:
    """Refuse a table of shares that is empty or holds one of 0 or less."""
    if not shares:
        raise InvalidScenarioValue(key, {}, "must hold at least one")
    for name, share in shares.items():
        check_positive(f"{key}.{name}", share)


def check_one_of(key: str, value: str, allowed: Iterable[str]) -> None:
    """Refuse a *value* that is not *allowed*; the error lists them, or names the nearest."""
    options = list(allowed)
    if value not in options:
        raise InvalidScenarioValue(key, value, "is not one of those here", options)
