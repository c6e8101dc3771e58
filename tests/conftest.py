"""Hooks of the test suite, and the sandbox in process as a fixture."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hypothesis_profiles import register_profiles
from support.sandbox_stage import Stage

register_profiles()

# Folders whose tests start processes of their own.
_HEAVY = ("journey", "browser", "cli")

# Commands that a test starts inherit this, so that none of them reads a developer's keyring.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

# A shell's background jobs ignore Ctrl-C, and so would all that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore slow modules when only fast tests run, so that they are not even imported."""
    if config.option.markexpr == "not slow" and collection_path.suffix == ".py":
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort slow tests to the front, so that no worker is left with one of them at the end."""
    items.sort(key=_lightness)


def _lightness(item: pytest.Item) -> int:
    if item.path.parent.name in _HEAVY:
        return 0
    return 1 if item.get_closest_marker("slow") else 2


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give clients in the tests folders apart from those of a developer's clients."""
    for name in ("RUNTIME", "CACHE"):
        os.environ[f"GAMELENS_{name}_DIR"] = str(tmp_path_factory.mktemp(name.lower()))


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Return a function that opens a sandbox in process, always on one state directory."""
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
