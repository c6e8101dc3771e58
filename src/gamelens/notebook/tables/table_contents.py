"""The texts of a table, not escaped yet: the same for pages, mail and terminals."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from datetime import timedelta
from typing import Any, Final

import msgspec
import pandas as pd
from pandas import DataFrame, RangeIndex

from gamelens.analysis.tidy_frames import dimension_columns, label_columns
from gamelens.analysis.totals import column_totals
from gamelens.errors import BadQuery
from gamelens.notebook.receipt_text import source_line, unfinished
from gamelens.notebook.tables.column_texts import ColumnTexts, columns_of
from gamelens.receipts import Receipt
from gamelens.wire.intervals import SETTLE_DAYS, Interval

PARTLY_COUNTED: Final = "Counted only in part: the period begins or ends within it."
MAY_CHANGE: Final = f"May still change: it ended less than {SETTLE_DAYS} days before the date of the data."
_SOON: Final = timedelta(microseconds=1)
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d)?")


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column as texts.

    Attributes:
        name: the heading.
        unit: words for its unit, or empty.
        is_number: whether it is aligned right.
        is_day: whether its cells are days.
        is_key: whether it is the timestamp or a dimension.
        texts: the cells.
        total: the cell of the total, empty where the column may not be added up.
        bars: the numbers that bars are drawn for, or None for a column without bars.
    """

    name: str
    unit: str
    is_number: bool
    is_day: bool
    is_key: bool
    texts: tuple[str, ...]
    total: str
    bars: tuple[Any, ...] | None


class TableContents(msgspec.Struct, frozen=True, kw_only=True):
    """All texts of a table.

    Attributes:
        columns: the columns.
        has_total: whether a row of totals follows.
        notes: each note on rows, with the places of its rows.
        cut: a sentence about the rows that are left out, or empty.
        left_out: a sentence about the columns that are left out, or empty.
        source: the source line, or empty without a receipt.
        badge: the part of *source* that says the numbers are simulated, or empty.
    """

    columns: tuple[TableColumn, ...]
    has_total: bool
    notes: dict[str, tuple[int, ...]]
    cut: str
    left_out: str
    source: str
    badge: str

    @property
    def label(self) -> str:
        """A name of the table: its headings."""
        return f"Table: {', '.join(column.name for column in self.columns)}"

    @property
    def rows(self) -> int:
        """The number of rows that are shown, without the total."""
        return len(self.columns[0].texts) if self.columns else 0

    @property
    def has_row_names(self) -> bool:
        """Whether the first column names the rows."""
        return bool(self.columns) and not self.columns[0].is_number


def contents_of(frame: DataFrame, *, rows: int, total: bool, bars: Sequence[str]) -> TableContents:
    """Return the texts of the first *rows* of *frame*, with its index if that has a name.

    Raises:
        BadQuery: *rows* is less than 1, or *bars* names a column that has no numbers.
        NotAdditive: *total* is wanted and no column may be added up.
    """
    if rows < 1:
        raise BadQuery("rows", rows, "must be at least 1")
    named = frame if isinstance(frame.index, RangeIndex) or not any(frame.index.names) else frame.reset_index()
    ids = set(dimension_columns(named)) - set(label_columns(named))  # titles stand for them
    shown = named.drop(columns=list(ids)).head(rows)
    shown.attrs = frame.attrs
    columns = columns_of(shown)
    drawable = [column.column for column in columns if column.is_number and column.column != "low"]
    if unknown := [name for name in bars if name not in drawable]:
        raise BadQuery("bars", unknown[0], "is not a column of numbers", drawable)
    totals, keys = column_totals(frame) if total else {}, {"timestamp", *dimension_columns(named)}
    made = [_column(column, len(shown), totals, bars, keys) for column in columns]
    empty = [column for column in made[1:] if not column.bars and set(column.texts) <= {"", "n/a"}]
    same = [column for column in made[1:] if column not in empty and _is_same_text(column)]
    if len(shown) < 2:  # what a single row has is all there is to see
        empty, same = [], []
    return TableContents(
        columns=tuple(column for column in made if column not in empty and column not in same),
        has_total=bool(totals),
        notes=_notes(shown),
        cut=f"The first {len(shown):,} of {len(named):,} rows." if len(named) > len(shown) else "",
        left_out=_about_left_out(empty, same),
        source=source_line(frame),
        badge=Receipt.of(frame.attrs).provenance.badge,
    )


def _notes(frame: DataFrame) -> dict[str, tuple[int, ...]]:
    """Return the places of the rows whose numbers are not final, by the note on them.

    A row of a retention frame is counted on the day that its age falls on. A frame without times, or without a receipt,
    has no notes.
    """
    receipt = Receipt.of(frame.attrs)
    if "timestamp" not in frame or not receipt.as_of:
        return {}
    settled_until = pd.Timestamp(receipt.as_of) - timedelta(days=SETTLE_DAYS)
    partial, every = unfinished(frame), receipt.asked.every
    ages = frame["age"] if "age" in frame else [0] * len(frame)
    notes = defaultdict[str, list[int]](list)
    for row, (start, age) in enumerate(zip(frame["timestamp"], ages, strict=True)):
        if start in partial:
            notes[PARTLY_COUNTED].append(row)
        elif not pd.isna(start):
            counted = start.to_pydatetime() + timedelta(days=int(age))
            if every is None or every == "all":  # a bucket of unknown size, or all of the period, counts as a day
                end = counted + timedelta(days=1)
            else:
                *_, bucket = Interval(counted, counted + _SOON).buckets(every)
                end = bucket.end
            if end > settled_until:
                notes[MAY_CHANGE].append(row)
    return {note: tuple(rows) for note, rows in notes.items()}


def _is_same_text(column: TableColumn) -> bool:
    """Return whether *column* has the same word in every row."""
    return not (column.is_number or column.is_day) and len(set(column.texts)) == 1


def _about_left_out(empty: Sequence[TableColumn], same: Sequence[TableColumn]) -> str:
    """Return a sentence about the columns without a value, and those with the same word in every row."""
    parts = [f"{column.name}: {column.texts[0]}" for column in same]
    words = f"In every row: {'; '.join(parts)}." if parts else ""
    unknown = f"Without a value in any row: {', '.join(column.name for column in empty)}." if empty else ""
    return " ".join(filter(None, (words, unknown)))


def _column(
    column: ColumnTexts, rows: int, totals: dict[str, float], bars: Sequence[str], keys: Set[str]
) -> TableColumn:
    texts = tuple(column.text(row) for row in range(rows))
    return TableColumn(
        name=column.name,
        unit=column.unit,
        is_number=column.is_number,
        is_day=column.is_day or all(map(_DAY.fullmatch, texts)),
        is_key=column.column in keys,
        texts=texts,
        total=column.number_text(totals[column.column]) if column.column in totals else "",
        bars=tuple(column.values) if column.column in bars else None,
    )
