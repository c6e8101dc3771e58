"""Headers as words, and phrases that are found among them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from gamelens._text import without_accents

_BARRED: Final = str.maketrans("łđøı", "ldoi")
"""Letters whose stroke or missing dot is no accent."""


_LETTER: Final = r"[^\W\u3040-\u9fff\uac00-\ud7af]"
"""A letter or digit of a script with blanks between words."""


def folded_header(text: str) -> str:
    """Return a header as words: no case, accents, punctuation but % and /, `adFormat` as `ad format`."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    text = re.sub(r"(?<!\w)\d+(?:[.,]\d+)? ?%|% ?\d+(?:[.,]\d+)?(?!\w)", " ", text)  # of a tax whose amount it is
    plain = without_accents(text.casefold().replace("¢", " cents ").translate(_BARRED))
    text = unicodedata.normalize("NFC", plain)
    return " ".join(re.sub(r"[^\w%/]|_", " ", text).replace("/", " / ").replace("%", " % ").split())


def any_phrase(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds one of folded *phrases* as words, also with a plural's s, the longest first."""
    words = sorted(phrases, key=len, reverse=True)
    eastern = [re.escape(word) for word in words if is_eastern(word)]
    others = "|".join(re.escape(word) for word in words if not is_eastern(word))
    # The class of letters is large, and compiled once for all words.
    return re.compile("|".join([*eastern, *([rf"(?<!{_LETTER})(?:{others})s?(?!{_LETTER})"] if others else [])]))


def is_eastern(word: str) -> bool:
    """Return whether a word has letters of Chinese, Japanese or Korean, whose words no blank separates."""
    return any("\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af" for letter in word)
