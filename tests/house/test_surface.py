"""The public surface: its names, what importing it costs, and one list of arguments for everything that queries."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache

import click
import pytest

import gamelens
from gamelens.assistant.tools import AnalystTools
from gamelens.cli import cli
from gamelens.notebook.widgets import explorer
from gamelens.receipts import QueryRecord
from house.source import ROOT, TOP, exported, modules
from support.fresh_python import run_python

HEAVY = {"pandas", "numpy", "httpx", "plotly", "duckdb", "sqlglot", "starlette", "gamelens.sandbox", "gamelens.client"}
ACCESSOR = "gamelens.notebook.accessor"

RUN = "how a query is run, and not what it asks"
LATER = "the form has pickers for one metric and its largest values"
EXCEPT = {
    "command line": {
        "to": "the command prints, or writes the file that --out names",
        "progress": "a terminal shows a bar, a pipe none",
    },
    "explorer": {
        "studios": "called studio: its picker takes one",
        **dict.fromkeys(("when_unavailable", "deadline_s", "on_error", "to", "progress"), RUN),
        **dict.fromkeys(("other", "check", "fields", "sort", "whole_buckets"), LATER),
    },
    "assistant": {
        **dict.fromkeys(("deadline_s", "on_error", "to", "progress"), RUN),
        **dict.fromkeys(("games", "studios"), "a filter on game_id is one way to say it, which is enough for a model"),
        **dict.fromkeys(
            ("other", "check", "fields", "sort", "whole_buckets", "since_days_ago"), "fewer arguments are chosen better"
        ),
    },
    "receipt": {
        **dict.fromkeys(("when_unavailable", "deadline_s", "on_error", "to", "progress"), RUN),
        "whole_buckets": "the receipt's `clipped` is the interval that was covered",
    },
}
"""Arguments of `query` that a place does not have, with the reason."""
CONNECTION = {"more", "cache", "pace", "record", "replay", "out", "as_json"}
"""Options of `gamelens query` that are not about the query: more values of --by, the client, the output."""


def loaded_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after *code*."""
    return set(json.loads(run_python("-c", f"{code}\nimport sys, json\nprint(json.dumps([*sys.modules]))")))


# Names.


