"""Event time: the clock of a device where it can be true, and why it is not used elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from gamelens.wire.event_time import can_be_true, dated_by_arrival

ARRIVAL_S = 1_795_000_000
DAY_S = 86_400


@pytest.mark.parametrize(
    ("client_ts", "reason"),
    [
        (None, "no client_ts"),
        (ARRIVAL_S, None),
        (ARRIVAL_S + DAY_S, None),
        (ARRIVAL_S + DAY_S + 1, "client_ts more than 24 h after arrival"),
        (2**63 - 1, "client_ts more than 24 h after arrival"),
        (10**30, "client_ts that is no usable number of seconds"),
        (ARRIVAL_S - 365 * DAY_S, None),
        (ARRIVAL_S - 365 * DAY_S - 1, "client_ts more than 365 days before arrival"),
        (0, "client_ts more than 365 days before arrival"),
        (-1, "client_ts more than 365 days before arrival"),
        (-(10**30), "client_ts that is no usable number of seconds"),
        (ARRIVAL_S * 10**3 + 999, "client_ts in milliseconds"),
        ((ARRIVAL_S - 90 * DAY_S) * 10**3, "client_ts in milliseconds"),
        ((ARRIVAL_S - 4000 * DAY_S) * 10**3, "client_ts in milliseconds"),
        (ARRIVAL_S * 10**6, "client_ts in microseconds"),
        (ARRIVAL_S * 10**9, "client_ts in nanoseconds"),
    ],
)
def test_a_time_that_cannot_be_true_has_a_reason(client_ts: int | None, reason: str | None) -> None:
    """Bounds are included; other units than seconds are recognised (Wire 4.1, Event time)."""
    assert dated_by_arrival(client_ts, ARRIVAL_S) == reason


def test_the_oldest_time_may_be_another() -> None:
    """A sandbox may use older times (Wire 5.4, Sandbox configuration)."""
    client_ts = ARRIVAL_S - 4000 * DAY_S
    assert dated_by_arrival(client_ts, ARRIVAL_S, oldest_days=4000) is None
    assert (
        dated_by_arrival(client_ts - 1, ARRIVAL_S, oldest_days=4000) == "client_ts more than 4000 days before arrival"
    )


def test_no_time_before_1970_can_be_true() -> None:
    """A negative number is no time, whatever the arrival."""
    assert dated_by_arrival(-1, 100) == "client_ts more than 365 days before arrival"


def test_arrays_are_judged_at_once() -> None:
    """Each time is compared with its own arrival."""
    arrivals = np.array([ARRIVAL_S, ARRIVAL_S, ARRIVAL_S + 2 * DAY_S])
    assert can_be_true(np.array([0, ARRIVAL_S, ARRIVAL_S]), arrivals).tolist() == [False, True, True]
