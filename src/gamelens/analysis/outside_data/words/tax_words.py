"""Words of taxes: what says that an amount holds one, or does not (`tax_...` of `lexicon.toml`)."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from gamelens.analysis.outside_data.words.header_words import any_phrase, folded_header
from gamelens.analysis.outside_data.words.total_words import LEXICON

_WORDS_BETWEEN: Final = r"(?: ?(?:\d+|of|of the|the|la|le|les|l|de|die|der)){0,2} ?"


def without_tax(folded: str) -> str:
    """Return a folded header without words such as incl. VAT, which are no measure, unless nothing else is there."""
    for basis in ("net", "gross"):
        folded = " ".join(basis_pattern(basis, is_named=False).sub(" ", folded).split()) or folded
    return folded


@cache
def tax_words(name: str) -> frozenset[str]:
    """Return the folded words of a table of the lexicon, such as `tax_name`."""
    return frozenset(folded_header(word) or word for word in LEXICON[f"tax_{name}"]["words"])


@cache
def bare_words() -> frozenset[str]:
    """Return the words that name a basis without the tax: net and gross."""
    return frozenset({*tax_words("net"), *tax_words("gross")})


@cache
def basis_pattern(basis: str, *, is_named: bool) -> re.Pattern[str]:
    """Return what finds a tax with a word for with or without before or behind it."""
    tax = any_phrase(tax_words("name")).pattern
    beside = any_phrase(tax_words("without" if basis == "net" else "with")).pattern
    alone = any_phrase(word for word in tax_words(f"{basis}_alone") if not (is_named and word.isascii())).pattern
    return re.compile(rf"(?:{alone})|(?:{beside}){_WORDS_BETWEEN}(?:{tax})|(?:{tax}){_WORDS_BETWEEN}(?:{beside})")


@cache
def candidates() -> str:
    """Return a pattern that finds all of these and others in small letters, as Arrow does."""
    names = ("name", "gross", "net", "gross_alone", "net_alone")
    words: set[str] = {
        form for name in names for word in LEXICON[f"tax_{name}"]["words"] for form in (word, folded_header(word))
    }
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word)
