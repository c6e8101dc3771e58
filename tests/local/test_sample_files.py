"""Sample files match the sandbox or replay that `connect` would use, or are empty."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import msgspec
import pytest

from gamelens.local import sample_data
from gamelens.local.sandbox_info import SandboxInfo, SandboxOrganisation
from gamelens.local.sandbox_population import PopulationRecord
from gamelens.simulator.output.external_files import HEADERS, empty_files

PLAYED = PopulationRecord(scenario="small", version=1, seed=4, players=1100, days=35, ends_on=date(2026, 11, 21))
READY = SandboxInfo(
    collector_url="http://127.0.0.1:1",
    metrics_url="http://127.0.0.1:2",
    console_url="http://127.0.0.1:3/token",
    organisations=[SandboxOrganisation(name="acme", api_key="k" * 40, studios=[])],
)
RECORDED = Path(__file__).parents[2] / "data" / "recorded"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state directory of a sandbox populated with `small`, and no other setting."""
    for name in ("API_KEY", "METRICS_URL", "REPLAY"):
        monkeypatch.delenv(f"GAMELENS_{name}", raising=False)
    monkeypatch.setenv("GAMELENS_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "ready.json").write_bytes(msgspec.json.encode(READY))
    (tmp_path / "played.json").write_bytes(msgspec.json.encode(PLAYED))
    return tmp_path


def is_empty(folder: Path) -> bool:
    """Return whether *folder* holds the files with headers only."""
    return {path.name: path.read_text() for path in folder.iterdir()} == empty_files()


def test_the_sandbox_on_this_machine_gets_files_of_its_scenario_and_days(state: Path) -> None:
    """Files cover the days that the running sandbox was populated with."""
    folder = sample_data.sample_files()
    assert {path.name for path in folder.iterdir()} == set(HEADERS)
    spend = (folder / "ad_spend.csv").read_text().splitlines()
    assert (spend[1].partition(",")[0], spend[-1].partition(",")[0]) == ("2026-10-17", "2026-11-20")


def test_a_key_with_the_address_of_the_sandbox_gets_its_files(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configured key with the sandbox's own address is the sandbox."""
    monkeypatch.setenv("GAMELENS_API_KEY", "k" * 40)
    monkeypatch.setenv("GAMELENS_METRICS_URL", READY.metrics_url)
    assert not is_empty(sample_data.sample_files())


@pytest.mark.parametrize("address", [None, "https://metrics.example.com"])
def test_a_real_service_gets_empty_files(state: Path, monkeypatch: pytest.MonkeyPatch, address: str | None) -> None:
    """A key of another address gets headers only: made-up costs never meet real players."""
    monkeypatch.setenv("GAMELENS_API_KEY", "k" * 40)
    if address:
        monkeypatch.setenv("GAMELENS_METRICS_URL", address)
    assert is_empty(sample_data.sample_files())


def test_a_sandbox_played_from_a_scenario_file_gets_empty_files(state: Path) -> None:
    """A population from a user's own scenario file has no sample files."""
    own = msgspec.structs.replace(PLAYED, scenario="my own game")
    (state / "played.json").write_bytes(msgspec.json.encode(own))
    assert is_empty(sample_data.sample_files())


def test_a_sandbox_without_players_gets_empty_files(state: Path) -> None:
    """A sandbox that was never populated has no sample files."""
    (state / "played.json").unlink()
    assert is_empty(sample_data.sample_files())


def test_recorded_answers_use_the_files_beside_them(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A replay uses the folder `outside` beside it, and without one gets empty files."""
    monkeypatch.setenv("GAMELENS_REPLAY", str(RECORDED))
    assert sample_data.sample_files() == RECORDED.parent / "outside"
    monkeypatch.setenv("GAMELENS_REPLAY", str(tmp_path / "elsewhere" / "recorded"))
    assert is_empty(sample_data.sample_files())
