"""The outside of a join: its keys in the frame's types, one row for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype

from gamelens.analysis.files.date_parsing import read_moments
from gamelens.analysis.files.table_reader import ExternalTable
from gamelens.analysis.outside_data import time_buckets
from gamelens.analysis.outside_data.join_keys import right_key, their_moments
from gamelens.analysis.outside_data.match_report import key_text
from gamelens.analysis.outside_data.value_columns import ValueColumns, summed
from gamelens.errors import BadQuery
from gamelens.wire.receipts import Receipt

_NOWHERE: Final = -1


@dataclass(frozen=True, eq=False)
class RightTable:
    """What the frame is joined with.

    *keys* (named as in the frame) and *values* have one row a key, in the order of first appearance. *rows* are all
    rows that were read, under the outside's names, numbered as their owner does; *group* is the place of each in
    *keys*, or -1 where it was left out. *is_finer*: several moments of it may fall into one bucket of the frame.
    """

    keys: DataFrame
    values: DataFrame
    rows: DataFrame
    group: Series[Any]
    notes: tuple[str, ...]
    is_finer: bool


@dataclass(frozen=True, eq=False)
class _Timed:
    """A key that is a moment: as it was read, its bucket in the frame, and whether the frame counts nothing there."""

    at: Series[Any]
    start: Series[Any]
    is_aside: Series[Any]
    notes: tuple[str, ...]

    @property
    def is_finer(self) -> bool:
        return bool((self.at.dropna() != self.start.dropna()).any())


def prepare_right(
    df: DataFrame,
    ours: DataFrame,
    table: ExternalTable,
    pairs: dict[str, str],
    values: DataFrame,
    adding: ValueColumns | None,
    *,
    day_first: bool | None,
) -> RightTable:
    """The rows of *table* with *values*; where several have one key they are summed, if *adding* says what may be.

    Raises:
        BadQuery: a key that is there twice, or that does not fit the buckets of *df*.
    """
    timed = {
        name: _timed(df, table, theirs, is_summed=adding is not None, day_first=day_first)
        for name, theirs in pairs.items()
        if is_datetime64_any_dtype(df[name])
    }
    plain = {name: right_key(table, pairs[name], ours[name]) for name in pairs if name not in timed}
    keys = DataFrame({name: timed[name].start if name in timed else plain[name] for name in pairs})
    shown = DataFrame({pairs[name]: timed[name].at if name in timed else plain[name] for name in pairs})
    is_aside = Series(False, index=keys.index)
    for key in timed.values():
        is_aside |= key.is_aside
    unique, summed_up, group = _one_a_key(keys[~is_aside], values[~is_aside], table, adding)
    return RightTable(
        keys=unique,
        values=summed_up,
        rows=shown.join(values).set_index(pd.Index(table.rows, name="row")),
        group=group.reindex(keys.index, fill_value=_NOWHERE),
        notes=tuple(note for key in timed.values() for note in key.notes),
        is_finer=any(key.is_finer for key in timed.values()),
    )


def _timed(df: DataFrame, table: ExternalTable, column: str, *, is_summed: bool, day_first: bool | None) -> _Timed:
    every = Receipt.of(df.attrs).asked.every
    moments = read_moments(their_moments(table, column), field=column, day_first=day_first)
    start = time_buckets.placed(moments, every, is_summed=is_summed, field=column)
    is_aside = Series(False, index=start.index)
    notes = []
    if every is None:
        notes.append(f"the frame has no receipt, so nobody knows its buckets: {column} is compared exactly")
    if always := time_buckets.suspicious_starts(moments, every):
        notes.append(f"{column} is always {always}: a table by week or month would match one day of each")
    if (moments.at.dropna() != start.dropna()).any():
        is_aside = time_buckets.outside_of(df, moments.at, start)
        if count := int(is_aside.sum()):
            rule = "outside the interval of the frame, in a bucket it counts only in part, left out"
            notes.append(f"{count} row{'' if count == 1 else 's'} of {table.source} {rule}")
    return _Timed(moments.at, start, is_aside, tuple(notes))


def _one_a_key(
    keys: DataFrame, values: DataFrame, table: ExternalTable, adding: ValueColumns | None
) -> tuple[DataFrame, DataFrame, Series[Any]]:
    group = keys.groupby(list(keys.columns), dropna=False, sort=False).ngroup()
    first = ~group.duplicated()
    if not first.all():
        if adding is None:
            raise _repeated(keys, group, table)
        values = summed(values, group, table, shares=adding.shares)
    return keys[first].reset_index(drop=True), values.reset_index(drop=True), group


def _repeated(keys: DataFrame, group: Series[Any], table: ExternalTable) -> BadQuery:
    repeated = group[group.duplicated(keep=False)]
    several = [
        f"{key_text(keys.loc[places[0]])} in rows {', '.join(str(table.rows[place]) for place in places[:5])}"
        for places in (list(members.index) for _, members in repeated.groupby(repeated, sort=False))
    ]
    more = f" and {len(several) - 5} more" if len(several) > 5 else ""
    rule = f'has a key more than once: {"; ".join(several[:5])}{more}. aggregate="sum" adds them up'
    return BadQuery("other", table.source, rule)
