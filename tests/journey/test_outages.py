"""A sandbox process fails as it is told, is killed in the middle of a question, and comes back (promise 10)."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
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
LATE_S = 1.5  # on a busy machine


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    os.environ["GAMELENS_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("runtime"))
    service = Service(tmp_path_factory.mktemp("outages"))
    try:
        service.populate(days=DAYS + 2)
        yield service
    finally:
        service.stop()


@pytest.fixture
def service(started: Service) -> Iterator[Service]:
    started.heal()
    yield started
    started.heal()


@pytest.fixture(scope="module")
def truth(started: Service) -> pd.DataFrame:
    """What an undisturbed query gives, in few requests."""
    with started.client() as lens:
        return lens.query(**FAN_OUT)


@pytest.fixture(scope="module")
def patient(started: Service) -> Iterator[Client]:
    with started.client(max_wait_s=60) as lens:
        yield lens


@pytest.fixture(scope="module")
def hasty(started: Service) -> Iterator[Client]:
    with started.client(max_wait_s=0.1) as lens:
        lens.available()
        yield lens


def without_gaps(frame: pd.DataFrame, gaps: list[dict[str, Any]]) -> pd.DataFrame:
    lost = pd.Series(False, index=frame.index)
    for gap in gaps:
        start, end = map(pd.Timestamp, gap["interval"].split("/"))
        lost |= (frame["timestamp"] >= start) & (frame["timestamp"] < end)
    return frame[~lost].reset_index(drop=True)


def assert_rows(frame: pd.DataFrame, expected: pd.DataFrame) -> None:
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


@pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS)
def test_a_fault_that_passes_changes_no_row(
    service: Service, patient: Client, truth: pd.DataFrame, fault: dict[str, Any], error: type[GamelensError]
) -> None:
    """contract, POST /faults, times."""
    service.fail(**fault, times=1)
    assert_frame_equal(patient.query(**FAN_OUT), truth)
    assert service.struck() == 1


@pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS)
def test_a_fault_that_stays_is_its_error(
    service: Service, hasty: Client, fault: dict[str, Any], error: type[GamelensError]
) -> None:
    """errors; contract, POST /faults."""
    service.fail(**fault)
    with pytest.raises(error):
        hasty.query(**FAN_OUT)


def test_a_retry_after_of_an_hour_is_one_request(service: Service) -> None:
    """Names, pinned: retries."""
    service.fail(status=429, retry_after=3600)
    with service.client(max_wait_s=60) as lens, pytest.raises(RateLimited) as limited:
        lens.query(**FAN_OUT)
    assert (limited.value.retry_after, service.struck()) == (3600.0, 1)


def test_a_slow_service_is_left_at_the_deadline(service: Service) -> None:
    """Names, pinned: deadline_s."""
    service.fail(latency_s=5)
    with service.client() as lens:
        lens.available()
        began = time.monotonic()
        with pytest.raises(Unreachable, match="deadline_s=1"):
            lens.query("event_count", over="last 3 complete days", deadline_s=1)
        assert time.monotonic() - began < 1 + LATE_S


class Killed:
    """A fan-out whose service is killed after some pieces have come, and what is left of it."""

    def __init__(self, service: Service, ask: Callable[[Client], pd.DataFrame]) -> None:
        with service.client(max_days=1) as lens:
            lens.available()
            came = service.asked()
            ending = threading.Thread(target=self._end, args=(service, came + 7))
            ending.start()
            try:
                self.frame = ask(lens)
                self.error = None
            except PartialResult as partial:
                self.frame, self.error = partial.frame, partial
            finally:
                ending.join()
                service.start()

    def _end(self, service: Service, after: int) -> None:
        with contextlib.suppress(httpx.TransportError):
            while service.asked() < after:
                time.sleep(0.02)
        service.kill()


def gaps_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.attrs["gamelens"]["gaps"]  # type: ignore[no-any-return]


def test_a_service_that_dies_leaves_what_came(service: Service, truth: pd.DataFrame) -> None:
    """Promise 10: PartialResult with the frame, its gaps, and the rest on request, no more."""
    killed = Killed(service, lambda lens: lens.query(**FAN_OUT))
    assert killed.error is not None
    assert isinstance(killed.error.__cause__, Retryable)
    gaps = killed.error.gaps
    assert gaps == gaps_of(killed.frame)
    assert {tuple(gap) for gap in gaps} == {("metric", "interval", "scope", "error")}
    assert 0 < len(gaps) < DAYS
    assert_rows(killed.frame, without_gaps(truth, gaps))
    with service.client(max_days=1) as lens:
        lens.available()
        before = service.asked()
        resumed = lens.resume(killed.frame)
    assert service.asked() - before == len(gaps)
    assert_frame_equal(resumed, truth)
    assert gaps_of(resumed) == []


def test_a_service_that_dies_leaves_gaps_where_they_are_wanted(service: Service, truth: pd.DataFrame) -> None:
    """Promise 10: on_error="gaps"."""
    killed = Killed(service, lambda lens: lens.query(**FAN_OUT, on_error="gaps"))
    assert killed.error is None
    assert 0 < len(gaps_of(killed.frame)) < DAYS
    assert_rows(killed.frame, without_gaps(truth, gaps_of(killed.frame)))


def test_the_client_itself_outlives_the_service(service: Service, truth: pd.DataFrame) -> None:
    """Promise 8 and 10: the same client goes on when the service is back."""
    with service.client() as lens:
        lens.available()
        service.kill()
        with pytest.raises(Unreachable):
            lens.query(**FAN_OUT)
        service.start()
        assert_frame_equal(lens.query(**FAN_OUT), truth)
