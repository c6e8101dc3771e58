"""The texts of a table, not escaped yet: the same for pages, mail and terminals."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any, Final

import msgspec
import pandas as pd
from pandas import DataFrame, RangeIndex, Series

from gamelens._scales import RARE, Scale
from gamelens._text import counted
from gamelens.analysis.tidy_frames import dimension_columns, label_columns, value_columns
from gamelens.analysis.totals import column_totals
from gamelens.errors import BadQuery
from gamelens.notebook.frame_receipts import unfinished
from gamelens.notebook.sparklines import has_sparkline, sparkline_in_words, sparkline_text
from gamelens.notebook.tables.column_texts import ColumnTexts, columns_of
from gamelens.receipt_text import source_line
from gamelens.receipts import Receipt
from gamelens.wire.intervals import SETTLE_DAYS, Interval

PARTLY_COUNTED: Final = "Counted in part: the period begins or ends within it."
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
        changes: for each frame that the table is set against, the change of each cell from it; empty without any.
        total: the cell of the total, empty where the column may not be added up.
        bars: the numbers that bars are drawn for, or None for a column without bars.
        sparklines: for a column of them, the numbers of each row over time, the oldest first, and the same in words.
    """

    name: str
    unit: str
    is_number: bool
    is_day: bool
    is_key: bool
    texts: tuple[str, ...]
    changes: tuple[tuple[str, ...], ...]
    total: str
    bars: tuple[Any, ...] | None
    sparklines: tuple[tuple[tuple[float, ...], str], ...] = ()


class TableContents(msgspec.Struct, frozen=True, kw_only=True):
    """All texts of a table.

    Attributes:
        columns: the columns.
        has_total: whether a row of totals follows.
        notes: each note on rows, with the places of its rows.
        compared: the names of the frames that the small numbers are changes from.
        against: sentences about what the small numbers are and which rows only the other frames have.
        cut: a sentence about the rows that are left out, or empty.
        left_out: a sentence about the columns that are left out, or empty.
        source: the source line, or empty without a receipt.
        badge: the part of *source* that says the numbers are simulated, or empty.
    """

    columns: tuple[TableColumn, ...]
    has_total: bool
    notes: dict[str, tuple[int, ...]]
    compared: tuple[str, ...]
    against: tuple[str, ...]
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


