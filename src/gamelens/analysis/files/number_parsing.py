"""Numbers as people write them: `$1,234.50`, `1.234,50 €`, `(12.00)`, `12%`.

A column is read as a whole: all of its values decide whether a comma marks decimals or thousands. A column that leaves
it open is refused, or, if the file's format suggests one reading, read so with a note.
"""

from __future__ import annotations

import re
import unicodedata
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
SYMBOLS: Final = _CODES | _DOLLARS
"""Currencies by symbol (ISO 4217)."""


@dataclass(frozen=True)
class _NumberText:
    """A text that is a number.

    Attributes:
        body: its digits and marks.
        values: its value with each decimal mark that it can be written with, at least one.
        currency: its currency (ISO 4217, or a symbol that no code is known of), or "".
        is_percent: whether it is a percentage, whose value is a share.
    """

    body: str
    values: dict[str, Decimal]
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
    numbers = {text: number for text in written if (number := _parse_text(text))}
    if len(numbers) < len(written) or not written:
        are_mostly_numbers = 2 * len(numbers) >= len(written) > 0
        return next(text for text in written if text not in numbers) if are_mostly_numbers else None
    if any(_is_name(number.body) for number in numbers.values()):
        return None
    currency, currency_note = _currency(filled, numbers, field)
    shares = {number.is_percent: text for text, number in numbers.items()}
    if len(shares) > 1:
        raise BadQuery(field, [shares[True], shares[False]], "mixes percentages and numbers: use one kind")
    mark, mark_note = _decimal_mark(numbers, field, decimal, separator)
    values = {text: number.values[mark] for text, number in numbers.items()}
    is_amount = any(number.currency or number.is_percent or mark in number.body for number in numbers.values())
    if not is_amount and all(value == value.to_integral_value() and abs(value) < 2**63 for value in values.values()):
        whole = pd.array([int(values[text]) if text in values else None for text in filled], dtype="Int64")
        return ParsedNumbers(Series(whole, index=texts.index), note=mark_note)
    floats = [float(values[text]) if text in values else np.nan for text in filled]
    note = "; ".join(note for note in (currency_note, mark_note) if note)
    return ParsedNumbers(Series(floats, index=texts.index, dtype="float64"), True in shares, note or None, currency)


def _machine_written(texts: Series[Any], decimal: str | None) -> Series[Any] | None:
    """Return numbers in the notation of programs, or None if any text differs or is ambiguous.

    Much faster than parsing text by text.
    """
    cells = pa.array(texts, pa.string(), from_pandas=True)

    def all_match(pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(cells, f"^(?:{pattern})$")).as_py())

    if cells.null_count == len(cells) or not all_match(f"{_MACHINE}|-?inf"):
        return None
    are_whole = all_match(r"-?\d{1,18}")
    if not are_whole:
        if decimal == "," or (decimal is None and all_match(r"-?[1-9]\d{0,2}\.\d{3}|-?\d+")):
            return None
        if any(_is_name(text) for text in cells.filter(pc.match_substring_regex(cells, r"^\d{19,}$")).to_pylist()):
            return None
    numbers = cells.cast(pa.int64() if are_whole else pa.float64())
    aligned: Series[Any] = numbers.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get).set_axis(texts.index)
    return aligned


def _is_name(body: str) -> bool:
    """Return whether digits are a name: 007, or an integer that float64 cannot represent."""
    return bool(re.match(r"0\d", body)) or (body.isdigit() and len(body) > 18 and len(body.rstrip("0")) > 17)


def is_currency(code: str) -> bool:
    """Return whether *code* is a currency with a rate, and not a word that begins many names."""
    return code in USD_PER_UNIT and code not in _WORDS


