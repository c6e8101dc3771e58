"""Lakes that several benches ask, made once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.served_lake import Served, served_lake


@pytest.fixture(scope="session", params=[10_000_000, 100_000_000], ids=["10M", "100M"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A sandbox over a generated lake of this many events."""
    with served_lake(tmp_path_factory.mktemp("lake"), request.param) as lake:
        yield lake
