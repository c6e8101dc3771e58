"""A running sandbox with players, and a way to run commands on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_process import running_sandbox
from support.command_process import PlayedSandbox, RunCommand, run_here


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedSandbox]:
    """A running sandbox with ten days of players, its ready file and the printed simulation."""
    folder = tmp_path_factory.mktemp("cli")
    own = {f"GAMELENS_{name}_DIR": str(folder / name.lower()) for name in ("CACHE", "RUNTIME")}
    with running_sandbox(folder / "state") as ready:
        ready_file = folder / "state" / "ready.json"
        played = run_here(
            *("simulate", "--scenario", "small", "--players", 60, "--days", 10, "--seed", 3),
            *("--ready", ready_file, "--ledger", folder / "truth.parquet", "--json"),
        )
        assert played.returncode == 0, played.stderr
        (folder / "played.json").write_text(played.stdout)
        run_here("sandbox", "process", "--state", folder / "state")
        yield PlayedSandbox(folder, environment_of(ready) | own)


@pytest.fixture
def run_command(sandbox: PlayedSandbox, tmp_path: Path) -> RunCommand:
    """A function that runs a command in this process, with an empty home directory."""
    environment = sandbox.environment | {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "GAMELENS_STATE_DIR": str(tmp_path / "demo"),
    }

    def invoke(*arguments: object, **more: str | None) -> Result:
        """Run `gamelens` with *arguments*, and the environment variables *more*."""
        return CliRunner(env=environment | more).invoke(cli, [str(argument) for argument in arguments])

    return invoke
