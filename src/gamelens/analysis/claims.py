"""The claim of a sentence: what it says of the data, as values beside the words.

A sentence that an analysis computes is judged by its claim: a bench compares it with what was planted, a report sorts
and counts claims, and a test needs no words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import pandas as pd

from gamelens._text import NumberKind

__all__ = ["Claim", "Direction", "KeyNumber", "clear_claims", "direction_of", "paragraph", "sentences"]

Direction = Literal["higher", "lower", "no clear difference", "unknown"]
"""The reading of an interval of a difference."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about the data, and the sentence that says it.

    Attributes:
        kind: the question, for instance "ecpm of networks" or "retention of builds".
        subject: the segment it is about, by dimension: {"ad_network": "unity", "country_code": "BR"}. Empty for the
            whole.
        direction: how the subject compares with what the words name. "no clear difference" if the interval holds both
            signs, "unknown" if the data cannot say, or if the words compare nothing (a level).
        size: the estimated difference in *unit*, NaN if no number was estimated.
        low, high: bounds of its 95 % interval, NaN like *size*.
        unit: the unit of *size*, for instance "ratio", "pp" or "USD".
        text: the sentence in plain text. Names in it come from outside: escape it for Markdown and HTML.
    """

    kind: str
    subject: Mapping[str, str] = msgspec.field(default_factory=dict)
    direction: Direction
    size: float = math.nan
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    text: str

    def __str__(self) -> str:
        return self.text


class KeyNumber(msgspec.Struct, frozen=True):
    """One number for the top of a page.

    Attributes:
        name: what it is, plain text.
        value: the number.
        kind: how it is written: "money", "share", "count" or "number".
        low, high: bounds of its 95 % interval, NaN for a number that is counted.
        change: its change as a ratio, 0.05 is 5 % more, NaN if it is not compared.
        change_low, change_high: bounds of the 95 % interval of the change, NaN if both sides are counted.
    """

    name: str
    value: float
    kind: NumberKind = "number"
    low: float = math.nan
    high: float = math.nan
    change: float = math.nan
    change_low: float = math.nan
    change_high: float = math.nan

    @classmethod
    def of(cls, claim: Claim, name: str, kind: NumberKind = "number") -> KeyNumber:
        """Return the level that *claim* states, with its interval."""
        return cls(name, claim.size, kind, claim.low, claim.high)

    @classmethod
    def compared(cls, name: str, value: float, before: float, kind: NumberKind = "number") -> KeyNumber:
        """Return a counted *value* with its change from *before*.

        The change is unknown where *before* is not above 0.
        """
        is_known = not (pd.isna(value) or pd.isna(before)) and before > 0
        return cls(name, value, kind, change=float(value / before - 1) if is_known else math.nan)


def direction_of(low: float, high: float, *, neutral: float = 0.0) -> Direction:
    """Return the direction that an interval carries, compared with *neutral*."""
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    if low > neutral:
        return "higher"
    return "lower" if high < neutral else "no clear difference"


def clear_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims that carry a direction."""
    return [claim for claim in claims if claim.direction in ("higher", "lower")]


def sentences(claims: Iterable[Claim], *, otherwise: str) -> str:
    """Return the sentences of the claims that carry a direction, or *otherwise* without any."""
    return " ".join(map(str, clear_claims(claims))) or otherwise


def paragraph(claims: Iterable[Claim]) -> str:
    """Return the sentences of all claims, each once."""
    return " ".join(dict.fromkeys(map(str, claims)))
