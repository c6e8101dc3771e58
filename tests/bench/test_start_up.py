"""Processor time to import gamelens and to print its help, against a bare interpreter in the same run."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

IMPORT_S = 0.15
HELP_S = 0.2


def seconds(*arguments: str) -> float:
    """Return the processor time of Python with *arguments*: the least of nine runs, the first of which compiles."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def once() -> float:
        before = used()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
        return used() - before

    return min(once() for _ in range(9))


def test_importing_gamelens_and_its_help_are_quick() -> None:
    """`import gamelens` takes at most 0.15 s more than Python alone, `gamelens --help` at most 0.2 s in all."""
    bare, imported, helped = (
        seconds("-c", "pass"),
        seconds("-c", "import gamelens"),
        seconds("-m", "gamelens", "--help"),
    )
    print(f"\nPython alone {bare:.3f} s, import gamelens {imported:.3f} s, gamelens --help {helped:.3f} s")
    assert imported - bare <= IMPORT_S
    assert helped <= HELP_S
