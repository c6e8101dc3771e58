"""The project's words: none that is banned is in a name, and each term of the README has its home."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from house.source import PACKAGE, Module, modules, place
from support.english import phrases, pronouns

WORDS = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))


class Name(NamedTuple):
    """A name that the package defines."""

    module: Module
    line: int
    owner: str
    """Classes and functions that it belongs to, dotted; empty at the top of a module."""
    name: str
    is_kind: bool
    """Whether it is the name of a module, package or class."""

    @property
    def full(self) -> str:
        """The name with its owner."""
        return f"{self.owner}.{self.name}".removeprefix(".")

    @property
    def place(self) -> str:
        """Where it is, and what it is called."""
        return f"{place(self.module, self.line)} {self.full}"


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name in snake or camel case, lower-case and in the singular."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return tuple(word if word.endswith("ss") else word.removesuffix("s") for word in map(str.lower, found))


def words_of(key: str) -> set[str]:
    """Return all words of a list of `vocabulary.toml`."""
    return {word for name in WORDS[key] for word in words(name)}


def terms() -> dict[str, list[str]]:
    """Return the homes of each term in the table of the README."""
    table = (PACKAGE / "README.md").read_text(encoding="utf-8").partition("\n## Words\n")[2]
    rows = re.findall(r"^\| (.+) \| .+ \| (.+) \|$", table, re.MULTILINE)[2:]
    return {term: re.findall("`(.+?)`", homes) for term, homes in rows}


@cache
def names() -> tuple[Name, ...]:
    """Return the names of modules, classes, functions, parameters, fields and constants."""
    kinds = [Name(module, 1, "", module.name.rpartition(".")[2], True) for module in modules()]
    return (*kinds, *(name for module in modules() for name in _names_in(module, module.tree, "")))


def _names_in(module: Module, node: ast.AST, owner: str) -> Iterator[Name]:
    for child in ast.iter_child_nodes(node):
        inner = owner
        match child:
            case ast.ClassDef(name=name):
                yield Name(module, child.lineno, owner, name, True)
                inner = f"{owner}.{name}".removeprefix(".")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield Name(module, child.lineno, owner, name, False)
                inner = owner if name == "__init__" else f"{owner}.{name}".removeprefix(".")
            case ast.arg(arg=name) if name not in ("self", "cls"):
                yield Name(module, child.lineno, owner, name, False)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield Name(module, child.lineno, owner, name, False)
            case ast.Assign() | ast.AnnAssign() if isinstance(node, ast.Module | ast.ClassDef):
                targets = [it for it in ast.walk(child) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)]
                yield from (Name(module, child.lineno, owner, it.id, False) for it in targets)
            case ast.Lambda():
                child = child.body
        yield from _names_in(module, child, inner)


def test_no_name_has_a_checked_word() -> None:
    """Names of modules, classes, functions, parameters, fields and constants, in singular or plural."""
    everywhere, of_kinds = words_of("names"), words_of("names") | words_of("classes")
    wrong = {
        f"{it.place}: {word}"
        for it in names()
        for word in (of_kinds if it.is_kind else everywhere).intersection(words(it.name))
        if not {it.name, it.full} & {*WORDS["except"]}
    }
    assert wrong == set()


def test_no_module_or_class_is_called_by_a_banned_word() -> None:
    """In singular or plural; `vocabulary.toml` has the term to say instead."""
    banned = {words(it.partition(" (")[0]): term for term, own in WORDS["banned"].items() for it in own}
    banned |= {words(name): "what it holds" for name in WORDS["vague"]}
    kinds = [it for it in names() if it.is_kind and it.name not in WORDS["allowed"]]
    assert [f"{it.place}: say {banned[words(it.name)]}" for it in kinds if words(it.name) in banned] == []


def test_no_variable_is_called_by_a_pronoun() -> None:
    """A name says what its value is. `of` is what some public arguments and keys are called."""
    found = [f"{module.path}: {name}" for module in modules() for _, name in pronouns(module.tree)]
    public = ("analysis/outside_data/roles.py", "assistant/tools.py", "raw_events/session_paths.py")
    assert [name for name in found if name not in {f"{path}: of" for path in public}] == []


def test_hidden_subjects_stay_few() -> None:
    """Sentences of the source say who does what: `python tests/support/english.py` counts them by room."""
    hidden = [phrase for path in PACKAGE.rglob("*.py") for phrase in phrases(path.read_text(encoding="utf-8"))]
    assert len(hidden) <= 20


def test_every_term_has_its_home() -> None:
    """The module or folder is there, and defines the name that the term gives: a class or an alias of a type."""
    defined = {f"{it.module.path.as_posix()}: {it.name}" for it in names()}
    homes = [home for own in terms().values() for home in own]
    assert len(homes) > 50
    assert [home for home in homes if home not in defined and not (PACKAGE / home).exists()] == []


def test_banned_words_are_those_of_terms() -> None:
    """A term that was renamed takes its banned words along."""
    assert {*WORDS["banned"]} <= {*terms()}


def test_the_name_of_a_class_or_a_type_alias_exists_once() -> None:
    """Public ones, all over the package: who reads a name need not ask which one. Aliases defined alike are one."""
    meanings: dict[str, set[str]] = {}
    for module in modules():
        for node in module.tree.body:
            match node:
                case ast.ClassDef(name=name):
                    meanings.setdefault(name, set()).add(module.name)
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ) if _is_type(name, value):
                    meanings.setdefault(name, set()).add(ast.unparse(value))
    assert len(meanings) > 600
    assert {name: found for name, found in meanings.items() if name[0] != "_" and len(found) > 1} == {}


def _is_type(name: str, value: ast.expr) -> bool:
    """Return whether an assignment defines a type alias: it is called as a class is, and is no variable of a type."""
    is_variable = isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"
    return name[0].isupper() and not name.isupper() and not is_variable
