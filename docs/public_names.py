"""The reference of public names: signature, docstring, and an example.

The example is the indented block of the docstring, else a line of a notebook or page that uses the name.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_origin

import griffe

import gamelens
from docs.reference import escape_lines
from gamelens import errors
from gamelens.notebook.accessor import Accessor

if TYPE_CHECKING:
    from docs.name_uses import Use

GROUPS: Mapping[str, tuple[str, ...]] = {
    "gamelens": ("gamelens",),
    "frames": ("gamelens.notebook.accessor",),
    "notebook": ("gamelens.notebook", "gamelens.notebook.charts", "gamelens.notebook.widgets"),
    "analysis-ads": ("gamelens.analysis.ads", "gamelens.analysis.decomposition", "gamelens.analysis.revenue"),
    "analysis-retention": ("gamelens.analysis.retention",),
    "analysis-experiments": (
        "gamelens.analysis.experiments",
        "gamelens.analysis.over_days",
        "gamelens.analysis.significance",
    ),
    "analysis-health": ("gamelens.analysis.health",),
    "analysis-outside-data": ("gamelens.analysis.outside_data",),
    "analysis-frames": (
        "gamelens.analysis.tidy_frames",
        "gamelens.analysis.totals",
        "gamelens.analysis.changes",
        "gamelens.analysis.claims",
    ),
    "local": ("gamelens.local",),
    "raw-events": ("gamelens.raw_events",),
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
    "analysis-frames": "Frames, totals, changes and claims",
    "local": "Sandboxes and sample files",
    "raw-events": "Raw events",
    "simulator": "Simulator",
}
"""Titles of the pages."""
_WIDTH = 96
_EXAMPLE = re.compile(r"(?<=\n\n)(?: {4}.*\n?)+")
_SECTION = re.compile(r"^(?:Args|Attributes|Raises|Yields):$", re.MULTILINE)


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


def headings(group: str) -> Iterator[str]:
    """Yield what the page *group* has a heading for: the public names, dotted, and the methods of classes."""
    for full, value in public_names(group):
        yield full
        if inspect.isclass(value):
            yield from (f"{full}.{name}" for name, _ in _methods(value))


def docstring_examples(group: str) -> Iterator[tuple[str, str]]:
    """Yield the names on the page *group* whose docstring has an example, dotted, each with its code."""
    for full, value in public_names(group):
        methods = _methods(value) if inspect.isclass(value) else ()
        for name, named in ((full, value), *((f"{full}.{name}", method) for name, method in methods)):
            if code := _docstring_example(named):
                yield name, code


def _docstring_example(value: Any) -> str:
    """Return the first indented block of the docstring of a function or class, "" without one."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return ""
    about = _SECTION.split(inspect.getdoc(value) or "")[0]
    found = _EXAMPLE.search(about)
    return textwrap.dedent(found[0]).strip() if found else ""


def _listed(module: ModuleType) -> list[str]:
    """Return what a package lists, or the functions and classes that a module defines and `gamelens` does not list."""
    if module.__name__.endswith(".accessor"):
        return ["Accessor"]
    own = (name for name, it in vars(module).items() if getattr(it, "__module__", None) == module.__name__)
    return getattr(module, "__all__", None) or [
        name for name in own if not name.startswith("_") and name not in gamelens.__all__
    ]


def names_page(group: str, examples: Mapping[str, Use]) -> str:
    """Return the page of the names in *group*."""
    parts = [f"# {TITLES[group]}"]
    seen = ""
    for full, value in public_names(group):
        module, _, name = full.rpartition(".")
        if module != seen:
            seen = module
            about = inspect.getdoc(Accessor if value is Accessor else import_module(module)) or ""
            parts.append(escape_lines(about.partition("\n")[0]))
            parts += [f"```python\n{_import_of(module)}\n```"] if value is not Accessor else []
        parts += _described(full, _shown_name(full, name), value, examples)
    return "\n\n".join(filter(None, parts)) + "\n"


def _import_of(module: str) -> str:
    holder, _, last = module.rpartition(".")
    if module == "gamelens":
        return "import gamelens as gl"
    return f"from {holder} import {last}"


