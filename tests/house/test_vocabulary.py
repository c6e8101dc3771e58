"""The words of `vocabulary.toml`: none of the checked ones is in a name, and each term has its home."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from house.source import PACKAGE, ROOT, TOP, Module, classes, functions, modules, parameters, place
from house.violations import Violation, hold
from house.vocabulary import (
    ALLOWED,
    BANNED,
    CHECKED_IN_CLASSES,
    CHECKED_IN_NAMES,
    EXCEPTIONS,
    TERMS,
    advice,
    table,
    words,
)


class Name(NamedTuple):
    """A name in the package."""

    module: Module
    line: int
    owner: str
    """Class or function that it belongs to; empty at the top of a module."""
    name: str

    @property
    def full(self) -> str:
        """The name with its owner; arguments of `__init__` have their class."""
        owner = self.owner.removesuffix(".__init__")
        return f"{owner}.{self.name}" if owner else self.name


def test_no_name_has_a_checked_word() -> None:
    """Names of modules, classes, functions, parameters, fields and constants, in singular or plural."""

    def violations() -> Iterator[Violation]:
        for checked, names in ((CHECKED_IN_CLASSES, module_and_class_names()), (CHECKED_IN_NAMES, other_names())):
            for it in {(it.module.path, it.full): it for it in names}.values():
                if EXCEPTIONS.isdisjoint({it.name, it.full}):
                    for word in checked.intersection(words(it.name)):
                        where = place(it.module, it.line)
                        yield Violation(it.module.room, f"{where} {it.full}: {word}; {advice((word,))}")

    hold("checked_words", violations())


def test_no_module_or_class_is_called_by_a_banned_word() -> None:
    """In singular or plural; `vocabulary.toml` says what to call it instead."""
    hold(
        "banned_names",
        (
            Violation(it.module.room, f"{place(it.module, it.line)} {it.name}: {advice(words(it.name))}")
            for it in module_and_class_names()
            if words(it.name) in BANNED and it.name not in ALLOWED
        ),
    )


def test_every_term_has_its_home() -> None:
    """The module or folder is there, and defines the name that the term gives: a class or an alias of a type."""
    defined = {(it.module.path.as_posix(), it.name) for it in classes()}

    def violations() -> Iterator[Violation]:
        for term in TERMS:
            for home in term["home"]:
                path, _, name = home.partition(": ")
                is_there = (PACKAGE / path).exists()
                is_alias = is_there and name and f"\n{name} = " in (PACKAGE / path).read_text(encoding="utf-8")
                if not is_there or (name and (path, name) not in defined and not is_alias):
                    room = path.partition("/")[0]
                    yield Violation(room if "/" in path else TOP, f"{term['term']}: {home} is missing")

    hold("homes", violations())


def test_a_readme_shows_the_words() -> None:
    """The table as `python -m house.vocabulary` prints it, in any README of the project."""
    readmes = [ROOT / "README.md", *PACKAGE.rglob("README.md")]
    is_shown = any(table() in readme.read_text(encoding="utf-8") for readme in readmes)
    hold("words_shown", [] if is_shown else [Violation(TOP, "no README shows the table of words")])


def module_and_class_names() -> Iterator[Name]:
    """Yield the names of all modules, packages and classes."""
    for module in modules():
        yield Name(module, 1, "", module.name.rpartition(".")[2])
    for it in classes():
        yield Name(it.module, it.node.lineno, it.owner, it.node.name)


def other_names() -> Iterator[Name]:
    """Yield the names of all functions, parameters, fields and constants."""
    for module in modules():
        yield from _assigned(module, "", module.tree.body)
    for it in classes():
        yield from _assigned(it.module, it.name, it.node.body)
    for it, function in functions():
        yield Name(it.module, function.lineno, it.owner, function.name)
        for parameter in parameters(function):
            yield Name(it.module, function.lineno, it.name, parameter)
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                yield Name(it.module, node.lineno, it.owner, node.attr)


def _assigned(module: Module, owner: str, body: list[ast.stmt]) -> Iterator[Name]:
    """Yield the names that statements of a module or class assign: constants and fields."""
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for it in ast.walk(node):
                if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store):
                    yield Name(module, node.lineno, owner, it.id)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
