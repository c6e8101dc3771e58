"""Where pages and notebooks use public names: the examples of the reference for names whose docstring has none.

A name is found as what a module or class is imported as, and behind variables: `plan = lens.plan(...)` is a use of
`Client.plan` and of `Plan`, because that is what the method's signature says it returns.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from docs.public_names import GROUPS, public_names

_ACCESSOR = "gamelens.notebook.accessor.Accessor"
_NAME_OF_MODULE = re.compile(r"gamelens(\.|$)")


class Use(NamedTuple):
    """A statement that uses a public name."""

    code: str
    page: str
    title: str
    is_named: bool
    """Whether the name is written in it; else an object of this class is what it makes."""

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Names before what is made, one line before several, then the shortest."""
        return not self.is_named, "\n" in self.code, len(self.code)


def examples_in(texts: Iterable[tuple[str, str, str]]) -> dict[str, Use]:
    """Return the statement that shows each public name best, at any depth of the code.

    Args:
        texts: pages as path, title and Markdown.
    """
    found: dict[str, Use] = {}
    types = _ReturnTypes()
    for page, title, text in texts:
        reader = _PageReader(types)
        for code in re.findall(r"^```python.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for source, names in reader.statements(code):
                for name, is_named in names.items():
                    use = Use(source, page, title, is_named)
                    found[name] = min(found.get(name, use), use, key=lambda it: it.rank)
    return found


class _ReturnTypes:
    """Public classes by the functions, methods and properties that return them."""

    def __init__(self) -> None:
        self._public = {full: value for group in GROUPS for full, value in public_names(group)}
        self._classes = {it.__name__: full for full, it in self._public.items() if inspect.isclass(it)}

    def returned(self, full: str) -> str | None:
        """Return the public class of the value that a call of *full* has, or of its items."""
        value = self._value(full)
        return full if inspect.isclass(value) else self._class_in(full, value) if callable(value) else None

    def held(self, full: str) -> str | None:
        """Return the public class of the value of a property."""
        value = self._value(full)
        return self._class_in(full, value.fget) if isinstance(value, property) else None

    def _value(self, full: str) -> Any:
        holder, _, name = full.rpartition(".")
        return self._public.get(full, getattr(self._public.get(holder), name, None))

    def _class_in(self, full: str, function: Any) -> str | None:
        """Return the one public class that the return annotation names, alone or as that of items."""
        annotation = getattr(function, "__annotations__", {}).get("return", "")
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        words = re.findall(r"\w+", text)
        classes = {self._classes[word] for word in words if word in self._classes}
        classes |= {full.rpartition(".")[0]} if "Self" in words else set()
        return classes.pop() if len(classes) == 1 else None


class _PageReader:
    """The code of one page, read in order, with what its variables are."""

    def __init__(self, types: _ReturnTypes) -> None:
        self._types = types
        self._imported: dict[str, str] = {}
        self._variables: dict[str, str] = {}
        self._found: list[tuple[ast.stmt, dict[str, bool]]] = []

    def statements(self, code: str) -> Iterator[tuple[str, dict[str, bool]]]:
        """Yield the source of each statement with the names in it, and whether they are written there."""
        self._found = []
        for node in ast.parse(code).body:
            self._read(node)
        for statement, names in self._found:
            if names and not isinstance(statement, (ast.Import, ast.ImportFrom)):
                source = ast.get_source_segment(code, statement, padded=True) or ""
                yield textwrap.dedent(source), names

    def _read(self, node: ast.AST) -> dict[str, bool]:
        """Return the names in *node*, and remember what it binds."""
        self._bind_before(node)
        names: dict[str, bool] = {}
        for child in ast.iter_child_nodes(node):
            for name, is_named in self._read(child).items():
                names[name] = names.get(name, False) or is_named
        self._bind_after(node)
        is_use = isinstance(node, ast.Attribute | ast.Call)
        is_use |= isinstance(node, ast.Name) and node.id in self._imported  # a variable alone shows nothing
        if is_use and (full := self._name_of(node)):
            names[full] = names.get(full, False) or not isinstance(node, ast.Call)
        if isinstance(node, ast.stmt):
            self._found.append((node, names))
        return names

    def _bind_before(self, node: ast.AST) -> None:
        """Bind what a statement or comprehension binds for the code inside it."""
        match node:
            case ast.Import(names=names):
                self._import({it.asname or it.name: it.name for it in names})
            case ast.ImportFrom(module=module, names=names):
                self._import({it.asname or it.name: f"{module}.{it.name}" for it in names})
            case ast.For(target=target, iter=values) | ast.AsyncFor(target=target, iter=values):
                self._bind(target, values)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for part in node.generators:
                    self._bind(part.target, part.iter)

    def _bind_after(self, node: ast.AST) -> None:
        """Bind what holds for the code behind *node*."""
        match node:
            case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.withitem(context_expr=value, optional_vars=ast.Name() as target):
                self._bind(target, value)
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                self._bind(ast.Name(name), annotation)
            case ast.FunctionDef(name=name, returns=ast.expr() as annotation):
                self._bind(ast.Name(name), annotation)

    def _import(self, names: dict[str, str]) -> None:
        self._imported |= {name: full for name, full in names.items() if _NAME_OF_MODULE.match(full)}

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Remember what *target* is an object of. Names in a tuple are of no class that we know."""
        made = self._name_of(value) if isinstance(target, ast.Name) else None
        for name in (it.id for it in ast.walk(target) if isinstance(it, ast.Name)):
            self._imported.pop(name, None)
            self._variables.pop(name, None)
            if made:
                self._variables[name] = made

    def _name_of(self, node: ast.AST) -> str | None:
        """Return the dotted name that an expression is, or the class that it is an object of."""
        match node:
            case ast.Name(id=name):
                return self._imported.get(name) or self._variables.get(name)
            case ast.Attribute(attr="lens"):
                return _ACCESSOR
            case ast.Attribute(value=holder, attr=attribute):
                full = f"{self._name_of(holder) or ''}.{attribute}"
                return None if full.startswith(".") else self._types.held(full) or full
            case ast.Call(func=called):
                return self._types.returned(self._name_of(called) or "")
            case ast.Await(value=value) | ast.Subscript(value=value):
                return self._name_of(value)
        return None
