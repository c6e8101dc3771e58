"""Numbers as people write them: `$1,234.50`, `1.234,50 €`, `(12.00)`, `12%`.

A column is read as a whole: all of its values decide whether a comma marks decimals or thousands. A column that leaves
it open is refused, or, if the file's format suggests one reading, read so with a note.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import Series

from gamelens.errors import BadQuery
from gamelens.wire.currencies import USD_PER_UNIT

_MACHINE: Final = r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?"
_NUMBER: Final = re.compile(
    r"(?P<open>\()? ?(?P<sign>[-+])? ?(?P<before>[A-Z]{3}|[A-Z]{0,3}¤)? ?(?P<inner>[-+])? ?"
    r"(?P<body>(?:\d(?:[\d.,' ]*\d)?|[.,]\d+)(?:[eE][-+]\d+)?)"
    r" ?(?P<percent>%)? ?(?P<after>[A-Z]{3}|¤)? ?(?P<outer>-)? ?(?P<close>\))?",
    re.ASCII,
)
_BODIES: Final = {
    ".": re.compile(
        r"(?P<whole>\d+|[1-9]\d{0,2}(?P<group>[,' ])\d{3}(?:(?P=group)\d{3})*|[1-9]\d?(?:,\d\d)+,\d{3})?"
        r"(?:\.(?P<part>\d+))?(?P<power>[eE][-+]\d+)?",
        re.ASCII,
    ),
    ",": re.compile(
        r"(?P<whole>\d+|[1-9]\d{0,2}(?P<group>[.' ])\d{3}(?:(?P=group)\d{3})*)?(?:,(?P<part>\d+))?(?P<power>(?!))?",
        re.ASCII,
    ),
}
_WORDS: Final = frozenset({"ALL", "TOP"})  # currency codes, but far more often the beginning of a name
_SPACES: Final = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\t": " ", "’": "'", "−": "-"})
_CODES: Final = {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "₺": "TRY", "₽": "RUB", "₫": "VND", "US$": "USD"}
_DOLLARS: Final = {"$": "USD", "A$": "AUD", "C$": "CAD", "CA$": "CAD", "HK$": "HKD", "NZ$": "NZD", "R$": "BRL"}


@dataclass(frozen=True)
class _NumberText:
    """One number, its sign and currency parsed, its digits as written."""

    text: str
    is_negative: bool
    body: str
    currency: str
    is_percent: bool


@dataclass(frozen=True, eq=False)
class ParsedNumbers:
    """Numbers of a column.

    Attributes:
        numbers: Int64 if all are whole and without currency, else float64; 12% is 0.12.
        is_share: whether they were percentages, which must not be added up.
        currency: the currency of each number (ISO 4217; a bare $ is USD), or None if none is named. If the column names
            only one, all of its numbers are in it.
        note: the reading that was assumed, or None.
    """

    numbers: Series[Any]
    is_share: bool = False
    note: str | None = None
    currency: Series[Any] | None = None


def read_amounts(
    texts: Series[Any], *, field: str, decimal: str | None = None, separator: str | None = None
) -> ParsedNumbers | str | None:
    """Return the numbers in *texts*, or the first text that is not one if most are.

    None if they are not numbers.

    Args:
        texts: a column of text.
        field: its name, for errors.
        decimal: the decimal mark, "." or ",", if the column leaves it open.
        separator: separator of the CSV file.

    Raises:
        BadQuery: the numbers can be read in two ways, or some of several currencies name none.
    """
    filled = texts.where(texts.str.strip() != "")
    plain = _machine_written(filled, decimal)
    if plain is not None:
        return ParsedNumbers(plain)
    written = [str(text) for text in filled.dropna().unique()]
    number_texts = {text: number for text in written if (number := _parse_text(text))}
    if len(number_texts) < len(written) or not written:
        are_mostly_numbers = 2 * len(number_texts) >= len(written) > 0
        return next(text for text in written if text not in number_texts) if are_mostly_numbers else None
    if any(_is_name(number.body) for number in number_texts.values()):
        return None
    return _convert(filled, list(number_texts.values()), field, decimal, separator)


def _machine_written(texts: Series[Any], decimal: str | None) -> Series[Any] | None:
    """Return numbers in the notation of programs, or None if any text differs or is ambiguous.

    Much faster than parsing text by text.
    """
    filled = pa.array(texts.dropna(), pa.string())
    if not len(filled) or not pc.all(pc.match_substring_regex(filled, f"^(?:{_MACHINE}|-?inf)$")).as_py():
        return None
    if pc.all(pc.match_substring_regex(filled, r"^-?\d{1,18}$")).as_py():
        return _aligned(filled.cast(pa.int64()), texts, "Int64")
    is_open = pc.match_substring_regex(filled, r"^-?(?:[1-9]\d{0,2}\.\d{3}|\d+)$")
    if decimal == "," or (decimal is None and pc.all(is_open).as_py()):
        return None
    if any(_is_name(text) for text in filled.filter(pc.match_substring_regex(filled, r"^\d{19,}$")).to_pylist()):
        return None
    return _aligned(filled.cast(pa.float64()), texts, "float64")


def _is_name(body: str) -> bool:
    """Return whether digits are a name: 007, or an integer that float64 cannot represent."""
    return bool(re.match(r"0\d", body)) or (body.isdigit() and len(body) > 18 and len(body.rstrip("0")) > 17)


def _aligned(numbers: Any, texts: Series[Any], dtype: Any) -> Series[Any]:
    """Return *numbers* at the places of *texts* that are not null."""
    aligned = pd.Series(pd.NA if dtype == "Int64" else np.nan, index=texts.index, dtype=dtype)
    aligned[texts.notna().to_numpy()] = numbers.to_numpy(zero_copy_only=False)
    return aligned


def _parse_text(text: str) -> _NumberText | None:
    """Return the sign, digits and currency of a number, or None for any other text."""
    plain = " ".join(text.translate(_SPACES).split())
    symbols = [character for character in plain if unicodedata.category(character) == "Sc"]
    match = _NUMBER.fullmatch(re.sub("|".join(map(re.escape, symbols)), "¤", plain) if symbols else plain)
    if not match or len(symbols) > 1 or bool(match["open"]) != bool(match["close"]):
        return None
    if not any(_is_written_with(match["body"], mark) for mark in _BODIES):
        return None  # 1.2.3 is a version
    signs = [sign for sign in (match["open"], match["sign"], match["inner"], match["outer"]) if sign]
    names = [name.replace("¤", symbols[0] if symbols else "") for name in (match["before"], match["after"]) if name]
    names = [_CODES.get(name, name) for name in names]
    codes = [name for name in names if name.isalpha() and name.isascii()]
    is_unknown = any(code not in USD_PER_UNIT or code in _WORDS for code in codes)
    if len(signs) > 1 or len(codes) > 1 or is_unknown or (names and match["percent"]):
        return None
    currency = codes[0] if codes else _DOLLARS.get("".join(names), "".join(names))
    return _NumberText(text, bool(signs and signs[0] != "+"), match["body"], currency, bool(match["percent"]))


def _convert(
    texts: Series[Any], number_texts: Sequence[_NumberText], field: str, decimal: str | None, separator: str | None
) -> ParsedNumbers:
    """Return the numbers of a column whose texts are all numbers.

    Raises:
        BadQuery: percentages and numbers are mixed, some of several currencies name none, or the decimal mark is open.
    """
    currency, currency_note = _currency(texts, number_texts, field)
    shares = {number.is_percent: number.text for number in number_texts}
    if len(shares) > 1:
        raise BadQuery(field, [shares[True], shares[False]], "mixes percentages and numbers: write one kind")
    mark, note = _decimal_mark(number_texts, field, decimal, separator)
    read = {number.text: _value(number, mark) for number in number_texts}
    numbers: Any = [read.get(text) for text in texts]
    is_count = all(value == value.to_integral_value() for value in read.values())
    is_count &= not any(number.currency or number.is_percent or mark in number.body for number in number_texts)
    if is_count and max(map(abs, read.values())) < 2**63:
        whole = pd.array([None if value is None else int(value) for value in numbers], dtype="Int64")
        return ParsedNumbers(pd.Series(whole, index=texts.index), note=note)
    floats = [np.nan if value is None else float(value) for value in numbers]
    text = "; ".join(text for text in (currency_note, note) if text)
    numbers = pd.Series(floats, index=texts.index, dtype="float64")
    return ParsedNumbers(numbers, True in shares, text or None, currency)


def _currency(
    texts: Series[Any], number_texts: Sequence[_NumberText], field: str
) -> tuple[Series[Any] | None, str | None]:
    """Return the currency of each number, and a note if several or not all are named.

    Raises:
        BadQuery: there are several, and some numbers name none.
    """
    of_text = {number.text: number.currency for number in number_texts}
    examples = {name: text for text, name in reversed(of_text.items())}
    named = sorted(set(examples) - {""})
    if not named:
        return None, None
    if len(named) == 1:
        note = None
        if "" in examples:
            note = f"{field}: {examples['']} names no currency and is taken for {named[0]}, like the others"
        return pd.Series(named[0], index=texts.index, dtype="str"), note
    if "" in examples:
        rule = f"names no currency, and others are in {', '.join(named)}: write the currency of each"
        raise BadQuery(field, examples[""], rule)
    note = f"{field} is in {', '.join(named)}: convert it with outside_data.in_dollars before adding it up"
    return texts.map(of_text).astype("str"), note


def _decimal_mark(
    number_texts: Sequence[_NumberText], field: str, decimal: str | None, separator: str | None
) -> tuple[str, str | None]:
    """Return the decimal mark of the column, and a note if the values alone did not decide it.

    Raises:
        BadQuery: no mark fits all values, or both do.
    """
    misfits = {mark: [f.text for f in number_texts if not _is_written_with(f.body, mark)] for mark in _BODIES}
    if decimal is not None:
        if misfits[decimal]:
            raise BadQuery(field, misfits[decimal][0], f"is not a number with decimal={decimal!r}")
        return decimal, None
    fitting = [mark for mark, unlike in misfits.items() if not unlike]
    if not fitting:
        unlike = [misfits["."][0], misfits[","][0]]
        raise BadQuery(field, unlike, "do not agree on the decimal mark: write one")
    is_open = [f for f in number_texts if _value(f, ".") != _value(f, ",")] if len(fitting) == 2 else []
    if not is_open:
        return fitting[0], None
    return _assumed_mark(number_texts, is_open, field, separator)


def _assumed_mark(
    number_texts: Sequence[_NumberText], is_open: Sequence[_NumberText], field: str, separator: str | None
) -> tuple[str, str]:
    """Return the likelier mark, with a note, if each value fits both: 1,234 or 1.234.

    Our choice: a point is a decimal mark in a file separated by commas, as every program writes it. A comma is a
    thousands mark if other values below 1000 have none and none above lacks it, unless semicolons separate.

    Raises:
        BadQuery: neither applies.
    """
    marks = {"," if "," in number.body else "." for number in is_open}
    bare = [int(number.body) for number in number_texts if number.body.isdigit()]
    is_bare = not any(number.currency for number in is_open)
    first = is_open[0]
    is_point = marks == {"."} and separator == "," and is_bare
    is_grouped = marks == {","} and separator != ";" and any(bare) and all(number < 1000 for number in bare)
    if not (is_point or is_grouped):
        meant = " or ".join(f"{_value(first, mark):f} (decimal={mark!r})" for mark in _BODIES)
        raise BadQuery(field, first.text, f"is {meant}, and no other value tells: say decimal=")
    read, other = (f"{_value(first, mark):f}" for mark in _BODIES)
    return ".", f"{field}: {first.text} is read as {read}; with decimal=',' it would be {other}"


def _is_written_with(body: str, mark: str) -> bool:
    match = _BODIES[mark].fullmatch(body)
    return bool(match and (match["whole"] or match["part"]))


def _value(number: _NumberText, mark: str) -> Decimal:
    """Return the number with *mark* as decimal mark."""
    match = _BODIES[mark].fullmatch(number.body)
    if match is None:
        raise ValueError(number.body)
    digits = re.sub(r"\D", "", match["whole"] or "0")
    part = f".{match['part']}" if match["part"] else ""
    value = Decimal(f"{digits}{part}{match['power'] or ''}")
    value = value.scaleb(-2) if number.is_percent else value
    return -value if number.is_negative else value
