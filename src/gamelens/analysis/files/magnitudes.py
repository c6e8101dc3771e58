"""Words behind rounded numbers: 5.2K, 1,2 Mio., 3 Tsd., 2 lakh, 12万.

Some words are a thousand in one language and a million in another, such as mil and m, and Cr is a crore or a credit. A
sure word beside them tells which; else the analyst is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gamelens.errors import BadQuery

_WORDS: Final[dict[int, str]] = {
    3: "k tsd tys тыс mila ribu rb bin thousand thousands tausend 千 천",
    4: "万 萬 만",
    5: "lakh lakhs lac lacs",
    6: "mln mio млн mn mi mill milj million millions millionen millones milhões milhoes milioni jt juta 百万 백만",
    7: "crore crores 千万 천만",
    8: "億 亿 억",
    9: "bn mrd mld md mds млрд milliard milliarden miliardi",
}
_POWERS: Final = {word: power for power, words in _WORDS.items() for word in words.split()}
_UNSURE: Final = {
    "M": (6,),
    "m": (6, 3),
    "mm": (6, 9),
    "mil": (3, 6),
    "b": (9, 3),
    "t": (3, 12),
    "billion": (9, 12),
    "cr": (7, 0),
}
_TELLING: Final = {
    "m": {"k"},
    "b": {"k"},
    "mil": {"mi", "milhões", "milhoes", "millones"},
    "cr": {"lakh", "lakhs", "lac", "lacs"},
}
"""Words beside which an unsure one has its first meaning."""
_OF_EUROS: Final = re.compile("T(?:EUR|CHF|€)")


def word_pattern(stated: Iterable[str] = ()) -> str:
    """Return a pattern of all words, also the ones that an analyst states."""
    words = sorted({*_POWERS, *_UNSURE, *(word.casefold() for word in stated)}, key=len, reverse=True)
    return rf"(?i:{'|'.join(map(re.escape, words))})\.?(?![Rr])"


def power_of(word: str, unit: str, beside: Iterable[str], stated: Mapping[str, float]) -> tuple[int, ...]:
    """Return the powers of ten that a word may stand for, one if it is sure.

    Args:
        word: the word, as it is written.
        unit: what follows it: T€ are thousands.
        beside: the other words of the column.
        stated: the number that a word stands for by an argument.

    Raises:
        BadQuery: a stated number is no power of ten.
    """
    word = word.rstrip(".")
    folded = word.casefold()
    for name, number in stated.items():
        bare = name.rstrip(".")
        if word == bare or (len(word) > 1 and folded == bare.casefold()):  # M is not m
            digits = f"{number:.0f}"
            if number != float(digits) or digits.rstrip("0") != "1":
                raise BadQuery("magnitudes", number, f"is no power of ten, as {name} must be: 1000 or 1000000")
            return (len(digits) - 1,)
    if folded in _POWERS:
        return (_POWERS[folded],)
    if _OF_EUROS.fullmatch(word + unit):
        return (3,)
    others = {other.casefold().rstrip(".") for other in beside}
    possible = _UNSURE["M"] if word == "M" and "mm" not in others else _UNSURE[folded]
    return possible[:1] if _TELLING.get(folded, set()) & others else possible


def unsure_magnitude(name: str, text: str, word: str, powers: Iterable[int]) -> BadQuery:
    """Return the question about a number whose word is of several magnitudes."""
    steps = [f'magnitudes={{"{word}": {10**power}}}' for power in powers]
    rule = f"ends in {word}, which is of several magnitudes, and no other cell tells which: pass {' or '.join(steps)}"
    return BadQuery(name, text, rule)
