"""Checks of answers: rows and buckets twice, buckets, games and values not queried, negative counts, shares beyond 1.

Such an answer is the promised JSON and cannot be right, so none of it becomes a frame. Wire 2.9, Answer shapes.
"""

from __future__ import annotations

import math
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
from gamelens.wire.filters import And, Filter, IsNull, Match, Not, Or, dimensions_in
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


_MAY_EXCEED_1: Final = frozenset(("installs_ratio",))
"""Shares of others than the whole: an export states installs of days on which the player sent no event."""


def check_rows(
    metric: str,
    query: MetricQuery,
    dimensions: Sequence[str],
    table: pa.Table,
    studio_of_game: Mapping[str, str | None],
) -> None:
    """Refuse a table with a row twice, one that was not queried, a negative count, or a share that is not 0 to 1.

    An amount of money may be negative, where a service counts refunds.

    Raises:
        ServiceError: the first such row.
    """
    _check_selected(query, dimensions, table, studio_of_game)
    codes = row_codes(table, (TIMESTAMP, *dimensions))
    ordered = np.sort(codes)
    if np.any(ordered[1:] == ordered[:-1]):
        _, first = np.unique(codes, return_index=True)
        repeated = np.setdiff1d(np.arange(len(codes)), first)[0]
        raise impossible_answer(f"a second row of {_row_text(table, dimensions, int(repeated))}")
    for field in METRICS[metric].fields if metric in METRICS else ():
        if field.name in dimensions:
            continue
        ends = pc.min_max(table[field.name]).as_py()
        for value in (ends["min"], ends["max"]):
            if value is None:
                continue
            if field.unit == "share" and not 0 <= value <= (math.inf if field.name in _MAY_EXCEED_1 else 1):
                fault = f"a share that is not from 0 to 1 in the row of {{row}}: {field.name} is {value}"
            elif field.kind == "count" and field.unit != "US cents" and value < 0:
                fault = f"a negative count in the row of {{row}}: {field.name} is {value}"
            else:
                continue
            row = _row_text(table, dimensions, pc.index(table[field.name], value).as_py())
            raise impossible_answer(fault.format(row=row))


def _check_selected(
    query: MetricQuery, dimensions: Sequence[str], table: pa.Table, studio_of_game: Mapping[str, str | None]
) -> None:
    """Refuse rows of a game or studio that was not queried, and rows whose values the filter excludes.

    A row without a game is one whose dimension is missing, which is not a fault.
    """
    games = query.games if query.game is None else (query.game,)
    columns = [("game", games, table[name]) for name in ("game_id",) if name in dimensions]
    columns += [("studio", query.studios, table[name]) for name in ("studio_id",) if name in dimensions]
    if query.studios is not None and "game_id" in dimensions:
        own = [studio_of_game.get(game or "") for game in table["game_id"].to_pylist()]
        columns.append(("studio", query.studios, pa.chunked_array([pa.array(own, pa.string())])))
    for kind, asked, values in columns:
        if asked is None:
            continue
        is_other = pc.invert(pc.is_in(values, value_set=pa.array([*asked, None], pa.string())))
        if (place := pc.index(is_other, True).as_py()) >= 0:
            names = shown(asked[0]) if len(asked) == 1 else shown(list(asked))
            row = _row_text(table, dimensions, place)
            raise impossible_answer(f"a {kind} that was not queried in the row of {row}, where {names} was queried")
    if query.filter is None or not (filtered := set(dimensions_in(query.filter)) & set(dimensions)):
        return
    may_match, _ = _outcomes(query.filter, {name: table[name] for name in filtered}, len(table))
    if not may_match.all():
        place = int(np.argmin(may_match))
        values = ", ".join(f"{name} = {shown(table[name][place].as_py())}" for name in dimensions if name in filtered)
        row = _row_text(table, dimensions, place)
        raise impossible_answer(f"the row of {row} is against the filter, which {values} does not fit")


_Mask = NDArray[np.bool_]


def _outcomes(node: Filter, columns: Mapping[str, pa.ChunkedArray], size: int) -> tuple[_Mask, _Mask]:
    """Return the rows for which *node* may be true, and those for which it may be false.

    Both hold for a comparison of a dimension that is not among *columns*.
    """
    match node:
        case Match(dimension=name) | IsNull(dimension=name) if name not in columns:
            return np.ones(size, dtype=bool), np.ones(size, dtype=bool)
        case Match(dimension=name, values=values):
            is_one = np.asarray(pc.is_in(columns[name], value_set=pa.array(values, pa.string())))
            return is_one, ~is_one
        case IsNull(dimension=name):
            is_null = np.asarray(pc.is_null(columns[name]))
            return is_null, ~is_null
        case Not(member=member):
            may_hold, may_fail = _outcomes(member, columns, size)
            return may_fail, may_hold
        case And(members=members) | Or(members=members):
            hold, fail = zip(*(_outcomes(member, columns, size) for member in members), strict=True)
            if isinstance(node, And):
                return np.logical_and.reduce(hold), np.logical_or.reduce(fail)
            return np.logical_or.reduce(hold), np.logical_and.reduce(fail)
    raise TypeError(f"not a filter: {node!r}")


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
