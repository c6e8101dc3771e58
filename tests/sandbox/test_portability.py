"""The sandbox without what only Unix has: `fcntl` and `uvloop`."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from gamelens.sandbox.http.http_server import loop_factory

WITHOUT = """
import sys
sys.modules |= {"fcntl": None, "uvloop": None}  # importing them fails
import gamelens.sandbox, gamelens.sandbox.server, gamelens.local.connect, gamelens.cli
print(sorted(name for name in ("fcntl", "uvloop") if sys.modules[name] is not None))
"""


def test_it_is_imported_without_fcntl_and_uvloop() -> None:
    """As on Windows; a module that imports one of them fails here."""
    process = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (0, "[]\n"), process.stderr


@pytest.mark.wide
def test_a_blocked_module_cannot_be_imported() -> None:
    """Otherwise the test above would prove nothing."""
    code = f"{WITHOUT}\nimport fcntl"
    assert b"ModuleNotFoundError" in subprocess.run([sys.executable, "-c", code], capture_output=True).stderr


@pytest.mark.parametrize("is_there", [True, False])
def test_the_loop_is_asyncios_own_where_uvloop_is_missing(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And uvloop's where it is installed."""
    if not is_there:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert type(runner.get_loop()).__module__.startswith("uvloop" if is_there else "asyncio")
