"""The columns that an analysis returns, listed beside its body.

    @requires(frame=...)
    @returns(KEYS, "installs paid_installs spend", between("cpi", FROM_INSTALLS), "blended_cpi")
    def cost_per_install(frame: DataFrame, by: By = None) -> DataFrame: ...

`returns` wraps nothing. It keeps the list under the name of the analysis and adds it to the docstring; `requires` gives
the result its order, its dtypes and its receipt. `written_columns` reads the list of the analysis that a frame's record
names.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace
from pandas import CategoricalDtype, DataFrame, DatetimeTZDtype, Series
from pandas.api.types import is_object_dtype, is_string_dtype

from gamelens.analysis.tidy_frames.columns import COLUMNS, Bounds, Column
from gamelens.analysis.tidy_frames.results import ResultRecord, public_name

F = TypeVar("F", bound=Callable[..., Any])

KEYS: Final = Column("*by*", "category")
"""The place of all columns that are not listed: what the rows are split by."""
FROM_DAYS: Final = "95%, from the differences between days, NA below 7 days"
_WIDTH: Final = 120
_TIMES: Final = {"day": "datetime64[us, UTC]", "span": "timedelta64[us]"}

_SECTIONS: Final = re.compile(r"\n\n(?=(?:Args|Raises|Yields):\n)")


class Returned(NamedTuple):
    """The columns that an analysis returns, and whether its body gives the frame a receipt."""

    columns: tuple[Column, ...]
    has_own_receipt: bool = False


_DECLARED: Final[dict[str, Returned]] = {}
"""By the public name of the analysis."""

Listed = str | Column | tuple[Column, ...]
"""Names of columns, split at blanks, or columns."""


def named(name: str, **differs: Any) -> Column:
    """Return the column *name* of `COLUMNS`, in which something *differs*, such as when it is missing."""
    return replace(COLUMNS[name], **differs)


def between(column: str | Column, about: str = "", *, low: str = "", high: str = "") -> Column:
    """Return a column with the interval around it, by default `x_low` and `x_high`, as *about* says."""
    number = COLUMNS[column] if isinstance(column, str) else column
    bounds = Bounds(low or f"{number.name}_low", high or f"{number.name}_high", about)
    return replace(number, bounds=(*number.bounds, bounds))


def returns(*listed: Listed, has_own_receipt: bool = False) -> Callable[[F], F]:
    """Declare the columns of the frame that an analysis returns, in their order.

    The list is added to the docstring. A column that a result does not have is left out.

    Args:
        listed: names of `COLUMNS`, split at blanks, and columns.
        has_own_receipt: whether the body gives the result its receipt. By default the frames that it
            was made of give it theirs.

    Raises:
        KeyError: a name is not in `COLUMNS`, when the analysis is imported.
    """
    declared = Returned(tuple(_flat(listed)), has_own_receipt)

    def declare(function: F) -> F:
        _DECLARED[public_name(function)] = declared
        if function.__doc__:
            about, *sections = _SECTIONS.split(inspect.cleandoc(function.__doc__), maxsplit=1)
            function.__doc__ = "\n\n".join([about, columns_text(declared.columns), *sections])
        return function

    return declare


def declared_columns(function: Callable[..., Any]) -> Returned:
    """Return what *function* declares that it returns, no columns if it declares nothing."""
    return _DECLARED.get(public_name(function), Returned(()))


def listed_columns(attrs: Mapping[Any, Any]) -> dict[str, Column]:
    """Return the columns of the analysis that made a frame with these `attrs`, by name; empty without one.

    So are they where a room above made it, such as in another process, and is not imported: this one imports none.
    """
    record = ResultRecord.of(attrs)
    if record is None:
        return {}
    topic, _, _ = record.name.rpartition(".")
    if record.name not in _DECLARED and topic in import_module("gamelens.analysis").__all__:
        import_module(f"gamelens.analysis.{topic}")
    columns = _DECLARED[record.name].columns if record.name in _DECLARED else ()
    return {column.name: column for column in columns if column.name in record.columns}


def as_declared(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return *frame* with the order and the dtypes of *columns*.

    Columns that are not listed stand at `KEYS`, texts among them as categories. Categories keep their values.
    """
    listed = {name: dtype for column in columns if column is not KEYS for name, dtype in _dtypes(column)}
    keys = [name for name in frame.columns if name not in listed]
    order = [
        name for column in columns for name in (keys if column is KEYS else dict(_dtypes(column))) if name in frame
    ]
    listed |= {
        column.name: _time(frame[column.name].dtype)
        for column in columns
        if column.kind == "day" and column.name in frame
    }
    texts = {name: "category" for name in keys if is_object_dtype(frame[name]) or is_string_dtype(frame[name])}
    dtypes = {
        name: dtype
        for name, dtype in ({name: listed.get(name) for name in order} | texts).items()
        if dtype is not None and frame[name].dtype != dtype and not _stays(frame[name].dtype, dtype)
    }
    return frame[order].astype(dtypes)


def _time(dtype: object) -> DatetimeTZDtype:
    """Return the dtype of times in microseconds, in the zone of *dtype* if that has one."""
    return DatetimeTZDtype("us", dtype.tz if isinstance(dtype, DatetimeTZDtype) else "UTC")


def _stays(dtype: object, declared: object) -> bool:
    """Return whether a column of *dtype* is a category already, as *declared*."""
    return isinstance(dtype, CategoricalDtype) and (declared == "category" or isinstance(declared, CategoricalDtype))


def row_of(values: Mapping[str, Any], columns: Sequence[Column]) -> DataFrame:
    """Return a frame of one row with *columns*, NA where *values* has none."""
    dtypes = {name: dtype or _TIMES.get(column.kind, "object") for column in columns for name, dtype in _dtypes(column)}
    return DataFrame({name: Series([values.get(name)], dtype=dtype) for name, dtype in dtypes.items()})


def columns_text(columns: Sequence[Column]) -> str:
    """Return the paragraph of a docstring that lists *columns*."""
    return textwrap.fill(f"Columns: {', '.join(map(_text, columns))}.", _WIDTH, break_long_words=False)


def _flat(listed: Iterable[Listed]) -> Iterator[Column]:
    for item in listed:
        if isinstance(item, str):
            yield from (COLUMNS[name] for name in item.split())
        elif isinstance(item, tuple):
            yield from item
        else:
            yield item


def _dtypes(column: Column) -> Iterator[tuple[str, Any]]:
    """Yield the names of a column and its bounds, each with its dtype, None for one that stays."""
    dtype: Any = column.dtype
    if column.values:
        dtype = CategoricalDtype([*column.values])
    yield column.name, dtype
    for pair in column.bounds:
        yield from ((name, "float64") for name in (pair.low, pair.high))


def _text(column: Column) -> str:
    """Return a column in words: `cpi (float64, USD per paid install: spend / paid_installs; NA without installs)`."""
    if column is KEYS:
        return column.name
    unit = column.unit if column.kind != "share" else f"0 to 1, {column.unit}" if column.unit else "0 to 1"
    what = ": ".join(filter(None, (unit, column.about)))
    values = "|".join(column.values)
    parts = [
        column.dtype or _TIMES.get(column.kind, "list of str"),
        what,
        values,
        f"NA {column.na}" if column.na else "",
    ]
    text = f"{column.name} ({', '.join(filter(None, parts))})"
    for pair in column.bounds:
        text += f", {pair.low}, {pair.high} (float64{', ' if pair.about else ''}{pair.about})"
    return text
