"""Rows whose amounts hold the tax beside rows whose amounts do not: 税込 and 税抜, TTC and HT, brutto and netto.

Such amounts are not one sum, and the rate of the tax is seldom there. A column that tells the rows apart is asked
about; amounts without any tax are the same on both bases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from gamelens.analysis.outside_data.outside_table import OutsideColumn
from gamelens.analysis.outside_data.roles import KEYS, TIMES, ColumnCells, Meaning, concepts_in
from gamelens.analysis.outside_data.rows.row_states import NAMED_BY_HEADER, rows_with, yes_and_no
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.tax_words import bare_words, basis_pattern, candidates, tax_words
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.errors import BadQuery

Basis = Literal["gross", "net", "none"]

_AMOUNTS: Final = frozenset({"amount", "price", "number", "cumulative"})
_FEWEST_SUMS: Final = 2  # rows that prove one
_ROUNDED: Final = 0.015  # of a sum of two amounts in hundredths
_MOST_FEES: Final = 6
_SHARE_OFF: Final = 1e-6
_NEARLY_ALL: Final = 0.9
_MOST_TEXTS: Final = 1_000
_MOST_FLAGS: Final = 3
_MOST_NAMED: Final = 8
_OTHER: Final[Mapping[Basis, Basis]] = {"gross": "net", "net": "gross", "none": "none"}
_OF_MONEY: Final = frozenset({"cost", "money", "currency"})


_BORDER: Final = re.compile(
    r"(?<=[A-Za-z])(?=[\u3040-\u9fff\uac00-\ud7af])|(?<=[\u3040-\u9fff\uac00-\ud7af])(?=[A-Za-z])"
)
"""Of letters and Eastern script: VAT별도."""


class TaxBases(NamedTuple):
    """What the texts of a column say of the amounts of their rows; "" is an empty cell, and others have no basis."""

    name: str
    bases: Mapping[str, Basis]
    others: tuple[str, ...]
    are_sure: bool


def tax_bases(
    meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], answered: Iterable[str] = ()
) -> list[TaxBases]:
    """Return the columns that tell the tax bases of rows, without those *answered* by the reader."""
    found = []
    for name in [name for name in cells if name not in {*answered}]:
        stated = _of_flag(name, cells[name]) or _of_texts(name, meanings[name], cells[name])
        found += [stated] if stated is not None else []
    return found


def tax_problem(
    column: OutsideColumn, found: Sequence[TaxBases], cells: Mapping[str, ColumnCells], above: Sequence[str]
) -> BadQuery | None:
    """Return the question about amounts of two tax bases, as a column of *found* says them of rows with numbers."""
    if not found or column.role not in _AMOUNTS:
        return None
    values = np.nan_to_num(column.values.astype("float64").to_numpy())
    of_header = next((basis for text in (column.name, *above) if (basis := basis_of(text)) is not None), None)
    for stated in found:
        has_number = {text: bool(values[rows_with(cells[stated.name], text)].any()) for text in stated.bases}
        groups: dict[str, list[str]] = {}
        for text in [text for text in stated.bases if has_number[text] and stated.bases[text] != "none"]:
            groups.setdefault(stated.bases[text], []).append(text)
        others = [text for text in stated.others if values[rows_with(cells[stated.name], text)].any()]
        if others and stated.are_sure:
            groups.setdefault(of_header or "other", []).extend(others)
        if len(groups) > 1:
            return _not_one_sum(column.name, stated.name, [*groups.values()])
    return None


def _not_one_sum(column: str, name: str, groups: Sequence[Sequence[str]]) -> BadQuery:
    """Return the exception for amounts of the rows of *groups* of texts, which are not one sum."""
    shown = " and ".join(" or ".join(repr(text) if text else "no value" for text in texts[:2]) for texts in groups)
    rule = f"holds amounts with and without tax by {name}, {shown}, which are not one sum: "
    steps = []
    for place, texts in enumerate(groups):
        others = [text for other, group in enumerate(groups) if other != place for text in group]
        if len(others) <= _MOST_NAMED:
            steps.append(f"leave_out={ {name: others}!r} leaves the rows of {texts[0] or 'no value'!r} alone")
    steps.append(f"leave_out={ {name: []}!r} counts all as they are")
    return BadQuery(column, UNSET, rule + ", ".join(steps) + "; one basis in all rows needs the rate of the tax")


def other_basis(column: OutsideColumn, columns: Sequence[OutsideColumn]) -> OutsideColumn | None:
    """Return an amount of the other tax basis beside *column*, which it may be as well: Cost beside Gross.

    Its header says so, or it is the sum of *column* and of a tax, or *column* is the sum of both.
    """
    basis = basis_of(column.name)
    others = [other for other in columns if other.role in ("amount", "number") and other.name != column.name]
    for other in others:
        of_other = basis_of(other.name)
        if of_other in ("gross", "net") and of_other != basis and _is_bare(other.name) and _is_money(other):
            return other
    for tax in [other for other in others if _is_tax(other.name) and _is_money(other)]:
        rest = [other for other in others if other is not tax and _is_money(other)]
        for other in rest:
            fees = [fee for fee in rest if fee is not other]  # of an agency, between the net and the gross amount
            for beside in ((), *((fee,) for fee in fees[:_MOST_FEES])):
                if _adds_up(other, [column, tax, *beside]) or _adds_up(column, [other, tax, *beside]):
                    return other
    return None


def _is_money(column: OutsideColumn) -> bool:
    return bool((column.values.astype("float64").abs() > 1).any())


def _is_tax(header: str) -> bool:
    return topic_pattern("tax_name").search(folded_header(header)) is not None and basis_of(header) is None


def _adds_up(whole: OutsideColumn, parts: Sequence[OutsideColumn]) -> bool:
    """Return whether *whole* is the sum of *parts*, an amount and its tax, in nearly all rows."""
    total, *numbers = [
        column.values.astype("float64").to_numpy(dtype="float64", na_value=np.nan) for column in (whole, *parts)
    ]
    is_known = ~np.isnan([total, *numbers]).any(axis=0) & (total != 0)
    if is_known.sum() < _FEWEST_SUMS or not all(part[is_known].any() for part in numbers):
        return False
    off = np.abs(total - np.sum(numbers, axis=0))[is_known]
    return bool((off <= _ROUNDED + _SHARE_OFF * np.abs(total[is_known])).mean() >= _NEARLY_ALL)


def _is_bare(header: str) -> bool:
    """Return whether a header says nothing but a tax basis of costs: no profit, no revenue, no refund."""
    return all(concept.name in {*_OF_MONEY, "charge"} for concept, _, _ in concepts_in(folded_header(header)))


def _of_flag(name: str, column_cells: ColumnCells) -> TaxBases | None:
    """Return the bases that yes and no mean below a header such as VAT included."""
    basis = basis_of(name)
    is_flag = (
        not column_cells.is_typed or pa.types.is_boolean(column_cells.type) or pa.types.is_integer(column_cells.type)
    )
    if basis in (None, "none") or not is_flag or not 0 < len(column_cells.distinct) <= _MOST_FLAGS:
        return None
    texts = [*column_cells.texts, *([""] if (column_cells.codes < 0).any() else [])]
    if (answers := yes_and_no(texts)) is None:
        return None
    yes, no = answers
    return TaxBases(name, dict.fromkeys(yes, basis) | dict.fromkeys(no, _OTHER[basis]), (), are_sure=True)


def _of_texts(name: str, meaning: Meaning, column_cells: ColumnCells) -> TaxBases | None:
    """Return the bases that texts say. In a column of names both must be there, by a tax that is named."""
    is_key = meaning.role in KEYS or not _is_free(name)
    if column_cells.is_typed or meaning.role in TIMES or not 1 <= len(column_cells.distinct) <= _MOST_TEXTS:
        return None
    if not _may_have(column_cells.distinct):
        return None
    bases = {text: basis for text in column_cells.texts if (basis := basis_of(text, is_named=is_key)) is not None}
    said = {*bases.values()} - {"none"}
    if not said or (is_key and len(said) < 2):
        return None
    are_sure = _is_free(name) and any(basis_of(text, is_named=True) in said for text in bases)
    if not are_sure and len(said) < 2:
        return None
    others = [text for text in column_cells.texts if text not in bases]
    others += [""] if (column_cells.codes < 0).any() else []
    return TaxBases(name, bases, tuple(others), are_sure)


def _is_free(header: str) -> bool:
    """Return whether a header leaves open what its texts say, as a remark does: a creative may be called anything."""
    known = concepts_in(folded_header(header))
    is_named = [
        concept.role in KEYS or (concept.name == "description" and phrase not in NAMED_BY_HEADER)
        for concept, phrase, _ in known
    ]
    return not any(is_named) or topic_pattern("tax_name").search(folded_header(header.lower())) is not None


def _may_have(distinct: Any) -> bool:
    """Return whether a text has one of the words, looked for by Arrow in small letters."""
    return bool(pc.any(pc.match_substring_regex(pc.utf8_lower(distinct), candidates())).as_py())


@lru_cache(maxsize=4096)
def basis_of(text: str, *, is_named: bool = False) -> Basis | None:
    """Return what a text says of an amount: that it holds the tax, or does not, or that there is none.

    *is_named*: the text must name the tax; gross and net are also what campaigns are called.
    """
    text = re.sub(r"(?i)\bw/o\b", " without ", text.replace("+", " plus ").replace('"', " "))
    words = folded_header(_BORDER.sub(" ", text).lower().replace("_", " "))
    either: Sequence[Basis] = ("net", "gross")
    for basis in either:
        if basis_pattern(basis, is_named=is_named).search(words):
            return basis
    if is_named:
        return None
    if words in tax_words("none"):
        return "none"
    bare = " ".join(word for word in words.split() if concepts_in(word) == () or word in bare_words())
    return next((basis for basis in either if {words, bare} & tax_words(basis)), None)
