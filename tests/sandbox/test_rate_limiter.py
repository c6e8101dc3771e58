"""The rate limits of the metrics service (Wire 2.3, Rate limits)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import pytest

from gamelens.errors import RateLimited
from gamelens.sandbox.http.rate_limiter import NodeLimiters, RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.state.clock import Clock
from support.app_requests import send
from support.game_events import NOW
from support.sandbox_stage import Stage

KEY = {"X-API-Key": "key-of-acme"}


class ManualClock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class StillClock(Clock):
    """A clock of a sandbox on which no time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.freeze(NOW)

    def monotonic_s(self) -> float:
        return 100.0


def try_request(limiter: NodeLimiters, organisation: str = "acme") -> float:
    """Take a permit once, and return 0 or the seconds to wait for one."""
    try:
        with limiter.permit(organisation):
            return 0.0
    except RateLimited as error:
        return error.retry_after or 0.0


def test_five_requests_fit_into_a_second() -> None:
    """With a rate of 5, the sixth request within a second is refused (Wire 2.3, Rate limits)."""
    limiter = NodeLimiters(RateLimits(5, 5), clock=ManualClock())
    assert [try_request(limiter) > 0 for _ in range(7)] == [False] * 5 + [True] * 2


def test_a_request_fits_again_a_second_after_the_oldest() -> None:
    """The rate is for any rolling second: a permit is free 1 s after the oldest.

    Wire 2.3, Rate limits.
    """
    clock = ManualClock()
    limiter = NodeLimiters(RateLimits(2, 5), clock=clock)
    assert try_request(limiter) == 0
    clock.now += 0.75
    assert try_request(limiter) == 0
    assert try_request(limiter) == pytest.approx(0.25)
    clock.now += 0.1875
    assert try_request(limiter) == pytest.approx(0.0625)
    clock.now += 0.0625
    assert try_request(limiter) == 0
    assert try_request(limiter) == pytest.approx(0.75)


def test_a_refused_request_takes_no_permit() -> None:
    """Refused requests do not count, so that eager clients are served in the end.

    Wire 2.3, Rate limits.
    """
    clock = ManualClock()
    limiter = NodeLimiters(RateLimits(1, 5), clock=clock)
    refusals = [try_request(limiter) for _ in range(10)]
    clock.now += 1
    assert refusals[1:] == [1.0] * 9
    assert try_request(limiter) == 0


def test_five_requests_may_be_under_way() -> None:
    """A sixth simultaneous request is refused until one of the five has ended.

    Wire 2.3, Rate limits.
    """
    limiter = NodeLimiters(RateLimits(100, 5), clock=ManualClock())
    with ExitStack() as under_way:
        for _ in range(5):
            under_way.enter_context(limiter.permit("acme"))
        assert try_request(limiter) > 0
    assert try_request(limiter) == 0


def test_a_request_that_fails_returns_its_permit() -> None:
    """A request that raises an exception frees its simultaneous permit.

    Wire 2.3, Rate limits.
    """
    limiter = NodeLimiters(RateLimits(100, 1), clock=ManualClock())
    with pytest.raises(ZeroDivisionError), limiter.permit("acme"):
        _ = 1 / 0
    assert try_request(limiter) == 0


def test_organisations_have_separate_limits() -> None:
    """A request of one organisation does not count for another (Wire 2.3, Rate limits)."""
    limiter = NodeLimiters(RateLimits(1, 1), clock=ManualClock())
    with limiter.permit("acme"):
        assert try_request(limiter, "rival") == 0


def test_each_node_limits_alone() -> None:
    """Three nodes with a rate of 2 serve 6 requests in a second (Wire 2.3, Rate limits)."""
    turns = cycle([0, 1, 2])
    nodes = NodeLimiters(RateLimits(2, 5), nodes=3, random=lambda _: next(turns), clock=ManualClock())
    assert [try_request(nodes) > 0 for _ in range(9)] == [False] * 6 + [True] * 3


