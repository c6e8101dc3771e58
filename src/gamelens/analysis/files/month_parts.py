"""Parts of months as people write them: 2026-10 (1H), Oct 2026 H2, 1. Hälfte Oktober, 2026年10月上旬, Oct 2026 (1-15).

The words of the part are taken out, and what remains must be a month, which `date_parsing` reads. So a part is never
read as the whole month, and words that nobody knows remain in the month, which then is none.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date
from typing import Final, NamedTuple

from gamelens._text import without_accents
from gamelens.analysis.files.day_ranges import is_range

_ORDINALS: Final = {
    1: "1|i|first|erste|premiere|primera|primeira|prima|eerste|pierwsza|prvni|prva|первая|перша|ilk|birinci|forsta"
    "|forste|ensimmainen|elso|първа|πρωτο|dau|pertama",
    2: "2|ii|second|zweite|deuxieme|seconde|segunda|seconda|tweede|druga|druha|вторая|друга|ikinci|andra|anden|annen"
    "|toinen|masodik|a doua|втора|δευτερο|cuoi|kedua",
}
_HALF: Final = (
    "half|halfte|moitie|quinzaine|mitad|quincena|quinzena|metade|meta|polowa|polovina|половина|yari|yarisi|helft|halva"
    "|halvan|halvdel|halvdelen|puolisko|puolikas|fele|jumatate|μισο|nua|paruh"
)
_FOLDED: Final = tuple(
    (number, re.compile(pattern))
    for number, words in _ORDINALS.items()
    for pattern in (
        rf"(?<![^\W_])(?:{words})(?:st|nd|[.]?[ao]|re|e|er|de|-?[aяи]|[.])? (?:{_HALF})(?![^\W_])"
        r"(?: (?:of|de|d['’]|di|del|des|von|im|van)(?![^\W\d_]))?",
        rf"(?<![^\W_])(?:{_HALF}) {number}(?![^\W_])",
        rf"(?<![^\W_])(?:h|hy)[ -]?{number}(?![^\W_])|(?<![^\W_]){number}[ -]?(?:h|hy)(?![^\W_])",
        rf"[(\[]{number} ?/ ?2[)\]]",
    )
)
_EAST_ASIAN: Final = re.compile(
    r"(?<=[\d月월])[ 的]*[(（]?(?:(?P<ten_first>上旬|상순|초순)|(?P<ten_second>中旬|중순)|(?P<ten_third>下旬|하순)"
    r"|(?P<first>[上前]半月?|前期|上期|[상전]반기?)|(?P<second>[下後后]半月?|後期|下期|[하후]반기?)|(?P<one>[上前상전])|(?P<two>[下後后하후]))[)）]?$"
)
_DAYS_OF: Final = {
    **{"ten_first": (1, 10), "ten_second": (11, 20), "ten_third": (21, 0), "first": (1, 15), "second": (16, 0)},
    **{"one": (1, 15), "two": (16, 0)},
}
_DAYS_BEHIND: Final = re.compile(
    r"(?<=[\w.])(?: ?[(（\[]| )(?P<first>\d\d?)\.?[日일]? ?[-–—~～〜] ?(?P<last>\d\d?)\.?[日일]?[)）\]]?$"
)
_HALVES: Final = {1: (1, 15), 2: (16, 0)}


class MonthPart(NamedTuple):
    """A month as it is written, and its first and its last day that count, 0 for the last of the month."""

    month: str
    first: int
    last: int

    def days_of(self, month: date) -> tuple[date, date]:
        """Return the first and the last day of the part of *month*.

        Raises:
            ValueError: the month has no such day.
        """
        return month.replace(day=self.first), month.replace(day=self.last or monthrange(month.year, month.month)[1])


def month_parts(texts: Sequence[str]) -> list[MonthPart] | None:
    """Return the parts of months that *texts* name, which may be whole months; None if all are whole."""
    parts = [_part(text) for text in texts]
    return parts if any((part.first, part.last) != (1, 0) for part in parts) else None


def _part(text: str) -> MonthPart:
    if match := _EAST_ASIAN.search(text):
        return MonthPart(text[: match.start()].strip(), *_DAYS_OF[str(match.lastgroup)])
    if (match := _DAYS_BEHIND.search(text)) and not is_range(text):
        return MonthPart(text[: match.start()].strip(), int(match["first"]), int(match["last"]))
    folded = without_accents(text.casefold())
    for number, pattern in _FOLDED:
        if match := pattern.search(folded):
            month = re.sub(r"[(\[] *[)\]]", " ", f"{folded[: match.start()]} {folded[match.end() :]}")
            return MonthPart(" ".join(month.split()).strip(" -_,/"), *_HALVES[number])
    return MonthPart(text, 1, 0)
