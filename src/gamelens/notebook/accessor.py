"""The pandas accessor `df.lens`: receipt, other shapes, total and figure of a frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import pandas as pd
from msgspec import UNSET
from pandas import DataFrame

from gamelens._text import counted
from gamelens.analysis import changes, claims, totals
from gamelens.analysis.retention.retention_rates import average_curve, cohort_matrix, is_retention_frame
from gamelens.analysis.tidy_frames import label_columns, value_columns, with_receipts_of
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.analysis.tidy_frames.results import with_cells_of
from gamelens.errors import BadQuery, no_such_name
from gamelens.notebook import sentences
from gamelens.notebook.frame_receipts import receipt_of, sourced
from gamelens.notebook.tables.frame_table import MOST_ROWS, REPORT, FrameTable, show_sources, show_tables
from gamelens.receipt_text import explain
from gamelens.receipts import Receipt

if TYPE_CHECKING:
    from IPython.display import Markdown
    from plotly.graph_objects import Figure

    from gamelens.notebook.figures.annotations import Notes


def plot(data: object, kind: str, *, y: str | None = None, **_: object) -> Figure:
    """Return the figure of `df.lens.plot(y)`, for `df.plot(backend="gamelens")`: an entry point of pandas.

    Raises:
        BadQuery: *data* is not a frame that `df.lens.plot()` draws, or *kind* is neither line nor bar.
    """
    if not isinstance(data, DataFrame):
        raise BadQuery("data", type(data).__name__, 'is not a frame, and df.plot(backend="gamelens") draws frames')
    if kind not in ("line", "bar"):
        raise BadQuery("kind", kind, 'is not drawn by backend="gamelens"', ["line", "bar"])
    from gamelens.notebook import charts

    return charts.draw_bars(data, y) if kind == "bar" else Accessor(data).plot(y)


(show_tables if os.environ.get(REPORT) else show_sources)()


@pd.api.extensions.register_dataframe_accessor("lens")
class Accessor:
    """The accessor `df.lens`. It reads the frame and its receipt, and changes neither."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    if not TYPE_CHECKING:  # type checkers should find a name that does not exist

        def __getattr__(self, name: str) -> NoReturn:
            no_such_name("df.lens", dir(type(self)))(name)

    def __repr__(self) -> str:
        methods = "explain(), change(), say(), claims(), table(), wide(), matrix(), total(), plot()"
        return f"<the accessor of {counted(len(self._frame), 'row')}: {methods}>"

    def explain(self) -> str:
        """Return the receipt in words: the query, how it was answered and what is missing.

        Raises:
            BadQuery: the frame has no receipt.
        """
        return explain(receipt_of(self._frame))

    @property
    def receipt(self) -> Receipt:
        """The receipt of the frame, an empty one where it has none."""
        return Receipt.of(self._frame.attrs)

    def table(
        self,
        *,
        rows: int = MOST_ROWS,
        total: bool = False,
        bars: str | Sequence[str] = (),
        against: Mapping[str, DataFrame] | None = None,
        history: Mapping[str, DataFrame] | None = None,
        source: DataFrame | None = None,
    ) -> FrameTable:
        """Return the frame as a table to look at: in notebooks and reports, by mail and as text.

        Headings are words with their unit; numbers have thousands, `34.2%`, `$1,234` or an interval; a null name is
        `(unknown)`. Days that are counted in part or may still change have a note, and the source line is below.

        Args:
            rows: the number of rows at most; a line says how many there are.
            total: whether a row adds up all rows, also those that are left out. Columns that may not be added up, such
                as players over days, stay empty.
            bars: a column of numbers, or several, with a small bar beside each number.
            against: other frames by name, such as `{"last week": last, "target": targets}`. Below each number is its
                change from the same row and column of each: a percentage, or percentage points of a share.
            history: frames by the name of a column, such as `{"revenue": weeks}`, that have this column for the same
                rows at several times. Beside each number is its course as a sparkline; where no row has three times,
                nothing is drawn.
            source: the frame that this one was computed from, whose receipt is shown where pandas left none.

        Raises:
            BadQuery: *rows* is less than 1, *bars* or *history* names no column of numbers, or a frame of *against* or
                *history* does not fit.
            NotAdditive: *total* is wanted and no column may be added up.
        """
        drawn = (bars,) if isinstance(bars, str) else tuple(bars)
        frame = sourced(self._frame, source)
        return FrameTable(frame, rows=rows, total=total, bars=drawn, against=against, history=history)

    def change(self, before: DataFrame | None = None) -> DataFrame:
        """Return how each number changed from the period before, with intervals (`analysis.changes.change`).

        Args:
            before: the same query over an equally long period. Without it the last weeks of the frame are compared with
                as many before them.

        Raises:
            BadQuery: the frame is not by day, has less than two weeks and there is no *before*, or ends within a day.
        """
        return changes.change(self._frame, before)

    def claims(self, *kinds: str) -> DataFrame:
        """Return what the result of an analysis says, with a row for each sentence (`analysis.claims.of`).

        Args:
            kinds: the kinds of claims to return, by default all.

        Raises:
            BadQuery: the frame is not a result of an analysis, lacks rows or columns of it, or there is no such kind.
        """
        return claims.of(self._frame, kinds)

    def say(self, *kinds: str) -> Markdown:
        """Return what the result of an analysis says, as sentences in Markdown.

        Of many claims of a kind the clear ones are said, and a line counts the others: `claims()` has all of them. The
        last line says how they were judged.

        Args:
            kinds: the kinds of claims to say, by default all.

        Raises:
            BadQuery: the frame is not an unchanged result of an analysis, or there is no such kind.
        """
        return sentences.spoken(self._frame, kinds)

    def wide(self, value: str | None = None) -> DataFrame:
        """Return `timestamp` and one column for each value of the dimensions, the largest first.

        A null group is called `(unknown)`. A cell is NA where the group has no row.

        Args:
            value: the column to spread; by default the column of the metric, if there is one.

        Raises:
            BadQuery: the frame has several metrics and *value* names no number of it, or it is a retention frame:
                use `matrix()`.
        """
        if is_retention_frame(self._frame):
            raise BadQuery("frame", "a retention frame", "has one row for each age: use matrix()")
        self._must_have_time("wide()")
        value = self._one_value(value)
        if not label_columns(self._frame):
            return with_receipts_of(self._frame[["timestamp", value]].copy(), self._frame)
        names = series_names(self._frame)
        cells = DataFrame({"timestamp": self._frame["timestamp"], "name": names, "value": self._frame[value]})
        table = cells.pivot(index="timestamp", columns="name", values="value")
        order = table.sum().astype("float64").sort_values(ascending=False, kind="stable").index
        table = table[order].rename_axis(columns=None).reset_index()
        return with_cells_of(with_receipts_of(table, self._frame), value, order)

    def matrix(self, by: str | None = None) -> DataFrame:
        """Return retention with one row for each install day and one column for each age.

        Cells are shares, and NA where the day has not come yet. Dimensions are pooled, weighted by installs.

        Args:
            by: a dimension to keep: the index is then its value and the install day.

        Raises:
            BadQuery: the frame is not one that `retention()` returned.
        """
        self._must_be_retention("matrix()")
        return cohort_matrix(self._frame, by)

    def total(self) -> DataFrame:
        """Return one row: counts and money summed, means and ratios from their parts.

        Raises:
            NotAdditive: the sum would mean nothing, such as unique players over days, or rows are missing.
        """
        return totals.total(self._frame)

    def plot(
        self, value: str | None = None, *, previous: DataFrame | None = None, notes: Notes | None = None
    ) -> Figure:
        """Return a figure that suits the frame.

        Lines over time, bars for a single bucket, a cohort heatmap or curves for retention.

        Args:
            value: the column to draw, when the frame has several numbers.
            previous: of lines over time, the same query over the period before, drawn as pale lines behind.
            notes: of lines over time, the path of a TOML file with releases, campaigns and holidays to shade.

        Raises:
            BadQuery: the frame has no `timestamp`, *value* is not a number of it, or *notes* cannot be read.
        """
        from gamelens.notebook import charts

        if is_retention_frame(self._frame):
            split = label_columns(self._frame)
            if split or self._frame["timestamp"].nunique() <= 1:
                return charts.draw_curve(average_curve(self._frame, split[0] if split else None))
            return charts.draw_cohorts(cohort_matrix(self._frame))
        self._must_have_time("plot()")
        if value is not None:
            self._one_value(value)
        if self._frame["timestamp"].nunique() == 1:
            return charts.draw_bars(self._frame, value)
        return charts.draw_lines(self._frame, value, previous=previous, notes=notes)

    def _one_value(self, value: str | None) -> str:
        """Return *value* if the frame has it, or the column of its only metric, or its only number.

        Raises:
            BadQuery: the frame has several numbers and *value* is None, or it does not have *value*.
        """
        values = value_columns(self._frame)
        asked = self.receipt.asked.metrics
        if value is None and len(asked) == 1 and asked[0] in values:
            return asked[0]
        if value is None and len(values) == 1:
            return values[0]
        if value is None:
            raise BadQuery("value", UNSET, "must say which number", values)
        if value not in values:
            raise BadQuery("value", value, "is not a number in the frame", values)
        return value

    def _must_have_time(self, what: str) -> None:
        if "timestamp" not in self._frame:
            columns = [str(name) for name in self._frame.columns]
            raise BadQuery("frame", columns, f"has no timestamp: {what} needs a frame as query() returns it")

    def _must_be_retention(self, what: str) -> None:
        if not is_retention_frame(self._frame):
            columns = [str(name) for name in self._frame.columns]
            raise BadQuery("frame", columns, f"is not a retention frame: {what} needs what retention() returns")
