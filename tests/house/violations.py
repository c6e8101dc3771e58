"""Places that break a rule of the house, and how a test reports them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest


class Violation(NamedTuple):
    """One place that breaks a rule.

    Attributes:
        room: the room it is in; "gamelens" is the top level.
        text: the place and what is wrong there.
    """

    room: str
    text: str


def hold(rule: str, violations: Iterable[Violation]) -> None:
    """Fail with every place that breaks *rule*.

    Raises:
        Failed: there is one.
    """
    places = sorted(f"  {violation.room}: {violation.text}" for violation in violations)
    if places:
        pytest.fail("\n".join([f"{rule}: {len(places)} places", *places]), pytrace=False)
