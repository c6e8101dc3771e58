"""What the outside sees stays as it is: public names, routes, and the shapes of both services.

The files in `snapshots` hold all of it. A change that is meant writes them anew, and shows in the diff:

    SNAPSHOTS=write .venv/bin/pytest tests/house/test_snapshots.py
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from house.source import exported, modules

COMMAND = "SNAPSHOTS=write .venv/bin/pytest tests/house/test_snapshots.py"
FOLDER = Path(__file__).with_name("snapshots")
HOMES = tomllib.loads((FOLDER / "homes.toml").read_text(encoding="utf-8"))
"""Where the parts of the sandbox are that no public name leads to."""
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


def test_rooms_export_the_same_names() -> None:
    """`__all__` of gamelens, of each room and of each package in it."""
    names = ((it.name, sorted(exported(it.name))) for it in modules() if it.is_package and exported(it.name))
    compare("names.txt", (f"{module}.{name}" for module, listed in names for name in listed))


def test_the_control_api_has_the_same_routes(stage: Any) -> None:
    """Methods and paths, below the token."""
    app = resolve_name(HOMES["control_app"])(stage.sandbox, token="TOKEN")
    compare("control_api.txt", iter(sorted(routes(app))))


def routes(app: Starlette) -> Iterator[str]:
    """Yield methods and path of each route of an application below `/TOKEN`."""
    (mount,) = app.routes
    assert isinstance(mount, Mount)
    for route in mount.routes:
        assert isinstance(route, Route)
        yield f"{route.path} {' '.join(sorted(route.methods or ()))}"


@pytest.mark.parametrize("service", ["collector", "metrics"])
def test_services_take_and_answer_the_same(service: str) -> None:
    """Paths and shapes of the OpenAPI document: components have numbers, because classes may be renamed."""
    document = json.loads(resolve_name(HOMES["openapi"])[service]())
    compare(f"{service}_api.txt", shapes(document))


def shapes(document: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each parameter, body and answer of each path, then one for each component they lead to."""
    shape = Shapes()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            is_open = operation.get("security", document["security"]) == []
            yield f"{method} {path}{' (needs no key)' if is_open else ''}"
            for it in operation.get("parameters", ()):
                yield f"  {it['in']} {it['name']}{'' if it.get('required') else '?'}: {shape(it['schema'])}"
            if "requestBody" in operation:
                yield f"  body: {shape.content(operation['requestBody'])}"
            for status, answer in operation["responses"].items():
                headers = [f" + {name}: {shape(it['schema'])}" for name, it in answer.get("headers", {}).items()]
                yield f"  {status}: {shape.content(answer)}{''.join(headers)}"
    components = document["components"]["schemas"]
    shown = 0
    while shown < len(shape.references):  # a component may lead to more
        name = [*shape.references][shown]
        shown += 1
        yield f"#{shown} {shape(components[name])}"
    for name, scheme in document["components"]["securitySchemes"].items():
        yield f"security {name}: {scheme['type']} in {scheme['in']} {scheme['name']}"


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
