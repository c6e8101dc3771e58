"""Currencies by code, symbol and name. A symbol such as $ stands for several, which other evidence narrows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from gamelens.analysis.files.brackets import BRACKETS
from gamelens.wire.currencies import USD_PER_UNIT

Currencies = frozenset[str]
"""The currencies (ISO 4217) that a text may mean, none if it is no currency."""

NO_CURRENCY: Final[Currencies] = frozenset()
_WORDS: Final = frozenset({"ALL", "TOP", "IMP"})  # codes, but far more often a word
_LOWER_WORDS: Final = frozenset(
    {"try", "cup", "pen", "mad", "bob", "gel", "sos", "bam", "lak", "ron", "cop", "mop", "rub"}
)
_TABLE: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_MEANT: Final[dict[str, Currencies]] = {
    **{symbol: frozenset({code}) for code, symbols in _TABLE["one"].items() for symbol in symbols},
    **{symbol: frozenset(codes.split()) for symbol, codes in _TABLE["several"].items()},
}
CURRENCY_NAMES: Final = frozenset(_MEANT)
"""Symbols and names of currencies, in small letters."""
_ALSO_ACTUAL: Final = frozenset({"real"})
"""Names of currencies that mean what was spent, beside what was planned, in headers and titles: Presupuesto - Real."""
_SPELLED: Final = "|".join(
    re.escape(name)
    for name in sorted(_MEANT, key=len, reverse=True)
    if len(name) > 2 and name.isascii() and name[-1].isalpha() and name not in _ALSO_ACTUAL
)
_NAMES: Final = re.compile(rf"(?<![^\W_])(?:{_SPELLED})(?![^\W_])")
_SIGNS: Final = re.compile(r"[A-Z]{0,3}[$\u00a3\u00a5\u20a0-\u20bf]")

_WIDE_SIGNS: Final = str.maketrans("＄￡￥￦", "$£¥₩")

_BETWEEN: Final = re.compile(r"[\s,;:/|・、，；：／·]+")
_MULTIPLE: Final = re.compile("[十百千万億萬亿만천억]+")


def is_currency(code: str) -> bool:
    """Return whether *code* is a currency with a rate, and not a word that begins many names."""
    return code in USD_PER_UNIT and code not in _WORDS


@cache
def currencies_of(text: str) -> Currencies:
    """Return the currencies that a code, a symbol, a name, or several of them together may mean."""
    text = text.translate(_WIDE_SIGNS)
    if text in USD_PER_UNIT:
        return frozenset({text})
    if (meant := _MEANT.get(text.casefold().rstrip("."))) is not None:
        return meant
    if text[:-1] in USD_PER_UNIT:  # USD$
        return frozenset({text[:-1]})
    parts = text.split()
    return common(map(currencies_of, parts)) if len(parts) > 1 else NO_CURRENCY


def currencies_of_code(text: str) -> Currencies:
    """Return the currencies that a cell of a column of codes may mean, also in small letters: eur."""
    text = text.strip()
    return currencies_of(text) or (currencies_of(text.upper()) if len(text) == 3 else NO_CURRENCY)


def common(several: Iterable[Currencies]) -> Currencies:
    """Return the currencies that all of *several* may mean."""
    first, *others = several
    return first.intersection(*others)


def currencies_in(text: str, *, is_header: bool = False) -> Currencies:
    """Return the currencies that words of a header or a line name by code, symbol or name.

    In capitals a code is one; in the name of a column such as cost_usd also in small letters, unless it is a word.
    """
    text = text.translate(_WIDE_SIGNS)
    words = re.split(r"[^A-Za-z]+", text)
    found = {currencies_of(word) for word in words if len(word) == 3 and is_currency(word)}
    if is_header:  # amountUSD
        joined = (word[-3:] for word in words if len(word) > 3 and word[-4].islower())
        found |= {currencies_of(code) for code in joined if is_currency(code)}
    if is_header and "_" in text:
        upper = [word.upper() for word in text.split("_") if word.islower() and word not in _LOWER_WORDS]
        found |= {currencies_of(word) for word in upper if len(word) == 3 and is_currency(word)}
    found |= {currencies_of(sign) or currencies_of(sign[-1]) for sign in _SIGNS.findall(text)}
    found |= {currencies_of(name) for name in _NAMES.findall(text.casefold())} if not found else set()
    found -= {NO_CURRENCY}
    inner_texts = [_MULTIPLE.sub("", inner).strip() for inner in BRACKETS.findall(text)]
    inner_texts = [inner for inner in inner_texts if inner.casefold() not in _ALSO_ACTUAL]
    if is_header and not found:
        found |= {currencies_of(inner) for inner in inner_texts} - {NO_CURRENCY}
    if is_header and not found:  # beside what is said of the tax: (円・税抜), (TL, KDV hariç)
        parts = [part for inner in inner_texts for part in _BETWEEN.split(inner) if part.casefold() not in _ALSO_ACTUAL]
        found |= {currencies_of(part) for part in parts if len(part) > 1 or not part.isascii()} - {NO_CURRENCY}
    if not found:  # in letters that are no ASCII; one of them alone is a currency in a header only
        words = [word for word in re.split(r"[\s,/:：()（）\[\]【】]+", text) if not word.isascii()]
        found |= {currencies_of(word) for word in words if is_header or len(word) > 1}
    found -= {NO_CURRENCY}
    return common(found) if found else NO_CURRENCY
