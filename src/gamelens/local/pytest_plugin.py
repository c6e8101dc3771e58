"""The pytest plugin `gamelens`: a sandbox with players for the tests of any repository.

    def test_revenue_is_there(gamelens_client):
        assert len(gamelens_client.query("revenue", over="last 7 complete days")) == 7

The fixtures `gamelens_sandbox` and `gamelens_client` start one sandbox per run, on loopback and in a temporary folder.
It is populated with the scenario `small`, or with the one that `gamelens_scenario` names. Workers of pytest-xdist share
it. The environment then names it, so that `gl.connect()` uses it, in a kernel too. Notebooks that nbmake runs have no
fixtures: `sandbox_for` in a conftest beside them does the same.

Loading the plugin imports none of this; the first request for the sandbox does. If plugins are not loaded
automatically, `pytest -p gamelens` loads it.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from gamelens.client.sync_client import Client
    from gamelens.local.sandbox_info import SandboxInfo

_SCENARIO: Final = "gamelens_scenario"
_IDLE_S: Final = 600.0  # a killed run leaves its sandbox behind; it stops after this
_SANDBOX: Final = pytest.StashKey["SandboxInfo"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting that name the scenario."""
    about = "Scenario for the gamelens sandbox: the name of a shipped one, or a TOML file."
    parser.getgroup("gamelens").addoption("--gamelens-scenario", metavar="NAME", help=about)
    parser.addini(_SCENARIO, about, default="small")


@pytest.fixture(scope="session")
def gamelens_sandbox(request: pytest.FixtureRequest) -> SandboxInfo:
    """Return a running sandbox with players: its addresses, games and keys."""
    return sandbox_for(request.config)


@pytest.fixture(scope="session")
def gamelens_client(gamelens_sandbox: SandboxInfo) -> Iterator[Client]:
    """Yield a client of the sandbox."""
    from gamelens import Client

    with Client(api_key=gamelens_sandbox.organisations[0].api_key, metrics_url=gamelens_sandbox.metrics_url) as client:
        yield client


def sandbox_for(config: pytest.Config, *, scenario: str | None = None) -> SandboxInfo:
    """Return the sandbox of this run, started by the first call.

    The last worker to end stops it. For a conftest beside notebooks::

        def pytest_runtest_setup(item):
            sandbox_for(item.config)
    """
    if _SANDBOX not in config.stash:
        name = scenario or config.getoption(_SCENARIO, None) or config.getini(_SCENARIO)
        stack = contextlib.ExitStack()
        config.add_cleanup(stack.close)
        worker: dict[str, str] = getattr(config, "workerinput", {})
        run = worker.get("testrunuid") or uuid.uuid4().hex  # only the workers of this run share it
        config.stash[_SANDBOX] = stack.enter_context(_shared_sandbox(run, name))
    return config.stash[_SANDBOX]


@contextlib.contextmanager
def _shared_sandbox(run: str, scenario: str) -> Iterator[SandboxInfo]:
    """Yield the sandbox of *run* and name it in the environment. The last user stops it."""
    from filelock import FileLock

    from gamelens.local.running_sandboxes import stop_sandbox
    from gamelens.local.sandbox_info import environment_of
    from gamelens.local.sandbox_population import ensure_populated
    from gamelens.local.sandbox_process import find_sandbox, start_detached

    folder = Path(tempfile.gettempdir()) / f"gamelens-{run}"
    users = folder / "users"
    users.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # it holds keys
    marker, lock = users / uuid.uuid4().hex, FileLock(f"{folder}.lock")
    try:
        with lock:
            marker.touch()
            state = folder / "state"
            ready = find_sandbox(state) or start_detached(state, scenario=scenario, idle_s=_IDLE_S)
            ensure_populated(ready, state, scenario)
        folders = {f"GAMELENS_{name.upper()}_DIR": str(folder / name) for name in ("cache", "state")}
        with pytest.MonkeyPatch.context() as environment:
            for name, value in {**environment_of(ready), **folders}.items():
                environment.setenv(name, value)
            yield ready
    finally:
        with lock:
            marker.unlink(missing_ok=True)
            is_last = not any(users.iterdir())
            if is_last:
                stop_sandbox(folder / "state")
                shutil.rmtree(folder, ignore_errors=True)
        if is_last:
            Path(lock.lock_file).unlink(missing_ok=True)
