"""Simulations whose events the real clients record, on devices or on a game server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.client.sync_client import Client
from gamelens.local.event_sender import Mode
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import populate_with_clients
from gamelens.local.sandbox_process import call_control_api, running_sandbox
from gamelens.simulator import Ledger, load_scenario
from support.ledger_comparison import PER_GAME, assert_equals_ledger

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["clients", "server"])
def simulation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Client, Ledger]]:
    """Play a small scenario in one mode, and return a client and the ledger."""
    mode: Mode = request.param
    ledger = Ledger()
    with running_sandbox(tmp_path_factory.mktemp(mode) / "state") as ready:
        played = populate_with_clients(ready, load_scenario("small", players=20, days=12), mode=mode, ledger=ledger)
        assert played.events == len(ledger)
        assert played.requests >= 3 * ledger.summary()["sessions"]  # both inits, and one of events at least
        assert played.sent_bytes > 100 * played.requests
        call_control_api(ready, ControlApi.process)
        summary = call_control_api(ready, ControlApi.summary)
        assert (summary.accepted, summary.rejected, summary.duplicate) == (len(ledger), 0, 0)
        settings = environment_of(ready)
        with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
            yield client, ledger


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    "metric",
    ["event_count", "user_unique", "session_unique", "session_length", "new_users", "ilrd_revenue", "installs_ratio"],
)
def test_events_of_real_clients_equal_the_ledger(simulation: tuple[Client, Ledger], metric: str) -> None:
    """Metrics of recorded events equal the ledger, countries by address included.

    Wire 1.15, Client queue; Wire 1.16, Submitting for players.
    """
    client, ledger = simulation
    by = ["country_code", "game_id"] if metric in PER_GAME else ["country_code", "platform"]
    frame = client.query(metric, by=by, over="last 12 complete days", every="all")
    interval = frame.attrs["gamelens"]["asked"]["interval"]
    assert_equals_ledger(frame, ledger.metric(metric, interval=interval, by=by, granularity="all"), metric, by)
