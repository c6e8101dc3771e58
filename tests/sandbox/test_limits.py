"""Metrics, Limits: how often, how many at a time, and what is heard past that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import pytest

from conftest import Stage
from gamelens.errors import RateLimited
from gamelens.sandbox.http.rate_limiter import NodeLimiters, OrganisationLimiter, RateLimits
from sandbox.conftest import send

KEY = {"X-API-Key": "key-of-acme"}


class Hand:
    """A clock set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def asking(limiter: OrganisationLimiter | NodeLimiters, organisation: str = "acme") -> float:
    """Ask once; 0, or the seconds to wait."""
    try:
        with limiter.place(organisation):
            return 0.0
    except RateLimited as error:
        return error.retry_after or 0.0


def test_five_requests_fit_into_a_second() -> None:
    """Metrics, Limits: request rate."""
    limiter = OrganisationLimiter(RateLimits(5, 5), clock=Hand())
    assert [asking(limiter) > 0 for _ in range(7)] == [False] * 5 + [True] * 2


def test_a_request_fits_again_a_second_after_the_oldest() -> None:
    """Metrics, Limits: any rolling second."""
    clock = Hand()
    limiter = OrganisationLimiter(RateLimits(2, 5), clock=clock)
    assert asking(limiter) == 0
    clock.now += 0.75
    assert asking(limiter) == 0
    assert asking(limiter) == pytest.approx(0.25)
    clock.now += 0.25
    assert asking(limiter) == 0
    assert asking(limiter) == pytest.approx(0.75)


def test_a_refused_request_takes_no_place() -> None:
    """Otherwise a client that asks again at once would never be served."""
    clock = Hand()
    limiter = OrganisationLimiter(RateLimits(1, 5), clock=clock)
    refusals = [asking(limiter) for _ in range(10)]
    clock.now += 1
    assert refusals[1:] == [1.0] * 9
    assert asking(limiter) == 0


def test_five_requests_may_be_under_way() -> None:
    """Metrics, Limits: simultaneous requests."""
    limiter = OrganisationLimiter(RateLimits(100, 5), clock=Hand())
    with ExitStack() as under_way:
        for _ in range(5):
            under_way.enter_context(limiter.place("acme"))
        assert asking(limiter) > 0
    assert asking(limiter) == 0


def test_a_request_that_fails_gives_its_place_back() -> None:
    limiter = OrganisationLimiter(RateLimits(100, 1), clock=Hand())
    with pytest.raises(ZeroDivisionError), limiter.place("acme"):
        _ = 1 / 0
    assert asking(limiter) == 0


def test_organisations_do_not_wait_for_one_another() -> None:
    """Metrics, Limits: per organisation."""
    limiter = OrganisationLimiter(RateLimits(1, 1), clock=Hand())
    with limiter.place("acme"):
        assert asking(limiter, "rival") == 0


def test_each_node_limits_alone() -> None:
    """Metrics, Limits 1: several nodes serve requests."""
    turns = cycle([0, 1, 2])
    nodes = NodeLimiters(RateLimits(2, 5), nodes=3, random=lambda _: next(turns), clock=Hand())
    assert [asking(nodes) > 0 for _ in range(9)] == [False] * 6 + [True] * 3


def test_in_the_worst_case_all_requests_reach_one_node() -> None:
    """Metrics, Limits 1: therefore the limits are guaranteed minimums."""
    nodes = NodeLimiters(RateLimits(2, 5), nodes=3, random=lambda _: 1, clock=Hand())
    assert [asking(nodes) > 0 for _ in range(3)] == [False, False, True]


def test_a_place_is_given_back_to_its_own_node() -> None:
    """Metrics, Limits: simultaneous requests."""
    turns = iter([0, 1, 0, 1, 1])
    nodes = NodeLimiters(RateLimits(100, 1), nodes=2, random=lambda _: next(turns), clock=Hand())
    with nodes.place("acme"):
        with nodes.place("acme"):
            assert [asking(nodes), asking(nodes)] == [1.0, 1.0]
        assert asking(nodes) == 0


def test_requests_are_spread_over_the_nodes() -> None:
    """Metrics, Limits 1: of many requests, every node serves its share."""
    nodes = NodeLimiters(RateLimits(5, 5), nodes=4, clock=Hand())
    assert sum(asking(nodes) == 0 for _ in range(400)) == 20


def test_a_sandbox_of_several_nodes_serves_more(make_stage: Callable[..., Stage]) -> None:
    """contract, Commands: --nodes."""
    stage = make_stage(rate=2, nodes=3)
    answers = [stage.get("dimensions").status_code for _ in range(60)]
    assert answers.count(200) > 2
    assert set(answers) == {200, 429}


@pytest.fixture
def strict(make_stage: Callable[..., Stage]) -> Stage:
    """A sandbox with the limits of the specification."""
    return make_stage(rate=5, at_once=5)


def test_too_many_requests_are_429_and_say_when(strict: Stage) -> None:
    """Metrics, Errors 1."""
    answers = [strict.get("dimensions") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert answers[-1].json()["error"] == "too_many_requests"


def test_every_endpoint_but_one_shares_the_limit(strict: Stage) -> None:
    """Metrics, Limits: the majority of endpoints."""
    answers = [strict.get(path, interval="2026-11-20/P1D") for path in ("interval", "studios", "games", "dimensions")]
    answers += [strict.ask("nonsense"), strict.get("dimensions")]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 422, 429]


def test_the_list_of_metrics_is_not_limited_at_five(strict: Stage) -> None:
    """Metrics, Limits: list metrics endpoint."""
    assert {strict.get("metrics").status_code for _ in range(30)} == {200}
    assert strict.get("dimensions").status_code == 200


def test_a_stranger_uses_up_nobody_s_limit(strict: Stage) -> None:
    """Metrics, Limits: per organisation."""
    for _ in range(10):
        strict.get("dimensions", api_key="x")
    assert strict.get("dimensions").status_code == 200


def test_requests_under_way_are_counted(make_stage: Callable[..., Stage]) -> None:
    """Metrics, Limits: simultaneous requests."""
    stage = make_stage(at_once=1)

    async def ask_twice() -> list[Any]:
        path = "/metrics/v1/games?interval=2026-11-20/P1D"
        return await asyncio.gather(*(send(stage.metrics_app, "GET", path, headers=KEY) for _ in range(2)))

    answers = asyncio.run(ask_twice())
    assert sorted(answer.status_code for answer in answers) == [200, 429]
    assert stage.get("games", interval="2026-11-20/P1D").status_code == 200
