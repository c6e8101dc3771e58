"""The period before as pale lines behind lines over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from pandas import DataFrame
from plotly.graph_objects import Scatter

from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.analysis.tidy_frames.frame_periods import visible_period
from gamelens.notebook.figures.figure_frame import is_cut, one_row_each
from gamelens.notebook.figures.theme import translucent
from gamelens.receipt_text import period_text
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval


def table_of(rows: DataFrame, value: str, *, is_sum: bool) -> DataFrame:
    """Return *value* by timestamp, one column for each `_name`. A bucket without a row of a sum counts as 0."""
    table = rows.pivot(index="timestamp", columns="_name", values=value)
    return table.astype("float64").where(table.notna(), 0.0 if is_sum else float("nan"))


def pale_traces(
    frame: DataFrame,
    previous: DataFrame,
    value: str,
    unit: Column,
    by: str | Sequence[str] | None,
    colours: Mapping[str, str],
) -> dict[str, Scatter]:
    """Return the lines of the period before by name, its days moved onto the days of *frame*: the first ones coincide.

    Raises:
        BadQuery: a name has several rows in one bucket.
    """
    begins = [pd.Timestamp(period.start) for period in map(_period, (frame, previous)) if period]
    rows = one_row_each(previous.assign(_name=series_names(previous, by)), ["timestamp", "_name"])
    table = table_of(rows, value, is_sum=unit.is_sum and not is_cut(previous))
    if len(begins) > 1:
        table.index = table.index + (begins[0] - begins[1])
    return {
        name: Scatter(
            x=table.index,
            y=table[name],
            mode="lines",
            line={"color": translucent(colour, 0.45), "width": 2},
            showlegend=False,
            hoverinfo="skip",
        )
        for name, colour in colours.items()
        if name in table
    }


def _period(frame: DataFrame) -> Interval | None:
    """Return the days of *frame* that have rows, so that a part of a longer answer is that part."""
    return visible_period(frame, Receipt.of(frame.attrs).asked.every or "day")


def words_on_previous(previous: DataFrame | None) -> str:
    """Return what the pale lines are, for the subtitle of a figure."""
    if previous is None:
        return ""
    period = _period(previous)
    return f", faint: {period_text(period)}" if period else ", faint: the period before"
