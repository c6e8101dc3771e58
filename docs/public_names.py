"""The reference of public names: signature, docstring, and a line of a notebook or page that uses the name."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import griffe

import gamelens
from docs.reference import escape_lines
from gamelens import errors
from gamelens.notebook.accessor import Lens

GROUPS: Mapping[str, tuple[str, ...]] = {
    "gamelens": ("gamelens",),
    "frames": ("gamelens.notebook.accessor",),
    "notebook": ("gamelens.notebook", "gamelens.notebook.charts", "gamelens.notebook.widgets"),
    "analysis-ads": ("gamelens.analysis.ads", "gamelens.analysis.decomposition", "gamelens.analysis.revenue"),
    "analysis-retention": ("gamelens.analysis.retention",),
    "analysis-experiments": ("gamelens.analysis.experiments", "gamelens.analysis.significance"),
    "analysis-health": ("gamelens.analysis.health",),
    "analysis-outside-data": ("gamelens.analysis.outside_data",),
    "analysis-frames": ("gamelens.analysis.tidy_frames", "gamelens.analysis.totals", "gamelens.analysis.claims"),
    "local": ("gamelens.local",),
    "simulator": ("gamelens.simulator",),
}
"""Modules with public names, by the page that they are on."""
TITLES = {
    "gamelens": "import gamelens as gl",
    "frames": "df.lens",
    "notebook": "Charts, widgets and sentences",
    "analysis-ads": "Ads and revenue",
    "analysis-retention": "Retention and lifetime value",
    "analysis-experiments": "Experiments",
    "analysis-health": "Health",
    "analysis-outside-data": "Outside data",
    "analysis-frames": "Frames, totals and claims",
    "local": "Sandboxes and sample files",
    "simulator": "Simulator",
}
"""Titles of the pages."""
_WIDTH = 96
_LENS = {"lens": "gamelens.Client", "client": "gamelens.Client"}
"""Variables that notebooks and pages call a client by."""


class Use(NamedTuple):
    """A statement that uses a public name."""

    code: str
    page: str
    title: str


class _Raw:
    """An annotation that is shown as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def public_names(group: str) -> Iterator[tuple[str, Any]]:
    """Yield the public names on the page *group*, dotted, with what they are."""
    for module_name in GROUPS[group]:
        module = import_module(module_name)
        for name in _listed(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType) and name not in errors.__all__:
                yield f"{module_name}.{name}", value


def _listed(module: ModuleType) -> list[str]:
    """Return what a package lists, or the functions and classes that a module defines."""
    if module.__name__.endswith(".accessor"):
        return ["Lens"]
    own = (name for name, it in vars(module).items() if getattr(it, "__module__", None) == module.__name__)
    return getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]


def names_page(group: str, uses: Mapping[str, list[Use]]) -> str:
    """Return the page of the names in *group*."""
    parts = [f"# {TITLES[group]}"]
    seen = ""
    for full, value in public_names(group):
        module, _, name = full.rpartition(".")
        if module != seen:
            seen = module
            about = inspect.getdoc(Lens if value is Lens else import_module(module)) or ""
            parts.append(escape_lines(about.partition("\n")[0]))
            parts += [f"```python\n{_import_of(module)}\n```"] if value is not Lens else []
        parts += _described(full, _shown_name(full, name), value, uses)
    return "\n\n".join(filter(None, parts)) + "\n"


def _import_of(module: str) -> str:
    holder, _, last = module.rpartition(".")
    if module == "gamelens":
        return "import gamelens as gl"
    return f"from {holder} import {last}" if holder != "gamelens" else f"import {module}"


def _shown_name(full: str, name: str) -> str:
    holder = full.split(".")[-2]
    prefix = "gl" if holder == "gamelens" else holder
    return "df.lens" if name == "Lens" else f"{prefix}.{name}"


def _described(full: str, shown: str, value: Any, uses: Mapping[str, list[Use]]) -> Iterator[str]:
    """Yield heading, signature, docstring and example of a name, and of the methods of a class."""
    yield f"## {shown}"
    if not callable(value):
        yield f"```python\n{shown} = {_short(value)}\n```"
        yield escape_lines(_text_below(full))
    else:
        yield from _callable(shown, value)
    yield from _example(full, uses)
    if inspect.isclass(value):
        for name, method in _methods(value):
            yield f"### {shown}.{name}"
            yield from _callable(f"{shown.lower() if shown == 'df.lens' else shown}.{name}", method)
            yield from _example(f"{full}.{name}", uses)


