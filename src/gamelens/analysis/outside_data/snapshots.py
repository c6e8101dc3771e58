"""Tables of snapshots: what stands at a moment, such as ratings beside the ranks of a chart, or the followers of a day.

Rows of snapshots do not add up over time, and one snapshot may take minutes: each thing has its last row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.roles import KEYS, TIMES, ColumnCells, Evidence, Meaning, is_snapshot_header
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.analysis.outside_data.words.total_words import LEXICON

_BALANCE_OR_SALES: Final = "sold"
"""A balance in Romanian, and what is sold in English."""
_WITHIN: Final = np.timedelta64(30, "m")
"""The longest time between two rows of one snapshot."""
_NAMES: Final = frozenset({"text", "identifier", "flag"})
_MOST_SHOWN: Final = 20  # texts that tell charts


class Things(NamedTuple):
    """The columns that tell things apart, the number of each row's thing and snapshot, and whether charts have them."""

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    snapshots: NDArray[np.int64]
    has_charts: bool = False


def with_levels(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> dict[str, Meaning]:
    """Return *meanings*, with counts of a moment as stocks: beside a rank, or with a time of fetching alone.

    Beside a rank a word says it, such as reviews. Of a snapshot all counts are levels, unless a word such as new says
    otherwise, or money stands beside them. Whole numbers below the word sold alone are no balance.
    """
    found = dict(meanings)
    times = [name for name, known in meanings.items() if known.role in TIMES]
    is_fetched = len(times) == 1 and is_snapshot_header(times[0])
    is_fetched &= all(known.role != "amount" for known in meanings.values())
    has_rank = any(known.role == "rank" for known in meanings.values())
    for name, known in meanings.items():
        folded = folded_header(name)
        if known.evidence.where not in ("header", "cells"):
            continue
        if known.role == "stock" and known.evidence.quote == _BALANCE_OR_SALES and cells[name].is_whole:
            is_count = folded == _BALANCE_OR_SALES and not cells[name].has_units
            found[name] = replace(known, role="count", concept="sold") if is_count else known
        if known.role not in ("count", "number") or not cells[name].is_whole:
            continue
        words = topic_pattern("standing").search(folded)
        is_level = (words is not None and (has_rank or is_fetched)) or (is_fetched and known.role == "count")
        if is_level and not topic_pattern("gained").search(folded) and not cells[name].is_percent:
            said = Evidence("stock", "its snapshots", words[0] if words else times[0])
            found[name] = Meaning("stock", said, "stock")
    return found


def names_apps(column: OutsideColumn) -> bool:
    """Return whether a column has the names of apps: a chart calls them names or titles, too."""
    return column.role == "app" or (column.role == "text" and folded_header(column.name) in _called())


def are_charts(column: OutsideColumn) -> bool:
    """Return whether a column of texts names the charts of a store, which each have their ranks."""
    texts = [str(text) for text in column.values.dropna().unique()[:_MOST_SHOWN]]
    is_called = topic_pattern("chart").search(folded_header(column.name)) is not None
    return is_called or all(topic_pattern("chart_name").search(folded_header(text)) for text in texts)


def things_of(table: OutsideTable) -> Things:
    """Return what tells the things of a table apart: its names, and each text by which rows of one snapshot differ.

    A text that changes with time alone, such as a version, tells none apart.
    """
    columns = [column for column in table.columns if column.role in KEYS | _NAMES and column.values.nunique() > 1]
    charts = {column.name for column in columns if column.role == "text" and are_charts(column)}
    columns = [column for column in columns if column.name not in charts]
    codes = {column.name: pd.factorize(column.values)[0] for column in columns}
    kept = [column.name for column in columns]
    snapshot = _snapshots(table.starts, codes)
    sizes = {column.name: column.values.nunique() for column in columns if column.role not in KEYS}
    of_apps = {column.name for column in columns if names_apps(column)}
    for name in sorted(sizes, key=lambda text: (text in of_apps, -sizes[text], -kept.index(text))):
        others = [*(codes[other] for other in kept if other != name), snapshot]
        several = Series(codes[name]).groupby(_numbered(others)).nunique()
        if not (several > 1).any():
            kept.remove(name)
    return Things(tuple(kept), _numbered([codes[name] for name in kept], len(table.rows)), snapshot, bool(charts))


def last_rows(at: Series[Any], groups: NDArray[np.int64], things: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are the last of their thing in their group, several if they have the same time."""
    last = DataFrame({"group": groups, "thing": things, "at": at.to_numpy()}).groupby(["group", "thing"])["at"]
    is_last: NDArray[np.bool_] = np.asarray(at.to_numpy() == last.transform("max").to_numpy(), dtype=bool)
    return is_last


def _snapshots(starts: Series[Any], codes: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Return the number of the snapshot of each row, in order: a run of rows is one, unless it has one thing twice."""
    at = starts.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    order = np.argsort(at, kind="stable")
    numbers = np.empty(len(at), dtype="int64")
    numbers[order] = np.append(0, (np.diff(at[order]) > _WITHIN).cumsum()) if len(at) else 0
    if Series(_numbered([*codes.values(), numbers], len(at))).duplicated().any():
        return np.asarray(pd.factorize(at, sort=True)[0], dtype="int64")
    return numbers


def _numbered(codes: Sequence[NDArray[Any]], rows: int = 0) -> NDArray[np.int64]:
    """Return a number for each row, the same where all *codes* are."""
    if not codes:
        return np.zeros(rows, dtype="int64")
    table = DataFrame(dict(enumerate(codes)))
    return np.asarray(table.groupby([*table.columns], sort=False).ngroup(), dtype="int64")


@cache
def _called() -> frozenset[str]:
    return frozenset(folded_header(word) for word in LEXICON["app_called"]["words"])
