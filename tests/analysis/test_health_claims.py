"""Claims about health that count: severities, incidents, history, segments."""

from __future__ import annotations

import pandas as pd
from pandas import DataFrame

from gamelens.analysis import health

STAMPS = pd.date_range("2026-11-01", periods=4, tz="UTC")


def board(**columns: object) -> DataFrame:
    """Return a board of two games, the second with the given values."""
    rows = {
        "timestamp": STAMPS[[3, 3]],
        "game_id": ["1", "2"],
        "game": ["Tile", "Farm"],
        "severity": pd.Categorical(["ok", "ok"], categories=["unknown", "ok", "info", "warning", "critical"]),
        "is_flagged": [False, False],
        "is_silent": [False, False],
        "value": [1.0, 1.0],
        "expected": [1.0, 1.0],
    }
    return DataFrame(rows | columns)


def test_a_silent_game_is_named() -> None:
    """The game that sent nothing is the subject; without one no game is."""
    claim = health.silence_claim(board(is_silent=[False, True]))
    assert (claim.subject, claim.direction, claim.text) == ({"game": "Farm"}, "lower", "Silent now: Farm.")
    assert health.silence_claim(board()).direction == "no clear difference"
    assert health.silence_claim(board()[:0]).direction == "unknown"


def test_severities_are_counted() -> None:
    """One critical row below its expectation is one alarm, lower."""
    flagged = board(severity=pd.Categorical(["critical", "ok"]), value=[0.2, 1.0], is_flagged=[True, False])
    claim = health.severity_claim(flagged)
    assert (claim.size, claim.direction) == (1.0, "lower")
    assert claim.text == "Critical: 1; warning: 0; to know about: 0."
    assert health.severity_claim(board()).direction == "unknown"


def test_the_days_of_an_incident_are_one() -> None:
    """Two incidents, of which one is open on the last day."""
    rows = DataFrame({name: ["x"] * 3 for name in health.IDENTITY})
    flags = rows.assign(timestamp=STAMPS[[3, 2, 1]], since=STAMPS[[2, 2, 0]])
    claim = health.incidents_claim(flags, STAMPS[3])
    assert claim.size == 2
    assert claim.text == "2 incidents in all this time, 1 still open; the newest began on 2026-11-03."
    assert "1 incident in all this time, none still open" in health.incidents_claim(flags[1:2], STAMPS[3]).text
    assert health.incidents_claim(flags[:0], None).text == "No day stood out."


def test_history_is_counted() -> None:
    """Two games with one series each on four days."""
    rows = [dict.fromkeys(health.IDENTITY, game) | {"timestamp": day} for game in "12" for day in STAMPS]
    claim = health.coverage_claim(DataFrame(rows))
    assert claim.text == "2 games, 2 series, 4 days of history; judged is 2026-11-04."
    assert health.coverage_claim(DataFrame(rows)[:0]).direction == "unknown"


def test_a_segment_that_explains_an_alarm_is_the_subject() -> None:
    """The verdict "one segment" names it; "all alike" names the game only; an empty sentence is left out."""
    moved = DataFrame(
        {
            "game_id": ["1"] * 4,
            "game": ["Tile"] * 4,
            "watch": ["user_unique"] * 4,
            "timestamp": [STAMPS[0]] * 4,
            "of_segment": [None] * 4,
            "dimension": ["country_code", "country_code", "platform", "build"],
            "segment": ["BR", "US", "ios", "1.0"],
            "contribution": [-5.0, -1.0, -3.0, 1.0],
            "share_of_change": [0.8, 0.2, 0.5, 1.0],
            "verdict": ["one segment", "one segment", "all alike", "unclear"],
            "says": ["country BR makes up 80% of it"] * 2 + ["by platform, all of them fell", ""],
        }
    )
    named, alike = health.segment_claims(moved)
    assert (named.subject, named.size) == ({"game": "Tile", "country_code": "BR"}, 0.8)
    assert (alike.subject, alike.direction) == ({"game": "Tile"}, "lower")
    assert health.segment_claims(moved[:0]) == []
