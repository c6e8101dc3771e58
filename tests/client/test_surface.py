"""The public surface: cheap to import, complete, typed (import gamelens under 0.4 s)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import gamelens

pytestmark = pytest.mark.slow

HEAVY = ["pandas", "httpx", "plotly", "duckdb", "gamelens.sandbox", "gamelens.client"]


def loaded_after(code: str) -> dict[str, Any]:
    """What a fresh interpreter has loaded after *code*, and how long `import gamelens` took."""
    script = (
        "import sys, time, json\n"
        f"began = time.perf_counter()\n{code}\n"
        "print(json.dumps({'seconds': time.perf_counter() - began, 'loaded': sorted(sys.modules)}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_importing_loads_nothing_heavy() -> None:
    assert not set(HEAVY) & set(loaded_after("import gamelens")["loaded"])


def test_importing_is_quick() -> None:
    assert min(loaded_after("import gamelens")["seconds"] for _ in range(3)) < 0.4


def test_filters_and_intervals_need_no_pandas() -> None:
    assert "pandas" not in loaded_after("from gamelens import dim, Interval")["loaded"]


def test_the_client_brings_the_accessor() -> None:
    assert "gamelens.notebook.accessor" in loaded_after("from gamelens import Client")["loaded"]


def test_the_client_brings_neither_sandbox_nor_plotly() -> None:
    assert not {"gamelens.sandbox", "plotly", "duckdb"} & set(loaded_after("from gamelens import Client")["loaded"])


def test_pandas_first_gets_the_accessor_at_once() -> None:
    assert "gamelens.notebook.accessor" in loaded_after("import pandas, gamelens")["loaded"]


@pytest.mark.parametrize("name", gamelens.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(gamelens, name) is not None


def test_dir_shows_the_public_names() -> None:
    assert set(gamelens.__all__) <= set(dir(gamelens))


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gamelens.nothing
