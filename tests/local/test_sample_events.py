"""The lake of invented players: made once, from an export, and open to every question."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import gamelens as gl
from gamelens.errors import BadQuery
from gamelens.local import demo_lake, sample_lake
from gamelens.local.connect import demo_state
from gamelens.local.sandbox_population import population_id, today
from gamelens.simulator import load_scenario

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that GAMELENS_STATE_DIR names, with the lake of another day."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GAMELENS_STATE_DIR", str(folder))
        (demo_state() / "lakes" / "small-2020-01-01").mkdir(parents=True)
    return folder


@pytest.fixture
def state(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lake of today, made by the first test that asks for it."""
    monkeypatch.setenv("GAMELENS_STATE_DIR", str(home))
    return sample_lake()


@pytest.mark.wide
def test_it_has_the_events_of_the_scenario_with_their_arrival(state: Path) -> None:
    """Some arrived on a later day, which only an export tells."""
    with gl.open_lake(state, progress=False) as lake:
        counted = lake.sql("SELECT count(*) AS n, count(arrived_at) AS known, max(day) AS last FROM events")
        assert lake.provenance.badge == "demo data"
        late = lake.sql("SELECT count(*) AS n FROM events WHERE CAST(arrived_at AS DATE) > day")
        assert lake.games()["game"].notna().all()
    assert counted["n"][0] == counted["known"][0] > 50_000
    assert str(counted["last"][0])[:10] < f"{today()}"
    assert late["n"][0] > 100


def test_it_is_made_once_a_day(state: Path) -> None:
    """The lake of another day is removed, and nothing else is left behind."""
    made = os.stat(state / "gamelens.db").st_ino
    assert sample_lake() == state
    assert os.stat(state / "gamelens.db").st_ino == made
    assert [*state.parent.iterdir()] == [state]


def test_it_is_made_in_a_folder_of_ones_own(tmp_path: Path) -> None:
    """A folder that is named is used, with a scenario of a file, and taken as it is afterwards."""
    (tmp_path / "few.toml").write_text('extends = "small"\nname = "few"\nplayers = 40\ndays = 3\n')
    folder = sample_lake(tmp_path / "lake", scenario=str(tmp_path / "few.toml"))
    assert folder == tmp_path / "lake" == sample_lake(folder)
    with gl.open_lake(folder, progress=False) as lake:
        assert lake.sql("SELECT count(*) AS n FROM events")["n"][0] > 0


def test_an_unknown_scenario_makes_nothing(tmp_path: Path) -> None:
    """The error names the nearest."""
    with pytest.raises(BadQuery):
        sample_lake(tmp_path / "lake", scenario="smal")
    assert not (tmp_path / "lake").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """It is not a lake, and not ours."""
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(gl.Refused, match="other files"):
        sample_lake(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("ends", "loaded", "is_found"),
    [(0, 1, True), (-1, 1, False), (0, 0, False)],
    ids=["of today", "of yesterday", "only sent"],
)
def test_the_lake_of_the_demo_is_that_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: int, loaded: int, is_found: bool
) -> None:
    """One that was loaded; notebooks on recorded answers have none."""
    monkeypatch.setenv("GAMELENS_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("GAMELENS_REPLAY", raising=False)
    assert demo_lake() is None
    played = population_id(load_scenario("demo"), today() + timedelta(days=ends))
    (demo_state() / "played.json").write_bytes(msgspec.json.encode(replace(played, loaded=loaded)))
    assert demo_lake() == (demo_state() if is_found else None)
    monkeypatch.setenv("GAMELENS_REPLAY", str(tmp_path))
    assert demo_lake() is None
