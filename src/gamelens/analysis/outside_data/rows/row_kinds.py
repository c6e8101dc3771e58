"""Kinds of rows that one table mixes: campaigns and their ad groups, two views of the same.

Added up together they count twice. A column tells the kinds: it names levels, or the rows of two of its texts add up to
the same. Levels that add up to the same are one, and the finest stays; all else is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gamelens.analysis.ads.canonical_names import canonical_name, says_nothing
from gamelens.analysis.outside_data.roles import (
    MEASURES,
    TIMES,
    ColumnCells,
    Meaning,
    groups_of,
    header_meanings,
    summands_of,
)
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.total_words import LEVELS, TOTAL_AT_ONE_END

COUNTED_TWICE: Final = "counts countries twice"
"""Begins the question about countries beside the regions that add them up."""
_MOST: Final = 8  # kinds
_MOST_COUNTRIES: Final = 400
_FEWEST: Final = 3  # different sums that are no chance
_ROUNDING: Final = 1e-4

Sums = Mapping[str, NDArray[Any]]


class RowKinds(NamedTuple):
    """The rows of levels that add up a finer one, what is said of them, and what must be asked."""

    mask: NDArray[np.bool_]
    note: str | None = None
    rule: str | None = None


def kinds_of_rows(
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    left_out: NDArray[np.bool_],
    answered: Mapping[str, Any] = MappingProxyType({}),
) -> RowKinds:
    """Return the kinds of the rows that are not *left_out*, by columns about which the reader has not *answered*."""
    nothing = RowKinds(np.zeros(len(left_out), dtype=bool))
    rule = _of_both_directions(meanings, cells, left_out, answered) or _of_measures(meanings, cells, left_out, answered)
    summands = summands_of(meanings, cells)
    if rule or not summands:
        return nothing._replace(rule=rule)
    times = [name for name, meaning in meanings.items() if meaning.role in TIMES]
    days = groups_of({name: cells[name].codes for name in times}, times, len(left_out))
    for name, column_cells in cells.items():
        if meanings[name].role == "country" and not column_cells.is_typed:
            rule = _of_regions(column_cells, days, summands, left_out)
        is_kind = meanings[name].role in ("text", "identifier", "flag")
        is_kind &= name not in answered
        is_kind &= not column_cells.is_typed or pa.types.is_boolean(column_cells.type)
        found = RowKinds(nothing.mask, rule=rule)
        if is_kind and 1 < len(column_cells.distinct) <= _MOST:
            codes = np.where(left_out, -1, column_cells.codes)
            kinds = {text: codes == place for place, text in enumerate(column_cells.texts) if (codes == place).any()}
            filled = np.sum([other.codes >= 0 for other in cells.values()], axis=0)
            sizes = {text: (int(rows.sum()), int(filled[rows].sum())) for text, rows in kinds.items()}
            sums = {text: _sums(rows, days, summands) for text, rows in kinds.items()}
            found = _of_levels(name, kinds, sums, sizes) or nothing
        if found.rule or found.note:
            return found
    return nothing


def _of_levels(
    name: str,
    kinds: Mapping[str, NDArray[np.bool_]],
    sums: Mapping[str, Sums],
    sizes: Mapping[str, tuple[int, int]],
) -> RowKinds | None:
    """Return the rows of coarser levels, or the rule where levels differ or two texts have the same sums.

    The finest level has the most rows, with the most filled cells.
    """
    finest = max(kinds, key=sizes.__getitem__, default="")
    if len(kinds) > 1 and all(folded_header(text) in LEVELS for text in kinds):
        alike = {text: _are_alike(sums[text], sums[finest]) for text in kinds if text != finest}
        mask = np.logical_or.reduce([kinds[text] for text in alike])
        if None not in alike.values() and all(alike.values()):
            words = f"{name} tells rows of {', '.join(alike)} from rows of {finest}, which they add up"
            return RowKinds(mask, note=words)
        unlike = next((text for text, is_alike in alike.items() if is_alike is not None), None)
        return None if unlike is None else RowKinds(np.zeros_like(mask), rule=_rule(name, unlike, finest))
    others = [text for text in kinds if TOTAL_AT_ONE_END.fullmatch(text) is None]  # which are found by their words
    for text, other in combinations(sorted(others, key=sizes.__getitem__), 2):
        if _are_alike(sums[text], sums[other]) and _different(sums[text]) >= _FEWEST:
            return RowKinds(np.zeros_like(kinds[text]), rule=_rule(name, text, other))
    return None


def _of_regions(
    column_cells: ColumnCells, days: NDArray[np.int64], summands: Sums, left_out: NDArray[np.bool_]
) -> str | None:
    """Return what is wrong with countries beside the regions that add them up."""
    texts = column_cells.texts if len(column_cells.distinct) <= _MOST_COUNTRIES else []
    others = [text for text in texts if canonical_name(text, "country") is None]
    regions = [text for text in others if not says_nothing(text, "country")]
    is_region = np.isin(column_cells.codes, [texts.index(text) for text in regions]) & ~left_out
    first, other = (_sums(rows & ~left_out, days, summands) for rows in (is_region, ~is_region))
    if not is_region.any() or not _are_alike(first, other):
        return None
    if sum(map(np.count_nonzero, first.values())) < _FEWEST:
        return None
    rule = f"{COUNTED_TWICE}, whose sums equal {', '.join(regions[:3])} in {column_cells.name}: "
    return f"{rule}totals={regions!r} leaves these out"


def _of_measures(
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    left_out: NDArray[np.bool_],
    answered: Mapping[str, Any],
) -> str | None:
    """Return what is wrong with the only numbers if a column of texts says that they are different measures."""
    if sum(meaning.role in MEASURES for meaning in meanings.values()) != 1:
        return None
    for name in [name for name, meaning in meanings.items() if meaning.role == "text" and not cells[name].is_typed]:
        if answered.get(name) == []:
            continue
        texts = [text for text in cells[name].named[: _MOST + 1] if (cells[name].rows_of(text) & ~left_out).any()]
        measures = {text: next((known for known in header_meanings(text)), None) for text in texts}
        concepts = {known.concept for known in measures.values() if known is not None and known.role in MEASURES}
        if 1 < len(texts) <= _MOST and len(concepts) == len(texts):
            first, *others = texts
            steps = f"leave_out={{{name!r}: {others!r}}} leaves the rows of {first} alone"
            return f"holds {', '.join(texts)}, by {name}: {steps}"
    return None


def _of_both_directions(
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    left_out: NDArray[np.bool_],
    answered: Mapping[str, Any],
) -> str | None:
    """Return what is wrong with numbers that are income in some rows and costs in others, by a column of texts.

    Rows of neither, such as a profit, are left out with the income.
    """
    for name, meaning in meanings.items():
        column = cells[name]
        if meaning.role != "text" or name in answered or column.is_typed or len(column.distinct) > _MOST_COUNTRIES:
            continue
        texts = [text for text in column.named if (column.rows_of(text) & ~left_out).any()]
        directions = {text: _direction(text) for text in texts}
        earned, spent = ([text for text in texts if directions[text] == concept] for concept in ("income", "cost"))
        if earned and spent:
            rule = f"holds {earned[0]} beside {spent[0]}, by {name}: "
            others = [[text for text in texts if text not in kept] for kept in (spent, earned)]
            steps = [
                f"leave_out={ {name: left}!r} leaves {kept[0]} alone"
                for left, kept in zip(others, (spent, earned), strict=True)
            ]
            return f"{rule}{', '.join(steps)}, leave_out={ {name: []}!r} counts all"
    return None


def _direction(text: str) -> str | None:
    """Return what a text means, income or a cost, with at most a word beside it: Operating cost, but no total of it."""
    known = next(header_meanings(text), None)
    words = len(folded_header(text).split())
    if known is None or known.role != "amount" or known.evidence.where != "header" or TOTAL_AT_ONE_END.fullmatch(text):
        return None
    return known.concept if words - len(known.evidence.quote.split()) <= 1 else None


def _rule(name: str, text: str, other: str) -> str:
    rule = f"counts rows of two kinds by {name}, {text!r} and {other!r}, as one: "
    steps = [
        f"leave_out={{{name!r}: {[kind]!r}}} leaves the {place}" for kind, place in ((text, "first"), (other, "second"))
    ]
    return f"{rule}{steps[0]} out, {steps[1]}, leave_out={{{name!r}: []}} counts both"


def is_level(header: str) -> bool:
    """Return whether a column has the names of a level, such as ad groups."""
    return folded_header(header).removesuffix(" id").removesuffix(" name") in LEVELS


def _sums(rows: NDArray[np.bool_], days: NDArray[np.int64], summands: Sums) -> Sums:
    """Return the sums of rows by day."""
    count = int(days.max(initial=0)) + 1
    return {name: np.bincount(days[rows], np.nan_to_num(values[rows]), count) for name, values in summands.items()}


def _are_alike(first: Sums, second: Sums) -> bool | None:
    """Return whether rows of two kinds add up to the same; None if they have no number in common."""
    both = [name for name in first if first[name].any() and second[name].any()]
    return (
        all(np.allclose(first[name], second[name], rtol=_ROUNDING, atol=_ROUNDING) for name in both) if both else None
    )


def _different(sums: Sums) -> int:
    return len({round(value, 6) for values in sums.values() for value in values.tolist()} - {0.0})
