"""The budget: 5 starts in any second and 5 at a time (Metrics, Limits)."""

from __future__ import annotations

import asyncio

import pytest

from gamelens.client.pacing import COLD_LAG_S, LAG_S, MARGIN_S, Budget, Route, shared_budget


class FakeTime:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def starts(number: int, route: Route = "other") -> list[float]:
    """When *number* requests that take no time start."""
    time = FakeTime()
    begun: list[float] = []

    async def one(budget: Budget) -> None:
        async with budget.place(route):
            begun.append(time())

    async def main() -> None:
        budget = Budget(clock=time, sleep=time.sleep)
        await asyncio.gather(*(one(budget) for _ in range(number)))

    asyncio.run(main())
    return begun


def test_five_requests_start_at_once() -> None:
    """Metrics, Limits: at least 5 requests per second."""
    assert starts(5) == [0.0] * 5


def test_no_rolling_second_sees_more_than_five_starts() -> None:
    """Metrics, Limits."""
    begun = starts(60)
    assert all(later - earlier >= 1.0 + MARGIN_S - 1e-9 for earlier, later in zip(begun, begun[5:], strict=False))


def test_sixty_requests_take_no_longer_than_the_limit_forces() -> None:
    """Metrics, Limits: 60 / 5 - 1 = 11 s, and the margin."""
    assert starts(60)[-1] < 11 * 1.08


def test_the_metric_list_has_a_budget_of_its_own() -> None:
    """Metrics, Limits: 1000 requests per second."""
    assert starts(1000, "metric list")[-1] == 0.0


def test_a_place_counts_from_when_its_request_was_sent() -> None:
    """Metrics, Limits: the service counts arrivals, so waiting for a connection frees no place."""
    time = FakeTime()

    async def slow_to_connect(budget: Budget) -> None:
        async with budget.place() as place:
            time.now = 7.0
            place.sent()

    async def main() -> float:
        budget = Budget(clock=time, sleep=time.sleep)
        for _ in range(5):
            await slow_to_connect(budget)
        async with budget.place():
            return time()

    assert asyncio.run(main()) == 7.0 + 1.0 + MARGIN_S


def test_a_slow_answer_does_not_hold_up_the_next_start() -> None:
    """Metrics, Limits: 5 at a time is another limit than 5 in a second."""
    time = FakeTime()

    async def main() -> float:
        budget = Budget(at_once=11, clock=time, sleep=time.sleep)
        for _ in range(10):
            (await budget.place().__aenter__()).sent()
        began = time()
        async with budget.place():
            return time() - began

    assert asyncio.run(main()) == pytest.approx(LAG_S + 1.0 + MARGIN_S)


def test_the_first_answers_may_take_longer_to_be_counted() -> None:
    """A service that is still warming up counts late what was sent first."""
    time = FakeTime()

    async def main() -> float:
        budget = Budget(at_once=6, clock=time, sleep=time.sleep)
        for _ in range(5):
            (await budget.place().__aenter__()).sent()
        async with budget.place():
            return time()

    assert asyncio.run(main()) == pytest.approx(COLD_LAG_S + 1.0 + MARGIN_S)


def test_no_more_than_five_are_under_way() -> None:
    """Metrics, Limits: simultaneous requests, at least 5."""
    most = [0, 0]

    async def one(budget: Budget) -> None:
        async with budget.place("metric list"):
            most[0] += 1
            most[1] = max(most)
            await asyncio.sleep(0.001)
            most[0] -= 1

    async def main() -> None:
        budget = Budget()
        await asyncio.gather(*(one(budget) for _ in range(30)))

    asyncio.run(main())
    assert most[1] == 5


def test_a_cancelled_waiter_leaves_its_place_to_the_next() -> None:
    async def main() -> str:
        budget = Budget(at_once=1)
        async with budget.place():
            waiter = asyncio.create_task(budget.place().__aenter__())
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)
        async with asyncio.timeout(1), budget.place():
            return "got it"

    assert asyncio.run(main()) == "got it"


def test_clients_with_the_same_key_and_address_share_one_budget() -> None:
    assert shared_budget("https://a.example", "f") is shared_budget("https://a.example", "f")


def test_another_key_has_another_budget() -> None:
    assert shared_budget("https://a.example", "f") is not shared_budget("https://a.example", "g")
