"""What a header says of the unit of its numbers: cents, millionths, thousands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from gamelens.wire.currencies import USD_PER_UNIT

_PARTS: Final = {
    1e-6: r"(?<!\w)(?:micros?|micro ?units?|e6|millionths?)(?!\w)",
    0.01: (
        r"(?<!\w)(?:cents?|cts?|pence|centimes?|centimos?|centavos?|grosz[ey]?|kopeks?|копе[ий]\w*"
        r"|minor(?: currency)?(?: units?)?)(?!\w)|(?<=[(（ ])分(?!\w)"
    ),
}
_MULTIPLES: Final = {
    1e7: r"(?<!\w)crores?(?!\w)",
    1e6: (
        r"(?<!\w)(?:mft|mhuf|mkc|mio|mn|mm|mln|(?<=(?:usd|eur|gbp) )m|m(?:eur|usd)|millions?|millones|millionen|milhoes"
        r"|milioni|млн|мільйон\w*|миллион\w*|trieu|jutaan"
        r"|juta(?= (?:rp|rupiah|idr|dolar|usd))|milyon|miljoen|miljoner|millioner|miljoonaa|milion\w*|mkr"
        r"|εκατ\w*)(?!\w)|百万|백만"
    ),
    1e5: r"(?<!\w)la(?:kh|c)s?(?!\w)",
    1e4: r"万|萬|만",
    1e3: (
        r"(?<!\w)(?:thousands?|e ?ft|ehuf|tis|tkc|tsd|tausend|milliers|miles|milhares|migliaia|тыс|(?<!\d )000s?"
        r"|in 1 ?000|k|[tk](?:eur|usd|gbp|chf)|tys|tysiac\w*|tisic\w*|tisuca|tisoc"
        r"|hiljad[ae]|ezer|tusen|tusental|tusind|tusinde|tuhat(?:ta)?"
        r"|duizend\w*|nghin"
        r"|ribuan|ribu(?= (?:rp|rupiah|idr|dolar|usd))|ngan(?= dong)|tkr|тысяч\w*|тис|тисяч\w*|хиляди|хил|χιλ|χιλιαδ\w*"
        r"|mii(?= (?:de )?(?:ron|lei|eur|euro|usd))|bin(?= (?:tl|try|lira|usd|eur|euro|avro|dolar))"
        r"|(?:(?<=(?<!\w)r )|(?<=em )|(?<=en ))mil|mil(?= (?:reais|euros|pesos|dolares|soles|usd|eur)))(?!\w)"
        r"|千|천 ?(?=원|달러|유로|엔)"
    ),
}
_THAI_UNIT: Final = r"\s*(?=บาท|ดอลลาร์|ยูโร|เยน|เหรียญ)"
_MULTIPLES_IN_SCRIPTS: Final = {  # in front of a unit, or with what is joined to a word
    1e7: re.compile(r"करोड़|करोड़"),
    1e6: re.compile(r"ล้าน" + _THAI_UNIT + r"|مليون|ملايين|מיליונ"),
    1e5: re.compile(r"แสน" + _THAI_UNIT + r"|लाख"),
    1e4: re.compile(r"หมื่น" + _THAI_UNIT),
    1e3: re.compile(r"พัน" + _THAI_UNIT + r"|(?<!\w)(?:ب|بال)?(?:ألف|آلاف|الآلاف)(?!\w)|(?<!\w)ב?אלפי|हज़ार|हज़ार|हजार"),
}
"""Words of scripts whose marks folding takes away."""
_CODES: Final = "|".join(sorted(USD_PER_UNIT))
_SIGN: Final = rf"(?:[$€£¥₽₺₩₹]|(?<![^\W_])(?:{_CODES})(?![^\W_]))"
_MULTIPLES_OF_MONEY: Final = {  # k EUR, T€, EUR k, $m
    1e3: re.compile(
        rf"(?<![^\W_])(?:[kKтТ]|T(?=\.? ?(?:€|EUR|CHF)))\.? ?{_SIGN}|{_SIGN} ?[kK](?!\w)"
        rf"|(?<![^\W_])[kKT](?:{_CODES})(?![^\W_])"
    ),
    1e6: re.compile(rf"(?<![^\W_])(?:[mM]|MM)\.? ?{_SIGN}|{_SIGN} ?(?:[mM]|MM|mm)(?!\w)"),
}
_OF_RUPEES: Final = re.compile(
    r"(?i)(?:₹|(?<!\w)(?:rs|inr)(?![^\W_]))[.\s_]*(?:in[\s_]+)?(?:(?P<crore>crs?|crores?)|(?P<lakh>l|la(?:kh|c)s?))(?![^\W_])"
    r"|(?<![^\W_])(?:(?P<crores>crs?)|(?P<lakhs>la(?:kh|c)s?))[.\s_]*(?:of[\s_]+)?(?:₹|(?:rs|inr|rupees)(?![^\W_]))"
    r"|(?<!\w)(?:spend|cost|revenue|sales|budget)s?[\s_]+(?:[(\[]|in\s)\s*(?P<alone>crs?)(?![^\W_])"
)
"""Cr and L beside rupees, or behind what was spent: alone Cr is a credit as well."""
_BEHIND: Final = re.compile(r"(?i)(?:[(（\[,]|(?<!\w)in(?!\w))\s*([^()（）\[\]]+)[)）\]]?\s*$")
NO_DECIMALS: Final = frozenset(
    {
        "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF",
    }
)  # fmt: skip
"""Currencies without a smaller unit."""
NO_HUNDREDTHS: Final = NO_DECIMALS | {"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}
"""Currencies whose smallest unit is not a hundredth."""


class MoneyUnit(NamedTuple):
    """Units of a currency for one of a column, and the word that says it."""

    scale: float
    word: str


def without_unit(folded: str) -> str:
    """Return a folded header without the words for parts of a unit, which are no measure: of minor units, revenue."""
    for pattern in _PARTS.values():
        folded = re.sub(pattern, " ", folded)
    return " ".join(folded.split())


def multiple_in(line: str, folded: str) -> MoneyUnit | None:
    """Return the multiple of a currency that a line about money names, such as k$ or in thousands of euros."""
    for scale, of_money in _MULTIPLES_OF_MONEY.items():
        if match := of_money.search(line):
            return MoneyUnit(scale, match[0])
    if (rupees := multiple_of_rupees(line)) is not None:
        return rupees
    if (joined := multiple_in_script(line)) is not None:
        return joined
    for scale, pattern in _MULTIPLES.items():
        if words := [match[0] for match in re.finditer(pattern, folded) if match[0] != "k"]:
            return MoneyUnit(scale, words[0])
    return None


def multiple_in_script(text: str) -> MoneyUnit | None:
    """Return the multiple that a header or a line names in Thai, Hindi, Arabic or Hebrew: พันบาท, लाख."""
    matches = ((scale, pattern.search(text)) for scale, pattern in _MULTIPLES_IN_SCRIPTS.items())
    return next((MoneyUnit(scale, match[0].strip()) for scale, match in matches if match), None)


def without_multiple(line: str) -> str:
    """Return a line without a word for a multiple that is written together with its currency: พันบาท."""
    for in_script in _MULTIPLES_IN_SCRIPTS.values():
        line = in_script.sub(" ", line)
    return line


def multiple_of_rupees(text: str) -> MoneyUnit | None:
    """Return the crores or lakhs that a header or a line names beside rupees: ₹ Cr, Rs. in L."""
    match = _OF_RUPEES.search(text)
    if match is None:
        return None
    word = next(word for word in match.groups() if word)
    return MoneyUnit(1e5 if match["lakh"] or match["lakhs"] else 1e7, word)


def without_rupees(header: str) -> str:
    """Return a header without the word for crores or lakhs, which CR, a conversion rate, is not."""
    match = _OF_RUPEES.search(header)
    if match is None:
        return header
    start, end = next(match.span(name) for name, word in match.groupdict().items() if word)
    return header[:start] + header[end:]


def multiple_of_counts(header: str, fold: Callable[[str], str]) -> MoneyUnit | None:
    """Return the multiple that a header of counts names at its end: Installs (k), Installs in thousands."""
    behind = _BEHIND.search(header)
    return unit_in(fold(behind[1]), "amount") if behind else None


def unit_in(folded: str, role: str) -> MoneyUnit | None:
    """Return the unit that a folded header of money names, None where it names none.

    A rate may be in cents or micros. Thousands in its header are what it is per, such as an eCPM.
    """
    patterns = _PARTS | _MULTIPLES if role == "amount" else _PARTS
    matches = ((scale, re.search(pattern, folded)) for scale, pattern in patterns.items())
    return next((MoneyUnit(scale, match[0]) for scale, match in matches if match), None)
