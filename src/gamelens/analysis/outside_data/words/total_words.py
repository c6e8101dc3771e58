"""Names of rows that add up others: totals and wholes, in the languages that vendors write (`lexicon.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gamelens.analysis.files.currency_names import is_currency
from gamelens.analysis.files.date_parsing import folded_word
from gamelens.wire.currencies import USD_PER_UNIT

LEXICON: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text(encoding="utf-8"))
"""The words of headers and rows, by topic."""
_WORDS: Final[dict[str, list[str]]] = {
    name: LEXICON[name]["words"] for name in ("total", "whole", "average_row", "actual")
}

ACTUAL: Final = frozenset(map(folded_word, _WORDS["actual"]))
"""Folded names of what was, beside what was planned."""
LEVELS: Final = frozenset(LEXICON["level"]["words"])
"""Folded names of what a row is about: a campaign, or one of its ad groups."""


def _any_of(words: Sequence[str]) -> str:
    """Return a pattern of one of *words*, with or without accents, the longest first."""
    spelled = {form for word in words for form in (word, folded_word(word))}
    return "|".join(re.escape(word) for word in sorted(spelled, key=len, reverse=True))


_PERIODS: Final = "day|daily|week|weekly|month|monthly|quarter|quarterly|year|yearly|annual"
_TOTAL: Final = (
    rf"(?:(?:grand|sub|overall|report|campaign|account|all|{_PERIODS})[\s-]*)?(?:{_any_of(_WORDS['total'])})"
)
_WHOLE: Final = _any_of(_WORDS["whole"])
_NOUNS: Final = "countries|regions|territories|campaigns|networks|sources|apps|channels|platforms|formats"

_CODES: Final = "|".join(sorted(filter(is_currency, USD_PER_UNIT)))
_UNITS_OF_TIME: Final = _any_of([*LEXICON["week"]["words"], *LEXICON["month"]["words"], *LEXICON["quarter"]["words"]])
_OF_PERIOD: Final = (
    rf"\s+(?:(?:{_UNITS_OF_TIME}|w|q|t)\.?\s*\d.*|(?:[ivx]{{1,4}}|\d)\W*\s*(?:{_UNITS_OF_TIME})(?!\w).*)"
)
_MORE: Final = (
    rf"(?:\s+(?-i:{_CODES})(?!\w))?(?:{_OF_PERIOD}|\s*[:：（].*|\s+\(.*|\s+[–-]\s.*"
    r"|\s+(?:of|for|von|für|de|di|du|des|av)\b.*|\s+[\d.,]+.*)?\W*"
)

PART: Final = re.compile(rf"(?i)\W*(?:{_any_of(LEXICON['row_part']['words'])})(?:[\s:]|(?<=[^\x00-\x7f]))")
"""Begins a name of a part of the row above."""
TOTAL: Final = re.compile(rf"(?i)\W*{_TOTAL}{_MORE}")
"""A text of a row that adds up others, in a column of keys or days whatever its numbers are."""
AVERAGE: Final = re.compile(rf"(?i)\W*(?:{_any_of(_WORDS['average_row'])}){_MORE}")
"""A text of a row of averages, or an ordinary name: media is also what a cost is for."""
AT_ONE_END: Final = re.compile(
    rf"(?i)(?:{_TOTAL})\b.*|.*(?<!\w)(?:{_TOTAL})\W*|.*(?:合計|小計|合计|총계|합계)\W*|(?:{_WHOLE})\b.*"
)
"""A name that begins or ends with such a word, such as a campaign's."""
TOTAL_AT_ONE_END: Final = re.compile(
    rf"(?i)\W*(?:{_TOTAL})\b.*|.*(?<!\w)(?:{_TOTAL})\W*|.*(?:合計|小計|合计|小计|総計|总计|总計|총계|합계)\W*"
)
"""A text that begins or ends with a word of totals: among days and numbers it is a total, as it is neither."""
_AVERAGE: Final = _any_of(_WORDS["average_row"])
AVERAGE_AT_ONE_END: Final = re.compile(rf"(?i)\W*(?:{_AVERAGE})\b.*|.*(?<!\w)(?:{_AVERAGE})\W*")
"""The same for averages."""
WORD_AT_ONE_END: Final = re.compile(rf"(?i)^(?:{_TOTAL})\b\s*[:–-]?\s*(?:of\b|for\b)?|[\s(:–-]+(?:{_TOTAL})\W*$")
"""Such a word, with what joins it to the name."""
WHOLE: Final = re.compile(rf"(?i)\W*(?:rest of world and all|all (?:{_NOUNS}).*|{_WHOLE})\W*")
"""A word for the whole."""
WHOLE_OF_NAMES: Final = re.compile(rf"(?i)\W*(?:all (?:{_NOUNS}).*|(?!all\b)(?:{_WHOLE})(?:\s.*)?|all)\W*")
"""A word for the whole with what it is of, in a column of countries or networks: Alle Länder."""
CANDIDATES: Final = _any_of([*_WORDS["total"], *_WORDS["whole"], *_WORDS["average_row"]]).lower()
"""Finds all of these and others in small letters, as Arrow does: a word of totals anywhere."""
NAMELESS: Final = re.compile(r"[\W_]*")
"""A text without a letter and without a digit."""
