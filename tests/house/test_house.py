"""The house itself: what may be imported, how fast, and what leaves it."""

from __future__ import annotations

import json
import subprocess
import sys
import time


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_gamelens_is_quick() -> None:
    """architecture, Who may import whom: under 0.4 s."""

    def seconds(code: str) -> float:
        began = time.perf_counter()
        _python(code)
        return time.perf_counter() - began

    bare = min(seconds("pass") for _ in range(3))
    assert min(seconds("import gamelens") for _ in range(3)) - bare < 0.4


def test_importing_gamelens_leaves_the_heavy_rooms_alone() -> None:
    """architecture: neither the sandbox nor plotly; nor pandas, HTTP and the engine."""
    loaded = json.loads(_python("import gamelens, sys, json; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"pandas", "plotly", "duckdb", "sqlglot", "httpx", "numpy", "starlette", "gamelens.sandbox"}
    assert heavy.isdisjoint(loaded)


def test_every_public_name_is_there() -> None:
    """analyst-api, What an analyst types."""
    import gamelens

    assert all(getattr(gamelens, name) is not None for name in gamelens.__all__)
