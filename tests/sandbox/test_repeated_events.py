"""Events that repeat an `event_uuid`: dropped and counted, or counting (Wire 4.8, Repeated events)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gamelens.errors import Refused
from gamelens.sandbox.maintenance.verification import verify
from gamelens.sandbox.server import rebuild_stopped
from support.app_requests import Call
from support.game_events import event
from support.sandbox_stage import Stage, event_counts, metric_value

pytestmark = pytest.mark.slow

SAME = "0f6de3c6-0000-4000-8000-000000000001"
BOUGHT = {"category": "business", "event_id": "boosts:gold", "amount": 500, "currency": "USD", "transaction_num": 1}


def submit_repeats(stage: Stage) -> None:
    """Send one purchase three times, in one body and in a later run, and one event without a name twice."""
    purchase = event(event_uuid=SAME, **BOUGHT)
    stage.submit([purchase, purchase, event(), event()])
    stage.process()
    stage.submit([purchase])
    stage.process()


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("repeats", "purchases", "dropped"), [(None, 1, 2), ("count", 3, 0)])
def test_repeats_are_dropped_and_counted_or_count(
    make_stage: Callable[..., Stage], repeats: str | None, purchases: int, dropped: int
) -> None:
    """By default the first copy counts and the others are counted as dropped; `--repeats count` counts them.

    Whatever is built again afterwards says the same.
    """
    stage = make_stage(repeats=repeats)
    submit_repeats(stage)
    assert metric_value(stage) == purchases + 2
    revenue: dict[str, Any] = {
        "interval": "2020-01-01/2030-01-01",
        "granularity": "all",
        "query": {"type": "timeseries"},
    }
    assert stage.ask("revenue", **revenue).json()["result"][0]["result"]["sum"] == 5.0 * purchases
    assert event_counts(stage)["duplicate"] == dropped
    assert event_counts(stage)["processed"] == purchases + 2
    stage.sandbox.close()
    state = stage.sandbox.options.state
    assert verify(state).differences == []
    rebuild_stopped(state)
    assert verify(state).differences == []
    assert metric_value(make_stage()) == purchases + 2


def test_the_summary_says_what_becomes_of_repeats(make_stage: Callable[..., Stage], control_api: Call) -> None:
    """`GET /summary` has the number of dropped events, and whether they are (Wire 5.1, Control API)."""
    assert control_api("GET", "/summary").json()["repeats"] == "drop"


@pytest.mark.parametrize(("first", "then"), [("count", "drop"), (None, "count")])
def test_events_of_one_state_are_treated_alike(
    make_stage: Callable[..., Stage], tmp_path: Path, first: str | None, then: str
) -> None:
    """A state directory with events keeps to what it began with, and one without takes the option."""
    make_stage(repeats=first).sandbox.close()
    make_stage(repeats=then).sandbox.close()
    stage = make_stage(repeats=first or "drop")
    stage.submit([event()])
    stage.sandbox.close()
    with pytest.raises(Refused, match=f"--repeats {then} is for a state directory without events"):
        make_stage(repeats=then)
    again = make_stage()
    assert again.sandbox.lake.counts_repeats == (first == "count")
