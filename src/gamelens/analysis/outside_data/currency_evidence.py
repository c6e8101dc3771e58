"""The currency of each amount of an outside table: witnesses that must agree.

An argument decides. Else a column of codes, the cells, the header, a line above it, the number format and what a vendor
always writes are witnesses: each says which currencies are possible, and all must leave one. $ alone says too little.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import Series

from gamelens.analysis.files.currency_names import (
    NO_CURRENCY,
    Currencies,
    common,
    currencies_in,
    currencies_of,
    currencies_of_code,
    is_currency,
)
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import ColumnCells, Evidence, Meaning, concepts_in, find_header
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.money_units import NO_DECIMALS, multiple_in, without_multiple
from gamelens.errors import BadQuery

_IN_CURRENCY: Final = re.compile(
    r"(?i)\b(?:amounts?|values?|figures?|prices?|money|costs?|spend|revenues?|betr[aä]ge|montants|importes|valores|importi"
    r"|kwoty|tutarlar|суммы|bedragen|belopp|beløb|částky|ceny|sumy|összegek|sume|ποσά|суми|summat|iznosi)\b"
    r".*\b(?:in|en|em|w|в|v|u|i|σε|у|cinsinden(?:dir)?)\b|^\W*(?:in|en|em|w|в)\b|金额|金額|금액"
)
_UNIT_IN_TITLE: Final = re.compile(  # 单位:USD
    r"(?i)单位|單位|単位|단위|\bед(?:иниц\w*|\.)|\bjednostk\w*|\bbirim\w*|\beinheit\w*|\beenheid|\bunidade?s?\b|\bunités?\b"
    r"|\bunits?\b"
)
_OF_THOUSANDS: Final = re.compile(r"\b[TK](EUR|USD|GBP|CHF)\b")
_CODE_IN_TITLE: Final = re.compile(
    r"[(\[]\s*(?:in |en |em )?(?!ALL|TOP)[A-Z]{3}\s*[)\]]|\b(?:in|en|em|w|в) (?!ALL|TOP)[A-Z]{3}\b"
)
_SIGN_IN_TITLE: Final = re.compile(r"[(\[（]\s*(?:in |en |em )?(?:[A-Z]{1,3})?[$£¥€₩₹₺₽₴₪₫฿₱₦]\s*[)\]）]")
_SYMBOL_OF_FORMAT: Final = re.compile(r"\[\$([^\]-]*)(?:-([0-9A-Fa-f]+))?\]|\"([^\"]*)\"|\\(.)|([$£¥€₩₹₺₽])")
_LANDS: Final = {  # the languages of number formats whose symbol says too little
    **{
        "409": "USD",
        "1009": "CAD",
        "c0c": "CAD",
        "c09": "AUD",
        "1409": "NZD",
        "80a": "MXN",
        "2c0a": "ARS",
        "340a": "CLP",
    },
    **{
        "240a": "COP",
        "4809": "SGD",
        "c04": "HKD",
        "404": "TWD",
        "411": "JPY",
        "804": "CNY",
        "41d": "SEK",
        "414": "NOK",
    },
    **{"406": "DKK", "40f": "ISK", "416": "BRL"},
}
_UNIT_LINE: Final = re.compile(
    r"(?i)(?:単位|单位|單位|단위|units?|einheit|unité|unidad|unità|jednostka|ед\. ?изм\.?"
    r"|หน่วย|đơn vị|одиниц\w*|birim\w*|μονάδ\w*|الوحدة|יחידה|इकाई)\s*[:：]\s*"
    r"(?P<unit>[^\s()（）,;、。]+)"
)
_UNIT_BEFORE: Final = re.compile(
    r"(円|ドル|ユーロ|元|美元|원|달러)(?=\s*(?:単位|建て|表示|换算|換算|为单位|為單位|단위|기준))"
)  # 千円単位
_AMOUNT_IN_LINE: Final = re.compile(r"(?:[A-Z]{3}|[$£€¥])\s?\d|\d\s?(?:[A-Z]{3}(?![A-Za-z])|[$£€¥])")
_CODE_IN_NAME: Final = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")
_ROUNDED: Final = 0.0051
_FEWEST_ROWS: Final = 3
_MOST_CODES: Final = 3  # that are shown
OF_CODES: Final = "the column of codes"
_LONG_BEGINNING: Final = 6  # letters of a compound word that two headers share
_GENERAL: Final = frozenset({"currency", "code", "iso", "account", "the", "of", "in"})


@dataclass(frozen=True, eq=False)
class Witness:
    """Who says what of the currency of a column.

    Attributes:
        evidence: the witness.
        says: the possible currencies, one for each different statement.
        rows: the place of each row's statement in *says*, -1 for none.
    """

    evidence: Evidence
    says: Sequence[Currencies]
    rows: NDArray[np.integer[Any]]


class OfMoney(NamedTuple):
    """The currency of each row of an amount (ISO 4217), the evidence, and why it is not known.

    The currencies are None if nothing says them, or only a symbol of several; all null if witnesses disagree.
    """

    currencies: Series | None
    evidence: tuple[Evidence, ...]
    problem: BadQuery | None

    @property
    def currency(self) -> str | None:
        """The one currency of all its rows, None if there are several or none is known."""
        known = [] if self.currencies is None else [*self.currencies.dropna().unique()]
        return str(known[0]) if len(known) == 1 else None

    @property
    def is_whole(self) -> bool:
        """Whether all its currencies have no smaller unit."""
        known = set() if self.currencies is None else {*self.currencies.dropna().unique()}
        return bool(known) and known <= NO_DECIMALS


def currencies_of_column(
    name: str,
    meaning: Meaning,
    cells: Mapping[str, ColumnCells],
    grid: Grid,
    codes: Mapping[str, Sequence[str]],
    argument: str | None,
) -> OfMoney:
    """Return the currency of the amount *name*.

    Args:
        name: the column of amounts.
        meaning: its role.
        cells: the cells of all columns.
        grid: the table.
        codes: the columns of codes that belong to each amount.
        argument: a currency or a column of codes that the analyst names.
    """
    column_cells = cells[name]
    count = len(grid.rows)
    if argument is not None:
        witness = _named(argument, cells, count, "the argument")
        if witness is None:
            return OfMoney(
                None, (), BadQuery("currency", argument, "is neither a currency nor a column", sorted(cells))
            )
        witnesses = [witness]
    else:
        witnesses = [
            *_of_codes(codes.get(name, ()), cells),
            *_of_cells(column_cells),
            *_constant(name, meaning, grid, count),
        ]
        witnesses += _of_formats(grid.formats.get(name, ()))
        if (said := meaning.details.get("currency")) and currencies_of(said):
            witnesses.append(_same(said, meaning.evidence.where, "", count))
        witnesses += _of_signs_in_lines(grid, witnesses, count)
    is_filled = _filled(column_cells)
    said = [(witness, np.where(is_filled, witness.rows, -1)) for witness in witnesses]
    said = [(witness, places) for witness, places in said if (places >= 0).any()]
    if not said:
        return _of_no_amounts(name, grid, witnesses, count)
    number = np.zeros(count, dtype=np.min_scalar_type(math.prod(len(witness.says) + 1 for witness, _ in said)))
    for witness, places in said:  # what all witnesses say of a row together, as one number
        number *= len(witness.says) + 1
        number += (places + 1).astype(number.dtype)
    result: dict[int, str | None] = {}
    nothing = Series(pd.Categorical.from_codes(_every(count) - 1, pd.Index([], dtype="str")))
    for combination in np.flatnonzero(np.bincount(number)).tolist():
        says, rest = [], combination
        for witness, _ in reversed(said):
            rest, place = divmod(rest, len(witness.says) + 1)
            says += [(witness, witness.says[place - 1])] if place else []
        possible = common(meant for _, meant in says) if says else NO_CURRENCY
        if says and not possible:
            return OfMoney(
                nothing, tuple(witness.evidence for witness, _ in reversed(says)), _contradiction(name, says[::-1])
            )
        result[combination] = next(iter(possible)) if len(possible) == 1 else "?" if says else None
    evidence = tuple(witness.evidence for witness, _ in said)
    codes_found = sorted({code for code in result.values() if code not in (None, "?")})
    if not codes_found:
        return OfMoney(None, evidence, _unknown(name, grid.source, witnesses, _mentions(name, grid)))
    is_only = len(codes_found) == 1
    is_of_cells = all(witness.evidence.where == "the cells" for witness in witnesses)
    known = {*codes_found, None} if is_only and is_of_cells else {*codes_found}  # 7 beside £5 is in pounds too
    unsure = [combination for combination, code in result.items() if code not in known]
    if unsure and (rows := np.isin(number, unsure) & is_filled & _is_not_zero(column_cells)).any():
        row = grid.rows[int(rows.argmax())]
        rule = f"names no currency for sure in row {row}, and others are in {', '.join(codes_found)}: "
        rule += f'write the currency of each, or pass currency="{codes_found[0]}" if all are in it'
        return OfMoney(nothing, evidence, BadQuery(name, UNSET, rule))
    place_of = np.zeros(max(result) + 1, dtype="int16")
    for combination, code in result.items():
        place_of[combination] = codes_found.index(code) if code in codes_found else is_only - 1
    return OfMoney(
        Series(pd.Categorical.from_codes(place_of[number], pd.Index(codes_found, dtype="str"))), evidence, None
    )


def _of_no_amounts(name: str, grid: Grid, witnesses: Sequence[Witness], count: int) -> OfMoney:
    """Return the currency of a column without any amount, which its header or a line may name."""
    says = [witness.says[0] for witness in witnesses if len(witness.says) == 1]
    possible = common(says) if says else NO_CURRENCY
    if len(possible) != 1:
        return OfMoney(None, (), _unknown(name, grid.source, (), _mentions(name, grid)))
    known = Series(pd.Categorical.from_codes(_every(count), pd.Index([*possible], dtype="str")))
    return OfMoney(known, tuple(witness.evidence for witness in witnesses), None)


def columns_of_codes(
    amounts: Mapping[str, Meaning], currencies: Sequence[str], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the columns of codes that belong to each of *amounts*.

    A column belongs to the amounts whose brackets name it or that share a word with it; without any to all other
    amounts, like one that is just called currency.
    """
    owned: dict[str, list[str]] = {name: [] for name in amounts}
    of_all: list[str] = []
    for column in currencies:
        words = (
            set(folded_header(column).split())
            - _GENERAL
            - {phrase for concept, phrase, _ in concepts_in(folded_header(column)) if concept.role == "currency"}
        )
        named = [name for name in amounts if column == f"{name}_currency"]  # of the frame of a table
        named = named or [name for name in amounts if column.casefold() in name.casefold()]
        shared = {name: len(words & set(folded_header(name).split())) for name in amounts}
        most = max(shared.values(), default=0)
        named = named or [name for name in amounts if shared[name] and (shared[name] == most or not _own_code(name))]
        beginning = folded_header(column)[:_LONG_BEGINNING]  # Originalwährung is of Originalbetrag
        if not named and len(beginning) == _LONG_BEGINNING and len(folded_header(column).split()) == 1:
            named = [name for name in amounts if folded_header(name).startswith(beginning)]
        for name in named:
            owned[name].append(column)
        of_all += [] if named else [column]
    owned = {name: columns or [*of_all] for name, columns in owned.items()}
    bare = {folded_header(name).replace(" ", "") for name in amounts}
    for name in amounts:  # amount_usd beside amount is in dollars, whatever the code of the row
        code = _own_code(name).casefold()
        if code and folded_header(name).replace(" ", "").replace(code, "") in bare - {""}:
            owned[name] = []
    for name, meaning in amounts.items():
        if (said := meaning.details.get("currency")) and not currencies_of(said):
            found = find_header(said, names)
            owned[name] = [found] if found else []
    return owned


