"""The index of modules, `src/gamelens/INDEX.md`, made from their docstrings."""

from __future__ import annotations

import ast
import os
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "gamelens"
INDEX = PACKAGE / "INDEX.md"
COMMAND = "INDEX=write .venv/bin/pytest tests/house/test_module_index.py"
HEAD = """\
# Every module in one line

The first lines of their docstrings, by room and part; tests keep this page equal to them. Each room's README says how
its modules work together.
"""


def first_line(module: Path) -> str:
    """Return the first line of the docstring of *module*."""
    return (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def table(folder: Path) -> list[str]:
    """Return the lines of the index for the modules of one package."""
    modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    name = folder.relative_to(PACKAGE.parent).as_posix()
    rows = [f"| [`{path.stem}`]({path.relative_to(PACKAGE).as_posix()}) | {first_line(path)} |" for path in modules]
    return ["", f"## {name}", "", "| module | is |", "|---|---|", *rows] if rows else []


def index() -> str:
    """Return the whole page."""
    packages = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
    return HEAD + "\n".join(line for package in packages for line in table(package)) + "\n"


def test_the_index_has_every_module_with_its_first_line() -> None:
    """The page equals what the docstrings say; when they change, write it anew with the command below."""
    if os.environ.get("INDEX") == "write":
        INDEX.write_text(index(), encoding="utf-8")
    assert INDEX.read_text(encoding="utf-8") == index(), f"docstrings changed: {COMMAND}"
