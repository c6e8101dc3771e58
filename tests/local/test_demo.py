"""Where the notebooks are: in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamelens.errors import BadQuery
from gamelens.local.demo import SHIPPED_NOTEBOOKS, copy_notebooks, notebooks_folder

ROOT = Path(__file__).parents[2]


def test_a_checkout_has_its_own_notebooks() -> None:
    """The folder `notebooks` of the checkout comes first."""
    assert notebooks_folder() == ROOT / "notebooks"


def test_a_wheel_is_built_with_the_notebooks_where_they_are_looked_for() -> None:
    """The build hook and the search name the same folder of the package."""
    folder = SHIPPED_NOTEBOOKS.relative_to(ROOT / "src").as_posix()
    assert f'"{folder}/{{' in (ROOT / "hatch_build.py").read_text()


def test_lab_works_on_copies_that_stay_the_users(tmp_path: Path) -> None:
    """A changed copy stays, ours is put beside it once it is newer, and an untouched copy is replaced."""
    ours, folder = tmp_path / "ours", tmp_path / "mine"
    ours.mkdir()
    for name in ("00_monday", "01_ads"):
        (ours / f"{name}.ipynb").write_text("first")
    assert len(copy_notebooks(ours, folder)) == 1
    assert copy_notebooks(ours, folder) == []
    (folder / "00_monday.ipynb").write_text("my own")
    assert copy_notebooks(ours, folder) == []
    for name in ("00_monday", "01_ads"):
        (ours / f"{name}.ipynb").write_text("second")
    (said,) = copy_notebooks(ours, folder)
    assert "00_monday.new.ipynb" in said
    texts = {path.name: path.read_text() for path in folder.glob("*.ipynb")}
    assert texts == {"00_monday.ipynb": "my own", "00_monday.new.ipynb": "second", "01_ads.ipynb": "second"}
    assert (ours / "00_monday.ipynb").read_text() == "second"


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"00_monday.ipynb": 1}', b"\xff"])
def test_a_damaged_record_of_the_copies_is_named(tmp_path: Path, content: bytes) -> None:
    """The error says which file it is and what to do, and nothing is copied. Without the file all is in order again."""
    ours, folder = tmp_path / "ours", tmp_path / "mine"
    ours.mkdir()
    (ours / "00_monday.ipynb").write_text("first")
    copy_notebooks(ours, folder)
    record = folder / ".gamelens.json"
    record.write_bytes(content)
    with pytest.raises(BadQuery, match=r"\.gamelens\.json.*delete it"):
        copy_notebooks(ours, folder)
    record.unlink()
    assert len(copy_notebooks(ours, folder)) == 1
    assert [path.name for path in folder.glob("*.ipynb")] == ["00_monday.ipynb"]
