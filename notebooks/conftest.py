"""Gives the notebooks, when pytest runs them with nbmake, a sandbox with the `small` scenario to ask.

Where GAMELENS_REPLAY names recorded answers they need none.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from gamelens.lab import ensure_played, environment_of, sandbox_at

_stage = ExitStack()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the sandbox, play the scenario, and let every kernel find it as it would find the real service."""
    if session.config.getoption("nbmake", default=False) and "GAMELENS_REPLAY" not in os.environ:
        state = Path(_stage.enter_context(tempfile.TemporaryDirectory())) / "state"
        ready = _stage.enter_context(sandbox_at(state))
        ensure_played(ready, state, "small")
        os.environ.update(environment_of(ready) | {"GAMELENS_STATE_DIR": str(state)})


def pytest_sessionfinish() -> None:
    """Stop the sandbox and remove what it kept."""
    _stage.close()
