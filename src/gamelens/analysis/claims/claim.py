"""The claim of a sentence: what it says of the data, as values beside the words.

A sentence that an analysis computes is judged by its claim: a bench compares it with what was planted, a report sorts
and counts claims, and a test needs no words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from gamelens.analysis.claims.findings import Direction


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


def paragraph(claims: Iterable[Claim]) -> str:
    """Return the sentences of all claims, each once."""
    return " ".join(dict.fromkeys(map(str, claims)))
