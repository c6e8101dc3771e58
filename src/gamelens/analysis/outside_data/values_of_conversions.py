"""What conversions are worth, as money earned: beside a cost, or as a return on spend proves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pandas import Series

from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Written, fits, fitting_formula, places_of
from gamelens.analysis.outside_data.roles import ColumnCells, Evidence, Meaning, is_no_money
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.value_words import value_in

BY_NAMES: Final = "the names in its header"
"""Where a rate is said to be the quotient of two columns whose headers are in its own: Conv. value / Cost."""
_UNNAMED: Final = frozenset({"", "money", "unnamed", "related"})
"""Concepts of amounts that are called neither a cost nor an income."""
_SLASH: Final = re.compile(r" / | per | pro | par | por ")
_MOST_TRIED: Final = 40  # columns that a return may be made of


def with_values_of_conversions(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with what is earned for a cost as income, whatever else its words may count.

    What purchases are worth is earned where ads are paid for. A return on spend, such as ROAS, is earned / spent: the
    column that is it in every row, or whose header stands in the header of the return, is money.
    """
    found = dict(meanings)
    costs = [name for name, known in meanings.items() if known.role == "amount" and known.concept == "cost"]
    if not costs:
        return found
    for name, known in meanings.items():
        is_worth = known.role == "amount" and known.concept == "money" and known.evidence.where == "header"
        value = value_in(folded_header(BRACKETS.sub(" ", name))) if is_worth else None
        if value is not None and value.of:
            found[name] = replace(known, concept="income")
    for name, known in meanings.items():
        if known.evidence.where == "the argument":
            continue
        if known.role == "rate" and known.concept == "roas":
            _add_numerator(name, found, cells, costs)
        elif known.role in ("rate", "number") or known.concept == "cost":
            _add_named(name, found, cells, costs)
    for column_cells in cells.values():
        column_cells.release_numbers()
    return found


def _add_numerator(
    rate: str, found: dict[str, Meaning], cells: Mapping[str, ColumnCells], costs: Sequence[str]
) -> None:
    """Add the column that a return is for each unit of a cost, in every row, as income; none if one is known."""
    if not cells[rate].may_be_number:
        return
    below, shown = _written(costs, cells), _written([rate], cells)[rate]
    earned = [name for name, known in found.items() if known.role == "amount" and known.concept == "income"]
    if fitting_formula(shown, _written(earned, cells), below) is not None:
        return
    unknown = [name for name, known in found.items() if _may_be_earned(known) and name != rate]
    unknown.sort(key=lambda name: (found[name].role != "amount", found[name].role != "number", cells[name].is_whole))
    formula = fitting_formula(shown, _written(unknown[:_MOST_TRIED], cells), below)
    if formula is not None:
        _add_income(formula.numerator, rate, formula, found)


def _add_named(rate: str, found: dict[str, Meaning], cells: Mapping[str, ColumnCells], costs: Sequence[str]) -> None:
    """Add a rate whose header is the headers of a column and of a cost with a slash, and the column if it is money."""
    parts = _SLASH.split(folded_header(rate))
    if len(parts) != 2 or not cells[rate].may_be_number:
        return
    above = next((name for name in found if name != rate and _is_called(name, parts[0])), None)
    below = next((name for name in costs if name not in (rate, above) and _is_called(name, parts[1])), None)
    if above is None or below is None or not cells[above].may_be_number:
        return
    quotient, written = ColumnQuotient(above, below), _written([rate, above, below], cells)
    if not fits(written[rate], written[above], written[below], quotient.factor, fewest=1):
        return
    known, details = found[rate], {**found[rate].details, "of": [above, below]}
    found[rate] = Meaning("rate", Evidence("rate", BY_NAMES, str(quotient)), "", known.of, details)
    is_count = found[above].role == "count"  # clicks for a cost stay clicks
    if not is_count and _may_be_earned(found[above]) and not is_no_money(above):
        _add_income(above, rate, quotient, found)


def _may_be_earned(known: Meaning) -> bool:
    """Return whether neither an argument nor a format says what a column is, and its header names no other amount."""
    if known.evidence.where not in ("header", "cells", "its cells"):
        return False
    return known.role in ("count", "number") or (known.role == "amount" and known.concept in _UNNAMED)


def _add_income(name: str, rate: str, formula: ColumnQuotient, found: dict[str, Meaning]) -> None:
    evidence = Evidence("amount", "a return on spend", f"{rate} = {formula}")
    found[name] = Meaning("amount", evidence, "income", None, found[name].details)


def _is_called(name: str, folded: str) -> bool:
    return folded in (folded_header(name), folded_header(BRACKETS.sub(" ", name)))


def _written(names: Sequence[str], cells: Mapping[str, ColumnCells]) -> dict[str, Written]:
    """Return the numbers of columns as they are written, those of text with the first mark that fits."""
    found = {}
    for column_cells in (cells[name] for name in names if cells[name].may_be_number):
        values = Series(column_cells.likely_numbers)
        if column_cells.is_typed:
            places = places_of(values)
        else:
            places = column_cells.numbers.places((column_cells.numbers.fitting or (".",))[0])
        found[column_cells.name] = Written(values, places)
    return found
