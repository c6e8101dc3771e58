"""The period that a page compares its own with: equally long, right before it, or none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from gamelens.analysis import changes
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.notebook import key_numbers, query_before
from gamelens.receipts import Receipt
from support.game_events import NOW
from support.sandbox_stage import Stage
from support.watched_service import quick, sale, sell

BEGAN = 40
"""Days before today of the first purchase; each day has one, of as many cents as it is days ago."""


@pytest.fixture(scope="module")
def lens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a service with a purchase a day."""
    yield from service_since(BEGAN, tmp_path_factory.mktemp("periods"))


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a service that has been there since July."""
    yield from service_since(142, tmp_path_factory.mktemp("months"))


def service_since(began: int, folder: Path) -> Iterator[Client]:
    """Yield a client of a service with a purchase on each of the last *began* days."""
    stage = Stage(folder / "state")
    days = [NOW - timedelta(days=ago) for ago in range(1, began + 1)]
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


@pytest.mark.parametrize(
    ("over", "before"),
    [
        ("October 2026", "2026-09-01T00:00Z/2026-10-01T00:00Z"),
        ("2026-10", "2026-09-01T00:00Z/2026-10-01T00:00Z"),
        ("last month", "2026-09-01T00:00Z/2026-10-01T00:00Z"),
        (("2026-10-01", "2026-10-31"), "2026-09-01T00:00Z/2026-10-01T00:00Z"),
        ("last 2 complete months", "2026-07-01T00:00Z/2026-09-01T00:00Z"),
        (("2026-10-02", "2026-10-31"), "2026-09-02T00:00Z/2026-10-02T00:00Z"),
        ("November 2026", "2026-10-12T00:00Z/2026-10-31T10:00Z"),
    ],
)
def test_months_are_compared_with_the_months_before(longer: Client, over: str, before: str) -> None:
    """Of unequal length; a part of a month, and one that is not over, with as many days."""
    frame = query_before(longer, "revenue", over=over, when_unavailable="clip")
    assert frame is not None
    assert str(Receipt.of(frame.attrs).interval) == before


def test_a_month_and_the_one_before_are_compared_in_words(longer: Client) -> None:
    """The page says how much longer one is; sums of unequal months are not called a change."""
    before, after = query_before(longer, "dau", over="October 2026"), longer.query("dau", over="October 2026")
    assert before is not None
    shown = str(key_numbers(after, [], before=before).data).strip()
    assert shown == (
        "1 Oct 2026 to 31 Oct 2026, 31 days. Changes are from 1 Sep 2026 to 30 Sep 2026, 30 days, 1 day fewer."
    )
    assert changes.change(after, before)["difference"].tolist() == [0.0]  # of one player: too few for a percentage
    sums = (longer.query("revenue", over=month) for month in ("2026-10", "2026-09"))
    with pytest.raises(BadQuery, match=r"revenue.*are sums, which months of unequal length cannot compare"):
        changes.change(*sums)


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
