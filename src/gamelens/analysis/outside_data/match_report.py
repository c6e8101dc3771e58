"""What a join found and what it did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from gamelens._text import format_number, one_line
from gamelens.analysis.files.table_reader import ExternalTable
from gamelens.analysis.outside_data import time_buckets
from gamelens.analysis.outside_data.join_keys import similar_keys
from gamelens.analysis.tidy_frames import asked_metrics, column_of
from gamelens.catalog import METRICS
from gamelens.errors import BadQuery
from gamelens.wire.receipts import Receipt

_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class MatchReport:
    """What found its counterpart.

    *only_left*: rows of the frame that found nothing, in its columns. *only_right*: outside rows that found nothing, in
    the outside's columns, its row numbers as index. *matched_share*: how much of *share_of* found something, 0 to 1;
    None of an empty frame. *share_of*: the frame's first metric, such as "revenue (sum)", or "rows" where it cannot be
    added. *renamed*: outside column to its name in the frame, where that had the name already.
    """

    source: str
    on: Mapping[str, str]
    how: str
    rows: int
    only_left: DataFrame
    only_right: DataFrame
    matched_share: float | None
    share_of: str
    renamed: Mapping[str, str]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return one_line(
            f"<join with {self.source}: {format_number(self.matched_share, 'share')} of {self.share_of} matched, "
            f"{len(self.only_left)} rows only left, {len(self.only_right)} only right, "
            f"{len(self.warnings)} warnings: explain()>"
        )

    def explain(self) -> str:
        """What was joined, what matched, what did not, and what to beware of, a line for each."""
        keys = ", ".join(ours if ours == theirs else f"{ours} = {theirs}" for ours, theirs in self.on.items())
        found = self.rows - len(self.only_left)
        share = format_number(self.matched_share, "share")
        lines = [
            f"Joined with {self.source} on {keys}, {self.how}.",
            f"{found:,} of {self.rows:,} rows found a counterpart: {share} of {self.share_of}.",
            _unmatched(self.only_left[[*self.on]], "the frame", ""),
            _unmatched(self.only_right[[*self.on.values()]], self.source, "row "),
        ]
        lines += [f"{name} of {self.source} is called {ours}." for name, ours in self.renamed.items()]
        lines += [f"Warning: {warning}." for warning in self.warnings]
        return "\n".join(one_line(line) for line in lines if line)


@dataclass(frozen=True, eq=False)
class Joined:
    """A joined frame and the report on it: `frame, report = gl.join(...)`."""

    frame: DataFrame
    report: MatchReport

    def __iter__(self) -> Iterator[Any]:
        yield self.frame
        yield self.report


def matched_share(frame: DataFrame, is_found: Series[Any]) -> tuple[float | None, str]:
    """The share that *is_found* of what the frame's first metric sums, and what that is; of rows where none can be."""
    weights, name = _weights(frame)
    whole = float(weights.sum())
    return (float(weights[is_found].sum()) / whole if whole else None), name


def _weights(frame: DataFrame) -> tuple[Series[Any], str]:
    rows = Series(1.0, index=frame.index)
    metric = METRICS.get(next(iter(asked_metrics(frame)), ""))
    if metric is None or metric.adds != "everywhere":
        return rows, "rows"
    try:
        column = column_of(frame, metric.name, metric.sorts_by)
    except BadQuery:  # somebody dropped it
        return rows, "rows"
    weights = frame[column].astype("float64").fillna(0.0)
    name = metric.name if metric.sorts_by == metric.name else f"{metric.name} ({metric.sorts_by})"
    return (weights, name) if weights.sum() else (rows, "rows")


def key_text(values: Any) -> str:
    """One key as people read it: `(2026-11-01, US)`."""
    return f"({', '.join(_readable(value) for value in values)})"


def _readable(value: Any) -> str:
    if value is None or pd.isna(value):
        return "no value"
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d}" if value == value.normalize() else f"{value:%Y-%m-%d %H:%M}"
    return str(value)


def _unmatched(keys: DataFrame, what: str, numbered: str) -> str:
    shown = [
        f"{numbered}{number} {key_text(key)}" if numbered else key_text(key)
        for number, key in zip(keys.index[:_SHOWN], keys.head(_SHOWN).itertuples(index=False), strict=True)
    ]
    more = ", …" if len(keys) > _SHOWN else ""
    if not len(keys):
        return f"Every row of {what} found one."
    return f"{len(keys):,} row{'' if len(keys) == 1 else 's'} of {what} found none: {', '.join(shown)}{more}."


def lookalikes(ours: DataFrame, theirs: DataFrame, pairs: dict[str, str], table: ExternalTable) -> list[str]:
    """Names that look alike and are not the same."""
    warnings = []
    for name, outside_name in pairs.items():
        if ours[name].dtype == "str" and (alike := similar_keys(ours[name], theirs[name])):
            shown = ", ".join(f"{text!r} is not {known!r}" for text, known in alike[:3])
            warnings.append(f"{outside_name} of {table.source} is compared exactly with {name}: {shown}")
    return warnings


def double_counting(
    values: DataFrame, places: NDArray[np.int64], repeats: NDArray[np.bool_], table: ExternalTable
) -> list[str]:
    """That a sum over the frame would count outside values more than once, with the first of them as an example."""
    if not repeats.any():
        return []
    numbers = [str(name) for name in values if is_numeric_dtype(values[name]) and not is_bool_dtype(values[name])]
    most = int(np.unique_counts(places[repeats]).counts.max())
    warning = f"a key stands in up to {most} rows of the frame, and the values of {table.source} in each of them"
    if numbers:
        column = values[numbers[0]].astype("float64")
        found = places[places >= 0]
        once, summed_up = column.iloc[np.unique(found)].sum(), column.iloc[found].sum()
        warning += f": summing {numbers[0]} would count it more than once ({once:,.2f} becomes {summed_up:,.2f})"
    return [warning]


def cut_short(df: DataFrame, found: DataFrame) -> list[str]:
    """That the frame counts only part of a bucket whose outside value may be that of the whole."""
    moments = [name for name in found if is_datetime64_any_dtype(found[name])]
    cut = [bucket for name in moments for bucket in time_buckets.cut_buckets(df, found[name])]
    if not cut:
        return []
    days = ", ".join(f"{bucket:%Y-%m-%d}" for bucket in cut)
    every = Receipt.of(df.attrs).asked.every
    return [f"the frame counts only part of the {every} of {days}, the outside may count all of it"]
