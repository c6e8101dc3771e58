"""The command `gamelens` in a process of its own, as a script runs it, and in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner, Result

from gamelens.cli import cli

GAMELENS = [sys.executable, "-m", "gamelens"]
RunCommand = Callable[..., Result]
"""Runs `gamelens` with the given arguments in this process, keywords are its environment."""


class PlayedSandbox(NamedTuple):
    """A running sandbox with players: the folder of its state, and the environment of its clients."""

    folder: Path
    environment: dict[str, str]


def run(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `gamelens` with *arguments*, and *env* on top of this process's environment."""
    return subprocess.run(
        [*GAMELENS, *map(str, arguments)], capture_output=True, text=True, env=os.environ | (env or {}), timeout=120
    )


def run_here(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Do what `run` does in this process, which saves the two seconds that a new one takes to import everything."""
    given = [str(argument) for argument in arguments]
    result = CliRunner(env=env).invoke(cli, given)
    return subprocess.CompletedProcess(given, result.exit_code, result.stdout, result.stderr)