def _own_code(name: str) -> str:
    """Return the only currency that a header says, "" for none or several."""
    of_header = currencies_in(without_multiple(name), is_header=True)
    return next(iter(of_header)) if len(of_header) == 1 else ""


def with_proven_currencies(
    amounts: Mapping[str, Meaning], codes: Mapping[str, list[str]], cells: Mapping[str, ColumnCells]
) -> tuple[dict[str, Meaning], dict[str, list[str]]]:
    """Return *amounts* and *codes* with an amount in one currency, where an amount in several currencies proves it.

    Both are equal in all rows of that currency, and differ in all others.
    """
    found, owned = dict(amounts), dict(codes)
    sums = [name for name, meaning in amounts.items() if meaning.role == "amount"]
    for original, name in permutations(sums, 2):
        if len(owned[original]) != 1 or "named currency" in found[name].details:
            continue
        (column,) = owned[original]
        if owned[name] not in ([], [column]):  # it has codes of its own
            continue
        is_other = owned[name] != [column] or len(_own_code(name)) > len(_own_code(original))
        code = _equal_code(cells[original], cells[name], cells[column]) if is_other and column not in sums else ""
        if code and _own_code(name) in ("", code):
            found[name] = replace(
                found[name], details={**found[name].details, "proven": (code, f"{original} where {column} is {code}")}
            )
            owned[name] = []
    return found, owned


