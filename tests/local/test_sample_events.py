"""The lake of invented players: made once, from an export, and open to every question."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from gamelens.local import sample_lake
from gamelens.local.connect import demo_state
from gamelens.local.population_record import today

pytestmark = pytest.mark.slow


def test_it_has_the_events_of_the_scenario_with_their_arrival(tmp_path: Path) -> None:
    """Some arrived on a later day, which only an export tells."""
    with gl.open_lake(sample_lake(tmp_path / "lake"), progress=False) as lake:
        counted = lake.sql("SELECT count(*) AS n, count(arrived_at) AS known, max(day) AS last FROM events")
        assert lake.provenance.badge == "demo data"
        late = lake.sql("SELECT count(*) AS n FROM events WHERE CAST(arrived_at AS DATE) > day")
        assert lake.games()["game"].notna().all()
    assert counted["n"][0] == counted["known"][0] > 50_000
    assert str(counted["last"][0])[:10] < f"{today()}"
    assert late["n"][0] > 100


def test_it_is_made_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lake of another day is removed, and nothing else is left behind."""
    monkeypatch.setenv("GAMELENS_STATE_DIR", str(tmp_path))
    yesterday = demo_state() / "lakes" / "small-2020-01-01"
    yesterday.mkdir(parents=True)
    state = sample_lake()
    made = os.stat(state / "gamelens.db").st_ino
    assert sample_lake() == state
    assert os.stat(state / "gamelens.db").st_ino == made
    assert [*state.parent.iterdir()] == [state]


def test_an_unknown_scenario_makes_nothing(tmp_path: Path) -> None:
    """The error names the nearest."""
    with pytest.raises(BadQuery):
        sample_lake(tmp_path / "lake", scenario="smal")
    assert not (tmp_path / "lake").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """It is no lake, and not ours."""
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(gl.Refused, match="other files"):
        sample_lake(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
