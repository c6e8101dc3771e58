"""Source code of gamelens, each module parsed once for all rules of this folder."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gamelens"
TOP = "gamelens"
"""Name of the package, and of the room of modules that lie in none."""


class Module(NamedTuple):
    """A module or the `__init__` of a package."""

    path: Path
    """Relative to `src/gamelens`."""

    @property
    def tree(self) -> ast.Module:
        """The syntax tree, parsed when it is first asked for."""
        return _parsed(self.path)

    @property
    def name(self) -> str:
        """Dotted name; that of the package for an `__init__`."""
        return ".".join([TOP, *self.path.with_suffix("").parts]).removesuffix(".__init__")

    @property
    def is_package(self) -> bool:
        """Whether this is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """Name of the room, or `TOP` for what lies in none."""
        return self.path.parts[0] if len(self.path.parts) > 1 else TOP


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, by path."""
    return tuple(Module(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py")))


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


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
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return frozenset(ast.literal_eval(value))
            case ast.ClassDef(name=it) | ast.FunctionDef(name=it) | ast.AsyncFunctionDef(name=it):
                public.add(it)
            case ast.Assign(targets=targets):
                public |= {it.id for it in targets if isinstance(it, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=it)):
                public.add(it)
    return frozenset() if module.is_package else frozenset(it for it in public if not it.startswith("_"))
