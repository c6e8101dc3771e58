"""Retention matrices, curves and intervals, on cases computed by hand."""

from __future__ import annotations

import pandas as pd
from pandas import DataFrame

from gamelens.analysis import retention
from gamelens.receipts import Receipt

FIRST_DAY = pd.Timestamp("2026-11-01", tz="UTC")


def test_matrix_pools_games_weighted_by_installs(cohorts: DataFrame) -> None:
    """Without a split the matrix pools counts: 6 of 14, not the mean of 50 % and 25 %."""
    assert retention.cohort_matrix(cohorts).loc[FIRST_DAY, 1] == 6 / 14


def test_matrix_is_na_where_the_age_is_not_reached(cohorts: DataFrame) -> None:
    """An age that an install day has not reached is NA, not 0."""
    matrix = retention.cohort_matrix(cohorts)
    assert matrix.isna().to_numpy().tolist() == [[False, False], [False, True]]


def test_matrix_has_install_days_as_index_and_ages_as_columns(cohorts: DataFrame) -> None:
    """The index is a `DatetimeIndex` called timestamp, the columns are whole numbers."""
    matrix = retention.cohort_matrix(cohorts)
    assert matrix.index.name == "timestamp"
    assert [*matrix] == [1, 2]
    assert isinstance(matrix.index, pd.DatetimeIndex)


def test_matrix_by_a_split_has_the_value_before_the_day(cohorts: DataFrame) -> None:
    """With a split, its value is the first level of the index."""
    assert retention.cohort_matrix(cohorts, "game").loc["Farm"][1].tolist() == [0.25, 1.0]


def test_a_null_group_keeps_its_rows(cohorts: DataFrame) -> None:
    """Rows of the null group stay in the matrix."""
    cohorts["game"] = cohorts["game"].cat.remove_categories("Farm")
    matrix = retention.cohort_matrix(cohorts.drop(columns="game_id"), "game")
    assert len(matrix) == 4


def test_no_returning_players_are_zero_and_not_na(cohorts: DataFrame) -> None:
    """A cohort without returning players has a retention of 0, not NA."""
    assert retention.cohort_matrix(cohorts, "game").loc[["Farm"]].iloc[0, 1] == 0.0


def test_curve_counts_only_cohorts_that_reached_the_age(cohorts: DataFrame) -> None:
    """The average curve pools only cohorts that have reached the age."""
    curve = retention.average_curve(cohorts).set_index("age")
    assert curve.loc[[1], ["returned", "installs", "cohorts"]].iloc[0].tolist() == [15, 35, 2]
    assert curve.loc[[2], ["returned", "installs", "cohorts"]].iloc[0].tolist() == [2, 14, 1]
    assert curve["retention"].tolist() == [15 / 35, 2 / 14]


def test_curve_of_each_game(cohorts: DataFrame) -> None:
    """With a split, each value has its own curve."""
    curve = retention.average_curve(cohorts, "game").set_index(["game", "age"])
    assert curve.loc[("Tile", 1), "retention"] == 13 / 30


def test_curve_of_nothing_has_the_same_columns(cohorts: DataFrame) -> None:
    """An empty frame gives an empty curve with the same columns."""
    empty = retention.average_curve(cohorts[:0])
    assert empty.columns.tolist() == retention.average_curve(cohorts).columns.tolist()


def test_cohort_sizes_count_each_install_once(cohorts: DataFrame) -> None:
    """Cohort sizes count each install once, although the frame repeats it for every age."""
    assert retention.cohort_sizes(cohorts)["installs"].tolist() == [14, 21]


def test_halves_are_cut_at_the_middle_install_day(cohorts: DataFrame) -> None:
    """Install days are labelled earlier or later around their middle."""
    halves = retention.by_half(cohorts).groupby("timestamp")["half"].unique()
    assert [list(half) for half in halves] == [["earlier"], ["later"]]


def test_the_frame_given_stays_as_it_was(cohorts: DataFrame) -> None:
    """Neither curve nor matrix changes the given frame."""
    before = cohorts.copy()
    retention.average_curve(cohorts, "game")
    retention.cohort_matrix(cohorts)
    pd.testing.assert_frame_equal(cohorts, before)


def test_the_receipt_is_handed_on(cohorts: DataFrame) -> None:
    """The curve carries the receipt of the frame."""
    assert Receipt.of(retention.average_curve(cohorts).attrs) == Receipt.of(cohorts.attrs)
