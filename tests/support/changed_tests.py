"""Which test modules the fast loop runs: `python -m support.changed_tests [ROOM] [--all]` prints their paths.

With a room, all tests of that room. Otherwise the tests near what changed since the branch left `main`, with what is
not committed, the nearest first, as many as take `BUDGET_S`; with `--all`, whatever they take. What a module takes is
read from the last `make test`, or else from `seconds.toml`, which `make seconds` writes. Standard error says in one
line what was left out, and which command runs it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import grimp

from support.durations import costs
from support.shown_cases import marks_of_module

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"bench", "browser", "support"}
"""Folders without a test of the fast loop."""
PROCESSES = {"cli", "journey"}
"""Folders whose tests start processes of their own: without `--all` the fast loop runs only those that changed."""
BUDGET_S = 45.0
"""Processor seconds of the tests. With the checks beside them two processors then take less than a minute."""
MODULE_S = 0.15
"""Processor seconds in which two workers import a module and collect its tests."""
KEPT = ROOT / "tests" / "support" / "seconds.toml"
"""What `make seconds` keeps in the tree."""
FOR_ALL = {"tests/conftest.py", "pyproject.toml", "constraints.txt"}
"""Files that concern every test."""


class Tree(NamedTuple):
    """What imports what."""

    tests: Mapping[str, Collection[str]]
    """Names that each test module imports, by its path."""
    importers: Mapping[str, Collection[str]]
    """Modules of `gamelens` and `support` that import each of them."""


def main() -> None:
    """Print the paths, each on a line, and on standard error what was left out."""
    rooms = {path.split("/")[1] for path in _test_modules() if path.count("/") > 1}
    if sys.argv[1:2] == ["--keep"]:
        lines = [f'"{path}" = {seconds:.1f}\n' for path, seconds in sorted(seconds_of(Path(sys.argv[2])).items())]
        KEPT.write_text("".join(lines), encoding="utf-8")
        return
    match [argument for argument in sys.argv[1:] if argument != "--all"]:
        case []:
            pass
        case [room, *_] if room in rooms:
            print(f"tests/{room}")
            return
        case [room, *_]:
            sys.exit(f"ROOM={room}: tests has no such folder. Name one of: {', '.join(sorted(rooms))}.")
    changed = _changed()
    is_whole = "--all" in sys.argv
    tree = read_tree()
    seconds = estimated(tree.tests, recorded_seconds())
    near = nearest_first(FOR_ALL if changed is None else changed, tree, seconds)
    taken = near if is_whole else within_budget(near, changed or (), seconds)
    if left := [path for path in near if path not in taken]:
        print(left_out(left, len(near), seconds), file=sys.stderr)
    print("\n".join(taken))


def nearest_first(changed: Collection[str], tree: Tree, seconds: Mapping[str, float]) -> list[str]:
    """Return the test modules near the *changed* files.

    First those that changed or are named after a module that did, then those that import one and the rules of the whole
    package, then those of modules that import one, last the others of the rooms that changed. Among those equally near,
    the room's come first, then the cheapest.
    """
    modules = {_module(path) for path in changed if path.startswith(("src/", "tests/support/")) and path[-3:] != ".md"}
    rooms = {name.split(".")[1] for name in modules if name.startswith("gamelens.")}
    if any(path.startswith("docs/") for path in changed):
        rooms.add("documentation")
    importers = {name for module in modules for name in tree.importers.get(module, ())} - modules

    def distance(path: str) -> int | None:
        stem, imported = Path(path).stem, tree.tests[path]
        if path in changed or stem in _test_names(modules):
            return 0
        if path.startswith("tests/house/") or _reach(imported, modules):
            return 1
        if stem in _test_names(importers) or _reach(imported, importers):
            return 2
        return 3 if _room(path) in rooms or FOR_ALL.intersection(changed) else None

    distances = {path: distance(path) for path in tree.tests} if changed else {}
    near, rooms = {path: steps for path, steps in distances.items() if steps is not None}, {*rooms, "house"}
    return sorted(near, key=lambda path: (near[path], _room(path) not in rooms, seconds[path], path))


def within_budget(near: list[str], changed: Collection[str], seconds: Mapping[str, float]) -> list[str]:
    """Return those of *near*, the nearest first, that take `BUDGET_S` together; one that is too long is passed over."""
    taken, used_s = [], 0.0
    for path in near:
        if _room(path) in PROCESSES and path not in changed:
            continue
        if used_s + seconds[path] <= BUDGET_S:
            used_s += seconds[path]
            taken.append(path)
    return taken


def estimated(paths: Collection[str], recorded: Mapping[str, float]) -> dict[str, float]:
    """Return the processor seconds of each of *paths*: as recorded, else what a module of its room or of all takes."""
    rooms = defaultdict[str, list[float]](list)
    for path, seconds in recorded.items():
        rooms[_room(path)].append(seconds)
        rooms[""].append(seconds)
    usual = {room: median(measured) for room, measured in rooms.items()}
    return {path: MODULE_S + recorded.get(path, usual.get(_room(path), usual.get("", 1.0))) for path in paths}


def left_out(left: Collection[str], near: int, seconds: Mapping[str, float]) -> str:
    """Return the line on what the budget has no room for."""
    rooms = sorted({_room(path) or "tests itself" for path in left})
    minutes = -(-sum(seconds[path] for path in left) // 60)
    return (
        f"Left out, to stay below a minute: {len(left)} of {near} test modules near the change, in {', '.join(rooms)}. "
        f"make check ALL=yes runs them too, in {minutes:.0f} min of a processor or less; make test runs all modules."
    )


def recorded_seconds() -> dict[str, float]:
    """Return the processor seconds of the fast tests of each module: of the last `make test`, or as kept."""
    kept = tomllib.loads(KEPT.read_text(encoding="utf-8"))
    report = ROOT / ".cache" / "tests.xml"
    return kept | (seconds_of(report) if report.is_file() else {})


def seconds_of(report: Path) -> dict[str, float]:
    """Return the processor seconds of the fast tests of each module that a JUnit file has.

    Without those in which the last test of a worker ends the sandboxes of other modules.
    """
    seconds = defaultdict[str, float](float)
    for cost in costs(report):
        if module := re.match(r"(?:\w+/)*test_\w+", cost.name):  # a notebook is none, and a class lies in one
            seconds[f"tests/{module[0]}.py"] += 0.0 if cost.is_slow else cost.processor - cost.of_the_end
    return dict(seconds)


def read_tree() -> Tree:
    """Return what imports what in this checkout."""
    graph = grimp.build_graph("gamelens", cache_dir=str(ROOT / ".cache" / "imports"))
    importers = {name: set(graph.find_modules_that_directly_import(name)) for name in graph.modules}
    for path in (ROOT / "tests" / "support").glob("*.py"):
        for name in _imports(path):
            for module in (name, name.rpartition(".")[0]):
                importers.setdefault(module, set()).add(f"support.{path.stem}")
    return Tree({path: set(_imports(ROOT / path)) for path in _test_modules()}, importers)


def _test_modules() -> Iterator[str]:
    """Yield the paths of the test modules that the fast loop may run."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        is_ignored = {"slow", "wide"} & marks_of_module(path)  # by tests/conftest.py
        if not is_ignored and path.relative_to(ROOT / "tests").parts[0] not in ELSEWHERE:
            yield path.relative_to(ROOT).as_posix()


