"""What the outside sees stays as it is: public names, routes, and the shapes of both services.

The files in `snapshots` hold all of it. A change that is meant writes them anew, and shows in the diff:

    SNAPSHOTS=write .venv/bin/pytest tests/house/test_snapshots.py
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.sandbox.storage.lake_schema import COLUMNS, FORMAT
from gamelens.wire.dimensions import Payload, Sent
from house.source import PACKAGE, TOP, exported, modules

COMMAND = "SNAPSHOTS=write .venv/bin/pytest tests/house/test_snapshots.py"
FOLDER = Path(__file__).with_name("snapshots")
WIRE = PACKAGE / "wire" / "README.md"
REFERENCE = "#/components/schemas/"
LEFT_OUT = {"description", "summary", "title", "examples", "discriminator"}
"""Keywords for people, whose texts come from docstrings and class names; and one that repeats what `anyOf` says."""


def compare(name: str, lines: Iterator[str]) -> None:
    """Fail where *lines* are not those of the snapshot, or write them there."""
    path, today = FOLDER / name, list(lines)
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text("".join(f"{line}\n" for line in today), encoding="utf-8")
    before = path.read_text(encoding="utf-8").splitlines()
    if changes := [*unified_diff(before, today, "before", "now", lineterm="", n=0)]:
        pytest.fail("\n".join([*changes, f"If this is meant: {COMMAND}"]), pytrace=False)


def test_public_names_and_signatures_are_the_same() -> None:
    """`__all__` of gamelens and of every package in it: functions, classes and their public methods."""
    compare("signatures.txt", signatures())


def signatures() -> Iterator[str]:
    """Yield a line for each public name, with its signature; a name that is met again says where it was."""
    seen: dict[int, str] = {}
    for package in (it.name for it in modules() if it.is_package):
        for name in sorted(exported(package)):
            full, value = f"{package}.{name}", getattr(import_module(package), name)
            if not (inspect.isroutine(value) or inspect.isclass(value)):
                yield full
            elif (first := seen.setdefault(id(value), full)) != full:
                yield f"{full} is {first}"
            else:
                yield f"{full}{signature_of(value)}"
                yield from methods(value) if inspect.isclass(value) else ()


def methods(class_: type) -> Iterator[str]:
    """Yield a line for each public method and property that *class_* has from gamelens."""
    for name in sorted(it for it in dir(class_) if not it.startswith("_")):
        home = next(base for base in class_.__mro__ if name in vars(base))
        found = inspect.getattr_static(class_, name)
        if home.__module__.partition(".")[0] != TOP:
            continue
        if isinstance(found, (classmethod, staticmethod)) or inspect.isfunction(found):
            yield f"  .{name}{signature_of(getattr(class_, name))}"
        elif isinstance(found, property) and found.fget is not None:
            yield f"  .{name} -> {found.fget.__annotations__['return']}"


def signature_of(value: Callable[..., Any]) -> str:
    """Return the signature as it is written, without the address of a default that has one."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # an error that takes what every exception takes
        return "(...)"
    return re.sub(r"'|gamelens(?:\.\w+)*\.(?=\w)| at 0x[0-9a-f]+", "", str(signature))


def test_a_row_that_is_added_is_one_row() -> None:
    """Numbers count within a path, so that a metric more changes no line of the others."""
    document = json.loads(DESCRIPTIONS["metrics"]())
    before = [*shapes(document)]
    paths = document["paths"]
    document["paths"] = {"/metrics/v1/metrics/a_first_one": paths["/metrics/v1/metrics/event_count"], **paths}
    assert {*before} <= {*shapes(document)}


def test_a_change_of_a_signature_is_seen() -> None:
    """A snapshot that leaves out defaults or types would let one pass."""

    def before(*, top: int | None = None) -> int:
        return top or 0

    def after(*, top: int | None = 20) -> int:
        return top or 0

    assert signature_of(before) == "(*, top: int | None = None) -> int"
    assert signature_of(before) != signature_of(after)


def test_the_control_api_has_the_same_routes(stage: Any) -> None:
    """Methods and paths, below the token."""
    app = control_app(stage.sandbox, token="TOKEN")
    compare("control_api.txt", iter(sorted(routes(app))))


def routes(app: Starlette) -> Iterator[str]:
    """Yield methods and path of each route of an application below `/TOKEN`."""
    (mount,) = app.routes
    assert isinstance(mount, Mount)
    for route in mount.routes:
        assert isinstance(route, Route)
        yield f"{route.path} {' '.join(sorted(route.methods or ()))}"


def test_the_tables_of_a_lake_are_the_same() -> None:
    """Columns and their types, under the version of the layout: other columns need another `FORMAT`."""
    tables = {table: ", ".join(map(" ".join, columns.items())) for table, columns in COLUMNS.items()}
    today = [f"format {FORMAT}", *(f"{table}: {columns}" for table, columns in tables.items())]
    before = (FOLDER / "lake.txt").read_text(encoding="utf-8").splitlines()
    assert today == before or today[0] != before[0], "the columns are others: add 1 to FORMAT in lake_schema"
    compare("lake.txt", iter(today))


