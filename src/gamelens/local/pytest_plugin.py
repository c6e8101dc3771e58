"""The pytest plugin `gamelens`: a sandbox with players, for tests and notebooks in a repository of your own.

    def test_revenue_is_there(gamelens_client):
        assert len(gamelens_client.query("revenue", over="last 7 complete days")) == 7

`gamelens_sandbox` and `gamelens_client` start one sandbox a run, on loopback and in a temporary folder, that has the
scenario `small` or the one that `gamelens_scenario` names; workers of pytest-xdist share it. From then on the
environment says where it is, so that `gl.connect()` asks it, in a kernel too. Notebooks that nbmake runs have no
fixtures: `sandbox_for` in a conftest beside them does the same.

Loading this costs nothing: what it needs is imported when somebody asks for it. Where plugins are not loaded by
themselves, `pytest -p gamelens` does.
"""

from __future__ import annotations

import contextlib
import os
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
_IDLE_S: Final = 600.0  # a run that was killed leaves its sandbox behind, and not for long
_READY: Final = pytest.StashKey["SandboxInfo"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say which scenario the sandbox plays."""
    about = "Scenario that the sandbox of gamelens has: the name of a shipped one, or a TOML file."
    parser.getgroup("gamelens").addoption("--gamelens-scenario", metavar="NAME", help=about)
    parser.addini(_SCENARIO, about, default="small")


@pytest.fixture(scope="session")
def gamelens_sandbox(request: pytest.FixtureRequest) -> SandboxInfo:
    """A running sandbox with players: addresses, games and keys."""
    return sandbox_for(request.config)


@pytest.fixture(scope="session")
def gamelens_client(gamelens_sandbox: SandboxInfo) -> Iterator[Client]:
    """A client of the sandbox."""
    from gamelens import Client

    with Client(api_key=gamelens_sandbox.organisations[0].api_key, metrics_url=gamelens_sandbox.metrics_url) as client:
        yield client


def sandbox_for(config: pytest.Config, *, scenario: str | None = None) -> SandboxInfo:
    """The sandbox of this run: whoever asks first starts it, and the last worker to end stops it.

    For a conftest beside notebooks::

        def pytest_runtest_setup(item):
            sandbox_of(item.config)
    """
    if _READY not in config.stash:
        named = scenario or config.getoption(_SCENARIO, None) or config.getini(_SCENARIO)
        stage = contextlib.ExitStack()
        config.add_cleanup(stage.close)
        config.stash[_READY] = stage.enter_context(_shared(_run_of(config), named))
    return config.stash[_READY]


def _run_of(config: pytest.Config) -> str:
    """What the workers of one run have in common, and nobody else."""
    worker: dict[str, str] = getattr(config, "workerinput", {})
    return worker.get("testrunuid") or uuid.uuid4().hex


@contextlib.contextmanager
def _shared(run: str, scenario: str) -> Iterator[SandboxInfo]:
    """The sandbox of *run*, named in the environment; stopped by the last who leaves it."""
    from filelock import FileLock

    from gamelens.local.sandbox_info import environment_of
    from gamelens.local.sandbox_population import ensure_populated
    from gamelens.local.sandbox_process import running_at, start_detached, stop_sandbox

    folder = Path(tempfile.gettempdir()) / f"gamelens-{run}"
    users = folder / "users"
    users.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # keys lie in it
    own, lock = users / uuid.uuid4().hex, FileLock(f"{folder}.lock")
    try:
        with lock:
            own.touch()
            state = folder / "state"
            ready = running_at(state) or start_detached(state, scenario=scenario, idle_s=_IDLE_S)
            ensure_populated(ready, state, scenario)
        own_folders = {f"GAMELENS_{name.upper()}_DIR": str(folder / name) for name in ("cache", "state")}
        with _environment({**environment_of(ready), **own_folders}):
            yield ready
    finally:
        with lock:
            own.unlink(missing_ok=True)
            is_last = not any(users.iterdir())
            if is_last:
                stop_sandbox(folder / "state")
                shutil.rmtree(folder, ignore_errors=True)
        if is_last:
            Path(lock.lock_file).unlink(missing_ok=True)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
