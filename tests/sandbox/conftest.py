"""Fixtures of the sandbox's tests: a shared sandbox, its control API, a state directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.processing.compaction import FAN_IN
from support.app_requests import Call, call
from support.game_events import NOW, event
from support.reference_stage import ReferenceStage
from support.sandbox_stage import Stage
from support.shared_by_workers import made_once


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return one sandbox for all tests of a module that store nothing."""
    stage = Stage(tmp_path_factory.mktemp("refused") / "state")
    yield stage
    stage.sandbox.close()


@pytest.fixture
def make_reference_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Return a function that opens a sandbox whose lake is made by the tests, in parts cut at random."""
    stages: list[Stage] = []

    def make(**options: Any) -> Stage:
        stages.append(ReferenceStage(tmp_path / "reference", **options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.sandbox.close()


@pytest.fixture
def control_api(stage: Stage) -> Call:
    """Return a function that sends requests to the control API of *stage*, with its token."""
    app = control_app(stage.sandbox, token="token")

    def send(method: str, path: str, **arguments: Any) -> httpx.Response:
        return call(app, method, f"/token{path}", **arguments)

    return send


@pytest.fixture
def uncompacted(tmp_path: Path, make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox with `2 * FAN_IN` events, in which compaction is due: as many runs, each of two days."""

    def play(folder: Path) -> None:
        folder.mkdir()
        stage, day_before = Stage(folder / "state"), int(NOW.timestamp()) - 86_400
        for number in range(FAN_IN):
            stage.submit([event(user_id=f"u{number}"), event(user_id="ann", client_ts=day_before)])
            stage.process()
        stage.sandbox.close()

    shutil.copytree(made_once("uncompacted", play) / "state", tmp_path / "state")
    return make_stage()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return an empty state directory, apart from the one of `stage`."""
    path = tmp_path / "own"
    path.mkdir()
    return path
