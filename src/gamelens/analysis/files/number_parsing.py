"""Numbers as people write them: `$1,234.50`, `1.234,50 €`, `(12.00)`, `12%`.

A column is read as a whole: whether a comma marks decimals or thousands is decided by all of its values, and what all
of them leave open is refused or, where the form of the file speaks for one reading, read so and said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
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
_FIGURE: Final = re.compile(
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
_WORDS: Final = frozenset({"ALL", "TOP"})  # currencies too, and far more often the beginning of a name
_SPACES: Final = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\t": " ", "’": "'", "−": "-"})
_CODES: Final = {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "₺": "TRY", "₽": "RUB", "₫": "VND", "US$": "USD"}


@dataclass(frozen=True)
class _Figure:
    """One number, its sign and currency known, its digits as they are written."""

    text: str
    is_negative: bool
    body: str
    currency: str
    is_percent: bool


@dataclass(frozen=True, eq=False)
class ParsedNumbers:
    """*numbers* are Int64 where all are whole and without currency, else float64; 12% is 0.12.

    *is_share*: they were percentages, which do not add up. *note* says how an open question was decided.
    """

    numbers: Series[Any]
    is_share: bool = False
    note: str | None = None


def read_amounts(
    texts: Series[Any], *, field: str, decimal: str | None = None, separator: str | None = None
) -> ParsedNumbers | str | None:
    """The numbers in *texts*; None where they are none, or the first text that is none where most are.

    *decimal* is the decimal mark, "." or ",", where the column cannot tell; *separator* that of the CSV file.

    Raises:
        BadQuery: they are numbers, and how to read them is open, or they are in several currencies.
    """
    filled = texts.where(texts.str.strip() != "")
    plain = _machine_written(filled, decimal)
    if plain is not None:
        return ParsedNumbers(plain)
    written = [str(text) for text in filled.dropna().unique()]
    figures = {text: figure for text in written if (figure := _figure(text))}
    if len(figures) < len(written) or not written:
        return next(text for text in written if text not in figures) if 2 * len(figures) >= len(written) > 0 else None
    if any(_is_name(figure.body) for figure in figures.values()):
        return None
    return _numbers(filled, list(figures.values()), field, decimal, separator)


def _machine_written(texts: Series[Any], decimal: str | None) -> Series[Any] | None:
    """Numbers as programs write them, read at once; None where there is anything else or a question left."""
    filled = pa.array(texts.dropna(), pa.string())
    if not len(filled) or not pc.all(pc.match_substring_regex(filled, f"^(?:{_MACHINE}|-?inf)$")).as_py():
        return None
    if pc.all(pc.match_substring_regex(filled, r"^-?\d{1,18}$")).as_py():
        return _placed(filled.cast(pa.int64()), texts, "Int64")
    is_open = pc.match_substring_regex(filled, r"^-?(?:[1-9]\d{0,2}\.\d{3}|\d+)$")
    if decimal == "," or (decimal is None and pc.all(is_open).as_py()):
        return None
    if any(_is_name(text) for text in filled.filter(pc.match_substring_regex(filled, r"^\d{19,}$")).to_pylist()):
        return None
    return _placed(filled.cast(pa.float64()), texts, "float64")


def _is_name(body: str) -> bool:
    """Whether digits are a name and no number: 007, or a whole number that no float64 can tell from its neighbours."""
    return bool(re.match(r"0\d", body)) or (body.isdigit() and len(body) > 18 and len(body.rstrip("0")) > 17)


def _placed(numbers: Any, texts: Series[Any], dtype: Any) -> Series[Any]:
    placed = pd.Series(pd.NA if dtype == "Int64" else np.nan, index=texts.index, dtype=dtype)
    placed[texts.notna().to_numpy()] = numbers.to_numpy(zero_copy_only=False)
    return placed


def _figure(text: str) -> _Figure | None:
    plain = " ".join(text.translate(_SPACES).split())
    symbols = [character for character in plain if unicodedata.category(character) == "Sc"]
    found = _FIGURE.fullmatch(re.sub("|".join(map(re.escape, symbols)), "¤", plain) if symbols else plain)
    if not found or len(symbols) > 1 or bool(found["open"]) != bool(found["close"]):
        return None
    if not any(_fits(found["body"], mark) for mark in _BODIES):
        return None  # 1.2.3 is a version
    signs = [sign for sign in (found["open"], found["sign"], found["inner"], found["outer"]) if sign]
    names = [name.replace("¤", symbols[0] if symbols else "") for name in (found["before"], found["after"]) if name]
    names = [_CODES.get(name, name) for name in names]
    codes = [name for name in names if name.isalpha() and name.isascii()]
    is_unknown = any(code not in USD_PER_UNIT or code in _WORDS for code in codes)
    if len(signs) > 1 or len(codes) > 1 or is_unknown or (names and found["percent"]):
        return None
    currency = codes[0] if codes else "".join(names)
    return _Figure(text, bool(signs and signs[0] != "+"), found["body"], currency, bool(found["percent"]))


def _numbers(
    texts: Series[Any], figures: Sequence[_Figure], field: str, decimal: str | None, separator: str | None
) -> ParsedNumbers:
    notes = [_currency_note(figures, field)]
    shares = {figure.is_percent: figure.text for figure in figures}
    if len(shares) > 1:
        raise BadQuery(field, [shares[True], shares[False]], "mixes percentages and numbers: write one kind")
    mark, note = _decimal_mark(figures, field, decimal, separator)
    read = {figure.text: _number(figure, mark) for figure in figures}
    numbers: Any = [read.get(text) for text in texts]
    is_count = all(value == value.to_integral_value() for value in read.values())
    is_count &= not any(figure.currency or figure.is_percent or mark in figure.body for figure in figures)
    if is_count and max(map(abs, read.values())) < 2**63:
        whole = pd.array([None if value is None else int(value) for value in numbers], dtype="Int64")
        return ParsedNumbers(pd.Series(whole, index=texts.index), note=note)
    floats = [np.nan if value is None else float(value) for value in numbers]
    said = "; ".join(said for said in (*notes, note) if said)
    return ParsedNumbers(pd.Series(floats, index=texts.index, dtype="float64"), True in shares, said or None)


def _currency_note(figures: Iterable[_Figure], field: str) -> str | None:
    currencies = {figure.currency: figure.text for figure in reversed([*figures])}
    named = sorted(set(currencies) - {""})
    if len(named) > 1:
        rule = f"are in {', '.join(named)}: convert them to one currency first"
        raise BadQuery(field, [currencies[name] for name in named], rule)
    if named and "" in currencies:
        return f"{field}: {currencies['']} names no currency and is taken for {named[0]}, like the others"
    return None


def _decimal_mark(
    figures: Sequence[_Figure], field: str, decimal: str | None, separator: str | None
) -> tuple[str, str | None]:
    """The decimal mark of the column, and what to say where the values alone did not decide it."""
    misfits = {mark: [f.text for f in figures if not _fits(f.body, mark)] for mark in _BODIES}
    if decimal is not None:
        if misfits[decimal]:
            raise BadQuery(field, misfits[decimal][0], f"is no number with decimal={decimal!r}")
        return decimal, None
    fitting = [mark for mark, unlike in misfits.items() if not unlike]
    if not fitting:
        unlike = [misfits["."][0], misfits[","][0]]
        raise BadQuery(field, unlike, "do not agree on the decimal mark: write one")
    is_open = [f for f in figures if _number(f, ".") != _number(f, ",")] if len(fitting) == 2 else []
    if not is_open:
        return fitting[0], None
    return _likelier(figures, is_open, field, separator)


def _likelier(
    figures: Sequence[_Figure], is_open: Sequence[_Figure], field: str, separator: str | None
) -> tuple[str, str]:
    """The mark when each value fits both: 1,234 or 1.234, with three digits behind the only mark.

    Our choice: a point is a decimal mark in a file separated by commas, as every program writes it. A comma is a
    thousands mark where other values below 1000 have none and none above lacks it, unless semicolons separate.
    """
    marks = {"," if "," in figure.body else "." for figure in is_open}
    bare = [int(figure.body) for figure in figures if figure.body.isdigit()]
    is_bare = not any(figure.currency for figure in is_open)
    first = is_open[0]
    is_point = marks == {"."} and separator == "," and is_bare
    is_grouped = marks == {","} and separator != ";" and any(bare) and all(number < 1000 for number in bare)
    if not (is_point or is_grouped):
        meant = " or ".join(f"{_number(first, mark):f} (decimal={mark!r})" for mark in _BODIES)
        raise BadQuery(field, first.text, f"is {meant}, and no other value tells: say decimal=")
    read, other = (f"{_number(first, mark):f}" for mark in _BODIES)
    return ".", f"{field}: {first.text} is read as {read}; with decimal=',' it would be {other}"


def _fits(body: str, mark: str) -> bool:
    found = _BODIES[mark].fullmatch(body)
    return bool(found and (found["whole"] or found["part"]))


def _number(figure: _Figure, mark: str) -> Decimal:
    found = _BODIES[mark].fullmatch(figure.body)
    if found is None:
        raise ValueError(figure.body)
    digits = re.sub(r"\D", "", found["whole"] or "0")
    part = f".{found['part']}" if found["part"] else ""
    value = Decimal(f"{digits}{part}{found['power'] or ''}")
    value = value.scaleb(-2) if figure.is_percent else value
    return -value if figure.is_negative else value
