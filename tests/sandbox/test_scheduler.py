"""Runs of organisations: each has a failure of its own and holds up no other.

Wire 5.1, Control API.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.processing.pipeline import RunOrder, process
from gamelens.sandbox.storage.lake import FIRST_PAUSE_S, LONGEST_PAUSE_S
from gamelens.sandbox.storage.manifest import ORGANISATIONS
from support.game_events import NOW, event
from support.sandbox_stage import Stage, event_counts, metric_value

RIVAL = "key-of-rival"
UNREADABLE = b"[{] not JSON"


def spoil_newest_batch(stage: Stage) -> None:
    """Make the body of the newest batch one that no run can decode, with a good checksum."""
    stage.sandbox.store.execute(
        "UPDATE batches SET body = ?, is_gzipped = 0, checksum = NULL WHERE id = (SELECT max(id) FROM batches)",
        (UNREADABLE,),
    )


def mend_batches(stage: Stage) -> None:
    """Make the unreadable bodies empty ones."""
    stage.sandbox.store.execute("UPDATE batches SET body = ? WHERE body = ?", (b"[]", UNREADABLE))


def failing(stage: Stage) -> dict[str, Any]:
    """Return the failures in the summary."""
    found: dict[str, Any] = stage.sandbox.summary()["failing"]
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory, to be copied: of the events that wait, those of acme cannot be processed."""
    stage = Stage(tmp_path_factory.mktemp("waiting") / "state")
    stage.submit([event(user_id="before")])
    stage.process()
    stage.clock.advance(timedelta(hours=2))
    stage.submit([event(user_id="mine")])
    spoil_newest_batch(stage)
    for number in range(3):
        stage.submit([event(user_id=f"theirs{number}")], game_id="9001")
    stage.sandbox.close()
    return stage.sandbox.options.state


@pytest.fixture(scope="module")
def failed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory, to be copied, in which the events of acme could not be processed and those of rival."""
    stage = Stage(shutil.copytree(template, tmp_path_factory.mktemp("failed") / "state"))
    stage.clock.advance(timedelta(hours=2))
    with pytest.raises(Refused, match=r"^acme: "):
        stage.process()
    stage.sandbox.close()
    return stage.sandbox.options.state


@pytest.fixture
def half(failed: Path, tmp_path: Path, make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox in which the events of acme cannot be processed and those of rival are."""
    shutil.copytree(failed, tmp_path / "state")
    stage = make_stage()
    stage.clock.advance(timedelta(hours=2))
    return stage


def test_a_failing_organisation_holds_up_no_other(half: Stage) -> None:
    """The events of one organisation are processed although those of another cannot be."""
    assert (metric_value(half, api_key=RIVAL), metric_value(half)) == (3, 1)
    assert event_counts(half)["pending"] == 1


def test_the_available_interval_of_a_failing_organisation_stays(half: Stage) -> None:
    """It ends at the hour of the last complete run; that of the others goes on.

    Wire 2.4, Available interval.
    """
    available = half.sandbox.summary()["available"]
    assert [available[name].partition("/")[2] for name in ("acme", "rival")] == [
        "2026-11-20T10:00Z",
        "2026-11-20T12:00Z",
    ]


def test_a_failure_is_in_the_summary_until_a_run_succeeds(
    template: Path, tmp_path: Path, make_stage: Callable[..., Stage]
) -> None:
    """The summary names the organisation, the reason, the number of failures and the next attempt."""
    shutil.copytree(template, tmp_path / "state")
    half = make_stage()
    half.clock.advance(timedelta(hours=2))
    with pytest.raises(Refused, match=r"^acme: "):
        half.process()
    found = failing(half)
    assert list(found) == ["acme"]
    assert found["acme"]["failures"] == 1
    assert found["acme"]["reason"].startswith("processing stopped")
    assert found["acme"]["retry_ts"] == pytest.approx(time.time() + FIRST_PAUSE_S, abs=30)
    mend_batches(half)
    half.process()
    assert failing(half) == {}
    assert half.sandbox.summary()["available"]["acme"].endswith("2026-11-20T12:00Z")


