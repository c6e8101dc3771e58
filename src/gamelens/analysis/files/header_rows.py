"""The header of an exported table, below the lines that name its report, account or dates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from numbers import Real
from types import MappingProxyType
from typing import Any, Final, Literal

from gamelens.analysis.files.date_parsing import date_words, folded_word
from gamelens.analysis.files.decimal_digits import ARABIC_DECIMAL_MARK, ascii_digits
from gamelens.analysis.files.magnitudes import word_pattern

SEARCHED_ROWS: Final = 50
"""Rows at the top of a table among which the header is searched."""

_TWO_COLUMNS: Final = 2
_FOOTNOTE: Final = re.compile(r"\s*[*†‡§]+$")
_NUMBER: Final = re.compile(
    r"[^\w]*(?:[A-Z]{1,3}(?=[^\w])|[A-Z]{3}|RM)?[^\w]*\d[\d.,' \u00a0\u202f]*(?:[eE][+-]?\d+)?[^\w]*"
    rf"(?:{word_pattern()})?[^\w]*[A-Z]{{0,3}}[^\w]*"
)
_DATE: Final = re.compile(
    r"\d{1,4}([-./])\d{1,2}\1\d{1,4}\b.{0,30}|.{0,24}\b20\d\d\b.{0,16}|20\d{6}|.{0,9}\d月\d.{0,9}"
)

_UNIT: Final = re.compile(r"[(\[][^()\[\]]{1,16}[)\]]|[^\s\d]{1,4}")
"""A unit below the name of a column."""

CellKind = Literal["", "number", "date", "text"]


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """Return the place of the header among *rows*, 0 if nothing is above it.

    A line above a header has at most one filled cell, or fewer than half as many as the widest row; in a table of two
    columns it must also be shorter, because a header may leave a name out. Where columns hold numbers or dates, the
    header is the first row without them above a row that has them: so lines of names and values above it are no header.
    """
    blank = next((place for place, row in enumerate(rows) if any(cell not in (None, "") for cell in row)), 0)
    top = rows[blank : blank + SEARCHED_ROWS]
    filled = [sum(cell not in (None, "") for cell in row) for row in top]
    widest, longest = max(filled, default=0), max(map(len, top), default=0)
    first = 0
    for place, cells in enumerate(filled):
        is_short = len(top[place]) < longest or widest > _TWO_COLUMNS
        if widest < _TWO_COLUMNS or not is_short or (cells > 1 and 2 * cells >= widest):
            first = place
            break
    kinds = [[_kind(cell) for cell in row] for row in top]
    usual = _usual_kinds(kinds[first:])
    for place in range(first, len(top) - 1):
        below = next((row for row in kinds[place + 1 :] if any(row)), [])
        is_labelled = any(map(_is_label, (top[place], top[place + 1])))
        if (
            not is_labelled
            and _is_data(below, usual)
            and not _fitting(kinds[place], usual)
            and 2 * filled[place] >= widest
        ):
            fuller = [above for above in range(first, place) if filled[above] > filled[place]]
            is_heading = bool(fuller) and any(map(_is_month, top[place]))
            is_heading |= bool(fuller) and fuller[-1] == place - 1 and _lacks_days(top[place], top[place - 1], usual)
            return blank + (fuller[-1] if is_heading else place)
    return blank + first


def joined_headers(
    header: Sequence[Any], above: Sequence[Sequence[Any]], spans: Mapping[tuple[int, int], int] = MappingProxyType({})
) -> tuple[list[str], int]:
    """Return the names of columns below the headings that span several of them, and how many rows these headings take.

    Below `iOS` and `Android`, each over several columns, `Spend` becomes `iOS Spend` and `Android Spend`. Without
    *spans*, equal names show that a row is above several columns. Units below the names of columns are part of them:
    `Length (min)`.

    Args:
        header: the cells of the header.
        above: the rows above it.
        spans: the last place of a cell that is merged over several columns, by its row among *above* and first place.
    """
    names, used = [_name(cell) for cell in header], 0
    if above and (named := _with_units(names, [_name(cell) for cell in above[-1]])) is not None:
        return named, 1
    for at in reversed(range(len(above))):
        upper = [_name(cell) for cell in (*above[at], *[None] * len(names))][: len(names)]
        counts = Counter(_FOOTNOTE.sub("", name) for name in names if name)
        is_equal = [bool(name) and counts[_FOOTNOTE.sub("", name)] > 1 for name in names]
        merged = {first: last for (row, first), last in spans.items() if row == at and any(names[first : last + 1])}
        if not (any(is_equal) or len(merged) >= _TWO_COLUMNS) or sum(map(bool, upper)) < _TWO_COLUMNS:
            break
        filled = [place for place, cell in enumerate(upper) if cell]
        between = {first: end - 1 for first, end in pairwise(filled) if any(is_equal[first:end]) and names[first]}
        before, last, joined = "", -1, list[str]()
        for place, (name, cell) in enumerate(zip(names, upper, strict=True)):
            if cell:
                before, last = cell, max(merged.get(place, place), between.get(place, place))
                is_over = last > place
            is_inside = bool(name) and place <= last and is_over
            before = before if cell or place <= last or is_equal[place] else ""
            is_named = is_equal[place] or is_inside or not name
            joined.append(f"{before} {name}".strip() if is_named and (name or cell) else name)
        names, used = joined, used + 1
    return names, used


def _with_units(units: Sequence[str], names: Sequence[str]) -> list[str] | None:
    """Return *names* with the units below them, None where these are no units: short, each below its own name."""
    names = [*names, *[""] * len(units)][: len(units)]
    named, below = [name for name in names if name], [unit for unit in units if unit]
    are_of_names = len({*named}) == len(named) > 1 and all(
        name for name, unit in zip(names, units, strict=True) if unit
    )
    if not below or not are_of_names or not all(map(_UNIT.fullmatch, below)):
        return None
    joined = []
    for name, unit in zip(names, units, strict=True):
        beside = f"({unit})" if unit and unit[0].isalnum() and units.count(unit) == 1 else unit
        joined.append(f"{name} {beside}".strip())
    return joined


def _lacks_days(row: Sequence[Any], above: Sequence[Any], usual: dict[int, CellKind]) -> bool:
    """Return whether a row has no name for the column of days, and the one above has: names below codes.

    Names that are there several times are told apart by the row above, and units belong to it.
    """
    names = [cell for cell in row if cell not in (None, "")]
    if len({*names}) < len(names) or _with_units([*map(_name, row)], [*map(_name, above)]) is not None:
        return False
    days = [place for place, kind in usual.items() if kind == "date"]
    return any(row[at : at + 1] and row[at] in (None, "") and above[at : at + 1] and above[at] for at in days)


def _is_label(row: Sequence[Any]) -> bool:
    """Return whether the first cell of a row names the others, such as Multiplier:."""
    return bool(row) and isinstance(row[0], str) and row[0].strip().endswith(":")


def _name(cell: Any) -> str:
    return "" if cell is None else f"{cell:%Y-%m-%d}" if isinstance(cell, date) else str(cell).strip()


def _is_month(cell: Any) -> bool:
    """Return whether a cell is a month, such as Oct 26 or October, as stands alone above the numbers of its days."""
    words, text = date_words(), folded_word(cell) if isinstance(cell, str) else ""
    rest = words.month.sub(" ", text, count=1)
    return rest != text and re.fullmatch(r"\W*(?:\d\d|\d{4})?", rest) is not None


def _kind(cell: Any) -> CellKind:
    if cell is None or cell == "":
        return ""
    if isinstance(cell, date):
        return "date"
    if isinstance(cell, Real) and not isinstance(cell, bool):
        return "number"
    (text,) = ascii_digits([str(cell).strip().replace(ARABIC_DECIMAL_MARK, ".")])
    return "date" if _DATE.fullmatch(text) else "number" if _NUMBER.fullmatch(text) else "text"


def _usual_kinds(rows: Sequence[Sequence[CellKind]]) -> dict[int, CellKind]:
    """Return the kind of the columns of numbers or dates: the most frequent in their lower half."""
    lower = rows[(len(rows) + 1) // 2 :]
    counts = [
        Counter(row[place] for row in lower if len(row) > place) for place in range(max(map(len, lower), default=0))
    ]
    most: list[CellKind] = [max(("number", "date", "text"), key=lambda kind: count[kind]) for count in counts]
    return {place: kind for place, kind in enumerate(most) if kind != "text" and counts[place][kind]}


def _is_data(row: Sequence[CellKind], usual: dict[int, CellKind]) -> bool:
    """Return whether most columns of numbers and dates have one in *row*, more than a name and its value have."""
    filled = sum(place < len(row) and row[place] != "" for place in usual)
    fitting = _fitting(row, usual)
    return 2 * fitting >= filled and fitting >= min(len(usual), _TWO_COLUMNS) > 0


def _fitting(row: Sequence[CellKind], usual: dict[int, CellKind]) -> int:
    return sum(place < len(row) and row[place] == kind for place, kind in usual.items())
