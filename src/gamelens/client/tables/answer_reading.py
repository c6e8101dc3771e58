"""Answers of the metrics service: decoded from JSON into Arrow tables, and checked.

A field that the catalog does not know has the type of its values; lists, objects and mixed types become JSON text. Rows
keep the order of the answer. What another service may say in other words is taken with a note: the metric under another
name, weeks that begin on Sunday, one bucket for the whole interval with another timestamp, ids as numbers,
fractions of a cent. An answer that is the promised JSON and cannot be right is refused, so that none of it
becomes a frame: rows and buckets twice, buckets, games and values that were not queried, negative counts, shares beyond
1. Wire 2.9, Answer shapes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import DIMENSIONS, METRICS, Quotient
from gamelens.client.tables.answer_members import member_notes
from gamelens.client.tables.table_operations import TIMESTAMP, TIMESTAMP_TYPE, row_codes, schema, text_column
from gamelens.errors import ServiceError
from gamelens.wire.filters import And, Filter, IsNull, Match, Not, Or, dimensions_in
from gamelens.wire.intervals import bucket_start
from gamelens.wire.queries import Group, MetricQuery, Split
from gamelens.wire.results import decode_answer, impossible_answer, read_timestamp, refuse_repeated_keys, shown

_Row = TypeVar("_Row")
_Mask = NDArray[np.bool_]
_PYTHON_TYPES: Final[dict[pa.DataType, type[Any]]] = {pa.string(): str, pa.int64(): int, pa.float64(): float}
_ARROW_TYPES: Final = {python: arrow for arrow, python in _PYTHON_TYPES.items()}
_TYPE_LABELS: Final = {pa.string(): "dimension", pa.int64(): "count", pa.float64(): "number"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SUNDAY: Final = timedelta(days=6)  # after the Monday that a week begins with (Wire 2.8, Intervals and buckets)
_IDS: Final = frozenset(("game_id", "studio_id"))
_MOST_EXACT: Final = 2**53
_TOO_LARGE: Final = 2**63
_BLOCK_BYTES: Final = 2**18
_MOST_NAMES: Final = 8
_MAY_EXCEED_1: Final = frozenset(("installs_ratio",))
"""Shares of others than the whole: an export states installs of days on which the player sent no event."""


class _Bucket(msgspec.Struct, Generic[_Row], gc=False, forbid_unknown_fields=True):
    timestamp: str
    result: list[_Row]


class _Event(msgspec.Struct, Generic[_Row], gc=False, forbid_unknown_fields=True):
    timestamp: str
    event: _Row
    version: Literal["v1"]


class _Series(msgspec.Struct, Generic[_Row], gc=False, forbid_unknown_fields=True):
    timestamp: str
    result: _Row


class _Answer(msgspec.Struct, Generic[_Row], gc=False, forbid_unknown_fields=True):
    result: list[_Row]


class _Decoded(NamedTuple):
    """An answer before it is a table.

    Attributes:
        buckets: the timestamps of its buckets. A group has one for each entry.
        timestamps: the timestamp of each row.
        columns: the values of each column.
        in_fractions: counts of cents that have fractions.
    """

    buckets: Collection[str | datetime]
    timestamps: Sequence[str | datetime]
    columns: Mapping[str, list[Any]]
    in_fractions: Collection[str] = ()


def read_answer(
    metric: str,
    query: MetricQuery,
    dimensions: Sequence[str],
    body: bytes,
    studio_of_game: Mapping[str, str | None] | None = None,
    notes: list[str] | None = None,
) -> pa.Table:
    """Return the rows of *body*, the answer to *query* for *metric*, as a table.

    Wire 2.9, Answer shapes.

    Args:
        metric: the name of the metric.
        query: the query that was sent.
        dimensions: the dimensions of each row.
        body: the response body.
        studio_of_game: studio ids by game id, as far as they are known.
        notes: gets a text for each thing that the service says in other words.

    Raises:
        ServiceError: the body is not the documented JSON, a value has the wrong type, or the answer is impossible: a
            repeated key, row or bucket, a bucket, game, studio or value that was not queried, a negative count, a share
            that is not from 0 to 1, no field of the metric.
    """
    expected, notes = schema(metric, dimensions), [] if notes is None else notes
    is_known = metric in METRICS and set(dimensions) <= set(DIMENSIONS)
    decoded = _decode_typed(query, expected, body) if is_known else None
    if decoded is None:
        decoded = _decode_untyped(metric, query, dimensions, body, notes)
    stamps = set(decoded.buckets)
    starts = {stamp: read_timestamp(stamp) if isinstance(stamp, str) else stamp for stamp in stamps}
    first = query.interval.start
    if query.granularity == "all" and len(starts) == 1 and {*starts.values()} != {first}:
        notes.append("the service gives the interval another timestamp: it was replaced by the interval's start")
        starts = dict.fromkeys(starts, first)
    if _are_from_sunday(query, starts.values()):
        notes.append("the weeks of this service begin on Sunday")
    check_buckets(query, [starts[timestamp] for timestamp in decoded.buckets])
    micros = {timestamp: (start - _EPOCH) // _MICROSECOND for timestamp, start in starts.items()}
    arrays: dict[str, Any] = {TIMESTAMP: pa.array([micros[stamp] for stamp in decoded.timestamps], TIMESTAMP_TYPE)}
    for name, values in decoded.columns.items():
        if name not in expected.names:
            arrays[name] = _inferred_column(values)
            continue
        type_ = pa.float64() if name in decoded.in_fractions else expected.field(name).type
        try:
            arrays[name] = pa.array(values, type_)
        except (OverflowError, pa.ArrowInvalid):
            largest = max((value for value in values if isinstance(value, int)), key=abs, default=None)
            raise _wrong_type_error(name, type_, largest) from None
    table = pa.table(arrays)
    check_rows(metric, query, dimensions, table, studio_of_game or {})
    notes += contradictions(metric, dimensions, table)
    return table


def _decode_typed(query: MetricQuery, expected: pa.Schema, body: bytes) -> _Decoded | None:
    """Decode a *body* whose rows have exactly the columns of *expected*, else return None.

    Raises:
        ServiceError: an object has a key twice.
    """
    kind = "group" if isinstance(query.query, Group) else "split" if isinstance(query.query, Split) else "series"
    names = expected.names[1:]
    try:
        entries = _decoder(kind, tuple(names), tuple(map(str, expected.types[1:]))).decode(body).result
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if kind == "group":
        buckets: Collection[str] = [bucket.timestamp for bucket in entries]
        timestamps = [bucket.timestamp for bucket in entries for _ in bucket.result]
        rows = list(chain.from_iterable(bucket.result for bucket in entries))
    else:
        timestamps = list(map(attrgetter("timestamp"), entries))
        buckets = set(timestamps)
        rows = list(map(attrgetter("event" if kind == "split" else "result"), entries))
    # No object has an unknown key or lacks one, so that only a repeated key changes their number.
    if _written_keys(body) != 1 + (3 if kind == "split" else 2) * len(entries) + len(names) * len(rows):
        refuse_repeated_keys(body)
    columns = {name: list(map(attrgetter(f"f{position}"), rows)) for position, name in enumerate(names)}
    return _Decoded(buckets, timestamps, columns)


@lru_cache(maxsize=256)
def _decoder(kind: str, names: tuple[str, ...], types: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    """Return the decoder of one answer shape with these columns."""
    python = {"string": str | None, "int64": int | None, "double": float | None}
    row = msgspec.defstruct(
        "Row",
        [(f"f{position}", python[type_]) for position, type_ in enumerate(types)],
        rename={f"f{position}": name for position, name in enumerate(names)},
        forbid_unknown_fields=True,
        gc=False,
    )
    shape: Any = {"group": _Bucket, "split": _Event, "series": _Series}[kind]
    return msgspec.json.Decoder(_Answer[shape[row]])


def _written_keys(body: bytes) -> int | None:
    """Return how many colons follow a quotation mark: keys, and such pairs in a text.

    The result is None if a colon follows white space, as it may after a key.
    """
    letters, count = np.frombuffer(body, dtype="uint8"), 0
    for start in range(0, len(letters), _BLOCK_BYTES):
        block = letters[start : start + _BLOCK_BYTES + 1]
        before, is_colon = block[:-1], block[1:] == ord(":")
        if np.any((before <= ord(" ")) & is_colon):
            return None
        count += int(np.count_nonzero((before == ord('"')) & is_colon))
    return count


def _decode_untyped(
    metric: str, query: MetricQuery, dimensions: Sequence[str], body: bytes, notes: list[str]
) -> _Decoded:
    """Decode an answer with fields the catalog does not know, or without known ones.

    Slower than the typed decoder.

    Raises:
        ServiceError: a row has no number for the metric, or a value of the wrong type.
    """
    expected = schema(metric, dimensions)
    beside: dict[str, Any] = {}
    buckets = decode_answer(query, body, beside)
    notes += member_notes(f"the rows of {metric}", beside)
    rows = [row for bucket in buckets for row in bucket.rows]
    timestamps = [bucket.timestamp for bucket in buckets for _ in bucket.rows]
    names = dict.fromkeys([*expected.names[1:], *chain.from_iterable(rows)])
    names.pop(TIMESTAMP, None)  # the timestamp of the bucket applies
    columns = {name: [row.get(name) for row in rows] for name in names}
    own_field = METRICS[metric].sorts_by if metric in METRICS else ""
    lacking = [place for place, row in enumerate(rows) if own_field not in row]
    if own_field in expected.names and own_field not in dimensions and lacking:
        strange = [name for name in names if name not in expected.names and name not in METRICS]
        others = [name for name in strange if _is_numeric(columns[name])]
        if len(lacking) < len(rows) or not others:
            raise missing_field_error(own_field, timestamps[lacking[0]], dimensions, rows[lacking[0]])
        if len(others) == 1:
            notes.append(f"{metric} came in a field called {others[0]}: it was renamed to {own_field}")
            columns[own_field] = columns.pop(others[0])
        else:
            notes.append(f"{metric} came without {own_field}: {', '.join(others)} keep the service's names")
    in_cents = {field.name for field in METRICS[metric].fields if field.unit == "US cents"} if metric in METRICS else ()
    in_fractions = []
    for name in expected.names[1:]:
        python_type = _PYTHON_TYPES[expected.field(name).type]
        types = {type(value) for value in columns[name]} - {NoneType}
        if name in _IDS and types & {int, float} and types <= {int, float, str}:
            notes.append(f"{name} came as numbers: they were converted to text")
            columns[name] = [value if value is None else id_text(value) for value in columns[name]]
        elif name in in_cents and any(type(cents) is float and not cents.is_integer() for cents in columns[name]):
            in_fractions.append(name)
            notes.append(f"{name} came with fractions of a cent, which are kept")
            columns[name] = _converted_values(name, columns[name], float)
        else:
            columns[name] = _converted_values(name, columns[name], python_type)
    return _Decoded([bucket.timestamp for bucket in buckets], timestamps, columns, in_fractions)


def id_text(value: str | int | float) -> str:
    """Return an id as text, also one that is written as a number: 1001, 1001.0 and 1e3 are whole numbers in JSON.

    Raises:
        ServiceError: the number is not whole, or so large that its last digits are lost.
    """
    if not isinstance(value, float):
        return str(value)
    if not value.is_integer() or abs(value) > _MOST_EXACT:
        raise ServiceError(200, f"the id {shown(value)} is neither text nor a whole number that JSON keeps exactly")
    return str(int(value))


def _is_numeric(values: Sequence[Any]) -> bool:
    """Return whether *values* are numbers. Some may be missing."""
    return {type(value) for value in values} - {NoneType} in ({int}, {float}, {int, float})


def _converted_values(name: str, values: list[Any], python_type: type[Any]) -> list[Any]:
    """Return *values* as *python_type*. A count may be `1.0` and a number `1`; no digit may be lost."""
    if set(map(type, values)) <= {python_type, NoneType}:
        return values
    converted = []
    for value in values:
        if value is not None and type(value) is not python_type:
            try:
                if type(value) not in (int, float) or (python_type is not float and python_type(value) != value):
                    raise ValueError
                value = python_type(value)
            except (TypeError, ValueError, OverflowError):
                raise _wrong_type_error(name, _ARROW_TYPES[python_type], value) from None
        converted.append(value)
    return converted


def _wrong_type_error(name: str, type_: pa.DataType, value: object) -> ServiceError:
    why = ""
    if isinstance(value, str) and type_ != pa.string():
        why = " is text"
    elif pa.types.is_integer(type_) and isinstance(value, int | float) and abs(value) >= _TOO_LARGE:
        why = " is beyond 9,223,372,036,854,775,807, the largest that there can be"
    return ServiceError(200, f"a value of the field {name} is not a {_TYPE_LABELS[type_]}: {shown(value)}{why}")


def _inferred_column(values: Sequence[Any]) -> pa.Array:
    """Return the column of an unknown field: text if its values are of mixed types or nested."""
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, RecursionError):
        return text_column(values)
    return text_column(values) if pa.types.is_nested(array.type) else array


def check_buckets(query: MetricQuery, starts: Sequence[datetime]) -> None:
    """Refuse an answer with a bucket that was not queried, or a group with one twice.

    Args:
        query: the query that was sent.
        starts: the starts of the buckets: of a group query of every entry, else each at least once.

    Raises:
        ServiceError: the first such bucket.
    """
    every, interval = query.granularity, query.interval
    moved = _SUNDAY if _are_from_sunday(query, starts) else timedelta()
    first = interval.start if every == "all" else bucket_start(interval.start - moved, every) + moved
    for start in starts:
        if start != first and (
            every == "all" or not first < start < interval.end or start - moved != bucket_start(start - moved, every)
        ):
            rule = "the start of the interval" if every == "all" else f"the start of a {every} in it"
            raise impossible_answer(f"a bucket of {_text(start)} where {interval} was queried: it is not {rule}")
    if isinstance(query.query, Group):
        for start, number in Counter(starts).items():
            if number > 1:
                raise impossible_answer(f"the bucket of {_text(start)} occurs {number} times")


def _are_from_sunday(query: MetricQuery, starts: Iterable[datetime]) -> bool:
    """Return whether *starts* are the starts of weeks that begin on Sunday."""
    return query.granularity == "week" and {start.weekday() for start in starts} == {_SUNDAY.days}


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
                fault = f"a share outside 0 to 1 in the row of {{row}}: {field.name} is {value}"
            elif field.kind == "count" and field.unit != "US cents" and value < 0:
                fault = f"a negative count in the row of {{row}}: {field.name} is {value}"
            else:
                continue
            row = _row_text(table, dimensions, pc.index(table[field.name], value).as_py())
            raise impossible_answer(fault.format(row=row))


@np.errstate(all="ignore")
def contradictions(metric: str, dimensions: Sequence[str], table: pa.Table) -> list[str]:
    """Return a note for each field whose numbers contradict others of the same row, beyond what rounding explains.

    A ratio is its parts divided, and cents are a hundred times the amount.
    """
    notes, known = [], METRICS[metric].fields if metric in METRICS else ()
    columns = {field.name for field in known} & set(table.column_names) - set(dimensions)
    # What is missing is NaN, which contradicts nothing.
    numbers = {name: np.asarray(pc.cast(table[name], pa.float64(), safe=False)) for name in columns}
    counts = {field.name for field in known if field.kind == "count"}
    for field in known:
        made = field.combines
        if isinstance(made, Quotient) and columns.issuperset((field.name, *made.names)):
            part, whole = numbers[made.part], numbers[made.whole]
            expected = np.where((part == 0) & (whole == 0), 0, made.worth * part / whole)
            step = made.worth / whole if made.part in counts else 0.0
            allowed = np.where(whole == 0, 0, _last_digit(numbers[field.name]) + 1e-6 * np.abs(expected) + step)
            rule = f"{made.part} / {made.whole}" if made.worth == 1 else f"{made.worth:g} x {made.part} / {made.whole}"
        elif field.name == "sum_cents" and columns >= {"sum", "sum_cents"}:
            expected, rule = 100 * numbers["sum"], "100 x sum"
            allowed = 1 - 1e-6 + 1e-9 * np.abs(expected)
        else:
            continue
        is_wrong = np.abs(numbers[field.name] - expected) > allowed
        if number := int(np.count_nonzero(is_wrong)):
            row = int(np.argmax(is_wrong))
            says = f"{field.name} is {numbers[field.name][row]:.12g}, but {rule} is {expected[row]:.12g}"
            there = f"such as the row of {_row_text(table, dimensions, row)}: {says}"
            notes.append(f"{number} of {len(table)} rows of {metric} contradict themselves, {there}")
    return notes


def _last_digit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the worth of the last decimal place that each of *values* has: 0.01 at most, as of whole numbers."""
    digits = np.full(len(values), 1e-9)
    for place in range(8, 1, -1):
        digits[np.abs(values - np.round(values, place)) < 1e-10 * np.maximum(1, np.abs(values))] = 10.0**-place
    return digits


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
        studios = [studio_of_game.get(game or "") for game in table["game_id"].to_pylist()]
        columns.append(("studio", query.studios, pa.chunked_array([pa.array(studios, pa.string())])))
    for kind, asked, values in columns:
        if asked is None:
            continue
        is_other = pc.invert(pc.is_in(values, value_set=pa.array([*asked, None], pa.string())))
        if (place := pc.index(is_other, True).as_py()) >= 0:
            names = shown(asked[0]) if len(asked) == 1 else shown(list(asked))
            row = _row_text(table, dimensions, place)
            raise impossible_answer(f"the row of {row} has a {kind} that was not queried: only {names} was")
    if query.filter is None or not (filtered := set(dimensions_in(query.filter)) & set(dimensions)):
        return
    may_match, _ = _outcomes(query.filter, {name: table[name] for name in filtered}, len(table))
    if not may_match.all():
        place = int(np.argmin(may_match))
        values = ", ".join(f"{name} = {shown(table[name][place].as_py())}" for name in dimensions if name in filtered)
        row = _row_text(table, dimensions, place)
        raise impossible_answer(f"the row of {row} contradicts the filter, which excludes {values}")


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


def _row_text(table: pa.Table, dimensions: Sequence[str], row: int) -> str:
    """Return the bucket and dimension values of one row as text."""
    return _place(table[TIMESTAMP][row].as_py(), {name: table[name][row].as_py() for name in dimensions})


def _place(start: datetime, values: Mapping[str, Any]) -> str:
    return ", ".join([_text(start), *(f"{name} = {shown(value)}" for name, value in values.items())])


def _text(start: datetime) -> str:
    return start.isoformat().replace("+00:00", "Z")