def _equal_code(original: ColumnCells, other: ColumnCells, codes: ColumnCells) -> str:
    """Return the currency of the rows in which two columns of amounts are equal, "" if others are equal too."""
    if codes.is_typed:
        return ""
    pair = [column.likely_numbers for column in (original, other)]
    for column in (original, other):
        column.release_numbers()
    is_used = ~np.isnan(pair[0]) & ~np.isnan(pair[1]) & (np.maximum(*map(np.abs, pair)) >= 1)
    are_equal = np.abs(pair[0] - pair[1]) <= _ROUNDED + 1e-9 * np.abs(pair[0])
    equal = {*codes.codes[is_used & are_equal].tolist()}
    if len(equal) != 1 or (place := min(equal)) < 0:
        return ""
    is_code = codes.codes == place
    meant = currencies_of_code(codes.distinct[place].as_py())
    is_whole = bool(are_equal[is_used & is_code].all()) and (is_used & ~is_code).sum() >= _FEWEST_ROWS
    values = np.unique(pair[0][is_used & is_code])
    return next(iter(meant)) if is_whole and len(meant) == 1 and len(values) >= _FEWEST_ROWS else ""


def _named(argument: str, cells: Mapping[str, ColumnCells], count: int, where: str) -> Witness | None:
    if argument in cells:
        return _of_codes([argument], cells)[0]
    return _same(argument, where, argument, count) if len(currencies_of(argument)) == 1 else None


