"""Retention on cases computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import retention
from gamelens.analysis.tidy_frames import first_row
from gamelens.errors import BadQuery


def test_matrix_pools_games_weighted_by_installs(cohorts) -> None:
    """analyst-api, Names, pinned: `ret.lens.matrix(by=None)`: 6 of 14, not the mean of 50 % and 25 %."""
    assert retention.cohort_matrix(cohorts).loc["2026-11-01", 1].item() == 6 / 14


def test_matrix_is_na_where_the_day_has_not_come(cohorts) -> None:
    matrix = retention.cohort_matrix(cohorts)
    assert matrix.isna().to_numpy().tolist() == [[False, False], [False, True]]


def test_matrix_has_install_days_as_index_and_ages_as_columns(cohorts) -> None:
    matrix = retention.cohort_matrix(cohorts)
    assert (matrix.index.name, matrix.columns.tolist()) == ("timestamp", [1, 2])
    assert isinstance(matrix.index, pd.DatetimeIndex)


def test_matrix_by_a_split_has_the_value_before_the_day(cohorts) -> None:
    assert retention.cohort_matrix(cohorts, "game").loc["Farm"][1].tolist() == [0.25, 1.0]


def test_a_null_group_keeps_its_rows(cohorts) -> None:
    cohorts["game"] = cohorts["game"].cat.remove_categories("Farm")
    matrix = retention.cohort_matrix(cohorts.drop(columns="game_id"), "game")
    assert len(matrix) == 4


def test_nobody_came_back_is_zero_and_not_na(cohorts) -> None:
    assert retention.cohort_matrix(cohorts, "game").loc["Farm"].iloc[0, 1] == 0.0


def test_curve_counts_only_cohorts_that_reached_the_age(cohorts) -> None:
    curve = retention.average_curve(cohorts).set_index("age")
    assert curve.loc[1, ["returned", "installs", "cohorts"]].tolist() == [15, 35, 2]
    assert curve.loc[2, ["returned", "installs", "cohorts"]].tolist() == [2, 14, 1]
    assert curve["retention"].tolist() == [15 / 35, 2 / 14]


def test_curve_of_each_game(cohorts) -> None:
    curve = retention.average_curve(cohorts, "game").set_index(["game", "age"])
    assert curve.loc[("Tile", 1), "retention"] == 13 / 30


def test_curve_of_nothing_has_the_same_columns(cohorts) -> None:
    empty = retention.average_curve(cohorts[:0])
    assert empty.columns.tolist() == retention.average_curve(cohorts).columns.tolist()


def test_wilson_interval_of_a_textbook_case() -> None:
    """Newcombe 1998, table I: 81 of 263, 95 %: 0.2553 to 0.3662."""
    low, high = retention.wilson([81], [263])
    assert (round(low[0], 4), round(high[0], 4)) == (0.2553, 0.3662)


def test_wilson_interval_of_none_is_still_an_interval() -> None:
    """Newcombe 1998, table I: 0 of 20: 0 to 0.1611."""
    low, high = retention.wilson([0], [20])
    assert (low[0], round(high[0], 4)) == (0.0, 0.1611)


def test_wilson_interval_without_trials_is_not_known() -> None:
    assert np.isnan(retention.wilson([0], [0])).all()


def test_confidence_is_a_share() -> None:
    with pytest.raises(BadQuery, match="between 0 and 1"):
        retention.wilson([1], [2], confidence=95)


def test_cohort_sizes_count_each_install_once(cohorts) -> None:
    """The frame repeats installs for every age."""
    assert retention.cohort_sizes(cohorts)["installs"].tolist() == [14, 21]


def test_halves_are_cut_at_the_middle_install_day(cohorts) -> None:
    halves = retention.by_half(cohorts).groupby("timestamp")["half"].unique()
    assert [list(half) for half in halves] == [["earlier"], ["later"]]


def test_the_frame_given_stays_as_it_was(cohorts) -> None:
    before = cohorts.copy()
    retention.average_curve(cohorts, "game")
    retention.cohort_matrix(cohorts)
    pd.testing.assert_frame_equal(cohorts, before)


def test_the_receipt_is_handed_on(cohorts) -> None:
    assert retention.average_curve(cohorts).attrs == cohorts.attrs


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [((0.3, 0.4), (0.1, 0.2), True), ((0.1, 0.2), (0.3, 0.4), True), ((0.1, 0.3), (0.2, 0.4), False)],
)
def test_intervals_that_do_not_touch_lie_apart(first, second, expected) -> None:
    rows = [pd.Series({"low": low, "high": high}) for low, high in (first, second)]
    assert retention.intervals_are_disjoint(*rows) is expected


def test_what_is_not_known_does_not_lie_apart(cohorts) -> None:
    curve = retention.average_curve(cohorts, "game")
    assert retention.intervals_are_disjoint(first_row(curve[:0]), curve.iloc[0]) is False
