"""Right side of a join: its keys in the frame's types, one row for each key."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype

from gamelens.analysis.files.date_parsing import read_moments
from gamelens.analysis.files.table_reader import ExternalTable
from gamelens.analysis.outside_data import time_buckets
from gamelens.analysis.outside_data.join_keys import respelled, right_key, right_moments
from gamelens.analysis.outside_data.match_report import key_text
from gamelens.analysis.outside_data.value_columns import ValueColumns, sum_by_group
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt

_NO_MATCH: Final = -1


@dataclass(frozen=True, eq=False)
class RightTable:
    """The external table, ready to be joined.

    Attributes:
        keys: one row for each key, in the order of first appearance, named as in the frame.
        values: the values of these rows.
        rows: all rows that were read, under the external names and row numbers.
        group: position of each of *rows* in *keys*, or -1 if it was left out.
        notes: warnings.
        is_finer: whether several of its times may fall into one bucket of the frame.
    """

    keys: DataFrame
    values: DataFrame
    rows: DataFrame
    group: Series[Any]
    notes: tuple[str, ...]
    is_finer: bool


@dataclass(frozen=True, eq=False)
class _TimeKey:
    """A key of times.

    Attributes:
        at: the times as read.
        start: the buckets of the frame that hold them.
        is_left_out: whether the frame counts nothing at that time.
        notes: warnings.
    """

    at: Series[Any]
    start: Series[Any]
    is_left_out: Series[Any]
    notes: tuple[str, ...]

    @property
    def is_finer(self) -> bool:
        return bool((self.at.dropna() != self.start.dropna()).any())


def prepare_right(
    df: DataFrame,
    left_keys: DataFrame,
    table: ExternalTable,
    pairs: dict[str, str],
    values: DataFrame,
    summing: ValueColumns | None,
    *,
    day_first: bool | None,
    fold: Collection[str] = (),
) -> RightTable:
    """Return the rows of *table* with *values*, one for each key.

    With *summing*, rows of one key are added up by its rules. Keys in *fold* are matched without regard to case and
    blanks.

    Raises:
        BadQuery: a key is there twice, or does not fit the buckets of *df*.
    """
    timed = {
        name: _time_key(df, table, column, is_summed=summing is not None, day_first=day_first)
        for name, column in pairs.items()
        if is_datetime64_any_dtype(df[name])
    }
    plain = {name: right_key(table, pairs[name], left_keys[name]) for name in pairs if name not in timed}
    for name in fold:
        if name not in plain or plain[name].dtype != "str":
            raise BadQuery("fold", name, "is not a key of text", [key for key in plain if plain[key].dtype == "str"])
        plain[name] = respelled(plain[name], left_keys[name], name)
    keys = DataFrame({name: timed[name].start if name in timed else plain[name] for name in pairs})
    shown = DataFrame({pairs[name]: timed[name].at if name in timed else plain[name] for name in pairs})
    is_left_out = Series(False, index=keys.index)
    for key in timed.values():
        is_left_out |= key.is_left_out
    unique, summed_up, group = _one_row_per_key(keys[~is_left_out], values[~is_left_out], table, summing)
    return RightTable(
        keys=unique,
        values=summed_up,
        rows=shown.join(values).set_index(pd.Index(table.rows, name="row")),
        group=group.reindex(keys.index, fill_value=_NO_MATCH),
        notes=tuple(note for key in timed.values() for note in key.notes),
        is_finer=any(key.is_finer for key in timed.values()),
    )


def _time_key(df: DataFrame, table: ExternalTable, column: str, *, is_summed: bool, day_first: bool | None) -> _TimeKey:
    """Read a key of times and align it to the buckets of *df*."""
    every = Receipt.of(df.attrs).asked.every
    moments = read_moments(right_moments(table, column), field=column, day_first=day_first)
    start = time_buckets.align_to_buckets(moments, every, is_summed=is_summed, field=column)
    is_left_out = Series(False, index=start.index)
    notes = [moments.note] if moments.note else []
    if every is None:
        notes.append(f"the frame has no receipt, so the length of its buckets is unknown: {column} is compared exactly")
    if always := time_buckets.suspicious_starts(moments, every):
        notes.append(f"{column} is always {always}: a table by week or month would match one day of each")
    if (moments.at.dropna() != start.dropna()).any():
        is_left_out = time_buckets.is_uncounted(df, moments.at, start)
        if count := int(is_left_out.sum()):
            rule = "outside the interval of the frame, in a bucket it counts only in part, left out"
            notes.append(f"{count} row{'' if count == 1 else 's'} of {table.source} {rule}")
    return _TimeKey(moments.at, start, is_left_out, tuple(notes))


def _one_row_per_key(
    keys: DataFrame, values: DataFrame, table: ExternalTable, summing: ValueColumns | None
) -> tuple[DataFrame, DataFrame, Series[Any]]:
    """Return one row of *keys* and *values* for each key, and each row's position in them.

    Raises:
        BadQuery: a key is there twice and nothing is summed.
    """
    group = keys.groupby(list(keys.columns), dropna=False, sort=False).ngroup()
    first = ~group.duplicated()
    if not first.all():
        if summing is None:
            raise _repeated_key_error(keys, group, table)
        values = sum_by_group(values, group, table, shares=summing.shares)
    return keys[first].reset_index(drop=True), values.reset_index(drop=True), group


def _repeated_key_error(keys: DataFrame, group: Series[Any], table: ExternalTable) -> BadQuery:
    """Return the exception for keys in several rows of *table*."""
    repeated = group[group.duplicated(keep=False)]
    several = [
        f"{key_text(keys.loc[places[0]])} in rows {', '.join(str(table.rows[place]) for place in places[:5])}"
        for places in (list(members.index) for _, members in repeated.groupby(repeated, sort=False))
    ]
    more = f" and {len(several) - 5} more" if len(several) > 5 else ""
    rule = f'has a key more than once: {"; ".join(several[:5])}{more}. aggregate="sum" adds them up'
    return BadQuery("other", table.source, rule)
