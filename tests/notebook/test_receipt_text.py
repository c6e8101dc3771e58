"""Text from a receipt: the source line of a figure and its unfinished buckets."""

from __future__ import annotations

import pandas as pd
from pandas import DataFrame

from gamelens.notebook.receipt_text import source_line, unfinished


def _weekly(frame: DataFrame, **receipt: object) -> DataFrame:
    """Return *frame* as the answer to a query by week, with *receipt* in its receipt."""
    query = {**frame.attrs["gamelens"]["asked"], "every": "week"}
    frame.attrs["gamelens"] |= {"asked": query, **receipt}
    return frame


def test_the_source_line_names_question_and_time(networks: DataFrame) -> None:
    """The source line has version, time range and `as_of`."""
    assert source_line(networks) == ("Source: gamelens 0.1.0 · last 2 complete days · data as of 18 Nov 2026 09:00 UTC")


def test_the_source_line_admits_cuts_and_gaps(networks: DataFrame) -> None:
    """The source line says that a frame was clipped or has gaps."""
    networks.attrs["gamelens"] |= {"clipped": "2026-11-16T00:00Z/2026-11-17T00:00Z", "gaps": [{}]}
    assert source_line(networks).endswith("cut to what is available · with gaps")


def test_no_receipt_no_source_line(networks: DataFrame) -> None:
    """Without a receipt the source line is empty."""
    networks.attrs = {}
    assert source_line(networks) == ""


def test_a_week_that_the_query_cuts_is_unfinished(players: DataFrame) -> None:
    """A week of which the query has only a part is unfinished.

    16 November 2026 is a Monday, and the query ends on Wednesday.
    """
    assert unfinished(_weekly(players)) == {pd.Timestamp("2026-11-16", tz="UTC")}


def test_a_partial_week_is_explained(players: DataFrame) -> None:
    """`explain` names a week of which the query has only a part."""
    assert "Of the week of 2026-11-16 only a part is in." in _weekly(players).lens.explain()


def test_whole_days_are_finished(players: DataFrame) -> None:
    """A day within the interval of the query is finished."""
    assert unfinished(players) == set()


def test_a_clipped_day_is_unfinished(players: DataFrame) -> None:
    """The day in which the clipped interval ends is unfinished."""
    players.attrs["gamelens"]["clipped"] = "2026-11-16T00:00Z/2026-11-17T09:00Z"
    assert unfinished(players) == {pd.Timestamp("2026-11-17", tz="UTC")}


def test_without_a_receipt_no_bucket_is_unfinished(players: DataFrame) -> None:
    """Without a receipt the interval is unknown, so every bucket counts as finished."""
    players.attrs = {}
    assert unfinished(players) == set()
