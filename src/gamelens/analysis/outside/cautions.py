"""What to beware of in a joined frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from gamelens.analysis.outside import buckets
from gamelens.analysis.outside.keys import near_misses
from gamelens.analysis.outside.tables import OutsideTable


def lookalikes(ours: DataFrame, theirs: DataFrame, pairs: dict[str, str], table: OutsideTable) -> list[str]:
    """Names that look alike and are not the same."""
    warnings = []
    for name, outside_name in pairs.items():
        if ours[name].dtype == "str" and (alike := near_misses(ours[name], theirs[name])):
            shown = ", ".join(f"{text!r} is not {known!r}" for text, known in alike[:3])
            warnings.append(f"{outside_name} of {table.source} is compared exactly with {name}: {shown}")
    return warnings


def double_counting(
    values: DataFrame, places: NDArray[np.int64], repeats: NDArray[np.bool_], table: OutsideTable
) -> list[str]:
    """That a sum over the frame would count outside values more than once, with the first of them as an example."""
    if not repeats.any():
        return []
    numbers = [str(name) for name in values if is_numeric_dtype(values[name]) and not is_bool_dtype(values[name])]
    most = int(np.unique_counts(places[repeats]).counts.max())
    warning = f"a key stands in up to {most} rows of the frame, and the values of {table.source} in each of them"
    if numbers:
        column = values[numbers[0]].astype("float64")
        found = places[places >= 0]
        once, summed_up = column.iloc[np.unique(found)].sum(), column.iloc[found].sum()
        warning += f": summing {numbers[0]} would count it more than once ({once:,.2f} becomes {summed_up:,.2f})"
    return [warning]


def cut_short(df: DataFrame, found: DataFrame) -> list[str]:
    """That the frame counts only part of a bucket whose outside value may be that of the whole."""
    moments = [name for name in found if is_datetime64_any_dtype(found[name])]
    cut = [bucket for name in moments for bucket in buckets.cut_buckets(df, found[name])]
    if not cut:
        return []
    days = ", ".join(f"{bucket:%Y-%m-%d}" for bucket in cut)
    return [f"the frame counts only part of the {buckets.every_of(df)} of {days}, the outside may count all of it"]
