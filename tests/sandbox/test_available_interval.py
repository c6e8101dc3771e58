"""The available interval and hourly processing (Wire 2.4, Available interval)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from support.game_events import NOW, event
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

EMPTY = "2026-11-20T10:00:00Z/2026-11-20T10:00:00Z"
HOUR = timedelta(hours=1)
NOW_S = int(NOW.timestamp())


@pytest.fixture
def cached(make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox that keeps the available interval for an hour, as the real service."""
    return make_stage(refresh_s=3600)


def process_hourly(stage: Stage) -> None:
    """Run the processing that the sandbox does every hour."""
    asyncio.run(stage.sandbox.runs.process())


def test_with_no_events_the_interval_is_empty(stage: Stage) -> None:
    """Without events the interval starts and ends at the last full hour.

    Wire 2.4, Available interval.
    """
    assert stage.get("interval").json() == EMPTY
    stage.process()
    assert stage.get("interval").json() == EMPTY


def test_it_starts_with_the_day_of_the_first_event(stage: Stage) -> None:
    """The interval starts with the day of the earliest event by event time.

    Wire 2.4, Available interval.
    """
    stage.submit([event(), event(client_ts=NOW_S - 3 * 86_400)])
    stage.process()
    assert stage.get("interval").json() == "2026-11-17T00:00:00Z/2026-11-20T10:00:00Z"


def test_a_late_event_moves_its_start(stage: Stage) -> None:
    """A late event moves the start of the interval back to its day.

    Wire 2.4, Available interval; Wire 4.9, Late events.
    """
    stage.submit([event()])
    stage.process()
    stage.submit([event(client_ts=NOW_S - 9 * 86_400)])
    stage.process()
    assert stage.get("interval").json().startswith("2026-11-11T00:00:00Z/")


def test_it_ends_with_the_hour_of_the_last_processing(stage: Stage) -> None:
    """The interval ends at the full hour of the last run and does not move by itself.

    Wire 2.4, Available interval.
    """
    stage.submit([event()])
    stage.process()
    stage.clock.advance(timedelta(hours=5))
    assert stage.get("interval").json().endswith("/2026-11-20T10:00:00Z")
    stage.process()
    assert stage.get("interval").json().endswith("/2026-11-20T15:00:00Z")


@pytest.mark.wide
def test_events_of_the_future_do_not_move_it(stage: Stage) -> None:
    """An event with a future time moves neither end of the interval.

    Wire 2.4, Available interval.
    """
    stage.submit([event(client_ts=NOW_S + 20 * 3600)])
    stage.process()
    assert stage.get("interval").json() == EMPTY
    stage.submit([event()])
    stage.process()
    assert stage.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T10:00:00Z"


def test_organisations_have_their_own(stage: Stage) -> None:
    """Events of one organisation do not change the interval of another.

    Wire 2.4, Available interval; Wire 2.13, Scope.
    """
    stage.submit([event()])
    stage.process()
    assert stage.get("interval", api_key="key-of-rival").json() == EMPTY


def test_the_first_call_fixes_the_answer_for_an_hour(cached: Stage) -> None:
    """The interval stays the same for an hour after the first request.

    Wire 2.4, Available interval.
    """
    cached.submit([event()])
    process_hourly(cached)
    first = cached.get("interval").json()
    cached.clock.advance(HOUR - timedelta(seconds=1))
    process_hourly(cached)
    assert cached.get("interval").json() == first


@pytest.mark.wide
def test_it_is_refreshed_an_hour_after_the_first_call(cached: Stage) -> None:
    """An hour after the first request the interval is the current one.

    Wire 2.4, Available interval.
    """
    cached.submit([event()])
    process_hourly(cached)
    cached.get("interval")
    cached.clock.advance(HOUR)
    process_hourly(cached)
    assert cached.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T11:00:00Z"