def test_in_the_worst_case_all_requests_reach_one_node() -> None:
    """If all requests reach one node, only its limit is available (Wire 2.3, Rate limits)."""
    nodes = NodeLimiters(RateLimits(2, 5), nodes=3, random=lambda _: 1, clock=ManualClock())
    assert [try_request(nodes) > 0 for _ in range(3)] == [False, False, True]


def test_a_permit_is_returned_to_its_own_node() -> None:
    """A simultaneous request that ends frees a permit on the node that served it.

    Wire 2.3, Rate limits.
    """
    turns = iter([0, 1, 0, 1, 1])
    nodes = NodeLimiters(RateLimits(100, 1), nodes=2, random=lambda _: next(turns), clock=ManualClock())
    with nodes.permit("acme"):
        with nodes.permit("acme"):
            assert [try_request(nodes), try_request(nodes)] == [1.0, 1.0]
        assert try_request(nodes) == 0


def test_requests_are_spread_over_the_nodes() -> None:
    """Of many requests each of 4 nodes serves its rate of 5 (Wire 2.3, Rate limits)."""
    nodes = NodeLimiters(RateLimits(5, 5), nodes=4, clock=ManualClock())
    assert sum(try_request(nodes) == 0 for _ in range(400)) == 20


def test_a_sandbox_of_several_nodes_serves_more(make_stage: Callable[..., Stage]) -> None:
    """A sandbox with `--nodes 3` serves more requests than the rate of one node.

    Wire 2.3, Rate limits.
    """
    stage = make_stage(rate=2, nodes=3)
    answers = [stage.get("dimensions").status_code for _ in range(60)]
    assert answers.count(200) > 2
    assert set(answers) == {200, 429}


@pytest.fixture
def limited_stage(stage: Stage) -> Stage:
    """Return a sandbox with the limits of the real service, whose rate is on a clock that stands still."""
    app = MetricsApp(
        stage.sandbox.tenants,
        stage.sandbox.lake,
        stage.sandbox.reader,
        StillClock(),
        limits=RateLimits(5, 5),
    )
    stage.metrics_app = app.app()
    return stage


def test_too_many_requests_are_429_and_say_when(limited_stage: Stage) -> None:
    """The sixth request in a second gets 429 with Retry-After (Wire 2.3, Rate limits)."""
    answers = [limited_stage.get("dimensions") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert answers[-1].json()["error"] == "too_many_requests"


def test_every_endpoint_but_one_shares_the_limit(limited_stage: Stage) -> None:
    """All paths but the list of metrics share one limit, refused queries included.

    Wire 2.3, Rate limits.
    """
    answers = [
        limited_stage.get(path, interval="2026-11-20/P1D") for path in ("interval", "studios", "games", "dimensions")
    ]
    answers += [limited_stage.ask("nonsense"), limited_stage.get("dimensions")]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 422, 429]


def test_the_list_of_metrics_is_not_limited_at_five(limited_stage: Stage) -> None:
    """The list of metrics has a limit of its own, beyond 30 requests a second.

    Wire 2.3, Rate limits.
    """
    assert {limited_stage.get("metrics").status_code for _ in range(30)} == {200}
    assert limited_stage.get("dimensions").status_code == 200


def test_an_unknown_key_uses_no_limit(limited_stage: Stage) -> None:
    """Requests with an unknown key do not count for any organisation (Wire 2.3, Rate limits)."""
    for _ in range(10):
        limited_stage.get("dimensions", api_key="x")
    assert limited_stage.get("dimensions").status_code == 200


def test_requests_under_way_are_counted(make_stage: Callable[..., Stage]) -> None:
    """With one simultaneous request allowed, the second of two gets 429.

    Wire 2.3, Rate limits.
    """
    stage = make_stage(concurrency=1)

    async def ask_twice() -> list[Any]:
        path = "/metrics/v1/games?interval=2026-11-20/P1D"
        return await asyncio.gather(*(send(stage.metrics_app, "GET", path, headers=KEY) for _ in range(2)))

    answers = asyncio.run(ask_twice())
    assert sorted(answer.status_code for answer in answers) == [200, 429]
    assert stage.get("games", interval="2026-11-20/P1D").status_code == 200