def _shown_name(full: str, name: str) -> str:
    holder = full.split(".")[-2]
    prefix = "gl" if holder == "gamelens" else holder
    return "df.lens" if name == "Accessor" else f"{prefix}.{name}"


def _described(full: str, shown: str, value: Any, examples: Mapping[str, Use]) -> Iterator[str]:
    """Yield heading, signature, docstring and example of a name, and of the methods of a class."""
    yield f"## {shown}"
    if not callable(value) or get_origin(value) is not None:
        yield f"```python\n{shown} = {_short(value)}\n```"
        yield escape_lines(_text_below(full))
    else:
        yield from _callable(shown, value)
    yield from _example(full, value, examples)
    if inspect.isclass(value):
        for name, method in _methods(value):
            yield f"### {shown}.{name}"
            yield from _callable(f"{shown.lower() if shown == 'df.lens' else shown}.{name}", method)
            yield from _example(f"{full}.{name}", method, examples)


def _callable(shown: str, value: Any) -> Iterator[str]:
    if signature := _signature(shown, value):
        yield f"```python\n{signature}\n```"
    yield from _docstring(inspect.getdoc(value) or "")


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods that gamelens defines for *value*, in the order of their names.

    Those of a public class that it extends have their headings there.
    """
    extended = {name for base in value.__mro__[1:] if base.__name__ in gamelens.__all__ for name in dir(base)}
    for name, member in inspect.getmembers(value):
        is_ours = (getattr(member, "__module__", None) or "").startswith("gamelens")
        is_own = name in vars(value) or name not in extended
        if not name.startswith("_") and callable(member) and is_ours and is_own and inspect.getdoc(member):
            yield name, member


def _signature(shown: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        it.replace(annotation=_annotation(it), default=_default(it))
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


def _annotation(parameter: inspect.Parameter) -> Any:
    return _Raw(parameter.annotation) if isinstance(parameter.annotation, str) else parameter.annotation


def _default(parameter: inspect.Parameter) -> Any:
    """Return the default value of a parameter, functions by name, because their repr has an address in memory."""
    name = getattr(parameter.default, "__name__", None)
    if name is None or inspect.isclass(parameter.default):
        return parameter.default
    return _Raw("..." if name == "<lambda>" else name)


def _type_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _docstring(text: str) -> Iterator[str]:
    """Yield the parts of a docstring as Markdown."""
    for section in griffe.Docstring(text).parse("google", warnings=False):
        match section.kind.value:
            case "text":
                yield from _paragraphs(section.value)
            case "parameters" | "attributes" | "raises" as kind:
                title = {"parameters": "Arguments", "attributes": "Attributes", "raises": "Errors"}[kind]
                yield f"**{title}**"
                yield "\n".join(_item(it) for it in section.value)
            case "admonition":
                yield f"**{section.title}** {escape_lines(section.value.description)}"
            case kind:
                raise ValueError(f"a docstring has a section that this page cannot show: {kind}")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the text of a docstring as Markdown, its example as a block of Python."""
    found = _EXAMPLE.search(text)
    if found is None:
        yield escape_lines(text)
        return
    yield escape_lines(text[: found.start()])
    yield f"```python\n{textwrap.dedent(found[0]).strip()}\n```"
    yield escape_lines(text[found.end() :])


def _item(item: Any) -> str:
    name = item.name if hasattr(item, "name") else item.annotation
    return f"- `{name}`: {' '.join(escape_lines(item.description).split())}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _text_below(full: str) -> str:
    """Return the docstring below a constant, in the module that defines it."""
    member = _sources()[full.removeprefix("gamelens.")]
    member = member.final_target if member.is_alias else member
    return member.docstring.value if member.docstring else ""


@cache
def _sources() -> Any:
    """Return all modules of the package as griffe reads them, which takes seconds."""
    return griffe.load("gamelens", search_paths=[str(gamelens.__path__[0]) + "/.."], try_relative_path=False)


def _example(full: str, value: Any, examples: Mapping[str, Use]) -> Iterator[str]:
    """Yield the line of a page that uses a name, if its docstring has no example."""
    if (use := examples.get(full)) and not _docstring_example(value):
        yield f"For example, in [{use.title}](../{use.page}):"
        yield f"```python\n{use.code}\n```"
