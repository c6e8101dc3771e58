"""Numbers as people write them: `$1,234.50`, `1.234,50 €`, `(12.00)`, `12%`, `5.2K`.

The distinct texts of a column are taken apart together. Which mark is the decimal one is not decided here: it belongs
to the file, so its columns decide together (`decimal_mark`), and one that stays open is refused when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.analysis.files.currency_names import CURRENCY_NAMES, currencies_of, is_currency
from gamelens.analysis.files.decimal_digits import ARABIC_DECIMAL_MARK, ascii_digits_of
from gamelens.analysis.files.magnitudes import power_of, word_pattern
from gamelens.errors import BadQuery

Mark = Literal[".", ","]
MARKS: Final[tuple[Mark, ...]] = (".", ",")

_MACHINE: Final = r"^-?(?:(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:[eE][-+]?\d+)?|inf)$"
_SPELLED: Final = "|".join(
    re.escape(name) for name in sorted(CURRENCY_NAMES, key=len, reverse=True) if len(name) > 3 or not name.isascii()
)
_UNIT: Final = (
    rf"[A-Z]{{3}}|[A-Z]{{0,3}} ?[$¢£¤¥֏؋฿៛₠-⃏﷼]|\$US|U\$[SD]|(?i:{_SPELLED})\.?"
    r"|kr\.?|Kr\.?|Ft|lei|Lei|TL|Rs\.?|Rp\.?|RM|R|KSh|S/\.?|S?Fr\.?|[دجر]\.[إأبتسعقكم]\.?|ريال|درهم"
)
_PARTS: Final = (
    rf"(?P<open>\()? ?(?P<sign>[-+])? ?(?P<share>%)? ?(?P<before>{_UNIT})? ?(?P<inner>[-+])? ?"
    r"(?P<body>(?:[0-9](?:[0-9.,٫' ]*[0-9])?|[.,٫][0-9]+)(?:[eE][-+]?[0-9]+)?|inf)"
    r" ?(?P<percent>%)? ?(?P<times>{times})? ?"
    rf"(?P<after>{_UNIT})? ?(?P<outer>-)? ?(?P<close>\))? ?(?P<footnote>[*†‡§]+|[⁰¹²³⁴-⁹]+)?"
)
_FOOTNOTE: Final = r"[*†‡§⁰¹²³⁴-⁹]\s*$"
_GROUPED: Final = r"[1-9]\d{0,2}(?:(?:%s\d{3})+|(?:'\d{3})+|(?: \d{3})+)"
_BODIES: Final = {
    ".": rf"^(?:\d+|{_GROUPED % ','}|[1-9]\d?(?:,\d\d)+,\d{{3}})?(?:[.٫]\d+)?(?:[eE][-+]?\d+)?$|^inf$",
    ",": rf"^(?:\d+|{_GROUPED % '[.]'})?(?:[,٫]\d+)?$|^inf$",
}
_SPACES: Final = "[\u00a0\u202f\u2007\u2009\t]+"
_NOTHING: Final = r"n/a|n\. ?a\.|n/?d|null|none|nil|nan|k\. ?a\.|not (?:set|available)"
_NO_NAME: Final = re.compile(rf"(?i)[\W_]*(?:{_NOTHING})?[\W_]*")
_NO_VALUE: Final = re.compile(rf"(?i)[\W_]*(?:{_NOTHING}|na)?[\W_]*")
_ERROR: Final = re.compile(  # of a spreadsheet in any language, and a number that was wider than its cell
    r"\s*(?:#¡?(?:[^\W\d]|[/0])+[!?]|#(?:N/?[ABDV](?:ISP)?|Н/Д|YOK|BRAK|GETTING_DATA)|#{3,}"
    r"|(?:Err|Error|Errore|Erro|Erreur|Fehler|Fout|Ошибка):\d{3})\s*"
)


@dataclass(frozen=True, eq=False)
class WrittenNumbers:
    """The numbers among the distinct texts of a column. All attributes have a value for each text.

    Attributes:
        texts: the texts, an Arrow array.
        bodies: digits and marks of the numbers, null for other texts.
        is_negative: whether a sign or brackets say so.
        is_percent: whether it is a percentage, whose value is a share.
        units: the codes and symbols beside it, such as "$" or "€ EUR".
        is_empty: whether the text stands for no value, such as "--" or "N/A".
        is_error: whether it is an error of a spreadsheet, such as "#REF!".
        powers: the power of ten of the word behind it, 3 for 5.2K, 0 for none; None where no number has one.
        unsure: the place of the first number whose word may be several powers, these and the word.
    """

    texts: Any
    bodies: Any
    is_negative: NDArray[np.bool_]
    is_percent: NDArray[np.bool_]
    units: NDArray[np.object_]
    is_empty: NDArray[np.bool_]
    is_error: NDArray[np.bool_]
    powers: NDArray[np.int64] | None = None
    unsure: tuple[int, str, tuple[int, ...]] | None = None

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Whether each text is a number."""
        return np.asarray(self.bodies.is_valid())

    @property
    def is_other(self) -> NDArray[np.bool_]:
        """Whether each text is neither a number nor stands for no value."""
        return ~(self.is_number | self.is_empty)

    @property
    def other(self) -> str | None:
        """The first text that is neither a number nor stands for no value."""
        return self._first(self.is_other)

    @property
    def is_division(self) -> NDArray[np.bool_]:
        """Whether each text is the error of a division by 0."""
        return self.is_error & _flags(pc.match_substring(self.texts, "/0"))

    def _first(self, mask: NDArray[np.bool_]) -> str | None:
        return self.texts[int(mask.argmax())].as_py() if mask.any() else None

    @property
    def are_names(self) -> bool:
        """Whether a number is a name: 007, or an integer that float64 cannot represent."""
        is_long = pc.match_substring_regex(self.bodies, r"^0\d|^\d{19,}$")
        return any(text[0] == "0" or len(text.rstrip("0")) > 17 for text in self.bodies.filter(is_long).to_pylist())

    @property
    def may_be_names(self) -> bool:
        """Whether all numbers have a word and none a currency: 1M and 12M are also the plans of a subscription."""
        is_number = self.is_number
        return self.powers is not None and bool(((self.powers > 0) & (self.units == ""))[is_number].all())

    def misfit(self, mark: Mark) -> str | None:
        """Return the first number that cannot be written with the decimal mark *mark*."""
        return self._first(self.is_number & ~self.fits(mark))

    def fits(self, mark: Mark) -> NDArray[np.bool_]:
        """Return which texts are numbers with the decimal mark *mark*."""
        return _flags(pc.match_substring_regex(self.bodies, _BODIES[mark]))

    @cached_property
    def fitting(self) -> tuple[Mark, ...]:
        """The decimal marks with which all numbers can be written."""
        return tuple(mark for mark in MARKS if self.misfit(mark) is None)

    @property
    def are_unlike(self) -> bool:
        """Whether no decimal mark fits all numbers, or both fit and both occur, as in 1.250 and 1,250."""
        if self.open_text is None:
            return not self.fitting
        return all(pc.any(pc.match_substring(self.bodies, mark), min_count=0).as_py() for mark in MARKS)

    @cached_property
    def open_text(self) -> str | None:
        """The first text whose value depends on the decimal mark, if both marks fit all of them."""
        is_both = len(self.fitting) == len(MARKS)
        return self._first(_flags(pc.match_substring_regex(self.bodies, "[.,]"))) if is_both else None

    def values(self, mark: Mark) -> NDArray[np.float64]:
        """Return the value of each text, NaN for one that is no number with *mark*."""
        digits = pc.replace_substring_regex(self.bodies, "[,' ]" if mark == "." else "[.' ]", "")
        digits = pc.replace_substring(digits, ",", ".") if mark == "," else digits
        digits = pc.replace_substring(digits, ARABIC_DECIMAL_MARK, ".")
        fits = pc.match_substring_regex(self.bodies, _BODIES[mark])
        if self.is_percent.any():  # a division would round twice
            digits = pc.if_else(pa.array(self.is_percent), pc.binary_join_element_wise(digits, "e-2", ""), digits)
        if self.powers is not None:
            ends = pa.array([f"e{power}" if power else "" for power in self.powers.tolist()], pa.string())
            digits = pc.binary_join_element_wise(digits, ends, "")
        numbers = pc.if_else(fits, digits, None).cast(pa.float64())
        values: NDArray[np.float64] = pc.fill_null(numbers, np.nan).to_numpy().copy()
        values[self.is_negative] *= -1
        return values

    def places(self, mark: Mark) -> int:
        """Return the most decimal places of a number, those of a percentage as a share."""
        part = pc.utf8_length(pc.replace_substring_regex(self.bodies, rf"^[^{mark}٫]*[{mark}٫]?", ""))
        power = int(self.powers[self.is_number].min()) if self.powers is not None else 0
        return int(pc.max(part).as_py() or 0) + 2 * bool(self.is_percent.any()) - power

    @property
    def rounded(self) -> str | None:
        """The first number with a word behind it, which is rounded."""
        return None if self.powers is None else self._first((self.powers > 0) & self.is_number)

    @property
    def footnoted(self) -> str | None:
        """The first number with the mark of a footnote behind it, such as 1.20* or 1.20¹."""
        return self._first(_flags(pc.match_substring_regex(self.texts, _FOOTNOTE)) & self.is_number)


