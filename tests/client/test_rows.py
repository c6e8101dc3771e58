"""Answers put together: pieces of one bucket added, metrics side by side."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from gamelens.catalog import METRICS
from gamelens.client.rows import add_up, join, shared_fields
from gamelens.wire.results import Rows

DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)


def money(count: int, cents: float, **dimensions: Any) -> dict[str, Any]:
    mean = cents / 100 / count if count else None
    return {**dimensions, "event_count": count, "mean": mean, "sum": cents / 100, "sum_cents": cents}


def added(*pieces: list[Rows], dimensions: tuple[str, ...] = ("platform",)) -> list[Rows]:
    return add_up(METRICS["revenue"], dimensions, pieces, DAY)


def test_counts_and_money_are_summed_and_the_mean_is_made_again() -> None:
    (bucket,) = added([Rows(DAY, [money(1, 100)])], [Rows(NEXT, [money(3, 700)])], dimensions=())
    assert bucket == Rows(DAY, [{"event_count": 4, "mean": 2.0, "sum": 8.0, "sum_cents": 800.0}])


def test_the_mean_of_nothing_is_null() -> None:
    (bucket,) = added([Rows(DAY, [money(0, 0)])], dimensions=())
    assert bucket.rows[0]["mean"] is None


def test_money_is_summed_without_losing_digits() -> None:
    pieces = [[Rows(DAY, [money(1, 10.0)])] for _ in range(10)]
    assert added(*pieces, dimensions=())[0].rows[0]["sum"] == 1.0


def test_values_are_added_apart_and_the_largest_come_first() -> None:
    """Metrics, Result shapes 1."""
    first = [Rows(DAY, [money(1, 300, platform="ios"), money(1, 100, platform="android")])]
    second = [Rows(NEXT, [money(1, 900, platform="android")])]
    (bucket,) = added(first, second)
    assert [(row["platform"], row["sum_cents"]) for row in bucket.rows] == [("android", 1000.0), ("ios", 300.0)]


def test_null_is_a_value_and_comes_last_among_equals() -> None:
    (bucket,) = added([Rows(DAY, [money(1, 5, platform=None), money(1, 5, platform="a")])])
    assert [row["platform"] for row in bucket.rows] == ["a", None]


def test_metrics_meet_on_timestamp_and_dimensions() -> None:
    users = [Rows(DAY, [{"platform": "ios", "user_unique": 7}])]
    installs = [Rows(DAY, [{"platform": "ios", "new_users": 2}])]
    (bucket,) = join(("platform",), [("user_unique", users), ("new_users", installs)], frozenset())
    assert bucket.rows == [{"platform": "ios", "user_unique": 7, "new_users": 2}]


def test_a_row_only_one_metric_has_is_kept() -> None:
    users = [Rows(DAY, [{"platform": "ios", "user_unique": 7}])]
    installs = [Rows(NEXT, [{"platform": None, "new_users": 2}])]
    joined = join(("platform",), [("user_unique", users), ("new_users", installs)], frozenset())
    assert [bucket.rows for bucket in joined] == [
        [{"platform": "ios", "user_unique": 7}],
        [{"platform": None, "new_users": 2}],
    ]


def test_a_field_of_two_metrics_is_prefixed_and_others_are_not() -> None:
    shared = shared_fields([["sum", "event_count"], ["sum", "user_unique"]])
    (bucket,) = join(
        (), [("revenue", [Rows(DAY, [{"sum": 1.0}])]), ("arpu", [Rows(DAY, [{"user_unique": 3}])])], shared
    )
    assert bucket.rows == [{"revenue_sum": 1.0, "user_unique": 3}]
