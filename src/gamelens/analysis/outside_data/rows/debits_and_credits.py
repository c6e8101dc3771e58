"""The two columns of a ledger, whose difference is what was spent: Soll and Haben, debit and credit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from msgspec import UNSET

from gamelens.analysis.outside_data.outside_table import OutsideColumn
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.errors import BadQuery

_PAIRS: Final = (
    ("debit", "credit"), ("debits", "credits"), ("dr", "cr"), ("soll", "haben"), ("debe", "haber"), ("dare", "avere"),
    ("debito", "credito"), ("debet", "kredit"), ("debet", "credit"), ("debit", "kredit"), ("debitor", "kreditor"),
    ("winien", "ma"), ("ma dati", "dal"), ("borc", "alacak"), ("дебет", "кредит"), ("借方", "贷方"), ("借方", "貸方"),
    ("차변", "대변"), ("no", "co"), ("tartozik", "kovetel"), ("مدين", "دائن"), ("חובה", "זכות"),
)  # fmt: skip
_FEWEST_CREDITS: Final = 3
_ROUNDED: Final = 0.0051
_CODES: Final = (
    ("dr", "cr"), ("d", "c"), ("db", "cr"), ("s", "h"), ("d", "h"), ("d", "k"), ("da", "av"), ("wn", "ma"), ("b", "a"),
    ("дт", "кт"), ("д", "к"), ("借", "贷"), ("借", "貸"), ("차", "대"), ("debit", "credit"), ("debet", "credit"),
    ("debet", "kredit"), ("soll", "haben"), ("debe", "haber"), ("dare", "avere"),
)  # fmt: skip
"""What the cells of a column say of the side that a row is on."""


def credits_among(texts: Sequence[str]) -> tuple[str, str] | None:
    """Return which of two *texts* says that a row is a debit and which that it is a credit, None for any other two."""
    folded = {folded_header(text): text for text in texts}
    pair = next((pair for pair in _CODES if {*pair} == {*folded}), None)
    return None if pair is None or len(texts) != len(folded) else (folded[pair[0]], folded[pair[1]])


def ledger_sides(columns: Sequence[OutsideColumn]) -> list[tuple[str, str]]:
    """Return the pairs of columns that are the debits and the credits of the same, such as of net amounts."""
    words = {
        column.name: f" {folded_header(column.name)} " for column in columns if column.role in ("amount", "number")
    }
    for first, second in _PAIRS:
        debits = {name: text.replace(f" {first} ", " * ") for name, text in words.items() if f" {first} " in text}
        others = {name: text.replace(f" {second} ", " * ") for name, text in words.items() if f" {second} " in text}
        found = [(debit, credit) for debit in debits for credit in others]
        if len(found) > 1:  # Gross Debit (GC) and Gross Credit (GC)
            found = [(debit, credit) for debit, credit in found if debits[debit] == others[credit]]
        if found and {*debits} != {*others}:
            return found
    return []


def payout_row(debits: OutsideColumn, credits_: OutsideColumn) -> int | None:
    """Return the place of the row that pays out all others of a batch, None without one.

    It is the first or the last row with a debit, larger than all others together: the credits without these.
    """
    out, back = (np.nan_to_num(column.values.astype("float64").to_numpy()) for column in (debits, credits_))
    places = np.flatnonzero(out)
    if np.count_nonzero(back) < _FEWEST_CREDITS or abs(out.sum() - back.sum()) > _ROUNDED:
        return None
    ends = {int(place) for place in (places[0], places[-1]) if 2 * out[place] > out.sum() and back[place] == 0}
    return ends.pop() if len(ends) == 1 else None


def with_ledger_problems(columns: Sequence[OutsideColumn], source: str) -> list[OutsideColumn]:
    """Return *columns*, the debits and credits of a ledger with the question whether one of them alone is meant."""
    pairs = ledger_sides(columns)
    found = dict.fromkeys(pairs[0], pairs[0]) if len(pairs) == 1 else {}
    result = []
    has_number = {
        column.name: bool(np.nan_to_num(column.values.astype("float64").to_numpy()).any())
        for column in columns
        if column.name in found
    }
    for column in columns:
        pair = found.get(column.name)
        if pair and all(has_number.values()) and column.problem is None and column.evidence[0].where != "the argument":
            debit, credit = pair
            net = f'frame["{debit}"].fillna(0) - frame["{credit}"].fillna(0)'
            rule = f"is one side of a ledger, {debit} and {credit}: frame = gl.read_table({source!r}).frame; "
            rule += f'frame["net"] = {net}; gl.read_table(frame) has the difference as net, '
            rule += f'roles={{"{column.name}": "cost"}} takes this side alone'
            column = replace(column, problem=BadQuery(column.name, UNSET, rule))
        result.append(column)
    return result