def written_numbers(texts: Any, magnitudes: Mapping[str, float] | None = None) -> WrittenNumbers:
    """Take the distinct *texts* of a column apart, an Arrow array or a list.

    *magnitudes* are the numbers that words behind a number stand for, beside the known ones: `{"mil": 1000}`.
    """
    texts = pa.array(texts, pa.string())
    plain = pc.utf8_trim_whitespace(texts)
    none = np.zeros(len(texts), dtype=bool)
    if pc.all(pc.match_substring_regex(plain, _MACHINE), min_count=0).as_py():
        bodies = pc.replace_substring_regex(plain, "^-", "")
        is_negative = _flags(pc.starts_with(plain, "-"))
        return WrittenNumbers(texts, bodies, is_negative, none, np.full(len(texts), "", dtype=object), none, none)
    plain = pc.replace_substring_regex(ascii_digits_of(plain), _SPACES, " ")
    plain = pc.replace_substring_regex(pc.replace_substring(plain, "−", "-"), "[’`´]", "'")
    shapes = pc.replace_substring_regex(plain, r"\d+", "0").dictionary_encode()  # few, however many numbers there are
    pattern = _pattern(tuple(magnitudes or ()))
    forms = [_form(shape, pattern) for shape in shapes.dictionary.to_pylist()]
    of_text = shapes.indices.to_numpy()
    units = np.array([form.unit if form else None for form in forms], dtype=object)[of_text]
    bodies = _bodies(plain, forms, of_text)
    is_number = _flags(pc.match_substring_regex(bodies, f"{_BODIES['.']}|{_BODIES[',']}"))
    is_error = are_errors(plain)
    powers, unsure = _powers(forms, of_text, is_number, magnitudes or {})
    return WrittenNumbers(
        texts,
        pc.if_else(pa.array(is_number), bodies, None),
        np.array([bool(form and form.is_negative) for form in forms], dtype=bool)[of_text] & is_number,
        np.array([bool(form and form.is_percent) for form in forms], dtype=bool)[of_text] & is_number,
        np.where(is_number, units, ""),
        are_like(plain, _NO_VALUE) & ~is_number & ~is_error,
        is_error,
        powers,
        unsure,
    )


