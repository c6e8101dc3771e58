"""Currencies by code, symbol and name. A symbol such as $ stands for several, which other evidence narrows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from gamelens.wire.currencies import USD_PER_UNIT

Currencies = frozenset[str]
"""The currencies (ISO 4217) that a text may mean, none if it is no currency."""

NO_CURRENCY: Final[Currencies] = frozenset()
_WORDS: Final = frozenset({"ALL", "TOP", "IMP"})  # codes, but far more often a word
_LOWER_WORDS: Final = frozenset(
    {"try", "cup", "pen", "mad", "bob", "gel", "sos", "bam", "lak", "ron", "cop", "mop", "rub"}
)
_DOLLARS: Final = (
    "USD AUD CAD NZD SGD HKD TWD MXN ARS CLP COP BBD BSD BZD FJD GYD JMD LRD NAD SRD TTD UYU XCD BMD KYD BND"
)
_SEVERAL: Final = {
    **{
        "$": _DOLLARS,
        "kr": "SEK NOK DKK ISK",
        "\u00a5": "JPY CNY",
        "\uffe5": "JPY CNY",
        "\u5143": "CNY TWD HKD",
        "rs": "INR PKR LKR NPR MUR SCR",
    },
    **{"fr": "CHF XOF XAF", "lei": "RON MDL", "\ufdfc": "IRR SAR QAR OMR YER", "dollar": _DOLLARS, "dollars": _DOLLARS},
    **{"peso": "MXN ARS CLP COP PHP UYU DOP CUP", "pesos": "MXN ARS CLP COP PHP UYU DOP CUP", "francs": "CHF XOF XAF"},
    **{
        "rupee": "INR PKR LKR NPR MUR SCR",
        "rupees": "INR PKR LKR NPR MUR SCR",
        "kroner": "NOK DKK",
        "krone": "NOK DKK",
    },
}
_SYMBOLS: Final = """
\u20ac EUR; euro EUR; euros EUR; \u00a3 GBP; pounds GBP; pound\u00a0sterling GBP; \u20b9 INR; \u20a9 KRW; \uc6d0 KRW; won KRW; \u20ba TRY; tl TRY;
\u20bd RUB; \u0440\u0443\u0431 RUB; \u0440 RUB; \u20ab VND; \u0111 VND; \u0e3f THB; \u20b1 PHP; \u20aa ILS; \u20b4 UAH; \u20b8 KZT; \u20a6 NGN; \u20b2 PYG; \u20a1 CRC;
\u5186 JPY; yen JPY; yuan CNY; rmb CNY; cn\u00a5 CNY; jp\u00a5 JPY; z\u0142 PLN; zloty PLN; k\u010d CZK; ft HUF; \u043b\u0432 BGN; rp IDR; rm MYR;
r ZAR; sfr CHF; s/ PEN; us$ USD; a$ AUD; au$ AUD; c$ CAD; ca$ CAD; cad$ CAD; hk$ HKD; nz$ NZD; s$ SGD; sg$ SGD; nt$ TWD; mx$ MXN;
mex$ MXN; r$ BRL; reais BRL; real BRL; ar$ ARS; cl$ CLP; clp$ CLP; co$ COP; col$ COP; us\u00a0dollar USD; us\u00a0dollars USD; u.s.\u00a0dollars USD;
kronor SEK; lira TRY; rubles RUB; dong VND; baht THB; rupiah IDR; ringgit MYR; e\u00a3 EGP
"""
_ONE: Final = {
    symbol.strip().replace("\u00a0", " "): code
    for symbol, code in (it.strip().rsplit(" ", 1) for it in _SYMBOLS.split(";"))
}
_NAMES: Final = re.compile(
    r"(?<![^\W_])(?:us dollars?|dollars?|euros?|pounds?(?: sterling)?|yen|yuan|rmb|rupees?|reais|pesos?|rubles|kronor|kron[e]r?)"
    r"(?![^\W_])",
    re.IGNORECASE,
)
_SIGNS: Final = re.compile(r"[A-Z]{0,3}[$\u00a3\u00a5\uffe5\u20a0-\u20bf]")


def is_currency(code: str) -> bool:
    """Return whether *code* is a currency with a rate, and not a word that begins many names."""
    return code in USD_PER_UNIT and code not in _WORDS


@cache
def currencies_of(text: str) -> Currencies:
    """Return the currencies that a code, a symbol, a name, or several of them together may mean."""
    if text in USD_PER_UNIT:
        return frozenset({text})
    folded = text.casefold().rstrip(".")
    if folded in _ONE:
        return frozenset({_ONE[folded]})
    if folded in _SEVERAL:
        return frozenset(_SEVERAL[folded].split())
    if text[:-1] in USD_PER_UNIT:  # USD$
        return frozenset({text[:-1]})
    parts = text.split()
    return common(map(currencies_of, parts)) if len(parts) > 1 else NO_CURRENCY


def common(several: Iterable[Currencies]) -> Currencies:
    """Return the currencies that all of *several* may mean."""
    first, *others = several
    return first.intersection(*others)


def currencies_in(text: str, *, is_header: bool = False) -> Currencies:
    """Return the currencies that words of a header or a line name by code, symbol or name.

    In capitals a code is one; in the name of a column such as cost_usd also in small letters, unless it is a word.
    """
    words = re.split(r"[^A-Za-z]+", text)
    found = {currencies_of(word) for word in words if len(word) == 3 and is_currency(word)}
    if is_header and "_" in text:
        upper = [word.upper() for word in text.split("_") if word.islower() and word not in _LOWER_WORDS]
        found |= {currencies_of(word) for word in upper if len(word) == 3 and is_currency(word)}
    found |= {currencies_of(sign) or currencies_of(sign[-1]) for sign in _SIGNS.findall(text)}
    found |= {currencies_of(name.casefold()) for name in _NAMES.findall(text)} if not found else set()
    found -= {NO_CURRENCY}
    return common(found) if found else NO_CURRENCY
