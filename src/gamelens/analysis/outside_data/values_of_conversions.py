"""What conversions are worth, as money earned: beside a cost, or as a return on spend or another rate proves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from pandas import Series

from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.outside_data.outside_table import OutsideColumn
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Written, fits, places_of
from gamelens.analysis.outside_data.related_amounts import RELATED
from gamelens.analysis.outside_data.roles import ColumnCells, Evidence, Meaning, Vendor, concepts_in, is_no_money
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.value_words import value_in

BY_NAMES: Final = "the names in its header"
"""Where a rate is said to be the quotient of two columns whose headers are in its own: Conv. value / Cost."""
_UNNAMED: Final = frozenset({"", "money", "unnamed", "related"})
"""Concepts of amounts that are called neither a cost nor an income."""
_ANY_COUNT: Final = frozenset({"", "conversions", "events"})
_PROFIT: Final = re.compile(
    r"profit|gewinn|margin|marge|benefici|lucro|utile|zysk|прибыль|прибуток|利益|利润|利潤|이익"
)
_SLASH: Final = re.compile(r" / | per | pro | par | por ")
_MOST_TRIED: Final = 40  # columns that a return may be made of
_FACTORS: Final = (1.0, 100.0)
_FEWEST_VALUES: Final = 3
_FEWEST_OF_COUNTS: Final = 5  # values of a return of whole numbers, which a few rounded ones fit by chance


def with_values_of_conversions(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings* with what is earned for a cost as income, whatever else its words may count.

    What purchases are worth is earned where ads are paid for. A return on spend, such as ROAS, is earned / spent: the
    column that is it in every row, or whose header stands in the header of the return, is money.
    """
    found = dict(meanings)
    amounts = {name: known.concept for name, known in meanings.items() if known.role == "amount"}
    costs = [name for name, concept in amounts.items() if concept == "cost"]
    spent = [*costs, *(name for name, concept in amounts.items() if concept not in ("cost", "income"))]
    if not costs:
        return found
    for name, known in meanings.items():
        is_worth = known.role == "amount" and known.concept == "money" and known.evidence.where == "header"
        value = value_in(folded_header(BRACKETS.sub(" ", name))) if is_worth else None
        if value is not None and value.thing:
            found[name] = replace(known, concept="income")
    for name, known in meanings.items():
        if known.evidence.where == "the argument":
            continue
        if known.role == "rate" and known.concept == "roas":
            _add_numerator(name, found, cells, spent)
        elif known.role in ("rate", "number") or known.concept == "cost":
            _add_named(name, found, cells, costs)
    for column_cells in cells.values():
        column_cells.release_numbers()
    return found


