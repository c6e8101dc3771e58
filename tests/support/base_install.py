"""Python as `pip install gamelens` leaves it, or with some extras: packages that they do not need are not there.

The others are hidden from a process, and from those that it starts, by a finder in front of Python's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_HIDE = """
import sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else PathFinder.find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *args, **kwargs):
        found = PathFinder.find_distributions(*args, **kwargs)
        return (one for one in found if one.metadata["Name"].lower() not in MISSING)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
"""


def run_installed(
    folder: Path, *arguments: str, extras: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with *arguments* where only gamelens with *extras* and what it needs are installed."""
    there = {"gamelens", *_needed("gamelens", frozenset(extras))}
    homes = _homes()
    hidden = sorted(name for name, found in homes.items() if not there & found)
    missing = sorted({one for found in homes.values() for one in found} - there)
    (folder / "sitecustomize.py").write_text(f"HIDDEN = {hidden!r}\nMISSING = {missing!r}\n{_HIDE}")
    own = {f"GAMELENS_{name}_DIR": str(folder / name.lower()) for name in ("CACHE", "STATE", "RUNTIME")}
    own |= {"PYTHONPATH": str(folder), "XDG_CONFIG_HOME": str(folder), "PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], env=own | environment, capture_output=True, text=True, check=False, timeout=120
    )


@cache
def _homes() -> dict[str, set[str]]:
    """Return the distributions of each package that can be imported, which takes half a second to read."""
    return {name: {canonicalize_name(it) for it in found} for name, found in packages_distributions().items()}


@cache
def _needed(name: str, extras: frozenset[str]) -> frozenset[str]:
    """Return the distributions that *name* with *extras* needs, those that they need included."""
    found = set[str]()
    for requirement in _requirements(name, extras):
        other = canonicalize_name(requirement.name)
        if other != name:
            found.add(other)
        found |= _needed(other, frozenset(requirement.extras))
    return frozenset(found)


def _requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    try:
        lines = requires(name) or []
    except PackageNotFoundError:  # of another platform
        return
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield requirement