def _same(text: str, where: str, quote: str, count: int) -> Witness:
    """Return a witness that says the same of all rows."""
    possible = currencies_of(text) or currencies_in(text, is_header=True)
    return Witness(Evidence(_shown(possible), where, quote), [possible], _every(count))


def _every(count: int) -> NDArray[np.integer[Any]]:
    """Return the place of the only statement for each row."""
    return np.broadcast_to(np.zeros(1, dtype="int8"), count)


def _of_codes(columns: Sequence[str], cells: Mapping[str, ColumnCells]) -> list[Witness]:
    """Return what columns of codes say."""
    found = []
    for column in columns:
        says = [currencies_of_code(text) for text in cells[column].texts]
        known = np.array([bool(said) for said in says], dtype=bool)
        codes = cells[column].codes
        rows = np.where((codes >= 0) & known[codes], codes, -1) if len(known) else codes
        codes_said = sorted({code for said in says for code in said})
        found.append(Witness(Evidence(_codes_shown(codes_said), OF_CODES, column), says, rows))
    return found


def _of_cells(column_cells: ColumnCells) -> list[Witness]:
    """Return what the symbols and codes beside the numbers say."""
    if column_cells.is_typed or not column_cells.has_units:
        return []
    of_text, units = pd.factorize(
        np.where(column_cells.numbers.units == "", np.array(None), column_cells.numbers.units)
    )
    rows = np.append(of_text, -1).astype("int32")[column_cells.codes]
    evidence = Evidence(", ".join(units[:3]), "the cells", column_cells.example)
    return [Witness(evidence, [currencies_of(unit) for unit in units], rows)]


def _constant(name: str, meaning: Meaning, grid: Grid, count: int) -> list[Witness]:
    """Return what the header says, and the lines around the table."""
    found = []
    if possible := currencies_in(without_multiple(name), is_header=True):
        found.append(Witness(Evidence(_shown(possible), "the header", name), [possible], _every(count)))
    if (proven := meaning.details.get("proven")) is not None:
        found.append(_same(proven[0], "its cells", proven[1], count))
    if of_sheet := currencies_in(grid.sheet, is_header=True):
        evidence = Evidence(_shown(of_sheet), "the name of the sheet", grid.sheet)
        found.append(Witness(evidence, [of_sheet], _every(count)))
    for line in grid.above:
        if possible := _currencies_of_line(line):
            evidence = Evidence(_shown(possible), "a line beside the table", line)
            found.append(Witness(evidence, [possible], _every(count)))
    return [*found, *_of_other_sheets(grid, count)]


def _currencies_of_line(line: str) -> Currencies:
    """Return the currencies that a line says of the amounts of its table."""
    bare = line.strip("()[] ")
    line = _OF_THOUSANDS.sub(r" \1 ", line)
    unit = _UNIT_LINE.search(without_multiple(bare)) or _UNIT_BEFORE.search(line)
    said = f"({unit[1]})" if unit else without_multiple(line)
    is_said = unit or is_about_money(line) or bare in currencies_of(bare)
    return currencies_in(said, is_header=unit is not None) if is_said else NO_CURRENCY


