"""What a failed request says, and which others it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gamelens.client.async_client import AsyncClient
from gamelens.errors import AuthError, BadQuery, PartialResult, RateLimited
from support.served_metrics import METRICS, Served, served
from support.watched_service import Sent, Watch, World, assert_equal, quick

pytestmark = pytest.mark.slow

OVER = "2026-10-01/2026-10-31"
PIECES = 6
"""Requests for each metric with max_days=5."""
METRIC_PAIR = ["revenue", "user_unique"]
FAILED = ("2026-10-06T00:00Z", "2026-10-16T00:00Z")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a sandbox on a socket, behind the rate limiter."""
    with served(tmp_path_factory.mktemp("served") / "state") as worlds:
        yield worlds


def in_failed_piece(sent: Sent) -> bool:
    """Return whether *sent* is for one of the pieces `FAILED`."""
    return sent.body is not None and sent.body["interval"].split("/")[0] in FAILED


def failed(watch: Watch, fails: Callable[[Sent], bool | int], metric: str | list[str], by: list[str]) -> PartialResult:
    """Return the error of a query while the requests that match *fails* fail."""
    watch.fails = fails
    with pytest.raises(PartialResult) as partial:
        quick(watch, max_days=5).query(metric, by=by, over=OVER)
    return partial.value


def test_the_message_names_the_missing_pieces(world: World) -> None:
    """Metric, interval, scope and error of three pieces, and how many there are."""
    fan_out = failed(world.watch(), in_failed_piece, "event_count", ["platform", "build", "ab_id"])
    first = fan_out.gaps[0]
    (name, value), *_ = first["scope"].items()
    assert f"{len(fan_out.gaps)} pieces are missing: event_count in {first['interval']} ({name} = {value}); " in str(
        fan_out
    )
    assert f"; and {len(fan_out.gaps) - 3} more, see .gaps: the service answered 501: not today. " in str(fan_out)


def test_a_refusal_costs_the_requests_of_its_metric_alone(world: World) -> None:
    """Of two metrics the one that the service refuses (422) is missing, the other is whole."""
    watch = world.watch()
    whole = quick(watch).query("user_unique", by="platform", over=OVER)
    partial = failed(watch, lambda sent: 422 if sent.name == "revenue" and sent.body else 0, METRIC_PAIR, ["platform"])
    assert isinstance(partial.__cause__, BadQuery)
    assert {gap["metric"] for gap in partial.gaps} == {"revenue"}
    assert len(partial.gaps) == PIECES
    came = partial.frame[partial.frame["user_unique"] > 0].reset_index(drop=True)
    assert_equal(came[["timestamp", "platform", "user_unique"]], whole)


def test_a_refusal_of_everything_is_the_error(world: World) -> None:
    """Where the service refuses all requests (422), the error is that of the refusal."""
    watch = world.watch()
    watch.fails = lambda sent: 422 if sent.body else 0
    with pytest.raises(BadQuery):
        quick(watch, max_days=5).query(METRIC_PAIR, by="platform", over=OVER)


DAYS: dict[str, Any] = {"metric": "event_count", "by": "platform", "over": "last 30 complete days"}
AT_ONCE = 5
COMMON: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "401": ({"status": 401}, AuthError),
    "422": ({"status": 422}, BadQuery),
    "429": ({"status": 429, "retry_after": 600}, RateLimited),
}


@pytest.mark.parametrize(("fault", "error"), COMMON.values(), ids=COMMON)
def test_an_error_that_would_meet_all_requests_stops_them(
    services: Served, fault: dict[str, Any], error: type[Exception]
) -> None:
    """With 30 requests to send, only those under way at the first failure arrive."""
    world = services.world()
    world.fail(METRICS, **fault)
    with world.client(max_days=1) as lens, pytest.raises(error):
        lens.query(**DAYS)
    assert 1 <= world.arrived("event_count") <= AT_ONCE


def test_rows_that_came_before_such_an_error_are_kept(services: Served) -> None:
    """A key that is refused halfway raises `PartialResult`, and what was not sent says so."""
    world = services.world()
    world.last(AT_ONCE, METRICS, status=401)
    with world.client(max_days=1) as lens, pytest.raises(PartialResult) as partial:
        lens.query(**DAYS)
    assert isinstance(partial.value.__cause__, AuthError)
    assert len(partial.value.gaps) == 30 - AT_ONCE
    assert "not requested, since another request failed: " in partial.value.gaps[-1]["error"]
    assert partial.value.frame["timestamp"].nunique() == AT_ONCE


def test_the_async_client_does_the_same(services: Served, tmp_path: Path) -> None:
    """Of six requests one fails, the others are sent, and the same query sends the one."""
    world = services.world()

    async def main() -> tuple[PartialResult, pd.DataFrame, int]:
        async with AsyncClient(**world.settings(max_days=1, cache=tmp_path)) as lens:
            world.fail(METRICS, status=501, times=1)
            with pytest.raises(PartialResult) as partial:
                await lens.query("event_count", over="last 6 complete days")
            world.arrivals.clear()
            again = await lens.query("event_count", over="last 6 complete days")
            return partial.value, again, world.arrived("event_count")

    partial, again, requests = asyncio.run(main())
    assert (len(partial.gaps), len(partial.frame), len(again), requests) == (1, 5, 6, 1)