def contents_of(
    frame: DataFrame,
    *,
    rows: int,
    total: bool,
    bars: Sequence[str],
    against: Mapping[str, DataFrame] | None = None,
    history: Mapping[str, DataFrame] | None = None,
) -> TableContents:
    """Return the texts of the first *rows* of *frame*, with its index if that has a name.

    Raises:
        BadQuery: *rows* is less than 1, *bars* or *history* names a column that has no numbers, a frame of *against*
            has a column of numbers that *frame* has not, no name of rows in common with it, or a row twice, or a frame
            of *history* has not the column, no times, no name of rows in common, or a row twice at a time.
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
    history = history or {}
    for option, names in (("bars", bars), ("history", history)):
        if unknown := [name for name in names if name not in drawable]:
            raise BadQuery(option, unknown[0], "is not a column of numbers", drawable)
    totals, keys = column_totals(frame) if total else {}, {"timestamp", *dimension_columns(named)}
    against = against or {}
    others, only_there = _aligned(named, against)
    changes = {
        column.column: _changes(column, [other.get(column.column) for other in others])
        for column in columns
        if column.is_number and any(column.column in other for other in others)
    }
    *first, last = against or [""]
    small = (
        f"Below each number, the change from {' and '.join(filter(None, [', '.join(first), last]))}." if changes else ""
    )
    made = [_column(column, len(shown), totals, bars, keys, changes.get(column.column, ())) for column in columns]
    empty = [column for column in made[1:] if not column.bars and set(column.texts) <= {"", "n/a"}]
    same = [column for column in made[1:] if column not in empty and _is_same_text(column)]
    if len(shown) < 2:  # what a single row has is all there is to see
        empty, same = [], []
    left = tuple(
        part
        for column, made_column in zip(columns, made, strict=True)
        if made_column not in empty and made_column not in same
        for part in (made_column, *_sparklines(column, shown, history.get(column.column)))
    )
    return TableContents(
        columns=left,
        has_total=bool(totals),
        notes=_notes(shown),
        compared=tuple(against) if changes else (),
        against=tuple(filter(None, [small, *only_there])),
        cut=f"The first {len(shown):,} of {len(named):,} rows." if len(named) > len(shown) else "",
        left_out=_about_left_out(empty, same),
        source=source_line(frame),
        badge=Receipt.of(frame.attrs).provenance.badge,
    )


def _aligned(frame: DataFrame, against: Mapping[str, DataFrame]) -> tuple[list[DataFrame], list[str]]:
    """Return the other frames with the rows of *frame*, and sentences about the rows that only they have.

    Rows are the same if they have the same names: the texts that both frames have.
    """
    aligned, only_there = [], []
    for name, other in against.items():
        keys = [key for key in label_columns(frame) if key in other]
        numbers = [str(column) for column in value_columns(other)]
        if unknown := [column for column in numbers if column not in frame]:
            raise BadQuery("against", unknown[0], f"is a column of {name}, not of the table", value_columns(frame))
        if not keys:
            raise BadQuery(
                "against", name, "has no column in common with the table that names rows", label_columns(frame)
            )
        rows, names = (pd.MultiIndex.from_frame(given[keys].astype("object")) for given in (other, frame))
        if rows.has_duplicates:
            raise BadQuery("against", name, f"has several rows for {rows[rows.duplicated()][0][-1]}: pass one for each")
        if missing := [", ".join(map(str, row)) for row in rows.difference(names)]:
            only_there.append(f"Only {name} has {' and '.join(missing)}.")
        aligned.append(other[numbers].set_axis(rows).reindex(names).reset_index(drop=True))
    return aligned, only_there


def _sparklines(column: ColumnTexts, shown: DataFrame, history: DataFrame | None) -> Iterator[TableColumn]:
    """Yield the column of sparklines beside *column*, if any row of its *history* has a course to draw.

    A row without a number at one of the times has a gap there.
    """
    if history is None:
        return
    name, keys = column.column, [key for key in label_columns(shown) if key in history and key != "timestamp"]
    if missing := [needed for needed in (name, "timestamp") if needed not in history]:
        raise BadQuery("history", name, f"needs a frame with the column {missing[0]}", [*map(str, history.columns)])
    if not keys:
        raise BadQuery("history", name, "has no column in common with the table that names rows", label_columns(shown))
    rows = pd.MultiIndex.from_frame(history[[*keys, "timestamp"]].astype("object"))
    if rows.has_duplicates:
        raise BadQuery("history", name, f"has several rows for {rows[rows.duplicated()][0]}: pass one for each time")
    numbers = Series(history[name].astype("float64").array, rows).unstack().sort_index(axis=1)
    wanted = pd.MultiIndex.from_frame(shown[keys].astype("object"))
    found = numbers.reindex(wanted if len(keys) > 1 else wanted.get_level_values(0)).to_numpy(na_value=math.nan)
    series = [tuple(map(float, row)) for row in found]
    if not any(map(has_sparkline, series)):
        return
    every = Receipt.of(history.attrs).asked.every
    bucket = every if every in ("day", "week", "month") else "time"
    titles = [", ".join(map(str, row)) for row in wanted]
    yield TableColumn(
        name=counted(numbers.shape[1], bucket),
        unit="",
        is_number=False,
        is_day=False,
        is_key=False,
        texts=tuple(map(sparkline_text, series)),
        changes=(),
        total="",
        bars=None,
        sparklines=tuple(
            (row, f"{title}: {column.name}, {sparkline_in_words(row, bucket, column.written.text)}")
            for title, row in zip(titles, series, strict=True)
        ),
    )


def _changes(column: ColumnTexts, others: Sequence[Series[Any] | None]) -> tuple[tuple[str, ...], ...]:
    """Return the change of each cell from each of *others*, in percentage points where the column is a share.

    It has whole percentages, because it is small print. A change from a rare count is a difference.
    """
    is_share = column.kind == "share"
    values, gaps, differences = Series(column.values, dtype="float64"), [], []
    for other in others:
        before = Series(float("nan"), values.index) if other is None else other.head(len(values)).astype("float64")
        is_rare = before < RARE if column.kind == "count" else Series(data=False, index=values.index)
        gaps.append(values - before if is_share else values / before.where((before > 0) & ~is_rare) - 1)
        differences.append((values - before).where(is_rare))
    scale = Scale.of("points" if is_share else "change", [gap for of_frame in gaps for gap in of_frame])
    scale = scale._replace(places=min(scale.places, 1 if is_share else 0))
    counts = Scale.of("number", [gap for of_frame in differences for gap in of_frame])
    return tuple(
        tuple(
            scale.text(gap) if pd.notna(gap) else counts.text(more, is_signed=True) if pd.notna(more) else "–"
            for gap, more in zip(of_frame, rare, strict=True)
        )
        for of_frame, rare in zip(gaps, differences, strict=True)
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
            day = start.to_pydatetime() + timedelta(days=int(age))
            if every is None or every == "all":  # a bucket of unknown size, or all of the period, counts as a day
                end = day + timedelta(days=1)
            else:
                *_, bucket = Interval(day, day + _SOON).buckets(every)
                end = bucket.end
            if end > settled_until:
                notes[MAY_CHANGE].append(row)
    return {note: tuple(rows) for note, rows in notes.items()}


def _is_same_text(column: TableColumn) -> bool:
    """Return whether *column* has the same word in every row."""
    return not (column.is_number or column.is_day) and len(set(column.texts)) == 1


def _about_left_out(empty: Sequence[TableColumn], same: Sequence[TableColumn]) -> str:
    """Return the sentence that names the columns left out: without a value, or with the same word in every row."""
    parts = [f"{column.name}: {column.texts[0]}" for column in same]
    words = f"In every row: {'; '.join(parts)}." if parts else ""
    unknown = f"No value in any row: {', '.join(column.name for column in empty)}." if empty else ""
    return " ".join(filter(None, (words, unknown)))


def _column(
    column: ColumnTexts,
    rows: int,
    totals: dict[str, float],
    bars: Sequence[str],
    keys: Set[str],
    changes: tuple[tuple[str, ...], ...],
) -> TableColumn:
    texts = tuple(column.text(row) for row in range(rows))
    return TableColumn(
        name=column.name,
        unit=column.unit,
        is_number=column.is_number,
        is_day=column.is_day or all(map(_DAY.fullmatch, texts)),
        is_key=column.column in keys,
        texts=texts,
        changes=changes,
        total=column.written.text(totals[column.column]) if column.column in totals else "",
        bars=tuple(column.values) if column.column in bars else None,
    )