def _powers(
    forms: Sequence[_Form | None],
    of_text: NDArray[np.int32],
    is_number: NDArray[np.bool_],
    stated: Mapping[str, float],
) -> tuple[NDArray[np.int64] | None, tuple[int, str, tuple[int, ...]] | None]:
    """Return the power of ten of each text by its word, and the first whose word leaves it open."""
    words = {form.word for form in forms if form and form.word}
    if not words:
        return None, None
    possible = [
        power_of(form.word, form.unit, words - {form.word}, stated) if form and form.word else () for form in forms
    ]
    powers = np.array([powers[0] if powers else 0 for powers in possible], dtype="int64")[of_text]
    is_open = np.array([len(powers) > 1 for powers in possible], dtype=bool)[of_text] & is_number
    if not is_open.any():
        return powers, None
    place = int(is_open.argmax())
    form = forms[of_text[place]]
    return powers, (place, form.word.rstrip(".") if form else "", possible[of_text[place]])


def say_nothing(texts: Any) -> NDArray[np.bool_]:
    """Return which texts of an Arrow array stand for no value among names, such as -- and N/A. NA is Namibia."""
    return are_like(texts, _NO_NAME) | are_errors(texts)


def are_errors(texts: Any) -> NDArray[np.bool_]:
    """Return which texts of an Arrow array are errors of a spreadsheet: #REF!, #NV, Err:502, ####."""
    flags = _flags(pc.match_substring_regex(texts, r"#|:\d{3}"))
    candidates = texts.filter(pa.array(flags)).to_pylist()
    flags[flags] = [bool(_ERROR.fullmatch(text)) and (":" in text or text.upper() == text) for text in candidates]
    return flags


