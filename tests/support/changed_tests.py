"""Which test modules the fast loop runs: `python -m support.changed_tests [ROOM]` prints their paths.

With a room, all tests of that room. Otherwise what changed since the branch left `main`, with what is not committed:
first the tests that import a changed module, or that test a module which imports one, in whatever room; then the others
of each room that changed, the cheapest first, up to `BUDGET_S` by what `make test` took last. Without git, and where a
change concerns every test, all rooms.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grimp

from support.durations import costs

ROOT = Path(__file__).parents[2]
LEFT_OUT = {"bench", "browser", "cli", "journey", "support"}
"""Folders that the fast loop leaves out unless they are named: their tests start processes of their own."""
BUDGET_S = 70.0
"""Processor seconds of the tests. With the checks beside them two processors then take a minute."""
FOR_ALL = {"tests/conftest.py", "pyproject.toml", "constraints.txt"}


def main() -> None:
    """Print the paths, each on a line, and say on standard error what they are."""
    if room := sys.argv[1:]:
        folder = ROOT / "tests" / room[0]
        if not folder.is_dir():
            sys.exit(f"ROOM={room[0]}: tests has no such folder. Name one of: {', '.join(_rooms())}.")
        print(folder.relative_to(ROOT))
        return
    changed = _changed()
    if changed is None or FOR_ALL & changed:
        print("\n".join(f"tests/{name}" for name in _rooms()))
        return
    near, others = selected(changed)
    taken = within_budget(near, others, _seconds())
    left = f", {len(others) - len(taken)} left to make test" if len(taken) < len(others) else ""
    print(f"{len(changed)} files changed: {len(near)} test modules and {len(taken)} more{left}", file=sys.stderr)
    print("\n".join([*near, *taken]))


def within_budget(near: list[str], others: list[str], seconds: Mapping[str, float]) -> list[str]:
    """Return those of *others* for which there is time beside *near*, the cheapest first."""
    taken, used_s = [], sum(seconds[path] for path in near)
    for path in sorted(others, key=seconds.__getitem__):
        used_s += seconds[path]
        if used_s > BUDGET_S:
            break
        taken.append(path)
    return taken


def selected(changed: set[str]) -> tuple[list[str], list[str]]:
    """Return the test modules near the *changed* files, and the others of the rooms that changed."""
    modules = {_module(path) for path in changed if path.startswith("src/") and path.endswith(".py")}
    rooms = {name.split(".")[1] for name in modules if name.count(".")} & {*_rooms()}
    graph = grimp.build_graph("gamelens", cache_dir=str(ROOT / ".cache" / "imports"))
    known = modules & graph.modules
    near = known.union(*(graph.find_modules_that_directly_import(name) for name in known))
    support = {_module(path) for path in changed if path.startswith("tests/support/")}
    names = {f"test_{name.rpartition('.')[2]}" for name in near}
    found = {path for path in changed if Path(path).name.startswith("test_") and (ROOT / path).is_file()}
    for path in _test_modules():
        imported = _imports(path)
        if path.stem in names or any(_within(name, known | support) for name in imported):
            found.add(path.relative_to(ROOT).as_posix())
    own = {path.relative_to(ROOT).as_posix() for room in rooms for path in (ROOT / "tests" / room).rglob("test_*.py")}
    chosen = {path for path in found if path.split("/")[1] not in LEFT_OUT}
    return sorted(chosen, key=lambda path: (path not in own, path)), sorted(own - found)


def _seconds() -> Mapping[str, float]:
    """Return the processor seconds of the fast tests of each module in the last `make test`, if there was one."""
    report = ROOT / ".cache" / "tests.xml"
    seconds = defaultdict[str, float](float)
    for cost in costs(report) if report.is_file() else ():
        if not cost.is_slow:
            seconds[f"tests/{cost.name.partition('::')[0]}.py"] += cost.processor
    return seconds


def _rooms() -> list[str]:
    """Return the folders of tests that the fast loop runs."""
    return sorted(path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and _is_room(path))


def _is_room(path: Path) -> bool:
    return path.name not in LEFT_OUT and any(path.rglob("test_*.py"))


def _test_modules() -> Iterator[Path]:
    return (path for room in _rooms() for path in (ROOT / "tests" / room).rglob("test_*.py"))


def _module(path: str) -> str:
    """Return the name by which *path*, below `src` or `tests`, is imported."""
    return ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules and names that a test module imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _within(name: str, modules: Iterable[str]) -> bool:
    """Return whether *name* is one of *modules*, or is defined in one."""
    return name in modules or name.rpartition(".")[0] in modules


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
