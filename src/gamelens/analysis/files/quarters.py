"""Quarters as people write them: Q4 2026, 2026-Q4, 1. Quartal 2026, 4º trimestre 2026, I kw. 2026, 2026年第4四半期.

`1. KW 2026` is a calendar week in German and a quarter in Polish, and is none here; `I kw. 2026` is one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from itertools import product
from typing import Final

from gamelens._text import without_accents

_NUMBER: Final = {"i": 1, "ii": 2, "iii": 3, "iv": 4}
_WORD: Final = (
    "quarter|quartal|quartale|trimestre|trimestr|trimester|kwartal|kwartaal|kwart|kvartal|kvartaali|kv|qtr|ceyrek|квартал"
    "|кв|τριμηνο|quy|kuartal|triwulan|negyedev|ctvrtleti|stvrtrok|רבעון|ไตรมาส|तिमाही"
)
_BEHIND_NUMBER: Final = r"(?:\.|o|a|e|er|re|eme|st|nd|rd|th|[-.]?[йя]|\s)*"
_YEAR: Final = r"(?P<year>20\d\d|'?\d\d(?!\d))"
_BETWEEN: Final = r"(?:[\s,./_-]|de|del|di|do|of)*"
_EAST_ASIAN: Final = r"第? ?(?P<number>[1-4一二三四]) ?(?:四半期|季度|季|분기)"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?:(?:{_WORD})\.? ?|[qtk] ?)(?P<number>[1-4]|i{{1,3}}|iv){_BETWEEN}{_YEAR}",
        rf"(?P<number>[1-4]|i{{1,3}}|iv){_BEHIND_NUMBER}(?:{_WORD}|q|t|(?<=[iv] )kw|(?<=[iv])kw)\.?{_BETWEEN}{_YEAR}",
        rf"{_YEAR}{_BETWEEN}(?:(?:{_WORD})\.? ?|[qtk])(?P<number>[1-4]|i{{1,3}}|iv)",
        rf"{_YEAR}{_BETWEEN}(?P<number>[1-4]|i{{1,3}}|iv){_BEHIND_NUMBER}(?:{_WORD}|q|t|(?<=[iv] )kw)\.?",
        rf"{_YEAR} ?[年년]? ?[의度]?{_EAST_ASIAN}",
    )
)
_IDEOGRAPHS: Final = {"一": 1, "二": 2, "三": 3, "四": 4}


def quarters_of(texts: Sequence[str]) -> list[tuple[date, date]] | None:
    """Return the first day of each quarter that *texts* name and of the next one, None if one names something else."""
    found = []
    for text in texts:
        if (quarter := _quarter(text)) is None:
            return None
        found.append(quarter)
    return found or None


def _quarter(text: str) -> tuple[date, date] | None:
    folded = unicodedata.normalize("NFC", without_accents(text.casefold()))
    folded = " ".join(folded.translate({ord("ı"): "i", ord("ł"): "l", ord("’"): "'"}).split())
    for written, form in product((folded, " ".join(text.casefold().split())), _FORMS):
        if (match := form.fullmatch(written)) is None:
            continue
        said = match["number"]
        number = _NUMBER.get(said) or _IDEOGRAPHS.get(said) or int(said)
        year = int(match["year"].strip("'")) % 2000 + 2000
        return date(year, 3 * number - 2, 1), date(year + number // 4, 3 * number % 12 + 1, 1)
    return None
