"""Numerator and denominator of a mean or a ratio, by which rows are weighed and recombined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pandas import Series

from gamelens.catalog import Metric, Quotient
from gamelens.formulas import Formula


def ratio_parts(metric: Metric, column: Callable[[str], Series[Any]]) -> tuple[Series[float], Series[float]] | None:
    """Return numerator and denominator of each row of *metric*, None if it is no ratio. *column* has a field's values.

    The denominator of `session_length`, its `session_end` events, is not sent: it follows from each row's total and
    mean. It is larger than the number of sessions that ended where a session has several. Where the mean is 0 it is
    taken for that number.
    """
    made = next(field.combines for field in metric.fields if field.name == metric.sorts_by)
    if isinstance(made, Quotient | Formula):
        return made.fraction({name: column(name).astype("float64") for name in made.names})
    if metric.name == "session_length":
        names = ("session_length", "total_session_length", "session_unique")
        length, total, sessions = (column(name).astype("float64") for name in names)
        return total, (total / length.where(length > 0)).round().fillna(sessions)
    return None
