"""Digits of other scripts, such as ٣ and ३, as 0 to 9, with the marks that stand among them.

Only what is read as a number or a day is written anew; names stay as they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

ARABIC_DECIMAL_MARK: Final = "٫"
"""It is a decimal mark in every file, unlike a point and a comma, and stays as it is."""
_THOUSANDS_MARK: Final = "٬"
_UNSEEN: Final = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_MARKS: Final[dict[str, str | None]] = {
    _THOUSANDS_MARK: "'",  # in every file, as an apostrophe is
    "،": ",",
    **dict(zip("，．／：－＋（）％٪￥＄￦￡", ",./:-+()%%¥$₩£", strict=True)),
    **dict.fromkeys(_UNSEEN),
}
_OTHERS: Final = rf"[^\P{{Nd}}0-9]|[{''.join(_MARKS)}]"


def ascii_digits(texts: Sequence[str]) -> list[str]:
    """Return *texts* with the decimal digits of all scripts as 0 to 9, and wide marks beside them: ￦ is ₩."""
    letters = {letter for text in texts if not text.isascii() for letter in text}
    digits = {letter: str(unicodedata.decimal(letter)) for letter in letters if letter > "9" and letter.isdecimal()}
    if not digits and letters.isdisjoint(_MARKS):
        return [*texts]
    table = str.maketrans(_MARKS | digits)
    return [text.translate(table) for text in texts]


def ascii_digits_of(texts: Any) -> Any:
    """Return the texts of an Arrow array as `ascii_digits` does. Texts in ASCII are not looked at."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return texts
    if not pc.any(pc.match_substring_regex(texts, _OTHERS), min_count=0).as_py():
        return texts
    known = pc.fill_null(texts, "").to_pylist()
    return pc.if_else(texts.is_valid(), pa.array(ascii_digits(known), pa.string()), None)
