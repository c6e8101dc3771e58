"""A health board as JSON, with hostile names kept as they are."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from gamelens.analysis import health
from gamelens.analysis.health.health_text import row_sentence
from support.tidy_frames import tidy_frame

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
        ({"value": 4.0, "expected": 1.0}, "(4 instead of about 1): too few to tell"),
        ({"value": 80.0, "expected": 500.0, "low": 60.0, "high": 940.0}, ": 60 to 940 is usual"),
        (
            {"value": 80.0, "expected": 500.0, "low": 90.0, "high": 910.0},
            ": of so many numbers, chance brings one that",
        ),
        ({"value": 0.5, "expected": 0.1, "kind": "share", "whole": 8.0}, ": too few to tell"),
        ({"value": 80.0, "expected": 500.0, "severity": "critical"}, "(80 instead of about 500)"),
        ({"value": 501.0, "expected": 500.0}, "(501 instead of about 500)"),
    ],
)
def test_an_ok_row_far_from_usual_says_why(numbers: dict[str, object], says: str) -> None:
    """Ok beside a large change has its reason: few events, a wide band, or the size of the board."""
    row: dict[str, object] = {
        **{"game": "Tile", "metric": "Purchases", "kind": "count", "severity": "ok", "is_silent": False},
        **{"dimension": None, "segment": None, "timestamp": pd.Timestamp("2026-11-20"), "since": None, "note": ""},
        **{"window_days": 1, "is_restated": False, "is_settled": True, "low": float("nan"), "high": float("nan")},
        **numbers,
    }
    row["change"] = float(str(row["value"])) / float(str(row["expected"])) - 1
    sentence = row_sentence(row)
    assert says in sentence
    assert sentence.endswith(")") == says.endswith(")")


def test_a_segment_is_set_off_from_its_change() -> None:
    """A comma ends the segment, so that `BR 50%` is not read as one name."""
    row: dict[str, object] = {
        **{"game": "Tile", "metric": "Day 1 retention", "dimension": "country_code", "segment": "BR"},
        **{"severity": "critical", "is_silent": False, "is_restated": False, "is_settled": True, "note": ""},
        **{"timestamp": pd.Timestamp("2026-11-20"), "since": pd.Timestamp("2026-10-31"), "window_days": 28},
        **{"value": 0.2, "expected": 0.4, "change": -0.5, "kind": "share"},
    }
    assert row_sentence(row).startswith("Tile: Day 1 retention, BR, 50% below usual in the 28 days to 2026-11-20")
