"""Planted faults: each of `mutants.toml` must make one of the tests that it names fail. Run as `make mutants`.

`python tests/support/mutants.py [ROOM ...]` plants them one at a time in a copy of the source, never in the checkout,
and runs the named tests in a process forked from this one, which has imported the libraries once. A fault that no test
catches is a hole in the tests.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).with_suffix(".toml")
LIBRARIES = (
    "duckdb",
    "httpx",
    "pandas",
    "plotly.graph_objects",
    "pyarrow.parquet",
    "scipy.special",
    "sqlglot",
    "starlette",
)
OPTIONS = [
    "-q",
    "-x",
    "--assert=plain",
    "--hypothesis-profile=whole",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
LEFT_OUT = ["nbmake", "cacheprovider", "xdist"]
LIMIT_S = 300
VERDICTS = {0: "missed", 1: "caught"}
"""By pytest's exit code. With any other the fault was not tried: it hindered the import, or no such test was found."""


class Mutant(NamedTuple):
    """One fault of a room: in *file*, *before* becomes *after*, which *tests* must notice."""

    room: str
    name: str
    file: str
    before: str
    after: str
    tests: str


def mutants(rooms: list[str]) -> list[Mutant]:
    """Return the faults of these rooms, of all without any.

    Raises:
        SystemExit: a room has none, or the text of a fault is not in its file exactly once.
    """
    described = tomllib.loads(FAULTS.read_text(encoding="utf-8"))
    if unknown := {*rooms} - described.keys():
        sys.exit(f"no faults of {', '.join(unknown)}: {', '.join(described)}")
    found = [Mutant(room, *row) for room in rooms or described for row in described[room]]
    for it in found:
        times = (ROOT / "src" / "gamelens" / it.room / it.file).read_text(encoding="utf-8").count(it.before)
        if times != 1:
            sys.exit(f"{it.room}, {it.name}: {it.file} has {times} times {it.before!r}. Describe the fault anew")
    return found


def tried(mutant: Mutant, source: Path) -> str:
    """Plant *mutant* in the copy *source*, run its tests, and return the verdict."""
    file = Path("gamelens", mutant.room, mutant.file)
    text = (source / file).read_text(encoding="utf-8")
    (source / file).write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    output = source.with_name("output.txt")
    try:
        if (child := os.fork()) == 0:
            _run_tests(mutant.tests.split(), source, output)
        _, status = os.waitpid(child, 0)
    finally:
        shutil.copy2(ROOT / "src" / file, source / file)  # with its time, so that its bytecode is compiled anew
    verdict = VERDICTS.get(os.waitstatus_to_exitcode(status), "not tried")
    if verdict != "caught":
        print(output.read_text(encoding="utf-8")[-3000:])
    return verdict


def _run_tests(tests: list[str], source: Path, output: Path) -> None:
    """End this process with the exit code of *tests*, run on the copy of the source."""
    signal.alarm(LIMIT_S)
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.path.insert(0, str(source))
    os.environ |= {"PYTHONPATH": str(source), "HYPOTHESIS_STORAGE_DIRECTORY": str(source.with_name("hypothesis"))}
    import pytest

    plugins = [word for name in LEFT_OUT for word in ("-p", f"no:{name}")]
    code = int(pytest.main([*OPTIONS, *plugins, *(f"tests/{name}" for name in tests)]))
    is_copy = str(sys.modules["gamelens"].__file__).startswith(str(source))
    sys.stdout.flush()
    os._exit(code if is_copy else 99)


def main() -> None:
    """Try the faults, print a line for each, and fail if one is not caught."""
    os.chdir(ROOT)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has no threads of its parent
    found = mutants(sys.argv[1:])
    for name in LIBRARIES:
        importlib.import_module(name)
    failed = 0
    for room in dict.fromkeys(it.room for it in found):
        source = ROOT / ".cache" / "mutants" / room / "src"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for it in (it for it in found if it.room == room):
            began = time.monotonic()
            verdict = tried(it, source)
            failed += verdict != "caught"
            print(f"{verdict:<10}{time.monotonic() - began:>6.1f} s  {room:<12}{it.name}", flush=True)
        shutil.rmtree(source)
    print(f"{len(found) - failed} of {len(found)} faults were caught")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
