"""Report of a join: the rows that matched and those that did not, with warnings."""

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
from gamelens.analysis.tidy_frames import queried_metrics
from gamelens.catalog import METRICS
from gamelens.receipts import Receipt

_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class MatchReport:
    """The rows of a join that matched, and those that did not.

    Attributes:
        source: name of the file, or "other".
        on: column of the frame to column of the external table.
        how: the kind of join.
        rows: number of rows of the frame.
        only_left: rows of the frame without a match, in its columns.
        only_right: external rows without a match, in their columns, with their row numbers as index.
        matched_share: share of *share_of* that matched, 0 to 1, or None for an empty frame.
        share_of: the frame's first metric, such as "revenue (sum)", or "rows" if it cannot be added up.
        renamed: external column to its name in the frame, for names that both have.
        warnings: sentences without a full stop.
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
        """Return the join, its matches, its unmatched rows and its warnings, a line for each."""
        keys = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.on.items())
        matched_rows = self.rows - len(self.only_left)
        share = format_number(self.matched_share, "share")
        lines = [
            f"Joined with {self.source} on {keys}, {self.how}.",
            f"{matched_rows:,} of {self.rows:,} rows found a counterpart: {share} of {self.share_of}.",
            _unmatched(self.only_left[[*self.on]], "the frame", ""),
            _unmatched(self.only_right[[*self.on.values()]], self.source, "row "),
        ]
        lines += [f"{name} of {self.source} is called {left}." for name, left in self.renamed.items()]
        lines += [f"Warning: {warning}." for warning in self.warnings]
        return "\n".join(one_line(line) for line in lines if line)


@dataclass(frozen=True, eq=False)
class Joined:
    """A joined frame and its report: `frame, report = gl.join(...)`."""

    frame: DataFrame
    report: MatchReport

    def __iter__(self) -> Iterator[Any]:
        yield self.frame
        yield self.report


def matched_share(frame: DataFrame, is_matched: Series[Any]) -> tuple[float | None, str]:
    """Return the share of the frame's first metric in matched rows, and the metric's name.

    If the metric cannot be added up, it is the share of rows.
    """
    weights, name = _weights(frame)
    whole = float(weights.sum())
    return (float(weights[is_matched].sum()) / whole if whole else None), name


def _weights(frame: DataFrame) -> tuple[Series[Any], str]:
    """Return the weight of each row and its name: the first metric, or 1 for each row."""
    rows = Series(1.0, index=frame.index)
    metric = METRICS.get(next(iter(queried_metrics(frame)), ""))
    if metric is None or metric.adds != "everywhere":
        return rows, "rows"
    if metric.name not in frame:  # the column was dropped
        return rows, "rows"
    weights = frame[metric.name].astype("float64").fillna(0.0)
    return (weights, metric.name) if weights.sum() else (rows, "rows")


def key_text(values: Any) -> str:
    """Return one key for people: `(2026-11-01, US)`."""
    return f"({', '.join(_readable(value) for value in values)})"


def _readable(value: Any) -> str:
    """Return a key for people: a day without its time, a null as `no value`."""
    if value is None or pd.isna(value):
        return "no value"
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d}" if value == value.normalize() else f"{value:%Y-%m-%d %H:%M}"
    return str(value)


def _unmatched(keys: DataFrame, what: str, numbered: str) -> str:
    """Return a sentence about the rows without a match, with the first of their keys."""
    shown = [
        f"{numbered}{number} {key_text(key)}" if numbered else key_text(key)
        for number, key in zip(keys.index[:_SHOWN], keys.head(_SHOWN).itertuples(index=False), strict=True)
    ]
    more = ", …" if len(keys) > _SHOWN else ""
    if not len(keys):
        return f"Every row of {what} found one."
    return f"{len(keys):,} row{'' if len(keys) == 1 else 's'} of {what} found none: {', '.join(shown)}{more}."


def lookalikes(left_keys: DataFrame, right_keys: DataFrame, pairs: dict[str, str], table: ExternalTable) -> list[str]:
    """Return warnings about keys that look alike and are not equal."""
    warnings = []
    for name, outside_name in pairs.items():
        if left_keys[name].dtype == "str" and (alike := similar_keys(left_keys[name], right_keys[name])):
            shown = ", ".join(f"{right_text!r} is not {left_text!r}" for right_text, left_text in alike[:3])
            warnings.append(f"{outside_name} of {table.source} is compared exactly with {name}: {shown}")
    return warnings


def double_counting(
    values: DataFrame, matches: NDArray[np.int64], repeats: NDArray[np.bool_], table: ExternalTable
) -> list[str]:
    """Return a warning if sums over the frame would count external values more than once.

    It has the first column of numbers as an example.
    """
    if not repeats.any():
        return []
    numbers = [str(name) for name in values if is_numeric_dtype(values[name]) and not is_bool_dtype(values[name])]
    most = int(np.unique_counts(matches[repeats]).counts.max())
    warning = f"a key stands in up to {most} rows of the frame, and the values of {table.source} in each of them"
    if numbers:
        column = values[numbers[0]].astype("float64")
        matched = matches[matches >= 0]
        once, summed_up = column.iloc[np.unique(matched)].sum(), column.iloc[matched].sum()
        warning += f": summing {numbers[0]} would count it more than once ({once:,.2f} becomes {summed_up:,.2f})"
    return [warning]


def cut_short(df: DataFrame, matched_keys: DataFrame) -> list[str]:
    """Return a warning if the frame counts a bucket in part whose external value may be whole."""
    moments = [name for name in matched_keys if is_datetime64_any_dtype(matched_keys[name])]
    cut = [bucket for name in moments for bucket in time_buckets.cut_buckets(df, matched_keys[name])]
    if not cut:
        return []
    days = ", ".join(f"{bucket:%Y-%m-%d}" for bucket in cut)
    every = Receipt.of(df.attrs).asked.every
    return [f"the frame counts only part of the {every} of {days}, the outside may count all of it"]
