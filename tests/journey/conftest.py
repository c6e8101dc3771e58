"""The simulated population that several modules of this folder query."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import populate
from gamelens.local.sandbox_process import process_at, running_sandbox
from gamelens.simulator import Ledger, load_scenario
from support.simulated_journey import Journey


@pytest.fixture(scope="session")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    """Play 300 players over HTTP into a sandbox of their own, and process their events."""
    state = tmp_path_factory.mktemp("journey") / "state"
    population = msgspec.structs.replace(load_scenario("small"), players=300, days=40, seed=7)
    ledger = Ledger()
    with running_sandbox(state) as ready:
        populate(ready, population, ledger=ledger)
        process_at(state)
        settings = environment_of(ready)
        with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
            yield Journey(ready, ledger, client)
