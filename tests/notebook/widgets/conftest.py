"""Widgets in front of the real services in process: no kernel, no browser, their traits driven by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from gamelens.client.sync_client import Client
from support.sandbox_stage import Stage
from support.served_metrics import World, populate
from support.thousand_networks import send_networks

_addresses = (f"http://127.0.0.1:{port}" for port in count(1))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Three games with players on 120 days, and a thousand networks on the last day."""
    stage = Stage(tmp_path_factory.mktemp("widgets") / "state")
    send_networks(stage)
    populate(stage)
    yield stage
    stage.sandbox.close()


@pytest.fixture
def world(stage: Stage) -> World:
    """The metrics service at an address of its own, behind the faults a test chooses."""
    return World(next(_addresses), stage.metrics_app)


@pytest.fixture
def lens(world: World) -> Iterator[Client]:
    """A client of *world* that gives up soon."""
    yield from _lens(world)


@pytest.fixture(scope="module")
def calm(stage: Stage) -> Iterator[Client]:
    """A client of a service without faults, for all tests of a module: it asks for the lists once."""
    yield from _lens(World(next(_addresses), stage.metrics_app))


def _lens(world: World) -> Iterator[Client]:
    with world.client(transport=httpx.ASGITransport(world), max_wait_s=0.2) as lens:
        yield lens
