"""The receipt of a frame that is shown: that it has one, and which of its buckets are unfinished."""

from __future__ import annotations

from pandas import DataFrame, Timestamp

from gamelens.analysis.tidy_frames import with_receipts_of
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt


def receipt_of(frame: DataFrame) -> Receipt:
    """Return the receipt of *frame*.

    Raises:
        BadQuery: it has none.
    """
    receipt = Receipt.of(frame.attrs)
    if not receipt:
        raise BadQuery(
            "frame",
            [str(name) for name in frame.columns],
            "has no receipt: it did not come from query() or retention(), or lost its attrs on the way",
        )
    return receipt


def sourced(frame: DataFrame, source: DataFrame | None) -> DataFrame:
    """Return *frame* with the receipt of *source*, or as it is without one."""
    return frame if source is None else with_receipts_of(frame.copy(deep=False), source)


def unfinished(frame: DataFrame) -> set[Timestamp]:
    """Return the buckets of *frame* that the query or the data covers only in part.

    Empty when the receipt does not say.
    """
    partial = Receipt.of(frame.attrs).partial_buckets
    return {Timestamp(moment) for moment in partial} & set(frame["timestamp"]) if "timestamp" in frame else set()
