"""Sizes and places: how much a package, a module and a function may hold, and where modules lie."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath

from house.source import PACKAGE, TOP, Definition, Function, functions, modules, parameters
from house.violations import Violation, hold

ROOMS = {
    *("wire", "client", "sandbox", "simulator", "analysis", "notebook"),
    *("messages", "local", "assistant", "raw_events", "cli"),
}
FILES = {"__init__.py", "__main__.py", "errors.py", "catalog.py", "_files.py", "_text.py"}

ENTRIES = range(3, 13)
NESTED_PACKAGES = 2
MODULE_LINES = 400
BODY_LINES = 45
PARAMETERS = 8
LONG_SIGNATURES = {
    "query_arguments",
    "retention_arguments",
    "BaseClient.__init__",
    "Transport.__init__",
    "CollectorClient.__init__",
    "PlayerSession.__init__",
    "GameServer.join",
    "join",
    "explorer",
    "AnalystTools.query",
}
"""Functions whose keywords are what a user types; commands of the command line are exempt too."""


def test_the_top_level_is_its_rooms_and_four_files() -> None:
    """Beside the rooms lie the errors, the catalog, two private modules, and what Python itself asks for."""
    there = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    wanted = ROOMS | FILES
    extra = [Violation(TOP, f"{name} does not belong to the top level") for name in sorted(there - wanted)]
    hold("top_level", extra + [Violation(TOP, f"{name} is missing") for name in sorted(wanted - there)])


def test_a_package_has_3_to_12_entries() -> None:
    """Entries are modules and packages; `__init__`, `__main__` and folders without code are left aside."""

    def entries(package: PurePath) -> int:
        inside = {it.path.relative_to(package).parts[0] for it in modules() if it.path.is_relative_to(package)}
        return len(inside - {"__init__.py", "__main__.py"})

    def violations() -> Iterator[Violation]:
        for module in modules():
            if module.is_package and module.name != TOP:  # whose entries are listed above
                number = entries(module.path.parent)
                if not ENTRIES[0] <= number <= ENTRIES[-1]:
                    yield Violation(module.room, f"{module.name} has {number} entries")

    hold("package_entries", violations())


def test_packages_nest_two_deep() -> None:
    """A room has parts, and a part has modules."""
    deep = (it for it in modules() if it.is_package and len(it.path.parents) - 1 > NESTED_PACKAGES)
    hold("nesting", (Violation(it.room, f"{it.name} lies too deep") for it in deep))


def test_a_module_has_at_most_400_lines() -> None:
    """A longer one is two."""
    long = (it for it in modules() if it.lines > MODULE_LINES)
    hold("module_lines", (Violation(it.room, f"src/gamelens/{it.path} has {it.lines} lines") for it in long))


def test_module_names_are_unique() -> None:
    """ "Go to file" has one answer."""
    places = defaultdict(list)
    for module in modules():
        if module.path.stem not in ("__init__", "__main__"):
            places[module.path.stem].append(str(module.path))
    shared = (paths for paths in places.values() if len(paths) > 1)
    hold("module_names", (Violation(TOP, f"one name: {', '.join(paths)}") for paths in shared))


def test_a_package_says_what_to_open_first() -> None:
    """Its docstring has "Open `x` first", and x is there."""

    def violations() -> Iterator[Violation]:
        for module in modules():
            if module.is_package and module.name != TOP:
                named = re.search(r"Open `([\w/]+)(?:\.py)?` first", ast.get_docstring(module.tree) or "")
                if named is None:
                    yield Violation(module.room, f'{module.name} does not say "Open `x` first"')
                elif not (PACKAGE / module.path.parent / f"{named[1]}.py").exists():
                    yield Violation(module.room, f"{module.name} says to open `{named[1]}`, which is not there")

    hold("open_first", violations())


def test_a_body_has_at_most_45_lines() -> None:
    """Counted from the first statement after the docstring."""

    def violations() -> Iterator[Violation]:
        for definition, function in functions():
            lines = body_lines(function)
            if lines > BODY_LINES:
                yield Violation(definition.module.room, f"{definition.place} {definition.name} has {lines} lines")

    hold("body_lines", violations())


def test_a_function_has_at_most_8_parameters() -> None:
    """But for the named ones, whose keywords are what a user types."""

    def violations() -> Iterator[Violation]:
        for definition, function in functions():
            number = len(parameters(function))
            if number > PARAMETERS and not may_be_long(definition, function):
                yield Violation(definition.module.room, f"{definition.place} {definition.name} has {number} parameters")

    hold("parameters", violations())


def body_lines(function: Function) -> int:
    """Return the lines of a function without signature and docstring."""
    first = 1 if ast.get_docstring(function) is not None and len(function.body) > 1 else 0
    return (function.body[-1].end_lineno or 0) - function.body[first].lineno + 1


def may_be_long(definition: Definition, function: Function) -> bool:
    """Return whether a function may have more parameters than others: a named one, or a command."""
    is_command = any(".command(" in ast.unparse(decorator) for decorator in function.decorator_list)
    return is_command or definition.name in LONG_SIGNATURES
