"""A health board as JSON, with hostile names kept as they are."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from gamelens.analysis import health
from gamelens.analysis.claims.templates import sentences_of
from gamelens.analysis.health.board import row_finding
from support.tidy_frames import tidy_frame

USUAL: dict[str, object] = {
    **{"game": "Tile", "metric": "Purchases", "kind": "count", "severity": "ok", "is_silent": False, "note": ""},
    **{"dimension": None, "segment": None, "timestamp": pd.Timestamp("2026-11-20"), "since": None, "window_days": 1},
    **{"is_restated": False, "is_settled": True, "is_flagged": False, "low": float("nan"), "high": float("nan")},
}
HOSTILE = "<img src=x onerror=alert(1)>"
WEEK = [100, 101, 99, 102, 98, 150, 160]


def test_json_holds_days_and_nulls() -> None:
    """JSON rows have days as YYYY-MM-DD, missing values as null and names unescaped."""
    days = pd.date_range("2026-10-05", periods=35, freq="D").strftime("%Y-%m-%d").tolist()
    frame = tidy_frame(timestamp=days, game_id=["1"] * 35, game=[HOSTILE] * 35, user_unique=[*WEEK * 4, *WEEK[:6], 10])
    board = health.board(health.score_days(health.measured(frame, {"user_unique": "Players"})))
    (row,) = json.loads(json.dumps(health.as_json(board)))
    assert row["game"] == HOSTILE
    assert (row["timestamp"], row["since"], row["segment"]) == ("2026-11-08", "2026-11-08", None)
    assert row["severity"] == "critical"
    assert row["change"] == pytest.approx(-0.94, abs=0.01)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"value": 4.0, "expected": 1.0}, "(4 instead of about 1; +200% to +400%): too few to tell."),
        ({"value": 80.0, "expected": 500.0, "low": 60.0, "high": 940.0}, ": 60 to 940 is usual."),
        (
            {"value": 80.0, "expected": 500.0, "low": 90.0, "high": 910.0},
            ": among so many numbers, one this far off",
        ),
        ({"value": 0.5, "expected": 0.1, "kind": "share", "whole": 8.0}, ": too few to tell."),
        ({"value": 80.0, "expected": 500.0, "severity": "critical"}, "(80 instead of about 500; -94% to -74%)."),
        ({"value": 501.0, "expected": 500.0}, "(501 instead of about 500; -9.8% to +10.2%)."),
        ({"value": 0.0, "expected": 0.0, "change": float("nan")}, "as usual on 20 Nov 2026 (0 instead of about 0)."),
        ({"value": 501.0, "expected": 500.0, "note": "release 2"}, "; -9.8% to +10.2%); release 2."),
        (
            {"value": 501.0, "expected": 500.0, "is_settled": False},
            "; -9.8% to +10.2%); the day's numbers may still change.",
        ),
        (
            {"value": 501.0, "expected": 500.0, "is_settled": False, "is_restated": True, "note": "sale"},
            "; -9.8% to +10.2%); the service has restated this day; sale.",
        ),
        ({"value": 501.0, "expected": float("nan"), "severity": "unknown"}, "20 Nov 2026: the history is too short."),
        ({"value": float("nan"), "expected": 500.0}, "Purchases without a number on 20 Nov 2026."),
    ],
)
def test_an_ok_row_far_from_usual_says_why(numbers: dict[str, object], says: str) -> None:
    """Ok beside a large change has its reason: few events, a wide band, or the size of the board."""
    change = float(str(numbers["value"])) / float(str(numbers["expected"])) - 1 if numbers["expected"] else float("nan")
    row = {**USUAL, "change": change, "change_low": change - 0.1, "change_high": change + 0.1, **numbers}
    if numbers == {"value": 4.0, "expected": 1.0}:
        row |= {"change_low": 2.0, "change_high": 4.0}
    (sentence,) = sentences_of([row_finding(row)])
    assert sentence.endswith(says) or says in sentence
    assert (": " in sentence[len("Tile: Purchases") :]) == (": " in says)


def test_a_segment_is_set_off_from_its_change() -> None:
    """A comma ends the segment, so that `BR 50%` is not read as one name."""
    row: dict[str, object] = {
        **USUAL,
        **{"metric": "Day 1 retention", "dimension": "country_code", "segment": "BR", "kind": "share"},
        **{"severity": "critical", "since": pd.Timestamp("2026-10-31"), "window_days": 28, "is_flagged": True},
        **{"value": 0.2, "expected": 0.4, "change": -0.5, "change_low": -0.55, "change_high": -0.45},
    }
    finding = row_finding(row)
    assert (finding.subject, finding.direction) == ({"game": "Tile", "country_code": "BR"}, "lower")
    assert sentences_of([finding])[0] == (
        "Tile: Day 1 retention, BR, 50% below usual in the 28 days to 20 Nov 2026, open since about 31 Oct 2026 "
        "(20.0% instead of about 40.0%; -55% to -45%)."
    )
