"""Which requests answer a question (Metrics, Query object and Query type exceptions)."""

from __future__ import annotations

from typing import Any

import pytest

from gamelens.client.planning import Part, Question, plan
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, Split, Timeseries

WEEK = Interval.parse("2026-11-01/P1W")
QUARTER = Interval.parse("2026-08-22/P90D")


def planned(*metrics: str, over: Interval = WEEK, max_days: int | None = None, **question: Any) -> list[Part]:
    return plan(Question(metrics=metrics, **question), over, max_days=max_days)


def part(*metrics: str, **question: Any) -> Part:
    return planned(*metrics, **question)[0]


def test_no_dimension_is_a_timeseries() -> None:
    """Metrics, Query object."""
    assert part("revenue").queries[0].query == Timeseries()


def test_one_dimension_is_a_group_of_all_values() -> None:
    """Metrics, Query object; public-facts 3.3: limit 1 to 30000, default 100."""
    assert part("revenue", by=("platform",)).queries[0].query == Group("platform", 30_000)


def test_top_is_the_limit() -> None:
    assert part("revenue", by=("platform",), top=20).queries[0].query == Group("platform", 20)


def test_two_dimensions_are_a_split() -> None:
    query = part("revenue", by=("platform", "country_code")).queries[0].query
    assert query == Split(("platform", "country_code"))


def test_the_game_is_asked_by_its_id() -> None:
    assert part("revenue", by=("game",)).queries[0].query == Group("game_id", 30_000)


def test_three_dimensions_are_refused() -> None:
    with pytest.raises(BadQuery, match="at most two dimensions"):
        part("revenue", by=("platform", "country_code", "build"))


@pytest.mark.parametrize("by", [(), ("platform", "build")])
def test_top_needs_exactly_one_dimension(by: tuple[str, ...]) -> None:
    with pytest.raises(BadQuery, match="needs exactly one dimension"):
        part("revenue", by=by, top=5)


@pytest.mark.parametrize("top", [0, 30_001])
def test_top_stays_within_what_the_service_takes(top: int) -> None:
    """public-facts 3.3."""
    with pytest.raises(BadQuery, match="1 to 30000"):
        part("revenue", by=("platform",), top=top)


def test_a_dimension_twice_is_refused() -> None:
    with pytest.raises(BadQuery, match="must not name a dimension twice"):
        part("revenue", by=("game", "game_id"))


def test_a_granularity_that_is_none_is_refused() -> None:
    with pytest.raises(BadQuery, match="every"):
        part("revenue", every="hour")


def test_an_unknown_dimension_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadQuery) as bad:
        part("revenue", by=("platfrom",))
    assert bad.value.did_you_mean == "platform"


def test_a_per_game_metric_is_asked_by_game() -> None:
    """Metrics, Query type exceptions 3."""
    query = part("conversion", by=("platform",)).queries[0]
    assert (query.split_by, query.query) == ("platform", None)


def test_a_per_game_metric_without_a_dimension_is_split_by_the_game() -> None:
    """Metrics, Query type exceptions 3."""
    assert part("conversion").queries[0].split_by == "game_id"


def test_a_per_game_metric_carries_the_game_beside_the_dimension() -> None:
    assert part("conversion", by=("platform",)).dimensions == ("platform", "game_id")


def test_a_per_game_metric_takes_one_dimension_besides_the_game() -> None:
    with pytest.raises(BadQuery, match="exists per game"):
        part("conversion", by=("platform", "build"))


def test_metrics_asked_with_a_per_game_metric_come_by_game_too() -> None:
    revenue = planned("conversion", "revenue", by=("platform",))[1]
    assert revenue.queries[0].query == Split(("platform", "game_id"))


def test_top_does_not_apply_to_a_by_game_answer() -> None:
    with pytest.raises(BadQuery, match="top"):
        part("conversion", by=("platform",), top=5)


def test_since_days_ago_goes_to_the_metric_that_takes_it() -> None:
    users, returning = planned("user_unique", "returning_users", since_days_ago=7)
    assert (users.queries[0].since_days_ago, returning.queries[0].since_days_ago) == (None, 7)


def test_since_days_ago_that_nobody_takes_is_refused() -> None:
    with pytest.raises(BadQuery, match="since_days_ago"):
        part("revenue", since_days_ago=7)


def test_ninety_days_are_three_requests() -> None:
    """public-facts 3.3: at most 31 days at day granularity."""
    assert len(part("user_unique", over=QUARTER).queries) == 3


def test_all_is_one_request_however_long() -> None:
    assert len(part("user_unique", over=QUARTER, every="all").queries) == 1


def test_unique_players_over_pieces_are_refused() -> None:
    with pytest.raises(NotAdditive, match="user_unique cannot be added up"):
        part("user_unique", over=QUARTER, every="all", max_days=31)


def test_money_over_pieces_is_added_up() -> None:
    assert part("revenue", over=QUARTER, every="all", max_days=31).adds_up


def test_the_largest_of_pieces_are_found_among_all() -> None:
    """The top of a whole is not among the tops of its parts, so every value is asked for."""
    query = part("revenue", over=QUARTER, every="all", max_days=31, by=("platform",), top=3).queries[0].query
    assert query == Group("platform", 30_000)


def test_a_metric_twice_is_refused() -> None:
    with pytest.raises(BadQuery, match="none twice"):
        part("revenue", "revenue")
