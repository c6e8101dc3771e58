"""A home directory that cannot be written to, as in containers: each error names the variable that helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import gamelens as gl
from gamelens.cli import cli
from gamelens.client.connection.settings import writable_folder
from gamelens.local import sample_files, sample_lake
from gamelens.local.demo import open_lab, run_demo
from gamelens.messages.journal import MessageJournal

HOMES = ["/dev/null", "/proc/nobody"]


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A home in which nothing can be made, and no setting of gamelens or of the desktop beside it."""
    for name in ("API_KEY", "METRICS_URL", "STATE_DIR", "CACHE_DIR", "NOTEBOOKS", "REPLAY", "RECORD"):
        monkeypatch.delenv(f"GAMELENS_{name}", raising=False)
    for name in ("STATE_HOME", "CACHE_HOME", "CONFIG_HOME", "DOCUMENTS_DIR"):
        monkeypatch.delenv(f"XDG_{name}", raising=False)
    monkeypatch.setenv("HOME", str(request.param))
    return str(request.param)


@pytest.mark.parametrize(
    ("call", "variable"),
    [
        (gl.connect, "GAMELENS_STATE_DIR"),
        (gl.demo, "GAMELENS_STATE_DIR"),
        (sample_lake, "GAMELENS_STATE_DIR"),
        (sample_files, "GAMELENS_STATE_DIR"),
        (lambda: run_demo(Path("reports")), "GAMELENS_STATE_DIR"),
        (open_lab, "GAMELENS_NOTEBOOKS"),
        (MessageJournal, "GAMELENS_CACHE_DIR"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_is_written_to_the_home_names_its_variable(
    call: Callable[[], object], variable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence: the folder, the reason and the next step; and nothing is promised before."""
    with pytest.raises(gl.Refused, match=rf"cannot be written to \(.*\): name a folder of your own in {variable}$"):
        call()
    assert capsys.readouterr().err == ""


def test_a_config_file_that_cannot_be_there_is_none(home: str) -> None:
    """Settings of the environment work, and the doctor goes on and says what it cannot start."""
    printed = CliRunner(env={"HOME": home}).invoke(cli, ["doctor", "--json"])
    found = {finding["about"]: finding for finding in json.loads(printed.stdout)}
    assert found["settings"]["mark"] == "ok"
    assert (found["sandbox"]["mark"], printed.exit_code) == ("problem", 1)
    assert "GAMELENS_STATE_DIR" in found["sandbox"]["next_step"]
    assert "GAMELENS_CACHE_DIR" in found["cache"]["next_step"]


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    """Its parents too, for this user alone; and a file in the way is refused."""
    made = writable_folder(tmp_path / "a" / "b", "X")
    assert (made.is_dir(), made.stat().st_mode & 0o777) == (True, 0o700)
    (tmp_path / "file").write_text("")
    with pytest.raises(gl.Refused, match=r"in X$"):
        writable_folder(tmp_path / "file" / "b", "X")
