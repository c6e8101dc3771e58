"""One's own lake: named by the environment or the config file, else none."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

import gamelens as gl
from gamelens.local import own_lake


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither environment nor config file names a lake."""
    monkeypatch.delenv("GAMELENS_LAKE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_without_a_setting_there_is_none() -> None:
    """The notebooks then take a lake of invented players."""
    assert own_lake() is None


def test_the_environment_comes_before_the_config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both name a folder."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    file = platformdirs.user_config_path("gamelens") / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'lake = "{tmp_path / "two"}"')
    assert own_lake() == tmp_path / "two"
    monkeypatch.setenv("GAMELENS_LAKE", str(tmp_path / "one"))
    assert own_lake() == tmp_path / "one"


def test_a_folder_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invented players must not take its place unsaid."""
    monkeypatch.setenv("GAMELENS_LAKE", "/no/such/lake")
    with pytest.raises(gl.Refused, match=r"environment\) names /no/such/lake, which is not a folder.*lake import"):
        own_lake()
