"""Where the notebooks are: in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from gamelens.local.demo import SHIPPED_NOTEBOOKS, notebooks_folder

ROOT = Path(__file__).parents[2]


def test_a_checkout_has_its_own_notebooks() -> None:
    """The folder `notebooks` of the checkout comes first."""
    assert notebooks_folder() == ROOT / "notebooks"


def test_a_wheel_is_built_with_the_notebooks_where_they_are_looked_for() -> None:
    """The build hook and the search name the same folder of the package."""
    folder = SHIPPED_NOTEBOOKS.relative_to(ROOT / "src").as_posix()
    assert f'"{folder}/{{' in (ROOT / "hatch_build.py").read_text()
