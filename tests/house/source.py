"""Source code of gamelens, parsed once for all rules of this folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gamelens"
TOP = "gamelens"
"""Name of the top level where rooms are counted: modules that lie in no room, and rules about the whole package."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module(NamedTuple):
    """A module or the `__init__` of a package, with its syntax tree."""

    path: Path
    """Relative to `src/gamelens`."""
    lines: int
    tree: ast.Module

    @property
    def name(self) -> str:
        """Dotted name; that of the package for an `__init__`."""
        parts = self.path.with_suffix("").parts
        return ".".join([TOP, *(parts[:-1] if self.is_package else parts)])

    @property
    def is_package(self) -> bool:
        """Whether this is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """Name of the room, or `TOP` for what lies in none."""
        return self.path.parts[0] if len(self.path.parts) > 1 else TOP


class Definition(NamedTuple):
    """A class or function, wherever it is nested."""

    module: Module
    owner: str
    """Classes and functions around it, dotted; empty at the top of a module."""
    node: ast.ClassDef | Function

    @property
    def name(self) -> str:
        """Dotted name inside its module."""
        return f"{self.owner}.{self.node.name}" if self.owner else self.node.name

    @property
    def place(self) -> str:
        """File and line, for a terminal to open."""
        return place(self.module, self.node.lineno)


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, by path."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(PACKAGE), len(text.splitlines()), ast.parse(text)))
    return tuple(found)


@cache
def definitions() -> tuple[Definition, ...]:
    """Return every class and function of the package."""
    return tuple(found for module in modules() for found in _definitions(module, "", module.tree))


def _definitions(module: Module, owner: str, node: ast.AST) -> Iterator[Definition]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, *FUNCTIONS)):
            found = Definition(module, owner, child)
            yield found
            yield from _definitions(module, found.name, child)
        else:
            yield from _definitions(module, owner, child)


def classes() -> Iterator[Definition]:
    """Yield every class of the package."""
    return (found for found in definitions() if isinstance(found.node, ast.ClassDef))


def functions() -> Iterator[tuple[Definition, Function]]:
    """Yield every function and method of the package, with its node."""
    for found in definitions():
        if isinstance(found.node, FUNCTIONS):
            yield found, found.node


def parameters(function: Function) -> list[str]:
    """Return the names of all parameters but `self` and `cls`."""
    given = function.args
    known = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [it.arg for it in known if it is not None and it.arg not in ("self", "cls")]


def place(module: Module, line: int) -> str:
    """Return file and line as a terminal can open them."""
    return f"src/gamelens/{module.path}:{line}"


@cache
def exported(name: str) -> frozenset[str]:
    """Return the names that a module lists in `__all__`.

    Without it, a package lists none and a module its public definitions.
    """
    module = next((it for it in modules() if it.name == name), None)
    if module is None:
        return frozenset()
    public: set[str] = set()
    for node in module.tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = {it.id for it in targets if isinstance(it, ast.Name)}
        if "__all__" in names and isinstance(node, ast.Assign):
            return frozenset(ast.literal_eval(node.value))
        public |= {node.name} if isinstance(node, (ast.ClassDef, *FUNCTIONS)) else names
    return frozenset() if module.is_package else frozenset(it for it in public if not it.startswith("_"))
