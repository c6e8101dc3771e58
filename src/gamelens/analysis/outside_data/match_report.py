"""Report of a join: the rows that matched and those that did not, with warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from gamelens._scales import format_number
from gamelens._text import counted, one_line
from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.outside_data import time_buckets
from gamelens.analysis.outside_data.header_months import months_in_words
from gamelens.analysis.outside_data.outside_table import KNOWN_UNTIL, OutsideTable
from gamelens.analysis.outside_data.row_periods import step_of_name
from gamelens.analysis.tidy_frames import queried_metrics
from gamelens.analysis.tidy_frames.query_text import interval_text
from gamelens.catalog import METRICS
from gamelens.errors import suggests_names
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

COUNTS_PART = "the frame counts only part of"
"""Begins a warning of buckets whose external values may be of more days."""
_SHOWN = 5


@suggests_names
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
        unknown: names of the table that the frame does not have, by column of the frame.
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
    unknown: Mapping[str, tuple[str, ...]]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        share = format_number(self.matched_share, "share")
        unmatched = f"{counted(len(self.only_left), 'row')} of the frame and {len(self.only_right):,} of {self.source}"
        warnings = f", {counted(len(self.warnings), 'warning')}" if self.warnings else ""
        return one_line(
            f"<join with {self.source}: {share} of {self.share_of} matched; "
            f"without a counterpart: {unmatched}{warnings}; explain() lists them>"
        )

    def explain(self) -> str:
        """Return the join, its matches, its unmatched rows and its warnings, a line for each."""
        keys = ", ".join(
            left if left == right else f"{left} = {right or 'the days of all rows'}" for left, right in self.on.items()
        )
        matched_rows = self.rows - len(self.only_left)
        share = format_number(self.matched_share, "share")
        lines = [
            f"Joined with {self.source} on {keys}, {self.how}.",
            f"{matched_rows:,} of {counted(self.rows, 'row')} have a counterpart: {share} of {self.share_of}.",
            _unmatched(self.only_left[[*self.on]], "the frame", ""),
            _unmatched(self.only_right[[name or "days" for name in self.on.values()]], self.source, "row "),
        ]
        lines += [f"{name} of {self.source} is called {left}." for name, left in self.renamed.items()]
        lines += [f"Warning: {warning}." for warning in self.warnings]
        return "\n".join(one_line(line) for line in lines if line)


@suggests_names
@dataclass(frozen=True, eq=False)
class Joined:
    """A joined frame and its report: `frame, report = gl.join(...)`."""

    frame: DataFrame
    report: MatchReport

    def __repr__(self) -> str:
        return f"{self.report!r} with the frame of {counted(len(self.frame), 'row')} in .frame"

    def __iter__(self) -> Iterator[Any]:
        yield self.frame
        yield self.report


def matched_share(frame: DataFrame, is_matched: Series[Any]) -> tuple[float | None, str]:
    """Return the share of the frame's first metric in matched rows, and the metric's name.

    If the metric cannot be added up, is 0 or was dropped, it is the share of rows.
    """
    weights, name = Series(1.0, index=frame.index), "rows"
    metric = METRICS.get(next(iter(queried_metrics(frame)), ""))
    if metric is not None and metric.adds == "everywhere" and metric.name in frame:
        amounts = frame[metric.name].astype("float64").fillna(0.0)
        if amounts.sum():
            weights, name = amounts, metric.name
    whole = float(weights.sum())
    return (float(weights[is_matched].sum()) / whole if whole else None), name


def key_text(values: Iterable[Any]) -> str:
    """Return one key for people, days without their time: `(2026-11-01, no value)`."""
    words = []
    for value in values:
        if value is None or pd.isna(value):
            words.append("no value")
        elif isinstance(value, pd.Timestamp):
            words.append(f"{value:%Y-%m-%d}" if value == value.normalize() else f"{value:%Y-%m-%d %H:%M}")
        else:
            words.append(str(value))
    return f"({', '.join(words)})"


def _unmatched(keys: DataFrame, what: str, numbered: str) -> str:
    """Return a sentence about the rows without a match, with the first of their keys."""
    if keys.empty:
        return f"Every row of {what} has a counterpart."
    first = keys.head(_SHOWN).itertuples(name=None)
    shown = ", ".join(f"{numbered}{number} {key_text(key)}" if numbered else key_text(key) for number, *key in first)
    more = ", …" if len(keys) > _SHOWN else ""
    verb = "has" if len(keys) == 1 else "have"
    return f"{counted(len(keys), 'row')} of {what} {verb} no counterpart: {shown}{more}."


def lookalikes(left_keys: DataFrame, right_keys: DataFrame, pairs: dict[str, str], table: OutsideTable) -> list[str]:
    """Return warnings about keys that look alike and are not equal.

    They differ in nothing but case, spaces, leading zeros or a final `.0`.
    """

    def folded(text: str) -> str:
        return text.strip().casefold().removesuffix(".0").lstrip("0")

    warnings = []
    for name, outside_name in pairs.items():
        if left_keys[name].dtype != "str":
            continue
        known = set(left_keys[name].dropna())
        spellings = {folded(text): text for text in sorted(known)}
        unmatched = [text for text in right_keys[name].dropna().unique() if text not in known]
        alike = [f"{text!r} is not {spellings[folded(text)]!r}" for text in unmatched if folded(text) in spellings]
        if alike:
            rule = f"{outside_name} of {table.source} is compared exactly with {name}"
            warnings.append(f"{rule}: {', '.join(alike[:3])}")
    return warnings


def double_counting(
    values: DataFrame, matches: NDArray[np.int64], repeats: NDArray[np.bool_], table: OutsideTable
) -> list[str]:
    """Return a warning if sums over the frame would count external values more than once.

    It has the first column of numbers as an example.
    """
    if not repeats.any():
        return []
    numbers = [str(name) for name in values if is_numeric_dtype(values[name]) and not is_bool_dtype(values[name])]
    most = int(np.unique_counts(matches[repeats]).counts.max())
    warning = f"a key is in up to {most} rows of the frame, each with the values of {table.source}"
    if numbers:
        column = values[numbers[0]].astype("float64")
        matched = matches[matches >= 0]
        once, summed_up = column.iloc[np.unique(matched)].sum(), column.iloc[matched].sum()
        warning += f": summing {numbers[0]} would count it more than once ({once:,.2f} becomes {summed_up:,.2f})"
    return [warning]


def of_one_platform(df: DataFrame, pairs: Mapping[str, str], table: OutsideTable) -> list[str]:
    """Return a warning if the table is of one platform, and the frame counts all of them together."""
    if "platform" in df or "platform" in str(Receipt.of(df.attrs).asked.where):
        return []
    for column in table.of_role("platform"):
        values = column.values
        platforms = {canonical_name(str(text), "platform") or str(text) for text in values.dropna().unique()}
        if len(platforms) == 1 and values.notna().all() and column.name not in pairs.values():
            where = f"{column.evidence[0].where} ({column.evidence[0].quote})"
            where = column.name if column.name in table.grid.columns else where
            rule = f"{table.source} is of {min(platforms)} alone, by {where}, and the frame counts all platforms: "
            return [f'{rule}query it by "platform" too, or with where=gl.dim.platform == "{min(platforms)}"']
    return []


def cut_short(df: DataFrame, matched_keys: DataFrame, table: OutsideTable) -> list[str]:
    """Return a warning if the frame counts a bucket in part whose external value may be whole.

    That is not so where the frame ends with the last day that a line of the table knows.
    """
    receipt = Receipt.of(df.attrs)
    moments = [name for name in matched_keys if is_datetime64_any_dtype(matched_keys[name])]
    cut = [bucket for name in moments for bucket in time_buckets.cut_buckets(df, matched_keys[name])]
    end = receipt.interval.end if receipt.interval else None
    if end is not None and any(KNOWN_UNTIL in note and f'/{end:%Y-%m-%d}"' in note for note in table.notes):
        cut = [bucket for bucket in cut if bucket.end <= end]
    if not cut or receipt.interval is None:
        return []
    days = ", ".join(f"{bucket.start:%Y-%m-%d}" for bucket in cut)
    spans = [*cut, receipt.interval]
    whole = Interval(min(span.start for span in spans), max(span.end for span in spans))
    rule = f"{COUNTS_PART} the {receipt.asked.every} of {days}, the outside table may count all of it"
    return [f'{rule}: query over="{interval_text(whole)}"']


def uncovered(df: DataFrame, matched_keys: DataFrame, pairs: Mapping[str, str], table: OutsideTable) -> list[str]:
    """Return a warning if amounts or counts of a table with some days of a week or month stand beside all of it."""
    times = [name for name in matched_keys if is_datetime64_any_dtype(matched_keys[name])]
    is_of_rows = bool(times) and pairs[str(times[0])] == table.periods.column
    if not is_of_rows or table.interval is None or not table.of_role("amount", "count"):
        return []
    spans = time_buckets.uncovered_buckets(df, matched_keys[times[0]], table.periods)
    if not spans:
        return []
    shown = " and ".join(interval_text(span) for span in spans[:2])
    every = Receipt.of(df.attrs).asked.every
    together = "together" if every == "all" else f"in one {every}"
    return [f"{table.source} has rows of {interval_text(table.interval)} only, and the frame has {shown} {together}"]


def without_days(df: DataFrame, table: OutsideTable) -> list[str]:
    """Return a warning if amounts or counts of a table without days stand beside the days of a frame."""
    are_days = "timestamp" in df and is_datetime64_any_dtype(df["timestamp"])
    if not are_days or table.period is not None or table.periods.problem or not table.of_role("amount", "count"):
        return []
    rule = f"{table.source} has no days: its numbers stand beside the days of the frame"
    if months := months_in_words(table):
        return [f"{rule}; {months}"]
    first = Series(df["timestamp"]).min()
    of_month = "" if pd.isna(first) else f', such as days="{first:%Y-%m}" if all are of that month'
    step = step_of_name(table.source) or f"days= of gl.read_table names them{of_month}"
    return [f"{rule}; {step}"]
