"""Words for value, and the conversions and purchases that they say the value of, in folded headers."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gamelens.analysis.outside_data.words.header_words import any_phrase, folded_header
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.analysis.outside_data.words.total_words import LEXICON

_VALUE: Final = topic_pattern("value")
_CONVERSIONS: Final = any_phrase(
    map(folded_header, [*LEXICON["conversions"]["words"], *LEXICON["converted"]["words"], *LEXICON["bought"]["words"]])
)
_PURCHASES: Final = topic_pattern("bought")
_COMPOUND: Final = re.compile(r"(?<!\w)(\w{3,}?)(?:wert|werte|waarde|waarden|vardet?|verdi|vaerdi|værdi|arvo)(?!\w)")
"""One word in German, Dutch, the languages of Scandinavia and Finnish: Kaufwert, Konversioarvo."""
_OF: Final = re.compile(
    r"(?<!\w)(?:of|with|by|for|de|del|des|da|das|do|dos|du|di|con|com|avec|a|mit|met|med|z|o|с|за|en)(?!\w)"
)
_ENGLISH: Final = frozenset({"value", "values"})
_NUMBER: Final = re.compile(r"(?<!\w)(?:number|numero|nombre|anzahl|count|liczba|aantal|antal)(?!\w)")
_POSTBACK: Final = re.compile(
    r"(?<!\w)(?:skan|skad|sk ad|skadnetwork|sk ad network|fine|coarse|postback|fein|grob)(?!\w)"
)


class ValueWords(NamedTuple):
    """Words for value in a header, their place, and the thing that has it: conversions, purchases, or "" for others."""

    phrase: str
    at: int
    thing: str


def value_in(folded: str) -> ValueWords | None:
    """Return the words for value in a header, None where it has none, or they only describe what is counted.

    Conversions of high value are a count, and so are high-value conversions.
    """
    if (compound := _COMPOUND.search(folded)) is not None:
        stems = (compound[1], compound[1].removesuffix("s"), compound[1].removesuffix("en"))
        if (thing := next((stem for stem in stems if _CONVERSIONS.fullmatch(stem)), None)) is not None:
            return ValueWords(compound[0], compound.start(), _kind(thing))
    value = _VALUE.search(folded)
    if value is None or _NUMBER.search(folded):
        return None
    rest = f"{folded[: value.start()]}{' ' * len(value[0])}{folded[value.end() :]}"
    thing = _CONVERSIONS.search(rest)
    if thing is None:
        return ValueWords(value[0], value.start(), "")
    is_first = value.start() < thing.start()
    between = folded[value.end() : thing.start()] if is_first else folded[thing.end() : value.start()]
    if not is_first and _OF.search(between):
        return None
    if is_first and value[0] in _ENGLISH and not _OF.search(between) and "/" not in between and "per" not in between:
        return None
    return ValueWords(value[0], value.start(), _kind(rest))


def _kind(folded: str) -> str:
    """Return whether words are of purchases alone."""
    bought = _PURCHASES.sub(" ", folded)
    return "conversions" if bought == folded or _CONVERSIONS.search(bought) else "purchases"


def is_value(folded: str) -> bool:
    """Return whether a text is nothing but a word for value."""
    return _VALUE.fullmatch(folded) is not None


def is_of_postbacks(folded: str) -> bool:
    """Return whether a header is of the conversion values of SKAdNetwork, numbers from 0 to 63 that are codes."""
    return (
        _POSTBACK.search(folded) is not None
        and (found := value_in(folded)) is not None
        and found.thing == "conversions"
    )
