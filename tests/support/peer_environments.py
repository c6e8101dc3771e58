"""Environments of other libraries that benches compare with, each of its own, since they need other versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".cache"


def installed_python(name: str, *packages: str) -> Path | None:
    """Return an interpreter with *packages*, installed at the first call; None without an index of packages."""
    environment = FOLDER / f"peers-{name}"
    python = environment / "bin" / "python"
    if not (environment / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=False).returncode:
            return None
        (environment / "installed").write_text("\n".join(packages))
    return python


def peer_python(name: str, *packages: str) -> Path:
    """Return an interpreter with *packages*; the test is skipped if they cannot be installed."""
    python = installed_python(name, *packages)
    if python is None:
        pytest.skip(f"{packages[0]} cannot be installed: no index of packages")
    return python
