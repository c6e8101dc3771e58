"""How each column of a frame is written: what it is, the interval it belongs to, and its decimal places.

Tables, spreadsheets, widgets and the assistant ask `written_columns` and nothing else. It looks in the list of the
analysis that made the frame, in the fields of the queried metrics, in `columns` by name, and last at the dtype.
`WrittenColumn.text` and `WrittenColumn.interval_text` write every number of a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from msgspec.structs import replace
from pandas import DataFrame, Series
from pandas.api.types import is_float_dtype, is_integer_dtype, is_numeric_dtype

from gamelens._scales import NumberKind, Scale, is_finite
from gamelens.analysis.tidy_frames.columns import COLUMNS, OF_MEASURE, OF_ROW, Column, ColumnKind, column_named
from gamelens.analysis.tidy_frames.results import CELLS, KINDS
from gamelens.analysis.tidy_frames.returned_columns import listed_columns
from gamelens.catalog import Catalog
from gamelens.receipts import Receipt

ROW_UNITS: Final[tuple[Literal["money", "share", "count", "number"], ...]] = ("money", "share", "count", "number")
"""The units that a row of a frame may name in its column `unit` or `kind`."""
UNIT: Final = "unit"
_MEASURED: Final = "measured_in"
"""The unit of what a claim compares. Its column `unit` says the unit of `size`, such as a ratio."""
_LEAST_OF_RATIO: Final = 2  # decimal places of a multiple
_LEAST_P: Final = 0.001


class WrittenColumn(NamedTuple):
    """How a column of a frame is written.

    Attributes:
        name: the name in the frame.
        place: its place.
        column: what it is; for a bound what the number is that the interval is about.
        number: the name of that number, the column's own for all others; "" for bounds without one.
        upper: the place of the upper bound, if this is the lower one.
        is_bound: whether it is a bound.
        is_known: whether the frame's analysis, a metric or `COLUMNS` has it.
        has_negative: whether one of its numbers is negative.
        rows: by what each row's scale is found, empty if all have one.
        scales: the scales of the numbers.
    """

    name: str
    place: int
    column: Column
    number: str
    upper: int | None
    is_bound: bool
    is_known: bool
    has_negative: bool
    rows: list[Any]
    scales: Mapping[Any, Scale]

    def scale(self, row: int | None = None) -> Scale:
        """Return the scale of a row, by default of the first."""
        return self.scales[self.rows[row or 0] if self.rows else ""]

    def text(self, value: Any, row: int | None = None) -> str:
        """Return a number in the unit of the column or, if it has one, of the *row*; `n/a` for a missing one.

        The difference of two shares is in percentage points. A number that is not 0 is not said to be 0, unless it is a
        difference.
        """
        if self.column.kind == "p" and is_finite(value):
            return f"{float(value):.3f}" if value >= _LEAST_P else f"< {_LEAST_P}"
        scale = self.scale(row)
        is_difference = self.has_negative or scale.has_sign
        if not is_difference and is_finite(value) and 0 < value < scale.least / 2:
            return f"< {scale.text(scale.least)}"
        return scale.text(value)

    def interval_text(self, low: Any, high: Any, row: int | None = None) -> str:
        """Return two bounds in the unit of the number that they are about."""
        return self.scale(row).interval(low, high)


def written_columns(frame: DataFrame) -> list[WrittenColumn]:
    """Return how each column of *frame* is written, in its order."""
    attrs, frame = frame.attrs, frame.set_axis([str(name) for name in frame.columns], axis=1)
    frame.attrs = {}  # pandas copies them with each column that is read
    asked = Receipt.of(attrs).asked
    metrics, catalog = list(asked.metrics) or None, Catalog.recorded(asked.formulas)
    listed = listed_columns(attrs)
    bounds = _bounds_of(frame, listed)
    unit = next(
        (name for name, listed_column in listed.items() if listed_column.kind == "unit" and name in frame), UNIT
    )
    number_of = {place: number for number, pairs in bounds.items() for pair in pairs for place in pair}
    uppers = {low: high for pairs in bounds.values() for low, high in pairs}
    cells = attrs.get(CELLS) or {}
    spread = dict.fromkeys(cells.get("columns", ()), cells.get("of", ""))
    told = _brought(frame, attrs) | {name: _of_kind(name, kind) for name, kind in (attrs.get(KINDS) or {}).items()}

    def what_is(name: str, place: int) -> tuple[Column, bool]:
        """Return what a column is, and whether that is known."""
        name = spread.get(name, name)
        if name in listed:
            return listed[name], True
        known = told.get(name) or column_named(name, metrics, catalog)
        is_known = name in told or name in COLUMNS or known.unit != ""
        if not is_known and is_integer_dtype(frame.dtypes.iloc[place]):
            known = replace(known, kind="count")
        return known, is_known

    columns = {name: what_is(name, place) for place, name in enumerate(frame.columns)}
    numeric = [place for place, dtype in enumerate(frame.dtypes) if is_numeric_dtype(dtype)]
    numbers = frame.iloc[:, numeric].to_numpy("float64", na_value=math.nan)
    negative = {place for place, values in zip(numeric, numbers.T, strict=True) if (values < 0).any()}
    scales_of: dict[str, tuple[list[Any], Mapping[Any, Scale]]] = {}  # by number: its bounds have the same
    written = []
    for place, name in enumerate(frame.columns):
        number = number_of.get(place, name)
        column, is_known = columns.get(number) or (Column("", "number"), False)
        if number not in scales_of:
            is_shared = column.scale not in ("", OF_MEASURE)
            shared = [other for other, (what, _) in columns.items() if is_shared and what.scale == column.scale]
            family = shared if number in shared else [number] if number in columns else []
            scales_of[number] = _scales_of(frame, column, family, bounds, unit)
        upper, is_bound = uppers.get(place), place in number_of
        rows, scales = scales_of[number]
        written.append(
            WrittenColumn(name, place, column, number, upper, is_bound, is_known, place in negative, rows, scales)
        )
    return written


def has_units(frame: DataFrame, unit: str = UNIT) -> bool:
    """Return whether each row has a unit of its own, in the column *unit*."""
    return unit in frame and bool(frame[unit].notna().all()) and not is_numeric_dtype(frame[unit].dtype)


def kind_of_unit(unit: str) -> NumberKind:
    """Return how numbers of a *unit* are written, such as "USD per player", "share" or "players"."""
    first = str(unit).partition(" ")[0]
    return "money" if first == "USD" else next((kind for kind in ROW_UNITS if kind == first), "number")


def _of_kind(name: str, kind: ColumnKind) -> Column:
    """Return the column *name* of claims, whose sentences write its numbers as *kind*."""
    known = COLUMNS.get(name, Column(name, kind))
    return known if known.kind == kind else replace(known, kind=kind, unit="USD" if kind == "money" else "")


def _brought(frame: DataFrame, attrs: Mapping[Any, Any]) -> dict[str, Column]:
    """Return the columns that a join brought, by its record or the currency beside them.

    Money in another currency than US dollars is a number in that currency.
    """
    found = {}
    described = {name: column for join in Receipt.of(attrs).joined for name, column in join.columns.items()}
    for name in frame.columns:
        record, beside = described.get(name), frame.get(f"{name}_currency")
        codes = [] if beside is None else [str(code) for code in beside.dropna().unique()]
        if record is not None and record.kind != "money":
            kind: ColumnKind = next((kind for kind in ROW_UNITS if kind == record.kind), "number")
            found[name] = Column(name, kind)
        elif record is not None or codes:
            currency = codes[0] if len(codes) == 1 else record.unit if record is not None and not codes else ""
            found[name] = Column(name, "money" if currency == "USD" else "number", unit=currency)
    return found


def _bounds_of(frame: DataFrame, listed: Mapping[str, Column]) -> dict[str, list[tuple[int, int]]]:
    """Return the places of bounds, lower and upper, by the number that their interval is about.

    Of a frame that no analysis lists, `x_low` and `x_high` are about `x`, and others about the last float before them,
    or about "" if there is none.
    """
    names = [*frame.columns]
    found: dict[str, list[tuple[int, int]]] = {}
    taken = set()
    for column in listed.values():
        for pair in column.bounds:
            if pair.low in names and pair.high in names and column.name in names:
                places = names.index(pair.low), names.index(pair.high)
                found.setdefault(column.name, []).append(places)
                taken |= {*places}
    for place, name in enumerate(names):
        upper = f"{name.removesuffix('low')}high"
        is_bound = (name == "low" or name.endswith("_low")) and upper in names and place not in taken
        if not (is_bound and name not in listed and is_numeric_dtype(frame.dtypes.iloc[place])):
            continue
        number = name.removesuffix("_low")
        if number == name or number not in names:
            before = zip(names[:place], frame.dtypes.iloc[:place], strict=True)
            floats = [other for other, dtype in before if is_float_dtype(dtype) and not other.endswith(("low", "high"))]
            number = floats[-1] if floats else ""
        found.setdefault(number, []).append((place, names.index(upper)))
    return found


def _scales_of(
    frame: DataFrame, column: Column, family: Sequence[str], bounds: Mapping[str, list[tuple[int, int]]], unit: str
) -> tuple[list[Any], Mapping[Any, Scale]]:
    """Return what each row's scale is found by, empty if all have one, and the scales of a column and its bounds.

    The *family* are the columns that share a scale. Rows of different units, as the column *unit* says, or measures do
    not.
    """
    is_of_row = has_units(frame, unit) and (column.kind in OF_ROW or column.kind == "ratio")
    if column.kind in OF_ROW and not is_of_row:
        family = family[:0] if column.name not in frame else [column.name]
    values = frame[[*family]].select_dtypes("number", exclude="timedelta").astype("float64").to_numpy(na_value=math.nan)
    pairs = [
        frame.iloc[:, [*pair]].to_numpy("float64", na_value=math.nan)
        for name in family
        for pair in bounds.get(name, ())
    ]
    halves = np.concatenate([(pair[:, 1:] - pair[:, :1]) / 2 for pair in pairs] or [np.empty((len(frame), 0))], axis=1)
    if not is_of_row and column.scale != OF_MEASURE:
        return [], {"": Scale.of(column.written, values.ravel(), halves.ravel())}
    units: Series[Any] = frame[unit].astype("object") if is_of_row else Series(column.written, frame.index)
    if is_of_row and _MEASURED in frame:
        units = units.where(frame[_MEASURED].isna(), frame[_MEASURED])
    rows = [*zip(units, frame.get("measure", frame.get("metric", units)), strict=True)]
    found = {key: [place for place, row in enumerate(rows) if row == key] for key in dict.fromkeys(rows)}
    scales = {}
    for key, places in found.items():
        kind = "number" if column.kind == "ratio" else kind_of_unit(key[0])
        kind = "points" if kind == "share" and column.kind == "difference" else kind
        scale = Scale.of(kind, values[places].ravel(), halves[places].ravel())
        scales[key] = scale._replace(places=max(_LEAST_OF_RATIO, scale.places)) if column.kind == "ratio" else scale
    return rows, scales
