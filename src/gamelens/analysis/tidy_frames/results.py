"""The record of the analysis that made a frame, so that the frame can be put in words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from pandas import DataFrame

from gamelens.receipts import SharedRecord

RESULT: Final = "gamelens.result"
"""The record's name in `df.attrs`."""
CELLS: Final = "gamelens.cells"
"""In `df.attrs` of a frame that was spread: the column whose numbers its cells are, and the columns that have them."""
KINDS: Final = "gamelens.kinds"
"""In `df.attrs` of claims: what the numbers of a column are, as their sentences write them or the result lists them."""
_PLAIN: Final = (str, int, float, bool, type(None))


class ResultRecord(msgspec.Struct, frozen=True):
    """The analysis that made a frame.

    Attributes:
        name: its public name, such as "ads.earnings".
        arguments: its arguments that are text, numbers or lists of these, defaults included.
        rows, columns: the number of rows, and the columns, of the frame that it returned.
    """

    name: str
    arguments: dict[str, Any]
    rows: int
    columns: tuple[str, ...]

    @classmethod
    def of(cls, attrs: Mapping[Any, Any]) -> ResultRecord | None:
        """Read the record from the `attrs` of a frame, None where it has none or another form."""
        try:
            return msgspec.convert(attrs.get(RESULT), cls)
        except msgspec.ValidationError:
            return None


def public_name(function: Callable[..., Any]) -> str:
    """Return the name of an analysis with its topic, such as `revenue.arpdau`, or room: `raw_events.funnel`."""
    room, *_ = function.__module__.removeprefix("gamelens.").removeprefix("analysis.").split(".")
    return f"{room}.{function.__name__}"


def as_result(frame: DataFrame, name: str, arguments: Mapping[str, Any]) -> DataFrame:
    """Note in *frame* that the analysis *name* made it, and return it."""
    plain = {}
    for key, value in arguments.items():
        several = isinstance(value, (list, tuple))
        parts = [one.item() if isinstance(one, np.generic) else one for one in (value if several else [value])]
        if all(isinstance(one, _PLAIN) for one in parts):
            plain[key] = parts if several else parts[0]
    record = ResultRecord(name, plain, len(frame), tuple(map(str, frame.columns)))
    frame.attrs[RESULT] = SharedRecord(msgspec.to_builtins(record))
    return frame


def with_kinds(frame: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Note in *frame* what the numbers of its columns are, and return it."""
    frame.attrs[KINDS] = SharedRecord({name: kind for name, kind in kinds.items() if name in frame})
    return frame


def with_cells_of(frame: DataFrame, number: str, columns: Iterable[Hashable]) -> DataFrame:
    """Note in *frame* that these *columns* hold the numbers of a column *number*, and return it."""
    frame.attrs[CELLS] = SharedRecord({"of": number, "columns": [*map(str, columns)]})
    return frame
