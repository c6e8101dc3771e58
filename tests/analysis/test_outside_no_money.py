"""Amounts are asked for among columns that may be money: no ratings, followers, times or ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame


@pytest.mark.parametrize(
    "header",
    [
        "Rating",
        "Avg score",
        "Stickiness (DAU/MAU)",
        "Follower",
        "Session minutes",
        "평점",
        "決済件数",
        "수수료율",
        "Dauer",
    ],
)
def test_numbers_that_are_no_money_are_not_offered(tmp_path: Path, header: str) -> None:
    rows = [f"2026-10-0{day}\tA\t{day * 120.25}\t{day * 111.5}" for day in range(1, 6)]
    path = written(tmp_path / "list.tsv", f"Date\tName\t{header}\tPaid out", *rows)
    with pytest.raises(BadQuery, match="amount is needed") as refused:
        outside_data.in_dollars(path)
    assert refused.value.allowed in (["Paid out"], ("Paid out",))


def test_ranks_by_country_are_no_amounts(tmp_path: Path) -> None:
    rows = [f"Game {place}\t{place * 41}\t{place * 57}" for place in range(1, 9)]
    path = written(tmp_path / "chart.tsv", "Top Grossing, Puzzle, rank by country", "", "Game\tUS\tJP", *rows)
    with pytest.raises(BadQuery, match="none may be money either"):
        outside_data.in_dollars(path)


def test_a_mean_of_ratings_beside_currencies_stays(tmp_path: Path) -> None:
    rows = ["2026-10-01,EUR,4.5,10", "2026-10-01,USD,3.5,20"]
    path = written(tmp_path / "games.csv", "Date,Currency,Rating,Cost", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[5])
    assert gl.join(frame, path, columns=["Rating"], how={"Rating": "mean"}).frame["Rating"].tolist() == [4.0]
