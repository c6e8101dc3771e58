"""The house itself: what may be imported, how fast, and what leaves it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_gamelens_is_quick():
    """architecture, Who may import whom: under 0.4 s."""

    def seconds(code: str) -> float:
        began = time.perf_counter()
        _python(code)
        return time.perf_counter() - began

    bare = min(seconds("pass") for _ in range(3))
    assert min(seconds("import gamelens") for _ in range(3)) - bare < 0.4


def test_importing_gamelens_leaves_the_heavy_rooms_alone():
    """architecture: neither the sandbox nor plotly; nor pandas, HTTP and the engine."""
    loaded = json.loads(_python("import gamelens, sys, json; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"pandas", "plotly", "duckdb", "sqlglot", "httpx", "numpy", "starlette", "gamelens.sandbox"}
    assert heavy.isdisjoint(loaded)


def test_every_public_name_is_there():
    """analyst-api, What an analyst types."""
    import gamelens

    assert all(getattr(gamelens, name) is not None for name in gamelens.__all__)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_hold_no_outputs(path: Path):
    """house-style, Notebooks: no stored outputs."""
    cells = nbformat.read(path, as_version=4).cells
    assert not [cell for cell in cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_cells_are_short(path: Path):
    """house-style, Notebooks: short cells, text before code."""
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown"
    assert max(len(cell.source.splitlines()) for cell in cells if cell.cell_type == "code") <= 12


def test_the_three_notebooks_are_there():
    """architecture, The house."""
    assert {"01_ad_revenue", "02_retention", "03_health"} <= {path.stem for path in NOTEBOOKS}
