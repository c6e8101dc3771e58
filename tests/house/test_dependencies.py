"""Packages that others made: declared where they are imported, and none without a reason."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from packaging.requirements import Requirement

from house.source import ROOT, TOP, modules, place

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = {"assistant": "mcp", "cli": "cli", "notebook": "lab", "sandbox": "sandbox"}
"""Extra that a room needs as a whole; the others need what is always installed."""
PLUGIN = PROJECT["entry-points"]["pytest11"]["gamelens"]


def normal(name: str) -> str:
    """Return the name of a distribution as indexes compare it; the packages that we import are called like theirs."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(extra: str | None) -> set[str]:
    """Return the distributions that come with gamelens, and with one of its extras."""
    listed = PROJECT["dependencies"] + (PROJECT["optional-dependencies"][extra] if extra else [])
    found = set[str]()
    for requirement in map(Requirement, listed):
        found |= set[str]().union(*map(declared, requirement.extras)) if requirement.name == TOP else {requirement.name}
    return {*map(normal, found)}


def imported_at_once(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and package of what is imported with a module: not inside functions, not for type checkers."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, it.name.partition(".")[0]) for it in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, (node.module or "").partition(".")[0]


def test_a_room_imports_what_its_extra_installs() -> None:
    """Whoever installs an extra can import its room; deptry checks that everything is declared somewhere."""
    missing = []
    for module in modules():
        allowed = declared(EXTRAS.get(module.room)) | ({TOP, "pytest"} if module.name == PLUGIN else {TOP})
        for line, package in imported_at_once(module.tree):
            if package not in sys.stdlib_module_names and normal(package) not in allowed:
                missing.append(f"{place(module, line)}: {package}")
    assert missing == []


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are looked for on disk while a test runs."""
    names: list[str] = []

    class Recorder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> None:
            names.append(name)

    monkeypatch.setattr(sys, "meta_path", [Recorder, *sys.meta_path])
    return names


async def request_twice(after_the_first: Callable[[], None]) -> None:
    """Send two requests over one connection to a server of our own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await client.get(url)
        after_the_first()
        await client.get(url)


def test_with_sniffio_a_request_looks_for_no_module(searched: list[str]) -> None:
    """All that httpx and httpcore import on the way is there after the first request."""
    asyncio.run(request_twice(searched.clear))
    assert searched == []


def test_without_sniffio_every_request_looks_for_it(searched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes half as long as the request: when this fails, gamelens needs sniffio no longer."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sniffio"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:1])
    asyncio.run(request_twice(searched.clear))
    assert set(searched) == {"sniffio"}


@pytest.mark.parametrize("file", ["constraints.txt", ".ci/constraints-spark.txt"])
def test_every_pin_has_hashes_and_no_address(file: str) -> None:
    """An installer takes a package from wherever it is set up to, and nothing that differs from what was tested."""
    pins = re.sub(r"\\\n", "", (ROOT / file).read_text(encoding="utf-8")).splitlines()
    for pin in pins:
        requirement, *hashes = pin.split(" --hash=sha256:")
        assert re.fullmatch(r"[\w.-]+==\S+( ; .+)?\s*", requirement.rstrip()), pin[:80]
        assert hashes, requirement
        assert all(re.fullmatch(r"[0-9a-f]{64}\s*", value) for value in hashes), requirement


def test_everything_that_is_declared_is_pinned() -> None:
    """The pins hold what the development environment needs and what builds the package."""
    pinned = {
        normal(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    }
    groups = [*PYPROJECT["dependency-groups"].values(), PYPROJECT["build-system"]["requires"]]
    needed = {normal(Requirement(name).name) for group in groups for name in group}
    assert pinned >= declared("all") | needed | declared(None)


def test_spark_and_certificates_come_only_where_they_are_wanted() -> None:
    """Spark is half a gigabyte that `all` does without; few sandboxes speak HTTPS."""
    assert "pyspark" in declared("spark") - declared("all")
    assert declared("tls") - declared(None) == {"trustme"}
    assert "trustme" in declared("all") - declared("sandbox")
