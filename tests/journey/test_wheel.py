"""The wheel in an empty environment outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with the pinned tools and checked as an index would."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir()], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel, and with the pinned packages of this environment, but nothing of this checkout.

    The packages are found through a `.pth` file, so that no index is needed. It does not run the `.pth` files of this
    environment, of which one leads to the checkout.
    """
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    purelib = sysconfig.get_path("purelib", vars={"base": str(folder)})
    (Path(purelib) / "pinned.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        "--force-reinstall",
        wheel,
    ]
    subprocess.run(install, check=True, cwd=folder)
    return python


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the Python of the empty environment, in its folder, with none of our variables.

    But it takes the compiled modules of the packages, which it would take a minute to compile.
    """
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "PYTHONPYCACHEPREFIX") if name in os.environ}
    folder = python.parents[1]
    settings = {"GAMELENS_STATE_DIR": str(folder / "state"), "GAMELENS_CACHE_DIR": str(folder / "cache")}
    settings["JUPYTER_PATH"] = str(Path(sys.prefix, "share", "jupyter"))  # templates, which no .pth file leads to
    return subprocess.run([python, *arguments], cwd=folder, env=kept | settings, capture_output=True, text=True)


def test_it_is_imported_from_the_empty_environment(python: Path) -> None:
    """And not from the checkout, which would have everything."""
    where = run(python, "-c", "import gamelens; print(gamelens.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(python.parents[1]), where.stderr


def test_the_demo_runs_there(python: Path) -> None:
    """`gamelens demo --scenario small` plays its players and runs every notebook of the wheel."""
    played = run(python, "-m", "gamelens", "demo", "--scenario", "small", "--out", "reports", "--json")
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout)
    reports = sorted(path.stem for path in (python.parents[1] / "reports").glob("*.html"))
    assert reports == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
