"""The findings about rows: each of several estimates, compared with what means no difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, JudgedBy, case_among, direction_among, direction_of
from gamelens.analysis.tidy_frames.frame_columns import display_values, series_names
from gamelens.analysis.tidy_frames.returned_columns import listed_columns

FrameRow = Mapping[Any, Any]


def each_row(
    result: DataFrame,
    by: str | Sequence[str] | None,
    column: str,
    *,
    kind: str,
    numbers: Callable[[FrameRow], Mapping[str, Any]],
    corrected: str = "",
    judged: JudgedBy = "days",
) -> Iterator[Finding]:
    """Yield what each row of *result* says: whether the ratio in *column* is above or below 1.

    The interval is the one that the analysis lists for the column.

    Cases: "higher", "lower" and "no_clear_difference" by the interval, "unknown" without one, and "among_many" where
    the p-value *corrected* for all rows does not confirm it.

    Args:
        result: the result, or rows of it.
        by: the columns that name a row; None if there is one row, of all.
        column: the estimate.
        kind: the kind of the findings.
        numbers: what the words need of a row beside its name.
        corrected: the column of the p-value, or empty where the intervals are corrected themselves.
        judged: how the intervals were found.
    """
    keys = [by] if isinstance(by, str) else [*(by or ())]
    (bounds, *_) = listed_columns(result.attrs)[column].bounds
    names = series_names(result, keys) if keys else Series("", index=result.index)
    shown = {str(key): display_values(result[key]) for key in keys}
    for place, (name, row) in enumerate(zip(names, result.to_dict("records"), strict=True)):
        interval = row[bounds.low], row[bounds.high]
        direction = direction_of(*interval, neutral=1.0)
        if corrected:
            direction = direction_among(*interval, row[corrected], neutral=1.0)
        yield Finding(
            kind=kind,
            case=case_among(direction, *interval, neutral=1.0),
            subject={key: values.iloc[place] for key, values in shown.items()},
            direction=direction,
            size=row[column],
            low=interval[0],
            high=interval[1],
            unit="ratio",
            judged=judged,
            numbers={"name": name or None, **numbers(row)},
        )
