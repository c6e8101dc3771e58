"""What a receipt tells a figure."""

from __future__ import annotations

import pandas as pd

from gamelens.notebook.receipt_text import source_line, unfinished


def _weekly(frame, **receipt):
    asked = {**frame.attrs["gamelens"]["asked"], "every": "week"}
    frame.attrs["gamelens"] |= {"asked": asked, **receipt}
    return frame


def test_the_source_line_names_question_and_time(networks) -> None:
    assert source_line(networks) == ("Source: gamelens 0.1.0 · last 2 complete days · data as of 18 Nov 2026 09:00 UTC")


def test_the_source_line_admits_cuts_and_gaps(networks) -> None:
    networks.attrs["gamelens"] |= {"clipped": "2026-11-16T00:00Z/2026-11-17T00:00Z", "gaps": [{}]}
    assert source_line(networks).endswith("cut to what is available · with gaps")


def test_no_receipt_no_source_line(networks) -> None:
    networks.attrs = {}
    assert source_line(networks) == ""


def test_a_week_the_question_cuts_is_unfinished(players) -> None:
    """16 November 2026 is a Monday; the question ends on Wednesday."""
    assert unfinished(_weekly(players)) == {pd.Timestamp("2026-11-16", tz="UTC")}


def test_what_is_cut_is_said(players) -> None:
    assert "Of the week of 2026-11-16 only a part is in." in _weekly(players).lens.explain()


def test_whole_days_are_finished(players) -> None:
    assert unfinished(players) == set()


def test_a_clipped_day_is_unfinished(players) -> None:
    players.attrs["gamelens"]["clipped"] = "2026-11-16T00:00Z/2026-11-17T09:00Z"
    assert unfinished(players) == {pd.Timestamp("2026-11-17", tz="UTC")}


def test_nobody_knows_without_a_receipt(players) -> None:
    players.attrs = {}
    assert unfinished(players) == set()
