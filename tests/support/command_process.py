"""The command as a script runs it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

GAMELENS = [sys.executable, "-m", "gamelens"]


def run(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GAMELENS, *map(str, arguments)], capture_output=True, text=True, env=os.environ | (env or {}), timeout=120
    )