@pytest.mark.wide
def test_later_events_of_a_failing_organisation_are_not_skipped(half: Stage) -> None:
    """After the failure has passed, everything that was received meanwhile is processed, once."""
    half.submit([event(user_id="later")])
    half.submit([event(user_id="theirs, later")], game_id="9001")
    with pytest.raises(Refused):
        half.process()
    assert metric_value(half, api_key=RIVAL) == 4
    mend_batches(half)
    half.process()
    assert (metric_value(half), metric_value(half, api_key=RIVAL)) == (2, 4)
    status, last = half.sandbox.lake.status("acme"), half.sandbox.lake.last_run()
    assert (status.last_batch, status.processed_ms, status.failures) == (last.last_batch, last.processed_ms, 0)


def test_the_pause_after_a_failure_grows(half: Stage) -> None:
    """Each failure doubles the pause, up to an hour."""
    pauses_s = [(half.sandbox.lake.note_failure("acme", "again").retry_s or 0) - time.time() for _ in range(9)]
    expected = [min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S) for number in range(1, 10)]
    assert pauses_s == pytest.approx(expected, abs=5)


@pytest.mark.wide
def test_a_retry_leaves_out_what_has_a_pause(half: Stage) -> None:
    """What is tried again for another organisation leaves out one that has a pause; the next hour does not."""
    mend_batches(half)
    half.submit([event(user_id="theirs, later")], game_id="9001")
    asyncio.run(half.sandbox.runs.process(with_paused=False))
    assert (metric_value(half, api_key=RIVAL), list(failing(half))) == (4, ["acme"])
    half.process()
    assert failing(half) == {}


def test_processing_begins_by_itself_when_a_pause_ends(half: Stage) -> None:
    """The organisation is tried again at the end of its pause, without a new hour."""
    mend_batches(half)
    soon = [msgspec.structs.replace(it, retry_s=time.time() + 0.5) for it in ORGANISATIONS.read(half.sandbox.store)]
    ORGANISATIONS.write(half.sandbox.store, soon)

    async def wait() -> None:
        running = asyncio.create_task(half.sandbox.runs.process_hourly())
        async with asyncio.timeout(20):
            while failing(half):  # noqa: ASYNC110 - what is waited for is on disk
                await asyncio.sleep(0.05)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    asyncio.run(wait())
    assert metric_value(half) == 1


@pytest.mark.wide
def test_a_run_that_ends_between_two_organisations_loses_nothing(stage: Stage) -> None:
    """After a stop between two runs, only the second organisation has pending events."""
    stage.submit([event(user_id="mine")])
    stage.submit([event(user_id="theirs")], game_id="9001")
    sandbox = stage.sandbox
    sandbox.lake.begin_runs({"acme", "rival"}, last_batch=2, processed_ms=round(NOW.timestamp() * 1000))
    process(sandbox.options.state, RunOrder("rival", 2, round(NOW.timestamp() * 1000)))
    assert (metric_value(stage, api_key=RIVAL), metric_value(stage), event_counts(stage)["pending"]) == (1, 0, 1)
    stage.process()
    assert (metric_value(stage, api_key=RIVAL), metric_value(stage), event_counts(stage)["pending"]) == (1, 1, 0)


@pytest.mark.wide
def test_an_event_of_any_day_costs_the_same(stage: Stage) -> None:
    """Events of 2,000 days add as many files as those of one day (Wire 4.1, Event time)."""
    now_s = int(NOW.timestamp())
    stage.submit([event(user_id=f"u{number}") for number in range(2000)])
    stage.process()
    of_one_day = len(list(stage.sandbox.lake.root.rglob("*.*")))
    stage.submit([event(user_id=f"v{number}", client_ts=now_s - number * 86_400) for number in range(2000)])
    stage.process()
    assert len(list(stage.sandbox.lake.root.rglob("*.*"))) <= 2 * of_one_day
    assert metric_value(stage, interval="1990-01-01/2030-01-01") == 4000