def are_like(texts: Any, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    r"""Return which texts of an Arrow array *pattern* matches as a whole.

    Arrow finds the candidates. It takes every letter beyond ASCII for a `\W`: its class of all letters costs a
    millisecond to build, whatever the number of texts. So *pattern* has no `\w`, which would be too few there.
    """
    flags = _flags(pc.match_substring_regex(texts, f"^(?:{pattern.pattern})$"))
    candidates = texts.filter(pa.array(flags)).to_pylist()
    flags[flags] = [pattern.fullmatch(text) is not None for text in candidates]
    return flags


def decimal_mark(
    columns: Mapping[str, WrittenNumbers],
    whole: Mapping[str, bool],
    separator: str | None,
    decimal: str | None,
    without_decimals: Collection[str] = (),
) -> tuple[dict[str, Mark], dict[str, BadQuery], list[str]]:
    """Return the decimal mark of each column, what is wrong with columns that have none, and notes on what was assumed.

    The mark belongs to the file: the other columns decide where one leaves it open. Our choice where all leave it
    open: a point is a decimal mark in a file separated by commas, as every program writes it. A comma is a thousands
    mark if other values below 1000 have none and none above lacks it, unless semicolons separate.

    Args:
        columns: the numbers, by column.
        whole: whether a column has whole numbers only, such as a count.
        separator: the separator of the file.
        decimal: the mark that the analyst names.
        without_decimals: columns whose currency has no smaller unit: the only mark is one of thousands.
    """
    marks: dict[str, Mark] = {}
    problems: dict[str, BadQuery] = {}
    notes: list[str] = []
    still_open: list[str] = []
    for name, numbers in columns.items():
        named = [mark for mark in MARKS if mark == decimal]
        if named and (text := numbers.misfit(named[0])) is not None:
            problems[name] = BadQuery(name, text, f"is not a number with decimal={decimal!r}")
        elif named:
            marks[name] = named[0]
        elif not numbers.fitting:
            unlike = [numbers.misfit(mark) for mark in MARKS]
            problems[name] = BadQuery(name, unlike, "do not agree on the decimal mark: use one")
        elif numbers.open_text is None:
            marks[name] = numbers.fitting[0]
        else:
            still_open.append(name)
    are_whole = {name: [mark for mark in MARKS if _is_whole(columns[name], mark)] for name in still_open if whole[name]}
    for name in [name for name in still_open if name in without_decimals]:
        used = _used_marks(columns[name])
        if len(used) == 1 and not _is_usual_point(columns[name], used, separator):
            are_whole[name] = [mark for mark in MARKS if mark not in used]
    votes = {marks[name] for name in marks if len(columns[name].fitting) == 1}
    votes |= {fitting[0] for fitting in are_whole.values() if len(fitting) == 1}
    for name in still_open:
        numbers = columns[name]
        assumed = (
            votes if len(votes) == 1 else {*are_whole.get(name, [])} if len(are_whole.get(name, [])) == 1 else set()
        )
        if numbers.are_unlike:
            assumed = {*are_whole.get(name, [])} if len(are_whole.get(name, [])) == 1 else set()
        assumed = assumed or _usual_mark(numbers, separator)
        open_ = written_numbers([numbers.open_text])
        values = {mark: f"{open_.values(mark)[0]:.10g}" for mark in MARKS}
        if assumed:
            marks[name] = mark = next(iter(assumed))
            if not votes:
                other = next(one for one in MARKS if one != mark)
                read = f"{numbers.open_text} is read as {values[mark]}"
                notes.append(f"{name}: {read}; with decimal={other!r} it would be {values[other]}")
            continue
        meant = " or ".join(f"{value} (decimal={mark!r})" for mark, value in values.items())
        rule = f"is {meant}, and no other value tells which: pass decimal="
        problems[name] = BadQuery(name, numbers.open_text, rule)
    return marks, problems, notes


def _used_marks(numbers: WrittenNumbers) -> set[Mark]:
    bodies = numbers.bodies.drop_null()
    return {mark for mark in MARKS if pc.any(pc.match_substring(bodies, mark)).as_py()}


def _is_usual_point(numbers: WrittenNumbers, used: set[Mark], separator: str | None) -> bool:
    """Return whether points are decimal marks, as every program writes them in a file separated by commas."""
    return used == {"."} and separator == "," and not (numbers.units[numbers.is_number] != "").any()


def _usual_mark(numbers: WrittenNumbers, separator: str | None) -> set[Mark]:
    bodies, used = numbers.bodies.drop_null(), _used_marks(numbers)
    is_marked = pc.match_substring_regex(bodies, "[.,]")
    unmarked = [int(text) for text in bodies.filter(pc.invert(is_marked)).to_pylist() if text.isdigit()]
    is_grouped = used == {","} and separator != ";" and any(unmarked) and max(unmarked) < 1000
    return {"."} if is_grouped or _is_usual_point(numbers, used, separator) else set()


def _is_whole(numbers: WrittenNumbers, mark: Mark) -> bool:
    values = numbers.values(mark)[numbers.is_number]
    return bool((values == np.floor(values)).all())


class _Form(NamedTuple):
    """How a number is written: the letters before and behind its digits, and what they mean."""

    before: int
    behind: int
    is_negative: bool
    is_percent: bool
    unit: str
    word: str = ""


@cache
def _pattern(stated: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_PARTS.replace("{times}", word_pattern(stated)))


def _form(shape: str, pattern: re.Pattern[str]) -> _Form | None:
    """Return the form of a text in which each run of digits is a 0, None if it is not that of a number."""
    match = pattern.fullmatch(shape)
    if not match or bool(match["open"]) != bool(match["close"]):
        return None
    signs = [sign for sign in (match["open"], match["sign"], match["inner"], match["outer"]) if sign]
    units = [unit.replace(" ", "") for unit in (match["before"], match["after"]) if unit]
    are_alike = len(units) == 2 and units[0].isalpha() == units[1].isalpha()  # $5 USD has one of each
    is_unit = all(currencies_of(unit) and not _is_word(unit) for unit in units)
    is_percent = bool(match["percent"] or match["share"])
    is_odd = (is_percent and (units or "e" in match["body"].casefold())) or (match["percent"] and match["share"])
    is_odd = is_odd or (match["times"] and (is_percent or match["footnote"] or "e" in match["body"].casefold()))
    if len(signs) > 1 or are_alike or not is_unit or is_odd:
        return None
    behind = len(shape) - match.end("body")
    return _Form(
        match.start("body"),
        behind,
        bool(signs) and signs[0] != "+",
        is_percent,
        " ".join(sorted(units)),
        match["times"] or "",
    )


def _is_word(unit: str) -> bool:
    return len(unit) == 3 and unit.isalpha() and unit.isupper() and not is_currency(unit)


def _bodies(plain: Any, forms: Sequence[_Form | None], of_text: NDArray[np.int32]) -> Any:
    """Return the digits and marks of each text, null for one without a form."""
    edges = [(form.before, form.behind) if form else None for form in forms]
    parts, order = [], []
    for edge in dict.fromkeys(edges):
        rows = np.flatnonzero(np.array([value == edge for value in edges], dtype=bool)[of_text])
        texts = plain.take(pa.array(rows))
        if edge is None:
            texts = pa.nulls(len(rows), pa.string())
        elif edge != (0, 0):
            texts = pc.utf8_slice_codeunits(texts, edge[0], -edge[1] if edge[1] else None)
        parts.append(texts)
        order.append(rows)
    if not parts:
        return plain
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order))))


def _flags(mask: Any) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(mask, False))
