"""A sandbox with players in it, for commands to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_process import running_sandbox
from support.command_process import run


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with a running sandbox's state and ready file, a played scenario, and its environment."""
    folder = tmp_path_factory.mktemp("cli")
    own = {f"GAMELENS_{name}_DIR": str(folder / name.lower()) for name in ("CACHE", "RUNTIME")}
    with running_sandbox(folder / "state") as ready:
        ready_file = folder / "state" / "ready.json"
        played = run(
            *("simulate", "--scenario", "small", "--players", 60, "--days", 10, "--seed", 3),
            *("--ready", ready_file, "--ledger", folder / "truth.parquet", "--json"),
        )
        assert played.returncode == 0, played.stderr
        (folder / "played.json").write_text(played.stdout)
        run("sandbox", "process", "--state", folder / "state")
        yield folder, environment_of(ready) | own


@pytest.fixture
def typed(stage: tuple[Path, dict[str, str]], tmp_path: Path) -> Callable[..., Result]:
    """Runs a command in this process, with the environment of the stage and an empty home."""
    environ = stage[1] | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "GAMELENS_STATE_DIR": str(tmp_path / "demo")}

    def type_in(*arguments: object, **more: str | None) -> Result:
        return CliRunner(env=environ | more).invoke(cli, [str(it) for it in arguments])

    return type_in
