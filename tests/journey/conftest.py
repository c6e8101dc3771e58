"""One seeded population, played over HTTP into a sandbox of its own, and the truth about it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from gamelens.client.metrics import Client
from gamelens.lab import Ready, environment_of, play_into, process_at, sandbox_at
from gamelens.simulator import Ledger, load_scenario


class Journey(msgspec.Struct, frozen=True):
    ready: Ready
    ledger: Ledger
    client: Client


@pytest.fixture(scope="session")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    state = tmp_path_factory.mktemp("journey") / "state"
    population = msgspec.structs.replace(load_scenario("small"), players=500, days=40, seed=7)
    ledger = Ledger()
    with sandbox_at(state) as ready:
        play_into(ready, population, ledger=ledger)
        process_at(state)
        settings = environment_of(ready)
        with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
            yield Journey(ready, ledger, client)