def _of_other_sheets(grid: Grid, count: int) -> list[Witness]:
    """Return what a line of another sheet says that is about the report, if such lines say one currency: Currency KRW.

    Only a line with the word currency does.
    """
    found = []
    for sheet, line in grid.beside:
        is_about = any(concept.name == "currency" for concept, _, _ in concepts_in(folded_header(line)))
        if is_about and len(possible := _currencies_of_line(line)) == 1:
            evidence = Evidence(_shown(possible), f"a line of the sheet {sheet}", line)
            found.append(Witness(evidence, [possible], _every(count)))
    return found[:1] if len({code for witness in found for code in witness.says[0]}) == 1 else []


def currency_beside(grid: Grid) -> str | None:
    """Return the only currency that the name of the sheet and the lines about money beside a table say."""
    nothing = Meaning("amount", Evidence("amount", "header"))
    says = [witness.says[0] for witness in _constant("", nothing, grid, 0)]
    possible = common(says) if says else NO_CURRENCY
    return next(iter(possible)) if len(possible) == 1 else None


def _of_signs_in_lines(grid: Grid, witnesses: Sequence[Witness], count: int) -> list[Witness]:
    """Return what a line beside the table says of a symbol of several currencies: $ below a title with US$.

    A line with an amount of money, such as a cap of US$ 5,000, says nothing of others.
    """
    possible = [meant for witness in witnesses for meant in witness.says]
    if not possible or any(len(meant) < 2 for meant in possible):
        return []
    for line in grid.above:
        meant = NO_CURRENCY if _AMOUNT_IN_LINE.search(line) else currencies_in(line)
        if len(meant) == 1 and meant <= common(possible):
            return [Witness(Evidence(_shown(meant), "a line beside the table", line), [meant], _every(count))]
    return []


def is_about_money(line: str) -> bool:
    """Return whether a line beside a table may say the currency or the unit of its amounts."""
    concepts = [concept for concept, _, _ in concepts_in(folded_header(line))]
    is_about = any(concept.name == "currency" for concept in concepts) or bool(_IN_CURRENCY.search(line))
    if is_about or _UNIT_IN_TITLE.search(line) or multiple_in(line, folded_header(line)):
        return True
    if _CODE_IN_TITLE.search(line) or _SIGN_IN_TITLE.search(line):  # Kosten November 2026 (EUR)
        return any(concept.role == "amount" for concept in concepts)
    return False


def multiple_problem(name: str, role: str, lines: Sequence[str]) -> BadQuery | None:
    """Return the question about amounts where a line beside the table may say that they are thousands or more."""
    for line in lines:
        if (unit := multiple_in(line, folded_header(line))) is not None:
            steps = [f'roles={{"{name}": {{"role": "{role}", "scale": {scale:g}}}}}' for scale in (unit.scale, 1)]
            rule = f"may be in {unit.word} by a line beside the table ({line!r}): pass {steps[0]} if so, or {steps[1]}"
            return BadQuery(name, UNSET, rule)
    return None


def _of_formats(formats: Sequence[str | None]) -> list[Witness]:
    """Return what the number formats of a workbook say."""
    known = [form for form in dict.fromkeys(formats) if form]
    says = [_of_format(form) for form in known]
    place = {form: row for row, form in enumerate(known) if says[row]}
    rows = np.array([place.get(form or "", -1) for form in formats], dtype="int64")
    return (
        [
            Witness(
                Evidence(_shown(says[next(iter(place.values()))]), "the number format", next(iter(place))), says, rows
            )
        ]
        if place
        else []
    )


def _of_format(form: str) -> Currencies:
    possible = []
    for symbol, land, quoted, escaped, plain in _SYMBOL_OF_FORMAT.findall(form.partition(";")[0]):
        text = (symbol or quoted or escaped or plain).strip()
        if found := currencies_of(text):
            code = _LANDS.get(land.casefold().lstrip("0"))
            possible.append(found & {code} if code in found else found)
    return common(possible) if possible else NO_CURRENCY


def _filled(column_cells: ColumnCells) -> NDArray[np.bool_]:
    if column_cells.is_typed:
        return np.asarray(column_cells.values.notna(), dtype=bool)
    is_number = column_cells.numbers.is_number
    return np.asarray(
        (column_cells.codes >= 0) & is_number[column_cells.codes] if len(is_number) else column_cells.codes >= 0
    )


