"""One seeded population, played over HTTP into a sandbox of its own, and the truth about it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import populate
from gamelens.local.sandbox_process import process_at, running_sandbox
from gamelens.simulator import Ledger, load_scenario


class Journey(msgspec.Struct, frozen=True):
    ready: SandboxInfo
    ledger: Ledger
    client: Client


@pytest.fixture(scope="session")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    state = tmp_path_factory.mktemp("journey") / "state"
    population = msgspec.structs.replace(load_scenario("small"), players=500, days=40, seed=7)
    ledger = Ledger()
    with running_sandbox(state) as ready:
        populate(ready, population, ledger=ledger)
        process_at(state)
        settings = environment_of(ready)
        with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
            yield Journey(ready, ledger, client)
