"""Adding up what may be added: the rules of the catalog, applied to a frame."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.retention.retention_rates import is_retention_frame
from gamelens.analysis.tidy_frames import asked_metrics, column_of, dimension_columns, with_receipts_of
from gamelens.catalog import METRICS, Metric, Quotient
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.receipts import Receipt

_GAMES: Final = frozenset({"game", "game_id", "studio", "studio_id"})


def total(frame: DataFrame) -> DataFrame:
    """One row: counts and money summed, means and ratios put together again from their parts.

    Columns: the value columns of the frame with their dtypes.

    Raises:
        NotAdditive: retention; unique players or sessions, and ratios of them, over anything but games; a metric with
            gaps or cut to the top, whose sum would be that of what happens to be there.
        BadQuery: the frame has no receipt, so nobody knows what its columns measure.
    """
    if is_retention_frame(frame):
        raise NotAdditive(
            "retention", "gamelens.analysis.retention.retention_rates.average_curve(frame), which weights by installs"
        )
    names = asked_metrics(frame)
    if not names:
        raise BadQuery("frame", list(frame.columns), "has no receipt: add up a frame that query() returned")
    summed: dict[str, Series[Any]] = {}
    for name in names:
        summed |= _total_of(frame, _additive(frame, name))
    return with_receipts_of(DataFrame({column: summed[column] for column in frame.columns if column in summed}), frame)


def _additive(frame: DataFrame, name: str) -> Metric:
    metric = METRICS.get(name)
    if metric is None:
        raise NotAdditive(name, "a query without by= and with every='all': the catalog does not know how it combines")
    if metric.kinds == "retention":
        raise NotAdditive(name, "lens.retention(days=..., over=...), which knows how many installed")
    receipt = Receipt.of(frame.attrs)
    if any(gap.metric == name for gap in receipt.gaps):
        raise NotAdditive(name, "lens.resume(frame) first: pieces of it are missing")
    if receipt.truncated and not receipt.asked.other:
        raise NotAdditive(name, "a frame that was asked with other=True, or without top: this one leaves values out")
    only_over_games = frame["timestamp"].nunique() <= 1 and _GAMES.issuperset(dimension_columns(frame))
    if metric.adds == "never" or (metric.adds == "over games" and not only_over_games):
        raise NotAdditive(name, f'lens.query("{name}", over=..., every="all"), which counts everyone once')
    return metric


def _total_of(frame: DataFrame, metric: Metric) -> dict[str, Series[Any]]:
    columns = {field.name: column_of(frame, metric.name, field.name) for field in metric.fields}
    whole = {field: float(frame[column].astype("float64").sum()) for field, column in columns.items()}
    for field in metric.fields:
        if isinstance(made := field.combines, Quotient):
            divisor = whole[made.whole]
            whole[field.name] = made.worth * whole[made.part] / divisor if divisor else float("nan")
    if metric.name == "session_length":
        whole["session_length"] = _mean_length(frame, columns)
    return {columns[field]: _as(frame[columns[field]], value) for field, value in whole.items()}


def _mean_length(frame: DataFrame, columns: dict[str, str]) -> float:
    """Mean over the sessions that ended, whose number is what each row's total and mean imply."""
    lengths, totals = (frame[columns[name]].astype("float64") for name in ("session_length", "total_session_length"))
    ended = (totals / lengths.where(lengths > 0)).fillna(frame[columns["session_unique"]].astype("float64"))
    return float(totals.sum() / ended.sum()) if ended.sum() else float("nan")


def _as(column: Series[Any], value: float) -> Series[Any]:
    whole = pd.api.types.is_integer_dtype(column)
    return Series([round(value) if whole else value], dtype=column.dtype)
