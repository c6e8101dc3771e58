"""The public names of the package: complete, and cheap to import."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest

import gamelens

pytestmark = pytest.mark.slow

HEAVY = ["pandas", "httpx", "plotly", "duckdb", "gamelens.sandbox", "gamelens.client"]


def modules_after(code: str) -> dict[str, Any]:
    """Return what a fresh interpreter has loaded after *code*, and its seconds of the processor."""
    script = (
        "import sys, time, json\n"
        f"began = time.process_time()\n{code}\n"
        "print(json.dumps({'seconds': time.process_time() - began, 'loaded': sorted(sys.modules)}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_importing_loads_nothing_heavy() -> None:
    """`import gamelens` loads neither pandas nor httpx nor any room with heavy imports."""
    assert not set(HEAVY) & set(modules_after("import gamelens")["loaded"])


def test_importing_is_quick() -> None:
    """`import gamelens` takes less than 0.4 s of the processor, the best of three."""
    assert min(modules_after("import gamelens")["seconds"] for _ in range(3)) < 0.4


def test_filters_and_intervals_need_no_pandas() -> None:
    """`dim` and `Interval` can be used without loading pandas."""
    assert "pandas" not in modules_after("from gamelens import dim, Interval")["loaded"]


@pytest.fixture(scope="module")
def loaded_with_the_client() -> set[str]:
    """Return the modules that `from gamelens import Client` loads."""
    return set(modules_after("from gamelens import Client")["loaded"])


@pytest.mark.wide
def test_the_client_registers_the_accessor(loaded_with_the_client: set[str]) -> None:
    """Importing `Client` registers `df.lens`."""
    assert "gamelens.notebook.accessor" in loaded_with_the_client


def test_the_client_loads_neither_sandbox_nor_plotly(loaded_with_the_client: set[str]) -> None:
    """Importing `Client` loads neither the sandbox nor DuckDB nor plotly."""
    assert not {"gamelens.sandbox", "plotly", "duckdb"} & loaded_with_the_client


@pytest.mark.wide
def test_gamelens_after_pandas_registers_the_accessor() -> None:
    """If pandas is already loaded, `import gamelens` registers `df.lens`."""
    assert "gamelens.notebook.accessor" in modules_after("import pandas, gamelens")["loaded"]


@pytest.mark.parametrize("name", gamelens.__all__)
def test_every_public_name_exists(name: str) -> None:
    """Each name in `__all__` can be imported."""
    assert getattr(gamelens, name) is not None


def test_dir_shows_the_public_names() -> None:
    """`dir(gamelens)` lists the names that are loaded on first use."""
    assert set(gamelens.__all__) <= set(dir(gamelens))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """An unknown name of the package is an `AttributeError` that quotes it."""
    with pytest.raises(AttributeError, match=r"'nothing' does not exist in gamelens"):
        _ = gamelens.nothing  # type: ignore[attr-defined]


def test_the_version_is_that_of_the_package() -> None:
    """`gamelens.__version__` is the installed version, and `dir` lists it."""
    assert gamelens.__version__ == version("gamelens")
    assert "__version__" in dir(gamelens)
