"""`gamelens clean`: what it lists, what it removes, and what of a person's stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keyring
import msgspec
import pytest
from click.testing import CliRunner, Result
from filelock import FileLock

from gamelens.cli import cli
from gamelens.local.sandbox_population import population_id, today
from gamelens.local.sandbox_process import find_sandbox, running_sandbox, start_detached
from gamelens.sandbox.storage.manifest import LakeRecord, write_record
from gamelens.simulator import load_scenario
from support.memory_keyring import MemoryKeyring

REMOVED = {"answers", "demo", "sample lake", "runtime"}
KEPT = {"config", "journal", "notebooks", "lake"}
SLOT = f"{'a' * 24}.seat0"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one thing of each kind, in folders of a thousand bytes."""
    folders = {"CACHE_DIR": "cache", "STATE_DIR": "demo", "RUNTIME_DIR": "runtime", "NOTEBOOKS": "notebooks"}
    for name, folder in (folders | {"LAKE": "mine"}).items():
        monkeypatch.setenv(f"GAMELENS_{name}", str(tmp_path / folder))
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for file in (
        *(
            "cache/answers-2/answers.sqlite",
            "cache/messages/board.json",
            "demo/gamelens.db",
            "demo/lake/2/cube.parquet",
        ),
        *(
            "demo/lakes/small-2026-11-27/gamelens.db",
            f"runtime/{SLOT}",
            "notebooks/00_monday.ipynb",
            "mine/gamelens.db",
        ),
        "config/gamelens/config.toml",
    ):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"#" * 1_000)
    (tmp_path / "demo" / "played.json").write_bytes(msgspec.json.encode(population_id(load_scenario("demo"), today())))
    return tmp_path


def clean(*options: str, typed: str | None = None) -> Result:
    """Run `gamelens clean`, with *typed* as the answer to its question."""
    return CliRunner().invoke(cli, ["clean", *options], input=typed)


