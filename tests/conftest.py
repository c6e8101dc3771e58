"""Hooks of the test suite, and the sandbox in process as a fixture."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import Scheduling

from gamelens.notebook.figures.iri_grammar import defer_iri_grammar
from support.hypothesis_profiles import register_profiles
from support.scheduling import HEAVY, FixtureScheduling
from support.shared_by_workers import share_a_folder
from support.shown_cases import leave_to_wide, marks_of_module

if TYPE_CHECKING:
    from support.sandbox_stage import Stage

register_profiles()
defer_iri_grammar()  # jsonschema would load it in every worker

# Temporary folders are in memory where it has room for them, since most tests wait for nothing but the disk.
_MEMORY, _ROOM = Path("/dev/shm"), 4 * 2**30
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

share_a_folder()  # before there are workers

_BEGAN = pytest.StashKey[float]()

# Commands that a test starts inherit this, so that none of them reads a developer's keyring.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

# A shell's background jobs ignore Ctrl-C, and so would all that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore modules whose tests are all left out, so that they are not even imported."""
    left_out = set(re.findall(r"\bnot (slow|wide)\b", config.option.markexpr))
    if left_out and collection_path.suffix == ".py":
        return bool(left_out & marks_of_module(collection_path)) or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import and collect without looking for garbage, and never look at any of it again while tests run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # or engines would complain of leaks when Python ends


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, object, object]:
    """Leave the cases of a test that its marker `shown_by` does not name to `make test-wide`."""
    made = yield
    if isinstance(made, list) and made and isinstance(made[0], pytest.Function):
        leave_to_wide(made)
    return made


@pytest.hookimpl(optionalhook=True)  # of a plugin that a run may leave out
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Let tests that share dear fixtures run on one worker."""
    return FixtureScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort slow tests to the front, so that no worker is left with one of them at the end."""
    items.sort(key=_lightness)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember what this process had used when the test began."""
    item.stash[_BEGAN] = _processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Write into the report what the test used, for the table that `make durations` prints.

    The last test of a worker also ends what other modules have used: its share is told apart.
    """
    ends_from = _processor_seconds()
    try:
        yield
    finally:
        now = _processor_seconds()
        item.user_properties.append(("cpu", f"{now - item.stash[_BEGAN]:.3f}"))
        if nextitem is None:
            item.user_properties.append(("cpu_of_the_end", f"{now - ends_from:.3f}"))
        if item.get_closest_marker("slow"):
            item.user_properties.append(("slow", "yes"))


def _processor_seconds() -> float:
    """Return the processor time of this process and of the processes that it started and that have ended."""
    return sum(os.times()[:4])


def _lightness(item: pytest.Item) -> int:
    if item.path.parent.name in HEAVY:
        return 0
    return 1 if item.get_closest_marker("slow") else 2


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Give tests marked `disk` a folder on a disk, and all others one in memory."""
    if request.node.get_closest_marker("disk") is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give clients in the tests folders apart from those of a developer's clients."""
    for name in ("RUNTIME", "CACHE"):
        os.environ[f"GAMELENS_{name}_DIR"] = str(tmp_path_factory.mktemp(name.lower()))


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Return a function that opens a sandbox in process, always on one state directory."""
    from support.sandbox_stage import Stage  # not in the process that only hands out tests

    stages: list[Stage] = []

    def make(**options: Any) -> Stage:
        stages.append(Stage(tmp_path / "state", **options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.sandbox.close()


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox in process, without events."""
    return make_stage()