def _parse_text(text: str) -> _NumberText | None:
    """Return the values and currency of a number, or None for any other text."""
    plain = " ".join(text.translate(_SPACES).split())
    symbols = [character for character in plain if unicodedata.category(character) == "Sc"]
    match = _NUMBER.fullmatch(re.sub("|".join(map(re.escape, symbols)), "¤", plain) if symbols else plain)
    if not match or len(symbols) > 1 or bool(match["open"]) != bool(match["close"]):
        return None
    signs = [sign for sign in (match["open"], match["sign"], match["inner"], match["outer"]) if sign]
    names = [name.replace("¤", symbols[0] if symbols else "") for name in (match["before"], match["after"]) if name]
    names = [_CODES.get(name, name) for name in names]
    codes = [name for name in names if name.isalpha() and name.isascii()]
    if len(signs) > 1 or len(codes) > 1 or not all(map(is_currency, codes)) or (names and match["percent"]):
        return None
    is_negative = bool(signs and signs[0] != "+")
    values = {}
    for mark, form in _BODIES.items():
        body = form.fullmatch(match["body"])
        if body and (body["whole"] or body["part"]):
            digits = re.sub(r"\D", "", body["whole"] or "0")
            value = Decimal(f"{digits}.{body['part'] or ''}{body['power'] or ''}")
            value = value.scaleb(-2) if match["percent"] else value
            values[mark] = -value if is_negative else value
    if not values:
        return None  # 1.2.3 is a version
    currency = codes[0] if codes else _DOLLARS.get("".join(names), "".join(names))
    return _NumberText(match["body"], values, currency, bool(match["percent"]))


def _currency(texts: Series[Any], numbers: dict[str, _NumberText], field: str) -> tuple[Series[Any] | None, str | None]:
    """Return the currency of each number, and a note if several or not all are named.

    Raises:
        BadQuery: there are several, and some numbers name none.
    """
    examples = {number.currency: text for text, number in reversed(numbers.items())}
    bare = examples.pop("", None)
    named = sorted(examples)
    if not named:
        return None, None
    if len(named) == 1:
        note = f"{field}: {bare} names no currency and is taken for {named[0]}, like the others"
        return Series(named[0], index=texts.index, dtype="str"), note if bare else None
    if bare:
        rule = f"names no currency, and others are in {', '.join(named)}: write the currency of each"
        raise BadQuery(field, bare, rule)
    note = f"{field} is in {', '.join(named)}: convert it with outside_data.in_dollars before adding it up"
    return texts.map({text: number.currency for text, number in numbers.items()}).astype("str"), note


def _decimal_mark(
    numbers: dict[str, _NumberText], field: str, decimal: str | None, separator: str | None
) -> tuple[str, str | None]:
    """Return the decimal mark of the column, and a note if the values alone did not decide it.

    Our choice where each value fits both marks, as 1,234 and 1.234 do: a point is a decimal mark in a file separated by
    commas, as every program writes it. A comma is a thousands mark if other values below 1000 have none and none above
    lacks it, unless semicolons separate.

    Raises:
        BadQuery: no mark fits all values, or both do and neither choice applies.
    """
    misfits = {mark: [text for text in numbers if mark not in numbers[text].values] for mark in _BODIES}
    if decimal is not None:
        if misfits[decimal]:
            raise BadQuery(field, misfits[decimal][0], f"is not a number with decimal={decimal!r}")
        return decimal, None
    fitting = [mark for mark in _BODIES if not misfits[mark]]
    if not fitting:
        unlike = [misfits["."][0], misfits[","][0]]
        raise BadQuery(field, unlike, "do not agree on the decimal mark: use one")
    is_open = {text: number for text, number in numbers.items() if len({*number.values.values()}) == 2}
    if len(fitting) == 1 or not is_open:
        return fitting[0], None
    marks = {"," if "," in number.body else "." for number in is_open.values()}
    unmarked = [int(number.body) for number in numbers.values() if number.body.isdigit()]
    is_point = marks == {"."} and separator == "," and not any(number.currency for number in is_open.values())
    is_grouped = marks == {","} and separator != ";" and any(unmarked) and max(unmarked) < 1000
    text, number = next(iter(is_open.items()))
    read = {mark: f"{value:f}" for mark, value in number.values.items()}
    if not (is_point or is_grouped):
        meant = " or ".join(f"{value} (decimal={mark!r})" for mark, value in read.items())
        raise BadQuery(field, text, f"is {meant}, and no other value tells which: pass decimal=")
    return ".", f"{field}: {text} is read as {read['.']}; with decimal=',' it would be {read[',']}"
