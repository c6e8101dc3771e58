"""Sample files belong to what `connect` asks, and to nobody else's data."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import msgspec
import pytest

from gamelens.local import sample_data
from gamelens.local.population_record import PopulationRecord
from gamelens.local.sandbox_info import SandboxInfo, SandboxOrganisation
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
    """A sandbox's state directory after `small` was played, in an environment that says nothing else."""
    for name in ("API_KEY", "METRICS_URL", "REPLAY"):
        monkeypatch.delenv(f"GAMELENS_{name}", raising=False)
    monkeypatch.setenv("GAMELENS_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "ready.json").write_bytes(msgspec.json.encode(READY))
    (tmp_path / "played.json").write_bytes(msgspec.json.encode(PLAYED))
    return tmp_path


def is_empty(folder: Path) -> bool:
    return {path.name: path.read_text() for path in folder.iterdir()} == empty_files()


def test_the_sandbox_on_this_machine_gets_files_of_its_scenario_and_days(state) -> None:
    folder = sample_data.sample_files()
    assert {path.name for path in folder.iterdir()} == set(HEADERS)
    spend = (folder / "ad_spend.csv").read_text().splitlines()
    assert (spend[1].partition(",")[0], spend[-1].partition(",")[0]) == ("2026-10-17", "2026-11-20")


def test_a_key_and_the_sandboxs_address_are_the_sandbox(state, monkeypatch) -> None:
    monkeypatch.setenv("GAMELENS_API_KEY", "k" * 40)
    monkeypatch.setenv("GAMELENS_METRICS_URL", READY.metrics_url)
    assert not is_empty(sample_data.sample_files())


@pytest.mark.parametrize("address", [None, "https://metrics.example.com"])
def test_real_players_never_meet_made_up_costs(state, monkeypatch, address) -> None:
    monkeypatch.setenv("GAMELENS_API_KEY", "k" * 40)
    if address:
        monkeypatch.setenv("GAMELENS_METRICS_URL", address)
    assert is_empty(sample_data.sample_files())


def test_a_sandbox_that_was_played_from_a_file_gets_none(state) -> None:
    own = msgspec.structs.replace(PLAYED, scenario="my own game")
    (state / "played.json").write_bytes(msgspec.json.encode(own))
    assert is_empty(sample_data.sample_files())


def test_an_empty_sandbox_gets_none(state) -> None:
    (state / "played.json").unlink()
    assert is_empty(sample_data.sample_files())


def test_recorded_answers_have_theirs_beside_them(state, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("GAMELENS_REPLAY", str(RECORDED))
    assert sample_data.sample_files() == RECORDED.parent / "outside"
    monkeypatch.setenv("GAMELENS_REPLAY", str(tmp_path / "elsewhere" / "recorded"))
    assert is_empty(sample_data.sample_files())
