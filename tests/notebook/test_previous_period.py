"""The period that a page compares its own with: equally long, right before it, or none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from gamelens.client.sync_client import Client
from gamelens.notebook import query_before
from gamelens.receipts import Receipt
from support.game_events import NOW
from support.sandbox_stage import Stage
from support.watched_service import quick, sale, sell

BEGAN = 40
"""Days before today of the first purchase; each day has one, of as many cents as it is days ago."""


@pytest.fixture(scope="module")
def lens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a service with a purchase a day."""
    stage = Stage(tmp_path_factory.mktemp("periods") / "state")
    days = [NOW - timedelta(days=ago) for ago in range(1, BEGAN + 1)]
    sell(stage, *(sale(f"{day:%Y-%m-%d}", ago, user_id=f"player {ago}") for ago, day in enumerate(days, 1)))
    yield quick(stage.metrics_app)
    stage.sandbox.close()


@pytest.mark.parametrize(
    ("over", "before"),
    [
        ("last 7 complete days", "2026-11-06T00:00Z/2026-11-13T00:00Z"),
        ("yesterday", "2026-11-18T00:00Z/2026-11-19T00:00Z"),
        ("last 2 complete weeks", "2026-10-19T00:00Z/2026-11-02T00:00Z"),
        ("last 14 complete days", "2026-10-23T00:00Z/2026-11-06T00:00Z"),
        (("2026-11-01", "2026-11-10"), "2026-10-22T00:00Z/2026-11-01T00:00Z"),
        ("2026-11-10/P2D", "2026-11-08T00:00Z/2026-11-10T00:00Z"),
        ("today", "2026-11-19T00:00Z/2026-11-19T10:00Z"),
        ("last 7 days", "2026-11-07T00:00Z/2026-11-13T10:00Z"),
    ],
)
def test_the_period_before_follows_from_the_period(lens: Client, over: str, before: str) -> None:
    """It is as long, ends where the period begins, and a day under way is compared with the same hours."""
    frame = query_before(lens, "revenue", over=over)
    assert frame is not None
    assert str(Receipt.of(frame.attrs).interval) == before


def test_its_numbers_are_those_of_its_days(lens: Client) -> None:
    """The days 8 to 14 ago brought 8 to 14 cents, whatever else is asked for."""
    frame = query_before(lens, "revenue", over="last 7 complete days", by="game", games=["1001"])
    assert frame is not None
    assert frame["revenue"].sum() == pytest.approx(sum(range(8, 15)) / 100)


@pytest.mark.parametrize("over", ["last 28 complete days", "last 21 complete days", "last 90 complete days"])
def test_a_period_with_only_a_part_of_the_one_before_is_compared_with_nothing(lens: Client, over: str) -> None:
    """A part would look like growth. The last range is cut to what there is, which has nothing before it."""
    assert query_before(lens, "revenue", over=over, when_unavailable="clip") is None
    assert query_before(lens, "revenue", over="last 20 complete days") is not None