def with_numerators_of_rates(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings*; a rate with a word of money is that money, where another rate is it for each of a count."""
    found = dict(meanings)
    counts = [name for name, known in meanings.items() if known.role == "count" and cells[name].may_be_number]
    rates = [name for name, known in meanings.items() if known.role == "rate" and cells[name].may_be_number]
    for name in rates:
        if (money := money_beside_rate(name, meanings[name])) is None:
            continue
        tried = product([rate for rate in rates if rate != name], counts[:_MOST_TRIED], (1.0, 1000.0))
        proof = next((quotient for quotient in tried if _is_for_each(name, quotient, cells)), None)
        if proof is not None:
            rate, count, factor = proof
            evidence = Evidence("amount", "its cells", f"{rate} = {ColumnQuotient(name, count, factor)}")
            found[name] = Meaning("amount", evidence, money, None, meanings[name].details)
    for column_cells in cells.values():
        column_cells.release_numbers()
    return found


def money_beside_rate(name: str, known: Meaning) -> str | None:
    """Return the concept of the money in the header of a column that is a rate by another word of it, None without."""
    if known.role != "rate" or known.evidence.where != "header" or known.of is None or not known.concept:
        return None
    concepts = [concept for concept, _, _ in concepts_in(folded_header(name)) if concept.role == "amount"]
    return next((concept.name for concept in concepts if concept.name in ("cost", "income")), None)


def _is_for_each(name: str, quotient: tuple[str, str, float], cells: Mapping[str, ColumnCells]) -> bool:
    """Return whether a rate is a factor times the column *name* for each of a count, in every row."""
    rate, above, count = (_written(cells[column]) for column in (quotient[0], name, quotient[1]))
    return count.values.nunique() >= _FEWEST_VALUES and fits(rate, above, count, quotient[2])


def _add_numerator(
    rate: str, found: dict[str, Meaning], cells: Mapping[str, ColumnCells], spent: Sequence[str]
) -> None:
    """Add the column that a return is for each unit of a cost, in every row, as income; none if one is known."""
    if not cells[rate].may_be_number:
        return
    below, shown = {cost: _written(cells[cost]) for cost in spent if cells[cost].may_be_number}, _written(cells[rate])
    earned = [name for name, known in found.items() if known.role == "amount" and known.concept == "income"]
    unknown = [name for name, known in found.items() if _may_be_earned(known) and name != rate]
    unknown.sort(key=lambda name: (found[name].role != "amount", found[name].role != "number", cells[name].is_whole))
    for name in [*earned, *unknown[:_MOST_TRIED]]:
        if not cells[name].may_be_number:
            continue
        above, fewest = _written(cells[name]), _FEWEST_OF_COUNTS if cells[name].is_whole else _FEWEST_VALUES
        cells[name].release_numbers()
        for (cost, by), factor in product(below.items(), _FACTORS):
            if name != cost and fits(shown, above, by, factor, fewest):
                if name not in earned:
                    _add_income(name, rate, ColumnQuotient(name, cost, factor), found)
                return


def _add_named(rate: str, found: dict[str, Meaning], cells: Mapping[str, ColumnCells], costs: Sequence[str]) -> None:
    """Add a rate whose header is the headers of a column and of a cost with a slash, and the column if it is money."""
    parts = _SLASH.split(folded_header(rate))
    if len(parts) != 2 or not cells[rate].may_be_number:
        return
    above = next((name for name in found if name != rate and _is_called(name, parts[0])), None)
    below = next((name for name in costs if name not in (rate, above) and _is_called(name, parts[1])), None)
    if above is None or below is None or not cells[above].may_be_number:
        return
    quotient, written = ColumnQuotient(above, below), {name: _written(cells[name]) for name in (rate, above, below)}
    if not fits(written[rate], written[above], written[below], quotient.factor, fewest=1):
        return
    known, details = found[rate], {**found[rate].details, "of": [above, below]}
    found[rate] = Meaning("rate", Evidence("rate", BY_NAMES, str(quotient)), "", known.of, details)
    is_count = found[above].role == "count"  # conversions for a cost stay conversions
    if not is_count and _may_be_earned(found[above]) and not is_no_money(above):
        _add_income(above, rate, quotient, found)


def _may_be_earned(known: Meaning) -> bool:
    """Return whether neither an argument nor a format says what a column is, and its header names no other amount."""
    if known.evidence.where not in ("header", "cells", "its cells"):
        return False
    if known.role == "count":  # installs are installs
        return known.concept in _ANY_COUNT
    return known.role == "number" or (known.role == "amount" and known.concept in _UNNAMED)


def _add_income(name: str, rate: str, formula: ColumnQuotient, found: dict[str, Meaning]) -> None:
    evidence = Evidence("amount", "a return on spend", f"{rate} = {formula}")
    concept = RELATED if _PROFIT.search(folded_header(name)) else "income"
    found[name] = Meaning("amount", evidence, concept, None, found[name].details)


def with_currency_of_account(columns: Sequence[OutsideColumn], vendor: Vendor | None) -> list[OutsideColumn]:
    """Return *columns*; in a report of a network itself, conversions are worth money in the currency of its costs."""
    costs = [column for column in columns if column.role == "amount" and column.concept == "cost"]
    codes = {column.currency for column in costs if column.money_problem is None}
    if vendor is None or "publisher" not in vendor.table or len(codes) != 1 or None in codes:
        return [*columns]
    cost = next(column for column in costs if column.currency in codes)
    found = []
    for column in columns:
        is_unsaid = column.currencies is None and len(column.evidence) == 1 and column.money_problem is not None
        if column.role == "amount" and column.concept == "income" and is_unsaid:
            value = value_in(folded_header(BRACKETS.sub(" ", column.name)))
            if value is not None and value.thing:
                says = Evidence(str(cost.currency), f"the account of {vendor.name}", cost.name)
                evidence, known = (*column.evidence, says), cost.currencies
                column = replace(column, currencies=known, evidence=evidence, money_problem=None)
        found.append(column)
    return found


def _is_called(name: str, folded: str) -> bool:
    return folded in (folded_header(name), folded_header(BRACKETS.sub(" ", name)))


def _written(column_cells: ColumnCells) -> Written:
    """Return the numbers of a column as they are written. Text is read with the first decimal mark that fits."""
    values = Series(column_cells.likely_numbers)
    if column_cells.is_typed:
        return Written(values, places_of(values))
    return Written(values, column_cells.numbers.places((column_cells.numbers.fitting or (".",))[0]))
