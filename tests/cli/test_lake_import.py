"""The command `lake import`, from an export that `simulate` wrote."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gamelens.cli import cli

SMALL = ["--scenario", "small", "--players", "30", "--days", "3"]


def run(*arguments: object) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_an_export_is_imported(tmp_path: Path) -> None:
    """What `simulate --export` writes, `lake import` takes, and once."""
    code, out, _ = run("simulate", *SMALL, "--export", "raw-json", tmp_path / "raw", "--json")
    assert code == 0
    state = tmp_path / "state"
    code, text, _ = run("lake", "import", tmp_path / "raw", "--state", state)
    assert code == 0
    assert f"{json.loads(out)['events']:,} events" in text
    code, again, _ = run("lake", "import", tmp_path / "raw", "--state", state, "--json")
    assert code == 0
    assert json.loads(again)["files"] == 0


@pytest.mark.wide
def test_files_that_look_unchanged_are_read_on_demand(tmp_path: Path) -> None:
    """A file that was damaged without a trace is found by --verify alone."""
    assert run("simulate", *SMALL, "--export", "raw-json", tmp_path / "raw")[0] == 0
    for path in (tmp_path / "raw").rglob("*.gz"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    imported = ["lake", "import", tmp_path / "raw", "--state", tmp_path / "state"]
    assert run(*imported)[0] == 0
    path.write_bytes(bytes(path.stat().st_size))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert run(*imported)[0] == 0
    code, _, error = run(*imported, "--verify")
    assert (code, "not imported" in error) == (1, True)


def test_what_event_data_lacks_is_said(tmp_path: Path) -> None:
    """An import of Parquet says on standard error what is not known of its events."""
    assert run("simulate", *SMALL, "--export", "event-parquet", tmp_path / "raw")[0] == 0
    code, _, remarks = run("lake", "import", tmp_path / "raw", "--state", tmp_path / "state")
    assert code == 0
    assert "metrics of purchases and session lengths are refused" in remarks


def test_the_exit_status_says_that_a_file_was_not_imported(tmp_path: Path) -> None:
    """Also with --json and when the other files were imported before; each file is named with its reason."""
    assert run("simulate", *SMALL, "--export", "raw-json", tmp_path / "raw")[0] == 0
    page = tmp_path / "raw" / "page.json.gz"
    page.write_bytes(b"<Error><Code>AccessDenied</Code></Error>")
    imported = ["lake", "import", tmp_path / "raw", "--state", tmp_path / "state"]
    code, text, error = run(*imported)
    assert code == 1
    assert "0 files were imported before" in text
    assert f"not imported: {page}: it is an XML error page (AccessDenied)" in error
    assert error.splitlines()[-1].startswith("Error: not imported: 1 of ")
    code, text, _ = run(*imported, "--json")
    assert code == 1
    assert json.loads(text)["damaged"].keys() == {str(page)}
    page.unlink()
    assert run(*imported)[0] == 0


@pytest.mark.wide
def test_a_game_that_is_unknown_is_said_beside_what_was_imported(tmp_path: Path) -> None:
    """The exit status is 1, with --json after its document."""
    assert run("simulate", *SMALL, "--export", "raw-json", tmp_path / "raw")[0] == 0
    first = min((tmp_path / "raw").rglob("*.gz"))
    line = json.loads(gzip.decompress(first.read_bytes()).splitlines()[0])
    strange = tmp_path / "raw" / "strange.json"
    strange.write_text(json.dumps(line | {"game_id": 7777}))
    imported = ["lake", "import", tmp_path / "raw", "--state", tmp_path / "state", "--json"]
    code, text, error = run(*imported)
    assert (code, json.loads(text)["files"]) == (1, len(list((tmp_path / "raw").rglob("*.gz"))))
    assert "--game 7777=1001" in json.loads(text)["damaged"][str(strange)]
    assert error.splitlines()[-1].startswith("Error: not imported: 1 of ")


def test_a_mapping_that_is_no_pair_is_refused(tmp_path: Path) -> None:
    """`--game` needs two ids."""
    code, _, error = run("lake", "import", tmp_path, "--state", tmp_path / "state", "--game", "17")
    assert code == 2
    assert "--game EXPORTED=OWN" in error


def test_one_target_is_needed(tmp_path: Path) -> None:
    """`simulate` has exactly one of --ready, --into and --export."""
    code, _, error = run("simulate", *SMALL)
    assert code == 2
    assert "--export" in error
    code, _, _ = run("simulate", *SMALL, "--export", "raw-json", tmp_path / "raw", "--into", tmp_path / "state")
    assert code == 2
