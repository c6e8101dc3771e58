"""Counts whose units another column names by row: 40 hours, 3 GB, 12 requests. They are no money."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from gamelens.analysis.outside_data.roles import MEASURED, ColumnCells, Evidence, Meaning
from gamelens.analysis.outside_data.words.header_words import folded_header, is_eastern
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.analysis.outside_data.words.total_words import LEXICON

_WORD: Final = re.compile(r"[^\W\d_]?[^\W\d_A-Z]+|[^\W\d_]+")  # Write, Request, Units
_MOST_TEXTS: Final = 300
_GENERAL: Final = frozenset({"line", "item", "of", "the", "total"})


def with_counts_in_units(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings*; the amount or the quantity beside a column of units is a count in these, and no money."""
    found = dict(meanings)
    for unit in [name for name, known in meanings.items() if known.role in ("text", "identifier")]:
        if not _are_units(cells[unit]) or (counted := _counted_in(unit, found, cells)) is None:
            continue
        meaning = found[counted]
        details = {**meaning.details, "unit": unit}
        if meaning.evidence.where == "the argument":
            found[counted] = replace(meaning, details=details) if meaning.role == "count" else meaning
            continue
        found[counted] = Meaning("count", Evidence("count", "its units", unit), MEASURED, None, details)
    return found


def _are_units(column_cells: ColumnCells) -> bool:
    """Return whether most texts of a column are units, such as GB-Mo, hour and WriteRequestUnits.

    A column that is called units may have a word of one among others.
    """
    if column_cells.is_typed or not 0 < len(column_cells.distinct) <= _MOST_TEXTS:
        return False
    is_called = topic_pattern("unit_header").search(folded_header(column_cells.name)) is not None
    units = 0
    for text in column_cells.named:
        words = [_folded(word) for word in _WORD.findall(text)]
        are_units = [word in _unit_words() and (is_called or len(word) > 1 or is_eastern(word)) for word in words]
        units += bool(words) and (any(are_units) if is_called else all(are_units))
    return units > 0 and 2 * units >= len(column_cells.named)


def _counted_in(unit: str, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> str | None:
    """Return the column of the numbers in these units: by its words, or where a bare amount stands before them."""
    names = [*meanings]
    before = names[names.index(unit) - 1] if names.index(unit) else ""
    beside = {before, *names[names.index(unit) + 1 :][:1]}
    is_called = topic_pattern("unit_header").search(folded_header(unit)) is not None
    has_money = sum(known.role in ("amount", "price") for known in meanings.values()) > 1
    ranked = []
    for name in names:
        meaning, folded = meanings[name], folded_header(name)
        is_bare = meaning.role == "amount" and meaning.concept == "money"
        is_number = meaning.role in ("count", "number", "distinct") or is_bare
        if not is_number or cells[name].has_currency or not (is_called or name in beside):
            continue
        is_quantity = topic_pattern("quantity").search(folded) is not None
        if is_quantity or (is_bare and has_money and name == before) or (meaning.role == "number" and name == before):
            shared = {*folded.split()} & {*folded_header(unit).split()} - _GENERAL
            ranked.append((not shared, not is_quantity, name != before, name))
    return min(ranked)[-1] if ranked else None


def _folded(word: str) -> str:
    folded = folded_header(word)
    return folded if len(folded) < len("kgs") or is_eastern(folded) else folded.removesuffix("s")


@cache
def _unit_words() -> frozenset[str]:
    return frozenset(_folded(word) for word in LEXICON["unit"]["words"])
