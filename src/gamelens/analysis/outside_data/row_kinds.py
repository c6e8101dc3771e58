"""Kinds of rows that one table mixes: campaigns and their ad groups, a forecast beside what was, two views of the same.

Added up together they count twice. A column tells the kinds: it names levels, or a forecast, or the rows of two of its
texts add up to the same. Levels that add up to the same are one, and the finest stays; all else is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.outside_data.roles import (
    MEASURES,
    SUMMANDS,
    TIMES,
    ColumnCells,
    Meaning,
    concepts_in,
    folded_header,
    header_meanings,
)
from gamelens.analysis.outside_data.total_words import LEVELS

_MOST: Final = 8  # kinds
_FEWEST: Final = 3  # different sums that are no chance
_ROUNDING: Final = 1e-4
_NOT_OF_DAYS: Final = frozenset({"planned", "compared"})

Sums = Mapping[str, NDArray[Any]]


class RowKinds(NamedTuple):
    """The rows of levels that add up a finer one, what is said of them, and what must be asked."""

    mask: NDArray[np.bool_]
    note: str | None = None
    rule: str | None = None


def kinds_of_rows(
    meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], left_out: NDArray[np.bool_]
) -> RowKinds:
    """Return the kinds that the rows are of which are not *left_out*."""
    nothing = RowKinds(np.zeros(len(left_out), dtype=bool))
    if sum(meaning.role in MEASURES for meaning in meanings.values()) == 1 and (
        rule := _of_measures(meanings, cells, left_out)
    ):
        return nothing._replace(rule=rule)
    summands = {name: cells[name].likely_numbers for name, meaning in meanings.items() if meaning.role in SUMMANDS}
    if not summands:
        return nothing
    times = [name for name, meaning in meanings.items() if meaning.role in TIMES]
    days = groups_of(DataFrame({name: cells[name].codes for name in times}, index=range(len(left_out))), times)
    is_negative = any("negative" in meaning.details for meaning in meanings.values())  # refunds, by a vendor
    for name, own in cells.items():
        is_kind = meanings[name].role in ("text", "identifier", "flag")
        if not is_kind or (own.is_typed and not pa.types.is_boolean(own.type)) or not 1 < len(own.distinct) <= _MOST:
            continue
        codes = np.where(left_out, -1, own.codes)
        counts = {text: int((codes == place).sum()) for place, text in enumerate(own.texts)}
        kinds = {text: codes == place for place, text in enumerate(own.texts) if counts[text]}
        sums = {text: _sums(rows, days, summands) for text, rows in kinds.items()}
        if len(kinds) > 1 and all(folded_header(text) in LEVELS for text in kinds):
            filled = {
                text: sum(int((other.codes[rows] >= 0).sum()) for other in cells.values())
                for text, rows in kinds.items()
            }
            finest = max(kinds, key=lambda text: (counts[text], filled[text]))
            alike = {text: _are_alike(sums[text], sums[finest]) for text in kinds if text != finest}
            if None not in alike.values() and all(alike.values()):
                mask = np.logical_or.reduce([kinds[text] for text in alike])
                words = f"{name} tells rows of {', '.join(alike)} from those of {finest}, which they add up"
                return RowKinds(mask, note=words)
            unlike = next((text for text, is_alike in alike.items() if is_alike is not None), None)
            if unlike is not None:
                return nothing._replace(rule=_rule(name, unlike, finest))
        elif meanings[name].role == "text" and (text := _planned(sums, is_negative=is_negative)) is not None:
            return nothing._replace(rule=_rule(name, text, next(other for other in kinds if other != text)))
        for place, text in enumerate(kinds):
            for other in [*kinds][place + 1 :]:
                if _are_alike(sums[text], sums[other]) and _different(sums[text]) >= _FEWEST:
                    few, many = sorted((text, other), key=counts.__getitem__)
                    return nothing._replace(rule=_rule(name, few, many))
    return nothing


def _of_measures(
    meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], left_out: NDArray[np.bool_]
) -> str | None:
    """Return what is wrong with the only numbers if a column of texts says that they are different measures."""
    for name in [name for name, meaning in meanings.items() if meaning.role == "text" and not cells[name].is_typed]:
        texts = [text for text in cells[name].named[: _MOST + 1] if (cells[name].rows_of(text) & ~left_out).any()]
        measures = {text: next((known for known in header_meanings(text)), None) for text in texts}
        concepts = {known.concept for known in measures.values() if known is not None and known.role in MEASURES}
        if 1 < len(texts) <= _MOST and len(concepts) == len(texts):
            first, *others = texts
            return f"holds {', '.join(texts)}, by {name}: totals={others!r} leaves the rows of {first} alone"
    return None


def _rule(name: str, text: str, other: str) -> str:
    rule = f"counts rows of two kinds by {name}, {text!r} and {other!r}, as one: "
    return f'{rule}totals=[{text!r}] leaves the first out, totals=[{other!r}] the second, totals="keep" counts both'


def _planned(sums: Mapping[str, Sums], *, is_negative: bool) -> str | None:
    """Return the text of a forecast, a comparison, or of refunds that are not below 0, among others."""
    found = {}
    for text, of_text in sums.items():
        folded = folded_header(text)
        concept = next((concept.name for concept, phrase, _ in concepts_in(folded) if phrase == folded), "")
        is_below = is_negative or any((values < 0).any() for values in of_text.values())
        found[text] = concept in _NOT_OF_DAYS or (concept == "charge" and not is_below)
        found[text] &= canonical_name(text, "publisher") is None  # Meta is a goal in Portuguese
    return next((text for text in found if found[text]), None) if not all(found.values()) else None


def is_level(header: str) -> bool:
    """Return whether a column has the names of a level, such as ad groups."""
    return folded_header(header).removesuffix(" id").removesuffix(" name") in LEVELS


def groups_of(table: DataFrame, by: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of the group of each row, the same for rows that agree in *by*."""
    if not by:
        return np.zeros(len(table), dtype="int64")
    groups: NDArray[np.int64] = np.asarray(table.groupby(list(by), sort=False).ngroup(), dtype="int64")
    return groups


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