def _module(path: str) -> str:
    """Return the name by which *path*, below `src` or `tests`, is imported; of a file of values, its package."""
    name = Path(path)
    parts = name.with_suffix("").parts if name.suffix == ".py" else name.parent.parts
    return ".".join(parts[1:]).removesuffix(".__init__")


def _room(path: str) -> str:
    """Return the folder of a test module, "" of one that lies in none."""
    return path.split("/")[1] if path.count("/") > 1 else ""


def _test_names(modules: Collection[str]) -> set[str]:
    return {f"test_{name.rpartition('.')[2].removeprefix('_')}" for name in modules}


def _reach(imported: Collection[str], modules: Collection[str]) -> bool:
    """Return whether one of the names *imported* is one of *modules*, or is defined in one."""
    return any(name in modules or name.rpartition(".")[0] in modules for name in imported)


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules and names that a module of tests imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _changed() -> set[str] | None:
    """Return the files that differ from where this branch left `main`, or None without git."""
    base = _git("merge-base", "HEAD", "main") or _git("rev-parse", "HEAD")
    if base is None:
        return None
    committed = _git("diff", "--name-only", base[0]) or []
    return {*committed, *(_git("ls-files", "--others", "--exclude-standard") or [])}


def _git(*arguments: str) -> list[str] | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


if __name__ == "__main__":
    main()