@pytest.mark.parametrize("section", ["4.10 Dimensions", "4.11 Metrics"])
def test_the_tables_of_the_wire_have_the_rows_of_the_catalog(section: str) -> None:
    """Each dimension and each metric is described as the catalog has it."""
    text = WIRE.read_text(encoding="utf-8")
    start = text.index("|---", text.index(f"\n## {section}\n"))
    start = text.index("\n", start) + 1
    end = text.index("\n\n", start) + 1
    rows = dimension_rows() if section == "4.10 Dimensions" else metric_rows()
    today = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if os.environ.get("SNAPSHOTS") == "write":
        WIRE.write_text(text[:start] + today + text[end:], encoding="utf-8")
        return
    if changes := [*unified_diff(text[start:end].splitlines(), today.splitlines(), "before", "now", lineterm="", n=0)]:
        pytest.fail("\n".join([*changes, f"If this is meant: {COMMAND}"]), pytrace=False)


def dimension_rows() -> Iterator[tuple[str, str, str]]:
    """Yield name, owner and value of each dimension."""
    for name, it in DIMENSIONS.items():
        of = "player" if it.level == "player" else f"`{it.only}` events" if it.only else "event"
        match it.source:
            case Sent(field=field):
                value = f"{it.meaning}; `{field}` as sent" if field else f"{it.meaning}; as sent"
            case Payload():
                value = f"{it.meaning} (3.6)"
            case _:
                value = it.meaning
        yield f"`{name}`", of, value


def metric_rows() -> Iterator[tuple[str, str, str]]:
    """Yield name, number and row fields of each metric, with fields that are numbers in bold."""
    for name, metric in METRICS.items():
        fields = (f"**`{it.name}`**" if it.kind == "number" else f"`{it.name}`" for it in metric.fields)
        yield f"`{name}`", metric.meaning, ", ".join(fields)


@pytest.mark.parametrize("service", ["collector", "metrics"])
def test_services_take_and_answer_the_same(service: str) -> None:
    """Paths and shapes of the OpenAPI document: components have numbers, because classes may be renamed."""
    document = json.loads(DESCRIPTIONS[service]())
    compare(f"{service}_api.txt", shapes(document))


def shapes(document: dict[str, Any]) -> Iterator[str]:
    """Yield each path with its parameters, bodies, answers and components, which are numbered within the path.

    Paths that differ in components alone, as metrics do in their rows, stand above one block that has those of each.
    """
    blocks: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            is_open = operation.get("security", document["security"]) == []
            heading = f"{method} {path}{' (needs no key)' if is_open else ''}"
            lines = [*block(operation, document["components"]["schemas"])]
            numbers = (line.split()[0] if line.startswith("  #") else line for line in lines)
            blocks.setdefault(tuple(numbers), {})[heading] = lines
    for same in blocks.values():
        yield from same
        for versions in zip(*same.values(), strict=True):
            if len({*versions}) == 1:
                yield versions[0]
            else:
                yield from (f"{line} <- {heading}" for heading, line in zip(same, versions, strict=True))
    for name, scheme in document["components"]["securitySchemes"].items():
        yield f"security {name}: {scheme['type']} in {scheme['in']} {scheme['name']}"


def block(operation: dict[str, Any], components: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each parameter and body, for the statuses of each answer, then for each component."""
    shape = Shapes()
    for it in operation.get("parameters", ()):
        yield f"  {it['in']} {it['name']}{'' if it.get('required') else '?'}: {shape(it['schema'])}"
    if "requestBody" in operation:
        yield f"  body: {shape.content(operation['requestBody'])}"
    answers: dict[str, list[str]] = {}
    for status, answer in operation["responses"].items():
        headers = [f" + {name}: {shape(it['schema'])}" for name, it in answer.get("headers", {}).items()]
        answers.setdefault(f"{shape.content(answer)}{''.join(headers)}", []).append(status)
    for content, statuses in answers.items():
        yield f"  {' '.join(statuses)}: {content}"
    shown = 0
    while shown < len(shape.references):  # a component may lead to more
        name = [*shape.references][shown]
        shown += 1
        yield f"  #{shown} {shape(components[name])}"


class Shapes:
    """JSON schemas as short types: `{name: string, title?: #3 | null}`, with references by number.

    Texts for people are left out: they come from docstrings and class names.
    """

    def __init__(self) -> None:
        self.references: dict[str, str] = {}

    def content(self, node: dict[str, Any]) -> str:
        """Return the type of a body or answer, of each media type that there is."""
        return ", ".join(f"{media} {self(it['schema'])}" for media, it in node.get("content", {}).items())

    def __call__(self, schema: dict[str, Any]) -> str:
        """Return the type that *schema* describes, with all its keywords in brackets that the type does not say."""
        more = {key: value for key, value in schema.items() if key not in LEFT_OUT}
        if "$ref" in more:
            shown = self._number(more.pop("$ref").removeprefix(REFERENCE))
        elif "anyOf" in more:
            shown = " | ".join(map(self, more.pop("anyOf")))
        elif "enum" in more:
            shown = " | ".join(map(json.dumps, more.pop("enum")))
        elif "prefixItems" in more:
            shown = f"({', '.join(map(self, more.pop('prefixItems')))})"
            del more["type"]
        elif "items" in more:
            shown = f"[{self(more.pop('items'))}]"
            del more["type"]
        elif "properties" in more:
            required = more.pop("required", ())
            fields = {name if name in required else f"{name}?": it for name, it in more.pop("properties").items()}
            shown = f"{{{', '.join(f'{name}: {self(it)}' for name, it in fields.items())}}}"
            del more["type"]
        else:
            shown = more.pop("type", "any")
        return f"{shown} {json.dumps(more, sort_keys=True)}" if more else str(shown)

    def _number(self, name: str) -> str:
        return self.references.setdefault(name, f"#{len(self.references) + 1}")
