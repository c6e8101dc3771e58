"""analyst-api, promise 16: figures that cannot be added are not added."""

from __future__ import annotations

import pytest

from gamelens.analysis.totals import total
from gamelens.errors import BadQuery, NotAdditive

DAYS = ["2026-11-01", "2026-11-02"]


def test_counts_and_money_are_summed_and_the_mean_made_again(tidy) -> None:
    frame = tidy(
        "revenue", timestamp=DAYS, event_count=[1, 3], mean=[4.0, 2.0], sum=[4.0, 6.0], sum_cents=[400.0, 600.0]
    )
    assert total(frame).iloc[0].to_dict() == {"event_count": 4, "mean": 2.5, "sum": 10.0, "sum_cents": 1000.0}


def test_dtypes_stay(tidy) -> None:
    frame = tidy("event_count", timestamp=DAYS, event_count=[1, 2])
    assert total(frame)["event_count"].dtype == "Int64"


def test_unique_players_are_refused_over_days(tidy) -> None:
    frame = tidy("user_unique", timestamp=DAYS, user_unique=[5, 5])
    with pytest.raises(NotAdditive, match='every="all"'):
        total(frame)


def test_unique_players_are_refused_over_platforms(tidy) -> None:
    frame = tidy("user_unique", timestamp=DAYS[:1] * 2, platform=["ios", "android"], user_unique=[5, 5])
    with pytest.raises(NotAdditive):
        total(frame)


def test_unique_players_add_up_over_games(tidy) -> None:
    frame = tidy("user_unique", timestamp=DAYS[:1] * 2, game_id=["1", "2"], game=["A", "B"], user_unique=[5, 7])
    assert total(frame)["user_unique"].item() == 12


def test_ratios_come_from_their_parts(tidy) -> None:
    frame = tidy(
        "arpu",
        timestamp=DAYS[:1] * 2,
        game_id=["1", "2"],
        arpu=[1.0, 0.5],
        user_unique=[10, 30],
        total_revenue=[1000, 1500],
    )
    assert total(frame)["arpu"].item() == 0.625


def test_session_length_is_weighted_by_the_sessions_that_ended(tidy) -> None:
    frame = tidy(
        "session_length",
        timestamp=DAYS[:1] * 2,
        game_id=["1", "2"],
        session_length=[60.0, 30.0],
        session_unique=[2, 4],
        total_session_length=[120, 120],
    )
    assert total(frame)["session_length"].item() == 40.0


def test_retention_is_refused(cohorts) -> None:
    with pytest.raises(NotAdditive, match="average_curve"):
        total(cohorts)


def test_metrics_nobody_knows_are_refused(tidy) -> None:
    with pytest.raises(NotAdditive, match="catalog"):
        total(tidy("mystery", timestamp=DAYS, mystery=[1, 2]))


def test_a_frame_without_a_receipt_is_refused(tidy) -> None:
    with pytest.raises(BadQuery, match="no receipt"):
        total(tidy(timestamp=DAYS, event_count=[1, 2]))


def test_each_metric_of_a_joined_frame_keeps_its_rule(tidy) -> None:
    frame = tidy(["event_count", "user_unique"], timestamp=DAYS, event_count=[1, 2], user_unique=[5, 5])
    with pytest.raises(NotAdditive, match="user_unique"):
        total(frame)


def test_what_came_of_a_metric_with_gaps_is_no_total(tidy) -> None:
    frame = tidy(["event_count", "new_users"], timestamp=DAYS, event_count=[1, 2], new_users=[None, None])
    frame.attrs["gamelens"]["gaps"] = [{"metric": "new_users", "interval": "2026-11-01/P2D", "scope": None}]
    with pytest.raises(NotAdditive, match=r"lens\.resume\(frame\) first"):
        total(frame)


def test_the_service_s_retention_names_a_query_that_can_be_asked(tidy) -> None:
    frame = tidy("retention_retro", timestamp=DAYS, game_id=["1", "1"], retention=[0.5, 0.25])
    with pytest.raises(NotAdditive, match=r"lens\.retention\(days"):
        total(frame)


def test_what_was_cut_to_the_top_has_no_total(tidy) -> None:
    frame = tidy("event_count", timestamp=DAYS, event_count=[1, 2])
    frame.attrs["gamelens"]["truncated"] = True
    with pytest.raises(NotAdditive, match="other=True"):
        total(frame)