@pytest.mark.parametrize("name", gamelens.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Names are loaded when first used, so a wrong path would show late."""
    assert getattr(gamelens, name) is not None
    assert name in dir(gamelens)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any module."""
    with pytest.raises(AttributeError, match=r"'nothing' does not exist in gamelens"):
        _ = gamelens.nothing  # type: ignore[attr-defined]


def test_readme_and_notebooks_use_public_names_only() -> None:
    """Public is a name that `__all__` of gamelens or of a room lists; every other module is internal."""
    used = {(path, name) for path, code in printed_code() for name in used_names(code)}
    assert [f"{path}: {name}" for path, name in used if not is_public(name)] == []


def printed_code() -> Iterator[tuple[str, str]]:
    """Yield the Python code of each README, page and notebook, with the file's name."""
    printed = (*sorted((ROOT / "src").rglob("README.md")), *sorted((ROOT / "docs" / "pages").rglob("*.md")))
    for readme in (ROOT / "README.md", *printed):
        for code in re.findall(r"```python(?: \w+)?\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL):
            yield str(readme.relative_to(ROOT)), code
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield path.name, "\n".join("".join(it["source"]) for it in cells if it["cell_type"] == "code")


def used_names(code: str) -> Iterator[str]:
    """Yield the dotted names of gamelens that *code* imports, and those it reads from modules so imported."""
    tree = ast.parse(code)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {it.asname or TOP: it.name for it in node.names if it.name.partition(".")[0] == TOP}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == TOP:
            aliases |= {it.asname or it.name: f"{node.module}.{it.name}" for it in node.names}
    yield from aliases.values()
    known = {module.name for module in modules()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = aliases.get(node.value.id)
            if module in known:
                yield f"{module}.{node.attr}"


@cache
def is_public(name: str) -> bool:
    """Return whether *name* is `gamelens`, or is listed at each step by the package or module that holds it.

    All modules beside the rooms and the rooms themselves count as listed by gamelens.
    """
    holder, _, last = name.rpartition(".")
    if holder in ("", TOP):
        rooms = {module.name for module in modules() if not module.path.name.startswith("__main__")}
        return name == TOP or last in exported(TOP) or (name in rooms and not last.startswith("_"))
    return is_public(holder) and last in exported(holder)


# Imports.


def test_importing_gamelens_loads_nothing_heavy() -> None:
    """Neither pandas nor HTTP, an engine or a room."""
    assert HEAVY.isdisjoint(loaded_after("import gamelens"))


def test_filters_and_intervals_need_no_pandas() -> None:
    """They are values of the wire."""
    assert "pandas" not in loaded_after("from gamelens import dim, Interval")


def test_a_client_brings_the_accessor_but_neither_sandbox_nor_plotly() -> None:
    """`df.lens` is there as soon as there can be a frame; figures and the sandbox are loaded when used."""
    loaded = loaded_after("from gamelens import Client")
    assert ACCESSOR in loaded
    assert {"gamelens.sandbox", "plotly", "duckdb"}.isdisjoint(loaded)


def test_pandas_first_gets_the_accessor_at_once() -> None:
    """Frames may already be there."""
    assert ACCESSOR in loaded_after("import pandas, gamelens")


# Arguments of a query.


def arguments_of(client: type, method: str) -> list[inspect.Parameter]:
    """Return the parameters of a client's method, without `self`."""
    return [*inspect.signature(getattr(client, method)).parameters.values()][1:]


@pytest.mark.parametrize("method", ["query", "plan"])
@pytest.mark.parametrize("client", ["Client", "AsyncClient"])
def test_a_query_takes_the_same_arguments_everywhere(client: str, method: str) -> None:
    """Names, order, defaults and types are those of `Client.query`."""
    assert arguments_of(getattr(gamelens, client), method) == query_arguments()


def query_arguments() -> list[inspect.Parameter]:
    """Return the parameters that define a query."""
    return arguments_of(gamelens.Client, "query")


@pytest.mark.parametrize("command", ["query", "plan"])
def test_the_command_line_has_no_other_options(command: str) -> None:
    """But for those about the connection and the output."""
    assert options_of(command) - CONNECTION <= {it.name for it in query_arguments()}


def options_of(command: str) -> set[str]:
    """Return the names of the arguments and options of a command."""
    found = cli.commands[command]
    assert isinstance(found, click.Command)
    return {it.name or "" for it in found.get_params(click.Context(found, help_option_names=[]))}


def arguments_by_place() -> dict[str, set[str]]:
    """Return the names of the arguments that each place takes or records, as `query` calls them."""
    return {
        "command line": options_of("query") & options_of("plan"),
        "explorer": {*inspect.signature(explorer).parameters},
        "assistant": {*inspect.signature(AnalystTools.query).parameters},
        "receipt": {*QueryRecord.__struct_fields__},
    }


def forgotten(arguments: set[str]) -> list[str]:
    """Return each argument that a place neither has nor is excused from, and each excuse that is not needed."""
    found = arguments_by_place()
    missing = [f"{place} lacks {name}" for place, has in found.items() for name in arguments - has - {*EXCEPT[place]}]
    needless = [
        f"{place} needs no excuse for {name}"
        for place, reasons in EXCEPT.items()
        for name in reasons
        if name not in arguments or name in found[place]
    ]
    return sorted(missing + needless)


def test_every_argument_of_a_query_is_in_every_place() -> None:
    """Command line, explorer, assistant and receipt have it, or `EXCEPT` says why not."""
    assert forgotten({it.name for it in query_arguments()}) == []


def test_an_argument_that_only_the_client_has_is_found() -> None:
    """In each of the four places; an excuse for an argument that went is found too."""
    arguments = {it.name for it in query_arguments()}
    assert forgotten(arguments | {"not one"}) == sorted(f"{place} lacks not one" for place in EXCEPT)
    assert forgotten(arguments - {"check"}) == [
        "assistant needs no excuse for check",
        "explorer needs no excuse for check",
    ]
