"""Checks of answers: rows and buckets twice, buckets not queried, negative counts.

Such an answer is the promised JSON and cannot be right, so none of it becomes a frame. Wire 2.9, Answer shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import METRICS
from gamelens.client.tables.table_schema import TIMESTAMP
from gamelens.wire.intervals import bucket_start
from gamelens.wire.queries import Group, MetricQuery
from gamelens.wire.results import impossible_answer, shown

_MOST_CODES: Final = 2**62
_MOST_NAMES: Final = 8


def check_buckets(query: MetricQuery, starts: Sequence[datetime]) -> None:
    """Refuse an answer with a bucket that was not queried, or a group with one twice.

    Args:
        query: the query that was sent.
        starts: the starts of the buckets: of a group query of every entry, else each at least once.

    Raises:
        ServiceError: the first such bucket.
    """
    every, interval = query.granularity, query.interval
    first = interval.start if every == "all" else bucket_start(interval.start, every)
    for start in starts:
        if start != first and (
            every == "all" or not first < start < interval.end or start != bucket_start(start, every)
        ):
            rule = "the start of the interval" if every == "all" else f"the start of a {every} in it"
            raise impossible_answer(f"a bucket of {_text(start)}, where {interval} was queried: that is not {rule}")
    if isinstance(query.query, Group):
        for start, number in Counter(starts).items():
            if number > 1:
                raise impossible_answer(f"the bucket of {_text(start)} is there {number} times")


def check_rows(metric: str, dimensions: Sequence[str], table: pa.Table) -> None:
    """Refuse a table with a row of the same values twice, or with a negative count.

    An amount of money may be negative, where a service counts refunds.

    Raises:
        ServiceError: the first such row.
    """
    codes = row_codes(table, (TIMESTAMP, *dimensions))
    ordered = np.sort(codes)
    if np.any(ordered[1:] == ordered[:-1]):
        _, first = np.unique(codes, return_index=True)
        repeated = np.setdiff1d(np.arange(len(codes)), first)[0]
        raise impossible_answer(f"a second row of {_row_text(table, dimensions, int(repeated))}")
    for field in METRICS[metric].fields if metric in METRICS else ():
        if field.kind != "count" or field.unit == "US cents" or field.name in dimensions:
            continue
        least = pc.min(table[field.name]).as_py()
        if least is not None and least < 0:
            row = _row_text(table, dimensions, pc.index(table[field.name], least).as_py())
            raise impossible_answer(f"a negative count in the row of {row}: {field.name} is {least}")


def missing_field_error(name: str, start: datetime, dimensions: Sequence[str], row: Mapping[str, Any]) -> Exception:
    """Return the error for a *row* of the bucket at *start* without the field *name*."""
    there = ", ".join(map(shown, list(row)[:_MOST_NAMES])) or "nothing"
    values = {dimension: row.get(dimension) for dimension in dimensions}
    return impossible_answer(f"the row of {_place(start, values)} has no {name}, only {there}")


def row_codes(table: pa.Table, names: Collection[str]) -> NDArray[np.int64]:
    """Return an integer for each row, the same for rows with the same values of *names*."""
    codes, most = np.zeros(len(table), dtype="int64"), 1
    for name in names:
        encoded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        size = max(1, len(encoded.dictionary))
        if most * size > _MOST_CODES:
            codes, most = np.unique(codes, return_inverse=True)[1], max(1, len(codes))
        codes, most = codes * size + np.asarray(encoded.indices), most * size
    return codes


def _row_text(table: pa.Table, dimensions: Sequence[str], row: int) -> str:
    """Return the bucket and dimension values of one row as text."""
    return _place(table[TIMESTAMP][row].as_py(), {name: table[name][row].as_py() for name in dimensions})


def _place(start: datetime, values: Mapping[str, Any]) -> str:
    return ", ".join([_text(start), *(f"{name} = {shown(value)}" for name, value in values.items())])


def _text(start: datetime) -> str:
    return start.isoformat().replace("+00:00", "Z")
