"""design/metrics, Availability; Metrics, What the service does 4."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from conftest import NOW, Stage, event
from gamelens.sandbox.processing.pipeline import process

pytestmark = pytest.mark.slow

EMPTY = "2026-11-20T10:00:00Z/2026-11-20T10:00:00Z"
HOUR = timedelta(hours=1)
NOW_S = int(NOW.timestamp())


@pytest.fixture
def kept(make_stage: Callable[..., Stage]) -> Stage:
    """A sandbox that keeps its answer for an hour, as the specification has it."""
    return make_stage(refresh_s=3600)


def process_by_the_hour(stage: Stage) -> None:
    """What the sandbox does every hour, unasked."""
    process(stage.sandbox.options.state, stage.clock)


def test_with_no_events_it_is_end_to_end(stage: Stage) -> None:
    """design/metrics, Availability: with no events yet, end/end."""
    assert stage.get("interval").json() == EMPTY
    stage.process()
    assert stage.get("interval").json() == EMPTY


def test_it_starts_with_the_day_of_the_first_event(stage: Stage) -> None:
    """design/metrics, Availability: by event time."""
    stage.submit([event(), event(client_ts=NOW_S - 3 * 86_400)])
    stage.process()
    assert stage.get("interval").json() == "2026-11-17T00:00:00Z/2026-11-20T10:00:00Z"


def test_a_late_event_moves_its_start(stage: Stage) -> None:
    """design/metrics, Availability: found again after late events."""
    stage.submit([event()])
    stage.process()
    stage.submit([event(client_ts=NOW_S - 9 * 86_400)])
    stage.process()
    assert stage.get("interval").json().startswith("2026-11-11T00:00:00Z/")


def test_it_ends_with_the_hour_of_the_last_processing(stage: Stage) -> None:
    """design/metrics, Availability: rounded down, and not moved by time alone."""
    stage.submit([event()])
    stage.process()
    stage.clock.advance(timedelta(hours=5))
    assert stage.get("interval").json().endswith("/2026-11-20T10:00:00Z")
    stage.process()
    assert stage.get("interval").json().endswith("/2026-11-20T15:00:00Z")


def test_events_of_the_future_do_not_move_it(stage: Stage) -> None:
    """design/metrics, Availability."""
    stage.submit([event(client_ts=NOW_S + 20 * 3600)])
    stage.process()
    assert stage.get("interval").json() == EMPTY
    stage.submit([event()])
    stage.process()
    assert stage.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T10:00:00Z"


def test_organisations_have_their_own(stage: Stage) -> None:
    """design/metrics, Availability: per organisation."""
    stage.submit([event()])
    stage.process()
    assert stage.get("interval", api_key="key-of-rival").json() == EMPTY


def test_the_first_call_fixes_the_answer_for_an_hour(kept: Stage) -> None:
    """Metrics, What the service does 4."""
    kept.submit([event()])
    process_by_the_hour(kept)
    first = kept.get("interval").json()
    kept.clock.advance(HOUR - timedelta(seconds=1))
    process_by_the_hour(kept)
    assert kept.get("interval").json() == first


def test_it_is_refreshed_an_hour_after_the_first_call(kept: Stage) -> None:
    """Metrics, What the service does 4."""
    kept.submit([event()])
    process_by_the_hour(kept)
    kept.get("interval")
    kept.clock.advance(HOUR)
    process_by_the_hour(kept)
    assert kept.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T11:00:00Z"


def test_each_organisation_s_hour_begins_with_its_own_call(kept: Stage) -> None:
    """Metrics, What the service does 4."""
    kept.get("interval")
    kept.clock.advance(HOUR / 2)
    kept.get("interval", api_key="key-of-rival")
    kept.clock.advance(HOUR / 2)
    process_by_the_hour(kept)
    assert kept.get("interval").json().endswith("/2026-11-20T11:00:00Z")
    assert kept.get("interval", api_key="key-of-rival").json().endswith("/2026-11-20T11:00:00Z")


def test_processing_on_demand_renews_it_at_once(kept: Stage) -> None:
    """design/metrics, Availability: once `sandbox process` has returned, answers are the new ones."""
    kept.get("interval")
    kept.submit([event()])
    available = kept.process()
    assert kept.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T10:00:00Z"
    assert available["acme"] == "2026-11-20T00:00Z/2026-11-20T10:00Z"


def test_the_hours_go_on_after_one_that_failed(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """design/metrics, Availability: processing runs hourly by the sandbox's clock."""
    stage.submit([event()])
    obstacle = stage.sandbox.lake.root / "1"  # a file where the first version's folder must go
    obstacle.write_text("")

    async def until(happened: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not happened():  # noqa: ASYNC110 - nothing tells when a chore has run
                await asyncio.sleep(0.02)

    async def two_hours() -> None:
        chore = asyncio.create_task(stage.sandbox._process_hourly())
        await asyncio.sleep(0)
        stage.clock.advance(HOUR)
        await until(lambda: "hourly processing failed" in caplog.text)
        obstacle.unlink()
        stage.clock.advance(HOUR)
        await until(lambda: stage.sandbox.lake.last_run().version)
        chore.cancel()

    asyncio.run(two_hours())
    assert stage.get("interval").json() == "2026-11-20T00:00:00Z/2026-11-20T12:00:00Z"


def test_a_clock_set_back_does_not_keep_an_answer_for_ever(kept: Stage) -> None:
    """contract, Control surface: the sandbox's clock."""
    kept.get("interval")
    kept.clock.freeze(NOW - timedelta(days=30))
    assert kept.get("interval").json() == "2026-10-21T10:00:00Z/2026-10-21T10:00:00Z"


def test_a_shorter_refresh_may_be_asked_for(make_stage: Callable[..., Stage]) -> None:
    """contract, Commands: --refresh."""
    stage = make_stage(refresh_s=60)
    stage.get("interval")
    stage.clock.advance(timedelta(hours=1))
    assert stage.get("interval").json().endswith("/2026-11-20T11:00:00Z")


def test_a_question_outside_of_it_is_answered(stage: Stage) -> None:
    """design/metrics, Availability: the service does not protect the caller, the client does."""
    body = {"interval": "2030-01-01/P1D", "granularity": "day", "query": {"type": "timeseries"}}
    assert stage.ask("event_count", **body).status_code == 200
