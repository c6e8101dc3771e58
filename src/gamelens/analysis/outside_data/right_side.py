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


def prepare_right(
    df: DataFrame,
    left_keys: DataFrame,
    table: ExternalTable,
    pairs: dict[str, str],
    values: ValueColumns,
    *,
    is_summed: bool,
    day_first: bool | None,
    fold: Collection[str] = (),
) -> RightTable:
    """Return the rows of *table* with *values*, one for each key.

    With *is_summed*, rows of one key are added up. Keys in *fold* are matched without regard to case and blanks.

    Raises:
        BadQuery: a key is there twice, or does not fit the buckets of *df*.
    """
    every = Receipt.of(df.attrs).asked.every
    times: dict[str, Series[Any]] = {}
    starts: dict[str, Series[Any]] = {}
    notes: list[str] = []
    is_left_out = Series(False, index=values.frame.index)
    is_finer = False
    for name, column in pairs.items():
        if not is_datetime64_any_dtype(df[name]):
            continue
        moments = read_moments(right_moments(table, column), field=column, day_first=day_first)
        start = time_buckets.align_to_buckets(moments, every, is_summed=is_summed, field=column)
        times[name], starts[name] = moments.at, start
        notes += [moments.note] if moments.note else []
        if every is None:
            rule = "the frame has no receipt, so the length of its buckets is unknown"
            notes.append(f"{rule}: {column} is compared exactly")
        if always := time_buckets.suspicious_starts(moments, every):
            notes.append(f"{column} is always {always}: a table by week or month would match one day of each")
        if (moments.at.dropna() != start.dropna()).any():
            is_finer = True
            is_uncounted = time_buckets.is_uncounted(df, moments.at, start)
            is_left_out |= is_uncounted
            if count := int(is_uncounted.sum()):
                rule = "left out: outside the interval of the frame, in a bucket that it counts only in part"
                notes.append(f"{count} row{'' if count == 1 else 's'} of {table.source} {rule}")
    texts = {name: right_key(table, pairs[name], left_keys[name]) for name in pairs if name not in times}
    for name in fold:
        if name not in texts or texts[name].dtype != "str":
            raise BadQuery("fold", name, "is not a text key", [key for key in texts if texts[key].dtype == "str"])
        texts[name] = respelled(texts[name], left_keys[name], name)
    keys = DataFrame(starts | texts)[[*pairs]]
    shown = DataFrame(times | texts)[[*pairs]].rename(columns=pairs)
    kept = keys[~is_left_out]
    group = kept.groupby([*pairs], dropna=False, sort=False).ngroup()
    is_first = ~group.duplicated()
    if is_first.all():
        of_keys = values.frame[~is_left_out].reset_index(drop=True)
    elif is_summed:
        of_keys = sum_by_group(values.frame[~is_left_out], group, table, shares=values.shares)
    else:
        raise _repeated_key_error(kept, group, table)
    return RightTable(
        keys=kept[is_first].reset_index(drop=True),
        values=of_keys,
        rows=shown.join(values.frame).set_index(pd.Index(table.rows, name="row")),
        group=group.reindex(keys.index, fill_value=_NO_MATCH),
        notes=tuple(notes),
        is_finer=is_finer,
    )


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