def _is_not_zero(column_cells: ColumnCells) -> NDArray[np.bool_]:
    if column_cells.is_typed:
        return np.asarray(column_cells.values.fillna(0) != 0, dtype=bool)
    is_not_zero = np.append(pc.match_substring_regex(column_cells.distinct, "[1-9]"), False)
    return np.asarray(is_not_zero[column_cells.codes], dtype=bool)


def _shown(possible: Currencies) -> str:
    return next(iter(possible)) if len(possible) == 1 else "one of several currencies"


def _codes_shown(codes: Sequence[str]) -> str:
    return ", ".join(codes[:_MOST_CODES]) + (", ..." if len(codes) > _MOST_CODES else "")


def only_for(name: str, currency: str) -> str:
    """Return the argument that says the currency of one column, and leaves the others as they are."""
    return f'currency={{"{name}": "{currency}"}}'


def _contradiction(name: str, says: Sequence[tuple[Witness, Currencies]]) -> BadQuery:
    first, said = says[0]
    other, differs = next((pair for pair in says[1:] if not pair[1] & said), says[-1])
    parts = [
        f"in {_shown(codes)} by {witness.evidence.where} ({witness.evidence.quote})"
        for witness, codes in ((first, said), (other, differs))
    ]
    right = [
        only_for(name, witness.evidence.quote if witness.evidence.where == OF_CODES else next(iter(codes)))
        for witness, codes in ((first, said), (other, differs))
        if len(codes) == 1 or witness.evidence.where == OF_CODES
    ] or [only_for(name, "...")]
    return BadQuery(name, UNSET, f"is {' and '.join(parts)}: pass currency= with the right one, {' or '.join(right)}")


def _mentions(name: str, grid: Grid) -> tuple[str, Currencies] | None:
    """Return the first line with an amount, or the header of another column, that names currencies, and these."""
    lines = [line for line in grid.above if _AMOUNT_IN_LINE.search(line)]
    found = [(f"the line {line!r}", possible) for line in lines if (possible := currencies_in(line))]
    others = [other for other in grid.columns if other != name]
    found += [
        (f"the header {other}", possible) for other in others if (possible := currencies_in(other, is_header=True))
    ]
    return next(iter(found), None)


def _unknown(
    name: str, source: str, witnesses: Sequence[Witness], mentioned: tuple[str, Currencies] | None
) -> BadQuery:
    """Return the exception for money of unknown currency, with the currencies that a symbol may mean."""
    said = [possible for witness in witnesses for possible in witness.says if possible]
    if said:
        first = witnesses[0]
        likely = sorted(common(said) or said[0], key=lambda code: (code != "USD", code))
        shown = " or ".join(f'currency="{code}"' for code in likely[:2])
        others = f" (or {', '.join(likely[2:5])}{', ...' if len(likely) > 5 else ''})" if likely[2:] else ""
        rule = f"is money in {first.evidence.says} ({first.evidence.where}), and nothing else says which: pass {shown}"
        return BadQuery(name, UNSET, f"{rule}{others}, or the column of codes")
    if unit := [text for text in re.findall(r"[(\[（]([^()\[\]（）]+)[)\]）]", name) if not text.isascii()]:
        rule = f"is money, and {unit[-1]!r} in its header is no currency that we know: "
        return BadQuery(name, UNSET, rule + 'pass currency="..." with its code (ISO 4217), or the column of codes')
    if mentioned is not None:
        where, possible = mentioned
        likely = sorted(possible, key=lambda code: (code != "USD", code))
        shown = " or ".join(f'currency="{code}"' for code in likely[:2])
        others = f" (or {', '.join(likely[2:5])}{', ...' if len(likely) > 5 else ''})" if likely[2:] else ""
        rule = f"is money whose own cells and header name no currency; {where} does: pass {shown}{others} if "
        return BadQuery(name, UNSET, f"{rule}{name} is in it too, or the column of codes")
    rule = (
        'is money, and no cell, header, line or column of codes names its currency: pass currency="..." with its code'
    )
    in_name = [code for code in _CODE_IN_NAME.findall(source) if is_currency(code)]
    beside = f'; currency="{in_name[0]}" if it is the {in_name[0]} in the name of {source}' if len(in_name) == 1 else ""
    return BadQuery(name, UNSET, f"{rule} (ISO 4217), or the column of codes{beside}")
