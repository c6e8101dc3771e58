"""Totals: numbers that cannot be added are not added (Wire 4.14, Adding up)."""

from __future__ import annotations

import pytest
from pandas import DataFrame

from gamelens.analysis.totals import total
from gamelens.errors import BadQuery, NotAdditive
from support.tidy_frames import tidy_frame

DAYS = ["2026-11-01", "2026-11-02"]


def test_counts_and_money_are_summed_and_the_mean_made_again() -> None:
    """Counts and money are summed, and the mean is sum per event (Wire 4.14, Adding up)."""
    frame = tidy_frame(
        "revenue",
        timestamp=DAYS,
        revenue_event_count=[1, 3],
        revenue_mean=[4.0, 2.0],
        revenue=[4.0, 6.0],
        revenue_sum_cents=[400.0, 600.0],
    )
    assert total(frame).iloc[0].to_dict() == {
        **{"revenue_event_count": 4, "revenue_mean": 2.5},
        **{"revenue": 10.0, "revenue_sum_cents": 1000.0},
    }


def test_dtypes_stay() -> None:
    """The total of an Int64 column is Int64."""
    frame = tidy_frame("event_count", timestamp=DAYS, event_count=[1, 2])
    assert total(frame)["event_count"].dtype == "Int64"


def test_unique_players_are_refused_over_days() -> None:
    """Unique players do not add up over days, and the message names the query to make."""
    frame = tidy_frame("user_unique", timestamp=DAYS, user_unique=[5, 5])
    with pytest.raises(NotAdditive, match=r'lens\.query\("user_unique", over=".*", every="all"\)'):
        total(frame)


def test_unique_players_are_refused_over_platforms() -> None:
    """Unique players do not add up over platforms (Wire 4.14, Adding up)."""
    frame = tidy_frame("user_unique", timestamp=DAYS[:1] * 2, platform=["ios", "android"], user_unique=[5, 5])
    with pytest.raises(NotAdditive):
        total(frame)


def test_unique_players_add_up_over_games() -> None:
    """Unique players add up over games (Wire 4.14, Adding up)."""
    frame = tidy_frame("user_unique", timestamp=DAYS[:1] * 2, game_id=["1", "2"], game=["A", "B"], user_unique=[5, 7])
    assert total(frame)["user_unique"].item() == 12


def test_ratios_come_from_their_parts() -> None:
    """A ratio is computed again from its summed parts, not averaged."""
    frame = tidy_frame(
        "arpu",
        timestamp=DAYS[:1] * 2,
        game_id=["1", "2"],
        arpu=[1.0, 0.5],
        user_unique=[10, 30],
        total_revenue_cents=[1000, 1500],
    )
    assert total(frame)["arpu"].item() == 0.625


def test_session_length_is_weighted_by_its_events() -> None:
    """The mean session length is total length per `session_end` event of all games, also where a session has two."""
    frame = tidy_frame(
        "session_length",
        timestamp=DAYS[:1] * 2,
        game_id=["1", "2"],
        session_length=[60.0, 30.0],
        session_length_count=[2, 3],
        session_length_sum=[120, 120],
    )
    assert total(frame)["session_length"].item() == 40.0


def test_retention_is_refused(cohorts: DataFrame) -> None:
    """A retention frame raises `NotAdditive` that names `average_curve`."""
    with pytest.raises(NotAdditive, match="average_curve"):
        total(cohorts)


def test_unknown_metrics_are_refused() -> None:
    """A metric that the catalog does not have raises `NotAdditive`."""
    with pytest.raises(NotAdditive, match="catalog"):
        total(tidy_frame("mystery", timestamp=DAYS, mystery=[1, 2]))


def test_a_frame_without_a_receipt_is_refused() -> None:
    """Without a receipt the metric is unknown, so the frame is refused."""
    with pytest.raises(BadQuery, match="no receipt"):
        total(tidy_frame(timestamp=DAYS, event_count=[1, 2]))


def test_each_metric_of_a_joined_frame_keeps_its_rule() -> None:
    """One metric that does not add up refuses the whole frame, and is named."""
    frame = tidy_frame(["event_count", "user_unique"], timestamp=DAYS, event_count=[1, 2], user_unique=[5, 5])
    with pytest.raises(NotAdditive, match="user_unique"):
        total(frame)


def test_a_metric_with_gaps_has_no_total() -> None:
    """A metric with gaps raises `NotAdditive` that says what to do."""
    frame = tidy_frame(["event_count", "new_users"], timestamp=DAYS, event_count=[1, 2], new_users=[None, None])
    frame.attrs["gamelens"]["gaps"] = [{"metric": "new_users", "interval": "2026-11-01/P2D", "scope": None}]
    with pytest.raises(NotAdditive, match="the same query again"):
        total(frame)


def test_retention_retro_names_the_query_to_make_instead() -> None:
    """`retention_retro` raises `NotAdditive` that names `lens.retention`."""
    frame = tidy_frame("retention_retro", timestamp=DAYS, game_id=["1", "1"], retention=[0.5, 0.25])
    with pytest.raises(NotAdditive, match=r"lens\.retention\(days"):
        total(frame)


def test_a_truncated_frame_has_no_total() -> None:
    """A truncated frame raises `NotAdditive` that names `other=True`."""
    frame = tidy_frame("event_count", timestamp=DAYS, event_count=[1, 2])
    frame.attrs["gamelens"]["truncated"] = True
    with pytest.raises(NotAdditive, match="other=True"):
        total(frame)
