"""What the analyses of events say, of frames written by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens import raw_events
from gamelens.receipts import QueryRecord, Receipt
from support.said import as_made_by, said

ZONE = "America/Sao_Paulo"


def hourly(events: dict[int, int]) -> DataFrame:
    """Return events by hour of one day."""
    starts = [pd.Timestamp("2026-11-02", tz=ZONE) + pd.Timedelta(hours=hour) for hour in events]
    return DataFrame({"timestamp": pd.Series(starts, dtype=f"datetime64[us, {ZONE}]"), "events": [*events.values()]})


def steps(*players: int) -> DataFrame:
    """Return a funnel whose steps are called A, B, C."""
    first = players[0] or float("nan")
    shares = [number / first for number in players]
    before = [
        float("nan"),
        *(after / number if number else float("nan") for number, after in pairwise(players)),
    ]
    return DataFrame(
        {
            "name": [*"ABC"][: len(players)],
            "players": pd.Series(players, dtype="Int64"),
            "share": shares,
            "low": [share - 0.02 for share in shares],
            "high": [share + 0.02 for share in shares],
            "of_previous": before,
        }
    )


def money(*brought: float) -> DataFrame:
    """Return players, half of whose money is of ads."""
    return DataFrame({"revenue": [value / 2 for value in brought], "ad_revenue": [value / 2 for value in brought]})


ACTIVE = DataFrame(
    {
        "timestamp": pd.to_datetime(["2026-11-02", "2026-11-02", "2026-11-03"], utc=True),
        "active": [60, 40, 100],
        "new": [30, 10, 20],
        "returning": [30, 20, 70],
        "resurrected": [0, 10, 10],
    }
)
PATHS = DataFrame({"path": ["user > design", "user"], "sessions": [60, 30], "share": [0.6, 0.3]})
CASES: list[tuple[str, DataFrame, dict[str, Any], list[str]]] = [
    (
        "count_events",
        hourly({9: 10, 23: 70}),
        {"every": "hour", "zone": ZONE},
        [
            "Of 80 events, 87.5% come between 23:00 and 00:00 (America/Sao_Paulo), the busiest hour of the day; "
            "the quietest, 00:00 to 01:00, has 0.0%."
        ],
    ),
    (
        "count_events",
        hourly({0: 10, 24: 1_200}),
        {"every": "day", "zone": ZONE},
        ["1,210 events in all; the busiest day, with 1,200, begins on 3 Nov 2026."],
    ),
    ("count_events", hourly({0: 10}), {"every": "all", "zone": ZONE}, ["10 events in all."]),
    ("count_events", hourly({0: 10}), {"every": "day", "zone": ZONE}, ["10 events in all."]),
    ("count_events", hourly({}), {"every": "hour", "zone": ZONE}, ["There are no events in this period."]),
    (
        "active_players",
        ACTIVE,
        {"away": 7},
        [
            "On an average day 100 players are active: 30.0% of them are new, 60.0% were active in the 7 days before, "
            "and 10.0% come back after longer."
        ],
    ),
    ("active_players", ACTIVE[:0], {"away": 7}, ["No players were active in this period."]),
    (
        "session_paths",
        PATHS,
        {},
        ["Sessions most often begin with user > design, 60.0% of them; the 2 most frequent beginnings cover 90.0%."],
    ),
    ("session_paths", PATHS[:0], {}, ["No session began in this period."]),
    (
        "funnel",
        steps(1000, 900, 450),
        {},
        [
            "Of 1,000 players in the first step (A), 45.0% (43.0% to 47.0%) reach the last (C).",
            "On the way to C, 50.0% (46.7% to 53.3%) of the players of the previous step are lost, clearly the most; "
            "B follows with 10.0%.",
        ],
    ),
    ("funnel", steps(1000), {}, ["1,000 players reach A."]),
    ("funnel", steps(0, 0), {}, ["Nobody reaches the first step (A) in this period."]),
    (
        "player_money",
        money(*[8.0, *[0.0] * 10, *[0.2] * 9]),
        {"days": 3},
        [
            "The top tenth of 20 new players brought in 83.7% of the $9.80 of their first 3 days; "
            "50.0% brought in nothing."
        ],
    ),
    (
        "player_money",
        money(0.5, 0.0),
        {"days": 2},
        ["2 new players brought in $0.50 in their first 2 days; 50.0% brought in nothing."],
    ),
    ("player_money", money(0.5), {"days": 2}, ["1 new player brought in $0.50 in their first 2 days."]),
    ("player_money", money(0.0), {"days": 1}, ["1 new player has brought nothing in their first 1 day."]),
    ("player_money", money(), {"days": 2}, ["No new players have had 2 days yet."]),
]


@pytest.mark.parametrize(("analysis", "frame", "arguments", "texts"), CASES)
def test_what_is_said(analysis: str, frame: DataFrame, arguments: dict[str, Any], texts: list[str]) -> None:
    """With players, without an effect, and without data."""
    assert [claim.text for claim in said(as_made_by(f"raw_events.{analysis}", frame, **arguments))] == texts


def test_only_an_interval_says_where_most_are_lost() -> None:
    """The same shares of few players are not clearly different."""
    many, few = (said(as_made_by("raw_events.funnel", steps(*n)))[1] for n in ((1000, 900, 450), (10, 9, 7)))
    assert (many.direction, few.direction) == ("higher", "no clear difference")


def test_an_average_day_is_one_of_the_whole_period() -> None:
    """Two of ten days have players: 200 in all are 20 a day."""
    active = ACTIVE.copy()
    record = QueryRecord(interval="2026-11-01T00:00Z/2026-11-11T00:00Z")
    active.attrs["gamelens"] = Receipt(asked=record, version="1").to_json()
    (claim,) = said(as_made_by("raw_events.active_players", active, away=7))
    assert (claim.days, claim.mean) == (10, 20.0)


@pytest.mark.parametrize("name", raw_events.__all__[1:])
def test_every_analysis_has_sentences(name: str) -> None:
    """Each has a case here."""
    assert name in {case[0] for case in CASES}
