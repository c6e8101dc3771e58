"""Clients of a service that fails, is killed during a query, and comes back."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from gamelens.client.sync_client import Client
from gamelens.errors import GamelensError, PartialResult, RateLimited, Retryable, ServiceError, Unreachable
from support.killable_sandbox import Service

DAYS = 16
FAN_OUT: dict[str, Any] = {"metric": "event_count", "by": ["game_id", "platform"], "over": f"last {DAYS} complete days"}
TOLERANCE_S = 3.0  # on a busy machine


@pytest.fixture(scope="module")
def running_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a sandbox with 18 days of events for all tests."""
    os.environ["GAMELENS_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("runtime"))
    service = Service(tmp_path_factory.mktemp("outages"))
    try:
        service.populate(days=DAYS + 2)
        yield service
    finally:
        service.stop()


@pytest.fixture
def service(running_service: Service) -> Iterator[Service]:
    """Return the sandbox without fault rules."""
    running_service.heal()
    yield running_service
    running_service.heal()


@pytest.fixture(scope="module")
def expected(running_service: Service) -> pd.DataFrame:
    """Return the frame of an undisturbed query."""
    with running_service.client() as lens:
        return lens.query(**FAN_OUT)


@pytest.fixture(scope="module")
def patient_client(running_service: Service) -> Iterator[Client]:
    """Return a client that waits up to a minute."""
    with running_service.client(max_wait_s=60) as lens:
        yield lens


@pytest.fixture(scope="module")
def hasty_client(running_service: Service) -> Iterator[Client]:
    """Return a client that gives up after a tenth of a second."""
    with running_service.client(max_wait_s=0.1) as lens:
        lens.available()
        yield lens


def without_gaps(frame: pd.DataFrame, gaps: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows of *frame* outside the intervals of *gaps*."""
    is_missing = pd.Series(False, index=frame.index)
    for gap in gaps:
        start, end = map(pd.Timestamp, gap["interval"].split("/"))
        is_missing |= (frame["timestamp"] >= start) & (frame["timestamp"] < end)
    return frame[~is_missing].reset_index(drop=True)


def assert_rows(frame: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Assert that two frames have equal rows in the same order."""
    assert frame.to_dict("records") == expected.to_dict("records")


FAULTS: dict[str, tuple[dict[str, Any], type[GamelensError]]] = {
    "429": ({"status": 429}, RateLimited),
    "429, Retry-After 1": ({"status": 429, "retry_after": 1}, RateLimited),
    "502": ({"status": 502}, ServiceError),
    "503": ({"status": 503}, ServiceError),
    "504": ({"status": 504}, ServiceError),
    "no answer": ({"status": 0}, Unreachable),
    "half an answer": ({"cut_body": True}, ServiceError),
    "half a refusal": ({"status": 503, "cut_body": True}, ServiceError),
    "slow and half": ({"latency_s": 0.1, "cut_body": True}, ServiceError),
}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS)
def test_a_temporary_fault_changes_no_row(
    service: Service, patient_client: Client, expected: pd.DataFrame, fault: dict[str, Any], error: type[GamelensError]
) -> None:
    """A fault that hits one request is retried, and the frame is complete."""
    service.fail(**fault, times=1)
    assert_frame_equal(patient_client.query(**FAN_OUT), expected)
    assert service.struck() == 1


@pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS)
def test_a_lasting_fault_raises_its_error(
    service: Service, hasty_client: Client, fault: dict[str, Any], error: type[GamelensError]
) -> None:
    """A fault that hits every request raises the error of its kind (Wire 5.3, Fault rules)."""
    service.fail(**fault)
    with pytest.raises(error):
        hasty_client.query(**FAN_OUT)


def test_a_retry_after_beyond_max_wait_is_not_retried(service: Service) -> None:
    """A Retry-After of an hour raises `RateLimited` after one request."""
    service.fail(status=429, retry_after=3600)
    with service.client(max_wait_s=60) as lens, pytest.raises(RateLimited) as limited:
        lens.query(**FAN_OUT)
    assert (limited.value.retry_after, service.struck()) == (3600.0, 1)


def test_a_query_ends_at_its_deadline(service: Service) -> None:
    """A query on a slow service raises `Unreachable` at its deadline."""
    service.fail(latency_s=5)
    with service.client() as lens:
        lens.available()
        began = time.monotonic()
        with pytest.raises(Unreachable, match="deadline_s=1"):
            lens.query("event_count", over="last 3 complete days", deadline_s=1)
        assert time.monotonic() - began < 1 + TOLERANCE_S


class KilledQuery:
    """A query whose service is killed after some of its requests, and its result."""

    def __init__(self, service: Service, lens: Client, **options: Any) -> None:
        lens.available()
        served_requests = service.request_count()
        killer_thread = threading.Thread(target=self._kill_after, args=(service, served_requests + 7))
        killer_thread.start()
        try:
            self.frame = lens.query(**FAN_OUT, **options)
            self.error = None
        except PartialResult as partial:
            self.frame, self.error = partial.frame, partial
        finally:
            killer_thread.join()
            service.start()

    def _kill_after(self, service: Service, requests: int) -> None:
        with contextlib.suppress(httpx.TransportError):
            while service.request_count() < requests:
                time.sleep(0.02)
        service.kill()


def gaps_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the gaps in the receipt of *frame*."""
    return frame.attrs["gamelens"]["gaps"]  # type: ignore[no-any-return]


@pytest.mark.wide
def test_a_killed_service_leaves_a_partial_result(service: Service, expected: pd.DataFrame, tmp_path: Path) -> None:
    """`PartialResult` has the rows so far, and the same query requests the gaps alone."""
    with service.client(max_days=1, cache=tmp_path) as lens:
        killed = KilledQuery(service, lens)
    assert killed.error is not None
    assert isinstance(killed.error.__cause__, Retryable)
    gaps = killed.error.gaps
    assert gaps == gaps_of(killed.frame)
    assert {tuple(gap) for gap in gaps} == {("metric", "interval", "scope", "error")}
    assert 0 < len(gaps) < DAYS
    assert_rows(killed.frame, without_gaps(expected, gaps))
    with service.client(max_days=1, cache=tmp_path) as lens:
        lens.available()
        before = service.request_count()
        again = lens.query(**FAN_OUT)
    assert service.request_count() - before == len(gaps)
    assert_frame_equal(again, expected)
    assert gaps_of(again) == []


def test_a_killed_service_leaves_gaps_on_request(service: Service, expected: pd.DataFrame) -> None:
    """With `on_error="gaps"` the frame has the rows so far and lists its gaps; the client works on after a restart."""
    with service.client(max_days=1) as lens:
        killed = KilledQuery(service, lens, on_error="gaps")
        again = lens.query(**FAN_OUT)
    assert killed.error is None
    assert 0 < len(gaps_of(killed.frame)) < DAYS
    assert_rows(killed.frame, without_gaps(expected, gaps_of(killed.frame)))
    assert_frame_equal(again, expected)
