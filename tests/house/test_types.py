"""Types as a user's checker sees them: a script that names everything, the wheel that carries them."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gamelens

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "user_script.py"
TREE = ast.parse(SCRIPT.read_text())
CALLS = [node for node in ast.walk(TREE) if isinstance(node, ast.Call)]
FACES = {"Client": False, "AsyncClient": True}


MISTAKES = {
    "a list of other things": "gl.Client().metrics().append(1)",
    "an argument left out": "gl.Client().query('revenue')",
    "an argument nobody has": "gl.Client().query('revenue', over='2026-11-01', untill='2026-11-02')",
    "a word that is none of the allowed": "gl.Client().query('revenue', over='2026-11-01', every='hour')",
    "a pace that is none": "gl.Client(pace='fast')",
    "another answer": "x: int = gl.Client().available()",
    "nothing awaited": "gl.AsyncClient().available().start",
    "a field that an error does not have": "gl.Truncated(1).limits",
    "a name that is not there": "gl.no_such_name",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """File and line of whatever mypy does not like, somewhere else than in this project."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "script.py").write_text(SCRIPT.read_text())
    (folder / "mistakes.py").write_text("\n".join(["import gamelens as gl", *MISTAKES.values()]))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=/dev/null"]
    files = ["script.py", "mistakes.py"]
    told = subprocess.run([*command, *files], capture_output=True, text=True, cwd=folder, check=False).stdout
    return [(line.split(":")[0], int(line.split(":")[1])) for line in told.splitlines() if ": error:" in line]


@pytest.mark.slow
def test_a_user_script_passes_the_strictest_check(complaints: list[tuple[str, int]]) -> None:
    assert [line for file, line in complaints if file == "script.py"] == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(complaints: list[tuple[str, int]], mistake: str) -> None:
    """Types that let everything through would pass the other test as well."""
    assert ("mistakes.py", 2 + list(MISTAKES).index(mistake)) in complaints


def test_the_script_names_everything_public() -> None:
    named = {node.attr for node in ast.walk(TREE) if isinstance(node, ast.Attribute)}
    named |= {alias.name for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named >= set(gamelens.__all__)


def arguments(name: str, *, is_awaited: bool) -> set[str]:
    """The arguments by name of the calls to a method of that name, awaited or not."""
    awaited = {id(node.value) for node in ast.walk(TREE) if isinstance(node, ast.Await)}
    found = [it for it in CALLS if isinstance(it.func, ast.Attribute) and it.func.attr == name]
    return {word.arg or "" for it in found if (id(it) in awaited) == is_awaited for word in it.keywords}


@pytest.mark.parametrize("face", FACES)
def test_the_script_uses_every_method_with_every_argument(face: str) -> None:
    class_ = getattr(gamelens, face)
    public = {name: it for name, it in inspect.getmembers(class_, inspect.isfunction) if not name.startswith("_")}
    missing = {}
    for name, method in public.items():
        wanted = {it.name for it in inspect.signature(method).parameters.values() if it.kind is it.KEYWORD_ONLY}
        if left := wanted - arguments(name, is_awaited=FACES[face]):
            missing[name] = left
    assert missing == {}
    called = {it.func.attr for it in CALLS if isinstance(it.func, ast.Attribute)}
    assert set(public) <= called


@pytest.mark.parametrize("face", FACES)
def test_the_script_makes_each_client_with_every_argument(face: str) -> None:
    made = [it for it in CALLS if isinstance(it.func, ast.Attribute) and it.func.attr == face]
    given = {word.arg for it in made for word in it.keywords}
    wanted = {*inspect.signature(getattr(gamelens, face)).parameters} - {"transport"}  # which takes a type of httpx
    assert given >= wanted


def test_the_types_are_shipped() -> None:
    """A wheel of the package takes all of its folder along."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/gamelens"]
    assert not {"exclude", "only-include"} & set(wheel)
    assert (ROOT / "src" / "gamelens" / "py.typed").read_bytes() == b""