def test_each_organisation_s_hour_begins_with_its_own_call(cached: Stage) -> None:
    """The hour of an organisation starts with its own first request.

    Wire 2.4, Available interval.
    """
    cached.get("interval")
    cached.clock.advance(HOUR / 2)
    cached.get("interval", api_key="key-of-rival")
    cached.clock.advance(HOUR / 2)
    process_hourly(cached)
    assert cached.get("interval").json().endswith("/2026-11-20T11:00:00Z")
    assert cached.get("interval", api_key="key-of-rival").json().endswith("/2026-11-20T11:00:00Z")


def test_processing_on_demand_renews_it_at_once(cached: Stage) -> None:
    """After `sandbox process` the interval is the new one at once.

    Wire 2.4, Available interval; Wire 5.1, Control API.
    """
    cached.get("interval")
    cached.submit([event()])
    available = cached.process()
    assert cached.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T10:00:00Z"
    assert available["acme"] == "2026-11-20T00:00Z/2026-11-20T10:00Z"


@pytest.mark.wide
def test_hourly_processing_goes_on_after_a_failed_run(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A run that fails is logged, and the next hour is processed as usual.

    Wire 2.4, Available interval.
    """
    stage.submit([event()])
    obstacle = stage.sandbox.lake.root / "1"  # a file in place of the folder of the first version
    obstacle.write_text("")

    async def wait_until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - nothing tells when a processing has run
                await asyncio.sleep(0.02)

    async def run_two_hours() -> None:
        processing = asyncio.create_task(stage.sandbox.runs.process_hourly())
        await asyncio.sleep(0)
        stage.clock.advance(HOUR)
        await wait_until(lambda: "hourly processing is not complete" in caplog.text)
        obstacle.unlink()
        stage.clock.advance(HOUR)
        await wait_until(lambda: not stage.sandbox.summary()["failing"])
        processing.cancel()

    asyncio.run(run_two_hours())
    assert stage.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T12:00:00Z"


def test_a_clock_set_back_does_not_keep_an_answer_for_ever(cached: Stage) -> None:
    """A clock that is set back makes the kept interval invalid (Wire 5.1, Control API)."""
    cached.get("interval")
    cached.clock.freeze(NOW - timedelta(days=30))
    assert cached.get("interval").json() == "2026-10-21T10:00:00Z/2026-10-21T10:00:00Z"


def test_a_shorter_refresh_may_be_asked_for(make_stage: Callable[..., Stage]) -> None:
    """With `--refresh 60` the interval is renewed after a minute.

    Wire 2.4, Available interval.
    """
    stage = make_stage(refresh_s=60)
    stage.get("interval")
    stage.clock.advance(timedelta(hours=1))
    assert stage.get("interval").json().endswith("/2026-11-20T11:00:00Z")


def test_a_query_outside_the_interval_is_answered(stage: Stage) -> None:
    """A query about the future is answered, because only the client protects the caller.

    Wire 2.4, Available interval.
    """
    body: dict[str, Any] = {"interval": "2030-01-01/P1D", "granularity": "day", "query": {"type": "timeseries"}}
    assert stage.ask("event_count", **body).status_code == 200


@pytest.mark.wide
def test_it_never_ends_in_the_future(make_stage: Callable[..., Stage]) -> None:
    """After a run with the clock ahead and a restart on the true time it ends at the hour of that.

    Wire 2.4, Available interval.
    """
    stage = make_stage()
    stage.submit([event()])
    stage.clock.advance(timedelta(days=30))
    stage.process()
    stage.sandbox.close()
    assert make_stage().get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T10:00:00Z"


def test_it_ends_where_events_wait_that_a_run_ahead_of_time_does_not_have(make_stage: Callable[..., Stage]) -> None:
    """Events that arrived after a run whose clock was ahead are not available until they are processed.

    Wire 2.4, Available interval.
    """
    stage = make_stage()
    stage.submit([event()])
    stage.clock.advance(timedelta(days=30))
    stage.process()
    stage.clock.advance(timedelta(days=-30))
    stage.submit([event(user_id="late")])
    stage.clock.advance(timedelta(hours=3))
    assert stage.get("interval").json().endswith("/2026-11-20T10:00:00Z")
    stage.process()
    assert stage.get("interval").json().endswith("/2026-11-20T13:00:00Z")