def found(home: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Return the objects of `clean --json` by kind, without sandboxes of other tests."""
    result = clean("--json", *options)
    assert result.exit_code == 0, result.output
    objects = json.loads(result.stdout)
    return {each["kind"]: each for each in objects if str(home) in each["path"] or each["kind"] == "key"}


def test_what_is_stored_is_listed_and_nothing_removed_without_yes(home: Path) -> None:
    """As JSON with bytes, and the reason of what stays."""
    items = found(home)
    assert items.keys() == REMOVED | KEPT
    assert {kind for kind, item in items.items() if item["stays"] is None} == REMOVED
    assert (items["answers"]["bytes"], items["sample lake"]["bytes"], items["lake"]["bytes"]) == (1_000, 1_000, 1_000)
    assert items["demo"]["bytes"] == 2_000 + (home / "demo" / "played.json").stat().st_size
    assert not any(item["is_removed"] for item in items.values())
    assert found(home) == items


def test_yes_removes_what_can_be_made_again(home: Path) -> None:
    """And folders that are empty then; lakes, notebooks, settings and the journal are as they were."""
    items = found(home, "--yes")
    assert {kind for kind, item in items.items() if item["is_removed"]} == REMOVED
    left = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert left == {
        *("cache/messages/board.json", "notebooks/00_monday.ipynb", "mine/gamelens.db", "config/gamelens/config.toml"),
    }
    assert not (home / "demo").exists()


def test_all_removes_settings_and_the_journal_as_well(home: Path) -> None:
    """Never a lake or a notebook."""
    items = found(home, "--yes", "--all")
    assert {kind for kind, item in items.items() if item["is_removed"]} == REMOVED | {"config", "journal"}
    left = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert left == {"notebooks/00_monday.ipynb", "mine/gamelens.db"}


@pytest.mark.parametrize(("typed", "code", "is_left"), [("y\n", 0, False), ("n\n", 0, True), ("", 1, True)])
def test_it_asks_before_it_removes(home: Path, typed: str, code: int, is_left: bool) -> None:
    """A no is an answer; without one, as in a script that forgot --yes, it has failed."""
    result = clean(typed=typed)
    assert (result.exit_code, (home / "cache" / "answers-2").exists()) == (code, is_left)
    assert ("nothing was removed" in result.stdout) == (typed == "n\n")


def test_other_files_of_a_state_directory_stay(home: Path) -> None:
    """GAMELENS_STATE_DIR may name a folder that has files of its own."""
    notes = home / "demo" / "notes.txt"
    notes.write_text("mine")
    clean("--yes")
    assert [path.name for path in (home / "demo").iterdir()] == ["notes.txt"]


def test_a_state_that_may_be_of_a_person_stays(home: Path) -> None:
    """It has imported events, or was never filled by a demo."""
    store = home / "demo" / "gamelens.db"
    write_record(store, LakeRecord(taken=2))
    assert found(home, "--yes")["demo"]["stays"] == "has events that you imported"
    (home / "demo" / "played.json").unlink()
    assert found(home, "--yes")["demo"]["stays"] == "may be yours: its demo never finished"
    assert store.exists()


def test_the_lake_of_the_setting_stays_wherever_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's state can be named as well."""
    monkeypatch.setenv("GAMELENS_LAKE", str(home / "demo"))
    assert found(home, "--yes")["demo"]["stays"] == "it is your setting `lake`"


def test_a_sandbox_of_a_person_is_listed_with_its_path(home: Path) -> None:
    """Beside the demo's in the folder for states."""
    state = home / "state" / "gamelens" / "mine"
    state.mkdir(parents=True)
    (state / "tenants.json").write_text("{}")
    item = found(home, "--yes")["sandbox"]
    assert (item["path"], item["is_removed"], state.exists()) == (str(state), False, True)


def test_a_slot_that_a_request_holds_stays(home: Path) -> None:
    """Or two requests could hold it at once."""
    with FileLock(home / "runtime" / SLOT):
        clean("--yes")
        assert (home / "runtime" / SLOT).exists()


def test_a_demo_that_connect_left_running_is_stopped(home: Path) -> None:
    """A sandbox without its files would answer with errors."""
    state = home / "demo"
    (state / "gamelens.db").unlink()
    start_detached(state, scenario="small")
    assert found(home, "--yes")["demo"]["is_removed"]
    assert find_sandbox(state, within_s=1) is None
    assert not state.exists()


@pytest.mark.wide
def test_a_demo_that_a_command_runs_stays(home: Path) -> None:
    """`gamelens lab` is not deprived of its sandbox."""
    state = home / "demo"
    (state / "gamelens.db").unlink()
    with running_sandbox(state, scenario="small"):
        assert found(home, "--yes")["demo"]["stays"].startswith("in use")
        assert find_sandbox(state) is not None


def test_a_demo_that_a_command_shares_is_refused(home: Path) -> None:
    """`connect` started it, `gamelens lab` uses it: the rest is removed, and the exit code is 1."""
    state = home / "demo"
    (state / "gamelens.db").unlink()
    start_detached(state, scenario="small")
    with running_sandbox(state, scenario="small"):
        result = clean("--yes")
        assert (result.exit_code, "close it first" in result.stderr) == (1, True)
        assert not (home / "cache" / "answers-2").exists()
        assert find_sandbox(state) is not None
    clean("--yes")
    assert not state.exists()


def test_keys_of_the_keyring_go_with_all_alone(home: Path) -> None:
    """Without it the keyring is not even asked, which may open a window."""
    before, passwords = keyring.get_keyring(), {"api_key": "k" * 40}
    ring = MemoryKeyring(passwords)
    keyring.set_keyring(ring)
    try:
        assert "key" not in found(home, "--yes")
        assert ring.requested == []
        assert found(home, "--yes", "--all")["key"]["path"] == "keyring:gamelens/api_key"
    finally:
        keyring.set_keyring(before)
    assert passwords == {}
