"""A board as JSON; names from outside stay names."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from gamelens.analysis import health

HOSTILE = "<img src=x onerror=alert(1)>"
WEEK = [100, 101, 99, 102, 98, 150, 160]


def test_json_holds_days_and_nulls(tidy) -> None:
    days = pd.date_range("2026-10-05", periods=35, freq="D").strftime("%Y-%m-%d").tolist()
    frame = tidy(timestamp=days, game_id=["1"] * 35, game=[HOSTILE] * 35, user_unique=[*WEEK * 4, *WEEK[:6], 10])
    board = health.board(health.score_days(health.measured(frame, {"user_unique": "Players"})))
    (row,) = json.loads(json.dumps(health.as_json(board)))
    assert row["game"] == HOSTILE
    assert (row["timestamp"], row["since"], row["segment"]) == ("2026-11-08", "2026-11-08", None)
    assert row["severity"] == "critical"
    assert row["change"] == pytest.approx(-0.94, abs=0.01)