def _callable(shown: str, value: Any) -> Iterator[str]:
    if signature := _signature(shown, value):
        yield f"```python\n{signature}\n```"
    yield from _docstring(inspect.getdoc(value) or "")


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods that gamelens defines for *value*, in the order of their names."""
    for name, member in inspect.getmembers(value):
        is_ours = (getattr(member, "__module__", None) or "").startswith("gamelens")
        if not name.startswith("_") and callable(member) and is_ours and inspect.getdoc(member):
            yield name, member


def _signature(shown: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        it.replace(annotation=_Raw(it.annotation) if isinstance(it.annotation, str) else it.annotation)
        for it in signature.parameters.values()
        if it.name != "self"
    ]
    returns = signature.return_annotation
    returned = "" if returns is signature.empty or inspect.isclass(value) else f" -> {_type_text(returns)}"
    line = f"{shown}{signature.replace(parameters=parameters, return_annotation=signature.empty)}{returned}"
    if len(line) <= _WIDTH:
        return line
    texts = [str(it) for it in parameters]
    star = next((at for at, it in enumerate(parameters) if it.kind is it.KEYWORD_ONLY), None)
    has_args = any(it.kind is it.VAR_POSITIONAL for it in parameters)
    if star is not None and not has_args:
        texts.insert(star, "*")
    return f"{shown}(\n{''.join(f'    {text},{chr(10)}' for text in texts)}){returned}"


def _type_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _docstring(text: str) -> Iterator[str]:
    """Yield the parts of a docstring as Markdown."""
    for section in griffe.Docstring(text).parse("google", warnings=False):
        match section.kind.value:
            case "text":
                yield escape_lines(section.value)
            case "parameters" | "attributes" | "raises" as kind:
                title = {"parameters": "Arguments", "attributes": "Attributes", "raises": "Errors"}[kind]
                yield f"**{title}**"
                yield "\n".join(_item(it) for it in section.value)
            case "admonition":
                yield f"**{section.title}** {escape_lines(section.value.description)}"
            case kind:
                raise ValueError(f"a docstring has a section that this page cannot show: {kind}")


def _item(item: Any) -> str:
    name = item.name if hasattr(item, "name") else item.annotation
    return f"- `{name}`: {' '.join(escape_lines(item.description).split())}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _text_below(full: str) -> str:
    """Return the docstring below a constant, in the module that defines it."""
    package, _, name = full.rpartition(".")
    found = griffe.load(package, search_paths=[str(gamelens.__path__[0]) + "/.."], try_relative_path=False)
    member = found[name]
    member = member.final_target if member.is_alias else member
    return member.docstring.value if member.docstring else ""


def _example(full: str, uses: Mapping[str, list[Use]]) -> Iterator[str]:
    if found := uses.get(full):
        use = min(found, key=lambda it: ("\n" in it.code, len(it.code)))
        yield f"For example, in [{use.title}](../{use.page}):"
        yield f"```python\n{use.code}\n```"


def uses_in(texts: Iterable[tuple[str, str, str]]) -> dict[str, list[Use]]:
    """Return the statements that use each public name.

    Args:
        texts: pages as path, title and Markdown.
    """
    found: dict[str, list[Use]] = {}
    for page, title, text in texts:
        aliases = dict(_LENS)
        for code in re.findall(r"^```python.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            tree = ast.parse(code)
            aliases |= _aliases(tree)
            for node in tree.body:
                source = ast.get_source_segment(code, node) or ""
                for name in {} if isinstance(node, (ast.Import, ast.ImportFrom)) else _names_in(node, aliases):
                    found.setdefault(name, []).append(Use(source, page, title))
    return found


def _aliases(tree: ast.Module) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {it.asname or it.name: it.name for it in node.names if it.name.startswith("gamelens")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gamelens"):
            aliases |= {it.asname or it.name: f"{node.module}.{it.name}" for it in node.names}
    return aliases


def _names_in(statement: ast.AST, aliases: Mapping[str, str]) -> set[str]:
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id in aliases:
            names.add(aliases[node.id])
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            first, _, rest = dotted.partition(".")
            if first in aliases:
                names.add(f"{aliases[first]}.{rest}")
            if isinstance(node.value, ast.Attribute) and node.value.attr == "lens":
                names |= {"gamelens.notebook.accessor.Lens", f"gamelens.notebook.accessor.Lens.{node.attr}"}
    return names
